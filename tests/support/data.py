"""Small data sets on disk."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any


def write_jsonl(path: Path, rows: Iterable[Mapping[str, Any]]) -> Path:
    """One JSON object per line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def write_beir(
    folder: Path,
    *,
    corpus: Mapping[str, str],
    queries: Mapping[str, str],
    qrels: Mapping[str, Mapping[str, int]],
    split: str = "test",
) -> Path:
    """A BEIR folder."""
    write_jsonl(folder / "corpus.jsonl", ({"_id": doc, "title": "", "text": text} for doc, text in corpus.items()))
    write_jsonl(folder / "queries.jsonl", ({"_id": query, "text": text} for query, text in queries.items()))
    lines = ["query-id\tcorpus-id\tscore"]
    lines += [f"{query}\t{doc}\t{grade}" for query, grades in qrels.items() for doc, grade in grades.items()]
    (folder / "qrels").mkdir(exist_ok=True)
    (folder / "qrels" / f"{split}.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


def write_pairs(path: Path, pairs: Iterable[tuple[str, str, float]]) -> Path:
    """An STS file."""
    return write_jsonl(path, ({"sentence1": a, "sentence2": b, "score": score} for a, b, score in pairs))
