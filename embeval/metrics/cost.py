"""What a search costs: ``index_mib``, ``peak_rss_mib`` and ``usd_per_million_queries``; less is better.

Each is measured once per run and not once per query: ``once`` makes a column of it.
"""

from __future__ import annotations

import numpy as np

from embeval.core.protocols import EncoderInfo
from embeval.core.records import Column
from embeval.metrics._family import MeanOf

NAMES = ("index_mib", "peak_rss_mib", "usd_per_million_queries")
PRICE = "price_per_million_tokens"
"""Where ``EncoderInfo.extra`` of an endpoint holds what a million tokens cost."""


def once(value: float | None, n: int) -> Column:
    """float64 [n]: the value in the first row and NaN below, all NaN for None.

    One measurement tells nothing of its own spread, and a mean over one item gets no interval.
    """
    column = np.full(n, np.nan)
    column[:1] = np.nan if value is None else value
    return column


def usd_per_million_queries(info: EncoderInfo, tokens_per_query: float | None) -> float | None:
    """US dollars for the embeddings of a million queries, prompts included in ``tokens_per_query``.

    None where the price or the tokens are not known: a model that runs here has no price, and an endpoint has the
    one that ``EMBEVAL_API_PRICE_PER_MILLION_TOKENS`` names, in US dollars.
    """
    price = info.extra.get(PRICE)
    if price is None or tokens_per_query is None:
        return None
    return float(price) * tokens_per_query


class _Family:
    def names(self) -> tuple[str, ...]:
        return NAMES

    def make(self, name: str) -> MeanOf | None:
        return MeanOf(name, higher_is_better=False, of_some_items=True) if name in NAMES else None


FAMILY = _Family()
