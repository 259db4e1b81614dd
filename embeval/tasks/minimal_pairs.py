"""``minimal_pairs``: of two sentences, how often a language model finds the acceptable one likelier.

One item is a pair of an acceptable sentence and one that differs in a single point and is not. A masked model scores a
sentence by its pseudo-log-likelihood (PLL), which is the metric ``pll_accuracy``, a causal one by its log-likelihood,
``ll_accuracy``: two measures, which never share a column. An item is 1 where the acceptable sentence has the larger
score, 0.5 where both have the same, else 0. By chance it is 0.5 on average.

Source: Warstadt et al., BLiMP, TACL 2020; Salazar, Liang, Nguyen & Kirchhoff, ACL 2020 (PLL on BLiMP).
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Self

import numpy as np
import numpy.typing as npt

from embeval.core import strict_json
from embeval.core.border import BORDER
from embeval.core.embeddings import Work
from embeval.core.progress import Progress
from embeval.core.protocols import Collected, PllMode
from embeval.core.protocols import LanguageModelKind as Kind
from embeval.core.records import Column, ItemRecords
from embeval.core.specs import ModelSpec, TaskSpec
from embeval.core.words import have, plural
from embeval.data.minimal_pairs import MinimalPairColumns, MinimalPairs, load_minimal_pairs
from embeval.errors import EvaluationError
from embeval.language_models import causal, pseudo, windows
from embeval.language_models.model import LanguageModel
from embeval.language_models.tokenization import Text
from embeval.metrics.likelihood import CHANCE
from embeval.stats import intervals
from embeval.tasks import _language, _options
from embeval.tasks._language import LanguageTask

VERSION = 1
"""Raised when the same pairs and model give another number."""
METRICS: dict[Kind, str] = {"masked": "pll_accuracy", "causal": "ll_accuracy"}
"""Kind of model -> the one metric it has here."""
TIE = 1e-6
"""Two sums of logarithms that differ by no more than this share of themselves are equal: what is left is rounding."""
ALIKE = "words that it doesn't know are one and the same to the model"
"""What follows from unknown tokens where two sentences are compared."""
HALF = 0.5
"""What a pair counts whose sentences tie."""

Numbers = npt.NDArray[np.intp]


@dataclass(frozen=True, kw_only=True)
class MinimalPairsOptions:
    """Options of a minimal-pairs task."""

    __pydantic_config__ = BORDER

    mode: PllMode = "within_word_l2r"
    """What a masked model has masked with the token that is scored: `within_word_l2r` also the later tokens of its
    word, `original` nothing else. It does not act on causal models."""
    per_paradigm: int | None = None
    """The first so many pairs of each paradigm, for a quick look; null: all."""
    columns: MinimalPairColumns = field(default_factory=MinimalPairColumns)
    """Names of the columns `sentence_good`, `sentence_bad`, `paradigm`, `field`, `term` and `id`, where the files have
    others."""

    def __post_init__(self) -> None:
        if self.per_paradigm is not None and self.per_paradigm < 1:
            raise ValueError(f"per_paradigm must be at least 1, not {self.per_paradigm}")


@dataclass(frozen=True)
class _Sentences:
    """The distinct sentences of all pairs."""

    texts: tuple[str, ...]
    names: tuple[str, ...]
    """The first pair of each, and which of the two it is there, for messages."""
    good: Numbers
    """intp [n]: the sentence that is the acceptable one of each pair."""
    bad: Numbers

    @classmethod
    def of(cls, pairs: MinimalPairs) -> _Sentences:
        names: dict[str, str] = {}
        for column, texts in (("sentence_good", pairs.good), ("sentence_bad", pairs.bad)):
            for pair, text in zip(pairs.ids, texts, strict=True):
                names.setdefault(text, f"{column} of {pair}")
        place = {text: number for number, text in enumerate(names)}
        good, bad = (np.array([place[text] for text in texts], dtype=np.intp) for texts in (pairs.good, pairs.bad))
        return cls(tuple(names), tuple(names.values()), good, bad)


@dataclass(frozen=True)
class _Plan:
    """What is to be scored."""

    same: Numbers
    """intp [sentences]: the first sentence with the same tokens. It alone is scored, so that the two always tie."""
    n_tokens: Numbers
    """intp [sentences]: tokens that count."""
    n_unknown: int
    n_passes: int
    """Of the distinct ones."""


@dataclass(frozen=True)
class MinimalPairsTask(LanguageTask):
    """The minimal pairs of one file, or of the files of a folder."""

    kinds: ClassVar[tuple[Kind, ...]] = ("masked", "causal")

    def fitted(self, kind: str, tokenizer: str | None, model: ModelSpec) -> Self:
        """The task for a model of that kind.

        Raises ``EvaluationError`` for other kinds than masked and causal ones, and for a main score of the other one.
        """
        task = super().fitted(kind, tokenizer, model)
        if (wanted := self.spec.main_score) not in (None, METRICS[task.kind]):
            raise EvaluationError(
                f"The main score of the task {self.spec.name!r} is {wanted}, and {model.label} is a {task.kind} "
                f"language model, which has {METRICS[task.kind]} here. Leave main_score out."
            )
        return task

    def load(self) -> MinimalPairs:
        """The pairs."""
        pairs = load_minimal_pairs(self.path, self.options.columns)
        return pairs if self.options.per_paradigm is None else _first_of_each(pairs, self.options.per_paradigm)

    def protocol(self, payload: MinimalPairs) -> dict[str, strict_json.Json]:
        """Everything besides the model that can change a number."""
        scoring = "log_likelihood" if self.kind == "causal" else f"pseudo_log_likelihood:{self.options.mode}"
        return {
            "type": "minimal_pairs",
            "type_version": VERSION,
            "task_version": self.spec.version,
            "data": payload.data_hash,
            "split": self.spec.dataset.split,
            "scoring": scoring,
            "per_paradigm": self.options.per_paradigm,
        }

    @property
    def metric_names(self) -> tuple[str, ...]:
        """The accuracy by what a model of that kind gives."""
        return (METRICS[self.kind],)

    def collect(self, payload: MinimalPairs, system: LanguageModel, progress: Progress) -> Collected:
        """One row per pair."""
        began = time.perf_counter()
        if self.kind == "masked":
            _language.check_masks(system)
        sentences = _Sentences.of(payload)
        plan = self._planned(sentences, system)
        planned = time.perf_counter()
        progress.start("sentences" if self.kind == "causal" else "masked tokens", plan.n_passes, "passes")
        sums = np.zeros(len(sentences.texts))
        work = Work()
        for rows, variants in _language.chunks(self._variants(sentences, plan, system)):
            found = system.score(variants, ids=[sentences.names[row] for row in rows], progress=progress)
            np.add.at(sums, rows, found.log_prob)
            work += found.work
        progress.finish()
        first = plan.same[sentences.good], plan.same[sentences.bad]
        good, bad = sums[first[0]], sums[first[1]]
        values = preferred(good, bad)
        n_alike = int((first[0] == first[1]).sum())
        n_tokens = int(plan.n_tokens.sum())
        return Collected(
            records=ItemRecords(
                unit="pair",
                ids=payload.ids,
                columns={METRICS[self.kind]: values, "good": good, "bad": bad},
                slices=_slices(payload),
            ),
            counts={
                "pairs": len(payload),
                "pairs_tied": int((values == HALF).sum()),
                "pairs_same_tokens": n_alike,
                "sentences": len(sentences.texts),
                "tokens": n_tokens,
                "tokens_unknown": plan.n_unknown,
                "passes": plan.n_passes,
            },
            warnings=(
                *system.info.remarks,
                *_language.unknown(plan.n_unknown, n_tokens, so=ALIKE),
                *self._unscored_first(system),
                *_alike(n_alike, len(payload.identical)),
                *by_chance(values),
            ),
            phases={"tokenize": planned - began, "encode": time.perf_counter() - planned},
            work=work,
        )

    def _planned(self, sentences: _Sentences, system: LanguageModel) -> _Plan:
        first: dict[bytes, int] = {}
        same = np.zeros(len(sentences.texts), dtype=np.intp)
        n_tokens = np.zeros(len(sentences.texts), dtype=np.intp)
        n_unknown = n_passes = 0
        for row, text in enumerate(system.tokens(sentences.texts)):
            n_tokens[row] = n = self._n_scored(text, system)
            self._refuse(text, n, sentences.names[row], system)
            n_unknown += text.n_unknown
            same[row] = first.setdefault(self._key(text), row)
            if same[row] == row:
                n_passes += 1 if self.kind == "causal" else n
        return _Plan(same, n_tokens, n_unknown, n_passes)

    def _refuse(self, text: Text, n_scored: int, name: str, system: LanguageModel) -> None:
        """Raises ``EvaluationError`` for a sentence without a score, or one that a causal model can't take whole."""
        if not n_scored:
            raise EvaluationError(
                f"The {name} has no token that {system.spec.label} can score: a sum over nothing would beat every "
                "other sentence. Leave the pair out."
            )
        if self.kind == "causal" and system.limit is not None:
            n = len(text) + len(causal.begin(system.frame))
            if n > system.limit:
                raise EvaluationError(
                    f"The {name} has {n} tokens, and {system.spec.label} takes {system.limit}: the likelihood of a "
                    "part is not that of the whole.\nLeave the pair out, or raise max_seq_length if the model has more "
                    "positions."
                )

    def _n_scored(self, text: Text, system: LanguageModel) -> int:
        places = causal.scored_places(text, system.frame) if self.kind == "causal" else pseudo.scored_places(text)
        return len(places)

    def _variants(
        self, sentences: _Sentences, plan: _Plan, system: LanguageModel
    ) -> Iterator[tuple[int, Sequence[str]]]:
        """(row of a sentence, variants of it) for each that is scored."""
        room = system.room
        stride = windows.usual_stride(room)
        for row, text in enumerate(system.tokens(sentences.texts)):
            if plan.same[row] != row:
                continue
            if self.kind == "causal":
                yield row, [causal.variant(text, system.frame)]
                continue
            places = pseudo.scored_places(text)
            yield row, list(pseudo.variants(text, system.frame, self.options.mode, places, room=room, stride=stride))

    def _key(self, text: Text) -> bytes:
        """What a sentence's score hangs on: its tokens, and where it matters the words that these are parts of."""
        by_word = self.kind == "masked" and self.options.mode == "within_word_l2r"
        whole = text.ids.tobytes() + (text.words.tobytes() if by_word else b"")
        return hashlib.blake2b(whole, digest_size=16).digest()

    def _unscored_first(self, system: LanguageModel) -> Iterator[str]:
        if self.kind == "causal" and not len(causal.begin(system.frame)):
            yield (
                "The tokenizer has no token that begins a text, so the first token of each sentence is not scored: "
                "pairs that differ there are judged by what follows."
            )


def preferred(good: Column, bad: Column) -> Column:
    """float64 [n]: 1 where ``good`` is larger, 0.5 where both are equal but for rounding, else 0."""
    tied = np.abs(good - bad) <= TIE * np.maximum(np.abs(good), np.abs(bad))
    return np.where(tied, HALF, (good > bad).astype(np.float64))


def by_chance(values: Column) -> Iterator[str]:
    """A sentence where all pairs together are no better than chance, by Wilson's 95 % interval."""
    low, high = intervals.wilson(float(values.sum()), len(values), 0.95)
    told = f"the accuracy over all pairs, {values.mean():.3f}, has the 95 % interval {low:.3f} to {high:.3f}"
    if high < CHANCE:
        yield (
            f"Worse than chance (0.5): {told}. Are sentence_good and sentence_bad the right way round? A model that "
            "has learned little prefers short sentences and frequent words."
        )
    elif low <= CHANCE:
        yield f"Not told from chance (0.5): {told}."


def _alike(n_alike: int, n_identical: int) -> Iterator[str]:
    """A sentence on pairs in which the model sees one sentence twice."""
    if n_alike:
        there = f" ({n_identical} in the data already)" if n_identical else ""
        yield (
            f"{plural(n_alike, 'pair')} {have(n_alike)} two sentences with the same tokens{there}: no model can tell "
            f"them, so {'it counts' if n_alike == 1 else 'each counts'} half."
        )


def _slices(pairs: MinimalPairs) -> dict[str, tuple[str, ...]]:
    found = {"subset": pairs.paradigms, "field": pairs.fields, "term": pairs.terms}
    return {name: labels for name, labels in found.items() if labels}


def _first_of_each(pairs: MinimalPairs, n: int) -> MinimalPairs:
    """The first ``n`` pairs of each paradigm."""
    seen: dict[str, int] = {}
    rows = []
    for row, paradigm in enumerate(pairs.paradigms):
        seen[paradigm] = seen.get(paradigm, 0) + 1
        if seen[paradigm] <= n:
            rows.append(row)

    def taken(column: Sequence[str]) -> tuple[str, ...]:
        return tuple(column[row] for row in rows) if column else ()

    return MinimalPairs(
        ids=taken(pairs.ids),
        good=taken(pairs.good),
        bad=taken(pairs.bad),
        paradigms=taken(pairs.paradigms),
        fields=taken(pairs.fields),
        terms=taken(pairs.terms),
    )


class _MinimalPairsType:
    options = MinimalPairsOptions
    summary = "how often a language model finds the acceptable one of two sentences likelier, as in BLiMP"
    main_score = METRICS["masked"]
    needs_vectors = True

    def bind(self, spec: TaskSpec, *, root: Path) -> MinimalPairsTask:
        _options.check_main_score(spec, tuple(METRICS.values()))
        options = _options.read(MinimalPairsOptions, spec)
        _options.own_split(spec)
        return MinimalPairsTask(spec, _options.data_path(spec, root), options)


TASK = _MinimalPairsType()
