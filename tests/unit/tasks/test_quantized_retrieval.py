"""Retrieval with stored vectors that are not float32, from the model's spec to the ranking."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from embeval import api
from embeval.core.quantization import coded
from embeval.core.similarity import SIMILARITIES
from embeval.core.specs import ModelSpec, Role, RuntimeOptions
from embeval.encoders import loading
from embeval.store.results import ResultStore
from tests.support.data import write_beir

HASHING = ModelSpec(name="hashing", backend="hashing", args={"dim": 16})
WORDS = "restore backup rotate keys logs server token user page scan".split()
DOCS = {f"d{number:02}": f"{WORDS[number % 10]} {WORDS[number * 3 % 7]} {WORDS[number // 4]}" for number in range(36)}
QUERIES = {f"q{number}": f"{WORDS[number]} {WORDS[number + 2]}" for number in range(6)}


def ranked(folder: Path, **fields: Any) -> dict[str, list[tuple[str, float]]]:
    """The three best documents of each query, as ``evaluate`` stores them."""
    write_beir(folder / "set", corpus=DOCS, queries=QUERIES, qrels={query: {"d03": 1} for query in QUERIES})
    spec = replace(HASHING, **fields)
    task = {"name": "set", "type": "retrieval", "data": str(folder / "set"), "depth": 3, "main_score": "mrr_at_3"}
    (result,) = api.evaluate(spec, task, results=folder / "results")
    assert result.status == "ok"
    assert result.model.digest == replace(spec, revision="builtin:1").digest
    (stored,) = ResultStore(folder / "results").find()
    run = ResultStore(folder / "results").run(stored)
    return {
        query: [(run.doc_ids[doc], float(score)) for doc, score in zip(run.docs[row], run.scores[row], strict=True)]
        for row, query in enumerate(run.query_ids)
    }


@pytest.mark.parametrize(
    ("fields", "two_stages"),
    [
        ({"quantize": "binary"}, 0),
        ({"quantize": "int8"}, 0),
        ({"quantize": "binary", "rescore": 1}, 1),
        ({"quantize": "binary", "rescore": 4}, 4),
        ({"quantize": "int8", "rescore": 2}, 2),
    ],
)
def test_the_ranking_is_that_of_sorting_everything(tmp_path: Path, fields: dict[str, Any], two_stages: int) -> None:
    """Coded documents; coded queries find 3 times ``rescore`` candidates, and float queries rank and score them."""
    encoder = loading.load(loading.resolve(HASHING), RuntimeOptions())
    kind = fields["quantize"]
    docs = coded(encoder.encode(list(DOCS.values()), role=Role.DOCUMENT).vectors, kind)
    queries = encoder.encode(list(QUERIES.values()), role=Role.QUERY).vectors
    names = sorted(DOCS, reverse=True)  # the tie rule: greater ids first
    place = {name: row for row, name in enumerate(DOCS)}
    expected = {}
    for query, vector in zip(QUERIES, queries, strict=True):
        coarse = SIMILARITIES["cosine"](np.broadcast_to(coded(vector[None], kind), docs.shape), docs)
        fine = SIMILARITIES["cosine"](np.broadcast_to(vector, docs.shape), docs)
        found = sorted(names, key=lambda name: -coarse[place[name]])
        scores = coarse
        if two_stages:
            candidates = set(found[: 3 * two_stages])
            found = sorted((name for name in names if name in candidates), key=lambda name: -fine[place[name]])
            scores = fine
        expected[query] = [(name, float(scores[place[name]])) for name in found[:3]]
    assert ranked(tmp_path, **fields) == expected
