"""Rows as the bytes of each kind of file, as other programs write them."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from typing import Any

Rows = Sequence[Mapping[str, Any]]


def as_jsonl(rows: Rows) -> bytes:
    """One object per line."""
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()


def as_csv(rows: Rows) -> bytes:
    """As Python's csv module writes it."""
    buffer = io.StringIO(newline="")
    writer = csv.DictWriter(buffer, list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    return buffer.getvalue().encode()


def as_tsv(rows: Rows) -> bytes:
    """Tabs between, nothing quoted."""
    header = list(rows[0])
    lines = ["\t".join(header), *("\t".join(str(row[name]) for name in header) for row in rows)]
    return ("\n".join(lines) + "\n").encode()


def as_parquet(rows: Rows) -> bytes:
    """As pyarrow writes it."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    buffer = io.BytesIO()
    pq.write_table(pa.Table.from_pylist([dict(row) for row in rows]), buffer)
    return buffer.getvalue()


KINDS = {"jsonl": as_jsonl, "csv": as_csv, "tsv": as_tsv, "parquet": as_parquet}
