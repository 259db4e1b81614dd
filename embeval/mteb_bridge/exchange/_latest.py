"""Which of several results of the same thing is told to others: what was measured last."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import TypeVar

from embeval.core import strict_json
from embeval.core.result import Result

Key = TypeVar("Key", bound=Hashable)


def latest(results: Iterable[Result], key: Callable[[Result], Key]) -> dict[Key, list[Result]]:
    """Key -> the results under it of the protocol that was measured last: sub-sets together with their means."""
    groups: dict[Key, dict[str, list[Result]]] = {}
    for result in results:
        protocol = strict_json.digest({**result.signature.protocol, "subset": None})
        groups.setdefault(key(result), {}).setdefault(protocol, []).append(result)
    return {
        name: max(found.values(), key=lambda group: max(result.started_at for result in group))
        for name, found in groups.items()
    }
