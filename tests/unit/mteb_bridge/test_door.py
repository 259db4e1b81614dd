"""mteb behind its door: it leaves no traces in global state."""

from __future__ import annotations

import random

import numpy as np
import torch

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
