"""What tasks share that score a model's tokens with its language-model head."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from embeval import metrics
from embeval.core.protocols import LanguageModelKind as Kind
from embeval.core.protocols import Metric
from embeval.core.records import Column, ItemRecords
from embeval.core.specs import ModelSpec, TaskSpec
from embeval.data.texts import Texts, load_texts
from embeval.errors import EvaluationError
from embeval.language_models import kinds, variants
from embeval.language_models.model import LanguageModel

UNBOUND: Kind = "masked"
"""The kind of a task that is bound to no model yet."""
VARIANTS_AT_ONCE, NUMBERS_AT_ONCE = 65_536, 4_000_000
"""Variants that are scored together at most, and numbers in them: enough that batches are full, and few enough to fit
into memory."""


@dataclass(frozen=True)
class LanguageTask(ABC):
    """A task on one file, bound to a kind of language model before it runs."""

    spec: TaskSpec
    path: Path
    options: Any
    kind: Kind = UNBOUND
    tokenizer: str | None = None
    """Digest of the model's tokenizer."""

    kinds: ClassVar[tuple[Kind, ...]] = (UNBOUND,)
    """Kinds of models that it can evaluate."""

    @property
    @abstractmethod
    def metric_names(self) -> tuple[str, ...]:
        """What it has with its options, first the one that stands for it unless its spec names another."""

    def metrics(self, payload: Any) -> tuple[Metric, ...]:
        """The metrics, the main one first."""
        names = self.metric_names
        return tuple(metrics.get(name) for name in dict.fromkeys([self.spec.main_score or names[0], *names]))

    def fitted(self, kind: str, tokenizer: str | None, model: ModelSpec) -> Self:
        """The task for a model of that kind. Raises ``EvaluationError`` where it can't evaluate such models."""
        checked = kinds.checked(kind, self.kinds, model=model.label, task=self.spec.name)
        return replace(self, kind=checked, tokenizer=tokenizer)


@dataclass(frozen=True)
class TextsTask(LanguageTask):
    """One whose items are the texts of a file; its options have ``columns`` and ``unit``."""

    def load(self) -> Texts:
        """The texts."""
        return load_texts(self.path, self.options.columns, self.options.unit)


def text_records(payload: Texts, columns: Mapping[str, Column]) -> ItemRecords:
    """One row per text with these columns, and its sub-set where it has one."""
    slices = {"subset": payload.subsets} if payload.subsets else {}
    return ItemRecords(unit="text", ids=payload.ids, columns=columns, slices=slices)


def first_ids(payload: Texts, place: npt.NDArray[np.intp]) -> list[str]:
    """The id of the first text that each distinct one stands for, from the distinct one of each text [n]."""
    return [payload.ids[row] for row in np.unique(place, return_index=True)[1].tolist()]


def chunks(made: Iterable[tuple[int, Sequence[str]]]) -> Iterator[tuple[list[int], list[str]]]:
    """(row of each, variants), as many as are scored at once, of pairs of a row and its variants."""
    rows: list[int] = []
    together: list[str] = []
    size = 0
    for row, of_row in made:
        rows += [row] * len(of_row)
        together += of_row
        size += sum(map(variants.size, of_row))
        if len(together) >= VARIANTS_AT_ONCE or size >= NUMBERS_AT_ONCE:
            yield rows, together
            rows, together, size = [], [], 0
    if rows:
        yield rows, together


EASY = "what stands for them is easy to predict, so scores look better"
"""What follows from unknown tokens where a model says how probable they are."""


def unknown(n_unknown: int, n_tokens: int, *, so: str = EASY) -> Iterator[str]:
    """A sentence on unknown tokens and what follows from them, where there are any."""
    if n_unknown:
        yield f"The tokenizer does not know {n_unknown} of the {n_tokens} tokens: {so}."


def check_masks(model: LanguageModel) -> None:
    """Raises ``EvaluationError`` where a masked model can't hide a token, or has no room for one."""
    if model.frame.mask_id is None:
        raise EvaluationError(
            f"The tokenizer of {model.spec.label} has no mask token, so nothing can be hidden from the model."
        )
    if model.room is not None and model.room < 1:
        raise EvaluationError(
            f"{model.spec.label} takes {model.limit} tokens, which its special tokens fill: none is left for a text."
        )
