"""The backend ``onnx``: against torch on random models, and by hand on graphs that look vectors up in a table."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from embeval.core.specs import ModelSpec, Role, RuntimeOptions
from embeval.encoders import loading, locate, onnx_session
from embeval.encoders.backends.onnx import EXPORT_FILE, graph_file, position_limit
from embeval.encoders.encoder import BatchedEncoder
from embeval.errors import ConfigError, ModelError
from tests.support.exports import copy_of, exported, save_lookup, source
from tests.support.models import edit_json

TEXTS = [
    "token",
    "restore a backup of the old server",
    "a",
    "the key of the archive and the folder of the user and the page of the document and more of it",
    "red green blue",
    "scan",
    "one two three night day old new fast slow",
    "Xyz!",
    "delete this file",
    "a b c d e f g h i j k l m n o p q r s t u v w x y z",
]
"""Ten texts of mixed length (F9), some longer than the limit."""


def load(folder: Path, runtime: RuntimeOptions | None = None, **fields: Any) -> BatchedEncoder[Any]:
    """The encoder of a folder."""
    encoder = loading.load(loading.resolve(ModelSpec(name=str(folder), backend="onnx", **fields)), runtime)
    assert isinstance(encoder, BatchedEncoder)
    return encoder


def vectors(folder: Path, texts: list[str], **fields: Any) -> np.ndarray[Any, Any]:
    """Their vectors."""
    return load(folder, **fields).encode(texts, role=Role.TEXT).vectors


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The tiny model, exported, to be changed."""
    return copy_of("tiny", tmp_path / "copy")


# --- against torch ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["tiny", "dense", "roberta", "distilbert", "mpnet", "decoder", "t5"])
def test_same_vectors_as_torch(kind: str) -> None:
    """F9: cosine of at least 0.9999 on ten texts of mixed length, and to 1e-5 in each number, in batches of any size.

    Position tables, relative and rotary positions, with and without token types, padding on the right and on the left.
    """
    expected = loading.load(loading.resolve(source(kind))).encode(TEXTS, role=Role.DOCUMENT)
    for budget in (1, 40, 100_000):
        encoder = load(exported(kind), RuntimeOptions(batch_tokens=budget))
        found = encoder.encode(TEXTS, role=Role.DOCUMENT)
        norms = np.linalg.norm(found.vectors, axis=1) * np.linalg.norm(expected.vectors, axis=1)
        assert ((found.vectors * expected.vectors).sum(axis=1) / norms).min() >= 0.9999
        np.testing.assert_allclose(found.vectors, expected.vectors, atol=1e-5)
        assert found.counts.tokens_kept == expected.counts.tokens_kept
        assert found.counts.tokens_lost == expected.counts.tokens_lost


def test_a_decoder_is_padded_on_the_left() -> None:
    """As its tokenizer says; models with a table of positions are padded on the right."""
    left, right = (getattr(load(exported(kind)).backend, "left", "") for kind in ("decoder", "tiny"))
    assert (left, right) == (True, None)


# --- inputs and outputs of graphs ---------------------------------------------------------------------------------


@pytest.mark.parametrize("integer", ["INT64", "INT32"])
def test_vectors_by_hand(tmp_path: Path, integer: str) -> None:
    """[CLS] token [SEP] looked up and averaged; a graph may want its numbers in 32 bits."""
    table = save_lookup(tmp_path, integer=integer)
    vocabulary = (tmp_path / "vocab.txt").read_text(encoding="utf-8").split("\n")
    ids = [vocabulary.index(word) for word in ("[CLS]", "token", "[SEP]")]
    found = vectors(tmp_path, ["token", "restore a backup of it"], pooling="mean")
    np.testing.assert_allclose(found[0], table[ids].mean(axis=0), atol=1e-6)


@pytest.mark.parametrize("inputs", [(), ("token_type_ids",)])
def test_graphs_with_and_without_token_types(tmp_path: Path, inputs: tuple[str, ...]) -> None:
    """G19: what the graph declares is given and nothing else; the types of a text alone are 0."""
    table = save_lookup(tmp_path, inputs=("input_ids", "attention_mask", *inputs))
    found = vectors(tmp_path, ["token"], pooling="cls")
    np.testing.assert_allclose(found[0], table[2], atol=1e-6)  # 2 is [CLS]


def test_token_types_for_a_tokenizer_that_gives_none(tmp_path: Path) -> None:
    """G19: zeros, where the graph wants them."""
    table = save_lookup(tmp_path, inputs=("input_ids", "attention_mask", "token_type_ids"))
    edit_json(tmp_path / "tokenizer_config.json", model_input_names=["input_ids", "attention_mask"])
    np.testing.assert_allclose(vectors(tmp_path, ["token"], pooling="cls")[0], table[2], atol=1e-6)


def test_a_graph_that_wants_positions(tmp_path: Path) -> None:
    """They count the tokens of a text from 0: the k-th vector has k added to each number, so the last of 3 has 2."""
    table = save_lookup(tmp_path, inputs=("input_ids", "attention_mask", "position_ids"))
    found = vectors(tmp_path, ["token", "a b c d e"], pooling="lasttoken")
    np.testing.assert_allclose(found, table[[3, 3]] + np.array([[2.0], [6.0]]), atol=1e-6)  # 3 is [SEP]


def test_positions_of_texts_padded_on_the_left(tmp_path: Path) -> None:
    """Padding doesn't count: the first token's place is 0."""
    table = save_lookup(tmp_path, inputs=("input_ids", "attention_mask", "position_ids"))
    edit_json(tmp_path / "tokenizer_config.json", padding_side="left")
    (tmp_path / "config.json").write_text('{"model_type": "llama", "max_position_embeddings": 64}', encoding="utf-8")
    encoder = load(tmp_path, RuntimeOptions(batch_tokens=1_000), pooling="cls")
    found = encoder.encode(["token", "a b c d e"], role=Role.TEXT).vectors
    np.testing.assert_allclose(found, table[[2, 2]], atol=1e-6)


def test_an_unknown_input_is_named(tmp_path: Path) -> None:
    """As of a decoder with a cache."""
    save_lookup(tmp_path, inputs=("input_ids", "attention_mask", "past_key"))
    with pytest.raises(ModelError, match="its graph wants an input 'past_key', which is not known here"):
        load(tmp_path, pooling="mean")


def test_a_graph_that_pools_by_itself(tmp_path: Path) -> None:
    """Its vectors are taken as they are, no module is run and a remark says so; a pooling can't be asked for."""
    table = save_lookup(tmp_path, outputs=("sentence_embedding",))
    encoder = load(tmp_path)
    np.testing.assert_allclose(encoder.encode(["token"], role=Role.TEXT).vectors[0], table[2], atol=1e-6)
    assert encoder.info.pooling == "in the graph"
    assert encoder.info.remarks == ("model.onnx pools by itself; the modules declared beside it were not run.",)
    with pytest.raises(ConfigError, match=r"model.onnx pools by itself, so its pooling can't be set"):
        load(tmp_path, pooling="mean")


def test_token_vectors_are_preferred(tmp_path: Path) -> None:
    """Of a graph that gives both, the declared pooling is what counts."""
    table = save_lookup(tmp_path, outputs=("sentence_embedding", "last_hidden_state"))
    np.testing.assert_allclose(vectors(tmp_path, ["token"], pooling="lasttoken")[0], table[3], atol=1e-6)


@pytest.mark.parametrize("name", ["logits", "present.0.key"])
def test_an_output_that_is_no_vector(tmp_path: Path, name: str) -> None:
    """Scores of words have the shape of token vectors, and are none."""
    save_lookup(tmp_path, outputs=(name,))
    with pytest.raises(ModelError, match=f"none of its outputs .{name}. holds vectors"):
        load(tmp_path, pooling="mean")


def test_an_output_with_another_name(tmp_path: Path) -> None:
    """The one of the right shape."""
    table = save_lookup(tmp_path, outputs=("output_0",))
    np.testing.assert_allclose(vectors(tmp_path, ["token"], pooling="cls")[0], table[2], atol=1e-6)


def test_half_precision_is_widened_before_anything_is_summed(tmp_path: Path) -> None:
    """F7: the mean of float16 vectors is computed in float32, and keeps what float16 would round away."""
    table = save_lookup(tmp_path, number="FLOAT16", file="onnx/model_fp16.onnx")
    vocabulary = (tmp_path / "vocab.txt").read_text(encoding="utf-8").split("\n")
    ids = [vocabulary.index(word) for word in ("[CLS]", "token", "[SEP]")]
    found = vectors(tmp_path, ["token"], pooling="mean", dtype="float16")
    expected = table[ids].astype(np.float64).mean(axis=0)
    np.testing.assert_allclose(found[0], expected, rtol=1e-6)
    assert np.abs(expected - expected.astype(np.float16)).max() > 1e-5


# --- which graph --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dtype", "file"),
    [
        ("float32", "onnx/model.onnx"),
        ("float32", "model.onnx"),
        ("float16", "onnx/model_fp16.onnx"),
        ("float16", "onnx/model_float16.onnx"),
        ("int8", "onnx/model_int8.onnx"),
        ("int8", "onnx/model_quantized.onnx"),
        ("int8", "onnx/model_qint8_avx512_vnni.onnx"),
        ("int8", "onnx/model_quint8_avx2.onnx"),
    ],
)
def test_the_dtype_chooses_the_graph(tmp_path: Path, dtype: Any, file: str) -> None:
    """By our names and those of optimum and sentence-transformers, among others that are there."""
    for name in ("onnx/model_O3.onnx", "onnx/decoder_model.onnx", file):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"")
    assert graph_file(tmp_path, ModelSpec(name="m", backend="onnx", dtype=dtype)) == tmp_path / file


def test_a_file_that_is_named(copy: Path) -> None:
    """By its path or its name; the result says which."""
    shutil.move(copy / "onnx/model.onnx", copy / "onnx/model_O3.onnx")
    for name in ("onnx/model_O3.onnx", "model_O3.onnx"):
        assert load(copy, args={"file": name}).info.extra["graph"] == "model_O3.onnx"


def test_the_graph_of_a_hub_model_is_a_link_to_another_folder(copy: Path, tmp_path: Path) -> None:
    """As huggingface_hub lays its cache out."""
    blob = tmp_path / "blobs" / "abc"
    blob.parent.mkdir()
    shutil.move(copy / "onnx/model.onnx", blob)
    (copy / "onnx/model.onnx").symlink_to(blob)
    assert load(copy, args={"file": "onnx/model.onnx"}).info.extra["graph"] == "model.onnx"


@pytest.mark.parametrize("name", ["../other/onnx/model.onnx", "onnx/../../other/onnx/model.onnx", "absolute"])
def test_a_file_outside_of_the_folder_is_refused(copy: Path, tmp_path: Path, name: str) -> None:
    """Though it is there."""
    other = Path(shutil.copytree(copy, tmp_path / "other"))
    name = str(other / "onnx/model.onnx") if name == "absolute" else name
    with pytest.raises(ModelError, match=r"Model folder of '.*' has no .*model.onnx; there is onnx/model.onnx"):
        load(copy, args={"file": name})


def test_a_graph_that_is_not_there(copy: Path) -> None:
    """Those that are there are listed; without any, what makes them is named."""
    with pytest.raises(ModelError, match=r"has no graph in int8; there is onnx/model.onnx\.\n'embeval export'"):
        load(copy, dtype="int8")
    shutil.rmtree(copy / "onnx")
    with pytest.raises(ModelError, match=r"has no graph in float32; there are no .onnx files"):
        load(copy)


def test_a_broken_graph(copy: Path) -> None:
    """The file and onnxruntime's reason."""
    (copy / "onnx/model.onnx").write_bytes(b"no graph")
    with pytest.raises(ModelError, match=r"model.onnx can't be opened by onnxruntime\.\n.*[Pp]rotobuf"):
        load(copy)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"args": {"fil": "x"}}, "has no option 'fil'; it takes file, provider"),
        ({"args": {"file": 1}}, "file must be text, not 1"),
        ({"args": {"file": ""}}, "file must be text, not ''"),
        ({"args": {"file": ".."}}, "file must be the name of an .onnx file, not '..'"),
        ({"args": {"provider": "rocm"}}, "provider must be cpu, cuda, tensorrt, not 'rocm'"),
        ({"dtype": "bfloat16"}, "has float32, float16, int8, but no dtype 'bfloat16'"),
    ],
)
def test_settings_that_there_are_not(fields: dict[str, Any], message: str) -> None:
    """A message that lists those that there are."""
    with pytest.raises(ConfigError, match=message):
        load(exported("tiny"), **fields)


def test_nothing_to_compile() -> None:
    """--compile is for torch."""
    with pytest.raises(ConfigError, match="has nothing to compile"):
        load(exported("tiny"), RuntimeOptions(compile=True))


# --- execution providers ------------------------------------------------------------------------------------------


def test_the_provider_is_recorded() -> None:
    """G1: what ran the model stands in the result."""
    info = load(exported("tiny"), RuntimeOptions(device="cpu", num_threads=2)).info
    assert info.extra == {"execution_provider": "CPUExecutionProvider", "graph": "model.onnx"}
    assert (info.device, info.num_threads) == ("cpu", 2)


def has_gpu() -> bool:
    """Whether there is a device for onnxruntime."""
    return onnx_session._sees_gpu()


@pytest.mark.skipif(has_gpu(), reason="there is a GPU")
@pytest.mark.parametrize(
    ("device", "args"),
    [("cuda", {}), ("cuda:0", {}), ("auto", {"provider": "cuda"}), ("auto", {"provider": "tensorrt"})],
)
def test_no_gpu_where_one_is_asked_for(capfd: pytest.CaptureFixture[str], device: Any, args: dict[str, Any]) -> None:
    """G1: an error that says so and never the CPU in silence; onnxruntime's own words don't reach the terminal."""
    with pytest.raises(ModelError, match=r"(CUDA|Tensorrt)ExecutionProvider") as caught:
        load(exported("tiny"), RuntimeOptions(device=device), args=args)
    assert "'embeval doctor' shows what this machine can do" in str(caught.value)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("available", [["CPUExecutionProvider"], ["CUDAExecutionProvider", "CPUExecutionProvider"]])
def test_a_build_without_the_provider_or_one_that_falls_back(
    monkeypatch: pytest.MonkeyPatch, available: list[str]
) -> None:
    """G1: whether onnxruntime lacks CUDA or opens the CPU in its place, it is an error."""
    import onnxruntime

    original = onnxruntime.InferenceSession
    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: available)

    def falls_back(file: str, options: Any, providers: Any, **_: Any) -> Any:
        return original(file, options, providers=["CPUExecutionProvider"])

    monkeypatch.setattr(onnxruntime, "InferenceSession", falls_back)
    with pytest.raises(ModelError, match=r"this onnxruntime has only|but onnxruntime uses CPUExecutionProvider"):
        load(exported("tiny"), RuntimeOptions(device="cuda"))


def test_auto_takes_the_cpu_where_the_gpu_cannot_be_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """A device that no library fits: nobody asked for it, and the result says what ran."""
    import onnxruntime

    original = onnxruntime.InferenceSession
    monkeypatch.setattr(onnx_session, "_sees_gpu", lambda: True)
    monkeypatch.setattr(
        onnxruntime, "get_available_providers", lambda: ["CUDAExecutionProvider", "CPUExecutionProvider"]
    )

    def fails(file: str, options: Any, providers: Any, **more: Any) -> Any:
        if providers[0][0] == "CUDAExecutionProvider":
            raise RuntimeError("no libcudnn")
        return original(file, options, providers=providers, **more)

    monkeypatch.setattr(onnxruntime, "InferenceSession", fails)
    info = load(exported("tiny")).info
    assert (info.device, info.extra["execution_provider"]) == ("cpu", "CPUExecutionProvider")
    with pytest.raises(
        ModelError, match=r"was to run on CUDAExecutionProvider, which can't be used here\.\nno libcudnn"
    ):
        load(exported("tiny"), args={"provider": "cuda"})


@pytest.mark.parametrize("graph", ["broken", "whole"])
def test_a_failure_in_the_middle_is_an_error(monkeypatch: pytest.MonkeyPatch, graph: str) -> None:
    """Memory that runs out lets smaller batches be tried; anything else tells the batch. G1: no fallback is left on."""
    encoder = load(exported("tiny"))
    backend: Any = encoder.backend
    session = backend._session
    assert session._session._enable_fallback is False

    class Fails:
        def run(self, *_: Any) -> Any:
            raise RuntimeError("Failed to allocate memory" if graph == "whole" else "bad node")

        get_providers = staticmethod(lambda: ["CPUExecutionProvider"])

    monkeypatch.setattr(session, "_session", Fails())
    with pytest.raises(
        MemoryError if graph == "whole" else ModelError, match=r"allocate|a batch of 1 texts of up to 3"
    ):
        encoder.encode(["token"], role=Role.TEXT)


@pytest.mark.parametrize(
    ("device", "provider", "error"),
    [("mps", None, "runs on cpu and cuda"), ("cpu", "cuda", "does not run on the device 'cpu'")],
)
def test_devices_and_providers_that_do_not_go_together(device: Any, provider: str | None, error: str) -> None:
    """Refused with both named."""
    args = {} if provider is None else {"provider": provider}
    with pytest.raises((ConfigError, ModelError), match=error):
        load(exported("tiny"), RuntimeOptions(device=device), args=args)


@pytest.mark.gpu
def test_cuda_gives_the_vectors_of_the_cpu() -> None:
    """Inputs and output bound to the device, to 1e-3."""
    if not has_gpu():
        pytest.skip("no GPU")
    for kind in ("tiny", "decoder"):
        encoder = load(exported(kind), RuntimeOptions(device="cuda"))
        assert encoder.info.extra["execution_provider"] == "CUDAExecutionProvider"
        assert encoder.info.device == "cuda:0"
        expected = load(exported(kind), RuntimeOptions(device="cpu")).encode(TEXTS, role=Role.TEXT).vectors
        np.testing.assert_allclose(encoder.encode(TEXTS, role=Role.TEXT).vectors, expected, atol=1e-3)


# --- what the files beside the graph say --------------------------------------------------------------------------


def test_positions_of_an_export_limit_the_length(copy: Path) -> None:
    """embeval_export.json says for how many tokens there are positions, and wins over config.json."""
    edit_json(copy / "sentence_bert_config.json", max_seq_length=512)
    encoder = load(copy)
    assert encoder.info.max_seq_length == 64
    assert encoder.info.remarks == ("The model declares 512 tokens but has positions for 64: cut to 64.",)
    edit_json(copy / "embeval_export.json", positions=20)
    assert load(copy).info.max_seq_length == 20
    with pytest.raises(ModelError, match="takes 3 to 20 tokens, so max_seq_length can't be 21"):
        load(copy, max_seq_length=21)


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"model_type": "bert", "max_position_embeddings": 64}, 64),
        ({"model_type": "roberta", "max_position_embeddings": 66, "pad_token_id": 1}, 64),
        ({"model_type": "roberta", "max_position_embeddings": 66, "pad_token_id": None}, 64),
        ({"model_type": "llama", "max_position_embeddings": 64}, 500),
        ({"model_type": "t5"}, 500),
    ],
)
def test_positions_of_an_export_by_others(tmp_path: Path, config: dict[str, Any], expected: int) -> None:
    """config.json says it: a table that ends, one that begins behind the padding id, or none."""
    save_lookup(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    edit_json(tmp_path / "tokenizer_config.json", model_max_length=500)
    assert load(tmp_path, pooling="mean").info.max_seq_length == expected


def test_positions_that_are_no_number(tmp_path: Path) -> None:
    """The file is named."""
    save_lookup(tmp_path)
    (tmp_path / "embeval_export.json").write_text('{"positions": "many"}', encoding="utf-8")
    with pytest.raises(ModelError, match=r"embeval_export.json: positions must be a whole number from 1, not 'many'"):
        load(tmp_path, pooling="mean")


def test_prompts_similarity_and_limit_of_the_folder(copy: Path) -> None:
    """The prompt for queries changes their vectors as the same words before the text do; documents stay."""
    edit_json(copy / "config_sentence_transformers.json", similarity_fn_name="dot")
    encoder = load(copy)
    assert encoder.info.similarity == "dot"
    assert encoder.info.max_seq_length == 16
    query = encoder.encode(["backup"], role=Role.QUERY).vectors
    by_hand = encoder.encode(["the query backup"], role=Role.DOCUMENT).vectors
    np.testing.assert_array_equal(query, by_hand)
    edit_json(copy / "config_sentence_transformers.json", default_prompt_name="query")
    np.testing.assert_array_equal(load(copy).encode(["backup"], role=Role.TEXT).vectors, query)


def test_lower_case_of_the_folder(copy: Path) -> None:
    """do_lower_case, for a tokenizer that keeps case: then it knows the words again."""
    tokenizer = json.loads((copy / "tokenizer.json").read_text(encoding="utf-8"))
    tokenizer["normalizer"]["lowercase"] = False
    (copy / "tokenizer.json").write_text(json.dumps(tokenizer), encoding="utf-8")
    edit_json(copy / "tokenizer_config.json", do_lower_case=False)
    small, large = vectors(copy, ["backup", "BACKUP"])
    assert np.abs(small - large).max() > 0.01
    edit_json(copy / "sentence_bert_config.json", do_lower_case=True)
    small, large = vectors(copy, ["backup", "BACKUP"])
    np.testing.assert_array_equal(small, large)


@pytest.mark.parametrize("file", ["tokenizer.json", "config.json", "embeval_export.json"])
def test_a_broken_file_beside_the_graph(copy: Path, file: str) -> None:
    """An error of ours that tells what can't be read."""
    (copy / file).write_text("{", encoding="utf-8")
    with pytest.raises(ModelError, match=f"tokenizer can't be loaded|{file} can't be read"):
        load(copy)


# --- revision -----------------------------------------------------------------------------------------------------


def revision(folder: Path, **fields: Any) -> str:
    """The resolved revision."""
    found = loading.resolve(ModelSpec(name=str(folder), backend="onnx", **fields)).spec.revision
    assert found is not None
    return found


def test_the_revision_hangs_on_the_graph_that_is_run(copy: Path) -> None:
    """One byte of it, or of its external data, is another revision; other graphs and torch's weights don't count."""
    before = revision(copy)
    for name in ("model.safetensors", "model-00001-of-00002.safetensors", "onnx/model_int8.onnx"):
        (copy / name).write_bytes(b"0")
    assert revision(copy) == before
    assert revision(copy, dtype="int8") != before
    (copy / "onnx/model.onnx_data").write_bytes(b"0")
    with_data = revision(copy)
    assert with_data != before
    content = bytearray((copy / "onnx/model.onnx").read_bytes())
    content[-1] ^= 1
    (copy / "onnx/model.onnx").write_bytes(content)
    assert revision(copy) not in (before, with_data)


def test_weights_of_dense_layers_are_part_of_the_revision(tmp_path: Path) -> None:
    """They are run, whereas those of a transformer in a folder of its own are not."""
    folder = copy_of("dense", tmp_path / "copy")
    before = revision(folder)
    listed = json.loads((folder / "modules.json").read_text(encoding="utf-8"))
    listed[0]["path"] = "0_Transformer"
    (folder / "modules.json").write_text(json.dumps(listed), encoding="utf-8")
    (folder / "0_Transformer").mkdir()
    moved = revision(folder)
    (folder / "0_Transformer/model.safetensors").write_bytes(b"0")
    assert revision(folder) == moved != before
    (folder / "2_Dense/model.safetensors").write_bytes(b"0")
    assert revision(folder) != moved


def test_torch_sees_the_same_folder_without_its_graphs() -> None:
    """The revision of a model in torch hangs on no graph."""
    spec = source("tiny")
    assert locate.folder_revision(Path(spec.name)) == loading.resolve(replace(spec)).spec.revision


@pytest.mark.parametrize("positions", ["64", True, 1.5])
def test_positions_of_no_kind_are_refused(tmp_path: Path, positions: object) -> None:
    """What an export says of itself may have been edited."""
    (tmp_path / EXPORT_FILE).write_text(json.dumps({"positions": positions}), encoding="utf-8")
    with pytest.raises(ModelError, match=r"embeval_export\.json: positions must be a whole number from 1"):
        position_limit(tmp_path)
