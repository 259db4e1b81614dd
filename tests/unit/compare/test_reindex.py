"""The warning of a re-index, its numbers in closed form."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from embeval.compare import reindex
from embeval.core.provenance import Provenance
from embeval.core.result import Result, Timings
from embeval.core.signature import Signature
from embeval.core.specs import DatasetRef, ModelSpec, TaskSpec

COUNTS: dict[str, int | None] = {
    "documents": 2_000,
    "documents_tokens_kept": 200_000,
    "queries_encoded": 50,
    "dimensions": 384,
    "vector_bytes": 1_536,
}
OLD = ModelSpec(name="org/old", revision="1")
NEW = ModelSpec(name="org/new", revision="1")


def result(
    model: ModelSpec = OLD,
    *,
    prompts: dict[str, str] | None = None,
    counts: dict[str, int | None] | None = None,
    **timings: Any,
) -> Result:
    """100 tokens a document, at 5,000 tokens and 40 texts a second."""
    speed = {"texts_per_s": 40.0, "tokens_per_s": 5_000.0, **timings}
    return Result(
        status="ok",
        task=TaskSpec(name="t", type="retrieval", dataset=DatasetRef(path="t")),
        model=model,
        split="test",
        subset="all",
        counts=COUNTS if counts is None else counts,
        signature=Signature(
            protocol={}, model_digest=model.digest, prompts=prompts or {"query": "q: ", "document": "d: "}
        ),
        provenance=Provenance(python="3", packages={}, os="os", cpu="cpu", n_cpus=1),
        timings=Timings(started_at="2026-01-01T00:00:00+00:00", wall_s=1.0, cpu_s=1.0, **speed),
    )


def test_cost_of_a_million_documents_by_hand() -> None:
    """100 tokens each at 5,000 a second: 20,000 s = 5.6 hours; 384 float32 each: 1.5 GB."""
    assert reindex.warning(result(), result(NEW), 1_000_000) == (
        "new needs a full re-index: vectors of documents that old made are of no use to it. 1,000,000 documents take "
        "5.6 hours at the speed of this run. Their vectors take 1.5 GB. Until all are done, both indexes must lie side "
        "by side."
    )


@pytest.mark.parametrize(
    ("documents", "timings", "told", "size"),
    [
        (None, {}, "2,000 documents take 40.0 seconds", "3.1 MB"),
        (30_000, {}, "30,000 documents take 10.0 minutes", "46.1 MB"),
        (1, {}, "1 document take", "1.5 kB"),
        (1_440_000, {"tokens_per_s": None}, "1,440,000 documents take 10.0 hours", "2.2 GB"),  # by texts per second
    ],
)
def test_time_and_size(documents: int | None, timings: dict[str, Any], told: str, size: str) -> None:
    """As many documents as were evaluated on where nobody says how many there are."""
    said = reindex.warning(result(), result(NEW, **timings), documents)
    assert said is not None
    assert told in said
    assert f"vectors take {size}." in said


def test_seconds() -> None:
    """Tokens over tokens per second, else texts over texts per second, else not known."""
    assert reindex.seconds(result(), 10) == pytest.approx(10 * 100 / 5_000)
    assert reindex.seconds(result(tokens_per_s=None), 10) == pytest.approx(10 / 40)
    assert reindex.seconds(result(counts={**COUNTS, "documents_tokens_kept": None}), 10) == pytest.approx(10 / 40)
    assert reindex.seconds(result(tokens_per_s=None, texts_per_s=None), 10) is None
    assert reindex.seconds(replace(result(), timings=None), 10) is None
    assert reindex.seconds(result(counts={"texts": 5}), 10) is None  # sentences of pairs are no documents


def test_what_came_from_the_cache_has_no_speed() -> None:
    """Then the message says how to measure it."""
    said = reindex.warning(result(), result(NEW, texts_per_s=None, tokens_per_s=None), 5_000)
    assert said is not None
    assert "How long 5,000 documents take was not measured" in said
    assert "'embeval models show MODEL --documents 5000' measures it" in said
    assert "Their vectors take 7.7 MB." in said


def test_a_task_without_documents() -> None:
    """It knows the size of a vector, and of how many only if told."""
    pairs: dict[str, int | None] = {"texts": 5, "texts_tokens_kept": 50, "dimensions": 384, "vector_bytes": 1_536}
    of_pairs = result(NEW, counts=pairs, prompts={"text": ""})
    said = reindex.warning(result(counts=pairs, prompts={"text": ""}), of_pairs, None)
    assert said is not None
    assert "How long all documents take was not measured" in said
    assert "A vector takes 1.5 kB." in said
    said = reindex.warning(result(counts=pairs, prompts={"text": ""}), of_pairs, 1_000)
    assert said is not None
    assert "Their vectors take 1.5 MB." in said


def test_bm25_is_indexed_and_not_encoded() -> None:
    """No vectors, no time for them."""
    bm25 = result(ModelSpec(name="bm25", backend="bm25", revision="builtin:1"), counts={"queries_scored": 50})
    said = reindex.warning(result(), bm25, 9_000)
    assert said is not None
    assert said.endswith("It ranks without vectors: nothing is encoded, but 9,000 documents have to be indexed anew.")


def test_documents_that_keep_their_vectors() -> None:
    """The same model; another prompt of queries, however it is given; another rescoring; another name of a folder."""
    assert reindex.warning(result(), result(), None) is None
    own = replace(OLD, prompts={"query": "ask: "})
    assert reindex.warning(result(), result(own, prompts={"query": "ask: ", "document": "d: "}), None) is None
    bits = replace(OLD, quantize="binary")
    assert reindex.warning(result(bits), result(replace(bits, rescore=4)), None) is None
    files = ModelSpec(name="old-folder", revision="sha256:1")
    assert reindex.warning(result(files), result(replace(files, name="new-folder")), None) is None


@pytest.mark.parametrize(
    ("model", "prompts"),
    [
        (OLD, {"query": "q: ", "document": "passage: "}),
        (replace(OLD, prompting="swap"), {"query": "d: ", "document": "q: "}),
        (replace(OLD, revision="2"), None),
        (replace(OLD, truncate_dim=64), None),
        (replace(OLD, dtype="bfloat16"), None),
        (replace(OLD, quantize="int8"), None),
    ],
)
def test_whatever_changes_the_vectors_of_documents(model: ModelSpec, prompts: dict[str, str] | None) -> None:
    """Each of them alone."""
    said = reindex.warning(result(), result(model, prompts=prompts), None)
    assert said is not None
    assert "needs a full re-index" in said


def test_prompts_where_no_document_was_encoded() -> None:
    """Pairs don't tell the prompt of documents, so only a change of the query's alone is known to be harmless."""
    plain = {"text": ""}
    asked = replace(OLD, prompts={"query": "ask: "})
    told = replace(OLD, prompts={"document": "passage: "})
    assert reindex.warning(result(prompts=plain), result(asked, prompts=plain), None) is None
    assert reindex.warning(result(prompts=plain), result(told, prompts=plain), None) is not None
    assert reindex.warning(result(prompts=plain), result(replace(OLD, prompting="none"), prompts=plain), None)


def test_a_baseline_without_vectors_has_none_to_lose() -> None:
    """BM25 as baseline: an index is to be built, and no vectors of BM25 are spoken of."""
    ranked: dict[str, int | None] = {"queries": 50}
    said = reindex.warning(result(counts=ranked), result(NEW), None)
    assert said is not None
    assert said.startswith("new needs a full index: old ranks without vectors. 2,000 documents take ")


def test_a_moment_is_no_zero() -> None:
    """Ten documents of 100 tokens at 5,000 a second."""
    said = reindex.warning(result(), result(replace(OLD, revision="sha256:other")), 10)
    assert said is not None
    assert "10 documents take less than a second" in said
