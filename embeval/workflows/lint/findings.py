"""What lint finds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

from embeval.core.specs import ModelSpec, RuntimeOptions


class Severity(StrEnum):
    """How bad it is."""

    ERROR = "error"
    """The data is refused, contradicts itself, or no model can get it right."""
    WARNING = "warning"
    """Numbers are likely to mislead."""
    NOTE = "note"
    """Good to know."""


@dataclass(frozen=True)
class Check:
    """A kind of finding."""

    code: str
    """Its name, which stays."""
    severity: Severity
    """How bad it is, unless a finding says otherwise."""
    title: str
    """What it means, in a sentence."""
    advice: str
    """What to do."""

    def at(
        self,
        message: str,
        *,
        file: str,
        line: int | None = None,
        ids: Sequence[str] = (),
        severity: Severity | None = None,
    ) -> Finding:
        """A finding of this kind."""
        return Finding(self, severity or self.severity, file, line, tuple(ids), message)


@dataclass(frozen=True)
class Finding:
    """One problem at one place."""

    check: Check
    severity: Severity
    file: str
    """Path within the folder."""
    line: int | None
    """Line, counted from 1; None for the file as a whole."""
    ids: tuple[str, ...]
    """Queries and documents concerned."""
    message: str
    """What is wrong here."""

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "code": self.check.code,
            "severity": self.severity.value,
            "file": self.file,
            "line": self.line,
            "ids": list(self.ids),
            "message": self.message,
            "advice": self.check.advice,
        }


@dataclass(frozen=True, kw_only=True)
class LintOptions:
    """What lint looks at."""

    split: str = "test"
    """The split, or ``all``."""
    public: bool = False
    """A published set: what can't be mended is a warning."""
    model: ModelSpec | None = None
    """Whose limits texts are held against."""
    runtime: RuntimeOptions = field(default_factory=RuntimeOptions)
    """How that model is run."""


class Ceiling(NamedTuple):
    """The most that any model can reach in a metric."""

    reachable: float
    """As the set is."""
    complete: float
    """If all relevant documents were there; below 1 for queries with more of them than the cut-off, or with none."""


@dataclass(frozen=True)
class Report:
    """All findings."""

    folder: str
    findings: tuple[Finding, ...]
    """The worst first, then by file and line."""
    counts: Mapping[str, int]
    """Documents, queries, and judgments by split."""
    ceilings: Mapping[str, Mapping[str, Ceiling]]
    """Split -> metric -> the most that any model can reach."""

    def of(self, severity: Severity) -> tuple[Finding, ...]:
        """Findings of that severity."""
        return tuple(each for each in self.findings if each.severity == severity)

    def passes(self, *, strict: bool = False) -> bool:
        """Whether there are no errors, with ``strict`` no warnings either."""
        return not self.of(Severity.ERROR) and not (strict and self.of(Severity.WARNING))

    def to_json(self) -> dict[str, Any]:
        """Plain values: summary, ceilings, findings."""
        return {
            "summary": {
                "folder": self.folder,
                "passes": self.passes(),
                "counts": dict(self.counts),
                "by_severity": {each.value: len(self.of(each)) for each in Severity},
                "by_code": dict(Counter(each.check.code for each in self.findings)),
            },
            "ceilings": {
                split: {name: value._asdict() for name, value in values.items()}
                for split, values in self.ceilings.items()
            },
            "findings": [each.to_json() for each in self.findings],
        }


def in_order(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """The worst first, then by code, file and line: the same for the same data."""
    worst = list(Severity)
    return tuple(
        sorted(
            findings,
            key=lambda each: (worst.index(each.severity), each.check.code, each.file, each.line or 0, each.ids),
        )
    )
