"""What a comparison is said to show, by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from embeval.core.comparison import Finding
from tests.support.gates import comparison


@pytest.mark.parametrize(
    ("delta", "p", "higher_is_better", "finding"),
    [
        (0.01, 0.05, True, Finding.BETTER),
        (-0.01, 0.05, True, Finding.WORSE),
        (0.01, 0.05, False, Finding.WORSE),
        (-0.01, 0.05, False, Finding.BETTER),
        (0.01, 0.0501, True, Finding.NOT_TOLD_APART),
        (-0.01, 0.5, True, Finding.NOT_TOLD_APART),
    ],
)
def test_finding_by_the_adjusted_p(delta: float, p: float, higher_is_better: bool, finding: Finding) -> None:
    """At a level of 95 % and p = 0.05 there is one, above it there is none; the p before correction doesn't count."""
    shown = replace(comparison(delta, p=0.001), p_adjusted=p, higher_is_better=higher_is_better)
    assert shown.finding is finding


def test_finding_by_the_interval_where_there_is_no_p() -> None:
    """An interval that holds 0 shows nothing."""
    assert replace(comparison(0.01, 0.02), p=None, p_adjusted=None).finding is Finding.NOT_TOLD_APART
    assert replace(comparison(0.03, 0.02), p=None, p_adjusted=None).finding is Finding.BETTER
