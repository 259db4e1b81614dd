"""Ranking metrics under mteb's names, and as mteb averages them.

- ``hit_rate_at_k`` is ``success_at_k``.
- ``R_cap_at_k`` is the share of the relevant documents that are among the first k, of as many as fit there; without
  a value where there are none.
- ``mteb_ndcg_at_10`` leaves out the queries that a system hands over no entry for, so one that returns nothing for
  hard queries looks better; ours counts them 0.

Source: mteb 2.26, ``calculate_retrieval_scores``, which averages over what pytrec_eval returns, and ``recall_cap``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import numpy as np

from embeval.core.ir import JudgedRuns
from embeval.core.protocols import PARITY_PREFIX
from embeval.core.records import Column
from embeval.metrics import ranking
from embeval.metrics._family import MeanOf

VERSION = 1
HIT_RATE, SUCCESS = "hit_rate_at_", "success_at_"
_CAPPED = re.compile(r"R_cap_at_([1-9][0-9]{0,5})")


def known_as(name: str) -> str | None:
    """Our name of a ranking metric of mteb, ``success_at_5`` for ``hit_rate_at_5``; None for one of another kind."""
    own = SUCCESS + name.removeprefix(HIT_RATE) if name.startswith(HIT_RATE) else name
    return own if ranking.FAMILY.make(own) is not None else None


def capped_names(cutoffs: Iterable[int]) -> tuple[str, ...]:
    """The capped recall at each cut-off."""
    return tuple(f"R_cap_at_{k}" for k in cutoffs)


def capped_recall(judged: JudgedRuns, cutoffs: Sequence[int]) -> dict[str, Column]:
    """float64 [Q] per metric name; NaN for queries without a relevant document."""
    found = ranking.measure(judged, [f"precision_at_{k}" for k in cutoffs])
    return {
        name: np.divide(
            found[f"precision_at_{k}"] * k,
            np.minimum(judged.n_relevant, k),
            out=np.full(len(judged.query_ids), np.nan),
            where=judged.n_relevant > 0,
        )
        for name, k in zip(capped_names(cutoffs), cutoffs, strict=True)
    }


class _Family:
    def names(self) -> tuple[str, ...]:
        return (f"{HIT_RATE}10", *capped_names([10]), *(PARITY_PREFIX + name for name in ranking.names([10])))

    def make(self, name: str) -> MeanOf | None:
        if _CAPPED.fullmatch(name):
            return MeanOf(name, version=VERSION, of_some_items=True)
        own = name.removeprefix(PARITY_PREFIX)
        if known_as(own) is None or (own == name and not own.startswith(HIT_RATE)):
            return None
        return MeanOf(name, version=VERSION, of_some_items=own != name)


FAMILY = _Family()
