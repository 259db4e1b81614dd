"""Which code, packages and hardware made a number."""

from __future__ import annotations

import os
import platform
import re
import resource
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from embeval.core.border import BORDER

PACKAGES = (
    "embeval-toolkit",
    "numpy",
    "scipy",
    "torch",
    "transformers",
    "tokenizers",
    "sentence-transformers",
    "faiss-cpu",
    "bm25s",
    "PyStemmer",
    "pyarrow",
    "mteb",
    "datasets",
    "scikit-learn",
)
"""Packages whose version can move a number."""


@dataclass(frozen=True, kw_only=True)
class Provenance:
    """Equal for two runs of the same code on the same machine."""

    __pydantic_config__ = BORDER

    python: str
    """Version of Python."""
    packages: Mapping[str, str]
    """Installed versions of the packages that can move a number."""
    git_commit: str | None = None
    """Commit of the folder that the run was started in, if it is a git repository."""
    git_dirty: bool | None = None
    """Whether tracked files differed from that commit."""
    os: str
    """Operating system and machine type."""
    cpu: str
    """Name of the processor."""
    n_cpus: int
    """Processors that this process may use."""
    device: str | None = None
    """Device that the model ran on, with the name of a GPU."""
    num_threads: int | None = None
    """CPU threads of the model."""
    batch_tokens: int | None = None
    """Padded tokens per batch."""
    extra: Mapping[str, str] = field(default_factory=dict)
    """What a backend adds: execution providers, remote code."""


def collect(
    *,
    device: str | None = None,
    num_threads: int | None = None,
    batch_tokens: int | None = None,
    extra: Mapping[str, str] | None = None,
) -> Provenance:
    """The provenance of a run in this process."""
    commit, dirty = git_state()
    return Provenance(
        python=platform.python_version(),
        packages=installed(PACKAGES),
        git_commit=commit,
        git_dirty=dirty,
        os=f"{platform.system()} {platform.machine()}",
        cpu=cpu_name(),
        n_cpus=n_cpus(),
        device=device,
        num_threads=num_threads,
        batch_tokens=batch_tokens,
        extra=dict(extra or {}),
    )


def installed(packages: tuple[str, ...]) -> dict[str, str]:
    """Versions of those of the packages that are installed, read from metadata without importing them."""
    found = {}
    for package in packages:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def git_state(folder: Path | None = None) -> tuple[str | None, bool | None]:
    """(commit, dirty) of the repository around a folder; (None, None) without git or repository."""

    def git(*arguments: str) -> str | None:
        try:
            done = subprocess.run(
                ["git", *arguments],
                cwd=folder,
                capture_output=True,
                text=True,
                timeout=10,
                env={**os.environ, "GIT_OPTIONAL_LOCKS": "0"},
            )
        except (OSError, subprocess.TimeoutExpired):
            return None
        return done.stdout.strip() if done.returncode == 0 else None

    commit = git("rev-parse", "HEAD")
    if commit is None:
        return None, None
    status = git("status", "--porcelain", "--untracked-files=no")
    return commit, None if status is None else bool(status)


def cpu_name() -> str:
    """Name of the processor as the system tells it."""
    if sys.platform == "linux":
        try:
            for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
                if line.startswith("model name"):
                    return line.split(":", 1)[1].strip()
        except OSError:
            pass
    return platform.processor() or platform.machine()


def n_cpus() -> int:
    """Processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def peak_rss_mib() -> float:
    """Largest resident memory of this process so far, MiB."""
    if sys.platform == "linux":
        # ru_maxrss survives fork and exec, so it may be the peak of whoever started this process.
        status = Path("/proc/self/status").read_text(encoding="utf-8")
        if (found := re.search(r"^VmHWM:\s+(\d+) kB", status, re.MULTILINE)) is not None:
            return round(int(found[1]) / 1024, 1)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return round(peak / (1024 * 1024 if sys.platform == "darwin" else 1024), 1)
