"""Boards that are small, empty or odd in some way, and odd ways of using a page: it stands, and says what is so."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from embeval.core import figures
from embeval.leaderboard.render.html import html
from embeval.leaderboard.snapshot import Snapshot
from tests.support import board_pictures
from tests.support.browser import Opened, opened
from tests.support.odd_boards import odd, of_models, revised

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

PHONE = 320
"""The narrowest window that everything has to fit in; also one of 1,280 pixels at 400 %."""
ODD = odd()
USED = """async () => {
  const found = [];
  const look = (state) => {
    const { clientWidth, scrollWidth } = document.documentElement;
    if (scrollWidth > clientWidth) found.push(`${state}: ${scrollWidth} pixels wide`);
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
      const { data, parentElement } = walker.currentNode;
      const isOdd = /NaN|undefined|\\bnull\\b|Infinity|\\[object|: \\.| {2}may/.test(data);
      if (isOdd && !parentElement.closest("script, noscript")) {
        found.push(`${state}: ${data.slice(0, 100)}`);
      }
    }
    for (const part of document.querySelectorAll("#board .model-name, #board thead th")) {
      const { right, width } = part.getBoundingClientRect();
      const end = part.closest("td, th").getBoundingClientRect().right;
      const isAlone = part.colSpan === 1 && part.matches("th");
      const name = part.textContent.slice(0, 40);
      if (right > end + 1 || (isAlone && width > 420)) found.push(`${state}: ${name} is too wide`);
    }
  };
  for (const view of ["tasks", "costs", "about", "overview"]) {
    document.querySelector(`[name=view][value=${view}]`).click();
    look(view);
  }
  document.querySelectorAll("#filters summary, #choosing summary").forEach((each) => each.click());
  look("panels");
  document.querySelectorAll("#filters summary, #choosing summary").forEach((each) => each.click());
  for (const place of [0, board.models.length - 1]) {
    openDetail(place);
    look("detail");
    document.getElementById("detail").close();
  }
  if (board.models.length > 1) [0, board.models.length - 1].forEach((place) => pick(place, true));
  for (const chosen of [ALL, []]) {
    choose(chosen);
    pictures.forEach(drawPicture);
    document.querySelectorAll(".picture details").forEach((each) => {
      each.open = true;
      tell(pictures.find(({ numbers }) => numbers === each));
    });
    look(`${chosen.length} tasks`);
  }
  filters.text = "no such model";
  filtersChanged();
  pictures.forEach(drawPicture);
  look("no model");
  return found;
}"""
"""Uses every part of the page; what is too wide, and what texts say that nobody means to say."""


@pytest.fixture(scope="module")
def page(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """The board with something of everything."""
    with on_page(browser, board_pictures.rich(), tmp_path_factory.mktemp("board")) as seen:
        yield seen.page


def on_page(browser: Browser, made: Snapshot, folder: Path, **options: Any) -> Any:
    """The board, opened, once its table stands."""
    path = folder / "index.html"
    path.write_text(html(made), encoding="utf-8")
    return _Ready(opened(browser, path, **options))


class _Ready:
    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def __enter__(self) -> Opened:
        seen: Opened = self.inner.__enter__()
        seen.page.wait_for_selector("html[data-ready]", state="attached")
        return seen

    def __exit__(self, *raised: object) -> None:
        self.inner.__exit__(*raised)


@pytest.mark.parametrize("name", ODD)
def test_no_board_is_too_odd(name: str, browser: Browser, tmp_path: Path) -> None:
    """Every part of the page used on a narrow window: no message, nothing too wide, no number that isn't one."""
    with on_page(browser, ODD[name], tmp_path, width=PHONE) as seen:
        assert seen.page.evaluate(USED) == []
        assert (seen.messages, seen.requests) == ([], [])


@pytest.mark.parametrize("text", ["1.5", "0.25", "1e3"])
def test_a_size_can_be_typed(text: str, page: Page) -> None:
    """Key by key: on the way stand texts that are no numbers."""
    page.evaluate("document.getElementById('filters').open = true")
    page.focus("#filters [name=from]")
    page.keyboard.press("Control+A")
    page.keyboard.type(text)
    assert page.input_value("#filters [name=from]") == text
    assert page.evaluate("filters.from") == float(text)
    page.evaluate("clearFilters()")


def test_a_browser_may_refuse_to_change_the_address(browser: Browser, tmp_path: Path) -> None:
    """As Safari does after a hundred changes; the next one that it takes holds both."""
    with on_page(browser, board_pictures.rich(), tmp_path) as seen:
        page = seen.page
        page.evaluate(
            "() => { history.replaceState = () => { throw new DOMException('too many', 'SecurityError'); }; }"
        )
        page.fill("#search", "minilm")
        assert page.locator("#board tbody tr").count() == 4
        page.evaluate("() => { delete history.replaceState; }")
        page.locator("[name=view][value=tasks]").check(force=True)
        assert page.url.endswith("#q=minilm&view=tasks")
        assert seen.messages == []


def test_pictures_tell_only_what_is_so(page: Page) -> None:
    """The best ones hidden by a filter, a gap among the differences."""
    draw = "pictures.forEach(drawPicture)"
    page.evaluate(f"filters.text = 'hashing'; filtersChanged(); {draw}")
    assert page.inner_text("#picture-ranks .words") == "Only hashing has a rank here."
    page.evaluate(f"filters.text = 'minilm'; filtersChanged(); {draw}")
    assert page.inner_text("#picture-ranks .words").startswith("Bars reach from the best to the worst rank")
    page.evaluate(f"filters.text = ''; filtersChanged(); {draw}")
    assert ": of 55 values, " in page.inner_text("#picture-tasks .words")


def test_why_there_is_no_interval(browser: Browser, tmp_path: Path) -> None:
    """Two models with items that weren't tested: not that they have none."""
    with on_page(browser, of_models(board_pictures.rich(), [0, 2]), tmp_path) as seen:
        seen.page.evaluate("pictures.forEach(drawPicture)")
        said = seen.page.inner_text("#picture-ranks .words")
        assert said == "No rank here has an interval: fewer than two models have items."
        assert "Beside a rank stand" not in seen.page.inner_text(".legend")


def test_of_many_revisions_a_few_are_drawn(browser: Browser, tmp_path: Path) -> None:
    """As many models as can be told apart."""
    with on_page(browser, revised(board_pictures.rich(), 12, 3), tmp_path) as seen:
        seen.page.evaluate("pictures.forEach(drawPicture)")
        assert seen.page.inner_text("#picture-history .words").startswith(
            "The first 6 of 12 models with several revisions."
        )
        looks = (
            "document.querySelector('#picture-history .plot').data.map(({ marker }) => marker.color + marker.symbol)"
        )
        found = seen.page.evaluate(looks)
        assert len(found) == len(set(found)) == 6


def test_tasks_of_both_directions_have_no_mean(browser: Browser, tmp_path: Path) -> None:
    """The note above the table says why nothing is ranked."""
    with on_page(browser, ODD["both directions"], tmp_path) as seen:
        seen.page.evaluate("choose([0, 1])")
        assert seen.page.inner_text("#ranks-note") == (
            "Shown are 2 of 8 tasks, which have different units or directions: there is no mean to rank by."
        )
        seen.page.evaluate("choose([0, 2])")
        assert seen.page.inner_text("#ranks-note") == "Ranks, means and intervals are of 2 of 8 tasks."


def test_what_is_chosen_is_seen_in_colours_of_ones_own(browser: Browser, tmp_path: Path) -> None:
    """Forced colours leave no ground but the system's."""
    with on_page(browser, board_pictures.rich(), tmp_path, forced_colors="active") as seen:
        ground = "(each) => getComputedStyle(each).backgroundColor"
        chosen, around = seen.page.locator(".views input:checked + span"), seen.page.locator("body")
        assert chosen.evaluate(ground) != around.evaluate(ground)


def test_paper_has_every_picture(browser: Browser, tmp_path: Path) -> None:
    """Also those that nobody scrolled to, no wider than a sheet; afterwards they are as wide as before."""
    widths = "pictures.map(({ plot }) => [plot.clientWidth, plot.querySelector('svg')?.clientWidth])"
    with on_page(browser, board_pictures.rich(), tmp_path) as seen:
        seen.page.evaluate("dispatchEvent(new Event('beforeprint'))")
        assert {svg for _, svg in seen.page.evaluate(widths)} == {940}
        seen.page.evaluate("dispatchEvent(new Event('afterprint'))")
        assert [svg - plot for plot, svg in seen.page.evaluate(widths)] == [0] * 6
        seen.page.evaluate("openDetail(0)")
        seen.page.emulate_media(media="print")
        assert not seen.page.is_visible("main")
        body = "(each) => getComputedStyle(each).overflow + (each.scrollHeight - each.clientHeight)"
        assert seen.page.locator(".detail-body").evaluate(body) == "visible0"
        assert seen.messages == []


def test_names_turn_no_sentence(browser: Browser, tmp_path: Path) -> None:
    """A sentence that begins with a name from right to left still runs from left to right; no half characters."""
    with on_page(browser, ODD["names, outcomes, revisions"], tmp_path) as seen:
        seen.page.evaluate("pictures.forEach(drawPicture)")
        directions = "[...document.querySelectorAll('.words bdi')].map((each) => getComputedStyle(each).direction)"
        assert set(seen.page.evaluate(directions)) == {"ltr"}
        assert seen.page.evaluate("shortened('🙂'.repeat(40), 20)") == "🙂" * 11 + "…" + "🙂" * 8


def test_a_description_has_paragraphs() -> None:
    """Lines of a block in YAML run on, as in the README; an empty one parts."""
    made = replace(board_pictures.rich(), description="One line\nand the next.\n\nAnother paragraph.\n")
    page = html(made)
    assert "<p><bdi>One line\nand the next.</bdi></p>" in page
    assert "<p><bdi>Another paragraph.\n</bdi></p>" in page
    assert "<p><bdi>" not in html(replace(made, description=""))


def test_numbers_are_those_of_other_reports(page: Page) -> None:
    """Python's figures, but for the sign: a page has a true minus."""
    numbers = [
        0.0,
        -0.0,
        0.5,
        -0.25,
        1e-9,
        -2.1e-6,
        4.9e-5,
        5.1e-5,
        99.99994,
        100.0,
        384.0,
        12345.6,
        1.5e9,
        -3e12,
        1e300,
    ]
    shown = page.evaluate("(numbers) => numbers.map((each) => [score(each), signed(each)])", numbers)
    wanted = [[figures.figure(each), figures.signed(each)] for each in numbers]
    assert [[text.replace("−", "-") for text in each] for each in shown] == wanted
