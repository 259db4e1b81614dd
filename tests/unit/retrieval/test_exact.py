"""The exact engine where float32 products alone would go wrong, with torch and without."""

from __future__ import annotations

import warnings
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from embeval.core.specs import SimilarityName
from embeval.retrieval.indexes import exact
from embeval.retrieval.kinds import Neighbours
from embeval.retrieval.search import TopK

RNG = np.random.default_rng(7)


@pytest.fixture(params=["torch", "numpy"])
def _engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "numpy":
        _without_torch(monkeypatch)


def _without_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a process that has not imported torch; needing it fails."""
    monkeypatch.setattr(exact, "sys", SimpleNamespace(modules={}))
    monkeypatch.setattr(exact, "ProductScanner", None)


def _found(index: str, docs: np.ndarray, queries: np.ndarray, similarity: SimilarityName, k: int = 5) -> Neighbours:
    top = TopK(queries, k=k, similarity=similarity, tie_keys=np.arange(len(docs)), index=index)
    for start in range(0, len(docs), 100):
        top.add(docs[start : start + 100])
    return top.result()


@pytest.mark.usefixtures("_engine")
@pytest.mark.parametrize("similarity", ["cosine", "dot", "euclidean"])
@pytest.mark.parametrize("scale", [1e-30, 1e-20, 1e18, 1e20])
def test_lengths_whose_squares_leave_float32(similarity: SimilarityName, scale: float) -> None:
    """Documents so short or long that their squares are 0 or Inf in float32 are still ranked by float64."""
    docs = (RNG.normal(size=(300, 8)) * scale).astype(np.float32)
    queries = (RNG.normal(size=(4, 8)) * min(scale, 1e18)).astype(np.float32)
    if similarity == "dot":
        queries /= np.float32(max(scale, 1.0))  # the true scores must fit into float32
    ours, theirs = _found("exact", docs, queries, similarity), _found("brute", docs, queries, similarity)
    assert ours.positions.tolist() == theirs.positions.tolist()
    assert ours.scores.tolist() == theirs.scores.tolist()


@pytest.mark.usefixtures("_engine")
def test_a_few_odd_lengths_among_many() -> None:
    """Zero, tiny and huge documents in one chunk with normal ones."""
    docs = RNG.normal(size=(400, 16)).astype(np.float32)
    docs[[3, 50]] = 0.0
    docs[[7, 120]] *= np.float32(1e-25)
    docs[[9, 390]] *= np.float32(1e30)
    queries = RNG.normal(size=(6, 16)).astype(np.float32)
    ours, theirs = _found("exact", docs, queries, "cosine", k=400), _found("brute", docs, queries, "cosine", k=400)
    assert ours.positions.tolist() == theirs.positions.tolist()


@pytest.mark.usefixtures("_engine")
@pytest.mark.parametrize("similarity", ["cosine", "dot", "euclidean"])
def test_ties_at_the_last_place_and_equal_documents(similarity: SimilarityName) -> None:
    """Documents of few values, many of them equal: positions and scores are those of brute force in float64."""
    docs = RNG.integers(-2, 3, size=(500, 3)).astype(np.float32)
    queries = RNG.integers(-2, 3, size=(20, 3)).astype(np.float32)
    ours, theirs = _found("exact", docs, queries, similarity), _found("brute", docs, queries, similarity)
    assert ours.positions.tolist() == theirs.positions.tolist()
    assert ours.scores.tolist() == theirs.scores.tolist()


def test_much_work_is_worth_importing_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    """The corpus passes by in chunks of 100; from the third on torch makes the products, and nothing changes."""
    docs, queries = RNG.normal(size=(500, 4)).astype(np.float32), RNG.normal(size=(10, 4)).astype(np.float32)
    expected = _found("exact", docs, queries, "dot")
    made = []
    original = exact.ProductScanner.__init__

    def counting(self: exact.ProductScanner, *args: object) -> None:
        made.append(self)
        original(self, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(exact.ProductScanner, "__init__", counting)
    monkeypatch.setattr(exact, "sys", SimpleNamespace(modules={}))
    monkeypatch.setattr(exact, "FEW_PAIRS", 2000)
    found = _found("exact", docs, queries, "dot")
    assert len(made) == 1
    assert found.positions.tolist() == expected.positions.tolist()
    assert found.scores.tolist() == expected.scores.tolist()


def test_coarser_products_asked_for_elsewhere_change_nothing() -> None:
    """``torch.set_float32_matmul_precision("medium")`` is for models; it holds again afterwards."""
    before = torch.get_float32_matmul_precision()
    seen = []
    original = torch.mm

    def watching(*args: torch.Tensor, **rest: torch.Tensor) -> torch.Tensor:
        seen.append(torch.get_float32_matmul_precision())
        return original(*args, **rest)

    try:
        torch.set_float32_matmul_precision("medium")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(torch, "mm", watching)
            _found("exact", RNG.normal(size=(50, 4)).astype(np.float32), np.ones((1, 4), np.float32), "dot")
        assert torch.get_float32_matmul_precision() == "medium"
    finally:
        torch.set_float32_matmul_precision(before)
    assert set(seen) == {"highest"}


@pytest.mark.usefixtures("_engine")
def test_a_memory_map_is_read_without_a_warning(tmp_path: Path) -> None:
    """torch warns of arrays that it may not write to; nobody needs to see that."""
    docs = RNG.normal(size=(250, 8)).astype(np.float32)
    np.save(tmp_path / "docs.npy", docs)
    mapped = np.load(tmp_path / "docs.npy", mmap_mode="r")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = _found("exact", mapped, docs[:3], "euclidean")
    assert found.positions[:, 0].tolist() == [0, 1, 2]
    assert found.scores[:, 0].tolist() == [0.0, 0.0, 0.0]


def test_most_tiles_need_a_look_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """Candidates per query grow with the logarithm of the corpus, not with it: k (1 + ln(n / k)) are expected."""
    handed = 0
    original = exact.ProductScanner._look

    def counting(self: exact.ProductScanner, *args: object) -> object:
        nonlocal handed
        found = original(self, *args)  # type: ignore[arg-type]
        handed += len(found.rows)
        return found

    monkeypatch.setattr(exact, "TILE", 256)
    monkeypatch.setattr(exact.ProductScanner, "_look", counting)
    docs, queries = RNG.normal(size=(20_000, 8)).astype(np.float32), RNG.normal(size=(20, 8)).astype(np.float32)
    top = TopK(queries, k=10, similarity="cosine", tie_keys=np.arange(20_000))
    for start in range(0, 20_000, 5000):
        top.add(docs[start : start + 5000])
    assert handed / 20 < 3 * 10 * (1 + np.log(20_000 / 10))
