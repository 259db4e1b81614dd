"""Bitext mining: ``bitext_f1``, ``bitext_precision`` and ``bitext_recall``, means over sentences.

A sentence finds the most similar sentence of the other side. Each sentence of the other side is a class: what an item
counts is F1, precision or recall of the class of its own translation, so that one that many sentences take for theirs
counts less. Their mean is the weighted mean over classes that mteb reports, as ``f1``, ``precision`` and ``recall``.

Source: scikit-learn ``f1_score(average="weighted", zero_division=0)``, to which the mean is equal
(tests/unit/mteb_bridge). Resampled, an item keeps its value: what is found stays found, whatever else is drawn.
"""

from __future__ import annotations

from embeval.metrics._family import MeanOf

VERSION = 1


class _Family:
    def names(self) -> tuple[str, ...]:
        return ("bitext_f1", "bitext_precision", "bitext_recall")

    def make(self, name: str) -> MeanOf | None:
        return MeanOf(name, version=VERSION) if name in self.names() else None


FAMILY = _Family()
