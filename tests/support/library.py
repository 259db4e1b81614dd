"""mteb itself, with its own wrapper around sentence-transformers: what our numbers are measured against."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from embeval.mteb_bridge import door

BATCH = 32


def library_model(folder: Path) -> Any:
    """The model as sentence-transformers loads it: float32, on the CPU."""
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(str(folder), device="cpu", local_files_only=True)


def library_scores(model: Any, task: Any, split: str = "test") -> dict[str, float]:
    """Sub-set -> main score that ``mteb.evaluate`` gives on a task object whose data is loaded."""
    library = door.library()
    with door.quiet():
        task.filter_eval_splits([split])
        found = library.evaluate(
            model, task, cache=None, co2_tracker=False, show_progress_bar=False, encode_kwargs={"batch_size": BATCH}
        )
    return {scores["hf_subset"]: scores["main_score"] for scores in found.task_results[0].scores[split]}
