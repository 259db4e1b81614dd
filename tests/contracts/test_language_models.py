"""What every language model must give, family by family and backend by backend, compared by value.

The reference is transformers' own model (5.24): the whole text, all of its scores, log_softmax per place.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from embeval.core.specs import Dtype, ModelSpec, RuntimeOptions
from embeval.encoders import loading as encoders
from embeval.encoders import modules
from embeval.encoders.cache import VectorCache
from embeval.language_models import loading, pseudo, tokenization
from embeval.language_models.loading import LANGUAGE_MODELS
from embeval.language_models.model import LanguageModel
from embeval.language_models.tokenization import Text
from embeval.language_models.variants import packed
from tests.contracts.examples import LANGUAGE_MODEL_FORMS
from tests.support.models import DISCRIMINATOR, FAMILIES, edit_json, save_tiny_language_model

TEXTS = [
    "the backups of an older server, isn't it?",
    "token",
    "  two  spaces\n\nhere ",
    "a [MASK] b <mask> c </s> [SEP] d",
    "東京 x é ü 🙂🙃",
    "a\ud800b",
    "the new key opens the old archive, page by page and folder by folder: none of it was lost at night",
]
"""What the suite scores; literal special tokens, a lone surrogate and characters that most vocabularies lack."""
LIMITS = {"deberta": None, "deberta-new-head": None, "modernbert": None} | dict.fromkeys(
    ("camembert", "mpnet", "roberta", "xlm-roberta"), 62
)
"""Family -> tokens of the 64 places in its table; two are kept for padding in RoBERTa and its kin, and none has a
limit whose places are relative. 64 for the others."""
IN_FORM = {"onnx": ("bert", "roberta")}
"""Backend -> families that are shown in its form, where making that takes long: one for each way to count places."""
BFLOAT16 = 0.08
"""Nats by which a log-probability may be off in bfloat16: 8 bits of each number in these models of 2 layers."""


@dataclass(frozen=True)
class Example:
    """A family in the form of one backend."""

    family: str
    checkpoint: Path
    """What transformers itself loads."""
    spec: ModelSpec
    model: LanguageModel
    reference: Callable[[npt.NDArray[np.int32]], npt.NDArray[np.float64]]
    """Log-probabilities [T, V] of the token ids of a text."""

    @property
    def texts(self) -> list[Text]:
        """The texts in tokens."""
        return list(self.model.tokens(TEXTS))


def load(spec: ModelSpec, cache: VectorCache | None = None, **runtime: Any) -> LanguageModel:
    """The model, on the CPU."""
    located = encoders.resolve(spec)
    kind, _ = loading.known_of(located)
    assert kind == "masked"
    return loading.load(located, "masked", RuntimeOptions(device="cpu", **runtime), cache)


def reference_of(checkpoint: Path) -> Callable[[npt.NDArray[np.int32]], npt.NDArray[np.float64]]:
    """transformers' own scores, softmaxed in float64."""
    import torch
    from transformers import AutoModelForMaskedLM

    model = AutoModelForMaskedLM.from_pretrained(checkpoint).eval()

    def log_probabilities(ids: npt.NDArray[np.int32]) -> npt.NDArray[np.float64]:
        with torch.inference_mode():
            logits = model(input_ids=torch.from_numpy(ids.astype(np.int64))[None]).logits[0]
            found: npt.NDArray[np.float64] = logits.double().log_softmax(dim=1).numpy()
        return found

    return log_probabilities


def _examples() -> list[str]:
    return [f"{family}-{backend}" for backend in LANGUAGE_MODELS.names() for family in IN_FORM.get(backend, FAMILIES)]


@pytest.fixture(scope="module", params=_examples())
def example(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Example:
    """A model of every family, and of some in the form of each other backend."""
    family, _, backend = request.param.rpartition("-")
    folder = tmp_path_factory.mktemp(family)
    checkpoint = save_tiny_language_model(folder / family, family)
    spec = LANGUAGE_MODEL_FORMS[backend](checkpoint, folder / "form")
    return Example(family, checkpoint, spec, load(spec), reference_of(checkpoint))


def masked(example: Example, text: Text, places: list[int]) -> npt.NDArray[np.int32]:
    """A text as the model sees it, masked at these places of its own."""
    ids = text.ids.copy()
    assert example.model.frame.mask_id is not None
    ids[places] = example.model.frame.mask_id
    return example.model.frame.around(ids)


def variants_of(example: Example, text: Text) -> tuple[list[str], list[npt.NDArray[np.int32]], list[int]]:
    """Each token masked alone, each with the later ones of its word: (variants, ids seen, place in the text)."""
    before = len(example.model.frame.before)
    variants, seen, places = [], [], []
    for place in pseudo.scored_places(text):
        later = [other for other in range(place, len(text)) if text.words[other] == text.words[place]]
        for hidden in ([place], later):
            seen.append(masked(example, text, hidden))
            variants.append(packed(seen[-1], [before + place], [int(text.ids[place])]))
            places.append(place)
    return variants, seen, places


def test_every_backend_has_an_example() -> None:
    """A new backend joins this suite by an entry in examples.LANGUAGE_MODEL_FORMS."""
    assert set(LANGUAGE_MODEL_FORMS) == set(LANGUAGE_MODELS.names())


def test_log_probabilities_and_hits_are_those_of_the_whole_model(example: Example) -> None:
    """To 1e-5 nats, in both ways to mask; hits by counting the larger scores."""
    before = len(example.model.frame.before)
    for text in example.texts:
        variants, seen, places = variants_of(example, text)
        if not variants:
            continue
        found = example.model.score(variants)
        for row, (ids, place) in enumerate(zip(seen, places, strict=True)):
            scores = example.reference(ids)[before + place]
            wanted = scores[text.ids[place]]
            assert found.log_prob[row] == pytest.approx(wanted, abs=1e-5)
            rank = int((scores > wanted).sum())
            assert (found.hits_1[row], found.hits_5[row]) == (rank < 1, rank < 5)


def test_batches_padding_and_order_do_not_matter(example: Example) -> None:
    """All together, backwards, and each alone: equal to 5e-6 nats; the same run again to the bit."""
    variants = [each for text in example.texts[:4] for each in variants_of(example, text)[0]]
    together = example.model.score(variants).log_prob
    small = load(example.spec, batch_tokens=1)
    np.testing.assert_allclose(small.score(variants[::-1]).log_prob[::-1], together, atol=5e-6)
    np.testing.assert_array_equal(load(example.spec).score(variants).log_prob, together)


def test_several_targets_of_a_variant_are_summed(example: Example) -> None:
    """The first, the third and the last token masked at once, against the reference's sum."""
    text = example.texts[0]
    places = [0, 2, len(text) - 1]
    ids = masked(example, text, places)
    at = [len(example.model.frame.before) + place for place in places]
    found = example.model.score([packed(ids, at, [int(text.ids[place]) for place in places])])
    expected = sum(example.reference(ids)[where, text.ids[place]] for where, place in zip(at, places, strict=True))
    assert found.log_prob[0] == pytest.approx(expected, abs=2e-5)


def test_bfloat16_is_near(example: Example) -> None:
    """Within a stated bound, and not the same numbers: it ran in bfloat16."""
    bfloat16: Dtype = "bfloat16"
    if example.spec.backend == "onnx":
        pytest.skip("graphs have no bfloat16")
    variants = variants_of(example, example.texts[0])[0]
    exact = example.model.score(variants).log_prob
    found = load(replace(example.spec, dtype=bfloat16)).score(variants).log_prob
    assert 0 < np.abs(found - exact).max() < BFLOAT16


def test_cache_gives_the_same_to_the_bit(example: Example, tmp_path: Path) -> None:
    """From the cache, without loading the model; nothing runs."""
    variants = variants_of(example, example.texts[1])[0]
    first = load(example.spec, VectorCache(tmp_path)).score(variants)
    warm = load(example.spec, VectorCache(tmp_path))
    second = warm.score(variants)
    assert second.log_prob.tobytes() == first.log_prob.tobytes()
    assert (second.work.n_texts, warm.late_load_s) == (0, 0.0)


def tokenizer_of(example: Example) -> Any:
    """The tokenizer as transformers loads it."""
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(example.checkpoint)


def test_texts_stand_in_the_frame_of_the_tokenizer(example: Example) -> None:
    """What goes into the model is what the tokenizer itself makes of a text; what it adds is never scored."""
    tokenizer = tokenizer_of(example)
    frame = example.model.frame
    added = {tokenizer.cls_token_id, tokenizer.sep_token_id}
    for given, text in zip(TEXTS, example.texts, strict=True):
        whole = given.replace("\ud800", "\ufffd")
        assert frame.around(text.ids).tolist() == tokenizer(whole)["input_ids"]
        assert not set(text.ids[text.scored].tolist()) & (set(tokenizer.all_special_ids) - {tokenizer.unk_token_id})
    assert {int(each) for each in (*frame.before, *frame.after)} == added
    assert frame.n_special == 2


def test_special_tokens_written_in_a_text_are_seen_and_not_scored(example: Example) -> None:
    """The model's own mask and end token in the fourth text; those of others are ordinary characters there."""
    tokenizer, text = tokenizer_of(example), example.texts[3]
    ids = text.ids.tolist()
    own = {tokenizer.mask_token_id, tokenizer.sep_token_id}
    assert own <= set(ids)
    assert [place for place, token in enumerate(ids) if token in own] == np.flatnonzero(~text.scored).tolist()
    assert len(set(text.words[~text.scored].tolist())) == 2


def test_tokens_say_where_they_stand(example: Example) -> None:
    """Places of tokens rise, cover all that is no white space, and hold what the token is written as."""
    tokenizer = tokenizer_of(example)
    for given, text in zip(TEXTS[:3], example.texts, strict=False):
        covered = {place for b, e in zip(text.begins, text.ends, strict=True) for place in range(b, e)}
        assert {place for place, letter in enumerate(given) if not letter.isspace()} <= covered
        assert (np.diff(text.begins) >= 0).all()
        for row in range(len(text)):
            written = tokenizer.decode([int(text.ids[row])]).removeprefix("##").strip()
            shown = given[text.begins[row] : text.ends[row]].strip().lower()
            assert written in ("", shown)


def test_words_are_pieces_between_spaces(example: Example) -> None:
    """No word of the tokenizer reaches over a space, its numbers rise, and each space begins another."""
    for given, text in zip(TEXTS[:3], example.texts, strict=False):
        assert (np.diff(text.words) >= 0).all()
        for _, rows in itertools.groupby(range(len(text)), key=lambda row: int(text.words[row])):
            group = list(rows)
            assert len(given[text.begins[group[0]] : text.ends[group[-1]]].split()) <= 1
    text = example.texts[0]
    spaced = [
        text.words[row] for row in range(1, len(text)) if " " in TEXTS[0][text.ends[row - 1] - 1 : text.ends[row]]
    ]
    assert len(set(spaced)) >= 6


def test_unknown_tokens_are_counted(example: Example) -> None:
    """As many as the vocabulary lacks; byte pairs lack nothing."""
    tokenizer = tokenizer_of(example)
    expected = sum(token == tokenizer.unk_token_id for token in example.texts[4].ids)
    assert example.texts[4].n_unknown == expected
    assert (expected == 0) == (example.family in ("roberta", "modernbert"))
    assert example.texts[0].n_unknown == 0


def test_empty_and_blank_texts(example: Example) -> None:
    """An empty text has no tokens; of a blank one byte pairs keep the spaces. No error."""
    empty, blank = example.model.tokens(["", " \n "])
    assert len(empty) == 0
    assert (len(blank) > 0) == (example.family in ("roberta", "modernbert"))


def test_limits_are_the_places_that_a_model_has(example: Example) -> None:
    """Full windows are scored as the whole model scores them; the limit is that of the family."""
    limit = LIMITS.get(example.family, 64)
    assert example.model.limit == limit
    if limit is None:
        return
    assert example.model.room == limit - 2
    frame = example.model.frame
    text = next(example.model.tokens(["old server " * 40]))
    ids = text.ids[: limit - 2].copy()
    target = int(ids[-1])
    assert frame.mask_id is not None
    ids[-1] = frame.mask_id
    whole = frame.around(ids)
    assert len(whole) == limit
    found = example.model.score([packed(whole, [limit - 2], [target])]).log_prob[0]
    assert found == pytest.approx(example.reference(whole)[limit - 2, target], abs=1e-5)


def digest_of(spec: ModelSpec) -> str | None:
    """The digest of a model's tokenizer."""
    folder = encoders.resolve(spec).folder
    assert folder is not None
    return tokenization.digest(modules.transformer_folder(folder, spec))


def test_digest_is_of_the_tokenizer_and_not_of_the_model(example: Example, tmp_path: Path) -> None:
    """Other weights, another limit, another side to pad: the same. Another kind of tokenizer: another."""
    family = FAMILIES[example.family]
    again = save_tiny_language_model(tmp_path / "again", family, seed=1)
    edit_json(again / "tokenizer_config.json", model_max_length=33, padding_side="left")
    cut = {"direction": "Right", "max_length": 9, "strategy": "LongestFirst", "stride": 0}
    edit_json(again / "tokenizer.json", truncation=cut)
    own = digest_of(example.spec)
    assert own is not None
    assert own.startswith("sha256:")
    assert digest_of(ModelSpec(name=str(again))) == own
    others = {other.tokenizer for other in FAMILIES.values()} - {family.tokenizer}
    assert len(others) == 5
    for number, save in enumerate(others):
        (folder := tmp_path / str(number)).mkdir()
        save(folder)
        assert tokenization.digest(folder) not in (own, None)


def test_discriminators_score_two_words(tmp_path: Path) -> None:
    """ln p(kept) and ln p(replaced) are those of a sigmoid of transformers' own score, to 1e-5."""
    import torch
    from transformers import AutoModelForPreTraining

    folder = save_tiny_language_model(tmp_path / "discriminator", DISCRIMINATOR)
    located = encoders.resolve(ModelSpec(name=str(folder)))
    assert loading.known_of(located)[0] == "replaced"
    model = loading.load(located, "replaced", RuntimeOptions(device="cpu"))
    ids = model.frame.around(next(model.tokens([TEXTS[0]])).ids)
    with torch.inference_mode():
        own = AutoModelForPreTraining.from_pretrained(folder).eval()
        scores = own(input_ids=torch.from_numpy(ids.astype(np.int64))[None]).logits[0].double()
    for target in (0, 1):
        found = model.score([packed(ids, [place], [target]) for place in range(len(ids))])
        expected = torch.nn.functional.logsigmoid(scores if target else -scores).numpy()
        np.testing.assert_allclose(found.log_prob, expected, atol=1e-5)
        np.testing.assert_array_equal(found.hits_1, (scores.numpy() > 0) == bool(target))
