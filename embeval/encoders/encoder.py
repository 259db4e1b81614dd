"""The encoder that all backends share: prompts, batches, cache, guards, counts. A backend only tokenises and runs.

``encode`` does, in this order: set empty texts aside, keep each distinct text once, look them up in the cache, put the
prompt before those that are missing and tokenise them (the next window of texts while the model runs on this one), sort
by length, run batches under a token budget, refuse NaN and Inf by name, keep what was computed, cut to
``truncate_dim``, normalise and quantise if asked, and hand the vectors back in the order of the texts. An empty text,
and one that has no tokens, gets a zero vector: whatever a model makes of nothing would be as near to any text as to its
own.

Which texts meet in a batch hangs on the distinct texts and the budget, and not on what the cache holds: a run that was
killed and started again runs the batches that are left as they would have been run.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from typing import Generic, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from embeval.core import quantization
from embeval.core.embeddings import Embeddings, TextCounts, Vectors, Work, refuse_nonfinite, unit, zero_rows
from embeval.core.progress import Progress, Silent
from embeval.core.protocols import EncoderInfo, TaskRef
from embeval.core.specs import ModelSpec, Role
from embeval.encoders import batching, prompts
from embeval.encoders.batching import Lengths, Rows
from embeval.encoders.cache import Shelf, TokenCounts
from embeval.encoders.shelves import ChangedModel, LazyBackend, Shelves, joined, selected
from embeval.errors import ModelError

NORM_TOLERANCE = 1e-3
"""How far from 1 a length may be and still count as normalised: wide enough for a float16 model."""
WINDOW = 2_048
"""Texts tokenised at once, while the model runs on those before."""
LONG_TEXT = 512
"""Tokens of the text by which a budget is measured, unless the model keeps fewer."""
KEY_BYTES = 16
"""Bytes of the digest of what a model sees of a text."""
KEEP_EVERY_S = 10.0
"""Seconds of work that a kill may cost: what was computed is put into the cache this often."""


class Prepared(Protocol):
    """Tokenised texts, ready to be run in any batches."""

    @property
    def lengths(self) -> Lengths:
        """int64 [n]: tokens per text, special tokens included."""

    @property
    def lost(self) -> Lengths | None:
        """int64 [n]: tokens cut off each text; None where the backend can't tell."""

    @property
    def unknown(self) -> Lengths | None:
        """int64 [n]: kept tokens per text that stand for what the tokenizer doesn't know; None if it can't tell."""

    def key(self, row: int) -> bytes:
        """What the model sees of a text. Texts with equal keys are run once and share a vector."""


P = TypeVar("P", bound=Prepared)


class Backend(Protocol[P]):
    """What differs from library to library."""

    @property
    def info(self) -> EncoderInfo:
        """What the model is; ``batch_tokens`` is the budget to start with."""

    default_prompt_name: str | None

    def prepare(self, texts: Sequence[str], *, prompt: str, role: Role) -> P:
        """The texts, tokenised with ``prompt`` before each. Called from one thread at a time, not always the same."""

    def forward(self, prepared: P, rows: Rows) -> npt.NDArray[np.float32]:
        """float32 [len(rows), d]: pooled vectors of those texts, in that order, padded together.

        Raises ``MemoryError`` where they don't fit; fewer are then tried.
        """


class BatchedEncoder(Generic[P]):
    """An ``Encoder`` made of a backend, with a cache or without."""

    def __init__(
        self, spec: ModelSpec, backend: Backend[P], *, shelves: Shelves | None = None, budget: int | None = None
    ) -> None:
        self.spec = spec
        self.backend = backend
        self._shelves = shelves
        self._planned = budget or backend.info.batch_tokens
        self._budget = self._planned
        self._digest = spec.digest

    def with_cache(self, shelves: Shelves) -> BatchedEncoder[P]:
        """The same encoder, which keeps what it computes and finds it again."""
        return BatchedEncoder(self.spec, self.backend, shelves=shelves, budget=self._planned)

    def with_measured_budget(self, of_words: Callable[[str], str] = str) -> BatchedEncoder[P]:
        """The same encoder with the budget that was found fastest for long texts; takes some seconds.

        ``of_words`` makes of many words what the backend takes for a text.
        """
        length = min(self.info.max_seq_length or LONG_TEXT, LONG_TEXT)
        text = of_words("measure " * length)

        def speed(budget: int) -> float:
            rows = np.arange(max(1, budget // length), dtype=np.intp)
            tokens = self.backend.prepare([text] * len(rows), prompt="", role=Role.DOCUMENT)
            seconds = []
            for _ in range(3):  # the first sets kernels up
                began = time.perf_counter()
                self.backend.forward(tokens, rows)
                seconds.append(time.perf_counter() - began)
            return float(tokens.lengths.sum()) / min(seconds[1:])

        budget = batching.grown(speed)
        return BatchedEncoder(self.spec, self.backend, shelves=self._shelves, budget=budget)

    @property
    def info(self) -> EncoderInfo:
        """Dimensions, limits and hardware."""
        info = self.backend.info
        remarks = info.remarks
        if self._shelves is not None and self._shelves.trouble is not None:
            remarks = (*remarks, f"Vectors were not cached: {self._shelves.trouble}")
        return replace(info, batch_tokens=self._budget, remarks=remarks)

    @property
    def late_load_s(self) -> float:
        """Seconds that loading the model took where that happened within ``encode``, because a text was missing."""
        return self.backend.load_s if isinstance(self.backend, LazyBackend) else 0.0

    @property
    def default_prompt_name(self) -> str | None:
        """The prompt that the model declares for texts that are neither query nor document."""
        return self.backend.default_prompt_name

    def prompt(self, role: Role, task: TaskRef | None = None) -> str:
        """The text that is put before each input of that role."""
        return prompts.resolve(
            role,
            task,
            own=self.spec.prompts,
            declared=self.backend.info.prompts,
            default_name=self.backend.default_prompt_name,
            prompting=self.spec.prompting,
        ).text

    def encode(
        self,
        texts: Sequence[str],
        *,
        role: Role,
        task: TaskRef | None = None,
        ids: Sequence[str] = (),
        progress: Progress | None = None,
    ) -> Embeddings:
        """Embeddings in the order of the texts."""
        if isinstance(texts, str):  # a sequence of letters, which nobody means
            raise TypeError("texts must be a sequence of str, not one str")
        texts = list(texts)  # before anything walks through it: an iterator can be walked through once
        for text in texts:
            if not isinstance(text, str):
                raise TypeError(f"texts must be a sequence of str, and one is {text!r}")
        watch = progress or Silent()
        full = np.flatnonzero([bool(text.strip()) for text in texts])
        distinct, place = batching.unique([texts[row] for row in full.tolist()])
        watch.advance(len(texts) - len(distinct))
        try:
            table = self._run(distinct, role, self.prompt(role, task), watch)
        except ChangedModel:  # now loaded, and what is known of it is true
            self._planned = self._budget = self.backend.info.batch_tokens
            table = self._run(distinct, role, self.prompt(role, task), watch)
        if not np.isfinite(table.vectors).all():
            names = [ids[row] if len(ids) else repr(texts[row][:40]) for row in full.tolist()]
            by = f"Model {self.spec.label!r} ({self.spec.dtype} on {self.info.device})"
            refuse_nonfinite(table.vectors[place], names, by=by)
        finished = finish(self.spec, table.vectors, role)
        vectors = np.zeros((len(texts), finished.shape[1]), dtype=np.float32)
        vectors[full] = finished[place]
        zero = zero_rows(vectors)
        return Embeddings(
            vectors=vectors,
            role=role,
            normalized=bool(np.all(zero | _is_unit(vectors))),
            spec_digest=self._digest,
            counts=_count(len(texts), place, table, zero),
            truncated=_truncated(full, place, table),
            work=table.work,
        )

    def _run(self, distinct: Sequence[str], role: Role, prompt: str, watch: Progress) -> _Table:
        """The vectors of distinct texts as the model gives them, from the cache or made now."""
        shelf = self._shelf(role, prompt)
        table = _Table(len(distinct))
        if shelf is not None:
            table.take(shelf, distinct)
        n_known = int(table.known.sum())
        order = np.argsort(np.array([-len(text) for text in distinct], dtype=np.int64), kind="stable")
        windows = [order[start : start + WINDOW] for start in range(0, len(order), WINDOW)]
        missing = [window[~table.known[window]] for window in windows]

        def prepared(rows: Rows) -> P:
            return self.backend.prepare([distinct[row] for row in rows.tolist()], prompt=prompt, role=role)

        with (
            ThreadPoolExecutor(max_workers=1, thread_name_prefix="tokenize") as worker,
            _keeping(shelf, self.spec) as keep,
        ):
            ahead = _ahead(worker, prepared, [rows for rows in missing if len(rows)])
            for window, rows in zip(windows, missing, strict=True):
                if len(rows):
                    tokens = next(ahead)
                    table.note(rows, tokens)
                    watch.advance(n_known)  # not before: if the model turns out to be another one, all begins again
                    n_known = 0
                leads = table.lead(window)
                if len(rows):
                    self._run_window(leads, rows, tokens, table, keep, distinct, watch)
        watch.advance(n_known)
        if table.empty_shape:
            table.shape(self.info.dim)
        table.agree()
        return table

    def _shelf(self, role: Role, prompt: str) -> Shelf | None:
        """Under the planned budget, also once memory has run out: else nothing would be found again."""
        if self._shelves is None:
            return None
        info = replace(self.backend.info, batch_tokens=self._planned)
        return self._shelves.shelf(self.spec, info, role, prompt)

    def _run_window(
        self,
        leads: Rows,
        missing: Rows,
        tokens: P,
        table: _Table,
        keep: _Keeper,
        distinct: Sequence[str],
        watch: Progress,
    ) -> None:
        at = {row: local for local, row in enumerate(missing.tolist())}
        run: set[int] = set()
        for batch in batching.plan(table.lengths[leads], self.info.batch_tokens):
            rows = np.array([row for row in leads[batch].tolist() if not table.has_vector(row)], dtype=np.intp)
            if not len(rows):
                continue
            vectors = self._forward(tokens, np.array([at[row] for row in rows.tolist()], dtype=np.intp))
            if not table.empty_shape and vectors.shape[1] != table.vectors.shape[1]:
                raise _other_length(self.spec)
            table.put(rows, vectors)
            table.work += Work(n_texts=len(rows), n_tokens=int(table.lengths[rows].sum()))
            run.update(rows.tolist())
            watch.advance(len(rows))
            keep.add([distinct[row] for row in rows.tolist()], vectors, table.counts(rows))
        others = np.array([row for row in missing.tolist() if row not in run], dtype=np.intp)
        table.copy(others)
        watch.advance(len(others))
        if len(others) and not table.empty_shape:  # without one vector, their length is not known
            keep.add([distinct[row] for row in others.tolist()], table.vectors[others], table.counts(others))

    def _forward(self, tokens: P, rows: Rows) -> Vectors:
        """The vectors of a batch; where it doesn't fit, of its halves, and no batch is planned that large again."""
        try:
            return self.backend.forward(tokens, rows)
        except MemoryError:
            if len(rows) == 1:
                raise
        half = len(rows) * int(tokens.lengths[rows].max()) // 2
        self._budget = max(1, min(self._budget, half))
        middle = len(rows) // 2
        return np.concatenate([self._forward(tokens, rows[:middle]), self._forward(tokens, rows[middle:])])


def _ahead(worker: Executor, work: Callable[[Rows], P], parts: Sequence[Rows]) -> Iterator[P]:
    """What ``work`` gives for each part; the next one is worked on while the caller has this one."""
    following = worker.submit(work, parts[0]) if parts else None
    for number in range(len(parts)):
        assert following is not None
        done = following.result()
        following = worker.submit(work, parts[number + 1]) if number + 1 < len(parts) else None
        yield done


class _Table:
    """What is known of distinct texts: vector, tokens, and whether that came from the cache."""

    def __init__(self, n: int) -> None:
        self.vectors: Vectors = np.zeros((n, 0), dtype=np.float32)
        self.known = np.zeros(n, dtype=np.bool_)
        self.lengths: Lengths = np.zeros(n, dtype=np.int64)
        self.lost: Lengths | None = np.zeros(n, dtype=np.int64)
        self.unknown: Lengths | None = np.zeros(n, dtype=np.int64)
        self.keys = np.zeros((n, KEY_BYTES), dtype=np.uint8)
        self.work = Work()
        self._first: dict[bytes, int] = {}
        self._source: dict[bytes, int] = {}

    @property
    def empty_shape(self) -> bool:
        return bool(self.vectors.shape[1] == 0)

    def shape(self, dim: int) -> None:
        self.vectors = np.zeros((len(self.known), dim), dtype=np.float32)

    def take(self, shelf: Shelf, texts: Sequence[str]) -> None:
        """What a shelf holds of the texts."""
        found = shelf.get(texts)
        if not len(found.rows):
            return
        self._count(found.rows, found.counts)
        self.put(found.rows, found.vectors)
        self.known[found.rows] = True

    def note(self, rows: Rows, tokens: Prepared) -> None:
        """What the tokenizer says of texts that are to be run."""
        digests = b"".join(hashlib.blake2b(tokens.key(row), digest_size=KEY_BYTES).digest() for row in range(len(rows)))
        keys = np.frombuffer(digests, dtype=np.uint8).reshape(len(rows), KEY_BYTES)
        self._count(rows, TokenCounts(lengths=tokens.lengths, lost=tokens.lost, unknown=tokens.unknown, keys=keys))

    def put(self, rows: Rows | npt.NDArray[np.int64], vectors: Vectors) -> None:
        if self.empty_shape:
            self.shape(vectors.shape[1])
        self.vectors[rows] = vectors
        for row in rows.tolist():
            self._source.setdefault(self.keys[row].tobytes(), row)

    def lead(self, window: Rows) -> Rows:
        """Those rows of the next window that the model has to see: of texts that look alike to it, the first."""
        first = [self._first.setdefault(self.keys[row].tobytes(), row) == row for row in window.tolist()]
        return window[np.array(first, dtype=np.bool_) & (self.lengths[window] > 0)]

    def has_vector(self, row: int) -> bool:
        """Whether this text, or one that looks like it, was run or found."""
        return self.keys[row].tobytes() in self._source

    def copy(self, rows: Rows) -> None:
        """Gives texts the vector of one that looks like them; those without a token keep zeros."""
        for row in rows.tolist():
            if self.lengths[row] > 0:
                self.vectors[row] = self.vectors[self._source[self.keys[row].tobytes()]]

    def agree(self) -> None:
        """Gives texts that look alike one vector to the bit, so that they tie.

        Without this, those that were put into the cache by different calls could differ by the noise of their batches.
        """
        groups = self.keys.view(f"V{KEY_BYTES}").ravel()
        _, first, group = np.unique(groups, return_index=True, return_inverse=True)
        if len(first) < len(groups):
            self.vectors = self.vectors[first[group]]

    def counts(self, rows: Rows) -> TokenCounts:
        return TokenCounts(
            lengths=self.lengths[rows],
            lost=None if self.lost is None else self.lost[rows],
            unknown=None if self.unknown is None else self.unknown[rows],
            keys=self.keys[rows],
        )

    def _count(self, rows: Rows | npt.NDArray[np.int64], counts: TokenCounts) -> None:
        self.lengths[rows] = counts.lengths
        self.keys[rows] = counts.keys
        self.lost = _written(self.lost, rows, counts.lost)
        self.unknown = _written(self.unknown, rows, counts.unknown)


def _written(into: Lengths | None, rows: Rows | npt.NDArray[np.int64], values: Lengths | None) -> Lengths | None:
    """The counts with some more of them; None once a part is not known."""
    if into is None or values is None:
        return None
    into[rows] = values
    return into


class _Keeper:
    """Puts what was computed onto a shelf, a few seconds' work at a time."""

    def __init__(self, shelf: Shelf | None, spec: ModelSpec) -> None:
        self._shelf, self._spec = shelf, spec
        self._texts: list[str] = []
        self._vectors: list[Vectors] = []
        self._counts: list[TokenCounts] = []
        self._since = time.monotonic()

    def add(self, texts: Sequence[str], vectors: Vectors, counts: TokenCounts) -> None:
        if self._shelf is None:
            return
        finite = np.flatnonzero(np.isfinite(vectors).all(axis=1))
        if len(finite) < len(vectors):  # what is no vector is not kept
            texts = [texts[row] for row in finite.tolist()]
            vectors, counts = vectors[finite], selected(counts, finite)
        self._texts += texts
        self._vectors.append(vectors)
        self._counts.append(counts)
        if time.monotonic() - self._since > KEEP_EVERY_S or len(self._texts) >= WINDOW:
            self.flush()

    def flush(self) -> None:
        if self._shelf is not None and self._texts:
            try:
                self._shelf.put(self._texts, np.concatenate(self._vectors), joined(self._counts))
            except ValueError as error:
                raise _other_length(self._spec) from error
        self._texts, self._vectors, self._counts = [], [], []
        self._since = time.monotonic()


@contextmanager
def _keeping(shelf: Shelf | None, spec: ModelSpec) -> Iterator[_Keeper]:
    keeper = _Keeper(shelf, spec)
    try:
        yield keeper
    finally:
        keeper.flush()  # also after Ctrl-C and errors: what was computed is right


def _other_length(spec: ModelSpec) -> ModelError:
    """Only a model whose revision nobody can verify comes to this: behind a name there is another one now."""
    return ModelError(
        f"Model {spec.label!r} gives vectors of another length than before: it is not the model that it was.\n"
        "Leave out what was kept of it with --no-cache, or remove it with 'embeval cache prune'."
    )


def finish(spec: ModelSpec, vectors: Vectors, role: Role) -> Vectors:
    """A model's vectors float32 [n, d] as its spec wants them: cut, normalised, quantised."""
    dim = spec.truncate_dim
    scale = spec.normalize is True
    if dim is not None and dim < vectors.shape[1]:
        scale = scale or bool(np.all(zero_rows(vectors) | _is_unit(vectors)))
        vectors = np.ascontiguousarray(vectors[:, :dim])
    vectors = unit(vectors) if scale else vectors
    if spec.quantize is None or (spec.rescore is not None and role == Role.QUERY):
        return vectors
    return quantization.coded(vectors, spec.quantize)


def _is_unit(vectors: Vectors) -> npt.NDArray[np.bool_]:
    lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64))
    return np.asarray(np.abs(lengths - 1.0) < NORM_TOLERANCE)


def _count(n_texts: int, place: Rows, table: _Table, zero: npt.NDArray[np.bool_]) -> TextCounts:
    lost, unknown = table.lost, table.unknown
    return TextCounts(
        n_texts=n_texts,
        n_empty=n_texts - len(place),
        n_zero=int(zero.sum()),
        n_truncated=None if lost is None else int((lost > 0)[place].sum()),
        tokens_kept=None if lost is None else int(table.lengths[place].sum()),
        tokens_lost=None if lost is None else int(lost[place].sum()),
        tokens_unknown=None if unknown is None else int(unknown[place].sum()),
    )


def _truncated(full: Rows, place: Rows, table: _Table) -> dict[int, bytes] | None:
    if table.lost is None:
        return None
    rows = np.flatnonzero((table.lost > 0)[place])
    return {int(full[row]): table.keys[place[row]].tobytes() for row in rows}


def check_dim(spec: ModelSpec, full: int) -> int:
    """The length of the vectors after ``truncate_dim``. Raises ``ModelError`` where the model has fewer."""
    if spec.truncate_dim is None:
        return full
    if not 1 <= spec.truncate_dim <= full:
        raise ModelError(
            f"Model {spec.name!r} has {full} dimensions, so truncate_dim can't be {spec.truncate_dim}. Use 1 to {full}."
        )
    return spec.truncate_dim


def declared_prompts(prompts_: Mapping[str, str]) -> dict[str, str]:
    """Prompts without the empty ones that libraries put in as placeholders."""
    return {name: text for name, text in prompts_.items() if text}
