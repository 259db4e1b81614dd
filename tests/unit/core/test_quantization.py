"""What vectors are once stored as int8 or by their signs: against closed forms and sentence-transformers 6.2."""

from __future__ import annotations

import numpy as np
import pytest

from embeval.core.quantization import bytes_per_vector, coded
from embeval.core.similarity import SIMILARITIES

RNG = np.random.default_rng(7)
VECTORS = RNG.standard_normal((40, 64)).astype(np.float32)


def test_binary_is_that_of_sentence_transformers() -> None:
    """The bits of ``quantize_embeddings(precision="ubinary")``, 1 as +1 and 0 as -1, exact zeros among them."""
    from sentence_transformers.util.quantization import quantize_embeddings

    vectors = VECTORS.copy()
    vectors[:, ::7] = 0.0
    bits = np.unpackbits(np.asarray(quantize_embeddings(vectors, precision="ubinary")), axis=1)
    assert np.array_equal(coded(vectors, "binary"), bits.astype(np.float32) * 2 - 1)


def test_binary_ranks_as_hamming_distance_does() -> None:
    """The dot product is d minus twice the number of bits that differ, counted on the packed bits."""
    signs = coded(VECTORS, "binary")
    packed = np.packbits(VECTORS > 0, axis=1)
    hamming = np.array([[int.from_bytes(bytes(a ^ b), "big").bit_count() for b in packed] for a in packed])
    assert np.array_equal(signs @ signs.T, 64 - 2 * hamming)


def test_int8_is_whole_steps_of_the_largest_value() -> None:
    """By hand: the largest of (0.5, -1.27, 0.004, 0.006) is 127 steps of 0.01, the rest is rounded to steps."""
    found = coded(np.array([[0.5, -1.27, 0.004, 0.006]], dtype=np.float32), "int8")
    np.testing.assert_allclose(found, [[0.5, -1.27, 0.0, 0.01]], rtol=0, atol=1e-7)


def test_int8_is_at_most_half_a_step_off_and_uses_all_steps() -> None:
    """Each number is a whole multiple, from -127 to 127, of its vector's largest value by 127."""
    found = coded(VECTORS, "int8")
    step = np.abs(VECTORS).max(axis=1, keepdims=True).astype(np.float64) / 127
    assert np.all(np.abs(found - VECTORS) <= step * 0.5001)
    levels = found / step
    np.testing.assert_allclose(levels, np.rint(levels), atol=1e-4)
    assert np.abs(np.rint(levels)).max(axis=1).tolist() == [127.0] * len(VECTORS)
    assert len(np.unique(np.rint(levels))) > 150


@pytest.mark.parametrize("kind", ["int8", "binary"])
def test_a_vector_is_coded_alone_and_zeros_stay_zeros(kind: str) -> None:
    """Its code does not hang on those around it; an empty text is near to nothing, whatever it is stored as."""
    vectors = VECTORS.copy()
    vectors[3] = 0.0
    together = coded(vectors, kind)  # type: ignore[arg-type]  # one of the two
    for row in range(len(vectors)):
        assert np.array_equal(together[row], coded(vectors[row : row + 1], kind)[0])  # type: ignore[arg-type]  # as above
    assert not together[3].any()
    assert SIMILARITIES["cosine"](together[3], together[0]) == 0.0
    assert together.dtype == np.float32
    assert together.shape == vectors.shape
    assert coded(np.zeros((0, 8), dtype=np.float32), kind).shape == (0, 8)  # type: ignore[arg-type]  # as above


def test_bytes_of_a_stored_vector() -> None:
    """384 dimensions: 1,536 bytes, a quarter and a scale, 48; odd numbers of bits fill a byte."""
    assert [bytes_per_vector(384, kind) for kind in (None, "int8", "binary")] == [1536, 388, 48]
    assert bytes_per_vector(9, "binary") == 2
