"""Pictures, details and comparisons of a board's page in a real browser: what they show is what the board says."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from embeval.leaderboard.render.html import PAGE, SCRIPTS, html
from embeval.leaderboard.snapshot import Snapshot
from tests.support import board_pictures, boards, browser
from tests.support.board_pictures import ERROR, FREEDOM, MODELS, TASKS
from tests.support.pages import with_texts

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

needs_browser = pytest.mark.skipif(browser.CHROMIUM is None, reason="no chromium on this machine")
PICTURES = ("speed", "size", "ranks", "tasks", "groups", "history")
HOSTILE = (
    "<script>window.ran = 1</script><img src=https://asked.example/a.png onerror='window.ran = 2'>"
    '</script></svg><a href="javascript:window.ran=3">tap</a>"><b>bold</b> %{x} &lt;i&gt; \u202eturned $x$ @@DATA@@'
)


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """One browser for all tests."""
    with browser.started() as found:
        yield found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where pages are written."""
    return tmp_path_factory.mktemp("charts")


@pytest.fixture(scope="module")
def pictures() -> Path:
    """Where screenshots are kept."""
    return Path(os.environ.get("EMBEVAL_SCREENSHOTS", ""))


@pytest.fixture(scope="module")
def file(folder: Path) -> Path:
    """The rich board as a page."""
    return written(board_pictures.rich(), folder / "rich.html")


@pytest.fixture(scope="module")
def shared(chromium: Browser, file: Path) -> Iterator[Page]:
    """The page with all its pictures drawn, for tests that leave it as it is."""
    with browser.opened(chromium, file) as opened:
        drawn(opened.page)
        yield opened.page
        assert opened.messages == []
        assert opened.requests == []


def written(made: Snapshot, path: Path) -> Path:
    """The board as a page in a file."""
    path.write_text(html(made), encoding="utf-8")
    return path


def ready(page: Page) -> Page:
    """The page once its table stands."""
    page.wait_for_selector("html[data-ready]")
    return page


SCROLL = """async (names) => {
  const resting = () => new Promise((done) => setTimeout(done, 10));
  for (const there of pictures.filter(({ id }) => names.includes(id))) {
    do {
      there.node.scrollIntoView({ block: "center" }); // again: pictures above it that are drawn move it
      await resting();
    } while (there.isStale);
  }
}"""


def drawn(page: Page, names: Sequence[str] = PICTURES) -> Page:
    """The page once each of these pictures was in view."""
    ready(page).evaluate(SCROLL, [f"picture-{name}" for name in names])
    return page


def traces(page: Page, name: str) -> list[dict[str, Any]]:
    """What a picture is made of, with numbers as plain lists."""
    script = f"JSON.parse(JSON.stringify(document.querySelector('#picture-{name} .plot').data))"
    return list(page.evaluate(script))


def notes(page: Page, name: str) -> list[str]:
    """Texts that a picture writes beside its points."""
    return list(page.evaluate(f"document.querySelector('#picture-{name} .plot').layout.annotations.map((a) => a.text)"))


def words(page: Page, name: str) -> str:
    """What is said of a picture."""
    return page.locator(f"#picture-{name} .words").inner_text()


def labels(page: Page, places: list[int]) -> list[str]:
    """Names of the models at these places."""
    return [page.evaluate("(place) => board.models[place].label", place) for place in places]


def two_sided(statistic: float, freedom: float) -> float:
    """By scipy's distribution."""
    from scipy.stats import t

    return float(2 * t.sf(statistic, freedom))


def names_of_scripts() -> list[str]:
    """What our scripts call things at their outermost level."""
    pattern = re.compile(r"^(?:async )?(?:function|const|let|class) (\w+)", re.MULTILINE)
    return [name for script in SCRIPTS for name in pattern.findall((PAGE / script).read_text(encoding="utf-8"))]


def test_no_two_scripts_call_something_the_same() -> None:
    """All of them share one scope: a second function of a name silently takes the place of the first."""
    found = names_of_scripts()
    assert sorted(found) == sorted(set(found))


@needs_browser
def test_no_script_takes_a_name_of_the_browser(chromium: Browser) -> None:
    """A function called ``valueOf`` or ``stop`` would take the window's own place."""
    page = chromium.new_page()
    taken = page.evaluate("(names) => names.filter((name) => name in window)", names_of_scripts())
    page.close()
    assert taken == []


def pareto(x: list[Any], y: list[float], more: bool) -> set[int]:
    """Brute force: those that no other is at least as good as on both axes, and better on one."""
    sign = 1 if more else -1
    points = [(sign * a, b) for a, b in zip(x, y, strict=True)]
    return {
        place
        for place, (a, b) in enumerate(points)
        if not any(c >= a and d >= b and (c, d) != (a, b) for c, d in points)
    }


@needs_browser
@pytest.mark.parametrize(("name", "measure", "more"), [("speed", 5, True), ("size", 2, False)])
def test_the_front_is_made_of_those_that_none_beats(shared: Page, name: str, measure: int, more: bool) -> None:
    """Against brute force; the published model with a gap has no mean and is told to be left out."""
    means = board_pictures.values().mean(axis=1).tolist()
    expected = pareto([each[measure] for each in MODELS], means, more)
    _, others, front = traces(shared, name)
    assert set(labels(shared, front["customdata"])) == {MODELS[place][0] for place in expected}
    assert len(others["x"]) + len(front["x"]) == len(MODELS)
    assert "1 model without one of the two is left out" in words(shared, name)
    by_label = dict(zip([each[0] for each in MODELS], means, strict=True))
    shown = dict(zip(labels(shared, front["customdata"]), front["y"], strict=True))
    assert shown == pytest.approx({label: by_label[label] for label in shown})


@needs_browser
def test_whiskers_are_the_interval_of_the_mean(shared: Page) -> None:
    """Of independent parts: each side is the root of the sum of squares of the parts' (Zou, Huang & Zhang 2009)."""
    _, _, front = traces(shared, "speed")
    n = len(TASKS)
    assert front["error_y"]["arrayminus"] == pytest.approx([0.021 / math.sqrt(n)] * len(front["x"]))
    assert front["error_y"]["array"] == pytest.approx([0.019 / math.sqrt(n)] * len(front["x"]))


@needs_browser
def test_a_system_without_parameters_stands_left_of_all(shared: Page) -> None:
    """A logarithm has no zero: it has a place of its own."""
    _, _, front = traces(shared, "size")
    at = dict(zip(labels(shared, front["customdata"]), front["x"], strict=True))
    assert at["hashing"] < min(value for label, value in at.items() if label != "hashing")
    assert at["large"] == pytest.approx(math.log10(335_000_000))
    ticks = shared.evaluate("document.querySelector('#picture-size .plot').layout.xaxis.ticktext")
    assert ticks[0] == "0"


@needs_browser
def test_names_in_pictures_hide_no_other(shared: Page) -> None:
    """Their boxes as the browser lays them out don't overlap."""
    for name in ("speed", "size"):
        boxes = shared.evaluate(
            f"[...document.querySelectorAll('#picture-{name} .annotation-text')]"
            ".map((each) => each.getBoundingClientRect())"
            ".map(({left, right, top, bottom}) => [left, right, top, bottom])"
        )
        assert len(boxes) >= 5
        for place, (left, right, top, bottom) in enumerate(boxes):
            for other in boxes[:place]:
                beside = right <= other[0] + 1 or other[1] <= left + 1
                assert beside or bottom <= other[2] + 3 or other[3] <= top + 3


@needs_browser
def test_bars_reach_over_the_ranks_that_are_open(shared: Page) -> None:
    """Bars, points and letters as the board has them."""
    made = board_pictures.rich()
    standings = [model.standing for model in made.models if model.standing.rank is not None]
    bars, tested, untested = traces(shared, "ranks")
    assert bars["x"] == [each for s in standings for each in (s.rank_low, s.rank_high, None)]
    assert tested["x"] == [s.rank for s in standings]
    assert untested["x"] == []
    assert notes(shared, "ranks") == [s.letters for s in standings]


@needs_browser
def test_the_heat_map_shows_differences_to_the_reference(shared: Page) -> None:
    """Values of numpy, with their sign; a gap is a dash and has no shade."""
    made = board_pictures.rich()
    order = [
        column
        for group in dict.fromkeys(c.group for c in made.columns)
        for column in range(len(TASKS))
        if made.columns[column].group == group
    ]
    expected = []
    for model in made.models:
        for column in order:
            cell = model.cells[column]
            base = made.models[made.reference or 0].cells[column]
            assert base is not None
            if cell is None or cell.value is None or base.value is None:
                expected.append("—")
                continue
            gap = cell.value - base.value
            text = f"{abs(gap):.3f}".removeprefix("0")
            expected.append("0" if gap == 0 else ("+" if gap > 0 else "−") + text)
    shown = notes(shared, "tasks")
    assert shown[: len(expected)] == expected
    assert shown[len(expected) :] == ["Retrieval", "STS", "Classification", "Clustering"]
    (heat,) = traces(shared, "tasks")
    signs = [0 if each is None else int(np.sign(each)) for row in heat["z"] for each in row]
    assert signs == [{"+": 1, "−": -1}.get(text[0], 0) for text in expected]


@needs_browser
def test_axes_of_the_profile_are_means_of_groups(shared: Page) -> None:
    """The reference comes first, then the others by rank; means by numpy."""
    lines = traces(shared, "groups")
    names = [labels(shared, [line["customdata"][0]])[0] for line in lines]
    assert names[:3] == ["all-MiniLM-L6-v2", "large", "base"]
    groups = [task[1] for task in TASKS]
    expected = [
        board_pictures.values()[0][[group == name for group in groups]].mean() for name in dict.fromkeys(groups)
    ]
    assert lines[1]["y"] == pytest.approx(expected)


@needs_browser
def test_history_is_a_line_over_revisions(shared: Page) -> None:
    """A row for each model, its numbers to be read."""
    (line,) = traces(shared, "history")
    mean = float(board_pictures.values()[2].mean())
    assert line["y"] == pytest.approx([mean - 0.06, mean - 0.04, mean])
    assert line["text"] == ["3" + "0" * 7, "5" + "0" * 7, "9" + "0" * 7]
    assert "all-MiniLM-L6-v2: +0.0600 over 3 revisions" in words(shared, "history")


@needs_browser
def test_each_picture_has_its_numbers_as_a_table(shared: Page) -> None:
    """Made once it is opened."""
    for name in PICTURES:
        numbers = shared.locator(f"#picture-{name} details")
        numbers.locator("summary").click()
        numbers.locator("tbody tr").first.wait_for()
        assert numbers.locator("tbody tr").count() >= 3
    row = shared.locator("#picture-speed details tbody tr", has_text="large").first
    assert row.inner_text().split("\t")[3:] == ["3,900", "yes"]


@needs_browser
def test_pictures_are_told_in_words(shared: Page) -> None:
    """For those who don't see them: a name and a description each."""
    for name in PICTURES:
        plot = shared.locator(f"#picture-{name} .plot")
        assert plot.get_attribute("role") == "img"
        assert plot.get_attribute("aria-label")
        described = plot.get_attribute("aria-describedby")
        assert len(shared.locator(f"#{described}").inner_text()) > 40


@needs_browser
def test_pictures_follow_filters_and_chosen_tasks(chromium: Browser, file: Path) -> None:
    """Only models left in the table, by means of the tasks chosen (numpy); nothing chosen is told in words."""
    with browser.opened(chromium, file) as opened:
        page = drawn(opened.page)
        page.evaluate("choose([3, 4])")
        page.evaluate(
            "page.visible = page.visible.filter((place) => /^(large|base|all-MiniLM-L6-v2)$/.test(labelOf(place)));"
            "page.changed()"
        )
        page.wait_for_timeout(100)
        drawn(page)
        _, others, front = traces(page, "speed")
        assert len(others["x"]) + len(front["x"]) == 3
        by_label = {model[0]: board_pictures.values()[row][3:5].mean() for row, model in enumerate(MODELS)}
        for trace in (others, front):
            assert trace["y"] == pytest.approx([by_label[label] for label in labels(page, trace["customdata"])])
        (heat,) = traces(page, "tasks")
        assert [len(row) for row in heat["z"]] == [2, 2, 2]
        (line,) = traces(page, "history")
        assert line["y"][-1] == pytest.approx(by_label["all-MiniLM-L6-v2"])
        page.evaluate("choose([])")
        page.evaluate("pictures.forEach(drawPicture)")
        assert words(page, "speed") == "No task is chosen that could stand for quality."
        assert page.locator("#picture-speed .plot").is_hidden()
        assert opened.messages == []


@needs_browser
def test_choices_of_a_picture(chromium: Browser, file: Path) -> None:
    """Another measure of cost, a single task for quality; values instead of differences."""
    with browser.opened(chromium, file) as opened:
        page = drawn(opened.page)
        page.locator("#picture-speed select").nth(1).select_option("latency")
        page.locator("#picture-speed select").nth(0).select_option("task 3")
        _, _, front = traces(page, "speed")
        expected = pareto([each[6] for each in MODELS], board_pictures.values()[:, 3].tolist(), more=False)
        published = board_pictures.values()[1, 3] + 0.005
        assert set(labels(page, front["customdata"])) == {MODELS[place][0] for place in expected}
        assert published not in front["y"]  # nobody knows how fast it is
        page.locator("#picture-tasks").get_by_label("Show", exact=True).select_option("values")
        (heat,) = traces(page, "tasks")
        assert max(each for row in heat["z"] for each in row if each is not None) == 1
        page.get_by_label("Compared with").select_option("0")
        (heat,) = traces(page, "tasks")
        assert set(heat["z"][0]) == {0}


@needs_browser
def test_a_click_on_a_point_opens_the_model(chromium: Browser, file: Path) -> None:
    """The second point of the ranks is the second model."""
    with browser.opened(chromium, file) as opened:
        page = drawn(opened.page)
        page.evaluate("document.querySelector('#picture-ranks').scrollIntoView({block: 'center'})")
        box = page.locator("#picture-ranks .plot .points path").nth(1).bounding_box()
        assert box is not None
        page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        page.wait_for_selector("#detail[open]")
        assert page.locator("#detail h2").inner_text() == "base"


@needs_browser
def test_colours_follow_the_theme_and_paper_is_light(chromium: Browser, file: Path) -> None:
    """A dark page is printed in colours for paper; pictures are drawn anew for another system or another choice."""
    colour = "document.querySelector('#picture-ranks .plot').layout.font.color"
    with browser.opened(chromium, file, color_scheme="dark") as opened:
        page = drawn(opened.page)
        assert page.evaluate(colour) == "#e7eaee"
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
        assert page.evaluate(colour) == "#1b1f24"
        page.evaluate("dispatchEvent(new Event('afterprint'))")
        assert page.evaluate(colour) == "#e7eaee"
        page.emulate_media(color_scheme="light")
        page.wait_for_timeout(200)
        drawn(page)
        assert page.evaluate(colour) == "#1b1f24"
        for theme in ("light", "dark"):
            page.click("#theme")
            assert page.inner_text("#theme") == f"Theme: {theme}"
        page.wait_for_timeout(200)
        drawn(page)
        assert page.evaluate(colour) == "#e7eaee"


@needs_browser
def test_details_open_from_the_row_and_give_the_focus_back(chromium: Browser, file: Path) -> None:
    """By Enter; Esc closes, and the focus is where it was."""
    with browser.opened(chromium, file) as opened:
        page = ready(opened.page)
        button = page.locator("#board [data-model]", has_text="base").first
        button.focus()
        page.keyboard.press("Enter")
        dialog = page.locator("#detail")
        assert dialog.locator("h2").inner_text() == "base"
        assert page.evaluate("document.activeElement.id") == "detail-heading"
        assert "detail=base" in page.url
        for _ in range(40):  # the focus stays inside, or goes to the browser itself
            page.keyboard.press("Tab")
            assert page.evaluate(
                "document.activeElement === document.body || !!document.activeElement.closest('#detail')"
            )
        page.keyboard.press("Escape")
        assert not dialog.is_visible()
        assert page.evaluate("document.activeElement.dataset.model") == button.get_attribute("data-model")
        assert "detail" not in page.url
        assert opened.messages == []


@needs_browser
def test_details_open_by_the_address_and_a_bad_one_changes_nothing(chromium: Browser, file: Path) -> None:
    """A name that is none, and characters that are none."""
    with browser.opened(chromium, file) as opened:
        page = ready(opened.page)
        for fragment, expected in [("detail=hashing", "hashing"), ("detail=nobody", None), ("detail=%E0%A4%A", None)]:
            page.goto("about:blank")
            page.goto(f"{file.as_uri()}#{fragment}")
            ready(page)
            assert page.locator("#detail").is_visible() is (expected is not None)
            if expected:
                assert page.locator("#detail h2").inner_text() == expected
        assert opened.messages == []


def detail(page: Page, label: str) -> str:
    """The text of a model's details."""
    page.evaluate("(label) => openDetail(board.models.findIndex((model) => model.label === label))", label)
    return page.locator("#detail").inner_text()


@needs_browser
def test_what_details_say(shared: Page) -> None:
    """Standing, costs beside the reference, the model as it was run, the gate, its tasks and its items."""
    text = detail(shared, "all-MiniLM-L6-v2 (int8)")
    made = board_pictures.rich()
    model = next(each for each in made.models if each.label == "all-MiniLM-L6-v2 (int8)")
    standing = model.standing
    assert f"Rank {standing.rank}, between {standing.rank_low} and {standing.rank_high} by the data" in text
    for part in ("22.9 MiB", "26.4 % of the reference", "2.33× the reference", "int8", "22.7 M", "inconclusive"):
        assert part in text
    assert model.spec.revision is not None
    assert model.spec.revision in text
    own, base = board_pictures.values()[4, 1], board_pictures.values()[2, 1]
    row = shared.locator("#detail table.numbers tbody tr", has_text="NFCorpus").inner_text()
    assert f"{own:.4f}" in row
    assert f"[{own - 0.021:.4f}, {own + 0.019:.4f}]" in row
    assert f"{own - base:+.4f}".replace("-", "−") in row
    p = two_sided(abs(own - base) / ERROR, FREEDOM)
    assert (f"{p:.4f}" if p >= 1e-4 else "< 0.0001") in row
    shared.locator("#detail .item-list summary").click()
    items = shared.locator("#detail .item-list").inner_text()
    assert "Do statins cause <b>breast</b> cancer?" in items
    assert "1.0000 → 0.3869 (−0.6131)" in items
    assert "12 lost, 1 gained" in items
    assert "Lost: 12, the first 1" in items
    shared.keyboard.press("Escape")


@needs_browser
def test_details_of_other_kinds_of_models(shared: Page) -> None:
    """A published one, one with prompts that was trained on a task, the reference."""
    published = detail(shared, "published-base")
    for part in ("Not ranked", "Published, not measured here", "1.34.0", "max_tokens", "a gap: not evaluated"):
        assert part in published
    large = detail(shared, "large")
    for part in ("query: ", "passage: ", "†", "that the model’s makers say it was trained on"):
        assert part in large
    reference = detail(shared, "all-MiniLM-L6-v2")
    assert "This is the reference" in reference
    assert "Revisions" in reference
    assert "this one" in reference
    shared.get_by_label("Next model").click()
    assert shared.locator("#detail h2").inner_text() != "all-MiniLM-L6-v2"
    shared.get_by_role("button", name="Close").click()
    assert not shared.locator("#detail").is_visible()


@needs_browser
def test_two_models_beside_each_other(chromium: Browser, file: Path) -> None:
    """p by scipy from the same errors; the mean's by Welch's sum; findings, costs, items."""
    with browser.opened(chromium, file) as opened:
        page = ready(opened.page)
        part = page.locator("#comparison")
        assert part.is_hidden()
        place = {model.label: number for number, model in enumerate(board_pictures.rich().models)}
        one, other = "all-MiniLM-L6-v2", "all-MiniLM-L6-v2 (128d)"
        page.evaluate("(places) => places.forEach((each) => pick(each, true))", [place[one], place[other]])
        assert part.is_visible()
        before, after = board_pictures.values()[2], board_pictures.values()[5]
        rows = [each.split("\t") for each in part.locator("section").first.locator("tbody tr").all_inner_texts()]
        for row, (task, _, metric), old, new in zip(rows[1:], TASKS, before, after, strict=True):
            assert row[0].split("\n")[:2] == [task, metric]
            assert row[1].startswith(f"{old:.4f}")
            assert row[2].startswith(f"{new:.4f}")
            p = two_sided(abs(new - old) / ERROR, FREEDOM)
            assert row[4] == (f"{p:.4f}" if p >= 1e-4 else "< 0.0001")
            assert row[5] == ("not told apart" if p > 0.05 else "B better" if new > old else "A better")
        n = len(TASKS)
        found = page.evaluate("(places) => pairTest(...places, rankedPlaces())", [place[one], place[other]])
        assert found["gap"] == pytest.approx((before - after).mean())
        assert found["p"] == pytest.approx(
            max(two_sided((before - after).mean() / (ERROR / math.sqrt(n)), FREEDOM * n), 2.0 ** (1 - 400 * n)),
            rel=1e-6,
        )
        assert "A is better" in part.inner_text()
        assert "corrected by Holm" in part.inner_text()
        assert "12 lost, 1 gained" in part.inner_text()  # A is the reference
        dimensions = part.locator("tr", has_text="Dimensions").inner_text().split("\t")
        assert dimensions[1:3] == ["384", "128"]
        assert dimensions[3].startswith("0.333×")
        page.get_by_role("button", name="Swap").click()
        assert "B is better" in part.inner_text()
        assert page.evaluate("page.picked") == [place[other], place[one]]
        part.get_by_role("button", name="Clear").click()
        assert part.is_hidden()
        page.evaluate(
            "(places) => places.forEach((each) => pick(each, true))", [place["large"], place["published-base"]]
        )
        text = part.inner_text()
        assert "Not tested" in text
        assert "imported: no items" in text
        assert "a gap" in text
        assert "embeval compare 'large' 'published-base'" in text
        assert opened.messages == []


def hostile(text: str) -> str:
    """A text with what must not be read as anything."""
    return f"{text} {HOSTILE}"


@needs_browser
def test_texts_from_data_stay_texts(chromium: Browser, folder: Path) -> None:
    """In every picture, in details and in the comparison: nothing runs, nothing is fetched, no tag is read."""
    kept = frozenset(
        {"trained_on", "outcome", "rank_by", "gaps", "date", "report", "backend", "dtype", "subset", "split"}
    )
    made = with_texts(board_pictures.rich(), hostile, kept)
    with browser.opened(chromium, written(made, folder / "hostile.html")) as opened:
        page = drawn(opened.page)
        page.evaluate("board.models.forEach((_, place) => openDetail(place)); openDetail(2)")
        assert "<script>window.ran = 1</script>" in page.locator("#detail").inner_text()
        page.keyboard.press("Escape")
        page.evaluate("pick(2, true); pick(4, true)")
        assert "<script>window.ran = 1</script>" in page.locator("#comparison").inner_text()
        for name in PICTURES:
            page.locator(f"#picture-{name} summary").click()
        shown = page.locator("#picture-ranks .plot").inner_html()
        assert "&lt;script&gt;" in shown
        tags = (
            "#pictures :is(a, b, i, img, script, iframe), #detail :is(b, img, script), #comparison :is(b, img, script)"
        )
        assert [each for each in page.locator(tags).all_inner_texts() if each not in ("less", "more")] == []
        bold = page.evaluate(
            "[...document.querySelectorAll('.plot tspan')].filter((each) => /bold/.test(each.style.fontWeight)).length"
        )
        assert bold == 0
        assert page.evaluate("window.ran") is None
        assert opened.messages == []
        assert opened.requests == []


@needs_browser
def test_a_link_of_a_report_is_no_script(chromium: Browser, folder: Path) -> None:
    """A report's file is a path beside the page, whatever stands in the data."""
    made = board_pictures.rich()
    models = tuple(replace(model, report="javascript:window.ran=1") for model in made.models)
    with browser.opened(chromium, written(replace(made, models=models), folder / "link.html")) as opened:
        page = ready(opened.page)
        page.evaluate("openDetail(0)")
        assert page.locator("#detail a").first.evaluate("(link) => link.protocol") == "file:"


@needs_browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nobody_is_kept_out(chromium: Browser, file: Path, scheme: str, tmp_path: Path, pictures: Path) -> None:
    """axe-core finds nothing serious in pictures, comparison and details; nothing is wider than the window."""
    from axe_playwright_python.sync_playwright import Axe

    kept = pictures if pictures.name else tmp_path
    with browser.opened(chromium, file, color_scheme=scheme) as opened:
        page = drawn(opened.page)
        page.evaluate("pick(0, true); pick(3, true)")
        serious(Axe().run(page, context=[["#pictures"], ["#comparison"]]))
        page.locator("#pictures").screenshot(path=kept / f"pictures-{scheme}.png")
        page.locator("#comparison").screenshot(path=kept / f"comparison-{scheme}.png")
        page.evaluate("openDetail(3)")
        serious(Axe().run(page, context="#detail"))
        page.screenshot(path=kept / f"detail-{scheme}.png")


def serious(found: Any) -> None:
    """Fails with what axe-core finds serious or critical."""
    problems = [each for each in found.response["violations"] if each["impact"] in ("serious", "critical")]
    assert [(each["id"], [node["html"] for node in each["nodes"]][:3]) for each in problems] == []


@needs_browser
def test_a_phone_shows_it_whole(chromium: Browser, file: Path, tmp_path: Path, pictures: Path) -> None:
    """Not wider than 390 pixels, with two models picked; details fill the window."""
    kept = pictures if pictures.name else tmp_path
    with browser.opened(chromium, file, width=390, height=844) as opened:
        page = drawn(opened.page)
        page.evaluate("pick(0, true); pick(3, true)")
        assert page.evaluate("document.documentElement.scrollWidth") == 390
        page.locator("#pictures").screenshot(path=kept / "pictures-phone.png")
        page.locator("#comparison").screenshot(path=kept / "comparison-phone.png")
        page.evaluate("openDetail(3)")
        dialog = page.locator("#detail").bounding_box()
        assert dialog is not None
        assert (dialog["x"], dialog["width"]) == (0, 390)
        page.screenshot(path=kept / "detail-phone.png")
        assert opened.messages == []


@needs_browser
def test_a_thousand_models_are_drawn_in_part(chromium: Browser, folder: Path) -> None:
    """Not before they come into view; told in words; changes don't wait for pictures."""
    made = boards.synthetic(1000, 60, n_tested=50)
    with browser.opened(chromium, written(replace(made, reference=3), folder / "large.html")) as opened:
        page = ready(opened.page)
        page.wait_for_timeout(300)
        assert page.evaluate("startedCharts") is None
        drawn(page, ["tasks"])
        assert words(page, "tasks").startswith("The first 40 of 1,000 models shown.")
        assert page.evaluate("const start = performance.now(); page.changed(); performance.now() - start") < 100
        assert opened.messages == []
