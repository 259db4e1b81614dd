"""``bm25``: ranking by the words that query and document share. No weights; bm25s 0.3 computes the scores.

``-m bm25`` is the first stage that a neural model has to beat. ``args``: ``k1`` (default 1.2) and ``b`` (default
0.75), the defaults of Lucene; ``method``, one of bm25s' (default ``lucene``); ``delta``, for ``bm25l`` (default 0.5)
and ``bm25+`` (default 1) as their authors advise; ``language`` of stemmer and stop words (default ``english``, ``none``
for neither); ``stopwords``, where the list of another language, or ``none``, is wanted. How texts become terms is told
in ``encoders.lexicon``.

A hit is a document that shares a term with the query and scores above 0, which with ``robertson`` and ``atire`` a term
of most or all documents doesn't reach. A word that comes twice in a query counts twice. Scores are computed in float64
and kept in float32.

Sources: Robertson & Zaragoza, The Probabilistic Relevance Framework: BM25 and Beyond, 2009; Kamphuis et al., Which BM25
Do You Mean?, ECIR 2020; Lù, BM25S, arXiv 2407.03618.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import Any

import numpy as np

from embeval.core import ir
from embeval.core.ir import Run, TieRule
from embeval.core.progress import Progress, Silent
from embeval.core.protocols import EncoderInfo, Ranker
from embeval.core.specs import ModelSpec, RuntimeOptions, Scalar
from embeval.encoders import lexicon, rankers
from embeval.encoders.locate import Located
from embeval.errors import ConfigError, ModelError

NAME = "bm25"
REVISION = "builtin:1"
"""Raised when the same texts get other scores, through this module or through another version of its libraries."""
METHODS = ("lucene", "robertson", "atire", "bm25l", "bm25+")
DEFAULT_DELTAS = {"bm25l": 0.5, "bm25+": 1.0}
"""What a term is worth beyond what a long document would leave of it; other methods have none.
Sources: Lv & Zhai, SIGIR 2011 and CIKM 2011."""
LIMITS = {"k1": 100.0, "b": 1.0, "delta": 100.0}
"""Largest values; the smallest is 0."""
STEP = 1024
"""Texts between two looks at the progress."""


@dataclass(frozen=True, kw_only=True)
class _Settings:
    """What ``args`` say, checked."""

    k1: float
    b: float
    delta: float
    method: str
    language: str
    stopwords: str


class _Bm25:
    """A ``Ranker`` that keeps the index of the corpus that it was asked about last."""

    def __init__(self, spec: ModelSpec) -> None:
        self.spec = spec
        self._settings = _settings(spec.args)
        self._last: tuple[Sequence[str], lexicon.Terms, _Index] | None = None

    @property
    def info(self) -> EncoderInfo:
        """No dimensions; the versions of the libraries on which terms and scores hang."""
        return rankers.info({"bm25s": version("bm25s"), "PyStemmer": version("PyStemmer")})

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
        """The ``depth`` best documents per query that share a term with it; none for a query without words."""
        progress = progress or Silent()
        terms, index = self._indexed(doc_texts, progress)
        keys = ir.tie_keys(doc_ids, ties)
        hits = []
        progress.start("queries", len(query_texts), "texts")
        for text in query_texts:
            hits.append(rankers.best(index.hits(terms.find(text)), keys, depth))
            progress.advance(1)
        progress.finish()
        return rankers.assembled(query_ids, doc_ids, hits, ties)

    def _indexed(self, doc_texts: Sequence[str], progress: Progress) -> tuple[lexicon.Terms, _Index]:
        if self._last is not None and self._last[0] is doc_texts:
            return self._last[1:]
        terms = lexicon.Terms(language=self._settings.language, stopwords=self._settings.stopwords)
        documents = []
        progress.start("documents", len(doc_texts), "texts")
        for row, text in enumerate(doc_texts, start=1):
            documents.append(array("i", terms.add(text)))
            if row % STEP == 0:
                progress.advance(STEP)
        index = _Index(documents, terms.numbers, self._settings)
        progress.advance(len(doc_texts) % STEP)
        progress.finish()
        # By identity, which says enough only of what can't change.
        self._last = (doc_texts, terms, index) if isinstance(doc_texts, tuple) else None
        return terms, index


class _Index:
    """Scores of documents of term numbers, by bm25s; its own selection of the best breaks ties by chance."""

    def __init__(self, documents: list[array[int]], numbers: dict[str, int], settings: _Settings) -> None:
        self._index: Any = None
        if not numbers:
            return
        self._index = lexicon.bm25s().BM25(
            k1=settings.k1,
            b=settings.b,
            delta=settings.delta,
            method=settings.method,
            dtype="float64",
            backend="numpy",
            csc_backend="numpy",
        )
        self._index.index((documents, numbers), create_empty_token=False, show_progress=False)

    def hits(self, terms: list[int]) -> rankers.Hits:
        """The documents that have one of the terms and score above 0."""
        if not terms:
            return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.float32)
        postings, starts = self._index.scores["indices"], self._index.scores["indptr"]
        docs = np.unique(np.concatenate([postings[starts[term] : starts[term + 1]] for term in set(terms)]))
        scores = self._index.get_scores_from_ids(terms)[docs].astype(np.float32)
        return docs[scores > 0].astype(np.int64), scores[scores > 0]


def _settings(args: dict[str, Scalar] | Any) -> _Settings:
    """The options of a spec. Raises ``ConfigError`` for one that is unknown or impossible."""
    if unknown := sorted(set(args) - set(_Backend.options)):
        raise ConfigError(f"Backend 'bm25' has no option {unknown[0]!r}. Options: {', '.join(_Backend.options)}.")
    method = _choice(args, "method", METHODS, "lucene")
    if "delta" in args and method not in DEFAULT_DELTAS:
        raise ConfigError(f"Backend 'bm25': delta is part of bm25l and bm25+, not of {method}. Leave it out.")
    language = _choice(args, "language", (lexicon.NONE, *lexicon.languages()), "english")
    return _Settings(
        k1=_number(args, "k1", 1.2),
        b=_number(args, "b", 0.75),
        delta=_number(args, "delta", DEFAULT_DELTAS.get(method, 0.0)),
        method=method,
        language=language,
        stopwords=_choice(args, "stopwords", (lexicon.NONE, *lexicon.STOP_LISTS), language),
    )


def _number(args: dict[str, Scalar], name: str, default: float) -> float:
    value = args.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= LIMITS[name]:
        raise ConfigError(f"Backend 'bm25': {name} must be a number from 0 to {LIMITS[name]:g}, not {value!r}.")
    return float(value)


def _choice(args: dict[str, Scalar], name: str, known: Sequence[str], default: str) -> str:
    value = args.get(name, default)
    if name not in args or value in known:
        return str(value)
    raise ConfigError(f"Backend 'bm25': {name} must be one of {', '.join(known)}, not {value!r}.")


class _Backend(rankers.RankingBackend):
    summary = "BM25: ranking by shared words, without a model"
    options = ("k1", "b", "method", "delta", "language", "stopwords")

    def resolve(self, spec: ModelSpec, *, verify: bool) -> Located:
        if spec.name != NAME:
            raise ConfigError(f"Backend 'bm25' has no models, so not {spec.name!r} either. Ask for bm25 alone.")
        rankers.refuse_settings(spec)
        _settings(spec.args)
        if spec.revision not in (None, REVISION):
            raise ModelError(f"Backend 'bm25' is revision {REVISION!r} here, not {spec.revision!r}.")
        return Located(replace(spec, revision=REVISION), None)

    def load(self, located: Located, runtime: RuntimeOptions) -> Ranker:
        return _Bm25(located.spec)


BACKEND = _Backend()
