"""The table of a board's page in a real browser: sorted, filtered, ranked anew, sent as an address."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from embeval.core import border
from embeval.core.facts import ModelFacts
from embeval.core.result import Imported
from embeval.leaderboard import ranking
from embeval.leaderboard.render.html import html
from embeval.leaderboard.snapshot import Cell, GateOutcome, Measures, Retention, Snapshot, Standing
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


pytestmark = pytest.mark.skipif(browser.CHROMIUM is None, reason="no chromium on this machine")


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """One browser for all tests."""
    with browser.started() as started:
        yield started


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of the board with something of everything."""
    return written(rich(), tmp_path_factory)


def written(made: Snapshot, folders: pytest.TempPathFactory) -> Path:
    """The page of a board, in a file."""
    path = folders.mktemp("board") / "index.html"
    path.write_text(html(made), encoding="utf-8")
    return path


def ready(page: Page) -> Page:
    """The page once its table stands."""
    page.wait_for_selector("html[data-ready]", state="attached")
    return page


def names(page: Page) -> list[str]:
    """Models in the order of the table."""
    return page.locator("#board tbody .model-name").all_inner_texts()


def cells(page: Page, key: str) -> list[str]:
    """The texts of a column, from top to bottom."""
    place = page.locator("#board thead th[data-key]").evaluate_all(
        "(all, key) => all.findIndex((each) => each.dataset.key === key)", key
    )
    return page.locator(f"#board tbody td:nth-child({place + 1})").all_inner_texts()


def sort(page: Page, key: str) -> None:
    """A click on the heading of a column."""
    page.locator(f'#board thead th[data-key="{key}"]').click()


VARIANTS: dict[str, dict[int, dict[str, Any]]] = {
    "as they are": {},
    "two ways": {3: {"higher_is_better": False}},
    "all less": {place: {"higher_is_better": False} for place in range(10)},
    "weights": {1: {"weight": 2.5}, 6: {"weight": 0.2}},
    "two metrics of a task": {6: {"task": "Task01", "split": "test"}},
}


def tied(made: Snapshot) -> Snapshot:
    """The board with values of one digit, of which many are equal."""
    return replace(
        made,
        models=tuple(
            replace(
                model,
                cells=tuple(c and replace(c, value=None if c.value is None else round(c.value, 1)) for c in model.cells),
            )
            for model in made.models
        ),
    )


@pytest.fixture(scope="module")
def rich_page(chromium: Browser, file: Path) -> Iterator[Page]:
    """A page whose board a test may exchange."""
    with browser.opened(chromium, file) as opened:
        yield ready(opened.page)


@pytest.mark.parametrize("gaps", ["exclude", "rank"])
@pytest.mark.parametrize("rank_by", ["mean_task", "mean_type", "borda"])
@pytest.mark.parametrize("variant", VARIANTS)
def test_the_page_ranks_as_python_does(variant: str, rank_by: Any, gaps: str, rich_page: Page) -> None:
    """Random choices of tasks, with gaps, ties, weights, groups and directions: each standing is Python's to 1e-9."""
    rng = np.random.default_rng(3)
    changed = VARIANTS[variant]
    for first in (rich(), tied(rich())):
        made = replace(first, rank_by=rank_by, gaps=gaps)
        columns = tuple(replace(column, **changed.get(place, {})) for place, column in enumerate(made.columns))
        made = ranked(replace(made, columns=columns))
        known, reasons = values(made), {place: m.standing.untested for place, m in enumerate(made.models)}
        given = {place: reason for place, reason in reasons.items() if reason is not None}
        rich_page.evaluate("(given) => { Object.assign(board, given); }", border.dump(made))
        for n in (1, 4, 9):
            chosen = sorted(int(each) for each in rng.choice(len(columns), n, replace=False))
            own = [columns[place] for place in chosen]
            pairs = [made.pairs[place] for place in chosen]
            expected = ranking.standings_of(known[:, chosen], own, rules(made), made.tested, pairs, given)
            same(rich_page.evaluate("standingsOf", chosen), expected)


def same(found: list[dict[str, Any]], expected: list[Standing]) -> None:
    """Means to 1e-9; everything else as it is."""
    for seen, wanted in zip(found, expected, strict=True):
        assert seen["groups"] == pytest.approx(dict(wanted.groups), abs=1e-9)
        for name in ("mean_task", "mean_type"):
            assert seen[name] == pytest.approx(getattr(wanted, name), abs=1e-9)
        for name in ("rank", "rank_low", "rank_high", "letters", "borda", "gaps", "untested"):
            assert seen[name] == getattr(wanted, name), name


def test_many_models_are_ranked_as_python_does(chromium: Browser, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Fifty models tested of a hundred, many of them close: letters and intervals are Python's."""
    made = boards.synthetic(100, 8, n_tested=50, seed=5)
    with browser.opened(chromium, written(made, tmp_path_factory)) as opened:
        page = ready(opened.page)
        for chosen in ([0, 3, 5], [2], list(range(8))):
            own = [made.columns[place] for place in chosen]
            pairs = [made.pairs[place] for place in chosen]
            expected = ranking.standings_of(values(made)[:, chosen], own, rules(made), made.tested, pairs)
            same(page.evaluate("standingsOf", chosen), expected)
