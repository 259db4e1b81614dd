"""``embeval tasks``: what can be evaluated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from embeval.cli import _state
from embeval.cli._complete import complete_task
from embeval.cli._state import (
    DataOption,
    DebugOption,
    DomainOption,
    JsonOption,
    LanguageOption,
    MirrorOption,
    QuietOption,
    TypeOption,
)
from embeval.core.paths import expanded
from embeval.errors import UsageError

if TYPE_CHECKING:
    from rich.table import Table

    from embeval.core.border import Described

app = typer.Typer(
    add_completion=False, no_args_is_help=True, help="Lists task types and the catalogue, or shows one task."
)


@app.command("list")
def list_(
    context: typer.Context,
    mteb: Annotated[
        bool,
        typer.Option(
            "--mteb", envvar="EMBEVAL_MTEB", help="Lists mteb's tasks, with size and licence, and benchmarks."
        ),
    ] = False,
    type: TypeOption = None,
    language: LanguageOption = None,
    domain: DomainOption = None,
    mirror: MirrorOption = None,
    data: DataOption = None,
    json: JsonOption = False,
    quiet: QuietOption = False,
    debug: DebugOption = False,
) -> None:
    """Lists task types and the catalogue, or mteb's tasks, and says whether the data is there.

    Examples: embeval tasks list  ·  embeval tasks list --mteb --type STS --language deu
    """
    from embeval.core import border
    from embeval.tasks import TASK_TYPES, catalog

    filters = _state.filters({"types": type, "languages": language, "domains": domain})
    if mteb:
        from embeval.cli import _mteb_tasks

        _mteb_tasks.listed(filters, expanded(mirror) if mirror is not None else None, json=json)
        return
    if any(_is_typed(context, name) for name in ("type", "language", "domain")):
        raise UsageError("--type, --language and --domain choose among mteb's tasks. Add --mteb.")
    types = {name: TASK_TYPES.get(name).summary for name in TASK_TYPES.names()}
    entries = [(spec, _data_state(spec, data)) for spec in catalog.specs()]
    if json:
        catalogue = [{**border.dump(spec), "data_found": state == "yes"} for spec, state in entries]
        _state.out_json({"types": types, "catalogue": catalogue})
        return
    from embeval.cli import _tables

    made = _tables.table(["Type", "What it measures"])
    for name, summary in types.items():
        _tables.add(made, [name, summary])
    _state.out(made)
    rows = [
        [spec.name, spec.type, ", ".join(spec.languages), state, spec.dataset.path, spec.license or ""]
        for spec, state in entries
    ]
    headings = ["Catalogue", "Type", "Languages", "Data here?", "Data (under --data)", "Licence"]
    spare = ("Licence", "Data (under --data)", "Languages")
    _state.out(_tables.fitting(headings, rows, _state.console(), spare=spare))
    _state.note("mteb's tasks: embeval tasks list --mteb")
    _state.note("Your own data needs no entry: embeval run -t sts:pairs.csv -t path/to/beir-folder")


def _is_typed(context: typer.Context, name: str) -> bool:
    """Whether an option was given on the command line; one of the environment may be meant for other verbs."""
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


@app.command()
def show(
    name: Annotated[
        str,
        typer.Argument(help="Catalogue name, mteb:NAME, file or folder, as for run -t.", autocompletion=complete_task),
    ],
    data: DataOption = None,
    mirror: MirrorOption = None,
    json: JsonOption = False,
    quiet: QuietOption = False,
    debug: DebugOption = False,
) -> None:
    """Shows a task, or a type of task: where its data belongs, its options, and what the data holds if it is there."""
    from embeval.core import border
    from embeval.core.protocols import NamesMetrics
    from embeval.tasks import TASK_TYPES, catalog
    from embeval.workflows import mteb_entries, requests

    if name.startswith(f"{mteb_entries.KIND}:"):
        from embeval.cli import _mteb_tasks

        of_mteb = requests.split_settings(name)[0].removeprefix(f"{mteb_entries.KIND}:")
        _mteb_tasks.shown(of_mteb, expanded(mirror) if mirror is not None else None, json=json)
        return
    entry = catalog.find(requests.split_settings(name)[0])
    if entry is None and name in TASK_TYPES.names():
        _show_type(name, json)
        return
    task = requests.parse_task(name, root=Path(), data=expanded(data or "DIR"))  # settings are checked, data or not
    packaged = entry is not None and catalog.package_folder(entry.dataset.path) is not None
    there = entry is None or packaged or _data_state(task.spec, data) == "yes"
    spec, payload_facts = task.spec, _facts(task) if there else {}
    options = border.describe(TASK_TYPES.get(spec.type).options)
    if json:
        described = [asdict(option) for option in options]
        _state.out_json({"task": border.dump(spec), "data": payload_facts or None, "options": described})
        return
    from embeval.cli import _tables

    usual = task.metric_names[0] if isinstance(task, NamesMetrics) else TASK_TYPES.get(spec.type).main_score
    made = _tables.table([spec.name, ""])
    for key, value in {
        "type": f"{spec.type}: {TASK_TYPES.get(spec.type).summary}",
        "data": spec.dataset.path,
        "split": spec.dataset.split,
        "main score": spec.main_score or usual,
        "languages": ", ".join(spec.languages) or "not stated",
        "licence": spec.license or "not stated",
        "citation": spec.citation or "not stated",
        **payload_facts,
    }.items():
        _tables.add(made, [key, str(value)])
    _state.out(made)
    _state.out(_options_table(options, spec.options))
    if not payload_facts:
        _state.note(f"Its data is not here. Put it at DIR/{spec.dataset.path} and say --data DIR.")


def _show_type(name: str, json: bool) -> None:
    from embeval.core import border
    from embeval.tasks import TASK_TYPES
    from embeval.workflows import mteb_entries

    task_type = TASK_TYPES.get(name)
    options = border.describe(task_type.options)
    if json:
        described = [asdict(option) for option in options]
        _state.out_json(
            {"type": name, "summary": task_type.summary, "main_score": task_type.main_score, "options": described}
        )
        return
    of_mteb = name == mteb_entries.KIND
    _state.out(f"{name}: {task_type.summary}; main score {'as the task has it' if of_mteb else task_type.main_score}")
    _state.out(_options_table(options, {}))
    _state.note(f"To evaluate one: embeval run -m MODEL -t {name}:{'NAME' if of_mteb else 'PATH'}")
    if of_mteb:
        _state.note("One of them: embeval tasks show mteb:NAME. All: embeval tasks list --mteb")


def _options_table(options: Sequence[Described], chosen: Mapping[str, Any]) -> Table:
    from embeval.cli import _tables

    made = _tables.table(["Option", "Value", "What it does", "Choices"])
    for option in options:
        value = chosen.get(option.name, option.default)
        _tables.add(
            made, [option.name, "null" if value is None else str(value), option.text, ", ".join(option.choices)]
        )
    return made


def _data_state(spec: Any, data: str | None) -> str:
    from embeval.tasks import catalog

    folder = catalog.package_folder(spec.dataset.path)
    if folder is not None:
        return "yes"
    if data is None:
        return "say --data"
    return "yes" if (expanded(data) / spec.dataset.path).exists() else "no"


def _facts(task: Any) -> dict[str, Any]:
    payload = task.load()
    facts: dict[str, Any] = {"data hash": payload.data_hash[:16]}
    if task.spec.type == "retrieval":
        facts |= {
            "documents": len(payload.doc_ids),
            "queries": len(payload.queries),
            "judged queries": len([query for query in payload.qrels.judged if query not in payload.unanswerable]),
            "unanswerable queries": len(payload.unanswerable),
            "judgments": sum(len(grades) for grades in payload.qrels.judgments.values()),
        }
    else:
        facts |= {"items": len(payload)}
    return facts
