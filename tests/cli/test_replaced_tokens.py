"""``replaced_tokens`` from the command line: a discriminator with its generator, and what a masked model is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.commands import here
from tests.support.models import DISCRIMINATOR, save_tiny_language_model

TEXTS = "restore the backup of the server\na new token for the user\nscan a page into the archive at night\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A discriminator, its generator and a file of texts."""
    made = tmp_path_factory.mktemp("replaced")
    save_tiny_language_model(made / "electra", DISCRIMINATOR)
    save_tiny_language_model(made / "electra-generator", "electra-generator")
    (made / "held-out.txt").write_text(TEXTS, encoding="utf-8")
    return made


TASK = "replaced_tokens:held-out.txt,probability=0.5,generator=./electra-generator"


def test_a_discriminator_is_measured_and_a_masked_model_is_refused(folder: Path) -> None:
    """One finishes, with loss, accuracy and recall in its result; the other is told why, and its own rulers."""
    done = here("run", "-m", "./electra", "-m", "./electra-generator", "-t", TASK, cwd=folder)
    assert done.code != 0
    said = done.out + done.err
    assert "rtd_loss" in said
    assert "perplexity" not in said
    assert (
        "electra-generator can't be evaluated on the task 'held-out-rtd': it is a masked language model, which guesses "
        "the word under a mask and doesn't say whether a word was replaced."
    ) in " ".join(said.split())
    assert "Its rulers are the tasks masked_lm, pseudo_likelihood and minimal_pairs." in said
    assert "1 of 2 failed" in said

    again = here("run", "-m", "./electra", "-t", TASK, "--json", cwd=folder)
    assert again.code == 0
    (result,) = again.json["results"]
    assert set(result["scores"]) == {"rtd_loss", "rtd_accuracy", "rtd_recall"}
    assert result["signature"]["protocol"]["generator"]
    assert result["signature"]["tokenizer"].startswith("sha256:")


def test_a_discriminator_on_a_task_for_masked_models(folder: Path) -> None:
    """Sent to its own ruler."""
    done = here("run", "-m", "./electra", "-t", "pseudo_likelihood:held-out.txt", cwd=folder)
    assert done.code != 0
    assert "ELECTRA's discriminator tells replaced tokens from kept ones" in done.out + done.err
    assert "Its own ruler is the task replaced_tokens." in done.out + done.err
