"""What is told of work that goes on, on standard error."""

from __future__ import annotations

import pytest

from embeval.cli import _progress


@pytest.mark.parametrize("watcher", [_progress.Bar, _progress.Lines])
def test_a_note_stands_on_a_line_of_its_own(
    watcher: type[_progress.Bar | _progress.Lines], capsys: pytest.CaptureFixture[str]
) -> None:
    """Before the work and in the midst of it, brackets and all; nothing of it goes to standard output."""
    progress = watcher()
    progress.note("12 passes [all]")
    progress.start("masked tokens", 12, "passes")
    progress.advance(1)
    progress.note("12 more")
    progress.finish()
    out, err = capsys.readouterr()
    lines = [line.rstrip() for line in err.splitlines()]
    assert out == ""
    assert lines[0] == "  12 passes [all]"
    assert "  12 more" in lines
