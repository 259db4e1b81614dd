"""Masked tokens from the command line: values, what is refused, and two models of different tokenizers."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.support.commands import Done, here
from tests.support.language_models import tiny_language_model
from tests.support.words import WORDS

FEW = ("--resamples", "100")
LINES = [f"the old server of {word} and a souvenir, again" for word in WORDS]


def save_other(folder: Path) -> Path:
    """The tiny BERT with a tokenizer that knows a word more, and a letter less."""
    shutil.copytree(tiny_language_model("masked"), folder)
    content = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
    vocabulary: dict[str, int] = content["model"]["vocab"]
    vocabulary["souvenir"] = vocabulary.pop("##z")
    (folder / "tokenizer.json").write_text(json.dumps(content), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with texts and two models."""
    folder = tmp_path_factory.mktemp("masked")
    (folder / "texts.txt").write_text("\n".join(LINES) + "\n", encoding="utf-8")
    save_other(folder / "other")
    return folder


def run(project: Path, *words: str, model: str | None = None) -> Done:
    """A run of one model."""
    return here("run", "-m", model or str(tiny_language_model("masked")), *words, *FEW, cwd=project)


def result(done: Done) -> Any:
    """The one result of a run."""
    assert done.code == 0, done.err
    (found,) = done.json["results"]
    return found


def test_values_and_what_they_are_of(project: Path) -> None:
    """Loss, accuracy and top 5 with intervals; the tokenizer is named, and it is no part of the protocol."""
    found = result(run(project, "-t", "masked_lm:texts.txt,draws=2", "--json"))
    scores = found["scores"]
    assert set(scores) == {"mlm_loss", "mlm_loss_bits", "mlm_accuracy", "mlm_top_5"}
    assert found["main_score"] == "mlm_loss"
    assert scores["mlm_loss_bits"]["value"] == pytest.approx(scores["mlm_loss"]["value"] / 0.6931471805599453)
    for score in scores.values():
        assert score["ci_low"] <= score["value"] <= score["ci_high"]
    assert found["signature"]["tokenizer"].startswith("sha256:")
    assert "tokenizer" not in found["signature"]["protocol"]
    assert found["signature"]["protocol"]["masking"] == "bert"
    assert found["counts"]["masked_tokens"] > 100


@pytest.mark.parametrize(
    ("task", "main"),
    [
        ("masked_lm:texts.txt", "mlm_loss"),
        ("masked_lm:texts.txt,masking=aligned", "mlm_loss_per_word"),
        ("masked_lm:texts.txt,masking=aligned,main_score=mlm_top_5", "mlm_top_5"),
        ("pseudo_likelihood:texts.txt,modes=[original]", "pppl_original"),
    ],
)
def test_the_main_score_that_is_shown_is_that_of_the_options(project: Path, task: str, main: str) -> None:
    """What a run would rank by."""
    shown = here("tasks", "show", task, cwd=project).out
    assert re.search(rf"main score +{main} *$", shown, re.MULTILINE)


def test_a_second_run_finds_the_result(project: Path) -> None:
    """Nothing runs again; another seed is another result."""
    words = ("-t", "masked_lm:texts.txt,name=again,masking=mask", "--json")
    first, second = run(project, *words), run(project, *words)
    assert [each.json["steps"][0]["status"] for each in (first, second)] == ["done", "skipped"]
    assert result(first)["scores"] == result(second)["scores"]
    other = run(project, "-t", "masked_lm:texts.txt,name=again,masking=mask,seed=1", "--json")
    assert other.json["steps"][0]["status"] == "done"
    assert result(other)["scores"] != result(first)["scores"]


def test_models_of_two_tokenizers_are_compared_by_word(project: Path) -> None:
    """With the same words masked for both, the loss per word is compared and the one per token is not."""
    words = ("-t", "masked_lm:texts.txt,name=shared,masking=aligned,at_least_one=true", "--json")
    one, other = result(run(project, *words)), result(run(project, *words, model="other"))
    assert one["signature"]["tokenizer"] != other["signature"]["tokenizer"]
    assert one["signature"]["protocol"] == other["signature"]["protocol"]
    assert one["counts"]["words"] == other["counts"]["words"]
    assert one["counts"]["masked_tokens"] > other["counts"]["masked_tokens"]
    name = tiny_language_model("masked").name
    done = here("compare", name, "other", "--task", "shared", "--all-metrics", "--json", cwd=project)
    assert done.code == 0, done.err
    compared = {each["metric"] for each in done.json["comparisons"]}
    assert compared == {"mlm_loss_per_word", "mlm_bits_per_character"}


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        ("masked_lm:texts.txt,probability=0.000001", 3, "Nothing was drawn to be masked in the 47 texts"),
        ("masked_lm:texts.txt,probability=2", 2, "probability: must be above 0 and at most 1, not 2"),
        ("masked_lm:texts.txt,drawz=2", 2, "Did you mean 'draws'"),
        ("masked_lm:nowhere.txt", 3, "nowhere.txt"),
    ],
)
def test_what_can_not_be_done_is_told(project: Path, words: str, code: int, told: str) -> None:
    """In a line or two, with the exit code of its kind; nothing is stored."""
    done = run(project, "-t", f"{words},name=bad")
    assert (done.code, "Traceback" in done.err) == (code, False)
    assert told in re.sub(r"\s+", " ", done.out + done.err)


@pytest.mark.parametrize(("kind", "why"), [("causal", "sees only the words before"), ("replaced", "tells replaced")])
def test_models_without_masked_tokens_are_refused(project: Path, kind: Any, why: str) -> None:
    """A decoder and a discriminator, with the reason."""
    done = run(project, "-t", "masked_lm:texts.txt", model=str(tiny_language_model(kind)))
    assert done.code == 3
    assert why in re.sub(r"\s+", " ", done.out + done.err)
