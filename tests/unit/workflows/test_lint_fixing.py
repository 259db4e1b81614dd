"""``--fix``: what it mends, what it leaves alone, and that a second time there is nothing to do."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from embeval.data.beir import load_beir
from embeval.errors import DataError
from embeval.workflows.lint.findings import LintOptions
from embeval.workflows.lint.fixing import Change, fix
from embeval.workflows.lint.run import lint
from tests.support.golden import Golden

QRELS = "qrels/test.tsv"


def contents(folder: Path) -> dict[str, bytes]:
    """Every file."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_equal_rows_and_judgments_are_dropped(tmp_path: Path) -> None:
    """The later ones; a row whose fields stand in another order is equal too. The set then loads as the sound one."""
    sound = load_beir(Golden().write(tmp_path / "sound"))
    golden = Golden()
    golden.corpus.append(dict(reversed(golden.corpus[0].items())))
    golden.queries.append(golden.queries[1])
    golden.qrels += ["q1\td1\t1", "q2\td4\t0"]
    folder = golden.write(tmp_path / "set")
    before = contents(folder)
    with pytest.raises(DataError):
        load_beir(folder)
    assert fix(folder, "test") == [
        Change("corpus.jsonl", 5, "equal row of 'd1' dropped"),
        Change("queries.jsonl", 4, "equal row of 'q2' dropped"),
        Change(QRELS, 6, "second judgment of query 'q1', document 'd1' dropped"),
        Change(QRELS, 7, "second judgment of query 'q2', document 'd4' dropped"),
    ]
    assert load_beir(folder).data_hash == sound.data_hash
    after = contents(folder)
    assert {name: after[f"{name}.orig"] for name in before} == before
    assert fix(folder, "test") == []
    assert contents(folder) == after


def test_rows_that_differ_are_left_to_people(tmp_path: Path) -> None:
    """The same id with another text, the same pair with another grade: neither is known to be right."""
    golden = Golden()
    golden.corpus.append({**golden.corpus[0], "text": "Another text."})
    golden.qrels.append("q1\td1\t2")
    folder = golden.write(tmp_path)
    before = contents(folder)
    assert fix(folder, "test", merge_duplicates=True) == []
    assert contents(folder) == before


def test_marks_and_line_ends(tmp_path: Path) -> None:
    """In all three files; what is in a text stays."""
    golden = Golden()
    golden.corpus[0]["text"] += "\r\nAnd \u2028 more \ufeff."
    folder = golden.write(tmp_path)
    wanted = contents(folder)
    for name, data in wanted.items():
        (folder / name).write_bytes(b"\xef\xbb\xbf" + data.replace(b"\n", b"\r\n"))
    assert [change.done for change in fix(folder, "test", backup=False)] == [
        each for n in (4, 3, 5) for each in ("byte-order mark removed", f"{n} line ends of another system replaced")
    ]
    assert contents(folder) == wanted


def test_a_gzipped_file_stays_gzipped(tmp_path: Path) -> None:
    """With the content mended."""
    folder = Golden().write(tmp_path)
    plain = (folder / "corpus.jsonl").read_bytes()
    (folder / "corpus.jsonl").unlink()
    (folder / "corpus.jsonl.gz").write_bytes(gzip.compress(plain.replace(b"\n", b"\r\n")))
    assert len(fix(folder, "test")) == 1
    assert gzip.decompress((folder / "corpus.jsonl.gz").read_bytes()) == plain


def test_spaces_around_ids_in_all_files(tmp_path: Path) -> None:
    """In the corpus, in queries and their lists, in judgments; also in a judgment alone."""
    golden = Golden()
    golden.corpus[0]["_id"] = " d1"
    golden.queries[0]["_id"] = "q1 "
    golden.queries[1]["exclude"] = [" d1"]
    golden.qrels = [golden.qrels[0], "q1 \t d1\t1", "q2\td2\t2", "q2\td4\t0", "q3\t d3 \t1"]
    folder = golden.write(tmp_path)
    changes = fix(folder, "test")
    assert [(each.file, each.line) for each in changes] == [
        ("corpus.jsonl", 1),
        ("queries.jsonl", 1),
        ("queries.jsonl", 2),
        (QRELS, 2),
        (QRELS, 5),
    ]
    data = load_beir(folder)
    assert data.qrels.judgments == {"q1": {"d1": 1}, "q2": {"d2": 2, "d4": 0}, "q3": {"d3": 1}}
    assert data.excluded == {"q2": frozenset({"d1"})}
    assert fix(folder, "test") == []


def test_spaces_that_tell_ids_apart_stay(tmp_path: Path) -> None:
    """'d1' and ' d1' are two documents, and so they are in the judgments."""
    golden = Golden()
    golden.corpus.append({"_id": " d1", "text": "The one with a space before its id, which is another one."})
    golden.qrels.append("q1\t d1\t0")
    folder = golden.write(tmp_path)
    before = contents(folder)
    assert fix(folder, "test") == []
    assert contents(folder) == before


def test_no_contradiction_is_made(tmp_path: Path) -> None:
    """Stripped, this judgment would contradict another one."""
    golden = Golden()
    golden.qrels.append("q1\td1 \t0")
    folder = golden.write(tmp_path)
    assert fix(folder, "test") == []
    assert "q1\td1 \t0" in (folder / QRELS).read_text(encoding="utf-8")


def test_a_file_that_is_not_understood_is_left_alone(tmp_path: Path) -> None:
    """And so are ids that refer to it, since they might be unique only among the rows that could be read."""
    golden = Golden()
    golden.corpus[0]["_id"] = " d1"
    golden.corpus.append("{broken")
    golden.qrels[1] = "q1\t d1\t1"
    golden.qrels.append("q1\t d1\t1")
    folder = golden.write(tmp_path)
    corpus = (folder / "corpus.jsonl").read_bytes()
    assert [change.done for change in fix(folder, "test")] == ["second judgment of query 'q1', document ' d1' dropped"]
    assert (folder / "corpus.jsonl").read_bytes() == corpus


def test_documents_of_the_same_text_get_the_same_judgments(tmp_path: Path) -> None:
    """Only with the option, only above 0, only where the judged ones agree, and not where a query excludes one."""
    golden = Golden()
    twin = {**golden.corpus[0], "_id": "d5"}
    golden.corpus += [twin, {**twin, "_id": "d6"}]
    golden.queries += [
        {"_id": "q4", "text": "At what time of the night is the backup?"},
        {"_id": "q5", "text": "How often does the nightly backup run?", "exclude": ["d6"]},
        {"_id": "q6", "text": "Is there a backup at noon?"},
    ]
    golden.qrels += ["q4\td1\t1", "q4\td5\t2", "q5\td5\t2", "q6\td5\t0"]
    folder = golden.write(tmp_path)
    assert fix(folder, "test") == []
    changes = fix(folder, "test", merge_duplicates=True)
    assert changes == [
        Change(QRELS, None, "query 'q1': document 'd5' judged 1, as the one with the same text"),
        Change(QRELS, None, "query 'q1': document 'd6' judged 1, as the one with the same text"),
        Change(QRELS, None, "query 'q5': document 'd1' judged 2, as the one with the same text"),
    ]
    judged = load_beir(folder).qrels.judgments
    assert judged["q1"] == {"d1": 1, "d5": 1, "d6": 1}
    assert judged["q4"] == {"d1": 1, "d5": 2}
    assert judged["q5"] == {"d1": 2, "d5": 2}
    assert judged["q6"] == {"d5": 0}
    assert fix(folder, "test", merge_duplicates=True) == []
    left = [each.ids for each in lint(folder, LintOptions()).findings if each.check.code == "same-text-partly-judged"]
    assert left == [("q4", "d1", "d5", "d6")]


def test_backups_are_not_overwritten(tmp_path: Path) -> None:
    """The first one is what the user had."""
    folder = Golden().write(tmp_path)
    (folder / "corpus.jsonl.orig").write_text("mine", encoding="utf-8")
    with (folder / "corpus.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(Golden().corpus[0]) + "\n")
    fix(folder, "test")
    assert (folder / "corpus.jsonl.orig").read_text(encoding="utf-8") == "mine"
    assert len((folder / "corpus.jsonl.orig2").read_text(encoding="utf-8").splitlines()) == 5


def test_half_characters_below_the_top_stay_as_they_are(tmp_path: Path) -> None:
    """They can't be written as UTF-8, but as the escape that they came as."""
    folder = Golden().write(tmp_path / "set")
    (folder / "corpus.jsonl").write_text(r'{"_id":"d1 ","text":"x","more":{"a":"\ud800é"}}' + "\n", encoding="utf-8")
    assert Change("corpus.jsonl", 1, "spaces around an id stripped: 'd1'") in fix(folder, "test")
    row = json.loads((folder / "corpus.jsonl").read_text(encoding="utf-8"))
    assert row == {"_id": "d1", "text": "x", "more": {"a": "\ud800é"}}


def test_a_row_with_half_a_character_in_a_name_is_left_alone(tmp_path: Path) -> None:
    """It is a row that loading refuses, so lint says so and nothing of its file is changed."""
    folder = Golden().write(tmp_path / "set")
    line = r'{"_id":"d1 ","text":"x","\ud800":"a"}' + "\n"
    (folder / "corpus.jsonl").write_text(line, encoding="utf-8")
    fix(folder, "test")
    assert (folder / "corpus.jsonl").read_text(encoding="utf-8") == line
    found = lint(folder, LintOptions()).findings
    assert [(each.line, each.message) for each in found if each.check.code == "broken-row"] == [
        (1, r"the name '\ud800' holds half of a character.")
    ]
