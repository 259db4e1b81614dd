"""One file per family of metrics. Each holds ``FAMILY``, an object that fits ``_family.MetricFamily``.

Metrics read columns of item records and give one number; ``get`` finds one by name.
"""

from embeval.metrics._family import FAMILIES, MeanOf, MetricFamily, get, is_per_token
from embeval.metrics._ratio import RatioOf

__all__ = ["FAMILIES", "MeanOf", "MetricFamily", "RatioOf", "get", "is_per_token"]
