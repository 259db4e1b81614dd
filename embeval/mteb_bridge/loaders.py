"""Plain lists of texts in place of the data loaders that mteb makes.

For those mteb imports torch, two to three seconds that nothing is gained by where every vector comes from the cache.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator, Sequence
from types import ModuleType
from typing import Any

PLACES = ("mteb.abstasks.", "mteb._evaluators.", "mteb.tasks.")
"""Where mteb evaluates."""
Made = Callable[..., Any]


class Texts:
    """Texts that are read as those of a data loader, in one batch; it is the data set behind itself."""

    column_names = ("text",)

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = list(texts)

    @property
    def dataset(self) -> Texts:
        """The texts again."""
        return self

    def __getitem__(self, column: str) -> list[str]:
        return self._texts

    def __iter__(self) -> Iterator[dict[str, list[str]]]:
        yield {"text": self._texts}


@contextlib.contextmanager
def of_texts() -> Iterator[None]:
    """Inside, mteb's evaluators get ``Texts``. What isn't plain text, or is put together first, mteb still loads."""
    replaced: list[tuple[ModuleType, str, Made]] = []
    for name, module in list(sys.modules.items()):
        if not name.startswith(PLACES):
            continue
        for function, instead in (("create_dataloader", _of_rows), ("_create_dataloader_from_texts", _of_list)):
            if (original := vars(module).get(function)) is not None:
                replaced.append((module, function, original))
                setattr(module, function, instead(original))
    try:
        yield
    finally:
        for module, function, original in replaced:
            setattr(module, function, original)


def _of_rows(original: Made) -> Made:
    def made(dataset: Any, *, task_metadata: Any, prompt_type: Any = None, input_column: Any = None, **keys: Any) -> Any:
        column = "text" if input_column is None else input_column
        plain = prompt_type is None and task_metadata.modalities == ["text"]
        if plain and isinstance(column, str) and column in dataset.column_names:
            return Texts(dataset[column][:])
        return original(
            dataset, task_metadata=task_metadata, prompt_type=prompt_type, input_column=input_column, **keys
        )

    return made


def _of_list(original: Made) -> Made:
    return lambda text, **_: Texts(text)
