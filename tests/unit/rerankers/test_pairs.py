"""Pairs as token ids: what of each text is left, and what stands around it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from embeval.errors import ModelError
from embeval.rerankers import pairs
from embeval.rerankers.pairs import Template
from tests.support.models import save_tokenizer, save_word_tokenizer, save_xlnet_tokenizer

TOKENIZERS: dict[str, Callable[[Path], Any]] = {
    "bert": save_tokenizer,
    "words": save_word_tokenizer,
    "xlnet": save_xlnet_tokenizer,
}
LONG = "one two three day old new fast slow red blue green one two three day old new fast slow red"
PAIRS = [
    ("restore a backup", "the server"),
    ("token", LONG),
    (LONG, "token"),
    (LONG, LONG),
    ("one two three day", "old new fast slow red blue"),
    ("", "backup"),
    ("backup", ""),
    ("", ""),
]


@pytest.fixture(scope="module", params=TOKENIZERS)
def tokenizer(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Tokenizers with ``[CLS] q [SEP] d [SEP]``, with nothing around, and with ``q <sep> d <sep> <cls>``."""
    return TOKENIZERS[request.param](tmp_path_factory.mktemp("tokenizer"))


def tokens_of(tokenizer: Any, texts: list[tuple[str, str]], limit: int | None) -> pairs.PairTokens:
    """The pairs, tokenised."""
    made = [pairs.joined(query, document) for query, document in texts]
    return pairs.tokenize(tokenizer, Template.of(tokenizer, "model"), made, limit)


@pytest.mark.parametrize("limit", [None, 5, 6, 7, 8, 11, 12, 16, 41])
@pytest.mark.parametrize("side", ["right", "left"])
def test_ids_and_types_are_those_of_the_library(tokenizer: Any, limit: int | None, side: str) -> None:
    """Equal to transformers 5.24 with ``truncation="longest_first"``, for every limit that leaves a token of each."""
    tokenizer.truncation_side = side
    found = tokens_of(tokenizer, PAIRS, limit)
    for row, (query, document) in enumerate(PAIRS):
        # As a batch: alone, an empty document would be left out together with what stands around it.
        batch = tokenizer([query], [document], truncation="longest_first" if limit else False, max_length=limit)
        theirs = {name: values[0] for name, values in batch.items()}
        part = slice(found.start[row], found.start[row] + found.lengths[row])
        assert found.ids[part].tolist() == theirs["input_ids"]
        if "token_type_ids" in theirs:
            assert found.types is not None
            assert found.types[part].tolist() == theirs["token_type_ids"]
        else:
            assert found.types is None


def test_a_long_query_does_not_push_the_document_out(tmp_path: Path) -> None:
    """F14 (ii): 16 tokens, a query of 20 words, documents "yes" and "no": both are there, and the inputs differ."""
    tokenizer = save_tokenizer(tmp_path)
    found = tokens_of(tokenizer, [(LONG, "red"), (LONG, "blue")], 16)
    assert found.lengths.tolist() == [16, 16]
    assert found.document.tolist() == [1, 1]
    assert found.lost is not None
    assert found.lost.tolist() == [20 - 12, 20 - 12]
    assert found.key(0) != found.key(1)
    for row, word in enumerate(("red", "blue")):
        ids = found.ids[found.start[row] : found.start[row] + 16].tolist()
        assert tokenizer.convert_ids_to_tokens(ids)[-2:] == [word, "[SEP]"]


@given(st.integers(0, 40), st.integers(0, 40), st.integers(2, 60))
def test_what_is_kept(n_query: int, n_document: int, room: int) -> None:
    """As many as fit, none of either for nothing, the longer first; brute force takes one token at a time away."""
    kept = pairs.kept(np.array([n_query]), np.array([n_document]), room)
    query, document = n_query, n_document
    while query + document > room:
        if query > document or (query == document and n_document >= n_query):
            query -= 1
        else:
            document -= 1
    assert (int(kept[0][0]), int(kept[1][0])) == (query, document)
    assert (document > 0) == (n_document > 0)


@given(st.text(), st.text())
def test_a_pair_comes_back(query: str, document: str) -> None:
    """Whatever is in it, digits and colons too."""
    assert pairs.split(pairs.joined(query, document)) == (query, document)


def test_no_two_pairs_are_one_text() -> None:
    """Where the query ends is part of it."""
    ways = [("ab", "c"), ("a", "bc"), ("abc", ""), ("", "abc"), ("1:a", "bc"), ("", "1:abc"), ("a", "1:bc")]
    assert len({pairs.joined(*way) for way in ways}) == len(ways)


def test_equal_ids_with_another_border_are_two_keys(tmp_path: Path) -> None:
    """Without special tokens "a" + "b c" and "a b" + "c" are the same ids, and not the same pair."""
    found = tokens_of(save_word_tokenizer(tmp_path), [("a", "b c"), ("a b", "c"), ("a", "b c")], None)
    assert found.ids[:3].tolist() == found.ids[3:6].tolist()
    assert found.key(0) != found.key(1)
    assert found.key(0) == found.key(2)


def test_half_a_character_and_a_text_of_any_length(tmp_path: Path) -> None:
    """Neither stops the tokenizer, which makes nothing of the half; the lost tokens are counted."""
    found = tokens_of(save_tokenizer(tmp_path), [("\ud83d", "red " * 3000)], 16)
    assert found.lengths.tolist() == [16]
    assert found.document.tolist() == [13]
    assert found.lost is not None
    assert found.lost.tolist() == [3000 - 13]


def test_no_pairs(tmp_path: Path) -> None:
    """Nothing, not an error."""
    assert len(tokens_of(save_tokenizer(tmp_path), [], 16).ids) == 0


def test_a_tokenizer_that_puts_the_document_first(tmp_path: Path) -> None:
    """Is refused: what is said of its pairs would be wrong."""
    from tokenizers import processors

    tokenizer = save_word_tokenizer(tmp_path)
    tokenizer._tokenizer.post_processor = processors.TemplateProcessing(single="$A", pair="$B $A", special_tokens=[])
    with pytest.raises(ModelError, match="doesn't put a query before a document"):
        Template.of(tokenizer, "model")
