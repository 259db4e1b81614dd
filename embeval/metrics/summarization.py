"""Summarization: means over texts of how well the scores of a text's summaries follow people's.

``mean_<similarity>_spearman`` and ``mean_<similarity>_pearson``, mteb's ``cosine_spearman`` and the like, for cosine
and dot; ``mean_spearman`` and ``mean_pearson`` with the similarity of the model itself. One item is a text, and its
value the correlation over its summaries. A text whose summaries all have one score, or that people found all equally
good, has none: it is unscored, and counted as such.

``mteb_…`` is what mteb 2.26 makes of the same scores: it leaves a text out of all means where one of them has no value,
and in ``SummEvalSummarization`` and ``SummEvalFrSummarization`` it takes the mean of coefficients and p-values.
"""

from __future__ import annotations

from embeval.core.protocols import PARITY_PREFIX
from embeval.metrics._family import MeanOf

VERSION = 1
NAMES = (
    "mean_cosine_spearman",
    "mean_cosine_pearson",
    "mean_dot_spearman",
    "mean_dot_pearson",
    "mean_spearman",
    "mean_pearson",
)


class _Family:
    def names(self) -> tuple[str, ...]:
        return (*NAMES, *(PARITY_PREFIX + name for name in NAMES))

    def make(self, name: str) -> MeanOf | None:
        return MeanOf(name, version=VERSION) if name in self.names() else None


FAMILY = _Family()
