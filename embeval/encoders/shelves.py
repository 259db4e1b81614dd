"""What a cached vector is found again by, and a model that is loaded only once a vector is missing.

The key of a shelf is everything that may change a vector that the model gives: the model's files (revision), backend,
pooling, limit, dtype and options, the prompt's text and the role, the device and how batches are cut, and the versions
of the libraries that compute. What is done to a vector afterwards (``truncate_dim``, ``normalize``, ``quantize``) is
not part of it: it is done again each time, so all cuts of a model share its vectors. Which prompt a task leads to is
not part of it either, only its text: tasks with the same prompt share vectors.
"""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from embeval.core import provenance, strict_json
from embeval.core.protocols import EncoderInfo
from embeval.core.specs import ModelSpec, Role, RuntimeOptions
from embeval.encoders.batching import Rows
from embeval.encoders.cache import Shelf, TokenCounts, VectorCache

FORMAT = 1
"""Raised when what stands on a shelf means something else."""
PACKAGES = (
    "embeval-toolkit",
    "numpy",
    "onnxruntime",
    "onnxruntime-gpu",
    "scipy",
    "sentence-transformers",
    "tokenizers",
    "torch",
    "transformers",
)
"""Packages whose version may move a vector."""
AFTERWARDS = ("truncate_dim", "normalize", "quantize", "rescore", "similarity", "prompts", "prompting")
"""Fields of a model that act after the model, or that the prompt's text and the role stand for."""
COUNTED = "_so_far"
"""End of names in ``EncoderInfo.extra`` that count what this process did."""
THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "CUDA_VISIBLE_DEVICES")
"""Variables that change how a model is run, and so what is said of it."""

_PLAIN = ModelSpec(name="plain")


class Shelves:
    """The shelves of one model, run in one way."""

    def __init__(self, cache: VectorCache, runtime: RuntimeOptions) -> None:
        self.cache = cache
        self._how = {
            "compile": runtime.compile,
            "packages": provenance.installed(PACKAGES),
            "format": FORMAT,
        }

    @property
    def trouble(self) -> str | None:
        """Why nothing is kept, without the folder, since results are passed on; None where all is well."""
        trouble = self.cache.trouble
        return None if trouble is None else trouble.replace(f" {self.cache.folder}", "")

    def shelf(self, spec: ModelSpec, info: EncoderInfo, role: Role, prompt: str) -> Shelf:
        """The vectors of that model for texts in that role with that prompt."""
        made = {
            **_of_model(spec),
            **self._how,
            "device": info.device,
            "provider": info.extra.get("execution_provider", ""),
            "batch_tokens": info.batch_tokens,
            "role": role.value,
            "prompt": prompt,
        }
        model = dataclasses.replace(spec, **{name: getattr(_PLAIN, name) for name in AFTERWARDS})
        description = {"model": model.label, "role": role.value, "prompt": prompt, "dtype": spec.dtype}
        return self.cache.shelf(strict_json.digest(made), description)


def _of_model(spec: ModelSpec) -> dict[str, Any]:
    return {name: value for name, value in dataclasses.asdict(spec).items() if name not in AFTERWARDS}


class Known(Protocol):
    """What a task asks of a backend besides vectors."""

    @property
    def default_prompt_name(self) -> str | None:
        """The prompt that the model declares for texts that are neither query nor document."""

    @property
    def info(self) -> EncoderInfo:
        """What the model is."""


class Loaded(Known, Protocol):
    """A backend, as far as it concerns this file."""

    def prepare(self, texts: Sequence[str], *, prompt: str, role: Role) -> Any:
        """The texts, tokenised."""

    def forward(self, prepared: Any, rows: Rows) -> Any:
        """The vectors of a batch."""


class ChangedModel(Exception):  # noqa: N818 - no error, and never seen outside the encoders
    """The model that was loaded is not what was known of it: another device, another budget."""


class LazyBackend:
    """A backend of which all is known that a finished task asks for; the model is loaded when a text is missing."""

    def __init__(self, known: Mapping[str, Any], load: Callable[[], Loaded], remember: Callable[[Known], None]) -> None:
        self.default_prompt_name: str | None = known["default_prompt_name"]
        self._known = EncoderInfo(**{**known["info"], "remarks": tuple(known["info"]["remarks"])})
        self._load, self._remember = load, remember
        self._loaded: Loaded | None = None
        self.load_s = 0.0
        """Seconds that loading took."""

    @property
    def info(self) -> EncoderInfo:
        """What the model is, or was when it was last loaded."""
        if self._loaded is None:
            return self._known
        return dataclasses.replace(self._loaded.info, batch_tokens=self._known.batch_tokens)

    def prepare(self, texts: Sequence[str], *, prompt: str, role: Role) -> Any:
        """The texts, tokenised by the model, which is loaded first. Raises ``ChangedModel``."""
        if self._loaded is None:
            began = time.perf_counter()
            before, loaded = known_of(self), self._load()
            self.load_s = time.perf_counter() - began
            # The budget stays what it was: on a GPU it was measured, and a measurement is never quite the same.
            if loaded.info.device != self._known.device:
                self._known = dataclasses.replace(self._known, batch_tokens=loaded.info.batch_tokens)
            self._loaded, self.default_prompt_name = loaded, loaded.default_prompt_name
            if known_of(self) != before:
                self._remember(self)
                raise ChangedModel
        return self._loaded.prepare(texts, prompt=prompt, role=role)

    def forward(self, prepared: Any, rows: Rows) -> Any:
        """The vectors of a batch."""
        assert self._loaded is not None
        return self._loaded.forward(prepared, rows)


def known_of(backend: Known) -> dict[str, Any]:
    """What is to be known of a backend without loading it, as JSON."""
    return {"info": _as_json(backend.info), "default_prompt_name": backend.default_prompt_name}


def _as_json(info: EncoderInfo) -> Any:
    lasting = {name: text for name, text in info.extra.items() if not name.endswith(COUNTED)}
    return strict_json.loads(strict_json.canonical(dataclasses.asdict(dataclasses.replace(info, extra=lasting))))


def code_elsewhere(folder: Path) -> bool:
    """Whether a model runs code of another repository: its revision then says nothing of that code."""
    for file in folder.rglob("*config*.json"):
        try:
            named = strict_json.loads(file.read_bytes()).get("auto_map") or {}
        except (OSError, ValueError, AttributeError):
            continue  # told where the file is read for what it says
        if any("--" in str(each) for each in (named.values() if isinstance(named, dict) else ())):
            return True
    return False


def note_key(spec: ModelSpec, runtime: RuntimeOptions) -> str:
    """Under which what is known of a model is kept: everything that it may hang on."""
    return strict_json.digest(
        {
            "spec": dataclasses.asdict(spec),
            "runtime": dataclasses.asdict(runtime),
            "packages": provenance.installed(PACKAGES),
            "cpus": provenance.n_cpus(),
            "variables": {name: os.environ.get(name) for name in THREAD_VARIABLES},
            "format": FORMAT,
        }
    )


def selected(counts: TokenCounts, rows: Any) -> TokenCounts:
    """Some of the counts."""
    return TokenCounts(
        lengths=counts.lengths[rows],
        lost=None if counts.lost is None else counts.lost[rows],
        unknown=None if counts.unknown is None else counts.unknown[rows],
        keys=counts.keys[rows],
    )


def joined(parts: Sequence[TokenCounts]) -> TokenCounts:
    """The counts one after another."""
    lost = [part.lost for part in parts]
    unknown = [part.unknown for part in parts]
    return TokenCounts(
        lengths=np.concatenate([part.lengths for part in parts]),
        lost=None if any(each is None for each in lost) else np.concatenate([e for e in lost if e is not None]),
        unknown=None
        if any(each is None for each in unknown)
        else np.concatenate([e for e in unknown if e is not None]),
        keys=np.concatenate([part.keys for part in parts]),
    )
