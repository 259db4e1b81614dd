"""Results in little memory: what they share is kept once, and their scores are arrays until somebody asks for them.

A result is taken apart by its fields. Each field is JSON text, kept once however many results say the same, and read
once, when the first of them is asked for. Scores are three numbers each and a text for the rest of them.
"""

from __future__ import annotations

import dataclasses
import json
import math
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, get_type_hints

import numpy as np
import numpy.typing as npt

from embeval.core import border, strict_json
from embeval.core.border import BORDER
from embeval.core.result import FileRef, MetricValue, Result, Timings, label_of
from embeval.core.signature import Signature
from embeval.core.specs import ModelSpec

Numbers = npt.NDArray[np.int64]
OWN = ("timings", "items", "run", "tokens")
"""Fields that no two results share."""
NUMBERS = ("value", "ci_low", "ci_high")
"""The numbers of a score, null being NaN: no score is."""
REST = tuple(each.name for each in dataclasses.fields(MetricValue) if each.name not in NUMBERS)
"""What else a score says."""
SHARED = tuple(each.name for each in dataclasses.fields(Result) if each.name not in (*OWN, "scores", "signature"))
SIGNED = tuple(each.name for each in dataclasses.fields(Signature))
PARTS = (*SHARED, *SIGNED, "metrics of the scores")
"""What a row of ``Packed.parts`` tells, in this order."""
ABSENT = -1
"""A field that a file leaves out."""
NULL = "null"
"""The text of one that it leaves open."""
_ENCODER = json.JSONEncoder(separators=(",", ":"))
_PLACE = {name: place for place, name in enumerate(PARTS)}
_TYPES = [*(get_type_hints(Result)[name] for name in SHARED), *(get_type_hints(Signature)[name] for name in SIGNED)]


@dataclass(frozen=True, kw_only=True)
class _Own:
    __pydantic_config__ = BORDER

    timings: Timings | None
    items: FileRef | None
    run: FileRef | None
    tokens: FileRef | None = None
    """Not in catalogues from before there were any."""


class Wanted(NamedTuple):
    """Which results are looked for: one test for each of their names."""

    task: Callable[[str], bool]
    model: Callable[[str], bool]
    """Of the label or the name."""
    subset: Callable[[str], bool]
    status: Callable[[str], bool]

    def fits(self, result: Result) -> bool:
        """Whether a result is one of them."""
        return (
            self.task(result.task.name)
            and any(map(self.model, names_of(result.model, imported=result.imported is not None)))
            and self.subset(result.subset)
            and self.status(result.status)
        )


def names_of(model: ModelSpec, *, imported: bool) -> tuple[str, str]:
    """(label, name) by which a model is looked for."""
    return label_of(model, imported=imported), model.name


@dataclass(frozen=True)
class Arrays:
    """N results with S scores, as they are kept in a file."""

    texts: tuple[str, ...]
    """JSON of whatever is shared."""
    own: tuple[str, ...]
    """JSON of what is not, one for each result."""
    parts: npt.NDArray[np.int32]
    """int32 [N, P]: the text of each of ``PARTS``."""
    starts: npt.NDArray[np.int64]
    """int64 [N + 1]: the first score of each result, and the end."""
    numbers: npt.NDArray[np.float64]
    """float64 [S, 3]: ``NUMBERS`` of each score."""
    rests: npt.NDArray[np.int32]
    """int32 [S]: the text of ``REST`` of each score."""

    @classmethod
    def none(cls) -> Arrays:
        """Of no results."""
        return cls(
            (),
            (),
            np.zeros((0, len(PARTS)), np.int32),
            np.zeros(1, np.int64),
            np.zeros((0, len(NUMBERS))),
            np.zeros(0, np.int32),
        )

    def take(self, rows: Sequence[int]) -> Arrays:
        """Some of the results, in this order, with the texts that they need."""
        chosen = np.asarray(rows, dtype=np.int64)
        lengths = np.diff(self.starts)[chosen]
        starts = np.concatenate([[0], np.cumsum(lengths)])
        scores = np.arange(starts[-1]) + np.repeat(self.starts[chosen] - starts[:-1], lengths)
        parts, rests = self.parts[chosen], self.rests[scores]
        used = np.unique(np.concatenate([parts.ravel(), rests]))
        used = used[used != ABSENT]
        moved = np.full(len(self.texts) + 1, ABSENT, np.int32)  # the last one is where ABSENT points
        moved[used] = np.arange(len(used), dtype=np.int32)
        return Arrays(
            tuple(self.texts[place] for place in used.tolist()),
            tuple(self.own[row] for row in rows),
            moved[parts],
            starts,
            self.numbers[scores],
            moved[rests],
        )


class Packer:
    """Takes results in, one by one, behind those that there are."""

    def __init__(self, before: Arrays) -> None:
        self._before = before
        self._places = {text: place for place, text in enumerate(before.texts)}
        self._own: list[str] = []
        self._parts = array("i")
        self._lengths = array("q")
        self._numbers = array("d")
        self._rests = array("i")
        self._rest_places: dict[tuple[Any, ...], int] = {}

    def add(self, value: strict_json.Json, result: Result) -> None:
        """Takes a result in; ``value`` is the JSON that it was read from."""
        signed = value["signature"]
        self._parts.extend(self._place(value[name]) if name in value else ABSENT for name in SHARED)
        self._parts.extend(self._place(signed[name]) if name in signed else ABSENT for name in SIGNED)
        self._parts.append(self._place(list(result.scores)))
        own = _Own(**{name: getattr(result, name) for name in OWN})
        self._own.append(border.text_of(own))
        self._lengths.append(len(result.scores))
        for score in result.scores.values():
            said = vars(score)
            self._numbers.extend(math.nan if said[name] is None else said[name] for name in NUMBERS)
            rest = tuple(said[name] for name in REST)
            place = self._rest_places.get(rest)
            if place is None:
                place = self._rest_places[rest] = self._place(rest)
            self._rests.append(place)

    def _place(self, value: strict_json.Json) -> int:
        """Where the text of a value stands among the texts; its keys keep their order."""
        text = _ENCODER.encode(value)
        return self._places.setdefault(text, len(self._places))

    def arrays(self) -> Arrays:
        """Everything that was taken in, behind what there was."""
        before = self._before
        ends = before.starts[-1] + np.cumsum(np.array(self._lengths, np.int64))
        return Arrays(
            tuple(self._places),
            (*before.own, *self._own),
            np.concatenate([before.parts, np.array(self._parts, np.int32).reshape(-1, len(PARTS))]),
            np.concatenate([before.starts, ends]).astype(np.int64),
            np.concatenate([before.numbers, np.array(self._numbers, np.float64).reshape(-1, len(NUMBERS))]),
            np.concatenate([before.rests, np.array(self._rests, np.int32)]),
        )


class Packed:
    """Results that are built when somebody asks for them."""

    def __init__(self, arrays: Arrays) -> None:
        self.arrays = arrays
        self._starts = arrays.starts.tolist()
        self._read: list[dict[int, Any]] = [{ABSENT: None} for _ in PARTS]
        self._rests: dict[int, dict[str, Any]] = {}

    def names(self, rows: Sequence[int]) -> tuple[set[str], set[str]]:
        """(names of the tasks, labels and names of the models) of some results."""
        tasks = np.unique(self._column(rows, "task")).tolist()
        models = np.unique(self._models(rows)).tolist()
        return (
            {self._part("task", each).name for each in tasks},
            {name for each in models for name in self._names_of(each)},
        )

    def fitting(self, rows: Sequence[int], wanted: Wanted) -> list[int]:
        """Those of some results that are wanted."""
        fits = [
            _tested(self._column(rows, "task"), lambda which: wanted.task(self._part("task", which).name)),
            _tested(self._models(rows), lambda which: any(map(wanted.model, self._names_of(which)))),
            _tested(self._column(rows, "subset"), lambda which: wanted.subset(self._part("subset", which))),
            _tested(self._column(rows, "status"), lambda which: wanted.status(self._part("status", which))),
        ]
        found: list[int] = np.asarray(rows, np.int64)[np.all(fits, axis=0)].tolist()
        return found

    def _column(self, rows: Sequence[int], name: str) -> Numbers:
        """The texts of a part of some results."""
        texts: Numbers = self.arrays.parts[np.asarray(rows, np.int64), _PLACE[name]].astype(np.int64)
        return texts

    def _models(self, rows: Sequence[int]) -> Numbers:
        """The texts of the models of some results, doubled, and one more for those that are imported."""
        imported = _tested(
            self._column(rows, "imported"), lambda which: which != ABSENT and self.arrays.texts[which] != NULL
        )
        both: Numbers = self._column(rows, "model") * 2 + imported
        return both

    def _names_of(self, which: int) -> tuple[str, str]:
        model, imported = divmod(which, 2)
        return names_of(self._part("model", model), imported=bool(imported))

    def result(self, row: int) -> Result:
        """A result, equal to the one that was taken in."""
        parts = self.arrays.parts[row].tolist()
        own = border.restore(_Own, self.arrays.own[row])
        return Result(
            **self._told(parts, 0, len(SHARED)),
            signature=Signature(**self._told(parts, len(SHARED), len(SHARED) + len(SIGNED))),
            scores=Scores(self, row, self._names(parts[-1])),
            timings=own.timings,
            items=own.items,
            run=own.run,
            tokens=own.tokens,
        )

    def score(self, row: int, place: int) -> MetricValue:
        """One of the scores of a result."""
        at = self._starts[row] + place
        value, low, high = self.arrays.numbers[at].tolist()
        which = int(self.arrays.rests[at])
        rest = self._rests.get(which)
        if rest is None:
            rest = self._rests[which] = dict(zip(REST, json.loads(self.arrays.texts[which]), strict=True))
        return MetricValue(value=_known(value), ci_low=_known(low), ci_high=_known(high), **rest)

    def _told(self, parts: Sequence[int], start: int, end: int) -> dict[str, Any]:
        """Field -> value, of those between two places that the file of a result tells."""
        there = zip(PARTS[start:end], parts[start:end], self._read[start:end], strict=True)
        return {
            name: read[which] if which in read else self._part(name, which)
            for name, which, read in there
            if which != ABSENT
        }

    def _names(self, which: int) -> Mapping[str, int]:
        """Metric name -> place among the scores of a result."""
        read = self._read[-1]
        if which not in read:
            read[which] = {name: place for place, name in enumerate(json.loads(self.arrays.texts[which]))}
        found: Mapping[str, int] = read[which]
        return found

    def _part(self, name: str, which: int) -> Any:
        place = _PLACE[name]
        read = self._read[place]
        if which not in read:
            read[which] = border.restore(_TYPES[place], self.arrays.texts[which])
        return read[which]


class Scores(Mapping[str, MetricValue]):
    """The scores of a packed result: each is built when it is looked at."""

    __slots__ = ("_built", "_names", "_packed", "_row")

    def __init__(self, packed: Packed, row: int, names: Mapping[str, int]) -> None:
        self._packed, self._row, self._names = packed, row, names
        self._built: dict[str, MetricValue] = {}

    def __getitem__(self, name: str) -> MetricValue:
        if name not in self._built:
            self._built[name] = self._packed.score(self._row, self._names[name])
        return self._built[name]

    def __contains__(self, name: object) -> bool:
        return name in self._names  # what Mapping does would build the score

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __repr__(self) -> str:
        return repr(dict(self))

    def __deepcopy__(self, memo: dict[int, Any]) -> dict[str, MetricValue]:
        return dict(self)  # frozen values: what was packed beside them needs no copy

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, (dict(self),)


def _tested(texts: Numbers, test: Callable[[int], bool]) -> npt.NDArray[np.bool_]:
    """The outcome of a test for each, which is made once for equal ones."""
    distinct, places = np.unique(texts, return_inverse=True)
    return np.array([test(each) for each in distinct.tolist()], np.bool_)[places]


def _known(number: float) -> float | None:
    return None if math.isnan(number) else number
