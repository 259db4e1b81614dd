"""Variants as strings: packed and unpacked, they are what they were."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from embeval.language_models.variants import Variants, packed

IDS = st.lists(st.integers(0, 2**31 - 1), min_size=1, max_size=12)


@given(st.lists(st.tuples(IDS, st.integers(0, 3)), min_size=1, max_size=6), st.randoms(use_true_random=False))
def test_what_was_packed_comes_out(rows: list[tuple[list[int], int]], random: object) -> None:
    """Ids, places and targets of each, whatever bytes they have: a zero, a line feed, the largest number."""
    made = []
    for ids, n_wanted in rows:
        at_places = [(7 * number) % len(ids) for number in range(n_wanted)]
        made.append((ids, at_places, [ids[place] for place in at_places]))
    found = Variants.of([packed(np.array(ids), at, wanted) for ids, at, wanted in made])
    order = np.arange(len(made))[::-1].copy()
    padded = found.padded(order, pad_id=9)
    of_row, places, targets = found.wanted(order)
    expected = [
        (row, *each) for row, at in enumerate(order.tolist()) for each in zip(made[at][1], made[at][2], strict=True)
    ]
    assert list(zip(of_row, places, targets, strict=True)) == expected
    for row, at in enumerate(order.tolist()):
        own = made[at][0]
        assert padded["input_ids"][row].tolist() == own + [9] * (padded["input_ids"].shape[1] - len(own))
        assert padded["attention_mask"][row].sum() == len(own) == found.lengths[at]


def test_variants_that_differ_anywhere_have_other_keys() -> None:
    """In a token, a place or a target; and equal ones have the same."""
    ids = np.array([5, 6, 7])
    texts = [
        packed(ids, [1], [6]),
        packed(ids, [2], [6]),
        packed(ids, [1], [7]),
        packed(ids[:2], [1], [6]),
        packed(ids, [], []),
        packed(np.array([1, 6, 5, 6, 7]), [], []),
    ]
    found = Variants.of([*texts, texts[0]])
    keys = [found.key(row) for row in range(len(texts) + 1)]
    assert len(set(keys[:-1])) == len(texts)
    assert keys[0] == keys[-1]
