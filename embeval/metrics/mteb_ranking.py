"""Ranking metrics as mteb averages them: ``mteb_ndcg_at_10`` leaves out the queries that a system doesn't answer.

Each is the mean of a column that has no value for such queries, so a system that returns nothing for hard queries
looks better. Ours counts them 0. Source: mteb 2.26, ``calculate_retrieval_scores``, which averages over what
pytrec_eval returns.
"""

from __future__ import annotations

from embeval.core.protocols import PARITY_PREFIX
from embeval.metrics import ranking
from embeval.metrics._family import MeanOf

VERSION = 1


class _Family:
    def names(self) -> tuple[str, ...]:
        return tuple(PARITY_PREFIX + name for name in ranking.names([10]))

    def make(self, name: str) -> MeanOf | None:
        own = name.removeprefix(PARITY_PREFIX)
        if own == name or ranking.FAMILY.make(own) is None:
            return None
        return MeanOf(name, version=VERSION, of_some_items=True)


FAMILY = _Family()
