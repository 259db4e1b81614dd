"""BM25 and hybrids beside the model, on its own vectors."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from embeval.store.results import ResultStore, Stored
from tests.support.commands import embeval

pytestmark = pytest.mark.real

SETS = ("SciFact", "Cranfield")
BM25, HYBRID = "bm25", "all-MiniLM-L6-v2+bm25"


@pytest.fixture(scope="module")
def scores(results: Mapping[str, Stored], folder: Path, real_data: Path) -> dict[tuple[str, str], float]:
    """(system, set) -> nDCG@10, the model's vectors found again."""
    tasks = [word for name in SETS for word in ("-t", name)]
    words = ("run", "-m", "bm25", "-m", "hybrid:demo+bm25,method=weighted", *tasks, "--resamples", "0")
    done = embeval(
        *words,
        cwd=folder,
        env={"EMBEVAL_RESULTS": str(folder / "systems"), "EMBEVAL_DATA": str(real_data)},
        timeout=600,
        model=True,
    )
    assert done.code == 0, done.err
    found = {
        (HYBRID if "+" in each.result.model.name else BM25, each.result.task.name): each.result
        for each in ResultStore(folder / "systems").find(subset="all", status="ok")
    }
    assert all(each.timings is not None and not each.timings.texts_encoded for each in found.values())
    values = {key: each.scores["ndcg_at_10"].value for key, each in found.items()}
    values |= {("model", name): results[name].result.scores["ndcg_at_10"].value for name in SETS}
    assert None not in values.values()
    return {key: float(value) for key, value in values.items() if value is not None}


def test_bm25_is_where_others_have_it(scores: dict[tuple[str, str], float]) -> None:
    """SciFact, title and text in one field: 0.679 by Lucene in BEIR's table of Pyserini, with k1 0.9 and b 0.4."""
    assert scores[BM25, "SciFact"] == pytest.approx(0.679, abs=0.01)


def test_the_hybrid_beats_both_of_its_parts(scores: dict[tuple[str, str], float]) -> None:
    """On every set, by a point at least."""
    for name in SETS:
        assert scores[HYBRID, name] > max(scores[BM25, name], scores["model", name]) + 0.01
