"""How many rows a task of mteb has, beside the numbers that mteb publishes of it."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from embeval.mteb_bridge import categories

PARTS = {"num_samples": "rows", "num_documents": "documents", "num_queries": "queries"}
"""What is counted, by mteb's name and in words."""
OF_SUBSETS = "hf_subset_descriptive_stats"


def differences(task: Any, splits: Collection[str] | None = None) -> list[str]:
    """Where a loaded task has another number of rows than mteb says, each in words; empty where they agree.

    Only ``splits`` (None: all) and sub-sets that are loaded are looked at, and none where mteb says nothing.
    """
    found = []
    for split, whole in (task.metadata.descriptive_stats or {}).items():
        if splits is not None and split not in splits:
            continue
        for subset in task.hf_subsets:
            said = whole.get(OF_SUBSETS, {}).get(subset) or (whole if OF_SUBSETS not in whole else {})
            there = counted(task, subset, split)
            place = split if len(task.metadata.hf_subsets) == 1 else f"{subset}/{split}"
            found += [
                f"{place} has {there[name]:,} {word}, and {said[name]:,} in mteb's statistics"
                for name, word in PARTS.items()
                if name in there and said.get(name) not in (None, there[name])
            ]
    return found


def counted(task: Any, subset: str, split: str) -> dict[str, int]:
    """Rows of a split of a loaded task, by mteb's names; empty where it isn't loaded."""
    there = categories.splits_of(task, subset)
    if split not in there:
        return {}
    rows = there[split]
    if not isinstance(rows, dict):
        return {"num_samples": len(rows)}
    return {"num_documents": len(rows["corpus"]), "num_queries": len(rows["queries"])}
