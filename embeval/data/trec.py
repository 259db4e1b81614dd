"""Runs and judgments in TREC files, plain or gzipped.

A run has six columns separated by spaces or tabs (query, Q0, document, rank, score, tag), judgments have four (query,
0, document, relevance); those of a BEIR folder, three columns below a header, are read as well.
Source: trec_eval 9.0.8. As there, scores are float32 and the score decides, not the rank.

Files are parsed by pyarrow, column by column. What it doesn't take goes line by line through a slow parser, which
takes whatever is valid and names the line of what is not.
"""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import numpy.typing as npt

from embeval.core.ir import MAX_GRADE, NOTHING, Qrels, Run, TieRule
from embeval.core.words import plural
from embeval.data import files
from embeval.data.beir import QRELS_HEADER
from embeval.errors import DataError

RUN_COLUMNS = ("query", "Q0", "document", "rank", "score", "tag")
QRELS_COLUMNS = ("query", "0", "document", "relevance")
NOTICEABLE = 0.05
"""Share of queries from which on a rank column that contradicts the scores is remarked on."""
NO_RANK = 0
"""Where the rank column holds no whole number above 0."""

_BOM = b"\xef\xbb\xbf"
_BLOCK = 1 << 22
"""Bytes that pyarrow parses at a time."""


class RunFile(NamedTuple):
    """What a TREC file says."""

    run: Run
    """Its ranking."""
    remarks: tuple[str, ...]
    """What a reader of its numbers should know, as sentences."""


def read_run(path: Path, ties: TieRule = TieRule.DOC_ID_DESC) -> Run:
    """The ranking in a TREC file.

    A document that comes twice for a query counts once, at its best score, and ``Run.n_duplicates`` counts the
    others. Raises ``DataError`` with file and line for a wrong number of columns and a score that is not finite.
    """
    return read_run_file(path, ties).run


def read_run_file(path: Path, ties: TieRule = TieRule.DOC_ID_DESC) -> RunFile:
    """The ranking as ``read_run`` gives it, with a remark where its rank column tells another order."""
    data = _content(path)
    hits = _fast_hits(data)
    if hits is None:
        hits = _slow_hits(data, path)
    run = Run.from_hits(
        query_ids=hits.query_ids, doc_ids=hits.doc_ids, rows=hits.rows, docs=hits.docs, scores=hits.scores, ties=ties
    )
    return RunFile(run, tuple(_remarks(hits)))


def read_qrels(path: Path) -> Qrels:
    """The judgments in a TREC or BEIR file.

    Raises ``DataError`` with file and line for a wrong number of columns, a relevance that is no whole number, and a
    document judged twice for a query.
    """
    data = _content(path)
    first = data[: data.find(b"\n") if b"\n" in data else None].rstrip(b"\r").decode("utf-8", "replace").split("\t")
    layout = _QrelsLayout(first) if set(QRELS_HEADER) <= set(first) else _TREC_QRELS
    if twice := [name for name in layout.columns if layout.columns.count(name) > 1]:
        raise DataError(f"{path}, line 1: the column {twice[0]!r} appears twice.")
    found = _fast_judgments(data, layout)
    return Qrels(found if found is not None else _slow_judgments(data, path, layout))


def write_run(run: Run, file: BinaryIO, tag: str = "embeval") -> None:
    """Writes a ranking as TREC lines, best first. Scores are spelled so that the same float32 is read again.

    Raises ``DataError`` for an id or tag that is empty or holds a space, since columns are separated by spaces.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    rows, places = np.nonzero(run.docs != NOTHING)
    docs = run.docs[rows, places]
    _refuse_spaces("query", [run.query_ids[row] for row in np.unique(rows)])
    _refuse_spaces("document", [run.doc_ids[doc] for doc in np.unique(docs)])
    _refuse_spaces("tag", [tag])
    lines = pc.binary_join_element_wise(
        pa.array(run.query_ids, pa.string()).take(pa.array(rows)),
        "Q0",
        pa.array(run.doc_ids, pa.string()).take(pa.array(docs)),
        pa.array(places + 1).cast(pa.string()),
        pa.array(run.scores[rows, places], pa.float32()).cast(pa.string()),
        tag,
        " ",
    )
    file.write("".join(f"{line}\n" for line in lines.to_pylist()).encode("utf-8"))


def write_qrels(qrels: Qrels, file: BinaryIO) -> None:
    """Writes judgments as TREC lines. Raises ``DataError`` for an id that is empty or holds a space."""
    _refuse_spaces("query", qrels.judged)
    _refuse_spaces("document", {doc for grades in qrels.judgments.values() for doc in grades})
    rows = [(query, doc, grade) for query, grades in qrels.judgments.items() for doc, grade in grades.items()]
    file.write("".join(f"{query} 0 {doc} {grade}\n" for query, doc, grade in rows).encode("utf-8"))


def _refuse_spaces(what: str, names: Any) -> None:
    for name in names:
        if name.split() != [name]:  # whatever Python takes for a space, since other readers split there
            problem = "is empty" if not name else "holds a space"
            raise DataError(
                f"The {what} {'' if what == 'tag' else 'id '}{name!r} {problem}, so it can't stand in a TREC file, "
                "whose columns are separated by spaces."
            )


def _content(path: Path) -> bytes:
    """The bytes of a file, unpacked, without a byte-order mark."""
    if path.exists() and not path.is_file():  # a pipe would be waited for without end
        what = "a folder" if path.is_dir() else "not a regular file"
        raise DataError(f"{path}: is {what}; a file is needed here.")
    try:
        data = path.read_bytes()
        data = gzip.decompress(data) if path.name.endswith(".gz") else data
    except (FileNotFoundError, NotADirectoryError):
        raise DataError(f"{path}: no such file.") from None
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(f"{path}: not a whole gzip file ({error}).") from None
    except OSError as error:
        raise DataError(f"{path}: can't be read ({error.strerror or error}).") from None
    data = data.removeprefix(_BOM)
    if (data[:1].isspace() and not data.strip()) or not data:
        raise DataError(f"{path}: the file holds no rows.")
    return data


@dataclass(frozen=True)
class _Hits:
    """One entry per line of a run."""

    query_ids: Sequence[str]
    doc_ids: Sequence[str]
    rows: npt.NDArray[np.integer]
    """int [n]: index into ``query_ids``."""
    docs: npt.NDArray[np.int32]
    """int32 [n]: index into ``doc_ids``."""
    ranks: npt.NDArray[np.int64]
    """int64 [n]: the rank column."""
    scores: npt.NDArray[np.float32]
    """float32 [n], finite."""


def _fast_hits(data: bytes) -> _Hits | None:
    """The hits of a file that pyarrow can take; None for any other."""
    table = _table(data, RUN_COLUMNS, {"query": str, "document": str, "rank": int, "score": float})
    if table is None:
        return None
    with np.errstate(over="ignore"):
        scores = table["score"].to_numpy().astype(np.float32)
    if not np.isfinite(scores).all():
        return None
    (query_ids, rows), (doc_ids, docs) = _coded(table["query"]), _coded(table["document"])
    return _Hits(query_ids, doc_ids, rows, docs, table["rank"].to_numpy(), scores)


def _slow_hits(data: bytes, path: Path) -> _Hits:
    queries: dict[str, int] = {}
    documents: dict[str, int] = {}
    hits: list[tuple[int, int, int, float]] = []
    for line, (query, _, doc, rank, score, _) in _lines(data, path, RUN_COLUMNS):
        value = files.number(files.Row(line, {"score": score}), path, "score")
        with np.errstate(over="ignore"):
            if not np.isfinite(np.float32(value)):
                raise DataError(f"{path}, line {line}: the score {score} is beyond float32, in which runs are kept.")
        place = int(rank) if re.fullmatch("[0-9]{1,18}", rank) else NO_RANK
        hits.append((queries.setdefault(query, len(queries)), documents.setdefault(doc, len(documents)), place, value))
    rows, docs, ranks, scores = zip(*hits, strict=True)
    return _Hits(
        tuple(queries),
        tuple(documents),
        np.array(rows),
        np.array(docs, dtype=np.int32),
        np.array(ranks, dtype=np.int64),
        np.array(scores, dtype=np.float32),
    )


def _remarks(hits: _Hits) -> Iterator[str]:
    """What the rank column says against the scores, if in a noticeable share of the queries."""
    rows, ranks, scores = hits.rows, hits.ranks, hits.scores
    if (ranks == NO_RANK).all():  # all ranks are 0, or are no ranks
        return
    same = rows[1:] == rows[:-1]
    if (rows[1:] < rows[:-1]).any() or (same & (ranks[1:] < ranks[:-1])).any():
        order = np.lexsort((ranks, rows))
        rows, ranks, scores = rows[order], ranks[order], scores[order]
        same = rows[1:] == rows[:-1]
    lower = same & (ranks[1:] > ranks[:-1])
    n_queries = len(hits.query_ids)
    against = np.bincount(rows[1:][lower & (scores[1:] > scores[:-1])], minlength=n_queries) > 0
    several = np.bincount(rows[1:][lower], minlength=n_queries) > 0
    level = several & (np.bincount(rows[1:][same & (scores[1:] != scores[:-1])], minlength=n_queries) == 0)
    if (n := int(against.sum())) > NOTICEABLE * n_queries:
        yield (
            f"The rank column contradicts the scores in {n} of {plural(n_queries, 'query', 'queries')}: "
            "the scores decide, as in trec_eval."
        )
    if (n := int(level.sum())) > NOTICEABLE * n_queries:
        yield (
            f"All scores are equal in {n} of {plural(n_queries, 'query', 'queries')}: "
            "the tie rule decides there, and not the rank column."
        )


@dataclass(frozen=True)
class _QrelsLayout:
    """Where query, document and relevance stand."""

    columns: Sequence[str]
    wanted: tuple[str, str, str] = QRELS_HEADER
    header: bool = True
    """Whether the first line names the columns, and tabs separate them."""


_TREC_QRELS = _QrelsLayout(QRELS_COLUMNS, ("query", "document", "relevance"), header=False)


def _fast_judgments(data: bytes, layout: _QrelsLayout) -> dict[str, dict[str, int]] | None:
    query, document, relevance = layout.wanted
    types: dict[str, type] = {query: str, document: str, relevance: float}
    table = _table(data, layout.columns, types, header=layout.header)
    if table is None:
        return None
    grades = table[relevance].to_numpy()
    if not (np.abs(grades) <= MAX_GRADE).all() or (grades != np.rint(grades)).any():
        return None
    (query_ids, rows), (doc_ids, docs) = _coded(table[query]), _coded(table[document])
    order = np.argsort(rows, kind="stable")
    ends = np.cumsum(np.bincount(rows, minlength=len(query_ids)))
    names = np.array(doc_ids, dtype=object)[docs[order]].tolist()
    values = grades[order].astype(np.int64).tolist()
    judgments, start = {}, 0
    for name, end in zip(query_ids, ends.tolist(), strict=True):
        judgments[name] = dict(zip(names[start:end], values[start:end], strict=True))
        start = end
    return judgments if sum(map(len, judgments.values())) == len(values) else None  # else one is judged twice


def _slow_judgments(data: bytes, path: Path, layout: _QrelsLayout) -> dict[str, dict[str, int]]:
    judgments: dict[str, dict[str, int]] = {}
    places = [layout.columns.index(name) for name in layout.wanted]
    for line, fields in _lines(data, path, layout.columns, header=layout.header):
        query, doc, relevance = (fields[place] for place in places)
        if not query or not doc:
            raise DataError(f"{path}, line {line}: the {'query' if not query else 'document'} id is empty.")
        grade = files.number(files.Row(line, {"relevance": relevance}), path, "relevance")
        if grade != int(grade) or abs(grade) > MAX_GRADE:
            raise DataError(
                f"{path}, line {line}: relevance must be a whole number up to {MAX_GRADE}, not {relevance!r}."
            )
        of_query = judgments.setdefault(query, {})
        if doc in of_query:
            raise DataError(f"{path}, line {line}: query {query!r}, document {doc!r} is judged twice.")
        of_query[doc] = int(grade)
    if not judgments:
        raise DataError(f"{path}: the file holds no rows.")
    return judgments


def _lines(data: bytes, path: Path, columns: Sequence[str], *, header: bool = False) -> Iterator[tuple[int, list[str]]]:
    """(line number, fields) of every line that is not blank."""
    for number, line in enumerate(data.splitlines(), start=1):
        if not line.strip() or (header and number == 1):
            continue
        fields = line.split(b"\t") if header else line.split()
        if len(fields) != len(columns):
            separator = "tabs" if header else "spaces"
            kind = "run" if tuple(columns) == RUN_COLUMNS else "qrels file"
            raise DataError(
                f"{path}, line {number}: {plural(len(fields), 'column')}; this {kind} needs {len(columns)} separated "
                f"by {separator}: {', '.join(columns)}."
            )
        try:
            yield number, [field.decode("utf-8") for field in fields]
        except UnicodeDecodeError as error:
            raise DataError(
                f"{path}, line {number}: not UTF-8 text (byte {error.object[error.start]:#04x}: {error.reason})."
            ) from None


def _table(data: bytes, columns: Sequence[str], types: Mapping[str, type], *, header: bool = False) -> Any:
    """The columns as pyarrow gives them, those not in ``types`` as text, texts dictionary-encoded; None if it can't."""
    if b"\x0b" in data or b"\x0c" in data:  # spaces too, but only for the slow parser
        return None
    if header:
        return _parsed(data, columns, types, "\t", skip=1)
    separator = "\t" if b"\t" in data[: data.find(b"\n")] else " "
    table = _parsed(data, columns, types, separator)
    return table if table is not None else _parsed(_even(data), columns, types, " ")


def _parsed(data: bytes, columns: Sequence[str], types: Mapping[str, type], separator: str, *, skip: int = 0) -> Any:
    import pyarrow as pa
    import pyarrow.csv as csv

    arrow_types: dict[type, Any] = {str: pa.dictionary(pa.int32(), pa.string()), int: pa.int64(), float: pa.float64()}
    try:
        table = csv.read_csv(
            pa.BufferReader(data),
            csv.ReadOptions(column_names=list(columns), skip_rows=skip, block_size=_BLOCK),
            csv.ParseOptions(delimiter=separator, quote_char=False),
            csv.ConvertOptions(
                column_types={name: arrow_types[types.get(name, str)] for name in columns}, null_values=[]
            ),
        ).unify_dictionaries()
    except pa.ArrowInvalid:
        return None
    if not len(table):
        return None
    # Where something else than that one separator stands between columns, it shows up in a text or leaves one empty.
    stray = " \t".replace(separator, "") if not skip else ""
    for name in columns:
        if types.get(name, str) is str:
            texts = table[name].chunk(0).dictionary.to_pylist()
            if "" in texts or any(each in text for each in stray for text in texts):
                return None
    return table


def _even(data: bytes) -> bytes:
    """The lines with one space between columns."""
    data = re.sub(rb"[ \t]+", b" ", data)
    return re.sub(rb" ?([\r\n]) ?", rb"\1", data).strip(b" ")


def _coded(column: Any) -> tuple[tuple[str, ...], npt.NDArray[np.int32]]:
    """Distinct texts of a dictionary-encoded column, and int32 [n] indices into them."""
    codes = np.concatenate([chunk.indices.to_numpy() for chunk in column.chunks])
    return tuple(column.chunk(0).dictionary.to_pylist()), codes
