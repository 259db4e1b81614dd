"""Texts as token ids, and batches of them, for every backend that runs a transformer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from embeval.encoders.batching import Lengths, Rows
from embeval.errors import ModelError

TOKENIZE_AT_ONCE = 512
"""Texts per call of the tokenizer: its Python lists are dropped after each, so memory doesn't grow with the corpus."""
UNLIMITED = 1_000_000
"""Tokenizers without a limit carry an enormous ``model_max_length``; above this it means "none"."""


@dataclass(frozen=True)
class Tokens:
    """Token ids of all texts end to end; text i is ``ids[start[i] : start[i] + lengths[i]]``."""

    ids: npt.NDArray[np.int32]
    types: npt.NDArray[np.int32] | None
    start: Lengths
    lengths: Lengths
    lost: Lengths | None
    unknown: Lengths | None

    def key(self, row: int) -> bytes:
        """The token ids of a text."""
        return self.ids[self.start[row] : self.start[row] + self.lengths[row]].tobytes()


def limit_of(value: Any) -> int | None:
    """A declared limit in tokens; None where it stands for "none"."""
    return None if value is None or value > UNLIMITED else int(value)


def declared_limit(value: Any, *, fewest: int, name: str) -> int | None:
    """A limit that a model's files declare; None where it stands for "none".

    Raises ``ModelError`` for what is no limit, and for one that leaves nothing of a text but special tokens.
    """
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if (is_number and value > UNLIMITED) or value is None:
        return None
    if not is_number or not value >= fewest or value != int(value):
        raise ModelError(
            f"Model {name!r} declares that it keeps {value!r} tokens of a text, where a whole number from {fewest} "
            "belongs.\nMend its files, or say max_seq_length."
        )
    return int(value)


def choose_limit(
    tokenizer: Any, *, asked: int | None, positions: int | None, name: str, pair: bool = False
) -> tuple[int | None, list[str]]:
    """(tokens to keep of a text, remarks): what was asked for or declared, within what the model has positions for.

    Longer texts would make the model fail, or worse. With ``pair`` it is the limit of two texts together, of which each
    has one token at least. Raises ``ModelError`` where what is asked for can't be.
    """
    fewest = tokenizer.num_special_tokens_to_add(pair=pair) + (2 if pair else 1)
    if asked is not None and (asked < fewest or (positions is not None and asked > positions)):
        most = f" to {positions}" if positions is not None else " or more"
        raise ModelError(f"Model {name!r} takes {fewest}{most} tokens, so max_seq_length can't be {asked}.")
    if positions is not None and positions < fewest:
        raise ModelError(f"Model {name!r} has positions for {positions} tokens, and a text takes {fewest} at least.")
    limit = asked if asked is not None else declared_limit(tokenizer.model_max_length, fewest=fewest, name=name)
    if positions is not None and (limit is None or limit > positions):
        declares = f"The model declares {limit} tokens but has positions for {positions}: cut to {positions}."
        return positions, [declares] if limit is not None else []
    return limit, []


def tokenize(tokenizer: Any, texts: Sequence[str], limit: int | None) -> Tokens:
    """The texts cut to ``limit`` tokens by a fast tokenizer of transformers, with what each lost."""
    ids: list[npt.NDArray[np.int32]] = []
    types: list[npt.NDArray[np.int32]] = []
    lost: list[int] = []
    unknown: list[int] = []
    special = tokenizer.num_special_tokens_to_add(pair=False)
    # Some tokenizers say "unknown" with a token that has another use; then nothing can be told from it.
    others = (tokenizer.pad_token_id, tokenizer.eos_token_id, tokenizer.bos_token_id, tokenizer.cls_token_id)
    unknown_id = tokenizer.unk_token_id if tokenizer.unk_token_id not in others else None
    for start in range(0, len(texts), TOKENIZE_AT_ONCE):
        block = list(texts[start : start + TOKENIZE_AT_ONCE])
        encoded = tokenizer(
            [whole(text) for text in block],
            truncation="longest_first" if limit is not None else False,
            max_length=limit,
            return_overflowing_tokens=limit is not None,
            padding=False,
            verbose=False,
        )
        owner = encoded.get("overflow_to_sample_mapping", range(len(block)))
        cut = [0] * len(block)
        seen = -1
        for row, text in enumerate(owner):
            if text != seen:  # the first row of a text is what the model sees, the rest was cut off
                seen = text
                ids.append(np.array(encoded["input_ids"][row], dtype=np.int32))
                unknown.append(int((ids[-1] == unknown_id).sum()) if unknown_id is not None else 0)
                if "token_type_ids" in encoded:
                    types.append(np.array(encoded["token_type_ids"][row], dtype=np.int32))
            else:
                cut[text] += len(encoded["input_ids"][row]) - special
        lost += cut
    lengths = np.array([len(row) for row in ids], dtype=np.int64)
    return Tokens(
        ids=np.concatenate(ids) if ids else np.zeros(0, dtype=np.int32),
        types=np.concatenate(types) if types else None,
        start=np.cumsum(lengths) - lengths,
        lengths=lengths,
        lost=np.array(lost, dtype=np.int64),
        unknown=np.array(unknown, dtype=np.int64) if unknown_id is not None else None,
    )


def whole(text: str) -> str:
    r"""The text with U+FFFD in the place of each half of a character that has lost its other half.

    JSON can hold such halves ("\ud83d" alone); no tokenizer takes them.
    """
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def pad(tokenizer: Any, tokens: Tokens, rows: Rows, *, left: bool | None) -> dict[str, npt.NDArray[np.int64]]:
    """``input_ids``, ``attention_mask`` and perhaps ``token_type_ids``, int64 [rows, longest of them]."""
    width = int(tokens.lengths[rows].max())
    ids = np.full((len(rows), width), tokenizer.pad_token_id or 0, dtype=np.int64)
    mask = np.zeros((len(rows), width), dtype=np.int64)
    types = np.full((len(rows), width), tokenizer.pad_token_type_id, dtype=np.int64)
    for place, row in enumerate(rows):
        length, start = int(tokens.lengths[row]), int(tokens.start[row])
        where = slice(width - length, width) if left else slice(0, length)
        ids[place, where] = tokens.ids[start : start + length]
        mask[place, where] = 1
        if tokens.types is not None:
            types[place, where] = tokens.types[start : start + length]
    features = {"input_ids": ids, "attention_mask": mask}
    if tokens.types is not None:
        features["token_type_ids"] = types
    return features


def pads_left(tokenizer: Any, positions: int | None) -> bool | None:
    """Whether texts are padded on the left; None where they can't be.

    Where positions are learned one by one they are counted from the left end: padding there would move a text by as
    much as its batch is wide. Then it is on the right, whatever the tokenizer says.
    """
    return None if positions is not None else bool(tokenizer.padding_side == "left")


def refuse_no_vocabulary(tokenizer: Any, name: str, *, n_vectors: int | None) -> None:
    """Raises ``ModelError`` where a tokenizer knows no words, or gives ids beyond the model's ``n_vectors``."""
    n_tokens = len(tokenizer)
    if n_tokens <= len(set(tokenizer.all_special_ids)):
        raise ModelError(
            f"Model {name!r}: its tokenizer has no vocabulary, only {n_tokens} special tokens.\n"
            "Files such as tokenizer.json are missing in its folder."
        )
    if n_vectors is not None and n_tokens > n_vectors:
        raise ModelError(
            f"Model {name!r}: its tokenizer has {n_tokens} tokens, but the model has vectors for {n_vectors} only.\n"
            "The tokenizer belongs to another model."
        )


def ended_with(tokens: Tokens, end: int, limit: int | None) -> Tokens:
    """The texts with the token ``end`` last, where it is not yet; one that is full loses its last token for it."""
    rows = [tokens.ids[start : start + length] for start, length in zip(tokens.start, tokens.lengths, strict=True)]
    lost = None if tokens.lost is None else tokens.lost.copy()
    ended = []
    for row, ids in enumerate(rows):
        if not len(ids) or ids[-1] == end:
            ended.append(ids)
            continue
        if limit is not None and len(ids) >= limit:
            ids = ids[: limit - 1]
            if lost is not None:
                lost[row] += 1
        ended.append(np.append(ids, np.int32(end)))
    lengths = np.array([len(ids) for ids in ended], dtype=np.int64)
    return Tokens(
        ids=np.concatenate(ended) if ended else tokens.ids,
        types=None,
        start=np.cumsum(lengths) - lengths,
        lengths=lengths,
        lost=lost,
        unknown=tokens.unknown,
    )
