"""Built boards for tests of what is made from them: small ones by hand, large ones by rule."""

from __future__ import annotations

import numpy as np

from embeval.core.facts import ModelFacts
from embeval.core.specs import ModelSpec
from embeval.leaderboard import ranking
from embeval.leaderboard.snapshot import Cell, Column, Model, Pairs, Snapshot
from embeval.stats.many import Spread

GROUPS = ("Retrieval", "STS", "Classification", "Clustering", "Reranking")


def synthetic(n_models: int, n_tasks: int, *, seed: int = 0, n_tested: int = 0, name: str = "model") -> Snapshot:
    """A board of so many models and tasks with made-up values, the first ``n_tested`` of them tested."""
    rng = np.random.default_rng(seed)
    skill = rng.normal(0.6, 0.08, n_models)
    values = np.clip(skill[:, None] + rng.normal(0.0, 0.05, (n_models, n_tasks)), 0.0, 1.0).round(5)
    columns = [
        Column(
            task=f"Task{place:02d}",
            heading=f"Task{place:02d}",
            type=GROUPS[place % len(GROUPS)],
            group=GROUPS[place % len(GROUPS)],
            split="test",
            subset="all",
            metric="ndcg_at_10" if place % len(GROUPS) == 0 else "cosine_spearman",
            metric_version=1,
            protocol=f"{place:08x}",
            higher_is_better=True,
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
