"""``masked_lm``: the loss of a masked language model on held-out texts, at tokens that are hidden as in its training.

One item is a text, with sums over all draws of masks: ``nats`` (-ln p of the tokens chosen), ``masked_tokens``,
``hits_1`` and ``hits_5`` (how many are the model's first guess, or among its first five), and with ``aligned`` masks
``masked_words`` and ``masked_characters``. A token that was chosen is scored whatever stands in its place: the mask,
another token, or the token itself. A text in which nothing was drawn counts for nothing.

Losses per token hang on the tokenizer. ``aligned`` masks hide words that no tokenizer had a say in
(``language_models.segments``), so losses per word and per character are of the same words for all models. Where a token
lies over several words, they are hidden together or not at all, by the draw of the first of them, and all are counted:
each word is hidden with the same probability for every model. A word that no token lies over, because the tokenizer
drops it, is neither hidden nor counted, and a model that drops more than ``MOST_LEFT_OUT`` of them is refused.

Texts that are too long for the model are cut into windows that don't overlap; masks are drawn before. A word at an edge
is hidden in both windows and counted once.

Source: Devlin et al., NAACL 2019; transformers 5.24 (``whole_word``).
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from embeval.core import strict_json
from embeval.core.border import BORDER
from embeval.core.embeddings import Work
from embeval.core.progress import Progress
from embeval.core.protocols import Collected
from embeval.core.specs import TaskSpec
from embeval.core.words import are, have, plural
from embeval.data.texts import TextColumns, Texts, TextUnit, check_options
from embeval.encoders import batching
from embeval.errors import EvaluationError
from embeval.language_models import masking
from embeval.language_models.masking import Masker, Masking
from embeval.language_models.model import LanguageModel
from embeval.tasks import _language, _options
from embeval.tasks._language import TextsTask

VERSION = 1
"""Raised when the same texts and model give another number."""
MOST_DRAWS = 10_000
"""Draws of masks per text; what lies beyond is a slip, and would draw for ever."""
MOST_LEFT_OUT = 0.01
"""Share of the words that a tokenizer may drop; with more, losses per word would be of other words."""
PER_TOKEN = ("mlm_loss", "mlm_loss_bits", "mlm_accuracy", "mlm_top_5")
PER_WORD = ("mlm_loss_per_word", "mlm_bits_per_character")


@dataclass(frozen=True, kw_only=True)
class MaskedLmOptions:
    """Options of a task of masked tokens."""

    __pydantic_config__ = BORDER

    masking: Masking = "bert"
    """What is hidden: `bert` single tokens, 80 % of them by [MASK], 10 % by another token, 10 % left as they are;
    `mask` single tokens, all by [MASK]; `whole_word` all tokens of a word, as transformers has it; `aligned` words that
    are the same for all tokenizers, which losses per word and per character need."""
    probability: float = 0.15
    """Of each token or word to be chosen."""
    draws: int = 1
    """How often masks are drawn for each text: more make the error smaller, at as many times the cost."""
    seed: int = 0
    """Which masks are drawn."""
    at_least_one: bool = False
    """Whether a text in which nothing was drawn gets one mask all the same."""
    unit: TextUnit = "line"
    """What is one text of a plain text file: `line`, `paragraph` or `file`."""
    columns: TextColumns = field(default_factory=TextColumns)
    """Names of the columns `text`, `id` and `subset`, where a table has others."""

    def __post_init__(self) -> None:
        if not 0.0 < self.probability <= 1.0:
            raise ValueError(f"probability must be above 0 and at most 1, not {self.probability}")
        if not 1 <= self.draws <= MOST_DRAWS:
            raise ValueError(f"draws must be from 1 to {MOST_DRAWS}, not {self.draws}")
        if self.seed < 0:
            raise ValueError(f"seed must be at least 0, not {self.seed}")


@dataclass(frozen=True)
class _Plan:
    """What was drawn for N distinct texts."""

    columns: dict[str, npt.NDArray[np.float64]]
    """float64 [N] each: ``masked_tokens``, and of aligned masks ``masked_words`` and ``masked_characters``."""
    counts: dict[str, npt.NDArray[np.int64]]
    """int64 [N] each: what is counted of the texts."""
    n_passes: int


@dataclass(frozen=True)
class MaskedLmTask(TextsTask):
    """Loss at masked tokens of the texts of one file."""

    def protocol(self, payload: Texts) -> dict[str, strict_json.Json]:
        """Everything besides the model that can change a number."""
        options: MaskedLmOptions = self.options
        return {
            "type": "masked_lm",
            "type_version": VERSION,
            "task_version": self.spec.version,
            "data": payload.data_hash,
            "split": self.spec.dataset.split,
            "masking": options.masking,
            "probability": options.probability,
            "draws": options.draws,
            "seed": options.seed,
            "at_least_one": options.at_least_one,
        }

    @property
    def metric_names(self) -> tuple[str, ...]:
        """Loss, accuracy and top 5 per token; with aligned masks first the losses per word and per character."""
        return _names(self.options.masking)

    def collect(self, payload: Texts, system: LanguageModel, progress: Progress) -> Collected:
        """One row per text."""
        began = time.perf_counter()
        texts, place = batching.unique(payload.texts)
        _language.check_masks(system)
        plan = self._plan(texts, system)
        self._check(plan, len(payload), system)
        planned = time.perf_counter()
        scores, work = self._score(texts, _language.first_ids(payload, place), plan, system, progress)
        columns = {name: values[place] for name, values in {**scores, **plan.columns}.items()}
        counts = {name: int(values[place].sum()) for name, values in plan.counts.items()}
        return Collected(
            records=_language.text_records(payload, columns),
            counts={"texts": len(payload), **counts, "passes": plan.n_passes},
            warnings=(*system.info.remarks, *self._warnings(counts)),
            phases={"tokenize": planned - began, "encode": time.perf_counter() - planned},
            work=work,
            tokenizer=self.tokenizer,
        )

    def _masker(self, system: LanguageModel) -> Masker:
        options: MaskedLmOptions = self.options
        return Masker(options.masking, options.probability, options.at_least_one, options.seed, system.frame)

    def _plan(self, texts: Sequence[str], system: LanguageModel) -> _Plan:
        """Counts of what is drawn, before anything runs."""
        masker, room = self._masker(system), system.room
        n = len(texts)
        names = ("masked_tokens", "masked_words", "masked_characters")
        drawn = {name: np.zeros(n) for name in names[: 3 if self._is_aligned else 1]}
        counted = ("tokens", "tokens_unknown", "masked_tokens", "texts_without_masks", "texts_in_windows")
        of_words = ("words", "words_left_out", "words_tied") if self._is_aligned else ()
        counts = {name: np.zeros(n, dtype=np.int64) for name in (*counted, *of_words)}
        n_passes = 0
        for row, text in enumerate(system.tokens(texts)):
            units = masker.units(texts[row], text)
            for number in range(self.options.draws):
                masks = masker.draw(texts[row], text, units, number)
                n_passes += masking.n_variants(masks, room=room)
                for name, more in zip(names, (len(masks.places), masks.n_words, masks.n_characters), strict=True):
                    if name in drawn:
                        drawn[name][row] += more
            tokens_drawn = int(drawn["masked_tokens"][row])
            about = (text.scored.sum(), text.n_unknown, tokens_drawn, not tokens_drawn, room and len(text) > room)
            about_words = (units.n, units.n_left_out, units.n_tied) if self._is_aligned else ()
            for name, value in zip(counts, (*about, *about_words), strict=True):
                counts[name][row] = value or 0
        return _Plan(drawn, counts, n_passes)

    @property
    def _is_aligned(self) -> bool:
        return bool(self.options.masking == "aligned")

    def _check(self, plan: _Plan, n_texts: int, system: LanguageModel) -> None:
        """Raises ``EvaluationError`` where nothing was drawn, or of other words than of other models."""
        if self._is_aligned:
            n_words, n_left_out = (int(plan.counts[name].sum()) for name in ("words", "words_left_out"))
            if n_left_out > MOST_LEFT_OUT * n_words:
                raise EvaluationError(
                    f"The tokenizer of {system.spec.label} drops {n_left_out} of the {plural(n_words, 'word')} of the "
                    f"task {self.spec.name!r}: losses per word would not be of the words of other models.\nUse "
                    "masking: whole_word, whose losses per token are of this tokenizer alone."
                )
        if not plan.columns["masked_tokens"].any():
            nothing = f"Nothing was drawn to be masked in the {plural(n_texts, 'text')} of the task {self.spec.name!r}"
            if not plan.counts["tokens"].any():
                raise EvaluationError(
                    f"{nothing}: the tokenizer of {system.spec.label} makes nothing but special tokens of them."
                )
            raise EvaluationError(
                f"{nothing}, so there is no loss.\nSay at_least_one: true, or raise draws ({self.options.draws}) or "
                f"probability ({self.options.probability})."
            )

    def _score(
        self, texts: Sequence[str], ids: Sequence[str], plan: _Plan, system: LanguageModel, progress: Progress
    ) -> tuple[dict[str, npt.NDArray[np.float64]], Work]:
        """``nats``, ``hits_1`` and ``hits_5`` of each distinct text."""
        sums = {name: np.zeros(len(texts)) for name in ("nats", "hits_1", "hits_5")}
        work = Work()
        progress.start("masked texts", plan.n_passes, "passes")
        for rows, variants in _language.chunks(self._variants(texts, system)):
            found = system.score(variants, ids=[ids[row] for row in rows], progress=progress)
            for name, values in (("nats", -found.log_prob), ("hits_1", found.hits_1), ("hits_5", found.hits_5)):
                np.add.at(sums[name], rows, values)
            work += found.work
        progress.finish()
        return sums, work

    def _variants(self, texts: Sequence[str], system: LanguageModel) -> Iterator[tuple[int, list[str]]]:
        """(row of a text, variants of it) for each text and draw."""
        masker = self._masker(system)
        for row, text in enumerate(system.tokens(texts)):
            units = masker.units(texts[row], text)
            for number in range(self.options.draws):
                masks = masker.draw(texts[row], text, units, number)
                yield row, list(masking.variants(masks, text, system.frame, room=system.room))

    def _warnings(self, counts: dict[str, int]) -> Iterator[str]:
        yield from _language.unknown(counts["tokens_unknown"], counts["tokens"])
        if n := counts["texts_without_masks"]:
            yield (
                f"{plural(n, 'text')} {have(n)} no mask and count{'s' * (n == 1)} for nothing: none was drawn there. "
                "at_least_one: true masks a token or word in each, and more draws make it rarer."
            )
        if n := counts.get("words_left_out", 0):
            yield (
                f"The tokenizer drops {n} of the {plural(counts['words'], 'word')}, which "
                f"{are(n)} not counted; other models may be asked for them."
            )
        if n := counts.get("words_tied", 0):
            yield (
                f"{n} of the {plural(counts['words'], 'word')} {are(n)} in one token with the word before and masked "
                "together with it: there the masks are not quite those of other models."
            )


def _names(masking: Masking) -> tuple[str, ...]:
    return (*PER_WORD, *PER_TOKEN) if masking == "aligned" else PER_TOKEN


class _MaskedLmType:
    options = MaskedLmOptions
    summary = "loss, accuracy and top 5 of a masked language model at masked tokens of held-out texts"
    main_score = PER_TOKEN[0]
    needs_vectors = True

    def ruler(self, options: Mapping[str, Any]) -> str:
        """What is put behind the name of a file: losses of two kinds of masks are two measurements."""
        masking = options.get("masking", "bert")
        return "mlm" if masking == "bert" else f"mlm-{masking}".replace("_", "-")

    def bind(self, spec: TaskSpec, *, root: Path) -> MaskedLmTask:
        options = _options.read(MaskedLmOptions, spec)
        _options.own_split(spec)
        advice = "It needs masking: aligned, whose words are the same for all models."
        _options.check_main_score(
            spec,
            _names(options.masking),
            having=f" with masking: {options.masking}",
            advice=advice if spec.main_score in PER_WORD else None,
        )
        path = _options.data_path(spec, root)
        check_options(path, options.columns, options.unit)
        return MaskedLmTask(spec, path, options)


TASK = _MaskedLmType()
