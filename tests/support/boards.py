"""Built boards for tests of what is made from them: small ones by hand, large ones by rule."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from embeval.core import border, provenance, strict_json
from embeval.core.facts import ModelFacts
from embeval.core.result import MetricValue, Result, Timings
from embeval.core.signature import Signature
from embeval.core.specs import DatasetRef, ModelSpec, StatisticsOptions, TaskSpec
from embeval.leaderboard import ranking
from embeval.leaderboard.snapshot import Cell, Column, Model, Pairs, Snapshot
from embeval.stats.many import Spread
from embeval.store.results import ResultStore

GROUPS = ("Retrieval", "STS", "Classification", "Clustering", "Reranking")
METRICS = {
    "Retrieval": ("ndcg_at_10", *(f"{name}_at_{k}" for name in ("map", "mrr", "recall") for k in (1, 5, 10, 100))),
    "STS": ("cosine_spearman", "cosine_pearson", "dot_spearman", "euclidean_spearman", "manhattan_spearman"),
}
"""Metrics of a made-up result by its kind, the main one first; other kinds have those of STS."""
PLACE = re.compile(r'"@(\d)"')
"""Where a number is put into the text of a made-up result."""
AROUND = (0.0, -0.02, 0.02)
"""What is added for the value of a score and the ends of its interval."""


def column(task: str, group: str = "STS", metric: str = "cosine_spearman", **fields: object) -> Column:
    """A task by a metric of which more is better, from 100 items."""
    given = {"n_items": 100, "protocol": "0" * 8, "higher_is_better": True, **fields}
    return Column(
        task=task, heading=task, type=group, group=group, split="test", subset="all", metric=metric,
        metric_version=1, **given,  # type: ignore[arg-type]
    )  # fmt: skip


def synthetic(n_models: int, n_tasks: int, *, seed: int = 0, n_tested: int = 0, name: str = "model") -> Snapshot:
    """A board of so many models and tasks with made-up values, the first ``n_tested`` of them tested."""
    rng = np.random.default_rng(seed)
    skill = rng.normal(0.6, 0.08, n_models)
    values = np.clip(skill[:, None] + rng.normal(0.0, 0.05, (n_models, n_tasks)), 0.0, 1.0).round(5)
    columns = [
        column(
            f"Task{place:02d}",
            GROUPS[place % len(GROUPS)],
            "ndcg_at_10" if place % len(GROUPS) == 0 else "cosine_spearman",
            protocol=f"{place:08x}",
            n_items=500,
        )
        for place in range(n_tasks)
    ]
    tested = list(range(n_tested))
    pairs = [_pairs(n_tested, rng) for _ in columns] if n_tested else []
    rules = ranking.Rules("mean_task", "exclude", 0.95)
    standings = ranking.standings_of(values, columns, rules, tested, pairs)
    order = sorted(range(n_models), key=lambda row: (standings[row].rank or 0, row))
    place_of = {row: place for place, row in enumerate(order)}
    models = [
        Model(
            label=f"{name}-{row:04d}",
            spec=ModelSpec(name=f"org/{name}-{row:04d}", revision=f"sha256:{row:064x}"),
            digest=f"{row:08x}",
            facts=ModelFacts(
                parameters=int(10 ** rng.uniform(6.5, 9.9)),
                dimensions=int(rng.choice([256, 384, 768, 1024])),
                max_tokens=512,
                weight_bytes=int(10 ** rng.uniform(7, 10)),
                languages=("eng",) if row % 2 else ("eng", "deu"),
                license=("mit", "apache-2.0", "cc-by-nc-4.0")[row % 3],
            ),
            date=f"2026-{row % 12 + 1:02d}-01T00:00:00+00:00",
            cells=tuple(
                Cell(value=float(value), low=float(value) - 0.02, high=float(value) + 0.02, n_items=500)
                for value in values[row]
            ),
            standing=standings[row],
        )
        for row in order
    ]
    return Snapshot(
        title=f"{n_models} models, {n_tasks} tasks",
        columns=tuple(columns),
        models=tuple(models),
        tested=tuple(place_of[row] for row in tested),
        pairs=tuple(pairs),
    )


def _pairs(k: int, rng: np.random.Generator) -> Pairs:
    lower = rng.uniform(1e-5, 4e-4, (k, k))
    square = np.tril(lower, -1) + np.tril(lower, -1).T
    return ranking.pairs_of(Spread(square, np.full((k, k), 400) - 400 * np.eye(k, dtype=np.int64), 499.0))


def synthetic_store(folder: Path, n_models: int, n_tasks: int, *, seed: int = 0) -> ResultStore:
    """A folder of results of so many models and tasks with made-up values and without items, 5 kB each.

    Written as text, since 60,000 of them are wanted in seconds.
    """
    rng = np.random.default_rng(seed)
    store = ResultStore(folder)
    origin = provenance.collect(device="cpu", num_threads=8, batch_tokens=4096)
    skill = np.clip(rng.normal(0.6, 0.08, n_models), 0.1, 0.9)
    for number in range(n_tasks):
        made = [_result(n_tasks, number, origin, spec) for spec in map(_spec, range(n_models))]
        pieces = PLACE.split(_text(made[0]))
        model = strict_json.dumps({"model": border.dump(made[0].model)})[2:-3]
        values = np.clip(skill[:, None] + rng.normal(0.0, 0.05, (n_models, len(made[0].scores))), 0.02, 0.98)
        for result, numbers in zip(made, values.tolist(), strict=True):
            filled = list(pieces)
            for place, digit in enumerate(pieces[1::2]):
                filled[2 * place + 1] = repr(numbers[place // len(AROUND)] + AROUND[int(digit)])
            text = "".join(filled).replace(model, strict_json.dumps({"model": border.dump(result.model)})[2:-3])
            text = text.replace(made[0].signature.model_digest, result.signature.model_digest)
            path = store.path(result)
            path.parent.mkdir(parents=True)
            path.write_text(text, encoding="utf-8")
    return store


def _spec(row: int) -> ModelSpec:
    return ModelSpec(name=f"org/model-{row:04d}", revision=f"sha256:{row:064x}", normalize=bool(row % 2))


def _result(n_tasks: int, number: int, origin: provenance.Provenance, spec: ModelSpec) -> Result:
    kind, name = GROUPS[number % len(GROUPS)], f"Task{number:0{len(str(n_tasks))}d}"
    found = METRICS.get(kind, METRICS["STS"])
    return Result(
        status="ok",
        task=TaskSpec(name=name, type="sts", dataset=DatasetRef(path=name), category=kind, languages=("eng",)),
        model=spec,
        split="test",
        subset="all",
        scores={each: MetricValue(value=0.5, ci_low=0.4, ci_high=0.6, n_items=500, interval="bca") for each in found},
        main_score=found[0],
        statistics=StatisticsOptions(),
        counts={"queries_scored": 500, "documents": 10_000},
        signature=Signature(
            protocol={"task": name, "data": f"hash of {name}", "split": "test", "options": {"depth": 1000}},
            metrics=dict.fromkeys(found, 1),
            model_digest=spec.digest,
            prompts={"query": "query: "},
        ),
        provenance=origin,
        timings=Timings(
            started_at="2026-01-01T00:00:00+00:00",
            wall_s=12.5,
            cpu_s=90.25,
            phases={"encode": 10.5, "load_data": 0.5, "score": 0.25, "search": 1.25},
            texts_encoded=10_500,
            texts_per_s=1000.5,
            tokens_per_s=150_000.5,
        ),
        trained_on="not_declared",
        facts=ModelFacts(parameters=22_713_216, dimensions=384, max_tokens=256, languages=("eng",), license="mit"),
    )


def _text(result: Result) -> str:
    """Its file, with places for its numbers."""
    value = border.dump(result)
    for score in value["scores"].values():
        score.update(value="@0", ci_low="@1", ci_high="@2")
    return strict_json.dumps(value)
