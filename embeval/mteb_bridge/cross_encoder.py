"""Our rerankers as mteb's ``CrossEncoderProtocol``, for code that calls mteb itself.

Tasks of ours take a reranker as the second stage of ``BridgedSearch``, which reads texts once and not once per pair.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from embeval.core.embeddings import Work
from embeval.core.protocols import Reranker
from embeval.mteb_bridge import door
from embeval.mteb_bridge.model import texts_of


class BridgedReranker:
    """A reranker that mteb's task classes can evaluate where candidates are given."""

    def __init__(self, reranker: Reranker) -> None:
        self.reranker = reranker
        self.work = Work()
        """What went through the model."""

    def predict(self, inputs1: Any, inputs2: Any, **_: Any) -> npt.NDArray[np.float32]:
        """float32 [n]: score of each pair of a query and a document of mteb's data loaders."""
        scored = self.reranker.score(list(zip(texts_of(inputs1), texts_of(inputs2), strict=True)))
        self.work += scored.work
        return scored.scores

    @property
    def mteb_model_meta(self) -> Any:
        """What mteb wants to know of a model."""
        return door.nameless_model()
