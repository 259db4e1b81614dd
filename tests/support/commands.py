"""The command line as users meet it: a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Done:
    """What a command came to."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Standard output as one JSON value."""
        return json.loads(self.out)


def environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment of a user without settings and without a hub."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("EMBEVAL_", "PYTEST_"))}
    # Without the row of BM25, which would stand in every table; tests/cli/test_baseline.py has it.
    ours = {"HF_HUB_OFFLINE": "1", "COLUMNS": "160", "TERM": "dumb", "EMBEVAL_BM25": "false"}
    return {**kept, **ours, **(extra or {})}


def command(*words: str) -> list[str]:
    """``embeval`` with the interpreter of these tests."""
    return [sys.executable, "-m", "embeval", *words]


def embeval(*words: str, cwd: Path, env: Mapping[str, str] | None = None, timeout: float = 300) -> Done:
    """Runs ``embeval`` and waits for it."""
    done = subprocess.run(
        command(*words), cwd=cwd, env=environment(env), capture_output=True, text=True, timeout=timeout, check=False
    )
    return Done(done.returncode, done.stdout, done.stderr)
