"""A small golden set without a fault, to put one in."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HEADER = "query-id\tcorpus-id\tscore"


def _corpus() -> list[dict[str, Any]]:
    return [
        {"_id": "d1", "title": "Backup", "text": "The backup runs every night at half past one."},
        {"_id": "d2", "title": "Restore", "text": "A deleted document stays in the recycle bin for thirty days."},
        {"_id": "d3", "title": "Tokens", "text": "An access token expires after one day and has to be renewed."},
        {"_id": "d4", "title": "Quotas", "text": "The server counts the disk space of each workspace every hour."},
    ]


def _queries() -> list[dict[str, Any]]:
    return [
        {"_id": "q1", "text": "When does the backup run?"},
        {"_id": "q2", "text": "How long is a deleted document kept in the bin?"},
        {"_id": "q3", "text": "Does an access token expire?"},
    ]


def _qrels() -> list[str]:
    return [HEADER, "q1\td1\t1", "q2\td2\t2", "q2\td4\t0", "q3\td3\t1"]


@dataclass
class Golden:
    """Its rows; lines that are not JSON are put in as texts."""

    corpus: list[Any] = field(default_factory=_corpus)
    queries: list[Any] = field(default_factory=_queries)
    qrels: list[str] = field(default_factory=_qrels)

    def write(self, folder: Path) -> Path:
        """The folder."""
        (folder / "qrels").mkdir(parents=True, exist_ok=True)
        (folder / "corpus.jsonl").write_text(_lines(self.corpus), encoding="utf-8")
        (folder / "queries.jsonl").write_text(_lines(self.queries), encoding="utf-8")
        (folder / "qrels" / "test.tsv").write_text("".join(f"{line}\n" for line in self.qrels), encoding="utf-8")
        return folder


def _lines(rows: Iterable[Mapping[str, Any] | str]) -> str:
    return "".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows)
