"""The catalogue of a folder of results: what it gives equals what the files say, whatever becomes of either."""

from __future__ import annotations

import copy
import dataclasses
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from embeval.compare import evidence
from embeval.core import border, strict_json
from embeval.core.facts import ModelFacts
from embeval.core.provenance import Provenance
from embeval.core.result import Failure, FileRef, Imported, MetricValue, Result, Timings
from embeval.core.signature import Signature
from embeval.core.specs import DatasetRef, ModelSpec, StatisticsOptions, TaskSpec
from embeval.errors import StoreError
from embeval.store import atomic, catalogue
from embeval.store.packed import Scores
from embeval.store.results import ResultStore, Stored
from tests.support import boards, stored

NAMES = st.text(st.characters(codec="utf-8"), min_size=1, max_size=12).filter(str.strip)
NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | NUMBERS | NAMES,
    lambda below: st.lists(below, max_size=3) | st.dictionaries(NAMES, below, max_size=3),
    max_leaves=6,
)
VALUES = st.builds(
    MetricValue,
    value=st.none() | NUMBERS,
    ci_low=st.none() | NUMBERS,
    ci_high=st.none() | NUMBERS,
    n_items=st.integers(),
    n_unscored=st.integers(0, 9),
    reason=st.none() | NAMES,
    note=st.none() | NAMES,
    interval=st.sampled_from([None, "bca", "wilson"]),
)
TIMINGS = st.builds(
    Timings,
    started_at=NAMES,
    wall_s=NUMBERS,
    cpu_s=NUMBERS,
    peak_rss_mib=st.none() | NUMBERS,
    phases=st.dictionaries(NAMES, NUMBERS, max_size=2),
    texts_encoded=st.none() | st.integers(0, 10**30),
)
IMPORTED = st.builds(
    Imported,
    source=NAMES,
    mteb_version=st.none() | NAMES,
    dataset_revision=NAMES,
    settings=st.dictionaries(NAMES, JSON, max_size=2),
)
FILES = st.none() | st.builds(FileRef, file=NAMES, sha256=NAMES)
RESULTS = st.builds(
    Result,
    status=st.sampled_from(["ok", "error"]),
    task=st.builds(
        TaskSpec,
        name=st.sampled_from(["sts", "docs", "STS docs"]),
        type=NAMES,
        dataset=st.builds(DatasetRef, path=NAMES),
        options=st.dictionaries(NAMES, JSON, max_size=2),
        languages=st.lists(NAMES, max_size=2).map(tuple),
        category=st.none() | NAMES,
    ),
    model=st.builds(
        ModelSpec,
        name=st.sampled_from(["org/model", "org/other", "model"]),
        revision=st.none() | NAMES,
        prompts=st.dictionaries(NAMES, NAMES, max_size=2),
        args=st.dictionaries(NAMES, st.none() | st.booleans() | st.integers() | NUMBERS | NAMES, max_size=2),
        truncate_dim=st.none() | st.integers(1, 9),
    ),
    split=st.sampled_from(["test", "dev"]),
    subset=st.sampled_from(["all", "mean", "de"]),
    scores=st.dictionaries(st.sampled_from(["ndcg_at_10", "map", "ä\0"]), VALUES),
    main_score=st.none() | NAMES,
    statistics=st.builds(StatisticsOptions, seed=st.integers(0, 3)),
    counts=st.dictionaries(NAMES, st.none() | st.integers(), max_size=2),
    warnings=st.lists(NAMES, max_size=2).map(tuple),
    items=FILES,
    run=FILES,
    tokens=FILES,
    signature=st.builds(
        Signature,
        protocol=st.dictionaries(NAMES, JSON, max_size=2),
        metrics=st.dictionaries(NAMES, st.integers(), max_size=2),
        model_digest=NAMES,
        prompts=st.dictionaries(NAMES, NAMES, max_size=2),
    ),
    provenance=st.builds(
        Provenance, python=NAMES, packages=st.just({"numpy": "2"}), os=NAMES, cpu=NAMES, n_cpus=st.integers(1, 9)
    ),
    timings=st.none() | TIMINGS,
    error=st.none() | st.builds(Failure, type=NAMES, message=NAMES),
    imported=st.none() | IMPORTED,
    trained_on=st.sampled_from([None, "declared", "unknown"]),
    facts=st.none() | st.builds(ModelFacts, parameters=st.none() | st.integers(), languages=st.just(("eng",))),
)


@pytest.fixture(autouse=True)
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """A catalogue for the smallest folder, of files as young as they are here."""
    monkeypatch.setattr(catalogue, "MANY", 1)
    monkeypatch.setattr(catalogue, "UNSETTLED_NS", -(10**18))


@pytest.fixture
def store(tmp_path: Path) -> ResultStore:
    """Three models on four tasks, with a catalogue."""
    made = boards.synthetic_store(tmp_path / "results", 3, 4)
    assert len(list(made.find())) == 12
    return made


def as_bytes(found: Iterator[Stored]) -> list[tuple[Path, str]]:
    """Results as they would be written, which tells 1 from 1.0 and None from nothing."""
    return [(each.path, strict_json.dumps(border.dump(each.result))) for each in found]


def by_files(store: ResultStore) -> list[tuple[Path, str]]:
    """What the files say, without the catalogue."""
    (store.root / catalogue.FILE).unlink(missing_ok=True)
    return as_bytes(Stored(path, store.get(path)) for path in sorted(store.root.glob("*/*/*/*/*.json")))


def unread(store: ResultStore, monkeypatch: pytest.MonkeyPatch, **wanted: Any) -> list[Stored]:
    """What is found without reading a result file."""
    with monkeypatch.context() as patched:
        patched.setattr(ResultStore, "_read", lambda self, path: pytest.fail(f"{path} was read"))
        return list(store.find(**wanted))


# what it gives


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(results=st.lists(RESULTS, min_size=1, max_size=4))
def test_what_is_remembered_equals_what_the_files_say(
    results: list[Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Any result that can be stored comes back equal, to the last bit and type, read now and remembered."""
    store = ResultStore(tmp_path / "results")
    shutil.rmtree(store.root, ignore_errors=True)
    for result in results:
        store.put(result)
    read = list(store.find())
    remembered = unread(store, monkeypatch)
    assert not any(each.remembered for each in read)
    assert all(each.remembered for each in remembered)
    assert remembered == [Stored(each.path, store.get(each.path)) for each in remembered]
    assert as_bytes(iter(read)) == as_bytes(iter(remembered)) == by_files(store)


def test_a_file_that_leaves_fields_out_and_writes_numbers_its_own_way(
    store: ResultStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Defaults stay defaults, a whole number for a fraction becomes one, and other orders and digits do no harm."""
    (path, *_) = sorted(store.root.glob("*/*/*/*/*.json"))
    value = json.loads(path.read_text())
    for name in ("statistics", "counts", "warnings", "trained_on", "items"):
        value.pop(name, None)
    value["timings"]["wall_s"] = 3
    value["scores"]["ndcg_at_10"].update(value=1, ci_low=0.12345678901234567890123)
    value["imported"] = None
    path.write_text(json.dumps(value, indent=7, sort_keys=False), encoding="utf-8")
    list(store.find())
    assert as_bytes(iter(unread(store, monkeypatch))) == by_files(store)


@pytest.mark.parametrize(
    "wanted",
    [
        {"task": "Task1"},
        {"task": "task"},
        {"task": ["Task1", "3"]},
        {"model": "MODEL-0001"},
        {"model": "org/model-0002 (normalised)"},
        {"model": "nobody"},
        {"status": "error"},
        {"subset": "all", "task": "Task2"},
    ],
)
def test_the_same_ones_are_found(store: ResultStore, wanted: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Filters choose what they choose among results that were read."""
    found = unread(store, monkeypatch, **wanted)
    monkeypatch.setattr(catalogue, "MANY", 1000)
    (store.root / catalogue.FILE).unlink()
    assert found == list(store.find(**wanted))


def test_scores_behave_as_a_mapping(store: ResultStore) -> None:
    """Equal to a dict on either side, copied, shown and written like one; a name that isn't there is a KeyError."""
    scores = next(store.find(task="Task0")).result.scores
    plain = dict(scores)
    assert isinstance(scores, Scores)
    assert type(plain["ndcg_at_10"]) is MetricValue
    assert scores == plain
    assert plain == scores
    assert repr(scores) == repr(plain)
    assert copy.deepcopy(scores) == copy.copy(scores) == plain
    assert len(scores) == 13
    assert "ndcg_at_10" in scores
    assert scores.get("absent") is None
    with pytest.raises(KeyError, match="absent"):
        scores["absent"]


# what it notices


def first(store: ResultStore) -> Path:
    """Some result file."""
    return min(store.root.glob("*/*/*/*/*.json"))


def edited(store: ResultStore) -> None:
    """In place, with the same size, and the time of its content set back."""
    path = first(store)
    before, text = path.stat(), path.read_text()
    changed = text.replace('"wall_s": 12.5', '"wall_s": 13.5')
    with path.open("r+") as file:
        file.write(changed)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert path.stat().st_size == before.st_size
    assert path.stat().st_mtime_ns == before.st_mtime_ns
    assert changed != text


def replaced(store: ResultStore) -> None:
    """By a run that gave another number."""
    store.put(dataclasses.replace(store.get(first(store)), timings=None))


def removed(store: ResultStore) -> None:
    """One file."""
    first(store).unlink()


def removed_with_its_model(store: ResultStore) -> None:
    """A whole model."""
    shutil.rmtree(first(store).parents[3])


def added(store: ResultStore) -> None:
    """Another split of a task that is there."""
    store.put(dataclasses.replace(store.get(first(store)), split="dev"))


def added_with_its_model(store: ResultStore) -> None:
    """A model that isn't there yet."""
    result = store.get(first(store))
    store.put(dataclasses.replace(result, model=ModelSpec(name="a/new", revision="1")))


def moved(store: ResultStore) -> None:
    """A model under another name of its folder."""
    first(store).parents[3].rename(store.root / "zzz")


def swapped(store: ResultStore) -> None:
    """A folder by another one of the same content, as after unpacking a copy."""
    model = first(store).parents[3]
    shutil.copytree(model, store.root / "copy")
    shutil.rmtree(model)
    (store.root / "copy").rename(model)


@pytest.mark.parametrize(
    "change",
    [edited, replaced, removed, removed_with_its_model, added, added_with_its_model, moved, swapped],
)
def test_a_change_is_noticed(store: ResultStore, change: Callable[[ResultStore], None]) -> None:
    """What is found afterwards is what the files say, and was something else before."""
    before = as_bytes(store.find())
    change(store)
    found = as_bytes(store.find())
    again = as_bytes(store.find())
    assert found == again == by_files(store)
    assert change is swapped or found != before


def test_only_folders_that_changed_are_listed(store: ResultStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """The root, in which the catalogue was written, and that of a task with another result."""
    listed: list[str] = []
    names = catalogue._names

    def counted(path: str, depth: int) -> Sequence[str]:
        listed.append(path)
        return names(path, depth)

    monkeypatch.setattr(catalogue, "_names", counted)
    list(store.find())
    assert listed == [f"{store.root}"]
    added(store)
    listed.clear()
    list(store.find())
    assert listed == [f"{store.root}", str(first(store).parent)]


def test_the_order_of_paths(store: ResultStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the parts of paths, where text would put ``a-b/…`` before ``a/…``, with some of them read and some not."""
    monkeypatch.setattr(catalogue, "MANY", 3)
    (one, *_) = store.find(task="Task2")
    for name in ("org", "org/model-0001", "org/model"):
        store.put(dataclasses.replace(one.result, model=ModelSpec(name=name, revision="1")))
        paths = [each.path for each in store.find()]
        assert paths == sorted(paths)
        assert {each.remembered for each in store.find()} <= {True, False}
    assert len(paths) == 15


def test_what_cannot_be_read_is_told_each_time(store: ResultStore) -> None:
    """A broken file, a folder in the place of a file and a copy in the wrong place, with the catalogue and without."""
    path = first(store)
    path.write_bytes(path.read_bytes()[:-20])
    (path.parent / "folder.json").mkdir()
    shutil.copy(max(store.root.glob("*/*/*/*/*.json")), path.parent / "test.all.00000000.json")
    told: list[list[str]] = [[], [], []]
    for broken in told[:2]:
        assert len(list(store.find(broken=broken))) == 11
    (store.root / catalogue.FILE).unlink()
    list(store.find(broken=told[2]))
    assert told[0] == told[1] == told[2]
    assert [message.split(": ")[1].split(" (")[0].splitlines()[0] for message in told[0]] == [
        "can't be read",
        "not where this result belongs; a copy?",
        "not valid JSON",
    ]
    with pytest.raises(StoreError, match="can't be read"):
        list(store.find())


def test_what_changed_just_now_is_read_again(store: ResultStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Within two seconds a second change may leave every mark as it was: such files are never trusted."""
    monkeypatch.setattr(catalogue, "UNSETTLED_NS", 2_000_000_000)
    (store.root / catalogue.FILE).unlink()
    os.utime(first(store), ns=(0, 0))  # changes the time of its entry, which can't be set back
    list(store.find())
    assert not any(each.remembered for each in store.find())
    now = time.time_ns()
    monkeypatch.setattr(time, "time_ns", lambda: now + 3_000_000_000)
    list(store.find())
    assert all(each.remembered for each in store.find())


# the file itself


def test_a_small_folder_has_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fewer than ``MANY`` results are read each time, and nothing is left beside them."""
    monkeypatch.setattr(catalogue, "MANY", 5)
    store = boards.synthetic_store(tmp_path, 2, 2)
    assert [each.remembered for each in store.find()] == [False] * 4
    assert not (tmp_path / catalogue.FILE).exists()
    boards.synthetic_store(tmp_path / "more", 1, 5)
    assert len(list(ResultStore(tmp_path / "more").find())) == 5
    assert (tmp_path / "more" / catalogue.FILE).exists()


def test_a_few_changes_do_not_write_it_again(store: ResultStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is renewed when many results had to be read, and until then the few are read."""
    monkeypatch.setattr(catalogue, "MANY", 8)
    before = (store.root / catalogue.FILE).read_bytes()
    replaced(store)
    added_with_its_model(store)
    for _ in range(2):
        assert sum(not each.remembered for each in store.find()) == 2
    assert (store.root / catalogue.FILE).read_bytes() == before
    removed_with_its_model(store)
    added(store)
    found = list(store.find())
    assert as_bytes(iter(found)) == by_files(store)


@pytest.mark.parametrize("seed", range(18))
def test_a_broken_one_is_as_good_as_none(store: ResultStore, seed: int) -> None:
    """Bytes changed, cut off or put in anywhere: results are the same, and it is written anew where it was noticed."""
    path, rng = store.root / catalogue.FILE, np.random.default_rng(seed)
    expected = as_bytes(store.find())
    data = bytearray(path.read_bytes())
    place = int(rng.integers(len(data)))
    if seed % 3 == 0:
        data[place] ^= 1 << int(rng.integers(8))
    elif seed % 3 == 1:
        del data[place:]
    else:
        data[place:place] = rng.bytes(9)
    path.write_bytes(data)
    assert as_bytes(store.find()) == expected
    assert as_bytes(store.find()) == expected


def test_one_of_another_release_is_not_used(store: ResultStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither of another form nor of other fields of a result; nor is one that isn't a catalogue at all."""
    for name, other in (("FORM", 2), ("installed", lambda names: {"embeval-toolkit": "99"})):
        with monkeypatch.context() as patched:
            patched.setattr(catalogue, name, other)
            assert not any(each.remembered for each in store.find())
            assert all(each.remembered for each in store.find())
    assert not any(each.remembered for each in store.find())
    (store.root / catalogue.FILE).write_text("not one")
    assert not any(each.remembered for each in store.find())


def test_where_it_cannot_be_written_results_are_found_all_the_same(
    store: ResultStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a folder that may only be read."""

    def refuse(path: Path, data: bytes) -> None:
        raise StoreError(f"Can't write {path}.")

    expected = by_files(store)
    monkeypatch.setattr(atomic, "write", refuse)
    assert as_bytes(store.find()) == expected
    assert not (store.root / catalogue.FILE).exists()


def test_nothing_but_the_file_is_left(store: ResultStore) -> None:
    """No temporary files, and what a killed process left long ago goes when it is written."""
    left = store.root / f".{catalogue.FILE}.1-abc.tmp"
    left.write_bytes(b"half")
    os.utime(left, (0, 0))
    (store.root / catalogue.FILE).unlink()
    list(store.find())
    assert sorted(path.name for path in store.root.iterdir() if path.is_file()) == [catalogue.FILE]


def test_many_at_once(store: ResultStore) -> None:
    """Some search and write it while another stores: each finds what was there, and the end is as the files say."""
    (one, *_) = store.find(task="Task1")

    def search(_: int) -> list[int]:
        return [len(list(store.find())) for _ in range(6)]

    with ThreadPoolExecutor(3) as pool:
        counts = pool.map(search, range(3))
        for number in range(10):
            store.put(dataclasses.replace(one.result, model=ModelSpec(name=f"new/{number}", revision="1")))
        for each in counts:
            assert each == sorted(each)
            assert 12 <= min(each) <= max(each) <= 22
    found = as_bytes(store.find())
    assert len(found) == 22
    assert found == by_files(store)


# what does not rest on it


def test_evidence_is_read_from_the_file(tmp_path: Path) -> None:
    """A gate or a comparison never takes what is remembered: a result said to be remembered is read again."""
    store = ResultStore(tmp_path)
    (put,) = stored.put(store, {"ndcg_at_10": [0.5, 1.0, 0.0]})
    list(store.find())
    (found,) = store.find()
    assert found.remembered
    forged = dataclasses.replace(found.result, main_score="forged")
    assert evidence.gather(store, Stored(found.path, forged, remembered=True)).result == put.result
