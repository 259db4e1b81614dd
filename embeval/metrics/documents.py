"""Ranking metrics by whole document where passages are searched, such as ``document_ndcg_at_10``.

Each is the ranking metric of that name on a ranking of documents, which ``retrieval.passages`` makes from one of
passages; k counts documents.
"""

from __future__ import annotations

from collections.abc import Iterable

from embeval.core.ir import JudgedRuns
from embeval.core.records import Column
from embeval.metrics import ranking
from embeval.metrics._family import MeanOf
from embeval.metrics.ranking import Options

PREFIX = "document_"
DEFAULTS = Options()


def measure(judged: JudgedRuns, names: Iterable[str], options: Options = DEFAULTS) -> dict[str, Column]:
    """float64 [Q] per metric name for a judged ranking of documents. Raises ``KeyError`` for another family's name."""
    wanted = list(names)
    if strangers := [name for name in wanted if not name.startswith(PREFIX)]:
        raise KeyError(strangers[0])
    values = ranking.measure(judged, [name.removeprefix(PREFIX) for name in wanted], options)
    return {PREFIX + name: column for name, column in values.items()}


class _Family:
    def names(self) -> tuple[str, ...]:
        return tuple(PREFIX + name for name in ranking.names())

    def make(self, name: str) -> MeanOf | None:
        if not name.startswith(PREFIX) or ranking.FAMILY.make(name.removeprefix(PREFIX)) is None:
            return None
        return MeanOf(name, version=ranking.VERSION)


FAMILY = _Family()
