"""What stands in the folder of a static model: one vector per token, and what is done to their mean."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import numpy.typing as npt

from embeval.core import strict_json
from embeval.core.embeddings import Vectors, unit
from embeval.encoders import tensors
from embeval.errors import ModelError

MODEL2VEC, EMBEDDING_BAG = "embeddings", "embedding.weight"
"""What the matrix is called in the file of a Model2Vec model, and of sentence-transformers' ``StaticEmbedding``."""
MODEL2VEC_LIMIT = 512
"""Tokens that Model2Vec keeps where config.json doesn't say."""
ACTIVATIONS: Mapping[str, Callable[[Vectors], Vectors]] = {
    "Identity": lambda vectors: vectors,
    "Tanh": np.tanh,
    "ReLU": lambda vectors: np.maximum(vectors, 0.0),
}
"""Activations of a dense layer, by the last part of their name in torch."""

Step = Callable[[Vectors], Vectors]


@dataclass(frozen=True)
class StaticModel:
    """A static model as its files have it."""

    matrix: Vectors
    """float32 [rows, d]."""
    mapping: npt.NDArray[np.int64] | None
    """int64 [tokens]: the row of each token; None where token i has row i."""
    weights: npt.NDArray[np.float32] | None
    """float32 [tokens]: what the vector of each token is multiplied by."""
    tokenizer: Any
    unknown_id: int | None
    """The token for what the tokenizer doesn't know."""
    drops_unknown: bool
    """Whether that token is left out of the mean."""
    limit: int | None
    """Tokens kept of a text."""
    keeps_end: bool
    """Whether it is the last tokens that are kept."""
    token_characters: int | None
    """Characters that a text is cut to per token of the limit, before it is tokenised; None: it is not."""
    steps: tuple[Step, ...]
    """What is done to the mean, in this order: dense layers and normalisation."""
    normalizes: bool
    """Whether normalisation is among them."""
    n_parameters: int
    declared: Mapping[str, Any]
    """config_sentence_transformers.json."""


def read(folder: Path, name: str) -> StaticModel:
    """The model in a folder. Raises ``ModelError`` where it is not whole, or no static model."""
    modules = _modules(folder, name)
    first = folder / modules[0][1]
    found = tensors.mapped(first / "model.safetensors")
    if MODEL2VEC not in found and EMBEDDING_BAG not in found:
        raise _other_kind(folder, first, name, found)
    is_model2vec = EMBEDDING_BAG not in found
    key = MODEL2VEC if is_model2vec else EMBEDDING_BAG
    matrix = _numbers(found[key], f"{first / 'model.safetensors'}: the tensor {key!r}", dimensions=2)
    tokenizer = _tokenizer(first, name)
    vocabulary: dict[str, int] = tokenizer.get_vocab()
    n_tokens = max(vocabulary.values(), default=-1) + 1
    mapping, weights = _per_token(found, name, n_tokens, len(matrix)) if is_model2vec else (None, None)
    if mapping is None and n_tokens > len(matrix):
        raise ModelError(
            f"Model {name!r}: its tokenizer has {n_tokens} tokens, but the model has vectors for {len(matrix)} only.\n"
            "The tokenizer belongs to another model."
        )
    config = _json(first / "config.json") if is_model2vec and (first / "config.json").is_file() else {}
    steps, normalizes, more = _steps(folder, modules[1:], matrix.shape[1], name)
    if config.get("normalize") and not normalizes:
        steps, normalizes = (*steps, unit), True
    truncation = tokenizer.truncation or {}
    tokenizer.no_truncation()  # done by us, who count what is lost
    tokenizer.no_padding()
    return StaticModel(
        matrix=matrix,
        mapping=mapping,
        weights=weights,
        tokenizer=tokenizer,
        unknown_id=_unknown_id(tokenizer),
        drops_unknown=is_model2vec,
        limit=_limit(config, name) if is_model2vec else truncation.get("max_length"),
        keeps_end=not is_model2vec and truncation.get("direction") == "left",
        token_characters=int(np.median([len(token) for token in vocabulary])) if is_model2vec else None,
        steps=steps,
        normalizes=normalizes,
        n_parameters=matrix.size + (0 if weights is None else weights.size) + more,
        declared=_json(file) if (file := folder / "config_sentence_transformers.json").is_file() else {},
    )


def _modules(folder: Path, name: str) -> list[tuple[str, str]]:
    """(class, folder) of each module; a folder that declares none is one module."""
    if not (folder / "modules.json").is_file():
        return [("StaticEmbedding", "")]
    try:
        modules = [(each["type"], each["path"]) for each in _json(folder / "modules.json", kind=list)]
        found = [(str(kind).rpartition(".")[2], PurePosixPath(path)) for kind, path in modules]
    except (KeyError, TypeError):
        raise ModelError(f"{folder / 'modules.json'} is no list of modules with type and path.") from None
    if not found or found[0][0] != "StaticEmbedding":
        first = found[0][0] if found else "nothing"
        raise ModelError(
            f"Model {name!r} is no static model: its first module is {first}, not StaticEmbedding.\n"
            "Use the backend sentence_transformers."
        )
    if any(path.is_absolute() or ".." in path.parts for _, path in found):
        raise ModelError(f"{folder / 'modules.json'} names a folder outside the model.")
    return [(kind, str(path)) for kind, path in found]


def _other_kind(folder: Path, first: Path, name: str, found: Mapping[str, Any]) -> ModelError:
    config = _json(folder / "config.json") if (folder / "config.json").is_file() else {}
    if not (folder / "modules.json").is_file() and config.get("model_type", "model2vec") != "model2vec":
        return ModelError(
            f"Model {name!r} is no static model but a bare checkpoint of type {config['model_type']!r}.\n"
            "Use the backend transformers, and say its pooling."
        )
    has = ", ".join(map(repr, sorted(found)[:3])) or "nothing"
    return ModelError(
        f"{first / 'model.safetensors'} has neither the tensor {MODEL2VEC!r} nor {EMBEDDING_BAG!r}; it has {has}.\n"
        "Is it the file of a static model?"
    )


def _numbers(array: npt.NDArray[Any], what: str, *, dimensions: int) -> npt.NDArray[np.float32]:
    """float32 of what may be stored in fewer bits. Raises ``ModelError`` for NaN, Inf and another shape."""
    if array.ndim != dimensions or not array.size:
        raise ModelError(f"{what} has the shape {list(array.shape)}; expected {dimensions} dimensions, none of them 0.")
    numbers = np.ascontiguousarray(array, dtype=np.float32)
    rows = numbers.reshape(len(numbers), -1)
    with np.errstate(invalid="ignore", over="ignore"):
        suspect = np.flatnonzero(~np.isfinite(rows.sum(axis=1)))  # a sum may overflow: looked at once more
    broken = suspect[~np.isfinite(rows[suspect]).all(axis=1)]
    if len(broken):
        raise ModelError(
            f"{what} has NaN or Inf in {len(broken)} of {len(rows)} rows, first in row {broken[0]}.\n"
            "Fetch or save the model again."
        )
    return numbers


def _per_token(
    found: Mapping[str, npt.NDArray[Any]], name: str, n_tokens: int, n_rows: int
) -> tuple[npt.NDArray[np.int64] | None, npt.NDArray[np.float32] | None]:
    """(mapping, weights) of a Model2Vec model whose vocabulary was reduced to fewer vectors."""
    mapping, weights = found.get("mapping"), found.get("weights")
    for what, array in (("mapping", mapping), ("weights", weights)):
        if array is not None and (array.ndim != 1 or len(array) < n_tokens):
            raise ModelError(
                f"Model {name!r}: its tokenizer has {n_tokens} tokens, but the tensor {what!r} has the shape "
                f"{list(array.shape)}.\nThe tokenizer belongs to another model."
            )
    if mapping is not None:
        if mapping.dtype.kind not in "iu":
            raise ModelError(f"Model {name!r}: the tensor 'mapping' must hold whole numbers, not {mapping.dtype}.")
        if mapping.min() < 0 or mapping.max() >= n_rows:
            raise ModelError(f"Model {name!r}: the tensor 'mapping' leads to rows outside 0 to {n_rows - 1}.")
        mapping = mapping.astype(np.int64)
    if weights is not None:
        weights = _numbers(weights, f"Model {name!r}: the tensor 'weights'", dimensions=1)
    return mapping, weights


def _tokenizer(folder: Path, name: str) -> Any:
    from tokenizers import Tokenizer

    file = folder / "tokenizer.json"
    if not file.is_file():
        raise ModelError(f"Model {name!r}: {file} is missing. Fetch or save the model again.")
    try:
        return Tokenizer.from_file(str(file))
    except Exception as error:  # the library raises bare Exception
        raise ModelError(f"Model {name!r}: {file} can't be read: {str(error)[:200]}") from error


def _unknown_id(tokenizer: Any) -> int | None:
    """The id of the unknown token. Source: model2vec 0.10 ``_get_unk_token_id``."""
    if hasattr(tokenizer.model, "unk_token"):
        token = tokenizer.model.unk_token
        return None if token is None else tokenizer.token_to_id(token)
    unknown: int | None = strict_json.loads(tokenizer.to_str())["model"].get("unk_id")  # Unigram has only the id
    return unknown


def _limit(config: Mapping[str, Any], name: str) -> int | None:
    limit = config.get("max_length", MODEL2VEC_LIMIT)
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 1):
        raise ModelError(f"Model {name!r}: max_length in config.json must be a whole number from 1, not {limit!r}.")
    return limit


def _steps(folder: Path, modules: list[tuple[str, str]], width: int, name: str) -> tuple[tuple[Step, ...], bool, int]:
    """(what is done to the mean, whether that ends at unit length, parameters)."""
    steps: list[Step] = []
    n_parameters = 0
    for kind, path in modules:
        file = folder / path / "config.json"
        config = _json(file) if file.is_file() else {}
        if any(
            config.get(key) not in (None, "sentence_embedding") for key in ("module_input_name", "module_output_name")
        ):
            raise _other_module(name, f"{kind} of token vectors")
        if kind == "Normalize":
            steps.append(unit)
        elif kind == "Dense":
            step, shape, size = _dense(folder / path, config, name)
            if shape[1] != width:
                raise ModelError(
                    f"{folder / path}: a dense layer of {shape[1]} inputs after vectors of length {width}."
                )
            width = shape[0]
            n_parameters += size
            steps.append(step)
        else:
            raise _other_module(name, kind)
    return tuple(steps), unit in steps, n_parameters


def _dense(folder: Path, config: Mapping[str, Any], name: str) -> tuple[Step, tuple[int, ...], int]:
    """(a dense layer as a function, the shape of its weights, parameters)."""
    library, _, activation = str(config.get("activation_function", "torch.nn.Tanh")).rpartition(".")
    if not library.startswith("torch.") or activation not in ACTIVATIONS or config.get("use_residual"):
        raise _other_module(name, f"Dense with {'a residual' if config.get('use_residual') else activation}")
    found, file = tensors.mapped(folder / "model.safetensors"), folder / "model.safetensors"
    needed = ["linear.weight"] + ["linear.bias"] * bool(config.get("bias", True))
    if missing := [key for key in needed if key not in found]:
        raise ModelError(f"{file} lacks the tensor {missing[0]!r}. Fetch or save the model again.")
    weight = _numbers(found["linear.weight"], f"{file}: the tensor 'linear.weight'", dimensions=2)
    bias = np.zeros(len(weight), dtype=np.float32)
    if len(needed) == 2:
        bias = _numbers(found["linear.bias"], f"{file}: the tensor 'linear.bias'", dimensions=1)
    if len(bias) != len(weight):
        raise ModelError(f"{file}: 'linear.bias' has {len(bias)} values for {len(weight)} outputs.")
    act = ACTIVATIONS[activation]
    n_parameters = weight.size + (bias.size if len(needed) == 2 else 0)
    return lambda vectors: act(vectors @ weight.T + bias), weight.shape, n_parameters


def _other_module(name: str, what: str) -> ModelError:
    return ModelError(f"Model {name!r}: the backend static doesn't run {what}. Use the backend sentence_transformers.")


def _json(file: Path, kind: type = dict) -> Any:
    try:
        value = strict_json.loads(file.read_bytes())
    except (OSError, ValueError) as error:
        raise ModelError(f"{file} can't be read: {error}") from error
    if not isinstance(value, kind):
        raise ModelError(f"{file} must hold a JSON {'object' if kind is dict else 'list'}.")
    return value
