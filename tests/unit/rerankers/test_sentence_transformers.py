"""Cross-encoders in torch, against sentence-transformers itself."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from embeval.core.protocols import Reranker
from embeval.core.specs import RerankerSpec, RuntimeOptions
from embeval.errors import ConfigError, InvalidEmbeddingsError, ModelError
from embeval.rerankers import loading
from embeval.rerankers.cross_encoder import CrossEncoder
from tests.support.exports import exported_cross_encoder
from tests.support.models import edit_json, save_tiny_checkpoint, save_tiny_cross_encoder, save_tiny_model

LONG = "one two three day old new fast slow red blue green one two three day old new fast slow red"
PAIRS = [
    ("restore a backup", "the server is restored from a backup"),
    ("token", "a new token for the user, the key of the red server " + LONG),
    (LONG, "one"),
    (LONG, "two"),
    ("the key", ""),
    ("a red server", "a blue server"),
]
CPU = RuntimeOptions(device="cpu")


def load(folder: Path, runtime: RuntimeOptions = CPU, **spec: Any) -> Reranker:
    """The reranker in a folder."""
    return loading.load(loading.resolve(RerankerSpec(name=str(folder), **spec)), runtime)


def library(folder: Path, pairs: Sequence[tuple[str, str]]) -> np.ndarray[Any, Any]:
    """Logits by ``sentence_transformers.CrossEncoder`` 6.2, one pair at a time."""
    import torch
    from sentence_transformers import CrossEncoder as Theirs

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = Theirs(str(folder), device="cpu")
        if theirs.tokenizer.pad_token is None:
            theirs.tokenizer.pad_token = theirs.tokenizer.eos_token
        theirs.model.config.pad_token_id = theirs.tokenizer.pad_token_id
        scores = theirs.predict(list(pairs), activation_fn=torch.nn.Identity(), batch_size=1)
    return np.asarray(scores, dtype=np.float32)


KINDS = [
    "albert",
    "bert",
    "deberta-v2",
    "distilbert",
    "electra",
    "gpt2",
    "llama",
    "modernbert",
    "mpnet",
    "qwen3",
    "xlnet",
]


@pytest.mark.parametrize("kind", KINDS)
def test_scores_are_the_logits_of_the_library(tmp_path: Path, kind: str) -> None:
    """All pairs in one batch, to 5e-6, for pairs that are cut too; encoders and decoders."""
    folder = save_tiny_cross_encoder(tmp_path / "model", kind)
    scored = load(folder).score(PAIRS)
    assert scored.scores.dtype == np.float32
    np.testing.assert_allclose(scored.scores, library(folder, PAIRS), atol=5e-6)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random cross-encoder of 16 tokens."""
    return save_tiny_cross_encoder(tmp_path_factory.mktemp("rerankers") / "tiny")


def test_a_model_saved_by_the_library(tiny: Path, tmp_path: Path) -> None:
    """With its modules.json and settings: the same scores as without."""
    from sentence_transformers import CrossEncoder as Theirs

    Theirs(str(tiny), device="cpu").save(str(tmp_path / "saved"))
    np.testing.assert_array_equal(load(tmp_path / "saved").score(PAIRS).scores, load(tiny).score(PAIRS).scores)


def test_counts(tiny: Path) -> None:
    """Special tokens included; an empty document is not a lost one; equal pairs are counted and not run again."""
    scored = load(tiny).score([("token", "one two"), ("token", ""), (LONG, "one"), ("token", "one two")])
    assert scored.tokens_kept == 6 + 4 + 16 + 6
    assert (scored.n_truncated, scored.tokens_lost) == (1, 20 - 12)
    assert scored.n_document_lost == 0
    assert (scored.work.n_texts, scored.work.n_tokens) == (3, 26)


def test_the_document_is_never_pushed_out(tiny: Path) -> None:
    """F14 (ii): a query of 20 words, 16 tokens in all, two documents of a word: two scores."""
    scored = load(tiny).score([(LONG, "one"), (LONG, "two")])
    assert scored.scores[0] != scored.scores[1]
    assert scored.n_document_lost == 0


def test_a_document_that_the_tokenizer_drops(tiny: Path) -> None:
    """Characters that BERT's tokenizer removes leave nothing of a document; that is told."""
    scored = load(tiny).score([("token", "\x00\x01"), ("token", "  "), ("token", "one")])
    assert scored.n_document_lost == 1


def test_limits(tiny: Path) -> None:
    """The tokenizer's own or that of the spec; not beyond the positions, nor too short for a token of each text."""
    assert load(tiny).info.max_seq_length == 16
    assert load(tiny, max_seq_length=5).score([(LONG, LONG)]).tokens_kept == 5
    assert load(tiny, max_seq_length=64).info.max_seq_length == 64
    with pytest.raises(ModelError, match="takes 5 to 64 tokens, so max_seq_length can't be 4"):
        load(tiny, max_seq_length=4)
    with pytest.raises(ModelError, match="so max_seq_length can't be 65"):
        load(tiny, max_seq_length=65)
    with pytest.raises(ConfigError, match="max_seq_length must be at least 1, not 0"):
        load(tiny, max_seq_length=0)


def test_a_limit_in_the_settings_of_the_library(tmp_path: Path) -> None:
    """``sentence_bert_config.json`` has one in models of older versions."""
    folder = save_tiny_cross_encoder(tmp_path / "model")
    (folder / "sentence_bert_config.json").write_text('{"max_seq_length": 8}', encoding="utf-8")
    assert load(folder).score([(LONG, LONG)]).tokens_kept == 8


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_large_logits_stay_apart(tmp_path: Path, dtype: str) -> None:
    """F7: 8.0, 8.5 and 9.0 are three scores in every precision, where a sigmoid would give 1.0 for all in float16."""
    import torch
    from safetensors.torch import load_file, save_file

    folder = save_tiny_cross_encoder(tmp_path / "model", labels=3)
    weights = load_file(folder / "model.safetensors")
    weights["classifier.weight"] = torch.zeros_like(weights["classifier.weight"])
    weights["classifier.bias"] = torch.tensor([8.0, 8.5, 9.0])
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    scores = [load(folder, dtype=dtype, args={"label": label}).score([("a", "b")]).scores[0] for label in range(3)]
    assert scores == [8.0, 8.5, 9.0]


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_the_head_computes_in_float32(tmp_path: Path, dtype: str) -> None:
    """A bias of 1000 and weights of the usual size: in half precision all pairs would have one score."""
    import torch
    from safetensors.torch import load_file, save_file

    folder = save_tiny_cross_encoder(tmp_path / "model")
    weights = load_file(folder / "model.safetensors")
    weights["classifier.bias"] = torch.tensor([1000.0])
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    exact = load(folder).score(PAIRS).scores
    found = load(folder, dtype=dtype).score(PAIRS).scores
    assert len(set(found.tolist())) == len(PAIRS)
    np.testing.assert_allclose(found, exact, atol=0.1)
    assert not np.array_equal(found, exact)


def test_labels(tmp_path: Path) -> None:
    """Of several outputs one must be named, by number or by name."""
    folder = save_tiny_cross_encoder(tmp_path / "model", labels=3)
    edit_json(
        folder / "config.json",
        id2label={"0": "contradiction", "1": "Entailment", "2": "neutral"},
        label2id={"contradiction": 0, "Entailment": 1, "neutral": 2},
    )
    every = library(folder, PAIRS)
    for label, column in ((0, 0), (2, 2), ("entailment", 1), ("neutral", 2)):
        np.testing.assert_allclose(load(folder, args={"label": label}).score(PAIRS).scores, every[:, column], atol=5e-6)
    with pytest.raises(ConfigError, match=r"gives 3 scores per pair: 0 .contradiction., 1 .Entailment., 2 .neutral.\."):
        load(folder)
    for wrong in (3, -1, "relevant", True):
        with pytest.raises(ConfigError, match="has no label"):
            load(folder, args={"label": wrong})


def test_a_checkpoint_without_its_head(tmp_path: Path) -> None:
    """The library would score at random: refused, whatever config.json calls itself."""
    body = save_tiny_checkpoint(tmp_path / "body", "bert")
    with pytest.raises(ModelError, match=r"is no cross-encoder: its config.json says BertModel, and not …ForSequence"):
        load(body)
    edit_json(body / "config.json", architectures=["BertForSequenceClassification"], id2label={"0": "LABEL_0"})
    with pytest.raises(ModelError, match=r"2 weights are not in its files, such as classifier.bias, classifier.weight"):
        load(body)


def test_a_bi_encoder(tmp_path: Path) -> None:
    """A model for embeddings is no reranker."""
    with pytest.raises(ModelError, match="has 3 modules"):
        load(save_tiny_model(tmp_path / "model"))


def test_settings_that_would_be_left_out(tmp_path: Path) -> None:
    """A prompt for pairs, lower-casing: refused, not ignored."""
    folder = save_tiny_cross_encoder(tmp_path / "model")
    (folder / "config_sentence_transformers.json").write_text(
        '{"prompts": {"web": "Given a query: "}, "default_prompt_name": "web"}', encoding="utf-8"
    )
    with pytest.raises(ModelError, match="declares a prompt for its pairs"):
        load(folder)
    (folder / "config_sentence_transformers.json").unlink()
    (folder / "sentence_bert_config.json").write_text('{"do_lower_case": true}', encoding="utf-8")
    with pytest.raises(ModelError, match="lower-cases texts"):
        load(folder)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"args": {"labels": 1}},
            "Reranker backend 'sentence_transformers' has no option 'labels'; it takes label, trust",
        ),
        ({"args": {"trust_remote_code": "yes"}}, "trust_remote_code must be true or false, not 'yes'"),
        ({"dtype": "int8"}, "has float32, bfloat16, float16, but no dtype 'int8'"),
        ({"backend": "sentence-transformer"}, "Unknown reranker backend"),
    ],
)
def test_mistakes_in_the_spec(tiny: Path, settings: dict[str, Any], message: str) -> None:
    """Are told before anything is loaded."""
    from embeval.errors import UsageError

    with pytest.raises(UsageError, match=message):
        loading.resolve(RerankerSpec(name=str(tiny), **settings))


def test_a_score_that_is_no_number(tmp_path: Path) -> None:
    """NaN is refused with the numbers of the pairs."""
    import torch
    from safetensors.torch import load_file, save_file

    folder = save_tiny_cross_encoder(tmp_path / "model")
    weights = load_file(folder / "model.safetensors")
    vocabulary = (folder / "vocab.txt").read_text(encoding="utf-8").split()
    weights["bert.embeddings.word_embeddings.weight"][vocabulary.index("token")] = torch.nan
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(InvalidEmbeddingsError, match=r"no finite number, such as for the pairs number 1, 3") as caught:
        load(folder).score([("a", "b"), ("token", "b"), ("a", "c"), ("a", "token")])
    assert caught.value.ids == ("1", "3")


def test_a_batch_that_does_not_fit_is_halved(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The scores are those of whole batches to 1e-6, and the budget stays smaller."""
    whole = load(tiny).score(PAIRS).scores
    reranker = load(tiny)
    assert isinstance(reranker, CrossEncoder)
    backend, sizes = reranker.encoder.backend, []
    forward = backend.forward

    def small(prepared: Any, rows: Any) -> Any:
        sizes.append(len(rows))
        if len(rows) > 2:
            raise MemoryError
        return forward(prepared, rows)

    monkeypatch.setattr(backend, "forward", small)
    np.testing.assert_allclose(reranker.score(PAIRS).scores, whole, atol=1e-6)
    assert sizes == [6, 3, 1, 2, 3, 1, 2]
    assert reranker.info.batch_tokens < load(tiny).info.batch_tokens


def test_the_budget_can_be_measured(tiny: Path) -> None:
    """On pairs, and not on texts that are none."""
    reranker = load(tiny, RuntimeOptions(device="cpu", batch_tokens="auto"))
    assert reranker.info.batch_tokens >= 1024
    np.testing.assert_allclose(reranker.score(PAIRS).scores, load(tiny).score(PAIRS).scores, atol=1e-6)


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_on_a_gpu(tiny: Path, dtype: str) -> None:
    """The scores of the CPU, to what the precision allows."""
    import torch

    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    found = load(tiny, RuntimeOptions(device="cuda"), dtype=dtype).score(PAIRS).scores
    np.testing.assert_allclose(found, load(tiny).score(PAIRS).scores, atol=1e-4 if dtype == "float32" else 0.1)


def test_a_graph_is_told_apart_from_weights() -> None:
    """The folder of an export says what to write, before anything runs."""
    folder = exported_cross_encoder()
    with pytest.raises(ModelError, match=r"is an ONNX graph, with no weights for torch\. Say so: .*backend: onnx"):
        loading.resolve(RerankerSpec(name=str(folder)))
