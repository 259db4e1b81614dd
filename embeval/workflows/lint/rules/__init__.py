"""The rules of lint, one file each, found by their file name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from embeval.registry import Registry
from embeval.workflows.lint.findings import Finding
from embeval.workflows.lint.gold import GoldSet


class Rule(Protocol):
    """What a module of this folder holds under the name ``RULE``."""

    def __call__(self, gold: GoldSet) -> Iterator[Finding]:
        """What the rule finds in a set."""


RULES: Registry[Rule] = Registry(
    kind="lint rule", package="embeval.workflows.lint.rules", attribute="RULE", group="embeval.lint_rules"
)
