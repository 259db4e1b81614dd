"""The table of a board's page in a real browser: sorted, filtered, ranked anew, sent as an address."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from embeval.core import border, figures
from embeval.core.facts import ModelFacts
from embeval.core.result import Imported
from embeval.leaderboard import ranking
from embeval.leaderboard.render.html import html, packed
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
                imported=Imported(source="mteb", dataset_revision="1" * 40, mteb_version="2.26.0", settings={})
                if published
                else None,
                facts=ModelFacts() if published else model.facts,
                spec=replace(
                    model.spec,
                    dtype="bfloat16" if place % 4 == 1 else "float32",
                    backend="onnx" if place % 4 == 2 else model.spec.backend,
                ),
                measures=Measures(
                    recall=float(rng.uniform(0.7, 0.95)),
                    latency_p95_ms=float(rng.uniform(3, 80)),
                    tokens_per_s=float(rng.uniform(2e3, 9e4)),
                    index_mib=float(rng.uniform(8, 1800)),
                    usd_per_million_tokens=float(rng.uniform(0.001, 0.2)),
                    machine="8 threads of an Epyc 7763",
                    vector_bytes=1536,
                    elsewhere=place == 4,
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
    """A click on the heading of a column, and the table drawn anew."""
    page.evaluate(
        """(key) => new Promise((done) => {
            table.shown.one("draw", () => setTimeout(done));
            [...document.querySelectorAll("#board thead th")].find((each) => each.dataset.key === key).click();
        })""",
        key,
    )


SORTED = """async (key) => {
    const at = table.columns.findIndex((each) => each.key === key);
    const heading = [...document.querySelectorAll("#board thead th")].find((each) => each.dataset.key === key);
    const found = [];
    for (let time = 0; time < 2; time += 1) {
        const drawn = new Promise((done) => table.shown.one("draw", () => setTimeout(done)));
        heading.click();
        await drawn;
        found.push([heading.ariaSort, page.visible.map((place) => table.columns[at].value(place))]);
    }
    return found;
}"""
"""Clicks a heading twice: [way, values from top to bottom] each time."""


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
                cells=tuple(
                    c and replace(c, value=None if c.value is None else round(c.value, 1)) for c in model.cells
                ),
            )
            for model in made.models
        ),
    )


@pytest.fixture(scope="module")
def rich_page(chromium: Browser, file: Path) -> Iterator[Page]:
    """A page whose board a test may exchange."""
    with browser.opened(chromium, file) as opened:
        yield ready(opened.page)


EXCHANGE = """
({ given, values }) => {
  board.pairs; // what was read once can be exchanged
  Object.assign(board, given);
  VALUES.splice(0, VALUES.length, ...values);
}
"""


@pytest.mark.parametrize("gaps", ["exclude", "rank"])
@pytest.mark.parametrize("rank_by", ["mean_task", "mean_type", "borda"])
@pytest.mark.parametrize("variant", VARIANTS)
def test_the_page_ranks_as_python_does(variant: str, rank_by: Any, gaps: Any, rich_page: Page) -> None:
    """Random choices of tasks, with gaps, ties, weights, groups and directions: each standing is Python's to 1e-9."""
    rng = np.random.default_rng(3)
    changed = VARIANTS[variant]
    for first in (rich(), tied(rich())):
        made = replace(first, rank_by=rank_by, gaps=gaps)
        columns = tuple(replace(column, **changed.get(place, {})) for place, column in enumerate(made.columns))
        made = ranked(replace(made, columns=columns))
        known, reasons = values(made), {place: m.standing.untested for place, m in enumerate(made.models)}
        given = {place: reason for place, reason in reasons.items() if reason is not None}
        rich_page.evaluate(EXCHANGE, {"given": border.dump(made), "values": packed(made)["values"]})
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


def test_the_page_writes_numbers_as_other_forms_do(rich_page: Page) -> None:
    """Scores, differences, shares and three digits as Python writes them, those too that lie between two roundings."""
    rng = np.random.default_rng(11)
    between = [odd / 2**power for power in range(1, 8) for odd in (1, 3, 5, 9, 27, 451, 12345)]
    sizes = [10.0**power * float(each) for power in range(-7, 9) for each in rng.uniform(1, 10, 3)]
    plain = [0.0, 1.0, 0.5, 100.0, 384.0, 99.99999, 12345.6, 0.00005, 0.000049, 2.1e-6, 999_999.995, 3.5e9]
    known = [*between, *sizes, *plain]
    every = [*known, *(-each for each in known if each)]
    for name, written in (
        ("score", figures.figure),
        ("signed", lambda value: figures.signed(value).replace("-", "−", int(value < 0))),
        ("percent", lambda value: f"{value * 100:.1f} %"),
    ):
        found = rich_page.evaluate(f"(values) => values.map({name})", every)
        assert dict(zip(every, found, strict=True)) == {each: written(each) for each in every}
    found = rich_page.evaluate("(values) => values.map(digits)", known)
    assert [float(each.replace(",", "")) for each in found] == [
        round(each) if each >= 100 else float(f"{each:.3g}") for each in known
    ]


def test_what_is_kept_is_of_the_tasks_chosen(chromium: Browser, file: Path) -> None:
    """The share of the reference's mean, as ``retention`` has it; of less that is better the other way round."""
    made = rich()
    assert made.reference is not None
    with browser.opened(chromium, file) as opened:
        page = ready(opened.page)
        for chosen in ([0, 3, 5], list(range(10))):
            page.evaluate("choose", chosen)
            own = [place for place in chosen if made.columns[place].refused is None]
            means = values(made)[:, own].mean(axis=1)
            shares = means / means[made.reference]
            expected = [None if np.isnan(each) else pytest.approx(each, abs=1e-12) for each in shares]
            assert page.evaluate("board.models.map((_, place) => keptQuality(place))") == expected
            shown = [f"{100 * shares[[m.label for m in made.models].index(name)]:.1f} %" for name in names(page)]
            assert cells(page, "kept") == [each.replace("nan %", "—") for each in shown]
        loss = "{ higher_is_better: false, metric: 'loss' }"
        page.evaluate(f"board.columns.forEach((column) => Object.assign(column, {loss})); choose([0, 3, 5])")
        means = values(made)[:, [0, 3, 5]].mean(axis=1)
        assert page.evaluate("keptQuality(3)") == pytest.approx(means[made.reference] / means[3], abs=1e-12)


def test_every_column_sorts_with_gaps_last(chromium: Browser, file: Path) -> None:
    """Numbers as numbers, both ways, in every set of columns; what is missing comes last both times."""
    with browser.opened(chromium, file) as opened:
        page = ready(opened.page)
        assert names(page)[:2] == [model.label for model in rich().models if model.standing.rank in (1, 2)]
        for view in ("overview", "tasks", "costs"):
            page.locator(f"[name=view][value={view}]").check(force=True)
            for key in page.evaluate("table.columns.filter((each) => each.kind === 'number').map((each) => each.key)"):
                found = page.evaluate(SORTED, key)
                assert {way for way, _ in found} == {"ascending", "descending"}
                for way, shown in found:
                    known = [each for each in shown if each is not None]
                    assert known == sorted(known, reverse=way == "descending"), key
                    assert shown[len(known) :] == [None] * (len(shown) - len(known)), key
        assert opened.messages == []
        assert opened.requests == []


def test_the_table_sorts_by_keyboard(chromium: Browser, file: Path) -> None:
    """A heading is a button: Enter sorts by it, and what hears the page is told which way."""
    with browser.opened(chromium, file) as opened:
        page = ready(opened.page)
        page.locator('#board thead th[data-key="mean_type"] [role=button]').focus()
        page.keyboard.press("Enter")
        page.wait_for_selector('#board thead th[data-key="mean_type"][aria-sort="descending"]')
        assert page.locator("#board thead th[aria-sort]").get_attribute("data-key") == "mean_type"
        shown = [float(each) for each in cells(page, "mean_type") if each != "—"]
        assert shown == sorted(shown, reverse=True)
        assert len(shown) == 11


def test_search_and_filters(chromium: Browser, file: Path) -> None:
    """Each narrows the models, together as well as alone; ranks stay; all of it can be undone."""
    made = rich()
    with browser.opened(chromium, file) as opened:
        page = ready(opened.page)
        page.fill("#search", "MODEL-000 mit")
        assert set(names(page)) == {m.label for m in made.models if "000" in m.label and m.facts.license == "mit"}
        assert page.inner_text("#shown") == "4 of 12 models; ranks are among all"
        page.fill("#search", "")
        page.click("#filters summary")
        for name, value, kept in (
            ("licence", "apache-2.0", lambda m: m.facts.license == "apache-2.0"),
            ("language", "deu", lambda m: "deu" in m.facts.languages),
            ("backend", "onnx", lambda m: m.spec.backend == "onnx"),
            ("precision", "bfloat16", lambda m: m.spec.dtype == "bfloat16"),
        ):
            page.select_option(f"#filters [name={name}]", value)
            assert 0 < len(names(page)) < 12
            assert set(names(page)) == {m.label for m in made.models if kept(m)}
            page.select_option(f"#filters [name={name}]", "")
        page.fill("#filters [name=to]", "100")
        small = {m.label for m in made.models if (m.facts.parameters or 1e12) <= 100e6}
        assert set(names(page)) == small
        page.check("#filters [name=items]")
        assert set(names(page)) == {m.label for m in made.models if m.label in small and m.standing.letters is not None}
        page.click("#clear-filters")
        assert len(names(page)) == 12
        page.check("#filters [name=own]")
        assert set(names(page)) == {m.label for m in made.models if m.imported is None}
        page.fill("#search", "no such model")
        assert page.inner_text("#board tbody") == "No model fits these filters."
        assert opened.messages == []


def test_ranks_of_the_tasks_chosen(chromium: Browser, file: Path) -> None:
    """Tasks and groups left out: table, note and ranks say so, and all come back as they were."""
    made = rich()
    with browser.opened(chromium, file) as opened:
        page = ready(opened.page)
        before = page.inner_text("#board")
        page.click("#choosing summary")
        for group in ("Retrieval", "STS", "Classification"):
            page.uncheck(f'[data-group="{group}"]')
        note = page.inner_text("#ranks-note")
        assert note.startswith("Ranks, means and intervals are of 4 of 10 tasks. Of the 6 models tested, ")
        assert not page.is_visible("#answer")  # it is of all tasks
        chosen = [place for place, column in enumerate(made.columns) if column.group in ("Clustering", "Reranking")]
        columns, pairs = [made.columns[place] for place in chosen], [made.pairs[place] for place in chosen]
        expected = ranking.standings_of(values(made)[:, chosen], columns, rules(made), made.tested, pairs)
        wanted = {model.label: standing for model, standing in zip(made.models, expected, strict=True)}
        leaders = [name for name, standing in wanted.items() if standing.rank_low == 1]
        assert note.endswith(f"tested, {' and '.join(leaders)} may each be the best.")
        for rank, name in zip(cells(page, "rank"), names(page), strict=True):
            standing = wanted[name]
            interval = [] if standing.rank_low is None else [f"{standing.rank_low}–{standing.rank_high}"]
            assert rank.split() == [str(standing.rank or "—"), *interval]
        assert [wanted[name].rank for name in names(page)[:-1]] == sorted(each.rank for each in expected if each.rank)
        assert "task=Task03" in page.url
        page.locator("[name=view][value=tasks]").check(force=True)
        assert [each.split(" ")[0] for each in page.locator("#board thead th.named").all_inner_texts()] == [
            "Clustering",
            "Reranking",
        ]
        page.locator("[name=view][value=overview]").check(force=True)
        page.click("#choose-none")
        assert page.inner_text("#ranks-note") == "No task is chosen, so nothing is ranked."
        assert {each.strip() for each in cells(page, "rank")} == {"—"}
        page.click("#reset-ranks")
        assert page.inner_text("#board") == before
        assert not page.is_visible("#ranks")
        assert "task=" not in page.url
        assert opened.messages == []


def test_what_is_chosen_can_be_sent(chromium: Browser, file: Path) -> None:
    """The address holds view, order, search, filters, tasks and picks: opened anew it shows the same."""
    with browser.opened(chromium, file) as opened:
        page = ready(opened.page)
        page.locator("[name=view][value=tasks]").check(force=True)
        sort(page, "task.Task03")
        page.fill("#search", "model-00")
        page.click("#filters summary")
        page.select_option("[name=licence]", "mit")
        page.click("#choosing summary")
        page.uncheck("[data-column='5']")
        page.check("[data-pick] >> nth=1")
        table, address, picked = page.inner_text("#board"), page.url, page.inner_text("#picked")
        page.goto("about:blank")
        page.goto(address)
        ready(page)
        assert page.inner_text("#board") == table
        assert page.inner_text("#picked") == picked
        assert page.input_value("#search") == "model-00"
        assert opened.messages == []


@pytest.mark.parametrize(
    "fragment",
    [
        "%E0%A4%A&q=%", "view=__proto__&sort=constructor:asc", "sort=nothing:desc&task=nothing&without=nothing",
        "from=-1&to=x&licence=%00&pick=nobody&pick=model-0000", "=&&&=#?", "task=-&view=tasks",
    ],
)  # fmt: skip
def test_no_address_breaks_the_page(fragment: str, chromium: Browser, file: Path) -> None:
    """What can't be understood changes nothing."""
    with browser.opened(chromium, file) as opened:
        page = opened.page
        page.goto("about:blank")
        page.goto(f"{file.as_uri()}#{fragment}")
        ready(page)
        assert len(names(page)) == (12 if "q=" not in fragment else 0)
        assert opened.messages == []


def test_two_are_picked(chromium: Browser, file: Path) -> None:
    """The third takes the place of the first; what is picked stays picked in other views."""
    with browser.opened(chromium, file) as opened:
        page = ready(opened.page)
        shown = names(page)
        for place in (0, 1, 2):
            page.locator("[data-pick]").nth(place).check()
        assert page.inner_text("#picked-words") == f"Picked: {shown[1]} and {shown[2]}"
        page.locator("[name=view][value=about]").check(force=True)
        assert page.locator("[data-pick]:checked").count() == 2
        assert page.evaluate("page.picked.map((place) => board.models[place].label)") == shown[1:3]
        page.click("#clear-picked")
        assert page.locator("[data-pick]:checked").count() == 0
        assert not page.is_visible("#picked")


def test_light_and_dark(chromium: Browser, file: Path) -> None:
    """As the system has it, until somebody chooses; the choice is there when the page is opened again."""
    ground = "getComputedStyle(document.body).backgroundColor"
    light, dark = "rgb(255, 255, 255)", "rgb(18, 21, 25)"
    with browser.opened(chromium, file, color_scheme="dark") as opened:
        page = ready(opened.page)
        assert page.evaluate(ground) == dark
        page.click("#theme")
        assert page.inner_text("#theme") == "Theme: light"
        assert page.evaluate(ground) == light
        page.reload()
        ready(page)
        assert page.evaluate(ground) == light
        page.click("#theme")
        assert page.evaluate(ground) == dark
        page.emulate_media(color_scheme="light")
        assert page.evaluate(ground) == dark
        page.emulate_media(media="print")
        assert page.evaluate(ground) == light
        assert opened.messages == []


def test_a_phone_shows_it(chromium: Browser, file: Path) -> None:
    """390 pixels: the page is no wider, the table scrolls in itself with names in sight."""
    with browser.opened(chromium, file, width=390) as opened:
        page = ready(opened.page)
        for view in ("overview", "tasks", "costs", "about"):
            page.locator(f"[name=view][value={view}]").check(force=True)
            assert page.evaluate("document.documentElement.scrollWidth") == 390
            page.evaluate("document.querySelector('.dt-layout-table').scrollLeft = 300")
            box = page.locator("#board tbody td.model").first.bounding_box()
            assert box is not None
            assert 0 <= box["x"] <= 30


def test_without_scripts_there_is_a_table(chromium: Browser, tmp_path_factory: pytest.TempPathFactory) -> None:
    """All models of a large board, with ranks and means; nothing to press that would do nothing."""
    made = boards.synthetic(70, 3, n_tested=4)
    with browser.opened(chromium, written(made, tmp_path_factory), java_script_enabled=False) as opened:
        rows = opened.page.locator("table.plain tbody tr")
        assert rows.count() == 70
        first, last = rows.first.inner_text().split("\t"), rows.last.inner_text().split("\t")
        assert first[1] == made.models[0].label
        assert first[3] == f"{made.models[0].standing.mean_task:.4f}"
        assert last[:2] == ["70", made.models[69].label]
        assert opened.page.locator("button:visible, input:visible, select:visible").count() == 0


def test_paper_shows_every_model(chromium: Browser, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Pages of the table are of the screen; on paper all models stand in one."""
    with browser.opened(chromium, written(boards.synthetic(70, 3), tmp_path_factory)) as opened:
        page = ready(opened.page)
        assert len(names(page)) == 20
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
        assert len(names(page)) == 70
        page.emulate_media(media="print")
        assert not page.is_visible("#controls")
        page.evaluate("dispatchEvent(new Event('afterprint'))")
        assert len(names(page)) == 20


def test_cells_say_what_they_are(chromium: Browser, file: Path) -> None:
    """Trained on, published, missing and undefined values can be told from others; intervals stand behind them."""
    made = rich()
    with browser.opened(chromium, file) as opened:
        page = ready(opened.page)
        page.locator("[name=view][value=tasks]").check(force=True)
        by_name = dict(zip(names(page), cells(page, "task.Task00"), strict=True))
        assert by_name[made.models[2].label].endswith("†")
        assert by_name[made.models[10].label].endswith("‡")
        page.locator("[name=view][value=costs]").check(force=True)
        marked = [name for name, text in zip(names(page), cells(page, "speed"), strict=True) if text.endswith("°")]
        assert marked == [made.models[4].label]
        assert "° marks times of another machine" in page.inner_text("#told-once")
        assert "Measured on: 8 threads of an Epyc 7763." in page.inner_text("#told-once")
        page.locator("[name=view][value=tasks]").check(force=True)
        gap = next(model.label for model in made.models if model.cells[4] is None)
        assert dict(zip(names(page), cells(page, "task.Task04"), strict=True))[gap] == "—"
        first = page.locator("#board tbody tr:first-child td").nth(4)
        first.hover()
        cell = made.models[0].cells[0]
        assert cell is not None
        assert cell.low is not None
        assert cell.high is not None
        assert first.get_attribute("title") == f"{cell.low:.4f} to {cell.high:.4f}, 500 items"


@pytest.mark.parametrize("made", [rich(), boards.synthetic(5, 3, n_tested=3)])
def test_the_page_reads_the_board_as_it_is(
    made: Snapshot, chromium: Browser, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Cells packed by column come out as the board has them."""
    with browser.opened(chromium, written(made, tmp_path_factory)) as opened:
        assert ready(opened.page).evaluate("board") == border.dump(made)


def test_a_large_board_is_small() -> None:
    """A thousand models on sixty tasks, fifty of them tested: below 15 MB with both libraries."""
    assert len(html(boards.synthetic(1000, 60, n_tested=50)).encode()) < 15e6


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (1280, "dark"), (390, "light")])
def test_each_set_of_columns_is_seen(
    width: int, scheme: str, chromium: Browser, file: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Screenshots to look at, in the folder of EMBEVAL_SCREENSHOTS if it is set; no two sets look the same."""
    given = os.environ.get("EMBEVAL_SCREENSHOTS")
    folder = Path(given) if given else tmp_path_factory.mktemp("screenshots")
    seen = set()
    with browser.opened(chromium, file, width=width, color_scheme=scheme) as opened:
        page = ready(opened.page)
        for view in ("overview", "tasks", "costs", "about"):
            page.locator(f"[name=view][value={view}]").check(force=True)
            seen.add(page.screenshot(path=folder / f"table-{view}-{scheme}-{width}.png"))
        assert opened.messages == []
    assert len(seen) == 4
