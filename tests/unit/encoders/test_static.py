"""The static backend against model2vec 0.10.0 and sentence-transformers 6.2, and against broken folders."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from embeval.core.specs import ModelSpec, Role, RuntimeOptions
from embeval.encoders import loading, tensors
from embeval.errors import ConfigError, ModelError
from tests.support.models import (
    edit_json,
    save_tiny_checkpoint,
    save_tiny_model,
    save_tiny_static,
    save_tiny_static_embedding,
)

TEXTS = [
    "restore the document",
    "a",
    "The BACKUP server",
    "zebra quagga! 42",
    "night " * 40,
    "the day and the night of a server " * 200,
    "é ü 東京 🙂 token",
    "東京タワー",
    "restore 東京 the 東京 backup",
    "x" * 5_000,
    "token" + " " * 3_000 + "folder",
]


def encoder(folder: Path, runtime: RuntimeOptions | None = None, **fields: Any) -> Any:
    """The model as we load it."""
    return loading.load(loading.resolve(ModelSpec(name=str(folder), backend="static", **fields)), runtime)


def model2vec(folder: Path, **options: Any) -> Any:
    """The model as model2vec loads it, in float32 however it is stored."""
    from model2vec import StaticModel

    model = StaticModel.from_pretrained(folder, **options)
    model.embedding = model.embedding.astype(np.float32)
    return model


def sentence_transformers(folder: Path) -> Any:
    """The model as sentence-transformers loads it."""
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(str(folder), device="cpu", local_files_only=True)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"normalize": True},
        {"reduced": True},
        {"reduced": True, "normalize": True, "dtype": "float16"},
        {"dtype": "float16"},
        {"dtype": "int8"},
        {"max_length": 7},
        {"max_length": None},
    ],
)
def test_vectors_equal_those_of_model2vec(tmp_path: Path, options: dict[str, Any]) -> None:
    """Plain, normalised, with mapping and weights, in fewer bits, with and without a limit: equal to 1e-6."""
    folder = save_tiny_static(tmp_path / "model", **options)
    expected = model2vec(folder).encode(TEXTS, use_multiprocessing=False)
    for budget in (30, 100_000):
        ours = encoder(folder, RuntimeOptions(batch_tokens=budget)).encode(TEXTS, role=Role.TEXT)
        np.testing.assert_allclose(ours.vectors, expected, atol=1e-6)
    assert not ours.vectors[7].any()  # nothing but unknown words
    assert ours.vectors[0].any()


@pytest.mark.parametrize("limit", [1, 3, 8, 1_000])
def test_the_limit_is_that_of_model2vec(tmp_path: Path, limit: int) -> None:
    """``max_seq_length`` cuts characters and tokens as ``encode(max_length=…)`` does."""
    folder = save_tiny_static(tmp_path / "model")
    ours = encoder(folder, max_seq_length=limit)
    expected = model2vec(folder).encode(TEXTS, max_length=limit, use_multiprocessing=False)
    np.testing.assert_allclose(ours.encode(TEXTS, role=Role.TEXT).vectors, expected, atol=1e-6)
    assert ours.info.max_seq_length == limit


def dense(activation: str = "Tanh", bias: bool = True) -> Any:
    """A dense layer from 16 to 8."""
    import torch
    from sentence_transformers.base.modules import Dense

    with torch.random.fork_rng():
        torch.manual_seed(1)
        return Dense(16, 8, bias=bias, activation_function=getattr(torch.nn, activation)())


@pytest.mark.parametrize("kind", ["plain", "normalize", "dense", "identity", "cut left", "cut right"])
def test_vectors_equal_those_of_sentence_transformers(tmp_path: Path, kind: str) -> None:
    """StaticEmbedding alone, with what may follow it, and with a tokenizer that cuts: equal to 1e-6."""
    from sentence_transformers.base.modules import Normalize

    after: dict[str, tuple[Any, ...]] = {
        "normalize": (Normalize(),),
        "dense": (dense(), Normalize()),
        "identity": (dense("Identity", bias=False),),
    }
    direction = kind.partition(" ")[2]
    truncation = {"max_length": 5, "direction": direction} if direction else None
    folder = save_tiny_static_embedding(tmp_path / "model", after=after.get(kind, ()), truncation=truncation)
    ours = encoder(folder)
    found = ours.encode(TEXTS, role=Role.TEXT)
    theirs = sentence_transformers(folder)
    np.testing.assert_allclose(found.vectors, theirs.encode(TEXTS), atol=1e-6)
    assert found.vectors[7].any()  # here an unknown word counts like any other
    assert ours.info.n_parameters == sum(parameter.numel() for parameter in theirs.parameters())
    assert ours.info.max_seq_length == (5 if truncation else None)


def test_a_model2vec_folder_with_modules(tmp_path: Path) -> None:
    """What model2vec itself saves, with modules.json and the old names of classes: normalised once."""
    folder = tmp_path / "saved"
    model2vec(save_tiny_static(tmp_path / "model", normalize=True)).save_pretrained(folder)
    assert (folder / "modules.json").is_file()
    vectors = encoder(folder).encode(TEXTS, role=Role.TEXT).vectors
    np.testing.assert_allclose(vectors, model2vec(folder).encode(TEXTS, use_multiprocessing=False), atol=1e-6)


def test_a_model_in_a_folder_of_its_own(tmp_path: Path) -> None:
    """0_StaticEmbedding, as sentence-transformers before 6 saved it: the same vectors."""
    folder = save_tiny_static_embedding(tmp_path / "model")
    before = encoder(folder).encode(TEXTS, role=Role.TEXT).vectors
    (folder / "0_StaticEmbedding").mkdir()
    for file in ("model.safetensors", "tokenizer.json"):
        (folder / file).rename(folder / "0_StaticEmbedding" / file)
    modules = json.loads((folder / "modules.json").read_text())
    modules[0]["path"] = "0_StaticEmbedding"
    (folder / "modules.json").write_text(json.dumps(modules))
    assert np.array_equal(encoder(folder).encode(TEXTS, role=Role.TEXT).vectors, before)


def test_a_sentencepiece_tokenizer(tmp_path: Path) -> None:
    """A Unigram tokenizer tells its unknown token by number only: left out as by model2vec."""
    from tokenizers import Tokenizer, models, pre_tokenizers

    folder = save_tiny_static(tmp_path / "model", rows=4)
    pieces = Tokenizer(models.Unigram([("<unk>", 0.0), ("▁the", -1.0), ("▁token", -2.0), ("▁", -3.0)], unk_id=0))
    pieces.pre_tokenizer = pre_tokenizers.Metaspace()
    pieces.save(str(folder / "tokenizer.json"))
    texts = ["the token", "the ツ token", "ツ"]
    ours = encoder(folder).encode(texts, role=Role.TEXT)
    np.testing.assert_allclose(ours.vectors, model2vec(folder).encode(texts, use_multiprocessing=False), atol=1e-6)
    assert ours.counts.tokens_unknown == 2


def test_bfloat16_is_read(tmp_path: Path) -> None:
    """Bits of bfloat16, which numpy doesn't have, are the upper half of float32."""
    import torch
    from safetensors.torch import save_file as save_torch

    values = torch.linspace(-3, 3, 24).reshape(4, 6).to(torch.bfloat16)
    save_torch({"x": values, "none": torch.zeros(0, 3)}, tmp_path / "file.safetensors")
    found = tensors.mapped(tmp_path / "file.safetensors")
    assert np.array_equal(found["x"], values.float().numpy())
    assert found["none"].shape == (0, 3)


def test_tokens_are_counted(tmp_path: Path) -> None:
    """Kept, lost and unknown tokens are those of the tokenizer; unknown ones count as kept though they add nothing."""
    folder = save_tiny_static(tmp_path / "model", max_length=10)
    texts = ["", "the 東京 token", "night " * 25, "東京", "the token"]
    embeddings = encoder(folder).encode(texts, role=Role.TEXT)
    counts = embeddings.counts
    assert (counts.n_texts, counts.n_empty, counts.n_zero, counts.n_truncated) == (5, 1, 2, 1)
    # 東京 is split into two characters by BERT's pre-tokenizer. 10 x 3 characters of the nights are 5 nights.
    assert (counts.tokens_kept, counts.tokens_lost, counts.tokens_unknown) == (4 + 5 + 2 + 2, 20, 4)
    assert embeddings.truncated is not None
    assert set(embeddings.truncated) == {2}


def test_blanks_that_are_cut_off_are_no_loss(tmp_path: Path) -> None:
    """Characters beyond the cut that hold no token truncate nothing; a word cut in its middle does."""
    folder = save_tiny_static(tmp_path / "model", max_length=2)
    embeddings = encoder(folder).encode(["token " + " " * 100, "a document"], role=Role.TEXT)
    assert embeddings.truncated is not None
    assert set(embeddings.truncated) == {1}


def test_prompts_and_similarity_of_the_model(tmp_path: Path) -> None:
    """config_sentence_transformers.json: a declared prompt stands before queries, the default before plain texts."""
    folder = save_tiny_static_embedding(tmp_path / "model", prompts={"query": "the query ", "sts": "a day "})
    edit_json(folder / "config_sentence_transformers.json", default_prompt_name="sts", similarity_fn_name="dot")
    ours, theirs = encoder(folder), sentence_transformers(folder)
    assert ours.info.similarity == "dot"
    for role, prompt in ((Role.QUERY, "the query "), (Role.TEXT, "a day "), (Role.DOCUMENT, "")):
        expected = theirs.encode(TEXTS, prompt=prompt)
        np.testing.assert_allclose(ours.encode(TEXTS, role=role).vectors, expected, atol=1e-6)


def test_neither_torch_nor_transformers_is_imported(tmp_path: Path) -> None:
    """A process of its own that loads and encodes."""
    folder = save_tiny_static(tmp_path / "model", reduced=True, normalize=True)
    code = f"""
import sys
from embeval.core.specs import ModelSpec, Role
from embeval.encoders import loading
encoder = loading.load(loading.resolve(ModelSpec(name={str(folder)!r}, backend="static")))
assert encoder.encode(["the token", "x"], role=Role.TEXT).vectors.any()
print(sorted({{"torch", "transformers", "sentence_transformers", "model2vec"}} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.returncode) == ("[]", 0), done.stderr


def test_the_vectors_are_mapped_and_not_copied(tmp_path: Path) -> None:
    """A float32 matrix stays in the file."""
    matrix = encoder(save_tiny_static(tmp_path / "model")).backend._model.matrix
    while not isinstance(matrix, np.memmap):
        assert matrix.base is not None
        matrix = matrix.base
    assert matrix.mode == "r"


def test_what_it_does_not_have_is_refused(tmp_path: Path) -> None:
    """No pooling, no dtype, no option, no GPU, and no way back from a normalisation."""
    folder = save_tiny_static(tmp_path / "model", normalize=True)
    for fields, message in (
        ({"pooling": "mean"}, "always takes the mean"),
        ({"dtype": "float16"}, "computes in float32"),
        ({"args": {"dim": 3}}, "no option 'dim'"),
    ):
        with pytest.raises(ConfigError, match=message):
            encoder(folder, **fields)
    with pytest.raises(ConfigError, match="runs on the CPU"):
        encoder(folder, RuntimeOptions(device="cuda"))
    with pytest.raises(ModelError, match="'normalize: false' can't be honoured"):
        encoder(folder, normalize=False)
    assert "not compiled" in encoder(folder, RuntimeOptions(compile=True)).info.remarks[0]


def rewrite(folder: Path, **arrays: Any) -> None:
    """Changes tensors of a model; None takes one away."""
    old = {name: np.array(array) for name, array in load_file(folder / "model.safetensors").items()}
    kept = {name: array for name, array in {**old, **arrays}.items() if array is not None}
    save_file(kept, folder / "model.safetensors")


def test_broken_weights_are_refused(tmp_path: Path) -> None:
    """NaN, Inf, missing and misshapen tensors, a file cut short: each told with its name."""
    broken = np.ones((100, 16), dtype=np.float32)
    broken[17, 3], broken[40, 0] = np.nan, np.inf
    huge = np.full((100, 16), 3e38, dtype=np.float32)  # finite, though its sum is not
    cases: list[tuple[dict[str, Any], str]] = [
        ({"embeddings": broken}, "NaN or Inf in 2 of 100 rows, first in row 17"),
        ({"embeddings": np.ones(100, dtype=np.float32)}, r"has the shape \[100\]"),
        ({"embeddings": None, "other": broken}, "neither the tensor 'embeddings' nor 'embedding.weight'; it has"),
        ({"embeddings": huge[:50]}, "tokens, but the model has vectors for 50 only"),
        ({"mapping": np.zeros(20, dtype=np.int64)}, r"the tensor 'mapping' has the shape \[20\]"),
        ({"mapping": np.full(500, 400)}, "leads to rows outside 0 to"),
        ({"mapping": np.zeros(500, dtype=np.float32)}, "must hold whole numbers, not float32"),
        ({"weights": np.full(500, np.nan, dtype=np.float32)}, "the tensor 'weights' has NaN or Inf"),
        ({"weights": np.ones((500, 2), dtype=np.float32)}, r"the tensor 'weights' has the shape \[500, 2\]"),
    ]
    for number, (arrays, message) in enumerate(cases):
        folder = save_tiny_static(tmp_path / str(number))
        rewrite(folder, **arrays)
        with pytest.raises(ModelError, match=message):
            encoder(folder)
    folder = save_tiny_static(tmp_path / "short")
    whole = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(whole[:-100])
    with pytest.raises(ModelError, match="no readable safetensors file"):
        encoder(folder)
    (folder / "model.safetensors").unlink()
    with pytest.raises(ModelError, match=r"model\.safetensors is missing"):
        encoder(folder)


def test_broken_descriptions_are_refused(tmp_path: Path) -> None:
    """A tokenizer that is missing or no tokenizer, a limit that is none, prompts that are none."""
    folder = save_tiny_static(tmp_path / "limit", max_length=0)
    with pytest.raises(ModelError, match=r"max_length in config\.json must be a whole number from 1, not 0"):
        encoder(folder)
    folder = save_tiny_static(tmp_path / "tokenizer")
    (folder / "tokenizer.json").write_text("{}")
    with pytest.raises(ModelError, match=r"tokenizer\.json can't be read"):
        encoder(folder)
    (folder / "tokenizer.json").unlink()
    with pytest.raises(ModelError, match=r"tokenizer\.json is missing"):
        encoder(folder)
    folder = save_tiny_static(tmp_path / "prompts")
    for declared in ({"prompts": ["query"]}, {"prompts": {"query": 3}}, {"similarity_fn_name": "near"}):
        (folder / "config_sentence_transformers.json").write_text(json.dumps(declared))
        with pytest.raises(ModelError, match="prompts or a similarity"):
            encoder(folder)


def test_another_kind_of_model_names_its_backend(tmp_path: Path) -> None:
    """A transformer with modules, a bare checkpoint, and modules that are not run here."""
    from sentence_transformers.base.modules import Normalize

    with pytest.raises(ModelError, match=r"first module is Transformer.*\n.*backend sentence_transformers"):
        encoder(save_tiny_model(tmp_path / "transformer"))
    with pytest.raises(ModelError, match=r"bare checkpoint of type 'bert'.*\n.*backend transformers"):
        encoder(save_tiny_checkpoint(tmp_path / "bare", "bert"))
    folder = save_tiny_static_embedding(tmp_path / "sigmoid", after=(dense("Sigmoid"),))
    with pytest.raises(ModelError, match=r"doesn't run Dense with Sigmoid\. Use the backend sentence_transformers"):
        encoder(folder)
    folder = save_tiny_static_embedding(tmp_path / "other", after=(Normalize(),))
    for change, message in (
        ({"type": "sentence_transformers.models.WordWeights"}, "doesn't run WordWeights"),
        ({"path": "../elsewhere"}, "names a folder outside the model"),
        ({"path": 3}, "no list of modules"),
    ):
        modules = json.loads((folder / "modules.json").read_text())
        modules[1] = {**modules[1], **change}
        copy = save_tiny_static(tmp_path / message)
        (copy / "modules.json").write_text(json.dumps(modules))
        with pytest.raises(ModelError, match=message):
            encoder(copy)


def test_a_dense_layer_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    """A missing tensor, a bias of another length, and more inputs than there are dimensions."""
    cases: list[tuple[dict[str, Any], str]] = [
        ({"linear.bias": None}, "lacks the tensor 'linear.bias'"),
        ({"linear.bias": np.zeros(3, dtype=np.float32)}, "has 3 values for 8 outputs"),
        ({"linear.weight": np.zeros((8, 9), dtype=np.float32)}, "9 inputs after vectors of length 16"),
    ]
    for number, (arrays, message) in enumerate(cases):
        folder = save_tiny_static_embedding(tmp_path / str(number), after=(dense(),))
        rewrite(folder / "1_Dense", **arrays)
        with pytest.raises(ModelError, match=message):
            encoder(folder)
