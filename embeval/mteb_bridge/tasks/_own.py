"""From rows of one's own to a task object of mteb, so that they are scored as mteb scores public data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any

from embeval.core import strict_json
from embeval.mteb_bridge import categories, door
from embeval.mteb_bridge.categories import ONE_SUBSET, Setting
from embeval.mteb_bridge.loading import LOCAL, Loaded

LANGUAGE = "eng-Latn"
"""mteb demands a language; no number hangs on it."""


def loaded(
    name: str,
    *,
    task_class: str,
    type_name: Any,
    main_score: str,
    dataset: Any,
    split: str,
    attributes: Mapping[str, Any] | None = None,
    ids: Sequence[str] | None = None,
    slices: Mapping[str, Sequence[str]] | None = None,
) -> Loaded:
    """A task of the abstract class ``mteb.abstasks.<task_class>`` with ``dataset`` in memory.

    ``dataset`` is what that class holds: ``{split: Dataset}`` for most, ``{"default": {split: {"corpus": …}}}`` for
    retrieval. ``type_name`` is mteb's type ("Classification"), by which prompts can be declared; ``attributes`` are
    attributes of the class, such as ``samples_per_label``.
    """
    door.library()
    with door.quiet():
        from mteb import abstasks
        from mteb.abstasks.task_metadata import TaskMetadata

        metadata = TaskMetadata(
            name=name,
            description=name,
            type=type_name,
            category="t2t",
            modalities=["text"],
            eval_splits=[split],
            eval_langs=[LANGUAGE],
            main_score=main_score,
            dataset={"path": name, "revision": LOCAL},
            reference=None,
            date=None,
            domains=None,
            task_subtypes=None,
            license=None,
            annotations_creators=None,
            dialect=None,
            sample_creation=None,
            bibtex_citation=None,
        )
        parent = getattr(abstasks, task_class)
        task = type("Own", (parent,), {"metadata": metadata, **(attributes or {})})()
    task.dataset, task.data_loaded = dataset, True
    setting = Setting(
        task=task,
        split=split,
        subsets=(ONE_SUBSET,),
        ids={} if ids is None else {ONE_SUBSET: tuple(ids)},
        slices={slice_name: {ONE_SUBSET: tuple(labels)} for slice_name, labels in (slices or {}).items()},
    )
    return Loaded(setting, categories.of(task))


def rows_hash(setting: Setting) -> str:
    """sha256 of the ids and labels of one's own rows: records of other ones are no records of these rows."""
    slices = {name: list(labels[ONE_SUBSET]) for name, labels in sorted(setting.slices.items())}
    return sha256(strict_json.canonical({"ids": list(setting.ids[ONE_SUBSET]), "slices": slices}).encode()).hexdigest()
