"""Classification: ``accuracy``, the mean share of classifiers that are right about a text."""

from __future__ import annotations

from embeval.metrics._family import MeanOf

VERSION = 1


class _Family:
    def names(self) -> tuple[str, ...]:
        return ("accuracy",)

    def make(self, name: str) -> MeanOf | None:
        return MeanOf(name, version=VERSION) if name in self.names() else None


FAMILY = _Family()
