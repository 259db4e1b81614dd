"""``board.yaml``: which results a board shows, how it ranks them, and what is written."""

from __future__ import annotations

import errno
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from embeval.core import border
from embeval.core.border import BORDER, KeyPath, Problem
from embeval.core.paths import expanded, readable, seen_from_here
from embeval.core.yaml_files import line_of, read_yaml
from embeval.errors import ConfigError

FILE_NAME = "board.yaml"
LISTS = ("results", "imported", "tags", "models", "tasks", "outputs")
"""Its keys that hold lists."""
RankBy = Literal["mean_task", "mean_type", "borda"]
Gaps = Literal["exclude", "rank"]
Output = Literal["html", "readme", "svg", "csv", "json", "parquet"]
OUTPUTS: dict[Output, str] = {
    "html": "index.html",
    "readme": "README.md",
    "svg": "ranks.svg",
    "csv": "board.csv",
    "json": "board.json",
    "parquet": "board.parquet",
}
"""What each is called, beside the definition."""


@dataclass(frozen=True, kw_only=True)
class ShownTask:
    """A task of a board. Only its name has to be given."""

    __pydantic_config__ = BORDER

    task: str
    """Name of the task, with ``*`` for any part; or ``mteb:`` and a benchmark: its tasks, as far as they are there."""
    metric: str | None = None
    """The metric shown; null: the task's main score."""
    split: str | None = None
    """The split shown; null: every one that there are results of."""
    subset: str | None = None
    """The sub-set shown; null: the one that stands for the task."""
    group: str | None = None
    """The group it is shown in; null: its type, such as ``Retrieval``."""
    weight: float = 1.0
    """What it counts in means, beside the others."""
    heading: str | None = None
    """What its column is called; null: the name of the task."""

    def __post_init__(self) -> None:
        if not self.weight > 0.0:
            raise ValueError(f"weight must be above 0, not {self.weight}")
        _refuse_empty(self, ("task", "metric", "split", "subset", "group", "heading"))


@dataclass(frozen=True, kw_only=True)
class BoardFile:
    """A board. Relative paths start at the folder of the file."""

    __pydantic_config__ = BORDER

    title: str | None = None
    """Its heading; null: the name of its folder."""
    description: str = ""
    """What a reader should know before the numbers."""
    results: tuple[str, ...] = ("results",)
    """Folders of results; of one measurement that lies in several the newest counts."""
    imported: tuple[str, ...] = ()
    """Folders of published results in mteb's layout, shown beside one's own and marked."""
    tags: tuple[str, ...] = ()
    """Tags whose results are shown, and no others of the folders of results; empty: all."""
    models: tuple[str, ...] = ()
    """Models shown, by label or, where that is nobody's label, by name, with ``*`` for any part; empty: all."""
    tasks: tuple[str | ShownTask, ...] = ()
    """Tasks shown, in this order; empty: all, by name."""
    rank_by: RankBy = "mean_task"
    """``mean_task``: mean over tasks; ``mean_type``: mean over groups of the means within them; ``borda``: Borda's
    count of the ranks on each task."""
    gaps: Gaps = "exclude"
    """Models without a value on some task: not ranked, or ranked as if they were the worst there, and marked."""
    reference: str | None = None
    """The model that others are held against: its label or name."""
    production: str | None = None
    """The model in use: a tag, or a label or name. The gate decides whether others may replace it."""
    gate: str | None = None
    """File with the policy of that gate, such as embeval.yaml."""
    rag_k: int = 10
    """How many documents the RAG system passes on: recall is shown at that depth."""
    usd_per_hour: float | None = None
    """What an hour of the machine costs, for the costs of encoding; null: not shown."""
    level: float = 0.95
    """Confidence of rank intervals and of what is told apart."""
    older: bool = False
    """Whether results on data that is not the latest have columns too."""
    items: int = 10
    """Items lost and gained against the reference that are listed for each model and task."""
    texts: bool = False
    """Whether the texts of these items are shown: a page may travel further than the data may."""
    data: str | None = None
    """Folder that holds the data of catalogue tasks, where these texts are read from."""
    reports: bool = False
    """Whether a comparison with the reference is written for each model, and linked."""
    outputs: tuple[Output, ...] = ("html", "readme", "svg", "csv", "json", "parquet")
    """What is written beside the file."""

    def __post_init__(self) -> None:
        if not 0.5 <= self.level < 1.0:
            raise ValueError(f"level must be at least 0.5 and below 1, not {self.level}")
        if self.rag_k < 1:
            raise ValueError(f"rag_k must be at least 1, not {self.rag_k}")
        if self.items < 0:
            raise ValueError(f"items must not be negative, not {self.items}")
        if self.usd_per_hour is not None and not self.usd_per_hour > 0.0:
            raise ValueError(f"usd_per_hour must be above 0, not {self.usd_per_hour}")
        if not self.outputs:
            raise ValueError("outputs must name at least one")
        _refuse_empty(self, ("title", "reference", "production", "gate"))


def _refuse_empty(record: object, names: tuple[str, ...]) -> None:
    for name in names:
        value = getattr(record, name)
        if value is not None and not value.strip():
            raise ValueError(f"{name} must not be empty")


@dataclass(frozen=True)
class Definition:
    """A board and where it lies."""

    path: Path
    """Its file."""
    board: BoardFile
    """Its content."""
    shown: tuple[ShownTask, ...] = field(default=())
    """Its tasks; empty: all."""
    lines: Mapping[KeyPath, int] = field(default_factory=dict, repr=False, compare=False)
    """The line of each key."""

    @property
    def name(self) -> str:
        """The name of its folder."""
        return readable(self.path.resolve().parent.name)

    @property
    def title(self) -> str:
        """Its heading."""
        return self.board.title or self.name

    def folder(self, given: str) -> Path:
        """A path of the file, as seen from here."""
        return self.path.parent / expanded(given)

    def output(self, kind: Output) -> Path:
        """Where one of its outputs is written."""
        return self.path.parent / OUTPUTS[kind]

    def wrong(self, where: KeyPath, text: str) -> ConfigError:
        """The complaint about a value of the file, with its line."""
        return ConfigError(f"{self.path}, line {line_of(self.lines, where)}: {border.spell(where)}: {text}", key=where)


def load(path: Path) -> Definition:
    """The definition in a file. Raises ``ConfigError`` with the line."""
    value, lines = read_yaml(path, hint="'embeval leaderboard init' writes one.")
    value = {} if value is None else value
    if not isinstance(value, dict):
        raise ConfigError(f"{path}: the file must hold keys such as 'results' and 'tasks'.")

    def wrong(problem: Problem) -> ConfigError:
        return ConfigError(f"{path}, line {line_of(lines, problem.path)}: {problem}", key=problem.path)

    if problem := next(_no_lists(value), None):
        raise wrong(problem)
    try:
        board = border.load(BoardFile, value)
    except border.BorderError as error:
        problem = error.problems[0]
        # An entry of a task is a text or a record, and the place of a problem says which; the file doesn't.
        where = tuple(step for step in problem.path if step != ShownTask.__name__)
        raise wrong(Problem(where, problem.text)) from None
    shown = tuple(each if isinstance(each, ShownTask) else ShownTask(task=each) for each in board.tasks)
    found = Definition(path, board, shown, lines)
    _refuse_twice(found)
    _refuse_bad_paths(found)
    return found


def _no_lists(value: Mapping[str, Any]) -> Iterator[Problem]:
    """Problems of keys that hold lists, in words that say how to write one."""
    for key in LISTS:
        if isinstance(value.get(key), str):
            yield Problem((key,), f"must be a list: [{value[key]}]")
    tasks = value.get("tasks")
    for place, entry in enumerate(tasks if isinstance(tasks, list) else ()):
        if not isinstance(entry, str | dict):
            yield Problem(("tasks", place), f"must be the name of a task, or keys such as 'task', not {entry!r}")


def _refuse_twice(definition: Definition) -> None:
    """Raises ``ConfigError`` for a value that stands twice in a list, and for a task that would have two columns."""
    board = definition.board
    tasks = [(each.task, each.metric, each.split, each.subset) for each in definition.shown]
    named: tuple[tuple[str, tuple[object, ...]], ...] = (
        ("results", board.results),
        ("imported", board.imported),
        ("tags", board.tags),
        ("models", board.models),
        ("outputs", board.outputs),
        ("tasks", tuple(tasks)),
    )
    for key, values in named:
        for place, value in enumerate(values):
            if (first := values.index(value)) < place:
                shown = definition.shown[place].task if key == "tasks" else value
                line = line_of(definition.lines, (key, first))
                raise definition.wrong((key, place), f"{shown!r} stands here twice; first in line {line}.")
    headings = [each.heading for each in definition.shown]
    for place, heading in enumerate(headings):
        if heading is not None and headings.index(heading) < place:
            raise definition.wrong(("tasks", place, "heading"), f"another task is called {heading!r} too.")


def _refuse_bad_paths(definition: Definition) -> None:
    board = definition.board
    if not board.results and not board.imported:
        raise definition.wrong(("results",), "name at least one folder, here or under 'imported'.")
    for key, given in (("results", board.results), ("imported", board.imported)):
        for place, path in enumerate(given):
            _folder(definition, (key, place), path)
    if board.data is not None:
        _folder(definition, ("data",), board.data)
    if board.gate is not None and not _folder(definition, ("gate",), board.gate).is_file():
        raise definition.wrong(
            ("gate",), f"no such file: {seen_from_here(definition.folder(board.gate))}. It holds the policy."
        )


def _folder(definition: Definition, where: KeyPath, given: str) -> Path:
    if not given.strip():
        raise definition.wrong(where, "a path must not be empty.")
    try:
        found = definition.folder(given)
        found.stat()
    except ConfigError as error:
        raise definition.wrong(where, str(error)) from None
    except ValueError:
        raise definition.wrong(where, "a path can't hold the character 0.") from None
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            raise definition.wrong(where, "the name is too long for this file system.") from None
    return found
