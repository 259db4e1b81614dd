"""All rules on one folder."""

from __future__ import annotations

from pathlib import Path

from embeval.core.progress import Progress, Silent
from embeval.data.beir import Unreachable, load_beir
from embeval.errors import DataError
from embeval.workflows.lint import reading
from embeval.workflows.lint.ceilings import ceilings
from embeval.workflows.lint.findings import Check, Finding, LintOptions, Report, Severity, in_order
from embeval.workflows.lint.rules import RULES

REFUSED = Check("refused", Severity.ERROR, "The set can't be loaded.", "Mend what the message names.")


def lint(folder: Path, options: LintOptions, progress: Progress | None = None) -> Report:
    """Everything found in a golden set. Raises ``DataError`` where there is no such folder or split."""
    watch = progress or Silent()
    gold, findings = reading.read(folder, options)
    watch.start("rules", len(RULES.names()), "rules")
    for name in RULES.names():
        findings += RULES.get(name)(gold)
        watch.advance(1)
    watch.finish()
    if not any(each.severity == Severity.ERROR for each in findings):
        findings += _refused(folder, tuple(gold.splits))
    counts = {"documents": len(gold.documents), "queries": len(gold.queries)}
    counts |= {f"judgments_{split}": len(rows) for split, rows in gold.splits.items()}
    return Report(str(folder), in_order(findings), counts, ceilings(gold))


def _refused(folder: Path, splits: tuple[str, ...]) -> list[Finding]:
    """What an evaluation would refuse although no rule has found it: lint must not say yes to that."""
    found = []
    for split in splits:
        try:
            load_beir(folder, split, unreachable=Unreachable.KEEP)
        except DataError as error:
            found.append(REFUSED.at(str(error), file="."))
    return found
