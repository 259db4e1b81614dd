"""Where a mirror holds the data of a task, and how a file that was changed is found out."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from embeval.errors import DataError
from embeval.mteb_bridge import holdings, mirror
from embeval.mteb_bridge.mirror import Manifest, MirroredFile
from tests.support.data import write_pairs

STS12 = mirror.Source("mteb/sts12-sts", "a0d554a64d88156834ff5ae9920b964011b16384")
"""What mteb 2.26 says of STS12."""


def stored(folder: Path, source: mirror.Source = STS12) -> Path:
    """A data set as ``data pull`` leaves it: two files and the manifest, its hashes by hashlib."""
    place = source.folder(folder)
    write_pairs(place / "test.jsonl", [("a", "b", 1.0)])
    (place / "README.md").write_text("# STS", encoding="utf-8")
    files = {
        name: MirroredFile(size=len(data), sha256=hashlib.sha256(data).hexdigest())
        for name in ("README.md", "test.jsonl")
        for data in [(place / name).read_bytes()]
    }
    manifest = Manifest(
        source="hub", stored_at="2026-11-30", files=files, path=source.path, revision=source.revision, commit="c" * 40
    )
    mirror.write_manifest(place, manifest)
    return place


def test_a_pulled_data_set_serves_every_task_that_reads_it(tmp_path: Path) -> None:
    """Two tasks of mteb 2.26 that share a data set and a revision share its folder; a third has another revision."""
    assert not mirror.has(tmp_path, "STS12")
    stored(tmp_path)
    assert mirror.has(tmp_path, "STS12")
    assert not mirror.has(tmp_path, "STS13")
    shared = mirror.sources()["BrightBiologyRetrieval"]
    assert shared == mirror.sources()["BrightPonyRetrieval"]
    stored(tmp_path, shared)
    assert mirror.has(tmp_path, "BrightBiologyRetrieval")
    assert mirror.has(tmp_path, "BrightPonyRetrieval")
    assert not mirror.has(tmp_path, "no such task")


def test_what_mteb_has_is_known_without_making_its_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two thousand tasks take a while to make, and seed all random states each; their names are those of mteb."""
    from mteb.abstasks import AbsTask
    from mteb.get_tasks import _TASKS_REGISTRY

    monkeypatch.setattr(AbsTask, "__init__", None)
    assert mirror._known.__wrapped__().keys() == _TASKS_REGISTRY.keys()


def test_a_folder_of_the_tasks_name_comes_first(tmp_path: Path) -> None:
    """What was laid out by hand for a task is meant for it; an empty folder is nothing."""
    pulled = stored(tmp_path)
    (tmp_path / "STS12").mkdir()
    place = mirror.located(tmp_path, "STS12")
    assert (place.folder, place.origin) == (pulled, f"mirror of mteb/sts12-sts at {'c' * 40}")
    write_pairs(tmp_path / "STS12" / "test.jsonl", [("x", "y", 2.0)])
    place = mirror.located(tmp_path, "STS12")
    assert (place.folder, place.origin) == (tmp_path / "STS12", "mirror, laid out by hand")


def test_an_aggregate_needs_the_data_of_all_its_tasks(tmp_path: Path) -> None:
    """CQADupstackRetrieval of mteb is twelve tasks."""
    parts = mirror.parts("CQADupstackRetrieval")
    assert len(parts) == 12
    for name in parts:
        assert not mirror.has(tmp_path, "CQADupstackRetrieval")
        write_pairs(tmp_path / name / "rows.jsonl", [("a", "b", 1.0)])
    assert mirror.has(tmp_path, "CQADupstackRetrieval")


def test_what_is_missing_is_told_with_the_way_to_get_it(tmp_path: Path) -> None:
    """Also which other revision is there, and that a data set without a manifest was never whole."""
    with pytest.raises(DataError, match=r"The mirror .*none: no such folder\."):
        mirror.located(tmp_path / "none", "STS12")
    stored(tmp_path, mirror.Source(STS12.path, "older"))
    write_pairs(STS12.folder(tmp_path) / "test.jsonl", [("a", "b", 1.0)])
    with pytest.raises(DataError) as caught:
        mirror.located(tmp_path, "STS12")
    assert str(caught.value).splitlines() == [
        (
            f"mteb:STS12: the mirror {tmp_path} lacks its data, mteb/sts12-sts at revision {STS12.revision}. "
            "It has mteb/sts12-sts at older."
        ),
        f"Where the hub can be reached: embeval data pull STS12 --to {tmp_path}",
        f"With files of your own: embeval data import --as-mteb STS12 FILE… --to {tmp_path}",
    ]


@pytest.mark.parametrize("damage", ["changed", "in place", "missing", "added"])
def test_a_file_that_is_not_as_it_was_stored_is_refused(tmp_path: Path, damage: str) -> None:
    """Another content, also of the same size and time, a file that is gone, one that came; links are followed."""
    place = stored(tmp_path)
    mirror.located(tmp_path, "STS12")
    file, before = place / "test.jsonl", (place / "test.jsonl").stat()
    said = "was changed since it was stored"
    match damage:
        case "changed":
            write_pairs(file, [("a", "b", 2.0), ("c", "d", 1.0)])
        case "in place":
            other = write_pairs(tmp_path / "other", [("a", "b", 9.0)])
            os.utime(other, ns=(before.st_atime_ns, before.st_mtime_ns))
            other.replace(file)
            assert (file.stat().st_size, file.stat().st_mtime_ns) == (before.st_size, before.st_mtime_ns)
        case "missing":
            file.unlink()
            said = "is missing"
        case _:
            elsewhere = tmp_path / "elsewhere"
            write_pairs(elsewhere / "train.jsonl", [("a", "b", 1.0)])
            (place / "more").symlink_to(elsewhere)
            file, said = place / "more" / "train.jsonl", "was added since the data set was stored"
    with pytest.raises(DataError) as caught:
        mirror.located(tmp_path, "STS12")
    assert str(caught.value) == f"{file} {said}.\nRemove the folder {place} and store the data set again."


def test_a_hidden_file_and_a_link_that_leads_back_are_nothing(tmp_path: Path) -> None:
    """What a file browser leaves is no data, and a walk ends."""
    place = stored(tmp_path)
    (place / ".DS_Store").write_bytes(b"x")
    (place / "loop").symlink_to(place)
    assert mirror.files_of(place) == ["README.md", "test.jsonl"]
    assert mirror.located(tmp_path, "STS12").folder == place


def test_a_manifest_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    """It isn't taken for none."""
    place = stored(tmp_path)
    (place / mirror.MANIFEST).write_text('{"source": "hub"}', encoding="utf-8")
    with pytest.raises(DataError, match=r"can't be read \(.*the key 'stored_at' is missing"):
        mirror.has(tmp_path, "STS12")


def test_what_a_mirror_holds(tmp_path: Path) -> None:
    """Each data set with its tasks, where it came from and what is wrong with it."""
    stored(tmp_path)
    write_pairs(tmp_path / "BIOSSES" / "test.jsonl", [("a", "b", 1.0)])
    other = stored(tmp_path, mirror.Source("team/own", "main"))
    (other / "test.jsonl").unlink()
    found = list(holdings.held(tmp_path))
    assert [(each.tasks, each.source, each.problem is None) for each in found] == [
        (("BIOSSES",), "hand", True),
        (("STS12",), "hub", True),
        ((), "hub", False),
    ]
    assert found[0].bytes == (tmp_path / "BIOSSES" / "test.jsonl").stat().st_size
