"""all-MiniLM-L6-v2 in other runtimes and number formats, and from the cache, against float32 in torch on real data."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from embeval.core.similarity import SIMILARITIES
from embeval.core.specs import ModelSpec, Role
from embeval.data.pairs import load_pairs
from embeval.encoders import loading
from embeval.encoders.cache import open_cache
from embeval.store.results import ResultStore, Stored
from tests.support.commands import Done, embeval

pytestmark = [pytest.mark.real, pytest.mark.timeout(1500)]

STS = ("STSBenchmark", "STSBenchmarkMultilingualSTS-zh", "BIOSSES")
PLAIN = ("--resamples", "0")
"""Values are compared here, not their intervals."""


@pytest.fixture(scope="session")
def exported(tmp_path_factory: pytest.TempPathFactory, real_data: Path) -> Path:
    """``embeval export`` of the demo model, compared on the sentences of BIOSSES."""
    folder = tmp_path_factory.mktemp("exported")
    sample = real_data / "sts" / "BIOSSES" / "test.jsonl.gz"
    done = embeval(
        "export",
        "demo",
        "-o",
        "minilm",
        "--precision",
        "fp32,int8",
        "--sample",
        f"sts:{sample}",
        cwd=folder,
        timeout=600,
        model=True,
    )
    assert done.code == 0, done.err
    return folder / "minilm"


@pytest.fixture(scope="session")
def onnx(exported: Path, real_data: Path) -> Mapping[str, Stored]:
    """Task -> result of the exported float32 graph."""
    words = [word for name in STS for word in ("-t", name)]
    model = "onnx:minilm"
    done = embeval(
        "run", "-m", model, *words, *PLAIN, "--data", str(real_data), cwd=exported.parent, timeout=900, model=True
    )
    assert done.code == 0, done.err
    found = ResultStore(exported.parent / "results").find(model="minilm", subset="all", status="ok")
    return {each.result.task.name: each for each in found}


@pytest.mark.parametrize("name", STS)
def test_onnx_float32_scores_as_torch_does(
    onnx: Mapping[str, Stored], results: Mapping[str, Stored], name: str
) -> None:
    """cosine_spearman equal to 1e-4, in two languages."""
    ours, theirs = (each[name].result.scores["cosine_spearman"].value for each in (onnx, results))
    assert ours == pytest.approx(theirs, abs=1e-4)
    assert onnx[name].result.provenance.extra["execution_provider"] == "CPUExecutionProvider"


def test_onnx_float32_vectors_are_those_of_torch(exported: Path, real_data: Path) -> None:
    """Cosine of at least 0.9999 for every left sentence of BIOSSES and the first 100 of each other set.

    Those of torch come from the cache, where the run on these sets has put them.
    """
    texts: list[str] = []
    for name in ("BIOSSES", "stsbenchmark", "STS15"):
        texts += load_pairs(real_data / "sts" / name / "test.jsonl.gz").left[:100]
    graph, model = (
        loading.load(loading.resolve(spec), cache=cache).encode(texts, role=Role.TEXT).vectors
        for spec, cache in (
            (ModelSpec(name=str(exported), backend="onnx"), None),
            (ModelSpec(name="demo"), open_cache()),
        )
    )
    assert SIMILARITIES["cosine"](graph, model).min() >= 0.9999


@pytest.fixture(scope="module")
def reduced(exported: Path, real_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Stored]:
    """Number format -> result on STS-B, both from one command."""
    folder = tmp_path_factory.mktemp("reduced")
    models = ("-m", "demo,dtype=bfloat16", "-m", f"onnx:{exported},dtype=int8")
    words = ("run", *models, "-t", "STSBenchmark", *PLAIN, "--data", str(real_data))
    done = embeval(*words, cwd=folder, timeout=600, model=True)
    assert done.code == 0, done.err
    found = ResultStore(folder / "results").find(subset="all", status="ok")
    return {each.result.model.dtype: each for each in found}


@pytest.mark.parametrize(("dtype", "tolerance"), [("bfloat16", 5e-4), ("int8", 1e-2)])
def test_reduced_precision_keeps_the_score(
    results: Mapping[str, Stored], reduced: Mapping[str, Stored], dtype: str, tolerance: float
) -> None:
    """STS-B within 0.0005 of float32 in bfloat16, within 0.01 in int8."""
    assert set(reduced) == {"bfloat16", "int8"}
    value = reduced[dtype].result.scores["cosine_spearman"].value
    assert value == pytest.approx(results["STSBenchmark"].result.scores["cosine_spearman"].value, abs=tolerance)


def test_a_warm_run_encodes_nothing(run: Done, results: Mapping[str, Stored], real_data: Path, tmp_path: Path) -> None:
    """SciFact again from the cache, with other cut-offs too, and a task on the same texts: 0 texts, equal scores."""
    first = results["SciFact"].result
    assert (first.counts["documents"], first.scores["ndcg_at_10"].n_items) == (5183, 300)
    folder = real_data / "retrieval" / "SciFact"
    tasks = ["SciFact", f"{folder},name=other,cutoffs=[2, 7]", f"{folder},name=averaged,ties=average"]
    words = [word for task in tasks for word in ("-t", task)]
    done = embeval("run", "-m", "demo", *words, *PLAIN, "--data", str(real_data), cwd=tmp_path, timeout=120, model=True)
    assert done.code == 0, done.err
    for each in ResultStore(tmp_path / "results").find(status="ok"):
        assert each.result.timings is not None
        assert each.result.timings.texts_encoded == 0
        assert each.result.scores["ndcg_at_10"].value == pytest.approx(first.scores["ndcg_at_10"].value, abs=1e-12)


def test_a_cold_run_encodes_every_text_once(real_data: Path, tmp_path: Path) -> None:
    """ADI with a cache of its own: 82 documents and 35 queries, then none; whatever other tests had encoded."""
    counts = []
    for results in ("cold", "warm"):
        done = embeval(
            *("run", "-m", "demo", "-t", "ADI", "--no-bm25", *PLAIN, "--data", str(real_data), "--results", results),
            cwd=tmp_path,
            env={"EMBEVAL_CACHE": str(tmp_path / "cache")},
            model=True,
        )
        assert done.code == 0, done.err
        (stored,) = ResultStore(tmp_path / results).find(status="ok", subset="all")
        assert stored.result.timings is not None
        counts.append(stored.result.timings.texts_encoded)
    assert counts == [82 + 35, 0]


def test_quantised_vectors_with_rescoring_lose_little(
    results: Mapping[str, Stored], real_data: Path, tmp_path: Path
) -> None:
    """SciFact from cached vectors: int8 within 0.005 of float32; binary loses, and rescoring wins some back."""
    models = ["demo,quantize=int8", "demo,quantize=binary", "demo,quantize=binary,rescore=4"]
    words = [word for model in models for word in ("-m", model)]
    done = embeval(
        "run", *words, "-t", "SciFact", *PLAIN, "--data", str(real_data), cwd=tmp_path, timeout=300, model=True
    )
    assert done.code == 0, done.err
    value = {}
    for each in ResultStore(tmp_path / "results").find(status="ok", subset="all"):
        value[each.result.model.quantize, each.result.model.rescore] = each.result.scores["ndcg_at_10"].value
    full = results["SciFact"].result.scores["ndcg_at_10"].value
    scores = np.array([value["int8", None], value["binary", 4], value["binary", None], full], dtype=float)
    assert abs(scores[0] - scores[3]) < 0.005
    assert scores[2] < scores[1] < scores[3]
