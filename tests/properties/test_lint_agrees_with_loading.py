"""Lint against the loader: it passes what an evaluation takes, and nothing else; and mending loses nothing."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from embeval.data.beir import load_beir
from embeval.errors import DataError
from embeval.workflows.lint import fixing
from embeval.workflows.lint.findings import LintOptions
from embeval.workflows.lint.rules import lexical
from embeval.workflows.lint.run import lint
from tests.support.golden import HEADER, Golden

IDS = st.sampled_from(["d5", "d6", "d1", "d2", " d1", "d1 ", "D1", "", 1, "1", None, 1.5])
TEXTS = st.sampled_from(["A page of its own.", "The backup runs every night.", "", None, "\ud83d", 3])
ROWS = st.one_of(
    st.fixed_dictionaries(
        {"_id": IDS, "text": TEXTS},
        optional={
            "title": TEXTS,
            "answerable": st.sampled_from([True, False, None]),
            "exclude": st.sampled_from([["d1"], [], "d1", [1], None]),
            "document": IDS,
            "start": st.sampled_from([0, -1, "a", None]),
            "kind": TEXTS,
        },
    ),
    st.sampled_from(["", "{", "[]", "null", '{"_id": "d1", "_id": "d2", "text": "a"}', '{"_id": NaN}']),
)
FIELDS = st.sampled_from(["d1", "d2", "1", " d1", "", "0", "1.0", "2", "x", "nan", "1001", "1e2"])
LINES = st.lists(FIELDS, min_size=0, max_size=4).map("\t".join)
HEADERS = st.sampled_from(
    [HEADER, HEADER, HEADER, "query-id\tcorpus-id\tscore\tnote", "query-id\tcorpus-id\tcode", "a,b,c", ""]
)


@settings(max_examples=250, deadline=None)
@given(
    st.lists(ROWS, max_size=1),
    st.lists(ROWS, max_size=1),
    HEADERS,
    st.lists(st.one_of(LINES, st.sampled_from(["q1\td2\t1", "q1\td1\t1", "q3\td1\t2", "q1\t d1\t0"])), max_size=2),
)
def test_lint_passes_only_what_loads(
    corpus: list[object], queries: list[object], header: str, qrels: list[str]
) -> None:
    """And after mending, what loaded before loads as it was but for ids."""
    golden = Golden()
    golden.corpus += corpus
    golden.queries += queries
    golden.qrels = [header, *(f"{line}\t" if "note" in header else line for line in golden.qrels[1:]), *qrels]
    with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patched:
        patched.setattr(lexical, "_found", lambda gold, rows: set())
        folder = golden.write(Path(name))
        try:
            before = load_beir(folder)
        except DataError:
            before = None
        event(f"loads: {before is not None}")
        passes = lint(folder, LintOptions()).passes()
        assert not (passes and before is None)
        fixing.fix(folder, "test")
        assert fixing.fix(folder, "test") == []
        if before is not None:
            after = load_beir(folder)
            assert [doc.strip() for doc in after.doc_ids] == [doc.strip() for doc in before.doc_ids]
            assert after.doc_texts == before.doc_texts
            assert list(after.queries.values()) == list(before.queries.values())
            assert sorted(grade for grades in after.qrels.judgments.values() for grade in grades.values()) == sorted(
                grade for grades in before.qrels.judgments.values() for grade in grades.values()
            )
