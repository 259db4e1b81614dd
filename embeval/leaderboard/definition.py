"""``board.yaml``: which results a board shows, how it ranks them, and what is written."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from embeval.core import border
from embeval.core.border import BORDER
from embeval.core.yaml_files import line_of, read_yaml
from embeval.errors import ConfigError

FILE_NAME = "board.yaml"
RankBy = Literal["mean_task", "mean_type", "borda"]
Output = Literal["html", "readme", "csv", "json", "parquet"]
OUTPUTS: dict[Output, str] = {
    "html": "index.html",
    "readme": "README.md",
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
    """Name of the task."""
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


@dataclass(frozen=True, kw_only=True)
class BoardFile:
    """A board. Relative paths start at the folder of the file."""

    __pydantic_config__ = BORDER

    title: str | None = None
    """Its heading; null: the name of its folder."""
    description: str = ""
    """What a reader should know before the numbers."""
    results: tuple[str, ...] = ("results",)
    """Folders of results."""
    imported: tuple[str, ...] = ()
    """Folders of published results in mteb's layout, shown beside one's own and marked."""
    tags: tuple[str, ...] = ()
    """Tags whose results are shown, and no others of these folders; empty: all."""
    models: tuple[str, ...] = ()
    """Models shown, by label or name, with ``*`` for any part; empty: all."""
    tasks: tuple[str | ShownTask, ...] = ()
    """Tasks shown, in this order; empty: all, by name."""
    rank_by: RankBy = "mean_task"
    """``mean_task``: mean over tasks; ``mean_type``: mean over groups of the means within them; ``borda``: Borda's
    count of the ranks on each task."""
    gaps: Literal["exclude", "rank"] = "exclude"
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
    reports: bool = False
    """Whether a comparison with the reference is written for each model, and linked."""
    outputs: tuple[Output, ...] = ("html", "readme", "csv", "json", "parquet")
    """What is written beside the file."""

    def __post_init__(self) -> None:
        if not 0.5 <= self.level < 1.0:
            raise ValueError(f"level must be at least 0.5 and below 1, not {self.level}")


@dataclass(frozen=True)
class Definition:
    """A board and where it lies."""

    path: Path
    """Its file."""
    board: BoardFile
    """Its content."""
    shown: tuple[ShownTask, ...] = field(default=())
    """Its tasks; empty: all."""

    @property
    def name(self) -> str:
        """The name of its folder."""
        return self.path.resolve().parent.name

    @property
    def title(self) -> str:
        """Its heading."""
        return self.board.title or self.name

    def folder(self, given: str) -> Path:
        """A path of the file, as seen from here."""
        from embeval.core.paths import expanded

        return self.path.parent / expanded(given)

    def output(self, kind: Output) -> Path:
        """Where one of its outputs is written."""
        return self.path.parent / OUTPUTS[kind]


def load(path: Path) -> Definition:
    """The definition in a file. Raises ``ConfigError`` with the line."""
    value, lines = read_yaml(path)
    try:
        board = border.load(BoardFile, {} if value is None else value)
    except border.BorderError as error:
        problem = error.problems[0]
        raise ConfigError(f"{path}, line {line_of(lines, problem.path)}: {problem}") from None
    shown = tuple(each if isinstance(each, ShownTask) else ShownTask(task=each) for each in board.tasks)
    return Definition(path, board, shown)
