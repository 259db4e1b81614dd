"""``pseudo_likelihood``: how probable a masked language model finds texts, token by token.

The pseudo-log-likelihood (PLL) of a text is the sum of ln p(token | all others) over its tokens, each masked in turn.
One item is a text. The pseudo-perplexity (PPPL) of all texts weights them by their tokens: exp(-ΣPLL / Σtokens). It is
no perplexity, which only a model has that writes from left to right, and never stands beside one.

Source: Salazar, Liang, Nguyen & Kirchhoff, ACL 2020; Kauf & Ivanova, ACL 2023 (``within_word_l2r``).
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from embeval import metrics
from embeval.core import strict_json
from embeval.core.border import BORDER
from embeval.core.embeddings import Work
from embeval.core.progress import Progress
from embeval.core.protocols import Collected, Metric
from embeval.core.records import ItemRecords
from embeval.core.specs import TaskSpec
from embeval.data.texts import TextColumns, Texts, TextUnit, load_texts
from embeval.errors import EvaluationError
from embeval.language_models import pseudo
from embeval.language_models.model import LanguageModel
from embeval.language_models.pseudo import MODES, Mode
from embeval.language_models.tokenization import Text
from embeval.tasks import _language, _options
from embeval.tasks._language import LanguageTask

VERSION = 1
"""Raised when the same texts and model give another number."""
VARIANTS_AT_ONCE = 65_536
"""Variants that are planned together: enough that batches are full, few enough to fit into memory."""


@dataclass(frozen=True, kw_only=True)
class PseudoLikelihoodOptions:
    """Options of a pseudo-likelihood task."""

    __pydantic_config__ = BORDER

    modes: tuple[Mode, ...] = MODES
    """What is masked with the token that is scored: `within_word_l2r` also the later tokens of its word, `original`
    nothing else. Both together take little more time than one."""
    stride: int | None = None
    """Tokens from one window to the next in texts that are too long for the model; null: half a window."""
    unit: TextUnit = "line"
    """What is one text of a plain text file: `line`, `paragraph` or `file`."""
    columns: TextColumns = field(default_factory=TextColumns)
    """Names of the columns `text`, `id` and `subset`, where a table has others."""

    def __post_init__(self) -> None:
        if not self.modes or len(set(self.modes)) < len(self.modes):
            raise ValueError("modes must name within_word_l2r, original or both, each once")
        if self.stride is not None and self.stride < 1:
            raise ValueError(f"stride must be at least 1, not {self.stride}")


@dataclass(frozen=True)
class PseudoLikelihoodTask(LanguageTask):
    """PLL of the texts of one file."""

    def load(self) -> Texts:
        """The texts."""
        return load_texts(self.path, self.options.columns, self.options.unit)

    def protocol(self, payload: Texts) -> dict[str, strict_json.Json]:
        """Everything besides the model that can change a number."""
        return {
            "type": "pseudo_likelihood",
            "type_version": VERSION,
            "task_version": self.spec.version,
            "data": payload.data_hash,
            "split": self.spec.dataset.split,
            "stride": self.options.stride,
        }

    def metrics(self, payload: Texts) -> tuple[Metric, ...]:
        """PPPL per token and per word and bits per character of each mode, the main one first."""
        names = [f"{name}_{mode}" for mode in self.options.modes for name in NAMES]
        return tuple(metrics.get(name) for name in dict.fromkeys([self.spec.main_score or names[0], *names]))

    def collect(self, payload: Texts, system: LanguageModel, progress: Progress) -> Collected:
        """One row per text."""
        room = system.room
        stride = self.options.stride or max(1, (room or 2) // 2)
        if room is not None and stride > room:
            raise EvaluationError(f"A stride of {stride} leaves out tokens: {system.spec.label} takes {room} at once.")
        began = time.perf_counter()
        n = len(payload)
        counts = np.zeros((3, n))
        n_unknown = 0
        n_variants = 0
        for row, text in enumerate(system.tokens(payload.texts)):
            counts[:, row] = text.scored.sum(), len(payload.texts[row].split()), len(payload.texts[row])
            n_unknown += text.n_unknown
            n_variants += int(text.scored.sum()) * len(self.options.modes)
        planned = time.perf_counter()
        progress.start("masked tokens", n_variants, "passes")
        sums = {mode: np.zeros(n) for mode in self.options.modes}
        work = Work()
        for rows, texts in self._chunks(payload, system):
            variants: list[str] = []
            owners: list[int] = []
            bounds = [0]
            for mode in self.options.modes:
                for row, text in zip(rows, texts, strict=True):
                    places = pseudo.scored_places(text)
                    variants += pseudo.variants(text, system.frame, mode, places, room=room, stride=stride)
                    owners += [row] * len(places)
                bounds.append(len(variants))
            found = system.score(variants, ids=[payload.ids[row] for row in owners], progress=progress)
            for number, mode in enumerate(self.options.modes):
                part = slice(bounds[number], bounds[number + 1])
                np.add.at(sums[mode], owners[part], found.log_prob[part])
            work += found.work
        progress.finish()
        return Collected(
            records=ItemRecords(
                unit="text",
                ids=payload.ids,
                columns={
                    **{f"pll_{mode}": sums[mode] for mode in self.options.modes},
                    "tokens": counts[0],
                    "words": counts[1],
                    "characters": counts[2],
                },
                slices={"subset": payload.subsets} if payload.subsets else {},
            ),
            counts={"texts": n, "tokens": int(counts[0].sum()), "tokens_unknown": n_unknown, "passes": n_variants},
            warnings=(*system.info.remarks, *_language.unknown(n_unknown, int(counts[0].sum()))),
            phases={"tokenize": planned - began, "encode": time.perf_counter() - planned},
            work=work,
            tokenizer=self.tokenizer,
        )

    def _chunks(self, payload: Texts, system: LanguageModel) -> Iterator[tuple[list[int], list[Text]]]:
        """Texts in tokens with their rows, as many as give about ``VARIANTS_AT_ONCE`` variants."""
        rows: list[int] = []
        texts: list[Text] = []
        size = 0
        for row, text in enumerate(system.tokens(payload.texts)):
            rows.append(row)
            texts.append(text)
            size += len(text) * len(self.options.modes)
            if size >= VARIANTS_AT_ONCE:
                yield rows, texts
                rows, texts, size = [], [], 0
        if rows:
            yield rows, texts


NAMES = ("pppl", "word_pppl", "bits_per_character")


class _PseudoLikelihoodType:
    options = PseudoLikelihoodOptions
    summary = "pseudo-log-likelihood and pseudo-perplexity of texts under a masked language model"
    main_score = "pppl_within_word_l2r"
    needs_vectors = True

    def bind(self, spec: TaskSpec, *, root: Path) -> PseudoLikelihoodTask:
        options = _options.read(PseudoLikelihoodOptions, spec)
        _options.own_split(spec)
        return PseudoLikelihoodTask(spec, _options.data_path(spec, root), options)


TASK = _PseudoLikelihoodType()
