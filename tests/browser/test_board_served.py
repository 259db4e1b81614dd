"""A served board in headless Chromium: the page loads itself again when results arrive, and says nothing else."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from embeval.workflows.boards import serving
from tests.support import browser
from tests.support.board_files import NDCG, POOR, RECALL, board, three
from tests.support.stored import put

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = [
    pytest.mark.enable_socket,
    pytest.mark.skipif(browser.CHROMIUM is None, reason="no chromium on this machine"),
]
TEXT = "results: [../../results]\noutputs: [html, json]\n"


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """One browser for all."""
    with browser.started() as found:
        yield found


def test_the_page_follows_the_results(chromium: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the page without a board to one, and on to one with another model; nothing is asked of anybody else."""
    monkeypatch.setattr(serving, "INTERVAL_S", 0.05)
    (tmp_path / "results").mkdir()
    context = chromium.new_context(viewport={"width": 1280, "height": 700})
    page = context.new_page()
    said, asked = list[str](), list[str]()
    page.on("console", lambda message: said.append(message.text) if message.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    with serving.served(board(tmp_path, TEXT).path, 0, lambda _: None) as address:
        page.goto(address)
        assert page.get_by_role("heading", level=1).inner_text() == "No board yet"
        if folder := os.environ.get("EMBEVAL_SCREENSHOTS"):
            page.screenshot(path=Path(folder) / "no_board_yet.png")
        store = three(tmp_path)
        page.get_by_text("good").first.wait_for(timeout=20_000)
        assert page.title() == "mine"
        put(store, {NDCG: POOR, RECALL: POOR}, model="org/newcomer", task="docs")
        page.get_by_text("newcomer").first.wait_for(timeout=20_000)
        if folder:
            page.screenshot(path=Path(folder) / "served.png")
    page.wait_for_timeout(1_500)  # the server has stopped; the page stays, and the look for it fails
    assert page.get_by_text("newcomer").count() > 0
    context.close()
    assert {url.removeprefix(address) for url in asked if not url.startswith(("data:", "blob:"))} <= {"", "version"}
    assert [text for text in said if "ERR_CONNECTION_REFUSED" not in text] == []
