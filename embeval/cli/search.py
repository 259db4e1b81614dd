"""``embeval search``: one query, asked by hand."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from embeval.cli import _state
from embeval.cli._complete import complete_model
from embeval.cli._state import DebugOption, DeviceOption, JsonOption, QuietOption, ThreadsOption
from embeval.core.paths import expanded
from embeval.errors import UsageError

if TYPE_CHECKING:
    from embeval.workflows.searching import Answer, Searcher

app = typer.Typer(add_completion=False)
COMPARED = 100
"""Ranks up to which a hit of one system is looked for in the others."""


@app.command()
def search(
    query: Annotated[str | None, typer.Argument(help="What to look for.")] = None,
    corpus: Annotated[
        str,
        typer.Option(
            "--corpus", "-c", envvar="EMBEVAL_CORPUS", help="File of documents (_id, title, text), or a BEIR folder."
        ),
    ] = "",
    model: Annotated[
        list[str] | None,
        typer.Option(
            "--model",
            "-m",
            envvar="EMBEVAL_MODEL",
            help="A model as for run -m. Repeatable.  (default: demo)",
            autocompletion=complete_model,
        ),
    ] = None,
    k: Annotated[int, typer.Option("--k", "-k", envvar="EMBEVAL_K", help="Hits shown.", min=1, max=1000)] = 10,
    index: Annotated[
        str | None, typer.Option(envvar="EMBEVAL_INDEX", help="Kind of index.  (default: an exact one)")
    ] = None,
    save: Annotated[
        str | None, typer.Option(envvar="EMBEVAL_SAVE", help="Keeps the index in this new folder, for --open.")
    ] = None,
    open_: Annotated[
        str | None, typer.Option("--open", envvar="EMBEVAL_OPEN", help="Searches the index that was saved there.")
    ] = None,
    rerank: Annotated[
        str | None,
        typer.Option(envvar="EMBEVAL_RERANK", help="A cross-encoder that orders the first candidates anew."),
    ] = None,
    candidates: Annotated[
        int, typer.Option(envvar="EMBEVAL_CANDIDATES", help="Hits that the cross-encoder sees.", min=1, max=10_000)
    ] = 100,
    interactive: Annotated[
        bool,
        typer.Option(
            "--interactive",
            "-i",
            envvar="EMBEVAL_INTERACTIVE",
            help="Reads queries from stdin, one a line.",
        ),
    ] = False,
    cache: Annotated[
        bool,
        typer.Option(
            "--cache/--no-cache", envvar="EMBEVAL_USE_CACHE", help="Keeps vectors on this machine and finds them again."
        ),
    ] = True,
    device: DeviceOption = None,
    threads: ThreadsOption = None,
    json: JsonOption = False,
    quiet: QuietOption = False,
    debug: DebugOption = False,
) -> None:
    """Asks a corpus one query with one model or several, and shows the hits.

    Examples: embeval search "how to restore" -c golden -m demo -m bm25  ·  embeval search -i -c docs.jsonl < queries
    """
    if not corpus:
        raise UsageError("Say what to search with --corpus: a file of documents, or a BEIR folder.")
    if (query is None) != interactive:
        raise UsageError("Give one query, or --interactive to read queries from stdin.")
    from embeval.data import corpus as documents
    from embeval.workflows import searching
    from embeval.workflows.requests import parse_model

    found = searching.searchers(
        [parse_model(each) for each in model or ["demo"]],
        documents.read(expanded(corpus)),
        reranker=searching.parse_reranker(rerank) if rerank else None,
        candidates=candidates,
        runtime=_state.runtime(device=device, num_threads=threads, cache=cache),
        index=index,
        keep=interactive,
        save_to=expanded(save) if save else None,
        open_from=expanded(open_) if open_ else None,
        progress=_state.progress(),
    )
    answered: list[Any] = []
    for text in _lines(found) if query is None else [query]:
        answers = [each.ask(text, k, looked_at=COMPARED if len(found) > 1 else 0) for each in found]
        if query is None:
            _state.note("  ".join(f"{each.system}: {each.seconds * 1000:.1f} ms" for each in answers))
        if json:
            answered += [_to_json(each) for each in answers]
            continue
        from embeval.cli import _hits

        _hits.show(answers)
    if json:
        _state.out_json(answered)


def _lines(found: list[Searcher]) -> Iterator[str]:
    """Queries as they are typed; the corpus is encoded before the first, so that no query waits for it."""
    for each in found:
        each.prepare()
    terminal = sys.stdin.isatty()
    sys.stdin.reconfigure(errors="replace")  # type: ignore[union-attr]  # one odd line doesn't end the others
    while True:
        if terminal:
            print("query> ", end="", file=sys.stderr, flush=True)
        line = sys.stdin.readline()
        if not line:
            return
        if line.strip():
            yield line.strip()


def _to_json(answer: Answer) -> dict[str, Any]:
    return {
        "system": answer.system,
        "query": answer.query,
        "seconds": round(answer.seconds, 6),
        "hits": [hit._asdict() for hit in answer.hits],
    }
