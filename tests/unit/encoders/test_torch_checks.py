"""Models with a part missing: refused or told, never scored as if nothing were wrong."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import BertConfig, BertModel, PreTrainedModel, RobertaConfig, RobertaModel

from embeval.core.protocols import Encoder
from embeval.core.specs import ModelSpec, Role
from embeval.encoders import loading, torch_checks
from embeval.errors import ModelError


@pytest.fixture
def copy(tiny_model: Path, tmp_path: Path) -> Path:
    """A copy to break."""
    return Path(shutil.copytree(tiny_model, tmp_path / "broken"))


def load(folder: Path, **fields: Any) -> Encoder:
    """The model in a folder."""
    return loading.load(loading.resolve(ModelSpec(name=str(folder), **fields)))


def change_weights(folder: Path, change: Callable[[dict[str, torch.Tensor]], dict[str, torch.Tensor]]) -> None:
    """Writes the weights again, changed."""
    save_file(change(load_file(folder / "model.safetensors")), folder / "model.safetensors", metadata={"format": "pt"})


def change_config(folder: Path, **fields: Any) -> None:
    """Sets keys of config.json."""
    path = folder / "config.json"
    config = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**config, **fields}), encoding="utf-8")


def test_a_whole_model_has_no_remarks(copy: Path) -> None:
    """Nor is the way that transformers loads changed afterwards."""
    before = PreTrainedModel.__dict__["from_pretrained"]
    assert load(copy).info.remarks == ()
    assert PreTrainedModel.__dict__["from_pretrained"] is before


def test_missing_weights_are_refused(copy: Path) -> None:
    """A layer that the file lacks would be random, another one each time."""
    change_weights(copy, lambda old: {name: each for name, each in old.items() if "layer.1." not in name})
    with pytest.raises(ModelError, match=r"16 weights are not in its files, such as encoder.layer.1.attention.output"):
        load(copy)


def test_weights_under_other_names_are_refused(copy: Path) -> None:
    """Nothing fits, so everything would be random."""
    change_weights(copy, lambda old: {f"other.{name}": each for name, each in old.items()})
    with pytest.raises(ModelError, match="weights are not in its files, such as embeddings"):
        load(copy)


def test_more_layers_in_the_configuration_are_refused(copy: Path) -> None:
    """config.json of a larger model."""
    change_config(copy, num_hidden_layers=3)
    with pytest.raises(ModelError, match=r"16 weights are not in its files, such as encoder.layer.2"):
        load(copy)


def test_fewer_layers_in_the_configuration_are_told(copy: Path) -> None:
    """It may be meant, so it runs, and every result says so."""
    change_config(copy, num_hidden_layers=1)
    (remark,) = load(copy).info.remarks
    assert remark.startswith("16 weights in the model's files are not used, such as encoder.layer.1.")


def test_heads_and_poolers_do_not_count(copy: Path) -> None:
    """A file with a language model's head and without a pooler is whole: neither takes part in an embedding."""

    def change(old: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        body = {name: each for name, each in old.items() if not name.startswith("pooler.")}
        assert len(body) < len(old)
        return {**body, "cls.predictions.bias": torch.zeros(4), "embeddings.position_ids": torch.arange(64)[None]}

    expected = load(copy).encode(["restore a backup"], role=Role.TEXT).vectors
    change_weights(copy, change)
    encoder = load(copy)
    assert encoder.info.remarks == ()
    assert encoder.encode(["restore a backup"], role=Role.TEXT).vectors == pytest.approx(expected)


def test_a_tokenizer_without_words_is_refused(copy: Path) -> None:
    """transformers makes one of special tokens only where the files are gone: every text would look alike."""
    for name in ("tokenizer.json", "vocab.txt", "tokenizer_config.json", "special_tokens_map.json"):
        (copy / name).unlink(missing_ok=True)
    with pytest.raises(ModelError, match="its tokenizer has no vocabulary, only 5 special tokens"):
        load(copy)


def test_a_tokenizer_of_another_model_is_refused(copy: Path) -> None:
    """More tokens than vectors would end in an index error, on some texts only."""
    n_tokens = len(load_file(copy / "model.safetensors")["embeddings.word_embeddings.weight"])
    change_weights(copy, lambda old: {**old, "embeddings.word_embeddings.weight": torch.zeros(20, 32)})
    change_config(copy, vocab_size=20)
    with pytest.raises(ModelError, match=rf"has {n_tokens} tokens, but the model has vectors for 20 only"):
        load(copy)


def test_pooling_that_nobody_declared_is_told(copy: Path) -> None:
    """Without modules.json the library assumes a mean; choosing one's own pooling is an answer."""
    (copy / "modules.json").unlink()
    shutil.rmtree(copy / "1_Pooling")
    assert load(copy).info.remarks == ("The model doesn't say how it pools (no modules.json): mean was assumed.",)
    assert load(copy, pooling="cls").info.remarks == ()


@pytest.mark.parametrize(
    ("asked", "message"),
    [(65, r"takes 3 to 64 tokens, so max_seq_length can't be 65"), (2, "so max_seq_length can't be 2")],
)
def test_lengths_that_the_model_cannot_take(tiny_model: Path, asked: int, message: str) -> None:
    """More than it has positions for, or too few for one token between the special ones."""
    with pytest.raises(ModelError, match=message):
        load(tiny_model, max_seq_length=asked)


@pytest.mark.parametrize("asked", [3, 64])
def test_lengths_at_the_bounds_work(tiny_model: Path, asked: int) -> None:
    """And keep exactly so many tokens."""
    counts = load(tiny_model, max_seq_length=asked).encode(["backup " * 100], role=Role.TEXT).counts
    assert (counts.tokens_kept, counts.tokens_lost) == (asked, 102 - asked)


def test_a_declared_length_beyond_the_positions_is_cut_and_told(copy: Path) -> None:
    """Where the folder promises 100 tokens and the model has 64 positions."""
    (copy / "sentence_bert_config.json").write_text('{"max_seq_length": 100}', encoding="utf-8")
    encoder = load(copy)
    assert encoder.info.max_seq_length == 64
    assert encoder.info.remarks == ("The model declares 100 tokens but has positions for 64: cut to 64.",)
    assert encoder.encode(["backup " * 100], role=Role.TEXT).counts.tokens_kept == 64


def test_unknown_tokens_are_counted(tiny_model: Path) -> None:
    """Three of six words in a script that the vocabulary lacks; repeated texts count each time."""
    counts = load(tiny_model).encode(["backup דג backup", "זה דג old", "backup דג backup"], role=Role.TEXT).counts
    assert counts.tokens_unknown == 1 + 2 + 1
    assert counts.tokens_kept == 3 * 5


def test_position_limits() -> None:
    """BERT counts from 0, RoBERTa from behind its padding id: 66 positions are 64 tokens; no positions, no limit."""
    small = {
        "hidden_size": 8,
        "num_hidden_layers": 1,
        "num_attention_heads": 1,
        "intermediate_size": 8,
        "vocab_size": 9,
    }
    assert torch_checks.position_limit(BertModel(BertConfig(**small, max_position_embeddings=64))) == 64
    roberta = RobertaConfig(**small, max_position_embeddings=66, pad_token_id=1)
    assert torch_checks.position_limit(RobertaModel(roberta)) == 64
    assert torch_checks.position_limit(torch.nn.Linear(2, 2)) is None
