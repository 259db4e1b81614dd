"""Golden sets written and split."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from embeval.data import from_beir
from embeval.data.beir import load_beir
from embeval.data.golden import GoldenSet
from embeval.errors import ConfigError, DataError, UnknownNameError, UsageError
from embeval.workflows import golden_sets
from tests.support.data import write_jsonl

N = 20


def golden(**more: Any) -> GoldenSet:
    """Two documents, two questions, one of them unanswerable."""
    fields: dict[str, Any] = {
        "documents": [{"_id": "d1", "title": "", "text": "x"}, {"_id": "d2", "title": "é", "text": "y\n"}],
        "queries": [{"_id": "q1", "text": "a?"}, {"_id": "q2", "text": "b?", "answerable": False}],
        "qrels": {"test": {"q1": {"d1": 1, "d2": 0}}},
    }
    return GoldenSet(kind="pairs", source="x.csv", **{**fields, **more})


def stored(folder: Path, made: GoldenSet, **more: Any) -> GoldenSet:
    """Writes it."""
    return golden_sets.store(made, folder, **{"sources": [], "limit": None, "overwrite": False, **more})


def test_files_of_a_golden_set(tmp_path: Path) -> None:
    """Byte by byte, and readable as what it was made from."""
    stored(tmp_path / "set", golden())
    files = {path.relative_to(tmp_path / "set").as_posix(): path for path in (tmp_path / "set").rglob("*.*")}
    assert sorted(files) == ["corpus.jsonl", "datasheet.json", "qrels/test.tsv", "queries.jsonl"]
    assert files["corpus.jsonl"].read_bytes() == (
        '{"_id": "d1", "title": "", "text": "x"}\n{"_id": "d2", "title": "é", "text": "y\\n"}\n'.encode()
    )
    assert files["qrels/test.tsv"].read_bytes() == b"query-id\tcorpus-id\tscore\nq1\td1\t1\nq1\td2\t0\n"
    sheet = json.loads(files["datasheet.json"].read_bytes())
    assert sheet["counts"] == {"documents": 2, "queries": 2, "unanswerable": 1, "judgments": 2, "relevant": 1}
    data = load_beir(tmp_path / "set")
    assert (data.unanswerable, data.doc_texts) == (frozenset({"q2"}), ("x", "é y"))


def test_a_folder_is_copied_with_its_splits(tmp_path: Path) -> None:
    """Rows keep their fields, and a split its list of unanswerable questions; one of them can be asked for."""
    made = golden(qrels={"test": {"q1": {"d1": 1}}, "dev": {"q1": {"d2": 2}}}, unanswerable={"test": ["q2"], "dev": []})
    made.documents[0]["lang"] = "en"
    stored(tmp_path / "one", made)
    copy = stored(tmp_path / "two", from_beir.read(tmp_path / "one", split=None))
    for path in (tmp_path / "one").rglob("*.*"):
        if path.name != "datasheet.json":
            assert (tmp_path / "two" / path.relative_to(tmp_path / "one")).read_bytes() == path.read_bytes()
    assert [each.name for each in copy.inputs] == ["corpus.jsonl", "queries.jsonl", "qrels/dev.tsv", "qrels/test.tsv"]
    assert set(from_beir.read(tmp_path / "one", split="dev").qrels) == {"dev"}


def test_limit(tmp_path: Path) -> None:
    """The first questions; all documents."""
    made = stored(tmp_path / "set", golden(), limit=1)
    assert made.counts == {"documents": 2, "queries": 1, "unanswerable": 0, "judgments": 2, "relevant": 1}
    with pytest.raises(UsageError, match="there are none: give --questions"):
        stored(tmp_path / "other", golden(queries=None, qrels={}), limit=1)


def test_what_cannot_be_evaluated_is_not_written(tmp_path: Path) -> None:
    """It is read back first, and the message names the folder that was asked for."""
    for qrels, said in [
        ({"test": {}}, "there is no judgment for the split 'test'"),
        (
            {"test": {"q1": {"d9": 1}}},
            rf"{tmp_path}/set/qrels/test\.tsv, line 2: 1 relevant document not in the corpus",
        ),
        ({"test": {"q\t1": {"d1": 1}}}, "holds a tab or a line end"),
    ]:
        with pytest.raises(DataError, match=said):
            stored(tmp_path / "set", golden(qrels=qrels))
        assert list(tmp_path.iterdir()) == []


def test_what_is_replaced(tmp_path: Path) -> None:
    """A golden set only, and never with what is read, nor with a file that is no part of one."""
    folder = tmp_path / "set"
    stored(folder, golden())
    stored(folder, golden(notes=["new"]), overwrite=True)
    assert json.loads((folder / "datasheet.json").read_bytes())["notes"] == ["new"]
    for source in (folder, folder / "corpus.jsonl"):
        with pytest.raises(ConfigError, match="is read, so"):
            stored(folder, golden(), overwrite=True, sources=[source])
    (folder / "mine.txt").write_text("x", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"also holds 'mine\.txt', which is no part of a golden set"):
        stored(folder, golden(), overwrite=True)
    assert (folder / "mine.txt").exists()


def test_tokens_of_a_model(tiny_model: Path) -> None:
    """The spans of its tokenizer's tokens, as the library gives them."""
    from transformers import AutoTokenizer

    units, name = golden_sets.token_units(str(tiny_model))
    text = "the red fox, quickly"
    expected = AutoTokenizer.from_pretrained(tiny_model)(text, return_offsets_mapping=True, add_special_tokens=False)
    assert list(units(text)) == [tuple(span) for span in expected["offset_mapping"]]
    assert name.startswith("tiny@")
    with pytest.raises(ConfigError, match="has no tokenizer"):
        golden_sets.token_units("hashing")


# --- splits -------------------------------------------------------------------------------------------------------


def write_set(folder: Path, order: list[int] | None = None) -> Path:
    """Twenty questions of two kinds, of which each two neighbours are nearly the same, and four unanswerable ones."""
    numbers = order or list(range(N))
    write_jsonl(folder / "corpus.jsonl", [{"_id": "d", "text": "x"}])
    rows: list[dict[str, Any]] = [
        {"_id": f"q{n}", "text": f"how do i mend part{n // 2}{'?' if n % 2 else ''}", "kind": "ab"[n // 10]}
        for n in numbers
    ]
    rows += [{"_id": f"u{n}", "text": f"unknown thing number{n}", "answerable": False} for n in range(4)]
    write_jsonl(folder / "queries.jsonl", rows if order is None else rows[::-1])
    lines = ["query-id\tcorpus-id\tscore", *(f"q{n}\td\t1" for n in numbers)]
    (folder / "qrels").mkdir(exist_ok=True)
    (folder / "qrels" / "test.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


def texts(folder: Path) -> dict[str, str]:
    """Name -> text of the files of its splits."""
    return {path.name: path.read_text(encoding="utf-8") for path in (folder / "qrels").iterdir()}


HALVES = {"dev": 0.5, "final": 0.5}


def test_a_split_in_parts(tmp_path: Path) -> None:
    """Ten queries and two unanswerable ones each, five of each kind but for a pair; twins stay together."""
    folder = write_set(tmp_path)
    report = golden_sets.split(folder, HALVES, by=["kind"])
    assert [(part.name, part.queries, part.unanswerable) for part in report.parts] == [("dev", 10, 2), ("final", 10, 2)]
    assert (report.n_groups, report.largest_group, report.kept_as) == (14, 2, None)
    loaded = {name: load_beir(folder, name) for name in HALVES}
    judged = {name: set(data.qrels.judgments) for name, data in loaded.items()}
    assert judged["dev"] | judged["final"] == {f"q{n}" for n in range(N)}
    assert not judged["dev"] & judged["final"]
    assert all((f"q{n}" in judged["dev"]) == (f"q{n + 1}" in judged["dev"]) for n in range(0, N, 2))
    assert all(4 <= sum(int(query[1:]) < 10 for query in each) <= 6 for each in judged.values())
    unanswerable = {name: data.unanswerable for name, data in loaded.items()}
    assert unanswerable["dev"] | unanswerable["final"] == {f"u{n}" for n in range(4)}
    assert [len(each) for each in unanswerable.values()] == [2, 2]
    assert load_beir(folder, "test").unanswerable == {f"u{n}" for n in range(4)}


def test_parts_do_not_hang_on_the_order_of_lines(tmp_path: Path) -> None:
    """Equal bytes from shuffled files; other bytes with another seed."""
    order = np.random.default_rng(5).permutation(N).tolist()
    found = []
    for name, given, seed in (("a", None, 0), ("b", order, 0), ("c", None, 1)):
        folder = write_set(tmp_path / name, given)
        golden_sets.split(folder, {"dev": 0.25, "final": 0.75}, seed=seed)
        found.append({each: text for each, text in texts(folder).items() if each.startswith(("dev", "final"))})
    assert found[0] == found[1]
    assert found[0] != found[2]
    assert sorted(found[0]) == ["dev.tsv", "dev.unanswerable.txt", "final.tsv", "final.unanswerable.txt"]


def test_a_split_that_is_replaced_by_its_part_is_kept(tmp_path: Path) -> None:
    """Not without --overwrite; then whole, under another name, from which it can be split again."""
    folder = write_set(tmp_path)
    whole = gzip.compress((folder / "qrels" / "test.tsv").read_bytes())
    (folder / "qrels" / "test.tsv").unlink()
    (folder / "qrels" / "test.tsv.gz").write_bytes(whole)
    shares = {"dev": 0.5, "test": 0.5}
    with pytest.raises(ConfigError, match="'test' is then kept as 'test-whole'"):
        golden_sets.split(folder, shares)
    report = golden_sets.split(folder, shares, overwrite=True)
    assert report.kept_as == "test-whole"
    assert (folder / "qrels" / "test-whole.tsv.gz").read_bytes() == whole
    assert not (folder / "qrels" / "test.tsv.gz").exists()
    assert len(load_beir(folder, "test").qrels.judgments) == 10
    with pytest.raises(ConfigError, match=r"'test' was split before and is no longer whole\.\nSay --from test-whole"):
        golden_sets.split(folder, shares, overwrite=True)
    before = texts_of_parts(folder)
    golden_sets.split(folder, shares, source="test-whole", overwrite=True)
    assert texts_of_parts(folder) == before
    golden_sets.split(folder, shares, source="test-whole", overwrite=True, seed=3)
    assert texts_of_parts(folder) != before


def texts_of_parts(folder: Path) -> dict[str, str]:
    """The files of dev and test."""
    return {
        path.name: path.read_text(encoding="utf-8")
        for path in (folder / "qrels").iterdir()
        if path.name.split(".")[0] in ("dev", "test")
    }


def test_the_datasheet_tells_of_splits(tmp_path: Path) -> None:
    """Share, seed and where it came from."""
    folder = write_set(tmp_path)
    (folder / "datasheet.json").write_text('{"notes": [], "splits": {"test": {"queries": 20}}}', encoding="utf-8")
    golden_sets.split(folder, HALVES, seed=4, by=["kind"])
    sheet = json.loads((folder / "datasheet.json").read_bytes())
    assert sheet["splits"]["dev"] == {
        "queries": 10,
        "unanswerable": 2,
        "judgments": 10,
        "share": 0.5,
        "from": "test",
        "seed": 4,
        "by": ["kind"],
    }
    assert sheet["splits"]["test"] == {"queries": 20}


def test_splits_that_are_refused(tmp_path: Path) -> None:
    """Shares, labels, too few queries; nothing is written."""
    folder = write_set(tmp_path)
    before = texts(folder)
    with pytest.raises(ConfigError, match=r"must add up to 1, not 0\.9"):
        golden_sets.split(folder, {"a": 0.5, "b": 0.4})
    with pytest.raises(ConfigError, match="two parts or more"):
        golden_sets.split(folder, {"a": 1.0})
    with pytest.raises(UnknownNameError, match=r"label of the queries 'kidn'\. Did you mean 'kind'"):
        golden_sets.split(folder, HALVES, by=["kidn"])
    with pytest.raises(DataError, match="24 queries are too few, the part 'p'"):
        golden_sets.split(folder, {"a": 0.999, "p": 0.001})
    assert texts(folder) == before


@pytest.mark.parametrize("sheet", ['{"splits": null}', '{"splits": [1]}', r'{"a": "\ud800"}'])
def test_a_datasheet_that_cannot_be_added_to_stays(tmp_path: Path, sheet: str) -> None:
    """The parts are written all the same."""
    folder = write_set(tmp_path)
    (folder / "datasheet.json").write_text(sheet, encoding="utf-8")
    golden_sets.split(folder, HALVES)
    assert (folder / "datasheet.json").read_text(encoding="utf-8") == sheet
    assert len(load_beir(folder, "dev").qrels.judgments) == 10
