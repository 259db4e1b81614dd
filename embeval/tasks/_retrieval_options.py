"""Options of a retrieval task."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from embeval.core.border import BORDER
from embeval.core.ir import MissingQueries, NoRelevant, SelfMatch, TieRule
from embeval.core.specs import Dtype, RerankerSpec, Scalar
from embeval.data.beir import Unreachable
from embeval.metrics import ranking
from embeval.metrics.ranking import Gains, MapDenominator

LARGEST_CONTEXT = 9_999_999
"""Passages or tokens in a prompt: the largest that a metric can be named by."""


@dataclass(frozen=True, kw_only=True)
class RerankOptions:
    """A second stage: a cross-encoder that orders the first candidates anew."""

    __pydantic_config__ = BORDER

    model: str
    """Hub name or folder of the cross-encoder."""
    backend: str = "sentence_transformers"
    """Which file of ``embeval/rerankers/backends`` runs it."""
    depth: int = 100
    """Candidates per query that it scores; what stands below keeps its place."""
    dtype: Dtype = "float32"
    """Number format inside the model."""
    max_seq_length: int | None = None
    """Tokens kept of a pair; null: as the model declares."""
    revision: str | None = None
    """Commit or ``sha256:…`` that the model must be."""
    args: Mapping[str, Scalar] = field(default_factory=dict)
    """Options of the backend."""

    def __post_init__(self) -> None:
        if self.depth < 1:
            raise ValueError(f"depth must be at least 1, not {self.depth}")

    @property
    def spec(self) -> RerankerSpec:
        """The cross-encoder."""
        return RerankerSpec(
            name=self.model,
            backend=self.backend,
            revision=self.revision,
            max_seq_length=self.max_seq_length,
            dtype=self.dtype,
            args=self.args,
        )


@dataclass(frozen=True, kw_only=True)
class RetrievalOptions:
    """Options of a retrieval task. Those that can change a number are part of the signature."""

    __pydantic_config__ = BORDER

    depth: int = 1000
    """Documents kept per query."""
    cutoffs: tuple[int, ...] = ranking.CUTOFFS
    """The k of the metrics ``…_at_k``; those beyond the depth are left out. Changes no number, only which there are."""
    index: str = "exact"
    """Kind of index that finds candidates. One that may miss some is measured against exact search."""
    index_options: Mapping[str, Scalar] = field(default_factory=dict)
    """Options of that kind of index."""
    context_passages: tuple[int, ...] = (5,)
    """Passages in a prompt, for `context_…_at_k`. Changes no number, only which there are."""
    context_tokens: tuple[int, ...] = (2000,)
    """Tokens in a prompt, for `context_…_at_N_tokens`, counted as words and punctuation marks."""
    rerank: RerankOptions | str | None = None
    """A cross-encoder that orders the first candidates anew: its name, or its settings."""
    latency: int = 0
    """Queries that are timed one by one, as in production; 0: none."""
    ties: TieRule = TieRule.DOC_ID_DESC
    """What decides between documents of equal score."""
    self_match: SelfMatch | None = None
    """``drop`` leaves out a hit whose doc id equals the query id, as in data sets whose queries are documents;
    null keeps them, and warns where ids overlap."""
    missing_queries: MissingQueries = MissingQueries.ZERO
    """What a judged query counts that has no ranking."""
    no_relevant: NoRelevant = NoRelevant.ZERO
    """What a query counts whose judgments are all 0."""
    gains: Gains = Gains.LINEAR
    """What a grade is worth in nDCG."""
    map_denominator: MapDenominator = MapDenominator.RELEVANT
    """What average precision at k is divided by."""
    unreachable: Unreachable = Unreachable.ERROR
    """What becomes of relevant documents that are not in the corpus."""

    def __post_init__(self) -> None:
        if self.latency < 0:
            raise ValueError(f"latency must be a number of queries from 0, not {self.latency}")
        for name, sizes in (("context_passages", self.context_passages), ("context_tokens", self.context_tokens)):
            if wrong := [size for size in sizes if not 1 <= size <= LARGEST_CONTEXT]:
                raise ValueError(f"{name} must be whole numbers from 1 to {LARGEST_CONTEXT}, not {wrong[0]}")
