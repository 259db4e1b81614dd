"""Each class of failures on a case that is one, and on its neighbours that are not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pytest

from embeval.workflows import failures
from embeval.workflows.failures import Case, Hit, Positive

ENGLISH = "How can I restore a document that was deleted by somebody from the backup?"
ENGLISH_DOCUMENT = "To restore a deleted document from the backup, open the list of sets and choose the right one."
GERMAN_DOCUMENT = "Die Sicherung läuft jede Nacht, und gelöschte Dokumente bleiben noch dreißig Tage lang erhalten."


def case(
    text: str,
    ranking: Sequence[str],
    grades: Mapping[str, int],
    texts: Mapping[str, str],
    *,
    k: int = 10,
    out_of_reach: Sequence[str] = (),
) -> Case:
    """A query, its ranking and its judgments."""
    rank_of = {doc: rank for rank, doc in enumerate(ranking, start=1)}
    return Case(
        text=text,
        k=k,
        positives=tuple(
            Positive(doc, grade, rank_of.get(doc), doc not in out_of_reach)
            for doc, grade in grades.items()
            if grade > 0
        ),
        hits=tuple(Hit(rank, doc, 1.0 / rank, grades.get(doc)) for doc, rank in rank_of.items()),
        texts=texts,
    )


def check(name: str, of: Case) -> bool | None:
    """Whether a case is of a class."""
    return next(each for each in failures.CLASSES if each.name == name).applies(of)


def test_missed_are_positives_below_something_less_relevant() -> None:
    """Unjudged, judged 0 or of a lower grade; not those in front, nor what can't be found."""
    texts = dict.fromkeys("abcdefg", "text")
    grades = {"a": 2, "b": 1, "c": 2, "e": 1, "f": 1, "g": 0, "gone": 1}
    found = case("q", ["a", "b", "c", "d", "e"], grades, texts, out_of_reach=["gone"])
    assert [each.doc for each in found.missed] == ["c", "e", "f"]
    at = {each.doc: each for each in found.positives}
    assert [hit.doc for hit in found.above(at["c"])] == ["b"]
    assert [hit.doc for hit in found.above(at["e"])] == ["d"]
    assert [hit.doc for hit in found.above(at["f"])] == ["d"]  # it is not in the ranking: all is above it


def test_nothing_relevant() -> None:
    """All judgments 0; not where one is above."""
    assert check("nothing_relevant", case("q", ["a"], {"a": 0}, {"a": "x"}))
    assert not check("nothing_relevant", case("q", ["a"], {"a": 1}, {"a": "x"}))


def test_unreachable_and_lost() -> None:
    """One is out of reach, the other in reach and not ranked; a document far down is neither."""
    texts = {"a": "x", "b": "y"}
    gone = case("q", ["a"], {"b": 1}, texts, out_of_reach=["b"])
    lost = case("q", ["a"], {"b": 1}, texts)
    deep = case("q", ["a", "b"], {"b": 1}, texts, k=1)
    assert [check("unreachable", each) for each in (gone, lost, deep)] == [True, False, False]
    assert [check("lost_in_first_stage", each) for each in (gone, lost, deep)] == [False, True, False]


@pytest.mark.parametrize(("shared", "gap"), [(0, True), (1, True), (2, False)])
def test_lexical_gap_is_below_a_fifth_of_the_words(shared: int, gap: bool) -> None:
    """Of ten words, 0, 1 and 2 are shared."""
    words = [f"w{number}" for number in range(10)]
    texts = {"a": "other", "b": " ".join(["text", *words[:shared]])}
    assert check("lexical_gap", case(" ".join(words), ["a", "b"], {"b": 1}, texts)) is gap


def test_lexical_gap_needs_every_missed_positive() -> None:
    """One that shares words could have been found by them; one in front doesn't matter."""
    texts = {"a": "fox", "b": "nothing shared", "c": "a red fox", "d": "red fox"}
    assert not check("lexical_gap", case("red fox", ["a", "b", "c"], {"b": 1, "c": 1}, texts))
    assert check("lexical_gap", case("red fox", ["d", "a", "b"], {"d": 1, "b": 1}, texts))


@dataclass(frozen=True)
class FirstWords:
    """Keeps so many words."""

    n: int

    def kept(self, text: str) -> str:
        """The first of them."""
        return " ".join(text.split()[: self.n])


@pytest.mark.parametrize(
    ("document", "cut"),
    [
        ("one two red fox", True),  # both words behind the limit of two
        ("red two fox", True),  # one of two
        ("red fox three four", False),  # both before it
        ("red fox two red fox", False),  # there too, but also before it
        ("red fox", False),  # nothing is cut
        ("one two three four", False),  # nothing is shared
    ],
)
def test_truncated_positive(document: str, cut: bool) -> None:
    """Half of the shared words stand only behind the limit."""
    texts = {"a": "other", "b": document}
    found = case("a red fox", ["a", "b"], {"b": 1}, texts)
    assert check("truncated_positive", replace(found, limits=FirstWords(2))) is cut
    assert check("truncated_positive", found) is None


def test_near_duplicates_at_the_bound() -> None:
    """19 words have 17 shingles; a changed last word leaves 16 of 18, one in the middle 14 of 20 (0.7), two less."""
    words = [f"w{number}" for number in range(19)]
    texts = {
        "positive": " ".join(words),
        "end": " ".join([*words[:-1], "x"]),
        "middle": " ".join([*words[:9], "x", *words[10:]]),
        "two": " ".join([*words[:9], "x", *words[10:-1], "y"]),
        "half": " ".join(words[:10]),
    }
    for doc, near in {"end": True, "middle": True, "two": False, "half": False}.items():
        found = case("q", [doc, "positive"], {"positive": 1}, texts)
        assert check("near_duplicate_competitor", found) is near, doc
    below = case("q", ["two", "positive", "end"], {"positive": 1}, texts)
    assert not check("near_duplicate_competitor", below)
    relevant = case("q", ["end", "two", "positive"], {"positive": 1, "end": 1}, texts)
    assert not check("near_duplicate_competitor", relevant)


def test_near_duplicates_of_very_short_and_empty_texts() -> None:
    """Two equal words are alike; nothing is like nothing."""
    assert check("near_duplicate_competitor", case("q", ["a", "b"], {"b": 1}, {"a": "Red fox!", "b": "red fox"}))
    assert not check("near_duplicate_competitor", case("q", ["a", "b"], {"b": 1}, {"a": "", "b": "…"}))


def test_wrong_language() -> None:
    """Most documents above are German, the query and the positive English."""
    texts = {"de": GERMAN_DOCUMENT, "de2": GERMAN_DOCUMENT + " Bitte warten.", "en": ENGLISH_DOCUMENT}
    texts |= {"other": "The recycle bin keeps every document for thirty days before it is removed.", "short": "x"}
    assert check("wrong_language", case(ENGLISH, ["de", "en"], {"en": 1}, texts))
    assert check("wrong_language", case(ENGLISH, ["de", "other", "de2", "en"], {"en": 1}, texts))
    half = case(ENGLISH, ["de", "other", "en"], {"en": 1}, texts)
    unclear = case(ENGLISH, ["short", "en"], {"en": 1}, texts)
    positive_elsewhere = case(ENGLISH, ["de", "de2"], {"de2": 1}, texts)
    too_short = case("restore", ["de", "en"], {"en": 1}, texts)
    for each in (half, unclear, positive_elsewhere, too_short):
        assert not check("wrong_language", each)


def test_unjudged_hit() -> None:
    """Above every positive, and at least as much in common with the query."""
    texts = {"same": "red fox", "less": "red", "nothing": "lime", "positive": "a red fox", "weak": "lime kiln"}
    query = "the red fox"
    assert check("unjudged_hit", case(query, ["same", "positive"], {"positive": 1}, texts))
    assert not check("unjudged_hit", case(query, ["less", "positive"], {"positive": 1}, texts))
    assert not check("unjudged_hit", case(query, ["same", "positive"], {"positive": 1, "same": 0}, texts))
    assert not check("unjudged_hit", case(query, ["positive", "same"], {"positive": 1}, texts))
    # Below the first positive, though above the second.
    assert not check("unjudged_hit", case(query, ["positive", "same", "weak"], {"positive": 1, "weak": 1}, texts))
    # As much in common as the positive, which is nothing.
    assert not check("unjudged_hit", case(query, ["nothing", "weak"], {"weak": 1}, texts))


def test_wrong_order() -> None:
    """All positives within the cut-off, or as many as fit."""
    texts = dict.fromkeys("abcd", "text")
    assert check("wrong_order", case("q", ["a", "b", "c"], {"b": 1, "c": 1}, texts, k=3))
    assert not check("wrong_order", case("q", ["a", "b", "c"], {"b": 1, "c": 1}, texts, k=2))
    assert not check("wrong_order", case("q", ["a", "b"], {"b": 1, "c": 1}, texts, k=3))
    assert not check("wrong_order", case("q", ["b", "a"], {"b": 1}, texts, k=3))


def test_bm25_finds_it() -> None:
    """A positive that is beyond the cut-off here and within it there."""
    texts = dict.fromkeys("abc", "text")
    found = case("q", ["a", "b", "c"], {"c": 1}, texts, k=2)
    assert check("bm25_finds_it", replace(found, bm25_ranks={"c": 1}))
    assert not check("bm25_finds_it", replace(found, bm25_ranks={"a": 1, "b": 2}))
    assert not check("bm25_finds_it", replace(found, k=3, bm25_ranks={"c": 1}))
    assert check("bm25_finds_it", found) is None


def test_a_case_can_be_in_several_classes_and_other_is_what_is_left() -> None:
    """In the order of the table; classes that were not looked at don't count."""
    texts = {"a": "red fox", "b": "lime"}
    assert failures.classify(case("red fox", ["a"], {"b": 1}, texts)) == (
        *("lost_in_first_stage", "lexical_gap", "unjudged_hit"),
    )
    assert failures.classify(case("red fox", ["a", "b"], {"b": 1, "a": 0}, {"a": "red", "b": "fox"}, k=1)) == ("other",)
    assert failures.names()[-1] == "other"
    assert len(set(failures.names())) == len(failures.CLASSES) + 1
