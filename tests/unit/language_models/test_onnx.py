"""Exported language models in onnxruntime, against torch."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from embeval.core.protocols import PLL_MODES
from embeval.core.protocols import LanguageModelKind as Kind
from embeval.core.specs import Dtype, ModelSpec, Role, RuntimeOptions
from embeval.encoders import export
from embeval.encoders import loading as encoders
from embeval.encoders.onnx_session import Session
from embeval.errors import ConfigError, EvaluationError, ModelError
from embeval.language_models import export as language_export
from embeval.language_models import kinds, loading, parity, pseudo, tokenization
from embeval.language_models.backends import onnx as backend
from embeval.language_models.backends.transformers import load_with_head
from embeval.language_models.model import KEPT, REPLACED, LanguageModel
from embeval.language_models.variants import packed
from tests.support.exports import exported_language_model, language_model, save_lookup
from tests.support.models import edit_json, save_tiny_checkpoint, save_tokenizer

CPU = RuntimeOptions(device="cpu", num_threads=1)
TEXTS = ("a", "the server", "restore a backup of the server, token by token", "one two three day old new fast")
KINDS = ("bert", "distilbert", "modernbert", "roberta")


def load(folder: Path, runtime: RuntimeOptions = CPU, **spec: Any) -> LanguageModel:
    """The masked language model in a folder of graphs."""
    return load_as("masked", folder, runtime, **spec)


def load_as(kind: Kind, folder: Path, runtime: RuntimeOptions = CPU, **spec: Any) -> LanguageModel:
    """A language model of another kind in it."""
    return loading.load(encoders.resolve(ModelSpec(name=str(folder), backend="onnx", **spec)), kind, runtime)


def loaded_as_known(folder: Path) -> LanguageModel:
    """The model in a folder of graphs, of the kind that it says."""
    located = encoders.resolve(ModelSpec(name=str(folder), backend="onnx"))
    kind = kinds.checked(loading.known_of(located)[0], ("masked",), model="tiny", task="wiki")
    return loading.load(located, kind, CPU)


def in_torch(folder: Path) -> LanguageModel:
    """That of a checkpoint."""
    return loading.load(encoders.resolve(ModelSpec(name=str(folder))), "masked", CPU)


def variants(model: LanguageModel, texts: Sequence[str] = TEXTS) -> list[str]:
    """All of both modes of PLL, for texts of one token and of many."""
    return [
        variant
        for text in model.tokens(texts)
        for mode in PLL_MODES
        for variant in pseudo.variants(text, model.frame, mode, pseudo.scored_places(text), room=model.room, stride=4)
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_log_probabilities_are_those_of_torch(kind: str) -> None:
    """To 1e-4 a token; limits and the tokenizer's digest are the same, so that results can be compared."""
    model, graph = in_torch(language_model(kind)), load(exported_language_model(kind))
    asked = variants(model)
    wanted, found = model.score(asked), graph.score(asked)
    assert np.ptp(wanted.log_prob) > 1
    np.testing.assert_allclose(found.log_prob, wanted.log_prob, atol=1e-4)
    np.testing.assert_array_equal(found.hits_5, wanted.hits_5)
    assert graph.limit == model.limit
    assert graph.info.extra["execution_provider"] == "CPUExecutionProvider"
    located = encoders.resolve(ModelSpec(name=str(exported_language_model(kind)), backend="onnx"))
    assert loading.known_of(located) == ("masked", tokenization.digest(language_model(kind)))


@pytest.mark.parametrize("kind", KINDS)
def test_sizes_of_one_and_others(kind: str) -> None:
    """No size of the examples stays in the graph: one text, one token, one place, and many of each."""
    model, graph = in_torch(language_model(kind)), load(exported_language_model(kind))
    several = packed(np.arange(5, 17, dtype=np.int32), [0, 3, 4, 9, 11], [7, 8, 9, 10, 11])
    for asked in ([packed(np.array([5], dtype=np.int32), [0], [9])], [several], [several] * 3 + variants(model)):
        np.testing.assert_allclose(graph.score(asked).log_prob, model.score(asked).log_prob, atol=5e-4)


@pytest.mark.parametrize("kind", ["bert", "modernbert"])
def test_a_variant_alone_is_one_among_others(kind: str) -> None:
    """Neither padding nor the batch nor the order moves a score."""
    graph = load(exported_language_model(kind))
    asked = variants(graph)
    together = graph.score(asked).log_prob
    np.testing.assert_allclose([graph.score([each]).log_prob[0] for each in asked], together, atol=1e-5)
    np.testing.assert_allclose(graph.score(asked[::-1]).log_prob[::-1], together, atol=1e-5)


@pytest.mark.parametrize("dtype", ["float16", "int8"])
def test_fewer_bits_stay_within_their_bounds(dtype: Dtype) -> None:
    """Near the model, and not the model; ranks beyond 2,048 tokens and log-probabilities are no halves."""
    model, graph = in_torch(language_model("bert")), load(exported_language_model("bert"), dtype=dtype)
    asked = parity.variants(model, TEXTS)
    found = graph.score(asked)
    compared = parity.compare(model.score(asked), found)
    assert parity.BOUNDS[dtype].broken_by(compared) == []
    assert compared.max_abs > 1e-5
    assert (found.log_prob.astype(np.float16) != found.log_prob).any()


def test_the_head_of_a_half_is_whole() -> None:
    """Weights of the body are halves; the head's are float32, and so is all that it makes of them."""
    graph = onnx.load(exported_language_model("bert") / "onnx/model_fp16.onnx").graph
    matrices = {each.name: each.data_type for each in graph.initializer if len(each.dims) == 2}
    of_head = {kind for name, kind in matrices.items() if name.startswith("float32.")}
    of_body = {kind for name, kind in matrices.items() if not name.startswith("float32.")}
    assert (of_head, TensorProto.FLOAT16 in of_body, TensorProto.FLOAT in of_body) == ({TensorProto.FLOAT}, True, False)
    assert [each.type.tensor_type.elem_type for each in graph.output] == [TensorProto.FLOAT]


def test_products_of_the_head_stay_float_in_int8() -> None:
    """All products of the body with weights are of integers, and the two of the head are not."""
    whole = onnx.load(exported_language_model("bert") / "onnx/model.onnx").graph
    coarse = onnx.load(exported_language_model("bert") / "onnx/model_int8.onnx").graph
    weights = {each.name for each in whole.initializer}
    of_weights = [node for node in whole.node if node.op_type in ("MatMul", "Gemm") and weights & {*node.input}]
    assert len(of_weights) == 2 * 6 + 2
    assert len([node for node in coarse.node if node.op_type == "MatMulInteger"]) == 2 * 6


def test_a_batch_with_many_scores_is_run_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many places at once as fit, and all of one text where even those are too many."""
    graph = load(exported_language_model("bert"))
    asked = [packed(np.arange(5, 15, dtype=np.int32), range(n), range(n)) for n in (1, 4, 2, 9, 3)]
    wanted = graph.score(asked).log_prob
    sizes: list[int] = []
    run = Session.run

    def counted(self: Any, features: Any) -> Any:
        sizes.append(len(features["targets"]))
        return run(self, features)

    monkeypatch.setattr(backend, "SCORES_AT_ONCE", 5 * 150)
    monkeypatch.setattr(Session, "run", counted)
    np.testing.assert_allclose(load(exported_language_model("bert")).score(asked).log_prob, wanted, atol=1e-5)
    assert (sum(sizes), max(sizes)) == (19, 9)
    assert all(size <= 5 for size in sizes if size != 9)


def test_tasks_for_vectors_are_refused() -> None:
    """The graph gives scores of tokens, which have the shape of vectors."""
    spec = ModelSpec(name=str(exported_language_model("bert")), backend="onnx")
    with pytest.raises(ModelError, match=r"gives probabilities of tokens and no vectors\.\nTasks .* without --lm-head"):
        encoders.load(encoders.resolve(spec), CPU)


def test_an_encoders_export_is_refused(tmp_path: Path) -> None:
    """By what it says of itself, without opening the graph; the message says how to get one."""
    save_lookup(tmp_path / "model")
    edit_json(tmp_path / "model/config.json", architectures=["BertForMaskedLM"])
    spec = ModelSpec(name=str(tmp_path / "model"), backend="onnx", pooling="mean")
    assert loading.known_of(encoders.resolve(spec))[0] == "masked"
    export.note(tmp_path / "model", spec, positions=64)
    kind, _ = loading.known_of(encoders.resolve(spec))
    assert kind == "headless"
    with pytest.raises(EvaluationError, match=r"exported without the language-model head.*export MODEL --lm-head"):
        kinds.checked(kind, ("masked",), model="tiny", task="wiki")


def test_a_provider_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """G1: an error, and not the CPU in silence, with an onnxruntime that has the CPU alone."""
    import onnxruntime

    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: ["CPUExecutionProvider"])
    with pytest.raises(ModelError, match="CUDAExecutionProvider was asked for, but this onnxruntime has only"):
        load(exported_language_model("bert"), RuntimeOptions(device="cuda"))
    with pytest.raises(ModelError, match="TensorrtExecutionProvider was asked for"):
        load(exported_language_model("bert"), RuntimeOptions(), args={"provider": "tensorrt"})
    with pytest.raises(ConfigError, match="nothing to compile"):
        load(exported_language_model("bert"), RuntimeOptions(compile=True))


@pytest.mark.gpu
def test_on_a_gpu() -> None:
    """The log-probabilities of torch on the CPU."""
    import onnxruntime

    if "CUDAExecutionProvider" not in onnxruntime.get_available_providers() or not Path("/dev/nvidia0").exists():
        pytest.skip("no CUDA device")
    graph = load(exported_language_model("bert"), RuntimeOptions(device="cuda"))
    asked = variants(graph)
    found = graph.score(asked)
    assert graph.info.extra["execution_provider"] == "CUDAExecutionProvider"
    np.testing.assert_allclose(found.log_prob, in_torch(language_model("bert")).score(asked).log_prob, atol=1e-2)


@pytest.mark.parametrize(
    ("about", "message"),
    [
        ({"kind": "permuted"}, "has an unknown kind 'permuted'"),
        ({"vocabulary": "many"}, "vocabulary"),
        ({"vocabulary": 0}, "vocabulary"),
    ],
)
def test_a_note_that_was_changed(tmp_path: Path, about: dict[str, Any], message: str) -> None:
    """An error of ours, which names the file."""
    folder = Path(shutil.copytree(exported_language_model("bert"), tmp_path / "model"))
    edit_json(folder / "embeval_export.json", **about)
    with pytest.raises(ModelError, match=message) as told:
        loaded_as_known(folder)
    assert "embeval_export.json" in str(told.value)


def save_table(folder: Path, output: str = "logits", rank: int = 3) -> Any:
    """A folder as optimum writes it for fill-mask, whose scores of a token hang on the token alone: float [V, V]."""
    folder.mkdir()
    n_tokens = len(save_tokenizer(folder))
    config = {"model_type": "bert", "architectures": ["BertForMaskedLM"], "max_position_embeddings": 64}
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    table = np.random.default_rng(0).standard_normal((n_tokens, n_tokens)).astype(np.float32)
    if rank == 2:
        table = table[:, 0].copy()
    inputs = [
        helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "length"])
        for name in ("input_ids", "attention_mask", "token_type_ids")
    ]
    shape: list[str | int | None] = ["batch", "length", n_tokens]
    graph = helper.make_graph(
        [helper.make_node("Gather", ["table", "input_ids"], [output])],
        "table",
        inputs,
        [helper.make_tensor_value_info(output, TensorProto.FLOAT, shape[:rank])],
        [numpy_helper.from_array(table, "table")],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(made, folder / "model.onnx")
    return table


def test_a_graph_that_gives_logits_of_all_tokens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """That of other exporters, such as optimum's for fill-mask: the same numbers, by numpy, in parts too."""
    table = save_table(tmp_path / "model").astype(np.float64)
    asked = [packed(np.array(ids, dtype=np.int32), [place], [3]) for ids, place in (([7, 8, 9], 1), ([5], 0), ([9], 0))]
    rows = table[[8, 5, 9]]
    wanted = rows[:, 3] - np.log(np.exp(rows).sum(axis=1))
    for at_once in (64_000_000, 1):
        monkeypatch.setattr(backend, "SCORES_AT_ONCE", at_once)
        found = load(tmp_path / "model").score(asked)
        np.testing.assert_allclose(found.log_prob, wanted, atol=1e-5)
        assert found.hits_5.tolist() == [float((row > row[3]).sum() < 5) for row in rows]


def test_logits_of_other_kinds(tmp_path: Path) -> None:
    """A causal model is asked at the place before; a discriminator's one score is that of a replaced token."""
    table = save_table(tmp_path / "causal").astype(np.float64)
    asked = [packed(np.array([7, 8, 9], dtype=np.int32), [1, 2], [3, 4])]
    rows = table[[7, 8]]
    wanted = (rows[[0, 1], [3, 4]] - np.log(np.exp(rows).sum(axis=1))).sum()
    assert load_as("causal", tmp_path / "causal").score(asked).log_prob[0] == pytest.approx(wanted, abs=1e-5)
    score = save_table(tmp_path / "replaced", rank=2).astype(np.float64)[[7, 9]]
    asked = [packed(np.array([7, 8, 9], dtype=np.int32), [0, 2], [KEPT, REPLACED])]
    wanted = -np.log1p(np.exp(score[0])) - np.log1p(np.exp(-score[1]))
    assert load_as("replaced", tmp_path / "replaced").score(asked).log_prob[0] == pytest.approx(wanted, abs=1e-5)


@pytest.mark.parametrize(
    ("kind", "model_type", "head"),
    [("causal", "gpt2", "AutoModelForCausalLM"), ("replaced", "electra", "AutoModelForPreTraining")],
)
def test_other_kinds_are_exported_as_they_run(tmp_path: Path, kind: Kind, model_type: str, head: str) -> None:
    """What the exporter is given computes what the model in torch does; that graphs do is seen with masked models."""
    import torch

    located = encoders.resolve(ModelSpec(name=str(save_tiny_checkpoint(tmp_path / "model", model_type, head=head))))
    ids = np.arange(5, 13, dtype=np.int32)
    wanted = loading.load(located, kind, CPU).score([packed(ids, [place], [1]) for place in (2, 5)]).log_prob
    module = language_export._module(load_with_head(located, kind)[0], kind, "tiny").eval()
    with torch.inference_mode():
        texts = torch.from_numpy(ids.astype(np.int64))[None]
        found = module(texts, torch.ones_like(texts), torch.tensor([0, 0]), torch.tensor([2, 5]), torch.tensor([1, 1]))
    np.testing.assert_allclose(found[:, 0].numpy(), wanted, atol=1e-5)
    assert abs(wanted[0] - wanted[1]) > 1e-3


def test_graphs_that_are_no_language_models(tmp_path: Path) -> None:
    """A configuration that promises a head and a graph that has none, or one score a token."""
    save_table(tmp_path / "vectors", "last_hidden_state")
    with pytest.raises(
        ModelError, match=r"gives last_hidden_state, and no 'logits'\.\nIt has no .*export MODEL --lm-head"
    ):
        load(tmp_path / "vectors")
    save_table(tmp_path / "flat", rank=2)
    with pytest.raises(
        ModelError, match=r"gives logits of shape \[1, 1\] for 1 texts of 1 tokens, which are no scores"
    ):
        load(tmp_path / "flat")
    spec = ModelSpec(name=str(tmp_path / "flat"), backend="onnx", pooling="mean")
    with pytest.raises(ModelError, match=r"none of its outputs .logits. holds vectors"):
        encoders.load(encoders.resolve(spec), CPU).encode(["a"], role=Role.TEXT)
