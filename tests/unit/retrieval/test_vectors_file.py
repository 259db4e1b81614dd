"""Vectors on disk."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from embeval.errors import InvalidEmbeddingsError, StoreError
from embeval.retrieval.vectors_file import HEADER, VectorsWriter, open_vectors

RNG = np.random.default_rng(2)


@pytest.mark.parametrize("sizes", [[], [0], [1], [3, 0, 5], [1000, 1]])
def test_what_was_appended_comes_back(sizes: list[int], tmp_path: Path) -> None:
    """In order, memory-mapped and read-only; numpy reads the file by itself."""
    chunks = [RNG.normal(size=(size, 7)).astype(np.float32) for size in sizes]
    with VectorsWriter(tmp_path / "new" / "v.npy", 7) as writer:
        for chunk in chunks:
            writer.append(chunk)
    expected = np.concatenate([np.empty((0, 7), dtype=np.float32), *chunks])
    vectors = open_vectors(tmp_path / "new" / "v.npy")
    assert np.array_equal(vectors, expected)
    assert not vectors.flags.writeable
    assert isinstance(vectors, np.memmap) or not len(expected)
    assert np.array_equal(np.load(tmp_path / "new" / "v.npy", allow_pickle=False), expected)
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["v.npy"]


def test_rows_in_fortran_order_and_slices_are_written_row_by_row(tmp_path: Path) -> None:
    """Memory order is no property of a matrix."""
    vectors = RNG.normal(size=(6, 5)).astype(np.float32)
    with VectorsWriter(tmp_path / "v.npy", 5) as writer:
        writer.append(np.asfortranarray(vectors))
        writer.append(vectors[::2])
    assert np.array_equal(open_vectors(tmp_path / "v.npy"), np.concatenate([vectors, vectors[::2]]))


def test_an_error_on_the_way_leaves_nothing_and_the_old_file_as_it_was(tmp_path: Path) -> None:
    """NaN in the second chunk: no file, or still the one from before."""
    path = tmp_path / "v.npy"
    good, bad = np.ones((2, 3), dtype=np.float32), np.full((1, 3), np.nan, dtype=np.float32)
    for there in (False, True):
        with pytest.raises(InvalidEmbeddingsError, match="The vectors to store gave NaN"):
            _write(path, good * 5, bad)
        assert [each.name for each in tmp_path.iterdir()] == (["v.npy"] if there else [])
        _write(path, good)
    assert np.array_equal(open_vectors(path), good)


def _write(path: Path, *chunks: np.ndarray) -> None:
    with VectorsWriter(path, 3) as writer:
        for chunk in chunks:
            writer.append(chunk)


def test_vectors_of_another_form_are_refused(tmp_path: Path) -> None:
    """Other dimensions, other numbers."""
    with VectorsWriter(tmp_path / "v.npy", 3) as writer:
        wrong: Any
        for wrong in (np.ones((2, 4), np.float32), np.ones((2, 3)), np.ones(3, np.float32)):
            with pytest.raises(ValueError, match=r"vectors must be float32 \[n, 3\]"):
                writer.append(wrong)
    assert open_vectors(tmp_path / "v.npy").shape == (0, 3)


def test_memory_holds_a_chunk_and_not_the_file(tmp_path: Path) -> None:
    """40 chunks of 2 MB: the peak stays below 5."""
    chunk = np.ones((5_000, 100), dtype=np.float32)
    tracemalloc.start()
    with VectorsWriter(tmp_path / "v.npy", 100) as writer:
        for _ in range(40):
            writer.append(chunk)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 5e6
    assert open_vectors(tmp_path / "v.npy").shape == (200_000, 100)


def test_a_place_that_can_not_be_written_is_named(tmp_path: Path) -> None:
    """A file where a folder should be."""
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match=r"Can't write .*v\.npy"):
        VectorsWriter(tmp_path / "file" / "v.npy", 3)


def test_cut_and_foreign_files_are_refused(tmp_path: Path) -> None:
    """Cut in the data, in the header, empty, text, other numbers, pickled objects, none at all."""
    path = tmp_path / "v.npy"
    with VectorsWriter(path, 3) as writer:
        writer.append(np.ones((4, 3), dtype=np.float32))
    whole = path.read_bytes()
    assert len(whole) == HEADER + 4 * 3 * 4
    for content in (whole[:-1], whole[:60], b"", b"hello there", bytes(HEADER) + whole[HEADER:]):
        path.write_bytes(content)
        with pytest.raises(StoreError, match="Build the index again"):
            open_vectors(path)
    for foreign in (np.ones((2, 2)), np.ones(3, np.float32), np.array([{}])):
        np.save(path, foreign, allow_pickle=True)
        with pytest.raises(StoreError, match="Build the index again"):
            open_vectors(path)
    path.unlink()
    with pytest.raises(StoreError, match="There is no file"):
        open_vectors(path)
