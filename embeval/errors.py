"""Every error that embeval raises on purpose, and the exit code each one ends with.

::

    EmbevalError                     70  (never raised itself)
    ├── UsageError                    2  the command or a name in it is wrong
    │   ├── ConfigError               2  embeval.yaml is wrong (carries file and line)
    │   └── UnknownNameError          2  no such task, backend, metric … (carries "did you mean")
    └── EvaluationError               3  the request is fine, but it can't be carried out
        ├── DataError                 3  evaluation data is missing or broken
        ├── ModelError                3  a model can't be found or loaded
        │   └── InvalidEmbeddingsError 3  a model gave NaN or Inf
        ├── StoreError                3  results can't be written or read back
        ├── EvidenceError             3  results are there, but no decision can rest on them
        │   └── NotComparableError    3  two results didn't measure the same thing
        └── MissingPackageError       3  a package that an extra brings is not installed

A message says in one to three lines what was wrong, where, and what to do. It is written for the person
who typed the command: the command line prints it without a traceback.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from enum import IntEnum


class ExitCode(IntEnum):
    """What the process ends with (README, "Exit codes")."""

    OK = 0
    OVER_BOUND = 1
    USAGE = 2
    CANNOT_EVALUATE = 3
    INCONCLUSIVE = 4
    INTERNAL = 70
    INTERRUPTED = 130


class EmbevalError(Exception):
    """Base of all errors raised on purpose."""

    exit_code: ExitCode = ExitCode.INTERNAL


class UsageError(EmbevalError):
    """The command, an option or a name in it is wrong."""

    exit_code = ExitCode.USAGE


class ConfigError(UsageError):
    """A setting is wrong; the message names the file and the line where it comes from one.

    ``key`` is the path of the setting inside its entry, so that whoever knows the file can find the line.
    """

    def __init__(self, message: str, key: tuple[str | int, ...] = ()) -> None:
        self.key = key
        super().__init__(message)


class UnknownNameError(UsageError):
    """A name that no registry knows.

    ``known`` are the names that would have been right; the closest are offered in the message.
    """

    def __init__(self, kind: str, name: str, known: Iterable[str], hint: str = "") -> None:
        self.kind, self.name, self.known = kind, name, tuple(sorted(known))
        parts = [f"Unknown {kind} {name!r}.", did_you_mean(name, self.known)]
        if not parts[1] and self.known:
            shown = ", ".join(self.known[:12]) + (", …" if len(self.known) > 12 else "")
            parts.append(f"Known: {shown}.")
        parts.append(hint)
        super().__init__(" ".join(part for part in parts if part))


class EvaluationError(EmbevalError):
    """The request is understood, but it can't be carried out."""

    exit_code = ExitCode.CANNOT_EVALUATE


class DataError(EvaluationError):
    """Evaluation data is missing, unreadable or inconsistent."""


class ModelError(EvaluationError):
    """A model can't be found, verified or loaded as asked."""


class InvalidEmbeddingsError(ModelError):
    """A model gave NaN or Inf; ``ids`` names the first texts concerned."""

    def __init__(self, message: str, ids: tuple[str, ...] = ()) -> None:
        self.ids = ids
        super().__init__(message)


class StoreError(EvaluationError):
    """Results can't be written, or what is stored is broken."""


class EvidenceError(EvaluationError):
    """Results that no decision can rest on: scores that don't follow from their items, a date in the future."""


class NotComparableError(EvidenceError):
    """Two results that didn't measure the same thing; ``parts`` are the parts in which they differ."""

    def __init__(self, message: str, parts: tuple[str, ...] = ()) -> None:
        self.parts = parts
        super().__init__(message)


class MissingPackageError(EvaluationError, ImportError):
    """A package that belongs to an optional extra, or with none to the full install, is not installed."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        self.package, self.extra = package, extra
        advice = (
            f"Install the extra: pip install 'embeval-toolkit[{extra}]' (from a checkout: pip install '.[{extra}]')."
            if extra
            else "A light install lacks it. Install everything: pip install embeval-toolkit (from a checkout: "
            "pip install .)."
        )
        super().__init__(f"{purpose} needs the package {package!r}, which is not installed.\n{advice}")


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """One sentence that offers the closest known names, or an empty string."""
    by_folded = {candidate.casefold(): candidate for candidate in known}
    close = difflib.get_close_matches(name.casefold(), by_folded, n=3, cutoff=0.6)
    if not close:
        return ""
    return "Did you mean " + " or ".join(repr(by_folded[match]) for match in close) + "?"
