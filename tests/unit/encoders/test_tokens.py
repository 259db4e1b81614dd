"""Limits, end tokens and padding, computed by hand."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from embeval.encoders import tokens
from embeval.encoders.tokens import Tokens
from embeval.errors import ModelError


@dataclass(frozen=True)
class Tokenizer:
    """What is asked of a tokenizer besides tokens."""

    model_max_length: int = 16
    special: int = 2
    padding_side: str = "right"
    pad_token_id: int | None = 9
    pad_token_type_id: int = 3

    def num_special_tokens_to_add(self, *, pair: bool) -> int:
        """Special tokens around one text."""
        assert not pair
        return self.special


def limit(tokenizer: Tokenizer, asked: int | None = None, positions: int | None = None) -> Any:
    """The limit that is chosen, with remarks."""
    return tokens.choose_limit(tokenizer, asked=asked, positions=positions, name="m")


ENDLESS = Tokenizer(model_max_length=10**30)


def test_the_limit_is_what_was_asked_for_or_declared() -> None:
    """Asked wins over declared; an enormous declaration means none; positions stand in where nothing is declared."""
    assert limit(Tokenizer()) == (16, [])
    assert limit(Tokenizer(), asked=40) == (40, [])
    assert limit(Tokenizer(), asked=8, positions=64) == (8, [])
    assert limit(Tokenizer(), positions=64) == (16, [])
    assert limit(ENDLESS) == (None, [])
    assert limit(ENDLESS, positions=64) == (64, [])
    assert limit(ENDLESS, asked=64, positions=64) == (64, [])
    assert limit(Tokenizer(model_max_length=tokens.UNLIMITED)) == (tokens.UNLIMITED, [])
    assert limit(Tokenizer(model_max_length=tokens.UNLIMITED + 1)) == (None, [])


@pytest.mark.parametrize("declared", [0, 2, -1, True, 3.5, "16", float("nan")])
def test_a_declaration_that_leaves_nothing_of_a_text_is_refused(declared: Any) -> None:
    """Never a score of special tokens alone, and no traceback for a word; what was asked for is taken instead."""
    with pytest.raises(ModelError, match=r"'m' declares that it keeps .* a whole number from 3 belongs"):
        limit(Tokenizer(model_max_length=declared))
    assert limit(Tokenizer(model_max_length=declared), asked=8) == (8, [])
    with pytest.raises(ModelError, match="positions for 2 tokens, and a text takes 3 at least"):
        limit(Tokenizer(), positions=2)


def test_the_least_that_can_be_declared() -> None:
    """One token between the special ones; a float that is whole counts as what it is."""
    assert limit(Tokenizer(model_max_length=3)) == (3, [])
    assert limit(Tokenizer(model_max_length=16.0)) == (16, [])  # type: ignore[arg-type]


def test_a_declaration_beyond_the_positions_is_told() -> None:
    """512 declared, 62 there: cut, with a remark."""
    remark = "The model declares 512 tokens but has positions for 62: cut to 62."
    assert limit(Tokenizer(model_max_length=512), positions=62) == (62, [remark])
    assert limit(Tokenizer(model_max_length=62), positions=62) == (62, [])
    assert limit(Tokenizer(model_max_length=63), positions=62) == (62, [remark.replace("512", "63")])


@pytest.mark.parametrize(
    ("asked", "positions", "message"),
    [
        (2, 64, "takes 3 to 64 tokens, so max_seq_length can't be 2"),
        (65, 64, "takes 3 to 64 tokens, so max_seq_length can't be 65"),
        (2, None, "takes 3 or more tokens, so max_seq_length can't be 2"),
    ],
)
def test_a_limit_that_cannot_be_is_refused(asked: int, positions: int | None, message: str) -> None:
    """No room for a token beside the special ones, or more tokens than positions."""
    with pytest.raises(ModelError, match=message):
        limit(Tokenizer(), asked=asked, positions=positions)
    assert limit(Tokenizer(), asked=3, positions=positions) == (3, [])


def of(*rows: list[int], lost: list[int] | None = None) -> Tokens:
    """Tokens with these ids."""
    lengths = np.array([len(row) for row in rows], dtype=np.int64)
    return Tokens(
        ids=np.array([number for row in rows for number in row], dtype=np.int32),
        types=None,
        start=np.cumsum(lengths) - lengths,
        lengths=lengths,
        lost=None if lost is None else np.array(lost, dtype=np.int64),
        unknown=None,
    )


def rows(found: Tokens) -> list[list[int]]:
    """Ids per text."""
    return [np.frombuffer(found.key(row), dtype=np.int32).tolist() for row in range(len(found.lengths))]


def test_an_end_token_is_put_last() -> None:
    """Where there is room it is added, where it is there it stays, and a full text gives its last token for it."""
    found = of([5, 6], [5, 7], [], [1, 2, 3, 4], [1, 2, 3, 7], [7, 1], lost=[0, 0, 0, 9, 2, 0])
    ended = tokens.ended_with(found, 7, 4)
    assert rows(ended) == [[5, 6, 7], [5, 7], [], [1, 2, 3, 7], [1, 2, 3, 7], [7, 1, 7]]
    assert ended.lengths.tolist() == [3, 2, 0, 4, 4, 3]
    assert ended.lost is not None
    assert ended.lost.tolist() == [0, 0, 0, 10, 2, 0]
    assert found.lost is not None
    assert found.lost.tolist() == [0, 0, 0, 9, 2, 0]  # what was given is not changed
    assert ended.ids.dtype == np.int32


def test_an_end_token_without_a_limit() -> None:
    """Nothing is lost where nothing is cut; losses that are not known stay so; no texts are no texts."""
    assert rows(tokens.ended_with(of([1, 2, 3, 4]), 7, None)) == [[1, 2, 3, 4, 7]]
    assert tokens.ended_with(of([1, 2], lost=None), 7, 2).lost is None
    assert rows(tokens.ended_with(of(), 7, 4)) == []


def test_padding_on_either_side() -> None:
    """Ids, mask and types of two of three texts, in the order that was asked for."""
    found = replace(of([1, 2], [4], [5, 6, 7]), types=np.array([0, 2, 0, 0, 0, 2], dtype=np.int32))
    order = np.array([2, 0], dtype=np.intp)
    right = tokens.pad(Tokenizer(), found, order, left=False)
    assert right["input_ids"].tolist() == [[5, 6, 7], [1, 2, 9]]
    assert right["attention_mask"].tolist() == [[1, 1, 1], [1, 1, 0]]
    assert right["token_type_ids"].tolist() == [[0, 0, 2], [0, 2, 3]]
    left = tokens.pad(Tokenizer(pad_token_id=None), found, order, left=True)
    assert left["input_ids"].tolist() == [[5, 6, 7], [0, 1, 2]]
    assert left["attention_mask"].tolist() == [[1, 1, 1], [0, 1, 1]]
    assert left["token_type_ids"].tolist() == [[0, 0, 2], [3, 0, 2]]


def test_padding_on_the_left_needs_relative_positions() -> None:
    """Learned positions are counted from the left end, so they are padded on the right."""
    assert tokens.pads_left(Tokenizer(padding_side="left"), None)
    assert not tokens.pads_left(Tokenizer(padding_side="left"), 64)
    assert not tokens.pads_left(Tokenizer(), None)


class Sized:
    """What is asked of a tokenizer about its vocabulary."""

    all_special_ids = (0, 1, 1)

    def __init__(self, n: int) -> None:
        self._n = n

    def __len__(self) -> int:
        return self._n


def test_a_vocabulary_that_does_not_fit_is_refused() -> None:
    """One token more than there are vectors, or special tokens alone; as many, or fewer, are fine."""
    tokens.refuse_no_vocabulary(Sized(10), "m", n_vectors=10)
    tokens.refuse_no_vocabulary(Sized(3), "m", n_vectors=None)
    with pytest.raises(ModelError, match="its tokenizer has 11 tokens, but the model has vectors for 10 only"):
        tokens.refuse_no_vocabulary(Sized(11), "m", n_vectors=10)
    with pytest.raises(ModelError, match="has no vocabulary, only 2 special tokens"):
        tokens.refuse_no_vocabulary(Sized(2), "m", n_vectors=10)


@dataclass(frozen=True)
class Spelling(Tokenizer):
    """A token per letter between 1 and 2; z is not known, and said with ``unk_token_id``."""

    unk_token_id: int = 0
    eos_token_id: int = 2
    bos_token_id: int | None = None
    cls_token_id: int = 1

    def __call__(self, texts: list[str], *, max_length: int | None, **_: Any) -> dict[str, Any]:
        """As a fast tokenizer: what was cut off follows in rows of its own, special tokens around each."""
        rows, owner = [], []
        room = (max_length or 1000) - self.special
        for number, text in enumerate(texts):
            ids = [self.unk_token_id if letter == "z" else ord(letter) for letter in text]
            for start in range(0, max(len(ids), 1), room):
                rows.append([1, *ids[start : start + room], 2])
                owner.append(number)
        return {"input_ids": rows, "overflow_to_sample_mapping": owner}


def test_lost_tokens_are_those_of_the_text() -> None:
    """The special tokens around each piece that was cut off are none of it: 7 letters, of which 3 are kept."""
    found = tokens.tokenize(Spelling(), ["abcdefg", "abc", "az"], 5)
    assert found.lengths.tolist() == [5, 5, 4]
    assert found.lost is not None
    assert found.lost.tolist() == [4, 0, 0]
    assert found.unknown is not None
    assert found.unknown.tolist() == [0, 0, 1]


def test_an_unknown_token_with_another_use_tells_nothing() -> None:
    """Where it also ends a text, every text would seem to hold one."""
    assert tokens.tokenize(Spelling(unk_token_id=2), ["ab"], 5).unknown is None
