"""Masks for the loss of a masked language model: which tokens of a text are scored, and what stands in their place.

What is drawn hangs on the seed, the text and the number of the draw, and on nothing else: not on batches, order, other
texts or the device. The same text has the same masks wherever it stands.

Source: Devlin et al., NAACL 2019 (15 %, of which 80 % [MASK], 10 % another token, 10 % as they are); transformers 5.24
(``whole_word``).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from embeval.encoders import tokens
from embeval.language_models import segments
from embeval.language_models.tokenization import Frame, Text
from embeval.language_models.variants import Ids, Places, packed
from embeval.stats import rng

Masking = Literal["bert", "mask", "whole_word", "aligned"]
MASKED, REPLACED = 0.8, 0.1
"""Shares of chosen tokens that ``bert`` masks, and replaces by another token; the others stay."""


@dataclass(frozen=True)
class Units:
    """What is drawn of a text: single tokens, or words with all of their tokens."""

    of_token: Ids
    """int32 [n]: number of the unit that a token is of; -1 for a token that is never masked."""
    n: int
    """Units that are drawn. Of shared words some may have no token."""
    words: Ids
    """int32 [units]: shared words in each; 0 where units are none."""
    characters: Ids
    """int32 [units]: code points of these words."""
    n_left_out: int = 0
    """Shared words that no token lies over."""
    n_tied: int = 0
    """Shared words that a token ties to the word before."""


@dataclass(frozen=True)
class Masks:
    """One draw of masks for one text."""

    places: Places
    """intp [m]: tokens that are scored, in their order."""
    shown: Ids
    """int32 [n]: the tokens that the model sees."""
    n_words: int
    """Shared words masked."""
    n_characters: int
    """Code points of these words."""


@dataclass(frozen=True)
class Masker:
    """How masks are drawn."""

    masking: Masking
    probability: float
    at_least_one: bool
    seed: int
    frame: Frame

    def units(self, written: str, text: Text) -> Units:
        """What is drawn of a text, given as it is written and in tokens."""
        written = tokens.whole(written)
        if self.masking == "aligned":
            return _shared_words(written, text)
        of_token = np.full(len(text), -1, dtype=np.int32)
        if self.masking == "whole_word":
            of_token[text.scored] = np.cumsum(_begins_word(written, text)[text.scored]) - 1
        else:
            of_token[text.scored] = np.arange(text.scored.sum())
        n = int(of_token.max(initial=-1)) + 1
        no_words = np.zeros(n, dtype=np.int32)
        return Units(of_token, n, words=no_words, characters=no_words)

    def draw(self, written: str, text: Text, units: Units, number: int) -> Masks:
        """The masks of a text in a draw."""
        random = np.random.default_rng(rng.seed_sequence(self.seed, "masks", str(number), tokens.whole(written)))
        chosen = random.random(units.n) < self.probability
        spare = random.integers(max(units.n, 1))
        there = np.unique(units.of_token[units.of_token >= 0])
        if self.at_least_one and len(there) and not chosen[there].any():
            # The one drawn, or of shared words the last one before it that this model has.
            chosen[there[np.searchsorted(there, spare, side="right") - 1]] = True
        drawn = there[chosen[there]]
        places = np.flatnonzero(np.isin(units.of_token, drawn))
        shown = text.ids.copy()
        shown[places] = self._instead(shown[places], len(text), places, random)
        return Masks(places, shown, int(units.words[drawn].sum()), int(units.characters[drawn].sum()))

    def _instead(self, ids: Ids, n: int, places: Places, random: np.random.Generator) -> Ids:
        """int32 [m]: what stands at the places chosen of a text of n tokens, whose own are ``ids``."""
        mask_id = self.frame.mask_id
        assert mask_id is not None
        if self.masking != "bert":
            return np.full(len(ids), mask_id, dtype=np.int32)
        # Drawn for all tokens, so that what becomes of one doesn't hang on which others are chosen.
        fate = random.random(n)[places]
        others = self.frame.words[random.integers(len(self.frame.words), size=n)[places]]
        return np.where(fate < MASKED, mask_id, np.where(fate < MASKED + REPLACED, others, ids)).astype(np.int32)


def variants(masks: Masks, text: Text, frame: Frame, *, room: int | None) -> Iterator[str]:
    """The variants that score all masks of a draw: one per window of ``room`` tokens that has any, without overlap."""
    step = room or max(len(text), 1)
    for start in range(0, len(text), step):
        places = masks.places[(masks.places >= start) & (masks.places < start + step)]
        if len(places):
            at = places - start + len(frame.before)
            yield packed(frame.around(masks.shown[start : start + step]), at, text.ids[places])


def n_variants(masks: Masks, *, room: int | None) -> int:
    """How many these are."""
    return len(np.unique(masks.places // room)) if room else int(len(masks.places) > 0)


def _shared_words(written: str, text: Text) -> Units:
    """Units of shared words, numbered as the words are. Words that tokens tie together are drawn by the first of them.

    So each word is masked with the same probability for every model.
    """
    found = segments.words(written)
    cover = segments.cover(found, text)
    n = len(found)
    of = cover.first[cover.covered]
    lengths = (found.ends - found.begins)[cover.covered]
    return Units(
        of_token=cover.of_token,
        n=n,
        words=np.bincount(of, minlength=n).astype(np.int32),
        characters=np.bincount(of, weights=lengths, minlength=n).astype(np.int32),
        n_left_out=n - int(cover.covered.sum()),
        n_tied=int((cover.first != np.arange(n)).sum()),
    )


def _begins_word(written: str, text: Text) -> npt.NDArray[np.bool_]:
    """bool [n]: whether a token begins a word as transformers has it: tokens whose characters touch are one word.

    That rule goes wrong where tokens hold the space before a word, and where the bytes of one character are several
    tokens: here a space parts words, and a character is of one word.
    """
    found, reached, content = [], -1, False
    for begin, end, scored in zip(text.begins.tolist(), text.ends.tolist(), text.scored.tolist(), strict=True):
        parted = begin > reached or (begin < end and written[begin].isspace())
        found.append(parted or not content)
        reached, content = end, scored
    return np.array(found, dtype=np.bool_)
