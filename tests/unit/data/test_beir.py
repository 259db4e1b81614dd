"""BEIR folders: what is read, what the hash covers, and what is refused."""

from __future__ import annotations

import gzip
import hashlib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from embeval.core.ir import Qrels
from embeval.data.beir import RetrievalData, Unreachable, is_beir, load_beir, unanswerable_file
from embeval.errors import DataError
from tests.support.data import write_beir, write_jsonl

CORPUS = {"d1": "first text", "d2": "second text", "d3": "third text"}
QUERIES = {"q1": "first?", "q2": "second?"}
QRELS = {"q1": {"d1": 2, "d2": 0}, "q2": {"d2": 1}}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A sound folder of three documents and two queries."""
    return write_beir(tmp_path / "data", corpus=CORPUS, queries=QUERIES, qrels=QRELS)


def write_qrels(folder: Path, *lines: str, split: str = "test") -> Path:
    """Judgments line by line, under the usual header."""
    path = folder / "qrels" / f"{split}.tsv"
    path.write_text("\n".join(["query-id\tcorpus-id\tscore", *lines]) + "\n", encoding="utf-8")
    return path


def test_a_folder_is_read(folder: Path) -> None:
    """Everything that was written, in its order."""
    data = load_beir(folder)
    assert data.doc_ids == ("d1", "d2", "d3")
    assert data.doc_texts == ("first text", "second text", "third text")
    assert data.queries == QUERIES
    assert data.qrels.judgments == QRELS
    assert (data.unanswerable, data.query_labels, data.unreachable) == (frozenset(), {}, {})
    assert data.doc_id_set == {"d1", "d2", "d3"}


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"title": "Title", "text": "text"}, "Title text"),
        ({"title": "", "text": "text"}, "text"),
        ({"title": None, "text": "text"}, "text"),
        ({"text": "text"}, "text"),
        ({"title": "Title", "text": ""}, "Title"),
        ({"title": " T ", "text": "\n x\n"}, "T  \n x"),
        ({"title": "", "text": ""}, ""),
    ],
)
def test_title_and_text_are_joined(folder: Path, fields: dict[str, Any], text: str) -> None:
    """``(title + " " + text).strip()``, as mteb 2.26 joins them; a missing title is an empty one."""
    write_jsonl(folder / "corpus.jsonl", [{"_id": doc, **fields, "metadata": {}} for doc in CORPUS])
    assert set(load_beir(folder).doc_texts) == {text}


@pytest.mark.parametrize("name", ["corpus.jsonl", "queries.jsonl", "qrels/test.tsv"])
def test_gzipped_files_are_read(folder: Path, name: str) -> None:
    """Corpus, queries and judgments, each on its own, to the same data."""
    before = load_beir(folder)
    (folder / f"{name}.gz").write_bytes(gzip.compress((folder / name).read_bytes()))
    (folder / name).unlink()
    assert is_beir(folder)
    assert load_beir(folder) == before
    assert load_beir(folder).data_hash == before.data_hash


@pytest.mark.parametrize("name", ["corpus.jsonl", "queries.jsonl", "qrels/test.tsv"])
def test_a_file_that_is_there_twice_is_refused(folder: Path, name: str) -> None:
    """Plain and gzipped may differ, and nothing says which one is meant."""
    (folder / f"{name}.gz").write_bytes(gzip.compress(b"{}"))
    with pytest.raises(
        DataError, match=rf"/{name} and {Path(name).name}.gz are both there, and may differ. Remove one"
    ):
        load_beir(folder)


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_qrels_of_other_systems(folder: Path, end: str, mark: str) -> None:
    """A byte-order mark, other line ends and grades written as 2.0 change nothing."""
    before = load_beir(folder)
    lines = ["query-id\tcorpus-id\tscore", "q1\td1\t2.0", "q1\td2\t0", "q2\td2\t1", ""]
    (folder / "qrels" / "test.tsv").write_bytes((mark + end.join(lines)).encode())
    assert load_beir(folder) == before


def test_ids_may_be_numbers_and_hold_quotes(folder: Path) -> None:
    """``7`` in jsonl is the ``7`` of the judgments, and a quote is a character of an id."""
    write_jsonl(folder / "corpus.jsonl", [{"_id": 7, "text": "x"}, {"_id": '"d"', "text": "y"}])
    write_jsonl(folder / "queries.jsonl", [{"_id": 3, "text": "x"}, {"_id": "d'1 \"", "text": "x"}])
    write_qrels(folder, "3\t7\t1", '3\t"d"\t1', "d'1 \"\t7\t1")
    assert load_beir(folder).qrels.judgments == {"3": {"7": 1, '"d"': 1}, "d'1 \"": {"7": 1}}


def test_splits_are_read_by_name(folder: Path) -> None:
    """Each has its own judgments of the same corpus."""
    write_qrels(folder, "q2\td3\t-1", split="dev")
    assert load_beir(folder, "dev").qrels.judgments == {"q2": {"d3": -1}}
    assert load_beir(folder).qrels.judgments == QRELS


def test_fields_of_queries(folder: Path) -> None:
    """Further text fields are kept by name for slices; numbers and nested values are not, nor is ``answerable``."""
    write_jsonl(
        folder / "queries.jsonl",
        [
            {"_id": "q1", "text": "a", "kind": "typo", "n": 3, "metadata": {"x": "y"}},
            {"_id": "q2", "text": "b", "kind": "", "answerable": True},
            {"_id": "q3", "text": "c", "kind": "typo", "language": "en"},
            {"_id": "q4", "text": "d", "kind": "", "language": "en"},
        ],
    )
    assert load_beir(folder).query_labels == {
        "kind": {"q1": "typo", "q2": "", "q3": "typo", "q4": ""},
        "language": {"q3": "en", "q4": "en"},
    }


@pytest.mark.parametrize(
    ("values", "is_label"),
    [
        (["a", "b"] * 50, True),
        ([f"customer {n}" for n in range(100)], False),
        ([f"label {n}" for n in range(50)] * 2, True),
        ([f"label {n}" for n in range(51)] * 2, False),
        (["a", "b", "c", "d", "a", "b", "c"], False),
        (["x" * 40] * 4, True),
        (["x" * 41] * 4, False),
    ],
)
def test_only_labels_are_kept_and_never_texts(folder: Path, values: list[str], is_label: bool) -> None:
    """Few short values, each used twice on average; reference answers and names of customers stay where they are."""
    rows = [{"_id": f"q{n}", "text": "t", "field": value} for n, value in enumerate(values)]
    write_jsonl(folder / "queries.jsonl", rows)
    write_qrels(folder, "q0\td1\t1")
    assert set(load_beir(folder).query_labels) == ({"field"} if is_label else set())


def test_a_sub_set_may_not_take_the_name_of_a_pooled_result(folder: Path) -> None:
    """Its result would be written over, or over another one."""
    write_jsonl(folder / "queries.jsonl", [{"_id": f"q{n}", "text": "t", "subset": "wmean"} for n in range(2)])
    write_qrels(folder, "q0\td1\t1")
    with pytest.raises(DataError, match=r"queries.jsonl: a sub-set may not be called 'wmean'"):
        load_beir(folder)


def test_unanswerable_queries_are_marked(folder: Path) -> None:
    """``answerable: false`` and nothing else; they need no judgments."""
    write_jsonl(
        folder / "queries.jsonl",
        [
            {"_id": "q1", "text": "a", "answerable": True},
            {"_id": "q2", "text": "b"},
            {"_id": "q3", "text": "c", "answerable": False},
        ],
    )
    data = load_beir(folder)
    assert data.unanswerable == {"q3"}
    assert data.queries["q3"] == "c"


def test_queries_without_judgments_stay(folder: Path) -> None:
    """They are part of the data, and not of the judged ones."""
    write_qrels(folder, "q2\td2\t1")
    data = load_beir(folder)
    assert set(data.queries) == {"q1", "q2"}
    assert data.qrels.judged == ("q2",)


def test_relevant_documents_that_are_missing_can_be_kept(folder: Path) -> None:
    """With ``keep`` they stay among the judgments and are listed; grade 0 is no loss and no error."""
    path = write_qrels(folder, "q1\tgone\t1", "q1\tlost\t2", "q1\td1\t1", "q1\tnull\t0", "q2\tgone\t-1")
    with pytest.raises(DataError):
        load_beir(folder)
    data = load_beir(folder, unreachable=Unreachable.KEEP)
    assert data.unreachable == {"q1": ("gone", "lost")}
    assert data.qrels.judgments["q1"] == {"gone": 1, "lost": 2, "d1": 1, "null": 0}
    path.write_text("query-id\tcorpus-id\tscore\nq1\td1\t1\nq1\tgone\t0\n", encoding="utf-8")
    assert load_beir(folder).unreachable == {}


@pytest.mark.parametrize("name", ["corpus.jsonl", "corpus.jsonl.gz"])
def test_what_looks_like_retrieval_data(tmp_path: Path, name: str) -> None:
    """A folder with a corpus; not an empty one, not a file, not nothing."""
    assert not is_beir(tmp_path)
    assert not is_beir(tmp_path / "absent")
    (tmp_path / name).write_bytes(b"")
    assert is_beir(tmp_path)
    assert not is_beir(tmp_path / name)


def test_the_hash_by_hand(folder: Path) -> None:
    """sha256 over length and bytes of all parts, ordered by id."""
    write_jsonl(folder / "queries.jsonl", [{"_id": "q2", "text": "é", "answerable": False}, {"_id": "q1", "text": "a"}])
    write_jsonl(folder / "corpus.jsonl", [{"_id": "d2", "text": "y"}, {"_id": "d1", "title": "T", "text": "x"}])
    write_qrels(folder, "q1\td2\t1", "q1\td1\t-1")
    parts = ["document", "d1", "T x", "document", "d2", "y", "query", "q1", "a", "True", "query", "q2", "é", "False"]
    parts += ["judgment", "q1", "d1", "-1", "judgment", "q1", "d2", "1"]
    encoded = b"".join(len(part.encode()).to_bytes(8, "little") + part.encode() for part in parts)
    assert load_beir(folder).data_hash == hashlib.sha256(encoded).hexdigest()


IDS = st.text(min_size=1, max_size=3)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    data=st.data(),
    documents=st.dictionaries(IDS, st.text(max_size=4), max_size=4),
    queries=st.dictionaries(IDS, st.text(max_size=4), max_size=4),
    judgments=st.dictionaries(IDS, st.dictionaries(IDS, st.integers(-1, 3), max_size=3), max_size=3),
)
def test_the_hash_does_not_depend_on_the_order_of_lines(
    data: st.DataObject,
    documents: dict[str, str],
    queries: dict[str, str],
    judgments: dict[str, dict[str, int]],
) -> None:
    """Documents, queries and judgments in any order are the same data."""

    def shuffled(table: dict[str, Any]) -> dict[str, Any]:
        return dict(data.draw(st.permutations(list(table.items()))))

    def built(documents: dict[str, str], queries: dict[str, str], judgments: dict[str, dict[str, int]]) -> str:
        return RetrievalData(tuple(documents), tuple(documents.values()), queries, Qrels(judgments)).data_hash

    turned = {query: shuffled(grades) for query, grades in shuffled(judgments).items()}
    assert built(documents, queries, judgments) == built(shuffled(documents), shuffled(queries), turned)


def hash_of(**changes: Any) -> str:
    """The hash of some data, part of it changed."""
    fields: dict[str, Any] = {
        "doc_ids": ("d1", "d2"),
        "doc_texts": ("ab", "c"),
        "queries": {"q1": "x", "q2": "y"},
        "qrels": Qrels({"q1": {"d1": 1}, "q2": {"d2": 1}}),
    }
    return RetrievalData(**{**fields, **changes}).data_hash


def test_every_change_changes_the_hash() -> None:
    """Ids, texts, who has which text, grades, a further zero, a query more, and which ones have no answer."""
    hashes = [
        hash_of(),
        hash_of(doc_ids=("d1", "d3")),
        hash_of(doc_texts=("a", "bc")),
        hash_of(doc_texts=("c", "ab")),
        hash_of(doc_ids=("d1",), doc_texts=("ab",)),
        hash_of(queries={"q1": "y", "q2": "x"}),
        hash_of(queries={"q1": "x", "q2": "y", "q3": ""}),
        hash_of(qrels=Qrels({"q1": {"d1": 2}, "q2": {"d2": 1}})),
        hash_of(qrels=Qrels({"q1": {"d2": 1}, "q2": {"d1": 1}})),
        hash_of(qrels=Qrels({"q1": {"d1": 1, "d2": 0}, "q2": {"d2": 1}})),
        hash_of(qrels=Qrels({"q1": {"d1": 1, "d2": 1}})),
        hash_of(unanswerable=frozenset({"q2"})),
    ]
    assert len(set(hashes)) == len(hashes)


def refused(folder: Path, place: str, words: str, split: str = "test") -> str:
    """The message of a refusal, checked for where it points, what it says and how long it is."""
    with pytest.raises(DataError) as caught:
        load_beir(folder, split)
    message = str(caught.value)
    assert message.startswith(f"{folder}{place}: ")
    assert words in message
    assert len(message.splitlines()) <= 3
    return message


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    """Absent, or a file; the message tells what a folder should hold."""
    refused(tmp_path / "absent", "", "no such folder")
    (tmp_path / "file").write_text("x", encoding="utf-8")
    assert "corpus.jsonl, queries.jsonl and qrels/" in refused(tmp_path / "file", "", "no such folder")


@pytest.mark.parametrize("stem", ["corpus", "queries"])
def test_a_file_that_is_not_there(folder: Path, stem: str) -> None:
    """Both names that would do are given; a folder in its place is none."""
    (folder / f"{stem}.jsonl").unlink()
    refused(folder, "", f"there is no {stem}.jsonl or {stem}.jsonl.gz")
    (folder / f"{stem}.jsonl").mkdir()
    refused(folder, f"/{stem}.jsonl", "is a folder")


def test_an_unknown_split_lists_the_splits(folder: Path) -> None:
    """In alphabetical order; other files in the folder are no splits."""
    write_qrels(folder, "q1\td1\t1", split="train")
    write_qrels(folder, "q1\td1\t1", split="dev")
    (folder / "qrels" / "README.md").write_text("x", encoding="utf-8")
    message = refused(folder, "/qrels/tset.tsv", "no split 'tset'", "tset")
    assert "Splits there: dev, test, train." in message


@pytest.mark.parametrize("there", [True, False])
def test_no_split_at_all(folder: Path, there: bool) -> None:
    """An empty qrels folder, or none."""
    (folder / "qrels" / "test.tsv").unlink()
    if not there:
        (folder / "qrels").rmdir()
    refused(folder, "/qrels/test.tsv", "There are no .tsv files in its qrels folder.")


GOOD: dict[str, dict[str, Any]] = {
    "corpus.jsonl": {"_id": "d1", "title": "t", "text": "x"},
    "queries.jsonl": {"_id": "q1", "text": "x"},
}


@pytest.mark.parametrize("file", list(GOOD))
@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"_id": None}, "'_id' must be an id (text or a whole number), not None"),
        ({"_id": ""}, "'_id' must be an id (text or a whole number), not ''"),
        ({"_id": 1.5}, "'_id' must be an id (text or a whole number), not 1.5"),
        ({"_id": True}, "'_id' must be an id (text or a whole number), not True"),
        ({"_id": "half a character \ud800"}, "'_id'"),
        ({"_id": "d1"}, "the id 'd1' appears twice"),
        ({"_id": 1}, "the id '1' appears twice"),
        ({"text": None}, "'text' must be text, not None"),
        ({"text": 5}, "'text' must be text, not 5"),
        ({"text": ["x"]}, "'text' must be text, not ['x']"),
    ],
)
def test_broken_documents_and_queries(folder: Path, file: str, change: dict[str, Any], words: str) -> None:
    """The fourth line is wrong, and the message says so; a lone surrogate is an id that no item file can hold."""
    sound = [{**GOOD[file], "_id": name} for name in ("d1", "1", "z")]
    write_jsonl(folder / file, [*sound, {**GOOD[file], "_id": "new", **change}])
    refused(folder, f"/{file}, line 4", words)


@pytest.mark.parametrize("file", list(GOOD))
@pytest.mark.parametrize("name", ["_id", "text"])
def test_missing_columns(folder: Path, file: str, name: str) -> None:
    """The column and those that are there are named."""
    row = {key: value for key, value in {**GOOD[file], "_id": "new"}.items() if key != name}
    write_jsonl(folder / file, [GOOD[file], row])
    message = refused(folder, f"/{file}, line 2", f"there is no column '{name}'")
    assert f"Columns: {', '.join(map(repr, row))}." in message


@pytest.mark.parametrize(
    ("file", "change", "words"),
    [
        ("corpus.jsonl", {"title": 5}, "'title' must be text, not 5"),
        ("queries.jsonl", {"kind": "half a character \udfff"}, "'kind'"),
        ("queries.jsonl", {"answerable": "no"}, "'answerable' must be true or false, not 'no'"),
        ("queries.jsonl", {"answerable": 0}, "'answerable' must be true or false, not 0"),
        ("queries.jsonl", {"answerable": None}, "'answerable' must be true or false, not None"),
    ],
)
def test_fields_of_one_file(folder: Path, file: str, change: dict[str, Any], words: str) -> None:
    """A title is text or null, a slice can be stored, and whether a query has an answer is true or false."""
    write_jsonl(folder / file, [{**GOOD[file], **change}])
    refused(folder, f"/{file}, line 1", words)


@pytest.mark.parametrize("file", list(GOOD))
@pytest.mark.parametrize(
    ("data", "place", "words"),
    [
        (b"", "", "no rows"),
        (b'{"_id": "d1", "text": "x"}\n{"_id": \n', ", line 2", "not valid JSON"),
        (b'{"_id": "d1", "text": NaN}\n', ", line 1", "NaN"),
        (b'{"_id": "d1", "text": "\xe9"}\n', ", line 1", "not UTF-8"),
    ],
    ids=["empty", "broken", "NaN", "latin-1"],
)
def test_unreadable_files(folder: Path, file: str, data: bytes, place: str, words: str) -> None:
    """What the reader finds wrong is passed on with the name of the file."""
    (folder / file).write_bytes(data)
    refused(folder, f"/{file}{place}", words)


@pytest.mark.parametrize("file", list(GOOD))
def test_gzip_files_that_are_cut_off(folder: Path, file: str) -> None:
    """A download that stopped halfway is no smaller corpus."""
    whole = gzip.compress((folder / file).read_bytes())
    (folder / file).unlink()
    (folder / f"{file}.gz").write_bytes(whole[:-10])
    refused(folder, f"/{file}.gz", "not a whole gzip file")


@pytest.mark.parametrize(
    ("lines", "line", "words"),
    [
        (["q1\td1\t1.5"], 2, "relevance must be a whole number up to 1000, not '1.5'"),
        (["q1\td1\t1", "q1\td2\thigh"], 3, "'score' must be a number, not 'high'"),
        (["q1\td1\t"], 2, "'score' must be a number, not ''"),
        (["q1\td1\tnan"], 2, "'score' must be a finite number, not 'nan'"),
        (["q1\td1\tinf"], 2, "'score' must be a finite number, not 'inf'"),
        (["q1\td1\tTrue"], 2, "'score' must be a number, not 'True'"),
        (["q1\td1\t1e300"], 2, "relevance"),
        (["q1\td1\t1_0"], 2, "'score' must be a number, not '1_0'"),
        (["q1\td1\t1", "q2\td1\t1", "q1\td1\t2"], 4, "query 'q1', document 'd1' is judged twice"),
        (["q1\td1\t1", "q1\td1\t1"], 3, "query 'q1', document 'd1' is judged twice"),
        (["\td1\t1"], 2, "'query-id' must be an id"),
        (["q1\t\t1"], 2, "'corpus-id' must be an id"),
        (["q1\td1"], 2, "2 fields, but the header has 3"),
        (["q1 d1 1"], 2, "1 fields, but the header has 3"),
        (["q1\t0\td1\t1"], 2, "4 fields, but the header has 3"),
        (["q1\td1\t1", "q9\td1\t1", "q9\td2\t1"], 3, "'q9'"),
        (["q1\td1\t1", "q9\td1\t0", "q8\td2\t1"], 3, "2 judged queries not in the queries file: 'q9', 'q8'"),
        (["q1\td1\t1", "q2\td9\t1"], 3, "'d9' of query 'q2'"),
        (["q1\td8\t0", "q1\td1\t1", "q1\td9\t1", "q1\td7\t2"], 4, "'d9', 'd7' of query 'q1'"),
    ],
)
def test_broken_judgments(folder: Path, lines: list[str], line: int, words: str) -> None:
    """File, line and what is wrong, also where a judgment speaks of a query or document that isn't there."""
    write_qrels(folder, *lines)
    refused(folder, f"/qrels/test.tsv, line {line}", words)


@pytest.mark.parametrize(
    ("content", "place", "words"),
    [
        ("", "", "no rows"),
        ("query-id\tcorpus-id\tscore\n", "", "no rows"),
        (
            "q1\t0\td1\t1\nq2\t0\td2\t1\n",
            ", line 1",
            "no column 'query-id'. The first line of a qrels file is query-id, corpus-id, score",
        ),
        ("query-id\tdoc-id\tscore\nq1\td1\t1\n", ", line 1", "there is no column 'corpus-id'"),
        ("query-id\tcorpus-id\trelevance\nq1\td1\t1\n", ", line 1", "there is no column 'score'"),
        ("query-id\tscore\tscore\nq1\td1\t1\n", ", line 1", "the column 'score' appears twice"),
    ],
    ids=["empty", "header only", "trec format", "no document", "no score", "twice"],
)
def test_broken_headers(folder: Path, content: str, place: str, words: str) -> None:
    """Nothing to read, or columns of other names."""
    (folder / "qrels" / "test.tsv").write_text(content, encoding="utf-8")
    refused(folder, f"/qrels/test.tsv{place}", words)


def test_many_dangling_ids_are_counted_and_cut(folder: Path) -> None:
    """Five are shown, the rest is a number: documents by how many different ones, queries likewise."""
    path = write_qrels(folder, *(f"x{number}\td1\t1" for number in range(9)))
    message = refused(folder, "/qrels/test.tsv, line 2", "9 judged queries not in the queries file")
    assert message.endswith("'x0', 'x1', 'x2', 'x3', 'x4' and 4 more.")
    lines = [f"q1\ty{number}\t1" for number in range(7)] + ["q2\ty0\t1", "q2\tz\t2", "q2\tzz\t0"]
    write_qrels(folder, *lines)
    with pytest.raises(DataError) as caught:
        load_beir(folder)
    assert str(caught.value).startswith(str(path))
    assert "8 relevant documents not in the corpus" in str(caught.value)
    assert "'y0', 'y1', 'y2', 'y3', 'y4' and 2 more of query 'q1', and others of 1 more query" in str(caught.value)
    assert "unreachable: keep" in str(caught.value)
    assert len(str(caught.value).splitlines()) <= 3


def test_unanswerable_queries_of_a_split(folder: Path) -> None:
    """All that are marked; where the split lists its own, those, and any that its qrels judge."""
    rows: list[dict[str, Any]] = [{"_id": query, "text": text} for query, text in QUERIES.items()]
    rows += [{"_id": f"u{number}", "text": "?", "answerable": False} for number in (1, 2, 3)]
    write_jsonl(folder / "queries.jsonl", rows)
    assert load_beir(folder).unanswerable == {"u1", "u2", "u3"}
    write_qrels(folder, "q1\td1\t1", "u3\td1\t0")
    unanswerable_file(folder, "test").write_bytes("\ufeffu1\r\n\n".encode())
    assert load_beir(folder).unanswerable == {"u1", "u3"}
    unanswerable_file(folder, "test").write_text("u1\nq1\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"test\.unanswerable\.txt, line 2: the queries file marks no query 'q1' as"):
        load_beir(folder)
    unanswerable_file(folder, "test").write_bytes(b"\xff")
    with pytest.raises(DataError, match=r"test\.unanswerable\.txt: can't be read"):
        load_beir(folder)
