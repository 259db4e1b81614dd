"""Embeddings are finite float32 rows; counts add up; unit length in float64."""

from __future__ import annotations

from dataclasses import astuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from embeval.core.embeddings import Embeddings, TextCounts, Vectors, refuse_nonfinite, unit, zero_rows
from embeval.core.specs import Role
from embeval.errors import ExitCode, InvalidEmbeddingsError
from tests.support.doubles import rows

LARGEST = float(np.finfo(np.float32).max)
COUNTS = st.builds(
    TextCounts,
    *[st.integers(0, 10**9)] * 3,
    *[st.none() | st.integers(0, 10**9)] * 3,
)


def test_counts_add_up() -> None:
    """Field by field, by hand."""
    total = TextCounts(10, 1, 2, 3, 40, 5, 6) + TextCounts(100, 10, 20, 30, 400, 50, 60)
    assert astuple(total) == (110, 11, 22, 33, 440, 55, 66)


def test_an_unknown_count_stays_unknown() -> None:
    """null plus a number is null, on either side, and leaves the other fields alone."""
    known, unknown = TextCounts(1, 1, 1, 1, 1, 1, 1), TextCounts(1, 0, 0, None, None, 2, None)
    assert astuple(known + unknown) == (2, 1, 1, None, None, 3, None)
    assert astuple(unknown + known) == (2, 1, 1, None, None, 3, None)


@settings(deadline=None)
@given(a=COUNTS, b=COUNTS, c=COUNTS)
def test_counts_can_be_added_in_any_order(a: TextCounts, b: TextCounts, c: TextCounts) -> None:
    """However a corpus is cut into chunks, the sum is the same, and nothing plus a count is that count."""
    assert (a + b) + c == a + (b + c)
    assert a + b == b + a
    assert TextCounts() + a == a


def make(vectors: Vectors) -> Embeddings:
    """Embeddings of texts that nothing more is known of."""
    return Embeddings(vectors=vectors, role=Role.TEXT, normalized=False, spec_digest="x")


def test_embeddings_keep_what_they_are_given() -> None:
    """The vectors, and as many as there are rows; none is fine too."""
    vectors = rows([1.0, 2.0], [3.0, 4.0], [0.0, 0.0])
    assert make(vectors).vectors is vectors
    assert len(make(vectors)) == 3
    assert len(make(np.zeros((0, 2), dtype=np.float32))) == 0


@pytest.mark.parametrize(
    "vectors",
    [
        np.zeros((2, 3), dtype=np.float64),
        np.zeros((2, 3), dtype=np.float16),
        np.zeros((2, 3), dtype=np.int32),
        np.zeros(3, dtype=np.float32),
        np.zeros((1, 2, 3), dtype=np.float32),
    ],
    ids=["float64", "float16", "int32", "one axis", "three axes"],
)
def test_other_arrays_are_refused(vectors: Vectors) -> None:
    """Only float32 [n, d], and the message tells what came."""
    with pytest.raises(TypeError, match=rf"^vectors must be float32 \[n, d\], not {vectors.dtype} \("):
        make(vectors)


@pytest.mark.parametrize(("bad", "word"), [(np.nan, "NaN"), (np.inf, "Inf"), (-np.inf, "Inf")])
@pytest.mark.parametrize("place", [(0, 0), (1, 2), (2, 1)])
def test_no_vector_holds_nan_or_inf(bad: float, word: str, place: tuple[int, int]) -> None:
    """One bad number anywhere is found, named and leads to exit code 3."""
    vectors = np.ones((3, 3), dtype=np.float32)
    vectors[place] = bad
    with pytest.raises(InvalidEmbeddingsError) as caught:
        make(vectors)
    assert str(caught.value).startswith(f"The model gave {word} in the embeddings of 1 of 3 texts: 'row {place[0]}'.")
    assert caught.value.exit_code == ExitCode.CANNOT_EVALUATE


def test_the_first_texts_are_named_by_id() -> None:
    """Five of the seven concerned, in their order, with an ellipsis; at most three lines."""
    vectors = np.ones((9, 2), dtype=np.float32)
    vectors[1:8, 1] = np.inf
    ids = [f"doc-{number}" for number in range(9)]
    with pytest.raises(InvalidEmbeddingsError) as caught:
        refuse_nonfinite(vectors, ids, by="model x in float16 on cpu")
    assert caught.value.ids == ("doc-1", "doc-2", "doc-3", "doc-4", "doc-5")
    assert str(caught.value).splitlines()[0] == (
        "model x in float16 on cpu gave Inf in the embeddings of 7 of 9 texts: "
        "'doc-1', 'doc-2', 'doc-3', 'doc-4', 'doc-5', …."
    )
    assert len(str(caught.value).splitlines()) <= 3


def test_exactly_five_texts_have_no_ellipsis() -> None:
    """All of them are named, so there is nothing to leave out."""
    vectors = np.full((5, 2), np.nan, dtype=np.float32)
    with pytest.raises(InvalidEmbeddingsError) as caught:
        refuse_nonfinite(vectors)
    assert caught.value.ids == tuple(f"row {row}" for row in range(5))
    assert "…" not in str(caught.value)


def test_large_and_tiny_numbers_are_finite() -> None:
    """The ends of float32 are numbers like any other."""
    refuse_nonfinite(rows([LARGEST, -LARGEST, 1e-45, -0.0]))


def test_zero_rows_are_found() -> None:
    """Only rows without a single number, however small; minus zero is zero."""
    vectors = rows([0.0, 0.0], [0.0, 1e-45], [-0.0, 0.0], [1.0, -1.0])
    assert zero_rows(vectors).tolist() == [True, False, True, False]
    assert zero_rows(np.zeros((0, 3), dtype=np.float32)).tolist() == []


def test_unit_length_by_hand() -> None:
    """3-4-5 triangles at every size float32 has, also where squares leave float32; zero stays zero."""
    vectors = rows([3.0, 4.0], [-3e38 / 2, 2e38], [3e-40, 4e-40], [0.0, 0.0])
    before = vectors.copy()
    np.testing.assert_allclose(unit(vectors), [[0.6, 0.8], [-0.6, 0.8], [0.6, 0.8], [0.0, 0.0]], rtol=1e-5)
    assert unit(vectors).dtype == np.float32
    assert np.array_equal(vectors, before)


@settings(deadline=None)
@given(
    vectors=hnp.arrays(
        np.float32, hnp.array_shapes(min_dims=2, max_dims=2, max_side=6), elements=st.floats(-1e6, 1e6, width=32)
    )
)
def test_unit_length_against_extended_precision(vectors: Vectors) -> None:
    """Every row divided by its length in 80 bits and rounded once; at most the last bit may differ."""
    wide = vectors.astype(np.longdouble)
    lengths = np.sqrt((wide * wide).sum(axis=1, keepdims=True))
    expected = np.divide(wide, lengths, out=np.zeros_like(wide), where=lengths != 0).astype(np.float32)
    np.testing.assert_array_max_ulp(unit(vectors), expected, maxulp=1)
