"""The encoder with a cache gives what it gives without, whatever is there, and runs the model on the rest only."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from embeval.core.embeddings import Embeddings, Work
from embeval.core.protocols import Encoder, System
from embeval.core.specs import ModelSpec, Role, RuntimeOptions
from embeval.encoders import encoder as module
from embeval.encoders import loading, shelves
from embeval.encoders.cache import VectorCache
from embeval.encoders.encoder import BatchedEncoder
from embeval.errors import InvalidEmbeddingsError, ModelError
from tests.support.commands import environment
from tests.support.counting import LETTERS, LetterCounts, counting
from tests.support.doubles import Seen

TEXTS = ["abc", "abcdefgh", "ABCDEFxx", "", "bad", "!!!", "Bad", "hhh", "a b c", "abc", "xx"]
ANY_TEXT = st.text(alphabet="abAB x!\n", max_size=9)
quick = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def same(one: Embeddings, other: Embeddings, atol: float = 0.0) -> None:
    """Vectors, counts and what is said of truncated texts agree."""
    if atol:
        np.testing.assert_allclose(one.vectors, other.vectors, rtol=0, atol=atol)
    else:
        assert one.vectors.tobytes() == other.vectors.tobytes()
    assert (one.counts, one.truncated, one.normalized) == (other.counts, other.truncated, other.normalized)
    assert (one.role, one.spec_digest) == (other.role, other.spec_digest)


def loaded(spec: ModelSpec, cache: VectorCache | None = None) -> Encoder:
    """The model of a spec."""
    return loading.load(loading.resolve(spec), RuntimeOptions(device="cpu"), cache)


# --- cached equals uncached ---------------------------------------------------------------------------------------


@quick
@given(calls=st.lists(st.lists(ANY_TEXT, max_size=6), max_size=4), texts=st.lists(ANY_TEXT, max_size=14))
def test_whatever_is_cached_the_result_is_that_of_one_uncached_call(calls: list[list[str]], texts: list[str]) -> None:
    """To the bit where batches don't matter, for any mix of hits, misses, repeats, case variants and empty texts."""
    hashing = loaded(ModelSpec(name="hashing", backend="hashing"))
    for plain in (counting(LetterCounts()), hashing):
        assert isinstance(plain, BatchedEncoder)
        with tempfile.TemporaryDirectory() as folder:
            cached = plain.with_cache(shelves.Shelves(VectorCache(Path(folder)), RuntimeOptions()))
            for call in calls:
                same(cached.encode(call, role=Role.QUERY), plain.encode(call, role=Role.QUERY))
            same(cached.encode(texts, role=Role.QUERY), plain.encode(texts, role=Role.QUERY))
            again = cached.encode(texts, role=Role.QUERY)
            same(again, plain.encode(texts, role=Role.QUERY))
            assert again.work == Work()


@pytest.fixture(scope="module")
def bert(tiny_model: Path) -> Encoder:
    """The tiny BERT without a cache."""
    return loaded(ModelSpec(name=str(tiny_model)))


@settings(quick, max_examples=10)
@given(data=st.data())
def test_a_real_model_from_the_cache_is_within_the_noise_of_batches(bert: Encoder, data: st.DataObject) -> None:
    """1e-6 from one uncached call, bit-equal when asked again; texts that tokenise alike tie to the bit."""
    assert isinstance(bert, BatchedEncoder)
    text = st.lists(st.sampled_from(["archive", "Archive", "backup", "the", "QQ", "é", ""]), max_size=24).map(" ".join)
    calls = data.draw(st.lists(st.lists(text, max_size=5), max_size=3))
    texts = data.draw(st.lists(text, max_size=10))
    with tempfile.TemporaryDirectory() as folder:
        cached = bert.with_cache(shelves.Shelves(VectorCache(Path(folder)), RuntimeOptions()))
        for call in calls:
            cached.encode(call, role=Role.DOCUMENT)
        first = cached.encode(texts, role=Role.DOCUMENT)
        same(first, bert.encode(texts, role=Role.DOCUMENT), atol=1e-6)
        again = cached.encode(texts, role=Role.DOCUMENT)
    same(again, first)
    assert again.work == Work()
    vectors: dict[str, bytes] = {}
    for row, each in enumerate(texts):  # to this model, upper and lower case are alike
        found = first.vectors[row].tobytes()
        assert vectors.setdefault(" ".join(each.lower().split()), found) == found


def test_texts_that_look_alike_tie_though_they_were_cached_apart(tmp_path: Path) -> None:
    """Each call adds other noise to "abc" and "ABC"; asked for together they have one vector, as without a cache."""
    encoder = counting(LetterCounts(noise=0.25), tmp_path)
    one = encoder.encode(["abc"], role=Role.TEXT).vectors
    other = encoder.encode(["ABC"], role=Role.TEXT).vectors
    assert not np.array_equal(one, other)
    together = encoder.encode(["ABC", "dd", "abc"], role=Role.TEXT)
    assert together.vectors[0].tobytes() == together.vectors[2].tobytes()
    assert together.work == Work(1, 2)


def test_a_text_that_looks_like_a_cached_one_beside_it_is_not_run(tmp_path: Path) -> None:
    """Its vector is the cached one, also once it is cached itself."""
    backend = LetterCounts(noise=0.25)
    encoder = counting(backend, tmp_path)
    known = encoder.encode(["abc", "ddd"], role=Role.TEXT).vectors[0]
    for _ in range(2):
        found = encoder.encode(["A B C", "abc", "Abc"], role=Role.TEXT)
        assert found.work == Work()
        assert found.vectors.tolist() == [known.tolist()] * 3
    assert backend.batches == [["abc", "ddd"]]


# --- which texts meet ---------------------------------------------------------------------------------------------

MANY = [
    "".join("abcdefgh"[(number * step) % 8] for step in range(number % 9)) + "!" * (number % 3) for number in range(60)
]


@quick
@given(known=st.sets(st.sampled_from(MANY)), window=st.integers(5, 70))
def test_missing_texts_meet_in_the_batches_of_the_whole(known: set[str], window: int) -> None:
    """What is cached is left out of each batch, and no batch gets a text that it would not have had."""
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "WINDOW", window)
        whole, first, second = LetterCounts(), LetterCounts(), LetterCounts()
        counting(whole).encode(MANY, role=Role.TEXT)
        counting(first, Path(folder)).encode(sorted(known), role=Role.TEXT)
        counting(second, Path(folder)).encode(MANY, role=Role.TEXT)
        planned = [set(batch) for batch in whole.batches]
        for batch in second.batches:
            assert any(set(batch) <= each for each in planned), batch
        assert not {text for batch in second.batches for text in batch} & known


@pytest.mark.parametrize("stop", [0, 1, 3, 6])
def test_an_interrupted_run_goes_on_as_it_would_have(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stop: int
) -> None:
    """Ctrl-C in a batch: those before it are kept, run no more, and all vectors are those of a run in one go."""
    monkeypatch.setattr(module, "WINDOW", 20)
    assert len(_batches(MANY)) > 7

    def interrupt(number: int) -> None:
        if number == stop:
            raise KeyboardInterrupt

    broken, resumed = LetterCounts(before_batch=interrupt), LetterCounts()
    with pytest.raises(KeyboardInterrupt):
        counting(broken, tmp_path).encode(MANY, role=Role.TEXT)
    done = counting(resumed, tmp_path).encode(MANY, role=Role.TEXT)
    assert len(broken.batches) == stop
    assert broken.batches + resumed.batches == _batches(MANY)
    same(done, counting(LetterCounts()).encode(MANY, role=Role.TEXT))


def _batches(texts: list[str]) -> list[list[str]]:
    backend = LetterCounts()
    counting(backend).encode(texts, role=Role.TEXT)
    return backend.batches


def test_an_interrupted_model_restarts_to_the_same_bits(
    tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tiny BERT, whose batches do matter to the last bit."""
    monkeypatch.setattr(module, "WINDOW", 16)
    texts = [" ".join(["archive backup token"] * (number % 5) + [f"page {number}"]) for number in range(50)]
    spec = ModelSpec(name=str(tiny_model))
    runtime = RuntimeOptions(device="cpu", batch_tokens=64)
    located = loading.resolve(spec)
    expected = loading.load(located, runtime).encode(texts, role=Role.DOCUMENT)

    interrupted: Any = loading.load(located, runtime, VectorCache(tmp_path))
    forward, calls = interrupted.backend.forward, []

    def stopping(tokens: Any, rows: Any) -> Any:
        calls.append(len(rows))
        if len(calls) == 8:
            raise KeyboardInterrupt
        return forward(tokens, rows)

    interrupted.backend.forward = stopping
    with pytest.raises(KeyboardInterrupt):
        interrupted.encode(texts, role=Role.DOCUMENT)
    restarted = loading.load(located, runtime, VectorCache(tmp_path)).encode(texts, role=Role.DOCUMENT)
    same(restarted, expected)
    assert restarted.work.n_texts == expected.work.n_texts - sum(calls[:-1])


# --- faults -------------------------------------------------------------------------------------------------------


def test_what_is_no_vector_is_not_kept(tmp_path: Path) -> None:
    """NaN is refused by name each time; its neighbours in the batch are kept."""
    backend = LetterCounts(poison="bad")
    for _ in range(2):
        with pytest.raises(InvalidEmbeddingsError, match="'d1'"):
            counting(backend, tmp_path).encode(["abc", "bad", "BAD"], role=Role.TEXT, ids=["d0", "d1", "d2"])
    assert backend.batches == [["abc", "bad"], ["bad"]]
    mended = counting(LetterCounts(), tmp_path).encode(["abc", "bad", "BAD"], role=Role.TEXT)
    assert mended.vectors[1].tolist() == mended.vectors[2].tolist() == [1, 1, 0, 1, 0, 0, 0, 0]


def test_a_batch_that_does_not_fit_is_halved_and_the_budget_stays_small(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Batches of 24 tokens where 7 fit: halved until they do, and later windows start there."""
    monkeypatch.setattr(module, "WINDOW", 16)
    texts = [f"abcd{letter}{other}" for letter in "abcdefgh" for other in "abcdefgh"]
    backend = LetterCounts(fits=13)
    encoder = counting(backend, tmp_path)
    found = encoder.encode(texts, role=Role.TEXT)
    same(found, counting(LetterCounts()).encode(texts, role=Role.TEXT))
    assert encoder.info.batch_tokens == 12
    assert [len(batch) for batch in backend.batches] == [2] * 32
    # Found again, by this encoder and by a new one, though both would now cut batches otherwise.
    assert encoder.encode(texts, role=Role.TEXT).work == Work()
    assert counting(LetterCounts(), tmp_path).encode(texts, role=Role.TEXT).work == Work()


def test_a_text_that_does_not_fit_alone_is_an_error(tmp_path: Path) -> None:
    """``MemoryError``, which the runner reports; shorter texts before it are kept."""
    encoder = counting(LetterCounts(fits=5, batch_tokens=6), tmp_path)
    with pytest.raises(MemoryError):
        encoder.encode(["abcdef", "abc"], role=Role.TEXT)


def test_texts_are_tokenised_ahead_in_another_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """When the model runs on the first window, the second is there or under way, and never the third."""
    monkeypatch.setattr(module, "WINDOW", 4)
    seen: list[int] = []
    backend = LetterCounts(batch_tokens=100)
    backend.before_batch = lambda number: seen.append(len(backend.prepared))
    counting(backend).encode([f"abc{letter}" for letter in "abcdefghijkl"], role=Role.TEXT)
    assert [len(texts) for texts in backend.prepared] == [4, 4, 4]
    assert all(name.startswith("tokenize") for name in backend.threads)
    assert all(number + 1 <= n <= number + 2 for number, n in enumerate(seen)), seen


@pytest.mark.parametrize("failing", [1, 2, 3])
def test_an_error_while_tokenising_surfaces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: int) -> None:
    """As it was raised; what was computed before is kept."""
    monkeypatch.setattr(module, "WINDOW", 4)
    backend = LetterCounts(batch_tokens=100)
    prepare = backend.prepare

    def broken(texts: Any, *, prompt: str, role: Role) -> Any:
        if len(backend.prepared) + 1 == failing:
            raise ModelError("the tokenizer is broken")
        return prepare(texts, prompt=prompt, role=role)

    monkeypatch.setattr(backend, "prepare", broken)
    texts = [f"abc{letter}" for letter in "abcdefghijkl"]
    with pytest.raises(ModelError, match="the tokenizer is broken"):
        counting(backend, tmp_path).encode(texts, role=Role.TEXT)
    kept = counting(LetterCounts(batch_tokens=100), tmp_path).encode(texts, role=Role.TEXT)
    assert kept.work.n_texts == 12 - backend.n_run


def test_trouble_with_the_cache_is_a_remark_without_a_path(tmp_path: Path) -> None:
    """A file where the folder should be: all is computed, and the reader is told once."""
    (tmp_path / "file").write_text("in the way")
    encoder = counting(LetterCounts(), tmp_path / "file")
    assert encoder.info.remarks == ()
    for _ in range(2):
        same(encoder.encode(TEXTS, role=Role.TEXT), counting(LetterCounts()).encode(TEXTS, role=Role.TEXT))
    remark = " ".join(encoder.info.remarks)
    assert len(encoder.info.remarks) == 1
    assert remark.startswith("Vectors were not cached: The embedding cache can't be used: ")
    assert str(tmp_path) not in remark


def test_a_full_disk_costs_the_cache_and_not_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """ENOSPC when a row is written."""
    from embeval.encoders.cache import shards

    def full(*arguments: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(shards, "append", full)
    encoder = counting(LetterCounts(), tmp_path)
    same(encoder.encode(TEXTS, role=Role.TEXT), counting(LetterCounts()).encode(TEXTS, role=Role.TEXT))
    (remark,) = encoder.info.remarks
    assert "No space left on device. Free some space" in remark


def test_texts_without_tokens_do_not_set_the_length_of_a_shelf(tmp_path: Path) -> None:
    """Asked for alone first, and cut to 3 dimensions: the shelf still takes the model's own 8."""
    cut = dataclasses.replace(LETTERS, truncate_dim=3)
    first = counting(LetterCounts(dim=3), tmp_path, cut)
    assert first.encode(["!", "?"], role=Role.TEXT).vectors.tolist() == [[0, 0, 0]] * 2
    assert first.encode(["abcd", "!"], role=Role.TEXT).vectors.tolist() == [[1, 1, 1], [0, 0, 0]]
    assert first.info.remarks == ()
    whole = counting(LetterCounts(), tmp_path).encode(["abcd", "!"], role=Role.TEXT)
    assert whole.vectors.tolist() == [[1, 1, 1, 1, 0, 0, 0, 0], [0] * 8]
    assert whole.work == Work()


@pytest.mark.parametrize("texts", [["new"], ["abc", "new"]])
def test_a_model_that_was_exchanged_behind_its_name_is_an_error(tmp_path: Path, texts: list[str]) -> None:
    """It gives vectors of another length than those that are there, found or not: none of both are mixed."""
    counting(LetterCounts(), tmp_path).encode(["abc"], role=Role.TEXT)
    other = LetterCounts()
    encoder = counting(other, tmp_path)
    object.__setattr__(other, "forward", lambda tokens, rows: np.ones((len(rows), 3), dtype=np.float32))
    with pytest.raises(ModelError, match="Model 'letters' gives vectors of another length than before"):
        encoder.encode(texts, role=Role.TEXT)


def test_progress_counts_each_text_once(tmp_path: Path) -> None:
    """All found, some found, none found; and where the model turns out to be another one."""
    for texts in (TEXTS[:5], TEXTS, TEXTS):
        seen = Seen()
        counting(LetterCounts(), tmp_path).encode(texts, role=Role.TEXT, progress=seen)
        assert seen.total == len(texts)
    seen = Seen()
    lazy = _lazy(LetterCounts(device="cpu"), LetterCounts(device="cuda (a GPU)"))
    other = BatchedEncoder(LETTERS, lazy, shelves=shelves.Shelves(VectorCache(tmp_path), RuntimeOptions()))
    other.encode([*TEXTS, "new"], role=Role.TEXT, progress=seen)
    assert seen.total == len(TEXTS) + 1


# --- models that are not even loaded ------------------------------------------------------------------------------


def _lazy(known: LetterCounts, real: LetterCounts, remember: Callable[[Any], None] = lambda known: None) -> Any:
    return shelves.LazyBackend(json.loads(json.dumps(shelves.known_of(known))), lambda: real, remember)


@pytest.fixture
def loads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the models that the backend of ``hashing`` loads."""
    backend = loading.BACKENDS.get("hashing")
    real, seen = backend.load, []

    def counted(located: Any, runtime: RuntimeOptions) -> System:
        seen.append(located.spec.name)
        return real(located, runtime)

    monkeypatch.setattr(backend, "load", counted, raising=False)
    return seen


def test_a_model_whose_vectors_are_there_is_not_loaded(tmp_path: Path, loads: list[str]) -> None:
    """Its vectors, counts and info are those of the loaded one; the first new text loads it, once."""
    spec = ModelSpec(name="hashing", backend="hashing", max_seq_length=3, prompts={"query": "find "})
    first = loaded(spec, VectorCache(tmp_path))
    done = first.encode(TEXTS, role=Role.QUERY)
    assert loads == ["hashing"]
    second = loaded(spec, VectorCache(tmp_path))
    found = second.encode(TEXTS, role=Role.QUERY)
    same(found, done)
    assert found.work == Work()
    assert second.info == first.info
    assert second.prompt(Role.QUERY) == "find "
    assert loads == ["hashing"]
    for new in ("new text", "newer text"):
        same(second.encode([new], role=Role.QUERY), loaded(spec).encode([new], role=Role.QUERY))
    assert loads == ["hashing"] * 4  # once for the lazy one, and twice for those without a cache


def test_a_damaged_note_is_written_again(tmp_path: Path, loads: list[str]) -> None:
    """What is no JSON, or says too little, leads to the model."""
    spec = ModelSpec(name="hashing", backend="hashing")
    key = shelves.note_key(loading.resolve(spec).spec, RuntimeOptions(device="cpu"))
    cache = VectorCache(tmp_path)
    for damaged in (b"{", b"\xff\xfe", b"[]", b'{"info": {}}', b'{"info": {"dim": 3}, "default_prompt_name": null}'):
        cache.put_note(key, damaged)
        assert loaded(spec, cache).encode(["a"], role=Role.TEXT).vectors.shape == (1, 256)
        assert json.loads(cache.note(key) or b"")["info"]["dim"] == 256
    assert len(loads) == 5


def test_a_note_that_is_not_true_any_more_is_put_right(tmp_path: Path) -> None:
    """Noted on a GPU, loaded on a CPU: other shelves, another budget, other prompts; vectors are the CPU's."""
    told: list[Any] = []
    gpu = LetterCounts(device="cuda (a GPU)", batch_tokens=9_000, noise=0.5, prompts={"query": "h"})
    store = shelves.Shelves(VectorCache(tmp_path), RuntimeOptions())
    BatchedEncoder(LETTERS, gpu, shelves=store).encode(["abc"], role=Role.QUERY)
    cpu = LetterCounts(prompts={"query": "g"})
    encoder = BatchedEncoder(LETTERS, _lazy(gpu, cpu, told.append), shelves=store)
    assert encoder.prompt(Role.QUERY) == "h"
    found = encoder.encode(["abc", "d"], role=Role.QUERY)
    assert found.vectors.tolist() == [[1, 1, 1, 0, 0, 0, 1, 0], [0, 0, 0, 1, 0, 0, 1, 0]]
    assert encoder.prompt(Role.QUERY) == "g"
    assert (encoder.info.device, encoder.info.batch_tokens) == ("cpu", 24)
    assert [shelves.known_of(each) for each in told] == [shelves.known_of(cpu)]


def test_a_measured_budget_outlives_the_measurement(tmp_path: Path) -> None:
    """On the same device the noted budget stands, and so do the shelves that it is part of."""
    measured, unmeasured = LetterCounts(batch_tokens=48), LetterCounts(batch_tokens=24)
    store = shelves.Shelves(VectorCache(tmp_path), RuntimeOptions())
    BatchedEncoder(LETTERS, measured, shelves=store).encode(["abc"], role=Role.QUERY)
    encoder = BatchedEncoder(LETTERS, _lazy(measured, unmeasured), shelves=store)
    assert encoder.encode(["abc", "d"], role=Role.QUERY).work.n_texts == 1
    assert encoder.info.batch_tokens == 48


def test_auto_measures_the_budget_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Noted with the model; an endpoint, where each token may cost money, is not tried at all."""
    measured: list[str] = []

    def noted(self: Any) -> Any:
        measured.append(self.info.device)
        return BatchedEncoder(self.spec, self.backend, budget=4_096)

    monkeypatch.setattr(BatchedEncoder, "with_measured_budget", noted)
    located = loading.resolve(ModelSpec(name="hashing", backend="hashing"))
    auto = RuntimeOptions(batch_tokens="auto")
    for _ in range(2):
        assert loading.load(located, auto, VectorCache(tmp_path)).info.batch_tokens == 4_096
    assert measured == ["cpu"]
    assert loading.load(located, RuntimeOptions()).info.batch_tokens == 65_536
    backend = loading.BACKENDS.get("hashing")

    def elsewhere(located: Any, runtime: RuntimeOptions) -> Encoder:
        return BatchedEncoder(located.spec, LetterCounts(device=loading.ENDPOINT))

    monkeypatch.setattr(backend, "load", elsewhere, raising=False)
    assert loading.load(located, auto).info.batch_tokens == 24
    assert measured == ["cpu"]


def test_the_budget_is_measured_with_batches_that_fill_it() -> None:
    """A model that is slow to start a batch: twice the budget pays until memory runs out."""
    backend = LetterCounts(fits=5_000)
    encoder = counting(backend).with_measured_budget()
    assert encoder.info.batch_tokens in (1_024, 2_048, 4_096)
    assert max(len(batch) for batch in backend.batches) * 6 <= 5_000
    assert min(len(batch) for batch in backend.batches) == 1_024 // 6


WARM = """
import sys
from embeval.cli.main import main
try:
    main()
except SystemExit as end:
    assert not end.code, end.code
print(*sorted({"torch", "transformers", "sentence_transformers", "tokenizers"} & set(sys.modules)), file=sys.stderr)
"""


def test_a_warm_run_does_not_import_torch(tiny_model: Path, tmp_path: Path) -> None:
    """``run --overwrite`` with all vectors there computes every number again without the model's library."""
    words = ["run", "-m", str(tiny_model), "-t", "demo-pairs", "--resamples", "0", "--overwrite", "--json"]
    found = []
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", WARM, *words],
            cwd=tmp_path,
            env=environment({"XDG_CACHE_HOME": str(tmp_path / "cache")}),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        found.append((json.loads(done.stdout), done.stderr.splitlines()[-1].split()))
    (cold, _), (warm, libraries) = found
    assert libraries == []
    assert [each["timings"]["texts_encoded"] > 0 for each in cold["results"]] == [True] * len(cold["results"])
    assert {each["timings"]["texts_encoded"] for each in warm["results"]} == {0}
    for result in (*cold["results"], *warm["results"]):
        result.pop("timings")
    assert warm["results"] == cold["results"]
