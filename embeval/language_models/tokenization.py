"""Texts as tokens that are to be scored: ids, words they belong to, places in the text, and which are no content."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from embeval.core import strict_json
from embeval.encoders import modules, tokens
from embeval.encoders.backends.onnx import load_tokenizer, position_limit
from embeval.encoders.locate import Located
from embeval.errors import ModelError
from embeval.language_models.variants import Ids

VOCABULARIES = ("vocab.txt", "vocab.json", "merges.txt", "spiece.model", "sentencepiece.bpe.model", "tokenizer.model")
"""Files of tokenizers without ``tokenizer.json``."""
NOT_ITS_TOKENS = ("truncation", "padding")
"""Parts of ``tokenizer.json`` that say nothing of how a text is cut into tokens."""

OVERRIDING = {
    "do_lower_case": None,
    "strip_accents": None,
    "keep_accents": None,
    "tokenize_chinese_chars": True,
    "add_prefix_space": None,
    "split_by_punct": False,
}
"""Settings of ``tokenizer_config.json`` that transformers puts in the place of what ``tokenizer.json`` says, and the
value that leaves all as it is; None where that hangs on the kind of tokenizer."""


@dataclass(frozen=True)
class Text:
    """One text in tokens, without what the tokenizer puts around it."""

    ids: Ids
    """int32 [n]: token ids."""
    words: Ids
    """int32 [n]: number of the word, as the tokenizer cuts words, that each token is a part of; not decreasing."""
    begins: Ids
    """int32 [n]: place of the first character of each token in the text."""
    ends: Ids
    """int32 [n]: place behind its last character."""
    scored: npt.NDArray[np.bool_]
    """bool [n]: whether it is content. A special token that stands in the text as written is not."""
    n_unknown: int
    """Tokens that stand for what the tokenizer doesn't know; they are scored as any other."""

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True)
class Frame:
    """What a tokenizer puts around a text, and its special tokens."""

    before: Ids
    after: Ids
    mask_id: int | None
    """None where the model has no token for a mask."""
    pad_id: int
    begin_id: int | None
    """The token that begins a text for a causal model; None where it has none."""
    special: frozenset[int]
    """Ids that are no content, unknown tokens not among them."""
    n_tokens: int
    """Entries of the vocabulary."""
    unknown_id: int | None = None
    """The token that stands for what the tokenizer doesn't know; None where it knows every text."""

    @classmethod
    def of(cls, tokenizer: Any, name: str) -> Frame:
        """That of a fast tokenizer. Raises ``ModelError`` where a text doesn't stand in one piece."""
        encoded = tokenizer("a", padding=False, truncation=False, return_special_tokens_mask=True)
        ids = np.array(encoded["input_ids"], dtype=np.int32)
        content = np.flatnonzero(np.array(encoded["special_tokens_mask"]) == 0)
        if not len(content):
            raise ModelError(f"Model {name!r}: its tokenizer makes no token of the letter a.")
        unknown = tokenizer.unk_token_id
        special = frozenset(each for each in tokenizer.all_special_ids if each != unknown)
        return cls(
            before=ids[: content[0]],
            after=ids[content[-1] + 1 :],
            mask_id=tokenizer.mask_token_id,
            pad_id=tokenizer.pad_token_id or 0,
            begin_id=tokenizer.bos_token_id,
            special=special,
            n_tokens=len(tokenizer),
            unknown_id=unknown,
        )

    @cached_property
    def words(self) -> Ids:
        """int32 [C]: entries of the vocabulary that may stand for another: all but special tokens and the unknown."""
        without = [*self.special, *([] if self.unknown_id is None else [self.unknown_id])]
        return np.setdiff1d(np.arange(self.n_tokens, dtype=np.int32), np.array(without, dtype=np.int32))

    def around(self, ids: Ids) -> Ids:
        """int32 [T]: a text, or a part of one, as the model sees it."""
        return np.concatenate([self.before, ids, self.after])

    @property
    def n_special(self) -> int:
        """Tokens around a text."""
        return len(self.before) + len(self.after)


def located_tokenizer(located: Located) -> tuple[Any, int | None]:
    """(fast tokenizer, tokens that the model takes) of a model's folder. Raises ``ModelError``."""
    assert located.folder is not None
    spec = located.spec
    folder = modules.transformer_folder(located.folder, spec)
    tokenizer = load_tokenizer(folder, spec)
    limit, _ = tokens.choose_limit(
        tokenizer, asked=spec.max_seq_length, positions=position_limit(folder), name=spec.name
    )
    return tokenizer, limit


def tokenize(tokenizer: Any, frame: Frame, texts: Sequence[str]) -> Iterator[Text]:
    """Each text in tokens, whole: long ones are cut into windows later. ``tokenizer`` is a fast one of transformers."""
    special = np.array(sorted(frame.special), dtype=np.int32)
    for start in range(0, len(texts), tokens.TOKENIZE_AT_ONCE):
        block = [tokens.whole(text) for text in texts[start : start + tokens.TOKENIZE_AT_ONCE]]
        encoded = tokenizer(block, add_special_tokens=False, truncation=False, padding=False, verbose=False)
        for row in range(len(block)):
            encoding = encoded.encodings[row]
            ids = np.array(encoding.ids, dtype=np.int32)
            offsets = np.array(encoding.offsets, dtype=np.int32).reshape(-1, 2)
            yield Text(
                ids=ids,
                words=_words(encoding.word_ids, len(ids)),
                begins=offsets[:, 0],
                ends=offsets[:, 1],
                scored=~np.isin(ids, special),
                n_unknown=int((ids == tokenizer.unk_token_id).sum()) if tokenizer.unk_token_id is not None else 0,
            )


def _words(word_ids: Sequence[int | None], n: int) -> Ids:
    """Numbers of words; a token that is of no word, such as a special one in the text, is a word of its own."""
    numbers = np.zeros(n, dtype=np.int32)
    last, number = object(), -1
    for place, word in enumerate(word_ids):
        if word is None or word != last:
            number += 1
        numbers[place] = number
        last = object() if word is None else word
    return numbers


def digest(folder: Path) -> str | None:
    """``sha256:…`` over what decides how a text is cut into tokens; None where no such file is known.

    ``folder`` is that of the transformer. How texts are padded and cut short is not counted: models with one vocabulary
    and two limits have one tokenizer. Nor is how a version of the library writes the same merges and settings.
    """
    settings = _settings(folder / "tokenizer_config.json")
    if (file := folder / "tokenizer.json").is_file():
        content = _json_object(file)
        if content is None:  # told by whoever loads it
            return None
        whole = {key: value for key, value in content.items() if key not in NOT_ITS_TOKENS}
        if isinstance(model := whole.get("model"), dict):
            whole["model"] = _plain(model)
        return "sha256:" + strict_json.digest({"tokenizer": whole, "settings": settings})
    found = [folder / name for name in VOCABULARIES if (folder / name).is_file()]
    hashes = {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in found}
    return "sha256:" + strict_json.digest({"files": hashes, "settings": settings}) if found else None


def _settings(file: Path) -> dict[str, Any]:
    """Settings that act over ``tokenizer.json``, as far as they aren't what most tokenizers have."""
    content = (_json_object(file) if file.is_file() else None) or {}
    return {name: content[name] for name, usual in OVERRIDING.items() if content.get(name) not in (None, usual)}


def _plain(model: dict[str, Any]) -> dict[str, Any]:
    """A model of tokenizers without what newer versions add or write in another way."""
    kept = {key: value for key, value in model.items() if value is not None and value is not False}
    if isinstance(merges := kept.get("merges"), list):
        kept["merges"] = [" ".join(map(str, pair)) if isinstance(pair, list) else pair for pair in merges]
    return kept


def _json_object(file: Path) -> dict[str, Any] | None:
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    return content if isinstance(content, dict) else None
