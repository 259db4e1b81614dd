"""``embeval models``: what a model is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from embeval.cli import _state
from embeval.cli._complete import complete_model
from embeval.cli._state import DataOption, DebugOption, DeviceOption, JsonOption, QuietOption, ThreadsOption
from embeval.core.paths import expanded
from embeval.errors import ExitCode

if TYPE_CHECKING:
    from embeval.workflows.model_facts import Estimate

app = typer.Typer(add_completion=False, no_args_is_help=True, help="Shows what a model is, or checks that it behaves.")


@app.callback()
def _group() -> None:
    """Shows what a model is, or checks that it behaves."""


SampleOption = Annotated[
    str | None,
    typer.Option(
        "--sample",
        envvar="EMBEVAL_SAMPLE",
        help="Texts to try it on: a task as for run -t.  (default: texts that come with the package)",
    ),
]


@app.command()
def show(
    model: Annotated[str, typer.Argument(help="A model as for run -m.", autocompletion=complete_model)],
    documents: Annotated[
        int | None,
        typer.Option(
            "--documents", envvar="EMBEVAL_DOCUMENTS", help="Also measures and says what so many documents take.", min=1
        ),
    ] = None,
    sample: SampleOption = None,
    data: DataOption = None,
    device: DeviceOption = None,
    threads: ThreadsOption = None,
    json: JsonOption = False,
    quiet: QuietOption = False,
    debug: DebugOption = False,
) -> None:
    """Loads a model and shows its dimensions, limits, prompts, size and revision, and what a corpus takes."""
    from dataclasses import asdict

    from embeval.core import border
    from embeval.workflows import model_facts, samples
    from embeval.workflows.requests import parse_model

    facts = model_facts.look(parse_model(model), _state.runtime(device=device, num_threads=threads))
    spec, estimate = facts.encoder.spec, None
    if documents is not None:
        texts = samples.take(sample, data=expanded(data) if data else None)
        estimate = model_facts.estimate(facts.encoder, documents, texts)
    if json:
        known = {"model": border.dump(spec), "digest": spec.digest, **facts.to_json()}
        _state.out_json({**known, "estimate": asdict(estimate)} if estimate is not None else known)
        return
    from embeval.cli import _tables
    from embeval.core import figures

    shown: dict[str, Any] = {
        "name": spec.name,
        "backend": spec.backend,
        "revision": spec.revision,
        "digest": spec.digest[:8],
        **facts.to_json(),
    }
    info = facts.encoder.info
    shown |= {
        "prompts": "\n".join(f"{role}: {text!r}" for role, text in info.prompts.items()) or "none declared",
        "languages": ", ".join(facts.known.languages) or "not declared",
        "license": facts.known.license or "not declared",
        "parameters": f"{facts.known.parameters:,}" if facts.known.parameters is not None else "not known",
        "disk": figures.size(facts.disk_bytes),
        "weights": figures.size(facts.known.weight_bytes) if facts.known.weight_bytes is not None else "not known",
        "memory": ", ".join(f"{dtype} {figures.size(size)}" for dtype, size in facts.memory_bytes.items())
        or "not known",
        "remarks": "\n".join(info.remarks) or "none",
    }
    made = _tables.table([spec.label, ""])
    for name, value in shown.items():
        if name not in ("disk_bytes", "weight_bytes", "memory_bytes"):
            _tables.add(made, [name, "none" if value is None else str(value)])
    if estimate is not None:
        for name, text in _estimate_lines(estimate):
            _tables.add(made, [name, text])
    _state.out(made)


def _estimate_lines(estimate: Estimate) -> list[tuple[str, str]]:
    from embeval.core import figures

    tokens = estimate.tokens_per_document
    length = f", of {tokens:.0f} tokens each" if tokens is not None else ""
    sizes = ", ".join(f"{kind} {figures.size(size)}" for kind, size in estimate.vector_bytes.items())
    return [
        (
            f"{estimate.n_documents:,} documents",
            f"{figures.duration(estimate.hours * 3600)} here: {estimate.documents_per_s:,} a second{length}",
        ),
        ("their vectors", sizes),
    ]


@app.command()
def check(
    model: Annotated[str, typer.Argument(help="A model as for run -m.", autocompletion=complete_model)],
    sample: SampleOption = None,
    data: DataOption = None,
    device: DeviceOption = None,
    threads: ThreadsOption = None,
    json: JsonOption = False,
    quiet: QuietOption = False,
    debug: DebugOption = False,
) -> None:
    """Checks that a text's vector hangs on nothing but the text: batch, order, padding, odd characters, length.

    Exits with 3 where it does. The bound is that of the number format: 1e-6 in float32, more in the others.
    """
    from dataclasses import asdict

    from embeval.workflows import model_checks, samples
    from embeval.workflows.requests import parse_model

    spec = parse_model(model)
    texts = samples.take(sample, data=expanded(data) if data else None)
    findings = list(model_checks.run(spec, _state.runtime(device=device, num_threads=threads), texts))
    failed = [finding for finding in findings if finding.state == "failed"]
    if json:
        _state.out_json({"model": spec.label, "passes": not failed, "checks": [asdict(each) for each in findings]})
    else:
        from embeval.cli import _tables

        rows = [[finding.state, finding.name, finding.detail] for finding in findings]
        _state.out(_tables.fitting(["", spec.label, "Found"], rows, _state.console()))
    if failed:
        _state.note(f"{len(failed)} of {len(findings)} checks failed.")
        raise typer.Exit(ExitCode.CANNOT_EVALUATE)
