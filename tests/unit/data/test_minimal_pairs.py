"""Minimal pairs: the same from every kind and order of files, and what is refused."""

from __future__ import annotations

import gzip
import hashlib
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from embeval.core.signature import RESERVED_SUBSETS
from embeval.data.minimal_pairs import MinimalPairColumns, MinimalPairs, load_minimal_pairs
from embeval.errors import DataError
from tests.support.data import write_jsonl
from tests.support.row_kinds import KINDS

RawRow = dict[str, Any]

BLIMP: RawRow = {
    "sentence_good": "Katherine can't help herself.",
    "sentence_bad": "Katherine can't help himself.",
    "one_prefix_prefix": "Katherine can't help",
    "field": "morphology",
    "linguistics_term": "anaphor_agreement",
    "UID": "anaphor_gender_agreement",
    "lexically_identical": False,
    "pairID": "0",
}
"""The first row of one of its files, some columns left out."""


def pair(**changes: Any) -> RawRow:
    """A row with changes."""
    return {**BLIMP, **changes}


def without(*names: str, **changes: Any) -> RawRow:
    """A row that lacks columns."""
    return {name: value for name, value in pair(**changes).items() if name not in names}


def test_a_row_of_blimp(tmp_path: Path) -> None:
    """What each column becomes."""
    assert load_minimal_pairs(write_jsonl(tmp_path / "x.jsonl", [BLIMP])) == MinimalPairs(
        ids=("anaphor_gender_agreement/0",),
        good=("Katherine can't help herself.",),
        bad=("Katherine can't help himself.",),
        paradigms=("anaphor_gender_agreement",),
        fields=("morphology",),
        terms=("anaphor_agreement",),
    )


@pytest.mark.parametrize("name", ["my.paradigm.jsonl", "my.paradigm.jsonl.gz", "my.paradigm.JSONL"])
def test_sentences_alone_are_enough(tmp_path: Path, name: str) -> None:
    """The file's name without its ending is the paradigm, and the row's number the id; ends are without white space."""
    data = b'{"sentence_good": " a ", "sentence_bad": "b"}\n\n{"sentence_good": "c", "sentence_bad": "d\\n"}\n'
    (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    expected = MinimalPairs(("my.paradigm/1", "my.paradigm/2"), ("a", "c"), ("b", "d"), ("my.paradigm",) * 2)
    assert load_minimal_pairs(tmp_path / name) == expected
    assert load_minimal_pairs(tmp_path) == expected


relaxed = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=50)
WORDS = st.text(st.characters(codec="utf-8", exclude_characters="\t\r\n/"), min_size=1, max_size=6)
LABELS = WORDS.filter(lambda word: word not in RESERVED_SUBSETS)
SENTENCES = WORDS.map(str.strip).filter(bool)
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "sentence_good": SENTENCES,
            "sentence_bad": SENTENCES.map(lambda text: text + "x"),
            "UID": LABELS,
            "field": LABELS,
            "linguistics_term": LABELS,
            "pairID": WORDS | st.integers(0, 200).map(str),
        }
    ).filter(lambda row: row["sentence_good"] != row["sentence_bad"]),
    min_size=1,
    max_size=8,
    unique_by=lambda row: (row["UID"], row["pairID"]),
)


@relaxed
@given(rows=ROWS, data=st.data())
def test_kinds_names_and_order_of_files_do_not_matter(rows: list[RawRow], data: st.DataObject) -> None:
    """One file of each kind, and the rows shuffled and dealt to files of any kinds: equal payloads and one hash."""
    shuffled = data.draw(st.permutations(rows))
    homes = data.draw(st.lists(st.integers(0, 3), min_size=len(rows), max_size=len(rows)))
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for kind, write in KINDS.items():
            path = Path(folder) / f"whole.{kind}.gz"
            path.write_bytes(gzip.compress(write(rows)))
            found.append(load_minimal_pairs(path))
        parts = Path(folder) / "parts"
        parts.mkdir()
        for home, (kind, write) in enumerate(KINDS.items()):
            if own := [row for row, its_home in zip(shuffled, homes, strict=True) if its_home == home]:
                (parts / f"{data.draw(st.sampled_from('abcd'))}.{kind}").write_bytes(write(own))
        found.append(load_minimal_pairs(parts))
    first = found[0]
    assert all(each == first for each in found)
    assert {each.data_hash for each in found} == {first.data_hash}
    by_id = {f"{row['UID']}/{row['pairID']}": row for row in rows}
    assert sorted(first.ids) == sorted(by_id)
    assert first.good == tuple(by_id[name]["sentence_good"] for name in first.ids)
    assert first.bad == tuple(by_id[name]["sentence_bad"] for name in first.ids)
    assert first.paradigms == tuple(by_id[name]["UID"] for name in first.ids)
    assert first.fields == tuple(by_id[name]["field"] for name in first.ids)
    assert first.terms == tuple(by_id[name]["linguistics_term"] for name in first.ids)


def test_pairs_are_sorted_as_people_count(tmp_path: Path) -> None:
    """By paradigm, and 2 before 10."""
    rows = [pair(UID=paradigm, pairID=number) for paradigm in "ba" for number in (10, 2, 0)]
    assert load_minimal_pairs(write_jsonl(tmp_path / "x.jsonl", rows)).ids == (
        "a/0",
        "a/2",
        "a/10",
        "b/0",
        "b/2",
        "b/10",
    )


def test_the_hash_by_hand(tmp_path: Path) -> None:
    """sha256 over length and bytes of id, sentences, paradigm, field and term of each pair; absent ones are empty."""
    rows = [without("field", sentence_good="é", sentence_bad="e", UID="u", pairID=n) for n in (1, 0)]
    parts = [part for n in "01" for part in (f"u/{n}", "é", "e", "u", "", "anaphor_agreement")]
    encoded = b"".join(len(part.encode()).to_bytes(8, "little") + part.encode() for part in parts)
    found = load_minimal_pairs(write_jsonl(tmp_path / "x.jsonl", rows))
    assert found.data_hash == hashlib.sha256(encoded).hexdigest()
    assert (found.fields, len(found)) == ((), 2)


def test_every_change_changes_the_hash(tmp_path: Path) -> None:
    """Of a sentence, of which of the two is good, of a label, of an id; columns that aren't read don't."""
    rows = {
        "same": pair(one_prefix_prefix="other", lexically_identical=True),
        "good": pair(sentence_good="Katherine can help herself."),
        "swapped": pair(sentence_good=BLIMP["sentence_bad"], sentence_bad=BLIMP["sentence_good"]),
        "field": pair(field="syntax"),
        "no field": without("field"),
        "term": pair(linguistics_term="binding"),
        "paradigm": pair(UID="other"),
        "id": pair(pairID="1"),
    }
    hashes = {
        name: load_minimal_pairs(write_jsonl(tmp_path / f"{name}.jsonl", [row])).data_hash for name, row in rows.items()
    }
    assert hashes["same"] == load_minimal_pairs(write_jsonl(tmp_path / "x.jsonl", [BLIMP])).data_hash
    assert len(set(hashes.values())) == len(rows)


def test_columns_may_have_other_names(tmp_path: Path) -> None:
    """Mapped ones are read in place of the usual ones."""
    names = {"sentence_good": "ok", "sentence_bad": "not_ok", "UID": "test", "field": "area", "pairID": "nr"}
    row = {**{names.get(name, name): value for name, value in BLIMP.items()}, "pairID": None, "field": 7}
    columns = MinimalPairColumns(sentence_good="ok", sentence_bad="not_ok", paradigm="test", field="area", id="nr")
    found = load_minimal_pairs(write_jsonl(tmp_path / "a.jsonl", [row]), columns)
    assert found == load_minimal_pairs(write_jsonl(tmp_path / "b.jsonl", [BLIMP]))


def test_files_of_a_folder(tmp_path: Path) -> None:
    """Those of a known kind; others, hidden ones and folders are passed over, and a file without UID gives its name."""
    write_jsonl(tmp_path / "one.jsonl", [BLIMP])
    write_jsonl(tmp_path / "two.jsonl", [without("UID", "pairID")])
    write_jsonl(tmp_path / "._one.jsonl", [{"rubbish": 1}])
    write_jsonl(tmp_path / "below.jsonl" / "three.jsonl", [pair(UID="below")])
    (tmp_path / "README.md").write_text("no pairs", encoding="utf-8")
    assert load_minimal_pairs(tmp_path).ids == ("anaphor_gender_agreement/0", "two/1")


def test_sentences_that_are_the_same_are_kept_and_named(tmp_path: Path) -> None:
    """BLiMP itself has them, such as passive_1/324, and published figures count them."""
    same = "Douglas's senator was left by Susan."
    rows = [pair(), pair(UID="passive_1", pairID=324, sentence_good=same, sentence_bad=f" {same}")]
    found = load_minimal_pairs(write_jsonl(tmp_path / "x.jsonl", rows))
    assert found.identical == ("passive_1/324",)
    assert len(found) == 2


def check_refused(path: Path, place: str, words: str, **columns: str) -> None:
    """Refused with exactly this place and these words on the first line, in at most three."""
    with pytest.raises(DataError) as caught:
        load_minimal_pairs(path, MinimalPairColumns(**columns))
    first, *rest = str(caught.value).splitlines()
    assert first == f"{place}: {words}"
    assert len(rest) <= 2


OTHER = pair(pairID="1")
BAD: dict[str, tuple[list[RawRow], int, str]] = {
    "good blank": ([BLIMP, {**OTHER, "sentence_good": " \t"}], 2, "'sentence_good' is blank."),
    "bad empty": ([pair(sentence_bad="")], 1, "'sentence_bad' is blank."),
    "bad null": ([pair(sentence_bad=None)], 1, "'sentence_bad' must be text, not None."),
    "half a character": (
        [pair(sentence_bad="x\udc00")],
        1,
        "'sentence_bad' holds half of a character: 'x\\udc00'.",
    ),
    "no good": (
        [{"sentence_bad": "a", "UID": "u"}],
        1,
        "there is no column 'sentence_good'. Columns: 'sentence_bad', 'UID'. Did you mean 'sentence_bad'?",
    ),
    "no bad": (
        [{"sentence_good": "a", "UID": "u"}],
        1,
        "there is no column 'sentence_bad'. Columns: 'sentence_good', 'UID'. Did you mean 'sentence_good'?",
    ),
    "id twice": (
        [BLIMP, OTHER, pair(pairID=0)],
        3,
        "the pair 'anaphor_gender_agreement/0' stands already in line 1.",
    ),
    "id empty": ([pair(pairID="")], 1, "'pairID' must be an id (text or a whole number), not ''."),
    "id missing": ([BLIMP, without("pairID")], 2, "some pairs have a 'pairID' and this one differs."),
    "paradigm missing": ([BLIMP, without("UID")], 2, "some pairs have a 'UID' and this one differs."),
    "field missing": ([BLIMP, without("field", pairID=1)], 2, "some pairs have a 'field' and this one differs."),
    "term missing first": (
        [without("linguistics_term"), OTHER],
        2,
        "some pairs have a 'linguistics_term' and this one differs.",
    ),
    "field null": ([pair(field=None)], 1, "'field' must be an id (text or a whole number), not None."),
    "paradigm all": ([pair(UID="all")], 1, "a paradigm may not be called 'all', which names a pooled result."),
    "field wmean": ([pair(field="wmean")], 1, "a field may not be called 'wmean', which names a pooled result."),
    "term mean": ([pair(linguistics_term="mean")], 1, "a term may not be called 'mean', which names a pooled result."),
    "all the same": (
        [pair(sentence_bad=BLIMP["sentence_good"], pairID=number) for number in range(2)],
        1,
        "both sentences are the same, as in all pairs of this file.",
    ),
}


@pytest.mark.parametrize("case", list(BAD))
def test_faults_of_rows(tmp_path: Path, case: str) -> None:
    """Each told with file and line, in jsonl."""
    rows, line, words = BAD[case]
    path = write_jsonl(tmp_path / "x.jsonl", rows)
    check_refused(path, f"{path}, line {line}", words)
    check_refused(tmp_path, f"{path}, line {line}", words)


@pytest.mark.parametrize("kind", ["csv", "tsv", "parquet"])
def test_faults_in_other_kinds(tmp_path: Path, kind: str) -> None:
    """The second row is wrong: line 3 where there is a header, row 2 in parquet."""
    path = tmp_path / f"x.{kind}"
    path.write_bytes(KINDS[kind]([BLIMP, {**OTHER, "sentence_bad": ""}]))
    check_refused(path, f"{path}, line {2 if kind == 'parquet' else 3}", "'sentence_bad' is blank.")


def test_one_column_for_both_sentences(tmp_path: Path) -> None:
    """Every pair is the same then, and the message says which columns were compared."""
    path = write_jsonl(tmp_path / "x.jsonl", [BLIMP, OTHER])
    with pytest.raises(DataError, match="Are 'sentence_good' and 'sentence_good' the right columns"):
        load_minimal_pairs(path, MinimalPairColumns(sentence_bad="sentence_good"))


def test_a_column_that_was_named_must_be_there(tmp_path: Path) -> None:
    """An optional one too, if it was given a name of its own."""
    path = write_jsonl(tmp_path / "x.jsonl", [{"sentence_good": "a", "sentence_bad": "b"}])
    for option in ("paradigm", "field", "term", "id"):
        check_refused(
            path,
            f"{path}, line 1",
            "there is no column 'other'. Columns: 'sentence_good', 'sentence_bad'.",
            **{option: "other"},
        )


def test_faults_between_files(tmp_path: Path) -> None:
    """One pair in two files, told with both places; a column that one file lacks; a copy packed beside the original."""
    one = write_jsonl(tmp_path / "one.jsonl", [OTHER, BLIMP])
    two = write_jsonl(tmp_path / "two.jsonl", [BLIMP])
    words = f"the pair 'anaphor_gender_agreement/0' stands already in {one}, line 2."
    check_refused(tmp_path, f"{two}, line 1", words)
    write_jsonl(two, [without("field", UID="two")])
    check_refused(tmp_path, f"{two}, line 1", "some pairs have a 'field' and this one differs.")
    two.unlink()
    copy = tmp_path / "one.jsonl.gz"
    copy.write_bytes(gzip.compress(one.read_bytes()))
    words = f"the pair 'anaphor_gender_agreement/1' stands already in {one}, line 1."
    check_refused(tmp_path, f"{copy}, line 1", words)


def test_a_file_called_by_a_pooled_result(tmp_path: Path) -> None:
    """Its name would be the paradigm's."""
    path = write_jsonl(tmp_path / "all.jsonl", [without("UID")])
    check_refused(path, str(path), "a paradigm may not be called 'all', which names a pooled result.")
    write_jsonl(path, [BLIMP])
    assert load_minimal_pairs(path).paradigms == (BLIMP["UID"],)


def test_paths_without_pairs(tmp_path: Path) -> None:
    """A folder without such files, no file, a file of another kind, a name that no file can have."""
    (tmp_path / "a.md").write_text("x", encoding="utf-8")
    (tmp_path / ".a.jsonl").write_text("x", encoding="utf-8")
    kinds = "Use .jsonl, .csv, .tsv or .parquet, each also with .gz."
    check_refused(tmp_path, str(tmp_path), f"no file of minimal pairs in this folder. {kinds}")
    check_refused(tmp_path / "a.md", str(tmp_path / "a.md"), f"unknown kind of file. {kinds}")
    check_refused(tmp_path / "absent", str(tmp_path / "absent"), "no such file.")
    check_refused(tmp_path / ("a" * 300), str(tmp_path / ("a" * 300)), "can't be read (File name too long).")
