"""``embeval cache``: the vectors that were computed before."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from embeval.cli import _state
from embeval.cli._state import DebugOption, JsonOption, QuietOption
from embeval.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from embeval.encoders.cache.upkeep import Pruned, Stats, Verified

app = typer.Typer(
    add_completion=False, no_args_is_help=True, help="Shows the embedding cache, makes room in it, or checks it."
)


@app.callback()
def _group() -> None:
    """Shows the embedding cache, makes room in it, or checks it."""


@app.command()
def stats(json: JsonOption = False, quiet: QuietOption = False, debug: DebugOption = False) -> None:
    """Shows what is in the cache: for each model, role and prompt, how many vectors and how large."""
    from contextlib import closing
    from dataclasses import asdict

    from embeval.encoders.cache import open_cache, upkeep

    with closing(open_cache()) as cache:
        found = upkeep.stats(cache)
    if json:
        _state.out_json({**asdict(found), "folder": str(found.folder)})
        return
    _show(found)


@app.command()
def prune(
    model: Annotated[
        str | None,
        typer.Option(
            "--model", "-m", envvar="EMBEVAL_PRUNE_MODEL", help="Removes models called so, or with it in the name."
        ),
    ] = None,
    to: Annotated[
        str | None,
        typer.Option(
            "--to", envvar="EMBEVAL_PRUNE_TO", help="Removes the oldest until this size is left: 5GB, 500MiB."
        ),
    ] = None,
    all_: Annotated[
        bool, typer.Option("--all", envvar="EMBEVAL_PRUNE_ALL", help="Removes everything, also a cache that is broken.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", envvar="EMBEVAL_DRY_RUN", help="Only says what would be removed.")
    ] = False,
    json: JsonOption = False,
    quiet: QuietOption = False,
    debug: DebugOption = False,
) -> None:
    """Makes room: removes vectors of a model, the oldest ones, or all. They are computed again when needed."""
    from contextlib import closing
    from dataclasses import asdict

    from embeval.encoders.cache import open_cache, upkeep
    from embeval.encoders.cache.sizes import parse_size

    if (model is not None) + (to is not None) + all_ != 1:
        raise UsageError("Say what to remove: one of --model, --to and --all.\nSee 'embeval cache prune --help'.")
    with closing(open_cache()) as cache:
        if model is not None:
            done = upkeep.prune_models(cache, model, dry_run=dry_run)
        elif to is not None:
            done = upkeep.prune_to(cache, parse_size(to, "--to"), dry_run=dry_run)
        else:
            done = upkeep.prune_all(cache, dry_run=dry_run)
    if json:
        _state.out_json({**asdict(done), "dry_run": dry_run})
        return
    _state.out(_freed(done, dry_run))


@app.command()
def verify(
    fix: Annotated[
        bool, typer.Option("--fix", envvar="EMBEVAL_FIX", help="Removes what is damaged, and what is left over.")
    ] = False,
    json: JsonOption = False,
    quiet: QuietOption = False,
    debug: DebugOption = False,
) -> None:
    """Reads every vector and says which are not as they were written.

    Ends with exit code 3 where there are such. They are never used: each one is checked when it is read.
    """
    from contextlib import closing
    from dataclasses import asdict

    from embeval.encoders.cache import open_cache, upkeep

    with closing(open_cache()) as cache:
        found = upkeep.verify(cache, _state.progress(), fix=fix)
    if json:
        _state.out_json({**asdict(found), "left_over": [str(path) for path in found.left_over], "fixed": fix})
    else:
        _show_verified(found, fix)
    if found.bad and not fix:
        raise typer.Exit(ExitCode.CANNOT_EVALUATE)


def _show(found: Stats) -> None:
    from embeval.cli import _tables
    from embeval.encoders.cache.sizes import size_text

    if not found.shelves:
        _state.out("The cache is empty.")
        return
    rows = [
        [
            shelf.description.get("model", shelf.key[:8]),
            shelf.description.get("role", ""),
            repr(prompt) if (prompt := shelf.description.get("prompt", "")) else "",
            shelf.description.get("dtype", ""),
            str(shelf.dim),
            f"{shelf.n_vectors:,}",
            size_text(shelf.n_bytes),
            _minute(shelf.created),
            _minute(shelf.written),
        ]
        for shelf in found.shelves
    ]
    headings = ["Model", "Role", "Prompt", "Dtype", "Dims", "Vectors", "Size", "Created (UTC)", "Last written (UTC)"]
    spare = ("Created (UTC)", "Dtype", "Last written (UTC)", "Dims")
    _state.out(_tables.fitting(headings, rows, _state.console(), right=("Dims", "Vectors", "Size"), spare=spare))
    _state.out(f"With the index {size_text(found.n_bytes)} of at most {size_text(found.max_bytes)} in {found.folder}")


def _freed(done: Pruned, dry_run: bool) -> str:
    from embeval.encoders.cache.sizes import size_text

    return f"{done.n_vectors:,} vectors ({size_text(done.n_bytes)}) {'would be' if dry_run else 'were'} removed."


def _show_verified(found: Verified, fix: bool) -> None:
    from embeval.cli import _tables
    from embeval.encoders.cache.sizes import size_text

    if found.left_over or found.n_left_over_bytes:
        _state.note(
            f"Killed processes left {size_text(found.n_left_over_bytes)}, which is harmless"
            f"{' and was removed' if fix else ''}."
        )
    if not found.n_vectors:
        _state.out("The cache is empty.")
        return
    if not found.bad:
        _state.out(f"All {found.n_vectors:,} vectors are as they were written.")
        return
    made = _tables.table(["Model", "Role", "Prompt", "Damaged"], right=(3,))
    for shelf in found.bad:
        told = shelf.description
        cells = [told.get("model", shelf.key[:8]), told.get("role", ""), told.get("prompt", ""), f"{shelf.n_bad:,}"]
        _tables.add(made, cells)
    _state.out(made)
    n_bad = sum(shelf.n_bad for shelf in found.bad)
    end = "They were removed." if fix else "They are not used; 'embeval cache verify --fix' removes them."
    _state.out(f"{n_bad:,} of {found.n_vectors:,} vectors are not as they were written. {end}")


def _minute(when: str) -> str:
    return when[:16].replace("T", " ")
