"""What the folder of a cross-encoder says of itself.

Source: ``config.json`` of transformers, and the files beside it that sentence-transformers 6.2 ``CrossEncoder`` writes.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from embeval.core.specs import ModelSpec
from embeval.encoders import modules
from embeval.errors import ModelError


@dataclass(frozen=True)
class Declared:
    """A cross-encoder before it is loaded."""

    transformer: Path
    """Folder of its configuration, weights and tokenizer."""
    max_seq_length: int | None
    """Tokens of a pair that it is meant for, where it says so besides its tokenizer."""
    labels: dict[int, str]
    """Names of its outputs."""


def read(folder: Path, spec: ModelSpec) -> Declared:
    """What is to be known. Raises ``ModelError`` for a model that scores no pairs, or in a way not known here."""
    transformer = modules.transformer_folder(folder, spec)
    _refuse_more_modules(folder, spec.name)
    config = modules.json_object(transformer / "config.json")
    if not modules.is_classifier(config):
        architectures = ", ".join(map(str, config.get("architectures") or ["no architecture"]))
        raise ModelError(
            f"Model {spec.name!r} is no cross-encoder: its config.json says {architectures}, "
            f"and not …{modules.CLASSIFIER}.\n"
            "Only a model with a head that scores pairs of texts can rerank."
        )
    limit = None
    if (file := transformer / "sentence_bert_config.json").is_file():
        settings = modules.json_object(file)
        limit = modules.whole_number(settings, "max_seq_length", file, least=1)
        if settings.get("do_lower_case"):
            raise ModelError(f"Model {spec.name!r} lower-cases texts before its tokenizer, which is not done here.")
    return Declared(transformer, limit, _labels(config))


def _refuse_more_modules(folder: Path, name: str) -> None:
    listed = folder / "modules.json"
    if listed.is_file() and (n := len(modules.listed(folder, name))) > 1:
        raise ModelError(
            f"Model {name!r} has {n} modules (modules.json); a cross-encoder of one transformer is wanted."
        )
    settings = folder / "config_sentence_transformers.json"
    if settings.is_file() and modules.json_object(settings).get("default_prompt_name"):
        raise ModelError(f"Model {name!r} declares a prompt for its pairs, which is not put before them here.")


def _labels(config: dict[str, Any]) -> dict[int, str]:
    declared = config.get("id2label")
    if not isinstance(declared, dict):
        return {}
    return {int(number): str(name) for number, name in declared.items() if str(number).isdecimal()}
