"""A small board with everything that pictures, details and comparisons show."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from embeval.core.facts import ModelFacts
from embeval.core.result import Imported
from embeval.core.specs import ModelSpec
from embeval.leaderboard import ranking
from embeval.leaderboard.snapshot import (
    Cell,
    Column,
    GateOutcome,
    Item,
    ItemList,
    Measures,
    Model,
    Pairs,
    Point,
    Retention,
    Snapshot,
    Standing,
)
from embeval.stats.many import Spread
from tests.support import boards

TASKS = (
    ("ArguAna", "Retrieval", "ndcg_at_10"),
    ("NFCorpus", "Retrieval", "ndcg_at_10"),
    ("SciFact", "Retrieval", "ndcg_at_10"),
    ("STS12", "STS", "cosine_spearman"),
    ("STSBenchmark", "STS", "cosine_spearman"),
    ("Banking77", "Classification", "accuracy"),
    ("Emotion", "Classification", "accuracy"),
    ("TwentyNewsgroups", "Clustering", "v_measure"),
)
MODELS = (
    # label, skill, parameters, dimensions, MiB of weights, tokens per second, p95 in ms
    ("large", 0.700, 335_000_000, 1024, 1278.0, 3_900.0, 61.0),
    ("base", 0.684, 109_000_000, 768, 415.0, 12_400.0, 22.0),
    ("all-MiniLM-L6-v2", 0.660, 22_700_000, 384, 86.6, 61_000.0, 6.1),
    ("all-MiniLM-L6-v2 (bfloat16)", 0.6595, 22_700_000, 384, 43.3, 98_000.0, 4.4),
    ("all-MiniLM-L6-v2 (int8)", 0.652, 22_700_000, 384, 22.9, 142_000.0, 3.0),
    ("all-MiniLM-L6-v2 (128d)", 0.630, 22_700_000, 128, 86.6, 60_500.0, 6.0),
    ("hashing", 0.380, 0, 512, 0.0, 1_900_000.0, 0.2),
)
GAINS = np.array([0.02, -0.25, 0.06, 0.08, 0.16, 0.10, -0.14, -0.12])
"""How hard each task is."""
ERROR = 0.004
"""Standard error of a difference of two models on one task."""
FREEDOM = 499.0


def values() -> np.ndarray:
    """float64 [7, 8]: the values, the same each time."""
    rng = np.random.default_rng(7)
    skills = np.array([each[1] for each in MODELS])
    return np.asarray((skills[:, None] + GAINS + rng.normal(0.0, 0.012, (len(MODELS), len(TASKS)))).round(4))


def columns() -> tuple[Column, ...]:
    """The tasks."""
    return tuple(
        boards.column(task, group, metric, protocol=f"{place:08x}", n_items=500)
        for place, (task, group, metric) in enumerate(TASKS)
    )


def pairs(k: int) -> tuple[Pairs, ...]:
    """Every difference of two models on a task is known to the same error."""
    square = np.full((k, k), ERROR**2) - ERROR**2 * np.eye(k)
    unlike = np.full((k, k), 400) - 400 * np.eye(k, dtype=np.int64)
    return tuple(ranking.pairs_of(Spread(square, unlike, FREEDOM)) for _ in TASKS)


def rich() -> Snapshot:
    """Seven models with items, and one published with a gap."""
    found = values()
    tested = list(range(len(MODELS)))
    published = np.append(found[1] + 0.005, [])
    published[6] = np.nan
    rules = ranking.Rules("mean_task", "exclude", 0.95)
    every = np.vstack([found, published])
    standings = ranking.standings_of(every, columns(), rules, tested, pairs(len(MODELS)))
    order = sorted(range(len(every)), key=lambda row: (standings[row].rank or 99, row))
    made = [
        _published(published, standings[row]) if row == len(MODELS) else _model(row, standings[row]) for row in order
    ]
    reference = next(place for place, model in enumerate(made) if model.label == "all-MiniLM-L6-v2")
    return Snapshot(
        title="MiniLM and others",
        description="Forms of one small model beside larger ones.",
        columns=columns(),
        models=tuple(made),
        tested=tuple(order.index(row) for row in tested),
        pairs=pairs(len(MODELS)),
        reference=reference,
        production="all-MiniLM-L6-v2",
        history=_history(),
        date="2026-11-01T00:00:00+00:00",
    )


def _model(row: int, standing: Standing) -> Model:
    label, _, parameters, dimensions, mib, speed, latency = MODELS[row]
    own, base = values()[row], values()[2]
    is_reference = label == "all-MiniLM-L6-v2"
    return Model(
        label=label,
        spec=ModelSpec(
            name=f"org/{label.split(' ')[0]}",
            revision=f"sha256:{row:064x}",
            dtype="bfloat16" if "bfloat16" in label else "int8" if "int8" in label else "float32",
            truncate_dim=128 if "128d" in label else None,
        ),
        digest=f"{row:08x}",
        prompts={"query": "query: ", "document": "passage: "} if label in ("large", "base") else {},
        facts=ModelFacts(
            parameters=parameters,
            dimensions=dimensions,
            max_tokens=None if label == "hashing" else 512,
            weight_bytes=int(mib * 2**20),
            languages=("eng",),
            license="apache-2.0",
        ),
        date=f"2026-1{row % 2}-01T00:00:00+00:00",
        cells=tuple(
            Cell(
                value=float(value),
                low=float(value) - 0.021,
                high=float(value) + 0.019,
                n_items=500,
                trained_on="declared" if label == "large" and place == 2 else None,
                result=f"{row}{place}ab12cd",
            )
            for place, value in enumerate(own)
        ),
        standing=standing,
        measures=Measures(
            recall=round(float(own[:3].mean()) + 0.2, 4),
            latency_p95_ms=latency,
            tokens_per_s=speed,
            index_mib=dimensions * 4 * 10_000 / 2**20,
            usd_per_million_tokens=round(0.5 / (speed * 3600) * 1e6, 5),
            machine="Xeon, cpu, 2 threads",
        ),
        retention=None
        if is_reference
        else Retention(
            quality=float(own.mean() / base.mean()), size=mib / 86.6, vectors=dimensions / 384, speed=speed / 61_000.0
        ),
        gate=GateOutcome(
            outcome="fail" if label == "hashing" else "pass" if row < 4 else "inconclusive",
            sentence="NFCorpus/ndcg_at_10 is worse by more than 0.01." if label == "hashing" else "Nothing blocks.",
        ),
        items=() if is_reference else (_items(),),
    )


def _items() -> ItemList:
    return ItemList(
        column=1,
        n_lost=12,
        n_gained=1,
        lost=(Item(id="PLAIN-2", reference=1.0, value=0.3869, text="Do statins cause <b>breast</b> cancer?"),),
        gained=(Item(id="PLAIN-7", reference=0.0, value=0.6309, text=None),),
    )


def _published(own: np.ndarray, standing: Standing) -> Model:
    cells = tuple(None if np.isnan(each) else Cell(value=round(float(each), 4), imported=True) for each in own)
    return Model(
        label="published-base",
        spec=ModelSpec(name="org/published-base", backend="imported", revision="abcdef12"),
        digest="000000ff",
        facts=ModelFacts(parameters=109_000_000, dimensions=768),
        imported=Imported(
            source="org__published-base/SciFact.json",
            mteb_version="1.34.0",
            dataset_revision="0228b52",
            evaluation_time=12.5,
            settings={"max_tokens": 512},
        ),
        cells=cells,
        standing=replace(standing, untested="imported: no items"),
    )


def _history() -> tuple[Point, ...]:
    base = values()[2]
    return tuple(
        Point(
            model="all-MiniLM-L6-v2",
            label="all-MiniLM-L6-v2" if month == 9 else f"all-MiniLM-L6-v2 @ v{month}",
            revision=f"sha256:{month}{'0' * 63}",
            date=f"2026-0{month}-15T08:00:00+00:00",
            values=tuple(float(value) + 0.01 * (month - 9) for value in base),
            mean=float(base.mean()) + 0.01 * (month - 9),
        )
        for month in (3, 5, 9)
    )
