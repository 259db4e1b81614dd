"""What backends share that rank documents and give no vectors."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import fields

import numpy as np
import numpy.typing as npt

from embeval.core.ir import NOTHING, FloatRows, Run, TieRule, rank
from embeval.core.protocols import EncoderInfo, Ranker
from embeval.core.specs import Dtype, ModelSpec, RuntimeOptions
from embeval.encoders.locate import Located
from embeval.errors import ConfigError

IDENTITY = ("name", "backend", "revision", "args")
"""Fields of a spec that say which system it is. All others say what a model is to do with texts or vectors."""

Hits = tuple[npt.NDArray[np.int64], FloatRows]
"""Places of documents, int64 [n], and their scores, float32 [n]; in any order."""


class RankingBackend(ABC):
    """A backend of ``Ranker``s. It takes whatever device is asked for: it runs no model, and says so in its info."""

    summary: str
    options: tuple[str, ...]
    dtypes: tuple[Dtype, ...] = ("float32",)

    @abstractmethod
    def resolve(self, spec: ModelSpec, *, verify: bool) -> Located:
        """The system with its revision."""

    @abstractmethod
    def load(self, located: Located, runtime: RuntimeOptions) -> Ranker:
        """The system, ready to rank. Raises ``ModelError``."""


def refuse_settings(spec: ModelSpec) -> None:
    """Raises ``ConfigError`` for settings that could not act, since there is no model and there are no vectors."""
    for name, default in settings_of_vectors(ModelSpec(name=spec.name)).items():
        if getattr(spec, name) != default:
            raise ConfigError(
                f"Backend {spec.backend!r} ranks documents without a model, so {name} can't act. Leave it out."
            )


def settings_of_vectors(spec: ModelSpec) -> dict[str, object]:
    """The fields of a spec that only mean something to a model that gives vectors."""
    return {each.name: getattr(spec, each.name) for each in fields(ModelSpec) if each.name not in IDENTITY}


def info(extra: Mapping[str, str], remarks: Sequence[str] = ()) -> EncoderInfo:
    """Of a system that runs on the CPU and has no vectors."""
    return EncoderInfo(
        dim=0,
        max_seq_length=None,
        similarity="dot",
        prompts={},
        pooling=None,
        n_parameters=0,
        device="cpu",
        num_threads=1,
        batch_tokens=1,
        extra=extra,
        remarks=tuple(remarks),
    )


def best(hits: Hits, keys: npt.NDArray[np.int64], depth: int) -> Hits:
    """The ``depth`` best of them, best first; ``keys`` int64 [N] decides ties, across the last place too."""
    docs, scores = hits
    if len(docs) > depth:
        last = np.partition(scores, len(scores) - depth)[len(scores) - depth]
        docs, scores = docs[scores >= last], scores[scores >= last]
    order = rank(scores[None, :], keys[docs][None, :])[0, :depth]
    return docs[order], scores[order]


def assembled(query_ids: Sequence[str], doc_ids: Sequence[str], hits: Sequence[Hits], ties: TieRule) -> Run:
    """A run from the hits of each query."""
    width = max((len(docs) for docs, _ in hits), default=0)
    all_docs = np.full((len(hits), width), NOTHING, dtype=np.int32)
    all_scores = np.full((len(hits), width), -np.inf, dtype=np.float32)
    for row, (docs, scores) in enumerate(hits):
        all_docs[row, : len(docs)], all_scores[row, : len(docs)] = docs, scores
    return Run.ranked(query_ids=query_ids, doc_ids=doc_ids, docs=all_docs, scores=all_scores, ties=ties)
