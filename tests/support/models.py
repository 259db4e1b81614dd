"""Tiny random models, made where they are needed: the real loading code without a download."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

WORDS = (
    "the a an of to and in is it on for with as this that from by at or be are was archive backup restore document "
    "server user token key file folder page scan query red blue green one two three night day old new fast slow"
).split()


def save_tokenizer(folder: Path, *, max_length: int = 16, padding_side: str = "right") -> Any:
    """A WordPiece tokenizer that knows a few words and every ASCII letter."""
    from transformers import BertTokenizerFast

    letters = [chr(code) for code in range(ord("a"), ord("z") + 1)] + [str(digit) for digit in range(10)]
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS, *letters, *(f"##{each}" for each in letters)]
    vocabulary += list(".,!?'-:;")
    vocabulary = list(dict.fromkeys(vocabulary))
    (folder / "vocab.txt").write_text("\n".join(vocabulary) + "\n", encoding="utf-8")
    tokenizer = BertTokenizerFast(
        vocab={word: number for number, word in enumerate(vocabulary)},
        do_lower_case=True,
        model_max_length=max_length,
        padding_side=padding_side,
    )
    tokenizer.save_pretrained(folder)
    return tokenizer


def save_tiny_model(
    folder: Path,
    *,
    pooling: str = "mean",
    normalize: bool = True,
    max_length: int = 16,
    padding_side: str = "right",
    prompts: dict[str, str] | None = None,
    include_prompt: bool = True,
    dense: int | None = None,
    seed: int = 0,
) -> Path:
    """A sentence-transformers folder with a random BERT of 2 layers and 32 dimensions."""
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.base.modules import Dense, Normalize, Transformer
    from sentence_transformers.sentence_transformer.modules import Pooling
    from transformers import BertConfig, BertModel

    folder.mkdir(parents=True, exist_ok=True)
    base = folder.parent / f"{folder.name}-base"
    base.mkdir()
    tokenizer = save_tokenizer(base, max_length=max_length, padding_side=padding_side)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        config = BertConfig(
            vocab_size=len(tokenizer),
            hidden_size=32,
            num_hidden_layers=2,
            num_attention_heads=2,
            intermediate_size=64,
            max_position_embeddings=64,
        )
        BertModel(config).save_pretrained(base)
        modules: list[Any] = [
            Transformer(str(base)),
            Pooling(32, pooling_mode=pooling, include_prompt=include_prompt),
        ]
        if dense is not None:
            modules.append(Dense(in_features=32, out_features=dense))
    if normalize:
        modules.append(Normalize())
    model = SentenceTransformer(modules=modules, prompts=prompts, device="cpu")
    model.save(str(folder), create_model_card=False)
    return folder


def save_tiny_decoder(folder: Path, *, pooling: str = "mean", seed: int = 0) -> Path:
    """A sentence-transformers folder with a random Llama: rotary positions, padding on the left, no special tokens."""
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.base.modules import Transformer
    from sentence_transformers.sentence_transformer.modules import Pooling
    from tokenizers import Regex, Tokenizer, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaModel, PreTrainedTokenizerFast

    folder.mkdir(parents=True, exist_ok=True)
    base = folder.parent / f"{folder.name}-base"
    base.mkdir()
    letters = [chr(code) for code in range(ord("a"), ord("z") + 1)]
    vocabulary = dict.fromkeys(["[PAD]", "[UNK]", *WORDS, *letters])
    words = Tokenizer(models.WordLevel({word: place for place, word in enumerate(vocabulary)}, unk_token="[UNK]"))
    words.pre_tokenizer = pre_tokenizers.Split(Regex(r"\w+"), "removed", invert=True)
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=words, pad_token="[PAD]", unk_token="[UNK]", padding_side="left", model_max_length=16
    )
    tokenizer.save_pretrained(base)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        config = LlamaConfig(
            vocab_size=len(vocabulary),
            hidden_size=32,
            intermediate_size=64,
            num_hidden_layers=2,
            num_attention_heads=2,
            num_key_value_heads=2,
            max_position_embeddings=64,
        )
        LlamaModel(config).save_pretrained(base)
        modules: list[Any] = [Transformer(str(base)), Pooling(32, pooling_mode=pooling)]
        SentenceTransformer(modules=modules, device="cpu").save(str(folder), create_model_card=False)
    return folder


def edit_json(file: Path, **values: Any) -> None:
    """Changes keys of a JSON file."""
    content = json.loads(file.read_text(encoding="utf-8"))
    file.write_text(json.dumps({**content, **values}), encoding="utf-8")
