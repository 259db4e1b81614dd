"""Golden-set lint: one fault at a time in a sound set, and exactly that fault is found, with its place."""

from __future__ import annotations

import gzip
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from embeval.core.ir import Run, TieRule
from embeval.core.specs import ModelSpec
from embeval.data.beir import load_beir
from embeval.encoders import loading
from embeval.errors import DataError
from embeval.workflows.lint.findings import Finding, LintOptions, Report
from embeval.workflows.lint.rules import RULES, lexical
from embeval.workflows.lint.run import lint
from tests.support.golden import Golden

CORPUS, QUERIES, QRELS = "corpus.jsonl", "queries.jsonl", "qrels/test.tsv"
Fault = Callable[[Golden], Any]
HALF = '{"_id": "d5", "text": "half of a character \\ud83d in a document"}'


def found(folder: Path, **options: Any) -> Report:
    """The report on a folder."""
    return lint(folder, LintOptions(**options))


def brief(finding: Finding) -> tuple[str, str, str, int | None, tuple[str, ...]]:
    """What a case states."""
    return finding.check.code, finding.severity.value, finding.file, finding.line, finding.ids


def document(golden: Golden, **values: Any) -> Golden:
    """One more document, in line 5."""
    golden.corpus.append({"title": "", **values})
    return golden


def judgment(golden: Golden, line: str) -> Golden:
    """One more judgment, in line 6."""
    golden.qrels.append(line)
    return golden


def query(golden: Golden, *documents: str, **values: Any) -> None:
    """One more query, in line 4, that these documents are relevant to."""
    golden.queries.append(values)
    golden.qrels += [f"{values['_id']}\t{doc}\t1" for doc in documents]


CASES: dict[str, tuple[Fault, list[tuple[Any, ...]]]] = {
    "judged query not there": (
        lambda it: it.qrels.append("q9\td1\t1"),
        [("dangling-query", "error", QRELS, 6, ("q9",))],
    ),
    "relevant document not there": (
        lambda it: it.qrels.append("q1\tghost\t1"),
        [("unreachable-positive", "error", QRELS, 6, ("q1", "ghost"))],
    ),
    "document judged 0 not there": (
        lambda it: it.qrels.append("q1\tghost\t0"),
        [("dangling-document", "warning", QRELS, 6, ("q1", "ghost"))],
    ),
    "duplicate document id": (
        lambda it: document(it, _id="d1", text="Something else, of which there is no copy."),
        [("duplicate-id", "error", CORPUS, 5, ("d1",))],
    ),
    "duplicate query id": (
        lambda it: it.queries.append({"_id": "q1", "text": "Is there anything else to be asked?"}),
        [("duplicate-id", "error", QUERIES, 4, ("q1",))],
    ),
    "number and text": (
        lambda it: (
            document(it, _id=1, text="The first of two, which differ in type."),
            document(it, _id="1", text="The second of these; other words."),
        ),
        [("duplicate-id", "error", CORPUS, 6, ("1",)), ("mixed-id-types", "warning", CORPUS, 5, ("1",))],
    ),
    "ids that differ in case": (
        lambda it: document(it, _id="D1", text="Another text than the one of its namesake."),
        [("look-alike-ids", "warning", CORPUS, 5, ("d1", "D1"))],
    ),
    "ids that differ in the form of a character": (
        lambda it: (
            document(it, _id="caf\u00e9", text="Composed, as most keyboards write it."),
            document(it, _id="cafe\u0301", text="Decomposed, as some file systems have it."),
        ),
        [("look-alike-ids", "warning", CORPUS, 6, ("caf\u00e9", "cafe\u0301"))],
    ),
    "spaces around an id": (
        lambda it: document(it, _id=" d5", text="The id of this document has a space before it."),
        [("id-spaces", "warning", CORPUS, 5, (" d5",))],
    ),
    "not JSON": (lambda it: it.corpus.append("{'_id': 'd5'}"), [("broken-row", "error", CORPUS, 5, ())]),
    "a list": (lambda it: it.queries.append("[1]"), [("broken-row", "error", QUERIES, 4, ())]),
    "no id": (lambda it: it.queries.append({"text": "no id"}), [("broken-row", "error", QUERIES, 4, ())]),
    "no text": (lambda it: it.corpus.append({"_id": "d5"}), [("broken-row", "error", CORPUS, 5, ())]),
    "half a character": (lambda it: it.corpus.append(HALF), [("broken-row", "error", CORPUS, 5, ())]),
    "half a character in a label": (
        lambda it: it.queries[0].update(kind="\ud83d"),
        [("broken-row", "error", QUERIES, 1, ())],
    ),
    "neither true nor false": (
        lambda it: it.queries[0].update(answerable="no"),
        [("broken-row", "error", QUERIES, 1, ("q1",))],
    ),
    "exclude is no list": (
        lambda it: it.queries[0].update(exclude="d2"),
        [("broken-row", "error", QUERIES, 1, ("q1",))],
    ),
    "a negative offset": (
        lambda it: it.corpus[0].update(document="whole", start=-1),
        [("refused", "error", ".", None, ())],
    ),
    "too few columns": (lambda it: it.qrels.append("q1\td2"), [("broken-row", "error", QRELS, 6, ())]),
    "no header": (lambda it: it.qrels.pop(0), [("qrels-header", "error", QRELS, 1, ())]),
    "another column": (
        lambda it: it.qrels.__setitem__(0, "query-id\tcorpus-id\tcode"),
        [("qrels-header", "error", QRELS, 1, ())],
    ),
    "a grade that is not whole": (
        lambda it: it.qrels.append("q1\td2\t0.5"),
        [("grade", "error", QRELS, 6, ("q1", "d2"))],
    ),
    "a grade that is no number": (
        lambda it: it.qrels.append("q1\td2\thigh"),
        [("grade", "error", QRELS, 6, ("q1", "d2"))],
    ),
    "judged twice": (
        lambda it: it.qrels.append("q1\td1\t1"),
        [("judged-twice", "error", QRELS, 6, ("q1", "d1"))],
    ),
    "judged twice and apart": (
        lambda it: it.qrels.append("q1\td1\t0"),
        [("contradictory-grades", "error", QRELS, 6, ("q1", "d1"))],
    ),
    "no judgments": (
        lambda it: it.qrels.__delitem__(slice(1, None)),
        [("no-judgments", "error", QRELS, None, ())],
    ),
    "a query whose judgments are all 0": (
        lambda it: it.qrels.__setitem__(1, "q1\td1\t0"),
        [("no-positive", "warning", QRELS, 2, ("q1",))],
    ),
    "a query without judgments": (
        lambda it: it.queries.append({"_id": "q4", "text": "Who judges this one, and when?"}),
        [("unjudged-query", "note", QUERIES, 4, ("q4",))],
    ),
    "a query without judgments that has no answer": (
        lambda it: it.queries.append({"_id": "q4", "text": "Who answers this one?", "answerable": False}),
        [],
    ),
    "judged 0 and no answer": (
        lambda it: (it.queries[0].update(answerable=False), it.qrels.__setitem__(1, "q1\td1\t0")),
        [],
    ),
    "no answer, and a relevant document": (
        lambda it: it.queries[0].update(answerable=False),
        [("unanswerable-with-positive", "error", QUERIES, 1, ("q1", "d1"))],
    ),
    "same text, one judged": (
        lambda it: document(it, _id="d5", title="Backup", text="The backup runs  every night at half past one."),
        [
            ("same-text-partly-judged", "warning", QRELS, None, ("q1", "d1", "d5")),
            ("same-text", "note", CORPUS, 5, ("d1", "d5")),
        ],
    ),
    "same text, none judged": (
        lambda it: [document(it, _id=each, text="Nobody asks for this text, twice.") for each in ("d5", "d6")],
        [("same-text", "note", CORPUS, 6, ("d5", "d6"))],
    ),
    "same text, judged apart": (
        lambda it: (
            document(it, _id="d5", title="Backup", text="The backup runs every night at half past one."),
            judgment(it, "q1\td5\t2"),
        ),
        [
            ("same-text-other-grade", "warning", QRELS, None, ("q1", "d1", "d5")),
            ("same-text", "note", CORPUS, 5, ("d1", "d5")),
        ],
    ),
    "an excluded copy": (
        lambda it: (
            document(it, _id="d5", title="Backup", text="The backup runs every night at half past one."),
            it.queries[0].update(exclude=["d5"]),
        ),
        [("same-text", "note", CORPUS, 5, ("d1", "d5"))],
    ),
    "an empty query": (
        lambda it: query(it, "d1", _id="q4", text="  "),
        [("empty-query", "error", QUERIES, 4, ("q4",))],
    ),
    "a query of marks": (
        lambda it: query(it, "d1", _id="q4", text="?!"),
        [("no-words", "warning", QUERIES, 4, ("q4",))],
    ),
    "a long query": (
        lambda it: query(it, "d1", _id="q4", text="When does the backup run? " * 100),
        [("long-query", "note", QUERIES, 4, ("q4",))],
    ),
    "an empty document": (
        lambda it: document(it, _id="d5", text=" "),
        [("empty-document", "warning", CORPUS, 5, ("d5",))],
    ),
    "an empty relevant document": (
        lambda it: (document(it, _id="d5", text=""), judgment(it, "q1\td5\t1")),
        [
            ("empty-document", "warning", CORPUS, 5, ("d5",)),
            ("empty-positive", "warning", QRELS, 6, ("q1", "d5")),
        ],
    ),
    "a short document": (
        lambda it: document(it, _id="d5", text="see above"),
        [("short-document", "note", CORPUS, 5, ("d5",))],
    ),
    "a long document": (
        lambda it: document(it, _id="d5", text="The server counts again. " * 2001),
        [("long-document", "note", CORPUS, 5, ("d5",))],
    ),
    "the same query": (
        lambda it: query(it, "d1", _id="q4", text="when does the BACKUP run"),
        [("same-query", "warning", QUERIES, 4, ("q1", "q4"))],
    ),
    "nearly the same query": (  # 8 shingles and 9, of which 8 are shared
        lambda it: query(it, "d2", _id="q4", text="How long is a deleted document kept in the bin now?"),
        [("near-duplicate-queries", "note", QUERIES, 4, ("q2", "q4"))],
    ),
    "nearly the same query, judged apart": (
        lambda it: query(it, "d4", _id="q4", text="How long is a deleted document kept in the bin space?"),
        [("near-duplicate-queries-judged-apart", "warning", QUERIES, 4, ("q2", "q4"))],
    ),
    "a query with one other word": (
        lambda it: query(it, "d4", _id="q4", text="How long is a deleted document kept in the space?"),
        [],  # 8 shingles each, of which 7 are shared: 7/9 is below 0.8
    ),
    "a query that is a document": (
        lambda it: query(
            it, "d3", _id="q4", text="Tokens. An access token expires after one day and has to be renewed"
        ),
        [("query-is-document", "warning", QUERIES, 4, ("q4", "d3"))],
    ),
    "a query that is a document, which it excludes": (
        lambda it: query(
            it,
            "d1",
            _id="q4",
            text="Quotas: The server counts the disk space of each workspace every hour",
            exclude=["d4"],
        ),
        [],
    ),
    "an id of both": (
        lambda it: query(it, "d1", _id="d1", text="At what time does the backup run at night?"),
        [("shared-ids", "note", QUERIES, None, ("d1",))],
    ),
    "excluded and relevant": (
        lambda it: it.queries[0].update(exclude=["d1", "d2"]),
        [("excluded-positive", "error", QUERIES, 1, ("q1", "d1"))],
    ),
    "excluded and not there": (
        lambda it: it.queries[0].update(exclude=["ghost"]),
        [("excluded-unknown", "warning", QUERIES, 1, ("q1", "ghost"))],
    ),
}


def test_a_sound_set_has_no_findings(tmp_path: Path) -> None:
    """The set that the faults are put into, which an evaluation takes."""
    report = found(Golden().write(tmp_path))
    assert [brief(each) for each in report.findings] == []
    assert report.counts == {"documents": 4, "queries": 3, "judgments_test": 4}
    assert report.passes(strict=True)
    load_beir(tmp_path)


@pytest.mark.parametrize("name", CASES)
def test_one_fault_is_one_finding(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With its code, severity, file, line and ids. What an evaluation refuses is an error."""
    monkeypatch.setattr(lexical, "_found", lambda gold, rows: {(row.query, row.document) for row in rows})
    fault, expected = CASES[name]
    golden = Golden()
    fault(golden)
    report = found(golden.write(tmp_path))
    assert [brief(each) for each in report.findings] == expected
    try:
        load_beir(tmp_path)
    except DataError:
        assert not report.passes()


def test_all_faults_are_told_at_once(tmp_path: Path) -> None:
    """The worst first."""
    golden = Golden()
    golden.corpus[0] = "{"
    golden.queries[1]["exclude"] = ["d2"]
    golden.qrels += ["q9\td1\t1", "q3\td3\t1", "q1\td2\tx"]
    codes = [each.check.code for each in found(golden.write(tmp_path)).findings]
    assert codes == [
        "broken-row",
        "dangling-query",
        "excluded-positive",
        "grade",
        "judged-twice",
        "unreachable-positive",
        "unreachable-positive",
    ]


def test_files_that_are_missing_double_or_broken(tmp_path: Path) -> None:
    """Each a finding, and what can be read is still read."""
    folder = Golden().write(tmp_path)
    (folder / "corpus.jsonl.gz").write_bytes(gzip.compress((folder / CORPUS).read_bytes()))
    assert [brief(each) for each in found(folder).findings] == [("plain-and-gzipped", "error", CORPUS, None, ())]
    (folder / CORPUS).unlink()
    assert found(folder).findings == ()
    whole = (folder / "corpus.jsonl.gz").read_bytes()
    (folder / "corpus.jsonl.gz").write_bytes(whole[:-9])
    assert ("broken-file", "error", "corpus.jsonl.gz") in [brief(each)[:3] for each in found(folder).findings]
    (folder / QUERIES).unlink()
    report = found(folder)
    assert ("missing-file", "error", QUERIES, None, ()) in [brief(each) for each in report.findings]
    (folder / QRELS).write_text("", encoding="utf-8")
    assert ("broken-file", "error", QRELS, None, ()) in [brief(each) for each in found(folder).findings]


def test_bytes_marks_and_line_ends(tmp_path: Path) -> None:
    """Latin-1 is an error in its line; what spreadsheets add is a note."""
    folder = Golden().write(tmp_path)
    data = (folder / QUERIES).read_bytes()
    (folder / QUERIES).write_bytes(b"\xef\xbb\xbf" + data.replace(b"\n", b"\r\n"))
    assert [brief(each)[:4] for each in found(folder).findings] == [
        ("byte-order-mark", "note", QUERIES, 1),
        ("line-ends", "note", QUERIES, None),
    ]
    (folder / QUERIES).write_bytes(data.replace(b"bin", b"b\xefn"))
    broken = found(folder).findings[0]
    assert (broken.check.code, broken.line, broken.message) == ("broken-row", 2, "not UTF-8 text (byte 0xef).")


def test_no_such_folder_or_split(tmp_path: Path) -> None:
    """Nothing to lint: told at once."""
    with pytest.raises(DataError, match="no such folder"):
        found(tmp_path / "nowhere")
    with pytest.raises(DataError, match=r"there is no split 'dev'\. Splits there: test\."):
        found(Golden().write(tmp_path), split="dev")


def test_splits(tmp_path: Path) -> None:
    """A query that another split judges is not unjudged; what is wrong there is told with ``all`` only."""
    golden = Golden()
    golden.queries.append({"_id": "q4", "text": "Which hour is the quota counted in?"})
    folder = golden.write(tmp_path)
    (folder / "qrels" / "dev.tsv").write_text("query-id\tcorpus-id\tscore\nq4\td4\t1\nq4\tghost\t1\n", encoding="utf-8")
    assert found(folder).findings == ()
    report = found(folder, split="all")
    assert [brief(each)[:4] for each in report.findings] == [("unreachable-positive", "error", "qrels/dev.tsv", 3)]
    assert report.counts == {"documents": 4, "queries": 4, "judgments_dev": 2, "judgments_test": 4}


@pytest.mark.parametrize("how", ["option", '"mteb:SciFact"', '{"kind": "hub", "name": "mteb/scifact"}'])
def test_in_a_published_set_what_is_missing_is_a_warning(tmp_path: Path, how: str) -> None:
    """It can't be mended, and an evaluation can go on under the ceiling."""
    golden = Golden()
    golden.qrels.append("q1\tghost\t1")
    folder = golden.write(tmp_path)
    assert not found(folder).passes()
    if how != "option":
        (folder / "datasheet.json").write_text(f'{{"source": {how}}}', encoding="utf-8")
    report = found(folder, public=how == "option")
    assert (report.passes(), report.passes(strict=True)) == (True, False)


def test_ceilings(tmp_path: Path) -> None:
    """Closed form: 1/(1+1/log2 3) = 0.61315 for one of two relevant documents, over three queries; recall 1/2."""
    golden = Golden()
    golden.qrels.append("q1\tghost\t1")
    values = found(golden.write(tmp_path)).ceilings["test"]
    assert values["ndcg_at_10"].reachable == pytest.approx((1 / (1 + 1 / math.log2(3)) + 2) / 3, abs=1e-12)
    assert values["recall_at_10"].reachable == pytest.approx((0.5 + 2) / 3, abs=1e-12)
    assert values["ndcg_at_10"].complete == values["recall_at_10"].complete == 1.0


def test_what_a_query_excludes_lowers_the_ceiling_and_what_has_no_answer_does_not(tmp_path: Path) -> None:
    """One of two queries that count finds nothing."""
    golden = Golden()
    golden.queries[0]["exclude"] = ["d1"]
    golden.queries[2]["answerable"] = False
    values = found(golden.write(tmp_path)).ceilings["test"]
    assert (values["ndcg_at_10"].reachable, values["ndcg_at_10"].complete) == (0.5, 1.0)


def test_languages(tmp_path: Path) -> None:
    """Two queries in a language that no document is in; languages by py3langid 0.4, which is not sure of a third."""
    golden = Golden()
    query(golden, "d1", _id="q4", text="Um wie viel Uhr wird nachts eine Sicherung der Daten gemacht?")
    query(golden, "d2", _id="q5", text="Wie lange bleibt ein gelöschtes Dokument im Papierkorb liegen?")
    report = found(golden.write(tmp_path))
    assert {each.check.code: each.message for each in report.findings} == {
        "language-without-documents": "2 queries in 'de'; documents: en.",
        "languages": "de 50%, en 50%, of 4 clear texts looked at.",
    }


class _Ranker:
    """Finds what it is told to."""

    def __init__(self, hits: dict[str, dict[str, float]]) -> None:
        self.hits = hits
        self.asked: list[str] = []

    spec = info = None

    def rank(self, doc_ids: Any, doc_texts: Any, query_ids: Any, query_texts: Any, **options: Any) -> Run:
        assert options == {"depth": 1000, "ties": TieRule.DOC_ID_DESC}
        self.asked += query_ids
        return Run.from_rows(
            ((name, doc, score) for name in query_ids for doc, score in self.hits.get(name, {}).items()),
            query_ids=query_ids,
        )


def _with_ranker(monkeypatch: pytest.MonkeyPatch, hits: dict[str, dict[str, float]]) -> _Ranker:
    ranker = _Ranker(hits)
    monkeypatch.setattr(loading, "resolve", lambda spec: spec)
    monkeypatch.setattr(loading, "load_system", lambda spec: ranker)
    return ranker


def test_relevant_documents_that_say_nothing_of_the_query(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of three without a shared word BM25 finds one; one is in another language; BM25 is not asked about the rest."""
    golden = Golden()
    golden.corpus += [
        {"_id": f"x{n}", "text": f"Page number {n} of the terms of use and of their many appendices."}
        for n in range(997)
    ]
    query(golden, "d1", _id="q4", text="nightly safety copies")
    query(golden, "d2", _id="q5", text="undelete something")
    query(golden, "d3", _id="q6", text="Wann laufen die Zugangsdaten eines Benutzers eigentlich ab?")
    golden.qrels += [f"q1\tx{n}\t0" for n in range(30)]
    ranker = _with_ranker(monkeypatch, {"q4": {"d2": 1.0}, "q5": {"d2": 0.5}})
    findings = [each for each in found(golden.write(tmp_path)).findings if each.check.code.startswith("strange")]
    assert [brief(each) for each in findings] == [("strange-positive", "note", QRELS, 6, ("q4", "d1"))]
    assert ranker.asked == ["q4", "q5"]


def test_ids_that_are_mixed_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every judgment one document off: in a small corpus too, and in one finding."""
    golden = Golden()
    golden.qrels = [golden.qrels[0], "q1\td2\t1", "q2\td3\t1", "q3\td4\t1"]
    _with_ranker(monkeypatch, {})
    findings = found(golden.write(tmp_path)).findings
    assert [brief(each) for each in findings] == [("strange-judgments", "warning", QRELS, 2, ())]
    assert findings[0].message == "3 of 3 relevant documents, such as in lines 2, 3, 4."


def test_bm25_is_not_loaded_without_need(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where each relevant document shares a word with its query."""
    monkeypatch.setattr(loading, "load_system", lambda spec: pytest.fail("loaded"))
    assert found(Golden().write(tmp_path)).findings == ()


def test_what_a_model_cuts_off(tmp_path: Path) -> None:
    """The hashing model counts words and keeps six: of d2 it sees 'Restore A deleted document stays in'."""
    golden = Golden()
    query(golden, "d2", _id="q4", text="thirty days")
    query(golden, "d2", _id="q5", text="document thirty days")
    model = ModelSpec(name="hashing", backend="hashing", max_seq_length=6)
    report = found(golden.write(tmp_path), model=model)
    assert [(each.check.code, each.severity.value, each.message) for each in report.findings] == [
        ("truncated-positive", "warning", "query 'q4', document 'd2': days, thirty."),
        ("truncated", "note", "4 of 4 documents are longer than the 6 tokens of hashing."),
        ("truncated", "note", "1 of 5 queries are longer than the 6 tokens of hashing."),
    ]


def test_what_a_real_tokenizer_cuts_off(tmp_path: Path, tiny_model: Path) -> None:
    """16 tokens, two of them special: 'one day old' is what it sees of a document that it knows every word of."""
    golden = Golden()
    document(golden, _id="d5", text="one day old " + "the archive of the user is new and slow " * 2 + "restore backup")
    query(golden, "d5", _id="q4", text="restore backup")
    query(golden, "d5", _id="q5", text="one day old")
    model = ModelSpec(name=str(tiny_model), backend="sentence_transformers")
    lost = [
        each for each in found(golden.write(tmp_path), model=model).findings if each.check.code == "truncated-positive"
    ]
    assert [each.ids for each in lost] == [("q4", "d5")]


def test_rules_are_found_by_their_files() -> None:
    """A new one is a new file."""
    assert RULES.names() == (
        "duplicates",
        "exclusions",
        "ids",
        "judgments",
        "languages",
        "lengths",
        "lexical",
        "queries",
        "texts",
    )


def test_json(tmp_path: Path) -> None:
    """Summary, ceilings, findings."""
    golden = Golden()
    golden.qrels.append("q9\td1\t1")
    report = found(golden.write(tmp_path)).to_json()
    assert report["summary"] == {
        "folder": str(tmp_path),
        "passes": False,
        "counts": {"documents": 4, "queries": 3, "judgments_test": 5},
        "by_severity": {"error": 1, "warning": 0, "note": 0},
        "by_code": {"dangling-query": 1},
    }
    assert report["findings"] == [
        {
            "code": "dangling-query",
            "severity": "error",
            "file": QRELS,
            "line": 6,
            "ids": ["q9"],
            "message": "query 'q9'.",
            "advice": "Add them, or mend the id.",
        }
    ]
    assert report["ceilings"]["test"]["ndcg_at_10"] == {"reachable": 1.0, "complete": 1.0}
