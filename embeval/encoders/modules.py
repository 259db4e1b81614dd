"""What comes after the transformer, as the model's own folder says, in numpy: pooling, dense layers, normalisation.

For backends that run the transformer without sentence-transformers. Nothing is guessed: a folder that says nothing of
pooling needs it from the user, and a module that is not known here is refused.

Source: sentence-transformers 6.2 ``modules.json`` and the configurations of ``Pooling``, ``Dense``, ``Normalize``,
older names of their keys included.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import numpy as np
import numpy.typing as npt

from embeval.core.embeddings import Vectors, unit
from embeval.core.specs import ModelSpec, SimilarityName
from embeval.encoders.pooling import LIBRARY_NAMES, POOLING
from embeval.errors import ConfigError, ModelError

Floats = npt.NDArray[np.float32]

OLD_POOLING_KEYS = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}
"""Keys of older ``Pooling`` configurations, in the order in which the library concatenates."""
ACTIVATIONS: Mapping[str, Callable[[Floats], Floats]] = {
    "Identity": lambda x: x,
    "Tanh": np.tanh,
    "ReLU": lambda x: np.maximum(x, np.float32(0.0)),
    "Sigmoid": lambda x: np.float32(1.0) / (np.float32(1.0) + np.exp(-x)),
}
"""Activations of ``Dense``, by the last part of torch's name."""


CLASSIFIER = "ForSequenceClassification"
"""End of the names of architectures of transformers that score a text, or two, as a whole."""


@dataclass(frozen=True)
class Dense:
    """A linear layer and its activation."""

    weight: Floats
    """float32 [out, in]."""
    bias: Floats | None
    """float32 [out]."""
    activation: str
    """A key of ``ACTIVATIONS``."""


@dataclass(frozen=True)
class Stack:
    """What turns token vectors into the vector of a text."""

    transformer: Path
    """Folder of the transformer and its tokenizer."""
    pooling: tuple[str, ...]
    """Poolings whose results stand side by side; empty where the model gives one vector itself."""
    after: tuple[Dense | None, ...] = ()
    """Dense layers in order; None stands for normalisation to length 1."""
    prompts: Mapping[str, str] | None = None
    """Prompts that the model declares."""
    default_prompt_name: str | None = None
    """The prompt for texts that are neither query nor document."""
    similarity: SimilarityName | None = None
    """How the model's vectors are meant to be compared."""
    max_seq_length: int | None = None
    """The limit that the folder declares for its transformer."""
    lower_case: bool = False
    """Whether texts are to be lower-cased before the tokenizer."""

    def pooled(self, tokens: Any, mask: Any) -> Any:
        """[B, D x poolings] from token vectors [B, T, D] and mask [B, T], numpy or torch."""
        parts = [POOLING[name](tokens, mask) for name in self.pooling]  # type: ignore[index]
        if len(parts) == 1:
            return parts[0]
        assert all(isinstance(part, np.ndarray) for part in parts)
        return np.concatenate(parts, axis=-1)

    def finished(self, vectors: Vectors) -> Vectors:
        """float32 [B, d]: the pooled vectors through all that comes after."""
        for layer in self.after:
            if layer is None:
                vectors = unit(vectors)
                continue
            vectors = vectors @ layer.weight.T
            if layer.bias is not None:
                vectors = vectors + layer.bias
            vectors = np.asarray(ACTIVATIONS[layer.activation](vectors), dtype=np.float32)
        return vectors

    @property
    def normalizes(self) -> bool:
        """Whether normalisation is among what comes after."""
        return any(layer is None for layer in self.after)


def transformer_folder(folder: Path, spec: ModelSpec) -> Path:
    """Where the transformer and its tokenizer lie in a model folder."""
    return listed(folder, spec.name)[0][1] if (folder / "modules.json").is_file() else folder


def is_classifier(config: Mapping[str, Any]) -> bool:
    """Whether a ``config.json`` is that of a model with a head for texts as a whole, as cross-encoders have it."""
    architectures = config.get("architectures")
    return isinstance(architectures, list) and any(str(each).endswith(CLASSIFIER) for each in architectures)


def without_pooling(folder: Path, spec: ModelSpec) -> Stack:
    """What a model folder declares besides its modules, for a graph that gives one vector per text itself."""
    transformer = transformer_folder(folder, spec)
    return Stack(transformer=transformer, pooling=(), **_declared(folder, transformer, spec.name))


def read(folder: Path, spec: ModelSpec) -> Stack:
    """The modules that a model folder declares, with what the spec overrides.

    Raises ``ConfigError`` where nobody says how to pool, ``ModelError`` for a module that is not known here.
    """
    if not (folder / "modules.json").is_file():
        if spec.pooling is None:
            raise ConfigError(
                f"Model {spec.name!r} doesn't say how it pools (no modules.json), and this is not guessed. "
                f"Say it behind the name, as in {spec.name},pooling=mean; there are {', '.join(POOLING)}.",
                key=("pooling",),
            )
        return Stack(transformer=folder, pooling=(spec.pooling,), **_declared(folder, folder, spec.name))
    kinds = listed(folder, spec.name)
    transformer, pooling, after = kinds[0][1], None, list[Dense | None]()
    for kind, path in kinds[1:]:
        if kind == "Pooling" and pooling is None and not after:
            pooling = _pooling(path, spec)
        elif kind == "Dense":
            after.append(_dense(path, spec))
        elif kind == "Normalize":
            _refuse_other_features(
                json_object(path / "config.json") if (path / "config.json").is_file() else {}, path, spec
            )
            after.append(None)
        else:
            raise ModelError(
                f"Model {spec.name!r} has a module {kind!r} at this place, which this backend can't run. "
                "Use the backend sentence_transformers."
            )
    if pooling is None:
        raise ModelError(f"Model {spec.name!r}: its modules.json has no Pooling.")
    declared = _declared(folder, transformer, spec.name)
    stack = Stack(transformer=transformer, pooling=pooling, after=tuple(after), **declared)
    if spec.normalize is False and stack.normalizes:
        raise ModelError(
            f"Model {spec.name!r} ends with a normalisation of its own, so 'normalize: false' can't be honoured. "
            "Leave normalize out."
        )
    return stack


def listed(folder: Path, name: str) -> list[tuple[str, Path]]:
    """(kind, folder) of each module, the first of which is the transformer."""
    file = folder / "modules.json"
    content = _json(file)
    kinds = []
    for each in content if isinstance(content, list) else [None]:
        if not (isinstance(each, dict) and isinstance(each.get("type"), str) and isinstance(each.get("path"), str)):
            raise ModelError(f"Model {name!r}: {file} is no list of modules with a type and a path each.")
        path = Path(each["path"])
        if path.is_absolute() or ".." in path.parts:
            raise ModelError(f"Model {name!r}: modules.json leads out of the model's folder, to {each['path']!r}.")
        kinds.append((each["type"].rpartition(".")[2], folder / path))
    if not kinds or kinds[0][0] != "Transformer":
        raise ModelError(f"Model {name!r}: its first module is {kinds[0][0] if kinds else 'missing'}, no Transformer.")
    return kinds


def _refuse_other_features(config: Mapping[str, Any], path: Path, spec: ModelSpec) -> None:
    """Raises ``ModelError`` for a layer that is not for the one vector of a text."""
    for key in ("module_input_name", "module_output_name"):
        if config.get(key) not in (None, "sentence_embedding"):
            raise ModelError(
                f"Model {spec.name!r}: {path.name} works on {config[key]!r}, which this backend can't do. "
                "Use the backend sentence_transformers."
            )


def _pooling(path: Path, spec: ModelSpec) -> tuple[str, ...]:
    config = json_object(path / "config.json")
    if config.get("include_prompt", True) is False:
        raise ModelError(
            f"Model {spec.name!r} doesn't pool over its prompt, which this backend can't do. "
            "Use the backend sentence_transformers."
        )
    if spec.pooling is not None:
        return (spec.pooling,)
    declared = config.get("pooling_mode")
    if declared is not None:
        listed = declared if isinstance(declared, list) else [declared]
        names = [LIBRARY_NAMES.get(str(name), str(name)) for name in listed]
    else:
        names = [name for key, name in OLD_POOLING_KEYS.items() if config.get(key) is True]
    if not names or (unknown := [name for name in names if name not in POOLING]):
        what = repr(unknown[0]) if names else "nothing"
        raise ModelError(f"Model {spec.name!r}: {path.name}/config.json says {what} where the pooling belongs.")
    return tuple(names)


def _dense(path: Path, spec: ModelSpec) -> Dense:
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    config = json_object(path / "config.json")
    _refuse_other_features(config, path, spec)
    if config.get("use_residual"):
        raise ModelError(
            f"Model {spec.name!r}: {path.name} has a residual connection, which this backend can't run. "
            "Use the backend sentence_transformers."
        )
    activation = str(config.get("activation_function", "torch.nn.modules.activation.Tanh")).rpartition(".")[2]
    if activation not in ACTIVATIONS:
        raise ModelError(f"Model {spec.name!r}: activation {activation!r} of {path.name} is not known here.")
    weights = path / "model.safetensors"
    if not weights.is_file():
        raise ModelError(f"Model {spec.name!r}: {path.name}/model.safetensors is missing.")
    try:
        tensors = load_file(weights)
        weight, bias = tensors["linear.weight"], tensors.get("linear.bias")
    except (SafetensorError, KeyError, OSError, TypeError) as error:
        raise ModelError(f"Model {spec.name!r}: {path.name}/model.safetensors can't be read ({error}).") from None
    return Dense(weight.astype(np.float32), None if bias is None else bias.astype(np.float32), activation)


def _declared(folder: Path, transformer: Path, name: str) -> dict[str, Any]:
    """What the folder says besides its modules."""
    found: dict[str, Any] = {}
    if (file := folder / "config_sentence_transformers.json").is_file():
        settings = ("prompts", "default_prompt_name", "similarity")
        found |= dict(zip(settings, declared_settings(json_object(file), name), strict=True))
    if (file := transformer / "sentence_bert_config.json").is_file():
        config = json_object(file)
        found["max_seq_length"] = whole_number(config, "max_seq_length", file, least=1)
        found["lower_case"] = bool(config.get("do_lower_case", False))
    return found


def declared_settings(config: Mapping[str, Any], name: str) -> tuple[dict[str, str], str | None, SimilarityName | None]:
    """(prompts without empty ones, name of the default prompt, similarity) of ``config_sentence_transformers.json``.

    Raises ``ModelError`` for values that can't be any of these.
    """
    prompts: Any = config.get("prompts") or {}
    default: Any = config.get("default_prompt_name")
    similarity: Any = config.get("similarity_fn_name")
    if (
        not isinstance(prompts, dict)
        or not all(isinstance(text, str) for text in prompts.values() if text is not None)
        or not (default is None or isinstance(default, str))
        or not (similarity is None or similarity in get_args(SimilarityName))
    ):
        raise ModelError(f"Model {name!r}: config_sentence_transformers.json holds prompts or a similarity of no kind.")
    return {role: text for role, text in prompts.items() if text}, default, similarity


def whole_number(config: Mapping[str, Any], key: str, file: Path, *, least: int) -> int | None:
    """A number of a configuration, None where it has none. Raises ``ModelError`` for anything else."""
    value = config.get(key)
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < least):
        raise ModelError(f"{file}: {key} must be a whole number from {least}, not {value!r}.")
    return value


def json_object(file: Path) -> dict[str, Any]:
    """The content of a file of a model. Raises ``ModelError`` where it is no JSON object."""
    content = _json(file)
    if not isinstance(content, dict):
        raise ModelError(f"{file} holds no JSON object.")
    return content


def _json(file: Path) -> Any:
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ModelError(f"{file} can't be read: {error}.") from None
    except RecursionError:
        raise ModelError(f"{file} can't be read: nested too deeply.") from None
