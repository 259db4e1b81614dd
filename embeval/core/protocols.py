"""What the parts expect of each other. Siblings that must not import one another meet here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol, TypeVar, get_args, runtime_checkable

import numpy as np
import numpy.typing as npt

from embeval.core import strict_json
from embeval.core.embeddings import Embeddings, Vectors, Work
from embeval.core.ir import FloatRows, Run, TieRule
from embeval.core.progress import Progress
from embeval.core.records import Column, ItemRecords, TokenRecords
from embeval.core.specs import ModelSpec, RerankerSpec, Role, RuntimeOptions, SimilarityName, TaskSpec
from embeval.errors import EvaluationError


@dataclass(frozen=True, kw_only=True)
class TaskRef:
    """What an encoder may know of the task it works for: prompts can hang on it."""

    name: str
    """Name of the task."""
    type: str
    """Type of the task."""


@dataclass(frozen=True, kw_only=True)
class EncoderInfo:
    """What a loaded model is."""

    dim: int
    """Length of its vectors, after truncation to ``truncate_dim``."""
    max_seq_length: int | None
    """Tokens it keeps of a text; None: no limit, or not known."""
    similarity: SimilarityName
    """How its vectors are meant to be compared."""
    prompts: Mapping[str, str]
    """Prompts that the model itself declares, empty ones left out."""
    pooling: str | None
    """How token vectors become one vector; None where the notion doesn't apply."""
    n_parameters: int | None
    """Parameters; None where not known."""
    device: str
    """Where it runs."""
    num_threads: int | None
    """CPU threads it uses; None where not known."""
    batch_tokens: int
    """Padded tokens per batch."""
    extra: Mapping[str, str] = field(default_factory=dict)
    """What else belongs into the provenance."""
    remarks: tuple[str, ...] = ()
    """What a reader of its scores should know of how it was loaded, as sentences."""


@runtime_checkable
class Encoder(Protocol):
    """A model that turns texts into pooled embeddings."""

    @property
    def spec(self) -> ModelSpec:
        """The model with its revision resolved."""

    @property
    def info(self) -> EncoderInfo:
        """Dimensions, limits and hardware."""

    def prompt(self, role: Role, task: TaskRef | None = None) -> str:
        """The text that is put before each input of that role."""

    def encode(
        self,
        texts: Sequence[str],
        *,
        role: Role,
        task: TaskRef | None = None,
        ids: Sequence[str] = (),
        progress: Progress | None = None,
    ) -> Embeddings:
        """Embeddings in the order of the texts.

        Raises ``InvalidEmbeddingsError``, which names the texts by ``ids``, where the model gives NaN or Inf.
        """


@runtime_checkable
class Ranker(Protocol):
    """A system that ranks documents itself and gives no vectors: BM25, or rankings from a file."""

    @property
    def spec(self) -> ModelSpec:
        """The system with its revision resolved."""

    @property
    def info(self) -> EncoderInfo:
        """Where it runs; 0 dimensions."""

    def rank(
        self,
        doc_ids: Sequence[str],
        doc_texts: Sequence[str],
        query_ids: Sequence[str],
        query_texts: Sequence[str],
        *,
        depth: int,
        ties: TieRule,
        progress: Progress | None = None,
    ) -> Run:
        """The ``depth`` best documents per query, in the order of ``query_ids``."""


Fusion = Literal["rrf", "weighted"]


@dataclass(frozen=True, kw_only=True)
class Hybrid:
    """Several systems whose rankings become one; ``retrieval.fusion`` does it."""

    spec: ModelSpec
    """The system as a whole; its revision follows from those of the parts."""
    info: EncoderInfo
    """Of the first encoder among the parts, else of the first part."""
    parts: tuple[Encoder | Ranker, ...]
    """At least two."""
    method: Fusion = "rrf"
    """``rrf``: reciprocal ranks; ``weighted``: scores scaled to [0, 1] per query."""
    rrf_k: int = 60
    """Added to each rank. Source: Cormack, Clarke & Büttcher, SIGIR 2009."""
    weights: tuple[float, ...] = ()
    """One per part; empty: all the same."""


System = Encoder | Ranker | Hybrid
"""Whatever can be evaluated on retrieval. Other tasks need vectors."""


def require_encoder(system: System, task: TaskSpec) -> Encoder:
    """The system, if it gives vectors. Raises ``EvaluationError`` for one that only ranks documents."""
    if not isinstance(system, Encoder):
        raise EvaluationError(
            f"{system.spec.label} ranks documents and gives no vectors, so it can't be evaluated on the task "
            f"{task.name!r} of type {task.type}. It fits tasks of type retrieval."
        )
    return system


@dataclass(frozen=True, kw_only=True)
class PairScores:
    """What a cross-encoder says of pairs of query and document."""

    scores: FloatRows
    """float32 [n]: higher is more relevant; as the model gives them, without a sigmoid that could make ties."""
    n_truncated: int = 0
    """Pairs of which something was cut."""
    n_document_lost: int = 0
    """Of these, pairs with nothing left of a document that is not empty; such a score says nothing."""
    tokens_kept: int = 0
    """Tokens that the model saw, special ones included."""
    tokens_lost: int = 0
    """Tokens cut off."""
    work: Work = field(default_factory=Work)
    """What went through the model; what came from the cache did not."""
    origins: Mapping[str, str] = field(default_factory=dict)
    """Where things came from, as far as no number hangs on it; for the provenance."""


@runtime_checkable
class Reranker(Protocol):
    """A model that scores a query and a document together."""

    @property
    def spec(self) -> RerankerSpec:
        """The model with its revision resolved."""

    @property
    def info(self) -> EncoderInfo:
        """Limits and hardware; 1 dimension."""

    def score(self, pairs: Sequence[tuple[str, str]], *, progress: Progress | None = None) -> PairScores:
        """Scores of (query, document) pairs, in their order.

        Raises ``ModelError`` where the model gives NaN or Inf.
        """


class Hits(Protocol):
    """Best candidates per query."""

    @property
    def scores(self) -> FloatRows:
        """float32 [Q, k], higher is better; -inf where there are fewer than k."""

    @property
    def positions(self) -> npt.NDArray[np.int64]:
        """int64 [Q, k]: place of the vector in the order of ``add``; -1 where there are fewer than k."""


class Index(Protocol):
    """A searchable set of vectors."""

    def __len__(self) -> int:
        """How many vectors it holds."""

    def add(self, vectors: Vectors) -> None:
        """Appends float32 [n, d]; their positions follow the ones before. NaN and Inf are refused."""

    def search(self, queries: Vectors, k: int) -> Hits:
        """The k best per query of float32 [Q, d], best first."""


class Metric(Protocol):
    """One number from columns of item records.

    A metric whose values are per token of a model's own tokenizer says ``per_token = True`` besides: such values are
    compared and ranked only where all results name one tokenizer in their signature (``signature.other_tokens``).
    """

    @property
    def name(self) -> str:
        """Such as ``cosine_spearman`` or ``ndcg_at_10``."""

    @property
    def version(self) -> int:
        """Raised when the same columns give another number."""

    @property
    def higher_is_better(self) -> bool:
        """Direction of improvement."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns it reads. One that reads the column of its own name, and no other, is the mean of it."""

    def aggregate(self, columns: Mapping[str, Column]) -> float | Undefined:
        """The metric over all items, or why there is none. Columns are finite float64 [n]."""


Resampler = Callable[[npt.NDArray[np.int64]], npt.NDArray[np.float64]]
"""Counts int [n, R], how often each item was drawn, to metrics float64 [M, R]; NaN where undefined."""


class ResampledMetric(Metric, Protocol):
    """A metric that can be computed on many resamples at once. Others are computed one resample at a time."""

    @staticmethod
    def resampler(metrics: Sequence[Any], columns: Mapping[str, Column]) -> Resampler:
        """A function from counts to the values of M metrics of this class, which come together to share work."""


Swapper = Callable[[npt.NDArray[np.float64]], npt.NDArray[np.float64]]
"""Signs float64 [n, R], -1 where an item's two sides change places and 1 where they stay, to differences candidate -
baseline float64 [M, R]; NaN where undefined."""


class SwappedMetric(Metric, Protocol):
    """A metric for which it makes sense that an item's two sides change places, as they may if systems are alike."""

    @staticmethod
    def swapper(metrics: Sequence[Any], baseline: Mapping[str, Column], candidate: Mapping[str, Column]) -> Swapper:
        """A function from signs to the differences of M metrics of this class.

        What it swaps must be on one scale for both sides: values of a metric, but no scores of models, whose ranges
        differ.
        """


@dataclass(frozen=True)
class Undefined:
    """A metric that has no value, and why."""

    reason: str
    """``constant_input``, ``too_few_items``, …"""


P = TypeVar("P")


@dataclass(frozen=True, kw_only=True)
class Collected:
    """What a task learned from a model."""

    records: ItemRecords
    """One row per item."""
    run: Run | None = None
    """The ranking, for retrieval."""
    tokens: TokenRecords | None = None
    """The tokens of the items, one by one, where the task keeps them."""
    counts: Mapping[str, int | None] = field(default_factory=dict)
    """Texts, tokens and items by name."""
    warnings: tuple[str, ...] = ()
    """What a reader of the numbers should know."""
    prompts: Mapping[str, str] = field(default_factory=dict)
    """The prompt used for each role."""
    phases: Mapping[str, float] = field(default_factory=dict)
    """Wall seconds of each phase."""
    work: Work = field(default_factory=Work)
    """What went through the model; what came from the cache did not."""
    also: tuple[str, ...] = ()
    """Names of metrics that these records hold besides those that the task names: see ``PARITY_PREFIX``."""
    origins: Mapping[str, str] = field(default_factory=dict)
    """Where things came from, as far as no number hangs on it; for the provenance."""
    tokenizer: str | None = None
    """Digest of the model's tokenizer, where metrics per token hang on it: see ``Signature.tokenizer``."""


PARITY_PREFIX = "mteb_"
"""Begins the name of a metric that is computed as mteb computes it where we think that it is wrong. A result has it
where it is asked for, and besides the others where it differs from ours, which only the model can tell."""


@runtime_checkable
class Task(Protocol[P]):
    """A way to put a model to the test. One file of ``embeval/tasks`` each."""

    @property
    def spec(self) -> TaskSpec:
        """The task with its data and options."""

    def load(self) -> P:
        """The data, checked. Raises ``DataError`` with file and line."""

    def protocol(self, payload: P) -> dict[str, strict_json.Json]:
        """Everything besides the model that can change a number."""

    def metrics(self, payload: P) -> tuple[Metric, ...]:
        """The metrics to compute, the main one first."""

    def collect(self, payload: P, system: Any, progress: Progress) -> Collected:
        """Item records of the system on the data: a ``System``, or a language model for a task ``OfTokens``."""


@runtime_checkable
class Remeasurable(Protocol):
    """A task that can compute other metrics, and take up other labels, from what it stored, without the model."""

    def labels(self, payload: Any) -> str:
        """Hash of the labels by which items can be grouped. They change no number, but what can be asked of one."""

    def remeasure(
        self, payload: Any, run: Run, counts: Mapping[str, int | None], warnings: Sequence[str]
    ) -> Collected | None:
        """Item records of a stored ranking; ``counts`` and ``warnings`` are those it was stored with.

        None where the ranking alone doesn't tell all that is wanted now.
        """


QUERIES_TIMED = "queries_timed"
"""The count of items that were timed one by one."""


@runtime_checkable
class Timing(Protocol):
    """A task that times some of its items, where that is asked for. What was timed once is kept."""

    def n_timed(self, payload: Any) -> int:
        """Items to be timed; 0: none."""


@runtime_checkable
class InTurns(Protocol):
    """A task that can time several systems in turns, so that a slow moment of the machine meets all of them."""

    @property
    def times(self) -> bool:
        """Whether it times anything."""

    def n_timed(self, payload: Any) -> int:
        """Items to be timed."""

    def ready(self, payload: Any, system: System, folder: Path, progress: Progress) -> Any | None:
        """What this task times: its system loaded anew. ``system`` may have a cache, and does what is not timed.

        ``folder`` holds what the answers need and has to stay. None for a system that takes no time.
        """

    def in_turns(self, payload: Any, systems: Sequence[Any]) -> Sequence[Mapping[str, Mapping[str, float]]]:
        """Column -> item id -> value, of each of several things that ``ready`` gave."""


@runtime_checkable
class Checkable(Protocol):
    """A task whose data is too large to be loaded just to see whether it can be."""

    def check(self) -> None:
        """Raises an error of embeval where the task is bound to fail, as far as can be told in a moment."""


@runtime_checkable
class Selective(Protocol):
    """A task whose type takes what ranks documents, though not each task of that type does."""

    def ranks(self) -> bool:
        """Whether systems rank documents in this one, so that those without vectors fit."""


@runtime_checkable
class Equippable(Protocol):
    """A task that runs models of its own, such as a reranker."""

    def equipped(self, runtime: RuntimeOptions, cache: Any, fresh: Callable[[], System]) -> Task[Any]:
        """The task with how models are run, the cache, and what loads the system anew, without a cache."""


LanguageModelKind = Literal["masked", "causal", "replaced"]
"""What a language model gives: p(token | all others), p(token | those before), or whether a token was replaced."""


PllMode = Literal["within_word_l2r", "original"]
"""What is masked with the token that is scored by its pseudo-log-likelihood: what follows in its word, or nothing."""
PLL_MODES: tuple[PllMode, ...] = get_args(PllMode)


@runtime_checkable
class OfTokens(Protocol):
    """A task that scores a model's tokens with its language-model head, rather than its vectors.

    It is bound to a model before anything else: which kind of language model that is says what is measured.
    """

    @property
    def kind(self) -> LanguageModelKind:
        """The kind of the model that it is bound to."""

    def fitted(self, kind: str, tokenizer: str | None, model: ModelSpec) -> Task[Any]:
        """The task for a model of that kind with that tokenizer, given by its digest.

        Raises ``EvaluationError`` for a model whose kind it can't evaluate, and says why.
        """


@runtime_checkable
class NamesMetrics(Protocol):
    """A task whose metrics hang on its options and on nothing in its data."""

    @property
    def metric_names(self) -> tuple[str, ...]:
        """All of them, first the one that stands for the task unless its spec names another."""


@runtime_checkable
class KeepsTokens(Protocol):
    """A task that can keep what was measured of each token beside the items."""

    @property
    def keeps_tokens(self) -> bool:
        """Whether it does: a result without them is then not finished."""


class TaskType(Protocol):
    """What a module of ``embeval/tasks`` holds under the name ``TASK``.

    Where one file serves tasks of several types, a type may have ``ruler(options)`` besides: what is put behind the
    file's name, such as ``mlm`` in ``held-out-mlm``, so that their results don't share a name.
    """

    options: type[Any]
    """Border dataclass of the options that a task of this type takes."""
    summary: str
    """One line for ``embeval tasks list``."""
    main_score: str
    """The metric that stands for a task of this type unless its spec names another."""
    needs_vectors: bool
    """Whether only encoders can be evaluated on it, and not what ranks documents without vectors."""

    def bind(self, spec: TaskSpec, *, root: Path) -> Task[Any]:
        """The task; a relative data path is looked up under ``root``. Raises ``ConfigError`` for wrong options."""
