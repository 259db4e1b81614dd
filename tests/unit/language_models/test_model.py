"""The language model that all backends share, on probabilities that are made up."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from embeval.core.specs import RuntimeOptions
from embeval.encoders.cache import VectorCache
from embeval.encoders.shelves import Shelves
from embeval.errors import ModelError
from embeval.language_models.model import VariantBackend, info_of
from embeval.language_models.variants import Variants, packed
from tests.support.language_models import model_of, word_tokenizer

INFO = info_of(device="cpu", num_threads=1, batch_tokens=64)


@pytest.fixture
def tokenizer(tmp_path: Path) -> Any:
    """Of a few words."""
    return word_tokenizer(tmp_path, ["the", "a", "old", "server", "souve+nir"])


@pytest.mark.parametrize(
    ("larger", "equal", "hits"),
    [
        (0, 1, (1, 1)),
        (1, 1, (0, 1)),
        (4, 1, (0, 1)),
        (5, 1, (0, 0)),
        (0, 2, (0.5, 1)),
        (4, 2, (0, 0.5)),
        (0, 10, (0.1, 0.5)),
    ],
)
def test_tokens_with_equal_scores_share_the_places(larger: int, equal: int, hits: tuple[float, float]) -> None:
    """By hand: the mean over all orders of the equal ones, so that a uniform model's accuracy is 1 / V."""
    backend = VariantBackend(INFO, "masked", lambda *_: np.array([[-1.0, larger, equal]], dtype=np.float32), pad_id=0)
    found = backend.forward(Variants.of([packed(np.array([1, 2]), [0], [1])]), np.array([0]))
    np.testing.assert_allclose(found[0], (-1.0, *hits), atol=1e-7)


def test_of_a_discriminator_the_third_number_counts_replaced_tokens() -> None:
    """Two targets kept, two replaced; one of each told."""
    scores = np.array([[-0.1, 0, 1], [-2, 1, 1], [-0.2, 0, 1], [-3, 1, 1]], dtype=np.float32)
    backend = VariantBackend(INFO, "replaced", lambda *_: scores, pad_id=0)
    found = backend.forward(Variants.of([packed(np.array([5, 6, 7, 8]), [0, 1, 2, 3], [0, 0, 1, 1])]), np.array([0]))
    np.testing.assert_allclose(found[0], (-5.3, 2, 1), atol=1e-6)


def test_scores_are_sums_over_the_targets_in_the_order_of_the_variants(tokenizer: Any) -> None:
    """p = 1 / (2 + token wanted), whatever batches they meet in; equal variants run once."""
    model = model_of(tokenizer, lambda ids, place, target: 1 / (2 + target), batch_tokens=6)
    variants = [packed(np.array([9, 3, 4]), [1, 2], [3, 4]), packed(np.array([9, 3]), [1], [1]), "x"]
    variants[2] = variants[0]
    found = model.score(variants, ids=["one", "two", "one"])
    expected = [-math.log(5) - math.log(6), -math.log(3), -math.log(5) - math.log(6)]
    np.testing.assert_allclose(found.log_prob, expected, rtol=1e-6)
    assert (found.work.n_texts, found.work.n_tokens) == (2, 5)


def test_what_is_no_number_is_told_by_the_name_of_its_text(tokenizer: Any) -> None:
    """A probability of 0, whose logarithm is none."""
    model = model_of(tokenizer, lambda ids, place, target: 0.0 if target == 3 else 0.5)
    with np.errstate(divide="ignore"), pytest.raises(ModelError, match="no finite number, such as for line 7"):
        model.score([packed(np.array([1]), [0], [1]), packed(np.array([3]), [0], [3])], ids=["line 6", "line 7"])


def test_what_was_scored_is_found_again(tokenizer: Any, tmp_path: Path) -> None:
    """By the variant; the model is not asked a second time."""
    asked: list[int] = []

    def probability(ids: list[int], place: int, target: int) -> float:
        asked.append(target)
        return 0.25

    shelves = Shelves(VectorCache(tmp_path / "vectors"), RuntimeOptions())
    variants = [packed(np.array([number, 1]), [0], [number]) for number in range(5)]
    for _ in range(2):
        model = model_of(tokenizer, probability, shelves=shelves)
        np.testing.assert_allclose(model.score(variants).log_prob, math.log(0.25))
    assert sorted(asked) == [0, 1, 2, 3, 4]
