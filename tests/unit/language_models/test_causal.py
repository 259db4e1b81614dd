"""The one variant of a text under a causal model, against the model itself."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from embeval.core.specs import ModelSpec
from embeval.encoders import loading as encoders
from embeval.language_models import causal, loading
from embeval.language_models.model import LanguageModel
from embeval.language_models.variants import Variants
from tests.support.minimal_pairs import save_causal

TEXTS = ["restore the old backup", "a", "the server of the day and the night", "the key x"]


def model_of(folder: Path) -> LanguageModel:
    """The causal model of a folder."""
    located = encoders.resolve(ModelSpec(name=str(folder)))
    assert loading.known_of(located)[0] == "causal"
    return loading.load(located, "causal")


def by_hand(folder: Path, text: str, begin: str) -> float:
    """ln p(text) by transformers alone: the summed cross-entropy of all tokens but the first of the input."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(folder).eval()
    ids = tokenizer(text)["input_ids"]
    assert (ids[0] == tokenizer.bos_token_id) == (begin == "put")
    if begin == "named":
        ids = [tokenizer.bos_token_id, *ids]
    with torch.inference_mode():
        logits = model(torch.tensor([ids])).logits[0]
        return -float(torch.nn.functional.cross_entropy(logits[:-1], torch.tensor(ids[1:]), reduction="sum"))


@pytest.mark.parametrize("kind", ["gpt2", "llama"])
@pytest.mark.parametrize("begin", ["named", "put", "none"])
def test_a_sum_is_the_cross_entropy_of_transformers(tmp_path: Path, kind: str, begin: str) -> None:
    """With a begin token put before by the tokenizer or by us, once, and without one; many at once as one alone."""
    folder = save_causal(tmp_path / "model", kind, begin=begin)
    model = model_of(folder)
    texts = [text for text in TEXTS if begin != "none" or " " in text]
    variants = [causal.variant(text, model.frame) for text in model.tokens(texts)]
    together = model.score(variants).log_prob
    alone = np.concatenate([model.score([variant]).log_prob for variant in variants])
    expected = [by_hand(folder, text, begin) for text in texts]
    np.testing.assert_allclose(together, expected, rtol=1e-5)
    np.testing.assert_allclose(alone, expected, rtol=1e-5)


def test_what_is_scored(tmp_path: Path) -> None:
    """Each token of the text, the first only behind a begin token, and never a special one written in it."""
    for begin, places in (("named", [1, 2, 4]), ("none", [1, 3])):
        model = model_of(save_causal(tmp_path / begin, begin=begin))
        (text,) = model.tokens(["old new [PAD] day"])
        found = Variants.of([causal.variant(text, model.frame)])
        names = model.token_names(found.ids.tolist())
        assert names == [*["[END]"] * (begin == "named"), "old", "new", "[PAD]", "day"]
        assert found.places.tolist() == places
        assert [names[place] for place in places] == model.token_names(found.targets.tolist())


def test_what_a_tokenizer_puts_first_is_not_added_to(tmp_path: Path) -> None:
    """Whatever that is, and though there is a begin token besides; else that token, else nothing."""
    frame = model_of(save_causal(tmp_path / "model")).frame
    own = np.array([7, 8], dtype=np.int32)
    nothing = own[:0]
    for before, token, expected in ((own, 3, [7, 8]), (own, None, [7, 8]), (nothing, 3, [3]), (nothing, None, [])):
        assert causal.begin(replace(frame, before=before, begin_id=token)).tolist() == expected
