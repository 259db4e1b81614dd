"""Which of a classifier's outputs is the score of a pair."""

from __future__ import annotations

from collections.abc import Mapping

from embeval.core.specs import RerankerSpec
from embeval.errors import ConfigError


def choose(spec: RerankerSpec, names: Mapping[int, str], n_labels: int) -> int:
    """The number of the output that ``args.label`` names, or that is the only one.

    ``names`` are those of the model's configuration. Raises ``ConfigError`` where nobody says which, or there is none.
    """
    wanted = spec.args.get("label")
    listed = ", ".join(f"{number} ({names.get(number, 'no name')})" for number in range(n_labels))
    if wanted is None:
        if n_labels == 1:
            return 0
        raise ConfigError(
            f"Reranker {spec.name!r} gives {n_labels} scores per pair: {listed}.\n"
            "Say which one tells that a document answers a query: args {label: NUMBER or NAME}."
        )
    by_name = [number for number, name in names.items() if name.casefold() == str(wanted).casefold()]
    is_number = isinstance(wanted, int) and not isinstance(wanted, bool)
    found = wanted if is_number else by_name[0] if len(by_name) == 1 else None
    if not isinstance(found, int) or not 0 <= found < n_labels:
        raise ConfigError(f"Reranker {spec.name!r} has no label {wanted!r}; it has {listed}.")
    return found
