"""What people choose a model by, from its files and what it says of itself once loaded."""

from __future__ import annotations

from pathlib import Path

from embeval.core.facts import ModelFacts
from embeval.core.protocols import EncoderInfo
from embeval.core.specs import Dtype
from embeval.encoders import card
from embeval.encoders.locate import Located

BYTES: dict[Dtype, int] = {"float32": 4, "bfloat16": 2, "float16": 2, "int8": 1}
"""Bytes of a parameter."""
GRAPH = "graph"
"""Where ``EncoderInfo.extra`` names the file of an exported model."""


def of(located: Located, info: EncoderInfo) -> ModelFacts:
    """The facts of a model; what its makers declare comes from its card, where it has one."""
    folder = located.folder
    readme = None if folder is None else folder / "README.md"
    return ModelFacts(
        parameters=info.n_parameters,
        dimensions=info.dim,
        max_tokens=info.max_seq_length,
        weight_bytes=_weight_bytes(located, info),
        languages=() if readme is None else card.languages(readme),
        license=None if readme is None else card.license_of(readme),
    )


def _weight_bytes(located: Located, info: EncoderInfo) -> int | None:
    """Of an exported model its graph with what lies beside it; else its parameters in their number format."""
    if located.folder is not None and (name := info.extra.get(GRAPH)) is not None:
        return sum(file.stat().st_size for file in _files(located.folder, name))
    if info.n_parameters is None:
        return None
    return info.n_parameters * BYTES[located.spec.dtype]


def _files(folder: Path, name: str) -> list[Path]:
    found = [file for file in folder.rglob("*") if file.is_file() and file.name in (name, f"{name}.data")]
    return sorted(found)
