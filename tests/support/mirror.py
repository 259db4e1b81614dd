"""The real evaluation data laid out as a mirror of the hub: one folder per task of mteb."""

from __future__ import annotations

import csv
import gzip
import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from embeval.core import strict_json
from embeval.core.specs import DatasetRef, TaskSpec
from embeval.mteb_bridge.tasks.mteb import PREFIX, TASK, MtebTask
from tests.support.data import write_jsonl

ONE: Mapping[str, str] = {
    "BIOSSES": "sts/BIOSSES",
    "Banking77Classification": "classification/Banking77",
    "STS12": "sts/STS12",
    "STS14": "sts/STS14",
    "STS15": "sts/STS15",
    "STSBenchmark": "sts/stsbenchmark",
}
"""Task without sub-sets -> its folder in the data."""
SEVERAL: Mapping[str, Mapping[str, str]] = {
    "AmazonCounterfactualClassification": {
        "en-ext": "classification/AmazonCounterfactual/EN-ext",
        "en": "classification/AmazonCounterfactual/EN",
        "de": "classification/AmazonCounterfactual/DE",
    },
    "STSBenchmarkMultilingualSTS": {
        "en": "sts/stsbenchmark",
        "de": "sts/stsb_multi_mt/de",
        "es": "sts/stsb_multi_mt/es",
        "zh": "sts/stsb_multi_mt/zh",
    },
    "SemRel24STS": {"amh": "sts/SemRel2024/amh", "eng": "sts/SemRel2024/eng"},
}
"""Task -> sub-set -> folder; other sub-sets of these tasks are not in the data."""
RETRIEVAL: Mapping[str, str] = {"SciFact": "retrieval/SciFact"}
"""Retrieval task -> folder with corpus, queries and relevance judgements."""
QUOTED = {"AmazonCounterfactualClassification"}
"""Tasks whose texts in the data still have the quotes of the csv files that they come from: ``"He said ""no""."``.

Without them their lengths add up to those in mteb's descriptive statistics, to the character.
"""
TASKS = (*ONE, *SEVERAL, *RETRIEVAL)
"""Names of the tasks that the data has."""


def lay_out(data: Path, mirror: Path, tasks: Sequence[str] = TASKS) -> Path:
    """The mirror, with what ``data`` has for the tasks. Files are copied as they are but for those of ``QUOTED``."""
    for task in tasks:
        folder = mirror / task
        folder.mkdir(parents=True)
        if task in ONE:
            _copy_splits(data / ONE[task], folder)
        elif task in SEVERAL:
            configs = {subset: _copy_splits(data / source, folder / subset) for subset, source in SEVERAL[task].items()}
            if task in QUOTED:
                configs = {
                    subset: {split: _unquoted(file) for split, file in files.items()}
                    for subset, files in configs.items()
                }
            _write_readme(folder, configs)
        else:
            _lay_out_retrieval(data / RETRIEVAL[task], folder)
    return mirror


def subsets(task: str) -> tuple[str, ...] | None:
    """The sub-sets of a task that the data has; None: the task has no sub-sets."""
    return tuple(SEVERAL[task]) if task in SEVERAL else None


def bound(task: str, mirror: Path, *, split: str = "test") -> MtebTask:
    """The task on the mirror, on all sub-sets that the data has."""
    options: dict[str, strict_json.Json] = {"mirror": str(mirror)}
    if (found := subsets(task)) is not None:
        options["subsets"] = list(found)
    spec = TaskSpec(
        name=f"{PREFIX}{task}", type="mteb", dataset=DatasetRef(path=task, split=split), options=options
    )  # fmt: skip
    return TASK.bind(spec, root=Path())


def _copy_splits(source: Path, folder: Path) -> dict[str, Path]:
    """Split -> file in ``folder``."""
    folder.mkdir(exist_ok=True)
    found = sorted(source.glob("*.jsonl.gz"))
    return {file.name.split(".")[0]: Path(shutil.copy(file, folder)) for file in found}


def _unquoted(file: Path) -> Path:
    """The file anew, its texts as a reader of csv gives them."""
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    file.unlink()
    quoted = [row for row in rows if len(row["text"]) > 1 and row["text"][0] == row["text"][-1] == '"']
    for row in quoted:
        row["text"] = row["text"][1:-1].replace('""', '"')
    return write_jsonl(file.with_suffix(""), rows)


def _lay_out_retrieval(source: Path, folder: Path) -> None:
    corpus = Path(shutil.copy(source / "corpus.jsonl.gz", folder))
    queries = Path(shutil.copy(source / "queries.jsonl", folder))
    qrels = {}
    for file in sorted((source / "qrels").glob("*.tsv")):
        with file.open(encoding="utf-8", newline="") as lines:
            rows = list(csv.DictReader(lines, delimiter="\t"))
        qrels[file.stem] = write_jsonl(
            folder / "qrels" / f"{file.stem}.jsonl", ({**row, "score": int(row["score"])} for row in rows)
        )
    _write_readme(folder, {"default": qrels, "corpus": {"corpus": corpus}, "queries": {"queries": queries}})


def _write_readme(folder: Path, configs: Mapping[str, Mapping[str, Path]]) -> None:
    """The data card, which tells the library which files belong to which sub-set and split."""
    lines = ["---", "configs:"]
    for config, files in configs.items():
        lines += [f"- config_name: {config}", "  data_files:"]
        for split, file in files.items():
            lines += [f"  - split: {split}", f"    path: {file.relative_to(folder).as_posix()}"]
    (folder / "README.md").write_text("\n".join([*lines, "---", ""]), encoding="utf-8")
