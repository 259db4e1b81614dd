"""What every backend on torch needs: the device that was asked for, and libraries that keep quiet."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from logging import ERROR, getLogger

from embeval.errors import ModelError


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
