"""Masks: how they are distributed, what they hang on, and the rules of whole words and of shared ones."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from embeval.language_models import masking, segments, tokenization
from embeval.language_models.masking import Masker, Masking, Masks
from embeval.language_models.tokenization import Frame, Text
from embeval.language_models.variants import Variants
from tests.support.language_models import word_tokenizer
from tests.support.models import save_tokenizer
from tests.support.words import WORDS

MASKINGS: tuple[Masking, ...] = get_args(Masking)
PINNED = [[2, 7, 9, 13], [3, 5, 10, 13, 16], [7, 9], [4, 5, 7]]
PINNED_KEPT, PINNED_REPLACED = [1, 9, 16], [0, 7]
PINNED_SPARE = [[16], [1], [9], [6]]
SIGMAS = 4.0
"""How far a count may be from its mean: one in 16,000 would be farther by chance, and seeds are fixed."""


@pytest.fixture(scope="module")
def pieces(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A WordPiece tokenizer; words that it doesn't know are letters."""
    return save_tokenizer(tmp_path_factory.mktemp("pieces"), max_length=64)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A tokenizer that knows whole words, the first with id 0."""
    words = ["archive", *WORDS, "souvenir", "traveler", ".", ",", "'", "don", "t"]
    return word_tokenizer(tmp_path_factory.mktemp("whole"), words)


def masker(tokenizer: Any, how: Masking, **options: Any) -> Masker:
    """Of a tokenizer, at the defaults of the task but for what is named."""
    settings: dict[str, Any] = {"probability": 0.15, "at_least_one": False, "seed": 0, **options}
    return Masker(how, frame=Frame.of(tokenizer, "m"), **settings)


def tokens(tokenizer: Any, text: str) -> Text:
    """A text in tokens."""
    (found,) = tokenization.tokenize(tokenizer, Frame.of(tokenizer, "m"), [text])
    return found


def draws(tokenizer: Any, text: str, how: Masking, n: int, **options: Any) -> list[Masks]:
    """The first n draws of a text."""
    made, found = masker(tokenizer, how, **options), tokens(tokenizer, text)
    units = made.units(text, found)
    return [made.draw(text, found, units, number) for number in range(n)]


def drawn(tokenizer: Any, text: str, how: Masking, number: int = 0, **options: Any) -> Masks:
    """One of them."""
    return draws(tokenizer, text, how, number + 1, **options)[number]


def assert_binomial(found: int, n: int, probability: float) -> None:
    """A count within ``SIGMAS`` of its mean."""
    assert abs(found - n * probability) < SIGMAS * math.sqrt(n * probability * (1 - probability))


# --- how they are distributed -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("how", "probability"), [("bert", 0.15), ("mask", 0.15), ("mask", 0.4)])
def test_tokens_are_chosen_with_the_probability_that_was_asked_for(
    pieces: Any, how: Masking, probability: float
) -> None:
    """Bounds of the binomial distribution, over 400 texts of 60 tokens, and over each place of them."""
    at = np.zeros(60)
    for number in range(10):
        for masks in draws(pieces, f"{'old server ' * 29} page {number}", how, 40, probability=probability):
            at[masks.places] += 1
    assert_binomial(int(at.sum()), 24_000, probability)
    # Pearson's statistic over places is chi-squared with 60 degrees of freedom: mean 60, variance 120.
    statistic = ((at - 400 * probability) ** 2).sum() / (400 * probability * (1 - probability))
    assert abs(statistic - 60) < SIGMAS * math.sqrt(120)


def test_of_the_tokens_chosen_80_10_and_10_percent_are_masked_replaced_and_kept(pieces: Any) -> None:
    """Devlin et al., 2019. A replacement is the token itself once in as many times as there are tokens."""
    frame = Frame.of(pieces, "m")
    text = "the old server " * 20
    ids = tokens(pieces, text).ids
    masked = n = 0
    others: list[int] = []
    for masks in draws(pieces, text, "bert", 400, probability=0.5):
        shown, own = masks.shown[masks.places], ids[masks.places]
        n += len(shown)
        masked += int((shown == frame.mask_id).sum())
        others += shown[(shown != frame.mask_id) & (shown != own)].tolist()
        not_chosen = np.setdiff1d(np.arange(len(ids)), masks.places)
        assert (masks.shown[not_chosen] == ids[not_chosen]).all()
    n_ordinary = frame.n_tokens - len(frame.special) - 1
    assert_binomial(masked, n, 0.8)
    assert_binomial(len(others), n, 0.1 * (1 - 1 / n_ordinary))
    # Every ordinary token, and no special nor the unknown one, stands in for others.
    assert set(others) == set(range(frame.n_tokens)) - frame.special - {pieces.unk_token_id}


def test_the_other_rules_show_nothing_but_the_mask(pieces: Any) -> None:
    """At every place that is scored."""
    text = "restore the backup of a souvenir , don't " * 5
    for how in ("mask", "whole_word", "aligned"):
        masks = drawn(pieces, text, how, probability=0.5)
        assert (masks.shown[masks.places] == pieces.mask_token_id).all()
        assert (masks.shown == pieces.mask_token_id).sum() == len(masks.places) > 20


def test_the_same_places_are_scored_whatever_stands_there(pieces: Any) -> None:
    """``bert`` and ``mask`` differ in what the model sees and in nothing else."""
    text = "the old server of the archive " * 10
    assert drawn(pieces, text, "bert").places.tolist() == drawn(pieces, text, "mask").places.tolist()


# --- what they hang on --------------------------------------------------------------------------------------------


def test_masks_of_a_text_are_these_for_ever(pieces: Any) -> None:
    """Pinned: results of another day are of the same masks. numpy's PCG64, seeded by sha256 of purpose and text."""
    text = "restore the backup of the old server and scan a new page for the user at night"
    found = [each.places.tolist() for each in draws(pieces, text, "mask", 4)]
    assert found == PINNED
    shown = drawn(pieces, text, "bert", 1, probability=1.0).shown
    ids = tokens(pieces, text).ids
    assert np.flatnonzero(shown == ids).tolist() == PINNED_KEPT
    assert np.flatnonzero((shown != ids) & (shown != pieces.mask_token_id)).tolist() == PINNED_REPLACED
    spare = draws(pieces, text, "mask", 4, probability=1e-9, at_least_one=True)
    assert [each.places.tolist() for each in spare] == PINNED_SPARE


@pytest.mark.parametrize("how", MASKINGS)
def test_draws_seeds_and_texts_have_masks_of_their_own(pieces: Any, how: Masking) -> None:
    """And the same ones whenever they are asked for."""
    text = "restore the backup of the old server " * 8
    one = drawn(pieces, text, how)
    again = drawn(pieces, text, how)
    assert (one.places.tolist(), one.shown.tolist()) == (again.places.tolist(), again.shown.tolist())
    others = [drawn(pieces, text, how, 1), drawn(pieces, text, how, seed=1)]
    others.append(drawn(pieces, text.replace("old", "new"), how))
    assert len({tuple(each.places.tolist()) for each in (one, *others)}) == 4


def test_draws_of_a_text_are_independent(pieces: Any) -> None:
    """Over 400 texts of 30 tokens, places chosen in both of two draws: 0.3 squared of all, within binomial bounds."""
    both = 0
    for number in range(400):
        text = f"{'the old server ' * 9} page scan {number}"
        first, second = (set(each.places.tolist()) for each in draws(pieces, text, "mask", 2, probability=0.3))
        both += len([place for place in first & second if place < 29])
    assert_binomial(both, 400 * 29, 0.09)


def test_a_lost_half_of_a_character_is_no_obstacle(pieces: Any) -> None:
    """JSON can hold one; the tokenizer gets U+FFFD in its place, and so does the seed."""
    assert drawn(pieces, "old \ud83d server", "aligned").places.tolist() == (
        drawn(pieces, "old \ufffd server", "aligned").places.tolist()
    )


# --- what is never chosen -----------------------------------------------------------------------------------------


@given(
    text=st.lists(
        st.sampled_from(
            ["old", "souvenir", "[SEP]", "[MASK]", "[PAD]", "[CLS]", "don't", "\u200d", "東京", "\n", "é,"]
        ),
        max_size=12,
    ).map(" ".join),
    how=st.sampled_from(MASKINGS),
    seed=st.integers(0, 10),
    probability=st.sampled_from([0.2, 1.0]),
    at_least_one=st.booleans(),
)
def test_whatever_the_text_masks_lie_on_content_in_whole_units(
    pieces: Any, text: str, how: Masking, seed: int, probability: float, at_least_one: bool
) -> None:
    """Never on special tokens, also those written in a text; a unit is masked whole; one at least where asked for."""
    made = masker(pieces, how, seed=seed, probability=probability, at_least_one=at_least_one)
    found = tokens(pieces, text)
    units = made.units(text, found)
    masks = made.draw(text, found, units, 0)
    assert found.scored[masks.places].all()
    assert not set(found.ids[masks.places].tolist()) & made.frame.special
    chosen = set(units.of_token[masks.places].tolist())
    assert -1 not in chosen
    assert masks.places.tolist() == [place for place, unit in enumerate(units.of_token.tolist()) if unit in chosen]
    if at_least_one or probability == 1.0:
        assert bool(len(masks.places)) == bool((units.of_token >= 0).any())
    if probability == 1.0:
        assert masks.places.tolist() == np.flatnonzero(units.of_token >= 0).tolist()
    if how == "aligned":
        words = segments.words(text)
        in_words = [unit for unit in units.of_token.tolist() if unit >= 0]
        assert units.n == len(words) == int(units.words.sum()) + units.n_left_out
        assert all(units.words[unit] for unit in in_words)
        assert masks.n_words == sum(int(units.words[unit]) for unit in chosen)
    else:
        assert (masks.n_words, masks.n_characters) == (0, 0)


@pytest.mark.parametrize("how", MASKINGS)
def test_at_least_one_is_drawn_evenly_and_only_where_nothing_was(pieces: Any, how: Masking) -> None:
    """Ten words of one token, 2,000 draws at 1 %: places of the spare ones are even; those drawn anyway stay."""
    text = "the old server of the archive and a new page"
    at = np.zeros(10)
    as_drawn = draws(pieces, text, how, 2_000, probability=0.01)
    for plain, spare in zip(
        as_drawn, draws(pieces, text, how, 2_000, probability=0.01, at_least_one=True), strict=True
    ):
        if len(plain.places):
            assert spare.places.tolist() == plain.places.tolist()
        else:
            assert len(spare.places) == 1
            at[spare.places] += 1
    assert_binomial(int(at.sum()), 2_000, 0.99**10)
    statistic = ((at - at.sum() / 10) ** 2).sum() / (at.sum() / 10)
    assert statistic < 9 + SIGMAS * math.sqrt(18)


def test_a_text_without_content_has_no_mask(pieces: Any) -> None:
    """Nothing can be drawn there, whatever was asked for."""
    for text in ("[SEP] [PAD]", "\u200d"):
        for how in MASKINGS:
            assert not len(drawn(pieces, text, how, at_least_one=True, probability=1.0).places)


# --- whole words --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "the traveler lost the souvenir. ok",
        "don't , 'tis 1,000 old-new servers",
        "a [SEP] souvenir [MASK] x[SEP]y",
        "souvenir\tsouvenir\n\nsouvenir",
        "東京 tower",
    ],
)
@pytest.mark.parametrize("tokenizer", ["pieces", "whole"])
def test_whole_words_are_those_of_transformers(text: str, tokenizer: str, request: pytest.FixtureRequest) -> None:
    """Words, and what a choice of their first tokens becomes: DataCollatorForLanguageModeling, transformers 5.24."""
    from transformers import DataCollatorForLanguageModeling as Collator

    made = request.getfixturevalue(tokenizer)
    found = tokens(made, text)
    units = masker(made, "whole_word").units(text, found)
    offsets = np.stack([found.begins, found.ends], axis=1)[None]
    word_ids, not_first = Collator._calc_word_ids_and_prob_mask(offsets, (~found.scored)[None].astype(np.int64))
    assert units.of_token.tolist() == [each - 1 if each > 0 else -1 for each in word_ids[0].tolist()]
    for masks in draws(made, text, "whole_word", 8, probability=0.5):
        first = np.isin(np.arange(len(found)), masks.places) & ~not_first[0]
        expected = Collator._whole_word_mask(word_ids, first[None].astype(np.int64))[0]
        assert masks.places.tolist() == np.flatnonzero(expected).tolist()


def test_words_are_drawn_and_not_their_tokens(pieces: Any) -> None:
    """A word of eight tokens is as likely to be hidden as one of one: 15 %, in 1,500 draws."""
    text = "old souvenir old"
    at = np.zeros(len(tokens(pieces, text)))
    for masks in draws(pieces, text, "whole_word", 1_500):
        at[masks.places] += 1
    assert len(at) == 10
    assert len(set(at[1:9].tolist())) == 1
    for place in (0, 1, 9):
        assert_binomial(int(at[place]), 1_500, 0.15)


def small_frame() -> Frame:
    """A frame of 9 tokens, of which the last is the mask."""
    nothing = np.zeros(0, dtype=np.int32)
    return Frame(nothing, nothing, mask_id=8, pad_id=7, begin_id=None, special=frozenset([7, 8]), n_tokens=9)


def raw_text(offsets: list[tuple[int, int]]) -> Text:
    """Tokens at these places."""
    places = np.array(offsets, dtype=np.int32)
    numbers = np.arange(len(places), dtype=np.int32)
    scored = np.ones(len(places), dtype=np.bool_)
    return Text(ids=numbers, words=numbers, begins=places[:, 0], ends=places[:, 1], scored=scored, n_unknown=0)


def test_a_space_parts_words_also_where_a_token_holds_it(pieces: Any) -> None:
    """As sentencepiece has it, where transformers 5.24 takes the text for one word: its tokens have no gap."""
    made = masker(pieces, "whole_word")
    text = raw_text([(0, 3), (3, 6), (6, 8), (8, 9)])
    assert made.units("The lost.", text).of_token.tolist() == [0, 1, 1, 1]


def test_the_bytes_of_a_character_are_of_one_word(pieces: Any) -> None:
    """``aé b`` in bytes, where transformers 5.24 begins a word with each byte but the first of a character."""
    made = masker(pieces, "whole_word")
    text = raw_text([(0, 1), (1, 2), (1, 2), (3, 4)])
    assert made.units("aé b", text).of_token.tolist() == [0, 0, 0, 1]


# --- words that all models share ----------------------------------------------------------------------------------


def hidden(tokenizer: Any, text: str, number: int = 0, **options: Any) -> tuple[set[str], int, int]:
    """(words hidden, each with its place; how many; their characters) of an aligned draw."""
    masks = drawn(tokenizer, text, "aligned", number, **options)
    found, words = tokens(tokenizer, text), segments.words(text)
    under = [
        word
        for word, (begin, end) in enumerate(zip(words.begins.tolist(), words.ends.tolist(), strict=True))
        if any(found.begins[place] < end and begin < found.ends[place] for place in masks.places.tolist())
    ]
    spelled = {f"{word} {text[words.begins[word] : words.ends[word]]}" for word in under}
    return spelled, masks.n_words, masks.n_characters


def test_two_tokenizers_hide_the_same_words(pieces: Any, whole: Any) -> None:
    """In pieces and in whole words: the same words, counted alike in words and in characters."""
    text = "the traveler of the archive, a souvenir. restore the old backup of server and user, don't"
    n_tokens = set()
    for number in range(20):
        one, other = hidden(pieces, text, number, probability=0.3), hidden(whole, text, number, probability=0.3)
        assert one == other
        assert one[1] == len(one[0])
        assert one[2] == sum(len(each.split(" ")[1]) for each in one[0])
        n_tokens.add(len(drawn(pieces, text, "aligned", number, probability=0.3).places) - one[1])
    assert max(n_tokens) > 5  # one of the two needs many more tokens for them


def test_words_in_one_token_are_drawn_by_the_first_of_them() -> None:
    """So that each word is as likely to be hidden as another, tied or not."""
    tied = raw_text([(0, 2), (2, 3)])
    made = Masker("aligned", 0.3, False, 0, small_frame())
    units = made.units("東京タ", tied)
    assert (units.of_token.tolist(), units.words.tolist(), units.characters.tolist()) == ([0, 2], [2, 0, 1], [2, 0, 1])
    assert (units.n, units.n_tied, units.n_left_out) == (3, 1, 0)
    masks = [made.draw("東京タ", tied, units, number) for number in range(2_000)]
    assert_binomial(sum(0 in each.places.tolist() for each in masks), 2_000, 0.3)
    assert_binomial(sum(1 in each.places.tolist() for each in masks), 2_000, 0.3)
    for each in masks:
        assert each.n_words == each.n_characters == 2 * (0 in each.places.tolist()) + (1 in each.places.tolist())


def test_a_word_that_the_tokenizer_drops_is_neither_hidden_nor_counted() -> None:
    """Also where at least one was asked for: the last word before it stands in, or the last of all."""
    made = Masker("aligned", 1.0, False, 0, small_frame())
    text = raw_text([(2, 3), (6, 7)])
    units = made.units("† a † b", text)
    masks = made.draw("† a † b", text, units, 0)
    assert (units.n, units.n_left_out, masks.places.tolist(), masks.n_words, masks.n_characters) == (4, 2, [0, 1], 2, 2)
    spare = replace(made, probability=1e-12, at_least_one=True)
    at = [spare.draw("† a † b", text, units, number).places.tolist() for number in range(800)]
    assert_binomial(at.count([0]), 800, 0.5)
    assert_binomial(at.count([1]), 800, 0.5)


# --- long texts ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("room", [None, 1, 3, 7, 100])
@pytest.mark.parametrize("how", MASKINGS)
def test_windows_together_ask_for_every_mask_once(pieces: Any, how: Masking, room: int | None) -> None:
    """By hand: the text as shown, cut every ``room`` tokens, with what stands around a text; none without a mask."""
    text = "restore the backup of a souvenir on the server " * 3
    found, frame = tokens(pieces, text), Frame.of(pieces, "m")
    masks = drawn(pieces, text, how, probability=0.3)
    made = list(masking.variants(masks, found, frame, room=room))
    assert len(made) == masking.n_variants(masks, room=room)
    expected = []
    step = room or len(found)
    for start in range(0, len(found), step):
        at = [place for place in masks.places.tolist() if start <= place < start + step]
        if at:
            ids = [*frame.before, *masks.shown[start : start + step], *frame.after]
            expected.append((ids, [place - start + 1 for place in at], found.ids[at].tolist()))
    read = Variants.of(made)
    for row, (ids, at, wanted) in enumerate(expected):
        _, places, targets = read.wanted(np.array([row]))
        assert read.padded(np.array([row]), 0)["input_ids"][0].tolist() == ids
        assert (places.tolist(), targets.tolist()) == (at, wanted)
    assert len(made) == len(expected) > 0


def test_a_word_at_an_edge_is_hidden_on_both_sides_and_counted_once(pieces: Any) -> None:
    """``souvenir`` in eight letters, cut after three tokens: three windows with nothing but masks of it."""
    masks = drawn(pieces, "a souvenir", "aligned", probability=1.0)
    assert (masks.n_words, masks.n_characters, len(masks.places)) == (2, 9, 9)
    read = Variants.of(list(masking.variants(masks, tokens(pieces, "a souvenir"), Frame.of(pieces, "m"), room=3)))
    assert read.n_targets.tolist() == [3, 3, 3]
    assert (read.ids == pieces.mask_token_id).sum() == 9


def test_a_word_with_id_0_is_masked_and_asked_for(whole: Any) -> None:
    """Where the vocabulary has a word there, and no padding."""
    masks = drawn(whole, "archive archive", "mask", probability=1.0)
    (variant,) = masking.variants(masks, tokens(whole, "archive archive"), Frame.of(whole, "m"), room=None)
    assert Variants.of([variant]).wanted(np.array([0]))[2].tolist() == [0, 0]
