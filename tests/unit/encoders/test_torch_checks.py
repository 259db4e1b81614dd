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
from transformers import (
    BartConfig,
    BartModel,
    BertConfig,
    BertModel,
    OPTConfig,
    OPTModel,
    PreTrainedModel,
    RobertaConfig,
    RobertaModel,
)

from embeval.core.protocols import Encoder
from embeval.core.specs import ModelSpec, Role
from embeval.encoders import loading, torch_checks
from embeval.errors import ModelError
from tests.support.models import edit_json, save_tiny_decoder


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


def test_a_pooler_that_is_read_must_be_there(copy: Path) -> None:
    """Where no token vectors are pooled, the pooler's output is the embedding, and random without its weights."""
    (copy / "modules.json").write_text(
        json.dumps([{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"}]),
        encoding="utf-8",
    )
    modality = {"text": {"method": "forward", "method_output_name": "pooler_output"}}
    (copy / "sentence_bert_config.json").write_text(
        json.dumps({"modality_config": modality, "module_output_name": "sentence_embedding"}), encoding="utf-8"
    )
    assert load(copy).encode(["restore"], role=Role.TEXT).vectors.shape == (1, 32)
    change_weights(copy, lambda old: {name: each for name, each in old.items() if "pooler" not in name})
    with pytest.raises(ModelError, match="2 weights are not in its files, such as pooler"):
        load(copy)


def test_weights_of_another_shape_are_named(copy: Path) -> None:
    """The library's own message points to a report that nobody sees."""
    change_config(copy, intermediate_size=32)
    with pytest.raises(ModelError, match=r"weights have another shape in its files, such as encoder.layer.0.* \[64"):
        load(copy)


def test_constants_of_older_versions_are_no_weights(copy: Path) -> None:
    """Buffers that were saved once; one unused weight is one weight."""
    name = "encoder.layer.0.attention.self"
    more = {f"{name}.masked_bias": torch.zeros(1), f"{name}.attn.bias": torch.ones(1, 1, 4, 4)}
    change_weights(copy, lambda old: {**old, **more})
    assert load(copy).info.remarks == ()
    change_weights(copy, lambda old: {**old, f"{name}.extra": torch.zeros(1)})
    assert load(copy).info.remarks == (
        "1 weight in the model's files is not used, such as encoder.layer.0.attention.self.extra.",
    )


def test_an_unknown_token_of_another_use_tells_nothing(tmp_path: Path) -> None:
    """GPT-2 says "unknown" with its end of text, which many models put behind every text."""
    folder = save_tiny_decoder(tmp_path / "model")
    edit_json(folder / "tokenizer_config.json", eos_token="[UNK]")
    assert load(folder).encode(["zebra quagga"], role=Role.TEXT).counts.tokens_unknown is None


def test_a_model_that_fails_on_a_text_is_the_model_s_fault(copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever its code raises: the model is named, with the size of the batch and the reason."""
    encoder: Any = load(copy)

    def fail(*_: Any, **__: Any) -> Any:
        raise IndexError("index out of range in self\nmore")

    monkeypatch.setattr(encoder.backend._model[0], "forward", fail)
    with pytest.raises(ModelError) as caught:
        encoder.encode(["restore a backup", "token"], role=Role.TEXT)
    first, second = str(caught.value).splitlines()
    assert first.endswith("fails on a batch of 2 texts of up to 5 tokens.")
    assert second == "IndexError: index out of range in self"

    def exhaust(*_: Any, **__: Any) -> Any:
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(encoder.backend._model[0], "forward", exhaust)
    with pytest.raises(MemoryError):
        encoder.encode(["restore a backup", "token"], role=Role.TEXT)


def test_positions_of_bart_and_opt() -> None:
    """Both keep two places before the first position: 34 rows of the table are 32 positions."""
    bart = BartConfig(
        vocab_size=9,
        d_model=8,
        encoder_layers=1,
        decoder_layers=1,
        encoder_attention_heads=1,
        decoder_attention_heads=1,
        encoder_ffn_dim=8,
        decoder_ffn_dim=8,
        max_position_embeddings=32,
    )
    assert torch_checks.position_limit(BartModel(bart)) == 32
    opt = OPTConfig(
        vocab_size=9,
        hidden_size=8,
        word_embed_proj_dim=8,
        num_hidden_layers=1,
        num_attention_heads=1,
        ffn_dim=8,
        max_position_embeddings=32,
    )
    assert torch_checks.position_limit(OPTModel(opt)) == 32


def test_code_of_the_model_has_its_own_advice() -> None:
    """As transformers words it, whichever library was asked; anything else keeps its reason."""
    code = ValueError("x contains custom code which must be executed.\nPlease pass `trust_remote_code=True` to run it.")
    told = str(torch_checks.not_loaded(code, "x", "sentence-transformers"))
    assert told.startswith(
        "Model 'x' brings code of its own, which sentence-transformers needs to run it.\nargs: {trust"
    )
    other = str(torch_checks.not_loaded(OSError("no file\n\n  such"), "x", "transformers"))
    assert other.splitlines()[1:] == ["OSError: no file such", torch_checks.WHY_NOT]
