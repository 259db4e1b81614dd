"""What a model is and what it takes: dimensions, limits, size, and the time and space for a corpus."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from embeval.core.facts import ModelFacts
from embeval.core.protocols import Encoder
from embeval.core.quantization import bytes_per_vector
from embeval.core.specs import ModelSpec, Quantization, Role, RuntimeOptions
from embeval.encoders import facts, loading
from embeval.encoders.facts import BYTES
from embeval.workflows.samples import Sample

STORED: tuple[Quantization | None, ...] = (None, "int8", "binary")


@dataclass(frozen=True)
class Facts:
    """A loaded model and the files it came from."""

    encoder: Encoder
    """The model."""
    disk_bytes: int
    """All files of its folder."""
    known: ModelFacts
    """What its results say of it as well."""

    @property
    def memory_bytes(self) -> dict[str, int]:
        """Bytes of its weights in each number format; empty where their number is not known."""
        n = self.known.parameters
        return {} if not n else {dtype: n * size for dtype, size in BYTES.items()}

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        info = self.encoder.info
        return {
            "dimensions": self.known.dimensions,
            "max_seq_length": self.known.max_tokens,
            "pooling": info.pooling,
            "similarity": info.similarity,
            "prompts": dict(info.prompts),
            "languages": list(self.known.languages),
            "license": self.known.license,
            "parameters": self.known.parameters,
            "disk_bytes": self.disk_bytes,
            "weight_bytes": self.known.weight_bytes,
            "memory_bytes": self.memory_bytes,
            "device": info.device,
            "batch_tokens": info.batch_tokens,
            "remarks": list(info.remarks),
        }


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """What a corpus takes."""

    n_documents: int
    """Documents."""
    documents_per_s: float
    """As measured on the sample, on this machine."""
    tokens_per_document: float | None
    """Of the sample, after truncation."""
    hours: float
    """To encode them all, on this machine."""
    vector_bytes: dict[str, int]
    """What their vectors take as float32, int8 and binary, without an index around them."""


def look(spec: ModelSpec, runtime: RuntimeOptions) -> Facts:
    """Loads a model. Raises ``ModelError``."""
    located = loading.resolve(spec)
    encoder = loading.load(located, runtime)
    folder = located.folder
    files = [] if folder is None else [folder] if folder.is_file() else [*folder.rglob("*")]
    size = sum(file.stat().st_size for file in files if file.is_file())
    return Facts(encoder, size, facts.of(located, encoder.info))


def estimate(encoder: Encoder, n_documents: int, sample: Sample) -> Estimate:
    """Encodes the sample and multiplies; documents of another length take another time."""
    encoder.encode(sample.texts[:8], role=Role.DOCUMENT)
    began = time.perf_counter()
    counts = encoder.encode(sample.texts, role=Role.DOCUMENT).counts
    speed = len(sample.texts) / (time.perf_counter() - began)
    return Estimate(
        n_documents=n_documents,
        documents_per_s=round(speed, 1),
        tokens_per_document=None if not counts.tokens_kept else round(counts.tokens_kept / len(sample.texts), 1),
        hours=n_documents / speed / 3600,
        vector_bytes={kind or "float32": n_documents * bytes_per_vector(encoder.info.dim, kind) for kind in STORED},
    )
