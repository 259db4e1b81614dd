"""The ~ of paths."""

from __future__ import annotations

from pathlib import Path

import pytest

from embeval.core.paths import expanded, seen_from_here
from embeval.errors import ConfigError


def test_a_home_folder_is_filled_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a shell does it."""
    monkeypatch.setenv("HOME", "/home/me")
    assert expanded("~/models") == Path("/home/me/models")
    assert expanded(Path("models/~x")) == Path("models/~x")


def test_an_unknown_user_is_told() -> None:
    """No traceback of pathlib's."""
    with pytest.raises(ConfigError, match=r"'~no-such-user/x': the home folder .* not known here"):
        expanded("~no-such-user/x")


def test_a_place_is_told_as_seen_from_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without steps back, through links, and as it is where it leads nowhere."""
    (tmp_path / "boards/mine").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "boards/mine", target_is_directory=True)
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    monkeypatch.chdir(tmp_path / "boards")
    assert seen_from_here(Path("mine/../results")) == Path("results")
    assert seen_from_here(tmp_path / "link") == Path("mine")
    assert seen_from_here(Path("../results")) == tmp_path / "results"
    assert seen_from_here(tmp_path / "loop") == tmp_path / "loop"
    assert seen_from_here(Path("a\0b")) == Path("a\0b")
