"""Texts: the same from every kind of file, units of plain text, and what is refused."""

from __future__ import annotations

import gzip
import hashlib
import os
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from embeval.core.signature import RESERVED_SUBSETS
from embeval.data import files
from embeval.data.texts import TextColumns, Texts, TextUnit, load_texts
from embeval.errors import ConfigError, DataError
from tests.support.data import write_jsonl
from tests.support.row_kinds import KINDS

RawRow = dict[str, Any]

relaxed = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=60)


def content(texts: Texts) -> tuple[Any, ...]:
    """All that a payload holds but for the count of blanks, which a table has none of."""
    return texts.ids, texts.texts, texts.subsets, texts.data_hash


def tables(texts: st.SearchStrategy[str]) -> st.SearchStrategy[list[RawRow]]:
    """Rows with ids and sub-sets or without."""
    names = texts.filter(bool)
    extra = {"id": names, "subset": names.filter(lambda name: name not in RESERVED_SUBSETS)}
    row = {"text": texts.filter(lambda text: bool(text.strip()))}

    def rows(options: tuple[str, ...]) -> st.SearchStrategy[list[RawRow]]:
        whole = st.fixed_dictionaries({**{name: extra[name] for name in options}, **row})
        return st.lists(whole, min_size=1, max_size=6, unique_by=(lambda row: row["id"]) if "id" in options else None)

    return st.one_of([rows(options) for options in ((), ("id",), ("subset",), ("id", "subset"))])


def check_kinds(rows: list[RawRow], kinds: list[str]) -> None:
    """Each kind, plain and gzipped, gives the texts of the rows and one hash."""
    contents = set()
    with tempfile.TemporaryDirectory() as folder:
        for kind in kinds:
            data = KINDS[kind](rows)
            for name, written in ((f"a.{kind}", data), (f"b.{kind}.gz", gzip.compress(data))):
                (Path(folder) / name).write_bytes(written)
                contents.add(content(load_texts(Path(folder) / name)))
    ((ids, texts, subsets, _),) = contents
    assert ids == tuple(row.get("id", str(number)) for number, row in enumerate(rows, start=1))
    assert texts == tuple(row["text"].strip() for row in rows)
    assert subsets == tuple(row["subset"] for row in rows if "subset" in row)


@relaxed
@given(rows=tables(st.text(max_size=8)))
def test_the_kind_of_table_does_not_matter(rows: list[RawRow]) -> None:
    """Any text: jsonl, csv and parquet, plain and gzipped, give equal texts and one hash."""
    check_kinds(rows, ["jsonl", "csv", "parquet"])


@relaxed
@given(rows=tables(st.text(st.characters(codec="utf-8", exclude_characters="\t\r\n"), max_size=8)))
def test_tsv_is_no_exception(rows: list[RawRow]) -> None:
    """Where no text holds a tab or a line end, tsv gives the same too, quotes and all."""
    check_kinds(rows, ["jsonl", "tsv"])


LINES = st.text(st.characters(codec="utf-8", exclude_characters="\0\r\n\ufeff"), max_size=6)


@relaxed
@given(
    lines=st.lists(LINES, min_size=1, max_size=8),
    end=st.sampled_from(["\n", "\r\n", "\r"]),
    mark=st.sampled_from(["", "\ufeff"]),
    ended=st.booleans(),
    ending=st.sampled_from([".txt", ".text", ".raw", ".TXT"]),
)
def test_lines_of_plain_text_are_the_rows_of_a_table(
    lines: list[str], end: str, mark: str, ended: bool, ending: str
) -> None:
    """Any line end and a mark: non-blank lines, called by their numbers, with the hash of a table of the same."""
    whole = mark + end.join(lines) + (end if ended else "")
    rows = [{"id": number, "text": line} for number, line in enumerate(lines, start=1) if line.strip()]
    with tempfile.TemporaryDirectory() as folder:
        plain, packed = Path(folder) / f"a{ending}", Path(folder) / f"b{ending}.gz"
        plain.write_bytes(whole.encode())
        packed.write_bytes(gzip.compress(whole.encode()))
        if not rows:
            check_refused(plain, None, "there is no text in it.")
            return
        found = load_texts(plain)
        assert content(found) == content(load_texts(packed))
        assert content(found) == content(load_texts(write_jsonl(Path(folder) / "c.jsonl", rows)))
    n_lines = len(lines) - (lines[-1] == "" and not ended)
    assert found.n_blank == n_lines - len(rows)


STORY = " one \n two\n\n \t\n\nthree\u2028four\n\n"


@pytest.mark.parametrize(
    ("unit", "ids", "texts", "n_blank"),
    [
        ("line", ("1", "2", "6"), ("one", "two", "three\u2028four"), 4),
        ("paragraph", ("1", "6"), ("one \n two", "three\u2028four"), 0),
        ("file", ("1",), ("one \n two\n\n \t\n\nthree\u2028four",), 0),
    ],
)
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_units_by_hand(
    tmp_path: Path, unit: TextUnit, ids: tuple[str, ...], texts: tuple[str, ...], n_blank: int, end: str
) -> None:
    """White space at the ends goes, all else stays; ids are the lines on which texts begin; U+2028 ends none."""
    path = tmp_path / "story.txt"
    path.write_bytes(STORY.replace("\n", end).encode())
    assert load_texts(path, unit=unit) == Texts(ids, texts, (), n_blank)


def test_a_file_that_begins_with_blank_lines(tmp_path: Path) -> None:
    """Its texts begin where they begin, whatever the unit."""
    path = tmp_path / "a.raw"
    path.write_text("\n\n a\nb \n\nc", encoding="utf-8")
    assert load_texts(path).ids == ("3", "4", "6")
    assert load_texts(path, unit="paragraph").ids == ("3", "6")
    assert load_texts(path, unit="file") == Texts(("3",), ("a\nb \n\nc",))


@relaxed
@given(
    blocks=st.lists(
        st.lists(LINES.filter(lambda line: bool(line.strip())), min_size=1, max_size=3), min_size=1, max_size=4
    ),
    gaps=st.lists(st.sampled_from(["\n", "\n \n", "\n\n\n"]), min_size=4, max_size=4),
)
def test_paragraphs_are_what_blank_lines_part(blocks: list[list[str]], gaps: list[str]) -> None:
    """However many and however blank: each block is a text, and begins on the line of its first one."""
    written = "".join("\n".join(block) + "\n" + gap for block, gap in zip(blocks, gaps, strict=False))
    firsts, line = [], 1
    for block, gap in zip(blocks, gaps, strict=False):
        firsts.append(str(line))
        line += len(block) + gap.count("\n")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.txt"
        path.write_bytes(written.encode())
        found = load_texts(path, unit="paragraph")
    assert found.ids == tuple(firsts)
    assert found.texts == tuple("\n".join(block).strip() for block in blocks)


def test_the_hash_by_hand(tmp_path: Path) -> None:
    """sha256 over length and bytes of id, text and sub-set of each text."""
    rows = [{"id": "a", "text": " é ", "subset": "s"}, {"id": "b", "text": "x y", "subset": "t"}]
    parts = ["a", "é", "s", "b", "x y", "t"]
    encoded = b"".join(len(part.encode()).to_bytes(8, "little") + part.encode() for part in parts)
    assert load_texts(write_jsonl(tmp_path / "a.jsonl", rows)).data_hash == hashlib.sha256(encoded).hexdigest()


def test_every_change_changes_the_hash() -> None:
    """Ids, texts, sub-sets, order, and where one part ends; blank lines that move no id don't."""
    base = Texts(("1", "2"), ("ab", "cd"), ("s", "t"))
    others = [
        Texts(("1", "3"), ("ab", "cd"), ("s", "t")),
        Texts(("1", "2"), ("ab", "cD"), ("s", "t")),
        Texts(("1", "2"), ("ab", "cd"), ("s", "s")),
        Texts(("1", "2"), ("ab", "cd")),
        Texts(("2", "1"), ("cd", "ab"), ("t", "s")),
        Texts(("1a", "2"), ("b", "cd"), ("s", "t")),
        Texts(("1",), ("ab",), ("s",)),
    ]
    assert len({each.data_hash for each in (base, *others)}) == len(others) + 1
    assert Texts(base.ids, base.texts, base.subsets, n_blank=3).data_hash == base.data_hash


def test_columns_may_have_other_names(tmp_path: Path) -> None:
    """Mapped ones are read in place of the usual ones, and others are left alone."""
    usual = [{"id": 7, "text": "a", "subset": 2012}]
    other = [{"nr": "7", "sentence": "a", "genre": "2012", "id": None, "text": 5, "subset": None}]
    columns = TextColumns(text="sentence", id="nr", subset="genre")
    one = load_texts(write_jsonl(tmp_path / "one.jsonl", usual))
    two = load_texts(write_jsonl(tmp_path / "two.jsonl", other), columns)
    assert (one.ids, one.subsets, len(one)) == (("7",), ("2012",), 1)
    assert content(one) == content(two)


def check_refused(path: Path, line: int | None, words: str, **options: Any) -> None:
    """Refused with file, line and exactly these words on the first line, in at most three."""
    with pytest.raises(DataError) as caught:
        load_texts(path, **options)
    first, *rest = str(caught.value).splitlines()
    assert first == f"{path}{'' if line is None else f', line {line}'}: {words}"
    assert len(rest) <= 2


GOOD: RawRow = {"id": "p", "text": "a", "subset": "s"}
BAD: dict[str, tuple[list[RawRow], int, str]] = {
    "no text": ([GOOD, {"id": "q", "subset": "s"}], 2, "there is no column 'text'. Columns: 'id', 'subset'."),
    "nearly": (
        [{"texts": "a"}],
        1,
        "there is no column 'text'. Columns: 'texts'. Did you mean 'texts'?",
    ),
    "null": ([{**GOOD, "text": None}], 1, "'text' must be text, not None."),
    "number": ([{**GOOD, "text": 5}], 1, "'text' must be text, not 5."),
    "empty": ([GOOD, {**GOOD, "id": "q", "text": ""}], 2, "'text' is blank."),
    "blank": ([{**GOOD, "text": " \u3000\n"}], 1, "'text' is blank."),
    "half a character": ([{**GOOD, "text": "x\ud800"}], 1, "'text' holds half of a character: 'x\\ud800'."),
    "id twice": ([GOOD, {**GOOD, "id": "q"}, GOOD], 3, "the id 'p' stands already in line 1."),
    "id twice, as number": (
        [{"id": 1, "text": "a"}, {"id": "1", "text": "b"}],
        2,
        "the id '1' stands already in line 1.",
    ),
    "id empty": ([{**GOOD, "id": ""}], 1, "'id' must be an id (text or a whole number), not ''."),
    "id missing later": ([GOOD, {"text": "b", "subset": "s"}], 2, "some texts have an 'id' and this one differs."),
    "id missing first": ([{"text": "b", "subset": "s"}, GOOD], 2, "some texts have an 'id' and this one differs."),
    "sub-set missing": ([GOOD, {"id": "q", "text": "b"}], 2, "some texts have a 'subset' and this one differs."),
    "sub-set null": ([{**GOOD, "subset": None}], 1, "'subset' must be an id (text or a whole number), not None."),
    "sub-set all": ([{**GOOD, "subset": "all"}], 1, "a sub-set may not be called 'all', which names a pooled result."),
    "sub-set mean": (
        [{**GOOD, "subset": "mean"}],
        1,
        "a sub-set may not be called 'mean', which names a pooled result.",
    ),
}


@pytest.mark.parametrize("case", list(BAD))
def test_faults_of_rows(tmp_path: Path, case: str) -> None:
    """Each told with file and line, in jsonl."""
    rows, line, words = BAD[case]
    check_refused(write_jsonl(tmp_path / "a.jsonl", rows), line, words)


@pytest.mark.parametrize("kind", ["csv", "tsv", "parquet"])
def test_faults_in_other_kinds(tmp_path: Path, kind: str) -> None:
    """The second row is wrong: line 3 where there is a header, row 2 in parquet."""
    path = tmp_path / f"a.{kind}"
    path.write_bytes(KINDS[kind]([GOOD, {**GOOD, "id": "q", "text": " "}]))
    check_refused(path, 2 if kind == "parquet" else 3, "'text' is blank.")
    path.write_bytes(KINDS[kind]([{"body": "a"}]))
    check_refused(path, 1, "there is no column 'text'. Columns: 'body'.")


PLAIN_BAD: dict[str, tuple[str, bytes, int | None, str]] = {
    "empty": ("a.txt", b"", None, "there is no text in it."),
    "blank": ("a.txt", b"\n \n\xe3\x80\x80\r\n", None, "there is no text in it."),
    "a mark and no more": ("a.raw", b"\xef\xbb\xbf", None, "there is no text in it."),
    "gz of nothing": ("a.txt.gz", gzip.compress(b""), None, "there is no text in it."),
    "latin-1": ("a.txt", b"a\nb\n\xe9\n", 3, "not UTF-8 text (byte 0xe9: invalid continuation byte)."),
    "latin-1 in gz": ("a.raw.gz", gzip.compress(b"a\n\xff\n"), 2, "not UTF-8 text (byte 0xff: invalid start byte)."),
    "utf-16": ("a.txt", "ab\n".encode("utf-16"), 1, "not UTF-8 text (byte 0xff: invalid start byte)."),
    "utf-16 without a mark": ("a.txt", "ab\n".encode("utf-16-le"), 1, "holds a NUL character, so it is no text."),
    "half a character": ("a.txt", b"a\n\xed\xa0\x80", 2, "not UTF-8 text (byte 0xed: invalid continuation byte)."),
    "NUL": ("a.text", b"a\nb\0c\n", 2, "holds a NUL character, so it is no text."),
    "gz that is none": ("a.txt.gz", b"a\n", None, "not a whole gzip file (Not a gzipped file (b'a\\n'))."),
    "another kind": (
        "a.md",
        b"a\n",
        None,
        "unknown kind of file. Use .txt, .text, .raw, .jsonl, .csv, .tsv or .parquet, each also with .gz.",
    ),
    "a json file": (
        "a.json",
        b'[{"text": "a"}]',
        None,
        "unknown kind of file. Use .txt, .text, .raw, .jsonl, .csv, .tsv or .parquet, each also with .gz.",
    ),
}


@pytest.mark.parametrize("unit", ["line", "paragraph", "file"])
@pytest.mark.parametrize("case", list(PLAIN_BAD))
def test_faults_of_plain_text(tmp_path: Path, case: str, unit: TextUnit) -> None:
    """Each told with the file, and the line where there is one, whatever the unit."""
    name, data, line, words = PLAIN_BAD[case]
    path = tmp_path / name
    path.write_bytes(data)
    check_refused(path, line, words, unit=unit)


def test_paths_that_are_no_files(tmp_path: Path) -> None:
    """Absent, a folder, a pipe, a name that no file can have: of both sorts."""
    for ending in (".txt", ".jsonl", ""):
        check_refused(tmp_path / f"absent{ending}", None, "no such file.")
        (tmp_path / f"folder{ending}").mkdir()
        check_refused(tmp_path / f"folder{ending}", None, "is a folder; a file is needed here.")
        check_refused(tmp_path / f"{'a' * 300}{ending}", None, "File name too long.")
    os.mkfifo(tmp_path / "pipe.txt")
    check_refused(tmp_path / "pipe.txt", None, "is not a regular file. Write its content to one first.")


def test_texts_without_end_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At one character beyond the limit and not before, for lines as for blocks, which count the ends within."""
    monkeypatch.setattr(files, "MAX_FIELD", 10)
    path = tmp_path / "a.txt"
    for end in ("\n", "\r\n", ""):
        path.write_bytes(b"a\n" + b"x" * 10 + end.encode())
        assert load_texts(path) == Texts(("1", "2"), ("a", "x" * 10))  # a line end cut in two would give a blank line
        path.write_bytes(b"a\n" + b"x" * 11 + end.encode())
        check_refused(path, 2, "a line of more than 10 characters. Cut it up.")
    path.write_bytes(b"b\n\nabcd\nabcd\n")
    assert load_texts(path, unit="paragraph").texts == ("b", "abcd\nabcd")
    path.write_bytes(b"b\n\nabcd\nabcdef\n")
    words = "a text of more than 10 characters. Cut it up, or let each line be a text (unit: line)."
    check_refused(path, 3, words, unit="paragraph")
    check_refused(path, 1, words, unit="file")


def test_options_of_the_other_sort_are_refused(tmp_path: Path) -> None:
    """Columns of plain text and the unit of a table would be passed over in silence."""
    (tmp_path / "a.txt").write_text("a\n", encoding="utf-8")
    write_jsonl(tmp_path / "a.jsonl", [{"text": "a"}])
    with pytest.raises(ConfigError) as caught:
        load_texts(tmp_path / "a.txt", TextColumns(text="body"))
    assert str(caught.value) == "a.txt is plain text, which has no columns. Leave 'columns' out."
    assert caught.value.key == ("columns",)
    with pytest.raises(ConfigError) as caught:
        load_texts(tmp_path / "a.jsonl", unit="paragraph")
    assert str(caught.value) == "unit: paragraph is for plain text (.txt, .text, .raw); in a.jsonl each row is a text."
    assert caught.value.key == ("unit",)


@pytest.mark.parametrize("option", ["id", "subset"])
def test_an_optional_column_that_was_named_must_be_there(tmp_path: Path, option: str) -> None:
    """Whoever names it counts on it; without a name of its own it may be absent."""
    path = tmp_path / "a.csv"
    path.write_bytes(KINDS["csv"]([{"text": "a", "ID": "x", "Subset": "s"}]))
    assert load_texts(path) == Texts(("1",), ("a",))
    with pytest.raises(DataError, match=f"line 1: there is no column 'other'.*\n.*columns.{option}=…"):
        load_texts(path, TextColumns(**{option: "other"}))
    assert load_texts(path, TextColumns(id="ID", subset="Subset")) == Texts(("x",), ("a",), ("s",))
