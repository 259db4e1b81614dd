"""What the names in a board's file stand for: models by patterns, the one model of a key, tasks."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

from embeval.core.border import KeyPath
from embeval.core.result import Result
from embeval.errors import did_you_mean
from embeval.leaderboard.board import RowKey, unique_labels
from embeval.leaderboard.definition import Definition
from embeval.leaderboard.snapshot import Model
from embeval.store.pins import Tag
from embeval.workflows.sides import TAG

T = TypeVar("T")
SHOWN = 8
"""Names that a complaint lists."""
MTEB = "mteb:"
"""Before the name of a task or benchmark of mteb."""


def fitting(pattern: str, names: Mapping[T, Sequence[str]]) -> list[T]:
    """Those of which a name fits a pattern, in which ``*`` stands for any part.

    The first kind of name by which any fits decides, and among these upper and lower case as written, if that fits.
    """
    depth = max(map(len, names.values()), default=0)
    for kind in range(depth):
        for fold in (str, str.casefold):
            parts = fold(pattern).split("*")
            if found := [each for each, of in names.items() if kind < len(of) and _fits(parts, fold(of[kind]))]:
                return found
    return []


def _fits(parts: Sequence[str], name: str) -> bool:
    """Whether a name is these parts with anything between them. A regular expression may try for hours."""
    first, *others = parts
    if not others:
        return name == first
    last = others.pop()
    if not (name.startswith(first) and name.endswith(last) and len(first) + len(last) <= len(name)):
        return False
    at, end = len(first), len(name) - len(last)
    for part in others:  # the first place leaves most room for the rest
        if (at := name.find(part, at, end)) < 0:
            return False
        at += len(part)
    return True


def known(names: Iterable[str], wanted: str) -> str:
    """The names that were meant, perhaps, or the first of those that there are, as a sentence."""
    there = list(dict.fromkeys(names))
    listed = ", ".join(there[:SHOWN]) + (", …" if len(there) > SHOWN else "")
    return did_you_mean(wanted, there) or (f"There are: {listed}." if there else "There are none.")


def model_names(keys: Iterable[RowKey]) -> dict[RowKey, tuple[str, str, str]]:
    """Each model with its unlike label, its label and its name."""
    labels = unique_labels(dict.fromkeys(keys))
    return {key: (label, key.label, key.name) for key, label in labels.items()}


def models(definition: Definition, names: Mapping[RowKey, Sequence[str]]) -> set[RowKey]:
    """The models that fit the patterns of a board. Raises ``ConfigError`` for a pattern that fits none."""
    found = set[RowKey]()
    for place, pattern in enumerate(definition.board.models):
        fits = fitting(pattern, names)
        if not fits:
            raise definition.wrong(("models", place), f"{pattern!r} fits no model. {_of_models(names, pattern)}")
        found.update(fits)
    return found


def _of_models(names: Mapping[RowKey, Sequence[str]], wanted: str) -> str:
    return known([name for of in names.values() for name in (of[0], of[-1])], wanted)


def one_model(definition: Definition, key: str, given: str, shown: Sequence[Model]) -> int:
    """The place of the one model that a label or name stands for. Raises ``ConfigError`` for none or several."""
    names = {
        place: tuple(dict.fromkeys((each.label, _plain_label(each), each.spec.name)))
        for place, each in enumerate(shown)
    }
    found = fitting(given, names)
    if not found:
        there = [name for of in names.values() for name in of]
        raise definition.wrong((key,), f"no model on this board is called {given!r}. {known(there, given)}")
    if len(found) > 1:
        labels = ", ".join(repr(shown[place].label) for place in found[:SHOWN])
        raise definition.wrong((key,), f"{given!r} fits several models: {labels}. Give the label of one.")
    return found[0]


def _plain_label(model: Model) -> str:
    return re.sub(r" #[0-9a-f]{8}$", "", model.label)


def reference(definition: Definition, shown: Sequence[Model]) -> int | None:
    """The place of the model that others are held against; None: the board names none. Raises ``ConfigError``."""
    given = definition.board.reference
    return None if given is None else one_model(definition, "reference", given, shown)


def production(definition: Definition, shown: Sequence[Model], tags: Mapping[str, Tag]) -> str | None:
    """The label of the model in use, which a tag or a model of the board names; None: nothing is said of it.

    A tagged model need not be on the board. Raises ``ConfigError`` for a name that is neither.
    """
    given = definition.board.production
    if given is None:
        return None
    tag = tags.get(given.removeprefix(TAG))
    if tag is None:
        names = {each.label: each for each in shown}
        if given.startswith(TAG) or not fitting(given, {label: (label, m.spec.name) for label, m in names.items()}):
            there = [*tags, *names]
            raise definition.wrong(("production",), f"no tag or model is called {given!r}. {known(there, given)}")
        return shown[one_model(definition, "production", given, shown)].label
    digest = tag.model_digest[: len(shown[0].digest)] if shown else ""
    return next((each.label for each in shown if each.digest == digest), tag.model)


class Tasks:
    """Which column each result of a board belongs to: the entry of the file that asks for it first.

    An entry by name goes before patterns that fit the task as well.
    """

    def __init__(self, definition: Definition, results: Sequence[Result]) -> None:
        self.definition = definition
        self.entries: dict[str, list[int]] = {}
        self.place_of: dict[tuple[str, str, str, str], int] = {}
        """(task, split, sub-set, metric) -> its entry."""
        self.unfinished: list[str] = []
        """Tasks of the file of which every run failed."""
        of_task: dict[str, list[Result]] = {}
        for each in results:
            of_task.setdefault(each.task.name, []).append(each)
        for place, entry in enumerate(definition.shown):
            names = self._names(place, of_task)
            finished = [each for name in names for each in of_task[name] if each.status == "ok"]
            if finished:
                self._refuse_unmeasured(place, finished)
            else:
                self.unfinished.append(entry.task)
            for name in names:
                self.entries.setdefault(name, []).append(place)
        for places in self.entries.values():
            places.sort(key=lambda place: ("*" in definition.shown[place].task, place))

    def __call__(self, result: Result) -> list[tuple[str, bool]]:
        """(metric, whether the result has a column of its own) for each way in which the board shows a result."""
        found: dict[str, bool] = {}
        for place in self.entries.get(result.task.name, ()):
            entry = self.definition.shown[place]
            metric = entry.metric or result.main_score
            alone = result.stands if entry.subset is None else result.subset == entry.subset
            if metric is None or metric not in result.scores or entry.split not in (None, result.split):
                continue
            if entry.subset is not None and not alone:
                continue
            found[metric] = found.get(metric, False) or alone
            if alone:
                self.place_of.setdefault((result.task.name, result.split, result.subset, metric), place)
        return list(found.items())

    def _names(self, place: int, of_task: Mapping[str, object]) -> list[str]:
        """The tasks that an entry stands for. Raises ``ConfigError`` where there is none."""
        wanted = self.definition.shown[place].task
        names = {name: (name, name.removeprefix(MTEB)) for name in sorted(of_task)}
        found = fitting(wanted, names) or fitting(wanted.removeprefix(MTEB), {name: (name,) for name in names})
        found = found or _of_benchmark(wanted, names)
        if not found:
            there = [name for of in names.values() for name in of]
            raise self._wrong(place, "task", f"no result of a task {wanted!r}. {known(there, wanted)}")
        return found

    def _refuse_unmeasured(self, place: int, results: Sequence[Result]) -> None:
        """Raises ``ConfigError`` where no result has the split, the sub-set or the metric of an entry."""
        entry = self.definition.shown[place]
        wanted: tuple[tuple[str, str, str | None, Callable[[Result], Iterable[str]]], ...] = (
            ("split", "split", entry.split, lambda each: (each.split,)),
            ("subset", "sub-set", entry.subset, lambda each: (each.subset,)),
            ("metric", "metric", entry.metric, lambda each: each.scores),
        )
        for key, word, given, of in wanted:
            if given is None:
                continue
            fits = [each for each in results if given in of(each)]
            if not fits:
                there = sorted({name for each in results for name in of(each)})
                text = f"no result of {entry.task} has the {word} {given!r}. {known(there, given)}"
                raise self._wrong(place, key, text)
            results = fits

    def _wrong(self, place: int, key: str, text: str) -> Exception:
        where: KeyPath = ("tasks", place)
        return self.definition.wrong((*where, key) if (*where, key) in self.definition.lines else where, text)


def _of_benchmark(wanted: str, there: Iterable[str]) -> list[str]:
    """The tasks of a benchmark of mteb that are there."""
    if not wanted.startswith(MTEB):
        return []
    from embeval.errors import UsageError
    from embeval.workflows import mteb_entries

    names = sorted(there)
    try:
        filed = mteb_entries.filed_under(wanted, names)
    except UsageError:  # no task or benchmark is called so
        return []
    return [name for name in filed if name in names]
