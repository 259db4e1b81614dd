"""Reading the files of a golden set to their end, whatever they hold; what is broken becomes a finding."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from embeval.core import strict_json
from embeval.core.ir import MAX_GRADE
from embeval.data import files
from embeval.data.beir import QRELS_HEADER
from embeval.errors import DataError
from embeval.workflows.lint.findings import Check, Finding, LintOptions, Severity
from embeval.workflows.lint.gold import Document, GoldSet, Judgment, Query

MISSING = Check(
    "missing-file", Severity.ERROR, "A file that a BEIR folder needs is not there.", "Add it, or give another folder."
)
BOTH = Check(
    "plain-and-gzipped", Severity.ERROR, "A file is there plain and gzipped, and they may differ.", "Remove one."
)
BROKEN_FILE = Check("broken-file", Severity.ERROR, "A file can't be read to its end.", "Copy or make it again.")
BROKEN_ROW = Check("broken-row", Severity.ERROR, "A row is not what it should be.", "Mend or remove the row.")
HEADER = Check(
    "qrels-header",
    Severity.ERROR,
    "A qrels file does not start with its header.",
    f"Make the first line {' '.join(QRELS_HEADER)!r}, with tabs between.",
)
GRADE = Check(
    "grade",
    Severity.ERROR,
    "A grade is not a whole number.",
    f"Give whole numbers up to {MAX_GRADE}; above 0 is relevant.",
)
MARKS = Check(
    "byte-order-mark",
    Severity.NOTE,
    "A file starts with a byte-order mark, which other tools take for text.",
    "--fix removes it.",
)
LINE_ENDS = Check("line-ends", Severity.NOTE, "A file has the line ends of Windows.", "--fix replaces them.")

BAD_BYTES = re.compile("[\udc80-\udcff]")
BOM = b"\xef\xbb\xbf"
T = TypeVar("T")


def open_lines(path: Path) -> Iterator[tuple[int, str]]:
    """(number, line with its end); bytes that are not UTF-8 come as U+DC80 to U+DCFF."""
    opener = gzip.open if path.name.endswith(".gz") else open
    with opener(path, "rt", encoding="utf-8-sig", errors="surrogateescape", newline="") as file:
        yield from enumerate(file, start=1)


def marked(path: Path) -> bool:
    """Whether a file starts with a byte-order mark."""
    opener: Callable[..., Any] = gzip.open if path.name.endswith(".gz") else open
    with opener(path, "rb") as file:
        return bool(file.read(len(BOM)) == BOM)


def plain_or_gzipped(folder: Path, name: str) -> list[Path]:
    """Those of the two that are there, the plain one first."""
    return [path for path in (folder / name, folder / f"{name}.gz") if path.is_file()]


def splits_there(folder: Path) -> tuple[str, ...]:
    """Names of the qrels files, sorted."""
    names = {path.name.removesuffix(".gz") for path in (folder / "qrels").glob("*") if path.is_file()}
    return tuple(sorted(name.removesuffix(".tsv") for name in names if name.endswith(".tsv")))


def read(folder: Path, options: LintOptions) -> tuple[GoldSet, list[Finding]]:
    """The set, and what was wrong with its files. Raises ``DataError`` where there is no such folder or split."""
    if not folder.is_dir():
        raise DataError(f"{folder}: no such folder. A BEIR folder holds corpus.jsonl, queries.jsonl and qrels/.")
    split, there = options.split, splits_there(folder)
    if split not in ("all", *there) and there:
        raise DataError(
            f"{folder / 'qrels'}: there is no split {split!r}. Splits there: {', '.join(there)}.\n"
            "Say --split NAME, or --split all."
        )
    reader = _Reader(folder)
    corpus_file, documents = reader.corpus()
    queries_file, queries = reader.queries()
    wanted = there if split == "all" else (split,)
    judgments = {name: reader.qrels(name) for name in wanted or ("test",)}
    elsewhere = _Reader(folder)  # what is wrong in a split that nobody asked about is not told
    others = {row.query for name in there if name not in wanted for row in elsewhere.qrels(name)[1]}
    gold = GoldSet(
        options=options,
        corpus_file=corpus_file,
        queries_file=queries_file,
        documents=tuple(documents),
        queries=tuple(queries),
        splits={name: tuple(rows) for name, (_, rows) in judgments.items()},
        qrels_files={name: file for name, (file, _) in judgments.items()},
        judged_elsewhere=frozenset(others),
        source=_source(folder),
        incomplete=frozenset(reader.incomplete),
    )
    return gold, reader.findings


def _source(folder: Path) -> str:
    """Where datasheet.json says that a set comes from, such as ``mteb:SciFact``; empty where there is none.

    Sets that ``data import`` fetched from the hub name it as ``{"kind": "hub", "name": "mteb/scifact"}``.
    """
    try:
        values = strict_json.loads((folder / "datasheet.json").read_bytes())
    except (OSError, ValueError):
        return ""
    source = values.get("source") if isinstance(values, dict) else None
    if isinstance(source, dict) and source.get("kind") == "hub" and str(source.get("name")).startswith("mteb/"):
        return f"mteb:{source['name'].removeprefix('mteb/')}"
    return source if isinstance(source, str) else ""


class _Reader:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.findings: list[Finding] = []
        self.incomplete: set[str] = set()

    def corpus(self) -> tuple[str, list[Document]]:
        path, name = self._find("corpus.jsonl")
        found = []
        for row in self._objects(path, name):
            doc = self._checked(name, row.line, files.identifier, row, path, "_id")
            if doc is None:
                continue
            text = self._checked(name, row.line, files.text, row, path, "text")
            title = ""
            if row.values.get("title") is not None:
                title = self._checked(name, row.line, files.text, row, path, "title") or ""
            self._whole(name, row, path)
            joined = f"{title} {text}".strip() if text is not None else None
            found.append(Document(doc, joined, row.line, _numeric(row), _content(row)))
        return name, found

    def queries(self) -> tuple[str, list[Query]]:
        path, name = self._find("queries.jsonl")
        found = []
        for row in self._objects(path, name):
            query = self._checked(name, row.line, files.identifier, row, path, "_id")
            if query is None:
                continue
            text = self._checked(name, row.line, files.text, row, path, "text")
            self._whole(name, row, path)
            answerable = row.values.get("answerable", True)
            if not isinstance(answerable, bool):
                self._broken(name, row.line, f"'answerable' must be true or false, not {answerable!r:.60}.", query)
            excluded = row.values.get("exclude")
            if excluded is not None and not _are_ids(excluded):
                self._broken(name, row.line, f"'exclude' must be a list of document ids, not {excluded!r:.60}.", query)
            found.append(
                Query(
                    query,
                    text,
                    row.line,
                    _numeric(row),
                    _content(row),
                    answerable is not False,
                    tuple(excluded) if excluded is not None and _are_ids(excluded) else (),
                )
            )
        return name, found

    def qrels(self, split: str) -> tuple[str, list[Judgment]]:
        path, name = self._find(f"qrels/{split}.tsv")
        found = []
        names: list[str] | None = None
        for number, line in self._lines(path, name):
            fields = line.rstrip("\r\n").split("\t")
            if names is None:
                names = self._columns(name, fields)
                if not names:
                    self.incomplete.add(name)
                    return name, []
                if fields[0] in names:
                    continue
            if fields == [""]:
                continue
            if len(fields) != len(names):
                self._broken(name, number, f"{len(fields)} fields, but the header has {len(names)}.")
                continue
            row = files.Row(number, dict(zip(names, fields, strict=True)))
            if (judgment := self._judgment(name, row, path)) is not None:
                found.append(judgment)
        return name, found

    def _columns(self, name: str, fields: list[str]) -> list[str]:
        """The columns of a qrels file; for one without a header those that it seems to have, none if it isn't one."""
        if all(column in fields for column in QRELS_HEADER):
            return fields
        lacking = [column for column in QRELS_HEADER if column not in fields]
        if any(column in fields for column in QRELS_HEADER):
            text = f"there is no column {lacking[0]!r}. Columns: {', '.join(map(repr, fields))}."
            self.findings.append(HEADER.at(text, file=name, line=1))
            return []
        guess = {3: list(QRELS_HEADER), 4: ["query-id", "", "corpus-id", "score"]}.get(len(fields), [])
        seems = {3: "the first line is a judgment.", 4: "this is the form of trec_eval: query, 0, document, grade."}
        self.incomplete.add(name)
        text = seems.get(len(fields), f"the first line has {len(fields)} columns with tabs between.")
        self.findings.append(HEADER.at(text, file=name, line=1))
        return guess

    def _judgment(self, name: str, row: files.Row, path: Path | None) -> Judgment | None:
        query = self._checked(name, row.line, files.identifier, row, path, "query-id")
        doc = self._checked(name, row.line, files.identifier, row, path, "corpus-id")
        if query is None or doc is None:
            return None
        try:
            grade = files.number(row, path or Path(name), "score")
        except DataError as error:
            self._tell(GRADE, name, row.line, _without_place(error, row.line), query, doc)
            return None
        if grade != int(grade) or abs(grade) > MAX_GRADE:
            self._tell(GRADE, name, row.line, f"{row.values['score']!r} is no such number.", query, doc)
            return None
        return Judgment(query, doc, int(grade), row.line)

    def _find(self, name: str) -> tuple[Path | None, str]:
        there = plain_or_gzipped(self.folder, name)
        if not there:
            self.incomplete.add(name)
            self.findings.append(MISSING.at(f"there is no {name}, nor {name}.gz.", file=name))
            return None, name
        if len(there) > 1:
            self.findings.append(BOTH.at(f"{there[1].name} is there as well.", file=name))
        return there[0], there[0].relative_to(self.folder).as_posix()

    def _objects(self, path: Path | None, name: str) -> Iterator[files.Row]:
        for number, line in self._lines(path, name):
            if not line.strip():
                continue
            try:
                values = strict_json.loads(line)
            except ValueError as error:
                place = f" at character {error.pos + 1}" if isinstance(error, json.JSONDecodeError) else ""
                what = error.msg if isinstance(error, json.JSONDecodeError) else str(error)
                self._broken(name, number, f"not valid JSON ({what:.120}{place}).")
                continue
            if isinstance(values, dict):
                yield files.Row(number, values)
            else:
                self._broken(name, number, f"a JSON object is needed, not {type(values).__name__}.")

    def _lines(self, path: Path | None, name: str) -> Iterator[tuple[int, str]]:
        if path is None:
            return
        number, windows, empty = 0, 0, True
        try:
            if marked(path):
                self.findings.append(MARKS.at("starts with EF BB BF.", file=name, line=1))
            for number, line in open_lines(path):
                windows += line.endswith("\r\n")
                empty = empty and not line.strip()
                if BAD_BYTES.search(line):
                    byte = ord(BAD_BYTES.findall(line)[0]) - 0xDC00
                    self._broken(name, number, f"not UTF-8 text (byte {byte:#04x}).")
                else:
                    yield number, line
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            self._tell(BROKEN_FILE, name, number + 1, f"not a whole gzip file ({error}).")
        except OSError as error:
            self._tell(BROKEN_FILE, name, None, f"{error.strerror or error}.")
        else:
            if empty:
                self._tell(BROKEN_FILE, name, None, "the file holds no rows.")
        if windows:
            self.findings.append(LINE_ENDS.at(f"{windows} of {number} lines.", file=name))

    def _checked(
        self,
        name: str,
        line: int,
        check: Callable[[files.Row, Path, str], T],
        row: files.Row,
        path: Path | None,
        field: str,
    ) -> T | None:
        try:
            return check(row, path or Path(name), field)
        except DataError as error:
            self._broken(name, line, _without_place(error, line))
            return None

    def _whole(self, name: str, row: files.Row, path: Path | None) -> None:
        """Half characters in names and in fields that are labels; the others were looked at as they were read."""
        if (broken := files.half_name(row.values)) is not None:
            self._broken(name, row.line, f"the name {broken!r:.60} holds half of a character.")
        for field, value in row.values.items():
            if isinstance(value, str) and field not in ("_id", "text", "title"):
                self._checked(name, row.line, files.text, row, path, field)

    def _broken(self, name: str, line: int, message: str, *ids: str) -> None:
        self._tell(BROKEN_ROW, name, line, message, *ids)

    def _tell(self, check: Check, name: str, line: int | None, message: str, *ids: str) -> None:
        self.incomplete.add(name)
        self.findings.append(check.at(message, file=name, line=line, ids=ids))


def _numeric(row: files.Row) -> bool:
    return isinstance(row.values.get("_id"), int)


def _content(row: files.Row) -> bytes:
    text = strict_json.canonical(row.values)
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _are_ids(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(doc, str) and doc for doc in value)


def _without_place(error: DataError, line: int) -> str:
    """The message without file and line, which the finding has in fields of their own."""
    return str(error).partition(f"line {line}: ")[2] or str(error)
