"""The task of masked tokens: closed forms, transformers' own loss, what counts and what is told."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest

from embeval.core.progress import Silent
from embeval.core.protocols import Collected, Undefined
from embeval.core.specs import DatasetRef, ModelSpec, RuntimeOptions, TaskSpec
from embeval.data.texts import Texts
from embeval.encoders import loading
from embeval.errors import ConfigError, EvaluationError
from embeval.language_models import loading as language_models
from embeval.language_models.masking import Masker, Masking
from embeval.language_models.model import LanguageModel
from embeval.tasks import _language, masked_lm
from tests.support.doubles import Seen
from tests.support.language_models import model_of, tiny_language_model, word_tokenizer

MASKINGS: tuple[Masking, ...] = get_args(Masking)
LINES = [
    "restore the backup of the old server, and scan a new page",
    "a souvenir",
    "the archive of the user: a token for the key, a key for the file. " * 18,
    "[SEP] don't",
    "three users at night",
]


def texts(*lines: str, subsets: tuple[str, ...] = ()) -> Texts:
    """As they would have been read."""
    return Texts(tuple(str(number + 1) for number in range(len(lines))), lines, subsets)


def task(**options: Any) -> masked_lm.MaskedLmTask:
    """A task whose data is handed to it."""
    main, path = options.pop("main_score", None), options.pop("path", "unused")
    spec = TaskSpec(name="t", type="masked_lm", dataset=DatasetRef(path=path), options=options, main_score=main)
    return masked_lm.TASK.bind(spec, root=Path())


def tiny(**runtime: Any) -> LanguageModel:
    """A random BERT for 16 tokens, 14 of them content."""
    located = loading.resolve(ModelSpec(name=str(tiny_language_model("masked"))))
    return language_models.load(located, "masked", RuntimeOptions(device="cpu", **runtime))


def collected(data: Texts, model: LanguageModel, **options: Any) -> Collected:
    """What a model gets."""
    return task(**options).collect(data, model, Silent())


def values(found: Collected, **options: Any) -> dict[str, float]:
    """Value of each metric."""
    made = {}
    for metric in task(**options).metrics(texts("x")):
        value = metric.aggregate(found.records.columns)
        assert not isinstance(value, Undefined), metric.name
        made[metric.name] = value
    return made


# --- closed forms -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def uniform(tmp_path_factory: pytest.TempPathFactory) -> LanguageModel:
    """A BERT whose scores of all tokens are equal: its head sees nothing and has one bias for all."""
    import shutil

    from safetensors.torch import load_file, save_file

    folder = tmp_path_factory.mktemp("uniform") / "bert"
    shutil.copytree(tiny_language_model("masked"), folder)
    weights = load_file(folder / "model.safetensors")
    for name, value in weights.items():
        if name.startswith("cls.predictions.transform.LayerNorm"):
            value.zero_()
        elif name in ("cls.predictions.bias", "cls.predictions.decoder.bias"):
            value.fill_(0.5)
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    return language_models.load(loading.resolve(ModelSpec(name=str(folder))), "masked", RuntimeOptions(device="cpu"))


@pytest.mark.parametrize("how", MASKINGS)
def test_a_model_that_knows_nothing_loses_ln_v(uniform: LanguageModel, how: Masking) -> None:
    """ln V nats and log2 V bits per token, accuracy 1 / V and top 5 5 / V, whichever token the truth is."""
    found = values(collected(texts(*LINES), uniform, masking=how, probability=0.5, draws=3), masking=how)
    size = uniform.frame.n_tokens
    assert found["mlm_loss"] == pytest.approx(math.log(size), rel=1e-6)
    assert found["mlm_loss_bits"] == pytest.approx(math.log2(size), rel=1e-6)
    assert found["mlm_accuracy"] == pytest.approx(1 / size, rel=1e-6)
    assert found["mlm_top_5"] == pytest.approx(5 / size, rel=1e-6)


def test_losses_per_word_and_per_character_by_hand(tmp_path: Path) -> None:
    """Everything masked, p = 1/8 a token: two words of one token and one of two, 3 + 3 + 8 characters."""
    tokenizer = word_tokenizer(tmp_path, ["old", "new", "souve+nir"])
    model = model_of(tokenizer, lambda ids, place, target: 1 / 8)
    found = collected(texts("old new souvenir"), model, masking="aligned", probability=1.0)
    assert {name: column.tolist() for name, column in found.records.columns.items()} == {
        "nats": [pytest.approx(4 * math.log(8), rel=1e-6)],
        "hits_1": [4.0],
        "hits_5": [4.0],
        "masked_tokens": [4.0],
        "masked_words": [3.0],
        "masked_characters": [14.0],
    }
    made = values(found, masking="aligned")
    assert next(iter(made)) == "mlm_loss_per_word"
    assert made["mlm_loss_per_word"] == pytest.approx(4 * math.log(8) / 3, rel=1e-6)
    assert made["mlm_bits_per_character"] == pytest.approx(4 * 3 / 14, rel=1e-6)
    assert made["mlm_loss"] == pytest.approx(math.log(8), rel=1e-6)


def test_long_texts_count_as_much_as_they_have_masks(tmp_path: Path) -> None:
    """p = 1/2 in a text of one token, 1/8 in one of three: (1 + 9) / 4 bits a token, not the mean of 1 and 3."""
    tokenizer = word_tokenizer(tmp_path, ["old", "new"])
    model = model_of(tokenizer, lambda ids, place, target: 1 / 2 if target == 0 else 1 / 8)
    found = collected(texts("old", "new new new"), model, masking="mask", probability=1.0)
    assert values(found)["mlm_loss_bits"] == pytest.approx(2.5, rel=1e-6)


def test_a_word_with_id_0_is_scored(tmp_path: Path) -> None:
    """Where the vocabulary has a word there: its probability is asked for, and the place is masked, not padded."""
    tokenizer = word_tokenizer(tmp_path, ["old", "new"])
    asked = []

    def probability(ids: list[int], place: int, target: int) -> float:
        asked.append((ids, place, target))
        return 1 / 4

    found = collected(texts("old new", "old"), model_of(tokenizer, probability), masking="mask", probability=1.0)
    mask = tokenizer.mask_token_id
    cls, sep = tokenizer.cls_token_id, tokenizer.sep_token_id
    assert sorted(asked) == sorted(
        [([cls, mask, mask, sep], 1, 0), ([cls, mask, mask, sep], 2, 1), ([cls, mask, sep], 1, 0)]
    )
    assert found.records.columns["masked_tokens"].tolist() == [2.0, 1.0]


# --- against transformers -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", MASKINGS)
def test_the_loss_is_that_of_transformers(how: Masking) -> None:
    """The cross-entropy of AutoModelForMaskedLM 5.24 over the same inputs and labels, window by window."""
    import torch
    from transformers import AutoModelForMaskedLM, AutoTokenizer

    folder = tiny_language_model("masked")
    model = AutoModelForMaskedLM.from_pretrained(folder).eval()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    ours = tiny()
    masker = Masker(how, 0.3, False, 5, ours.frame)
    found = collected(texts(*LINES), ours, masking=how, probability=0.3, draws=2, seed=5).records.columns
    for row, line in enumerate(LINES):
        (text,) = ours.tokens([line])
        expected, n, first, top = 0.0, 0, 0, 0
        for number in (0, 1):
            masks = masker.draw(line, text, masker.units(line, text), number)
            for start in range(0, len(text), 14):
                labels = torch.full((len(text),), -100)
                labels[masks.places] = torch.from_numpy(text.ids)[masks.places].long()
                window = labels[start : start + 14]
                inputs = torch.from_numpy(masks.shown[start : start + 14]).long()
                row_of = [tokenizer.cls_token_id, *inputs.tolist(), tokenizer.sep_token_id]
                wanted = [-100, *window.tolist(), -100]
                if (m := int((window != -100).sum())) == 0:
                    continue
                with torch.inference_mode():
                    made = model(input_ids=torch.tensor([row_of]), labels=torch.tensor([wanted]))
                expected += float(made.loss) * m
                at = [place for place, label in enumerate(wanted) if label != -100]
                best = made.logits[0, at].topk(5).indices.tolist()
                first += sum(wanted[place] == each[0] for place, each in zip(at, best, strict=True))
                top += sum(wanted[place] in each for place, each in zip(at, best, strict=True))
                n += m
        assert found["nats"][row] == pytest.approx(expected, rel=1e-5), line
        assert (found["masked_tokens"][row], found["hits_1"][row], found["hits_5"][row]) == (n, first, top)
    assert found["masked_tokens"].sum() > 40


@pytest.mark.parametrize("how", MASKINGS)
def test_batches_order_and_company_change_nothing(how: Masking) -> None:
    """One text at a time, all at once, backwards, and each alone in its file; the same text twice has the same row."""
    options = {"masking": how, "draws": 2, "probability": 0.3}
    data = texts(*LINES, LINES[0])
    found = collected(data, tiny(batch_tokens=16), **options).records.columns
    many = collected(data, tiny(batch_tokens=4096), **options).records.columns
    backwards = collected(texts(*LINES[::-1]), tiny(), **options).records.columns
    for name in found:
        assert found[name][0] == found[name][-1]
        np.testing.assert_allclose(many[name], found[name], rtol=1e-5)
        np.testing.assert_allclose(backwards[name][::-1], found[name][:-1], rtol=1e-5)
    for row, line in enumerate(LINES[:3]):
        alone = collected(texts(line), tiny(), **options).records.columns
        for name in alone:
            np.testing.assert_allclose(alone[name], found[name][row : row + 1], rtol=1e-5)


def test_what_is_scored_together_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same rows where little is held in memory at once."""
    options = {"draws": 3, "probability": 0.3}
    found = collected(texts(*LINES), tiny(), **options).records.columns
    monkeypatch.setattr(_language, "VARIANTS_AT_ONCE", 2)
    few = collected(texts(*LINES), tiny(), **options).records.columns
    monkeypatch.setattr(_language, "NUMBERS_AT_ONCE", 1)
    fewest = collected(texts(*LINES), tiny(), **options).records.columns
    for name in found:
        np.testing.assert_allclose(few[name], found[name], rtol=1e-5)
        np.testing.assert_allclose(fewest[name], found[name], rtol=1e-5)


# --- draws --------------------------------------------------------------------------------------------------------


def test_several_draws_are_summed(tmp_path: Path) -> None:
    """Three draws have the masks of the first, and those of two more; all in the sums of a text."""
    model = tiny()
    one, two, three = (collected(texts(*LINES), model, draws=n, probability=0.3).records.columns for n in (1, 2, 3))
    for name in one:
        assert (two[name] >= one[name]).all(), name
        assert (three[name] >= two[name]).all(), name
    for name in ("nats", "masked_tokens"):
        assert three[name].sum() > two[name].sum() > one[name].sum()


def test_more_draws_make_a_smaller_interval() -> None:
    """Of a bootstrap over 60 texts of nearly equal length, so that most of the spread is that of the masks."""
    lines = [f"the old server of page {number % 10} {'scan ' * (number // 10)}".strip() for number in range(60)]
    widths = []
    for n in (1, 16):
        found = collected(texts(*lines), tiny(), draws=n).records.columns
        (metric, *_) = task().metrics(texts("x"))
        low, high = interval(metric, found)
        widths.append(high - low)
    assert widths[1] < 0.7 * widths[0]


def interval(metric: Any, columns: Any) -> tuple[float, float]:
    """Percentiles of a bootstrap over texts."""
    rng = np.random.default_rng(0)
    n = len(columns["nats"])
    counts = rng.multinomial(n, np.full(n, 1 / n), size=500).T
    found = metric.resampler([metric], columns)(counts)[0]
    low, high = np.nanpercentile(found, [2.5, 97.5])
    return float(low), float(high)


# --- nothing to score ---------------------------------------------------------------------------------------------


def test_a_text_without_masks_counts_for_nothing_and_is_told(tmp_path: Path) -> None:
    """Its row is zeros, and the loss that of the others."""
    tokenizer = word_tokenizer(tmp_path, ["old", "new"])
    model = model_of(tokenizer, lambda ids, place, target: 1 / 4)
    lines = ["old new", "new", "old", "[SEP]", "new old " * 20]
    found = collected(texts(*lines), model)
    columns = found.records.columns
    without = columns["masked_tokens"] == 0
    assert 1 <= without.sum() < 5
    assert without[3]
    assert all((column[without] == 0).all() for column in columns.values())
    assert values(found)["mlm_loss"] == pytest.approx(math.log(4), rel=1e-6)
    assert found.counts["texts_without_masks"] == without.sum()
    assert any(f"{without.sum()} texts have no mask and count for nothing" in each for each in found.warnings)
    spared = collected(texts(*lines), model, at_least_one=True)
    assert spared.counts["texts_without_masks"] == 1
    assert any("1 text has no mask and counts for nothing" in each for each in spared.warnings)
    assert spared.records.columns["masked_tokens"].tolist() == [
        max(each, line != "[SEP]") for each, line in zip(columns["masked_tokens"].tolist(), lines, strict=True)
    ]


@pytest.mark.parametrize("how", MASKINGS)
def test_no_mask_at_all_is_an_error(tmp_path: Path, how: Masking) -> None:
    """Never 0, never NaN: what to do is said. With ``at_least_one`` there is a value."""
    tokenizer = word_tokenizer(tmp_path, ["old", "new"])
    model = model_of(tokenizer, lambda ids, place, target: 1 / 4)
    data = texts("old", "new")
    with pytest.raises(EvaluationError, match="Nothing was drawn to be masked in the 2 texts") as caught:
        collected(data, model, probability=1e-9, masking=how)
    assert "at_least_one: true" in str(caught.value)
    assert len(str(caught.value).splitlines()) == 2
    found = collected(data, model, probability=1e-9, masking=how, at_least_one=True)
    assert found.records.columns["masked_tokens"].tolist() == [1.0, 1.0]
    assert values(found, masking=how)["mlm_loss"] == pytest.approx(math.log(4), rel=1e-6)
    with pytest.raises(EvaluationError, match="nothing but special tokens"):
        collected(texts("[SEP]"), model, probability=1.0)


def test_a_sub_set_without_masks_has_no_value(tmp_path: Path) -> None:
    """Undefined by name, while the whole has its loss."""
    tokenizer = word_tokenizer(tmp_path, ["old", "new"])
    model = model_of(tokenizer, lambda ids, place, target: 1 / 4)
    data = texts("old new " * 20, "[SEP]", subsets=("a", "b"))
    found = collected(data, model)
    assert found.records.slices == {"subset": ("a", "b")}
    (metric, *_) = task().metrics(data)
    of_b = {name: column[1:] for name, column in found.records.columns.items()}
    assert metric.aggregate(of_b) == Undefined("no_masked_tokens")


def test_a_model_that_can_hide_nothing_is_refused(tmp_path: Path) -> None:
    """Without a mask token, and without room for a token of a text."""
    tokenizer = word_tokenizer(tmp_path, ["old"])
    model = model_of(tokenizer, lambda ids, place, target: 1 / 4)
    model.frame = replace(model.frame, mask_id=None)
    with pytest.raises(EvaluationError, match="has no mask token"):
        collected(texts("old"), model)
    with pytest.raises(EvaluationError, match="takes 2 tokens"):
        collected(texts("old"), model_of(tokenizer, lambda ids, place, target: 1 / 4, limit=2))


# --- words that all models share ----------------------------------------------------------------------------------


def dropping(folder: Path) -> Any:
    """A tokenizer of whole words that drops punctuation."""
    from tokenizers import Regex, normalizers

    tokenizer = word_tokenizer(folder, ["old", "new"])
    tokenizer.backend_tokenizer.normalizer = normalizers.Replace(Regex("[.!]"), "")
    return tokenizer


def test_few_words_that_a_tokenizer_drops_are_told_and_many_refused(tmp_path: Path) -> None:
    """One of 121 words, then one of three."""
    model = model_of(dropping(tmp_path), lambda ids, place, target: 1 / 4)
    found = collected(texts("old new " * 60 + "."), model, masking="aligned", probability=1.0)
    assert found.records.columns["masked_words"].tolist() == [120.0]
    assert {name: found.counts[name] for name in ("words", "words_left_out", "words_tied")} == {
        "words": 121,
        "words_left_out": 1,
        "words_tied": 0,
    }
    assert "The tokenizer drops 1 of the 121 words, which is not counted" in " ".join(found.warnings)
    with pytest.raises(EvaluationError, match="drops 1 of the 3 words of the task 't'") as caught:
        collected(texts("old new !"), model, masking="aligned", probability=1.0)
    assert "masking: whole_word" in str(caught.value)
    assert collected(texts("old new !"), model, masking="whole_word", probability=1.0).counts["masked_tokens"] == 2


def test_words_in_one_token_are_told(tmp_path: Path) -> None:
    """Two emoji that the tokenizer doesn't part: both are counted, and so is how often that was."""
    tokenizer = word_tokenizer(tmp_path, ["old", "new"])
    model = model_of(tokenizer, lambda ids, place, target: 1 / 4)
    found = collected(texts("old 🙂🙃 new"), model, masking="aligned", probability=1.0)
    assert (found.counts["words_tied"], found.records.columns["masked_words"].tolist()) == (1, [4.0])
    assert found.records.columns["masked_tokens"].tolist() == [3.0]
    told = " ".join(found.warnings)
    assert "1 of the 4 words is in one token with the word before" in told
    assert "does not know 1 of the 3 tokens" in told


def test_models_of_two_tokenizers_are_asked_for_the_same_words(tmp_path: Path) -> None:
    """Equal counts of words and characters in every row, unequal ones of tokens."""
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    fine = word_tokenizer(tmp_path / "a", ["old", "ser+v+er", "sou+ve+nir", ","])
    coarse = word_tokenizer(tmp_path / "b", ["old", "server", "souvenir", ","])
    data = texts("old server, souvenir", "server souvenir " * 20, "old, old")
    one, other = (
        collected(data, model_of(each, lambda ids, place, target: 1 / 4), masking="aligned", draws=4).records.columns
        for each in (fine, coarse)
    )
    for name in ("masked_words", "masked_characters"):
        assert one[name].tolist() == other[name].tolist()
        assert one[name].sum() > 10
    assert one["masked_tokens"].sum() > 1.5 * other["masked_tokens"].sum()


# --- options and what is recorded ---------------------------------------------------------------------------------


def test_the_protocol_holds_every_option_that_changes_a_number() -> None:
    """And nothing of the model."""
    data = texts("x")
    before = task().protocol(data)
    for name, value in {
        "masking": "mask",
        "probability": 0.2,
        "draws": 2,
        "seed": 1,
        "at_least_one": True,
    }.items():
        changed = task(**{name: value}).protocol(data)
        assert {key for key in before if before[key] != changed[key]} == {name}
        assert changed[name] == value
    assert replace(task(), tokenizer="sha256:1").protocol(data) == before


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"probability": 0}, "probability: must be above 0"),
        ({"probability": 1.5}, "at most 1, not 1.5"),
        ({"draws": 0}, "draws: must be from 1 to 10000, not 0"),
        ({"draws": 10_001}, "draws: must be from 1 to 10000, not 10001"),
        ({"seed": -1}, "seed: must be at least 0"),
        ({"masking": "bart"}, "masking"),
        ({"path": "texts.jsonl", "unit": "file"}, "in texts.jsonl each row is a text"),
        ({"path": "texts.txt", "columns": {"text": "x"}}, "texts.txt is plain text, which has no columns"),
        ({"main_score": "mlm_loss_per_word"}, "It needs masking: aligned"),
        ({"main_score": "mlm_los"}, "Did you mean 'mlm_loss'"),
        ({"main_score": "ndcg_at_10"}, "is not a metric of masked_lm"),
    ],
)
def test_options_that_make_no_sense(options: dict[str, Any], told: str) -> None:
    """Told before anything is read."""
    with pytest.raises(ConfigError) as caught:
        task(**options)
    assert told in str(caught.value).replace("\n", " ")


def test_metrics_by_masking() -> None:
    """Per word only with words that all models share; then a value per word stands for the task."""
    per_token = ["mlm_loss", "mlm_loss_bits", "mlm_accuracy", "mlm_top_5"]
    for how in ("bert", "mask", "whole_word"):
        assert [each.name for each in task(masking=how).metrics(texts("x"))] == per_token
    aligned = task(masking="aligned").metrics(texts("x"))
    assert [each.name for each in aligned] == ["mlm_loss_per_word", "mlm_bits_per_character", *per_token]
    other = task(masking="aligned", main_score="mlm_top_5").metrics(texts("x"))
    assert [each.name for each in other][:2] == ["mlm_top_5", "mlm_loss_per_word"]


def test_counts_and_progress_by_hand(tmp_path: Path) -> None:
    """Room for three tokens, all masked, two draws: two windows and one, twice; equal ones run once."""
    tokenizer = word_tokenizer(tmp_path, ["old", "new"])
    model = model_of(tokenizer, lambda ids, place, target: 1 / 4, limit=5)
    watch = Seen()
    data = texts("old new old new odd", "old", "[PAD]")
    found = task(masking="mask", probability=1.0, draws=2).collect(data, model, watch)
    assert found.counts == {
        "texts": 3,
        "tokens": 6,
        "tokens_unknown": 1,
        "masked_tokens": 12,
        "texts_without_masks": 1,
        "texts_in_windows": 1,
        "passes": 6,
    }
    assert (found.work.n_texts, found.work.n_tokens) == (3, 5 + 4 + 3)
    assert watch.total == found.counts["passes"]


@pytest.mark.parametrize("kind", ["causal", "replaced", "none"])
def test_other_kinds_of_models_are_refused(kind: str) -> None:
    """With the reason; a masked one is taken, with its tokenizer."""
    spec = ModelSpec(name="m")
    with pytest.raises(EvaluationError, match="can't be evaluated on the task 't'"):
        task().fitted(kind, None, spec)
    assert task().fitted("masked", "sha256:1", spec).tokenizer == "sha256:1"
