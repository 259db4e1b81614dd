"""``embeval score``: the numbers of a ranking that came from elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from embeval.cli import _state
from embeval.cli._state import DebugOption, JsonOption, QuietOption, ResultsOption
from embeval.errors import UsageError

if TYPE_CHECKING:
    from embeval.core.specs import StatisticsOptions
    from embeval.workflows.scoring import Scored

app = typer.Typer(add_completion=False)


@app.command()
def score(
    run: Annotated[
        str, typer.Argument(metavar="RUN", help="TREC run: query Q0 document rank score tag, also with .gz.")
    ],
    qrels: Annotated[
        str | None,
        typer.Option(envvar="EMBEVAL_QRELS", help="Judgments: query 0 document relevance, or a qrels file of BEIR."),
    ] = None,
    data: Annotated[
        str | None,
        typer.Option(
            envvar="EMBEVAL_GOLDEN",
            help="Folder of a golden set instead: its corpus, unanswerable queries, exclusions and labels count.",
        ),
    ] = None,
    split: Annotated[
        str | None, typer.Option(envvar="EMBEVAL_SPLIT", help="Split of the golden set.  (default: test)")
    ] = None,
    metric: Annotated[
        list[str] | None,
        typer.Option(envvar="EMBEVAL_METRIC", help="Such as ndcg_at_10; the first one is the main one. Repeatable."),
    ] = None,
    cutoffs: Annotated[
        str | None,
        typer.Option(envvar="EMBEVAL_CUTOFFS", help="Ranks to cut at, with commas.  (default: 1,3,5,10,20,100,1000)"),
    ] = None,
    depth: Annotated[
        int | None, typer.Option(envvar="EMBEVAL_DEPTH", help="Hits kept per query.  (default: 1000)", min=1)
    ] = None,
    ties: Annotated[
        str | None,
        typer.Option(envvar="EMBEVAL_TIES", help="doc_id_desc, doc_id_asc or average.  (default: doc_id_desc)"),
    ] = None,
    missing_queries: Annotated[
        str | None,
        typer.Option(
            envvar="EMBEVAL_MISSING_QUERIES",
            help="What a judged query without a ranking counts: zero or skip.  (default: zero)",
        ),
    ] = None,
    no_relevant: Annotated[
        str | None,
        typer.Option(
            envvar="EMBEVAL_NO_RELEVANT",
            help="What a query without a relevant document counts: zero or skip.  (default: zero)",
        ),
    ] = None,
    self_match: Annotated[
        str | None,
        typer.Option(
            envvar="EMBEVAL_SELF_MATCH", help="A hit whose id is that of its query: keep or drop.  (default: keep)"
        ),
    ] = None,
    gains: Annotated[
        str | None,
        typer.Option(envvar="EMBEVAL_GAINS", help="What a grade is worth in nDCG: linear or exp2.  (default: linear)"),
    ] = None,
    map_denominator: Annotated[
        str | None,
        typer.Option(
            envvar="EMBEVAL_MAP_DENOMINATOR", help="What MAP at k is divided by: R or min(k,R).  (default: R)"
        ),
    ] = None,
    unreachable: Annotated[
        str | None,
        typer.Option(
            envvar="EMBEVAL_UNREACHABLE",
            help="Relevant documents that are not in the corpus of --data: error or keep.  (default: error)",
        ),
    ] = None,
    resamples: Annotated[
        int | None,
        typer.Option(envvar="EMBEVAL_RESAMPLES", help="Bootstrap resamples; 0 for no intervals.  (default: 10000)"),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(envvar="EMBEVAL_SEED", help="Seed of the resampling.  (default: 0)", min=0)
    ] = None,
    name: Annotated[
        str | None,
        typer.Option(envvar="EMBEVAL_NAME", help="Stores the result, with this as the name of the system."),
    ] = None,
    results: ResultsOption = None,
    json: JsonOption = False,
    quiet: QuietOption = False,
    debug: DebugOption = False,
) -> None:
    """Scores a TREC run against judgments or a golden set, with no model.

    With --name or --results the result is stored, and leaderboards show it
    beside those of models. Vectors computed elsewhere are evaluated by
    'embeval run -m precomputed:FOLDER'.

    Examples: embeval score bm25.run --qrels qrels.txt  ·
    embeval score bm25.run --data golden/support --name bm25 --results results
    """
    from embeval.core.paths import expanded
    from embeval.store.results import ResultStore
    from embeval.workflows import scoring

    options: dict[str, Any] = {
        "cutoffs": _cutoffs(cutoffs),
        "depth": depth,
        "ties": ties,
        "missing_queries": missing_queries,
        "no_relevant": no_relevant,
        "self_match": self_match,
        "gains": gains,
        "map_denominator": map_denominator,
        "unreachable": unreachable,
    }
    request = scoring.ScoreRequest(
        run=Path(run),
        qrels=qrels,
        data=data,
        split=split,
        metrics=tuple(dict.fromkeys(metric or [])),
        options={key: value for key, value in options.items() if value is not None},
        name=name,
        statistics=_statistics(resamples, seed),
    )
    keep = name is not None or results is not None
    scored = scoring.score(request, ResultStore(expanded(results or "results")) if keep else None)
    if json:
        _state.out_json(_as_json(scored))
        return
    _show(scored)
    if scored.stored is not None:
        _state.note(f"Stored as {scored.stored.id}: {scored.stored.path}")


def _cutoffs(given: str | None) -> list[int] | None:
    if given is None:
        return None
    pieces = [piece.strip() for piece in given.split(",")]
    if not all(piece.isdecimal() and piece.isascii() and int(piece) for piece in pieces):
        raise UsageError(f"--cutoffs must be whole numbers from 1 with commas between them, not {given!r}.")
    return [int(piece) for piece in pieces]


def _statistics(resamples: int | None, seed: int | None) -> StatisticsOptions:
    from embeval.core.specs import StatisticsOptions

    given = {"resamples": resamples, "seed": seed}
    try:
        return StatisticsOptions(**{key: value for key, value in given.items() if value is not None})
    except ValueError as error:
        raise UsageError(f"{error}.") from None


def _as_json(scored: Scored) -> dict[str, Any]:
    from embeval.core import border

    whole = border.dump(scored.result)
    stored = scored.stored
    return {
        "id": None if stored is None else stored.id,
        "file": None if stored is None else str(stored.path),
        **whole,
        "scores": {name: whole["scores"][name] for name in scored.metrics},
    }


def _show(scored: Scored) -> None:
    from embeval.cli import _show, _tables
    from embeval.leaderboard.board import APPROXIMATE

    result = scored.result
    _show.title(result)
    values = [(name, result.scores[name]) for name in scored.metrics]
    _state.out(_tables.scores(values, result.statistics.level, _state.console()))
    if any(value.approximate for _, value in values):
        _state.out(APPROXIMATE)
    for warning in result.warnings:
        _state.out(f"Note: {warning}")
    made = _tables.table(["Counts", ""], right=(1,))
    for name, count in result.counts.items():
        _tables.add(made, [name, "not known" if count is None else str(count)])
    _state.out(made)
