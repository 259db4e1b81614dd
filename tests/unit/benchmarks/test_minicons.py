"""The peer's own environment: made once, and never taken for whole when it isn't."""

from __future__ import annotations

import subprocess
import venv
from pathlib import Path
from typing import Any

import pytest

from benchmarks import minicons


@pytest.fixture
def installs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[list[str]]:
    """The commands that would install; the first of them fails."""
    commands: list[list[str]] = []

    def run(command: list[str], **_: Any) -> None:
        commands.append(command)
        if len(commands) == 1:
            raise subprocess.CalledProcessError(1, command)

    monkeypatch.setenv("EMBEVAL_CACHE", str(tmp_path))
    monkeypatch.setattr(venv, "create", lambda folder, **_: folder.mkdir(parents=True, exist_ok=True))
    monkeypatch.setattr(subprocess, "run", run)
    return commands


def test_installed_until_it_is_whole(installs: list[list[str]], tmp_path: Path) -> None:
    """After a failure it is made again; after that it is found."""
    with pytest.raises(subprocess.CalledProcessError):
        minicons.python()
    found = [minicons.python() for _ in range(3)]
    assert len(installs) == 2
    assert installs[0] == installs[1]
    assert installs[1][0] == str(found[0])
    assert installs[1][-2:] == ["-r", str(minicons.REQUIREMENTS)]
    assert set(found) == {next((tmp_path / "peers").iterdir()) / "bin" / "python"}


def test_requirements_are_exact() -> None:
    """Each package has one version, and transformers is one that minicons can use."""
    lines = [line for line in minicons.REQUIREMENTS.read_text(encoding="utf-8").splitlines() if line[0] != "#"]
    versions = dict(line.split("==") for line in lines)
    assert versions["minicons"] == "0.3.39"
    assert versions["transformers"].startswith("4.57.")
