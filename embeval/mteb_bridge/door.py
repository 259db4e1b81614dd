"""mteb, imported once, and kept quiet: its progress bars and log lines are not ours."""

from __future__ import annotations

import contextlib
import gc
import logging
import random
import sys
import warnings
from collections.abc import Iterator
from functools import cache
from importlib.metadata import version
from typing import Any

import numpy as np

from embeval.core import packages

NOISY = ("mteb", "datasets", "huggingface_hub", "fsspec", "sentence_transformers", "urllib3", "httpx")
"""Loggers of which only errors are let through."""
TWICE = ("datasets",)
"""Those of them that log what they raise as well, so that it would be told twice."""


@cache
def library() -> Any:
    """The package mteb. Raises ``MissingPackageError`` where it is not installed."""
    with quiet(), _uncollected():
        return packages.require("mteb", extra="", purpose="A task of mteb")


@cache
def installed_version() -> str:
    """The version of mteb."""
    return version("mteb")


def task_metadata(name: str) -> Any | None:
    """mteb's ``TaskMetadata`` of a task; None for one that mteb doesn't have, or no longer."""
    mteb = library()
    with quiet():
        try:
            return mteb.get_task(name).metadata
        except KeyError:
            return None


def nameless_model() -> Any:
    """mteb's ``ModelMeta`` of a model that it need not know: what its task classes ask of every model."""
    library()
    from mteb.models.model_meta import ModelMeta

    return ModelMeta.create_empty()


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Inside, mteb and what it builds on log errors only and draw no bars; global random states are left as they were.

    mteb seeds ``random``, ``numpy.random`` and torch whenever a task is made, and it makes thousands to list them.
    Torch without a GPU keeps each seed for the GPU, with a whole traceback: 10 ms a task.
    """
    states = random.getstate(), np.random.get_state()  # noqa: NPY002 - the global state is what has to be put back
    levels = {name: logging.getLogger(name).level for name in NOISY}
    for name in NOISY:
        logging.getLogger(name).setLevel(logging.CRITICAL if name in TWICE else logging.ERROR)
    try:
        with warnings.catch_warnings(), _without_bars():
            warnings.simplefilter("ignore")
            with _torch_unseeded():
                yield
    finally:
        for name, level in levels.items():
            logging.getLogger(name).setLevel(level)
        random.setstate(states[0])
        np.random.set_state(states[1])  # noqa: NPY002


@contextlib.contextmanager
def _uncollected() -> Iterator[None]:
    """Inside, nothing is looked through for garbage: of two thousand classes none is, and it takes a fifth longer."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


@contextlib.contextmanager
def _torch_unseeded() -> Iterator[None]:
    torch: Any = sys.modules.get("torch")
    if torch is None:
        yield
        return
    before = torch.manual_seed, torch.cuda.manual_seed_all
    torch.manual_seed = torch.cuda.manual_seed_all = lambda _: None
    try:
        yield
    finally:
        torch.manual_seed, torch.cuda.manual_seed_all = before


@contextlib.contextmanager
def _without_bars() -> Iterator[None]:
    import tqdm

    original = tqdm.tqdm.__init__

    def disabled(self: Any, *args: Any, **keys: Any) -> None:
        original(self, *args, **{**keys, "disable": True})

    tqdm.tqdm.__init__ = disabled
    try:
        yield
    finally:
        tqdm.tqdm.__init__ = original
