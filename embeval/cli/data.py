"""``embeval data``: golden sets, made, checked and split."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from embeval.cli import _state
from embeval.cli._complete import complete_model
from embeval.cli._state import DebugOption, DeviceOption, JsonOption, QuietOption, ThreadsOption
from embeval.core.paths import expanded
from embeval.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from rich.console import RenderableType

    from embeval.workflows.lint.findings import Finding, Report
    from embeval.workflows.overlap import Overlap

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    help="Makes golden sets from what you have, checks them, and splits them.",
)

FolderArgument = Annotated[str, typer.Argument(help="A BEIR folder: corpus.jsonl, queries.jsonl, qrels/.")]
OVER_BOUND = 1
"""Exit code where a share is greater than the user allows."""
MaxShownOption = Annotated[
    int, typer.Option("--max-shown", envvar="EMBEVAL_MAX_SHOWN", help="Places listed of each kind of finding.", min=0)
]


@app.command()
def lint(
    folder: FolderArgument,
    split: Annotated[str, typer.Option(envvar="EMBEVAL_SPLIT", help="The split to look at, or 'all'.")] = "test",
    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            "-m",
            envvar="EMBEVAL_MODEL",
            help="Also says what this model's limit cuts off.",
            autocompletion=complete_model,
        ),
    ] = None,
    public: Annotated[
        bool,
        typer.Option(
            "--public",
            envvar="EMBEVAL_PUBLIC",
            help="A published set: what isn't in the corpus is a warning, with the ceiling that it sets.",
        ),
    ] = False,
    strict: Annotated[
        bool, typer.Option("--strict", envvar="EMBEVAL_STRICT", help="Exits with 3 on warnings too.")
    ] = False,
    fix: Annotated[
        bool,
        typer.Option("--fix", envvar="EMBEVAL_FIX", help="First mends what can be mended without losing anything."),
    ] = False,
    merge_duplicates: Annotated[
        bool,
        typer.Option(
            "--merge-duplicates",
            envvar="EMBEVAL_MERGE_DUPLICATES",
            help="With --fix: gives documents of the same text the same judgments.",
        ),
    ] = False,
    backup: Annotated[
        bool,
        typer.Option("--backup/--no-backup", envvar="EMBEVAL_BACKUP", help="Keeps mended files as NAME.orig."),
    ] = True,
    max_shown: MaxShownOption = 5,
    device: DeviceOption = None,
    threads: ThreadsOption = None,
    json: JsonOption = False,
    quiet: QuietOption = False,
    debug: DebugOption = False,
) -> None:
    """Checks a golden set before anything is encoded: every problem with its place, its effect and what to do.

    Exits with 3 where there are errors.

    Examples: embeval data lint my-set  ·  embeval data lint my-set --fix  ·  embeval data lint my-set -m demo --strict
    """
    if merge_duplicates and not fix:
        raise UsageError("--merge-duplicates changes files, so it needs --fix.")
    from embeval.workflows.lint import fixing
    from embeval.workflows.lint.findings import LintOptions
    from embeval.workflows.lint.run import lint as check
    from embeval.workflows.requests import parse_model

    options = LintOptions(
        split=split,
        public=public,
        model=parse_model(model) if model is not None else None,
        runtime=_state.runtime(device=device, num_threads=threads),
    )
    path = expanded(folder)
    changes = fixing.fix(path, split, merge_duplicates=merge_duplicates, backup=backup) if fix else []
    report = check(path, options, _state.progress())
    passes = report.passes(strict=strict)
    if json:
        value = report.to_json()
        value["summary"]["passes"] = passes
        _state.out_json({**value, "changes": [change._asdict() for change in changes]} if fix else value)
    else:
        for change in changes:
            _state.out_text(f"{_place(change.file, change.line)}: {change.done}\n")
        if fix and not changes:
            _state.note("There was nothing to mend.")
        _show_findings(report, max_shown)
    if not passes:
        raise typer.Exit(ExitCode.CANNOT_EVALUATE)


@app.command()
def overlap(
    folder: FolderArgument,
    training: Annotated[
        list[str],
        typer.Option(
            "--training",
            envvar="EMBEVAL_TRAINING",
            help="A file or folder of training texts: txt, jsonl, csv, tsv, parquet, each also with .gz. Repeatable.",
        ),
    ],
    texts: Annotated[
        list[str] | None,
        typer.Option(
            envvar="EMBEVAL_TEXTS",
            help="queries, positives, documents or all. Repeatable.  (default: queries and positives)",
        ),
    ] = None,
    split: Annotated[
        str, typer.Option(envvar="EMBEVAL_SPLIT", help="The split whose relevant documents are the positives.")
    ] = "test",
    column: Annotated[
        list[str] | None,
        typer.Option(envvar="EMBEVAL_COLUMN", help="A column of the corpus. Repeatable.  (default: every text)"),
    ] = None,
    ngram: Annotated[int, typer.Option(envvar="EMBEVAL_NGRAM", help="Words in a row that are looked for.")] = 13,
    threshold: Annotated[
        float,
        typer.Option(
            envvar="EMBEVAL_THRESHOLD",
            help="Share of its n-grams, or Jaccard index of its shingles, from which a text is contaminated.",
        ),
    ] = 0.8,
    fail_over: Annotated[
        float | None,
        typer.Option(
            "--fail-over",
            envvar="EMBEVAL_FAIL_OVER",
            help="Exits with 1 where a greater share of the queries, positives or documents is contaminated.",
            min=0.0,
            max=1.0,
        ),
    ] = None,
    max_shown: MaxShownOption = 20,
    json: JsonOption = False,
    quiet: QuietOption = False,
    debug: DebugOption = False,
) -> None:
    """Tells which texts of a golden set stand in a training corpus: as they are, in pieces, or nearly.

    Example: embeval data overlap my-set --training corpus/ --texts all --fail-over 0.01
    """
    from embeval.workflows import overlap as workflow

    roles = tuple(dict.fromkeys(role for each in texts or ("queries", "positives") for role in _roles(each)))
    options = workflow.OverlapOptions(
        texts=roles, split=split, ngram=ngram, threshold=threshold, columns=tuple(column or ())
    )
    corpora = [expanded(each) for each in training]
    found = workflow.overlap(expanded(folder), corpora, options, _state.progress())
    if json:
        _state.out_json(found.to_json())
    else:
        _show_overlap(found, max_shown)
    if fail_over is not None and found.worst > fail_over:
        _state.note(f"{found.worst:.2%} are contaminated, which is over the {fail_over:.2%} of --fail-over.")
        raise typer.Exit(OVER_BOUND)


def _roles(given: str) -> tuple[str, ...]:
    from embeval.workflows.overlap import ROLES

    if given == "all":
        return ("queries", "documents")
    if given not in ROLES:
        raise UsageError(f"--texts must be {', '.join(ROLES)} or all, not {given!r}.")
    return (given,)


def _show_overlap(found: Overlap, max_shown: int) -> None:
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
        _state.out(_indented(f"{_place(hit.text.file, hit.text.line)}  {_excerpt(hit.text.text)}"))
        _state.out(_indented(f"{_place(hit.file, hit.line)}  {hit.excerpt}"))
    if len(found.hits) > max_shown:
        _state.out(f"and {len(found.hits) - max_shown} more (--max-shown, --json)")
    _state.note(f"Compared with {plural(found.n_texts, 'text')} in {plural(found.n_files, 'file')}.")


def _excerpt(text: str) -> str:
    from embeval.workflows.overlap import excerpt

    return excerpt(text)


def _show_findings(report: Report, max_shown: int) -> None:
    from rich.text import Text

    groups: dict[tuple[str, str], list[Finding]] = {}
    for each in report.findings:
        groups.setdefault((each.severity, each.check.code), []).append(each)
    styles = {"error": "bold red", "warning": "bold yellow", "note": "bold cyan"}
    for (severity, code), found in groups.items():
        _state.out(Text.assemble((severity, styles[severity]), f"  {code}  ", (f"{len(found)}", "bold")))
        _state.out(_indented(found[0].check.title))
        for each in found[:max_shown]:
            _state.out(_indented(f"{_place(each.file, each.line)}  {each.message}", 4))
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


def _place(file: str, line: int | None) -> str:
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
