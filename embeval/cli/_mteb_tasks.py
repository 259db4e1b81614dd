"""Tasks of mteb for the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from embeval.cli import _state, _tables
from embeval.core import border
from embeval.core.words import plural

if TYPE_CHECKING:
    from embeval.mteb_bridge.names import Filters
    from embeval.mteb_bridge.overview import Described

SHOWN = 3
"""Languages and domains that a line names."""


def listed(filters: Filters | None, mirror: Path | None, *, json: bool) -> None:
    """Prints tasks; without filters also the benchmarks."""
    from embeval.mteb_bridge import names, overview

    found = overview.tasks(filters or names.Filters(), mirror)
    known = overview.benchmarks() if filters is None else ()
    if json:
        _state.out_json({"tasks": [border.dump(each) for each in found], "benchmarks": [border.dump(b) for b in known]})
        return
    _table(found)
    if known:
        made = _tables.table(["Benchmark", "Tasks"], right=(1,))
        for benchmark in known:
            _tables.add(made, [benchmark.name, str(benchmark.tasks)])
        _state.out(made)
    _state.note(
        f"{plural(len(found), 'task')}, without those that mteb has superseded. "
        "To evaluate one, or a benchmark: embeval run -t mteb:NAME"
    )


def shown(name: str, mirror: Path | None, *, json: bool) -> None:
    """Prints a task, or the tasks of a benchmark or pattern."""
    from embeval.mteb_bridge import names, overview

    found = overview.described(names.named(name), mirror)
    if json:
        _state.out_json({"tasks": [border.dump(each) for each in found]})
        return
    if len(found) > 1:
        _table(found)
        _state.note(f"mteb:{name} stands for {plural(len(found), 'task')}.")
        return
    (task,) = found
    made = _tables.table([f"mteb:{task.name}", ""])
    for key, value in {
        "what it is": task.description,
        "type": task.type,
        "superseded by": task.superseded_by or "no other task",
        "splits": ", ".join(task.splits),
        "sub-sets": ", ".join(task.subsets),
        "items": "not stated" if task.items is None else f"{task.items:,}",
        "main score": task.main_score,
        "languages": ", ".join(task.languages),
        "domains": ", ".join(task.domains) or "not stated",
        "licence": task.license or "not stated",
        "data": f"{task.dataset} at {task.revision}",
        "in the mirror": _there(task),
    }.items():
        _tables.add(made, [key, value])
    _state.out(made)


def _table(found: Sequence[Described]) -> None:
    rows = [
        [
            task.name,
            task.type,
            _some(task.languages),
            "" if task.items is None else f"{task.items:,}",
            task.license or "not stated",
            _some(task.domains),
            _there(task),
        ]
        for task in found
    ]
    headings = ["Task of mteb", "Type", "Languages", "Items", "Licence", "Domains", "In the mirror?"]
    _state.out(
        _tables.fitting(
            headings, rows, _state.console(), right=("Items",), spare=("Domains", "In the mirror?", "Languages")
        )
    )


def _some(values: Sequence[str]) -> str:
    more = f" and {len(values) - SHOWN} more" if len(values) > SHOWN else ""
    return ", ".join(values[:SHOWN]) + more


def _there(task: Described) -> str:
    return {None: "say --mirror", True: "yes", False: "no"}[task.in_mirror]
