"""``embeval models``: what a model is."""

from __future__ import annotations

from typing import Annotated

import typer

from embeval.cli import _state
from embeval.cli._complete import complete_model
from embeval.cli._state import DebugOption, JsonOption, QuietOption

app = typer.Typer(
    add_completion=False, no_args_is_help=True, help="Shows what a model is: dimensions, limits, prompts, size."
)


@app.callback()
def _group() -> None:
    """Shows what a model is: dimensions, limits, prompts, size."""


@app.command()
def show(
    model: Annotated[str, typer.Argument(help="A model as for run -m.", autocompletion=complete_model)],
    json: JsonOption = False,
    quiet: QuietOption = False,
    debug: DebugOption = False,
) -> None:
    """Loads a model and shows its dimensions, limits, prompts, size and revision."""
    from embeval.core import border
    from embeval.encoders import loading
    from embeval.workflows.requests import parse_model

    located = loading.resolve(parse_model(model))
    encoder = loading.load(located)
    info = encoder.info
    folder = located.folder
    size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) if folder is not None else 0
    facts = {
        "dimensions": info.dim,
        "max_seq_length": info.max_seq_length,
        "pooling": info.pooling,
        "similarity": info.similarity,
        "prompts": dict(info.prompts),
        "parameters": info.n_parameters,
        "disk_bytes": size,
        "device": info.device,
        "batch_tokens": info.batch_tokens,
        "remarks": list(info.remarks),
    }
    if json:
        _state.out_json({"model": border.dump(encoder.spec), "digest": encoder.spec.digest, **facts})
        return
    from embeval.cli import _tables

    made = _tables.table([encoder.spec.label, ""])
    for name, value in {
        "name": encoder.spec.name,
        "backend": encoder.spec.backend,
        "revision": encoder.spec.revision,
        "digest": encoder.spec.digest[:8],
        **facts,
        "prompts": "\n".join(f"{role}: {text!r}" for role, text in info.prompts.items()) or "none declared",
        "parameters": f"{info.n_parameters:,}" if info.n_parameters is not None else "not known",
        "disk_bytes": f"{size:,}",
        "remarks": "\n".join(info.remarks) or "none",
    }.items():
        _tables.add(made, [name, "none" if value is None else str(value)])
    _state.out(made)
