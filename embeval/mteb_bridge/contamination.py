"""Whether a model was trained on the data of a task, by what its makers declare in mteb's list of models."""

from __future__ import annotations

from typing import Any

from embeval.core.result import TrainedOn
from embeval.core.specs import ModelSpec
from embeval.encoders.locate import DEMO_LABEL
from embeval.mteb_bridge import door

DEMO_ORIGIN = "sentence-transformers/all-MiniLM-L6-v2"
"""The model that ``demo`` is a copy of; its weights are held against a known hash whenever it is located."""
WITHOUT_TRAINING = "builtin:"
"""Begins the revision of a baseline that learnt from no data."""


def of(model: ModelSpec, task_name: str) -> TrainedOn:
    """``declared``, ``not_declared`` or ``unknown``, for a resolved model and mteb's name of a task.

    A translation or a selection of a training set counts as that set, and what a model was adapted from as itself. A
    folder of this machine is ``unknown`` whatever it is called. Source: ``mteb.ModelMeta.training_datasets``.
    """
    if (model.revision or "").startswith(WITHOUT_TRAINING):
        return "not_declared"
    meta = declared(model)
    if meta is None or meta.training_datasets is None:
        return "unknown"
    with door.quiet():
        if task_name in meta.get_training_datasets():
            return "declared"
    return "not_declared" if _all_known(meta) else "unknown"


def declared(model: ModelSpec) -> Any | None:
    """mteb's ``ModelMeta`` of a resolved model; None where mteb doesn't list it, or it is only a folder."""
    name = model.name
    if (model.revision or "").startswith("sha256:"):
        if name != DEMO_LABEL:
            return None
        name = DEMO_ORIGIN
    return _listed(name)


def _listed(name: str) -> Any | None:
    library = door.library()
    with door.quiet():
        try:
            return library.get_model_meta(name, fetch_from_hf=False)
        except KeyError:
            return None


def _all_known(meta: Any) -> bool:
    """Whether a model's ancestors tell their training sets too; a base that mteb doesn't list is a language model."""
    seen = set()
    while meta.adapted_from is not None and meta.adapted_from not in seen:
        seen.add(meta.adapted_from)
        meta = _listed(meta.adapted_from)
        if meta is None:
            return True
        if meta.training_datasets is None:
            return False
    return True
