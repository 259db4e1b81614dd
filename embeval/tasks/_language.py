"""What tasks share that score a model's tokens with its language-model head."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Self

from embeval.core.protocols import LanguageModelKind as Kind
from embeval.core.specs import ModelSpec, TaskSpec
from embeval.errors import EvaluationError
from embeval.language_models import kinds
from embeval.language_models.model import LanguageModel

UNBOUND: Kind = "masked"
"""The kind of a task that is bound to no model yet."""


@dataclass(frozen=True)
class LanguageTask:
    """A task on one file, bound to a kind of language model before it runs."""

    spec: TaskSpec
    path: Path
    options: Any
    kind: Kind = UNBOUND
    tokenizer: str | None = None
    """Digest of the model's tokenizer."""

    kinds: ClassVar[tuple[Kind, ...]] = (UNBOUND,)
    """Kinds of models that it can evaluate."""

    def fitted(self, kind: str, tokenizer: str | None, model: ModelSpec) -> Self:
        """The task for a model of that kind. Raises ``EvaluationError`` where it can't evaluate such models."""
        checked = kinds.checked(kind, self.kinds, model=model.label, task=self.spec.name)
        return replace(self, kind=checked, tokenizer=tokenizer)


def sizes(model: LanguageModel) -> Mapping[str, int | None]:
    """Counts of the model itself."""
    return {"max_tokens": model.limit}


def unknown(n_unknown: int, n_tokens: int) -> Sequence[str]:
    """A sentence on unknown tokens, where there are any: predicting "something unknown" is easy."""
    if not n_unknown:
        return ()
    share = f"{n_unknown} of the {n_tokens} tokens"
    return (f"The tokenizer does not know {share}: what stands for them is easy to predict, so scores look better.",)


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
