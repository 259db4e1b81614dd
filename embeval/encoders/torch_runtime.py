"""What every backend on torch needs: the device that was asked for, kernels, and libraries that keep quiet."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from logging import ERROR, getLogger
from typing import Any

from embeval.core.specs import Dtype, ModelSpec, RuntimeOptions
from embeval.errors import ConfigError, ModelError

CPU_BATCH_TOKENS: dict[Dtype, int] = {"float32": 2_048, "bfloat16": 4_096, "float16": 2_048}
"""The fastest of 1,024 … 8,192 for MiniLM on two cores; there is little between them, and these are frugal."""
GPU_BATCH_TOKENS = 32_768
"""Where nothing was measured (``loading.load`` measures on CUDA devices)."""


def refuse_int8(spec: ModelSpec) -> None:
    """Raises ``ConfigError`` for a number format that torch can't run a model in."""
    if spec.dtype == "int8":
        raise ConfigError(
            f"Model {spec.name!r}: dtype int8 needs an exported model. "
            "Make one with 'embeval export MODEL --precision int8', then use -m onnx:FOLDER,dtype=int8.",
            key=("dtype",),
        )


def torch_dtype(spec: ModelSpec) -> Any:
    """The number format of a spec as torch has it."""
    import torch

    return getattr(torch, spec.dtype)


def set_threads(runtime: RuntimeOptions) -> None:
    """Gives torch the threads that were asked for."""
    import torch

    if runtime.num_threads is not None:
        torch.set_num_threads(runtime.num_threads)


def batch_tokens(spec: ModelSpec, runtime: RuntimeOptions, device: str) -> int:
    """The budget that was asked for, or the device's."""
    return runtime.budget_or(CPU_BATCH_TOKENS.get(spec.dtype, 2_048) if device == "cpu" else GPU_BATCH_TOKENS)


def made_fast(model: Any, spec: ModelSpec, runtime: RuntimeOptions, device: str) -> Any:
    """A model of transformers with faster kernels on a CPU, or compiled where that was asked for."""
    from embeval.encoders import locate, torch_speed

    if runtime.compile:
        return torch_speed.compiled(model, device, locate.cache_folder() / "compiled")
    if device == "cpu":
        torch_speed.speed_up(model, torch_dtype(spec), rows=batch_tokens(spec, runtime, device))
    return model


@contextlib.contextmanager
def failures_told(name: str, n_texts: int, longest: int) -> Iterator[None]:
    """Turns whatever the code of a model raises on a batch into ``ModelError``, and a full GPU into ``MemoryError``."""
    import torch

    try:
        yield
    except torch.OutOfMemoryError as error:  # of a GPU; told like that of the machine
        torch.cuda.empty_cache()
        raise MemoryError(str(error)) from error
    except (RuntimeError, IndexError, ValueError, TypeError, KeyError) as error:  # whatever a model's code does
        if "can't allocate memory" in str(error):  # torch's own words for a full machine
            raise MemoryError(str(error)) from error
        reason = next((line for line in str(error).splitlines() if line.strip()), "no reason given")
        raise ModelError(
            f"Model {name!r} fails on a batch of {n_texts} texts of up to {longest} tokens.\n"
            f"{type(error).__name__}: {reason[:300]}"
        ) from error


def choose_device(wanted: str) -> str:
    """The torch device to use. Raises ``ModelError`` where the wanted one is not there."""
    import torch

    if wanted == "auto":
        if torch.cuda.is_available():
            return "cuda"
        return "mps" if torch.backends.mps.is_available() else "cpu"
    device = torch.device(wanted)
    if device.type == "cuda":
        count = torch.cuda.device_count() if torch.cuda.is_available() else 0
        if (device.index or 0) >= count:
            raise ModelError(f"Device {wanted!r} was asked for, but torch sees {count} CUDA devices here.")
    elif device.type == "mps" and not torch.backends.mps.is_available():
        raise ModelError("Device 'mps' was asked for, but torch can't use it here.")
    return wanted


def device_name(device: str) -> str:
    """The device for the provenance: a GPU with its name."""
    import torch

    return f"{device} ({torch.cuda.get_device_name(device)})" if device.startswith("cuda") else device


@contextlib.contextmanager
def quiet_libraries() -> Iterator[None]:
    """Loads of models without progress bars and notices of the libraries below; errors still come through."""
    from transformers.utils import logging

    other = getLogger("sentence_transformers")
    verbosity, bars, level = logging.get_verbosity(), logging.is_progress_bar_enabled(), other.level
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    other.setLevel(ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.set_verbosity(verbosity)
        other.setLevel(level)
        if bars:
            logging.enable_progress_bar()
