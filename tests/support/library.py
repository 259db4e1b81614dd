"""mteb itself, with its own wrapper around sentence-transformers: what our numbers are measured against."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from embeval.mteb_bridge import door

BATCH = 32


def library_model(folder: Path) -> Any:
    """The model as sentence-transformers loads it: float32, on the CPU."""
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(str(folder), device="cpu", local_files_only=True)


def library_task(name: str, folder: Path, *, split: str = "test", subsets: Sequence[str] | None = None) -> Any:
    """A task object of mteb as ``mteb run`` makes it, but for the place of its data: mteb loads it from ``folder``."""
    library = door.library()
    with door.quiet():
        task = library.get_task(name, eval_splits=[split], hf_subsets=None if subsets is None else list(subsets))
    dataset = {**task.metadata.dataset, "path": str(folder), "revision": "local"}
    task.metadata = task.metadata.model_copy(update={"dataset": dataset})
    return task


def library_scores(model: Any, task: Any, split: str = "test") -> dict[str, float]:
    """Sub-set -> main score that ``mteb.evaluate`` gives on a task object, its data loaded or not."""
    library = door.library()
    with door.quiet():
        task.filter_eval_splits([split])
        found = library.evaluate(
            model, task, cache=None, co2_tracker=False, show_progress_bar=False, encode_kwargs={"batch_size": BATCH}
        )
    return {scores["hf_subset"]: scores["main_score"] for scores in found.task_results[0].scores[split]}
