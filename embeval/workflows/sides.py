"""What a user calls a side of a comparison, and the stored results that it stands for."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

from embeval.compare.evidence import Evidence, checked, refuse_imported
from embeval.core.ir import NOTHING, Run
from embeval.core.paths import expanded
from embeval.core.protocols import Task
from embeval.core.specs import ModelSpec, StatisticsOptions
from embeval.core.words import plural
from embeval.errors import EmbevalError, StoreError, UnknownNameError, UsageError
from embeval.leaderboard.board import RowKey, unique_labels
from embeval.store.results import ResultStore, Stored
from embeval.store.tags import Tags

if TYPE_CHECKING:
    from embeval.workflows.scoring import ScoreRequest

TAG = "tag:"
"""Before the name of a tag."""
_ID = re.compile(r"[0-9a-f]{8}")
SHOWN = 8
"""Labels named in a message."""


@dataclass(frozen=True)
class Side:
    """Results of one system, or of several that are repetitions of it."""

    label: str
    """What it is called in tables."""
    stored: tuple[Stored, ...]
    """Its results, failed runs included."""
    tag: str | None = None
    """The tag that it was named by."""
    evidence: tuple[Evidence, ...] = ()
    """Results that were made in memory, from a file of a ranking."""
    repetitions: tuple[str, ...] = ()
    """Labels of the systems that are taken for repetitions of one; empty: it is one system."""


def resolve(text: str, store: ResultStore, found: Sequence[Stored] | None = None) -> Side:
    """The stored results that ``text`` stands for, as ``_resolved`` finds them.

    Raises as that does, and ``EvidenceError`` where all are imported: these have no items.
    """
    side = _resolved(text, store, found)
    if side.stored and all(each.result.imported is not None for each in side.stored):
        refuse_imported(side.stored[0].result, side.label, "TASK")
    return side


def _resolved(text: str, store: ResultStore, found: Sequence[Stored] | None) -> Side:
    """The stored results that ``text`` stands for.

    ``text`` is the path of a result, a folder with results of one model, an id of ``results list``, ``tag:NAME``, or
    a model: its label or name, a part of one, or as ``run -m`` takes it. With ``*`` it is every model whose label fits,
    as repetitions of one system. ``found`` are all results of the store where they were read before. Raises
    ``UsageError`` for a text that fits several models, ``StoreError`` where nothing is stored, and what the files
    behind it raise.
    """
    if not text.strip():
        raise UsageError("A side of a comparison must not be empty.")
    if text.startswith(TAG):
        return _tagged(text.removeprefix(TAG), store)
    if (by_path := _by_path(text, store)) is not None:
        return by_path
    everything = list(store.find(broken=[])) if found is None else list(found)
    if _ID.fullmatch(text) and (one := [each for each in everything if each.id == text]):
        return Side(_label_of(one[0], everything), (one[0],))
    models = _by_model(everything)
    if "*" in text:
        return _glob(text, models)
    if (side := _called(text, models, exact=True)) is not None:
        return side
    try:
        return _tagged(text, store)
    except UnknownNameError:
        pass
    if (side := _as_spec(text, models)) is not None:  # ``demo`` is that model before it is a part of other names
        return side
    if (side := _called(text, models, exact=False)) is not None:
        return side
    raise _nothing(text, models)


def all_stored(store: ResultStore, broken: list[str] | None = None) -> list[Stored]:
    """Every result of a store, to be passed to ``resolve``; files that can't be read are told in ``broken``."""
    return list(store.find(broken=[] if broken is None else broken))


def is_run_file(text: str) -> bool:
    """Whether it is a file that could only be a ranking: no result, no folder."""
    path = expanded(text)
    return path.is_file() and path.suffix != ".json"


def _by_path(text: str, store: ResultStore) -> Side | None:
    path = expanded(text)
    if path.is_file():
        if path.suffix != ".json":
            raise UsageError(f"{path}: a file, and no result (.json). A ranking has to be scored first: embeval score.")
        stored = Stored(path, store.get(path))
        return Side(stored.result.model.label, (stored,))
    if not path.is_dir():
        return None
    there = [Stored(file, store.get(file)) for file in sorted(path.rglob("*.json")) if is_result(file)]
    if not there:
        return None
    models = {RowKey.of(each.result) for each in there}
    if len(models) > 1:
        raise UsageError(
            f"{path}: holds results of {plural(len(models), 'model')}: {_listed(unique_labels(models).values())}.\n"
            "Name the folder of one, or say --results FOLDER and the label of a model."
        )
    return Side(there[0].result.model.label, tuple(there))


def is_result(file: Path) -> bool:
    """Whether a file lies and is called as results are: a folder of a model has other JSON files."""
    return re.fullmatch(r"[^.].*\.(error|[0-9a-f]{8})\.json", file.name) is not None


def _tagged(name: str, store: ResultStore) -> Side:
    """Raises ``UnknownNameError`` for a tag that there is not."""
    stored = tuple(Tags(store.root).get(name))
    labels = {each.result.model.label for each in stored}
    return Side(next(iter(labels)) if len(labels) == 1 else name, stored, tag=name)


def _by_model(found: Iterable[Stored]) -> dict[str, list[Stored]]:
    """Unique label -> results of that model."""
    of_key: dict[RowKey, list[Stored]] = {}
    for each in found:
        of_key.setdefault(RowKey.of(each.result), []).append(each)
    labels = unique_labels(of_key)
    return {labels[key]: stored for key, stored in of_key.items()}


def _label_of(stored: Stored, everything: Sequence[Stored]) -> str:
    return unique_labels({RowKey.of(each.result) for each in everything})[RowKey.of(stored.result)]


def _called(text: str, models: dict[str, list[Stored]], *, exact: bool) -> Side | None:
    """The one model of that label or name; by upper and lower case as written before any."""
    word = text.casefold()

    def names(label: str) -> tuple[str, ...]:
        model = models[label][0].result.model
        return label, model.label, model.name

    tests: list[Callable[[str], bool]] = (
        [
            lambda label: label == text,
            lambda label: text in names(label),
            lambda label: word in (name.casefold() for name in names(label)),
        ]
        if exact
        else [lambda label: any(word in name.casefold() for name in names(label))]
    )
    run_here = [label for label in models if models[label][0].result.imported is None]
    for fits in tests:
        labels = [label for label in run_here if fits(label)] or [label for label in models if fits(label)]
        if len(labels) > 1 and exact and (spec := _as_spec(text, models)) is not None:
            return spec  # ``minilm`` is minilm itself, although minilm (int8) has the same name
        if len(labels) > 1:
            raise UsageError(
                f"{text!r} fits {plural(len(labels), 'model')}: {_listed(labels)}.\n"
                "Give the whole label of one, an id from 'embeval results list', or a path."
            )
        if labels:
            return Side(labels[0], tuple(models[labels[0]]))
    return None


def _as_spec(text: str, models: dict[str, list[Stored]]) -> Side | None:
    """The model whose spec, as the command line would read the text, has the same label: ``demo,truncate_dim=64``."""
    from embeval.encoders.locate import DEMO_LABEL, DEMO_NAME
    from embeval.workflows import requests

    try:
        spec = requests.parse_model(text)
        wanted = (replace(spec, name=DEMO_LABEL) if spec.name == DEMO_NAME else spec).label
    except EmbevalError:
        return None
    labels = [
        label
        for label, (first, *_) in models.items()
        if first.result.model.label == wanted and first.result.imported is None
    ]
    if len(labels) > 1:
        raise UsageError(
            f"{text!r} fits {plural(len(labels), 'model')}: {_listed(labels)}.\nGive the whole label of one."
        )
    return Side(labels[0], tuple(models[labels[0]])) if labels else None


def _glob(text: str, models: dict[str, list[Stored]]) -> Side:
    labels = sorted(label for label in models if fnmatchcase(label, text))
    if not labels:
        raise _nothing(text, models)
    if len(labels) == 1:
        raise UsageError(
            f"{text!r} fits one model, {labels[0]!r}. With * a side is several runs of one system; give the label."
        )
    stored = tuple(each for label in labels for each in models[label])
    return Side(text, stored, repetitions=tuple(labels))


def _nothing(text: str, models: dict[str, list[Stored]]) -> EmbevalError:
    if not models:
        return StoreError(f"{text!r}: no such file or folder, and there are no results. Run 'embeval run' first.")
    return UnknownNameError(
        "side", text, models, hint="It is no file or folder either. 'embeval results list' shows what is stored."
    )


def _listed(labels: Iterable[str]) -> str:
    names = sorted(labels)
    return ", ".join(map(repr, names[:SHOWN])) + (", …" if len(names) > SHOWN else "")


SCORED_BY = (
    "cutoffs",
    "depth",
    "ties",
    "missing_queries",
    "no_relevant",
    "self_match",
    "gains",
    "map_denominator",
    "unreachable",
)
"""Options of a retrieval task that say how a ranking is scored."""


def scored(
    text: str,
    others: Iterable[Stored],
    *,
    golden: str | None,
    qrels: str | None,
    data: Path | None,
    statistics: StatisticsOptions,
) -> Side:
    """A TREC file of a ranking, scored in memory as ``embeval score`` does.

    Where ``others`` hold a result on the same data, it is scored under the options of that. Raises ``UsageError`` where
    neither ``golden`` nor ``qrels`` says against what, and what reading the files raises.
    """
    from embeval.workflows import scoring

    path = expanded(text)
    folder = golden_folder(golden, data)
    if folder is None and qrels is None:
        raise UsageError(
            f"{path}: a ranking has to be scored. Say against what: --golden FOLDER (a golden set, or a task of the "
            "catalogue) or --qrels FILE."
        )
    request = scoring.ScoreRequest(run=path, qrels=qrels, data=None if folder is None else str(folder))
    known = bound(golden, data) if golden is not None else None
    request = replace(request, statistics=replace(statistics, resamples=0))
    if folder is not None:
        request = _as_others(request, others, known)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    made = []
    for part in scoring.measured(request):
        # Judgments alone tell nothing of texts, so labels that come from texts mean nothing.
        records = part.records if qrels is None else replace(part.records, slices={})
        evidence = Evidence(part.result, records, text, digest, part.run, _hits(part.run))
        made.append(checked(evidence, whole=False))
    return Side(made[-1].result.model.label, (), evidence=tuple(made))


def _as_others(request: ScoreRequest, others: Iterable[Stored], known: Task[Any] | None) -> ScoreRequest:
    """The request under the name, split and options that the newest result on the same data has."""
    from embeval.workflows import requests

    spec = None if known is None else known.spec
    splits = [spec.dataset.split] if spec is not None else []
    here = [each.result for each in others if each.result.status == "ok" and each.result.task.type == "retrieval"]
    for split in dict.fromkeys([*splits, *(result.split for result in here), "test"]):
        try:
            payload = requests.task_from(
                {"type": "retrieval", "data": request.data, "split": split}, root=Path(), data=None
            ).load()
        except EmbevalError:
            continue
        hashed = getattr(payload, "data_hash", None)
        same = [result for result in here if result.split == split and result.signature.protocol.get("data") == hashed]
        if same:
            spec = max(same, key=lambda result: result.started_at).task
            break
    if spec is None or spec.type != "retrieval":
        return request
    options = {name: value for name, value in spec.options.items() if name in SCORED_BY}
    return replace(request, task=spec.name, split=spec.dataset.split, options=options)


def _hits(run: Run | None) -> dict[str, int] | None:
    if run is None:
        return None
    counts = (run.docs != NOTHING).sum(axis=1).tolist()
    return dict(zip(run.query_ids, counts, strict=True))


def golden_folder(golden: str | None, data: Path | None) -> Path | None:
    """The folder of a golden set that is named by its path or as a task of the catalogue."""
    from embeval.workflows import requests

    if golden is None:
        return None
    if (folder := expanded(golden)).exists():
        return folder
    task = requests.parse_task(golden, root=Path(), data=data)
    return Path(getattr(task, "path", None) or task.spec.dataset.path)


def bound(text: str, data: Path | None) -> Task[Any] | None:
    """The task that a word of the command line stands for; None where it stands for none."""
    from embeval.workflows import requests

    try:
        return requests.parse_task(text, root=Path(), data=data)
    except EmbevalError:
        return None


def task_name(text: str, data: Path | None) -> str:
    """What the results of a task are filed under, for a word of the command line: a name or a path."""
    if not re.search(r"[/,:]", text) and not expanded(text).exists():
        return text
    if text.startswith("mteb:") and "," not in text:
        return text  # found out without importing mteb, which takes seconds
    task = bound(text, data)
    return text if task is None else task.spec.name


def spec_of(text: str, side: Side) -> ModelSpec | None:
    """The model to run where a side lacks a result: only where ``text`` is itself what ``run -m`` takes."""
    from embeval.workflows import requests

    if side.tag is not None or side.repetitions or side.evidence or not side.stored:
        return None
    try:
        spec = requests.parse_model(text)
    except EmbevalError:
        return None
    return spec if spec.label == side.stored[0].result.model.label else None
