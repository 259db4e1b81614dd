"""P-values of "there is no difference" by paired randomisation: the two sides of items change places at random.

If two systems are alike, it is chance which of an item's two values belongs to which, so the observed difference is one
of the 2^n that swaps give. p is the share of them that are at least as far from zero. Where they are few all of them
are counted; else p = (c + 1) / (R + 1) for c of R random swaps, which is a valid p-value for every R.

Sources: Smucker, Allan & Carterette, CIKM 2007; Phipson & Smyth, Statistical Applications in Genetics and Molecular
Biology 2010 (the + 1). Equal to ``scipy.stats.permutation_test`` with the permutation type "samples" on the same
statistic.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from embeval.core.records import Column
from embeval.stats.rng import seed_sequence

BLOCK = 64
"""Swaps per block. Part of the definition of a seed's swaps: another value gives other ones."""
CELLS = 2**19
"""Signs in one matrix product, about: few large products take less time than many small ones, as long as they stay in
the cache."""
ROUNDING = 1e-9
"""Relative difference up to which two statistics are equal: sums of the same numbers in another order."""

Signs = npt.NDArray[np.float64]


def p_values(
    differences: Callable[[Signs], npt.NDArray[np.float64]],
    n_units: int,
    *,
    resamples: int,
    seed: int,
    purpose: Sequence[str] = (),
) -> Column:
    """float64 [M]: the two-sided p-value of each of M differences.

    ``differences`` gives them, float64 [M, R], for signs float64 [n_units, R]: -1 where the two sides of a unit (an
    item, or a cluster of items) change places, 1 where they stay. A swap for which there is none counts as far from
    zero. ``purpose`` names the random stream.
    """
    observed = np.abs(differences(np.ones((n_units, 1))))
    every = 2**n_units <= resamples if n_units < 64 else False
    blocks = _all(n_units) if every else _random(n_units, resamples, seed, purpose)
    far = np.zeros(len(observed), dtype=np.int64)
    for signs in blocks:
        far += (~(np.abs(differences(signs)) < observed * (1.0 - ROUNDING))).sum(axis=1)
    return np.asarray(far / 2**n_units if every else (far + 1) / (resamples + 1))


def _random(n_units: int, resamples: int, seed: int, purpose: Sequence[str]) -> Iterator[Signs]:
    streams = seed_sequence(seed, "randomization", *purpose).spawn(-(-resamples // BLOCK))
    at_a_time = max(1, CELLS // (n_units * BLOCK))
    for start in range(0, len(streams), at_a_time):
        bits = np.concatenate(
            [
                np.random.default_rng(stream).integers(0, 2, size=(n_units, BLOCK), dtype=np.int8)
                for stream in streams[start : start + at_a_time]
            ],
            axis=1,
        )
        yield _signs(bits[:, : resamples - start * BLOCK])


def _all(n_units: int) -> Iterator[Signs]:
    for start in range(0, 2**n_units, BLOCK):
        numbers = np.arange(start, min(start + BLOCK, 2**n_units), dtype=np.int64)
        yield _signs((numbers >> np.arange(n_units)[:, None] & 1).astype(np.int8))


def _signs(bits: npt.NDArray[np.int8]) -> Signs:
    return np.asarray(1.0 - 2.0 * bits)
