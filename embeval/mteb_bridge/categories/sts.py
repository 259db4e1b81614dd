"""STS: one item is a pair; correlations of each similarity with gold, as for the task type ``sts``.

mteb's cosine is 0.5 where a vector is zero, and ours 0. Its value is ``mteb_cosine_spearman``, in the result where that
changes a pair.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, get_args

import numpy as np

from embeval.core.records import ItemRecords
from embeval.core.similarity import SIMILARITIES
from embeval.core.specs import SimilarityName
from embeval.metrics.correlation import FAMILY
from embeval.metrics.mteb_correlation import FAMILY as OF_MTEB
from embeval.mteb_bridge.categories._category import PARITY_PREFIX, Gathered, Outcome, Setting, texts

ROUNDING = 1e-4
"""Cosines that differ by less are the same one: mteb takes them in float32."""


class _Sts:
    task_class = "AbsTaskSTS"
    one_thread = False
    together = False

    def content(self, setting: Setting, subset: str) -> Iterator[Sequence[str]]:
        rows = setting.rows(subset)
        left, right = setting.task.column_names
        yield from zip(texts(rows[left]), texts(rows[right]), texts(rows["score"]), strict=True)

    def metrics(self, setting: Setting) -> Sequence[str]:
        main = setting.task.metadata.main_score
        names = [main, *FAMILY.names()]
        if setting.parity == "mteb":
            own = PARITY_PREFIX + main
            names = [*([own] if own in OF_MTEB.names() else []), *names, *OF_MTEB.names()]
        return tuple(dict.fromkeys(names))

    def gather(self, setting: Setting, outcomes: Mapping[str, Outcome], model: Any) -> Gathered:
        gold, vectors, ids, of_mteb = [], [], [], []
        for subset in setting.subsets:
            rows = setting.rows(subset)
            gold.append(np.array(rows["score"], dtype=np.float64))
            vectors.append(model.vectors(subset))  # of both sides, in the order in which mteb asked for them
            of_mteb.append(np.array(outcomes[subset].predictions["cosine_scores"], dtype=np.float64))
            ids += [setting.name(subset, row) for row in range(len(rows))]
        columns = {"gold": np.concatenate(gold)}
        for name in get_args(SimilarityName):
            columns[name] = np.concatenate(
                [SIMILARITIES[name](left, right).astype(np.float64) for left, right in vectors]
            )
        columns["mteb_cosine"] = np.concatenate(of_mteb)
        n_other = int((np.abs(columns["mteb_cosine"] - columns["cosine"]) > ROUNDING).sum())
        if not n_other and setting.parity == "embeval":
            del columns["mteb_cosine"]
        sizes = {subset: len(each) for subset, each in zip(setting.subsets, gold, strict=True)}
        return Gathered(
            records=ItemRecords(unit="pair", ids=tuple(ids), columns=columns, slices=setting.labels(sizes)),
            counts={"pairs": len(ids)},
            also=OF_MTEB.names() if n_other else (),
        )


CATEGORY = _Sts()
