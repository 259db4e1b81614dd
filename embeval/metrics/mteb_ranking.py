"""Ranking metrics under mteb's names, and as mteb averages them.

``hit_rate_at_k`` is ``success_at_k``. ``mteb_ndcg_at_10`` leaves out the queries that a system hands over no entry for,
so one that returns nothing for hard queries looks better; ours counts them 0. Source: mteb 2.26,
``calculate_retrieval_scores``, which averages over what pytrec_eval returns.
"""

from __future__ import annotations

from embeval.core.protocols import PARITY_PREFIX
from embeval.metrics import ranking
from embeval.metrics._family import MeanOf

VERSION = 1
HIT_RATE, SUCCESS = "hit_rate_at_", "success_at_"


def known_as(name: str) -> str | None:
    """Our name of a ranking metric of mteb, ``success_at_5`` for ``hit_rate_at_5``; None for one of another kind."""
    own = SUCCESS + name.removeprefix(HIT_RATE) if name.startswith(HIT_RATE) else name
    return own if ranking.FAMILY.make(own) is not None else None


class _Family:
    def names(self) -> tuple[str, ...]:
        return (f"{HIT_RATE}10", *(PARITY_PREFIX + name for name in ranking.names([10])))

    def make(self, name: str) -> MeanOf | None:
        own = name.removeprefix(PARITY_PREFIX)
        if known_as(own) is None or (own == name and not own.startswith(HIT_RATE)):
            return None
        return MeanOf(name, version=VERSION, of_some_items=own != name)


FAMILY = _Family()
