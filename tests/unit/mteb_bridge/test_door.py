"""mteb behind its door: it leaves no traces in global state."""

from __future__ import annotations

import gc
import random

import numpy as np
import pytest
import torch

from embeval.core import packages
from embeval.mteb_bridge import door


def test_making_tasks_leaves_all_random_states_as_they_were() -> None:
    """mteb 2.26 seeds random, numpy.random and torch with 42 whenever a task is made."""
    library = door.library()
    random.seed(7)
    np.random.seed(7)  # noqa: NPY002
    torch.manual_seed(7)
    expected = random.getrandbits(32), np.random.random(), torch.rand(1).item()  # noqa: NPY002
    random.seed(7)
    np.random.seed(7)  # noqa: NPY002
    torch.manual_seed(7)
    with door.quiet():
        library.get_task("STS12")
    assert (random.getrandbits(32), np.random.random(), torch.rand(1).item()) == expected  # noqa: NPY002


def test_garbage_is_collected_again_after_the_import(monkeypatch: pytest.MonkeyPatch) -> None:
    """The import itself, a fifth of whose time would go by with it, does without."""
    seen = []
    monkeypatch.setattr(packages, "require", lambda *_, **__: seen.append(gc.isenabled()))
    door.library.__wrapped__()
    assert seen == [False]
    assert gc.isenabled()
