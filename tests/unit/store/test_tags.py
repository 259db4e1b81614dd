"""Tags: what they pin, what they refuse, what they notice, and two processes that tag at once."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from embeval.core import border, strict_json
from embeval.core.ir import Run
from embeval.errors import StoreError, UnknownNameError, UsageError
from embeval.store import pins
from embeval.store.results import ResultStore, Stored
from embeval.store.tags import Tags, summary
from embeval.workflows import tagging
from tests.support import stored as made
from tests.support.commands import environment

VALUES = [1.0, 0.5, 0.25, 0.0]
SUBSETS = {"subset": ("a", "a", "b", "b")}
OLD = Run.from_dict({f"q{row}": {"d1": 2.0} for row in range(4)})


@pytest.fixture
def store(tmp_path: Path) -> ResultStore:
    """A folder with two models on two tasks, of which one has sub-sets."""
    found = ResultStore(tmp_path / "results")
    for model in ("org/one", "org/two"):
        made.put(found, {"ndcg_at_10": VALUES}, model=model, run=OLD)
        made.put(found, {"ndcg_at_10": VALUES}, model=model, task="parts", slices=SUBSETS)
    return found


def of(store: ResultStore, *words: str, **filters: Any) -> tuple[Stored, ...]:
    """The results that words and filters choose."""
    return tagging.chosen(store, words, **filters).results


def places(results: tuple[Stored, ...]) -> list[tuple[str, str, str]]:
    """(model, task, sub-set) of each."""
    return [(each.result.model.name, each.result.task.name, each.result.subset) for each in results]


def test_a_tag_gives_back_what_it_pins(store: ResultStore) -> None:
    """The same results in the order of their paths, sub-sets and means among them."""
    tags = Tags(store.root)
    tags.put("prod", of(store, model="org/one")[::-1])
    assert places(tags.get("prod")) == [
        ("org/one", "docs", "all"),
        *(("org/one", "parts", subset) for subset in ("a", "all", "b", "mean", "wmean")),
    ]
    assert tags.get("prod") == tuple(store.find(model="org/one"))


def test_the_file_holds_relative_paths_and_hashes(store: ResultStore, tmp_path: Path) -> None:
    """sha256 by hashlib; the whole folder can be moved; it is strict JSON without anything hidden in names."""
    (stored,) = of(store, model="org/one", task=["docs"])
    Tags(store.root).put("prod", [stored])
    value = strict_json.loads((store.root / "tags.json").read_bytes())
    (pin,) = value["tags"]["prod"]["results"]
    assert pin["file"] == stored.path.relative_to(store.root).as_posix()
    assert pin["sha256"] == hashlib.sha256(stored.path.read_bytes()).hexdigest()
    assert stored.result.items is not None
    assert stored.result.run is not None
    assert pin["keeps"] == [stored.result.items.file, stored.result.run.file]
    assert str(tmp_path) not in json.dumps(value)
    shutil.move(store.root, tmp_path / "elsewhere")
    assert places(Tags(tmp_path / "elsewhere").get("prod")) == [("org/one", "docs", "all")]


def test_finding_and_clearing_don_t_stumble_over_it(store: ResultStore) -> None:
    """The file of tags is no result and no garbage."""
    before = [each.path for each in store.find()]
    Tags(store.root).put("prod", of(store, model="org/one"))
    broken: list[str] = []
    assert [each.path for each in store.find(broken=broken)] == before
    assert broken == []
    assert store.garbage() == []


def test_moving_says_what_was_before(store: ResultStore) -> None:
    """Nothing, the first time; then the tag as it was."""
    tags = Tags(store.root)
    before, first = tags.put("prod", of(store, model="org/one"))
    assert before is None
    assert summary(first) == f"one #{first.model_digest[:8]}, 6 results of 2 tasks"
    before, now = tags.put("prod", of(store, model="org/two", task=["docs"]))
    assert before == first
    assert summary(now) == f"two #{now.model_digest[:8]}, 1 result of 1 task"
    assert places(tags.get("prod")) == [("org/two", "docs", "all")]
    assert tags.remove("prod") == now
    assert tags.all() == {}


def test_a_changed_result_is_told(store: ResultStore) -> None:
    """Even where it is a result like another: the tag means what was there."""
    tags = Tags(store.root)
    tags.put("prod", of(store, model="org/one", task=["docs"]))
    (again,) = made.put(store, {"ndcg_at_10": [1.0, 1.0, 1.0, 1.0]}, model="org/one")
    with pytest.raises(StoreError) as caught:
        tags.get("prod")
    message = str(caught.value)
    assert message.startswith(f"{again.path}, tagged 'prod', has changed since (it was tagged at 20")
    assert message.endswith("tag what is there now: embeval results tag prod -m one")
    assert tags.problems("prod") == [message]
    held, problems = tags.held("prod")
    assert (len(held), again.path in held, problems) == (0, False, (message,))
    tags.put("prod", of(store, model="org/one", task=["docs"]))
    assert tags.get("prod") == (again,)
    assert tags.held("prod") == ((again.path,), ())


@pytest.mark.parametrize("how", ["file", "folder"])
def test_a_result_that_is_gone_is_told(store: ResultStore, how: str) -> None:
    """Whether only its file went or everything of its model."""
    tags = Tags(store.root)
    tags.put("prod", of(store, model="org/one", task=["docs"]))
    (stored,) = of(store, model="org/one", task=["docs"])
    stored.path.unlink() if how == "file" else shutil.rmtree(stored.path.parents[3])
    with pytest.raises(StoreError, match=r"tagged 'prod', is gone.\nBring the old file back, or tag"):
        tags.get("prod")


def test_one_byte_is_enough(store: ResultStore) -> None:
    """White space at the end leaves every number as it was, and is told: a pinned file is not edited."""
    tags = Tags(store.root)
    tags.put("prod", of(store, model="org/one", task=["docs"]))
    (stored,) = of(store, model="org/one", task=["docs"])
    stored.path.write_bytes(stored.path.read_bytes() + b" ")
    with pytest.raises(StoreError, match="has changed since"):
        tags.get("prod")


def test_garbage_leaves_what_a_tag_pins(store: ResultStore) -> None:
    """Files of items whose result was deleted by hand stay as long as the tag is there, so that it can come back."""
    tags = Tags(store.root)
    tags.put("prod", of(store, model="org/one", task=["docs"]))
    (stored,) = of(store, model="org/one", task=["docs"])
    kept = {path for path in stored.path.parent.iterdir() if path.suffix == ".parquet"}
    for path in kept:
        os.utime(path, (0, 0))
    stored.path.unlink()
    assert store.garbage() == []
    tags.remove("prod")
    assert len(kept) == 2
    assert set(store.garbage()) == kept


def test_garbage_stops_where_tags_can_t_be_read(store: ResultStore) -> None:
    """What is pinned is not known then, so nothing may go."""
    (store.root / "tags.json").write_text("{", encoding="utf-8")
    with pytest.raises(StoreError, match=r"tags.json: not the tags of results"):
        store.garbage()


@pytest.mark.parametrize(
    "name", ["", "a b", "../x", "-x", ".x", "a/b", "tag:prod", "prod\n", "ü", "x" * 65, "1a2b3c4d", "20261130"]
)
def test_names_that_are_no_plain_words(store: ResultStore, name: str) -> None:
    """Nothing that could be a path, an option or the id of a result."""
    with pytest.raises(UsageError, match="A tag can't be called"):
        Tags(store.root).put(name, of(store, model="org/one"))
    assert not (store.root / "tags.json").exists()


@pytest.mark.parametrize("name", ["prod", "v1.2-rc_1", "2026", "x" * 64, "v20261130"])
def test_names_that_are(store: ResultStore, name: str) -> None:
    """Plain words, versions among them."""
    tags = Tags(store.root)
    tags.put(name, of(store, model="org/one"))
    assert list(tags.all()) == [name]


def test_results_of_several_models_are_refused(store: ResultStore) -> None:
    """Each of them is named."""
    with pytest.raises(UsageError, match=r"of one model, and these are of 2: one #[0-9a-f]{8}, two #[0-9a-f]{8}\."):
        Tags(store.root).put("prod", of(store))


def test_two_results_of_one_place_are_refused(store: ResultStore) -> None:
    """Of a baseline that was measured in two ways nobody could say which one counts."""
    (other,) = made.put(store, {"ndcg_at_10": VALUES}, model="org/one", protocol={"data": "other"})
    (first,) = [each for each in store.find(model="org/one", task="docs") if each.path != other.path]
    with pytest.raises(UsageError, match=r"are both of docs \(test, all\), and a tag pins one"):
        Tags(store.root).put("prod", [first, other])


def test_a_result_without_its_items_is_refused(store: ResultStore) -> None:
    """A baseline that a gate couldn't read must not become one."""
    (stored,) = of(store, model="org/one", task=["docs"])
    next(stored.path.parent.glob("*.items.parquet")).unlink()
    with pytest.raises(StoreError, match=r"items.parquet: can't be read"):
        Tags(store.root).put("prod", [stored])


def test_results_of_another_folder_are_refused(store: ResultStore, tmp_path: Path) -> None:
    """Paths in the file are relative to its folder."""
    other = ResultStore(tmp_path / "other")
    found = made.put(other, {"ndcg_at_10": VALUES})
    with pytest.raises(StoreError, match="tags are kept beside their results"):
        Tags(store.root).put("prod", found)


def test_an_unknown_tag(store: ResultStore) -> None:
    """Offers the closest name; says so where there is none at all."""
    tags = Tags(store.root)
    with pytest.raises(UnknownNameError, match=r"Unknown tag 'prod'\. Nothing is tagged here."):
        tags.get("prod")
    with pytest.raises(UnknownNameError):
        tags.remove("prod")
    assert not (store.root / ".tags.lock").exists()
    tags.put("prod", of(store, model="org/one"))
    with pytest.raises(UnknownNameError, match=r"Unknown tag 'prd'\. Did you mean 'prod'\?"):
        tags.get("prd")


FINE = {"schema_version": 1, "tags": {}}
PIN = {"file": "m/r/d/t/test.all.0.json", "sha256": "0" * 64, "keeps": []}
TAG = {"model": "m", "model_digest": "0" * 64, "tagged_at": "2026-01-01T00:00:00+00:00", "results": [PIN]}


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ([], "found None"),
        ({**FINE, "schema_version": 2}, "found 2"),
        ({**FINE, "schema_version": True}, "found True"),
        ({**FINE, "more": 1}, "more"),
        ({**FINE, "tags": {"prod": {**TAG, "results": [{**PIN, "file": "../m/r/d/test.json"}]}}}, "no result of this"),
        ({**FINE, "tags": {"prod": {**TAG, "results": [{**PIN, "file": "/m/r/d/test.json"}]}}}, "no result of this"),
        ({**FINE, "tags": {"prod": {**TAG, "results": [{**PIN, "keeps": ["../x"]}]}}}, "files of its own folder"),
        ({**FINE, "tags": {"prod": {**TAG, "results": [{**PIN, "sha256": None}]}}}, "sha256"),
    ],
)
def test_a_broken_file_is_told(store: ResultStore, value: Any, said: str) -> None:
    """Never taken for a folder without tags, and no path in it leads out of the folder."""
    (store.root / "tags.json").write_text(json.dumps(value), encoding="utf-8")
    with pytest.raises(StoreError, match=said) as caught:
        Tags(store.root).all()
    assert "tags.json" in str(caught.value)
    with pytest.raises(StoreError):
        Tags(store.root).put("other", of(store, model="org/one"))
    assert json.loads((store.root / "tags.json").read_text("utf-8")) == value


def test_a_failed_write_leaves_the_old_tags(store: ResultStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file is replaced as a whole, or not at all."""
    tags = Tags(store.root)
    tags.put("prod", of(store, model="org/one"))
    before = (store.root / "tags.json").read_bytes()

    def full(self: Path, target: Path) -> Path:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(StoreError, match="no space left"):
        tags.put("prod", of(store, model="org/two"))
    assert (store.root / "tags.json").read_bytes() == before


def test_an_error_in_between_changes_nothing(store: ResultStore) -> None:
    """What a block did before it failed is not written, and the lock is free again."""
    tags = Tags(store.root)
    tags.put("prod", of(store, model="org/one"))

    def fails() -> None:
        with pins.changing(store.root) as found:
            found.clear()
            raise StoreError("stop")

    with pytest.raises(StoreError, match="stop"):
        fails()
    assert list(tags.all()) == ["prod"]
    tags.put("other", of(store, model="org/two"))
    assert list(tags.all()) == ["other", "prod"]


def at_once(work: Callable[[str], Any], names: list[str]) -> None:
    """Calls from eight threads; errors come through."""
    with ThreadPoolExecutor(8) as pool:
        for done in [pool.submit(work, name) for name in names]:
            done.result()


def test_no_tag_is_lost_when_many_are_made_at_once(store: ResultStore) -> None:
    """Read, change and write back is one step: without a lock the last writer would undo the others."""
    results = of(store, model="org/one", task=["docs"])
    names = [f"tag-{number:02}" for number in range(40)]
    at_once(lambda name: Tags(store.root).put(name, results), names)
    assert list(Tags(store.root).all()) == names
    at_once(lambda name: Tags(store.root).remove(name), names[::2])
    assert list(Tags(store.root).all()) == names[1::2]


def test_another_process_waits(store: ResultStore) -> None:
    """The lock holds between processes too: the other one's tag comes on top of ours."""
    code = (
        "import sys; from pathlib import Path; from embeval.store import pins\n"
        "print('ready', flush=True)\n"
        "with pins.changing(Path(sys.argv[1])) as tags: tags['theirs'] = tags['ours']\n"
    )
    Tags(store.root).put("ours", of(store, model="org/one"))
    (store.root / "tags.json").rename(store.root / "away.json")
    with pins.changing(store.root) as tags:
        other = subprocess.Popen(
            [sys.executable, "-c", code, str(store.root)], env=environment(), stdout=subprocess.PIPE, text=True
        )
        assert other.stdout is not None
        assert other.stdout.readline() == "ready\n"
        with pytest.raises(subprocess.TimeoutExpired):
            other.wait(timeout=0.2)
        tags.update(border.load(pins._File, strict_json.loads((store.root / "away.json").read_bytes())).tags)
    assert other.wait(timeout=30) == 0
    other.stdout.close()
    assert list(Tags(store.root).all()) == ["ours", "theirs"]


# What words choose


def test_one_id_brings_its_sub_sets_and_means(store: ResultStore) -> None:
    """What was measured in one go stays together, and nothing of another task or model comes along."""
    (whole,) = store.find(model="org/two", task="parts", subset="all")
    expected = [("org/two", "parts", subset) for subset in ("a", "all", "b", "mean", "wmean")]
    assert places(of(store, whole.id)) == expected
    assert places(of(store, str(whole.path))) == expected
    (part,) = store.find(model="org/two", task="parts", subset="a")
    assert places(of(store, part.id, model="org/two")) == expected
    (docs,) = store.find(model="org/two", task="docs")
    assert places(of(store, whole.id, docs.id)) == [("org/two", "docs", "all"), *expected]


def test_the_last_measurement_counts(store: ResultStore) -> None:
    """With other data the older results of the task are left out and told; an id still reaches them."""
    later = made.put(
        store, {"ndcg_at_10": VALUES}, model="org/one", task="parts", slices=SUBSETS, protocol={"data": "new"}, days=1
    )
    earlier = made.put(store, {"ndcg_at_10": VALUES}, model="org/one", protocol={"data": "first"}, days=-1)
    found = tagging.chosen(store, model="org/one")
    assert len(found.results) == 6
    assert {each.path for each in later} <= {each.path for each in found.results}
    assert [each.result.task.name for each in found.older] == ["docs"] + ["parts"] * 5
    assert earlier[0] in found.older
    assert tagging.chosen(store, [earlier[0].id]).results == (earlier[0],)


def test_words_that_fit_nothing(store: ResultStore) -> None:
    """Each word has to fit; a broken file of the folder is told beside what was found."""
    (docs,) = store.find(model="org/one", task="docs")
    with pytest.raises(StoreError, match="No stored result fits 'nothing'"):
        tagging.chosen(store, [docs.id, "nothing"])
    with pytest.raises(StoreError, match=r"No stored result fits\. "):
        tagging.chosen(store, model="nobody")
    (docs.path.parent / "test.all.0.json").write_text("{", encoding="utf-8")
    found = tagging.chosen(store, [docs.id])
    assert found.results == (docs,)
    assert len(found.broken) == 1


def test_failed_runs_are_not_chosen(store: ResultStore) -> None:
    """A failed run has nothing to be compared with."""
    (docs,) = store.find(model="org/one", task="docs")
    value = {**border.dump(docs.result), "status": "error", "scores": {}, "main_score": None, "items": None}
    value |= {"run": None, "error": {"type": "DataError", "message": "x"}}
    place = docs.path.with_name("test.all.error.json")
    place.write_text(strict_json.dumps(value), encoding="utf-8")
    assert [each.result.status for each in store.find(model="org/one", task="docs")] == ["ok", "error"]
    assert of(store, model="org/one", task=["docs"]) == (docs,)
    with pytest.raises(StoreError, match="this run failed"):
        Tags(store.root).put("prod", [Stored(place, store.get(place))])
