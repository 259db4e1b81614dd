"""``replaced_tokens``: how well a discriminator tells tokens that were replaced, as ELECTRA is trained to do.

Some tokens of each text are replaced, at random or by a draw from a generator, and the model says of every token
whether it was. One item is a text; its sums are over its tokens and over all draws. Its loss is the binary
cross-entropy per token, and no loss of a masked language model.

Source: Clark, Luong, Le & Manning, ICLR 2020, who train with a generator and 15 % of the tokens; a token that a
generator guesses right counts as kept.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

import numpy as np

from embeval.core import strict_json
from embeval.core.border import BORDER
from embeval.core.embeddings import Work
from embeval.core.progress import Progress
from embeval.core.protocols import Collected, System
from embeval.core.protocols import LanguageModelKind as Kind
from embeval.core.specs import Dtype, ModelSpec, RuntimeOptions, Scalar, TaskSpec
from embeval.data.texts import TextColumns, Texts, TextUnit
from embeval.encoders import loading as encoders
from embeval.encoders.locate import Located
from embeval.errors import ConfigError, EvaluationError, ModelError
from embeval.language_models import kinds, loading, replacement
from embeval.language_models.model import LanguageModel, Scores
from embeval.language_models.replacement import Choice
from embeval.language_models.tokenization import Text
from embeval.language_models.variants import Ids
from embeval.tasks import _language, _options
from embeval.tasks._language import TextsTask

VERSION = 1
"""Raised when the same texts and models give another number."""
TOKENS_AT_ONCE = 262_144
"""Tokens of texts that are planned together: enough that batches are full, few enough to fit into memory."""
NAMES = ("rtd_loss", "rtd_accuracy", "rtd_recall")
COLUMNS = ("rtd_nats", "rtd_tokens", "rtd_correct", "rtd_replaced", "rtd_replaced_correct")


@dataclass(frozen=True, kw_only=True)
class GeneratorOptions:
    """A masked language model that proposes tokens."""

    __pydantic_config__ = BORDER

    model: str
    """Hub name or folder of the generator."""
    backend: str = "sentence_transformers"
    """Encoder backend by which it is found; its head runs with it."""
    dtype: Dtype = "float32"
    """Number format of its body."""
    max_seq_length: int | None = None
    """Tokens that it sees at once; null: as the model declares."""
    revision: str | None = None
    """Commit or ``sha256:…`` that the model must be."""
    args: Mapping[str, Scalar] = field(default_factory=dict)
    """Options of the backend."""

    @property
    def spec(self) -> ModelSpec:
        """The generator."""
        return ModelSpec(
            name=self.model,
            backend=self.backend,
            revision=self.revision,
            max_seq_length=self.max_seq_length,
            dtype=self.dtype,
            args=self.args,
        )


@dataclass(frozen=True, kw_only=True)
class ReplacedTokensOptions:
    """Options of a replaced-tokens task. Those that can change a number are part of the signature."""

    __pydantic_config__ = BORDER

    probability: float = 0.15
    """With which each token is chosen to be replaced."""
    seed: int = 0
    """Of the choice and of what replaces a token."""
    draws: int = 1
    """How often each text is drawn anew; more make the error smaller."""
    generator: GeneratorOptions | str | None = None
    """A masked language model with the same tokenizer that proposes tokens: its name, or its settings. Null: any
    entry of the vocabulary that is no special token."""
    unit: TextUnit = "line"
    """What is one text of a plain text file: `line`, `paragraph` or `file`."""
    columns: TextColumns = field(default_factory=TextColumns)
    """Names of the columns `text`, `id` and `subset`, where a table has others."""

    def __post_init__(self) -> None:
        if not 0 < self.probability <= 1:
            raise ValueError(f"probability must be above 0 and at most 1, not {self.probability}")
        if self.draws < 1:
            raise ValueError(f"draws must be at least 1, not {self.draws}")
        if self.seed < 0:
            raise ValueError(f"seed must be at least 0, not {self.seed}")


@dataclass(frozen=True)
class ReplacedTokensTask(TextsTask):
    """Replaced tokens of the texts of one file."""

    kind: Kind = "replaced"
    generator: Located | None = None
    """The generator with its revision, not yet loaded."""
    runtime: RuntimeOptions = field(default_factory=RuntimeOptions)
    """How the generator is run."""

    kinds = ("replaced",)

    def fitted(self, kind: str, tokenizer: str | None, model: ModelSpec) -> Self:
        """The task for a discriminator. Raises ``EvaluationError`` for other models, and other generators than its."""
        fitted = super().fitted(kind, tokenizer, model)
        if self.generator is not None:
            own, cut = loading.known_of(self.generator)
            label = self.generator.spec.label
            if own != "masked":
                raise EvaluationError(
                    f"{label} can't be the generator of the task {self.spec.name!r}, which guesses words under a "
                    f"mask: {kinds.WHY_NOT[own]}."
                )
            if cut is None or cut != tokenizer:
                raise EvaluationError(
                    f"{label} can't be the generator of the task {self.spec.name!r} for {model.label}: they have two "
                    "tokenizers.\nGive the generator that the model was trained with, or leave it out: tokens are "
                    "then replaced at random."
                )
        return fitted

    def equipped(self, runtime: RuntimeOptions, cache: Any, fresh: Callable[[], System]) -> Self:
        """The task with how models are run."""
        return replace(self, runtime=runtime)

    def protocol(self, payload: Texts) -> dict[str, strict_json.Json]:
        """Everything besides the model that can change a number."""
        return {
            "type": "replaced_tokens",
            "type_version": VERSION,
            "task_version": self.spec.version,
            "data": payload.data_hash,
            "split": self.spec.dataset.split,
            "probability": self.options.probability,
            "seed": self.options.seed,
            "draws": self.options.draws,
            "generator": None if self.generator is None else self.generator.spec.digest,
        }

    @property
    def metric_names(self) -> tuple[str, ...]:
        """Loss, accuracy and recall of replaced tokens."""
        return NAMES

    def collect(self, payload: Texts, system: LanguageModel, progress: Progress) -> Collected:
        """One row per text."""
        began = time.perf_counter()
        generator = None if self.generator is None else loading.load(self.generator, "masked", self.runtime)
        n_content, n_unknown = _counted(payload, system)
        planned = time.perf_counter()
        progress.start("tokens", n_content * self.options.draws, "tokens")
        tally = _Tally(len(payload))
        for rows, texts in self._chunks(payload, system):
            for draw in range(self.options.draws):
                before = time.perf_counter()
                choices = [self._choice(payload.texts[row], text, draw) for row, text in zip(rows, texts, strict=True)]
                filled = _filled(system, generator, texts, choices)
                variants, owners = tally.planned(rows, texts, choices, filled, system)
                tally.replacing_s += time.perf_counter() - before
                ids = [payload.ids[row] for row in owners]
                tally.add(owners, system.score(variants, ids=ids, progress=progress))
        progress.finish()
        n_replaced = int(tally.sums["rtd_replaced"].sum())
        if not n_replaced:
            raise EvaluationError(
                f"Task {self.spec.name!r}: none of {n_content} tokens was replaced, so nothing is there to be told.\n"
                "Raise probability or draws, or give more text."
            )
        scored_s = time.perf_counter() - planned - tally.replacing_s
        return Collected(
            records=_language.text_records(payload, tally.sums),
            counts={
                "texts": len(payload),
                "tokens": n_content,
                "tokens_unknown": n_unknown,
                "tokens_chosen": tally.n_chosen,
                "tokens_replaced": n_replaced,
                "passes": tally.n_passes,
            },
            warnings=(*system.info.remarks, *_language.unknown(n_unknown, n_content)),
            phases={"tokenize": planned - began, "replace": tally.replacing_s, "encode": scored_s},
            work=tally.work,
            tokenizer=self.tokenizer,
        )

    def _choice(self, text: str, tokens: Text, draw: int) -> Choice:
        options = self.options
        return replacement.choose(text, tokens, probability=options.probability, seed=options.seed, draw=draw)

    def _chunks(self, payload: Texts, system: LanguageModel) -> Iterator[tuple[list[int], list[Text]]]:
        """Texts in tokens with their rows, as many as have about ``TOKENS_AT_ONCE`` tokens."""
        rows: list[int] = []
        texts: list[Text] = []
        size = 0
        for row, text in enumerate(system.tokens(payload.texts)):
            rows.append(row)
            texts.append(text)
            size += len(text)
            if size >= TOKENS_AT_ONCE:
                yield rows, texts
                rows, texts, size = [], [], 0
        if rows:
            yield rows, texts


class _Tally:
    """Sums per text, and what it took."""

    def __init__(self, n: int) -> None:
        self.sums = {name: np.zeros(n) for name in COLUMNS}
        self.n_chosen = self.n_passes = 0
        self.replacing_s = 0.0
        self.work = Work()

    def planned(
        self, rows: list[int], texts: list[Text], choices: list[Choice], filled: list[Ids], system: LanguageModel
    ) -> tuple[list[str], list[int]]:
        """(variants of these texts, row of the text of each); what is replaced in them is counted."""
        variants: list[str] = []
        owners: list[int] = []
        for row, text, choice, ids in zip(rows, texts, choices, filled, strict=True):
            self.n_chosen += len(ids)
            self.sums["rtd_tokens"][row] += text.scored.sum()
            for variant, n_replaced in replacement.variants(text, system.frame, choice, ids, room=system.room):
                variants.append(variant)
                owners.append(row)
                self.sums["rtd_replaced"][row] += n_replaced
        return variants, owners

    def add(self, owners: list[int], found: Scores) -> None:
        """Adds what the model said of variants to the sums of their texts."""
        np.add.at(self.sums["rtd_nats"], owners, -found.log_prob)
        np.add.at(self.sums["rtd_correct"], owners, found.hits_1)
        np.add.at(self.sums["rtd_replaced_correct"], owners, found.hits_5)
        self.n_passes += len(owners)
        self.work += found.work


def _counted(payload: Texts, system: LanguageModel) -> tuple[int, int]:
    """(content tokens, unknown ones among them) of all texts."""
    n_content = n_unknown = 0
    for text in system.tokens(payload.texts):
        n_content += int(text.scored.sum())
        n_unknown += text.n_unknown
    return n_content, n_unknown


def _filled(
    system: LanguageModel, generator: LanguageModel | None, texts: list[Text], choices: list[Choice]
) -> list[Ids]:
    """What each chosen token becomes, per text."""
    if generator is not None:
        return replacement.by_generator(generator, texts, choices)
    return [replacement.at_random(choice, system.frame.words) for choice in choices]


def _find(given: GeneratorOptions | str | None, spec: TaskSpec, *, root: Path) -> Located | None:
    """The generator that the option asks for; a folder is looked up under ``root``.

    Raises ``ConfigError`` or ``ModelError``, before anything runs, where there is no such model.
    """
    if given is None:
        return None
    options = GeneratorOptions(model=given) if isinstance(given, str) else given
    options = replace(options, model=_options.model_name(options.model, root))
    try:
        return encoders.resolve(options.spec)
    except ConfigError as error:
        raise ConfigError(f"Task {spec.name!r}, generator: {error}", key=("generator", *error.key)) from None
    except ModelError as error:
        raise ModelError(f"Task {spec.name!r}, generator: {error}") from None


class _ReplacedTokensType:
    options = ReplacedTokensOptions
    summary = "telling replaced tokens from kept ones, of ELECTRA's discriminator"
    main_score = "rtd_loss"
    needs_vectors = True

    def ruler(self, options: Mapping[str, Any]) -> str:
        """What is put behind the name of a file."""
        return "rtd"

    def bind(self, spec: TaskSpec, *, root: Path) -> ReplacedTokensTask:
        options = _options.read(ReplacedTokensOptions, spec)
        _options.own_split(spec)
        _options.check_main_score(spec, NAMES)
        generator = _find(options.generator, spec, root=root)
        return ReplacedTokensTask(spec, _options.data_path(spec, root), options, generator=generator)


TASK = _ReplacedTokensType()
