"""What users install: the built wheel, away from the source tree."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.support.commands import environment


@pytest.fixture(scope="module")
def wheel(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built without reaching for an index."""
    folder = tmp_path_factory.mktemp("wheel")
    words = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--no-index", "-q"]
    subprocess.run([*words, "-w", str(folder), str(repository)], check=True, capture_output=True)
    (built,) = folder.glob("*.whl")
    return built


def test_wheel_holds_the_package_and_nothing_else(wheel: Path, repository: Path) -> None:
    """Every file of the package, the golden set and the type marker; no tests, no benchmarks."""
    assert wheel.name.startswith("embeval_toolkit-")
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    tracked = {
        path.relative_to(repository).as_posix()
        for path in (repository / "embeval").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert tracked <= names
    assert {"embeval/py.typed", "embeval/data/demo/corpus.jsonl", "embeval/data/demo/qrels/test.tsv"} <= names
    assert {name.split("/")[0] for name in names} == {"embeval", wheel.name.rsplit("-", 3)[0] + ".dist-info"}


def test_installed_wheel_evaluates_and_builds_a_board(wheel: Path, tmp_path: Path) -> None:
    """Unpacked into a folder of its own: it runs on the bundled data, and pages have their scripts and styles."""
    site = tmp_path / "site"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    env = {**environment(), "PYTHONPATH": str(site)}
    code = "import embeval, os; print(os.path.dirname(embeval.__file__), embeval.__version__)"
    found = subprocess.run(
        [sys.executable, "-c", code], env=env, cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert found.stdout.split()[0] == os.fspath(site / "embeval")
    assert found.stdout.split()[1] == wheel.name.split("-")[1]
    command = [sys.executable, "-m", "embeval"]

    def out(*words: str) -> str:
        done = subprocess.run([*command, *words], env=env, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert "0.3920" in out("run", "-m", "hashing", "-t", "demo-docs", "-t", "demo-pairs")
    out("leaderboard", "init", "mine")
    assert "leaderboards/mine/index.html" in out("leaderboard", "build", "mine")
    page = (tmp_path / "leaderboards" / "mine" / "index.html").read_text(encoding="utf-8")
    assert "function openDetail(" in page
    assert "#board td.model" in page
