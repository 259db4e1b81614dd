"""Files are whole or not there: failures at every step, and kills at any moment."""

from __future__ import annotations

import errno
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from embeval.errors import ExitCode, StoreError
from embeval.store import atomic

OLD, NEW = b"old content", b"new content, which is longer"


def names(folder: Path) -> set[str]:
    """Everything in a folder, hidden files too."""
    return set(os.listdir(folder))  # noqa: PTH208  # must show what pathlib's glob might pass over


def test_content_is_written_to_the_byte(tmp_path: Path) -> None:
    """New file, file replaced, empty file, every byte; folders above are made; nothing else is left."""
    path = tmp_path / "a" / "b" / "file.json"
    for data in (OLD, NEW, b"", bytes(range(256)) * 1_000):
        atomic.write(path, data)
        assert path.read_bytes() == data
        assert names(path.parent) == {"file.json"}


def test_a_replaced_file_is_a_new_one(tmp_path: Path) -> None:
    """A reader that has the old file open goes on reading the old content to its end."""
    path = tmp_path / "file"
    path.write_bytes(OLD)
    with path.open("rb") as reader:
        atomic.write(path, NEW)
        assert reader.read() == OLD
    assert path.read_bytes() == NEW


def test_data_is_on_disk_before_the_name_points_to_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sync of the whole data, then the rename, then sync of the folder; else a power cut could leave an empty file."""
    steps: list[str] = []
    fsync, replace = os.fsync, Path.replace

    def watched_fsync(descriptor: int) -> None:
        status = os.fstat(descriptor)
        folder = status.st_ino == tmp_path.stat().st_ino
        steps.append("sync folder" if folder else f"sync {status.st_size} bytes")
        fsync(descriptor)

    def watched_replace(self: Path, target: Path) -> Path:
        steps.append(f"rename to {target.name}")
        return replace(self, target)

    monkeypatch.setattr(os, "fsync", watched_fsync)
    monkeypatch.setattr(Path, "replace", watched_replace)
    atomic.write(tmp_path / "file", NEW)
    assert steps == [f"sync {len(NEW)} bytes", "rename to file", "sync folder"]


def fail_with(error: BaseException) -> Callable[..., Any]:
    """A function that raises."""

    def fail(*words: object, **options: object) -> None:
        raise error

    return fail


STEPS: list[tuple[Any, str]] = [(os, "fsync"), (Path, "replace"), (Path, "open")]


@pytest.mark.parametrize(("owner", "step"), STEPS, ids=["fsync", "replace", "open"])
@pytest.mark.parametrize("existing", [True, False], ids=["replaced", "new"])
@pytest.mark.parametrize(
    ("code", "words"),
    [
        (errno.ENOSPC, "no space left on the device"),
        (errno.EDQUOT, "quota"),
        (errno.EROFS, "read-only"),
        (errno.EACCES, "Permission denied"),
        (errno.EPERM, "Permission denied"),
        (errno.EIO, os.strerror(errno.EIO)),
    ],
    ids=["ENOSPC", "EDQUOT", "EROFS", "EACCES", "EPERM", "EIO"],
)
def test_a_failure_at_any_step_leaves_the_old_content(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, owner: Any, step: str, existing: bool, code: int, words: str
) -> None:
    """The old file is as it was, no temporary file is left, and the message says what to do."""
    path = tmp_path / "file"
    if existing:
        path.write_bytes(OLD)
    with monkeypatch.context() as patched:
        patched.setattr(owner, step, fail_with(OSError(code, os.strerror(code))))
        with pytest.raises(StoreError) as caught:
            atomic.write(path, NEW)
    assert names(tmp_path) == ({"file"} if existing else set())
    assert not existing or path.read_bytes() == OLD
    message = str(caught.value)
    assert message.startswith(f"Can't write {path}.\n")
    assert words in message
    assert len(message.splitlines()) <= 3
    assert caught.value.exit_code == ExitCode.CANNOT_EVALUATE


@pytest.mark.parametrize(
    "code", [errno.ENOSPC, errno.EIO, errno.EFBIG, errno.ESTALE, errno.EMFILE], ids=errno.errorcode.__getitem__
)
def test_a_message_is_made_of_whole_sentences(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    """What the system calls the error doesn't run into the sentence that follows it."""
    monkeypatch.setattr(os, "fsync", fail_with(OSError(code, os.strerror(code))))
    with pytest.raises(StoreError, match=r"[a-z.)]\. Results that were finished before are safe\.$|[a-z]\.\nResults"):
        atomic.write(tmp_path / "file", NEW)


@pytest.mark.parametrize(("owner", "step"), STEPS, ids=["fsync", "replace", "open"])
@pytest.mark.parametrize(
    "error", [KeyboardInterrupt(), SystemExit(1), MemoryError()], ids=lambda error: type(error).__name__
)
def test_an_interruption_at_any_step_leaves_the_old_content(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, owner: Any, step: str, error: BaseException
) -> None:
    """Ctrl-C passes through as what it is, the old file is as it was, and no temporary file is left."""
    path = tmp_path / "file"
    path.write_bytes(OLD)
    with monkeypatch.context() as patched:
        patched.setattr(owner, step, fail_with(error))
        with pytest.raises(type(error)):
            atomic.write(path, NEW)
    assert path.read_bytes() == OLD
    assert names(tmp_path) == {"file"}


def test_a_write_that_breaks_off_in_the_middle(tmp_path: Path) -> None:
    """A real limit of the system after 4,096 of a million bytes: the old file is as it was."""
    path = tmp_path / "file"
    path.write_bytes(OLD)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
        with pytest.raises(StoreError, match="Can't write"):
            atomic.write(path, b"x" * 1_000_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, before)
    assert path.read_bytes() == OLD
    assert names(tmp_path) == {"file"}


def test_a_folder_that_can_not_be_synced_is_no_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some network file systems refuse it; the file is there all the same."""
    monkeypatch.setattr(os, "open", fail_with(OSError(errno.EINVAL, os.strerror(errno.EINVAL))))
    atomic.write(tmp_path / "file", NEW)
    monkeypatch.undo()
    assert (tmp_path / "file").read_bytes() == NEW


def test_a_path_through_a_file_is_refused(tmp_path: Path) -> None:
    """Where a folder should be there is a file, directly above or further up; the file is left alone."""
    file = tmp_path / "file"
    file.write_bytes(OLD)
    for path in (file / "result.json", file / "folder" / "result.json"):
        with pytest.raises(StoreError) as caught:
            atomic.write(path, NEW)
        assert str(caught.value).startswith(f"Can't write {path}.\nA part of that path is a file, not a folder.")
    assert file.read_bytes() == OLD


def test_a_folder_in_place_of_the_file_is_refused(tmp_path: Path) -> None:
    """It stays, with what is in it, and nothing is left beside it."""
    path = tmp_path / "file"
    path.mkdir()
    (path / "inside").write_bytes(OLD)
    with pytest.raises(StoreError, match="Can't write"):
        atomic.write(path, NEW)
    assert (path / "inside").read_bytes() == OLD
    assert names(tmp_path) == {"file"}


@pytest.mark.parametrize("where", ["file", "folder"])
def test_a_name_too_long_is_refused(tmp_path: Path, where: str) -> None:
    """As what it is, and without a trace."""
    path = tmp_path / ("x" * 300) if where == "file" else tmp_path / ("x" * 300) / "file"
    with pytest.raises(StoreError, match=r"The name is too long for this file system\."):
        atomic.write(path, NEW)
    assert names(tmp_path) == set()


WRITER = """
import sys
from pathlib import Path
from embeval.store import atomic

path, size = Path(sys.argv[1]), int(sys.argv[2])
contents = [letter * size for letter in (b"a", b"b")]
number = 0
while True:
    atomic.write(path, contents[number % 2])
    if number == 0:
        print("ready", flush=True)
    number += 1
"""


def test_a_kill_at_any_moment_leaves_one_of_the_two_contents(tmp_path: Path) -> None:
    """Twenty times kill -9 within a loop of writes of 2 MB: never a part, never a mixture, never nothing."""
    size, path = 2_000_000, tmp_path / "results" / "file"
    whole = {letter * size for letter in (b"a", b"b")}
    delays = np.random.default_rng(0).uniform(0.0, 0.05, size=20)
    left = 0
    for delay in delays.tolist():
        command = [sys.executable, "-c", WRITER, str(path), str(size)]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            try:
                assert process.stdout is not None
                assert process.stdout.readline() == b"ready\n"
                time.sleep(delay)
            finally:
                process.kill()
        assert process.returncode == -signal.SIGKILL
        assert path.read_bytes() in whole
        others = names(path.parent) - {"file"}
        assert all(name.startswith(".file.") and name.endswith(".tmp") for name in others)
        left = max(left, len(others))
    assert left > 0  # at least one kill hit a write halfway, else this has shown nothing


def test_remains_of_killed_processes_are_swept_after_a_day(tmp_path: Path) -> None:
    """Only hidden temporary files, only old ones; a write in progress and everything else stays."""
    now = time.time()
    ages = {
        ".result.json.1-ab.tmp": 24.1,
        ".other.parquet.2-cd.tmp": 1_000.0,
        ".result.json.3-ef.tmp": 23.9,
        ".result.json.4-ab.tmp": 0.0,
        "result.json": 1_000.0,
        "report.tmp": 1_000.0,
        ".hidden": 1_000.0,
    }
    for name, hours in ages.items():
        (tmp_path / name).write_bytes(OLD)
        os.utime(tmp_path / name, (now - hours * 3600, now - hours * 3600))
    atomic.sweep(tmp_path)
    assert set(ages) - names(tmp_path) == {".result.json.1-ab.tmp", ".other.parquet.2-cd.tmp"}


def test_sweeping_never_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder that isn't there, a file instead of one, and a file that can't be removed."""
    atomic.sweep(tmp_path / "absent")
    (tmp_path / "file").write_bytes(OLD)
    atomic.sweep(tmp_path / "file")
    (tmp_path / ".a.tmp").write_bytes(OLD)
    os.utime(tmp_path / ".a.tmp", (0, 0))
    monkeypatch.setattr(Path, "unlink", fail_with(PermissionError(errno.EACCES, "denied")))
    atomic.sweep(tmp_path)
    monkeypatch.undo()
    assert names(tmp_path) == {"file", ".a.tmp"}


@pytest.mark.parametrize("linked", [False, True])
def test_a_pipe_or_device_is_not_replaced(tmp_path: Path, linked: bool) -> None:
    """A rename puts a file in the place of whatever was there, which would be /dev/null where that is named."""
    pipe, link = tmp_path / "pipe", tmp_path / "link"
    os.mkfifo(pipe)
    link.symlink_to(pipe)
    with pytest.raises(StoreError, match="a device or a pipe"):
        atomic.write(link if linked else pipe, b"new")
    assert pipe.is_fifo()
    assert link.is_symlink()
    assert {each.name for each in tmp_path.iterdir()} == {"pipe", "link"}


def test_several_files_are_all_there_before_any_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where one can't be written, none of the others has changed, whatever the order; nothing else is left."""
    one, two = tmp_path / "one", tmp_path / "two"
    for path in (one, two):
        path.write_bytes(OLD)
    (tmp_path / "file").write_bytes(OLD)
    for impossible in (tmp_path / "file" / "below", tmp_path / ("x" * 300)):
        for files in ({one: NEW, two: NEW, impossible: NEW}, {impossible: NEW, one: NEW, two: NEW}):
            with pytest.raises(StoreError, match="Can't write"):
                atomic.write_all(files)
            assert (one.read_bytes(), two.read_bytes()) == (OLD, OLD)
            assert names(tmp_path) == {"one", "two", "file"}
    atomic.write_all({one: NEW, two: b"", tmp_path / "new" / "three": OLD})
    assert (one.read_bytes(), two.read_bytes(), (tmp_path / "new" / "three").read_bytes()) == (NEW, b"", OLD)
    assert names(tmp_path) == {"one", "two", "file", "new"}
