"""Provenance against git, the package metadata and what the kernel tells."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from embeval.core import border, provenance, strict_json
from embeval.core.provenance import Provenance

linux_only = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


def git(folder: Path, *words: str) -> str:
    """Runs git in a folder, as nobody in particular and without the settings of this machine."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    identity = {
        f"GIT_{who}_{what}": value
        for who in ("AUTHOR", "COMMITTER")
        for what, value in (("NAME", "nobody"), ("EMAIL", "nobody@example.org"))
    }
    done = subprocess.run(
        ["git", *words],
        cwd=folder,
        env={**environment, **identity, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with one commit of one file; nothing above it counts."""
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    folder = tmp_path / "checkout"
    folder.mkdir()
    git(folder, "init", "--quiet")
    (folder / "file.txt").write_text("one\n", encoding="utf-8")
    git(folder, "add", "file.txt")
    git(folder, "commit", "--quiet", "--message", "one")
    return folder


def test_the_commit_is_the_one_that_git_tells(checkout: Path) -> None:
    """A fresh commit is clean; so is a folder inside it."""
    commit = git(checkout, "rev-parse", "HEAD")
    assert len(commit) == 40
    assert provenance.git_state(checkout) == (commit, False)
    (checkout / "below").mkdir()
    assert provenance.git_state(checkout / "below") == (commit, False)


def test_a_change_to_a_tracked_file_is_dirty(checkout: Path) -> None:
    """Changed in the tree, staged, or deleted; a new file that git doesn't track is not."""
    (checkout / "results.json").write_text("{}", encoding="utf-8")
    assert provenance.git_state(checkout)[1] is False
    (checkout / "file.txt").write_text("two\n", encoding="utf-8")
    assert provenance.git_state(checkout)[1] is True
    git(checkout, "add", "file.txt")
    assert provenance.git_state(checkout)[1] is True
    git(checkout, "commit", "--quiet", "--message", "two")
    assert provenance.git_state(checkout) == (git(checkout, "rev-parse", "HEAD"), False)
    (checkout / "file.txt").unlink()
    assert provenance.git_state(checkout)[1] is True


def test_asking_changes_nothing_in_the_repository(checkout: Path) -> None:
    """Looking for changes doesn't rewrite the index, which others may have locked."""
    os.utime(checkout / "file.txt", ns=(10**18, 10**18))  # makes the index stale, which git would like to mend
    before = (checkout / ".git" / "index").read_bytes()
    assert provenance.git_state(checkout)[1] is False
    assert (checkout / ".git" / "index").read_bytes() == before


def test_without_a_repository_there_is_no_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A plain folder, one that isn't there, and a repository without a commit."""
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    folder = tmp_path / "folder"
    folder.mkdir()
    assert provenance.git_state(folder) == (None, None)
    assert provenance.git_state(tmp_path / "absent") == (None, None)
    git(folder, "init", "--quiet")
    assert provenance.git_state(folder) == (None, None)


def test_without_git_there_is_no_commit(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no git is installed, or it hangs, the provenance goes without."""
    monkeypatch.setenv("PATH", str(checkout))
    assert provenance.git_state(checkout) == (None, None)

    def hang(*words: object, **options: object) -> None:
        raise subprocess.TimeoutExpired("git", 10)

    monkeypatch.setattr(subprocess, "run", hang)
    assert provenance.git_state(checkout) == (None, None)


def test_versions_are_those_of_the_imported_packages() -> None:
    """numpy and pyarrow as they call themselves; what is not installed is left out."""
    import pyarrow as pa

    found = provenance.installed(("numpy", "no-such-package-here", "pyarrow"))
    assert found == {"numpy": np.__version__, "pyarrow": pa.__version__}


def test_a_run_is_described() -> None:
    """What the caller tells is kept, the rest comes from this process."""
    found = provenance.collect(device="cuda (H)", num_threads=3, batch_tokens=2048, extra={"provider": "CUDA"})
    assert found.python == platform.python_version()
    assert found.os == f"{platform.system()} {platform.machine()}"
    assert (found.device, found.num_threads, found.batch_tokens) == ("cuda (H)", 3, 2048)
    assert found.extra == {"provider": "CUDA"}
    assert found.packages["numpy"] == np.__version__
    assert set(found.packages) <= set(provenance.PACKAGES)
    assert (found.git_commit, found.git_dirty) == provenance.git_state()


def test_two_runs_on_one_machine_have_equal_provenance() -> None:
    """Nothing in it changes with time, and it survives JSON."""
    one = provenance.collect(device="cpu")
    assert one == provenance.collect(device="cpu")
    assert border.load(Provenance, strict_json.loads(strict_json.dumps(border.dump(one)))) == one


@linux_only
def test_the_number_of_processors_is_that_of_this_process() -> None:
    """Bound to one processor, it may use one, however many the machine has."""
    allowed = os.sched_getaffinity(0)
    try:
        assert provenance.n_cpus() == len(allowed)
        os.sched_setaffinity(0, {min(allowed)})
        assert provenance.n_cpus() == 1
    finally:
        os.sched_setaffinity(0, allowed)


@linux_only
@pytest.mark.parametrize(
    ("content", "name"),
    [
        ("processor\t: 0\nmodel name\t: Chip 9: The Fast One \nmodel name\t: Other\n", "Chip 9: The Fast One"),
        ("processor\t: 0\nBogoMIPS\t: 48.00\n", "fallback"),
    ],
    ids=["named", "unnamed"],
)
def test_the_name_of_the_processor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str, name: str) -> None:
    """The first "model name" of /proc/cpuinfo, colons and all; where there is none, what Python knows."""
    file = tmp_path / "cpuinfo"
    file.write_text(content, encoding="utf-8")
    monkeypatch.setattr(provenance, "Path", {"/proc/cpuinfo": file}.__getitem__)
    monkeypatch.setattr(platform, "processor", lambda: "fallback")
    assert provenance.cpu_name() == name


def high_water_mib() -> float:
    """The largest resident memory of this process as the kernel keeps it for the address space, MiB."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    (line,) = [line for line in status.splitlines() if line.startswith("VmHWM:")]
    return int(line.split()[1]) / 1024


@linux_only
def test_peak_memory_follows_what_is_allocated() -> None:
    """About 64 MiB more once 64 MiB are written to, and it stays when they are freed; in a process of its own."""
    script = (
        "import numpy as np\n"
        "from embeval.core.provenance import peak_rss_mib\n"
        "before = peak_rss_mib()\n"
        "block = np.ones(64 * 2**20, dtype=np.uint8)\n"
        "with_block = peak_rss_mib()\n"
        "del block\n"
        "print(before, with_block, peak_rss_mib())\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    before, with_block, after = map(float, done.stdout.split())
    assert with_block == pytest.approx(before + 64, abs=8)  # the kernel counts pages per thread, adds up now and then
    assert after == pytest.approx(with_block, abs=8)


@linux_only
def test_peak_memory_is_not_that_of_the_parent() -> None:
    """A small process started by a large one tells its own peak, as VmHWM has it."""
    ballast = np.ones(256 * 2**20, dtype=np.uint8)
    script = (
        "from embeval.core.provenance import peak_rss_mib\n"
        "line, = [each for each in open('/proc/self/status') if each.startswith('VmHWM:')]\n"
        "print(peak_rss_mib(), int(line.split()[1]) / 1024)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert high_water_mib() > ballast.nbytes / 2**20
    told, kept = map(float, done.stdout.split())
    assert told == pytest.approx(kept, rel=0.1)
