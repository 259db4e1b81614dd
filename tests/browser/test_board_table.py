"""The table of a board's page in a real browser: sorted, filtered, ranked anew, sent as an address."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from embeval.core.facts import ModelFacts
from embeval.core.result import Imported
from embeval.leaderboard import ranking
from embeval.leaderboard.render.html import html
from embeval.leaderboard.snapshot import Cell, GateOutcome, Measures, Retention, Snapshot
from tests.support import boards, browser

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page


def rich() -> Snapshot:
    """A board of twelve models with something of everything: gaps, published values, a refused column, costs."""
    made = boards.synthetic(12, 10, n_tested=6)
    columns = tuple(
        replace(column, refused="tokenisers differ") if place == 9 else column
        for place, column in enumerate(made.columns)
    )
    rng = np.random.default_rng(7)
    models = []
    for place, model in enumerate(made.models):
        cells: list[Cell | None] = list(model.cells)
        published = place == 10
        if place in (3, 11) and model.standing.letters is None:
            cells[4] = None
        if published:
            cells = [each and replace(each, low=None, high=None, n_items=0, imported=True) for each in cells]
        if place == 2:
            cells[0] = cells[0] and replace(cells[0], trained_on="declared")
        models.append(
            replace(
                model,
                cells=tuple(cells),
                prompts={"query": "query: ", "document": "passage: "} if place % 3 == 0 else {},
                imported=Imported(source="mteb", dataset_revision="1" * 40, mteb_version="2.26.0", settings={}) if published else None,
                facts=ModelFacts() if published else model.facts,
                spec=replace(model.spec, dtype="bfloat16" if place % 4 == 1 else "float32"),
                measures=Measures(
                    recall=float(rng.uniform(0.7, 0.95)),
                    latency_p95_ms=float(rng.uniform(3, 80)),
                    tokens_per_s=float(rng.uniform(2e3, 9e4)),
                    index_mib=float(rng.uniform(8, 1800)),
                    usd_per_million_tokens=float(rng.uniform(0.001, 0.2)),
                    machine="8 threads of an Epyc 7763",
                )
                if not published
                else Measures(),
                retention=Retention(quality=0.97, size=0.25, vectors=0.5, speed=2.4) if place > 1 else None,
                gate=GateOutcome(
                    outcome=("pass", "fail", "inconclusive", "error")[place % 4],
                    sentence="recall@10 is 0.012 below the model in use",
                ),
            )
        )
    return ranked(
        replace(
            made,
            title="Support search",
            description="Which model answers our customers' questions best, and what it costs.",
            columns=columns,
            models=tuple(models),
            reference=0,
            production=models[1].label,
        )
    )


def ranked(made: Snapshot) -> Snapshot:
    """The board with the standings that its cells make."""
    found = ranking.standings_of(values(made), made.columns, rules(made), made.tested, made.pairs)
    return replace(made, models=tuple(replace(m, standing=s) for m, s in zip(made.models, found, strict=True)))


def values(made: Snapshot) -> Any:
    """float64 [K, T]: the cells as the ranking takes them."""
    rows = [[np.nan if c is None or c.value is None else c.value for c in model.cells] for model in made.models]
    return np.array(rows, dtype=np.float64)


def rules(made: Snapshot) -> ranking.Rules:
    """How the board ranks."""
    return ranking.Rules(made.rank_by, made.gaps, made.level)
