"""Replaced tokens against transformers' own loss (5.24), closed forms, seeds, and refusals."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from embeval.core.progress import Silent
from embeval.core.protocols import Collected, Undefined
from embeval.core.specs import DatasetRef, ModelSpec, RuntimeOptions, TaskSpec
from embeval.encoders import loading as encoders
from embeval.errors import ConfigError, EvaluationError, ModelError
from embeval.language_models import loading
from embeval.language_models.model import LanguageModel, Scores
from embeval.language_models.variants import Variants
from embeval.tasks.replaced_tokens import TASK, ReplacedTokensTask
from tests.support.models import DISCRIMINATOR, edit_json, save_tiny_language_model

TEXTS = [
    "the backups of an older server",
    "a new token for the user [SEP] at night",
    "scan a page into the archive",
    "three users at night, one key and two fast servers",
    "restore the folder",
    "old server " * 60,
]
"""The last is longer than what the models take."""


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folders ``discriminator`` and ``generator`` of one tokenizer, ``bert`` of the same and ``roberta`` of another."""
    folder = tmp_path_factory.mktemp("models")
    save_tiny_language_model(folder / "discriminator", DISCRIMINATOR)
    save_tiny_language_model(folder / "generator", "electra-generator")
    save_tiny_language_model(folder / "roberta", "roberta")
    return folder


def write(folder: Path, texts: list[str]) -> None:
    """The texts as a file, one a line."""
    (folder / "texts.txt").write_text("\n".join(texts) + "\n", encoding="utf-8")


def task_of(folder: Path, main_score: str | None = None, **options: Any) -> ReplacedTokensTask:
    """The task on that file."""
    spec = TaskSpec(
        name="held-out",
        type="replaced_tokens",
        dataset=DatasetRef(path="texts.txt"),
        options=options,
        main_score=main_score,
    )
    return TASK.bind(spec, root=folder)


def load(folder: Path) -> LanguageModel:
    """A discriminator, on the CPU."""
    return loading.load(encoders.resolve(ModelSpec(name=str(folder))), "replaced", RuntimeOptions(device="cpu"))


def fitted(task: ReplacedTokensTask, folder: Path) -> ReplacedTokensTask:
    """The task bound to a model."""
    located = encoders.resolve(ModelSpec(name=str(folder)))
    return task.fitted(*loading.known_of(located), located.spec)


def measured(task: ReplacedTokensTask, model: LanguageModel) -> tuple[dict[str, float], Collected]:
    """(metrics, what was collected)."""
    payload = task.load()
    collected = task.collect(payload, model, Silent())
    values = {}
    for metric in task.metrics(payload):
        value = metric.aggregate(collected.records.columns)
        assert not isinstance(value, Undefined)
        values[metric.name] = value
    return values, collected


def test_values_are_those_of_transformers(models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Loss, accuracy and recall from ElectraForPreTraining's own loss and scores, on the very inputs and labels.

    Its loss is a mean over all places, so it is asked with special tokens as kept ones, and theirs is taken off.
    """
    import torch
    from transformers import ElectraForPreTraining

    write(tmp_path, TEXTS)
    reference = ElectraForPreTraining.from_pretrained(models / "discriminator").eval()
    model, seen = load(models / "discriminator"), []
    score = model.score

    def spied(variants: list[str], **options: Any) -> Scores:
        seen.extend(variants)
        return score(variants, **options)

    monkeypatch.setattr(model, "score", spied)
    values, collected = measured(task_of(tmp_path, probability=0.4, draws=2), model)

    nats = n = correct = replaced = found = 0.0
    for variant in seen:
        unpacked = Variants.of([variant])
        ids = torch.from_numpy(unpacked.ids.astype(np.int64))[None]
        labels = torch.zeros_like(ids)
        labels[0, torch.from_numpy(unpacked.places)] = torch.from_numpy(unpacked.targets.astype(np.int64))
        with torch.inference_mode():
            gives = reference(input_ids=ids, attention_mask=torch.ones_like(ids), labels=labels)
        others = np.setdiff1d(np.arange(ids.shape[1]), unpacked.places)
        nats += float(gives.loss) * ids.shape[1] - float(torch.nn.functional.softplus(gives.logits[0, others]).sum())
        said = (gives.logits[0, torch.from_numpy(unpacked.places)] > 0).numpy()
        n += len(unpacked.places)
        correct += (said == unpacked.targets).sum()
        replaced += unpacked.targets.sum()
        found += (said & (unpacked.targets == 1)).sum()
    assert len(seen) > 2 * len(TEXTS)
    assert values["rtd_loss"] == pytest.approx(nats / n, abs=1e-5)
    assert (values["rtd_accuracy"], values["rtd_recall"]) == (correct / n, found / replaced)
    assert collected.counts["tokens_replaced"] == replaced == collected.records.columns["rtd_replaced"].sum()
    assert collected.records.columns["rtd_tokens"].sum() == n == 2 * (collected.counts["tokens"] or 0)


@pytest.mark.parametrize("bias", [0.0, 1.5])
def test_a_model_that_says_the_same_of_all(models: Path, tmp_path: Path, bias: float) -> None:
    """Loss in closed form from the share of replaced tokens; ln 2 and one half each where it can't tell at all."""
    import shutil

    from safetensors.torch import load_file, save_file

    write(tmp_path, TEXTS)
    folder = Path(shutil.copytree(models / "discriminator", tmp_path / "model"))
    weights = load_file(folder / "model.safetensors")
    last = "discriminator_predictions.dense_prediction"
    weights[f"{last}.weight"] *= 0
    weights[f"{last}.bias"] = weights[f"{last}.bias"] * 0 + bias
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    values, collected = measured(task_of(tmp_path), load(folder))
    share = collected.records.columns["rtd_replaced"].sum() / collected.records.columns["rtd_tokens"].sum()
    kept, replaced = math.log1p(math.exp(bias)), math.log1p(math.exp(-bias))
    assert values["rtd_loss"] == pytest.approx((1 - share) * kept + share * replaced, abs=1e-6)
    if bias:
        assert values["rtd_accuracy"] == pytest.approx(share)
        assert values["rtd_recall"] == 1.0
    else:
        assert values == pytest.approx({"rtd_loss": math.log(2), "rtd_accuracy": 0.5, "rtd_recall": 0.5})


@pytest.mark.parametrize("generator", [None, "generator"])
def test_draws_hang_on_the_text_and_the_seed(models: Path, tmp_path: Path, generator: str | None) -> None:
    """Another order of the file: the same per text. Two draws: another one beside the first. Another seed: another."""
    model = load(models / "discriminator")
    options: dict[str, Any] = {"probability": 0.5}
    if generator is not None:
        options["generator"] = str(models / generator)

    def columns(texts: list[str], **more: Any) -> dict[str, Any]:
        write(tmp_path, texts)
        return dict(measured(task_of(tmp_path, **options, **more), model)[1].records.columns)

    first, backwards, other = columns(TEXTS), columns(TEXTS[::-1]), columns(TEXTS, seed=7)
    for name, values in first.items():
        np.testing.assert_allclose(backwards[name][::-1], values, atol=2e-5, err_msg=name)
    assert not np.array_equal(other["rtd_replaced"], first["rtd_replaced"])
    both = columns(TEXTS, draws=2)
    np.testing.assert_array_equal(both["rtd_tokens"], 2 * first["rtd_tokens"])
    assert (both["rtd_replaced"] >= first["rtd_replaced"]).all()
    assert (both["rtd_nats"] > first["rtd_nats"]).all()


def test_what_a_generator_guesses_right_counts_as_kept(models: Path, tmp_path: Path) -> None:
    """Tokens chosen are more than tokens replaced; a sure generator that is always right leaves nothing to tell."""
    write(tmp_path, TEXTS * 3)
    task = task_of(tmp_path, probability=0.9, draws=8, generator=str(models / "generator"))
    counts = measured(task, load(models / "discriminator"))[1].counts
    chosen, replaced = counts["tokens_chosen"] or 0, counts["tokens_replaced"] or 0
    assert 0 < replaced < chosen <= 8 * (counts["tokens"] or 0)


def test_the_generator_is_part_of_the_protocol(models: Path, tmp_path: Path) -> None:
    """With its revision; so are seed, draws and probability."""
    write(tmp_path, TEXTS)

    def protocol(**options: Any) -> dict[str, Any]:
        task = task_of(tmp_path, **options)
        return dict(task.protocol(task.load()))

    other = save_tiny_language_model(tmp_path / "generator", "electra-generator", seed=5)
    found = [
        protocol(),
        protocol(generator=str(models / "generator")),
        protocol(generator=str(other)),
        protocol(generator={"model": str(other), "dtype": "bfloat16"}),
        protocol(seed=1),
        protocol(draws=2),
        protocol(probability=0.2),
    ]
    assert len({str(each) for each in found}) == len(found)
    assert protocol(generator="./generator") == protocol(generator={"model": str(other)})
    assert str(tmp_path) not in str(found)


def test_models_that_are_no_discriminators_are_refused(models: Path, tmp_path: Path) -> None:
    """A masked model is told its own rulers."""
    write(tmp_path, TEXTS)
    with pytest.raises(EvaluationError) as caught:
        fitted(task_of(tmp_path), models / "generator")
    assert str(caught.value).partition(" ")[2] == (
        "can't be evaluated on the task 'held-out': it is a masked language model, which guesses the word under a mask "
        "and doesn't say whether a word was replaced.\n"
        "Its rulers are the tasks masked_lm, pseudo_likelihood and minimal_pairs."
    )


def test_generators_that_do_not_fit_are_refused(models: Path, tmp_path: Path) -> None:
    """Another tokenizer, a discriminator, a system without a head, a folder that isn't there."""
    write(tmp_path, TEXTS)
    discriminator = models / "discriminator"
    assert fitted(task_of(tmp_path, generator=str(models / "generator")), discriminator).tokenizer is not None
    with pytest.raises(EvaluationError, match=r"can't be the generator .*: they have two tokenizers\.\nGive the gener"):
        fitted(task_of(tmp_path, generator=str(models / "roberta")), discriminator)
    with pytest.raises(EvaluationError, match="guesses words under a mask: ELECTRA's discriminator tells replaced"):
        fitted(task_of(tmp_path, generator=str(discriminator)), discriminator)
    hashing = {"model": "hashing", "backend": "hashing"}
    with pytest.raises(EvaluationError, match="guesses words under a mask: it counts words and holds no model"):
        fitted(task_of(tmp_path, generator=hashing), discriminator)
    with pytest.raises(ModelError, match=r"Task 'held-out', generator: Model folder .* does not exist"):
        task_of(tmp_path, generator="./nothing")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"probability": 0}, "probability: must be above 0 and at most 1, not 0"),
        ({"probability": 1.5}, "probability: must be above 0 and at most 1"),
        ({"draws": 0}, "draws: must be at least 1, not 0"),
        ({"seed": -1}, "seed: must be at least 0, not -1"),
        ({"generator": {"model": "a/b", "beckend": "x"}}, "beckend"),
        ({"main_score": "mlm_loss"}, "'mlm_loss' is not a metric of replaced_tokens. Did you mean 'rtd_loss'"),
    ],
)
def test_wrong_options(tmp_path: Path, options: dict[str, Any], said: str) -> None:
    """Before anything is read."""
    with pytest.raises(ConfigError, match=said.replace("(", r"\(")):
        task_of(tmp_path, **options)


def test_nothing_replaced_is_an_error(models: Path, tmp_path: Path) -> None:
    """Instead of a loss of nothing."""
    write(tmp_path, ["a"])
    with pytest.raises(
        EvaluationError, match=r"none of 1 tokens was replaced, so nothing .*\nRaise probability or dra"
    ):
        task_of(tmp_path, probability=1e-9).collect(task_of(tmp_path).load(), load(models / "discriminator"), Silent())


def test_unknown_tokens_are_told(models: Path, tmp_path: Path) -> None:
    """In the counts and a warning, as in all tasks on tokens."""
    write(tmp_path, [*TEXTS, "東京"])
    collected = measured(replace(task_of(tmp_path, probability=0.5), tokenizer="t"), load(models / "discriminator"))[1]
    assert collected.counts["tokens_unknown"] == 2
    assert any("The tokenizer does not know 2 of the" in each for each in collected.warnings)
    assert collected.tokenizer == "t"


def test_a_generator_that_was_never_trained_is_refused(models: Path, tmp_path: Path) -> None:
    """As every model is; its draws would be of no word in particular."""
    write(tmp_path, TEXTS)
    made = save_tiny_language_model(tmp_path / "made", "electra-generator", spread=False)
    edit_json(made / "config.json", architectures=["ElectraForMaskedLM"])
    task = fitted(task_of(tmp_path, generator=str(made)), models / "discriminator")
    with pytest.raises(ModelError, match="its language-model head was never trained"):
        task.collect(task.load(), load(models / "discriminator"), Silent())
