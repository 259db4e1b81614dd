"""Which tokens are replaced and by what: shares, seeds, a generator's own distribution, windows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from embeval.core.specs import ModelSpec, RuntimeOptions
from embeval.encoders import loading as encoders
from embeval.errors import ModelError
from embeval.language_models import loading, replacement
from embeval.language_models.model import LanguageModel
from embeval.language_models.tokenization import Text
from embeval.language_models.variants import Variants
from tests.support.language_models import model_of, word_tokenizer
from tests.support.models import save_tiny_language_model, save_tokenizer
from tests.support.words import WORDS

TEXTS = ["the backups of an older server [SEP] at night", "a new token for the user", "scan a page into the archive"]


@pytest.fixture(scope="module")
def generator(tmp_path_factory: pytest.TempPathFactory) -> tuple[LanguageModel, Any]:
    """A tiny generator, and the same as transformers loads it. It takes 64 tokens."""
    from transformers import AutoModelForMaskedLM

    folder = save_tiny_language_model(tmp_path_factory.mktemp("generator") / "generator", "electra-generator")
    located = encoders.resolve(ModelSpec(name=str(folder)))
    model = loading.load(located, "masked", RuntimeOptions(device="cpu"))
    return model, AutoModelForMaskedLM.from_pretrained(folder).eval()


def window_of(place: int, n: int, room: int | None) -> tuple[int, int]:
    """(begin, end) of the window with the largest of the smaller sides of a token, the earlier of two: tried out."""
    if room is None or n <= room:
        return 0, n
    begins = [begin for begin in [*range(0, n - room, max(1, room // 2)), n - room] if begin <= place < begin + room]
    best = max(begins, key=lambda begin: (min(place - begin, begin + room - 1 - place), -begin))
    return best, best + room


def probabilities(reference: Any, ids: npt.NDArray[np.int32], place: int) -> npt.NDArray[np.float64]:
    """float64 [V]: transformers' own softmax at a place."""
    import torch

    with torch.inference_mode():
        logits = reference(input_ids=torch.from_numpy(ids.astype(np.int64))[None]).logits[0, place]
        found: npt.NDArray[np.float64] = logits.double().softmax(dim=0).numpy()
    return found


def text_of(n: int, *, special: tuple[int, ...] = ()) -> Text:
    """A text of n tokens, of which some are no content."""
    numbers = np.arange(n, dtype=np.int32)
    scored = ~np.isin(numbers, special)
    return Text(ids=numbers, words=numbers, begins=numbers, ends=numbers + 1, scored=scored, n_unknown=0)


@pytest.mark.parametrize("probability", [0.15, 0.5])
def test_the_share_chosen_is_the_probability(probability: float) -> None:
    """Of 20,000 content tokens: within four standard errors of a binomial share. Special tokens are never chosen."""
    special = tuple(range(0, 25_000, 5))
    found = replacement.choose("a", text_of(25_000, special=special), probability=probability, seed=1, draw=0).places
    error = (probability * (1 - probability) / 20_000) ** 0.5
    assert abs(len(found) / 20_000 - probability) < 4 * error
    assert not set(found.tolist()) & set(special)
    everything = replacement.choose("a", text_of(10, special=(3,)), probability=1.0, seed=1, draw=0)
    assert everything.places.tolist() == [0, 1, 2, 4, 5, 6, 7, 8, 9]


def test_the_choice_hangs_on_text_seed_and_draw_alone() -> None:
    """The same again; another with another text, seed or draw; a larger probability chooses the same and more."""

    def places(text: str = "a", probability: float = 0.3, seed: int = 1, draw: int = 0) -> set[int]:
        tokens = text_of(200)
        return set(replacement.choose(text, tokens, probability=probability, seed=seed, draw=draw).places.tolist())

    assert places() == places()
    others = [places(text="b"), places(seed=2), places(draw=1), places(text="\ud800")]
    assert all(other != places() for other in others)
    assert places() < places(probability=0.6)


def test_any_word_is_equally_likely(tmp_path: Path) -> None:
    """A grid of numbers gives each of the vocabulary as often, and no special token; the unknown one is special."""
    model = model_of(save_tokenizer(tmp_path), lambda ids, place, target: 0.5)
    among = model.frame.words
    names = model.token_names(among.tolist())
    assert len(among) == model.frame.n_tokens - 5
    assert not {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"} & set(names)
    n = 7 * len(among)
    grid = (np.arange(n) + 0.5) / n
    drawn = replacement.at_random(replacement.Choice(np.arange(n), grid), among)
    assert np.unique(drawn, return_counts=True)[1].tolist() == [7] * len(among)


def test_a_generator_draws_from_its_own_distribution(generator: tuple[LanguageModel, Any]) -> None:
    """2,000 evenly spread numbers at one masked place: each token as often as transformers' softmax says, to one."""
    model, reference = generator
    text = next(model.tokens(TEXTS[:1]))
    n, place = 2_000, 2
    ids = text.ids.copy()
    assert model.frame.mask_id is not None
    ids[place] = model.frame.mask_id
    expected = probabilities(reference, model.frame.around(ids), place + 1)
    grid = (np.arange(n) + 0.5) / n
    choices = [replacement.Choice(np.array([place]), grid[[number]]) for number in range(n)]
    drawn = np.concatenate(replacement.by_generator(model, [text] * n, choices))
    counts = np.bincount(drawn, minlength=len(expected))
    assert np.abs(np.cumsum(counts) - n * np.cumsum(expected)).max() <= 1.0
    assert (counts > 0).sum() > 50


def test_all_chosen_tokens_are_masked_at_once(generator: tuple[LanguageModel, Any]) -> None:
    """Token by token the inverse of the cumulated probabilities, of texts of several lengths together."""
    model, reference = generator
    texts = list(model.tokens(TEXTS))
    choices = [
        replacement.choose(text, tokens, probability=0.5, seed=3, draw=0)
        for text, tokens in zip(TEXTS, texts, strict=True)
    ]
    assert min(len(choice.places) for choice in choices) >= 2
    for text, choice, drawn in zip(texts, choices, replacement.by_generator(model, texts, choices), strict=True):
        ids = text.ids.copy()
        assert model.frame.mask_id is not None
        ids[choice.places] = model.frame.mask_id
        for place, uniform, token in zip(choice.places, choice.uniforms, drawn, strict=True):
            cumulated = np.cumsum(probabilities(reference, model.frame.around(ids), int(place) + 1))
            assert token == np.flatnonzero(cumulated > uniform)[0]


def test_a_text_without_a_choice_stays_as_it_is(generator: tuple[LanguageModel, Any]) -> None:
    """Nothing chosen, nothing drawn, and nothing is asked of the generator."""
    model, _ = generator
    nothing = replacement.Choice(np.zeros(0, dtype=np.intp), np.zeros(0))
    assert [each.tolist() for each in replacement.by_generator(model, [text_of(4)], [nothing])] == [[]]


def test_a_long_text_is_filled_window_by_window(generator: tuple[LanguageModel, Any]) -> None:
    """150 tokens for a generator of 62 at once: each masked token in the window with most on both its sides."""
    model, reference = generator
    text = next(model.tokens(["old server night token page " * 30]))
    assert (len(text), model.room) == (150, 62)
    choice = replacement.choose("x", text, probability=0.2, seed=0, draw=0)
    (drawn,) = replacement.by_generator(model, [text], [choice])
    ids = text.ids.copy()
    assert model.frame.mask_id is not None
    ids[choice.places] = model.frame.mask_id
    for place, uniform, token in zip(choice.places.tolist(), choice.uniforms, drawn, strict=True):
        start, stop = window_of(place, 150, 62)
        cumulated = np.cumsum(probabilities(reference, model.frame.around(ids[start:stop]), place - start + 1))
        assert token == np.flatnonzero(cumulated > uniform)[0]


def test_a_backend_without_distributions_is_refused(tmp_path: Path) -> None:
    """One that gives probabilities of single tokens only, as graphs do."""
    model = model_of(save_tokenizer(tmp_path), lambda ids, place, target: 0.5)
    text = next(model.tokens(TEXTS[:1]))
    choice = replacement.choose(TEXTS[0], text, probability=1.0, seed=0, draw=0)
    with pytest.raises(ModelError, match=r"can't be a generator: its backend .*\nGive its torch checkpoint\."):
        replacement.by_generator(model, [text], [choice])


@pytest.mark.parametrize("room", [1, 2, 3, 4, 7, 10, None])
def test_every_token_is_told_once_where_it_has_most_around_it(room: int | None) -> None:
    """Windows and shares against trying out all windows for each token, for all lengths up to 40."""
    for n in range(1, 41):
        found = {
            place: (begin, end)
            for begin, end, first, behind in replacement.parts(n, room=room)
            for place in range(first, behind)
        }
        assert found == {place: window_of(place, n, room) for place in range(n)}


def test_variants_hold_what_was_replaced_and_say_so(tmp_path: Path) -> None:
    """Two tokens get others, one of them its own again, which counts as kept; the literal [SEP] is no target."""
    model = model_of(word_tokenizer(tmp_path, WORDS), lambda ids, place, target: 0.5)
    text = next(model.tokens(["old night [SEP] day new"]))
    old, night, day = (int(text.ids[place]) for place in (0, 1, 3))
    filled = np.array([night, day], dtype=np.int32)
    choice = replacement.Choice(np.array([0, 3]), np.zeros(2))
    ((variant, n_replaced),) = replacement.variants(text, model.frame, choice, filled, room=None)
    unpacked = Variants.of([variant])
    assert n_replaced == 1
    assert unpacked.ids.tolist()[1:-1] == [night, *text.ids[1:].tolist()]
    assert old not in unpacked.ids.tolist()
    assert unpacked.places.tolist() == [1, 2, 4, 5]
    assert unpacked.targets.tolist() == [1, 0, 0, 0]
    parts = list(replacement.variants(text, model.frame, choice, filled, room=2))
    assert sum(n for _, n in parts) == 1
    assert Variants.of([each for each, _ in parts]).n_targets.sum() == 4
