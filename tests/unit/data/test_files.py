"""Reading jsonl, csv, tsv and parquet: the same rows from each, and every fault with file and line."""

from __future__ import annotations

import csv
import errno
import gzip
import io
import os
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from embeval.data import files
from embeval.data.files import Row
from embeval.errors import DataError, ExitCode


def parquet(table: Any) -> bytes:
    """A table as the bytes of a parquet file."""
    buffer = io.BytesIO()
    pq.write_table(table, buffer)
    return buffer.getvalue()


def write(folder: Path, name: str, data: bytes) -> Path:
    """A file of these bytes."""
    path = folder / name
    path.write_bytes(data)
    return path


def refused(path: Path, line: int | None = None) -> str:
    """The message with which reading fails, checked for what every message must have."""
    with pytest.raises(DataError) as caught:
        list(files.rows(path))
    message = str(caught.value)
    assert message.startswith(f"{path}: " if line is None else f"{path}, line {line}: ")
    assert len(message.splitlines()) <= 3
    assert caught.value.exit_code == ExitCode.CANNOT_EVALUATE
    return message


TEXT_ROWS = [{"id": "1", "text": "a b", "note": ""}, {"id": "2", "text": "é, 東 🙂", "note": "x"}]
JSONL = '{"id": "1", "text": "a b", "note": ""}\n{"id": "2", "text": "é, 東 🙂", "note": "x"}\n'.encode()
CSV = 'id,text,note\n1,a b,\n2,"é, 東 🙂",x\n'.encode()
TSV = "id\ttext\tnote\n1\ta b\t\n2\té, 東 🙂\tx\n".encode()
PARQUET = parquet(pa.table({"id": ["1", "2"], "text": ["a b", "é, 東 🙂"], "note": ["", "x"]}))
KINDS: list[tuple[str, bytes, list[int]]] = [
    ("jsonl", JSONL, [1, 2]),
    ("csv", CSV, [2, 3]),
    ("tsv", TSV, [2, 3]),
    ("parquet", PARQUET, [1, 2]),
]


@pytest.mark.parametrize(("kind", "data", "lines"), KINDS, ids=[kind for kind, _, _ in KINDS])
@pytest.mark.parametrize("gz", [False, True], ids=["plain", "gz"])
def test_every_kind_gives_the_same_rows(tmp_path: Path, kind: str, data: bytes, lines: list[int], gz: bool) -> None:
    """Plain and gzipped, with the line that each row stands on."""
    path = write(tmp_path, f"rows.{kind}" + (".gz" if gz else ""), gzip.compress(data) if gz else data)
    assert list(files.rows(path)) == [Row(line, values) for line, values in zip(lines, TEXT_ROWS, strict=True)]


@pytest.mark.parametrize(("kind", "data", "lines"), KINDS[:3], ids=["jsonl", "csv", "tsv"])
@pytest.mark.parametrize("gz", [False, True], ids=["plain", "gz"])
@pytest.mark.parametrize("bom", [b"", b"\xef\xbb\xbf"], ids=["no mark", "mark"])
@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"], ids=["lf", "crlf", "cr"])
@pytest.mark.parametrize("last", [True, False], ids=["ended", "not ended"])
def test_marks_and_line_ends_of_other_systems(
    tmp_path: Path, kind: str, data: bytes, lines: list[int], gz: bool, bom: bytes, end: bytes, last: bool
) -> None:
    """A byte-order mark, any line end, or none after the last row: the same rows on the same lines."""
    data = bom + (data if last else data.removesuffix(b"\n")).replace(b"\n", end)
    path = write(tmp_path, f"rows.{kind}" + (".gz" if gz else ""), gzip.compress(data) if gz else data)
    assert list(files.rows(path)) == [Row(line, values) for line, values in zip(lines, TEXT_ROWS, strict=True)]


def test_a_gzip_file_of_several_parts_is_read_to_its_end(tmp_path: Path) -> None:
    """RFC 1952 lets gzip members follow each other, as ``cat a.gz b.gz`` makes them."""
    first, second = JSONL.splitlines(keepends=True)
    path = write(tmp_path, "rows.jsonl.gz", gzip.compress(first) + gzip.compress(second))
    assert [row.values for row in files.rows(path)] == TEXT_ROWS


def test_json_values_keep_their_type(tmp_path: Path) -> None:
    """Nothing becomes text."""
    path = write(tmp_path, "rows.jsonl", b'{"a": 1, "b": 1.5, "c": true, "d": null, "e": ["x", {"f": 2}], "g": "1"}')
    (row,) = files.rows(path)
    assert row.values == {"a": 1, "b": 1.5, "c": True, "d": None, "e": ["x", {"f": 2}], "g": "1"}
    assert {key: type(value) for key, value in row.values.items() if key in "abc"} == {"a": int, "b": float, "c": bool}


def test_parquet_values_keep_their_type(tmp_path: Path) -> None:
    """Numbers, truth values and nulls as Python has them, over many row groups, numbered from 1."""
    table = pa.table({"a": list(range(10_000)), "b": [None, 1.5] * 5_000, "c": [True, False] * 5_000})
    path = tmp_path / "rows.parquet"
    pq.write_table(table, path, row_group_size=999)
    rows = list(files.rows(path))
    assert [row.line for row in rows] == list(range(1, 10_001))
    assert rows[0].values == {"a": 0, "b": None, "c": True}
    assert rows[9_999].values == {"a": 9_999, "b": 1.5, "c": False}


def test_blank_lines_are_passed_over_but_counted(tmp_path: Path) -> None:
    """An editor's blank lines don't shift the numbers."""
    path = write(tmp_path, "rows.jsonl", b'\n{"a": 1}\n  \n\t\r\n{"a": 2}\n\n')
    assert list(files.rows(path)) == [Row(2, {"a": 1}), Row(5, {"a": 2})]
    path = write(tmp_path, "rows.csv", b"a,b\n1,2\n\n3,4\n")
    assert list(files.rows(path)) == [Row(2, {"a": "1", "b": "2"}), Row(4, {"a": "3", "b": "4"})]


def test_only_line_feeds_end_a_json_line(tmp_path: Path) -> None:
    """U+2028, U+0085 and form feeds are characters of a text, though Python's ``splitlines`` cuts there."""
    text = "a\u2028b\u2029c\u0085d"
    path = write(tmp_path, "rows.jsonl", f'{{"a": "{text}"}}\n{{"a": "x"}}\n'.encode())
    assert list(files.rows(path)) == [Row(1, {"a": text}), Row(2, {"a": "x"})]


def test_quoted_fields_of_csv(tmp_path: Path) -> None:
    """Commas, doubled quotes and line ends inside quotes; a row is on the line that it ends on (RFC 4180)."""
    data = b'a,b\n"x, ""y""","1\n2\r\n3"\nz,w\n'
    path = write(tmp_path, "rows.csv", data)
    assert list(files.rows(path)) == [Row(4, {"a": 'x, "y"', "b": "1\n2\r\n3"}), Row(5, {"a": "z", "b": "w"})]


def test_quotes_in_tsv_are_characters(tmp_path: Path) -> None:
    """At the start, in the middle, doubled or lone: nothing is taken away and no line is swallowed."""
    path = write(tmp_path, "rows.tsv", b'a\tb\n"x\ty"\n""\t"\n5" disk\tit\'s "so"\n')
    assert [row.values for row in files.rows(path)] == [
        {"a": '"x', "b": 'y"'},
        {"a": '""', "b": '"'},
        {"a": '5" disk', "b": 'it\'s "so"'},
    ]
    assert [row.line for row in files.rows(path)] == [2, 3, 4]


@pytest.mark.parametrize("kind", ["csv", "tsv"])
def test_documents_longer_than_python_s_limit(tmp_path: Path, kind: str) -> None:
    """200,000 characters in a field, and the csv module's own limit is back afterwards, also after an error."""
    limit = 131_072
    csv.field_size_limit(limit)
    separator = "," if kind == "csv" else "\t"
    path = write(tmp_path, f"rows.{kind}", f"a{separator}b\n{'x' * 200_000}{separator}1\n".encode())
    (row,) = files.rows(path)
    assert row.values["a"] == "x" * 200_000
    assert csv.field_size_limit() == limit
    broken = write(tmp_path, f"broken.{kind}", f"a{separator}b\n1\n".encode())
    refused(broken, 2)
    assert csv.field_size_limit() == limit
    rows = files.rows(path)
    next(rows)
    rows.close()  # type: ignore[attr-defined]  # it is a generator, given up halfway
    assert csv.field_size_limit() == limit


def test_a_field_beyond_our_own_limit_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a fault of the file, with its line."""
    monkeypatch.setattr(files, "MAX_FIELD", 100)
    path = write(tmp_path, "rows.csv", b"a,b\n1,2\n" + b"x" * 101 + b",1\n")
    assert "field larger than field limit (100)" in refused(path, 3)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("a.jsonl", "jsonl"),
        ("a.b.JSONL", "jsonl"),
        ("a.csv.gz", "csv"),
        ("A.Tsv", "tsv"),
        ("a.parquet", "parquet"),
        ("a.parquet.gz", "parquet"),
        ("a.csv.tsv", "tsv"),
    ],
)
def test_the_ending_tells_the_kind(name: str, kind: str) -> None:
    """Upper and lower case alike; the last ending counts."""
    assert files.kind(Path("folder.csv") / name) == kind


@pytest.mark.parametrize(
    "name", ["a.txt", "a.json", "a", "jsonl", "a.gz", "a.jsonl.bz2", "a.jsonl.zip", "a.csv.gz.old", "csv.gz"]
)
def test_another_ending_is_refused(tmp_path: Path, name: str) -> None:
    """With the endings that would do; where there is no such file, that is what matters."""
    assert refused(tmp_path / "absent" / name).endswith("no such file.")
    message = refused(write(tmp_path, name, b"x"))
    assert all(ending in message for ending in (".jsonl", ".csv", ".tsv", ".parquet", ".gz"))


def test_a_pipe_is_refused(tmp_path: Path) -> None:
    """It would be waited for without end."""
    os.mkfifo(tmp_path / "a.jsonl")
    assert "is not a regular file" in refused(tmp_path / "a.jsonl")


@pytest.mark.parametrize(
    ("path", "split", "found"),
    [
        ("sts/x/test.jsonl.gz", "dev", "sts/x/dev.jsonl.gz"),
        ("test.csv", "test", "test.csv"),
        ("pairs.csv", "dev", "pairs.csv"),
        ("tests.csv", "dev", "tests.csv"),
        ("folder", "dev", "folder"),
    ],
)
def test_the_file_of_a_split(path: str, split: str, found: str) -> None:
    """Beside the file that is called by another split; a file of another name has one split only."""
    assert files.of_split(Path(path), split) == Path(found)


@pytest.mark.parametrize("name", ["a.jsonl", "a.csv.gz", "a.parquet"])
def test_a_file_that_is_not_there(tmp_path: Path, name: str) -> None:
    """Absent, below an absent folder, below a file, or a folder itself."""
    assert "no such file" in refused(tmp_path / name)
    assert "no such file" in refused(tmp_path / "absent" / name)
    file = write(tmp_path, "file", b"")
    assert "no such file" in refused(file / name)
    (tmp_path / name).mkdir()
    assert "is a folder" in refused(tmp_path / name)


@pytest.mark.parametrize("length", [300, 5_000])
def test_a_name_too_long_for_the_file_system(tmp_path: Path, length: int) -> None:
    """No file can have it, so it is a fault of the data path like any other."""
    refused(tmp_path / ("a" * length + ".jsonl"))


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz", "a.csv", "a.parquet", "a.parquet.gz"])
def test_a_disk_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """An error of the system while opening is told in its words, with the file."""
    path = write(tmp_path, name, b"")

    def fail(*words: object, **options: object) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr("builtins.open", fail)
    monkeypatch.setattr(gzip, "open", fail)
    monkeypatch.setattr(pq, "ParquetFile", fail)
    with pytest.raises(DataError) as caught:
        list(files.rows(path))
    monkeypatch.undo()
    assert str(caught.value).startswith(f"{path}: ")
    assert os.strerror(errno.EIO) in str(caught.value)


DEEP = b'{"a": ' + b"[" * 100_000
GZ = gzip.compress(JSONL * 200)
BAD: dict[str, tuple[str, bytes, int | None, str]] = {
    "json broken in line 2": ("a.jsonl", b'{"a": 1}\n{"a": \n{"a": 2}\n', 2, "not valid JSON"),
    "json broken after a blank line": ("a.jsonl", b'{"a": 1}\n\n{a: 1}\n', 3, "not valid JSON"),
    "json broken in the last line": ("a.jsonl.gz", gzip.compress(b'{"a": 1}\n{"a": 2}\n{"a"'), 3, "not valid JSON"),
    "json with NaN": ("a.jsonl", b'{"a": 1}\n{"a": NaN}\n', 2, "NaN is not a JSON number"),
    "json with Infinity": ("a.jsonl", b'{"a": Infinity}\n', 1, "Infinity is not a JSON number"),
    "json with -Infinity": ("a.jsonl", b'{"a": [-Infinity]}\n', 1, "-Infinity is not a JSON number"),
    "json nested without end": ("a.jsonl", b'{"a": 1}\n' + DEEP, 2, "nested too deeply"),
    "json with a number of 5,000 digits": ("a.jsonl", b'{"a": ' + b"9" * 5_000 + b"}", 1, "not valid JSON"),
    "json list instead of object": ("a.jsonl", b'{"a": 1}\n["a", 1]\n', 2, "a JSON object is needed, not list"),
    "json text instead of object": ("a.jsonl", b'"a"\n', 1, "a JSON object is needed, not str"),
    "json null instead of object": ("a.jsonl", b'{"a": 1}\nnull\n', 2, "a JSON object is needed, not NoneType"),
    "json over several lines": ("a.jsonl", b'{\n  "a": 1\n}\n', 1, "not valid JSON"),
    "two objects on a line": ("a.jsonl", b'{"a": 1} {"a": 2}\n', 1, "not valid JSON"),
    "a key twice in an object": ("a.jsonl", b'{"a": 1}\n{"a": 1, "a": 2}\n', 2, "'a'"),
    "jsonl empty": ("a.jsonl", b"", None, "no rows"),
    "jsonl blank": ("a.jsonl", b"\n  \n\r\n", None, "no rows"),
    "jsonl with nothing but a mark": ("a.jsonl", b"\xef\xbb\xbf", None, "no rows"),
    "jsonl.gz of nothing": ("a.jsonl.gz", gzip.compress(b""), None, "no rows"),
    "csv empty": ("a.csv", b"", None, "no rows"),
    "csv with nothing but a header": ("a.csv", b"a,b\n", None, "no rows"),
    "csv with nothing but a header, not ended": ("a.csv", b"a,b", None, "no rows"),
    "tsv empty": ("a.tsv", b"", None, "no rows"),
    "tsv with nothing but a header": ("a.tsv", b"a\tb\n\n\n", None, "no rows"),
    "parquet without rows": ("a.parquet", parquet(pa.table({"a": pa.array([], pa.string())})), None, "no rows"),
    "jsonl in latin-1": ("a.jsonl", b'{"a": "\xe9"}\n', 1, "not UTF-8"),
    "jsonl in utf-16": ("a.jsonl", '{"a": 1}\n'.encode("utf-16"), 1, "not UTF-8"),
    "csv in latin-1": ("a.csv", b"a,b\n1,\xe9\n", 2, "not UTF-8"),
    "tsv in latin-1": ("a.tsv", b"a\tb\n1\t\xff\n", 2, "not UTF-8"),
    "gz of latin-1": ("a.csv.gz", gzip.compress(b"a,b\n1,\xe9\n"), 2, "not UTF-8"),
    "jsonl cut within a character": ("a.jsonl", '{"a": 1}\n"é'.encode()[:-1], 2, "not UTF-8"),
    "surrogates as utf-8": ("a.csv", b"a,b\n1,\xed\xa0\x80\n", 2, "not UTF-8"),
    "gz cut off": ("a.jsonl.gz", GZ[: len(GZ) // 2], None, "not a whole gzip file"),
    "gz without its end": ("a.jsonl.gz", GZ[:-8], None, "not a whole gzip file"),
    "gz without its last byte": ("a.jsonl.gz", GZ[:-1], None, "not a whole gzip file"),
    "gz with a wrong checksum": ("a.jsonl.gz", GZ[:-8] + b"\0\0\0\0" + GZ[-4:], None, "not a whole gzip file"),
    "gz damaged inside": ("a.jsonl.gz", GZ[:30] + b"\xff\xff\xff\xff" + GZ[34:], None, "not a whole gzip file"),
    "gz followed by rubbish": ("a.jsonl.gz", GZ + b"rubbish", None, "not a whole gzip file"),
    "gz that is none": ("a.jsonl.gz", JSONL, None, "not a whole gzip file"),
    "csv.gz that is none": ("a.csv.gz", CSV, None, "not a whole gzip file"),
    "parquet that is none": ("a.parquet", b"id,text\n1,a long enough line\n", None, "not a readable parquet file"),
    "parquet empty": ("a.parquet", b"", None, "not a readable parquet file"),
    "parquet cut off": ("a.parquet", PARQUET[:-20], None, "not a readable parquet file"),
    "parquet.gz that is plain parquet": ("a.parquet.gz", PARQUET, None, "not a readable parquet file"),
    "parquet.gz cut off": ("a.parquet.gz", gzip.compress(PARQUET)[:-20], None, "not a readable parquet file"),
    "parquet.gz of something else": ("a.parquet.gz", gzip.compress(JSONL), None, "not a readable parquet file"),
    "csv with a column twice": ("a.csv", b"a,b,a\n1,2,3\n", 1, "the column 'a' appears twice"),
    "tsv with a column twice": ("a.tsv", b"b\tb\n1\t2\n", 1, "the column 'b' appears twice"),
    "parquet with a column twice": (
        "a.parquet",
        parquet(pa.Table.from_arrays([pa.array(["x"]), pa.array(["y"])], names=["a", "a"])),
        None,
        "'a'",
    ),
    "parquet with text that is no utf-8": (
        "a.parquet",
        parquet(pa.table({"a": pa.Array.from_buffers(pa.string(), 1, pa.array([b"\xff"]).buffers())})),
        None,
        "UTF-8",
    ),
    "csv row too short": ("a.csv", b"a,b\n1,2\n3\n", 3, "1 fields, but the header has 2"),
    "csv row too long": ("a.csv", b"a,b\n1,2,3\n", 2, "3 fields, but the header has 2"),
    "csv row after a long one": ("a.csv", b'a,b\n"1\n1",2\n3\n', 4, "1 fields, but the header has 2"),
    "tsv row too short": ("a.tsv", b"a\tb\n1\n", 2, "1 fields, but the header has 2"),
    "tsv row too long": ("a.tsv", b"a\tb\n1\t2\n1\t2\t\n", 3, "3 fields, but the header has 2"),
    "tsv named csv": ("a.csv", b"a\tb\n1, really\t2\n", 1, "separated by tabs; a .csv file needs commas"),
    "csv with a quote left open": ("a.csv", b'a,b\n"1,2\n3,4\n', 3, "not valid csv"),
    "csv with text after a quote": ("a.csv", b'a,b\n1,2\n"3"x,4\n', 3, "not valid csv"),
}


@pytest.mark.parametrize("case", list(BAD))
def test_what_is_wrong_is_told_with_file_and_line(tmp_path: Path, case: str) -> None:
    """Every fault is a ``DataError`` that starts with the file, and the line where there is one."""
    name, data, line, words = BAD[case]
    assert words in refused(write(tmp_path, name, data), line)


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.jsonl", b'{"a": 1}\n{"a": "x"}\n{"a": "\xe9"}\n{"a": 2}\n'),
        ("a.csv", b"a,b\n1,2\n3,\xe9\n4,5\n"),
        ("a.tsv", b"a\tb\n1\t2\n3\t\xe9\n4\t5\n"),
    ],
    ids=["jsonl", "csv", "tsv"],
)
def test_a_byte_that_is_no_utf8_is_told_with_its_line(tmp_path: Path, name: str, data: bytes) -> None:
    """The line is what one needs to mend the file, and it is known: the third."""
    refused(write(tmp_path, name, data), 3)


def test_rows_before_a_fault_are_given(tmp_path: Path) -> None:
    """Files are read as they are asked for and not whole beforehand."""
    rows = files.rows(write(tmp_path, "a.jsonl", b'{"a": 1}\n{"a": 2}\n{broken\n'))
    assert [next(rows).values, next(rows).values] == [{"a": 1}, {"a": 2}]
    with pytest.raises(DataError, match="line 3"):
        next(rows)


PATH = Path("folder/rows.jsonl")


def test_a_column_that_is_not_there() -> None:
    """The columns that are there are listed."""
    row = Row(7, {"id": "1", "texte": "x"})
    assert files.column(row, PATH, "texte") == "x"
    for read in (files.column, files.text, files.number, files.identifier):
        with pytest.raises(DataError) as caught:
            read(row, PATH, "text")
        assert str(caught.value) == f"{PATH}, line 7: there is no column 'text'. Columns: 'id', 'texte'."


@pytest.mark.parametrize("value", ["", "x", " ", "1", "é\n"])
def test_text_is_kept_as_it_is(value: str) -> None:
    """Nothing is stripped."""
    assert files.text(Row(1, {"a": value}), PATH, "a") == value


@pytest.mark.parametrize("value", [None, 1, 1.5, True, b"x", ["x"], {"x": "y"}])
def test_what_is_no_text_is_refused(value: Any) -> None:
    """A number or null is not turned into text."""
    with pytest.raises(DataError) as caught:
        files.text(Row(3, {"a": value}), PATH, "a")
    assert str(caught.value) == f"{PATH}, line 3: 'a' must be text, not {value!r}."


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0, 0.0),
        (5, 5.0),
        (-2.5, -2.5),
        ("5", 5.0),
        ("-2.50", -2.5),
        ("1e-3", 0.001),
        (" 4 ", 4.0),
        (Decimal("0.1"), 0.1),
    ],
)
def test_numbers_and_text_that_spells_one(value: Any, expected: float) -> None:
    """As a float; text comes from csv and tsv."""
    read = files.number(Row(1, {"a": value}), PATH, "a")
    assert read == expected
    assert type(read) is float


@pytest.mark.parametrize(
    "value",
    [None, True, False, "", " ", "x", "4,5", "1 2", "4.5.6", "0x10", "true", "1_000", [1], {"a": 1}, 10**400],
    ids=lambda value: repr(value)[:20],
)
def test_what_is_no_number_is_refused(value: Any) -> None:
    """Truth values, null, and text that other parsers don't take for a number either."""
    with pytest.raises(DataError, match=r"^folder/rows.jsonl, line 3: 'a' must be a number, not ") as caught:
        files.number(Row(3, {"a": value}), PATH, "a")
    assert len(str(caught.value)) < 150


@pytest.mark.parametrize(
    "value", [float("nan"), float("inf"), -float("inf"), "nan", "NaN", "inf", "-Infinity", "1e999"]
)
def test_a_number_that_is_not_finite_is_refused(value: Any) -> None:
    """As a number of the file or as the text of one."""
    with pytest.raises(DataError, match=r"^folder/rows.jsonl, line 3: 'a' must be a finite number, not "):
        files.number(Row(3, {"a": value}), PATH, "a")


@pytest.mark.parametrize(
    ("value", "expected"),
    [("a", "a"), ("007", "007"), (7, "7"), (0, "0"), (-1, "-1"), (10**20, "1" + "0" * 20), (" a", " a")],
)
def test_ids_are_text_or_whole_numbers(value: Any, expected: str) -> None:
    """A whole number becomes the text that a csv file would have."""
    assert files.identifier(Row(1, {"a": value}), PATH, "a") == expected


@pytest.mark.parametrize("value", [None, "", True, False, 1.0, 1.5, ["a"], {"a": 1}, b"a"])
def test_what_is_no_id_is_refused(value: Any) -> None:
    """An empty one too; 1.0 may not become "1.0" in one file and "1" in another."""
    with pytest.raises(DataError) as caught:
        files.identifier(Row(3, {"a": value}), PATH, "a")
    assert str(caught.value) == f"{PATH}, line 3: 'a' must be an id (text or a whole number), not {value!r}."


def test_a_long_value_is_cut_in_the_message() -> None:
    """A document of a million characters doesn't end up on the terminal."""
    with pytest.raises(DataError) as caught:
        files.number(Row(1, {"a": "x" * 1_000_000}), PATH, "a")
    assert len(str(caught.value)) < 150
    assert str(caught.value).endswith("x….")


@pytest.mark.parametrize(
    ("name", "header", "told"),
    [
        ("a.csv", "sentence1;sentence2;score", "separated by semicolons; a .csv file needs commas."),
        ("a.csv", "sentence1|score", "separated by bars; a .csv file needs commas."),
        ("a.tsv", "sentence1,score", "separated by commas; a .tsv file needs tabs."),
    ],
)
def test_another_separator_is_told(tmp_path: Path, name: str, header: str, told: str) -> None:
    """As spreadsheets write it where the comma is in the numbers; one column of a plain name is a column."""
    assert told in refused(write(tmp_path, name, f"{header}\na;b;3,5\n".encode()), 1)
    assert [dict(row.values) for row in files.rows(write(tmp_path, "b.csv", b"text\na;b\n"))] == [{"text": "a;b"}]


def test_half_a_character_in_a_name(tmp_path: Path) -> None:
    """No file takes it, so it is refused where it is read; a whole pair of halves is one character."""
    path = tmp_path / "rows.jsonl"
    path.write_text('{"\\ud83d\\ude00": 1}\n{"a": 1, "\\ud800": 2}\n', encoding="utf-8")
    rows = files.rows(path)
    assert next(rows).values == {"\U0001f600": 1}
    with pytest.raises(DataError, match=r"rows\.jsonl, line 2: the name '\\ud800' holds half of a character\."):
        next(rows)
