"""``mteb_cosine_spearman`` and ``mteb_cosine_pearson``: correlations of the cosine that mteb 2.26 takes.

Its cosine is 0.5 where a vector is zero, with whatever the other one is, as scikit-learn's paired cosine distance has
it. Reads the columns ``gold`` and ``mteb_cosine``.
"""

from __future__ import annotations

from embeval.metrics.correlation import Correlation, Kind

KINDS: dict[str, Kind] = {"mteb_cosine_spearman": "spearman", "mteb_cosine_pearson": "pearson"}


class _Family:
    def names(self) -> tuple[str, ...]:
        return tuple(KINDS)

    def make(self, name: str) -> Correlation | None:
        return Correlation(kind=KINDS[name], x="gold", y="mteb_cosine", name=name) if name in KINDS else None


FAMILY = _Family()
