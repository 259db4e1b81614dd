"""The cache of vectors against a dictionary, under any order of calls."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from embeval.core.progress import Silent
from embeval.encoders.cache import TokenCounts, VectorCache, upkeep

DIMS = {"a" * 64: 400, "b" * 64: 500}
SMALL_LIMIT = 3_500_000
"""Two of the larger puts fit in; the index, which may grow to half of it, stays far below."""

MANY = 600

shelves = st.sampled_from(sorted(DIMS))
a_text = st.text(alphabet=st.sampled_from("ab \0\ud800é"), max_size=3)
texts_ = st.lists(a_text, max_size=12)
versions = st.integers(0, 2**24)


class Cache(RuleBasedStateMachine):
    """Puts, questions, new objects, damage and pruning; a dictionary holds what should be there."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.cache = VectorCache(self.folder / "vectors")
        self.model: dict[tuple[str, str], tuple[bytes, int, int, bytes]] = {}
        self.lossless = True
        """Whether all that was put has to be there."""

    @initialize(small=st.booleans())
    def limit(self, small: bool) -> None:
        """A cache that drops things in half of the runs."""
        self.lossless = not small
        if small:
            self.cache.max_bytes = SMALL_LIMIT

    @rule(key=shelves, texts=texts_, version=versions, lost=st.integers(0, 2**31 - 1))
    def put(self, key: str, texts: list[str], version: int, lost: int) -> None:
        """New vectors for some texts: those that are there keep theirs."""
        n, dim = len(texts), DIMS[key]
        vectors = (version + np.arange(n * dim, dtype=np.float32)).reshape(n, dim)
        keys = np.full((n, 16), version % 256, dtype=np.uint8)
        keys[:, -1] = 0
        lengths = np.arange(n, dtype=np.int64)
        self.forget_what_was_dropped(key, texts)
        self.cache.shelf(key, {"model": key[:1]}).put(
            texts, vectors, TokenCounts(lengths, np.full(n, lost, np.int64), None, keys)
        )
        for row, text in enumerate(texts):
            self.model.setdefault((key, text), (vectors[row].tobytes(), row, lost, keys[row].tobytes()))

    def forget_what_was_dropped(self, key: str, texts: list[str]) -> None:
        """In a small cache: what made room has no old value that it keeps when it is put again."""
        if not self.lossless:
            there = set(self.cache.shelf(key, {}).get(texts).rows.tolist())
            for row, text in enumerate(texts):
                if row not in there:
                    self.model.pop((key, text), None)

    @rule(key=shelves, start=st.integers(0, 10**6))
    def put_many(self, key: str, start: int) -> None:
        """Enough for a small cache to drop the oldest."""
        texts = [str(number) for number in range(start, start + MANY)]
        vectors = np.full((MANY, DIMS[key]), start, dtype=np.float32)
        none = np.zeros(MANY, dtype=np.int64)
        self.forget_what_was_dropped(key, texts)
        self.cache.shelf(key, {}).put(texts, vectors, TokenCounts(none, none, None, np.zeros((MANY, 16), np.uint8)))
        for text, vector in zip(texts, vectors, strict=True):
            self.model.setdefault((key, text), (vector.tobytes(), 0, 0, bytes(16)))

    @rule(key=shelves, texts=texts_)
    def get(self, key: str, texts: list[str]) -> None:
        """Exactly what the dictionary says; of a small cache, nothing else than that."""
        found = self.cache.shelf(key, {}).get(texts)
        rows = found.rows.tolist()
        if self.lossless:
            assert rows == [row for row, text in enumerate(texts) if (key, text) in self.model]
        assert rows == sorted(set(rows))
        assert found.counts.lost is not None
        for place, row in enumerate(rows):
            told = (int(found.counts.lengths[place]), int(found.counts.lost[place]), found.counts.keys[place].tobytes())
            assert (found.vectors[place].tobytes(), *told) == self.model[key, texts[row]]

    @rule()
    def reopen(self) -> None:
        """Another object, as in the next process."""
        max_bytes = self.cache.max_bytes
        self.cache.close()
        self.cache = VectorCache(self.folder / "vectors", max_bytes=max_bytes)

    @rule(key=shelves)
    def drop_a_shelf(self, key: str) -> None:
        """As ``prune --model`` does it: all of that shelf is gone, nothing of the other."""
        upkeep.prune_models(self.cache, key[:1])
        described = {shelf.key for shelf in upkeep.stats(self.cache).shelves}
        if key not in described:
            self.model = {place: value for place, value in self.model.items() if place[0] != key}

    @invariant()
    def counts_are_right(self) -> None:
        """What stats says is what there is, nothing is damaged, and there is no trouble."""
        assert self.cache.trouble is None
        there = upkeep.verify(self.cache, Silent())
        assert (there.bad, there.left_over, there.n_left_over_bytes) == ((), (), 0)
        told = upkeep.stats(self.cache)
        assert sum(shelf.n_vectors for shelf in told.shelves) == there.n_vectors
        if self.lossless:
            assert there.n_vectors == len(self.model)
        assert told.n_bytes <= self.cache.max_bytes

    def teardown(self) -> None:
        """Leaves nothing behind."""
        self.cache.close()
        shutil.rmtree(self.folder)


Cache.TestCase.settings = settings(max_examples=20, stateful_step_count=12, deadline=None)
TestCache = Cache.TestCase
