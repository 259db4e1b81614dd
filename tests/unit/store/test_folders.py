"""Folders that are whole or not there."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from embeval.errors import ConfigError, StoreError
from embeval.store import folders


def replace(folder: Path, text: str, *, overwrite: bool = True, foreign: str = "") -> None:
    """A folder with one file, in the place of what there is."""

    def refuse(place: Path) -> None:
        if foreign and (place / foreign).exists():
            raise ConfigError(f"{foreign} is in the way")

    with folders.written(folder, overwrite=overwrite, refuse_to_replace=refuse, hint="--overwrite") as partial:
        (partial / "a.txt").write_text(text, encoding="utf-8")


def state(folder: Path) -> dict[str, str]:
    """Path -> text of all files below the folder's parent."""
    return {
        path.relative_to(folder.parent).as_posix(): path.read_text(encoding="utf-8")
        for path in folder.parent.rglob("*")
        if path.is_file()
    }


@pytest.mark.parametrize("can_exchange", [True, False])
def test_a_folder_takes_the_place_of_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, can_exchange: bool
) -> None:
    """With all that was in it, also where a file system can't exchange two names; nothing is left beside it."""
    if not can_exchange:
        monkeypatch.setattr(folders, "_exchanged", lambda one, other: False)
    folder = tmp_path / "deep" / "set"
    replace(folder, "one", overwrite=False)
    (folder / "old.txt").write_text("old", encoding="utf-8")
    replace(folder, "two")
    assert state(folder) == {"set/a.txt": "two"}


def test_an_empty_folder_is_free(tmp_path: Path) -> None:
    """It is no reason to refuse."""
    (tmp_path / "set").mkdir()
    replace(tmp_path / "set", "one", overwrite=False)
    assert state(tmp_path / "set") == {"set/a.txt": "one"}


def test_what_fails_leaves_the_old_folder(tmp_path: Path) -> None:
    """Whatever is raised inside, at the rename, or because of what the old folder holds."""
    folder = tmp_path / "set"
    replace(folder, "one")
    with pytest.raises(UnicodeEncodeError):  # in the middle of writing
        replace(folder, "two\ud83d")
    with pytest.raises(ConfigError, match=r"exists and is not empty. Choose another folder, or give --overwrite"):
        replace(folder, "two", overwrite=False)
    with pytest.raises(ConfigError, match=r"a\.txt is in the way"):
        replace(folder, "two", foreign="a.txt")
    assert state(folder) == {"set/a.txt": "one"}


def test_a_rename_that_fails_is_undone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the two renames, the second: the first is taken back."""
    monkeypatch.setattr(folders, "_exchanged", lambda one, other: False)
    replace(tmp_path / "set", "one")
    rename = Path.rename

    def fail(self: Path, target: Path) -> Path:
        if self.suffix == ".partial":
            raise OSError(28, "No space left on device")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", fail)
    with pytest.raises(StoreError, match="can't be written \\(No space left on device\\)"):
        replace(tmp_path / "set", "two")
    assert state(tmp_path / "set") == {"set/a.txt": "one"}


def test_files_and_links_in_the_way(tmp_path: Path) -> None:
    """A file is refused; a link to a folder is followed, and stays a link."""
    (tmp_path / "file").write_text("x", encoding="utf-8")
    with pytest.raises(ConfigError, match="is a file"):
        replace(tmp_path / "file", "one")
    (tmp_path / "link").symlink_to("real")
    replace(tmp_path / "link", "one")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real" / "a.txt").read_text(encoding="utf-8") == "one"
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(ConfigError, match="is a link that leads back to itself"):
        replace(tmp_path / "loop", "one")


def test_what_killed_processes_left_is_removed(tmp_path: Path) -> None:
    """After a day, for this folder; what a running process writes, and what belongs to others, stays."""
    for name, age in ((".set.1-a.partial", 2), (".set.2-b.partial", 0), (".other.3-c.partial", 2)):
        (tmp_path / name).mkdir()
        made = (tmp_path / name).stat().st_mtime - age * 24 * 3600
        os.utime(tmp_path / name, (made, made))
    replace(tmp_path / "set", "new")
    assert sorted(path.name for path in tmp_path.iterdir()) == [".other.3-c.partial", ".set.2-b.partial", "set"]
