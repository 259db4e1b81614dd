"""TREC files: the same hits as other readers see, complaints with file and line, and files that read back alike."""

from __future__ import annotations

import gzip
import io
from pathlib import Path

import numpy as np
import pytest
import pytrec_eval
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from embeval.core.ir import Qrels, Run, TieRule
from embeval.data import trec
from embeval.errors import DataError

relaxed = settings(
    deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture], max_examples=80
)
NAMES = st.text("ab1é東\xa0\U0001f642", min_size=1, max_size=3)
GAPS = st.sampled_from([" ", "\t", "  ", " \t", "\x0b"])
ENDS = st.sampled_from(["\n", "\r\n", " \n", "\n\n", "\t\r\n"])
SCORES = st.floats(-1e30, 1e30, allow_nan=False) | st.sampled_from([0.0, 0.1, 1.0])


def file(folder: Path, text: str, name: str = "file.run") -> Path:
    """A file of that content."""
    path = folder / name
    path.write_bytes(text.encode("utf-8"))
    return path


def hits(run: Run) -> dict[str, list[tuple[str, float]]]:
    """The ranking of every query."""
    return {query: run.hits(query) for query in run.query_ids}


def lines(run: Run, tag: str = "tag") -> str:
    """What is written of a run."""
    out = io.BytesIO()
    trec.write_run(run, out, tag)
    return out.getvalue().decode("utf-8")


@relaxed
@given(
    rows=st.lists(st.tuples(NAMES, NAMES, SCORES), min_size=1, max_size=12),
    gap=GAPS,
    end=ENDS,
    lead=st.sampled_from(["", " ", "\ufeff"]),
    last=st.booleans(),
    ties=st.sampled_from(TieRule),
)
def test_whatever_stands_between_columns(
    tmp_path: Path, rows: list[tuple[str, str, float]], gap: str, end: str, lead: str, last: bool, ties: TieRule
) -> None:
    """One space, tabs, several, line ends of Windows, blank lines, a byte-order mark: the hits that the rows hold."""
    text = end.join(gap.join([query, "Q0", doc, "1", repr(score), "x"]) for query, doc, score in rows)
    path = file(tmp_path, lead + text + (end if last else ""))
    read, expected = trec.read_run(path, ties), Run.from_rows(rows, ties=ties)
    assert (hits(read), read.n_duplicates, read.ties) == (hits(expected), expected.n_duplicates, ties)


def test_the_hits_that_pytrec_eval_reads(tmp_path: Path) -> None:
    """3 queries of 40 hits in random order, against ``pytrec_eval.parse_run`` (0.5.11), whose scores are doubles."""
    rng = np.random.default_rng(0)
    rows = [(f"q{place % 3}", f"d{place}", rng.normal()) for place in rng.permutation(120)]
    path = file(tmp_path, "".join(f"{query} Q0 {doc} 7 {score!r} x\n" for query, doc, score in rows))
    with path.open() as opened:
        expected = pytrec_eval.parse_run(opened)
    as_float32 = {query: {doc: float(np.float32(score)) for doc, score in of.items()} for query, of in expected.items()}
    assert {query: dict(found) for query, found in hits(trec.read_run(path)).items()} == as_float32


def test_pyarrow_takes_an_ordinary_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The slow parser is not asked: speed rests on that."""
    monkeypatch.setattr(trec, "_lines", None)
    assert hits(trec.read_run(file(tmp_path, "q Q0 d 1 2.5 x\nq Q0 e 2 1e-3 x\n")))["q"][0] == ("d", 2.5)
    assert hits(trec.read_run(file(tmp_path, "q\tQ0\td\t1\t2.5\tx\r\n"))) == {"q": [("d", 2.5)]}
    assert hits(trec.read_run(file(tmp_path, "q Q0   d\t 1 2.5 x \n"))) == {"q": [("d", 2.5)]}
    assert trec.read_qrels(file(tmp_path, "q 0 d 1\n")).judgments == {"q": {"d": 1}}
    assert trec.read_qrels(file(tmp_path, "query-id\tcorpus-id\tscore\nq\ta d\t2\n")).judgments == {"q": {"a d": 2}}


def test_a_gzipped_run(tmp_path: Path) -> None:
    """By its ending."""
    path = tmp_path / "a.run.gz"
    path.write_bytes(gzip.compress(b"q Q0 d 1 0.5 x\n"))
    assert hits(trec.read_run(path)) == {"q": [("d", 0.5)]}


def test_scores_are_float32_before_they_are_compared(tmp_path: Path) -> None:
    """0.1 and the next double are one float32, so the greater id goes first, as in trec_eval."""
    path = file(tmp_path, f"q Q0 a 1 {0.1 + 2e-17!r} x\nq Q0 b 2 0.1 x\nq Q0 c 3 0.09 x\n")
    assert [doc for doc, _ in trec.read_run(path).hits("q")] == ["b", "a", "c"]
    ascending = trec.read_run(path, TieRule.DOC_ID_ASC)
    assert [doc for doc, _ in ascending.hits("q")] == ["a", "b", "c"]


def test_a_document_that_comes_twice_counts_once_at_its_best(tmp_path: Path) -> None:
    """a a x becomes a x, and the other a is counted."""
    run = trec.read_run(file(tmp_path, "q Q0 a 1 3 t\nq Q0 x 3 1 t\nq Q0 a 2 2 t\np Q0 a 1 1 t\n"))
    assert (hits(run), run.n_duplicates) == ({"q": [("a", 3.0), ("x", 1.0)], "p": [("a", 1.0)]}, 1)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("q Q0 d 1 0.5", "5 columns; this run needs 6 separated by spaces: query, Q0, document, rank, score, tag."),
        ("q Q0 my doc 1 0.5 x", "7 columns; this run needs 6"),
        ("q", "1 column; this run needs 6"),
        ("q Q0 d 1 nan x", "'score' must be a finite number, not 'nan'."),
        ("q Q0 d 1 inf x", "'score' must be a finite number, not 'inf'."),
        ("q Q0 d 1 -Infinity x", "'score' must be a finite number, not '-Infinity'."),
        ("q Q0 d 1 1e400 x", "'score' must be a finite number, not '1e400'."),
        ("q Q0 d 1 1e39 x", "the score 1e39 is beyond float32, in which runs are kept."),
        ("q Q0 d 1 0,5 x", "'score' must be a number, not '0,5'."),
        ("q Q0 d 1 1_0 x", "'score' must be a number, not '1_0'."),
        ("q Q0 d 1 x 0.5", "'score' must be a number, not 'x'."),
    ],
)
def test_a_broken_line_is_named(tmp_path: Path, line: str, message: str) -> None:
    """File and line, blank lines counted."""
    path = file(tmp_path, f"q Q0 a 1 2.0 x\n\n{line}\nq Q0 z 1 2.0 x\n")
    with pytest.raises(DataError) as caught:
        trec.read_run(path)
    assert str(caught.value).startswith(f"{path}, line 3: {message}")


def test_bytes_that_are_no_text_are_named(tmp_path: Path) -> None:
    """With their line."""
    path = tmp_path / "a.run"
    path.write_bytes(b"q Q0 d 1 0.5 x\nq Q0 d\xff 1 0.5 x\n")
    with pytest.raises(DataError, match=r"a\.run, line 2: not UTF-8 text \(byte 0xff"):
        trec.read_run(path)


def test_files_that_can_not_be_read(tmp_path: Path) -> None:
    """Missing, a folder, empty, blank, half a gzip file."""
    half = tmp_path / "half.gz"
    half.write_bytes(gzip.compress(b"q Q0 d 1 0.5 x\n" * 99)[:-20])
    for path, message in [
        (tmp_path / "none", "no such file"),
        (tmp_path, "is a folder"),
        (file(tmp_path, "", "empty"), "the file holds no rows"),
        (file(tmp_path, " \n\n", "blank"), "the file holds no rows"),
        (half, "not a whole gzip file"),
    ]:
        for read in (trec.read_run, trec.read_qrels):
            with pytest.raises(DataError, match=message):
                read(path)


class TestRankColumn:
    """The score decides; where the rank column tells another story, that is said."""

    def test_ranks_that_agree_say_nothing(self, tmp_path: Path) -> None:
        """Also for ties, for hits out of order, and for ranks that are none."""
        for text in (
            "q Q0 a 1 3 t\nq Q0 b 2 2 t\nq Q0 c 3 2 t\n",
            "q Q0 c 3 1 t\nq Q0 a 1 3 t\nq Q0 b 2 2 t\n",
            "q Q0 a 0 1 t\nq Q0 b 0 3 t\n",
            "q Q0 a - 1 t\nq Q0 b - 3 t\n",
        ):
            assert trec.read_run_file(file(tmp_path, text)).remarks == ()

    def test_ranks_against_the_scores(self, tmp_path: Path) -> None:
        """A distance instead of a similarity: the order is that of the scores, and the reader is told."""
        found = trec.read_run_file(file(tmp_path, "q Q0 a 1 0.1 t\nq Q0 b 2 0.7 t\np Q0 a 1 2 t\np Q0 b 2 1 t\n"))
        assert [doc for doc, _ in found.run.hits("q")] == ["b", "a"]
        assert found.remarks == (
            "The rank column contradicts the scores in 1 of 2 queries: the scores decide, as in trec_eval.",
        )

    def test_ranks_without_scores(self, tmp_path: Path) -> None:
        """A run by rank whose scores are all alike."""
        found = trec.read_run_file(file(tmp_path, "q Q0 a 1 1 t\nq Q0 b 2 1 t\n"))
        assert [doc for doc, _ in found.run.hits("q")] == ["b", "a"]
        assert found.remarks == (
            "All scores are equal in 1 of 1 query: the tie rule decides there, and not the rank column.",
        )

    def test_a_few_queries_are_no_remark(self, tmp_path: Path) -> None:
        """1 of 20 is 5 %, 2 of 20 are more."""
        good = [f"q{place} Q0 a 1 2 t\nq{place} Q0 b 2 1 t\n" for place in range(18)]
        bad = [f"x{place} Q0 a 1 1 t\nx{place} Q0 b 2 2 t\n" for place in range(2)]
        fine = "r Q0 a 1 2 t\n"
        assert trec.read_run_file(file(tmp_path, "".join([*good, fine, bad[0]]))).remarks == ()
        assert len(trec.read_run_file(file(tmp_path, "".join([*good, *bad]))).remarks) == 1


class TestQrels:
    """Judgments."""

    @pytest.mark.parametrize(
        "text",
        [
            "q 0 a 1\nq 0 b 0\np 0 a 3\nq 0 c -1\n",
            "q\t0\ta\t1\nq\t0\tb\t0\np\t0\ta\t3.0\nq\t0\tc\t-1",
            "query-id\tcorpus-id\tscore\nq\ta\t1\nq\tb\t0\np\ta\t3\nq\tc\t-1\n",
            "\ufeffquery-id\tcorpus-id\tscore\r\nq\ta\t1\r\nq\tb\t0\r\np\ta\t+3\r\nq\tc\t-1\r\n",
            "score\tquery-id\tnote\tcorpus-id\n1\tq\t\ta\n0\tq\tx\tb\n3\tp\t\ta\n-1\tq\t\tc\n",
        ],
    )
    def test_of_trec_and_of_beir(self, tmp_path: Path, text: str) -> None:
        """The same judgments from every form."""
        expected = {"q": {"a": 1, "b": 0, "c": -1}, "p": {"a": 3}}
        assert trec.read_qrels(file(tmp_path, text)).judgments == expected

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("q 0 a 1\nq 0 b\n", "line 2: 3 columns; this qrels file needs 4 separated by spaces: query, 0, document"),
            ("q 0 a 0.5\n", "line 1: relevance must be a whole number up to 1000, not '0.5'."),
            ("q 0 a 1\nq 0 b 1001\n", "line 2: relevance must be a whole number up to 1000, not '1001'."),
            ("q 0 a x\n", "line 1: 'relevance' must be a number, not 'x'."),
            ("q 0 a nan\n", "line 1: 'relevance' must be a finite number, not 'nan'."),
            ("q 0 a 1\np 0 a 1\nq 0 a 1\n", "line 3: query 'q', document 'a' is judged twice."),
            ("query-id\tcorpus-id\tscore\nq\ta\n", "line 2: 2 columns; this qrels file needs 3 separated by tabs"),
            ("query-id\tcorpus-id\tscore\nq\t\t1\n", "line 2: the document id is empty."),
            ("query-id\tcorpus-id\tscore\n", "the file holds no rows."),
        ],
    )
    def test_a_broken_line_is_named(self, tmp_path: Path, text: str, message: str) -> None:
        """File and line."""
        path = file(tmp_path, text, "qrels.txt")
        with pytest.raises(DataError) as caught:
            trec.read_qrels(path)
        assert str(caught.value).startswith(str(path))
        assert message in str(caught.value)

    def test_written_judgments_read_back(self, tmp_path: Path) -> None:
        """As they were."""
        qrels = Qrels({"q": {"a": 1, "é": -2}, "p": {"a": 0}})
        with (tmp_path / "qrels").open("wb") as opened:
            trec.write_qrels(qrels, opened)
        assert trec.read_qrels(tmp_path / "qrels") == qrels
        with pytest.raises(DataError, match="document id 'a b' holds a space"):
            trec.write_qrels(Qrels({"q": {"a b": 1}}), io.BytesIO())


@relaxed
@given(
    rows=st.lists(
        st.tuples(
            st.sampled_from("qpé"), st.sampled_from("abcdé"), st.floats(allow_nan=False, allow_infinity=False, width=32)
        ),
        min_size=1,
    ),
    ties=st.sampled_from(TieRule),
)
def test_a_written_run_reads_back_to_the_bit(tmp_path: Path, rows: list[tuple[str, str, float]], ties: TieRule) -> None:
    """Every float32, and the order of ties under the same rule."""
    run = Run.from_rows(rows, ties=ties)
    again = trec.read_run_file(file(tmp_path, lines(run)), ties)
    assert hits(again.run) == hits(run)
    assert not any("contradicts" in remark for remark in again.remarks)


def test_the_lines_of_a_run() -> None:
    """Six columns, ranks from 1, the shortest spelling of a float32."""
    run = Run.from_dict({"q": {"a": 0.1, "b": 2.0}, "none": {}, "p": {"c": 1e-20}})
    assert lines(run, "my-tag") == "q Q0 b 1 2 my-tag\nq Q0 a 2 0.1 my-tag\np Q0 c 1 1e-20 my-tag\n"


@pytest.mark.parametrize(
    ("run", "tag", "message"),
    [
        ({"q 1": {"a": 1.0}}, "t", "The query id 'q 1' holds a space"),
        ({"q": {"a\xa0b": 1.0}}, "t", "The document id 'a\\xa0b' holds a space"),
        ({"q": {"": 1.0}}, "t", "The document id '' is empty"),
        ({"q": {"a": 1.0}}, "my tag", "The tag 'my tag' holds a space"),
    ],
)
def test_what_can_not_stand_in_a_column(run: dict[str, dict[str, float]], tag: str, message: str) -> None:
    """An id with a space would become two columns."""
    with pytest.raises(DataError) as caught:
        lines(Run.from_dict(run), tag)
    assert str(caught.value).startswith(message)


def test_documents_that_were_not_found_may_be_called_anything() -> None:
    """Only what is written has to fit."""
    run = Run.ranked(
        query_ids=("q",),
        doc_ids=("a", "b c"),
        docs=np.array([[0]], dtype=np.int32),
        scores=np.array([[1.0]], dtype=np.float32),
    )
    assert lines(run) == "q Q0 a 1 1 tag\n"


def test_a_column_that_a_header_names_twice(tmp_path: Path) -> None:
    """Which of the two holds the grades can't be told."""
    path = tmp_path / "qrels.tsv"
    path.write_text("query-id\tcorpus-id\tscore\tscore\nq1\ta\t1\t2\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"qrels\.tsv, line 1: the column 'score' appears twice\."):
        trec.read_qrels(path)
