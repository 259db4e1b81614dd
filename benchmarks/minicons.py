"""minicons, asked from here: it needs transformers 4, so it runs in an environment that is made for it once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import venv
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

from embeval.encoders.locate import cache_folder

REQUIREMENTS = Path(__file__).with_name("requirements-minicons.txt")
SCRIPT = Path(__file__).parent / "peers" / "minicons_pll.py"
THREADS = 2

Mode = Literal["original", "within_word_l2r"]


@dataclass(frozen=True)
class Scored:
    """What minicons says of each sentence."""

    mode: Mode
    batch_size: int
    sums: list[float]
    """Sum of ln p, nats, per sentence."""
    tokens: list[list[str]]
    values: list[list[float]]
    """ln p of each token, nats."""
    seconds: list[float]
    """Of each round, without loading the model."""


def python() -> Path:
    """The Python that has minicons: below the cache folder, installed there first where it isn't yet.

    Raises:
        subprocess.CalledProcessError: If pip can't install what the requirements name.
    """
    requirements = REQUIREMENTS.read_bytes()
    folder = cache_folder() / "peers" / f"minicons-{sha256(requirements).hexdigest()[:12]}"
    found = folder / "bin" / "python"
    done = folder / "installed"
    if not done.exists():
        print(f"Installing minicons into {folder} …", file=sys.stderr)
        venv.create(folder, clear=True, with_pip=True)
        install = ["-m", "pip", "install", "--disable-pip-version-check", "--quiet", "-r", str(REQUIREMENTS)]
        subprocess.run([str(found), *install], check=True)
        done.touch()
    return found


def minicons(
    model: Path, sentences: Sequence[str], mode: Mode, batch_size: int = 1, *, rounds: int = 1, threads: int = THREADS
) -> Scored:
    """One mode at one batch size; see ``ask``."""
    (scored,) = ask(model, sentences, [(mode, batch_size)], rounds=rounds, threads=threads)[0]
    return scored


def ask(
    model: Path,
    sentences: Sequence[str],
    runs: Sequence[tuple[Mode, int]],
    *,
    rounds: int = 1,
    threads: int = THREADS,
) -> tuple[list[Scored], dict[str, str]]:
    """(what minicons says in each mode at each batch size, with the model loaded once; versions of its packages).

    Raises:
        RuntimeError: If it fails, with its last words.
    """
    asked = {
        "model": str(model),
        "sentences": list(sentences),
        "threads": threads,
        "rounds": rounds,
        "runs": [{"mode": mode, "batch_size": batch_size} for mode, batch_size in runs],
    }
    with tempfile.TemporaryDirectory() as folder:
        question, answer = Path(folder) / "asked.json", Path(folder) / "answer.json"
        question.write_text(json.dumps(asked), encoding="utf-8")
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        command = [str(python()), str(SCRIPT), str(question), str(answer)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
        if done.returncode != 0:
            raise RuntimeError(f"minicons failed:\n{done.stderr[-2000:]}")
        found: dict[str, Any] = json.loads(answer.read_text(encoding="utf-8"))
    return [Scored(**run) for run in found["runs"]], found["versions"]
