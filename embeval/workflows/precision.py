"""The fastest number format in which a model still gives nearly the vectors of float32."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import get_args

from embeval.core import strict_json
from embeval.core.protocols import Encoder
from embeval.core.specs import Dtype, ModelSpec, Role, RuntimeOptions
from embeval.encoders import loading, shelves
from embeval.encoders.cache import VectorCache
from embeval.encoders.parity import BOUNDS, Parity
from embeval.errors import ConfigError, EmbevalError, InvalidEmbeddingsError, ModelError
from embeval.workflows import trials
from embeval.workflows.samples import Sample
from embeval.workflows.trials import Trial

AUTO = "auto"
SHORT: dict[str, Dtype] = {"fp32": "float32", "bf16": "bfloat16", "fp16": "float16"}
"""What people call them."""
BOUND = BOUNDS["bfloat16"]
"""What ``auto`` asks of any format: a choice made without looking must not move a score that anyone can see."""
FASTER = 1.05
"""How much faster than float32 a format must be to be chosen."""


@dataclass(frozen=True)
class Choice:
    """What was chosen for a model."""

    spec: ModelSpec
    """The model in the chosen format."""
    trials: tuple[Trial, ...] = ()
    """What was tried; empty where nothing was."""
    left_out: tuple[str, ...] = ()
    """Formats that can't be run, with the reason."""
    remembered: bool = False
    """Whether it was chosen in an earlier run on this machine."""

    @property
    def sentence(self) -> str:
        """What was chosen and why, in words."""
        name = f"{replace(self.spec, dtype='float32').label}: {self.spec.dtype}"
        if self.remembered:
            return f"{name}, as found before on this machine"
        if not self.trials:
            return f"{name}, where there was nothing to choose"
        speeds = {trial.name: trial.tokens_per_s for trial in self.trials}
        chosen = next(trial for trial in self.trials if trial.name == self.spec.dtype)
        if self.spec.dtype == "float32":
            failed = [f"{trial.name} {trial.problems[0]}" for trial in self.trials if trial.problems]
            why = "; ".join([*failed, *self.left_out]) or "no other is faster"
            return f"{name} ({why})"
        assert isinstance(chosen.parity, Parity)
        return (
            f"{name}, {speeds[self.spec.dtype] / speeds['float32']:.1f} times as fast as float32, at a cosine of at "
            f"least {chosen.parity.cosine_min:.5f} and {chosen.parity.top_10_overlap:.1%} of the neighbours"
        )


def parse(word: str) -> Dtype | None:
    """The number format that a word of the command line means; None for ``auto``. Raises ``ConfigError``."""
    if word == AUTO:
        return None
    dtype = SHORT.get(word, word)
    if dtype not in get_args(Dtype):
        raise ConfigError(f"precision must be {', '.join([*SHORT, 'int8', AUTO])}, not {word!r}.")
    return dtype  # type: ignore[return-value]


def choose(spec: ModelSpec, runtime: RuntimeOptions, sample: Sample, cache: VectorCache | None) -> Choice:
    """The fastest format of those that the model's backend has.

    Remembered in the cache, so that a run started again finds its own results. Raises ``ModelError`` where the model
    can't be run in float32.
    """
    located = loading.resolve(spec)
    formats = loading.BACKENDS.get(spec.backend).dtypes
    if len(formats) < 2:
        return Choice(spec)
    key = strict_json.digest(["precision", shelves.note_key(located.spec, runtime), list(sample.texts)])
    note = cache.note(key) if cache is not None else None
    for dtype in formats:
        if note == dtype.encode():
            return Choice(replace(spec, dtype=dtype), remembered=True)
    encoders: dict[Dtype, Encoder] = {}
    left_out: list[str] = []
    for dtype in formats:
        if dtype == "float16" and encoders["float32"].info.device == "cpu":
            continue  # CPUs have no units for it: it is many times slower, and overflows besides
        try:
            encoders[dtype] = loading.load(loading.resolve(replace(spec, dtype=dtype)), runtime)
        except (ModelError, ConfigError) as error:
            if dtype == "float32":
                raise
            left_out.append(f"{dtype}: {str(error).splitlines()[0]}")
    found = _tried(encoders, left_out, sample)
    reference = found[0]
    good = [trial for trial in found[1:] if trial.passes and trial.tokens_per_s > FASTER * reference.tokens_per_s]
    best = max(good, key=lambda trial: trial.tokens_per_s, default=reference)
    chosen = replace(spec, dtype=best.name)  # type: ignore[arg-type]
    if cache is not None:
        cache.put_note(key, best.name.encode())
    return Choice(chosen, tuple(found), tuple(left_out))


def _tried(encoders: dict[Dtype, Encoder], left_out: list[str], sample: Sample) -> list[Trial]:
    """Trials of all formats that give vectors at all."""
    working = {}
    for dtype, encoder in encoders.items():
        try:
            encoder.encode(sample.texts[: trials.WARM_UP], role=Role.DOCUMENT)
        except (InvalidEmbeddingsError, ModelError) as error:
            if dtype == "float32":
                raise
            left_out.append(f"{dtype}: {str(error).splitlines()[0]}")
            continue
        working[dtype] = encoder
    return trials.run({str(dtype): each for dtype, each in working.items()}, dict.fromkeys(working, BOUND), sample)


def applied(
    specs: Sequence[ModelSpec], word: str, runtime: RuntimeOptions, sample: Sample | None, cache: VectorCache | None
) -> list[Choice]:
    """Each model in the precision that a word means; models that state a dtype of their own keep it."""
    dtype = parse(word)
    choices = []
    for spec in specs:
        if spec.dtype != "float32" or "float32" not in loading.BACKENDS.get(spec.backend).dtypes:
            choices.append(Choice(spec))
        elif dtype is not None:
            formats = loading.BACKENDS.get(spec.backend).dtypes
            choices.append(Choice(replace(spec, dtype=dtype) if len(formats) > 1 else spec))
        else:
            assert sample is not None
            try:
                choices.append(choose(spec, runtime, sample, cache))
            except EmbevalError:
                choices.append(Choice(spec))  # told when the model's turn comes
    return choices
