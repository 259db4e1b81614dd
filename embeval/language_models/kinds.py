"""What kind of language model a folder holds, by its configuration: nothing is loaded.

A masked model gives p(token | all others), a causal one p(token | those before), and ELECTRA's discriminator says of
each token whether it was replaced. These are different things, and a number of one kind never stands for another's.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from embeval.core.protocols import LanguageModelKind as Kind
from embeval.core.specs import ModelSpec
from embeval.encoders import modules
from embeval.errors import EvaluationError

MASKED = ("ForMaskedLM", "ForPreTraining", "WithLMHeadModel", "ModelForMaskedLM")
"""Ends of architectures of transformers with a head for masked tokens."""
CAUSAL = ("ForCausalLM", "LMHeadModel", "DoubleHeadsModel")
"""The same for a head for the next token."""
SEQUENCES = ("ForConditionalGeneration",)
ELECTRA, XLNET = "electra", "xlnet"

WHY_NOT: Mapping[str, str] = {
    "permuted": "XLNet is trained on orders of prediction and not on masked tokens, so what it gives for a token under "
    "a mask is no masked-language-model probability",
    "sequences": "an encoder-decoder writes a text after having read another; it has neither masked tokens of its "
    "own kind nor a likelihood without an input",
    "none": "its files hold no language-model head: an embedding model usually drops it when it is trained. Evaluate "
    "the checkpoint that it was trained from, or use tasks for embeddings",
    "headless": "its graph was exported without the language-model head, and gives vectors. Export the model once more "
    "with embeval export MODEL --lm-head",
    "masked": "it is a masked language model, which sees the words on both sides of each word",
    "causal": "it is a causal language model, which sees only the words before each word",
    "replaced": "ELECTRA's discriminator tells replaced tokens from kept ones and gives no probabilities of words",
}
"""What stands in the way, by kind."""
ADVICE: Mapping[str, str] = {
    "masked": "Its rulers are the tasks masked_lm, pseudo_likelihood and minimal_pairs.",
    "causal": "A decoder's own likelihood is used by the task minimal_pairs.",
    "replaced": "Its own ruler is the task replaced_tokens.",
}


def kind_of(spec: ModelSpec, folder: Path | None) -> str:
    """``masked``, ``causal``, ``replaced``, or the key of ``WHY_NOT`` that says why it is no language model."""
    if folder is None:
        return "none"
    config_file = modules.transformer_folder(folder, spec) / "config.json"
    if not config_file.is_file():
        return "none"
    return kind_by(modules.json_object(config_file))


def kind_by(config: Mapping[str, Any]) -> str:
    """The same from the content of ``config.json``."""
    model_type = config.get("model_type")
    architectures = config.get("architectures")
    names = [str(each) for each in architectures] if isinstance(architectures, list) else []
    if model_type == XLNET:
        return "permuted"
    if model_type == ELECTRA and any(name.endswith("ForPreTraining") for name in names):
        return "replaced"
    for kind, ends in (("sequences", SEQUENCES), ("causal", CAUSAL), ("masked", MASKED)):
        if any(name.endswith(ends) for name in names):
            return kind
    return "none"


def checked(kind: str, wanted: tuple[Kind, ...], *, model: str, task: str) -> Kind:
    """The kind. Raises ``EvaluationError`` where a task takes no models of that kind, and says why it matters."""
    for each in wanted:
        if kind == each:
            return each
    advice = ADVICE.get(kind)
    raise EvaluationError(
        f"{model} can't be evaluated on the task {task!r}: {WHY_NOT[kind]}." + (f"\n{advice}" if advice else "")
    )
