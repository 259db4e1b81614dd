"""Windows of long texts against trying every one of them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from embeval.language_models import windows


@st.composite
def cases(draw: st.DrawFn) -> tuple[int, int, int]:
    """(tokens of a text, room, stride): no stride leaves tokens out."""
    room = draw(st.integers(1, 12))
    return draw(st.integers(1, 60)), room, draw(st.integers(1, room))


def best(place: int, n: int, room: int, stride: int) -> int:
    """The start of the window that shows most on the poorer side of a token, the first of several."""
    there = [*range(0, n - room, stride), n - room] if n > room else [0]
    holding = [start for start in there if start <= place < start + room]
    return max(holding, key=lambda start: (min(place - start, start + room - 1 - place), -start))


@given(cases())
def test_each_token_is_scored_once_where_most_is_seen_around_it(case: tuple[int, int, int]) -> None:
    """As by brute force; the window holds the token and lies within the text."""
    n, room, stride = case
    places = np.arange(n)
    found = windows.starts_of(places, n, room=room, stride=stride)
    assert found.shape == (n,)
    if n > room:
        assert found.tolist() == [best(place, n, room, stride) for place in range(n)]
        assert bool((found <= places).all())
        assert bool((places < found + room).all())
        assert 0 <= found.min() <= found.max() == n - room
    else:
        assert found.tolist() == [0] * n


def test_a_text_of_ten_in_windows_of_four() -> None:
    """By hand, every two tokens: the ends see what there is, a tie goes to the earlier window."""
    assert windows.starts(10, room=4, stride=2).tolist() == [0, 2, 4, 6]
    assert windows.starts_of(range(10), 10, room=4, stride=2).tolist() == [0, 0, 0, 2, 2, 4, 4, 6, 6, 6]
    assert windows.starts(10, room=4, stride=4).tolist() == [0, 4, 6]


@pytest.mark.parametrize("room", [None, 10, 11])
def test_a_text_that_fits_is_seen_whole(room: int | None) -> None:
    """One window, whatever the stride."""
    assert windows.starts(10, room=room, stride=1).tolist() == [0]
    assert windows.starts_of([0, 9], 10, room=room, stride=1).tolist() == [0, 0]
