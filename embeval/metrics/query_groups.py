"""What instructions and wordings do to a ranking: one value per group of queries, which stands at one query of it.

- ``p-MRR``: how far documents that a changed instruction makes irrelevant move down, in [-1, 1].
  Source: Weller et al., FollowIR, 2024 (arXiv 2403.15246), section 4.3.
- ``paired_accuracy``: whether both queries of a pair find their document first. Source: Weller et al., NevIR, 2023.
- ``robustness_at_10``: the least ``ndcg_at_10`` under any instruction. Source: Oh et al., INSTRUCTIR, 2024.
- ``max_over_subqueries_<ranking metric>``: of one ranking in which a document has its best score for any of several
  queries that stand for one user. Source: mteb 2.26 ``max_over_subqueries``, for MIND.
"""

from __future__ import annotations

from embeval.metrics import ranking
from embeval.metrics._family import MeanOf

VERSION = 1
P_MRR, PAIRED_ACCURACY, ROBUSTNESS = "p-MRR", "paired_accuracy", "robustness_at_10"
MAX_OVER = "max_over_subqueries_"


class _Family:
    def names(self) -> tuple[str, ...]:
        return (P_MRR, PAIRED_ACCURACY, ROBUSTNESS, f"{MAX_OVER}map_at_1000")

    def make(self, name: str) -> MeanOf | None:
        merged = name.startswith(MAX_OVER) and ranking.FAMILY.make(name.removeprefix(MAX_OVER)) is not None
        if not merged and name not in (P_MRR, PAIRED_ACCURACY, ROBUSTNESS):
            return None
        return MeanOf(name, version=VERSION, of_some_items=True)


FAMILY = _Family()
