"""Loading from a mirror: any file format, nothing from the network, nothing old, nothing left lying about."""

from __future__ import annotations

import os
import shutil
import socket
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from embeval.encoders.locate import cache_folder
from embeval.errors import DataError, UnknownNameError
from embeval.mteb_bridge import loading, mirror, sealing
from embeval.mteb_bridge.loading import Loaded
from tests.support.data import write_jsonl, write_pairs

PAIRS = [(f"text {number}", f"tëxt {number % 7}", number / 25) for number in range(100)]
"""As many as mteb 2.26 says that BIOSSES has."""
FULL = {"sentence1": [a for a, _, _ in PAIRS], "sentence2": [b for _, b, _ in PAIRS], "score": [s for *_, s in PAIRS]}


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EMBEVAL_CACHE", str(tmp_path / "cache"))


def load(name: str, folder: Path, **options: Any) -> Loaded:
    """A task with its data of the split test."""
    given: dict[str, Any] = {"subsets": None, "parity": "embeval", **options}
    return loading.load(name, given.pop("split", "test"), mirror=folder, **given)


def test_the_same_rows_in_any_format_are_the_same_data(tmp_path: Path) -> None:
    """jsonl, csv and parquet, at the top of the folder or below it, with an extra column and without."""
    write_pairs(tmp_path / "1" / "BIOSSES" / "test.jsonl", PAIRS)
    csv = tmp_path / "2" / "BIOSSES" / "data" / "test.csv"
    csv.parent.mkdir(parents=True)
    csv.write_text("sentence1,sentence2,score\n" + "".join(f"{a},{b},{s}\n" for a, b, s in PAIRS), encoding="utf-8")
    table = pa.table({**FULL, "genre": ["x"] * 100})
    (tmp_path / "3" / "BIOSSES").mkdir(parents=True)
    pq.write_table(table, tmp_path / "3" / "BIOSSES" / "test.parquet")
    found = [load("biosses", tmp_path / number) for number in "123"]
    assert len({each.data_hash for each in found}) == 1
    assert [each.warnings for each in found] == [(), (), ()]
    assert list(found[2].setting.rows("default")["score"]) == FULL["score"]
    other = [*PAIRS[:99], (*PAIRS[99][:2], 3.97)]
    write_pairs(tmp_path / "1" / "BIOSSES" / "test.jsonl", other)
    assert load("BIOSSES", tmp_path / "1").data_hash != found[0].data_hash


def test_other_row_counts_are_a_warning(tmp_path: Path) -> None:
    """What was laid out by hand needn't be what mteb scored."""
    write_pairs(tmp_path / "BIOSSES" / "test.jsonl", PAIRS[:60])
    found = load("BIOSSES", tmp_path)
    assert found.warnings == ("The data differs from mteb's: test has 60 rows, and 100 in mteb's statistics.",)
    assert found.origin == "mirror, laid out by hand"


def test_other_row_counts_of_the_split_that_is_trained_on_are_a_warning(tmp_path: Path) -> None:
    """Banking77 has 10,003 rows to train on."""
    for split in ("train", "test"):
        rows = [{"text": f"text {row}", "label": row % 2} for row in range(8)]
        write_jsonl(tmp_path / "Banking77Classification" / f"{split}.jsonl", rows)
    warnings = " ".join(load("Banking77Classification", tmp_path).warnings)
    assert "train has 8 rows, and 10,003 in mteb's statistics" in warnings
    assert "test has 8 rows, and 3,080 in mteb's statistics" in warnings


@pytest.mark.parametrize("column", ["score", "similarity_score"])
def test_sub_sets_in_folders_of_their_own(tmp_path: Path, column: str) -> None:
    """The columns may have the hub's names or mteb's; sub-sets that are missing are told, and those that are there."""
    card = "---\nconfigs:\n"
    for language in ("de", "zh"):
        rows = [{"sentence1": a, "sentence2": language, column: s} for a, _, s in PAIRS]
        write_jsonl(tmp_path / "STSBenchmarkMultilingualSTS" / language / "test.jsonl", rows)
        card += f"- config_name: {language}\n  data_files: [{{split: test, path: {language}/test.jsonl}}]\n"
    (tmp_path / "STSBenchmarkMultilingualSTS" / "README.md").write_text(f"{card}---\n", encoding="utf-8")
    found = load("STSBenchmarkMultilingualSTS", tmp_path, subsets=("zh", "de"))
    assert found.setting.subsets == ("de", "zh")
    assert set(found.setting.rows("zh")["sentence2"]) == {"zh"}
    assert found.setting.rows("de")["score"] == FULL["score"]
    assert len(found.warnings) == 2
    with pytest.raises(DataError, match=r"BuilderConfig 'en' not found.*\n.*STS,subsets=\[de,zh\]'\.$"):
        load("STSBenchmarkMultilingualSTS", tmp_path)
    with pytest.raises(UnknownNameError, match=r"sub-set of mteb:STSBenchmarkMultilingualSTS 'xx'"):
        load("STSBenchmarkMultilingualSTS", tmp_path, subsets=("xx",))
    with pytest.raises(DataError, match="its data has no split 'dev', but test"):
        load("STSBenchmarkMultilingualSTS", tmp_path, subsets=("de",), split="dev")


@pytest.mark.enable_socket
def test_the_network_is_refused_while_loading_and_only_then(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A task that fetches something by itself can't, though a server answers; a socket of this machine may be used."""
    write_pairs(tmp_path / "BIOSSES" / "test.jsonl", PAIRS)
    task_class = type(loading.find("BIOSSES"))
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = server.getsockname()
        path = str(tmp_path / "local")
        with socket.socket(socket.AF_UNIX) as local:
            local.bind(path)
            local.listen()

            def fetch(*_: Any, **__: Any) -> None:
                with socket.socket(socket.AF_UNIX) as client:
                    client.connect(path)
                socket.create_connection(address).close()

            monkeypatch.setattr(task_class, "dataset_transform", fetch)
            with pytest.raises(DataError, match=r"the network is not used, and something asked for"):
                load("BIOSSES", tmp_path)
        socket.create_connection(address).close()
    hub, config = import_module("huggingface_hub.constants"), import_module("datasets").config
    assert (hub.HF_HUB_OFFLINE, config.HF_HUB_OFFLINE) == (True, True)  # as the tests have it


def test_a_data_set_that_a_task_names_in_its_code_is_found(tmp_path: Path) -> None:
    """SKQuadRetrieval of mteb 2.26 loads by name, whatever its metadata says."""
    folder = tmp_path / "SKQuadRetrieval"
    write_jsonl(folder / "corpus.jsonl", [{"_id": "d1", "title": "", "text": "one"}])
    write_jsonl(folder / "queries.jsonl", [{"_id": "q1", "text": "one?"}])
    write_jsonl(folder / "qrels.jsonl", [{"query-id": "q1", "corpus-id": "d1", "score": 1}])
    splits = {"corpus": ("corpus", "corpus"), "queries": ("queries", "queries"), "default": ("test", "qrels")}
    configs = "".join(
        f"- config_name: {name}\n  data_files: [{{split: {split}, path: {file}.jsonl}}]\n"
        for name, (split, file) in splits.items()
    )
    (folder / "README.md").write_text(f"---\nconfigs:\n{configs}---\n", encoding="utf-8")
    task = loading.find("SKQuadRetrieval")
    with sealing.sealed(tmp_path, "SKQuadRetrieval", mirror.located(tmp_path, "SKQuadRetrieval")):
        loading.fill(task, folder)
    assert task.dataset["default"]["test"]["relevant_docs"] == {"q1": {"d1": 1}}
    assert task.dataset["default"]["test"]["corpus"]["text"][:] == ["one"]
    with sealing.sealed(tmp_path, "SKQuadRetrieval", mirror.located(tmp_path, "SKQuadRetrieval")):
        datasets = import_module("datasets")
        with pytest.raises(DataError, match=r"also needs the data set team/other, of which the mirror .* has none"):
            datasets.load_dataset("team/other")


def test_a_replaced_file_is_read_anew(tmp_path: Path) -> None:
    """Of the same size and time, by which ``datasets`` knows a file."""
    file = write_pairs(tmp_path / "BIOSSES" / "test.jsonl", PAIRS)
    before = load("BIOSSES", tmp_path)
    time = file.stat()
    other = write_pairs(tmp_path / "other", [(a.upper(), b, score) for a, b, score in PAIRS])
    os.utime(other, ns=(time.st_atime_ns, time.st_mtime_ns))
    other.replace(file)
    assert (file.stat().st_size, file.stat().st_mtime_ns) == (time.st_size, time.st_mtime_ns)
    after = load("BIOSSES", tmp_path)
    assert after.setting.rows("default")["sentence1"][0] == "TEXT 0"
    assert after.data_hash != before.data_hash


def test_what_datasets_makes_lies_in_our_cache_and_is_used_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    """One folder for the same content, wherever it lies; the user's own cache is not touched."""
    config = import_module("datasets").config
    monkeypatch.setattr(config, "HF_DATASETS_CACHE", tmp_path / "users")
    for name in ("one", "two"):
        write_pairs(tmp_path / name / "BIOSSES" / "test.jsonl", PAIRS)
        load("BIOSSES", tmp_path / name)
    (made,) = (cache_folder() / sealing.FOLDER).iterdir()
    assert list(made.rglob("*.arrow"))
    assert not (tmp_path / "users").exists()
    assert tmp_path / "users" == config.HF_DATASETS_CACHE
    left = made / "cache-0123456789abcdef.arrow"  # of a transform, an hour ago
    left.write_bytes(b"x")
    os.utime(left, (0, 0))
    load("BIOSSES", tmp_path / "two")
    assert not left.exists()


def test_without_a_cache_that_can_be_written_it_loads_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    """The rows can be read, though the temporary files are gone."""
    (tmp_path / "file").write_bytes(b"")
    monkeypatch.setenv("EMBEVAL_CACHE", str(tmp_path / "file"))
    write_pairs(tmp_path / "BIOSSES" / "test.jsonl", PAIRS)
    assert load("BIOSSES", tmp_path).setting.rows("default")["score"] == FULL["score"]


def test_room_is_made_for_what_is_used(tmp_path: Path) -> None:
    """The data sets used longest ago go, the limit is kept, and what was used within the hour stays."""
    for number in range(4):
        (tmp_path / str(number)).mkdir()
        (tmp_path / str(number) / "data.arrow").write_bytes(bytes(100))
        if number < 3:
            os.utime(tmp_path / str(number), (1000 + number, 1000 + number))
    sealing.make_room(tmp_path, max_bytes=250)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["2", "3"]
    sealing.make_room(tmp_path, max_bytes=50)
    assert [each.name for each in tmp_path.iterdir()] == ["3"]


def test_a_broken_file_is_told_with_its_folder(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """In one line, without the traceback of whatever library read it."""
    folder = tmp_path / "BIOSSES"
    write_pairs(folder / "test.jsonl", PAIRS)
    (folder / "test.jsonl").write_text('{"sentence1": "a"\n', encoding="utf-8")
    with pytest.raises(DataError, match=f"mteb:BIOSSES: its data can't be loaded from {folder} \\(") as caught:
        load("BIOSSES", tmp_path)
    said = capfd.readouterr()
    assert (said.out, said.err) == ("", "")  # datasets would log it as well
    assert "\n" not in str(caught.value)  # the only sub-set is all there is
    (folder / "test.jsonl").write_bytes(b"")
    with pytest.raises(DataError, match=r"\(test\.jsonl is empty\)\.$"):
        load("BIOSSES", tmp_path)
    shutil.rmtree(folder)
    (folder / "test.txt.d").mkdir(parents=True)
    with pytest.raises(DataError, match=f"{folder}: can't be read as a data set"):
        load("BIOSSES", tmp_path)


def test_columns_of_selected_rows_are_lists_too() -> None:
    """mteb fits a classifier on selected rows, and would read the labels of these one by one from the disk."""
    task = SimpleNamespace(dataset=datasets.DatasetDict({"train": datasets.Dataset.from_dict({"label": [3, 4, 5]})}))
    loading.eager(task)
    assert task.dataset["train"]["label"] == [3, 4, 5]
    labels = task.dataset["train"].select([2, 0])["label"]
    assert type(labels) is list
    assert labels == [5, 3]


def test_without_a_hub_the_way_to_a_mirror_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a new user without a network meets first."""
    monkeypatch.setattr("datasets.config.HF_HUB_OFFLINE", True)
    with pytest.raises(DataError, match=r"'embeval data pull STS12 --to DIR' where it can, then --mirror DIR\."):
        loading.load("STS12", "test", subsets=None, parity="embeval", mirror=None)
