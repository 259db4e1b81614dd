"""Files laid out as the data of a task of mteb, which loads them itself."""

from __future__ import annotations

import gzip
import hashlib
from pathlib import Path
from typing import Any

import pytest

from embeval.errors import ConfigError, DataError, UnknownNameError, UsageError
from embeval.mteb_bridge import importing, loading, mirror, sealing
from embeval.mteb_bridge.importing import Imported
from tests.support.data import write_beir, write_jsonl, write_pairs

PAIRS = [(f"text {number}", f"tëxt {number % 7}", number / 25) for number in range(100)]
"""As many as mteb 2.26 says that BIOSSES has."""


def imported(task: str, *given: object, into: Path, **options: Any) -> Imported:
    """What was laid out."""
    return importing.import_as(task, [str(each) for each in given], into, **options)


def filled(name: str, folder: Path, split: str, subsets: list[str] | None = None) -> Any:
    """The task object of mteb with the data of a mirror, whatever its category."""
    task = loading.find(name)
    task.hf_subsets = subsets or task.hf_subsets
    task.filter_eval_splits([split])
    place = mirror.located(folder, name)
    with sealing.sealed(folder, name, place):
        loading.fill(task, place.folder)
    return task


def test_a_csv_file_with_columns_of_other_names(tmp_path: Path) -> None:
    """Scores become numbers, texts stay texts, and the manifest names what it was made from."""
    file = tmp_path / "test.csv"
    file.write_text("a,b,punkte\n" + "".join(f"{i},{b},{s}\n" for i, (_, b, s) in enumerate(PAIRS)), encoding="utf-8")
    done = imported(
        "biosses",
        file,
        into=tmp_path / "mirror",
        columns={"sentence1": "a", "sentence2": "b", "score": "punkte"},
    )
    assert (done.task, done.rows, done.differences) == ("BIOSSES", {"default/test": 100}, ())
    rows = filled("BIOSSES", tmp_path / "mirror", "test").dataset["test"]
    assert rows["sentence1"][:3] == ["0", "1", "2"]
    assert rows["score"][:] == [score for *_, score in PAIRS]
    manifest = mirror.located(tmp_path / "mirror", "BIOSSES").manifest
    assert manifest is not None
    assert (manifest.source, manifest.task, manifest.revision) == ("import", "BIOSSES", None)
    assert manifest.inputs == {f"{tmp_path.name}/test.csv": hashlib.sha256(file.read_bytes()).hexdigest()}


def test_rows_that_are_not_as_many_as_mteb_says_need_anyway(tmp_path: Path) -> None:
    """Without it nothing is written; with it every run warns."""
    file = write_pairs(tmp_path / "few.jsonl", PAIRS[:60])
    with pytest.raises(DataError, match=r"mteb:BIOSSES: test has 60 rows, and 100 in mteb's statistics\.\n.*--anyway"):
        imported("BIOSSES", f"test={file}", into=tmp_path / "mirror")
    assert not list((tmp_path / "mirror").iterdir())
    done = imported("BIOSSES", f"test={file}", into=tmp_path / "mirror", anyway=True)
    assert done.differences == ("test has 60 rows, and 100 in mteb's statistics",)
    found = loading.load("BIOSSES", "test", subsets=None, parity="embeval", mirror=tmp_path / "mirror")
    assert found.warnings == ("The data differs from mteb's: test has 60 rows, and 100 in mteb's statistics.",)
    assert (found.origin or "").startswith("mirror, imported on 2")


def test_sub_sets_and_the_split_that_is_trained_on(tmp_path: Path) -> None:
    """Folders name the sub-sets, in any spelling; a label that is a number in text becomes one; train is needed."""
    for language, n_train in {"DE": 20, "EN-ext": 30}.items():
        for split, n_rows in {"test": 10, "train": n_train}.items():
            lines = [f"{language} {row},{row % 2}\n" for row in range(n_rows)]
            file = tmp_path / "given" / language / f"{split}.csv"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text("text,label\n" + "".join(lines), encoding="utf-8")
    into, name = tmp_path / "mirror", "AmazonCounterfactualClassification"
    done = imported(name, tmp_path / "given", into=into, anyway=True)
    assert done.rows == {"de/test": 10, "de/train": 20, "en-ext/test": 10, "en-ext/train": 30}
    assert (done.subsets, done.missing) == (("en-ext", "de"), ("en", "ja"))
    task = filled(name, into, "test", ["de", "en-ext"])
    assert task.dataset["de"]["train"]["label"][:4] == [0, 1, 0, 1]
    assert task.dataset["en-ext"]["test"]["text"][1] == "EN-ext 1"
    (tmp_path / "given" / "DE" / "train.csv").unlink()
    with pytest.raises(DataError, match=f"mteb:{name} trains on the split 'train', and there is no file of it"):
        imported(name, tmp_path / "given", into=into, anyway=True, overwrite=True)
    assert (into / name / "de" / "train.parquet").is_file()


def test_a_beir_folder_becomes_a_retrieval_task(tmp_path: Path) -> None:
    """Ids that are numbers become text, judgments become numbers, and what mteb doesn't read is left out."""
    folder = write_beir(
        tmp_path / "scifact", corpus={"1": "one", "2": "two"}, queries={"7": "one?"}, qrels={"7": {"1": 1, "2": 0}}
    )
    rows = [{"_id": 1, "title": "T", "text": "one", "metadata": {}}, {"_id": 2, "title": "", "text": "two"}]
    write_jsonl(folder / "corpus.jsonl", rows)
    with pytest.raises(DataError, match=r"test has 2 documents, and 5,183 in mteb's statistics; test has 1 queries"):
        imported("SciFact", folder, into=tmp_path / "mirror")
    done = imported("SciFact", folder, into=tmp_path / "mirror", anyway=True)
    assert done.rows == {"corpus/corpus": 2, "default/test": 2, "queries/queries": 1}
    data = filled("SciFact", tmp_path / "mirror", "test").dataset["default"]["test"]
    assert data["corpus"][:] == {"id": ["1", "2"], "title": ["T", ""], "text": ["one", "two"]}
    assert data["relevant_docs"] == {"7": {"1": 1, "2": 0}}


def test_candidates_of_a_reranking_task(tmp_path: Path) -> None:
    """Tables by the words before ``=``, with lists in a column."""
    given: dict[str, list[dict[str, Any]]] = {
        "corpus": [{"_id": "d1", "text": "one"}, {"_id": "d2", "text": "two"}],
        "queries": [{"_id": "q1", "text": "?"}],
        "qrels/test": [{"query-id": "q1", "corpus-id": "d2", "score": 1}],
        "top_ranked/test": [{"query-id": "q1", "corpus-ids": ["d1", "d2"]}],
    }
    words = []
    for number, (place, rows) in enumerate(given.items()):
        words.append(f"{place}={write_jsonl(tmp_path / f'{number}.jsonl', rows)}")
    imported("NamaaMrTydiReranking", *words, into=tmp_path / "mirror", anyway=True)
    data = filled("NamaaMrTydiReranking", tmp_path / "mirror", "test").dataset["default"]["test"]
    assert data["top_ranked"] == {"q1": ["d1", "d2"]}


def test_what_cannot_be_told_from_a_name_must_be_said(tmp_path: Path) -> None:
    """The message has the words to say it with."""
    file = write_pairs(tmp_path / "pairs.jsonl", PAIRS)
    into, empty = tmp_path / "mirror", tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(UsageError, match=r"pairs\.jsonl: say which part of mteb:BIOSSES it is: test=FILE\."):
        imported("BIOSSES", file, into=into)
    with pytest.raises(UsageError, match=r"test=FILE, each after its sub-set \(en/…\): en, de, es, fr"):
        imported("STSBenchmarkMultilingualSTS", f"test={file}", into=into)
    with pytest.raises(UsageError, match=r"say which part of mteb:SciFact it is: corpus=FILE queries=FILE qrels/test"):
        imported("SciFact", file, into=into)
    with pytest.raises(UsageError, match="would both be default/test"):
        imported("BIOSSES", f"test={file}", f"test={file}", into=into)
    with pytest.raises(DataError, match=r"evaluated on test, and there is a file of train only"):
        imported("BIOSSES", f"train={file}", into=into)
    with pytest.raises(DataError, match=r"no \.jsonl, \.csv, \.tsv or \.parquet file in it"):
        imported("BIOSSES", empty, into=into)
    with pytest.raises(UnknownNameError, match="Did you mean 'BIOSSES'"):
        imported("BIOSES", file, into=into)
    assert not list(into.iterdir())


def test_bad_rows_are_told_with_file_and_line(tmp_path: Path) -> None:
    """And nothing is written; what mteb itself can't do with the rows is told with the task."""
    into = tmp_path / "mirror"
    path = tmp_path / "test.jsonl"
    write_jsonl(
        path, [{"sentence1": "a", "sentence2": "b", "score": 1}, {"sentence1": 5, "sentence2": "b", "score": 1}]
    )
    with pytest.raises(DataError, match=r"test\.jsonl, line 2: 'sentence1' holds a number here and a str in line 1"):
        imported("BIOSSES", path, into=into)
    path.write_text('{"sentence1": "\\ud800", "sentence2": "b", "score": 1}\n', encoding="utf-8")
    with pytest.raises(DataError, match=r"test\.jsonl, line 1: 'sentence1' holds half of a character"):
        imported("BIOSSES", path, into=into)
    with gzip.open(tmp_path / "test.jsonl.gz", "wt", encoding="utf-8") as file:
        file.write('{"_id": "d", "text": "x"}\n{"_id": null, "text": "y"}\n')
    with pytest.raises(DataError, match=r"line 2: '_id' must be an id"):
        imported("SciFact", f"corpus={tmp_path / 'test.jsonl.gz'}", into=into)
    write_jsonl(path, [{"sentence1": "a", "sentence2": "b", "points": 1}])
    with pytest.raises(DataError, match=rf"STSBenchmarkMultilingualSTS.*{into / 'STSBenchmarkMultilingualSTS'} \("):
        imported("STSBenchmarkMultilingualSTS", f"de/test={path}", into=into)
    assert not list(into.iterdir())


def test_only_an_import_is_overwritten(tmp_path: Path) -> None:
    """What somebody laid out by hand stays."""
    file = write_pairs(tmp_path / "test.jsonl", PAIRS)
    into = tmp_path / "mirror"
    imported("BIOSSES", file, into=into)
    with pytest.raises(ConfigError, match=r"exists and is not empty.*--overwrite"):
        imported("BIOSSES", file, into=into)
    write_pairs(file, [*PAIRS[1:], PAIRS[0]])
    imported("BIOSSES", file, into=into, overwrite=True)
    assert filled("BIOSSES", into, "test").dataset["test"]["sentence1"][0] == "text 1"
    (into / "BIOSSES" / mirror.MANIFEST).unlink()
    with pytest.raises(ConfigError, match="was laid out by hand, so --overwrite doesn't replace it"):
        imported("BIOSSES", file, into=into, overwrite=True)
