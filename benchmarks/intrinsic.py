"""How fast are pseudo-log-likelihoods beside minicons, are they equal, and what do they say of a small BERT?

``python -m benchmarks.intrinsic MODELS`` with the folder that ``train_small_bert`` wrote. Three parts, each also
alone with its name behind the folder:

- ``peer``: 200 sentences of WikiText-2 in both modes, by minicons 0.3.39 one sentence at a time (its fastest) and by
  embeval in float32 and bfloat16, in turns; on the trained BERT, and on a body of all-MiniLM-L6-v2's size and
  vocabulary with random weights. Loading is counted on neither side. Sums per sentence are compared.
- ``checkpoints``: masked loss on held-out articles, pseudo-perplexity of 300 held-out sentences, and the first 100
  pairs of each of BLiMP's paradigms, for each checkpoint; all pairs for the last one.
- ``memory``: the pseudo-perplexity of 5,000 sentences of WikiText-2 in a process of its own, and its largest memory.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import corpora
from benchmarks.harness import data_folder, median, write
from benchmarks.minicons import THREADS, Mode, ask
from embeval import api
from embeval.core.progress import Silent
from embeval.core.specs import DatasetRef, Dtype, ModelSpec, RuntimeOptions, TaskSpec
from embeval.encoders import loading
from embeval.language_models import loading as language_models
from embeval.language_models.model import LanguageModel
from embeval.tasks import TASK_TYPES

SENTENCES = 200
MANY_SENTENCES = 5_000
HELD_OUT_SENTENCES = 300
PAIRS = 100
ROUNDS = 3
MODES: tuple[Mode, ...] = ("original", "within_word_l2r")
DTYPES: tuple[Dtype, ...] = ("float32", "bfloat16")
PARTS = ("peer", "checkpoints", "memory")


def main() -> None:
    """Measures and writes the figures."""
    data = data_folder()
    if data is None or len(sys.argv) < 2:
        sys.exit("intrinsic.py needs the folder of a trained BERT and WikiText-2: see its docstring.")
    models, wanted = Path(sys.argv[1]), sys.argv[2:] or PARTS
    sys.argv[1] = models.name  # what is kept of the command names no folder of this machine
    checkpoints = sorted(models.glob("checkpoint-*"), key=lambda each: int(each.name.rpartition("-")[2]))
    with tempfile.TemporaryDirectory() as scratch:
        os.environ["EMBEVAL_CACHE"] = os.environ.get("EMBEVAL_BENCH_CACHE", str(Path(scratch) / "cache"))
        if "peer" in wanted:
            sentences = corpora.sentences(data, SENTENCES)
            wide = _random_body_of_minilm(Path(scratch) / "wide")
            figures = {"trained BERT": _beside_minicons(checkpoints[-1], sentences, ROUNDS)}
            figures["body of MiniLM, random"] = _beside_minicons(wide, sentences[: SENTENCES // 4], 1)
            write("intrinsic_peer", figures)
        if "checkpoints" in wanted:
            found = {each.name: _measured(each, data, Path(scratch)) for each in checkpoints}
            found[checkpoints[-1].name] |= _figures(checkpoints[-1], {"BLiMP, all pairs": _blimp(data)}, Path(scratch))
            write("intrinsic_checkpoints", found)
        if "memory" in wanted:
            write("intrinsic_memory", _memory(checkpoints[-1], corpora.sentences(data, MANY_SENTENCES), Path(scratch)))


def _random_body_of_minilm(folder: Path) -> Path:
    """A masked model with the sizes and the tokenizer of all-MiniLM-L6-v2, all of its weights random."""
    import torch
    from transformers import AutoConfig, AutoTokenizer, BertForMaskedLM

    located = loading.resolve(ModelSpec(name="demo"))
    assert located.folder is not None
    torch.manual_seed(0)
    model = BertForMaskedLM(AutoConfig.from_pretrained(located.folder))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.02)
    model.save_pretrained(folder)
    AutoTokenizer.from_pretrained(located.folder).save_pretrained(folder)
    return folder


def _beside_minicons(model: Path, sentences: Sequence[str], rounds: int) -> dict[str, Any]:
    """Seconds of both, in turns, and how their sums differ."""
    ours = {dtype: _language_model(model, dtype) for dtype in DTYPES}
    for each in ours.values():
        _score(each, sentences[:4])  # kernels are set up
    seconds: dict[str, list[float]] = {name: [] for name in ("minicons", *DTYPES)}
    sums: dict[str, dict[Mode, np.ndarray[Any, Any]]] = {}
    for _ in range(rounds):
        theirs, versions = ask(model, sentences, [(mode, 1) for mode in MODES])
        seconds["minicons"].append(sum(each.seconds[0] for each in theirs))
        sums["minicons"] = {each.mode: np.array(each.sums) for each in theirs}
        for dtype, mine in ours.items():
            began = time.perf_counter()
            sums[dtype] = _score(mine, sentences)
            seconds[dtype].append(time.perf_counter() - began)
    figures: dict[str, Any] = {
        "sentences": len(sentences),
        "seconds": seconds,
        "versions": versions,
        "threads": THREADS,
        "ratio": {dtype: median(seconds["minicons"]) / median(seconds[dtype]) for dtype in DTYPES},
    }
    for dtype in DTYPES:
        for mode in MODES:
            apart = np.abs(sums[dtype][mode] - sums["minicons"][mode])
            figures[f"nats apart per sentence, {dtype}, {mode}"] = {
                "max": float(apart.max()),
                "mean": float(apart.mean()),
                "largest PLL": float(np.abs(sums["minicons"][mode]).max()),
            }
    return figures


def _language_model(folder: Path, dtype: Dtype) -> LanguageModel:
    located = loading.resolve(ModelSpec(name=str(folder), dtype=dtype))
    return language_models.load(located, "masked", RuntimeOptions(num_threads=THREADS, device="cpu"))


def _score(model: LanguageModel, sentences: Sequence[str]) -> dict[Mode, np.ndarray[Any, Any]]:
    """The PLL of each sentence in both modes: the task itself, from a file of texts to records."""
    with tempfile.TemporaryDirectory() as folder:
        _write(Path(folder) / "sentences.txt", sentences)
        spec = TaskSpec(name="sentences", type="pseudo_likelihood", dataset=DatasetRef(path="sentences.txt"))
        unbound: Any = TASK_TYPES.get(spec.type).bind(spec, root=Path(folder))
        task = unbound.fitted("masked", None, model.spec)
        columns = task.collect(task.load(), model, Silent()).records.columns
    return {mode: columns[f"pll_{mode}"] for mode in MODES}


def _write(file: Path, sentences: Sequence[str]) -> Path:
    file.write_text("\n".join(sentences) + "\n", encoding="utf-8")
    return file


def _measured(checkpoint: Path, data: Path, scratch: Path) -> dict[str, Any]:
    """Main scores of a checkpoint with their intervals, and seconds."""
    held_out = checkpoint.parent / "heldout.jsonl"
    texts = [json.loads(line)["text"] for line in held_out.read_text(encoding="utf-8").splitlines()]
    sentences = [each for text in texts for each in corpora.sentences_of(text)]
    fitting = [each for each in dict.fromkeys(sentences) if len(each.split()) >= corpora.FEWEST_WORDS]
    file = _write(scratch / "held-out-sentences.txt", fitting[:HELD_OUT_SENTENCES])
    tasks: dict[str, dict[str, Any]] = {
        "masked loss": {"type": "masked_lm", "data": str(held_out), "draws": 4},
        "masked loss, shared words": {"type": "masked_lm", "data": str(held_out), "draws": 4, "masking": "aligned"},
        "PPPL": {"type": "pseudo_likelihood", "data": str(file)},
        "BLiMP": {**_blimp(data), "per_paradigm": PAIRS},
    }
    return _figures(checkpoint, tasks, scratch)


def _blimp(data: Path) -> dict[str, Any]:
    return {"type": "minimal_pairs", "data": str(data / "lm" / "blimp")}


def _figures(checkpoint: Path, tasks: Mapping[str, dict[str, Any]], scratch: Path) -> dict[str, Any]:
    figures: dict[str, Any] = {}
    for name, task in tasks.items():
        began = time.perf_counter()
        (result,) = api.evaluate(
            ModelSpec(name=str(checkpoint)),
            {"name": name, **task},
            results=scratch / "results",
            runtime=RuntimeOptions(num_threads=THREADS, device="cpu"),
        )
        scores = {key: (value.value, value.ci_low, value.ci_high) for key, value in result.scores.items()}
        figures[name] = {**scores, "counts": dict(result.counts), "seconds": time.perf_counter() - began}
    return figures


def _memory(checkpoint: Path, sentences: Sequence[str], scratch: Path) -> dict[str, Any]:
    """Largest resident memory of ``embeval run``, with its model, its libraries and a cache."""
    file = _write(scratch / "sentences.txt", sentences)
    began = time.perf_counter()
    command = [sys.executable, "-m", "embeval", "run", "-m", str(checkpoint), "-t", f"pseudo_likelihood:{file}"]
    process = subprocess.Popen([*command, "--results", str(scratch / "memory")])
    _, status, usage = os.wait4(process.pid, 0)  # of this child alone, and none before it
    if status:
        sys.exit("embeval run failed.")
    seconds = time.perf_counter() - began
    return {"sentences": len(sentences), "seconds": seconds, "peak_rss_mib": round(usage.ru_maxrss / 1024, 1)}


if __name__ == "__main__":
    main()
