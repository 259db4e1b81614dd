"""Pseudo-log-likelihoods by minicons, with the seconds that they took; run by the Python of its own environment.

``python minicons_pll.py ASKED.json ANSWER.json``. Asked is ``{"model": FOLDER, "sentences": [...], "threads": 2,
"rounds": 1, "runs": [{"mode": "original" | "within_word_l2r", "batch_size": 1}, ...]}``. The answer has, per run, the
seconds of each round, and per sentence the sum and the single values in nats with their tokens. Loading isn't timed,
and one sentence is scored before the clock starts.

transformers 4, which minicons needs, doesn't know the tokenizer classes that transformers 5 writes down. The file
tokenizer.json is the same in both, so the tokenizer is made from it, whatever class is named beside it.
"""

from __future__ import annotations

import json
import sys
import time
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any


def load(folder: str) -> Any:
    """minicons' scorer of a masked model that transformers 4 or 5 saved."""
    from transformers import AutoModelForMaskedLM, PreTrainedTokenizerFast

    settings = json.loads((Path(folder) / "tokenizer_config.json").read_text(encoding="utf-8"))
    names = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_file=str(Path(folder) / "tokenizer.json"),
        **{name: _text(settings[name]) for name in names if settings.get(name)},
    )
    model = AutoModelForMaskedLM.from_pretrained(folder)
    return import_module("minicons.scorer").MaskedLMScorer(model, "cpu", tokenizer=tokenizer)


def _text(token: str | dict[str, Any]) -> str:
    return str(token["content"]) if isinstance(token, dict) else token


def score(scorer: Any, sentences: list[str], mode: str, batch_size: int) -> list[list[tuple[str, float]]]:
    """(token, ln p) of each sentence."""
    found = []
    for start in range(0, len(sentences), batch_size):
        found += scorer.token_score(sentences[start : start + batch_size], PLL_metric=mode)
    return found


def timed(scorer: Any, sentences: list[str], mode: str, batch_size: int, rounds: int) -> dict[str, Any]:
    """Values and seconds of one run."""
    score(scorer, sentences[:1], mode, batch_size)
    seconds = []
    for _ in range(rounds):
        began = time.perf_counter()
        found = score(scorer, sentences, mode, batch_size)
        seconds.append(time.perf_counter() - began)
    return {
        "mode": mode,
        "batch_size": batch_size,
        "seconds": seconds,
        "sums": [sum(value for _, value in sentence) for sentence in found],
        "tokens": [[token for token, _ in sentence] for sentence in found],
        "values": [[value for _, value in sentence] for sentence in found],
    }


def main() -> None:
    """Reads what is asked, and writes the answer."""
    import torch

    asked = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    torch.set_num_threads(asked["threads"])
    began = time.perf_counter()
    scorer = load(asked["model"])
    loaded = time.perf_counter() - began
    runs = [timed(scorer, asked["sentences"], rounds=asked["rounds"], **run) for run in asked["runs"]]
    versions = {name: version(name) for name in ("minicons", "transformers", "tokenizers", "torch", "numpy")}
    answer = {"versions": versions, "load_seconds": loaded, "runs": runs}
    Path(sys.argv[2]).write_text(json.dumps(answer), encoding="utf-8")


if __name__ == "__main__":
    main()
