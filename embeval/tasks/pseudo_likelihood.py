"""``pseudo_likelihood``: how probable a masked language model finds texts, token by token.

The pseudo-log-likelihood (PLL) of a text is the sum of ln p(token | all others) over its tokens, each masked in turn.
One item is a text. The pseudo-perplexity (PPPL) of all texts weights them by their tokens: exp(-ΣPLL / Σtokens). It is
no perplexity, which only a model has that writes from left to right, and never stands beside one.

With ``sample`` the PLL of a text is estimated from some of its tokens; see ``language_models.sampled``.

Source: Salazar, Liang, Nguyen & Kirchhoff, ACL 2020; Kauf & Ivanova, ACL 2023 (``within_word_l2r``).
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from embeval.core import strict_json
from embeval.core.border import BORDER
from embeval.core.embeddings import Work
from embeval.core.progress import Progress
from embeval.core.protocols import PLL_MODES, Collected, PllMode
from embeval.core.records import Column, Int32, TokenRecords
from embeval.core.specs import TaskSpec
from embeval.core.words import are, have, plural
from embeval.data.texts import TextColumns, Texts, TextUnit, check_options
from embeval.encoders import batching
from embeval.errors import EvaluationError
from embeval.language_models import pseudo, sampled, windows
from embeval.language_models.model import LanguageModel
from embeval.language_models.pseudo import Spans
from embeval.language_models.tokenization import Text
from embeval.tasks import _language, _options, _passes
from embeval.tasks._language import TextsTask
from embeval.tasks._passes import Passes

VERSION = 1
"""Raised when the same texts and model give another number."""
VARIANTS_AT_ONCE, TOKENS_AT_ONCE = 16_384, 2_097_152
"""Variants that are planned together, and tokens in them: enough that batches are full, few enough to fit into memory.
"""
LEVEL = 0.95
"""Of the interval of a sample."""
NAMES = ("pppl", "word_pppl", "bits_per_character")

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class PseudoLikelihoodOptions:
    """Options of a pseudo-likelihood task."""

    __pydantic_config__ = BORDER

    modes: tuple[PllMode, ...] = PLL_MODES
    """What is masked with the token that is scored: `within_word_l2r` also the later tokens of its word, `original`
    nothing else. Both together take little more time than one."""
    stride: int | None = None
    """Tokens from one window to the next in texts that are too long for the model; null: half a window."""
    sample: float | None = None
    """Share of the tokens of each text that are scored, such as 0.25, and at least two: an estimate in that share of
    the time; null: all of them."""
    seed: int = 0
    """Which ones a sample takes."""
    keep_tokens: bool | None = None
    """Whether every token is stored with its log-probabilities; null: where all are scored."""
    unit: TextUnit = "line"
    """What is one text of a plain text file: `line`, `paragraph` or `file`."""
    columns: TextColumns = field(default_factory=TextColumns)
    """Names of the columns `text`, `id` and `subset`, where a table has others."""

    def __post_init__(self) -> None:
        if not self.modes or len(set(self.modes)) < len(self.modes):
            raise ValueError("modes must name within_word_l2r, original or both, each once")
        if self.stride is not None and self.stride < 1:
            raise ValueError(f"stride must be at least 1, not {self.stride}")
        if self.sample is not None and not 0.0 < self.sample < 1.0:
            raise ValueError(f"sample must be a share between 0 and 1, not {self.sample}; null takes every token")
        if self.seed < 0:
            raise ValueError(f"seed must be at least 0, not {self.seed}")


@dataclass(frozen=True)
class _Plan:
    """What is to be scored of N distinct texts."""

    n_tokens: Numbers
    """int64 [N]: tokens that count."""
    n_places: Numbers
    """int64 [N]: of these, those that are scored."""
    n_unknown: Numbers
    """int64 [N]: tokens that stand for what the tokenizer doesn't know."""
    cut: npt.NDArray[np.bool_]
    """bool [N]: whether a text is longer than the model takes."""
    passes: Passes

    @cached_property
    def starts(self) -> Numbers:
        """int64 [N + 1]: number of the first place of each text among all, and the end."""
        return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(self.n_places)])


class _Piece(NamedTuple):
    """Some places of one text."""

    text: Text
    start: int
    """Number of the first of them among all places."""
    spans: Spans


class _Scored(NamedTuple):
    """What a model says of the M places of a plan."""

    log_probs: dict[PllMode, npt.NDArray[np.float32]]
    """float32 [M] per mode."""
    columns: dict[str, Int32]
    """int32 [M] each: columns of ``TokenRecords``; empty where they are not kept."""
    work: Work


@dataclass(frozen=True)
class PseudoLikelihoodTask(TextsTask):
    """PLL of the texts of one file."""

    @property
    def keeps_tokens(self) -> bool:
        """Whether tokens are stored one by one."""
        return self.options.sample is None if self.options.keep_tokens is None else bool(self.options.keep_tokens)

    def protocol(self, payload: Texts) -> dict[str, strict_json.Json]:
        """Everything besides the model that can change a number."""
        options: PseudoLikelihoodOptions = self.options
        return {
            "type": "pseudo_likelihood",
            "type_version": VERSION,
            "task_version": self.spec.version,
            "data": payload.data_hash,
            "split": self.spec.dataset.split,
            "stride": options.stride,
            "sample": None if options.sample is None else {"share": options.sample, "seed": options.seed},
        }

    @property
    def metric_names(self) -> tuple[str, ...]:
        """PPPL per token and per word and bits per character, of each mode."""
        return _names(self.options.modes)

    def collect(self, payload: Texts, system: LanguageModel, progress: Progress) -> Collected:
        """One row per text."""
        began = time.perf_counter()
        texts, place = batching.unique(payload.texts)
        plan = self._plan(texts, system)
        planned = time.perf_counter()
        tried = self._tell_cost(texts, plan, system, progress)
        scored = self._score(texts, _language.first_ids(payload, place), plan, system, progress)
        seconds = time.perf_counter() - planned
        owner = np.repeat(np.arange(len(texts)), plan.n_places)
        sums = {
            mode: sampled.totals(values.astype(np.float64), owner, plan.n_tokens)
            for mode, values in scored.log_probs.items()
        }
        n_tokens = plan.n_tokens[place]
        n_unknown = int(plan.n_unknown[place].sum())
        return Collected(
            records=_language.text_records(
                payload,
                {
                    **{f"pll_{mode}": totals[place] for mode, (totals, _) in sums.items()},
                    "tokens": n_tokens.astype(np.float64),
                    "words": np.array([len(text.split()) for text in payload.texts], dtype=np.float64),
                    "characters": np.array([len(text) for text in payload.texts], dtype=np.float64),
                },
            ),
            tokens=_tokens(payload, place, plan, scored, system) if self.keeps_tokens else None,
            counts={
                "texts": len(payload),
                "texts_without_tokens": int((n_tokens == 0).sum()),
                "texts_in_windows": int(plan.cut[place].sum()),
                "tokens": int(n_tokens.sum()),
                "tokens_scored": int(plan.n_places[place].sum()),
                "tokens_unknown": n_unknown,
                "passes": plan.passes.n,
            },
            warnings=(
                *system.info.remarks,
                *_language.unknown(n_unknown, int(n_tokens.sum())),
                *_without_tokens([payload.ids[row] for row in np.flatnonzero(n_tokens == 0).tolist()]),
                *_in_windows(int(plan.cut[place].sum()), system),
                *(_estimated(plan, np.bincount(place), sums) if self.options.sample is not None else ()),
            ),
            phases={"tokenize": planned - began, "encode": seconds},
            work=tried + scored.work,
            tokenizer=self.tokenizer,
        )

    def _plan(self, texts: Sequence[str], system: LanguageModel) -> _Plan:
        """What is to be done, counted. Raises ``EvaluationError`` where nothing can be."""
        _language.check_masks(system)
        room = system.room
        if room is not None and self.options.stride is not None and self.options.stride > room:
            raise EvaluationError(
                f"A stride of {self.options.stride} leaves out tokens: {system.spec.label} takes {room} at once."
            )
        found = np.zeros((4, len(texts)), dtype=np.int64)
        n_passes = n_tokens = 0
        for row, text in enumerate(system.tokens(texts)):
            spans = self._spans(texts[row], text, system)
            found[:, row] = text.scored.sum(), len(spans.places), text.n_unknown, room is not None and len(text) > room
            own = spans.n_variants(self.options.modes)
            n_passes += own
            n_tokens += spans.n_tokens(self.options.modes) + own * system.frame.n_special
        if not found[0].any():
            raise EvaluationError(
                f"None of the {plural(len(texts), 'text')} holds a token to score: the tokenizer of "
                f"{system.spec.label} makes nothing but special tokens of them."
            )
        return _Plan(found[0], found[1], found[2], found[3] > 0, Passes(n_passes, n_tokens))

    def _spans(self, written: str, text: Text, system: LanguageModel) -> Spans:
        places = pseudo.scored_places(text)
        if self.options.sample is not None:
            places = sampled.drawn(places, written, share=self.options.sample, seed=self.options.seed)
        stride = self.options.stride or windows.usual_stride(system.room)
        return pseudo.spans(text, places, room=system.room, stride=stride)

    def _tell_cost(self, texts: Sequence[str], plan: _Plan, system: LanguageModel, progress: Progress) -> Work:
        """The work of some passes from all over the texts, by whose time it says what all of them are going to cost."""
        n_scored = int(plan.n_places.sum())
        what = f"{_passes.counted(n_scored, 'token')} of {_passes.counted(len(texts), 'text')}"
        n_timed = plan.passes.n_to_time(system.info.batch_tokens)
        if not n_timed:
            progress.note(_passes.told(plan.passes, what, None))
            return Work()
        chosen = (np.arange(n_timed) * n_scored) // n_timed
        rows = np.searchsorted(plan.starts, chosen, side="right") - 1
        there = sorted(set(rows.tolist()))
        variants = []
        for row, text in zip(there, system.tokens([texts[row] for row in there]), strict=True):
            of_row = (chosen[rows == row] - plan.starts[row]).tolist()
            spans = self._spans(texts[row], text, system).of(of_row)
            variants += pseudo.distinct(text, system.frame, self.options.modes[:1], spans)[0]
        mixed = [variants[at] for first in range(4) for at in range(first, len(variants), 4)]
        found = _passes.timed(mixed, system)
        progress.note(_passes.told(plan.passes, what, found))
        return found.work

    def _score(
        self, texts: Sequence[str], ids: Sequence[str], plan: _Plan, system: LanguageModel, progress: Progress
    ) -> _Scored:
        options: PseudoLikelihoodOptions = self.options
        n = int(plan.starts[-1])
        log_probs = {mode: np.zeros(n, dtype=np.float32) for mode in options.modes}
        names = ("place", "id", "begin", "end", "word") if self.keeps_tokens else ()
        columns = {name: np.zeros(n, dtype=np.int32) for name in names}
        work = Work()
        progress.start("masked tokens", plan.passes.n, "passes")
        for pieces in self._chunks(texts, plan, system):
            variants: list[str] = []
            owners: list[str] = []
            made: list[dict[PllMode, Numbers]] = []
            for piece in pieces:
                own, numbers = pseudo.distinct(piece.text, system.frame, options.modes, piece.spans)
                made.append({mode: each + len(variants) for mode, each in numbers.items()})
                owner = int(np.searchsorted(plan.starts, piece.start, side="right")) - 1
                variants += own
                owners += [ids[owner]] * len(own)
            found = system.score(variants, ids=owners, progress=progress)
            for piece, numbers in zip(pieces, made, strict=True):
                at = slice(piece.start, piece.start + len(piece.spans.places))
                for mode, each in numbers.items():
                    log_probs[mode][at] = found.log_prob[each]
                if columns:
                    _note(columns, at, piece)
            work += found.work
        progress.finish()
        return _Scored(log_probs, columns, work)

    def _chunks(self, texts: Sequence[str], plan: _Plan, system: LanguageModel) -> Iterator[list[_Piece]]:
        """All places in their order, so many at once as have about ``VARIANTS_AT_ONCE`` variants."""
        pieces: list[_Piece] = []
        n_variants = n_tokens = 0
        for row, text in enumerate(system.tokens(texts)):
            spans = self._spans(texts[row], text, system)
            longest = len(text) if system.room is None else min(len(text), system.room)
            step = max(1, min(VARIANTS_AT_ONCE, TOKENS_AT_ONCE // max(1, longest)) // len(self.options.modes))
            for start in range(0, len(spans.places), step):
                part = spans.of(slice(start, start + step))
                pieces.append(_Piece(text, int(plan.starts[row]) + start, part))
                n_variants += part.n_variants(self.options.modes)
                n_tokens += part.n_tokens(self.options.modes)
                if n_variants >= VARIANTS_AT_ONCE or n_tokens >= TOKENS_AT_ONCE:
                    yield pieces
                    pieces, n_variants, n_tokens = [], 0, 0
        if pieces:
            yield pieces


def _names(modes: Sequence[PllMode]) -> tuple[str, ...]:
    return tuple(f"{name}_{mode}" for mode in modes for name in NAMES)


def _note(columns: dict[str, Int32], at: slice, piece: _Piece) -> None:
    """Fills in what the tokenizer says of some places."""
    text, places = piece.text, piece.spans.places
    columns["place"][at] = places
    columns["id"][at], columns["word"][at] = text.ids[places], text.words[places]
    columns["begin"][at], columns["end"][at] = text.begins[places], text.ends[places]


def _tokens(
    payload: Texts, place: npt.NDArray[np.intp], plan: _Plan, scored: _Scored, system: LanguageModel
) -> TokenRecords:
    """The tokens of all texts, those that are there twice twice."""
    n_places = plan.n_places[place]
    ends = np.cumsum(n_places)
    rows = np.arange(int(n_places.sum())) + np.repeat(plan.starts[place] - (ends - n_places), n_places)
    used = np.unique(scored.columns["id"]).tolist()
    return TokenRecords(
        items=payload.ids,
        item=np.repeat(np.arange(len(payload), dtype=np.int32), n_places),
        vocabulary=dict(zip(used, system.token_names(used), strict=True)),
        log_probs={mode: values[rows] for mode, values in scored.log_probs.items()},
        **{name: values[rows] for name, values in scored.columns.items()},
    )


def _estimated(plan: _Plan, times: Numbers, found: Mapping[PllMode, tuple[Column, Column]]) -> Sequence[str]:
    """A sentence on how far the values of all tokens may be from those of a sample.

    ``times`` [N] says how often each distinct text is there: it was drawn from once.
    """
    n_tokens, n_places = int((times * plan.n_tokens).sum()), int((times * plan.n_places).sum())
    shown = []
    for mode, (totals, variances) in found.items():
        total, variance = float(np.nansum(times * totals)), float((times**2 * variances).sum())
        low, high = sampled.interval(total, variance, n_tokens, LEVEL)
        shown.append(f"pppl_{mode} lies between {low:.4f} and {high:.4f}")
    sentence = f"Estimated from {n_places:,} of the {n_tokens:,} tokens. Over all tokens of all texts, with "
    return (sentence + f"{LEVEL * 100:g} % confidence each, {' and '.join(shown)}.",)


def _without_tokens(ids: Sequence[str]) -> Sequence[str]:
    if not ids:
        return ()
    shown = ", ".join(ids[:3]) + (", …" if len(ids) > 3 else "")
    sentence = f"{plural(len(ids), 'text')} ({shown}) {have(len(ids))} no token to score, only special ones, and "
    return (sentence + f"{are(len(ids))} left out.",)


def _in_windows(n: int, system: LanguageModel) -> Sequence[str]:
    if not n:
        return ()
    sentence = (
        f"{plural(n, 'text')} {are(n)} longer than the {system.room} tokens that {system.spec.label} takes at once"
    )
    return (f"{sentence}: each token was scored in the window that shows most on both its sides.",)


class _PseudoLikelihoodType:
    options = PseudoLikelihoodOptions
    summary = "pseudo-log-likelihood and pseudo-perplexity of texts under a masked language model"
    main_score = "pppl_within_word_l2r"
    needs_vectors = True

    def ruler(self, options: Mapping[str, Any]) -> str:
        """What is put behind the name of a file."""
        return "pll"

    def bind(self, spec: TaskSpec, *, root: Path) -> PseudoLikelihoodTask:
        options = _options.read(PseudoLikelihoodOptions, spec)
        _options.own_split(spec)
        path = _options.data_path(spec, root)
        check_options(path, options.columns, options.unit)
        _options.check_main_score(spec, _names(options.modes), having=f" with modes: {', '.join(options.modes)}")
        return PseudoLikelihoodTask(spec, path, options)


TASK = _PseudoLikelihoodType()
