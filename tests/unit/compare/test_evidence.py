"""Results that a decision can rest on; cases of fault F20 (a gate that passes on NaN, on nothing, or on itself)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from embeval.compare import evidence, pairs
from embeval.core.ir import Run
from embeval.core.records import ItemRecords
from embeval.core.result import Failure
from embeval.core.specs import StatisticsOptions
from embeval.errors import EvidenceError, NotComparableError, StoreError, UnknownNameError
from embeval.metrics import get
from embeval.store import items
from embeval.store.results import ResultStore, Stored
from tests.support import stored as support

QUICK = StatisticsOptions(resamples=100)
NAN = float("nan")
FAIR = [0.9, 0.2, 0.4, 1.0, 0.0, 0.7]


@pytest.fixture
def store(tmp_path: Path) -> ResultStore:
    """An empty folder of results."""
    return ResultStore(tmp_path / "results")


def put(store: ResultStore, model: str, columns: Mapping[str, Sequence[float]], **options: Any) -> Stored:
    """The stored result of a model with those values per item."""
    return support.put(store, columns, model=model, **options)[-1]


def pair_of(store: ResultStore, one: Stored, other: Stored) -> pairs.Pair:
    """Both, gathered and paired."""
    return pairs.pair(evidence.gather(store, one), evidence.gather(store, other), QUICK)


def ranking(lengths: dict[str, int]) -> Run:
    """A ranking with so many hits of each query."""
    rows = [(query, f"d{place}", 1.0 - place / 1000) for query, n in lengths.items() for place in range(n)]
    return Run.from_rows(rows, query_ids=list(lengths))


def test_a_sound_result_is_taken(store: ResultStore) -> None:
    """Whole files and scores that follow from the items."""
    stored = put(store, "a", {"ndcg_at_10": FAIR})
    found = evidence.gather(store, stored)
    assert found.key == ("docs", "test", "all")
    assert found.records.columns["ndcg_at_10"].tolist() == FAIR


def test_a_failed_run_is_refused(store: ResultStore) -> None:
    """A failed run decides nothing."""
    stored = put(store, "a", {"ndcg_at_10": FAIR})
    failed = replace(stored.result, status="error", scores={}, error=Failure(type="ModelError", message="no memory"))
    with pytest.raises(EvidenceError, match="this run failed: no memory"):
        evidence.gather(store, store.put(failed))


def test_a_score_that_does_not_follow_from_the_items_is_refused(store: ResultStore) -> None:
    """A number edited by hand."""
    stored = put(store, "a", {"ndcg_at_10": FAIR})
    value = json.loads(stored.path.read_text())
    value["scores"]["ndcg_at_10"]["value"] = 0.95
    stored.path.write_text(json.dumps(value))
    with pytest.raises(EvidenceError, match=r"is 0\.95 on 6 items, but the items give 0\.533"):
        evidence.gather(store, Stored(stored.path, store.get(stored.path)))


def test_of_one_metric_only_its_value_is_held_to_its_items(store: ResultStore) -> None:
    """That is what is shown: the value as it was found, even where the file says something else by now."""
    stored = put(store, "a", {"ndcg_at_10": FAIR, "map_at_10": FAIR, "answerable": [1.0] * 6}, measured=["ndcg_at_10"])
    found = evidence.gather(store, stored, only="ndcg_at_10")
    assert sorted(found.records.columns) == ["answerable", "ndcg_at_10"]
    assert found.records.columns["ndcg_at_10"].tolist() == FAIR
    both = put(store, "a", {"ndcg_at_10": FAIR, "map_at_10": FAIR})
    scores = dict(both.result.scores)
    forged = replace(both.result, scores={**scores, "map_at_10": replace(scores["map_at_10"], value=0.95)})
    shown = Stored(both.path, forged, remembered=True)
    assert evidence.gather(store, shown, only="ndcg_at_10").result is forged
    with pytest.raises(EvidenceError, match=r"map_at_10 is 0\.95 on 6 items, but the items give 0\.533"):
        evidence.gather(store, shown, only="map_at_10")
    other = replace(forged, scores={"unknown": scores["map_at_10"]}, main_score="unknown")
    with pytest.raises(EvidenceError, match="unknown"):
        evidence.gather(store, replace(shown, result=other), only="unknown")


def test_a_result_from_the_future_is_refused(store: ResultStore) -> None:
    """Two days ahead of this machine's clock."""
    days = (datetime.now(UTC) - support.MADE_AT).days + 2
    with pytest.raises(EvidenceError, match="lies in the future"):
        evidence.gather(store, put(store, "a", {"ndcg_at_10": FAIR}, days=days))


def test_an_infinite_value_is_refused() -> None:
    """An item's value must be finite."""
    records = ItemRecords("query", ("q0", "q1"), {"ndcg_at_10": np.array([0.5, np.inf])})
    with pytest.raises(EvidenceError, match=r"ndcg_at_10 of the item 'q1' is inf \(1 such values\)"):
        evidence.refuse_infinite(records, "a.json")


def test_ids_that_come_twice_are_refused(store: ResultStore) -> None:
    """An items file whose ids aren't unique."""
    stored = put(store, "a", {"ndcg_at_10": [0.5, 0.5]})
    import pyarrow as pa

    table = pa.table({"id": ["q0", "q0"], "ndcg_at_10": [0.5, 0.5]})
    data = items._write(table, {"kind": "items", "unit": "query"})
    reference = store._put_file(stored.path.parent, data, "items")
    doubled = store.put(replace(stored.result, items=reference))
    with pytest.raises(StoreError, match="item ids must be unique"):
        evidence.gather(store, doubled)


def test_a_ranking_that_lacks_queries_is_refused_or_told(store: ResultStore) -> None:
    """Two of six queries ranked."""
    run = ranking({"q0": 20, "q1": 20})
    stored = put(store, "a", {"ndcg_at_10": FAIR}, run=run, documents=20)
    with pytest.raises(EvidenceError, match="its ranking lacks 4 queries of 6: 'q2', 'q3', 'q4', …"):
        evidence.gather(store, stored)
    assert evidence.gather(store, stored, whole=False).without_ranking == ("q2", "q3", "q4", "q5")


@pytest.mark.parametrize(
    ("hits", "documents", "backend", "short"),
    [
        (10, 1000, "hashing", False),
        (9, 1000, "hashing", True),
        (9, 10, "hashing", False),  # the query itself may be a document of the corpus
        (9, None, "hashing", True),  # judgments alone: the corpus isn't known
        (9, 1000, "bm25", False),  # finds only what shares a word
    ],
)
def test_a_ranking_that_ends_before_the_metric(
    store: ResultStore, hits: int, documents: int | None, backend: str, short: bool
) -> None:
    """Nine hits, where nDCG looks at ten."""
    run = ranking({f"q{number}": hits for number in range(6)})
    one = put(store, "a", {"ndcg_at_10": FAIR}, run=run, documents=documents, backend=backend)
    other = put(store, "b", {"ndcg_at_10": FAIR[::-1]})
    found = pair_of(store, one, other).compared(["ndcg_at_10"])["ndcg_at_10"]
    if short:
        assert found.undefined == "the ranking of a holds 9 hits per query at most, and ndcg_at_10 looks at 10"
    else:
        assert found.undefined is None


@pytest.mark.parametrize(("hits", "short"), [(5, False), (4, True)])
def test_a_ranking_of_candidates_reaches_as_deep_as_there_are_some(store: ResultStore, hits: int, short: bool) -> None:
    """Five candidates, of a corpus of a thousand documents; one query has two, and no run was cut."""
    run = ranking({f"q{number}": hits if number else 2 for number in range(6)})
    one = put(store, "a", {"ndcg_at_10": FAIR}, run=run, documents=1000, most_candidates=5)
    other = put(store, "b", {"ndcg_at_10": FAIR[::-1]})
    found = pair_of(store, one, other).compared(["ndcg_at_10"])["ndcg_at_10"]
    assert (found.undefined is not None) == short
    assert evidence.gather(store, one).cut_for("ndcg_at_10") is None


def test_a_ranking_that_is_cut_for_some_queries_is_told(store: ResultStore) -> None:
    """Two hits for five of six queries, where nDCG looks at ten; none is told where all are whole."""
    lengths = {f"q{number}": 10 if number == 0 else 2 for number in range(6)}
    cut = evidence.gather(store, put(store, "a", {"ndcg_at_10": FAIR}, run=ranking(lengths), documents=1000))
    assert cut.cut_for("ndcg_at_10") == (
        "5 of 6 queries of a on docs have fewer hits than ndcg_at_10 looks at. Was the run cut?"
    )
    assert cut.cut_for("ndcg_at_1") is None
    whole = ranking(dict.fromkeys(lengths, 10))
    assert evidence.gather(store, put(store, "b", {"ndcg_at_10": FAIR}, run=whole)).cut_for("ndcg_at_10") is None


def test_f20_c_items_scored_on_one_side_only_give_no_difference(store: ResultStore) -> None:
    """Five errors of ten queries: the mean of the others says nothing (F20 c)."""
    one = put(store, "a", {"ndcg_at_10": [0.9] * 10})
    other = put(store, "b", {"ndcg_at_10": [0.9] * 5 + [NAN] * 5})
    found = pair_of(store, one, other).compared(["ndcg_at_10"])["ndcg_at_10"]
    assert found.undefined == "5 items have no value of b alone: 'q5', 'q6', 'q7', …"
    back = pair_of(store, other, one).compared(["ndcg_at_10"])["ndcg_at_10"]
    assert back.undefined == "5 items have no value of b alone: 'q5', 'q6', 'q7', …"


def test_items_without_a_value_on_both_sides_are_left_out(store: ResultStore) -> None:
    """(0.25 + 0.25 - 0.5) / 3 by hand."""
    one = put(store, "a", {"ndcg_at_10": [0.5, 0.25, NAN, 1.0]})
    other = put(store, "b", {"ndcg_at_10": [0.75, 0.5, NAN, 0.5]})
    found = pair_of(store, one, other).compared(["ndcg_at_10"])["ndcg_at_10"]
    assert (found.n_items, found.undefined) == (3, None)
    assert found.contrast().estimate == pytest.approx((0.25 + 0.25 - 0.5) / 3)


def test_f20_e_a_result_against_itself_is_refused(store: ResultStore) -> None:
    """The very same file (F20 e)."""
    stored = put(store, "a", {"ndcg_at_10": FAIR})
    with pytest.raises(NotComparableError, match="baseline and candidate at once"):
        pair_of(store, stored, stored)


def test_f20_e_a_result_written_down_differently_is_still_itself(store: ResultStore, tmp_path: Path) -> None:
    """The same content with other white space (F20 e)."""
    stored = put(store, "a", {"ndcg_at_10": FAIR})
    copy = stored.path.with_name("copy.json")
    copy.write_text(json.dumps(json.loads(stored.path.read_text()), indent=7))
    with pytest.raises(NotComparableError, match="baseline and candidate at once"):
        pair_of(store, stored, Stored(copy, store.get(copy)))


def test_equal_values_of_two_runs_are_no_reason_to_refuse(store: ResultStore) -> None:
    """Two runs of equal weights are two results."""
    one, other = put(store, "a", {"ndcg_at_10": FAIR}), put(store, "b", {"ndcg_at_10": FAIR})
    assert pair_of(store, one, other).compared(["ndcg_at_10"])["ndcg_at_10"].contrast().estimate == 0.0


def test_f20_f_other_data_is_refused_with_the_part_that_differs(store: ResultStore) -> None:
    """Another depth (F20 f)."""
    one = put(store, "a", {"ndcg_at_10": FAIR}, protocol={"depth": 1000})
    other = put(store, "b", {"ndcg_at_10": FAIR}, protocol={"depth": 100})
    with pytest.raises(NotComparableError, match="Different: depth: 1000 and 100") as refused:
        pair_of(store, one, other)
    assert refused.value.parts == ("depth: 1000 and 100",)


def test_other_items_are_refused(store: ResultStore) -> None:
    """One id differs."""
    one = put(store, "a", {"ndcg_at_10": FAIR})
    other = put(store, "b", {"ndcg_at_10": FAIR}, ids=["q0", "q1", "q2", "q3", "q4", "other"])
    with pytest.raises(NotComparableError, match=r"hold different items: 1 of one are not in the other \('q5'\)"):
        pair_of(store, one, other)


def test_items_in_another_order_are_put_in_order(store: ResultStore) -> None:
    """Paired by id and not by row."""
    one = put(store, "a", {"ndcg_at_10": FAIR})
    other = put(store, "b", {"ndcg_at_10": FAIR[::-1]}, ids=[f"q{number}" for number in range(5, -1, -1)])
    found = pair_of(store, one, other).compared(["ndcg_at_10"])["ndcg_at_10"]
    assert found.differences is not None
    assert found.differences.tolist() == [0.0] * 6


def test_another_version_of_a_metric_is_refused(store: ResultStore) -> None:
    """A score of an older metric isn't recomputed by the newer one."""
    stored = put(store, "a", {"ndcg_at_10": FAIR})
    old = replace(stored.result.signature, metrics={"ndcg_at_10": get("ndcg_at_10").version + 1})
    with pytest.raises(EvidenceError, match="computed by version 2 of the metric, and this is 1"):
        evidence.gather(store, store.put(replace(stored.result, signature=old)))


def test_a_metric_that_one_side_lacks(store: ResultStore) -> None:
    """It is named with the side that lacks it."""
    columns = {"ndcg_at_10": FAIR, "recall_at_10": FAIR}
    one = put(store, "a", columns, measured=["ndcg_at_10", "recall_at_10"])
    pair = pair_of(store, one, put(store, "b", {"ndcg_at_10": FAIR}))
    assert pair.metric_names == ("ndcg_at_10",)
    assert pair.lacks("recall_at_10") == "b has no recall_at_10 on docs"
    with pytest.raises(UnknownNameError):
        pair.compared(["recall_at_10"])
