"""Variants: texts as token ids, some of them masked, with the places whose tokens are to be scored.

A variant is packed into a string, so that it is a text to ``encoders.encoder``: equal variants run once, meet in
batches by their length, and are found in the cache again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from embeval.encoders.batching import Lengths, Rows

Ids = npt.NDArray[np.int32]
Places = npt.NDArray[np.intp]


def packed(ids: Ids, places: Sequence[int] | Places, targets: Sequence[int] | Ids) -> str:
    """A variant as a string: token ids [T] as the model sees them, and the tokens wanted at some places [m] of it."""
    head = np.array([len(places), *places, *targets], dtype=np.int32)
    return (head.tobytes() + np.ascontiguousarray(ids, dtype=np.int32).tobytes()).decode("latin-1")


def size(variant: str) -> int:
    """Numbers in a packed variant: its tokens, and two more for each target."""
    return len(variant) // np.dtype(np.int32).itemsize


@dataclass(frozen=True)
class Variants:
    """Variants end to end; fits ``encoders.encoder.Prepared``."""

    texts: tuple[str, ...]
    ids: Ids
    start: Lengths
    lengths: Lengths
    n_targets: Lengths
    places: Places
    targets: Ids
    first_target: Lengths
    lost: Lengths | None = None
    unknown: Lengths | None = None

    @classmethod
    def of(cls, texts: Sequence[str]) -> Variants:
        """Packed variants, unpacked."""
        ids, places, targets = [], [], []
        for text in texts:
            numbers = np.frombuffer(text.encode("latin-1"), dtype=np.int32)
            m = int(numbers[0])
            places.append(numbers[1 : 1 + m])
            targets.append(numbers[1 + m : 1 + 2 * m])
            ids.append(numbers[1 + 2 * m :])
        lengths = np.array([len(each) for each in ids], dtype=np.int64)
        n_targets = np.array([len(each) for each in places], dtype=np.int64)
        nothing = np.zeros(0, dtype=np.int32)
        return cls(
            texts=tuple(texts),
            ids=np.concatenate([nothing, *ids]),
            start=np.cumsum(lengths) - lengths,
            lengths=lengths,
            n_targets=n_targets,
            places=np.concatenate([nothing, *places]).astype(np.intp),
            targets=np.concatenate([nothing, *targets]),
            first_target=np.cumsum(n_targets) - n_targets,
        )

    def key(self, row: int) -> bytes:
        """The variant itself."""
        return self.texts[row].encode("latin-1")

    def padded(self, rows: Rows, pad_id: int) -> dict[str, npt.NDArray[np.int64]]:
        """``input_ids`` and ``attention_mask``, int64 [rows, longest of them], padded on the right."""
        width = int(self.lengths[rows].max())
        ids = np.full((len(rows), width), pad_id, dtype=np.int64)
        mask = np.zeros((len(rows), width), dtype=np.int64)
        for place, row in enumerate(rows.tolist()):
            length, start = int(self.lengths[row]), int(self.start[row])
            ids[place, :length] = self.ids[start : start + length]
            mask[place, :length] = 1
        return {"input_ids": ids, "attention_mask": mask}

    def wanted(self, rows: Rows) -> tuple[Places, Places, npt.NDArray[np.int64]]:
        """(row of the batch, place in it, token wanted there), each [M], over all targets of those rows."""
        n = self.n_targets[rows]
        of_row = np.repeat(np.arange(len(rows), dtype=np.intp), n)
        within = np.arange(int(n.sum()), dtype=np.int64) - np.repeat(np.cumsum(n) - n, n)
        at = np.repeat(self.first_target[rows], n) + within
        return of_row, self.places[at], self.targets[at].astype(np.int64)
