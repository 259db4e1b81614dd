"""The one door through which optional and heavy packages are imported."""

from __future__ import annotations

import importlib
from types import ModuleType

from embeval.errors import EvaluationError, MissingPackageError


def require(package: str, *, extra: str, purpose: str) -> ModuleType:
    """The imported package. Raises ``MissingPackageError``, which names the extra that brings it.

    ``purpose`` starts the message: "The demo model", "Fine-tuning with LoRA".
    """
    try:
        return importlib.import_module(package)
    except ModuleNotFoundError as error:
        if error.name is not None and error.name.split(".")[0] != package.split(".")[0]:
            raise  # the package is there, but one of its own imports is missing: not ours to explain away
        raise MissingPackageError(package, extra, purpose) from None


def not_installed(error: ModuleNotFoundError) -> EvaluationError | None:
    """What to tell where a package of the full install is missing; None for a module of embeval's own."""
    package = (error.name or "embeval").split(".")[0]
    if package == "embeval":
        return None
    return EvaluationError(
        f"The package {package!r} is not installed. A light install has gate, compare, leaderboard and results.\n"
        "Install everything for the rest: pip install embeval-toolkit (from a checkout: pip install .)."
    )
