"""Tensors of a safetensors file as numpy arrays over the file itself: nothing is read before it is used."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from embeval.core import strict_json
from embeval.errors import ModelError

DTYPES = {
    "F64": "<f8",
    "F32": "<f4",
    "F16": "<f2",
    "BF16": "<u2",
    "I64": "<i8",
    "I32": "<i4",
    "I16": "<i2",
    "I8": "<i1",
    "U64": "<u8",
    "U32": "<u4",
    "U16": "<u2",
    "U8": "<u1",
}
"""Number formats by their name in the file. numpy has no bfloat16: its bits are read, and widened."""


def mapped(file: Path) -> dict[str, npt.NDArray[Any]]:
    """Every tensor by name, memory-mapped and read-only; bfloat16 widened to float32.

    Raises ``ModelError`` where the file is missing, broken, or holds a format that numpy can't read.
    """
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(file, framework="numpy"):  # checks the header, and that the file is as long as it says
            pass
        with file.open("rb") as opened:
            n_bytes = int.from_bytes(opened.read(8), "little")
            header: dict[str, Any] = strict_json.loads(opened.read(n_bytes))
    except FileNotFoundError:
        raise ModelError(f"{file} is missing. Fetch or save the model again.") from None
    except (OSError, ValueError, SafetensorError) as error:
        raise ModelError(f"{file} is no readable safetensors file: {error}. Fetch or save the model again.") from error
    header.pop("__metadata__", None)
    return {name: _tensor(file, name, entry, 8 + n_bytes) for name, entry in header.items()}


def _tensor(file: Path, name: str, entry: dict[str, Any], data: int) -> npt.NDArray[Any]:
    if entry["dtype"] not in DTYPES:
        raise ModelError(f"{file}: the tensor {name!r} has the format {entry['dtype']}, which numpy can't read.")
    dtype, shape = np.dtype(DTYPES[entry["dtype"]]), tuple(entry["shape"])
    if 0 in shape:  # a map can't be empty
        return np.zeros(shape, dtype=dtype)
    array = np.asarray(np.memmap(file, dtype=dtype, mode="r", offset=data + entry["data_offsets"][0], shape=shape))
    return (array.astype(np.uint32) << 16).view(np.float32) if entry["dtype"] == "BF16" else array
