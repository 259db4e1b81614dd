"""Adjusted p-values against definitions, published examples and scipy."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from embeval.stats.corrections import benjamini_hochberg, holm

P_VALUES = st.lists(st.floats(0.0, 1.0), min_size=1, max_size=7)


def rejected_by_closed_testing(p: list[float], alpha: float) -> set[int]:
    """What Holm rejects, by its other definition: every set of hypotheses with the one is rejected by Bonferroni."""
    places = range(len(p))
    sets = [each for size in range(1, len(p) + 1) for each in itertools.combinations(places, size)]
    stand = [each for each in sets if min(p[place] for place in each) * len(each) > alpha]
    return {place for place in places if not any(place in each for each in stand)}


def test_holm_of_the_textbook() -> None:
    """Closed form: 4 x 0.01, then the larger of that and 3 x 0.02, and so on; in the order given."""
    assert holm([0.04, 0.01, 0.03, 0.02]) == pytest.approx([0.06, 0.04, 0.06, 0.06])
    assert holm([0.5, 0.9]) == (1.0, 1.0)


def test_published_example_of_benjamini_hochberg() -> None:
    """The 15 p-values of Benjamini & Hochberg 1995, section 4: at 0.05 Holm claims 3 of them and they claim 4."""
    p = [0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240, 0.4262, 0.5719, 0.6528]
    p += [0.7590, 1.0000]
    assert sum(each is not None and each <= 0.05 for each in benjamini_hochberg(p)) == 4
    assert sum(each is not None and each <= 0.05 for each in holm(p)) == 3


@given(P_VALUES, st.sampled_from([0.01, 0.05, 0.1, 0.5]))
def test_holm_is_closed_testing(p: list[float], alpha: float) -> None:
    """Adjusted values up to alpha are the hypotheses that brute force over all subsets rejects."""
    claimed = {place for place, each in enumerate(holm(p)) if each is not None and each <= alpha}
    sure = rejected_by_closed_testing(p, alpha * (1 - 1e-12))
    assert sure <= claimed <= rejected_by_closed_testing(p, alpha * (1 + 1e-12))


@given(P_VALUES)
def test_benjamini_hochberg_equals_scipy(p: list[float]) -> None:
    """``scipy.stats.false_discovery_control``."""
    np.testing.assert_allclose(np.array(benjamini_hochberg(p)), stats.false_discovery_control(p), rtol=1e-12)


@given(P_VALUES)
def test_adjusted_values_keep_the_order_and_only_grow(p: list[float]) -> None:
    """A smaller p never gets a larger adjusted value; none is smaller than p or larger than 1."""
    for adjust in (holm, benjamini_hochberg):
        adjusted = [each for each in adjust(p) if each is not None]
        pairs = sorted(zip(p, adjusted, strict=True))
        assert [each for _, each in pairs] == sorted(adjusted)
        assert all(one <= other * (1 + 1e-12) and other <= 1.0 for one, other in pairs)


def test_what_is_no_test_stays_out() -> None:
    """None and NaN don't count as comparisons, and stay where they are."""
    assert holm([0.04, None, 0.01, math.nan]) == (0.04, None, 0.02, None)
    assert benjamini_hochberg([None, 0.04, 0.01]) == (None, 0.04, 0.02)
    assert holm([]) == ()
    assert holm([None]) == (None,)


@pytest.mark.parametrize("wrong", [-0.1, 1.1, math.inf])
def test_what_is_no_probability_is_refused(wrong: float) -> None:
    """Rather than adjusted."""
    with pytest.raises(ValueError, match=r"\[0, 1\]"):
        holm([0.5, wrong])
