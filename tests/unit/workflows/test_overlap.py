"""Contamination: what counts, where it is found, and what is refused."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from embeval.errors import DataError, MissingPackageError, UsageError
from embeval.workflows import overlap as workflow
from embeval.workflows.overlap import OverlapOptions, Share, bands, excerpt, overlap
from tests.support.data import write_jsonl
from tests.support.golden import Golden

TEXT = "the quick brown fox jumps over the lazy dog near the old river bank at dawn today"
"""17 words, so 5 13-grams."""


def golden(folder: Path, query: str = TEXT) -> Path:
    """A set whose first query is this one."""
    made = Golden()
    made.queries[0]["text"] = query
    return made.write(folder / "set")


def test_each_kind_with_both_places(tmp_path: Path) -> None:
    """As it is but for case and marks; nearly; in pieces of a longer text."""
    made = Golden()
    made.queries[0]["text"] = "When does the backup run?"
    made.queries[1]["text"] = TEXT
    made.queries[2]["text"] = TEXT.replace("today", "tomorrow") + " and so on"
    folder = made.write(tmp_path / "set")
    corpus = write_jsonl(
        tmp_path / "training.jsonl",
        [
            {"text": "when does the BACKUP run"},
            {"text": f"Some say that {TEXT}, but then they say a lot, and go on to do so for many more words."},
            {"text": TEXT.replace("today", "tomorrow") + " and so"},
        ],
    )
    found = overlap(folder, [corpus], OverlapOptions(texts=("queries",)))
    assert [(hit.text.id, hit.kind, hit.text.line, hit.line) for hit in found.hits] == [
        ("q1", "exact", 1, 1),
        ("q3", "near", 3, 3),
        ("q2", "contained", 2, 2),
    ]
    # 20 words and 19: 18 shingles and 17, of which 17 are shared; and all of q2's five 13-grams are in line 2.
    assert [hit.value for hit in found.hits] == [1.0, 17 / 18, 1.0]
    assert found.hits[2].excerpt == excerpt("the quick brown fox jumps over the lazy dog near the old river")
    assert found.shares == {"queries": Share(n=3, contaminated=3, touched=2, short=1)}
    assert (found.n_files, found.n_texts) == (1, 3)


@pytest.mark.parametrize(("name", "content"), [("a.txt", ""), ("a.jsonl", '{"text": 5}\n')])
def test_nothing_to_compare_with_is_no_clean_bill(tmp_path: Path, name: str, content: str) -> None:
    """A training corpus without a text gives no share, not one of 0."""
    (tmp_path / name).write_text(content, encoding="utf-8")
    with pytest.raises(DataError, match="there is no text to compare with"):
        overlap(golden(tmp_path), [tmp_path / name], OverlapOptions())


def test_a_text_that_goes_over_lines(tmp_path: Path) -> None:
    """In a .txt file lines go on; records of others don't, but the texts of one record do."""
    words = TEXT.split()
    first, second = " ".join(words[:9]), " ".join(words[9:])
    (tmp_path / "a.txt.gz").write_bytes(gzip.compress(f"Once {first}\n{second} it ended\n".encode()))
    write_jsonl(tmp_path / "b.jsonl", [{"text": f"Once {first}"}, {"text": f"{second} it ended"}])
    write_jsonl(tmp_path / "c.jsonl", [{"title": f"Once {first}", "text": f"{second} it ended"}])
    folder = golden(tmp_path)
    options = OverlapOptions(texts=("queries",))
    kinds = {
        name: [(hit.kind, hit.value, hit.line) for hit in overlap(folder, [tmp_path / name], options).hits]
        for name in ("a.txt.gz", "b.jsonl", "c.jsonl")
    }
    assert kinds == {"a.txt.gz": [("contained", 1.0, 2)], "b.jsonl": [], "c.jsonl": [("contained", 1.0, 1)]}


def test_files_do_not_go_on_in_the_next(tmp_path: Path) -> None:
    """The end of one and the beginning of another make no text."""
    words = TEXT.split()
    (tmp_path / "corpus").mkdir()
    (tmp_path / "corpus" / "a.txt").write_text(f"Once {' '.join(words[:9])}\n", encoding="utf-8")
    (tmp_path / "corpus" / "b.txt").write_text(f"{' '.join(words[9:])} it ended\n", encoding="utf-8")
    found = overlap(golden(tmp_path), [tmp_path / "corpus"], OverlapOptions(texts=("queries",)))
    assert (found.hits, found.shares["queries"].touched, found.n_files) == ((), 0, 2)


def test_a_share_of_the_ngrams(tmp_path: Path) -> None:
    """Four of five: contaminated at 0.8, touched only at 0.9."""
    (tmp_path / "a.txt").write_text("He said " + " ".join(TEXT.split()[:16]) + " then", encoding="utf-8")
    folder = golden(tmp_path)
    found = overlap(folder, [tmp_path / "a.txt"], OverlapOptions(texts=("queries",)))
    assert [(hit.kind, hit.value) for hit in found.hits] == [("contained", 0.8)]
    found = overlap(folder, [tmp_path / "a.txt"], OverlapOptions(texts=("queries",), threshold=0.9))
    assert found.hits == ()
    assert found.shares["queries"].touched == 1


def test_short_texts_are_held_against_whole_texts_only(tmp_path: Path) -> None:
    """That five words stand somewhere proves nothing."""
    (tmp_path / "a.txt").write_text("They asked: when does the backup run? Nobody knew, nor did I.", encoding="utf-8")
    folder = golden(tmp_path, "When does the backup run?")
    assert overlap(folder, [tmp_path / "a.txt"], OverlapOptions(texts=("queries",))).hits == ()


def test_roles(tmp_path: Path) -> None:
    """Positives are the relevant documents, title and text together."""
    folder = golden(tmp_path)
    corpus = write_jsonl(tmp_path / "a.jsonl", Golden().corpus)
    found = overlap(folder, [corpus], OverlapOptions(texts=("positives", "documents")))
    assert {role: (share.n, share.contaminated) for role, share in found.shares.items()} == {
        "positives": (3, 3),
        "documents": (4, 4),
    }


@pytest.mark.parametrize("threshold", [0.5, 0.6, 0.7, 0.8, 0.9, 0.99, 1.0])
def test_minhash_rarely_misses(threshold: float) -> None:
    """The probability that b bands of r rows miss a pair of that similarity is (1 - s^r)^b."""
    n, rows = bands(threshold)
    assert n * rows <= workflow.PERMUTATIONS
    assert (1 - threshold**rows) ** n <= 1e-4


def test_refusals(tmp_path: Path) -> None:
    """n-grams and thresholds that prove nothing, and a broken set."""
    folder = golden(tmp_path)
    (tmp_path / "a.txt").write_text("text", encoding="utf-8")
    with pytest.raises(UsageError, match="at least 8 words, not 3"):
        overlap(folder, [tmp_path / "a.txt"], OverlapOptions(ngram=3))
    with pytest.raises(UsageError, match=r"from 0.5 to 1, not 0.1"):
        overlap(folder, [tmp_path / "a.txt"], OverlapOptions(threshold=0.1))
    with (folder / "queries.jsonl").open("a", encoding="utf-8") as file:
        file.write("{\n")
    with pytest.raises(DataError, match=r"queries.jsonl, line 4: not valid JSON[^\n]*\n'embeval data lint' lists"):
        overlap(folder, [tmp_path / "a.txt"], OverlapOptions())


def test_without_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The extra that brings it is named."""

    def missing(package: str, *, extra: str, purpose: str) -> None:
        raise MissingPackageError(package, extra, purpose)

    monkeypatch.setattr(workflow, "require", missing)
    (tmp_path / "a.txt").write_text("text", encoding="utf-8")
    with pytest.raises(MissingPackageError, match=r"needs the package 'datasketch'[^\n]*\n.*\[docs\]"):
        overlap(golden(tmp_path), [tmp_path / "a.txt"], OverlapOptions())


def test_excerpt() -> None:
    """One line of 80 characters at most."""
    assert excerpt("a\n b") == "a b"
    assert len(excerpt("word " * 50)) == 80
