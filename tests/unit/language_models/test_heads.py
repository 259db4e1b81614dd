"""A head that is missing, was never trained, or doesn't belong to its body is refused, by the names of its weights."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from embeval.core.specs import ModelSpec, RuntimeOptions
from embeval.encoders import loading as encoders
from embeval.errors import ModelError
from embeval.language_models import loading
from embeval.language_models.model import LanguageModel
from tests.support.models import (
    DISCRIMINATOR,
    FAMILIES,
    Family,
    edit_json,
    save_tiny_checkpoint,
    save_tiny_language_model,
)

BIASES = {
    "albert": "predictions.bias",
    "deberta-new-head": "lm_predictions.lm_head.bias",
    "distilbert": "vocab_transform.bias",
    "electra-generator": "generator_predictions.LayerNorm.weight",
    "modernbert": "head.norm.weight",
} | dict.fromkeys(("camembert", "mpnet", "roberta", "xlm-roberta"), "lm_head.bias")
"""Family -> a weight of its head that stays at 0 or 1 until it is trained; BERT's for the others."""


def load(folder: Path, **spec: Any) -> LanguageModel:
    """The language model of a folder, of its own kind."""
    located = encoders.resolve(ModelSpec(name=str(folder), **spec))
    kind: Any = loading.known_of(located)[0]
    return loading.load(located, kind, RuntimeOptions(device="cpu"))


def without(folder: Path, pattern: str, **other: Any) -> list[str]:
    """Takes weights out of a checkpoint, and puts others in; names of what was taken."""
    from safetensors.torch import load_file, save_file

    file = folder / "model.safetensors"
    weights = load_file(file)
    taken = [name for name in weights if re.search(pattern, name)]
    kept = {name: value for name, value in weights.items() if name not in taken}
    save_file({**kept, **other}, file, metadata={"format": "pt"})
    return sorted(taken)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_head_as_it_was_made_is_refused(tmp_path: Path, family: str) -> None:
    """What transformers saves right after it made a model at random, in every family."""
    folder = save_tiny_language_model(tmp_path / "model", family, spread=False)
    bias = BIASES.get(family, "cls.predictions.bias")
    with pytest.raises(ModelError, match=rf"never trained: {bias}, .*exactly as they were initialised\.\nIt would"):
        load(folder)


def test_a_body_that_was_given_a_head_is_refused(tmp_path: Path) -> None:
    """A trained body without a head, loaded by transformers with one and saved again: config.json looks right."""
    from transformers import AutoModelForMaskedLM

    folder = save_tiny_checkpoint(tmp_path / "body", "bert")
    AutoModelForMaskedLM.from_pretrained(folder).save_pretrained(folder)
    with pytest.raises(ModelError, match=r"head was never trained: cls\.predictions\.bias, "):
        load(folder)


def test_an_untrained_discriminator_is_refused(tmp_path: Path) -> None:
    """Two biases of exactly 0."""
    folder = save_tiny_language_model(tmp_path / "model", DISCRIMINATOR, spread=False)
    with pytest.raises(ModelError, match=r"never trained: discriminator_predictions\.dense\.bias, "):
        load(folder)


@pytest.mark.parametrize("kind", ["llama", "gpt2"])
def test_what_cannot_be_told_is_not_claimed(tmp_path: Path, kind: str) -> None:
    """A decoder's head is a table without a bias: one at random looks like any other."""
    family = Family(kind, _words, head="AutoModelForCausalLM")
    load(save_tiny_language_model(tmp_path / "model", family, spread=False))


def _words(folder: Path) -> Any:
    from tests.support.models import save_word_tokenizer

    return save_word_tokenizer(folder, end=True)


def test_modernbert_without_a_bias_is_told_by_its_norm(tmp_path: Path) -> None:
    """A norm of exactly 1 in all places; trained a little, it is not."""
    folder = save_tiny_language_model(tmp_path / "new", "modernbert", spread=False, decoder_bias=False)
    with pytest.raises(ModelError, match=r"never trained: head\.norm\.weight are exactly"):
        load(folder)
    load(save_tiny_language_model(tmp_path / "trained", "modernbert", decoder_bias=False))


@pytest.mark.parametrize("family", ["bert", "roberta", "albert", "distilbert", "deberta", "modernbert"])
def test_a_head_that_is_not_in_the_files_is_named(tmp_path: Path, family: str) -> None:
    """config.json says ForMaskedLM, and the weights are those of a body: the head would be random."""
    folder = save_tiny_language_model(tmp_path / "model", family)
    taken = without(folder, r"^(cls|lm_head|predictions|vocab_|head|decoder)\b|^vocab_")
    assert taken
    with pytest.raises(ModelError) as caught:
        load(folder)
    message = str(caught.value)
    assert "model': the language-model head is missing in its files: " in message
    assert " would be random numbers.\nAn embedding model usually drops its head." in message
    assert all(name in message for name in taken[:2])


def test_debertas_own_head_is_named_where_it_is_not_loaded(tmp_path: Path) -> None:
    """DeBERTa's files often hold ``lm_predictions``, and config.json doesn't say so."""
    folder = save_tiny_language_model(tmp_path / "model", "deberta-new-head")
    edit_json(folder / "config.json", legacy=True)
    with pytest.raises(ModelError, match=r'hold another one \(lm_predictions.lm_head.…\), which "legacy": false in'):
        load(folder)


def test_a_decoder_of_another_size_is_refused(tmp_path: Path) -> None:
    """Its own table of words, with fewer rows than the vocabulary."""
    import torch

    folder = save_tiny_language_model(tmp_path / "model", "bert", tie_word_embeddings=False)
    load(folder)
    name = "cls.predictions.decoder.weight"
    assert without(folder, name, **{name: torch.zeros(7, 32)}) == [name]
    with pytest.raises(ModelError, match=r"another shape in its files, such as cls\.predictions\.decoder\.weight"):
        load(folder)


def test_an_untied_decoder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    """config.json says that words in and out have two tables; the file holds one."""
    folder = save_tiny_language_model(tmp_path / "model", "bert")
    edit_json(folder / "config.json", tie_word_embeddings=False)
    with pytest.raises(ModelError, match=r"head is missing in its files: cls\.predictions\.decoder"):
        load(folder)


def test_a_configuration_of_another_family_is_refused(tmp_path: Path) -> None:
    """BERT's weights under RoBERTa's name: nothing fits, which is not called a missing head."""
    folder = save_tiny_language_model(tmp_path / "model", "bert")
    edit_json(folder / "config.json", model_type="roberta", architectures=["RobertaForMaskedLM"])
    with pytest.raises(ModelError, match=r"weights are not in its files, such as .*\nThey would be random numbers"):
        load(folder)


CODE = """
import torch
from transformers import BertConfig, BertForMaskedLM

class OwnConfig(BertConfig):
    model_type = "own_bert"

class OwnForMaskedLM(BertForMaskedLM):
    config_class = OwnConfig

    def forward(self, input_ids=None, **kwargs):
        found = super().forward(input_ids=input_ids, **kwargs)
        found.logits = found.logits + SHIFT
        return found
"""
"""A model with code of its own."""


def remote(folder: Path, shift: str) -> Path:
    """A masked model that brings its own code."""
    save_tiny_language_model(folder, "bert")
    (folder / "modeling_own.py").write_text(CODE.replace("SHIFT", shift), encoding="utf-8")
    classes = {"AutoConfig": "modeling_own.OwnConfig", "AutoModelForMaskedLM": "modeling_own.OwnForMaskedLM"}
    edit_json(folder / "config.json", model_type="own_bert", architectures=["OwnForMaskedLM"], auto_map=classes)
    return folder


def test_code_of_a_model_runs_only_when_it_is_trusted(tmp_path: Path) -> None:
    """Without trust it is told which option there is; with it the model gives what its own code gives."""
    folder = remote(tmp_path / "model", "0.0")
    with pytest.raises(ModelError, match=r"brings code of its own.*\nargs: \{trust_remote_code: true\} runs it"):
        load(folder)
    assert load(folder, args={"trust_remote_code": True}).info.extra == {"remote_code": "trusted"}


def test_a_head_that_needs_more_than_hidden_states_is_refused(tmp_path: Path) -> None:
    """Scores that hang on the tokens themselves, which a head on its own never sees."""
    folder = remote(tmp_path / "model", "input_ids[..., None].float()")
    with pytest.raises(ModelError, match=r"head on its own gives other scores than the whole model\.\nModels of this"):
        load(folder, args={"trust_remote_code": True})
