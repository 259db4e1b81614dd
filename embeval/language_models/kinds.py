"""What kind of language model a folder holds, by its configuration and the names of its weights: nothing is loaded.

A masked model gives p(token | all others), a causal one p(token | those before), and ELECTRA's discriminator says of
each token whether it was replaced. These are different things, and a number of one kind never stands for another's.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from embeval.core.protocols import LanguageModelKind as Kind
from embeval.core.specs import ModelSpec
from embeval.encoders import modules
from embeval.errors import EvaluationError, ModelError

ARCHITECTURES: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("causal", ("ForCausalLM", "LMHeadModel", "DoubleHeadsModel")),
    ("masked", ("ForMaskedLM",)),
    ("sequences", ("ForConditionalGeneration",)),
    (
        "classifier",
        ("ForSequenceClassification", "ForTokenClassification", "ForQuestionAnswering", "ForMultipleChoice"),
    ),
)
"""Kind -> ends of names of architectures of transformers."""
PRETRAINING, WITH_HEAD = "ForPreTraining", "WithLMHeadModel"
"""Ends that say different things by the type of the model."""
MASKED_AND_MORE = ("albert", "bert", "big_bird", "ernie", "fnet", "megatron-bert", "mobilebert", "nezha")
"""Types whose ``ForPreTraining`` has a head for masked tokens beside one for pairs of sentences."""
MASKED_OR_CAUSAL = ("flaubert", "xlm")
"""Types whose ``WithLMHeadModel`` is what ``causal`` says."""
BOTH_WAYS = (
    "bert big_bird camembert data2vec-text electra ernie megatron-bert rembert roberta roberta-prelayernorm roformer "
    "xlm-roberta xlm-roberta-xl xmod"
).split()
"""Types that see both sides of a word unless ``is_decoder`` is set."""
ELECTRA, XLNET = "electra", "xlnet"
HEADS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("replaced", ("discriminator_predictions.",)),
    ("classifier", ("classifier.", "qa_outputs.", "score.")),
    (
        "masked",
        (
            "cls.predictions.transform.",
            "generator_predictions.",
            "head.dense.",
            "lm_head.dense.",
            "lm_predictions.lm_head.",
            "predictions.dense.",
            "vocab_transform.",
        ),
    ),
    ("causal", ("lm_head.weight",)),
)
"""Kind -> beginnings of names of the weights of its head, for checkpoints whose configuration doesn't tell."""

WHY_NOT: Mapping[str, str] = {
    "permuted": "XLNet is trained on orders of prediction and not on masked tokens, so what it gives for a token under "
    "a mask is no masked-language-model probability",
    "sequences": "an encoder-decoder writes a text after having read another; it has neither masked tokens of its "
    "own kind nor a likelihood without an input",
    "none": "its files hold no language-model head: an embedding model usually drops it when it is trained. Evaluate "
    "the checkpoint that it was trained from, or use tasks for embeddings",
    "headless": "its graph was exported without the language-model head, and gives vectors. Export the model once more "
    "with embeval export MODEL --lm-head",
    "classifier": "its head judges texts and gives no probabilities of words, as that of a cross-encoder. Evaluate the "
    "checkpoint that it was trained from",
    "one_sided": "its config.json names a masked language model and sets is_decoder, with which it would see only the "
    "words before a mask. Take is_decoder out if it was trained without",
    "two_sided": "its config.json names a causal language model and doesn't set is_decoder, without which it would see "
    "the words that it is to predict. Set is_decoder if it was trained so",
    "several": "its config.json names architectures of several kinds. Leave the one that its weights were trained as",
    "unknown_head": "its head is of a kind that is not known here. If it is a masked language model, save it as such "
    "(AutoModelForMaskedLM)",
    "masked": "it is a masked language model, which guesses the word under a mask and doesn't say whether a word was "
    "replaced",
    "causal": "it is a causal language model, which sees only the words before each word",
    "replaced": "ELECTRA's discriminator tells replaced tokens from kept ones and gives no probabilities of words",
    "hashing": "it counts words and holds no model of language. Give a language model",
    "static": "it is a table with one vector per token, without a head that gives probabilities of words",
    "endpoint": "its endpoint gives vectors and no probabilities of words. Give a model whose files are here",
    "vectors": "it is a file of vectors, which no probability of a word can be asked of. Give the model itself",
    "ranks": "it ranks documents and gives no probabilities of words. Give a language model",
    "systems": "it is several systems whose rankings become one, and no language model. Give a language model",
    "backend": "its backend runs no models with a language-model head. Use the backend transformers or onnx",
}
"""What stands in the way, by kind."""
ADVICE: Mapping[str, str] = {
    "masked": "Its rulers are the tasks masked_lm, pseudo_likelihood and minimal_pairs.",
    "causal": "A decoder's own likelihood is used by the task minimal_pairs.",
    "replaced": "Its own ruler is the task replaced_tokens.",
}
WITHOUT_A_HEAD = {
    "bm25": "ranks",
    "hashing": "hashing",
    "hybrid": "systems",
    "openai": "endpoint",
    "precomputed": "vectors",
    "ranking": "ranks",
    "static": "static",
}
"""Encoder backend -> the key of ``WHY_NOT`` for all its models."""
LONGEST_HEADER = 100_000_000
"""Bytes of the header of a safetensors file, as the format allows."""


def of_backend(backend: str) -> str:
    """The key of ``WHY_NOT`` for models of an encoder backend that no language model backend runs."""
    return WITHOUT_A_HEAD.get(backend, "backend")


def kind_of(spec: ModelSpec, folder: Path | None) -> str:
    """``masked``, ``causal``, ``replaced``, or the key of ``WHY_NOT`` that says why it is no language model."""
    if folder is None:
        return "none"
    transformer = modules.transformer_folder(folder, spec)
    config_file = transformer / "config.json"
    if not config_file.is_file():
        return "none"
    config = modules.json_object(config_file)
    found = kind_by(config)
    return kind_by(config, weight_names(transformer)) if found == "none" else found


def kind_by(config: Mapping[str, Any], weights: Collection[str] = ()) -> str:
    """The same from the content of ``config.json`` and, where that names no head, from the names of the weights."""
    model_type, listed = config.get("model_type"), config.get("architectures")
    names = [str(each) for each in listed] if isinstance(listed, list) else []
    if model_type == XLNET:
        return "permuted"
    if config.get("is_encoder_decoder") is True:
        return "sequences"
    kinds = {kind for name in names if (kind := _of_architecture(name, config)) is not None}
    if not kinds:
        kinds = {kind for kind in [_of_weights(weights)] if kind is not None}
    if len(kinds) > 1:
        return "several"
    found = next(iter(kinds), "none")
    is_decoder = config.get("is_decoder") is True
    if found == "masked" and is_decoder:
        return "one_sided"
    if found == "causal" and model_type in BOTH_WAYS and not is_decoder:
        return "two_sided"
    return found


def _of_architecture(name: str, config: Mapping[str, Any]) -> str | None:
    model_type = config.get("model_type")
    if name.endswith(PRETRAINING):
        if model_type == ELECTRA:
            return "replaced"
        return "masked" if model_type in MASKED_AND_MORE else "unknown_head"
    if name.endswith(WITH_HEAD) and model_type in MASKED_OR_CAUSAL:
        return "causal" if config.get("causal") is True else "masked"
    return next((kind for kind, ends in ARCHITECTURES if name.endswith(ends)), None)


def _of_weights(names: Collection[str]) -> str | None:
    return next((kind for kind, beginnings in HEADS if any(name.startswith(beginnings) for name in names)), None)


def weight_names(folder: Path) -> tuple[str, ...]:
    """Names of the weights in the safetensors of a folder, from their header or index; none where they can't be read.

    What is wrong with a file is told by whoever loads it.
    """
    try:
        if (index := folder / "model.safetensors.index.json").is_file():
            return tuple(json.loads(index.read_text(encoding="utf-8"))["weight_map"])
        with (folder / "model.safetensors").open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            header = json.loads(file.read(length)) if length <= LONGEST_HEADER else {}
        return tuple(name for name in header if name != "__metadata__")
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return ()


def checked(kind: str, wanted: tuple[Kind, ...], *, model: str, task: str) -> Kind:
    """The kind. Raises ``EvaluationError`` where a task takes no models of that kind, and says why it matters."""
    for each in wanted:
        if kind == each:
            return each
    advice = ADVICE.get(kind)
    raise EvaluationError(
        f"{model} can't be evaluated on the task {task!r}: {WHY_NOT[kind]}." + (f"\n{advice}" if advice else "")
    )


def refuse_no_mask(kind: Kind, mask_id: int | None, name: str) -> None:
    """Raises ``ModelError`` for a masked model whose tokenizer has no token for a mask."""
    if kind == "masked" and mask_id is None:
        raise ModelError(
            f"Model {name!r} is a masked language model, but its tokenizer names no mask token.\n"
            "Nothing can be masked. Set mask_token in tokenizer_config.json to the one that it was trained with."
        )
