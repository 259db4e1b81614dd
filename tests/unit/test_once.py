"""Work of a test run that one of its processes does for all."""

from __future__ import annotations

from pathlib import Path
from threading import Event, Thread

import pytest

from tests.support.once import once


def test_the_first_works_and_others_wait_or_go_on(tmp_path: Path) -> None:
    """Who doesn't wait is told that another is at it; who waits reads what that one has found."""
    begun, end, found = Event(), Event(), list[str | None]()

    def work() -> str:
        begun.set()
        assert end.wait(30)
        return "mine"

    first = Thread(target=lambda: found.append(once(tmp_path / "x", work)))
    first.start()
    assert begun.wait(30)
    assert once(tmp_path / "x", lambda: "yours", wait=False) is None
    second = Thread(target=lambda: found.append(once(tmp_path / "x", lambda: "yours")))
    second.start()
    second.join(0.05)
    assert second.is_alive()
    end.set()
    first.join()
    second.join()
    assert found == ["mine", "mine"]


def test_what_failed_is_tried_again(tmp_path: Path) -> None:
    """Each process fails with its own error, and none takes an empty result for one."""
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            once(tmp_path / "x", lambda: str(1 // 0))
    assert once(tmp_path / "x", lambda: "now") == "now"
