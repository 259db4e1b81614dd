"""``embeval results``: what is stored."""

from __future__ import annotations

import contextlib
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from embeval.cli import _state
from embeval.cli._state import DataOption, DebugOption, JsonOption, QuietOption, ResultsOption
from embeval.core.paths import expanded
from embeval.core.words import plural
from embeval.errors import ExitCode, StoreError, UnknownNameError, UsageError

if TYPE_CHECKING:
    from embeval.core.result import Result
    from embeval.store.results import ResultStore, Stored


class Exchange(StrEnum):
    """Forms of whole results that others read."""

    MTEB = "mteb"
    MODEL_CARD = "model-card"


app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    help="Lists stored results, shows, tags, exports or imports them, or clears what is left over.",
)

ALL_SLICES = "all"
"""What ``--by`` takes for every slice."""

ModelFilter = Annotated[
    str | None, typer.Option("--model", "-m", envvar="EMBEVAL_MODEL", help="Models called so, or with it in the name.")
]
TaskFilter = Annotated[
    list[str] | None,
    typer.Option("--task", "-t", envvar="EMBEVAL_TASK", help="Tasks called so, or with it in the name. Repeatable."),
]
SubsetFilter = Annotated[
    str | None, typer.Option(envvar="EMBEVAL_SUBSET", help="This sub-set: all, mean, wmean or one of the data's own.")
]


@app.command("list")
def list_(
    results: ResultsOption = None,
    model: ModelFilter = None,
    task: TaskFilter = None,
    subset: SubsetFilter = None,
    json: JsonOption = False,
    quiet: QuietOption = False,
    debug: DebugOption = False,
) -> None:
    """Lists stored results, one line each, with the id that 'results show' takes."""
    from embeval.core import border
    from embeval.store import pins
    from embeval.store.results import ResultStore

    broken: list[str] = []
    store = ResultStore(_state.results_folder(results))
    found = list(store.find(model=model, task=task, subset=subset, broken=broken))
    for message in broken:
        _state.note(f"Left out: {message}")
    tags = pins.pinned(store.root)
    if json:
        place = [{"id": each.id, "file": str(each.path), "tags": list(tags.get(each.path, ()))} for each in found]
        _state.out_json([{**at, **border.dump(each.result)} for at, each in zip(place, found, strict=True)])
        return
    if not found:
        _state.note(f"There are no such results in {results or 'results'}.")
        return
    from embeval.cli import _tables

    _state.out(_tables.stored(found, _state.console(), tags))
    done = [each.result for each in found if each.result.status == "ok"]
    for line in _tables.legend((each.result.main_score or "" for each in found), (each.main_value for each in done)):
        _state.out(line)


@app.command()
def show(
    which: Annotated[
        str | None, typer.Argument(help="Id from 'results list', JSON file, or a part of its path.")
    ] = None,
    results: ResultsOption = None,
    model: ModelFilter = None,
    task: TaskFilter = None,
    subset: SubsetFilter = None,
    by: Annotated[
        str | None,
        typer.Option(envvar="EMBEVAL_BY", help="Values by label of this slice, or of all, worst first."),
    ] = None,
    worst: Annotated[
        int | None, typer.Option(envvar="EMBEVAL_WORST", help="The items with the worst values, so many.", min=1)
    ] = None,
    metric: Annotated[
        str | None, typer.Option(envvar="EMBEVAL_METRIC", help="Metric for --by and --worst.  (default: the main one)")
    ] = None,
    tokens: Annotated[
        str | None,
        typer.Option(envvar="EMBEVAL_TOKENS", help="The tokens of this item, with their log-probabilities."),
    ] = None,
    json: JsonOption = False,
    quiet: QuietOption = False,
    debug: DebugOption = False,
) -> None:
    """Shows one result: every metric, counts, notes, model, protocol and provenance; or where it is weak.

    Examples: embeval results show -m demo -t demo-docs  ·  embeval results show 1a2b3c4d --by kind --worst 5  ·
    embeval results show -m my-bert -t texts --tokens 12
    """
    from embeval.core import border
    from embeval.store.results import ResultStore
    from embeval.workflows import report

    store = ResultStore(_state.results_folder(results))
    stored = _the_one(store, which, model, task, subset)
    every = report.all_slices(store, stored, metric) if by == ALL_SLICES else []
    slices = report.by_slice(store, stored, by, metric) if by not in (None, ALL_SLICES) else []
    items = report.worst_items(store, stored, worst, metric) if worst is not None else []
    of_item = report.tokens_of(store, stored, tokens) if tokens is not None else None
    if json:
        labelled = [{"slice": each.slice, "label": each.label, **border.dump(each.value)} for each in every]
        labelled += [{"label": each.label, **border.dump(each.value)} for each in slices]
        extra = {
            **({"by": labelled} if by else {}),
            **({"worst": [each._asdict() for each in items]} if worst else {}),
            **({"tokens": of_item.to_json()} if of_item is not None else {}),
        }
        _state.out_json({"id": stored.id, "file": str(stored.path), **border.dump(stored.result), **extra})
        return
    from embeval.cli import _show

    if by is None and worst is None and of_item is None:
        fields: list[report.FieldValue] = []
        with contextlib.suppress(StoreError, UnknownNameError):  # a result is shown without its items, too
            fields = report.by_field(store, stored)
        _show.result(stored, fields)
        return
    _show.title(stored.result)
    shown = metric or stored.result.main_score or ""
    if by == ALL_SLICES:
        _show.all_slices(shown, every, stored.result.statistics.level)
    elif by is not None:
        _show.slices(by, shown, slices, stored.result.statistics.level)
    if worst is not None:
        _show.items(shown, items)
    if of_item is not None:
        _show.tokens(of_item)


@app.command("import")
def import_(
    mteb: Annotated[
        str | None, typer.Option(envvar="EMBEVAL_MTEB_RESULTS", help="Folder of mteb's result files, or a part of one.")
    ] = None,
    results: ResultsOption = None,
    model: ModelFilter = None,
    task: TaskFilter = None,
    force: Annotated[
        bool, typer.Option("--force", envvar="EMBEVAL_FORCE", help="Replaces what was imported before.")
    ] = False,
    json: JsonOption = False,
    quiet: QuietOption = False,
    debug: DebugOption = False,
) -> None:
    """Reads published results of mteb, to show them beside one's own on a leaderboard, marked as imported.

    They have no items and so no intervals, and neither compare nor gate takes them. Files of mteb 1 and 2 are read, in
    results/<org>__<model>/<revision>/<task>.json; splits that mteb doesn't count are left out.
    Example: embeval results import --mteb published/results -m all-mpnet-base-v2
    """
    if mteb is None:
        raise UsageError("Import what? Give the folder with --mteb.")
    from embeval.store.results import ResultStore
    from embeval.workflows import exchange

    store = ResultStore(_state.results_folder(results))
    report = exchange.import_mteb(expanded(mteb), store, model=model, task=task, overwrite=force)
    if json:
        ids = [each.id for each in report.stored]
        _state.out_json({"imported": ids, "unchanged": report.unchanged, "problems": list(report.problems)})
    else:
        for problem in report.problems:
            _state.note(f"Left out: {problem}")
        _state.out(exchange.summary(report))
    if report.problems:
        raise typer.Exit(ExitCode.CANNOT_EVALUATE)


@app.command()
def export(
    which: Annotated[
        str | None,
        typer.Argument(
            help="Id from 'results list', JSON file, or a part of its path; with --as, what is written: "
            "a folder, or a README."
        ),
    ] = None,
    as_: Annotated[
        Exchange | None,
        typer.Option("--as", envvar="EMBEVAL_AS", help="mteb: result files of mteb; model-card: the YAML of a README."),
    ] = None,
    form: Annotated[
        str | None,
        typer.Option(
            "--format",
            envvar="EMBEVAL_FORMAT",
            help="trec: the ranking; csv, jsonl: metrics of every item; tokens: a csv of every token.  "
            "(default: by the ending of --to, else trec)",
        ),
    ] = None,
    to: Annotated[
        str, typer.Option(envvar="EMBEVAL_TO", help="File, gzipped if it ends in .gz; - for standard output.")
    ] = "-",
    force: Annotated[bool, typer.Option("--force", envvar="EMBEVAL_FORCE", help="Replaces the file.")] = False,
    results: ResultsOption = None,
    model: ModelFilter = None,
    task: TaskFilter = None,
    subset: SubsetFilter = None,
    json: JsonOption = False,
    quiet: QuietOption = False,
    debug: DebugOption = False,
) -> None:
    """Writes the ranking of a result as a TREC run, or the values of its items or tokens as csv or jsonl.

    'embeval score' gives the same numbers for such a run. With --as whole results are written: all that --model and
    --task fit, as mteb's result files below a folder, or as the model-index of a model card, which keeps what else it
    holds.

    Examples: embeval results export 1a2b3c4d --to bm25.run  ·
    embeval results export -m demo -t golden --format csv --to values.csv  ·
    embeval results export --as mteb published -m demo  ·  embeval results export --as model-card README.md -m demo
    """
    from embeval.store.results import ResultStore
    from embeval.workflows import handing_over

    if as_ is not None:
        if form is not None:
            raise UsageError("--as and --format can't go together.")
        _exchange(as_, which if to == "-" else to, results, model, task, subset, force)
        return

    if json and to == "-":
        raise UsageError("--json leaves no room for the rows on standard output. Name a file with --to.")
    store = ResultStore(_state.results_folder(results))
    stored = _the_one(store, which, model, task, subset)
    form = form or handing_over.form_of(to)
    data = handing_over.rendered(store, stored, form)
    if to == "-":
        _state.out_text(data.decode("utf-8"))
        return
    handing_over.write(data, expanded(to), overwrite=force)
    if json:
        _state.out_json({"id": stored.id, "format": form, "file": to, "bytes": len(data)})
        return
    _state.note(f"Wrote {to}.")


def _exchange(
    form: Exchange,
    to: str | None,
    results: str | None,
    model: str | None,
    task: list[str] | None,
    subset: str | None,
    force: bool,
) -> None:
    """Whole results for others to read."""
    from embeval.store import atomic
    from embeval.store.results import ResultStore
    from embeval.workflows import exchange

    broken: list[str] = []
    store = ResultStore(_state.results_folder(results))
    found = [each.result for each in store.find(model=model, task=task, subset=subset, status="ok", broken=broken)]
    for message in broken:
        _state.note(f"Left out: {message}")
    if form is Exchange.MTEB:
        if to is None:
            raise UsageError("Where to? Name the folder: embeval results export --as mteb FOLDER")
        report = exchange.export_mteb(found, expanded(to), overwrite=force)
        for sentence in report.left_out:
            _state.note(f"Left out: {sentence}")
        if _state.settings.json:
            _state.out_json({"files": [str(path) for path in report.files], "left_out": list(report.left_out)})
        else:
            _state.note(f"Wrote {plural(len(report.files), 'file')} below {to}.")
        return
    readme = None if to in (None, "-") else expanded(to or "")
    found = [each for each in found if each.label == model] or found  # "ours" is also in "ours (int8)"
    text = exchange.model_card_text(found, readme)
    if readme is None:
        if _state.settings.json:
            raise UsageError("--json leaves no room for the card on standard output. Name a README.")
        _state.out_text(text)
        return
    atomic.write(readme, text.encode("utf-8"))
    if _state.settings.json:
        _state.out_json({"file": to})
    else:
        _state.note(f"Wrote {to}.")


@app.command()
def why(
    which: Annotated[
        str | None, typer.Argument(help="Id from 'results list', JSON file, or a part of its path.")
    ] = None,
    results: ResultsOption = None,
    model: ModelFilter = None,
    task: TaskFilter = None,
    golden: Annotated[
        str | None,
        typer.Option(envvar="EMBEVAL_GOLDEN", help="Folder of the data.  (default: where the result says)"),
    ] = None,
    data: DataOption = None,
    metric: Annotated[
        str | None, typer.Option(envvar="EMBEVAL_METRIC", help="What queries fail by.  (default: the main metric)")
    ] = None,
    query: Annotated[str | None, typer.Option(envvar="EMBEVAL_QUERY", help="Only this query, by its id.")] = None,
    class_: Annotated[
        str | None, typer.Option("--class", envvar="EMBEVAL_CLASS", help="Only queries of this class of failures.")
    ] = None,
    worst: Annotated[int, typer.Option(envvar="EMBEVAL_WORST", help="Queries shown, the worst first.", min=0)] = 10,
    hits: Annotated[int, typer.Option(envvar="EMBEVAL_HITS", help="Hits shown of each, up to 20.", min=0, max=20)] = 3,
    limits: Annotated[
        str | None,
        typer.Option(
            envvar="EMBEVAL_LIMITS", help="The model, as for run -m: also looks at what it cuts off documents."
        ),
    ] = None,
    bm25: Annotated[
        bool, typer.Option("--bm25", envvar="EMBEVAL_ASK_BM", help="Also looks at what BM25 finds.")
    ] = False,
    json: JsonOption = False,
    quiet: QuietOption = False,
    debug: DebugOption = False,
) -> None:
    """Shows which queries of a retrieval result fail, sorted by what went wrong, with their hits and positives.

    Nothing is encoded; the data must be what the result was made from.
    Examples: embeval results why -m demo -t demo-docs  ·  embeval results why 1a2b3c4d --class lexical_gap --worst 5
    """
    from embeval.store.results import ResultStore
    from embeval.workflows import requests, stored_data
    from embeval.workflows import why as workflow

    store = ResultStore(_state.results_folder(results))
    stored = _the_one(store, which, model, task, None)
    payload = stored_data.retrieval_data(
        stored, golden=expanded(golden) if golden else None, data=expanded(data) if data else None
    )
    diagnosis = workflow.diagnose(
        store,
        stored,
        payload,
        metric=metric,
        limits=workflow.limits_of(stored, requests.parse_model(limits), _state.runtime()) if limits else None,
        bm25=workflow.bm25_run(stored, payload, workflow.cutoff(stored, metric), _state.progress()) if bm25 else None,
    )
    found = workflow.of_class(diagnosis, class_) if class_ is not None else diagnosis.failing
    shown = found[:worst] if query is None else (workflow.one(diagnosis, query),)
    texts = dict(zip(payload.doc_ids, payload.doc_texts, strict=True))
    from embeval.cli import _why

    if json:
        _state.out_json(_why.to_json(stored, diagnosis, shown, texts, hits))
        return
    if query is None:
        _why.summary(stored, diagnosis)
    _why.queries(diagnosis, shown, texts, hits)


@app.command()
def tag(
    name: Annotated[str | None, typer.Argument(help="The tag, such as prod.")] = None,
    which: Annotated[
        list[str] | None, typer.Argument(help="Ids from 'results list', JSON files, or parts of their paths.")
    ] = None,
    results: ResultsOption = None,
    model: ModelFilter = None,
    task: TaskFilter = None,
    remove: Annotated[
        bool, typer.Option("--remove", envvar="EMBEVAL_REMOVE", help="Forgets the tag; its results stay.")
    ] = False,
    list_: Annotated[
        bool, typer.Option("--list", envvar="EMBEVAL_LIST", help="Shows every tag, or what this one pins.")
    ] = False,
    json: JsonOption = False,
    quiet: QuietOption = False,
    debug: DebugOption = False,
) -> None:
    """Gives results of one model a name that 'gate' and 'compare' take as a baseline, all of them or those named.

    A tag pins its results as they are: one that changes or goes is told, never used. Sub-sets and means come along.
    Examples: embeval results tag prod -m demo  ·  embeval results tag prod --list  ·  embeval results tag --list
    """
    from embeval.cli import _tags
    from embeval.store.tags import Tags
    from embeval.workflows import tagging

    tags = Tags(_state.results_folder(results))
    if list_ and remove:
        raise UsageError("--list and --remove can't go together.")
    if (list_ or remove) and (which or model or task):
        raise UsageError("--list and --remove take whole tags: leave out which results.")
    if list_:
        _tags.listed(tags, name)
        return
    if name is None:
        raise UsageError("Which tag? Give its name, or --list for those that there are.")
    if remove:
        _tags.removed(name, tags.remove(name))
        return
    found = tagging.chosen(tags.store, which or (), model=model, task=task)
    before, now = tags.put(name, found.results)
    _tags.made(name, before, now, found)


@app.command()
def gc(
    results: ResultsOption = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", envvar="EMBEVAL_DRY_RUN", help="Only says what would be removed.")
    ] = False,
    json: JsonOption = False,
    quiet: QuietOption = False,
    debug: DebugOption = False,
) -> None:
    """Removes records of failed runs, files that no result or tag refers to, and what killed runs left."""
    from embeval.store.results import ResultStore

    found = ResultStore(_state.results_folder(results)).garbage()
    if not dry_run:
        for path in found:
            try:
                path.unlink(missing_ok=True)
            except OSError as error:
                raise StoreError(f"{path}: can't be removed ({error.strerror}).") from None
    if json:
        _state.out_json({"removed": [] if dry_run else [str(path) for path in found], "found": len(found)})
        return
    for path in found:
        _state.out_text(f"{path}\n")
    _state.note(f"{len(found)} files {'would be' if dry_run else 'were'} removed.")


def _the_one(
    store: ResultStore, which: str | None, model: str | None, task: list[str] | None, subset: str | None
) -> Stored:
    """The one result that words and filters fit; without a sub-set, the one that stands for its task."""
    from embeval.store.results import Stored

    if which is not None and Path(which).is_file():
        return Stored(Path(which), store.get(Path(which)))
    broken: list[str] = []
    fitting = [
        each
        for each in store.find(model=model, task=task, subset=subset, broken=broken)
        if which is None or which == each.id or which.casefold() in str(each.path).casefold()
    ]
    whole = [each for each in fitting if each.result.stands] if subset is None else []
    found = whole or fitting
    found = [each for each in found if each.result.imported is None] or found
    if not found and broken:
        raise StoreError(broken[0])
    if not found:
        raise StoreError("No stored result fits. 'embeval results list' shows what there is.")
    if len(found) > 1:
        apart = {(each.result.split, each.result.subset) for each in found[:2]}
        described = [_described(each.result, len(apart) > 1) for each in found[:2]]
        if described[0] == described[1]:
            told = [each.result.main_score if each.result.status == "ok" else "failed" for each in found[:2]]
            described = [f"{text}, {what}" for text, what in zip(described, told, strict=True)]
        shown = " and ".join(f"{each.id} ({text})" for each, text in zip(found, described, strict=False))
        raise UsageError(
            f"{len(found)} results fit, such as {shown}.\n"
            "Give an id from 'embeval results list', or narrow it down with --model, --task and --subset."
        )
    return found[0]


def _described(result: Result, in_full: bool) -> str:
    part = f", {result.split}, {result.subset}" if in_full else ""
    return f"{result.label} on {result.task.name}{part}"
