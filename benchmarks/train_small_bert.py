"""Checkpoints of a small BERT, trained from scratch in minutes: real numbers for the masked rulers without a download.

Trains a WordPiece tokenizer and a BERT on most articles of WikiText-2 raw (test) and most inaugural addresses; every
tenth article and three addresses are held out, whole, from both. Writes ``FOLDER/checkpoint-<step>`` on a log scale,
``FOLDER/heldout.jsonl`` (the lines of what was held out) and ``FOLDER/about.json`` with the losses. The first
checkpoint comes after some steps: with fresh weights a head says nothing.

Words are lower-cased: with 300,000 words to learn from, "The" and "the" as two words would each be seen too seldom.
Texts are packed to 128 tokens from whole sentences, anew each epoch, so that a text starts where a sentence does, as
those that are scored do.

``python -m benchmarks.train_small_bert FOLDER`` takes about nine minutes of one core; seconds grow with ``--steps``,
and a tenth of them shows a falling loss already.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.corpora import Document, Split, sentences_of, split
from benchmarks.harness import data_folder, machine
from embeval.core import strict_json

SEED = 0
THREADS = 2
STEPS = 8000
VOCABULARY = 8000
LENGTH = 128
ROOM = LENGTH - 2  # for [CLS] and [SEP]
TEXTS_PER_STEP = 8
LAYERS, WIDTH, HEADS = 2, 128, 4  # of as many minutes, larger models use fewer texts and learn less
LEARNING_RATE = 2e-3
WARM_UP = 0.1
DROPOUT = 0.0  # each epoch masks anew, and the held-out loss falls to the last step
MASKED = 0.15
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
NOT_CHOSEN = -100
"""Marks positions without a target, as torch's losses do."""


def train_tokenizer(documents: Sequence[Document], size: int = VOCABULARY) -> Any:
    """A lower-casing WordPiece tokenizer with the special tokens of BERT; the same each time."""
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    normalizer, pre_tokenizer = normalizers.BertNormalizer(lowercase=True), pre_tokenizers.BertPreTokenizer()

    def wordpiece(vocabulary: dict[str, int]) -> Any:
        made = Tokenizer(models.WordPiece(vocabulary, unk_token=SPECIAL[1]))
        made.normalizer, made.pre_tokenizer = normalizer, pre_tokenizer
        return made

    lines = [line for document in documents for line in document.lines]
    words = {word for line in lines for word, _ in pre_tokenizer.pre_tokenize_str(normalizer.normalize_str(line))}
    # Letters within words get their ids in the order of a hash, and ids decide between equal counts: given first, as
    # if they were special, they have the same ids each time.
    within = sorted({f"##{letter}" for word in words for letter in word[1:]})
    learner = wordpiece({})
    learner.train_from_iterator(
        lines, trainers.WordPieceTrainer(vocab_size=size, special_tokens=[*SPECIAL, *within], show_progress=False)
    )
    made = wordpiece(learner.get_vocab())
    made.decoder = decoders.WordPiece()
    made.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[(token, made.token_to_id(token)) for token in ("[CLS]", "[SEP]")],
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=made,
        model_max_length=LENGTH,
        **{f"{token[1:-1].lower()}_token": token for token in SPECIAL},
    )


def encoded(tokenizer: Any, documents: Sequence[Document]) -> list[list[list[int]]]:
    """Token ids of each document's sentences, without special tokens; what doesn't fit a text becomes pieces."""
    found = list[list[list[int]]]()
    for document in documents:
        sentences = [each for line in document.lines for each in sentences_of(line)]
        rows = tokenizer.backend_tokenizer.encode_batch(sentences, add_special_tokens=False)
        found.append([row.ids[start : start + ROOM] for row in rows for start in range(0, len(row.ids), ROOM)])
    return found


def packed(documents: Sequence[Sequence[Sequence[int]]], first: Sequence[int], room: int = ROOM) -> list[list[int]]:
    """Runs of whole sentences of one document, of at most ``room`` tokens.

    ``first`` has, per document, the room of its first run: another one each epoch gives other runs.
    """
    packs: list[list[int]] = []
    for sentences, left in zip(documents, first, strict=True):
        current: list[int] = []
        for sentence in sentences:
            if current and len(current) + len(sentence) > left:
                packs.append(current)
                current, left = [], room
            current = [*current, *sentence]
        if current:
            packs.append(current)
    return packs


def padded(packs: Sequence[Sequence[int]]) -> NDArray[np.int64]:
    """Rows of [CLS], a pack, [SEP] and pads."""
    pad, _, begin, end, _ = range(len(SPECIAL))
    rows = np.full((len(packs), max(map(len, packs)) + 2), pad, dtype=np.int64)
    for row, pack in zip(rows, packs, strict=True):
        row[: len(pack) + 2] = [begin, *pack, end]
    return rows


def masked(
    rows: NDArray[np.int64], vocabulary: int, random: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(inputs, targets): of 15 % of the tokens, 80 % become [MASK], 10 % any token, 10 % stay; specials are left."""
    chosen = (random.random(rows.shape) < MASKED) & (rows >= len(SPECIAL))
    fate = random.random(rows.shape)
    other = random.integers(len(SPECIAL), vocabulary, rows.shape)
    inputs = np.where(chosen & (fate < 0.8), SPECIAL.index("[MASK]"), rows)
    inputs = np.where(chosen & (fate >= 0.9), other, inputs)
    return inputs, np.where(chosen, rows, NOT_CHOSEN)


def checkpoints(steps: int) -> list[int]:
    """Five steps on a log scale, the last of them ``steps``."""
    first = max(1, steps // 80)
    return sorted({round(first * (steps / first) ** (place / 4)) for place in range(5)})


def _loss(model: Any, inputs: Any, targets: Any, reduction: str = "mean") -> Any:
    """Cross-entropy at the targets, with logits made only there."""
    import torch

    hidden = model.bert(input_ids=inputs, attention_mask=(inputs != SPECIAL.index("[PAD]")).long()).last_hidden_state
    at = targets != NOT_CHOSEN
    logits = model.cls(hidden[at]).float()
    return torch.nn.functional.cross_entropy(logits, targets[at], reduction=reduction)


def held_out_loss(model: Any, rows: Sequence[tuple[Any, Any]]) -> float:
    """Nats per masked token in float32, over batches that are masked once for all checkpoints."""
    import torch

    model.eval()
    total, n_tokens = 0.0, 0
    with torch.inference_mode():
        for inputs, targets in rows:
            total += float(_loss(model, inputs, targets, "sum"))
            n_tokens += int((targets != NOT_CHOSEN).sum())
    model.train()
    return total / n_tokens


@dataclass(frozen=True)
class Recipe:
    """What a training run is told."""

    steps: int = STEPS
    texts_per_step: int = TEXTS_PER_STEP
    layers: int = LAYERS
    width: int = WIDTH
    heads: int = HEADS
    learning_rate: float = LEARNING_RATE
    dropout: float = DROPOUT
    vocabulary: int = VOCABULARY
    seed: int = SEED


def train(out: Path, documents: Split, recipe: Recipe) -> dict[str, Any]:
    """What was done, with losses by step; writes tokenizer and weights of each checkpoint below ``out``."""
    import torch
    from transformers.utils import logging

    logging.disable_progress_bar()
    began = time.perf_counter()
    tokenizer = train_tokenizer(documents.learned, recipe.vocabulary)
    learned = encoded(tokenizer, documents.learned)
    random = np.random.default_rng(recipe.seed)
    test = list(held_out_batches(documents.held_out, tokenizer, recipe.seed))
    wanted, losses, curve = checkpoints(recipe.steps), list[float](), list[dict[str, float]]()
    with torch.random.fork_rng():
        torch.manual_seed(recipe.seed)
        model = _fresh(len(tokenizer), recipe)
        model.train()
        optimizer, schedule = _optimizer(model, recipe)
        for step, rows in enumerate(_steps(learned, recipe, random), start=1):
            inputs, targets = map(torch.from_numpy, masked(rows, len(tokenizer), random))
            with torch.autocast("cpu", dtype=torch.bfloat16):
                loss = _loss(model, inputs, targets)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
            losses.append(float(loss.detach()))
            if step in wanted:
                _save(out / f"checkpoint-{step}", model, tokenizer)
                curve.append(_point(step, losses, held_out_loss(model, test), time.perf_counter() - began))
                losses.clear()
                print(strict_json.dumps(curve[-1]), end="", flush=True)
    return {
        "recipe": dataclasses.asdict(recipe),
        "parameters": sum(each.numel() for each in model.parameters()),
        "tokens_learned_from": sum(len(sentence) for sentences in learned for sentence in sentences),
        "masked_tokens_held_out": sum(int((targets != NOT_CHOSEN).sum()) for _, targets in test),
        "checkpoints": curve,
        "seconds": round(time.perf_counter() - began, 1),
    }


def _point(step: int, losses: Sequence[float], held_out: float, seconds: float) -> dict[str, float]:
    return {
        "step": step,
        "training_loss_since_the_last": round(float(np.mean(losses)), 4),
        "held_out_loss": round(held_out, 4),
        "seconds": round(seconds, 1),
    }


def held_out_batches(documents: Sequence[Document], tokenizer: Any, seed: int) -> Iterator[tuple[Any, Any]]:
    """(inputs, targets) of batches of texts, masked once."""
    import torch

    random = np.random.default_rng(seed + 1)
    packs = packed(encoded(tokenizer, documents), [ROOM] * len(documents))
    for start in range(0, len(packs), TEXTS_PER_STEP):
        inputs, targets = masked(padded(packs[start : start + TEXTS_PER_STEP]), len(tokenizer), random)
        yield torch.from_numpy(inputs), torch.from_numpy(targets)


def _steps(
    documents: Sequence[Sequence[Sequence[int]]], recipe: Recipe, random: np.random.Generator
) -> Iterator[NDArray[np.int64]]:
    """Batches of texts: epoch by epoch, packed and shuffled anew."""
    left = recipe.steps
    while left > 0:
        packs = packed(documents, random.integers(16, ROOM + 1, len(documents)).tolist())
        order = random.permutation(len(packs))
        for start in range(0, len(order) - recipe.texts_per_step + 1, recipe.texts_per_step)[:left]:
            yield padded([packs[place] for place in order[start : start + recipe.texts_per_step]])
            left -= 1


def _fresh(vocabulary: int, recipe: Recipe) -> Any:
    from transformers import BertConfig, BertForMaskedLM

    return BertForMaskedLM(
        BertConfig(
            vocab_size=vocabulary,
            hidden_size=recipe.width,
            num_hidden_layers=recipe.layers,
            num_attention_heads=recipe.heads,
            intermediate_size=4 * recipe.width,
            max_position_embeddings=LENGTH,
            hidden_dropout_prob=recipe.dropout,
            attention_probs_dropout_prob=recipe.dropout,
        )
    )


def _optimizer(model: Any, recipe: Recipe) -> tuple[Any, Any]:
    """AdamW without decay of biases and norms; the rate rises for a tenth of the steps and falls to nothing."""
    import torch

    matrices = [each for each in model.parameters() if each.ndim > 1]
    others = [each for each in model.parameters() if each.ndim == 1]
    groups = [{"params": matrices, "weight_decay": 0.01}, {"params": others, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=recipe.learning_rate, betas=(0.9, 0.98), fused=True)
    up = max(1, round(WARM_UP * recipe.steps))
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min((step + 1) / up, (recipe.steps - step) / (recipe.steps - up))
    )
    return optimizer, schedule


def _save(folder: Path, model: Any, tokenizer: Any) -> None:
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def main() -> None:
    """Trains, and writes checkpoints, held-out texts and what was done."""
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("folder", type=Path)
    words.add_argument("--steps", type=int, default=STEPS)
    words.add_argument("--threads", type=int, default=THREADS)
    asked = words.parse_args()
    data = data_folder()
    if data is None:
        sys.exit("train_small_bert.py needs WikiText-2 and the inaugural addresses: set EMBEVAL_TEST_DATA.")
    import torch

    torch.set_num_threads(asked.threads)
    documents = split(data)
    asked.folder.mkdir(parents=True, exist_ok=True)
    write_held_out(asked.folder / "heldout.jsonl", documents.held_out)
    done = train(asked.folder, documents, Recipe(steps=asked.steps))
    names = [document.name for document in documents.held_out]
    about = {"held_out": names, "threads": asked.threads, **done, "machine": machine()}
    (asked.folder / "about.json").write_text(strict_json.dumps(about), encoding="utf-8")


def write_held_out(path: Path, documents: Sequence[Document]) -> None:
    """One JSON object a line, with an id and a text, for each line of the documents that has a word."""
    rows = [
        {"id": f"{document.name} {number}", "text": line}
        for document in documents
        for number, line in enumerate(document.lines, start=1)
        if any(character.isalpha() for character in line)
    ]
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")


if __name__ == "__main__":
    main()
