"""Our systems as mteb's models: an encoder as its ``EncoderProtocol``, with our search as its ``SearchProtocol``."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
import numpy.typing as npt

from embeval.core.embeddings import Alike, TextCounts, Vectors, Work, unit
from embeval.core.progress import Progress, Silent
from embeval.core.protocols import Encoder, TaskRef
from embeval.core.similarity import SIMILARITIES
from embeval.core.specs import Role
from embeval.errors import InvalidEmbeddingsError
from embeval.mteb_bridge import door

ROLES: Mapping[str | None, Role] = {None: Role.TEXT, "query": Role.QUERY, "document": Role.DOCUMENT}
"""mteb's prompt types."""
Matrix = npt.NDArray[np.float32]
LARGEST = 1e17
"""Numbers up to it have products that a float32 holds, summed over ten thousand dimensions."""


class BridgedEncoder:
    """An encoder that mteb's task classes can evaluate. It keeps count of what went through it."""

    def __init__(self, encoder: Encoder, task: TaskRef, progress: Progress | None = None) -> None:
        self.encoder, self.task = encoder, task
        self._progress = progress or Silent()
        self.label = task.name
        """What is evaluated now, for the progress."""
        self.counts = TextCounts()
        """Of all texts."""
        self.alike = Alike()
        """Texts that look the same once cut."""
        self.prompts: dict[str, str] = {}
        """The prompt used for each role."""
        self.work = Work()
        """What went through the model."""
        self.seconds = 0.0
        """Wall seconds spent on vectors."""
        self.around: Callable[[], AbstractContextManager[Any]] = nullcontext
        """Entered while the encoder works."""
        self._kept: dict[str, list[Vectors]] = {}

    def encode(
        self,
        inputs: Any,
        *,
        task_metadata: Any,
        hf_split: str,
        hf_subset: str,
        prompt_type: Any = None,
        **_: Any,
    ) -> Matrix:
        """float32 [n, d]: vectors of the texts of mteb's data loader. Its batches are not ours and don't count."""
        began = time.perf_counter()
        texts = texts_of(inputs)
        role = ROLES[None if prompt_type is None else prompt_type.value]
        self._progress.start(self.label, len(texts), "texts")
        ids = [f"{hf_subset}/{hf_split}/{row}" for row in range(len(texts))]
        with self.around():
            embeddings = self.encoder.encode(texts, role=role, task=self.task, ids=ids, progress=self._progress)
        self._progress.finish()
        _refuse_large(embeddings.vectors, ids)
        self.counts += embeddings.counts
        self.alike.add(embeddings)
        self.work += embeddings.work
        self.prompts[role.value] = self.encoder.prompt(role, self.task)
        self._kept.setdefault(hf_subset, []).append(embeddings.vectors)
        self.seconds += time.perf_counter() - began
        return embeddings.vectors

    def vectors(self, subset: str) -> list[Vectors]:
        """The vectors that each call of ``encode`` gave for a sub-set, in their order."""
        return self._kept[subset]

    def similarity(self, embeddings1: Any, embeddings2: Any) -> Any:
        """float32 [n, m]: similarity of each with each, as the model means its vectors to be compared.

        Of two vectors a number, which mteb's summarization makes a float of.
        """
        if np.ndim(embeddings1) == np.ndim(embeddings2) == 1:
            return self.similarity_pairwise(embeddings1, embeddings2)[0]
        left, right = _rows(embeddings1), _rows(embeddings2)
        match self.encoder.info.similarity:
            case "cosine":
                return np.asarray(unit(left) @ unit(right).T)
            case "dot":
                return np.asarray(left @ right.T)
            case name:
                return np.stack([SIMILARITIES[name](row[None], right) for row in left])

    def similarity_pairwise(self, embeddings1: Any, embeddings2: Any) -> npt.NDArray[np.float32]:
        """float32 [n]: similarity of each with its counterpart."""
        return SIMILARITIES[self.encoder.info.similarity](_rows(embeddings1), _rows(embeddings2))

    @property
    def mteb_model_meta(self) -> Any:
        """What mteb wants to know of a model."""
        return door.nameless_model()


def _refuse_large(vectors: Vectors, ids: Sequence[str]) -> None:
    """Raises ``InvalidEmbeddingsError`` for vectors whose squares mteb's float32 can't hold."""
    largest = np.maximum(vectors.max(axis=1, initial=0.0), -vectors.min(axis=1, initial=0.0))
    if len(rows := np.flatnonzero(largest > LARGEST)):
        name = ids[rows[0]]
        raise InvalidEmbeddingsError(
            f"The embeddings of {len(rows)} of {len(vectors)} texts, such as {name!r}, hold numbers up to "
            f"{largest.max():.0e}, and mteb's float32 can't hold their products. Nothing was scored.",
            (name,),
        )


def _rows(vectors: Any) -> Vectors:
    return np.atleast_2d(np.asarray(vectors, dtype=np.float32))


def texts_of(inputs: Any) -> list[str]:
    """The texts of a data loader, read at once from the data set behind it where that has them."""
    rows = getattr(inputs, "dataset", None)
    if rows is not None and "text" in getattr(rows, "column_names", ()):
        return list(rows["text"][:])
    return [text for batch in inputs for text in batch["text"]]
