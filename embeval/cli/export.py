"""``embeval export``: a model as ONNX graphs with a parity report."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from embeval.cli import _state
from embeval.cli._complete import complete_model
from embeval.cli._state import DataOption, DebugOption, DeviceOption, JsonOption, QuietOption, ThreadsOption
from embeval.core.paths import expanded
from embeval.errors import ConfigError, ExitCode

if TYPE_CHECKING:
    from embeval.encoders.export import Precision
    from embeval.workflows.export import Report
    from embeval.workflows.trials import Trial

app = typer.Typer(add_completion=False)


@app.command()
def export(
    model: Annotated[str, typer.Argument(help="A model as for run -m.", autocompletion=complete_model)],
    out: Annotated[
        str | None,
        typer.Option("--out", "-o", envvar="EMBEVAL_OUT", help="Folder to write.  (default: NAME-onnx)"),
    ] = None,
    to: Annotated[str, typer.Option("--to", envvar="EMBEVAL_TO_FORMAT", help="Format; onnx is the only one.")] = "onnx",
    precision: Annotated[
        str,
        typer.Option(
            envvar="EMBEVAL_EXPORT_PRECISION",
            help="fp32, fp16, int8 (activations scaled batch by batch), int8-static (scaled on the sample); several "
            "with commas.",
        ),
    ] = "fp32",
    sample: Annotated[
        str | None,
        typer.Option(
            "--sample",
            envvar="EMBEVAL_SAMPLE",
            help="Texts to compare and calibrate on: a task as for run -t, of documents, pairs or texts; pairs also "
            "give the change in Spearman.  "
            "(default: those that come with the package)",
        ),
    ] = None,
    data: DataOption = None,
    min_cosine: Annotated[
        float | None,
        typer.Option(
            "--min-cosine",
            envvar="EMBEVAL_MIN_COSINE",
            help="Smallest cosine of a text's two vectors that passes, in place of the bounds of each precision.",
            min=0.0,
            max=1.0,
        ),
    ] = None,
    min_spearman: Annotated[
        float | None,
        typer.Option(
            "--min-spearman",
            envvar="EMBEVAL_MIN_SPEARMAN",
            help="For a cross-encoder: smallest rank correlation of its scores that passes.",
            min=0.0,
            max=1.0,
        ),
    ] = None,
    lm_head: Annotated[
        bool,
        typer.Option(
            "--lm-head",
            envvar="EMBEVAL_LM_HEAD",
            help="With the language-model head, for tasks that score tokens (pseudo_likelihood, masked_lm …); without "
            "it the graph gives vectors.",
        ),
    ] = False,
    max_loss_change: Annotated[
        float | None,
        typer.Option(
            "--max-loss-change",
            envvar="EMBEVAL_MAX_LOSS_CHANGE",
            help="With --lm-head: largest change of the mean loss that passes, in nats a token, in place of the "
            "bounds of each precision.",
            min=0.0,
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", envvar="EMBEVAL_FORCE", help="Replaces an earlier export.")] = False,
    device: DeviceOption = None,
    threads: ThreadsOption = None,
    json: JsonOption = False,
    quiet: QuietOption = False,
    debug: DebugOption = False,
) -> None:
    """Writes a model as ONNX graphs, each compared with the model itself.

    Where one gives too different vectors, nothing is written and the exit code
    is 3. Bounds on the smallest cosine and on the nearest ten that stay the
    same: fp32 0.9999 and 99 %, fp16 0.999 and 95 %, int8 0.97 and 80 %. For a
    cross-encoder (a reranker) the same figures bound the rank correlation of
    its scores, and the queries that keep their best document. With --lm-head
    they are on log-probabilities of tokens, in nats: mean difference, change of
    the mean loss, first guesses that stay: fp32 0.001, 0.001, 99 %, fp16 0.02,
    0.01, 98 %, int8 0.3, 0.1, 90 %.

    Examples: embeval export demo -o minilm --precision fp32,int8  ·  embeval run -m onnx:minilm,dtype=int8 -t demo-docs
    """
    from embeval.workflows import export as workflow
    from embeval.workflows import samples
    from embeval.workflows.requests import parse_model

    if to != "onnx":
        raise ConfigError(f"--to must be onnx, not {to!r}.")
    spec = parse_model(model)
    precisions = _precisions(precision)
    name = Path(os.path.realpath(spec.name)).name  # "." has one too
    report = workflow.run(
        spec,
        expanded(out) if out else Path(f"{name}-onnx"),
        precisions,
        sample=samples.take(sample, data=expanded(data) if data else None),
        runtime=_state.runtime(device=device, num_threads=threads),
        min_cosine=min_cosine,
        min_spearman=min_spearman,
        max_loss_change=max_loss_change,
        lm_head=lm_head,
        overwrite=force,
        say=lambda text: _state.note(f"{text} …"),
    )
    if json:
        _state.out_json({"folder": str(report.folder), "written": not report.problems, **report.to_json()})
    else:
        _show(report)
    if report.problems:
        _state.error_line(f"Error: {report.folder} was not written. " + "; ".join(report.problems[:2]) + ".")
        raise typer.Exit(ExitCode.CANNOT_EVALUATE)
    _state.note(f"Written: {report.folder}. Use it with {' or '.join(_names(report))}")


def _names(report: Report) -> list[str]:
    """What uses it, graph by graph: a word for ``run``, or an entry in the options of a retrieval task."""
    dtypes = {"fp32": "", "fp16": "float16", "int8": "int8"}
    words = []
    for each in report.graphs:
        dtype = dtypes.get(each.precision)
        if report.of_cross_encoder:
            words.append(f"rerank: {{model: {report.folder}, backend: onnx{f', dtype: {dtype}' if dtype else ''}}}")
        else:
            settings = f",dtype={dtype}" if dtype else "" if dtype == "" else f",dtype=int8,file={each.file}"
            words.append(f"-m onnx:{report.folder}{settings}")
    return words


def _precisions(words: str) -> list[Precision]:
    from embeval.encoders.export import FILES

    wanted: list[Precision] = []
    for word in words.split(","):
        if word.strip() not in FILES:
            raise ConfigError(f"--precision must be {', '.join(FILES)}, or several with commas, not {word.strip()!r}.")
        wanted.append(word.strip())  # type: ignore[arg-type]
    return list(dict.fromkeys(wanted))


def _show(report: Report) -> None:
    from embeval.cli import _tables
    from embeval.core import figures
    from embeval.encoders.parity import Parity
    from embeval.language_models.parity import TokenParity
    from embeval.rerankers.parity import ScoreParity

    def measured(trial: Trial) -> list[str]:
        parity = trial.parity
        if isinstance(parity, ScoreParity):
            return [f"{parity.spearman:.6f}", f"{parity.max_abs:.1e}", f"{parity.top_1:.1%}"]
        if isinstance(parity, TokenParity):
            changes = [f"{parity.mean_abs:.1e}", f"{parity.max_abs:.1e}", f"{parity.loss_change:+.1e}"]
            return [*changes, f"{parity.top_1:.1%}"]
        assert isinstance(parity, Parity)
        return [
            f"{parity.cosine_min:.6f}",
            f"{parity.cosine_mean:.6f}",
            f"{parity.max_abs:.1e}",
            f"{parity.top_10_overlap:.1%}",
            "" if trial.spearman is None else f"{trial.spearman:.4f}",
            "" if trial.spearman_delta is None else f"{trial.spearman_delta:+.4f}",
        ]

    def cells(name: str, file: str, size: int, trial: Trial, verdict: str) -> list[str]:
        speed = trial.tokens_per_s / report.reference.tokens_per_s
        how_fast = [f"{trial.tokens_per_s:,.0f}", f"{speed:.2f}x"]
        return [name, file, figures.size(size), *how_fast, *measured(trial), verdict]

    rows = [cells("torch", "", report.model_bytes, report.reference, "")]
    for each in report.graphs:
        verdict = "passes" if each.trial.passes else "fails: " + "; ".join(each.trial.problems)
        rows.append(cells(each.precision, each.file, each.n_bytes, each.trial, verdict))
    of_vectors = ["Cosine min", "mean", "Max diff", "Top 10", "Spearman", "Change"]
    of_scores = ["Rank corr.", "Max diff", "Top 1"]
    of_tokens = ["Mean diff", "Max diff", "Loss", "Top 1"]
    columns = of_tokens if report.of_language_model else of_scores if report.of_cross_encoder else of_vectors
    measures = ["Size", "Tokens/s", "Speed", *columns]
    headings = ["", "File", *measures, "Parity"]
    spare = ("File", "Max diff", "mean", "Spearman", "Speed")
    _state.out(_tables.fitting(headings, rows, _state.console(), right=measures, spare=spare))
    if report.of_language_model:
        legend = (
            "Diff: of a token's log-probability and the model's own, in nats. Loss: change of its mean. "
            "Top 1: tokens that are the first guess of both or of neither."
        )
    elif report.of_cross_encoder:
        legend = "Rank corr.: of a pair's score and the model's own. Top 1: queries whose best document stays the same."
    else:
        legend = "Cosine: a text's vector and the model's own. Top 10: nearest texts that stay the same."
    if report.reference.spearman is not None:
        legend += " Change: of Spearman with the gold scores."
    _state.note(legend)
