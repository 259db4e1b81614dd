"""What is no language model of the kind wanted is refused by what it is, why that matters, and what to do instead."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from embeval.core.specs import DatasetRef, ModelSpec, RuntimeOptions, TaskSpec
from embeval.encoders import loading as encoders
from embeval.errors import EvaluationError, ModelError
from embeval.language_models import kinds, loading
from embeval.tasks import TASK_TYPES
from tests.support.data import write_pairs
from tests.support.models import (
    DISCRIMINATOR,
    edit_json,
    save_tiny_checkpoint,
    save_tiny_cross_encoder,
    save_tiny_language_model,
    save_tiny_model,
    save_tiny_static,
)


def refusal(spec: ModelSpec, task_type: str = "pseudo_likelihood") -> str:
    """What a model is told that is no masked one, when a task is bound to it; nothing is loaded."""
    located = encoders.resolve(spec)
    task: Any = TASK_TYPES.get(task_type).bind(
        TaskSpec(name="held-out", type=task_type, dataset=DatasetRef(path="a.txt")), root=Path()
    )
    with pytest.raises(EvaluationError) as caught:
        task.fitted(*loading.known_of(located), located.spec)
    message = str(caught.value)
    assert 1 <= len(message.splitlines()) <= 3
    assert message.startswith(f"{located.spec.label} can't be evaluated on the task 'held-out': ")
    return message


def load(folder: Path) -> None:
    """Loads a masked model."""
    located = encoders.resolve(ModelSpec(name=str(folder)))
    assert loading.known_of(located)[0] == "masked"
    loading.load(located, "masked", RuntimeOptions(device="cpu"))


SAVED: dict[str, tuple[str, str, str]] = {
    "xlnet": ("xlnet", "AutoModelForCausalLM", "XLNet is trained on orders of prediction and not on masked tokens"),
    "t5": ("t5", "AutoModelForSeq2SeqLM", "an encoder-decoder writes a text after having read another"),
    "t5-body": ("t5", "AutoModel", "an encoder-decoder writes a text after having read another"),
    "gpt2": ("gpt2", "AutoModelForCausalLM", "it is a causal language model, which sees only the words before each"),
    "llama": ("llama", "AutoModelForCausalLM", "A decoder's own likelihood is used by the task minimal_pairs."),
    "bert-body": ("bert", "AutoModel", "its files hold no language-model head: an embedding model usually drops it"),
    "cross-encoder": ("bert", "AutoModelForSequenceClassification", "its head judges texts and gives no probabilities"),
    "ner": ("distilbert", "AutoModelForTokenClassification", "its head judges texts and gives no probabilities"),
    "bert-lm": ("bert", "AutoModelForCausalLM", "doesn't set is_decoder, without which it would see the words that it"),
}
"""Name -> (type, class that it is saved as, what is said)."""


@pytest.mark.parametrize("name", SAVED)
def test_checkpoints_of_another_kind(tmp_path: Path, name: str) -> None:
    """As transformers saves them."""
    kind, head, said = SAVED[name]
    folder = save_tiny_checkpoint(tmp_path / name, kind, head=head)
    assert said in refusal(ModelSpec(name=str(folder)))


def test_electra_is_sent_to_its_own_ruler(tmp_path: Path) -> None:
    """Its generator is a masked model and fits."""
    folder = save_tiny_language_model(tmp_path / "electra", DISCRIMINATOR)
    message = refusal(ModelSpec(name=str(folder)))
    assert (
        "ELECTRA's discriminator tells replaced tokens from kept ones and gives no probabilities of words." in message
    )
    assert message.endswith("\nIts own ruler is the task replaced_tokens.")
    load(save_tiny_language_model(tmp_path / "generator", "electra-generator"))


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        (ModelSpec(name="hashing", backend="hashing"), "it counts words and holds no model of language."),
        (ModelSpec(name="bm25", backend="bm25"), "it ranks documents and gives no probabilities of words."),
        (ModelSpec(name="hashing+bm25", backend="hybrid"), "it is several systems whose rankings become one"),
        (ModelSpec(name="demo"), "its files hold no language-model head: an embedding model usually drops it"),
    ],
    ids=lambda value: value.name if isinstance(value, ModelSpec) else "",
)
def test_systems_without_a_language_model(spec: ModelSpec, said: str) -> None:
    """Baselines, rankers, and the demo model, whose config.json names BertModel."""
    assert said in refusal(spec)


def test_files_and_endpoints(tmp_path: Path) -> None:
    """A table of vectors, a file of vectors, a sentence-transformers folder, an endpoint."""
    static = save_tiny_static(tmp_path / "static")
    assert "it is a table with one vector per token" in refusal(ModelSpec(name=str(static), backend="static"))
    write_pairs(tmp_path / "v.jsonl", [])
    assert kinds.of_backend("precomputed") == "vectors"
    assert kinds.of_backend("ranking") == "ranks"
    assert kinds.of_backend("somebody's") == "backend"
    assert "its files hold no language-model head" in refusal(ModelSpec(name=str(save_tiny_model(tmp_path / "st"))))
    endpoint = ModelSpec(name="m", backend="openai", args={"base_url": "http://localhost:1/v1"})
    assert "its endpoint gives vectors and no probabilities of words" in refusal(endpoint)
    cross = save_tiny_cross_encoder(tmp_path / "cross")
    assert "as that of a cross-encoder" in refusal(ModelSpec(name=str(cross)))


BERT = {"model_type": "bert", "architectures": ["BertForMaskedLM"]}
HEAD = ("bert.encoder.layer.0.attention.self.query.weight", "cls.predictions.transform.dense.weight")


@pytest.mark.parametrize(
    ("config", "weights", "kind"),
    [
        (BERT, (), "masked"),
        ({**BERT, "architectures": ["BertForPreTraining"]}, (), "masked"),
        ({**BERT, "architectures": ["BertForNextSentencePrediction", "BertForMaskedLM"]}, (), "masked"),
        ({**BERT, "architectures": ["BertForMaskedLM", "BertLMHeadModel"]}, (), "several"),
        ({**BERT, "architectures": "BertForMaskedLM"}, (), "none"),
        ({**BERT, "architectures": "BertForMaskedLM"}, HEAD, "masked"),
        ({"model_type": "bert"}, HEAD, "masked"),
        ({"model_type": "bert", "architectures": None}, HEAD[:1], "none"),
        ({**BERT, "architectures": ["BertModel"]}, HEAD, "masked"),
        ({**BERT, "architectures": ["BertModel"]}, (*HEAD, "classifier.weight"), "classifier"),
        ({**BERT, "is_decoder": True}, (), "one_sided"),
        ({**BERT, "architectures": ["BertLMHeadModel"]}, (), "two_sided"),
        ({**BERT, "architectures": ["BertLMHeadModel"], "is_decoder": True}, (), "causal"),
        ({"model_type": "electra"}, ("discriminator_predictions.dense.weight",), "replaced"),
        ({"model_type": "electra"}, ("generator_predictions.dense.weight",), "masked"),
        ({"model_type": "electra", "architectures": ["ElectraForMaskedLM"]}, (), "masked"),
        ({"model_type": "funnel", "architectures": ["FunnelForPreTraining"]}, (), "unknown_head"),
        ({"model_type": "t5", "architectures": ["T5WithLMHeadModel"], "is_encoder_decoder": True}, (), "sequences"),
        ({"model_type": "bart", "architectures": ["BartModel"], "is_encoder_decoder": True}, (), "sequences"),
        ({"model_type": "mbart", "architectures": ["MBartForConditionalGeneration"]}, (), "sequences"),
        ({"model_type": "bart", "architectures": ["BartForCausalLM"], "is_encoder_decoder": False}, (), "causal"),
        ({"model_type": "xlm", "architectures": ["XLMWithLMHeadModel"]}, (), "masked"),
        ({"model_type": "xlm", "architectures": ["XLMWithLMHeadModel"], "causal": True}, (), "causal"),
        ({"model_type": "modernbert"}, ("head.dense.weight", "decoder.bias"), "masked"),
        ({"model_type": "modernbert"}, ("head.dense.weight", "classifier.bias"), "classifier"),
        ({"model_type": "nomic_bert", "architectures": ["NomicBertForMaskedLM"]}, (), "masked"),
        ({"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"]}, (), "causal"),
        ({"model_type": "xlnet", "architectures": ["XLNetForMaskedLM"]}, (), "permuted"),
        ({}, (), "none"),
        ({"architectures": [1, None, {}]}, (), "none"),
    ],
)
def test_kind_by_configuration_and_names_of_weights(
    config: dict[str, Any], weights: tuple[str, ...], kind: str
) -> None:
    """The list of architectures decides; the names of weights only where it names none with a head."""
    assert kinds.kind_by(config, weights) == kind
    assert kind in (*kinds.WHY_NOT, *kinds.ADVICE)


def test_an_old_name_with_a_head_in_the_file(tmp_path: Path) -> None:
    """config.json says BertModel, or nothing; the file holds the head: it is scored, for one file and for parts."""
    folder = save_tiny_language_model(tmp_path / "old", "bert")
    edit_json(folder / "config.json", architectures=["BertModel"])
    load(folder)
    edit_json(folder / "config.json", architectures=None)
    load(folder)
    names = kinds.weight_names(folder)
    assert "cls.predictions.transform.dense.weight" in names
    (folder / "model.safetensors").rename(folder / "part.safetensors")
    index = {"metadata": {}, "weight_map": dict.fromkeys(names, "part.safetensors")}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index), encoding="utf-8")
    load(folder)


@pytest.mark.parametrize("content", [b"", b"\x02\0\0\0\0\0\0\0{}", b"\xff" * 9, b"\x05\0\0\0\0\0\0\0{{{{{"])
def test_weights_that_cannot_be_listed_have_no_names(tmp_path: Path, content: bytes) -> None:
    """Broken files are told by whoever loads them."""
    assert kinds.weight_names(tmp_path) == ()
    (tmp_path / "model.safetensors").write_bytes(content)
    assert kinds.weight_names(tmp_path) == ()


def test_pretraining_checkpoints_are_masked_models(tmp_path: Path) -> None:
    """BERT's with its head for pairs of sentences beside; that one is left out."""
    load(save_tiny_checkpoint(tmp_path / "bert", "bert", head="AutoModelForPreTraining"))


def test_is_decoder_is_refused(tmp_path: Path) -> None:
    """What to change is said."""
    folder = save_tiny_language_model(tmp_path / "model", "bert")
    edit_json(folder / "config.json", is_decoder=True)
    message = refusal(ModelSpec(name=str(folder)))
    assert "sets is_decoder, with which it would see only the words before a mask. Take is_decoder out" in message


def test_no_mask_token(tmp_path: Path) -> None:
    """Before the model is loaded."""
    folder = save_tiny_language_model(tmp_path / "model", "bert")
    edit_json(folder / "tokenizer_config.json", mask_token=None)
    with pytest.raises(
        ModelError, match=r"its tokenizer names no mask token\.\nNothing can be masked\. Set mask_token"
    ):
        load(folder)


def test_a_vocabulary_that_does_not_fit(tmp_path: Path) -> None:
    """More tokens than vectors: of another model."""
    folder = save_tiny_language_model(tmp_path / "model", "roberta")
    other = save_tiny_language_model(tmp_path / "other", "xlm-roberta")
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (other / name).write_bytes((folder / name).read_bytes())
    with pytest.raises(ModelError, match=r"its tokenizer has 321 tokens, but the model has vectors for 91 only\.\nThe"):
        load(other)
