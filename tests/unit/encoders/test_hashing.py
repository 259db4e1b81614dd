"""The hashing baseline: pinned, so that it never changes in silence."""

from __future__ import annotations

import zlib

import numpy as np
import pytest

from embeval.core.specs import ModelSpec, Role
from embeval.encoders import loading
from embeval.errors import ConfigError, ModelError

PINNED_PLACES = [13, 26, 32, 69, 72, 88]
PINNED_VALUES = [0.196116, -0.392232, -0.196116, 0.196116, -0.196116, -0.196116]


def encode(*texts: str, **fields: object) -> np.ndarray:
    """Vectors of the baseline."""
    spec = ModelSpec(name="h", backend="hashing", **fields)  # type: ignore[arg-type]
    return loading.load(loading.resolve(spec)).encode(list(texts), role=Role.TEXT).vectors


def test_by_the_definition() -> None:
    """Word and padded trigrams hashed by crc32: place = hash mod dim, sign = top bit, trigrams at half weight."""
    expected = np.zeros(64)
    for feature, weight in [("word:key", 1.0), ("<ke", 0.5), ("key", 0.5), ("ey>", 0.5)]:
        value = zlib.crc32(feature.encode())
        expected[value % 64] += weight if value >> 31 else -weight
    expected /= np.linalg.norm(expected)
    np.testing.assert_allclose(encode("Key!", args={"dim": 64})[0], expected, atol=1e-7)


def test_first_components_are_pinned() -> None:
    """A change here changes every stored result of the baseline: raise REVISION with it."""
    vector = encode("restore a backup")[0]
    nonzero = np.flatnonzero(vector)
    assert nonzero[:6].tolist() == PINNED_PLACES
    np.testing.assert_allclose(vector[nonzero[:6]], PINNED_VALUES, atol=1e-6)


def test_misspelled_words_stay_near() -> None:
    """Trigrams: "retention" is nearer to "retenton" than to "rotation"."""
    right, slip, other = encode("retention", "retenton", "rotation")
    assert right @ slip > right @ other + 0.2


@pytest.mark.parametrize("dim", [0, 7, 70_000, "64", 64.0, True])
def test_impossible_dimensions(dim: object) -> None:
    """A whole number from 8 to 65,536, or a message that says so."""
    with pytest.raises(ConfigError, match="dim must be a whole number from 8 to 65536"):
        encode("x", args={"dim": dim})


def test_what_it_does_not_have_is_refused() -> None:
    """No pooling, no dtype, no other option."""
    for fields in ({"pooling": "mean"}, {"dtype": "float16"}):
        with pytest.raises(ConfigError, match="no pooling and no dtype"):
            encode("x", **fields)
    with pytest.raises(ConfigError, match="no option 'dims'"):
        encode("x", args={"dims": 64})


def test_another_revision_is_refused() -> None:
    """A pin holds for the baseline too."""
    assert loading.resolve(ModelSpec(name="h", backend="hashing", revision="builtin:1")).spec.revision == "builtin:1"
    with pytest.raises(ModelError, match="is revision 'builtin:1' here, not 'builtin:0'"):
        loading.resolve(ModelSpec(name="h", backend="hashing", revision="builtin:0"))
