"""``sts``: how well the similarity of two embeddings follows the gold similarity of two texts.

One item is a pair, with the columns ``gold``, ``cosine``, ``dot``, ``euclidean``, ``manhattan``; the metrics are
Spearman and Pearson of each with gold, ``cosine_spearman`` first. A file with sub-sets gives a result for each,
one for all pairs pooled (``all``, the one that stands for the task), and their ``mean`` and ``wmean``.

Source: SentEval (Conneau & Kiela, 2018) for "all", "mean" and "wmean"; mteb 2.26 for the metric names.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import get_args

import numpy as np

from embeval import metrics
from embeval.core import strict_json
from embeval.core.border import BORDER
from embeval.core.embeddings import Alike, Embeddings
from embeval.core.progress import Progress
from embeval.core.protocols import Collected, Encoder, Metric, System, TaskRef, require_encoder
from embeval.core.records import ItemRecords
from embeval.core.similarity import SIMILARITIES
from embeval.core.specs import Role, SimilarityName, TaskSpec
from embeval.data.pairs import PairColumns, Pairs, load_pairs
from embeval.metrics.correlation import FAMILY
from embeval.tasks import _counts, _options

VERSION = 1
"""Raised when the same pairs and vectors give another number."""


@dataclass(frozen=True, kw_only=True)
class StsOptions:
    """Options of an STS task."""

    __pydantic_config__ = BORDER

    columns: PairColumns = field(default_factory=PairColumns)
    """Names of the columns `sentence1`, `sentence2`, `score`, `id` and `subset`, where the file has others."""


@dataclass(frozen=True)
class StsTask:
    """STS on one file of pairs."""

    spec: TaskSpec
    path: Path
    options: StsOptions

    def load(self) -> Pairs:
        """The pairs."""
        return load_pairs(self.path, self.options.columns)

    def protocol(self, payload: Pairs) -> dict[str, strict_json.Json]:
        """Everything besides the model that can change a number."""
        return {
            "type": "sts",
            "type_version": VERSION,
            "task_version": self.spec.version,
            "data": payload.data_hash,
            "split": self.spec.dataset.split,
            "zero_vector": "cosine 0",
        }

    def metrics(self, payload: Pairs) -> tuple[Metric, ...]:
        """Spearman and Pearson of each similarity, the main one first."""
        main = self.spec.main_score or TASK.main_score
        return tuple(metrics.get(name) for name in dict.fromkeys([main, *FAMILY.names()]))

    def collect(self, payload: Pairs, system: System, progress: Progress) -> Collected:
        """One row per pair."""
        encoder = require_encoder(system, self.spec)
        started = time.perf_counter()
        reference = TaskRef(name=self.spec.name, type=self.spec.type)
        texts = [*payload.left, *payload.right]
        ids = [f"{pair} sentence 1" for pair in payload.ids] + [f"{pair} sentence 2" for pair in payload.ids]
        progress.start("sentences", len(texts), "texts")
        # Both sides in one call: a sentence that stands on both sides is encoded once, and to the same vector.
        embeddings = encoder.encode(texts, role=Role.TEXT, task=reference, ids=ids, progress=progress)
        progress.finish()
        encoded = time.perf_counter()
        n = len(payload)
        left, right = embeddings.vectors[:n], embeddings.vectors[n:]
        columns = {name: SIMILARITIES[name](left, right).astype(np.float64) for name in get_args(SimilarityName)}
        prompt = encoder.prompt(Role.TEXT, reference)
        return Collected(
            records=ItemRecords(
                unit="pair",
                ids=payload.ids,
                columns={"gold": payload.gold, **columns},
                slices={"subset": payload.subsets} if payload.subsets else {},
            ),
            counts={"pairs": n, **_counts.texts("texts", embeddings.counts), **_counts.sizes([encoder])},
            warnings=tuple(self._warnings(embeddings, encoder)),
            prompts={"text": prompt},
            phases={"encode": encoded - started},
            work=embeddings.work,
        )

    def _warnings(self, embeddings: Embeddings, encoder: Encoder) -> Sequence[str]:
        return _counts.warnings(
            [("texts", embeddings.counts, Alike.of(embeddings))],
            encoder=encoder,
            prompts_used=[encoder.prompt(Role.TEXT, TaskRef(name=self.spec.name, type=self.spec.type))],
        )


class _StsType:
    options = StsOptions
    summary = "similarity of sentence pairs against gold scores (Spearman, Pearson)"
    main_score = "cosine_spearman"
    needs_vectors = True

    def bind(self, spec: TaskSpec, *, root: Path) -> StsTask:
        _options.main_score(spec, FAMILY, self.main_score)
        _options.own_split(spec)
        return StsTask(spec, _options.data_path(spec, root), _options.read(StsOptions, spec))


TASK = _StsType()
