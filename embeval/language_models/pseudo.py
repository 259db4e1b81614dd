"""Variants of a text whose scores add up to its pseudo-log-likelihood.

``original`` masks one token at a time. ``within_word_l2r`` also masks the later tokens of the same word, so that a rare
word of several pieces isn't predicted from its own other pieces; for words of one token, and for the last token of
every word, the two are the same variant, which runs once.

Source: Salazar et al., ACL 2020 (original); Kauf & Ivanova, ACL 2023 (within-word left to right).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from embeval.core.protocols import PllMode
from embeval.language_models import windows
from embeval.language_models.tokenization import Frame, Text
from embeval.language_models.variants import packed

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Spans:
    """What a model sees of a text when tokens of it are scored; places are those of the text."""

    places: Numbers
    """int64 [m]: the tokens that are scored."""
    begins: Numbers
    """int64 [m]: the first token of the window of each."""
    ends: Numbers
    """int64 [m]: behind its last one."""
    word_ends: Numbers
    """int64 [m]: behind the last token of the same word in that window: what ``within_word_l2r`` masks up to."""

    @property
    def shared(self) -> npt.NDArray[np.bool_]:
        """bool [m]: whether both modes have the same variant."""
        return np.asarray(self.word_ends == self.places + 1)

    def of(self, rows: slice | list[int]) -> Spans:
        """Those of some of the tokens."""
        return Spans(self.places[rows], self.begins[rows], self.ends[rows], self.word_ends[rows])

    def n_variants(self, modes: Sequence[PllMode]) -> int:
        """Distinct variants that modes have together."""
        return len(self.places) if len(modes) == 1 else 2 * len(self.places) - int(self.shared.sum())

    def n_tokens(self, modes: Sequence[PllMode]) -> int:
        """Tokens in these, what stands around a text not counted."""
        lengths = self.ends - self.begins
        twice = 0 if len(modes) == 1 else int(lengths[~self.shared].sum())
        return int(lengths.sum()) + twice


def spans(text: Text, places: Sequence[int] | Numbers, *, room: int | None, stride: int) -> Spans:
    """Those of the tokens at ``places``."""
    at = np.asarray(places, dtype=np.int64)
    begins = windows.starts_of(at, len(text), room=room, stride=stride)
    ends = np.minimum(begins + (len(text) if room is None else room), len(text))
    word_ends = np.searchsorted(text.words, text.words[at], side="right")
    return Spans(at, begins, ends, np.minimum(word_ends, ends))


def variants(
    text: Text, frame: Frame, mode: PllMode, places: Sequence[int] | Numbers, *, room: int | None, stride: int
) -> Iterator[str]:
    """The variant that scores the token at each of ``places``, in their order."""
    found = spans(text, places, room=room, stride=stride)
    return (packed_at(text, frame, mode, found, row) for row in range(len(found.places)))


def distinct(
    text: Text, frame: Frame, modes: Sequence[PllMode], found: Spans
) -> tuple[list[str], dict[PllMode, Numbers]]:
    """(the distinct variants of some places in all modes, for each mode the number of the variant of each place)."""
    rows = range(len(found.places))
    made = [packed_at(text, frame, modes[0], found, row) for row in rows]
    number = {modes[0]: np.arange(len(made), dtype=np.int64)}
    for mode in modes[1:]:
        own = np.flatnonzero(~found.shared)
        number[mode] = number[modes[0]].copy()
        number[mode][own] = len(made) + np.arange(len(own))
        made += [packed_at(text, frame, mode, found, row) for row in own.tolist()]
    return made, number


def packed_at(text: Text, frame: Frame, mode: PllMode, found: Spans, row: int) -> str:
    """One variant: that of the token in a row of ``found``."""
    assert frame.mask_id is not None
    place, begin, end = int(found.places[row]), int(found.begins[row]), int(found.ends[row])
    ids = text.ids[begin:end].copy()
    ids[place - begin : (int(found.word_ends[row]) if mode == "within_word_l2r" else place + 1) - begin] = frame.mask_id
    return packed(frame.around(ids), [len(frame.before) + place - begin], [int(text.ids[place])])


def scored_places(text: Text) -> Numbers:
    """int64 [m]: places of the tokens that count: all but special tokens written in the text."""
    return np.flatnonzero(text.scored).astype(np.int64)
