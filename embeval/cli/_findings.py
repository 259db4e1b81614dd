"""What ``embeval data lint`` and ``embeval data overlap`` print."""

from __future__ import annotations

from typing import TYPE_CHECKING

from embeval.cli import _state

if TYPE_CHECKING:
    from rich.console import RenderableType

    from embeval.workflows.lint.findings import Finding, Report
    from embeval.workflows.overlap import Overlap


def overlap(found: Overlap, max_shown: int) -> None:
    from embeval.cli import _tables
    from embeval.core.words import plural

    rows = [
        [
            role,
            f"{share.n:,}",
            f"{share.contaminated:,}",
            f"{share.share:.2%}",
            f"{share.touched:,}",
            f"{share.short:,}",
        ]
        for role, share in found.shares.items()
    ]
    headings = ["Texts", "Number", "Contaminated", "Share", "With some n-gram", "Too short for n-grams"]
    spare = ("Too short for n-grams", "With some n-gram")
    _state.out(_tables.fitting(headings, rows, _state.console(), right=headings[1:], spare=spare))
    for hit in found.hits[:max_shown]:
        value = "" if hit.kind == "exact" else f" {hit.value:.2f}"
        _state.out(f"{hit.kind}{value}  {hit.text.role} {hit.text.id!r}")
        _state.out(_indented(f"{place(hit.text.file, hit.text.line)}  {_excerpt(hit.text.text)}"))
        _state.out(_indented(f"{place(hit.file, hit.line)}  {hit.excerpt}"))
    if len(found.hits) > max_shown:
        _state.out(f"and {len(found.hits) - max_shown} more (--max-shown, --json)")
    _state.note(f"Compared with {plural(found.n_texts, 'text')} in {plural(found.n_files, 'file')}.")


def _excerpt(text: str) -> str:
    from embeval.workflows.overlap import excerpt

    return excerpt(text)


def report(report: Report, max_shown: int) -> None:
    from rich.text import Text

    groups: dict[tuple[str, str], list[Finding]] = {}
    for each in report.findings:
        groups.setdefault((each.severity, each.check.code), []).append(each)
    styles = {"error": "bold red", "warning": "bold yellow", "note": "bold cyan"}
    for (severity, code), found in groups.items():
        _state.out(Text.assemble((severity, styles[severity]), f"  {code}  ", (f"{len(found)}", "bold")))
        _state.out(_indented(found[0].check.title))
        for each in found[:max_shown]:
            _state.out(_indented(f"{place(each.file, each.line)}  {each.message}", 4))
        if 0 < max_shown < len(found):
            _state.out(_indented(f"and {len(found) - max_shown} more (--max-shown, --json)", 4))
        _state.out(_advice(found[0].check.advice))
        _state.out("")
    for split, values in report.ceilings.items():
        if lines := [
            f"{name} {value.reachable:.4f} (complete: {value.complete:.4f})"
            for name, value in values.items()
            if value.reachable < value.complete
        ]:
            _state.out(f"The most that a model can reach on {split}: {', '.join(lines)}.")
    counts = ", ".join(f"{n:,} {name.replace('_', ' of ', 1)}" for name, n in report.counts.items())
    by_severity = ", ".join(_counted(report, severity) for severity in styles)
    _state.out(f"{by_severity}; in {counts}.")


def _counted(report: Report, severity: str) -> str:
    from embeval.core.words import plural

    return plural(sum(each.severity == severity for each in report.findings), severity)


def place(file: str, line: int | None) -> str:
    return file if line is None else f"{file}:{line}"


def _advice(text: str) -> RenderableType:
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    made = Table.grid(padding=(0, 1, 0, 0))
    made.add_row("→", Text(text))
    return Padding(made, (0, 0, 0, 2), expand=False)


def _indented(text: str, by: int = 2) -> RenderableType:
    from rich.padding import Padding
    from rich.text import Text

    return Padding(Text(text, overflow="fold"), (0, 0, 0, by), expand=False)
