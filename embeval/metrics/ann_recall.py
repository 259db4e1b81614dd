"""``ann_recall_at_k``: share of the k exact nearest documents that an approximate index also gives among its k.

``retrieval.recall`` computes the value of each query; the metric is their mean. It speaks of the index alone, not of
the model: judgments take no part.
"""

from __future__ import annotations

import re

from embeval.metrics._family import MeanOf

CUTOFFS = (1, 10, 100)
"""Cut-offs for listings."""

_NAME = re.compile(r"ann_recall_at_[1-9][0-9]{0,5}")


class _Family:
    def names(self) -> tuple[str, ...]:
        return tuple(f"ann_recall_at_{k}" for k in CUTOFFS)

    def make(self, name: str) -> MeanOf | None:
        return MeanOf(name) if _NAME.fullmatch(name) else None


FAMILY = _Family()
