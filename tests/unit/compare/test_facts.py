"""What a result tells besides its metrics, counted by hand, and which times may be compared."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from embeval.compare import facts
from embeval.core.embeddings import TextCounts
from embeval.core.progress import Silent
from embeval.core.provenance import Provenance
from embeval.core.result import MetricValue, Result, Timings
from embeval.core.specs import DatasetRef, ModelSpec, StatisticsOptions, TaskSpec
from embeval.errors import EvidenceError
from embeval.runner import assemble
from embeval.tasks import TASK_TYPES
from tests.support.data import write_beir, write_jsonl
from tests.support.doubles import TableEncoder

TABLE = {
    "one": (1.0, 0.0, 0.0),
    "one two": (0.0, 1.0, 0.0),
    "one two three four": (0.0, 1.0, 0.0),
    "one two three": (0.0, 0.0, 1.0),
    "": (0.0, 0.0, 0.0),
}
TIMED = ("latency_p50_ms", "encode_latency_p95_ms", "search_latency_p99_ms", "rerank_latency_p75_ms", "queries_per_s")
PER_PROCESS = ("peak_rss_mib", "cold_latency_ms", "search_cold_latency_ms")
FREE = ("ndcg_at_10", "index_mib", "usd_per_million_queries", "ann_recall_at_10", "truncated_share")


def two_words(texts: Sequence[str]) -> TextCounts:
    """A model that keeps two words of a text."""
    words = [len(text.split()) for text in texts]
    return TextCounts(
        n_texts=len(texts),
        n_empty=sum(n == 0 for n in words),
        n_truncated=sum(n > 2 for n in words),
        tokens_kept=sum(min(n, 2) for n in words),
        tokens_lost=sum(max(n - 2, 0) for n in words),
    )


def evaluated(folder: Path, kind: str, path: str) -> Result:
    """The result of the table on data in a folder."""
    spec = TaskSpec(name="t", type=kind, dataset=DatasetRef(path=path))
    task = TASK_TYPES.get(kind).bind(spec, root=folder)
    payload = task.load()
    encoder = TableEncoder(TABLE, counts=two_words)
    collected = task.collect(payload, encoder, Silent())
    evidence = assemble.Evidence(
        model=encoder.spec,
        task=spec,
        protocol=task.protocol(payload),
        metrics=task.metrics(payload),
        records=collected.records,
        provenance=Provenance(python="3", packages={}, os="os", cpu="cpu", n_cpus=1),
        counts=collected.counts,
    )
    return assemble.results(evidence, StatisticsOptions(resamples=0), None)[-1].result


@pytest.fixture
def searched(tmp_path: Path) -> Result:
    """Four documents, of which two are cut and one is empty, and three queries, of which one is cut."""
    write_beir(
        tmp_path / "golden",
        corpus={"d1": "one two", "d2": "one two three four", "d3": "one two three", "d4": ""},
        queries={"q1": "one two", "q2": "one", "q3": "one two three"},
        qrels={"q1": {"d1": 1}, "q2": {"d4": 1}, "q3": {"d3": 1}},
    )
    return evaluated(tmp_path, "retrieval", "golden")


def values(result: Result) -> dict[str, float | None]:
    """Every fact."""
    return {name: facts.value(result, name) for name in facts.NAMES}


def test_of_a_search_by_hand(searched: Result) -> None:
    """3 of 7 texts are cut. Of 2 + 2 + 2 + 0 and 2 + 1 + 2 tokens kept, 2 + 1 and 1 are lost; three float32 each."""
    assert values(searched) == {
        "truncated_share": pytest.approx(3 / 7),
        "queries_truncated_share": pytest.approx(1 / 3),
        "documents_truncated_share": pytest.approx(2 / 4),
        "tokens_lost_share": pytest.approx(4 / 15),
        "empty_share": pytest.approx(1 / 7),
        "tied_share": 0.0,  # a cut-off of 10 lies below all four documents
        "dimensions": 3.0,
        "vector_bytes": 12.0,
        "index_bytes_per_document": 12.0,
    }


def test_ties_across_the_cut_off(searched: Result) -> None:
    """Whatever the cut-off is called: two of three queries."""
    counts = {name: n for name, n in searched.counts.items() if not name.startswith("queries_tied")}
    tied = replace(searched, counts={**counts, "queries_tied_at_3": 2})
    assert facts.value(tied, "tied_share") == pytest.approx(2 / 3)


def test_of_sentences(tmp_path: Path) -> None:
    """Three pairs: of six sentences three are cut; there are no queries or documents, and no index."""
    rows = [("one", "one two three"), ("one two", "one two three four"), ("one two", "one two three")]
    write_jsonl(
        tmp_path / "pairs.jsonl",
        ({"sentence1": a, "sentence2": b, "score": n} for n, (a, b) in enumerate(rows)),
    )
    found = values(evaluated(tmp_path, "sts", "pairs.jsonl"))
    assert found["truncated_share"] == pytest.approx(3 / 6)
    assert found["tokens_lost_share"] == pytest.approx(4 / (1 + 2 + 2 + 2 + 2 + 2 + 4))
    assert (found["empty_share"], found["dimensions"], found["vector_bytes"]) == (0.0, 3.0, 12.0)
    assert found["queries_truncated_share"] is found["documents_truncated_share"] is found["tied_share"] is None


def test_what_is_not_told_is_none(searched: Result) -> None:
    """A model that doesn't tell what it cut, a result without counts, one stored before dimensions were."""
    silent = replace(searched, counts={**searched.counts, "documents_truncated": None, "documents_tokens_lost": None})
    found = values(silent)
    assert found["truncated_share"] is found["documents_truncated_share"] is found["tokens_lost_share"] is None
    assert found["queries_truncated_share"] == pytest.approx(1 / 3)
    assert set(values(replace(searched, counts={})).values()) == {None}
    with pytest.raises(KeyError):
        facts.value(searched, "share_of_anything")


def test_bytes_of_an_index_that_is_not_exact(searched: Result) -> None:
    """As it was measured: 1 MiB over four documents; not known where no latency was asked for."""
    protocol = {**searched.signature.protocol, "index": "hnsw"}
    result = replace(searched, signature=replace(searched.signature, protocol=protocol))
    assert facts.value(result, "index_bytes_per_document") is None
    assert facts.value(result, "vector_bytes") == 12.0
    scores = {**result.scores, "index_mib": MetricValue(value=1.0, n_items=1)}
    assert facts.value(replace(result, scores=scores), "index_bytes_per_document") == 2**20 / 4


def test_quantised_vectors_are_smaller() -> None:
    """384 dimensions in int8 with a scale, 64 in bits: 388 and 8 bytes; a hybrid's encoders add up."""
    from embeval.tasks import _counts

    def encoder(dim: int, **fields: Any) -> Any:
        class Given(TableEncoder):
            @property
            def spec(self) -> ModelSpec:
                return ModelSpec(name="m", **fields)

        return Given({"x": (0.0,) * dim})

    given = [encoder(384, quantize="int8"), encoder(64, quantize="binary")]
    assert _counts.sizes(given) == {"dimensions": 448, "vector_bytes": 388 + 8}


def test_every_name_has_a_meaning_and_a_direction() -> None:
    """Less is better for all of them, and none is the name of a metric."""
    from embeval import metrics
    from embeval.errors import UnknownNameError

    for name, fact in facts.NAMES.items():
        assert (fact.name, fact.higher_is_better, fact.meaning[-1]) == (name, False, ".")
        with pytest.raises(UnknownNameError):
            metrics.get(name)


def test_which_metrics_are_times() -> None:
    """What hangs on the machine and the moment."""
    assert all(facts.is_timing(name) for name in (*TIMED, *PER_PROCESS))
    assert not any(facts.is_timing(name) for name in FREE)


def test_which_metrics_have_no_items() -> None:
    """One value per run: they have no interval, and are held against a threshold as they are."""
    once = ("queries_per_s", *PER_PROCESS, "index_mib", "usd_per_million_queries")
    assert all(facts.is_measured_once(name) for name in once)
    assert not any(facts.is_measured_once(name) for name in (*TIMED[:4], "ndcg_at_10", "ann_recall_at_10"))


def timed(searched: Result, name: str, session: str | None, *, timings: bool = True) -> Result:
    """The result of a model that was timed alone or in a session."""
    made: Mapping[str, Any] = {"started_at": "2026-01-01T00:00:00+00:00", "wall_s": 1.0, "cpu_s": 1.0}
    return replace(
        searched,
        model=ModelSpec(name=name, revision="r"),
        timings=Timings(**made, session=session) if timings else None,
    )


@pytest.mark.parametrize("metric", TIMED)
def test_times_are_compared_only_together(searched: Result, metric: str) -> None:
    """Every combination of alone, without timings, and two sessions: only the same session will do."""
    states = [("x", True), ("y", True), (None, True), (None, False)]
    for (one, has_one), (other, has_other) in itertools.product(states, states):
        baseline = timed(searched, "old", one, timings=has_one)
        candidate = timed(searched, "new", other, timings=has_other)
        if one is not None and one == other:
            facts.refuse_unless_together(baseline, candidate, metric)
            continue
        with pytest.raises(EvidenceError) as caught:
            facts.refuse_unless_together(baseline, candidate, metric)
        message = str(caught.value)
        assert message.startswith(f"{metric}: ")
        assert "--interleave" in message
        if one is None:
            assert "old on t was timed alone" in message
        elif other is None:
            assert "new on t was timed alone" in message
        else:
            assert "old and new on t were timed apart" in message


@pytest.mark.parametrize("metric", PER_PROCESS)
def test_what_a_process_has_once_is_never_compared(searched: Result, metric: str) -> None:
    """Not even of one session; the message says what can be done."""
    both = timed(searched, "old", "x"), timed(searched, "new", "x")
    with pytest.raises(EvidenceError, match=r"can't be compared: a process (has one peak|is cold once)[^\n]*\n.*max"):
        facts.refuse_unless_together(*both, metric)


@pytest.mark.parametrize("metric", FREE)
def test_everything_else_needs_no_session(searched: Result, metric: str) -> None:
    """Two results of different machines."""
    facts.refuse_unless_together(timed(searched, "old", None), timed(searched, "new", "x"), metric)
