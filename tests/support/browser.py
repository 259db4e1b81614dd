"""Pages in headless Chromium: opened, clicked through, looked at."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

CHROMIUM = next(
    (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None
)


@dataclass
class Opened:
    """A page, with what it said and asked for since it was opened."""

    page: Page
    """The page."""
    messages: list[str] = field(default_factory=list)
    """Errors and warnings on its console, and exceptions."""
    requests: list[str] = field(default_factory=list)
    """Addresses that it asked for, but for the file itself and what it holds."""


def executable() -> str:
    """The browser's file; skips where there is none, fails there with EMBEVAL_REQUIRE_BROWSER=1."""
    if CHROMIUM is None:
        reason = "no chromium on this machine (Debian: apt-get install chromium)"
        if os.environ.get("EMBEVAL_REQUIRE_BROWSER") == "1":
            pytest.fail(reason)
        pytest.skip(reason)
    return CHROMIUM


@contextmanager
def started(*options: str) -> Iterator[Browser]:
    """A browser without a window, with those options of the command line."""
    file = executable()
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=file, args=["--no-sandbox", *options])
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def opened(browser: Browser, file: Path, *, width: int = 1280, height: int = 900, **options: Any) -> Iterator[Opened]:
    """A page of this machine in a window of that size; ``options`` as ``Browser.new_context`` takes them."""
    context = browser.new_context(viewport={"width": width, "height": height}, **options)
    page = context.new_page()
    found = Opened(page)
    page.on("console", lambda said: found.messages.append(said.text) if said.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: found.messages.append(str(error)))
    page.on("request", lambda asked: _note(found, file, asked.url))
    try:
        page.goto(file.as_uri())
        yield found
    finally:
        context.close()


def _note(found: Opened, file: Path, address: str) -> None:
    if address.split("#")[0] != file.as_uri() and not address.startswith(("data:", "blob:")):
        found.requests.append(address)
