"""Item records, rankings and tokens as Parquet bytes, equal records to equal bytes."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Collection
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from embeval.core.ir import NOTHING, Run, TieRule
from embeval.core.records import TOKEN_COLUMNS, Column, ItemRecords, TokenRecords
from embeval.errors import DataError, StoreError

N = TypeVar("N", np.float64, np.float32, np.int32)
_META = b"embeval"
_ID, _CLUSTER, _SLICE = "id", "cluster", "slice."
_LOG_PROB = "log_prob_"


def records_to_bytes(records: ItemRecords) -> bytes:
    """Parquet: ``id``, ``slice.<name>`` and ``cluster`` as text, metric columns as float64, null where unscored."""
    import pyarrow as pa

    data: dict[str, Any] = {_ID: pa.array(records.ids, pa.string())}
    for name, labels in records.slices.items():
        data[_SLICE + name] = pa.array(labels, pa.string())
    if records.clusters is not None:
        data[_CLUSTER] = pa.array(records.clusters, pa.string())
    for name, column in records.columns.items():
        data[name] = pa.array(column, pa.float64(), from_pandas=True)
    return _write(pa.table(data), {"kind": "items", "unit": records.unit})


def records_from_bytes(data: bytes, columns: Collection[str] | None = None) -> ItemRecords:
    """The records that ``records_to_bytes`` wrote, with those of ``columns`` that there are, or all.

    Raises ``StoreError`` for anything else.
    """

    def wanted(name: str) -> bool:
        return columns is None or name in columns or not _is_value(name)

    table, meta = _read(data, "items", wanted)
    names = [name for name in table.column_names if _is_value(name) and wanted(name)]
    try:
        return ItemRecords(
            unit=str(meta["unit"]),
            ids=_texts(table, _ID),
            columns={name: _numbers(table, name) for name in names},
            slices={
                name.removeprefix(_SLICE): _texts(table, name) for name in table.column_names if name.startswith(_SLICE)
            },
            clusters=_texts(table, _CLUSTER) if _CLUSTER in table.column_names else None,
        )
    except (KeyError, ValueError, TypeError) as error:
        raise StoreError(f"The item file doesn't hold item records ({error}).") from None


def _is_value(name: str) -> bool:
    return name not in (_ID, _CLUSTER) and not name.startswith(_SLICE)


def _texts(table: Any, name: str) -> tuple[str, ...]:
    import pyarrow as pa

    column = table[name]
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    values = tuple(column.to_pylist())
    if None in values or not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        raise ValueError(f"column {name!r} must be text without gaps")
    return values


def _numbers(table: Any, name: str) -> Column:
    """A column with NaN for gaps, read from its buffers: pyarrow's own way to numpy imports pandas, which is slow."""
    return _array(table, name, np.float64)


def _array(table: Any, name: str, dtype: type[N]) -> npt.NDArray[N]:
    import pyarrow as pa

    if table.schema.field(name).type != pa.from_numpy_dtype(dtype):
        raise TypeError(f"column {name!r} must be {np.dtype(dtype)}, not {table.schema.field(name).type}")
    parts = []
    for chunk in table[name].chunks:
        gaps, values = chunk.buffers()
        rows = slice(chunk.offset, chunk.offset + len(chunk))
        part = np.frombuffer(values, dtype=dtype)[rows].copy()
        if gaps is not None and chunk.null_count:
            part[np.unpackbits(np.frombuffer(gaps, dtype=np.uint8), bitorder="little")[rows] == 0] = np.nan
        parts.append(part)
    return np.concatenate(parts) if parts else np.empty(0, dtype=dtype)


def run_to_bytes(run: Run) -> bytes:
    """Parquet: ``query``, ``doc``, ``score`` in the order of the ranking."""
    import pyarrow as pa

    rows, places = np.nonzero(run.docs != NOTHING)
    docs = run.docs[rows, places]
    # Only documents that were found, in the order in which they were: the dictionary of a million-document corpus
    # would dwarf the ranking, and equal rankings must give equal bytes.
    used, first, codes = np.unique(docs, return_index=True, return_inverse=True)
    by_appearance = np.argsort(first)
    place = np.empty(len(used), dtype=np.int32)
    place[by_appearance] = np.arange(len(used), dtype=np.int32)
    doc_names = pa.array([run.doc_ids[doc] for doc in used[by_appearance]], pa.string())
    query_names = pa.array(run.query_ids, pa.string())
    table = pa.table(
        {
            "query": pa.DictionaryArray.from_arrays(pa.array(rows.astype(np.int32)), query_names),
            "doc": pa.DictionaryArray.from_arrays(pa.array(place[codes]), doc_names),
            "score": pa.array(run.scores[rows, places], pa.float32()),
        }
    )
    return _write(table, {"kind": "run", "ties": run.ties.value, "queries": list(run.query_ids)})


def run_from_bytes(data: bytes) -> Run:
    """The ranking that ``run_to_bytes`` wrote. Raises ``StoreError`` for anything else."""
    table, meta = _read(data, "run")
    try:
        queries, docs = _texts(table, "query"), _texts(table, "doc")
        scores = table["score"].to_pylist()
        return Run.from_rows(
            zip(queries, docs, scores, strict=True), ties=TieRule(meta["ties"]), query_ids=meta["queries"]
        )
    except (KeyError, ValueError, TypeError, DataError) as error:
        raise StoreError(f"The run file doesn't hold a ranking ({error}).") from None


def tokens_to_bytes(tokens: TokenRecords) -> bytes:
    """Parquet: ``item`` and ``token`` as text, places and numbers as int32, ``log_prob_<mode>`` as float32."""
    import pyarrow as pa

    used, first, codes = np.unique(tokens.id, return_index=True, return_inverse=True)
    by_appearance = np.argsort(first)
    place = np.empty(len(used), dtype=np.int32)
    place[by_appearance] = np.arange(len(used), dtype=np.int32)
    written = pa.array([tokens.vocabulary[number] for number in used[by_appearance].tolist()], pa.string())
    data: dict[str, Any] = {
        "item": pa.DictionaryArray.from_arrays(pa.array(tokens.item), pa.array(tokens.items, pa.string())),
        "token": pa.DictionaryArray.from_arrays(pa.array(place[codes]), written),
        **{name: pa.array(getattr(tokens, name), pa.int32()) for name in TOKEN_COLUMNS},
        **{_LOG_PROB + mode: pa.array(values, pa.float32()) for mode, values in tokens.log_probs.items()},
    }
    return _write(pa.table(data), {"kind": "tokens"})


def tokens_from_bytes(data: bytes) -> TokenRecords:
    """The tokens that ``tokens_to_bytes`` wrote. Raises ``StoreError`` for anything else."""
    import pyarrow as pa

    table, _ = _read(data, "tokens")
    try:
        items, codes = _coded(table, "item")
        tokens, places = _coded(table, "token")
        numbers = {name: _array(table, name, np.int32) for name in TOKEN_COLUMNS}
        used, first = np.unique(numbers["id"], return_index=True)
        return TokenRecords(
            items=items,
            item=codes,
            vocabulary={int(number): tokens[places[row]] for number, row in zip(used, first, strict=True)},
            log_probs={
                name.removeprefix(_LOG_PROB): _array(table, name, np.float32)
                for name in table.column_names
                if name.startswith(_LOG_PROB)
            },
            **numbers,
        )
    except (KeyError, ValueError, TypeError, IndexError, pa.ArrowException) as error:
        raise StoreError(f"The token file doesn't hold tokens ({error}).") from None


def _coded(table: Any, name: str) -> tuple[tuple[str, ...], npt.NDArray[np.int32]]:
    """(distinct texts of a column, which of them each row has)."""
    import pyarrow as pa

    column = table.select([name]).unify_dictionaries()[name]
    if column.null_count or not pa.types.is_dictionary(column.type):
        raise ValueError(f"column {name!r} must be texts by number, without gaps")
    if not column.num_chunks:
        return (), np.zeros(0, dtype=np.int32)
    numbers = pa.table({name: pa.chunked_array([chunk.indices for chunk in column.chunks])})
    return tuple(column.chunk(0).dictionary.to_pylist()), _array(numbers, name, np.int32)


def hit_counts(data: bytes) -> dict[str, int]:
    """Query -> hits in the ranking that ``run_to_bytes`` wrote; 0 for a query that found nothing."""
    table, meta = _read(data, "run", lambda name: name == "query")
    try:
        counts: dict[str, int] = dict.fromkeys(meta["queries"], 0)
        queries, numbers = table["query"].value_counts().flatten()
        return counts | dict(zip(queries.to_pylist(), numbers.to_pylist(), strict=True))
    except (KeyError, ValueError, TypeError) as error:
        raise StoreError(f"The run file doesn't hold a ranking ({error}).") from None


def rankings(data: bytes, queries: Collection[str]) -> dict[str, tuple[str, ...]]:
    """Query -> its documents, best first, for those of ``queries`` that are in the ranking."""
    import pyarrow as pa

    table, _ = _read(data, "run")
    found: dict[str, tuple[str, ...]] = {}
    start = 0
    try:
        # Rows lie query by query, so that no array has to be made of python values, for which pyarrow imports pandas.
        for query, n in ((each["values"], each["counts"]) for each in table["query"].value_counts().to_pylist()):
            if query in queries:
                if {table["query"][row].as_py() for row in (start, start + n - 1)} != {query}:
                    raise StoreError("The run file holds rankings whose rows are mixed.")
                found[query] = tuple(table["doc"].slice(start, n).to_pylist())
            start += n
    except (KeyError, pa.ArrowException) as error:
        raise StoreError(f"The run file doesn't hold a ranking ({error}).") from None
    return found


def _write(table: Any, meta: dict[str, Any]) -> bytes:
    import pyarrow.parquet as pq

    packed = json.dumps(meta, sort_keys=True, ensure_ascii=False).encode("utf-8")
    buffer = io.BytesIO()
    pq.write_table(table.replace_schema_metadata({_META: packed}), buffer, compression="zstd")
    return buffer.getvalue()


def _read(data: bytes, kind: str, wanted: Callable[[str], bool] = bool) -> tuple[Any, dict[str, Any]]:
    """(the columns that are wanted, the description)."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        # Without threads: they are not worth starting here, and would still be starting when a short command ends.
        with pq.ParquetFile(io.BytesIO(data), pre_buffer=False) as file:
            names = [name for name in file.schema_arrow.names if wanted(name)]
            table = file.read(names, use_threads=False)
        meta = json.loads((table.schema.metadata or {})[_META])
    except (pa.ArrowException, OSError, KeyError, ValueError) as error:
        raise StoreError(f"Not a file of {kind} that embeval wrote ({error}).") from None
    if not isinstance(meta, dict):
        raise StoreError(f"Not a file of {kind} that embeval wrote (its description is {str(meta)[:80]}).")
    if meta.get("kind") != kind:
        raise StoreError(f"The file holds {meta.get('kind')}, not {kind}.")
    return table, meta
