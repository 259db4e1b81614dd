"""Variants of a text whose scores add up to its pseudo-log-likelihood.

``original`` masks one token at a time. ``within_word_l2r`` also masks the later tokens of the same word, so that a rare
word of several pieces isn't predicted from its own other pieces; for words of one token, and for the last token of
every word, the two are the same variant, which runs once.

Source: Salazar et al., ACL 2020 (original); Kauf & Ivanova, ACL 2023 (within-word left to right).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

import numpy as np

from embeval.language_models.tokenization import Frame, Text
from embeval.language_models.variants import packed
from embeval.language_models.windows import window_of

Mode = Literal["within_word_l2r", "original"]
MODES: tuple[Mode, ...] = ("within_word_l2r", "original")


def variants(
    text: Text, frame: Frame, mode: Mode, places: Sequence[int], *, room: int | None, stride: int
) -> Iterator[str]:
    """The variant that scores the token at each of ``places``, in their order."""
    assert frame.mask_id is not None
    before = len(frame.before)
    for place in places:
        start, stop = window_of(place, len(text), room=room, stride=stride)
        ids = text.ids[start:stop].copy()
        at = place - start
        if mode == "within_word_l2r":
            same = text.words[start:stop] == text.words[place]
            ids[at:][same[at:]] = frame.mask_id
        ids[at] = frame.mask_id
        yield packed(frame.around(ids), [before + at], [int(text.ids[place])])


def scored_places(text: Text) -> list[int]:
    """Places of the tokens that count: all but special tokens written in the text."""
    return [int(each) for each in np.flatnonzero(text.scored)]
