"""Which tokens are masked in the variants of a text."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from embeval.core.protocols import PLL_MODES, PllMode
from embeval.language_models import pseudo
from embeval.language_models.tokenization import Frame, Text, tokenize
from embeval.language_models.variants import Variants
from tests.support.language_models import word_tokenizer

WORDS = ["the", "souve+ni+r", "lost"]


@pytest.fixture
def framed(tmp_path: Path) -> tuple[Text, Frame, list[str]]:
    """(``the souvenir lost`` in five tokens, what stands around it, the vocabulary by number)."""
    tokenizer = word_tokenizer(tmp_path, WORDS)
    frame = Frame.of(tokenizer, "t")
    (text,) = tokenize(tokenizer, frame, ["the souvenir lost"])
    return text, frame, tokenizer.convert_ids_to_tokens(range(len(tokenizer)))


def shown(variants: list[str], names: list[str]) -> list[tuple[str, int, str]]:
    """(tokens as the model sees them, place that is scored, token wanted there) of each variant."""
    found = Variants.of(variants)
    rows = range(len(variants))
    texts = [found.ids[found.start[row] : found.start[row] + found.lengths[row]].tolist() for row in rows]
    return [
        (
            " ".join("_" if names[each] == "[MASK]" else names[each] for each in ids),
            int(place),
            names[int(target)],
        )
        for ids, place, target in zip(texts, found.places, found.targets, strict=True)
    ]


def test_what_each_mode_masks(framed: tuple[Text, Frame, list[str]]) -> None:
    """Original: the token; within-word: the later ones of its word as well. Source: Kauf & Ivanova 2023, table 1."""
    text, frame, names = framed
    made = {mode: list(pseudo.variants(text, frame, mode, range(5), room=None, stride=1)) for mode in PLL_MODES}
    assert shown(made["original"], names) == [
        ("[CLS] _ souve ##ni ##r lost [SEP]", 1, "the"),
        ("[CLS] the _ ##ni ##r lost [SEP]", 2, "souve"),
        ("[CLS] the souve _ ##r lost [SEP]", 3, "##ni"),
        ("[CLS] the souve ##ni _ lost [SEP]", 4, "##r"),
        ("[CLS] the souve ##ni ##r _ [SEP]", 5, "lost"),
    ]
    assert shown(made["within_word_l2r"], names)[1:3] == [
        ("[CLS] the _ _ _ lost [SEP]", 2, "souve"),
        ("[CLS] the souve _ _ lost [SEP]", 3, "##ni"),
    ]
    assert [row for row in range(5) if made["original"][row] == made["within_word_l2r"][row]] == [0, 3, 4]


def test_what_is_masked_ends_with_the_window(framed: tuple[Text, Frame, list[str]]) -> None:
    """A word that goes on behind it is masked as far as it is seen, and special tokens stand around every window."""
    text, frame, names = framed
    found = pseudo.variants(text, frame, "within_word_l2r", [1], room=3, stride=2)
    assert shown(list(found), names) == [("[CLS] the _ _ [SEP]", 2, "souve")]


@pytest.mark.parametrize("modes", [PLL_MODES, PLL_MODES[::-1], PLL_MODES[:1], PLL_MODES[1:]])
@pytest.mark.parametrize("room", [None, 3, 1])
def test_variants_of_both_modes_are_made_once(
    framed: tuple[Text, Frame, list[str]], modes: tuple[PllMode, ...], room: int | None
) -> None:
    """As many as there are different ones, counted beforehand, and each mode finds its own among them."""
    text, frame, _ = framed
    spans = pseudo.spans(text, range(5), room=room, stride=1)
    made, number = pseudo.distinct(text, frame, modes, spans)
    assert len(made) == len(set(made)) == spans.n_variants(modes)
    of_mode = {mode: list(pseudo.variants(text, frame, mode, range(5), room=room, stride=1)) for mode in modes}
    assert {mode: [made[each] for each in numbers] for mode, numbers in number.items()} == of_mode
    assert set(made) == {each for of_one in of_mode.values() for each in of_one}
    n_tokens = spans.n_tokens(modes) + len(made) * frame.n_special
    assert n_tokens == int(Variants.of(made).lengths.sum())


def test_some_of_the_places(framed: tuple[Text, Frame, list[str]]) -> None:
    """Parts of spans are spans of parts."""
    text, _, _ = framed
    whole = pseudo.spans(text, range(5), room=3, stride=1)
    part = whole.of(slice(1, 3))
    assert part.places.tolist() == [1, 2]
    assert np.array_equal(part.begins, pseudo.spans(text, [1, 2], room=3, stride=1).begins)
    assert np.array_equal(part.word_ends, whole.word_ends[1:3])
