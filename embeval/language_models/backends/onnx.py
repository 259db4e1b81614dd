"""``onnx``: an exported language model in our own onnxruntime session, on CPU, CUDA or TensorRT.

``embeval export MODEL --lm-head`` writes a graph that is asked at chosen places only. Graphs of optimum, which give
``logits`` of all tokens at all places (``optimum-cli export onnx --task fill-mask``), run too, slower: a batch's scores
are as many as its tokens times the vocabulary.

Which graph of a folder runs hangs on ``dtype``, or on ``args.file``, as in the encoder backend of that name.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from embeval.core.protocols import LanguageModelKind as Kind
from embeval.core.specs import RuntimeOptions
from embeval.encoders import modules
from embeval.encoders.backends import onnx
from embeval.encoders.backends.onnx import EXPORT_FILE, KIND
from embeval.encoders.locate import Located
from embeval.encoders.onnx_session import Session
from embeval.errors import ConfigError, ModelError
from embeval.language_models import kinds
from embeval.language_models.model import COLUMNS, VariantBackend, info_of

SCORES, LOGITS = "scores", "logits"
"""Outputs of graphs: our own, and those of other exporters."""
VOCABULARY = "vocabulary"
"""The key of ``EXPORT_FILE`` that tells for how many tokens a graph has scores."""
SCORES_AT_ONCE = 64_000_000
"""Scores of tokens that one run of a graph may make: 256 MB. A batch with more is run in parts."""
Ids = npt.NDArray[np.int64]
Places = npt.NDArray[np.intp]
Features = dict[str, Ids]
Floats = npt.NDArray[np.float32]


class _Backend:
    runs = ("onnx",)

    def kind(self, located: Located) -> str:
        assert located.folder is not None
        folder = modules.transformer_folder(located.folder, located.spec)
        about = onnx.noted(folder)
        if not about:
            return kinds.kind_of(located.spec, located.folder)
        kind = about.get(KIND, "headless")
        if kind not in ("masked", "causal", "replaced", "headless"):
            raise ModelError(f"Model {located.spec.name!r}: {folder / EXPORT_FILE} has an unknown kind {kind!r}.")
        return str(kind)

    def load(self, located: Located, kind: Kind, runtime: RuntimeOptions, *, pad_id: int) -> VariantBackend:
        scorer = _Scorer(located, kind, runtime)
        return VariantBackend(scorer.info, kind, scorer, pad_id=pad_id)


BACKEND = _Backend()


class _Scorer:
    def __init__(self, located: Located, kind: Kind, runtime: RuntimeOptions) -> None:
        assert located.folder is not None
        spec = located.spec
        if runtime.compile:
            raise ConfigError("The backend 'onnx' has nothing to compile; leave --compile out.")
        self._name, self._kind = spec.name, kind
        folder = modules.transformer_folder(located.folder, spec)
        file = onnx.graph_file(located.folder, spec)
        provider = spec.args.get("provider")
        about = onnx.noted(folder)
        self._asks = KIND in about
        self._session = session = Session(
            file,
            runtime,
            provider=None if provider is None else str(provider),
            name=spec.name,
            output=SCORES if self._asks else LOGITS,
            advice="It has no language-model head. 'embeval export MODEL --lm-head' makes a graph that has one.",
        )
        if self._asks:
            width = modules.whole_number(about, VOCABULARY, folder / EXPORT_FILE, least=1) or 1
        else:
            width = self._logits(dict.fromkeys(("input_ids", "attention_mask"), np.ones((1, 1), np.int64))).shape[-1]
        self._most = max(1, SCORES_AT_ONCE // width)
        on_cpu = session.device == "cpu"
        self.info = info_of(
            device=session.device,
            num_threads=session.num_threads if on_cpu else None,
            batch_tokens=runtime.budget_or(onnx.CPU_BATCH_TOKENS if on_cpu else onnx.GPU_BATCH_TOKENS),
            extra={"execution_provider": session.provider, "graph": file.name},
        )

    def __call__(self, features: Features, rows: Places, places: Places, targets: Ids) -> Floats:
        n_texts, longest = features["input_ids"].shape
        sizes = np.bincount(rows, minlength=n_texts) if self._asks else np.full(n_texts, longest)
        found = np.zeros((len(targets), COLUMNS), dtype=np.float32)
        for part in _parts(sizes, self._most):
            asked = (rows >= part.start) & (rows < part.stop)
            if asked.any():
                texts = {name: array[part] for name, array in features.items()}
                found[asked] = self._scored(texts, rows[asked] - part.start, places[asked], targets[asked])
        return found

    def _scored(self, texts: Features, rows: Places, places: Places, targets: Ids) -> Floats:
        if self._asks:
            asked = {"rows": rows.astype(np.int64), "places": places.astype(np.int64), "targets": targets}
            found: Floats = self._session.run({**texts, **asked}).astype(np.float32, copy=False)
            return found
        logits = self._logits(texts)[rows, places - 1 if self._kind == "causal" else places]
        if self._kind == "replaced":
            logits = np.stack([np.zeros_like(logits), logits], axis=1)
        return _scores(logits, targets)

    def _logits(self, texts: Features) -> Floats:
        """float32 [B, T, V] of all tokens at all places; [B, T] of a discriminator."""
        found: Floats = self._session.run(texts).astype(np.float32, copy=False)
        shape = texts["input_ids"].shape
        if found.shape[:2] != shape or found.ndim != (2 if self._kind == "replaced" else 3):
            raise ModelError(
                f"Model {self._name!r}: its graph gives {LOGITS} of shape {list(found.shape)} for {shape[0]} texts of "
                f"{shape[1]} tokens, which are no scores of tokens."
            )
        return found


def _parts(sizes: npt.NDArray[np.integer[Any]], most: int) -> Iterator[slice]:
    """Texts one after another, in parts whose sizes add up to ``most`` at most, or of one text."""
    ends, start = np.cumsum(sizes), 0
    while start < len(sizes):
        before = int(ends[start - 1]) if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, before + most, side="right")))
        yield slice(start, stop)
        start = stop


def _scores(logits: Floats, targets: Ids) -> Floats:
    """float32 [M, 3] of ``TokenScorer`` from scores [M, V]."""
    own = np.take_along_axis(logits, targets[:, None], axis=1)
    largest = logits.max(axis=1, keepdims=True)
    log_prob = (own - largest)[:, 0] - np.log(np.exp(logits - largest).sum(axis=1))
    return np.stack([log_prob, (logits > own).sum(axis=1), (logits == own).sum(axis=1)], axis=1, dtype=np.float32)
