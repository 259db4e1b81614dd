"""What a model folder says of pooling and the layers after it, against sentence-transformers 6.2 and by hand."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from embeval.core.specs import ModelSpec
from embeval.encoders import modules
from embeval.errors import ConfigError, ModelError
from tests.support.models import edit_json, save_tiny_model

SPEC = ModelSpec(name="a-model", backend="onnx")
TOKENS = np.array([[[1, 0], [0, 1], [9, 9]]], dtype=np.float32)
"""F9: the token matrix of a stub session; the last token is padding."""
MASK = np.array([[1, 1, 0]])


def write(folder: Path, *kinds: str, **configs: Any) -> Path:
    """A folder with a Transformer and those modules, and their config.json by kind."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = ["", *(f"{place}_{kind}" for place, kind in enumerate(kinds, 1))]
    listed = [
        {"idx": place, "name": str(place), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for place, (kind, path) in enumerate(zip(["Transformer", *kinds], paths, strict=True))
    ]
    (folder / "modules.json").write_text(json.dumps(listed), encoding="utf-8")
    for kind, path in zip(kinds, paths[1:], strict=True):
        if kind in configs:
            (folder / path).mkdir(exist_ok=True)
            (folder / path / "config.json").write_text(json.dumps(configs[kind]), encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"pooling_mode": "cls"}, [1, 0]),
        ({"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}, [1, 0]),
        ({"pooling_mode": "mean"}, [0.5, 0.5]),
        ({"pooling_mode_cls_token": False, "pooling_mode_mean_tokens": True}, [0.5, 0.5]),
        ({"pooling_mode": "max"}, [1, 1]),
        ({"pooling_mode_max_tokens": True}, [1, 1]),
        ({"pooling_mode": "lasttoken"}, [0, 1]),
        ({"pooling_mode_lasttoken": True}, [0, 1]),
        ({"pooling_mode": "mean_sqrt_len_tokens"}, [2**-0.5, 2**-0.5]),
        ({"pooling_mode_mean_sqrt_len_tokens": True}, [2**-0.5, 2**-0.5]),
        ({"pooling_mode": "weightedmean"}, [1 / 3, 2 / 3]),
        ({"pooling_mode_weightedmean_tokens": True}, [1 / 3, 2 / 3]),
        ({"pooling_mode": ["cls", "max"]}, [1, 0, 1, 1]),
        ({"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": True}, [1, 0, 0.5, 0.5]),
    ],
)
def test_pools_as_the_folder_says(tmp_path: Path, config: dict[str, Any], expected: list[float]) -> None:
    """F9, by hand and by sentence-transformers' own Pooling: new keys and old ones, several side by side."""
    import torch
    from sentence_transformers.sentence_transformer.modules import Pooling

    folder = write(tmp_path, "Pooling", Pooling={"word_embedding_dimension": 2, **config})
    stack = modules.read(folder, SPEC)
    found = stack.finished(stack.pooled(TOKENS, MASK).astype(np.float32))
    np.testing.assert_allclose(found, [expected], atol=1e-7)

    library = Pooling.load(str(folder / "1_Pooling"))
    features = {"token_embeddings": torch.from_numpy(TOKENS), "attention_mask": torch.from_numpy(MASK)}
    np.testing.assert_allclose(library(features)["sentence_embedding"].numpy(), found, atol=1e-7)


def test_nobody_says_how_to_pool(tmp_path: Path) -> None:
    """F9: an error and never a default; the spec may say it."""
    with pytest.raises(ConfigError, match=r"doesn't say how it pools .no modules.json., and this is not guessed"):
        modules.read(tmp_path, SPEC)
    stack = modules.read(tmp_path, replace(SPEC, pooling="max"))
    np.testing.assert_array_equal(stack.pooled(TOKENS, MASK), [[1, 1]])


def test_the_spec_overrides_the_folder(tmp_path: Path) -> None:
    """A pooling that is asked for is used in place of the declared one."""
    folder = write(tmp_path, "Pooling", Pooling={"pooling_mode": "mean"})
    np.testing.assert_array_equal(modules.read(folder, replace(SPEC, pooling="cls")).pooled(TOKENS, MASK), [[1, 0]])


@pytest.mark.parametrize(
    "config",
    [
        {},
        {"pooling_mode_cls_token": False},
        *({"pooling_mode": mode} for mode in ("median", 5, [["mean"]], {"mean": 1})),
    ],
)
def test_a_pooling_that_is_unknown_or_not_there(tmp_path: Path, config: dict[str, Any]) -> None:
    """No default for it either."""
    folder = write(tmp_path, "Pooling", Pooling=config)
    with pytest.raises(ModelError, match=r"1_Pooling/config.json says .* where the pooling belongs"):
        modules.read(folder, SPEC)


@pytest.mark.parametrize("activation", ["Tanh", "Identity", "ReLU", "Sigmoid"])
@pytest.mark.parametrize("bias", [True, False])
def test_dense_and_normalize_as_the_library_does(tmp_path: Path, activation: str, *, bias: bool) -> None:
    """Folders written by sentence-transformers 6.2, read here, applied by both: equal to 1e-6."""
    import torch
    from sentence_transformers.base.modules import Dense, Normalize

    function = getattr(torch.nn, activation)()
    dense = Dense(2, 3, bias=bias, activation_function=function)
    folder = write(tmp_path, "Pooling", "Dense", "Normalize", Pooling={"pooling_mode": "mean"})
    for name in ("2_Dense", "3_Normalize"):
        (folder / name).mkdir()
    dense.save(str(folder / "2_Dense"))
    Normalize().save(str(folder / "3_Normalize"))
    stack = modules.read(folder, SPEC)
    assert stack.normalizes
    pooled = np.random.default_rng(1).standard_normal((5, 2)).astype(np.float32)
    with torch.inference_mode():
        expected = Normalize()(dense({"sentence_embedding": torch.from_numpy(pooled)}))["sentence_embedding"].numpy()
    found = stack.finished(pooled)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_dense_without_an_activation_in_its_configuration_has_tanh(tmp_path: Path) -> None:
    """As the library's default: by hand, tanh(2 x + 1)."""
    from safetensors.numpy import save_file

    folder = write(tmp_path, "Pooling", "Dense", Pooling={"pooling_mode": "mean"}, Dense={"in_features": 1})
    weights = {"linear.weight": np.array([[2.0]], dtype=np.float32), "linear.bias": np.array([1.0], dtype=np.float32)}
    save_file(weights, folder / "2_Dense/model.safetensors")
    found = modules.read(folder, SPEC).finished(np.array([[0.5]], dtype=np.float32))
    np.testing.assert_allclose(found, np.tanh([[2.0]]), atol=1e-7)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"activation_function": "torch.nn.modules.activation.Mish"}, "activation 'Mish' of 2_Dense is not known here"),
        ({"use_residual": True}, "2_Dense has a residual connection"),
        ({"module_input_name": "token_embeddings"}, "2_Dense works on 'token_embeddings'"),
        ({}, "2_Dense/model.safetensors is missing"),
    ],
)
def test_a_dense_layer_that_cannot_be_run(tmp_path: Path, config: dict[str, Any], message: str) -> None:
    """Refused, never left out."""
    folder = write(tmp_path, "Pooling", "Dense", Pooling={"pooling_mode": "mean"}, Dense=config)
    with pytest.raises(ModelError, match=message):
        modules.read(folder, SPEC)


@pytest.mark.parametrize("content", [b"no tensors", None])
def test_broken_weights_of_a_dense_layer(tmp_path: Path, content: bytes | None) -> None:
    """A file that is no safetensors, or that has other tensors, is named."""
    from safetensors.numpy import save_file

    folder = write(tmp_path, "Pooling", "Dense", Pooling={"pooling_mode": "mean"}, Dense={})
    file = folder / "2_Dense/model.safetensors"
    if content is None:
        save_file({"other": np.zeros(1, dtype=np.float32)}, file)
    else:
        file.write_bytes(content)
    with pytest.raises(ModelError, match=r"2_Dense/model.safetensors can't be read"):
        modules.read(folder, SPEC)


def test_normalisation_of_token_vectors_is_refused(tmp_path: Path) -> None:
    """As multi-vector models have it."""
    folder = write(
        tmp_path,
        "Pooling",
        "Normalize",
        Pooling={"pooling_mode": "mean"},
        Normalize={"module_input_name": "token_embeddings"},
    )
    with pytest.raises(ModelError, match="2_Normalize works on 'token_embeddings'"):
        modules.read(folder, SPEC)


def test_pooling_that_leaves_the_prompt_out_is_refused(tmp_path: Path) -> None:
    """This backend has no way to tell which tokens are the prompt's."""
    folder = write(tmp_path, "Pooling", Pooling={"pooling_mode": "mean", "include_prompt": False})
    with pytest.raises(ModelError, match="doesn't pool over its prompt, which this backend can't do"):
        modules.read(folder, SPEC)


@pytest.mark.parametrize(
    ("kinds", "message"),
    [
        (("Pooling", "LayerNorm"), "has a module 'LayerNorm' at this place, which this backend can't run"),
        (("Pooling", "Pooling"), "has a module 'Pooling' at this place"),
        ((), "its modules.json has no Pooling"),
    ],
)
def test_other_modules_are_refused(tmp_path: Path, kinds: tuple[str, ...], message: str) -> None:
    """A module that is not known here is never passed over."""
    with pytest.raises(ModelError, match=message):
        modules.read(write(tmp_path, *kinds, Pooling={"pooling_mode": "mean"}), SPEC)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[{", r"modules.json can't be read"),
        ("{}", r"is no list of modules"),
        ('[{"type": "sentence_transformers.models.Transformer"}]', r"is no list of modules"),
        ("[]", r"its first module is missing, no Transformer"),
        ('[{"type": "a.WordEmbeddings", "path": ""}]', r"its first module is WordEmbeddings, no Transformer"),
        ('[{"type": "a.Transformer", "path": "../other"}]', r"leads out of the model's folder, to '../other'"),
        ('[{"type": "a.Transformer", "path": "/etc"}]', r"leads out of the model's folder, to '/etc'"),
    ],
)
def test_broken_modules(tmp_path: Path, content: str, message: str) -> None:
    """JSON that is broken, or something else than a list of modules below the folder."""
    (tmp_path / "modules.json").write_text(content, encoding="utf-8")
    with pytest.raises(ModelError, match=message):
        modules.read(tmp_path, SPEC)


@pytest.mark.parametrize("content", ["{", "[1]", "[" * 100_000], ids=["cut", "list", "nested"])
def test_broken_configuration_of_a_module(tmp_path: Path, content: str) -> None:
    """The file is named."""
    folder = write(tmp_path, "Pooling", Pooling={})
    (folder / "1_Pooling/config.json").write_text(content, encoding="utf-8")
    with pytest.raises(ModelError, match=r"1_Pooling/config.json (can't be read|holds no JSON object)"):
        modules.read(folder, SPEC)


def test_what_a_folder_declares_besides(tmp_path: Path) -> None:
    """Prompts (empty ones are none), default prompt, similarity, limit and lower case, by the library's own files.

    The transformer is in a folder of its own, and its limit is read there.
    """
    folder = save_tiny_model(tmp_path / "model", prompts={"query": "the query ", "document": ""})
    edit_json(folder / "config_sentence_transformers.json", default_prompt_name="query", similarity_fn_name="dot")
    own = folder / "0_Transformer"
    own.mkdir()
    for file in ("sentence_bert_config.json", "config.json"):
        shutil.move(folder / file, own / file)
    edit_json(own / "sentence_bert_config.json", max_seq_length=12, do_lower_case=True)
    listed = json.loads((folder / "modules.json").read_text(encoding="utf-8"))
    listed[0]["path"] = "0_Transformer"
    (folder / "modules.json").write_text(json.dumps(listed), encoding="utf-8")
    stack = modules.read(folder, SPEC)
    assert stack.transformer == own
    assert (stack.prompts, stack.default_prompt_name, stack.similarity) == ({"query": "the query "}, "query", "dot")
    assert (stack.max_seq_length, stack.lower_case, stack.pooling) == (12, True, ("mean",))


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("config_sentence_transformers.json", {"prompts": ["a"]}, "prompts or a similarity of no kind"),
        ("config_sentence_transformers.json", {"prompts": {"query": 3}}, "prompts or a similarity of no kind"),
        ("config_sentence_transformers.json", {"default_prompt_name": 3}, "prompts or a similarity of no kind"),
        ("config_sentence_transformers.json", {"similarity_fn_name": "angular"}, "prompts or a similarity of no kind"),
        ("sentence_bert_config.json", {"max_seq_length": "x"}, "max_seq_length must be a whole number from 1, not 'x'"),
        ("sentence_bert_config.json", {"max_seq_length": 0}, "max_seq_length must be a whole number from 1, not 0"),
    ],
)
def test_declarations_that_cannot_be(tmp_path: Path, file: str, content: dict[str, Any], message: str) -> None:
    """Told when the model is loaded, and not in the middle of a run."""
    (tmp_path / file).write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(ModelError, match=message):
        modules.read(tmp_path, replace(SPEC, pooling="mean"))


def test_a_normalisation_cannot_be_taken_away(tmp_path: Path) -> None:
    """``normalize: false`` on a model that ends with one."""
    folder = write(tmp_path, "Pooling", "Normalize", Pooling={"pooling_mode": "mean"})
    with pytest.raises(ModelError, match="ends with a normalisation of its own"):
        modules.read(folder, replace(SPEC, normalize=False))
