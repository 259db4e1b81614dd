"""Run files as systems: what is read, what is refused, and the metrics of trec_eval's own order."""

from __future__ import annotations

import gzip
import hashlib
from pathlib import Path

import numpy as np
import pytest

from embeval.core.ir import Run, TieRule
from embeval.core.protocols import Ranker
from embeval.core.specs import ModelSpec
from embeval.encoders import loading
from embeval.errors import ModelError

LINES = """\
q1 Q0 d2 1 2.5 splade
q1 Q0 d1 2 3.5 splade
q1\tQ0\td9 \t3   2.5 splade

q2 Q0 d1 1 -1e-3 splade
"""


def load(file: Path) -> Ranker:
    """The system."""
    ranker = loading.load_system(loading.resolve(ModelSpec(name=str(file), backend="ranking")))
    assert isinstance(ranker, Ranker)
    return ranker


def write(folder: Path, content: str | bytes, name: str = "splade.trec") -> Path:
    """A run file."""
    data = content.encode() if isinstance(content, str) else content
    (folder / name).write_bytes(data)
    return folder / name


def rank(ranker: Ranker, docs: str = "d1 d2 d9", queries: str = "q1 q2 q3", depth: int = 10) -> Run:
    """The ranking of some of the documents."""
    ids, asked = docs.split(), queries.split()
    ties = TieRule.DOC_ID_DESC
    return ranker.rank(ids, [""] * len(ids), asked, [""] * len(asked), depth=depth, ties=ties)


def test_the_score_decides_and_not_the_rank(tmp_path: Path) -> None:
    """d1 has rank 2 and the best score; d9 and d2 tie, and the greater id goes first."""
    ranker = load(write(tmp_path, LINES))
    run = rank(ranker)
    assert run.hits("q1") == [("d1", 3.5), ("d9", 2.5), ("d2", 2.5)]
    assert run.hits("q2") == [("d1", float(np.float32(-1e-3)))]
    assert run.hits("q3") == []
    assert run.query_ids == ("q1", "q2", "q3")
    assert rank(ranker, depth=2).hits("q1") == [("d1", 3.5), ("d9", 2.5)]
    assert ranker.info.remarks == ()


def test_equal_to_a_run_from_rows(tmp_path: Path) -> None:
    """300 random lines with ties and repeated documents: what ``Run.from_rows`` makes of them, duplicates counted."""
    rng = np.random.default_rng(3)
    rows = [(f"q{rng.integers(3)}", f"d{rng.integers(60)}", float(rng.integers(20)) / 4) for _ in range(300)]
    file = write(tmp_path, "".join(f"{query} Q0 {doc} 0 {score!r} x\n" for query, doc, score in rows))
    expected = Run.from_rows(rows)
    run = rank(load(file), " ".join(f"d{number}" for number in range(60)), "q0 q1 q2", depth=100)
    assert {query: run.hits(query) for query in run.query_ids} == {
        query: expected.hits(query) for query in sorted(expected.query_ids)
    }
    assert run.n_duplicates == expected.n_duplicates > 0


def test_hits_outside_the_corpus_are_left_out_and_told(tmp_path: Path) -> None:
    """They take no place: the depth is counted without them. A later call tells of its own."""
    ranker = load(write(tmp_path, LINES))
    run = rank(ranker, docs="d2 d9 d7", depth=1)
    assert run.hits("q1") == [("d9", 2.5)]
    assert list(ranker.info.remarks) == ["2 hits of the run are not in the corpus and left out."]
    rank(ranker, queries="q1")
    assert list(ranker.info.remarks) == []


def test_another_tasks_run_is_refused(tmp_path: Path) -> None:
    """No query, or no document, in common: all zeros would look like a bad system."""
    ranker = load(write(tmp_path, LINES))
    with pytest.raises(ModelError, match=r"none of its queries is one of this task. It has ids such as 'q1', the task"):
        rank(ranker, queries="a b")
    with pytest.raises(ModelError, match=r"none of its documents is one of this task. It has ids such as 'd2'"):
        rank(ranker, docs="x y")


def test_compressed_and_with_a_mark(tmp_path: Path) -> None:
    """gzip whatever the name, and a byte-order mark: the same hits. The revision is one of the bytes."""
    plain = rank(load(write(tmp_path, LINES)))
    packed = write(tmp_path, gzip.compress(b"\xef\xbb\xbf" + LINES.encode()), "run.txt")
    assert rank(load(packed)).hits("q1") == plain.hits("q1")
    again = write(tmp_path, LINES, "other.trec")
    revisions = [load(file).spec.revision for file in (tmp_path / "splade.trec", again, packed)]
    assert revisions[0] == revisions[1] != revisions[2]
    content = hashlib.sha256(LINES.encode()).hexdigest()
    assert revisions[0] == f"sha256:{hashlib.sha256(f'run{chr(0)}{content}{chr(10)}'.encode()).hexdigest()}"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            "q1 Q0 d1 1 2.5\n",
            r"line 1: a run has 6 columns \(query id, Q0, document id, rank, score, tag\), and here are 5",
        ),
        (LINES + "q1 Q0 d 1 1 2.5 x\n", "line 6: a run has 6 columns .*, and here are 7"),
        ("q1\n", "line 1: a run has 6 columns .* and here is 1"),
        ("q1 Q0 d1 1 nan x\n", "line 1: the score 'nan' is not a finite number of 32 bits"),
        ("q1 Q0 d1 1 -inf x\n", "the score '-inf' is not"),
        ("q1 Q0 d1 1 1e39 x\n", "the score '1e39' is not"),
        ("q1 Q0 d1 1 high x\n", "the score 'high' is not"),
        ("q1 Q0 d1 1 1_0 x\n", "the score '1_0' is not"),
        (b"q1 Q0 d\xff 1 1 x\n", "line 1: not UTF-8 text"),
        ("\n \n", "the file holds no rankings"),
        ("", "the file holds no rankings"),
        (gzip.compress(LINES.encode(), mtime=0)[:-9], "not a whole gzip file"),
        (gzip.compress(LINES.encode(), mtime=0)[:12] + b"\x00\xff\x00\xff" * 9, "not a whole gzip file"),
    ],
)
def test_broken_files(tmp_path: Path, content: str | bytes, message: str) -> None:
    """One or two lines with the file, the line and what is wrong."""
    file = write(tmp_path, content)
    with pytest.raises(ModelError, match=message) as caught:
        load(file)
    assert str(file) in str(caught.value)
    assert len(str(caught.value).splitlines()) <= 2


def test_files_that_are_not_there(tmp_path: Path) -> None:
    """A folder, and nothing at all."""
    with pytest.raises(ModelError, match="is a folder"):
        load(tmp_path)
    with pytest.raises(ModelError, match="no such file"):
        load(tmp_path / "absent.trec")
