"""``make test`` runs every test, though it reads only some folders for some of them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.browser import CHROMIUM, executable


@pytest.mark.parametrize("marker", ["real", "timing"])
def test_every_marked_test_is_in_a_folder_that_is_read(repository: Path, marker: str) -> None:
    """The folders behind ``pytest -m`` in the Makefile, and the files that have the marker."""
    makefile = (repository / "Makefile").read_text(encoding="utf-8")
    (given,) = re.findall(rf'pytest (?:-n 2 [a-z -]*)?-m "?{marker}(?: and not timing")? (tests/.*)', makefile)
    folders = [repository / word for word in given.split()]
    marked = [
        file
        for file in (repository / "tests").rglob("test_*.py")
        if f"pytest.mark.{marker}" in file.read_text(encoding="utf-8")
    ]
    assert marked
    assert [file for file in marked if not any(file.is_relative_to(folder) for folder in folders)] == []


def test_everything_else_is_run_everywhere(repository: Path) -> None:
    """Without a folder, and without any test that another command runs."""
    makefile = (repository / "Makefile").read_text(encoding="utf-8")
    assert re.search(r'pytest -n 2 --dist worksteal -m "not real and not timing"$', makefile, re.MULTILINE)


def test_committed_boards_are_checked(repository: Path) -> None:
    """``make test`` holds their pages to what they are made from, and writes none."""
    makefile = (repository / "Makefile").read_text(encoding="utf-8")
    assert re.search(r"^test:.* boards\b", makefile, re.MULTILINE)
    assert re.findall(r"leaderboard build.*", makefile) == ["leaderboard build --check"]


def test_a_missing_browser_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """A skip with its reason; where CI has asked for a browser, a failure."""
    if CHROMIUM is not None:
        assert executable() == CHROMIUM
    monkeypatch.setattr("tests.support.browser.CHROMIUM", None)
    monkeypatch.delenv("EMBEVAL_REQUIRE_BROWSER", raising=False)
    with pytest.raises(pytest.skip.Exception, match="no chromium"):
        executable()
    monkeypatch.setenv("EMBEVAL_REQUIRE_BROWSER", "1")
    with pytest.raises(pytest.fail.Exception, match="no chromium"):
        executable()
