"""Options of approximate kinds, and what they come to."""

from __future__ import annotations

import math
from typing import Any

import faiss
import numpy as np
import pytest

from embeval.errors import ConfigError, UnknownNameError
from embeval.retrieval import approximate
from embeval.retrieval.indexes import _engine, _lists, hnsw
from embeval.retrieval.indexes.ivf_pq import codes

RNG = np.random.default_rng(4)
DOCS = RNG.normal(size=(400, 16)).astype(np.float32)
KEYS = np.arange(400)


def _settled(kind: str, n: int, **options: Any) -> dict[str, Any]:
    return dict(approximate.build(DOCS[:n], kind=kind, similarity="cosine", options=options).settled)


def test_lists_by_hand() -> None:
    """4 sqrt(n) with 39 vectors each, a sixteenth visited; numbers asked for are kept while there are vectors."""
    assert _lists.cut(1_000_000, None, None) == (4000, 250)
    assert _lists.cut(10_000, None, None) == (10_000 // 39, 16)
    assert _lists.cut(38, None, None) == (1, 1)
    assert _lists.cut(10_000, 100, 7) == (100, 7)
    assert _lists.cut(5, 100, 7) == (5, 5)
    assert _lists.cut(10_000, 100, None).visited == math.ceil(100 / 16)


def test_codes_by_hand() -> None:
    """At least 4 dimensions behind a code, so primes have one; what doesn't divide is refused, with some that do."""
    assert [codes(dim, None) for dim in (384, 768, 1024, 16, 10, 6, 7, 1)] == [96, 192, 256, 4, 2, 1, 1, 1]
    assert codes(384, 48) == 48
    with pytest.raises(ConfigError, match=r"m: 50 does not divide the 384 dimensions .* Near it do: 32, 48, 64"):
        codes(384, 50)


def test_options_are_settled_and_said() -> None:
    """What was null has a number, what was given is kept."""
    assert _settled("ivf", 400) == {"nlist": 10, "nprobe": 1, "rescore": 1}
    assert _settled("ivf", 400, nlist=5, nprobe=5, rescore=3) == {"nlist": 5, "nprobe": 5, "rescore": 3}
    assert _settled("ivf_pq", 400, nbits=4) == {"nlist": 10, "nprobe": 1, "m": 4, "nbits": 4, "rescore": 4}
    assert _settled("hnsw", 50, m=8) == {"m": 8, "ef_construction": 100, "ef_search": None, "rescore": 1}
    assert _settled("sq8", 50) == {"rescore": 2}
    assert _settled("binary", 50) == {"rescore": 8}


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        ("ivf", {"nlist": 0}, "nlist: must be at least 1, not 0"),
        ("ivf", {"nlist": 4, "nprobe": 5}, "nprobe: must be at most nlist, 4, not 5"),
        ("ivf", {"nlists": 4}, "nlists: unknown key. Did you mean 'nlist'"),
        ("ivf", {"nlist": "many"}, "nlist: Input should be a valid integer"),
        ("ivf_pq", {"m": 0}, "m: must be at least 1"),
        ("ivf_pq", {"m": 5}, "m: 5 does not divide the 16 dimensions"),
        ("ivf_pq", {"nbits": 13}, "nbits: must be 4 to 12, not 13"),
        ("hnsw", {"m": 1}, "m: must be 2 to 128, not 1"),
        ("hnsw", {"ef_search": 0}, "ef_search: must be at least 1"),
        ("sq8", {"rescore": 0}, "rescore: must be at least 1"),
        ("binary", {"rescore": 0}, "rescore: must be at least 1"),
    ],
)
def test_impossible_options_are_refused_before_any_vector_is_made(
    kind: str, options: dict[str, Any], message: str
) -> None:
    """The message names the kind, the option and what it could be."""
    with pytest.raises(ConfigError, match=f"Index '{kind}': {message}") as caught:
        approximate.check(kind, "cosine", 16, options)
    assert caught.value.key == (next(name for name in ("nprobe", *options) if name in options),)


def test_exact_and_unknown_kinds_are_not_for_this_door() -> None:
    """TopK searches exact ones; a wrong name gets a suggestion."""
    with pytest.raises(ValueError, match="exact is exact"):
        approximate.check("exact", "cosine", 16, {})
    with pytest.raises(UnknownNameError, match="Did you mean 'hnsw'"):
        approximate.check("hnws", "cosine", 16, {})
    with pytest.raises(ValueError, match="k must be at least 1"):
        approximate.search_corpus([DOCS], DOCS[:1], k=0, kind="ivf", similarity="dot", tie_keys=KEYS)


def test_all_lists_visited_is_exact_search() -> None:
    """nprobe = nlist misses nothing: the order of a full sort by numpy."""
    queries = RNG.normal(size=(8, 16)).astype(np.float32)
    found, facts = approximate.search_corpus(
        [DOCS],
        queries,
        k=20,
        kind="ivf",
        similarity="dot",
        tie_keys=KEYS,
        options={"nlist": 10, "nprobe": 10},
    )
    expected = np.argsort(-(queries.astype(np.float64) @ DOCS.T.astype(np.float64)), axis=1)[:, :20]
    assert found.positions.tolist() == expected.tolist()
    assert facts.settled["nprobe"] == 10


def test_binary_candidates_are_those_nearest_by_sign_bits() -> None:
    """With rescore 1 the hits are the nearest by Hamming distance, counted by numpy, in the order of their cosines."""
    queries = RNG.normal(size=(5, 16)).astype(np.float32)
    found, facts = approximate.search_corpus(
        [DOCS], queries, k=10, kind="binary", similarity="cosine", tie_keys=KEYS, options={"rescore": 1}
    )
    for row, query in enumerate(queries):
        distances = ((query > 0) != (DOCS > 0)).sum(axis=1)
        assert sorted(distances[found.positions[row]]) == sorted(distances)[:10]
    assert np.all(np.diff(found.scores, axis=1) <= 0)
    assert facts.n_bytes == pytest.approx(400 * 16 / 8, abs=64)


def test_more_candidates_find_more() -> None:
    """Rescoring 40 per hit looks at every document, so nothing is missed; 1 per hit misses some."""
    queries = RNG.normal(size=(20, 16)).astype(np.float32)

    def positions(rescore: int) -> list[list[int]]:
        found, _ = approximate.search_corpus(
            [DOCS], queries, k=10, kind="binary", similarity="dot", tie_keys=KEYS, options={"rescore": rescore}
        )
        return list(found.positions.tolist())

    expected = np.argsort(-(queries.astype(np.float64) @ DOCS.T.astype(np.float64)), axis=1)[:, :10].tolist()
    assert positions(40) == expected
    assert positions(1) != expected


def test_equal_documents_are_ordered_by_the_tie_rule() -> None:
    """Ten copies of one vector: all found, the greatest tie key first."""
    docs = np.repeat(DOCS[:1], 10, axis=0)
    keys = RNG.permutation(10)
    for kind in ("hnsw", "ivf", "ivf_pq", "sq8", "binary"):
        found, _ = approximate.search_corpus([docs], DOCS[:1], k=10, kind=kind, similarity="dot", tie_keys=keys)
        assert keys[found.positions[0]].tolist() == list(range(9, -1, -1))


def test_a_graph_is_built_by_one_thread() -> None:
    """With several it would differ from build to build; afterwards FAISS has as many as before."""
    seen = []

    class Watching:
        def add(self, vectors: np.ndarray) -> None:
            seen.append(faiss.omp_get_max_threads())

    index: Any = hnsw.INDEX.plan(16, "cosine", hnsw.HnswOptions(), 400)
    index.engine = Watching()
    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(2)
    try:
        index.add(DOCS)
        assert seen == [1]
        assert faiss.omp_get_max_threads() == 2
    finally:
        faiss.omp_set_num_threads(before)


def test_without_a_gpu_an_index_stays_where_it_is() -> None:
    """On the CPU, or with a FAISS that has no GPU part."""
    engine = faiss.IndexFlatIP(4)
    assert _engine.to_gpu_if_there(engine, "cpu") is engine
    if not hasattr(faiss, "StandardGpuResources"):
        assert _engine.to_gpu_if_there(engine, "cuda") is engine


@pytest.mark.gpu
@pytest.mark.skipif(not hasattr(faiss, "StandardGpuResources"), reason="this FAISS has no GPU part")
def test_a_gpu_finds_what_the_cpu_finds() -> None:
    """The same lists give the same documents."""
    queries = RNG.normal(size=(8, 16)).astype(np.float32)
    found = [
        approximate.search_corpus([DOCS], queries, k=10, kind="ivf", similarity="cosine", tie_keys=KEYS, device=device)[
            0
        ].positions.tolist()
        for device in ("cpu", "cuda")
    ]
    assert found[0] == found[1]
