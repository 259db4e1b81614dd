"""What mteb knows of a model besides its scores, from its list of models and from files of its results."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from embeval.core.facts import ModelFacts
from embeval.core.specs import ModelSpec
from embeval.mteb_bridge import contamination

MIB = 1 << 20
"""What mteb counts memory in, though it writes MB."""
OF_SETTINGS = ("embed_dim", "max_tokens", "memory_usage_mb")
"""What another way of running a model changes."""


def of(model: ModelSpec) -> ModelFacts:
    """What mteb's list of models says of a resolved model; nothing of one that it doesn't list, or only a folder.

    Of a model that was run in another way than usual, only what doesn't hang on that. Source: ``mteb.ModelMeta``.
    """
    meta = contamination.declared(model)
    if meta is None:
        return ModelFacts()
    told = {name: getattr(meta, name) for name in ("n_parameters", "license", "languages", *OF_SETTINGS)}
    return declared({name: value for name, value in told.items() if not (model.args and name in OF_SETTINGS)})


def declared(meta: Mapping[str, Any]) -> ModelFacts:
    """The facts in fields of a ``ModelMeta``, as a ``model_meta.json`` holds them too; what can't be read is left out.

    Of a range of dimensions the largest. Memory is rounded to MiB there.
    """
    memory = _number(meta.get("memory_usage_mb"))
    dimensions = meta.get("embed_dim")
    numbers = dimensions if isinstance(dimensions, list | tuple) else [dimensions]
    sizes = [size for each in numbers if (size := _whole(each)) is not None]
    languages = meta.get("languages")
    license_of = meta.get("license")
    return ModelFacts(
        parameters=_whole(meta.get("n_parameters")),
        dimensions=max(sizes, default=None),
        max_tokens=_whole(meta.get("max_tokens")),
        weight_bytes=None if memory is None else round(memory * MIB),
        languages=tuple(str(each) for each in languages) if isinstance(languages, list | tuple) else (),
        license=str(license_of) if isinstance(license_of, str) and license_of else None,
    )


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value < 0:
        return None
    return float(value)


def _whole(value: Any) -> int | None:
    number = _number(value)
    return None if number is None else int(number)
