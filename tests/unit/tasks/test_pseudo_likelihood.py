"""Pseudo-likelihoods against closed forms, and against transformers' own head one token at a time."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from embeval import metrics
from embeval.core.progress import Silent
from embeval.core.protocols import PLL_MODES, Collected, Undefined
from embeval.core.specs import DatasetRef, ModelSpec, TaskSpec
from embeval.encoders import loading
from embeval.errors import ConfigError, EvaluationError
from embeval.language_models import loading as language_models
from embeval.language_models.model import LanguageModel
from embeval.tasks import TASK_TYPES, _passes, pseudo_likelihood
from embeval.tasks._passes import Passes, Timed
from tests.support.doubles import Seen
from tests.support.language_models import Probability, model_of, tiny_language_model, word_tokenizer

WORDS = ["the", "unse+en", "red", "lost", "of", "a"]


def task_on(folder: Path, texts: Sequence[str], **options: Any) -> pseudo_likelihood.PseudoLikelihoodTask:
    """A task on texts, one a line, in a folder of their own."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "texts.txt").write_text("\n".join(texts) + "\n", encoding="utf-8")
    spec = TaskSpec(name="t", type="pseudo_likelihood", dataset=DatasetRef(path="texts.txt"), options=options)
    task: Any = TASK_TYPES.get("pseudo_likelihood").bind(spec, root=folder)
    return task  # type: ignore[no-any-return]


def scored(folder: Path, texts: Sequence[str], model: LanguageModel, progress: Any = None, **options: Any) -> Collected:
    """What a task collects of a model."""
    task = task_on(folder / "task", texts, **options)
    return task.collect(task.load(), model, progress or Silent())


def made_up(folder: Path, probability: Probability, **options: Any) -> LanguageModel:
    """A model that gives each token the probability of a function."""
    folder.mkdir(parents=True, exist_ok=True)
    return model_of(word_tokenizer(folder, WORDS), probability, **options)


def values(found: Collected) -> Mapping[str, float]:
    """Every metric of what was collected."""
    known = [metrics.get(f"{name}_{mode}") for mode in PLL_MODES for name in pseudo_likelihood.NAMES]
    numbers = {metric.name: metric.aggregate(found.records.columns) for metric in known}
    return {name: value for name, value in numbers.items() if not isinstance(value, Undefined)}


def toy(names: Sequence[str]) -> Probability:
    """0.9 for a piece whose other piece is seen and 0.1 for one whose other piece is masked; 0.5 for whole words."""
    mask = names.index("[MASK]")

    def probability(ids: list[int], place: int, target: int) -> float:
        if names[target] not in ("unse", "##en"):
            return 0.5
        other = place + 1 if names[target] == "unse" else place - 1
        return 0.1 if ids[other] == mask else 0.9

    return probability


def names_of(folder: Path) -> list[str]:
    """The vocabulary in its order."""
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = word_tokenizer(folder, WORDS)
    found: list[str] = tokenizer.convert_ids_to_tokens(range(len(tokenizer)))
    return found


def test_a_word_of_two_pieces_is_not_predicted_from_itself(tmp_path: Path) -> None:
    """The closed form of a toy model: ln 0.9 twice and ln 0.5, or ln 0.1, ln 0.9 and ln 0.5, to five digits.

    The fault is minicons' (kanishkamisra/minicons, issues 31 and 42), as are the identities: last pieces and words of
    one token are equal in both modes.
    """
    found = scored(tmp_path, ["unseen red"], made_up(tmp_path / "m", toy(names_of(tmp_path / "n"))))
    assert found.tokens is not None
    assert {mode: each.tolist() for mode, each in found.tokens.log_probs.items()} == {
        "original": pytest.approx([-0.10536, -0.10536, -0.69315], abs=5e-6),
        "within_word_l2r": pytest.approx([-2.30259, -0.10536, -0.69315], abs=5e-6),
    }
    assert found.records.columns["pll_original"].tolist() == pytest.approx([-0.90387], abs=5e-6)
    assert found.records.columns["pll_within_word_l2r"].tolist() == pytest.approx([-3.10109], abs=6e-6)
    assert found.tokens.tokens == ("unse", "##en", "red")
    assert (found.tokens.begin.tolist(), found.tokens.end.tolist()) == ([0, 4, 7], [4, 6, 10])
    assert found.tokens.word.tolist() == [0, 0, 1]
    assert found.counts["passes"] == 4  # six, of which two are shared
    assert found.work.n_texts == 4


def test_a_uniform_model_has_the_size_of_its_vocabulary(tmp_path: Path) -> None:
    """PPPL is V whatever the text, per word V to the number of tokens, and log2 V bits per token in characters."""
    n = len(names_of(tmp_path / "n"))
    texts = ["the red lost", "unseen red", "of a"]
    found = values(scored(tmp_path, texts, made_up(tmp_path / "m", lambda ids, place, target: 1 / n)))
    for mode in PLL_MODES:
        assert found[f"pppl_{mode}"] == pytest.approx(n, rel=1e-6)
        assert found[f"word_pppl_{mode}"] == pytest.approx(n ** (8 / 7), rel=1e-6)
        assert found[f"bits_per_character_{mode}"] == pytest.approx(8 * math.log2(n) / (12 + 10 + 4), rel=1e-6)


def test_texts_count_by_their_tokens(tmp_path: Path) -> None:
    """Log-probabilities (-1, -1) and (-3): exp(5 / 3) = 5.294, not the 11.40 of a mean over sentences."""
    names = names_of(tmp_path / "n")
    model = made_up(tmp_path / "m", lambda ids, place, target: math.exp(-3 if names[target] == "lost" else -1))
    found = values(scored(tmp_path, ["the red", "lost"], model))
    assert found["pppl_within_word_l2r"] == pytest.approx(5.294, abs=5e-4)
    assert found["pppl_original"] == pytest.approx(math.exp(5 / 3), rel=1e-6)


def test_the_word_with_the_number_zero_is_scored(tmp_path: Path) -> None:
    """As any other: where a library leaves out what is 0, it leaves out this word."""
    names = names_of(tmp_path / "n")
    assert names[0] == "the"
    model = made_up(tmp_path / "m", lambda ids, place, target: math.exp(-2 if target == 0 else -1))
    found = scored(tmp_path, ["the red", "the the"], model)
    assert found.records.columns["pll_original"].tolist() == pytest.approx([-3.0, -4.0], rel=1e-6)
    assert found.records.columns["tokens"].tolist() == [2.0, 2.0]


@pytest.fixture(scope="module")
def bert() -> LanguageModel:
    """A random BERT with its head."""
    located = loading.resolve(ModelSpec(name=str(tiny_language_model("masked"))))
    return language_models.load(located, "masked")


def one_by_one(texts: Sequence[str], room: int | None, stride: int) -> list[tuple[str, list[float], list[float]]]:
    """(tokens, ln p original, ln p within-word) of each text, by transformers' own head, one masked text at a time."""
    import torch
    from transformers import AutoModelForMaskedLM, AutoTokenizer

    folder = tiny_language_model("masked")
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForMaskedLM.from_pretrained(folder).eval()
    found = []
    for text in texts:
        encoded = tokenizer(text, add_special_tokens=False, truncation=False, verbose=False)
        ids, words = encoded["input_ids"], encoded.word_ids()
        special = set(tokenizer.all_special_ids) - {tokenizer.unk_token_id}
        rows = []
        for place, own in enumerate(ids):
            if own in special:
                continue
            start, stop = 0, len(ids)
            if room is not None and len(ids) > room:
                starts = [*range(0, len(ids) - room, stride), len(ids) - room]
                holding = [each for each in starts if each <= place < each + room]
                start = max(holding, key=lambda each: (min(place - each, each + room - 1 - place), -each))
                stop = start + room
            row = [tokenizer.convert_ids_to_tokens(own)]
            for later in (False, True):
                masked = [
                    tokenizer.mask_token_id
                    if at == place or (later and at > place and words[at] is not None and words[at] == words[place])
                    else ids[at]
                    for at in range(start, stop)
                ]
                given = [tokenizer.cls_token_id, *masked, tokenizer.sep_token_id]
                with torch.inference_mode():
                    logits = model(input_ids=torch.tensor([given])).logits[0, 1 + place - start]
                row.append(float(torch.log_softmax(logits.double(), dim=0)[own]))
            rows.append(row)
        tokens, original, within = zip(*rows, strict=True) if rows else ((), (), ())
        found.append((" ".join(tokens), list(original), list(within)))
    return found


TEXTS = (
    "the archive of the night server restored backups.",
    "red",
    "a zebra, unseen: the [MASK] of [SEP] tokens!",
    "the archive of the night server restored backups.",
    "scanned pages at night and day, filed on servers as documents with tokens of users from the archives",
)


@pytest.mark.parametrize("stride", [None, 3])
def test_every_token_is_as_by_transformers(tmp_path: Path, bert: LanguageModel, stride: int | None) -> None:
    """Both modes of each token within 1e-5, of texts that are long for the model, with special tokens written in them.

    transformers scores each window alone, so that neither batches nor padding can be at fault.
    """
    room = bert.room
    assert room is not None
    found = scored(tmp_path, TEXTS, bert, stride=stride)
    expected = one_by_one(TEXTS, room, stride or room // 2)
    assert found.tokens is not None
    for row, (tokens, original, within) in enumerate(expected):
        own = found.tokens.of(found.records.ids[row])
        assert " ".join(own.tokens) == tokens
        assert own.log_probs["original"].tolist() == pytest.approx(original, abs=1e-5)
        assert own.log_probs["within_word_l2r"].tolist() == pytest.approx(within, abs=1e-5)
        assert found.records.columns["pll_original"][row] == pytest.approx(sum(original), abs=1e-4)
        assert found.records.columns["tokens"][row] == len(original)
    n_long = sum(len(tokens.split()) > room for tokens, _, _ in expected)
    assert n_long >= 1
    assert found.counts["texts_in_windows"] == n_long
    assert any(f"longer than the {room} tokens" in each for each in found.warnings)
    assert "[MASK]" not in found.tokens.tokens  # it is seen, and not scored
    assert found.tokens.item.tolist() == sorted(found.tokens.item.tolist())


def test_a_token_stands_where_the_records_say(tmp_path: Path, bert: LanguageModel) -> None:
    """Characters of the text from begin to end are the token, its mark of a later piece left off."""
    found = scored(tmp_path, TEXTS, bert).tokens
    assert found is not None
    for row, token in enumerate(found.tokens):
        text = TEXTS[found.item[row]]
        assert text[found.begin[row] : found.end[row]] == token.removeprefix("##")


def test_a_text_alone_is_as_among_others(tmp_path: Path, bert: LanguageModel) -> None:
    """Padding and company change nothing beyond rounding."""
    together = scored(tmp_path, TEXTS, bert).records.columns
    for row, text in enumerate(TEXTS):
        alone = scored(tmp_path / str(row), [text], bert).records.columns
        for name in ("pll_original", "pll_within_word_l2r"):
            assert alone[name][0] == pytest.approx(together[name][row], abs=2e-5)


def test_work_in_small_parts_comes_to_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bert: LanguageModel
) -> None:
    """A few variants at once, fewer than one text has: the same tokens, and as many passes."""
    whole = scored(tmp_path, TEXTS, bert)
    monkeypatch.setattr(pseudo_likelihood, "VARIANTS_AT_ONCE", 5)
    seen = Seen()
    parts = scored(tmp_path, TEXTS, bert, seen)
    assert whole.tokens is not None
    assert parts.tokens is not None
    for mode in PLL_MODES:
        assert parts.tokens.log_probs[mode].tolist() == pytest.approx(whole.tokens.log_probs[mode].tolist(), abs=1e-5)
    assert parts.counts == whole.counts
    assert parts.work.n_texts == seen.total == parts.counts["passes"]


def test_texts_without_a_token_are_left_out_and_told(tmp_path: Path, bert: LanguageModel) -> None:
    """They have no value and do not count; where there is nothing else, that is an error."""
    texts = ["the red file", "[SEP]", "a new token", "[MASK] [CLS]"]
    found = scored(tmp_path, texts, bert)
    assert np.isnan(found.records.columns["pll_original"]).tolist() == [False, True, False, True]
    assert found.records.columns["tokens"].tolist() == [3.0, 0.0, 3.0, 0.0]
    assert found.counts["texts_without_tokens"] == 2
    assert "2 texts (2, 4) have no token to score, only special ones, and are left out." in found.warnings
    with pytest.raises(EvaluationError, match="None of the 2 texts holds a token to score"):
        scored(tmp_path / "none", [texts[1], texts[3]], bert)


def test_a_stride_that_leaves_tokens_out_is_refused(tmp_path: Path, bert: LanguageModel) -> None:
    """Longer than what the model takes at once."""
    with pytest.raises(EvaluationError, match=f"A stride of 99 leaves out tokens: .* takes {bert.room} at once"):
        scored(tmp_path, TEXTS, bert, stride=99)


def test_a_sample_scales_what_it_drew(tmp_path: Path, bert: LanguageModel) -> None:
    """n / m times the sum over places that both modes share; the interval holds by its formula; counts tell both."""
    exact = scored(tmp_path, TEXTS, bert)
    found = scored(tmp_path, TEXTS, bert, sample=0.3, seed=1, keep_tokens=True)
    assert found.tokens is not None
    assert exact.tokens is not None
    n_tokens = exact.records.columns["tokens"]
    n_drawn = np.bincount(found.tokens.item, minlength=len(TEXTS))
    assert n_drawn.tolist() == [max(min(2, n), math.ceil(0.3 * n)) for n in n_tokens.astype(int).tolist()]
    assert found.counts["tokens_scored"] == n_drawn.sum()
    assert found.records.columns["tokens"].tolist() == n_tokens.tolist()
    total = variance = 0.0
    for row, item in enumerate(found.records.ids):
        own, all_own = found.tokens.of(item), exact.tokens.of(item)
        at = np.searchsorted(all_own.place, own.place)
        for mode in PLL_MODES:
            drawn = all_own.log_probs[mode][at].astype(float)
            assert own.log_probs[mode].tolist() == pytest.approx(drawn.tolist(), abs=1e-5)
            expected = n_tokens[row] / len(drawn) * drawn.sum()
            assert found.records.columns[f"pll_{mode}"][row] == pytest.approx(expected, abs=1e-3)
        if row == 3:
            continue  # the same text as the first, from which both are drawn
        n, m = n_tokens[row], len(at)
        drawn = found.tokens.of(item).log_probs["original"].astype(float)
        times = 2 if row == 0 else 1
        total += times * n * drawn.mean()
        variance += times**2 * (n * n * (1 - m / n) * drawn.var(ddof=1) / m if m < n else 0.0)
    ends = [math.exp(-(total + sign * 1.959964 * math.sqrt(variance)) / n_tokens.sum()) for sign in (1, -1)]
    (sentence,) = [each for each in found.warnings if each.startswith("Estimated from")]
    assert f"Estimated from {n_drawn.sum()} of the {int(n_tokens.sum())} tokens." in sentence
    assert "with 95 % confidence each, pppl_within_word_l2r lies between" in sentence
    assert f"pppl_original lies between {ends[0]:.4f} and {ends[1]:.4f}." in sentence


def test_a_sample_is_another_protocol(tmp_path: Path) -> None:
    """Each share and seed is its own, so that no estimate stands in the column of exact values."""
    protocols = []
    for options in ({}, {"sample": 0.3}, {"sample": 0.5}, {"sample": 0.5, "seed": 1}):
        task = task_on(tmp_path, TEXTS, **options)
        protocols.append(task.protocol(task.load()))
    assert len({str(each) for each in protocols}) == 4
    seeded = task_on(tmp_path, TEXTS, seed=1)
    assert seeded.protocol(seeded.load()) == protocols[0]  # the seed of no sample


@pytest.mark.parametrize(
    ("options", "kept"),
    [
        ({}, True),
        ({"sample": 0.5}, False),
        ({"keep_tokens": False}, False),
        ({"sample": 0.5, "keep_tokens": True}, True),
    ],
)
def test_tokens_are_kept_of_exact_values(
    tmp_path: Path, bert: LanguageModel, options: Mapping[str, Any], kept: bool
) -> None:
    """Unless something else is said."""
    assert task_on(tmp_path, TEXTS, **options).keeps_tokens is kept
    assert (scored(tmp_path, TEXTS, bert, **options).tokens is not None) is kept


@pytest.mark.parametrize("modes", [["original"], ["within_word_l2r"]])
def test_one_mode_alone(tmp_path: Path, bert: LanguageModel, modes: list[str]) -> None:
    """Its columns and metrics are as with the other one, which isn't there."""
    both, one = scored(tmp_path, TEXTS, bert), scored(tmp_path, TEXTS, bert, modes=modes)
    name = f"pll_{modes[0]}"
    assert one.records.columns[name].tolist() == pytest.approx(both.records.columns[name].tolist(), abs=2e-5)
    assert [each for each in one.records.columns if each.startswith("pll_")] == [name]
    task = task_on(tmp_path, TEXTS, modes=modes)
    assert [metric.name for metric in task.metrics(task.load())] == [
        f"{each}_{modes[0]}" for each in ("pppl", "word_pppl", "bits_per_character")
    ]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"sample": 0.0}, "sample: must be a share between 0 and 1, not 0.0"),
        ({"sample": 1.0}, "null takes every token"),
        ({"stride": 0}, "stride: must be at least 1, not 0"),
        ({"seed": -1}, "seed: must be at least 0, not -1"),
        ({"modes": []}, "modes: must name"),
        ({"modes": ["original", "original"]}, "each once"),
    ],
)
def test_options_that_make_no_sense(tmp_path: Path, options: Mapping[str, Any], words: str) -> None:
    """Refused before anything is read."""
    with pytest.raises(ConfigError, match=words):
        task_on(tmp_path, TEXTS, **options)


def test_a_main_score_of_another_mode_is_refused(tmp_path: Path) -> None:
    """It would have no column."""
    spec = TaskSpec(
        name="t",
        type="pseudo_likelihood",
        dataset=DatasetRef(path="texts.txt"),
        options={"modes": ["original"]},
        main_score="pppl_within_word_l2r",
    )
    with pytest.raises(ConfigError, match="is not a metric of pseudo_likelihood with modes: original"):
        TASK_TYPES.get("pseudo_likelihood").bind(spec, root=tmp_path)


def test_what_it_costs_is_told_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bert: LanguageModel) -> None:
    """Passes and tokens; with more work than ``WORTH`` batches also the time, by passes that are spread over it."""
    few = Seen()
    found = scored(tmp_path, TEXTS, bert, few)
    n_tokens = found.counts["tokens_scored"]
    assert n_tokens is not None
    n_distinct = n_tokens - int(found.records.columns["tokens"][3])
    assert few.notes == [f"{found.counts['passes']} passes for {n_distinct} tokens of 4 texts"]
    monkeypatch.setattr(Passes, "n_to_time", lambda self, budget: 8)
    many = Seen()
    timed = scored(tmp_path, TEXTS, bert, many)
    assert many.notes == [f"{few.notes[0]}, about less than a second"]
    assert timed.records.columns["pll_original"].tolist() == found.records.columns["pll_original"].tolist()
    assert many.total == found.counts["passes"]


def test_how_many_passes_are_timed() -> None:
    """About a batch where there are 20 or more of them, else none."""
    assert Passes(n=10_000, n_tokens=300_000).n_to_time(2_048) == 68
    assert Passes(n=1_000, n_tokens=30_000).n_to_time(2_048) == 0
    assert Passes(n=10_000_000, n_tokens=300_000_000).n_to_time(262_144) == _passes.MOST


@pytest.mark.parametrize(
    ("found", "sentence"),
    [
        (None, "2,000 passes for x"),
        (Timed(2.0, 1_000, 1.0), "2,000 passes for x, about 2.0 minutes"),
        (Timed(2.0, 1_000, 0.25), "2,000 passes for x, about 30.0 seconds (75 % of them are in the cache)"),
        (Timed(0.1, 0, 0.0), "2,000 passes for x; all that were tried are in the cache"),
        (Timed(0.1, 0, 0.01), "2,000 passes for x; about 99 % of them are in the cache"),
    ],
)
def test_how_the_cost_is_told(found: Timed | None, sentence: str) -> None:
    """Seconds per token that was run, times the tokens of what is missing."""
    assert _passes.told(Passes(2_000, 60_000), "x", found) == sentence
