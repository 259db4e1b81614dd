"""Small tokenizers of the kinds that families of language models have, each with that family's special tokens."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.support.words import WORDS

LETTERS = "abcdefghijklmnopqrstuvwxyz"
MARKS = ".,!?'-:;"
BPE_CORPUS = " ".join(WORDS * 3)
"""What the merges of byte pairs are learned from."""


def save_byte_level(folder: Path, *, add_prefix_space: bool = False) -> Any:
    """RoBERTa's: byte pairs, ``<s> </s>`` around a text, padding id 1, ``<mask>`` last and eating the space before."""
    from transformers import AddedToken, RobertaTokenizer

    vocabulary, merges = _byte_pairs(["<s>", "<pad>", "</s>", "<unk>"], last="<mask>")
    tokenizer = RobertaTokenizer(
        vocab=vocabulary,
        merges=merges,
        mask_token=AddedToken("<mask>", lstrip=True, special=True),
        add_prefix_space=add_prefix_space,
    )
    tokenizer.save_pretrained(folder)
    return tokenizer


def save_byte_level_brackets(folder: Path) -> Any:
    """ModernBERT's: byte pairs, ``[CLS] [SEP]`` around a text, no token for what is unknown as none is."""
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    special = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    vocabulary, merges = _byte_pairs(list(special.values()), last="[MASK]")
    pairs = Tokenizer(models.BPE(vocabulary, merges))
    pairs.normalizer = normalizers.NFC()
    pairs.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    pairs.decoder = decoders.ByteLevel()
    pairs.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B [SEP]",
        special_tokens=[(name, vocabulary[name]) for name in ("[CLS]", "[SEP]")],
    )
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=pairs, mask_token="[MASK]", **special)
    tokenizer.save_pretrained(folder)
    return tokenizer


def _byte_pairs(first: list[str], *, last: str) -> tuple[dict[str, int], list[tuple[str, str]]]:
    """(vocabulary, merges) learned from a few words."""
    import json

    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    pairs = Tokenizer(models.BPE())
    pairs.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    trainer = trainers.BpeTrainer(
        vocab_size=len(first) + len(alphabet) + 60, special_tokens=first, initial_alphabet=alphabet, show_progress=False
    )
    pairs.train_from_iterator([BPE_CORPUS], trainer)
    model = json.loads(pairs.to_str())["model"]
    vocabulary = {**model["vocab"], last: len(model["vocab"])}
    return vocabulary, [tuple(pair) for pair in model["merges"]]


def save_albert(folder: Path) -> Any:
    """ALBERT's: Unigram over lower-cased pieces without accents, ``[CLS] [SEP]`` around a text."""
    from transformers import AlbertTokenizer

    tokenizer = AlbertTokenizer(vocab=_pieces(["<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]"]))
    tokenizer.save_pretrained(folder)
    return tokenizer


def save_deberta(folder: Path) -> Any:
    """DeBERTa's: Unigram whose pieces begin with the space before a word, ``[CLS] [SEP]`` around a text."""
    from transformers import DebertaV2Tokenizer

    vocabulary = _pieces(["[PAD]", "[CLS]", "[SEP]", "[UNK]", "[MASK]"])
    tokenizer = DebertaV2Tokenizer(vocab=vocabulary, unk_id=3)
    tokenizer.save_pretrained(folder)
    return tokenizer


def save_xlm_roberta(folder: Path) -> Any:
    """XLM-R's: Unigram, ``<s> </s>`` around a text, padding id 1, ``<mask>`` last."""
    from transformers import XLMRobertaTokenizer

    vocabulary = [*_pieces(["<s>", "<pad>", "</s>", "<unk>"]), ("<mask>", 0.0)]
    tokenizer = XLMRobertaTokenizer(vocab=vocabulary)
    tokenizer.save_pretrained(folder)
    return tokenizer


def _pieces(special: list[str]) -> list[tuple[str, float]]:
    """Unigram pieces with their scores: whole words, endings, letters."""
    words = [(f"\u2581{word}", -2.0) for word in WORDS]
    endings = [(ending, -3.0) for ending in ("ing", "ed", "er", "s", "up")]
    letters = [(letter, -6.0) for letter in [*LETTERS, *MARKS, "\u2581"] if letter not in dict(endings)]
    return [*((name, 0.0) for name in special), *dict([*words, *endings, *letters]).items()]
