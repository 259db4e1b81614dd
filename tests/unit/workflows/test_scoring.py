"""A ranking from a file gets the numbers, the counts and the protocol that a run of the same ranking gets."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import pytrec_eval

from embeval.core import border
from embeval.core.result import Result
from embeval.core.specs import ModelSpec, StatisticsOptions
from embeval.data import trec
from embeval.errors import ConfigError, DataError, StoreError, UnknownNameError
from embeval.metrics import ranking
from embeval.runner import local
from embeval.store.results import ResultStore, Stored
from embeval.workflows import handing_over, requests
from embeval.workflows.scoring import Scored, ScoreRequest, score
from tests.support.data import write_beir, write_jsonl

FEW = StatisticsOptions(resamples=200)
WORDS = ("red", "green", "blue", "fast", "slow", "house", "river", "stone")
CORPUS = {f"d{a}{b}": f"{WORDS[a]} {WORDS[b]}" for a, b in itertools.product(range(8), repeat=2)}
QUERIES = {**{f"q{place}": f"{word} thing" for place, word in enumerate(WORDS)}, "d00": "stone red"}


@pytest.fixture
def golden(tmp_path: Path) -> Path:
    """A golden set with an unanswerable query, labels, a query without judgments, and one whose id is a document's."""
    qrels = {
        **{
            f"q{a}": {f"d{a}{b}": 1 + b % 2 for b in range(0, 8, 2)} | {f"d{b}{a}": 0 for b in (1, 3)}
            for a in (0, 1, 2)
        },
        "q3": {"d33": 0},
        "q4": {"d44": 1},
        "d00": {"d00": 2, "d70": 1},
    }
    folder = write_beir(tmp_path / "golden", corpus=CORPUS, queries=QUERIES, qrels=qrels)
    kinds = ["colour", "other"]
    write_jsonl(
        folder / "queries.jsonl",
        [
            {"_id": query, "text": text, "kind": kinds[row % 2], **({"answerable": False} if query == "q4" else {})}
            for row, (query, text) in enumerate(QUERIES.items())
        ],
    )
    return folder


def evaluated(golden: Path, store: ResultStore, **options: Any) -> Stored:
    """The golden set under the hashing baseline."""
    task = requests.task_from({"data": str(golden), **options}, root=Path(), data=None)
    model = requests.parse_model("hashing,dim=16")
    (outcome,) = local.run([model], [task], store, local.RunOptions(statistics=FEW))
    assert outcome.error is None
    return outcome.stored[-1]


def exported(store: ResultStore, stored: Stored, folder: Path) -> Path:
    """The ranking of a result as a file."""
    path = folder / "system.run"
    handing_over.write(handing_over.rendered(store, stored, "trec"), path)
    return path


def run_file(folder: Path, run: Mapping[str, Mapping[str, float]]) -> Path:
    """A TREC file whose rank column is that of the dictionary."""
    path = folder / "foreign.run"
    rows = [(query, doc, rank, score) for query, of in run.items() for rank, (doc, score) in enumerate(of.items(), 1)]
    path.write_text("".join(f"{query} Q0 {doc} {rank} {score!r} t\n" for query, doc, rank, score in rows))
    return path


def qrels_file(folder: Path, qrels: Mapping[str, Mapping[str, int]]) -> str:
    """A TREC file of judgments."""
    path = folder / "judgments.qrels"
    rows = [(query, doc, grade) for query, grades in qrels.items() for doc, grade in grades.items()]
    path.write_text("".join(f"{query} 0 {doc} {grade}\n" for query, doc, grade in rows))
    return str(path)


def foreign(folder: Path, run: Any, qrels: Any, *metrics: str, **options: Any) -> tuple[list[float], Result]:
    """Values of a ranking against judgments alone, to five decimals."""
    request = ScoreRequest(
        run=run_file(folder, run),
        qrels=qrels_file(folder, qrels),
        metrics=metrics,
        options=options,
        statistics=StatisticsOptions(resamples=0),
    )
    scored = score(request)
    return [round(scored.result.scores[name].value or 0.0, 5) for name in metrics], scored.result


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"depth": 20, "cutoffs": [3, 20]},
        {"ties": "doc_id_asc"},
        {"ties": "average"},
        {"self_match": "drop", "depth": 30},
        {"no_relevant": "skip", "gains": "exp2", "map_denominator": "min(k,R)"},
        {"missing_queries": "skip"},
    ],
)
def test_a_run_and_its_ranking_scored_from_a_file_agree(golden: Path, tmp_path: Path, options: dict[str, Any]) -> None:
    """Every number to the bit with its interval, labels, protocol, notes and counts; only the system differs."""
    store = ResultStore(tmp_path / "results")
    own = evaluated(golden, store, **options)
    file = exported(store, own, tmp_path)
    request = ScoreRequest(run=file, data=str(golden), options=options, name="theirs", statistics=FEW)
    stored = score(request, store).stored
    assert stored is not None
    ours, theirs = own.result, stored.result
    assert dict(theirs.scores) == dict(ours.scores)
    assert theirs.signature.protocol == ours.signature.protocol
    assert theirs.signature.metrics == ours.signature.metrics
    assert (theirs.task, theirs.labels, theirs.main_score) == (ours.task, ours.labels, ours.main_score)
    assert store.records(stored).slices == store.records(own).slices
    assert {name: theirs.counts[name] for name in theirs.counts if name in ours.counts} == {
        name: count for name, count in ours.counts.items() if name in theirs.counts
    }
    assert set(theirs.warnings) <= set(ours.warnings)
    assert handing_over.rendered(store, stored, "trec").replace(b"theirs", ours.model.label.encode()) == (
        file.read_bytes().replace(handing_over.tag(ours.model).encode(), ours.model.label.encode())
    )


def test_the_system_is_named_by_the_bytes_of_its_file(golden: Path, tmp_path: Path) -> None:
    """As the backend that ranks by a file names it: another name is the same system, another file is not."""
    store = ResultStore(tmp_path / "results")
    file = exported(store, evaluated(golden, store), tmp_path)
    model = score(ScoreRequest(run=file, data=str(golden), statistics=FEW)).result.model
    sha = hashlib.sha256(file.read_bytes()).hexdigest()
    assert model == ModelSpec(backend="ranking", name="system.run", revision=f"sha256:{sha}")
    named = score(ScoreRequest(run=file, data=str(golden), name="other", statistics=FEW)).result.model
    assert (named.label, named.digest) == ("other", model.digest)


def test_the_numbers_of_pytrec_eval(golden: Path, tmp_path: Path) -> None:
    """Mean over the queries that count, of trec_eval 9.0.8's values through pytrec_eval 0.5.11."""
    store = ResultStore(tmp_path / "results")
    file = exported(store, evaluated(golden, store), tmp_path)
    judgments = golden / "qrels" / "test.tsv"
    scored = score(ScoreRequest(run=file, qrels=str(judgments), statistics=FEW))
    measures = {"ndcg_cut.10", "map_cut.100", "P.5", "recall.20"}
    with file.open() as opened:
        found = pytrec_eval.parse_run(opened)
    qrels = {query: dict(grades) for query, grades in trec.read_qrels(judgments).judgments.items()}
    per_query = pytrec_eval.RelevanceEvaluator(qrels, measures).evaluate(found)
    names = {
        "ndcg_cut_10": "ndcg_at_10",
        "map_cut_100": "map_at_100",
        "P_5": "precision_at_5",
        "recall_20": "recall_at_20",
    }
    assert set(qrels) - set(found) == {"q4"}  # unanswerable, so it was not searched: it counts 0 here
    for theirs, ours in names.items():
        expected = sum(values[theirs] for values in per_query.values()) / len(qrels)
        assert scored.result.scores[ours].value == pytest.approx(expected, abs=1e-9)
    assert scored.result.counts["queries_without_ranking"] == 1
    assert (scored.result.task.name, scored.result.split) == ("golden", "test")


class TestFaults:
    """The cases of tests/golden/test_faults.py that start at a file."""

    @pytest.mark.parametrize("order", list(itertools.permutations("amz")))
    def test_f1_a_constant_scorer(self, tmp_path: Path, order: tuple[str, ...]) -> None:
        """MRR 1/2, nDCG 1/log2(3), MAP 1/2 whatever the order (pytrec_eval); the means over orders by choice."""
        run, qrels = {"q": dict.fromkeys(order, 0.5)}, {"q": {"m": 1}}
        names = ("mrr_at_10", "ndcg_at_10", "map_at_10")
        values, result = foreign(tmp_path, run, qrels, *names)
        assert values == [0.5, 0.63093, 0.5]
        assert any("All scores are equal in 1 of 1 query" in warning for warning in result.warnings)
        assert foreign(tmp_path, run, qrels, *names[:2], ties="average")[0] == [0.61111, 0.71031]

    def test_f2_the_id_of_the_query(self, tmp_path: Path) -> None:
        """1 by default, with a warning; 2/3 and 0.76536 with the filter on (pytrec_eval)."""
        run, qrels = {"2": {"1": 3.0, "2": 2.0, "3": 1.0}}, {"2": {"1": 1, "2": 1, "3": 1}}
        values, result = foreign(tmp_path, run, qrels, "recall_at_3", "ndcg_at_3")
        assert values == [1.0, 1.0]
        assert any("1 query id is also a document id" in warning for warning in result.warnings)
        values, result = foreign(tmp_path, run, qrels, "recall_at_3", "ndcg_at_3", self_match="drop")
        assert values == [0.66667, 0.76536]
        assert result.warnings == ()

    def test_f3_nothing_relevant(self, tmp_path: Path) -> None:
        """0 or left out, by choice; a query without judgments is left out and counted."""
        run = {query: {"d1": 1.0, "d2": 0.5} for query in ("q1", "q2", "q3")}
        qrels = {"q1": {"d1": 1}, "q3": {"d1": 0}}
        values, result = foreign(tmp_path, run, qrels, "ndcg_at_10")
        assert (values, result.counts["queries_scored"]) == ([0.5], 2)
        assert result.counts["queries_without_judgments"] == 1
        assert foreign(tmp_path, run, qrels, "ndcg_at_10", no_relevant="skip")[0] == [1.0]

    def test_f4_unreachable(self, tmp_path: Path) -> None:
        """Refused; 1/(1 + 1/log2 3) and a note on the ceiling where that is asked for."""
        qrels = {"q1": {"d1": 1, "ghost": 1}}
        data = write_beir(tmp_path / "data", corpus={"d1": "a", "d2": "b"}, queries={"q1": "a"}, qrels=qrels)
        request = ScoreRequest(run=run_file(tmp_path, {"q1": {"d1": 2.0, "d2": 1.0}}), data=str(data), statistics=FEW)
        with pytest.raises(DataError, match="ghost"):
            score(request)
        scored = score(replace(request, options={"unreachable": "keep"}))
        assert scored.result.scores["ndcg_at_10"].value == pytest.approx(0.61315, abs=5e-6)
        assert scored.result.scores["recall_at_10"].value == 0.5
        assert any("recall can't exceed 0.5000" in warning for warning in scored.result.warnings)

    def test_f5_unanswered(self, tmp_path: Path) -> None:
        """0 for the missing one; the unjudged one is left out and counted."""
        run, qrels = {"q1": {"d1": 1.0}, "q9": {"d1": 1.0}}, {"q1": {"d1": 1}, "q2": {"d2": 1}}
        values, result = foreign(tmp_path, run, qrels, "ndcg_at_10")
        assert values == [0.5]
        assert [result.counts[f"queries_{what}"] for what in ("scored", "without_ranking", "without_judgments")] == [
            2,
            1,
            1,
        ]
        assert foreign(tmp_path, run, qrels, "ndcg_at_10", missing_queries="skip")[0] == [1.0]

    def test_f6_average_precision(self, tmp_path: Path) -> None:
        """Over all relevant documents; a duplicate counts once; the denominator by choice."""
        qrels = {"q": {"a": 1, "b": 1}}
        assert foreign(tmp_path, {"q": {"a": 3.0, "x": 2.0}}, qrels, "map_at_10", "recall_at_10")[0] == [0.5, 0.5]
        path = tmp_path / "twice.run"
        path.write_text("q Q0 a 1 3 t\nq Q0 a 2 2 t\nq Q0 x 3 1 t\n")
        result = score(ScoreRequest(run=path, qrels=qrels_file(tmp_path, qrels), statistics=FEW)).result
        assert (result.scores["map_at_10"].value, result.counts["duplicate_hits"]) == (0.5, 1)
        assert "1 hit left out: the same document stands higher for the same query." in result.warnings
        run, three = {"q": {"a": 2.0, "b": 1.0}}, {"q": {"a": 1, "b": 1, "c": 1}}
        assert foreign(tmp_path, run, three, "map_at_2")[0] == [0.66667]
        assert foreign(tmp_path, run, three, "map_at_2", map_denominator="min(k,R)")[0] == [1.0]

    def test_f7_scores_close_together(self, tmp_path: Path) -> None:
        """0.90283203 and 0.90234375 are one number in bf16 and two here."""
        run = {"q": {"b": 0.90234375, "a": 0.90283203}}
        assert foreign(tmp_path, run, {"q": {"a": 1}}, "mrr_at_10")[0] == [1.0]

    def test_g10_excluded_documents_leave_before_the_cut(self, tmp_path: Path) -> None:
        """With b excluded, c moves up to rank 2 of depth 2: recall 1, nDCG (1 + 1/log2 3) / (1 + 1/log2 3)."""
        data = write_beir(
            tmp_path / "data",
            corpus=dict.fromkeys("abc", "x") | {"a": "1", "b": "2", "c": "3"},
            queries={"q": "x"},
            qrels={"q": {"a": 1, "c": 1}},
        )
        write_jsonl(data / "queries.jsonl", [{"_id": "q", "text": "x", "exclude": ["b"]}])
        file = run_file(tmp_path, {"q": {"a": 3.0, "b": 2.0, "c": 1.0}})
        request = ScoreRequest(run=file, data=str(data), options={"depth": 2, "cutoffs": [2]}, statistics=FEW)
        result = score(replace(request, metrics=("ndcg_at_2", "recall_at_2"))).result
        assert [result.scores[name].value for name in ("ndcg_at_2", "recall_at_2")] == [1.0, 1.0]

    def test_g16_a_self_match_in_a_tie_at_rank_1(self, tmp_path: Path) -> None:
        """The document of that id goes, and not whatever stands first: b stays at rank 1."""
        run, qrels = {"a": {"a": 1.0, "b": 1.0}}, {"a": {"b": 1}}
        assert foreign(tmp_path, run, qrels, "mrr_at_10", self_match="drop")[0] == [1.0]


def test_what_judgments_alone_do_not_tell_is_null(tmp_path: Path) -> None:
    """Nothing is known of the corpus, and 0 would claim that something is."""
    _, result = foreign(tmp_path, {"q": {"a": 1.0}}, {"q": {"a": 1}}, "ndcg_at_10")
    unknown = ("documents_same_text", "queries_unanswerable", "unreachable_relevant", "hits_not_in_corpus")
    assert [result.counts[name] for name in unknown] == [None] * 4
    assert (result.task.name, result.split) == ("judgments", "test")


def test_runs_of_the_same_judgments_can_be_compared(tmp_path: Path) -> None:
    """Whatever documents they found: one protocol."""
    one = foreign(tmp_path, {"q": {"a": 1.0}}, {"q": {"a": 1}}, "ndcg_at_10")[1]
    other = foreign(tmp_path, {"q": {"z": 1.0}}, {"q": {"a": 1}}, "ndcg_at_10")[1]
    elsewhere = foreign(tmp_path, {"q": {"a": 1.0}}, {"q": {"a": 2}}, "ndcg_at_10")[1]
    assert one.signature.protocol == other.signature.protocol != elsewhere.signature.protocol


def test_hits_outside_the_corpus_are_counted(golden: Path, tmp_path: Path) -> None:
    """They stay where they are, as in trec_eval, and the reader is told."""
    file = run_file(tmp_path, {"q0": {"else": 2.0, "d00": 1.0}, "q1": {"where": 1.0}})
    result = score(ScoreRequest(run=file, data=str(golden), statistics=FEW)).result
    assert result.counts["hits_not_in_corpus"] == 2
    assert "2 hits of the run are not in the corpus." in result.warnings


@pytest.mark.parametrize(
    ("run", "message"),
    [
        ({"0": {"d00": 1.0}}, "none of its 1 query is judged: '0' here, 'q0' in the judgments."),
        ({"q0": {"0": 1.0}}, "none of its 1 document is in the corpus: '0' here, 'd00' in the corpus."),
    ],
)
def test_ids_of_another_data_set_are_refused(golden: Path, tmp_path: Path, run: Any, message: str) -> None:
    """A table of zeros would look like a bad system."""
    with pytest.raises(DataError) as caught:
        score(ScoreRequest(run=run_file(tmp_path, run), data=str(golden)))
    assert str(caught.value).endswith(message)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"qrels": None}, "Say what to score against"),
        ({"data": "golden"}, "Say what to score against"),
        ({"split": "dev"}, "--split goes with --data"),
        ({"metrics": ("ndcg_at_0",)}, "'ndcg_at_0' is not a ranking metric"),
        ({"metrics": ("ndcg_at_10", "map_at_50"), "options": {"depth": 20}}, "depth 20 is less than the cut-off of"),
        ({"metrics": ("ndcg_at_10",), "options": {"cutoffs": [5]}}, "'ndcg_at_10' needs its cut-off among --cutoffs"),
        ({"options": {"ties": "random"}}, "ties"),
    ],
)
def test_requests_that_do_not_fit(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    """One line that says what to change."""
    request = ScoreRequest(run=run_file(tmp_path, {"q": {"a": 1.0}}), qrels=qrels_file(tmp_path, {"q": {"a": 1}}))
    with pytest.raises(ConfigError, match=message):
        score(replace(request, **changes))


def test_wanted_metrics_bring_their_cut_offs(tmp_path: Path) -> None:
    """The first is the main one; every measure at these cut-offs is there."""
    scored: Scored = score(
        ScoreRequest(
            run=run_file(tmp_path, {"q": {"a": 1.0}}),
            qrels=qrels_file(tmp_path, {"q": {"a": 1}}),
            metrics=("map_at_7", "recall_at_3"),
            statistics=FEW,
        )
    )
    assert scored.metrics == ("map_at_7", "recall_at_3")
    assert scored.result.main_score == "map_at_7"
    assert set(scored.result.scores) == set(ranking.names((3, 7)))


class TestHandingOver:
    """Stored rows as files."""

    def test_values_of_every_item(self, golden: Path, tmp_path: Path) -> None:
        """csv and jsonl hold what the records hold, to the digit."""
        store = ResultStore(tmp_path / "results")
        stored = evaluated(golden, store)
        records = store.records(stored)
        header, *rows = handing_over.rendered(store, stored, "csv").decode().splitlines()
        assert header.split(",") == ["id", *records.columns, "label.kind"]
        objects = [json.loads(line) for line in handing_over.rendered(store, stored, "jsonl").decode().splitlines()]
        for row, (item, text, found) in enumerate(zip(records.ids, rows, objects, strict=True)):
            values = {name: float(column[row]) for name, column in records.columns.items()}
            assert text.split(",") == [item, *map(repr, values.values()), records.slices["kind"][row]]
            assert found == {"id": item, "values": values, "labels": {"kind": records.slices["kind"][row]}}

    def test_what_a_result_does_not_have(self, golden: Path, tmp_path: Path) -> None:
        """Another form, and a result without a ranking."""
        store = ResultStore(tmp_path / "results")
        stored = evaluated(golden, store)
        with pytest.raises(UnknownNameError, match="form"):
            handing_over.rendered(store, stored, "qrels")
        bare = Stored(stored.path, replace(stored.result, run=None))
        with pytest.raises(StoreError, match="has no ranking"):
            handing_over.rendered(store, bare, "trec")

    def test_a_file_that_is_there_is_not_replaced(self, tmp_path: Path) -> None:
        """Unless that is asked for; a folder never is."""
        place = tmp_path / "a.run"
        place.write_text("mine")
        with pytest.raises(ConfigError, match=r"a\.run exists"):
            handing_over.write(b"theirs", place)
        assert place.read_text() == "mine"
        handing_over.write(b"theirs", place, overwrite=True)
        assert place.read_text() == "theirs"
        with pytest.raises(ConfigError, match="is a folder"):
            handing_over.write(b"theirs", tmp_path, overwrite=True)

    def test_a_result_is_strict_json(self, tmp_path: Path) -> None:
        """Written and read under the schema."""
        _, result = foreign(tmp_path, {"q": {"a": 1.0}}, {"q": {"a": 1}}, "ndcg_at_10")
        assert border.load(Result, json.loads(json.dumps(border.dump(result), allow_nan=False))) == result
