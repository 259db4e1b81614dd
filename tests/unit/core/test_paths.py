"""Paths: their ~, as text, and what lies there."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from embeval.core.paths import content, expanded, readable, seen_from_here
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


@given(st.binary(max_size=20))
def test_a_name_of_any_bytes_becomes_text(name: bytes) -> None:
    """Whatever the locale took it for: the names are bytes, and UTF-8 as far as they can be."""
    wanted = name.decode("utf-8", "replace")
    assert readable(name.decode("utf-8", "surrogateescape")) == wanted
    assert readable(name.decode("ascii", "surrogateescape")) == wanted


def test_half_a_character_becomes_text() -> None:
    """One that stands for no byte, as in JSON."""
    assert readable("a\ud800é") == "a\ufffdé"


def test_only_a_file_has_content(tmp_path: Path) -> None:
    """A pipe would be waited for, and a device may have no end."""
    (tmp_path / "file").write_bytes(b"x")
    os.mkfifo(tmp_path / "pipe")
    assert content(tmp_path / "file") == b"x"
    for other in (tmp_path, tmp_path / "pipe", Path("/dev/zero")):
        with pytest.raises(OSError, match="Not a file"):
            content(other)
    with pytest.raises(FileNotFoundError):
        content(tmp_path / "none")
