"""The sentence_transformers backend against the library's own ``encode``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from embeval.core.specs import ModelSpec, Role, RuntimeOptions
from embeval.encoders import loading
from embeval.errors import ConfigError, ModelError
from tests.support.models import edit_json, save_tiny_decoder, save_tiny_model

TEXTS = [
    "restore the document",
    "a",
    "The BACKUP server",
    "the backup server",
    "zebra quagga! 42",
    "night " * 40,
    "night " * 40 + "needle",
    "é ü 東京 🙂",
]


def library(folder: Path, **options: Any) -> Any:
    """The model as the library loads it."""
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(str(folder), device="cpu", local_files_only=True, **options)


def encoder(folder: Path, runtime: RuntimeOptions | None = None, **fields: Any) -> Any:
    """The model as we load it."""
    return loading.load(loading.resolve(ModelSpec(name=str(folder), **fields)), runtime)


POOLINGS = ["mean", "cls", "max", "lasttoken", "weightedmean", "mean_sqrt_len_tokens"]


@pytest.mark.parametrize("pooling", POOLINGS)
def test_vectors_equal_those_of_the_library(tmp_path: Path, pooling: str) -> None:
    """Every pooling, in batches cut differently: equal to ``SentenceTransformer.encode`` to 2e-6."""
    folder = save_tiny_model(tmp_path / "model", pooling=pooling)
    ours = encoder(folder, RuntimeOptions(batch_tokens=20)).encode(TEXTS, role=Role.TEXT).vectors
    np.testing.assert_allclose(ours, library(folder).encode(TEXTS, batch_size=3), atol=2e-6)


@pytest.mark.parametrize("pooling", POOLINGS)
def test_padding_does_not_move_positions(tmp_path: Path, pooling: str) -> None:
    """A BERT whose tokenizer pads on the left: one batch of all texts equals the library on each text alone.

    Its positions are counted from the left end, so the library in batches gives vectors that hang on the batch.
    """
    folder = save_tiny_model(tmp_path / "model", pooling=pooling, padding_side="left")
    ours = encoder(folder, RuntimeOptions(batch_tokens=10_000)).encode(TEXTS, role=Role.TEXT).vectors
    theirs = library(folder)
    np.testing.assert_allclose(ours, theirs.encode(TEXTS, batch_size=1), atol=2e-6)
    assert np.abs(theirs.encode(TEXTS, batch_size=100) - ours).max() > 0.01


@pytest.mark.parametrize("pooling", POOLINGS)
def test_left_padding_where_positions_are_relative(tmp_path: Path, pooling: str) -> None:
    """A decoder with rotary positions is padded as its tokenizer says: equal to the library in one batch and alone."""
    folder = save_tiny_decoder(tmp_path / "model", pooling=pooling)
    ours = encoder(folder, RuntimeOptions(batch_tokens=10_000)).encode(TEXTS, role=Role.TEXT).vectors
    theirs = library(folder)
    np.testing.assert_allclose(ours, theirs.encode(TEXTS, batch_size=100), atol=5e-6)
    np.testing.assert_allclose(ours, theirs.encode(TEXTS, batch_size=1), atol=5e-6)


@pytest.mark.parametrize("pooling", POOLINGS)
def test_texts_without_a_token(tmp_path: Path, pooling: str) -> None:
    """Empty, blank, and one that a tokenizer without special tokens makes nothing of: zeros, alone and among others.

    The library gives -Inf for max and the vector of a padding token for cls (G20).
    """
    folder = save_tiny_decoder(tmp_path / "model", pooling=pooling)
    model = encoder(folder)
    nothing = ["", "   ", "\x00"]
    alone = model.encode(nothing, role=Role.TEXT)
    assert not alone.vectors.any()
    assert (alone.counts.n_empty, alone.counts.n_zero, alone.counts.tokens_kept) == (2, 3, 0)
    among = model.encode([*nothing, *TEXTS], role=Role.TEXT).vectors
    assert not among[:3].any()
    np.testing.assert_allclose(among[3:], model.encode(TEXTS, role=Role.TEXT).vectors, atol=1e-6)


def test_an_empty_text_has_a_zero_vector(tiny_model: Path) -> None:
    """With a prompt before it, too: what a BERT makes of nothing has length 1 and is near to everything."""
    for prompts in ({}, {"query": "the query "}):
        embeddings = encoder(tiny_model, prompts=prompts).encode(["", "backup", " \n"], role=Role.QUERY)
        assert [bool(row.any()) for row in embeddings.vectors] == [False, True, False]
        assert (embeddings.counts.n_empty, embeddings.counts.n_zero) == (2, 2)
        assert embeddings.normalized
    assert np.abs(library(tiny_model).encode([""])).max() > 0.1


def test_texts_that_look_the_same_to_the_model_share_a_vector(tiny_model: Path) -> None:
    """Case is lost by the tokenizer and the needle by truncation: the vectors are equal to the bit."""
    vectors = encoder(tiny_model, RuntimeOptions(batch_tokens=16)).encode(TEXTS, role=Role.TEXT).vectors
    assert np.array_equal(vectors[2], vectors[3])
    assert np.array_equal(vectors[5], vectors[6])
    assert not np.array_equal(vectors[0], vectors[1])


def test_truncation_and_emptiness_are_counted(tiny_model: Path) -> None:
    """Two texts of 40 and 41 words keep 14 of them beside [CLS] and [SEP]; two texts are empty and have no tokens."""
    embeddings = encoder(tiny_model).encode(["", *TEXTS, "   "], role=Role.TEXT)
    counts = embeddings.counts
    assert (counts.n_texts, counts.n_empty, counts.n_truncated) == (10, 2, 2)
    # "needle" is not in the vocabulary: n ##e ##e ##d ##l ##e are 6 pieces.
    assert counts.tokens_lost == (40 - 14) + (46 - 14)
    tokenizer = library(tiny_model).tokenizer
    kept = sum(len(ids) for ids in tokenizer(TEXTS, truncation=True)["input_ids"])
    assert counts.tokens_kept == kept
    assert embeddings.truncated is not None
    assert set(embeddings.truncated) == {6, 7}
    assert embeddings.truncated[6] == embeddings.truncated[7]


def test_prompts_of_the_model_are_used_by_role(tmp_path: Path) -> None:
    """Equal to the library with the prompt of that name."""
    prompts = {"query": "the query ", "passage": "the document "}
    folder = save_tiny_model(tmp_path / "model", prompts=prompts)
    model, theirs = encoder(folder), library(folder)
    texts = ["backup of the archive", "token"]
    np.testing.assert_allclose(model.encode(texts, role=Role.QUERY).vectors, theirs.encode_query(texts), atol=2e-6)
    np.testing.assert_allclose(
        model.encode(texts, role=Role.DOCUMENT).vectors, theirs.encode(texts, prompt_name="passage"), atol=2e-6
    )
    np.testing.assert_allclose(model.encode(texts, role=Role.TEXT).vectors, theirs.encode(texts), atol=2e-6)
    assert model.prompt(Role.DOCUMENT) == "the document "
    assert not np.allclose(model.encode(texts, role=Role.QUERY).vectors, model.encode(texts, role=Role.TEXT).vectors)


def test_a_prompt_that_pooling_leaves_out(tmp_path: Path) -> None:
    """INSTRUCTOR-like models don't pool over the prompt; equal to the library, which counts its tokens."""
    prompts = {"query": "the query "}
    folder = save_tiny_model(tmp_path / "model", prompts=prompts, include_prompt=False)
    texts = ["backup of the archive", "token"]
    ours = encoder(folder, RuntimeOptions(batch_tokens=1)).encode(texts, role=Role.QUERY).vectors
    np.testing.assert_allclose(ours, library(folder).encode_query(texts, batch_size=1), atol=2e-6)


def test_truncated_dimensions_are_normalised_again(tiny_model: Path) -> None:
    """Matryoshka: the first 8 of 32 dimensions, at length 1; the library does the same when asked to."""
    embeddings = encoder(tiny_model, truncate_dim=8).encode(TEXTS, role=Role.TEXT)
    theirs = library(tiny_model, truncate_dim=8).encode(TEXTS, normalize_embeddings=True)
    np.testing.assert_allclose(embeddings.vectors, theirs, atol=2e-6)
    assert embeddings.normalized
    with pytest.raises(ModelError, match="32 dimensions, so truncate_dim can't be 33"):
        encoder(tiny_model, truncate_dim=33)


def test_dense_module_runs(tmp_path: Path) -> None:
    """Modules after pooling are part of the model."""
    folder = save_tiny_model(tmp_path / "model", dense=8, normalize=False)
    ours = encoder(folder).encode(TEXTS, role=Role.TEXT)
    np.testing.assert_allclose(ours.vectors, library(folder).encode(TEXTS), atol=2e-6)
    assert ours.vectors.shape[1] == 8
    assert not ours.normalized


def test_normalize_can_be_added_but_not_taken_away(tmp_path: Path, tiny_model: Path) -> None:
    """``normalize: true`` gives unit length; ``false`` on a model that normalises is refused, not ignored."""
    folder = save_tiny_model(tmp_path / "model", normalize=False)
    assert not encoder(folder).encode(TEXTS, role=Role.TEXT).normalized
    made_unit = encoder(folder, normalize=True).encode(TEXTS, role=Role.TEXT)
    assert made_unit.normalized
    np.testing.assert_allclose(made_unit.vectors, library(folder).encode(TEXTS, normalize_embeddings=True), atol=2e-6)
    with pytest.raises(ModelError, match="'normalize: false' can't be honoured"):
        encoder(tiny_model, normalize=False)


def test_pooling_can_be_overridden(tmp_path: Path, tiny_model: Path) -> None:
    """The mean model pooled by its first token equals the same weights saved with that pooling."""
    cls_model = save_tiny_model(tmp_path / "model", pooling="cls")
    ours = encoder(tiny_model, pooling="cls").encode(TEXTS, role=Role.TEXT).vectors
    np.testing.assert_allclose(ours, library(cls_model).encode(TEXTS), atol=2e-6)
    assert encoder(tiny_model, pooling="mean_sqrt_len").info.pooling == "mean_sqrt_len"


def test_max_seq_length_of_the_spec_wins(tiny_model: Path) -> None:
    """8 tokens instead of 16: more is cut off, and it is counted."""
    counts = encoder(tiny_model, max_seq_length=8).encode(TEXTS, role=Role.TEXT).counts
    full = [len(ids) for ids in library(tiny_model).tokenizer(TEXTS, truncation=False)["input_ids"]]
    assert counts.n_truncated == sum(length > 8 for length in full)
    assert counts.tokens_lost == sum(max(length - 8, 0) for length in full)
    assert counts.tokens_kept == sum(min(length, 8) for length in full)


def test_reduced_precision_computes_in_it_and_pools_in_float32(tiny_model: Path) -> None:
    """bfloat16 shifts vectors a little and gives float32 with more digits than bfloat16 has (F7)."""
    full = encoder(tiny_model).encode(TEXTS, role=Role.TEXT).vectors
    half = encoder(tiny_model, dtype="bfloat16").encode(TEXTS, role=Role.TEXT).vectors
    cosine = (full * half).sum(axis=1)
    assert cosine.min() > 0.995
    assert not np.array_equal(full, half)
    through_bfloat16 = (half.view(np.uint32) & 0xFFFF_0000).view(np.float32)
    assert not np.array_equal(half, through_bfloat16)


def test_info_tells_what_the_model_is(tmp_path: Path) -> None:
    """Dimensions, limit, similarity, prompts and parameters as the library knows them."""
    folder = save_tiny_model(tmp_path / "model", prompts={"query": "q: ", "document": ""})
    info = encoder(folder).info
    assert (info.dim, info.max_seq_length, info.similarity, info.pooling) == (32, 16, "cosine", "mean")
    assert info.prompts == {"query": "q: "}
    assert info.n_parameters == sum(each.numel() for each in library(folder).parameters())
    assert info.device == "cpu"
    assert info.batch_tokens == 2_048


def test_static_embeddings_take_the_library_s_own_path(tmp_path: Path) -> None:
    """A model without a transformer: equal vectors, and what is cut off is unknown instead of 0."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding
    from tokenizers import Tokenizer, models, pre_tokenizers

    tokenizer = Tokenizer(models.WordLevel({"backup": 0, "token": 1, "?": 2}, unk_token="?"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    weights = np.random.default_rng(0).normal(size=(3, 12)).astype(np.float32)
    folder = tmp_path / "static"
    SentenceTransformer(modules=[StaticEmbedding(tokenizer, embedding_weights=weights)], device="cpu").save(
        str(folder), create_model_card=False
    )
    texts = ["backup", "token backup", "backup unknown word", "token"]
    embeddings = encoder(folder, RuntimeOptions(batch_tokens=3)).encode(texts, role=Role.DOCUMENT)
    np.testing.assert_allclose(embeddings.vectors, library(folder).encode(texts), atol=2e-6)
    assert embeddings.counts.n_truncated is None
    assert embeddings.truncated is None


def test_a_device_that_is_not_there_is_refused(tiny_model: Path) -> None:
    """Asking for CUDA where there is none is an error, not a silent CPU run (G1)."""
    import torch

    missing = f"cuda:{torch.cuda.device_count() if torch.cuda.is_available() else 0}"
    with pytest.raises(ModelError, match=f"Device '{missing}' was asked for"):
        encoder(tiny_model, RuntimeOptions(device=missing))
    with pytest.raises(ValueError, match="device must be auto, cpu, mps, cuda or cuda:0 and so on, not 'gpu7'"):
        RuntimeOptions(device="gpu7")


@pytest.mark.gpu
def test_cuda_equals_cpu(tiny_model: Path) -> None:
    """The same vectors on a GPU, to 1e-5."""
    import torch

    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    on_gpu = encoder(tiny_model, RuntimeOptions(device="cuda"))
    assert on_gpu.info.device.startswith("cuda")
    on_cpu = encoder(tiny_model, RuntimeOptions(device="cpu"))
    np.testing.assert_allclose(
        on_gpu.encode(TEXTS, role=Role.TEXT).vectors, on_cpu.encode(TEXTS, role=Role.TEXT).vectors, atol=1e-5
    )


def test_number_of_threads_is_used(tiny_model: Path) -> None:
    """``num_threads`` sets torch's threads and is told in ``info``."""
    import torch

    before = torch.get_num_threads()
    try:
        assert encoder(tiny_model, RuntimeOptions(num_threads=1)).info.num_threads == 1
        assert torch.get_num_threads() == 1
    finally:
        torch.set_num_threads(before)


def test_unknown_option_is_refused(tiny_model: Path) -> None:
    """A misspelled option of the backend is not ignored."""
    with pytest.raises(ConfigError, match="no option 'trust_remote'"):
        encoder(tiny_model, args={"trust_remote": True})
    with pytest.raises(ConfigError, match="trust_remote_code must be true or false, not 'yes'"):
        encoder(tiny_model, args={"trust_remote_code": "yes"})


def test_a_broken_folder_is_a_model_error(tmp_path: Path, tiny_model: Path) -> None:
    """Whatever the libraries below raise becomes one message that names the model."""
    import shutil

    broken = tmp_path / "broken"
    shutil.copytree(tiny_model, broken)
    weights = broken / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:500])
    with pytest.raises(ModelError, match="can't be loaded with sentence-transformers"):
        encoder(broken)
    edit_json(broken / "config.json", model_type="no-such-architecture")
    with pytest.raises(ModelError, match="can't be loaded with sentence-transformers"):
        encoder(broken)


def test_pickled_weights_are_refused(tmp_path: Path, tiny_model: Path) -> None:
    """Pickle can run code when it is read, so it isn't."""
    import shutil

    folder = tmp_path / "pickled"
    shutil.copytree(tiny_model, folder)
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(ModelError, match=r"pytorch_model\.bin and no safetensors beside it"):
        encoder(folder)


@pytest.mark.parametrize("limit", [0, -3, "16"])
def test_a_declared_limit_that_leaves_nothing_is_refused(tmp_path: Path, limit: object) -> None:
    """All texts would be their special tokens, and equal."""
    folder = save_tiny_model(tmp_path / "model")
    edit_json(folder / "sentence_bert_config.json", max_seq_length=limit)
    with pytest.raises(ModelError, match="a whole number from 3 belongs"):
        encoder(folder)


def test_a_model2vec_folder_is_sent_to_its_backend(tmp_path: Path, tiny_model: Path) -> None:
    """What no library here calls an architecture has a backend of its own, and the message names it."""
    import shutil

    folder = shutil.copytree(tiny_model, tmp_path / "static")
    edit_json(folder / "config.json", model_type="model2vec")
    with pytest.raises(ModelError, match="put static: before its name"):
        encoder(folder)
