"""The training of a small BERT: texts and masks as stated, and losses that transformers' own model gives, too."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import train_small_bert
from benchmarks.corpora import Document, Split
from benchmarks.train_small_bert import Recipe

RECIPE = Recipe(steps=40, texts_per_step=4, layers=1, width=32, heads=2, learning_rate=5e-3, vocabulary=60)
SUBJECTS, VERBS = ("The cat", "A dog", "My friend", "The old horse"), ("eats", "sees", "wants")
LINES = tuple(f"{subject} {verb} bread . " * 3 for subject in SUBJECTS for verb in VERBS)
SPLIT = Split(
    learned=tuple(Document(f"learned {n}", LINES[n:]) for n in range(6)),
    held_out=(Document("ζ", (" ".join(["My ζ cat sees bread ."] * 9), "= 1 =")),),
)


def test_packs_are_whole_sentences_in_order() -> None:
    """Nothing is lost or moved, no run is too long, and the first room moves the others."""
    documents = [[[1] * 3, [2] * 4, [3] * 5, [4] * 2], [[5] * 6], []]
    assert train_small_bert.packed(documents, [8, 8, 8], room=8) == [
        [1, 1, 1, 2, 2, 2, 2],
        [3, 3, 3, 3, 3, 4, 4],
        [5, 5, 5, 5, 5, 5],
    ]
    assert train_small_bert.packed(documents, [3, 3, 3], room=8) == [
        [1, 1, 1],
        [2, 2, 2, 2],
        [3, 3, 3, 3, 3, 4, 4],
        [5, 5, 5, 5, 5, 5],
    ]


def test_rows_are_framed_and_padded() -> None:
    """[CLS] is 2, [SEP] is 3, [PAD] is 0."""
    assert train_small_bert.padded([[7, 8], [9]]).tolist() == [[2, 7, 8, 3], [2, 9, 3, 0]]


def test_masks_are_those_of_bert() -> None:
    """15 % chosen; of these 80 % masked, 10 % drawn, 10 % kept (each within 5 standard errors); specials never."""
    rows = np.tile(np.r_[0:5, np.full(95, 50)], (4000, 1)).astype(np.int64)
    inputs, targets = train_small_bert.masked(rows, 10_000, np.random.default_rng(3))
    chosen = targets != train_small_bert.NOT_CHOSEN
    assert not chosen[:, :5].any()
    assert (inputs[~chosen] == rows[~chosen]).all()
    assert (targets[chosen] == 50).all()
    shares = [chosen[:, 5:].mean(), *((inputs[chosen] == each).mean() for each in (4, 50))]
    for share, expected, n in zip(shares, (0.15, 0.8, 0.1), (380_000, 57_000, 57_000), strict=True):
        assert abs(share - expected) < 5 * (expected * (1 - expected) / n) ** 0.5
    assert inputs[chosen & (inputs != 4)].min() >= 5


def test_checkpoints_are_a_factor_apart() -> None:
    """8000 is 100 times 80, in four steps of 80 ** (1 / 4) = 2.991."""
    assert train_small_bert.checkpoints(8000) == [100, 299, 894, 2675, 8000]
    assert train_small_bert.checkpoints(2) == [1, 2]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, dict[str, Any]]]:
    """A folder with checkpoints, and what is told of them."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # these matrices are too small to share
    folder = tmp_path_factory.mktemp("trained")
    yield folder, train_small_bert.train(folder, SPLIT, RECIPE)
    torch.set_num_threads(threads)


def test_the_loss_falls_and_is_that_of_transformers(trained: tuple[Path, dict[str, Any]]) -> None:
    """``BertForMaskedLM(labels=…)`` of transformers 5.24, which averages over targets, on the same masks."""
    import torch
    from transformers import AutoModelForMaskedLM, AutoTokenizer

    folder, about = trained
    losses = {each["step"]: each["held_out_loss"] for each in about["checkpoints"]}
    assert list(losses) == [1, 3, 6, 16, 40]
    assert losses[40] < losses[1] - 0.5
    tokenizer = AutoTokenizer.from_pretrained(folder / "checkpoint-40")
    ((inputs, targets),) = train_small_bert.held_out_batches(SPLIT.held_out, tokenizer, RECIPE.seed)
    for step, loss in losses.items():
        model = AutoModelForMaskedLM.from_pretrained(folder / f"checkpoint-{step}").eval()
        with torch.inference_mode():
            theirs = model(input_ids=inputs, attention_mask=(inputs != 0).long(), labels=targets).loss
        assert loss == pytest.approx(float(theirs), abs=1e-4)


def test_the_tokenizer_knows_nothing_held_out(trained: tuple[Path, dict[str, Any]]) -> None:
    """Lower case, and a letter of held-out text alone is unknown."""
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(trained[0] / "checkpoint-40")
    assert tokenizer.tokenize("The BREAD ζ") == ["the", "bread", "[UNK]"]
    assert tokenizer("bread").input_ids == [2, tokenizer.vocab["bread"], 3]
    assert (tokenizer.pad_token_id, tokenizer.mask_token_id, tokenizer.model_max_length) == (0, 4, 128)


def test_training_repeats_itself(trained: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    """The same recipe gives the same losses."""
    again = train_small_bert.train(tmp_path, SPLIT, RECIPE)
    assert [each["held_out_loss"] for each in again["checkpoints"]] == [
        each["held_out_loss"] for each in trained[1]["checkpoints"]
    ]


def test_held_out_texts_are_lines_with_words(tmp_path: Path) -> None:
    """One JSON object a line."""
    train_small_bert.write_held_out(tmp_path / "heldout.jsonl", SPLIT.held_out)
    assert (tmp_path / "heldout.jsonl").read_text(encoding="utf-8") == (
        f'{{"id": "ζ 1", "text": "{SPLIT.held_out[0].lines[0]}"}}\n'
    )
