"""Tiny random models, made where they are needed: the real loading code without a download."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support import tokenizers
from tests.support.words import WORDS


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


def save_word_tokenizer(folder: Path, *, padding_side: str = "left", end: bool = False) -> Any:
    """A tokenizer of whole words without special tokens around a text; ``end`` gives it an end token."""
    from tokenizers import Regex, Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    letters = [chr(code) for code in range(ord("a"), ord("z") + 1)]
    vocabulary = dict.fromkeys(["[PAD]", "[UNK]", *["[END]"] * end, *WORDS, *letters])
    words = Tokenizer(models.WordLevel({word: place for place, word in enumerate(vocabulary)}, unk_token="[UNK]"))
    words.pre_tokenizer = pre_tokenizers.Split(Regex(r"\w+"), "removed", invert=True)
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=words,
        pad_token="[PAD]",
        unk_token="[UNK]",
        **({"eos_token": "[END]"} if end else {}),
        padding_side=padding_side,
        model_max_length=16,
    )
    tokenizer.save_pretrained(folder)
    return tokenizer


def save_xlnet_tokenizer(folder: Path) -> Any:
    """A tokenizer of whole words with what XLNet has of its own: ``<sep> <cls>`` last, types 0 and 2, padding left."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    vocabulary = {word: place for place, word in enumerate(["<pad>", "<unk>", "<sep>", "<cls>", *WORDS])}
    words = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    words.normalizer = normalizers.Lowercase()
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    words.post_processor = processors.TemplateProcessing(
        single="$A:0 <sep>:0 <cls>:2", special_tokens=[("<sep>", 2), ("<cls>", 3)]
    )
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=words,
        pad_token="<pad>",
        unk_token="<unk>",
        sep_token="<sep>",
        cls_token="<cls>",
        padding_side="left",
        model_max_length=16,
        model_input_names=["input_ids", "token_type_ids", "attention_mask"],
    )
    tokenizer.save_pretrained(folder)
    return tokenizer


HIDDEN = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
T5 = {"d_model": 32, "d_kv": 16, "d_ff": 64, "num_layers": 2, "num_heads": 2, "relative_attention_num_buckets": 8}
SIZES: dict[str, dict[str, Any]] = {
    "albert": {**HIDDEN, "max_position_embeddings": 64, "embedding_size": 16},
    "bert": {**HIDDEN, "max_position_embeddings": 64},
    "deberta-v2": {
        **HIDDEN,
        "max_position_embeddings": 64,
        "relative_attention": True,
        "pos_att_type": ["p2c", "c2p"],
        "position_buckets": 8,
        "position_biased_input": False,
        "norm_rel_ebd": "layer_norm",
        "share_att_key": True,
    },
    "distilbert": {"dim": 32, "n_layers": 2, "n_heads": 2, "hidden_dim": 64, "max_position_embeddings": 64},
    "electra": {**HIDDEN, "max_position_embeddings": 64, "embedding_size": 16},
    "gpt2": {"n_embd": 32, "n_layer": 2, "n_head": 2, "n_positions": 64},
    "llama": {**HIDDEN, "max_position_embeddings": 64, "num_key_value_heads": 1},
    "modernbert": {
        **HIDDEN,
        "num_hidden_layers": 3,
        "max_position_embeddings": 64,
        "local_attention": 4,
        "global_attn_every_n_layers": 3,
    },
    "mpnet": {**HIDDEN, "max_position_embeddings": 64},
    "qwen3": {**HIDDEN, "max_position_embeddings": 64, "num_key_value_heads": 1, "head_dim": 16},
    "roberta": {**HIDDEN, "max_position_embeddings": 64, "type_vocab_size": 1},
    "t5": {**T5, "feed_forward_proj": "relu"},
    "umt5": {**T5, "feed_forward_proj": "gated-gelu"},
    "xlnet": {"d_model": 32, "n_layer": 2, "n_head": 2, "d_inner": 64},
}
"""Type of a model of transformers -> its sizes, each in the words of that type."""
DECODERS = ("gpt2", "llama", "qwen3")
SPREAD = 0.12
"""Weights of the checkpoints: wide enough that attention is far from even, and that positions tell."""


def save_tiny_checkpoint(
    folder: Path, kind: str, *, head: str = "AutoModel", padding_side: str = "left", seed: int = 0, **config: Any
) -> Path:
    """A bare checkpoint of transformers, without a word on pooling: random weights, 2 layers, 32 dimensions.

    ``head`` is the class that it is saved as; ``padding_side`` is that of decoders.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if kind in DECODERS:
        tokenizer = save_word_tokenizer(folder, padding_side=padding_side, end=True)
    else:
        tokenizer = save_xlnet_tokenizer(folder) if kind == "xlnet" else save_tokenizer(folder)
    ids = dict.fromkeys(("bos_token_id", "eos_token_id", "cls_token_id", "sep_token_id"), 2)
    _save_random(folder, kind, head, seed, {"vocab_size": len(tokenizer), "pad_token_id": 0, **ids, **config})
    return folder


def _save_random(
    folder: Path, kind: str, head: str, seed: int, config: dict[str, Any], *, spread: float = SPREAD
) -> None:
    import torch
    import transformers

    sizes = SIZES.get(kind, SIZES["roberta"])  # CamemBERT and XLM-R are RoBERTa by other names
    settings = transformers.CONFIG_MAPPING[kind](**{**sizes, **config})
    generator = torch.Generator().manual_seed(seed)
    with torch.random.fork_rng():
        model = getattr(transformers, head).from_config(settings)
    with torch.no_grad():
        for parameter in model.parameters():
            scale = spread if parameter.ndim > 1 else spread / 2  # norms and biases stay near what they start with
            parameter.add_(torch.randn(parameter.shape, generator=generator) * scale)
    model.save_pretrained(folder)


@dataclass(frozen=True)
class Family:
    """A family of language models."""

    kind: str
    """Its type in transformers."""
    tokenizer: Callable[[Path], Any]
    """Writes a small tokenizer such as it has."""
    head: str = "AutoModelForMaskedLM"
    """The class that it is saved as."""
    config: dict[str, Any] = field(default_factory=dict)
    """Settings beside its sizes."""


def _word_pieces(folder: Path) -> Any:
    return save_tokenizer(folder, max_length=512)


FAMILIES: dict[str, Family] = {
    "albert": Family("albert", tokenizers.save_albert),
    "bert": Family("bert", _word_pieces),
    "camembert": Family("camembert", tokenizers.save_xlm_roberta),
    "deberta": Family("deberta-v2", tokenizers.save_deberta),
    "deberta-new-head": Family("deberta-v2", tokenizers.save_deberta, config={"legacy": False}),
    "distilbert": Family("distilbert", _word_pieces),
    "electra-generator": Family("electra", _word_pieces),
    "modernbert": Family("modernbert", tokenizers.save_byte_level_brackets),
    "mpnet": Family("mpnet", tokenizers.save_xlm_roberta),
    "roberta": Family("roberta", tokenizers.save_byte_level),
    "xlm-roberta": Family("xlm-roberta", tokenizers.save_xlm_roberta),
}
"""Masked language models."""
DISCRIMINATOR = Family("electra", _word_pieces, head="AutoModelForPreTraining")
"""ELECTRA's discriminator, whose tokenizer is that of ``electra-generator``."""


def save_tiny_language_model(
    folder: Path, family: str | Family, *, seed: int = 0, spread: bool = True, **config: Any
) -> Path:
    """A random model of a family with its head and its own kind of tokenizer, 2 layers, 32 dimensions.

    Without ``spread`` it is as transformers makes it: not trained at all, and to be told.
    """
    chosen = FAMILIES[family] if isinstance(family, str) else family
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = chosen.tokenizer(folder)
    names = ("pad_token_id", "bos_token_id", "eos_token_id", "cls_token_id", "sep_token_id")
    ids = {name: value for name in names if (value := getattr(tokenizer, name)) is not None}
    settings = {"vocab_size": len(tokenizer), **ids, **chosen.config, **config}
    _save_random(folder, chosen.kind, chosen.head, seed, settings, spread=SPREAD if spread else 0.0)
    return folder


def save_tiny_cross_encoder(
    folder: Path, kind: str = "bert", *, labels: int = 1, spread: float = 4.0, seed: int = 0, **config: Any
) -> Path:
    """A random cross-encoder, 2 layers and 32 dimensions, whose head is so wide that scores of pairs differ by much."""
    from safetensors.torch import load_file, save_file

    save_tiny_checkpoint(
        folder, kind, head="AutoModelForSequenceClassification", seed=seed, num_labels=labels, **config
    )
    weights = load_file(folder / "model.safetensors")
    for name in weights:
        if name.split(".")[0] in ("classifier", "score", "logits_proj") and name.endswith(("weight", "bias")):
            weights[name] = weights[name] * spread
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


def save_tiny_decoder(folder: Path, *, pooling: str = "mean", seed: int = 0) -> Path:
    """A sentence-transformers folder with a random Llama: rotary positions, padding on the left, no special tokens."""
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.base.modules import Transformer
    from sentence_transformers.sentence_transformer.modules import Pooling
    from transformers import LlamaConfig, LlamaModel

    folder.mkdir(parents=True, exist_ok=True)
    base = folder.parent / f"{folder.name}-base"
    base.mkdir()
    tokenizer = save_word_tokenizer(base)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        config = LlamaConfig(
            vocab_size=len(tokenizer),
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


def save_tiny_static(
    folder: Path,
    *,
    dim: int = 16,
    dtype: str = "float32",
    rows: int | None = None,
    reduced: bool = False,
    seed: int = 0,
    **config: Any,
) -> Path:
    """A Model2Vec folder with random vectors; ``reduced`` to a third of them with a mapping and weights."""
    import numpy as np
    from safetensors.numpy import save_file

    folder.mkdir(parents=True, exist_ok=True)
    n_tokens = len(save_tokenizer(folder))
    (folder / "vocab.txt").unlink()
    random = np.random.default_rng(seed)
    n_rows = rows if rows is not None else n_tokens // 3 if reduced else n_tokens
    vectors = random.standard_normal((n_rows, dim)).astype(np.float32)
    arrays = {"embeddings": (vectors * 40).astype(np.int8) if dtype == "int8" else vectors.astype(dtype)}
    if reduced:
        arrays["mapping"] = random.integers(0, n_rows, n_tokens)
        arrays["weights"] = random.random(n_tokens, dtype=np.float32)
    save_file(arrays, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps({"model_type": "model2vec", **config}), encoding="utf-8")
    return folder


def save_tiny_static_embedding(
    folder: Path,
    *,
    dim: int = 16,
    after: tuple[Any, ...] = (),
    truncation: dict[str, Any] | None = None,
    prompts: dict[str, str] | None = None,
    seed: int = 0,
) -> Path:
    """A sentence-transformers folder with a random StaticEmbedding, and the modules ``after`` it."""
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding
    from tokenizers import Tokenizer

    base = folder.parent / f"{folder.name}-base"
    base.mkdir(parents=True)
    save_tokenizer(base)
    tokenizer = Tokenizer.from_file(str(base / "tokenizer.json"))
    if truncation is not None:
        tokenizer.enable_truncation(**truncation)
    generator = torch.Generator().manual_seed(seed)
    weights = torch.randn(tokenizer.get_vocab_size(), dim, generator=generator)
    modules = [StaticEmbedding(tokenizer, embedding_weights=weights), *after]
    model = SentenceTransformer(modules=modules, prompts=prompts, device="cpu")
    model.save(str(folder), create_model_card=False)
    return folder


def edit_json(file: Path, **values: Any) -> None:
    """Changes keys of a JSON file."""
    content = json.loads(file.read_text(encoding="utf-8"))
    file.write_text(json.dumps({**content, **values}), encoding="utf-8")
