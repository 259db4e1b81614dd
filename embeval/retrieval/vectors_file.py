"""Vectors on disk: one ``.npy`` file that grows by chunks, and that numpy opens without reading it."""

from __future__ import annotations

import contextlib
import os
import secrets
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np

from embeval.core.embeddings import Vectors, refuse_nonfinite
from embeval.errors import StoreError

HEADER = 128
"""Bytes that numpy's header of a float32 [n, d] takes; it leaves room for any n."""


class VectorsWriter:
    """Writes float32 [n, d] chunk by chunk, with no more than a chunk in memory.

    The file is whole or not there: what is written has another name until ``close``, and is removed where the
    ``with`` block ends in an error. Raises ``StoreError`` where the disk won't take it.
    """

    def __init__(self, path: Path, dim: int) -> None:
        self.path, self.dim, self.n = path, dim, 0
        self._temporary = path.with_name(f".{path.name}.{os.getpid()}-{secrets.token_hex(4)}.tmp")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = self._temporary.open("xb", buffering=0)
            self._file.write(bytes(HEADER))
        except OSError as error:
            raise self._refused(error) from None

    def append(self, vectors: Vectors) -> None:
        """The next float32 [n, d]. NaN and Inf are refused."""
        if vectors.dtype != np.float32 or vectors.ndim != 2 or vectors.shape[1] != self.dim:
            raise ValueError(f"vectors must be float32 [n, {self.dim}], not {vectors.dtype} {vectors.shape}")
        refuse_nonfinite(vectors, by="The vectors to store")
        try:
            np.ascontiguousarray(vectors, dtype="<f4").tofile(self._file)
        except OSError as error:
            raise self._refused(error) from None
        self.n += len(vectors)

    def close(self) -> None:
        """The file gets its header, goes to the disk and then under its name."""
        try:
            self._file.seek(0)
            np.lib.format.write_array_header_1_0(
                self._file, {"descr": "<f4", "fortran_order": False, "shape": (self.n, self.dim)}
            )
            assert self._file.tell() == HEADER
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()
            self._temporary.replace(self.path)
        except OSError as error:
            raise self._refused(error) from None

    def discard(self) -> None:
        """Nothing is left of it."""
        with contextlib.suppress(OSError):
            self._file.close()
        with contextlib.suppress(OSError):
            self._temporary.unlink(missing_ok=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            self.discard()
            return
        try:
            self.close()
        except StoreError:
            self.discard()
            raise

    def _refused(self, error: OSError) -> StoreError:
        return StoreError(f"Can't write {self.path}: {error.strerror or error}.\nFree some space, or write elsewhere.")


def open_vectors(path: Path) -> Vectors:
    """float32 [n, d] of a file, memory-mapped and read-only. Raises ``StoreError`` where it is cut or foreign."""
    try:
        vectors = np.load(path, mmap_mode="r", allow_pickle=False)
    except FileNotFoundError:
        raise StoreError(f"There is no file {path}.\nBuild the index again.") from None
    except (OSError, ValueError, EOFError, SyntaxError) as error:
        raise StoreError(f"{path} is cut short or no file of vectors: {error}\nBuild the index again.") from None
    if not isinstance(vectors, np.ndarray) or vectors.dtype != np.dtype("<f4") or vectors.ndim != 2:
        raise StoreError(f"{path} holds no float32 vectors.\nBuild the index again.")
    return vectors
