"""The retrieval task with every kind of system, index and second stage."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from embeval.core.ir import Run, judge
from embeval.core.progress import Silent
from embeval.core.protocols import Collected, System
from embeval.core.specs import DatasetRef, ModelSpec, RuntimeOptions, StatisticsOptions, TaskSpec
from embeval.encoders import loading
from embeval.errors import ConfigError, DataError, ModelError
from embeval.metrics import ranking
from embeval.rerankers import loading as rerankers
from embeval.retrieval.fusion import fuse
from embeval.stats import scoring
from embeval.tasks import retrieval
from embeval.tasks.retrieval import RetrievalTask
from tests.support.data import write_beir
from tests.support.models import save_tiny_cross_encoder

WORDS = ("backup", "token", "archive", "folder", "server", "key", "page", "user")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """60 documents of two or three words, 8 queries of one word each, one of them without an answer."""
    corpus = {f"d{number:02}": f"{WORDS[number % 8]} {WORDS[number * 3 % 7]} {number}" for number in range(60)}
    queries = {f"q{number}": f"the {word}" for number, word in enumerate(WORDS)}
    qrels = {f"q{number}": {f"d{number:02}": 2, f"d{number + 8:02}": 1} for number in range(7)}
    folder = write_beir(tmp_path / "data", corpus=corpus, queries=queries, qrels=qrels)
    lines = [json.loads(line) for line in (folder / "queries.jsonl").read_text(encoding="utf-8").splitlines()]
    lines[7]["answerable"] = False
    (folder / "queries.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return folder


def task_on(data: Path, **options: object) -> RetrievalTask:
    """The task with options."""
    spec = TaskSpec(name="t", type="retrieval", dataset=DatasetRef(path=str(data)), options=options)
    return retrieval.TASK.bind(spec, root=data.parent)


def system(name: str, **fields: Any) -> System:
    """A system without files."""
    backend, _, rest = name.partition(":")
    return loading.load_system(loading.resolve(ModelSpec(name=rest or name, backend=backend, **fields)))


def collect(task: RetrievalTask, model: System) -> Collected:
    """What the task makes of the system."""
    return task.collect(task.load(), model, Silent())


def run_of(task: RetrievalTask, model: System) -> Run:
    """Its ranking."""
    run = collect(task, model).run
    assert run is not None
    return run


def means(collected: Collected, task: RetrievalTask) -> dict[str, float | None]:
    """Every metric of the task over all items."""
    estimates = scoring.estimate(collected.records, task.metrics(task.load()), StatisticsOptions(resamples=0))
    return {name: each.to_value(StatisticsOptions(resamples=0)).value for name, each in estimates.items()}


def test_bm25_is_evaluated_without_vectors(data: Path) -> None:
    """Its hits hold a word of the query each, and there are no counts of encoded texts."""
    task = task_on(data)
    collected = collect(task, system("bm25"))
    assert collected.run is not None
    for query, word in zip([f"q{number}" for number in range(8)], WORDS, strict=True):
        found = [doc for doc, _ in collected.run.hits(query)]
        expected = {f"d{number:02}" for number in range(60) if word in (WORDS[number % 8], WORDS[number * 3 % 7])}
        assert set(found) == expected
    assert "documents" not in collected.counts
    assert collected.prompts == {}


def test_a_hybrid_is_its_parts_fused(data: Path) -> None:
    """The ranking is that of ``fuse`` on the rankings of both parts, which go deeper than what is kept."""
    deep, shallow = task_on(data), task_on(data, depth=10)
    parts = [run_of(deep, system("hashing")), run_of(deep, system("bm25"))]
    found = run_of(shallow, system("hybrid:hashing+bm25"))
    expected = fuse(parts, depth=10)
    assert [found.hits(query) for query in found.query_ids] == [expected.hits(query) for query in found.query_ids]


def test_an_index_that_misses_is_held_against_exact_search(data: Path) -> None:
    """``ann_recall_at_10`` is the share of the exact first ten, by brute force; hits keep their exact scores."""
    options = {"nlist": 8, "nprobe": 1}
    model = system("hashing")
    exact, task = run_of(task_on(data), model), task_on(data, index="ivf", index_options=options)
    collected = collect(task, model)
    assert collected.run is not None
    scores = {query: dict(exact.hits(query)) for query in exact.query_ids}
    shares = []
    for query in collected.records.ids[:7]:
        found = dict(collected.run.hits(query)[:10])
        worst = exact.hits(query)[9][1]
        shares.append(sum(score >= worst for score in found.values()) / 10)
        assert all(scores[query][doc] == score for doc, score in found.items())
    column = collected.records.columns["ann_recall_at_10"]
    assert column[:7].tolist() == pytest.approx(shares)
    assert np.isnan(column[7])
    assert min(shares) < 1.0
    assert task.protocol(task.load())["index"] == "ivf"
    assert task_on(data, index="flat").protocol(task.load()) == task_on(data).protocol(task.load())


@pytest.mark.parametrize("index", ["hnsw", "ivf", "ivf_pq", "sq8", "binary"])
def test_every_kind_of_index(data: Path, index: str) -> None:
    """60 documents are few: each kind finds most of what there is."""
    task = task_on(data, index=index)
    values = means(collect(task, system("hashing")), task)
    assert values["ann_recall_at_10"] is not None
    assert values["ann_recall_at_10"] > 0.5


@pytest.mark.parametrize("name", ["bm25", "hybrid:hashing+bm25"])
def test_what_no_index_was_asked_misses_nothing(data: Path, name: str) -> None:
    """BM25 and hybrids have a value for every metric but the recall of an index, which is undefined and no fault."""
    task = task_on(data, index="hnsw")
    values = means(collect(task, system(name)), task)
    assert values["ann_recall_at_10"] is None
    assert values["ndcg_at_10"] is not None


def test_options_of_an_index_are_checked_before_anything_runs(data: Path) -> None:
    """An unknown option names the nearest one."""
    with pytest.raises(ConfigError, match="nprobe"):
        task_on(data, index="ivf", index_options={"nprob": 3})


def test_unanswerable_queries_are_told_from_others_by_their_top_score(data: Path) -> None:
    """AUROC of scikit-learn on the top scores; ranking metrics count 7 queries and nothing unscored."""
    task = task_on(data)
    collected = collect(task, system("hashing"))
    assert collected.run is not None
    tops = [collected.run.hits(query)[0][1] for query in collected.records.ids]
    expected = roc_auc_score([1] * 7 + [0], tops)
    estimates = scoring.estimate(collected.records, task.metrics(task.load()), StatisticsOptions(resamples=0))
    assert estimates["answerable_auroc"].value == pytest.approx(expected)
    assert (estimates["answerable_auroc"].n_items, estimates["answerable_auroc"].n_unscored) == (8, 0)
    assert (estimates["ndcg_at_10"].n_items, estimates["ndcg_at_10"].n_unscored) == (7, 0)


def test_a_second_stage(data: Path, tmp_path: Path) -> None:
    """The first ten are ordered by the cross-encoder, the rest stays; before, after, lift, oracle and ceiling agree."""
    folder = save_tiny_cross_encoder(tmp_path / "reranker")
    plain, task = task_on(data), task_on(data, rerank={"model": "reranker", "depth": 10})
    model = system("hashing")
    first, collected = run_of(plain, model), collect(task, model)
    assert collected.run is not None
    payload = task.load()
    texts = dict(zip(payload.doc_ids, payload.doc_texts, strict=True))
    reranker = rerankers.load(rerankers.resolve(replace(task.options.rerank.spec, name=str(folder))))  # type: ignore[union-attr]
    for query in first.query_ids:
        candidates = [doc for doc, _ in first.hits(query)[:10]]
        scores = reranker.score([(payload.queries[query], texts[doc]) for doc in candidates]).scores.tolist()
        wanted = sorted(zip(scores, candidates, strict=True), reverse=True)
        assert [doc for doc, _ in collected.run.hits(query)[:10]] == [doc for _, doc in wanted]
        assert [doc for doc, _ in collected.run.hits(query)[10:]] == [doc for doc, _ in first.hits(query)[10:]]
    before, values = means(collect(plain, model), plain), means(collected, task)
    assert values["first_stage_ndcg_at_10"] == before["ndcg_at_10"]
    assert values["lift_ndcg_at_10"] == pytest.approx(values["ndcg_at_10"] - before["ndcg_at_10"])  # type: ignore[operator]
    assert values["candidate_recall_at_10"] == before["recall_at_10"]
    perfect = ranking.measure(judge(first, payload.qrels, exclude=payload.unanswerable), ["recall_at_10"])
    assert values["oracle_recall_at_10"] == pytest.approx(float(perfect["recall_at_10"].mean()))
    assert collected.counts["pairs_reranked"] == 80
    assert task.protocol(payload)["rerank"] == {"model": reranker.spec.digest, "depth": 10}
    assert str(tmp_path) not in str(task.protocol(payload))


def test_a_second_stage_behind_bm25_sees_no_other_document(data: Path, tmp_path: Path) -> None:
    """What BM25 doesn't find is never scored, so it is no hit either."""
    save_tiny_cross_encoder(tmp_path / "reranker")
    first, second = run_of(task_on(data), system("bm25")), run_of(task_on(data, rerank="reranker"), system("bm25"))
    for query in first.query_ids:
        assert {doc for doc, _ in second.hits(query)} == {doc for doc, _ in first.hits(query)}


def test_a_reranker_that_is_not_there(data: Path) -> None:
    """Told when the task is bound, with the task's name."""
    with pytest.raises(ModelError, match=r"Task 't', rerank: .*does not exist"):
        task_on(data, rerank="./nowhere")


def test_latency_of_single_queries(data: Path, tmp_path: Path) -> None:
    """Five queries are timed through three stages; the stages add up to no more than the whole, give or take 20 %."""
    save_tiny_cross_encoder(tmp_path / "reranker")
    task = task_on(data, rerank={"model": "reranker", "depth": 5}, latency=5)
    task = task.equipped(RuntimeOptions(), None, lambda: system("hashing"))
    collected = collect(task, system("hashing"))
    estimates = scoring.estimate(collected.records, task.metrics(task.load()), StatisticsOptions(resamples=0))
    for name in ("latency_p50_ms", "encode_latency_p95_ms", "search_latency_p99_ms", "rerank_latency_p50_ms"):
        assert isinstance(estimates[name].value, float), name
        assert (estimates[name].n_items, estimates[name].n_unscored) == (5, 0)
    parts = sum(estimates[f"{stage}_latency_p50_ms"].value for stage in ("encode", "search", "rerank"))  # type: ignore[misc]
    assert parts == pytest.approx(estimates["latency_p50_ms"].value, rel=0.5)
    assert estimates["index_mib"].value == pytest.approx(60 * 256 * 4 / 2**20)
    assert estimates["queries_per_s"].value > 0  # type: ignore[operator]
    assert (
        estimates["ndcg_at_10"].value
        == means(collect(task_on(data, rerank={"model": "reranker", "depth": 5}), system("hashing")), task_on(data))[
            "ndcg_at_10"
        ]
    )


@pytest.mark.parametrize("name", ["bm25", "hybrid:hashing+bm25"])
def test_latency_of_what_is_no_encoder(data: Path, name: str) -> None:
    """BM25 and hybrids answer single queries too; the ranking is the same as without timing."""
    task = task_on(data, latency=3).equipped(RuntimeOptions(), None, lambda: system(name))
    collected = collect(task, system(name))
    timed = means(collected, task)
    assert timed["search_latency_p50_ms"] is not None
    assert timed["search_latency_p50_ms"] <= timed["latency_p99_ms"]  # type: ignore[operator]
    assert timed["ndcg_at_10"] == means(collect(task_on(data), system(name)), task_on(data))["ndcg_at_10"]


def test_latency_of_a_file_is_not_made_up(data: Path, tmp_path: Path) -> None:
    """No number, and a sentence that says so."""
    (tmp_path / "a.trec").write_text("q0 Q0 d00 1 2.5 x\nq1 Q0 d01 1 2.0 x\n", encoding="utf-8")
    ranked = f"ranking:{tmp_path / 'a.trec'}"
    task = task_on(data, latency=3).equipped(RuntimeOptions(), None, lambda: system(ranked))
    collected = collect(task, system(ranked))
    assert any("Latency was not measured" in warning for warning in collected.warnings)
    assert means(collected, task)["latency_p50_ms"] is None


def test_passages_are_also_judged_as_documents(data: Path) -> None:
    """Ten passages per document: the best one stands for it, and any relevant one makes it relevant (by hand)."""
    lines = [json.loads(line) for line in (data / "corpus.jsonl").read_text(encoding="utf-8").splitlines()]
    for number, line in enumerate(lines):
        line["document"] = f"D{number // 10}"
    (data / "corpus.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    task = task_on(data)
    collected = collect(task, system("hashing"))
    assert collected.run is not None
    for row, query in enumerate(collected.records.ids[:7]):
        seen = list(dict.fromkeys(f"D{int(doc[1:]) // 10}" for doc, _ in collected.run.hits(query)))
        relevant = {f"D{number // 10}" for number in (int(query[1:]), int(query[1:]) + 8)}
        expected = 1 / (1 + min(seen.index(doc) for doc in relevant))
        assert collected.records.columns["document_mrr_at_10"][row] == pytest.approx(expected)


@pytest.mark.parametrize("latency", [-1, -100])
def test_a_negative_number_of_timed_queries_is_refused(data: Path, latency: int) -> None:
    """-1 would time all queries but one."""
    with pytest.raises(ConfigError, match="latency: must be a number of queries from 0"):
        task_on(data, latency=latency)


@pytest.mark.parametrize("name", ["context_tokens", "context_passages"])
def test_an_empty_prompt_is_refused(data: Path, name: str) -> None:
    """When the task is bound, not when its metrics are looked up."""
    with pytest.raises(ConfigError, match=f"{name}: must be whole numbers from 1"):
        task_on(data, **{name: [0]})


def test_what_a_stored_result_has_to_fit(data: Path) -> None:
    """Other labels of documents are another hash; no more queries can be timed than there are."""
    task = task_on(data)
    payload = task.load()
    relabelled = replace(payload, doc_labels={"kind": {"d00": "page"}})
    assert task.labels(payload) == task_on(data, latency=3).labels(payload) != task.labels(relabelled)
    assert [task_on(data, latency=n).n_timed(payload) for n in (0, 3, 800)] == [0, 3, 8]


def test_a_ranking_alone_does_not_tell_a_second_stage_or_an_index(data: Path, tmp_path: Path) -> None:
    """Such results are not measured anew from their last ranking."""
    save_tiny_cross_encoder(tmp_path / "reranker")
    plain = task_on(data)
    payload, found = plain.load(), collect(plain, system("hashing"))
    assert found.run is not None
    assert plain.remeasure(payload, found.run, found.counts, found.warnings) is not None
    for options in ({"rerank": "reranker"}, {"index": "hnsw"}, {"latency": 2}):
        assert task_on(data, **options).remeasure(payload, found.run, found.counts, found.warnings) is None


def test_options_of_an_index_are_part_of_the_protocol(data: Path) -> None:
    """Other options, other neighbours."""
    few, many = (task_on(data, index="ivf", index_options={"nlist": n}) for n in (2, 4))
    assert few.protocol(few.load())["index_options"] == {"nlist": 2}
    assert few.protocol(few.load()) != many.protocol(many.load())


@pytest.mark.parametrize(("name", "index"), [("bm25", "exact"), ("hashing", "hnsw"), ("hybrid:hashing+bm25", "exact")])
def test_excluded_documents_take_no_place(data: Path, name: str, index: str) -> None:
    """The ten hits are those of a deep ranking without what is excluded, however they are found."""
    deep = task_on(data, index=index)
    payload = deep.load()
    everything = deep.collect(payload, system(name), Silent()).run
    assert everything is not None
    first = {query: frozenset(doc for doc, _ in everything.hits(query)[:3]) for query in everything.query_ids}
    shallow = task_on(data, depth=10, cutoffs=[10], index=index)
    found = shallow.collect(replace(payload, excluded=first), system(name), Silent()).run
    assert found is not None
    for query in found.query_ids:
        left = [doc for doc, _ in everything.hits(query) if doc not in first[query]]
        got = [doc for doc, _ in found.hits(query)]
        assert len(got) == min(10, len(left))
        assert not first[query] & set(got)
        if name == "bm25":  # parts of a hybrid rank anew, and an index may choose others of a tie
            assert got == left[:10]


def test_weights_reach_the_fusion(data: Path) -> None:
    """All weight on one part: its ranking."""
    for weights, part in (("1,0", "hashing"), ("0,1", "bm25")):
        task = task_on(data)
        fused = collect(task, system("hybrid:hashing+bm25", args={"weights": weights})).run
        alone = collect(task, system(part)).run
        assert fused is not None
        assert alone is not None
        for query in alone.query_ids:
            hits = [doc for doc, _ in alone.hits(query)]
            assert [doc for doc, _ in fused.hits(query)][: len(hits)] == hits


def test_options_of_a_second_stage_reach_it(data: Path, tmp_path: Path) -> None:
    """A tie rule of one's own decides among equal scores, its depth bounds what is timed, and its work is counted."""
    save_tiny_cross_encoder(tmp_path / "reranker")
    lines = [json.loads(line) for line in (data / "corpus.jsonl").read_text(encoding="utf-8").splitlines()]
    for line in lines:
        line["text"] = "the backup"
    (data / "corpus.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    task = task_on(data, rerank={"model": "reranker", "depth": 4}, ties="doc_id_asc", latency=2)
    seen: list[int] = []
    real = rerankers.load

    def counted(*given: Any) -> Any:
        loaded = real(*given)
        score = loaded.score

        def noted(pairs: Any, **options: Any) -> Any:
            seen.append(len(pairs))
            return score(pairs, **options)

        object.__setattr__(loaded, "score", noted)
        return loaded

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rerankers, "load", counted)
        collected = collect(task.equipped(RuntimeOptions(), None, lambda: system("hashing")), system("hashing"))
    assert collected.run is not None
    assert [doc for doc, _ in collected.run.hits("q0")] == [f"d{number:02}" for number in range(60)]
    assert set(seen) == {8 * 4, 4, 2 * 4}  # all at once, one query, and both in one batch
    assert collected.counts["pairs_scored"] == 8  # each of the queries with one text: all documents are the same
    assert collected.work == collect(task_on(data), system("hashing")).work  # pairs are no texts of the encoder


def test_a_main_score_of_documents_needs_passages(data: Path) -> None:
    """Without them it would be the score of passages under another name; and no cut-off goes beyond the depth."""
    spec = replace(task_on(data).spec, main_score="document_ndcg_at_10")
    of_documents = retrieval.TASK.bind(spec, root=data.parent)
    payload = of_documents.load()
    with pytest.raises(DataError, match="needs passages of documents"):
        of_documents.metrics(payload)
    for name in ("ndcg_at_11", "document_ndcg_at_11"):
        with pytest.raises(ConfigError, match="depth 10 is less"):
            retrieval.TASK.bind(replace(task_on(data, depth=10).spec, main_score=name), root=data.parent)


def test_whole_documents_follow_the_options_and_leave_out_the_unanswerable(data: Path) -> None:
    """nDCG by document with gains 2^grade - 1 is another number; a judged query marked unanswerable has none."""
    lines = [json.loads(line) for line in (data / "corpus.jsonl").read_text(encoding="utf-8").splitlines()]
    for number, line in enumerate(lines):
        line["document"] = f"D{number // 4}"
    (data / "corpus.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    queries = [json.loads(line) for line in (data / "queries.jsonl").read_text(encoding="utf-8").splitlines()]
    queries[0]["answerable"] = False
    (data / "queries.jsonl").write_text("".join(json.dumps(line) + "\n" for line in queries), encoding="utf-8")
    linear, doubled = (collect(task_on(data, gains=gains), system("hashing")).records for gains in ("linear", "exp2"))
    name = "document_ndcg_at_10"
    assert np.isnan(linear.columns[name]).tolist() == linear.outside.tolist() == [False] * 6 + [True] * 2
    assert not np.array_equal(linear.columns[name][:6], doubled.columns[name][:6])


def test_a_stored_ranking_without_the_unanswerable_is_not_enough(data: Path) -> None:
    """Their top scores can't be made up: the task is to be run again."""
    task = task_on(data)
    payload = task.load()
    collected = collect(task, system("hashing"))
    run = collected.run
    assert run is not None
    older = Run.from_dict({query: dict(run.hits(query)) for query in run.query_ids if query != "q7"})
    assert task.remeasure(payload, older, collected.counts, ()) is None
    assert task.remeasure(payload, run, collected.counts, ()) is not None
