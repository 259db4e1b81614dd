"""Search in two stages, quantised then float, against sorting everything twice."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from embeval.core.ir import TieRule, tie_keys
from embeval.core.quantization import coded
from embeval.core.similarity import SIMILARITIES
from embeval.core.specs import Quantization, SimilarityName
from embeval.retrieval import search
from embeval.retrieval.kinds import INDEXES
from embeval.retrieval.search import TopK


@pytest.mark.parametrize("index", [name for name in INDEXES.names() if INDEXES.get(name).exact])
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_equal_to_sorting_everything_twice(index: str, data: st.DataObject) -> None:
    """The k best by the coded query under the tie rule, then in the order of the float query; any chunks."""
    n, d = data.draw(st.integers(1, 50)), data.draw(st.integers(1, 5))
    rng = np.random.default_rng(data.draw(st.integers(0, 10_000)))
    kind: Quantization = data.draw(st.sampled_from(["int8", "binary"]))
    similarity: SimilarityName = data.draw(st.sampled_from(sorted(SIMILARITIES)))
    # Few bits: ties at the last place of the first stage are the rule. Some vectors are zero, some equal.
    docs = coded((rng.integers(-2, 3, size=(n, d)) * rng.integers(0, 2, size=(n, 1))).astype(np.float32), kind)
    queries = rng.integers(-2, 3, size=(3, d)).astype(np.float32)
    first = coded(queries, kind)
    ids = [f"{number:x}" for number in rng.permutation(n)]
    ties = data.draw(st.sampled_from([TieRule.DOC_ID_DESC, TieRule.DOC_ID_ASC]))
    k, chunk = data.draw(st.integers(1, n + 3)), data.draw(st.integers(1, n))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(search, "SLACK", data.draw(st.integers(0, 3)))
        top = TopK(first, k=k, similarity=similarity, tie_keys=tie_keys(ids, ties), index=index, rescored_by=queries)
        for start in range(0, n, chunk):
            top.add(docs[start : start + chunk])
    found = top.result()
    compare = SIMILARITIES[similarity]
    by_id = sorted(range(n), key=lambda doc: ids[doc], reverse=ties is TieRule.DOC_ID_DESC)
    for row in range(len(queries)):
        coarse = compare(np.broadcast_to(first[row], docs.shape), docs)
        fine = compare(np.broadcast_to(queries[row], docs.shape), docs)
        candidates = set(sorted(by_id, key=lambda doc: -coarse[doc])[:k])
        expected = sorted((doc for doc in by_id if doc in candidates), key=lambda doc: -fine[doc])
        assert found.positions[row, : len(expected)].tolist() == expected
        assert found.scores[row, : len(expected)].tolist() == fine[expected].tolist()
        assert np.all(found.positions[row, len(expected) :] == -1)
        assert np.all(np.isneginf(found.scores[row, len(expected) :]))
