"""Agreement of clusters with labels: means of what each clustering scores.

``v_measure``, with its two sides ``homogeneity`` (clusters hold one label) and ``completeness`` (a label lies in one
cluster); ``ami`` and ``ari``, which are 0 for clusters made by chance; ``cluster_accuracy``, the share of texts that
are right under the best assignment of clusters to labels. Normalised mutual information (arithmetic) is the V-measure.

Source: Rosenberg & Hirschberg, 2007 (V-measure); Vinh, Epps & Bailey, 2010 (AMI); Hubert & Arabie, 1985 (ARI).
"""

from __future__ import annotations

from embeval.metrics._family import MeanOf

VERSION = 1
NAMES = ("v_measure", "ami", "ari", "homogeneity", "completeness", "cluster_accuracy")


class _Family:
    def names(self) -> tuple[str, ...]:
        return NAMES

    def make(self, name: str) -> MeanOf | None:
        return MeanOf(name, version=VERSION) if name in NAMES else None


FAMILY = _Family()
