"""How many tokens per second does all-MiniLM-L6-v2 encode, in each precision and runtime, beside the library itself?

Texts are the first 2,000 SciFact documents (title and text). The peer is ``SentenceTransformer.encode`` in float32 with
its batch size of 32, on the same device; contenders take turns, 500 documents at a time. Beside the ratios stand what
accuracy they cost, the rate of the machine's matrix products, and how near to it each comes. On a CUDA device the same
script measures the same in float16 and bfloat16 and writes ``encode_cuda.json``. With a word, such as ``onnx``, only
the contenders that have it in their name are measured, and written to ``encode_onnx.json``.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.harness import data_folder, interleaved, median, write
from embeval.core.protocols import Encoder
from embeval.core.specs import Dtype, ModelSpec, Role, RuntimeOptions
from embeval.data.beir import load_beir
from embeval.data.pairs import Pairs, load_pairs
from embeval.encoders import export, loading
from embeval.workflows.samples import Sample

DOCUMENTS = 2_000
THREADS = 2
BLOCK = 500
PEER = "sentence-transformers, float32, batch 32"
LAYERS, WIDTH, INNER = 6, 384, 1536
FLOPS_PER_TOKEN = 2 * LAYERS * (4 * WIDTH * WIDTH + 2 * WIDTH * INNER)
"""Multiplications and additions of the linear layers; attention comes on top of it."""


def main() -> None:
    """Measures and writes the figures."""
    import torch

    folder = data_folder()
    if folder is None:
        sys.exit("bench_encode.py needs the SciFact documents: set EMBEVAL_TEST_DATA.")
    texts = list(load_beir(folder / "retrieval" / "SciFact").doc_texts[:DOCUMENTS])
    pairs = load_pairs(folder / "sts" / "stsbenchmark" / "test.jsonl.gz")
    cuda = torch.cuda.is_available()
    with tempfile.TemporaryDirectory() as exported:
        encoders = _encoders(Path(exported), cuda=cuda, word=sys.argv[1].lower() if len(sys.argv) > 1 else "")
        _measure(encoders, texts, pairs, cuda=cuda)


def _encoders(exported: Path, *, cuda: bool, word: str) -> dict[str, Encoder]:
    located = loading.resolve(ModelSpec(name="demo"))
    graph = export.write_folder(located, exported)
    if cuda:
        export.to_float16(graph)
    else:
        export.to_int8(graph)

    def torch_model(dtype: Dtype, *, compiled: bool = False) -> Encoder:
        runtime = RuntimeOptions(num_threads=THREADS, compile=compiled, device="cuda" if cuda else "cpu")
        return loading.load(loading.resolve(ModelSpec(name="demo", dtype=dtype)), runtime)

    def onnx_model(dtype: Dtype) -> Encoder:
        runtime = RuntimeOptions(num_threads=THREADS, device="cuda" if cuda else "cpu")
        return loading.load(loading.resolve(ModelSpec(name=str(exported), backend="onnx", dtype=dtype)), runtime)

    makers: dict[str, Callable[[], Encoder]] = {
        "float32": partial(torch_model, "float32"),
        "float32, compiled": partial(torch_model, "float32", compiled=True),
        "bfloat16": partial(torch_model, "bfloat16"),
        "bfloat16, compiled": partial(torch_model, "bfloat16", compiled=True),
        "ONNX float32": partial(onnx_model, "float32"),
    }
    if cuda:
        makers |= {"float16": partial(torch_model, "float16"), "ONNX float16": partial(onnx_model, "float16")}
    else:
        makers["ONNX int8"] = partial(onnx_model, "int8")
    return {name: make() for name, make in makers.items() if word in name.lower()}


def _measure(encoders: dict[str, Encoder], texts: list[str], pairs: Pairs, *, cuda: bool) -> None:
    import torch
    from sentence_transformers import SentenceTransformer

    torch.set_num_threads(THREADS)
    device = "cuda" if cuda else "cpu"
    located = loading.resolve(ModelSpec(name="demo"))
    library = SentenceTransformer(str(located.folder), device=device, local_files_only=True)
    for encoder in encoders.values():  # kernels are set up, and models compiled for the lengths that come
        encoder.encode([*texts[:64], *(" ".join(text.split()[:20]) for text in texts[64:96])], role=Role.DOCUMENT)

    seconds: dict[str, list[float]] = {}
    cosines: dict[str, list[float]] = {name: [] for name in encoders}
    tokens = 0
    for start in range(0, len(texts), BLOCK):
        block = texts[start : start + BLOCK]
        made: dict[str, Any] = {}
        contenders: dict[str, Callable[[], Any]] = {PEER: partial(_kept, made, PEER, library.encode, block)}
        for name, encoder in encoders.items():
            contenders[name] = partial(_kept, made, name, partial(encoder.encode, role=Role.DOCUMENT), block)
        for name, found in interleaved(contenders, rounds=1).items():
            seconds.setdefault(name, []).extend(found)
        for name in encoders:
            cosines[name].append(float((made[name].vectors * made[PEER]).sum(axis=1).min()))
        tokens += made[next(iter(encoders))].counts.tokens_kept
    sample = Sample("STSBenchmark", tuple(texts), pairs)
    rates = {dtype: _matrix_rate(dtype, device) for dtype in ("float32", "bfloat16")}
    figures: dict[str, Any] = {}
    reference = sample.spearman(loading.load(located, RuntimeOptions(num_threads=THREADS, device=device)))
    assert reference is not None
    for name, encoder in encoders.items():
        spearman = sample.spearman(encoder)
        assert spearman is not None
        figures[name] = {
            "seconds": [round(each, 2) for each in seconds[name]],
            "tokens_per_second": round(tokens / sum(seconds[name])),
            "times_as_fast_as_peer": round(
                median([peer / own for peer, own in zip(seconds[PEER], seconds[name], strict=True)]), 2
            ),
            "smallest_cosine_to_peer": min(cosines[name]),
            "stsb_spearman": round(spearman, 5),
            "stsb_change": round(spearman - reference, 5),
            "batch_tokens": encoder.info.batch_tokens,
        }
        if name.startswith(("float", "bfloat")):
            floor = tokens * FLOPS_PER_TOKEN / rates["bfloat16" if "bfloat16" in name else "float32"]
            figures[name]["share_of_matrix_rate"] = round(floor / sum(seconds[name]), 2)
            figures[name]["ratio_if_linear_layers_were_all"] = round(sum(seconds[PEER]) / floor, 2)
    write(
        "_".join(["encode", *(["cuda"] if cuda else []), *sys.argv[1:2]]),
        {
            "documents": len(texts),
            "tokens": tokens,
            "threads": THREADS,
            "peer": PEER,
            "peer_seconds": [round(each, 2) for each in seconds[PEER]],
            "peer_tokens_per_second": round(tokens / sum(seconds[PEER])),
            "matrix_gflops": {dtype: round(rate / 1e9) for dtype, rate in rates.items()},
            "contenders": figures,
        },
    )


def _kept(made: dict[str, Any], name: str, encode: Callable[[list[str]], Any], texts: list[str]) -> None:
    made[name] = encode(texts)


def _matrix_rate(dtype: str, device: str) -> float:
    """Operations per second of the model's own linear layers, 2,048 tokens at a time, with nothing around them."""
    import torch

    shapes = [(WIDTH, WIDTH)] * 4 + [(WIDTH, INNER), (INNER, WIDTH)]
    layers = [torch.nn.Linear(a, b).to(device, getattr(torch, dtype)) for a, b in shapes]
    inputs = [torch.randn(2048, a).to(device, getattr(torch, dtype)) for a, _ in shapes]
    rounds, fastest = 20, float("inf")
    with torch.inference_mode():
        for _ in range(5):
            began = time.perf_counter()
            for _ in range(rounds):
                for layer, given in zip(layers, inputs, strict=True):
                    layer(given)
            if device != "cpu":
                torch.cuda.synchronize()
            fastest = min(fastest, time.perf_counter() - began)
    return rounds * sum(2 * 2048 * a * b for a, b in shapes) / fastest


if __name__ == "__main__":
    main()
