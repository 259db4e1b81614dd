"""``embeval demo``: the whole thing on data that comes with the package."""

from __future__ import annotations

import typer

from embeval.cli import _state
from embeval.cli._state import DebugOption, JsonOption, QuietOption, ResultsOption

app = typer.Typer(add_completion=False)


@app.command()
def demo(
    results: ResultsOption = None,
    json: JsonOption = False,
    quiet: QuietOption = False,
    debug: DebugOption = False,
) -> None:
    """Shows the whole thing: a real model on a bundled golden set, in under two minutes.

    Evaluates all-MiniLM-L6-v2 and a baseline on questions about the manual of an invented product and on sentence
    pairs, then shows the leaderboard and where the model is weak, lets the gate decide whether an int8 export may
    replace it, and says how to do the same with data of your own.
    """
    from embeval.workflows import demo as workflow

    report = workflow.run(results, on_step=_state.note, progress=_state.progress())
    if json:
        _state.out_json(report.to_json())
        return
    from embeval.cli import _compare, _gate, _tables

    _state.out(_tables.board(report.board, _state.console()))
    for remark in report.board.remarks():
        _state.out(remark)
    made = _tables.table(["Kind of query", "Queries", *report.models], right=range(1, 2 + len(report.models)))
    for kind, n, values in report.by_kind:
        _tables.add(made, [kind, str(n), *("—" if value is None else f"{value:.3f}" for value in values)])
    _state.out("nDCG@10 by kind of query, from the stored items:")
    _state.out(made)
    _state.out(report.hardest)
    _state.out("")
    _state.out(report.release.question)
    _state.out("")
    _compare.show(report.release.comparison)
    _gate.show(report.release.report)
    _state.out(report.release.explanation)
    _state.out("")
    _state.out(report.next_steps)
