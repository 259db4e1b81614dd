"""A comparison as a page: all that the report says, and texts that stay texts."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings

from embeval.compare.html import html
from embeval.core.characters import visible
from tests.support.gates import BASELINE, CANDIDATE, compare_report
from tests.support.hostile import hostile
from tests.support.pages import fetched, read, with_texts

REPORT = compare_report()


def test_it_shows_what_the_report_says() -> None:
    """Values, differences, intervals, p-values and findings of every comparison; items with texts and ranks."""
    page = read(html(REPORT))
    text = " ".join(page.text.split())
    assert f"2 candidates against {BASELINE}" in text
    for each in (*REPORT.comparisons, *REPORT.slices, *REPORT.worst_slices):
        assert each.finding.value in text
        assert each.delta is None or f"{each.delta:.4f}" in text
        assert each.ci_low is None or f"[{each.ci_low:.4f}, {each.ci_high:.4f}]" in text
        assert each.slice is None or f"{each.slice}: {each.label}" in text
    assert "adjusted 0.3744" in text
    assert "adjusted < 0.0001" in text
    assert "61 won, 84 lost" in text
    assert "too_few_items" in text
    for candidate in REPORT.candidates:
        assert REPORT.sentence(candidate) in text
    assert text.count("worse on 84, better on 61, unchanged on 503 by ndcg_at_10") == 2
    assert text.count("1 → not ranked") == text.count("4 → 23") == 2
    assert "Wie ändere ich meine Adresse? שלום 你好" in text
    for part in (*REPORT.not_comparable, *REPORT.notes, "support-kb, language: nl has 4 items", "by Holm"):
        assert part in text


def test_every_difference_is_drawn_around_zero() -> None:
    """One drawing per comparison with a difference."""
    made = html(REPORT)
    drawn = [each for each in (*REPORT.comparisons, *REPORT.slices, *REPORT.worst_slices) if each.delta is not None]
    assert made.count('<line class="zero"') == len(drawn) == 8
    labels = [each for each in read(made).values("aria-label") if ": value" in each]
    assert sorted(labels) == sorted(
        f"{each.finding.value}: value {each.delta:.4f}, 95 % interval from {each.ci_low:.4f} to {each.ci_high:.4f}"
        for each in drawn
    )


def test_one_candidate() -> None:
    """Its name is the heading, and there is nothing to choose from."""
    mine = replace(REPORT, candidates=(CANDIDATE,), comparisons=REPORT.of(CANDIDATE))
    page = read(html(mine))
    assert f"{CANDIDATE} against {BASELINE}" in page.text
    assert "nav" not in page.tags


def test_corrections_are_named() -> None:
    """Also that there is none."""
    texts = [read(html(replace(REPORT, correction=name))).text for name in ("holm", "bh", "none")]
    assert ["by Holm" in texts[0], "Benjamini–Hochberg" in texts[1], "not corrected" in texts[2]] == [True] * 3


@settings(max_examples=20, deadline=None)
@given(hostile().filter(str.split))
def test_texts_stay_texts(text: str) -> None:
    """With every text hostile the page has the structure that it has with plain ones, and shows the text."""
    plain, evil = (with_texts(REPORT, lambda old, new=each: new) for each in ("x", text))  # type: ignore[misc]
    page = read(html(evil))
    assert page.tags == read(html(plain)).tags
    assert fetched(page) == []
    assert visible(text) in page.text
    assert visible(page.text) == page.text
