"""Pairs of query and document as token ids, cut so that something of each is left.

The two texts are tokenised apart, without special tokens, and put together as the model's own tokenizer does it. A pair
that is too long loses tokens of the longer text first, and once they are equally long of both in turn, as the strategy
``longest_first`` of tokenizers 0.23 does. With room for two tokens or more, which ``tokens.choose_limit`` sees to, no
query can push a document out, as it would where the end of the whole was cut off.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from embeval.encoders import batching, tokens
from embeval.encoders.batching import Lengths
from embeval.encoders.tokens import Tokens
from embeval.errors import ModelError

Ids = npt.NDArray[np.int32]


def joined(query: str, document: str) -> str:
    """A pair as one text. No two pairs give the same: the length of the query stands before it."""
    return f"{len(query)}:{query}{document}"


def split(text: str) -> tuple[str, str]:
    """The pair that ``joined`` made a text of."""
    length, _, rest = text.partition(":")
    return rest[: int(length)], rest[int(length) :]


@dataclass(frozen=True)
class PairTokens(Tokens):
    """Token ids of pairs."""

    document: Lengths
    """int64 [n]: tokens that are left of each document."""

    def key(self, row: int) -> bytes:
        """The token ids of a pair, and where its document begins."""
        return super().key(row) + int(self.document[row]).to_bytes(4, "little")


@dataclass(frozen=True)
class Template:
    """What a tokenizer puts around and between two texts."""

    before: Ids
    between: Ids
    after: Ids
    types: tuple[Ids, int, Ids, int, Ids] | None
    """Type ids before, of the query, between, of the document, after; None where the tokenizer has none."""

    @classmethod
    def of(cls, tokenizer: Any, name: str) -> Template:
        """That of a fast tokenizer, read off a pair of words. Raises ``ModelError`` where it doesn't tell."""
        encoded = tokenizer("a", "a", padding=False, truncation=False)
        owners = np.array([-1 if owner is None else owner for owner in encoded.sequence_ids(0)])
        query, document = np.flatnonzero(owners == 0), np.flatnonzero(owners == 1)
        if not len(query) or not len(document) or query[-1] > document[0]:
            raise ModelError(f"Model {name!r}: its tokenizer doesn't put a query before a document.")
        cuts = (query[0], query[-1] + 1, document[0], document[-1] + 1)
        ids = np.split(np.array(encoded["input_ids"], dtype=np.int32), cuts)
        if "token_type_ids" not in encoded:
            return cls(ids[0], ids[2], ids[4], None)
        types = np.split(np.array(encoded["token_type_ids"], dtype=np.int32), cuts)
        return cls(ids[0], ids[2], ids[4], (types[0], int(types[1][0]), types[2], int(types[3][0]), types[4]))

    @property
    def n_special(self) -> int:
        """Tokens that are neither of the query nor of the document."""
        return len(self.before) + len(self.between) + len(self.after)

    def ids_of(self, query: Ids, document: Ids) -> Ids:
        """int32 [T] of a pair."""
        return np.concatenate([self.before, query, self.between, document, self.after])

    def types_of(self, n_query: int, n_document: int) -> Ids | None:
        """int32 [T] of a pair of texts with so many tokens."""
        if self.types is None:
            return None
        before, query, between, document, after = self.types
        parts = [before, np.full(n_query, query), between, np.full(n_document, document), after]
        return np.concatenate(parts).astype(np.int32)


def kept(n_query: Lengths, n_document: Lengths, room: int | None) -> tuple[Lengths, Lengths]:
    """int64 [n], int64 [n]: tokens of query and document that fit into ``room`` together; None: all of them."""
    if room is None:
        return n_query, n_document
    shorter = np.minimum(np.minimum(n_query, n_document), room // 2)
    longer = np.minimum(np.maximum(n_query, n_document), room - shorter)
    by_document = n_document >= n_query
    return np.where(by_document, shorter, longer), np.where(by_document, longer, shorter)


def tokenize(tokenizer: Any, template: Template, texts: Sequence[str], limit: int | None) -> PairTokens:
    """Pairs, each as ``joined`` made it, in at most ``limit`` tokens, special ones included."""
    pairs = [split(text) for text in texts]
    queries = _Side.of(tokenizer, [query for query, _ in pairs])
    documents = _Side.of(tokenizer, [document for _, document in pairs])
    room = None if limit is None else limit - template.n_special
    n_query, n_document = kept(queries.lengths, documents.lengths, room)
    from_left = getattr(tokenizer, "truncation_side", "right") == "left"
    ids, types = [], []
    for row in range(len(pairs)):
        query = queries.cut(row, int(n_query[row]), from_left=from_left)
        document = documents.cut(row, int(n_document[row]), from_left=from_left)
        ids.append(template.ids_of(query, document))
        if (of_pair := template.types_of(len(query), len(document))) is not None:
            types.append(of_pair)
    lengths = n_query + n_document + template.n_special
    return PairTokens(
        ids=np.concatenate(ids) if ids else np.zeros(0, dtype=np.int32),
        types=np.concatenate(types) if types else None,
        start=np.cumsum(lengths) - lengths,
        lengths=lengths,
        lost=queries.lengths + documents.lengths - n_query - n_document,
        unknown=None,
        document=n_document,
    )


@dataclass(frozen=True)
class _Side:
    """The token ids of one side of pairs, each distinct text tokenised once."""

    ids: list[Ids]
    place: npt.NDArray[np.intp]
    lengths: Lengths

    @classmethod
    def of(cls, tokenizer: Any, texts: Sequence[str]) -> _Side:
        distinct, place = batching.unique(texts)
        ids: list[Ids] = []
        for start in range(0, len(distinct), tokens.TOKENIZE_AT_ONCE):
            encoded = tokenizer(
                [tokens.whole(text) for text in distinct[start : start + tokens.TOKENIZE_AT_ONCE]],
                add_special_tokens=False,
                truncation=False,
                padding=False,
                verbose=False,
            )
            ids += [np.array(row, dtype=np.int32) for row in encoded["input_ids"]]
        lengths = np.array([len(row) for row in ids], dtype=np.int64)
        return cls(ids, place, lengths[place] if len(place) else np.zeros(0, dtype=np.int64))

    def cut(self, row: int, length: int, *, from_left: bool) -> Ids:
        whole: Ids = self.ids[self.place[row]]
        return whole[len(whole) - length :] if from_left else whole[:length]
