"""The result store: paths, order of writing, reading back, failures, and finding again."""

from __future__ import annotations

import dataclasses
import errno
import hashlib
import itertools
import json
import math
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from embeval import metrics
from embeval.core import border, provenance
from embeval.core.ir import Run
from embeval.core.records import ItemRecords, TokenRecords
from embeval.core.result import Failure, FileRef, Result, Timings
from embeval.core.specs import DatasetRef, ModelSpec, StatisticsOptions, TaskSpec
from embeval.errors import ExitCode, StoreError
from embeval.runner import assemble, local
from embeval.store import atomic
from embeval.store.results import MAX_NAME, ResultStore, Stored, safe_name
from embeval.store.tags import Tags
from embeval.tasks import TASK_TYPES
from tests.support.data import write_beir, write_pairs

ORIGIN = provenance.collect(device="cpu")
RECORDS = ItemRecords(
    unit="query",
    ids=("q1", "q2", "q3"),
    columns={"ndcg_at_10": np.array([1.0, 0.25, np.nan])},
    slices={"kind": ("typo", "", "typo")},
)
RUN = Run.from_dict({"q1": {"d1": 2.0, "d2": 1.0}, "q2": {"d2": 0.5}, "q3": {}})

TOKENS = TokenRecords(
    items=("q1", "q2"),
    item=np.array([0, 0, 1], dtype=np.int32),
    place=np.array([0, 1, 0], dtype=np.int32),
    id=np.array([7, 3, 7], dtype=np.int32),
    begin=np.array([0, 4, 0], dtype=np.int32),
    end=np.array([4, 6, 4], dtype=np.int32),
    word=np.array([0, 0, 0], dtype=np.int32),
    vocabulary={3: "##en", 7: "unse"},
    log_probs={"original": np.array([-0.5, -0.25, -3.0], dtype=np.float32)},
)


def make(
    *,
    task: str = "docs",
    model: str = "org/model",
    revision: str = "abc",
    split: str = "test",
    protocol: dict[str, Any] | None = None,
    records: ItemRecords = RECORDS,
    **model_fields: Any,
) -> assemble.Part:
    """What the runner makes of the records: two scored queries, mean 0.625, and one without a value."""
    evidence = assemble.Evidence(
        model=ModelSpec(name=model, revision=revision, **model_fields),
        task=TaskSpec(name=task, type="retrieval", dataset=DatasetRef(path="docs")),
        protocol={"task": task, "split": split, **(protocol or {})},
        metrics=[metrics.get("ndcg_at_10")],
        records=records,
        provenance=ORIGIN,
        run=RUN,
        tokens=TOKENS,
    )
    (part,) = assemble.results(evidence, StatisticsOptions(resamples=0), None)
    return part._replace(result=dataclasses.replace(part.result, split=split))


def failure(result: Result, message: str = "docs: no such folder.") -> Result:
    """The failed run of the same model on the same task, as the runner records it."""
    return Result(
        status="error",
        task=result.task,
        model=result.model,
        split=result.split,
        subset=result.subset,
        signature=assemble.signature(result.model, {"task": result.task.name}, result.subset, (), {}),
        provenance=ORIGIN,
        error=Failure(type="DataError", message=message),
    )


@pytest.fixture
def store(tmp_path: Path) -> ResultStore:
    """A store in a folder that isn't there yet."""
    return ResultStore(tmp_path / "results")


def files(store: ResultStore) -> dict[str, bytes]:
    """Every file of a store, hidden ones too, by its path below the root."""
    return {
        str((Path(folder) / name).relative_to(store.root)): (Path(folder) / name).read_bytes()
        for folder, _, names in os.walk(store.root)
        for name in names
    }


def kinds(store: ResultStore) -> list[str]:
    """The last two endings of every file, sorted."""
    return sorted(".".join(name.split(".")[-2:]) for name in files(store))


# safe_name


SHORT = st.text(max_size=8) | st.text(st.sampled_from("ab/_.-~% \\:AÄ\0"), max_size=4)


@settings(deadline=None)
@given(names=st.lists(SHORT, unique=True, max_size=30))
def test_short_names_never_share_a_folder(names: list[str]) -> None:
    """Different names stay different, so that no result can take the place of another."""
    assert len({safe_name(name) for name in names}) == len(names)


def test_no_combination_of_separators_is_confused() -> None:
    """All names of up to five characters out of those that are encoded, or that encodings are written with."""
    names = ["".join(letters) for length in range(6) for letters in itertools.product("/_%2F.", repeat=length)]
    parts: dict[str, str] = {}
    shared = [(parts[safe_name(name)], name) for name in names if parts.setdefault(safe_name(name), name) != name]
    assert shared == []


@pytest.mark.parametrize(
    ("one", "other"),
    [("a/b", "a__b"), ("/", "__"), ("", "\0"), ("a%2Fb", "a/b"), ("%2E", "."), ("~", "%7E"), ("a", "A")],
)
def test_names_that_are_easily_confused(one: str, other: str) -> None:
    """Pairs that a careless encoding would send to one folder."""
    assert safe_name(one) != safe_name(other)


@settings(deadline=None, max_examples=300)
@given(name=st.text() | st.text(st.sampled_from("./\\~\0 -%"), max_size=5) | st.text(min_size=90))
def test_a_name_is_always_one_part_of_a_path(name: str) -> None:
    """Plain ASCII of a length every file system takes; no separator, not hidden, neither ``.`` nor ``..`` nor empty."""
    part = safe_name(name)
    assert re.fullmatch(r"[A-Za-z0-9_%-][A-Za-z0-9_.%-]*", part)
    assert len(part) <= MAX_NAME
    assert part not in (".", "..")
    assert Path("root", part).parent == Path("root")


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("all-MiniLM-L6-v2", "all-MiniLM-L6-v2"),
        ("sentence-transformers/all-MiniLM-L6-v2", "sentence-transformers__all-MiniLM-L6-v2"),
        ("v1.2_x", "v1.2_x"),
        ("..", "%2E."),
        (".hidden", "%2Ehidden"),
        ("a b", "a%20b"),
        ("é", "%C3%A9"),
        ("~", "%7E"),
        ("100%", "100%25"),
        ("C:\\x", "C%3A%5Cx"),
    ],
)
def test_usual_names_stay_readable(name: str, part: str) -> None:
    """Letters, digits, ``-``, ``_`` and dots inside are left alone, the rest is encoded as in an address."""
    assert safe_name(name) == part


@pytest.mark.parametrize("letter", ["x", "é", "/", "🙂"])
def test_long_names_end_in_a_hash(letter: str) -> None:
    """Names that differ only at their end, or are a little longer, are still different folders."""
    stems = [letter * length for length in (100, 101, 300, 3_000)] + [letter * 300 + end for end in "ab"]
    parts = [safe_name(stem) for stem in stems]
    assert len(set(parts)) == len(parts)
    for stem, part in zip(stems, parts, strict=True):
        assert len(part) <= MAX_NAME
        if len(part) == MAX_NAME:
            assert part in (stem, part[:-16] + hashlib.sha256(stem.encode()).hexdigest()[:16])
    assert safe_name("x" * 100) == "x" * 100
    assert safe_name("x" * 101) == "x" * 83 + "-" + hashlib.sha256(b"x" * 101).hexdigest()[:16]


# paths


def test_where_a_result_lies(store: ResultStore) -> None:
    """The layout of the module's doc-string, from the digests of the result."""
    result = make(model="org/model", revision="0123abc", task="docs", split="dev").result
    digest, protocol = result.model.digest[:8], result.signature.protocol_digest[:8]
    assert store.path(result) == (store.root / "org__model" / "0123abc" / digest / "docs" / f"dev.all.{protocol}.json")
    assert store.path(failure(result)).name == "dev.all.error.json"
    assert store.path(failure(result)).parent == store.path(result).parent


@pytest.mark.parametrize(
    ("revision", "folder"),
    [
        ("sha256:" + "0123456789abcdef" * 4, "sha256-0123456789abcdef"),
        ("builtin:1", "builtin-1"),
        ("abc", "abc"),
        ("sha256:../../..", "sha256-..__..__.."),
        ("../..", "%2E.__.."),
        (None, "unresolved"),
    ],
)
def test_the_folder_of_a_revision(store: ResultStore, revision: str | None, folder: str) -> None:
    """Hashes are cut to 16 digits, and no revision climbs out of the store."""
    model = ModelSpec(name="m", revision=revision)
    assert store.folder(model, "t") == store.root / "m" / folder / model.digest[:8] / "t"


NAMES = [
    "org/name",
    "..",
    ".",
    "/",
    "/etc/passwd",
    "../../outside",
    "~/x",
    "a b\tc\n",
    "données 東京 🙂",
    "x" * 300,
    "é" * 300,
    "*?[a]",
    "a.json",
    ".hidden.tmp",
    "COM1:",
    "\\..\\x",
    "nul\0byte",
    "-rf",
]


@pytest.mark.parametrize("name", NAMES, ids=lambda name: repr(name[:12]))
@pytest.mark.parametrize("part", ["task", "model", "revision", "split"])
def test_any_name_can_be_stored_and_found(tmp_path: Path, store: ResultStore, part: str, name: str) -> None:
    """Inside the store and nowhere else, five levels deep, read back with its items, and listed."""
    fields: dict[str, Any] = {part: name}
    made = make(**fields)
    stored = store.put(made.result, made.records, made.run, made.tokens)
    assert set(tmp_path.iterdir()) == {store.root}
    assert stored.path.relative_to(store.root).parts[:-1] == stored.path.parent.parts[-4:]
    assert [found.path for found in store.find()] == [stored.path]
    assert store.get(stored.path) == stored.result
    assert dataclasses.replace(stored.result, items=None, run=None, tokens=None) == made.result
    assert store.records(stored).ids == RECORDS.ids
    assert store.run(stored).hits("q1") == RUN.hits("q1")


def test_everything_that_counts_has_a_place_of_its_own(store: ResultStore) -> None:
    """Another model, revision, option, task, split, sub-set or protocol never replaces a result."""
    results = [
        make().result,
        make(model="org/other").result,
        make(revision="def").result,
        make(dtype="float16").result,
        make(task="other").result,
        make(split="dev").result,
        make(protocol={"depth": 10}).result,
        dataclasses.replace(make().result, subset="typo"),
        failure(make().result),
    ]
    paths = [store.put(result).path for result in results]
    assert len(set(paths)) == len(results)
    assert {store.get(path) == result for path, result in zip(paths, results, strict=True)} == {True}


# put and get


def test_a_result_comes_back_with_its_items(store: ResultStore) -> None:
    """Score, records and ranking; the files carry the hash of their bytes, of which 16 digits are in the name."""
    made = make()
    stored = store.put(made.result, made.records, made.run, made.tokens)
    assert stored.path == store.path(made.result)
    assert kinds(store) == sorted(
        [f"{stored.path.name.split('.')[-2]}.json", "items.parquet", "run.parquet", "tokens.parquet"]
    )
    got = store.get(stored.path)
    assert got == stored.result
    assert got.main_value is not None
    assert got.main_value.value == 0.625
    assert (got.main_value.n_items, got.main_value.n_unscored) == (2, 1)
    for reference in (got.items, got.run, got.tokens):
        assert reference is not None
        data = (stored.path.parent / reference.file).read_bytes()
        assert hashlib.sha256(data).hexdigest() == reference.sha256
        assert reference.file.startswith(reference.sha256[:16] + ".")
    again = Stored(stored.path, got)
    records = store.records(again)
    np.testing.assert_array_equal(records.columns["ndcg_at_10"], RECORDS.columns["ndcg_at_10"])
    assert (records.unit, records.ids, records.slices) == (RECORDS.unit, RECORDS.ids, RECORDS.slices)
    assert {query: store.run(again).hits(query) for query in RUN.query_ids} == {
        query: RUN.hits(query) for query in RUN.query_ids
    }
    assert store.tokens(again).of("q1").tokens == ("unse", "##en")
    assert store.tokens(again).of("q2").log_probs["original"].tolist() == [-3.0]


def test_tokens_are_no_garbage_while_a_result_has_them(store: ResultStore) -> None:
    """However old; once its result has others, the file goes, unless a tag pins it."""
    made = make()
    stored = store.put(made.result, made.records, made.run, made.tokens)
    (file,) = stored.path.parent.glob("*.tokens.parquet")
    os.utime(file, (0, 0))
    assert store.garbage() == []
    (pin,) = Tags(store.root).put("prod", [stored])[1].results
    assert file.name in pin.keeps
    store.put(made.result, made.records, made.run, TOKENS.of("q1"))
    assert store.garbage() == []
    Tags(store.root).remove("prod")
    assert store.garbage() == [file]


def test_the_file_is_json_for_anyone(store: ResultStore) -> None:
    """UTF-8 by the standard library's parser, sorted keys, letters unescaped, a line end at the end."""
    made = make(task="données")
    path = store.put(made.result, made.records, made.run, made.tokens).path
    text = path.read_text(encoding="utf-8")
    value = json.loads(text)
    assert value["task"]["name"] == "données"
    assert "données" in text
    assert list(value) == sorted(value)
    assert text.endswith("}\n")
    assert value["scores"]["ndcg_at_10"]["value"] == 0.625


def test_equal_results_give_equal_files(tmp_path: Path) -> None:
    """Two stores filled alike hold the same bytes under the same names."""
    stores = [ResultStore(tmp_path / name) for name in ("one", "other")]
    for each in stores:
        made = make()
        each.put(made.result, made.records, made.run, made.tokens)
    assert files(stores[0]) == files(stores[1])


def test_writing_again_changes_nothing(store: ResultStore) -> None:
    """The item files are there already, and the JSON becomes what it was."""
    made = make()
    first = store.put(made.result, made.records, made.run, made.tokens)
    before = files(store)
    assert store.put(made.result, made.records, made.run, made.tokens) == first
    assert files(store) == before


def test_items_are_written_before_the_result(store: ResultStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """A JSON file that is there has its items: they come first, the JSON comes last."""
    written: list[str] = []
    write = atomic.write

    def watched(path: Path, data: bytes) -> None:
        written.append(path.name.split(".", 1)[1])
        write(path, data)

    monkeypatch.setattr(atomic, "write", watched)
    made = make()
    stored = store.put(made.result, made.records, made.run, made.tokens)
    assert written == ["items.parquet", "run.parquet", "tokens.parquet", stored.path.name.split(".", 1)[1]]


def failing_write(ending: str, error: BaseException) -> Callable[[Path, bytes], None]:
    """``atomic.write`` that fails for one kind of file."""
    write = atomic.write

    def fail(path: Path, data: bytes) -> None:
        if path.name.endswith(ending):
            raise error
        write(path, data)

    return fail


@pytest.mark.parametrize("ending", ["items.parquet", "run.parquet", "tokens.parquet", ".json"])
@pytest.mark.parametrize(
    "error", [StoreError("disk full"), KeyboardInterrupt()], ids=["StoreError", "KeyboardInterrupt"]
)
def test_a_result_is_not_there_until_all_of_it_is(
    store: ResultStore, monkeypatch: pytest.MonkeyPatch, ending: str, error: BaseException
) -> None:
    """Where a file can't be written there is no JSON, and an older result still has its number and its items."""
    made = make()
    with monkeypatch.context() as patched:
        patched.setattr(atomic, "write", failing_write(ending, error))
        with pytest.raises(type(error)):
            store.put(made.result, made.records, made.run, made.tokens)
    assert list(store.find()) == []

    old = store.put(made.result, made.records, made.run, made.tokens)
    changed = make(records=dataclasses.replace(RECORDS, columns={"ndcg_at_10": np.array([0.0, 0.0, 0.0])}))
    assert store.path(changed.result) == old.path
    other_run = Run.from_dict({"q1": {"d9": 1.0}})
    with monkeypatch.context() as patched:
        patched.setattr(atomic, "write", failing_write(ending, error))
        with pytest.raises(type(error)):
            store.put(changed.result, changed.records, other_run, TOKENS.of("q2"))
    (found,) = store.find()
    assert found == old
    np.testing.assert_array_equal(store.records(found).columns["ndcg_at_10"], RECORDS.columns["ndcg_at_10"])
    assert store.run(found).hits("q1") == RUN.hits("q1")
    assert len(store.tokens(found)) == 3


@pytest.mark.parametrize("number", [math.nan, math.inf])
def test_a_number_that_is_none_never_reaches_the_disk(store: ResultStore, number: float) -> None:
    """The write fails, and the result from before stays."""
    old = store.put(make().result)
    value = dataclasses.replace(old.result.scores["ndcg_at_10"], value=number)
    before = files(store)
    with pytest.raises((StoreError, ValueError), match=r"NaN|JSON|nan|inf|finite"):
        store.put(dataclasses.replace(old.result, scores={"ndcg_at_10": value}))
    assert files(store) == before


def test_a_store_that_can_not_be_a_folder(tmp_path: Path) -> None:
    """Below a regular file: a ``StoreError`` that names the place, when writing; nothing to find when reading."""
    (tmp_path / "file").write_text("x", encoding="utf-8")
    store = ResultStore(tmp_path / "file" / "results")
    made = make()
    with pytest.raises(
        StoreError, match=rf"^Can't write {re.escape(str(store.root))}/.*\nA part of that path is a file"
    ):
        store.put(made.result, made.records, made.run, made.tokens)
    assert list(store.find()) == []
    assert list(ResultStore(tmp_path / "file").find()) == []
    assert list(ResultStore(tmp_path / "absent").find()) == []


@pytest.mark.parametrize("code", [errno.EACCES, errno.EROFS, errno.ENOSPC])
def test_a_store_that_can_not_be_written(store: ResultStore, monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    """Read-only or full: the message says so, and what was there is as it was."""
    made = make()
    store.put(made.result)
    before = files(store)

    def fail(*words: object, **options: object) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(
        StoreError, match=r"^Can't write .*\n.*\. Results that were finished before are safe\.$"
    ) as caught:
        store.put(dataclasses.replace(made.result, warnings=("new",)), made.records, made.run, made.tokens)
    monkeypatch.undo()
    assert caught.value.exit_code == ExitCode.CANNOT_EVALUATE
    assert files(store) == before


def test_an_item_file_of_the_right_name_and_wrong_content_is_replaced(store: ResultStore) -> None:
    """The remains of a crash under the file's name are not taken for the file."""
    made = make()
    stored = store.put(made.result, made.records, made.run, made.tokens)
    assert stored.result.items is not None
    broken = stored.path.parent / stored.result.items.file
    whole = broken.read_bytes()
    for remains in (b"", whole[:-1], whole + b"x"):
        broken.write_bytes(remains)
        store.put(made.result, made.records, made.run, made.tokens)
        assert broken.read_bytes() == whole


def test_old_temporary_files_are_swept(store: ResultStore) -> None:
    """What a killed process left a day ago goes at the next write into the folder."""
    path = store.put(make().result).path
    left = path.with_name(".x.json.1-ab.tmp")
    left.write_bytes(b"x")
    assert [stored.path for stored in store.find()] == [path]
    store.put(make().result)
    assert left.exists()
    os.utime(left, (0, 0))
    store.put(make().result)
    assert not left.exists()


# failures


def test_a_failure_does_not_replace_a_result(store: ResultStore) -> None:
    """Both are there, and the result has its number."""
    made = make()
    old = store.put(made.result, made.records, made.run, made.tokens)
    before = files(store)
    store.put(failure(made.result))
    assert {name: data for name, data in files(store).items() if not name.endswith("error.json")} == before
    assert {stored.result.status for stored in store.find()} == {"ok", "error"}
    assert store.get(old.path) == old.result


def test_a_failure_vanishes_when_the_task_succeeds(store: ResultStore) -> None:
    """Its own file only: other splits, sub-sets, tasks and models keep theirs."""
    result = make().result
    others = [
        failure(make(split="dev").result),
        failure(dataclasses.replace(result, subset="typo")),
        failure(make(task="other").result),
        failure(make(model="org/other").result),
    ]
    for each in (failure(result), *others):
        store.put(each)
    store.put(result)
    left = [stored.result for stored in store.find(status="error")]
    assert len(left) == len(others)
    assert all(other in left for other in others)
    assert [stored.result for stored in store.find(status="ok")] == [result]


def test_the_last_failure_counts(store: ResultStore) -> None:
    """One file per task, with the newest message."""
    result = make().result
    store.put(failure(result, "first"))
    store.put(failure(result, "second"))
    (found,) = store.find()
    assert found.result.error == Failure(type="DataError", message="second")


def test_a_failure_that_can_not_be_removed_is_told(store: ResultStore) -> None:
    """The result is stored, and the error names what stands in the way."""
    result = make().result
    path = store.put(failure(result)).path
    path.unlink()
    path.mkdir()
    with pytest.raises(StoreError, match="earlier failure"):
        store.put(result)
    path.rmdir()
    assert [stored.result for stored in store.find()] == [result]


def test_failure_and_success_by_the_runner(tmp_path: Path, store: ResultStore) -> None:
    """Broken data, then mended, then broken again: the failure comes, goes and comes, and the result stays."""
    file = tmp_path / "pairs.jsonl"
    sts = TASK_TYPES.get("sts").bind(
        TaskSpec(name="pairs", type="sts", dataset=DatasetRef(path=str(file))), root=tmp_path
    )
    model = ModelSpec(name="hashing", backend="hashing")
    options = local.RunOptions(statistics=StatisticsOptions(resamples=0))

    def run() -> list[str]:
        (outcome,) = local.run([model], [sts], store, options)
        assert outcome.status == ("done" if outcome.error is None else "failed")
        return sorted(stored.result.status for stored in store.find())

    file.write_text('{"sentence1": "a"}\n', encoding="utf-8")
    assert run() == ["error"]
    (stored,) = store.find()
    assert stored.result.error is not None
    assert stored.result.error.type == "DataError"
    assert "line 1" in stored.result.error.message
    write_pairs(file, [("a b", "a b", 5), ("a b", "a c", 3), ("a b", "x y", 0)])
    assert run() == ["ok"]
    before = files(store)
    file.write_text("{broken\n", encoding="utf-8")
    assert run() == ["error", "ok"]
    assert {name: data for name, data in files(store).items() if not name.endswith("error.json")} == before


# reading what is broken


def refused(store: ResultStore, path: Path) -> str:
    """The message with which reading a result fails, checked for what every message must have."""
    with pytest.raises(StoreError) as caught:
        store.get(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert len(message.splitlines()) <= 3
    return message


BROKEN: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "not valid JSON"),
    "cut off": (b'{"schema_version": 1, "status"', "not valid JSON"),
    "not utf-8": (b'{"schema_version": "\xff"}', "not valid JSON"),
    "nested": (b"[" * 100_000, "not valid JSON"),
    "NaN": (b'{"schema_version": NaN}', "NaN is not a JSON number"),
    "list": (b"[]", "found None"),
    "text": (b'"x"', "found None"),
    "null": (b"null", "found None"),
    "no version": (b"{}", "found None"),
    "version 2": (b'{"schema_version": 2}', "schema version 1 (found 2)"),
    "version 0": (b'{"schema_version": 0}', "schema version 1 (found 0)"),
    "version as text": (b'{"schema_version": "1"}', "schema version 1 (found '1')"),
    "nothing else": (b'{"schema_version": 1}', "is missing"),
}


@pytest.mark.parametrize("case", list(BROKEN))
def test_a_broken_result_is_refused(tmp_path: Path, store: ResultStore, case: str) -> None:
    """With the path and what is wrong with it."""
    data, words = BROKEN[case]
    path = tmp_path / "result.json"
    path.write_bytes(data)
    assert words in refused(store, path)


def test_a_result_that_is_not_there(tmp_path: Path, store: ResultStore) -> None:
    """Absent, a folder, below a file, or of a name that no file can have."""
    assert os.strerror(errno.ENOENT) in refused(store, tmp_path / "absent.json")
    assert os.strerror(errno.EISDIR) in refused(store, tmp_path)
    (tmp_path / "file").write_bytes(b"")
    assert os.strerror(errno.ENOTDIR) in refused(store, tmp_path / "file" / "x.json")
    refused(store, tmp_path / ("x" * 300))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"scoers": {}}, "scoers: unknown key. Did you mean 'scores'?"),
        ({"status": "fine"}, "status: Input should be 'ok' or 'error', not 'fine'"),
        ({"split": 5}, "split: Input should be a valid string, not 5"),
        ({"signature": None}, "signature: "),
        ({"items": {"file": "x"}}, "items: the key 'sha256' is missing"),
        ({"task": {"name": "x", "type": "sts", "dataset": {"path": "p", "splitt": "s"}}}, "Did you mean 'split'?"),
    ],
)
def test_a_result_of_another_form_is_refused(store: ResultStore, change: dict[str, Any], words: str) -> None:
    """An unknown key, a wrong type or a missing key, with its place; nothing is ignored."""
    path = store.put(make().result).path
    path.write_text(json.dumps({**json.loads(path.read_text(encoding="utf-8")), **change}), encoding="utf-8")
    message = refused(store, path)
    assert message.startswith(f"{path}: not a result: ")
    assert words in message


KINDS = ["items", "run", "tokens"]


def read(store: ResultStore, stored: Stored, kind: str) -> object:
    """The items, the ranking or the tokens."""
    reading: dict[str, Callable[[Stored], object]] = {
        "items": store.records,
        "run": store.run,
        "tokens": store.tokens,
    }
    return reading[kind](stored)


@pytest.mark.parametrize("kind", KINDS)
def test_items_that_are_missing(store: ResultStore, kind: str) -> None:
    """The path, and what to do."""
    made = make()
    stored = store.put(made.result, made.records, made.run, made.tokens)
    (file,) = stored.path.parent.glob(f"*.{kind}.parquet")
    file.unlink()
    with pytest.raises(StoreError, match=rf"^{re.escape(str(file))}: can't be read .*Run the evaluation again\.$"):
        read(store, stored, kind)


@pytest.mark.parametrize("kind", KINDS)
def test_items_that_were_altered(store: ResultStore, kind: str) -> None:
    """One bit, the end cut off, another result's items of the same shape, or nothing: all are refused."""
    made = make()
    stored = store.put(made.result, made.records, made.run, made.tokens)
    (file,) = stored.path.parent.glob(f"*.{kind}.parquet")
    whole = file.read_bytes()
    other = make(task="other", records=dataclasses.replace(RECORDS, columns={"ndcg_at_10": np.ones(3)}))
    elsewhere = store.put(other.result, other.records, Run.from_dict({"q1": {"d1": 3.0}}), TOKENS.of("q2"))
    (foreign,) = elsewhere.path.parent.glob(f"*.{kind}.parquet")
    flipped = bytes([whole[0], whole[1] ^ 1]) + whole[2:]
    for data in (flipped, whole[:-1], whole + b"\0", foreign.read_bytes(), b""):
        file.write_bytes(data)
        with pytest.raises(StoreError, match=rf"^{re.escape(str(file))}: not the {kind} that .* \(sha256 differs\)\.$"):
            read(store, stored, kind)
    file.write_bytes(whole)
    read(store, stored, kind)


@pytest.mark.parametrize("kind", KINDS)
def test_a_result_without_items(store: ResultStore, kind: str) -> None:
    """A failure has none, and asking for them is an error with the path."""
    stored = store.put(failure(make().result))
    with pytest.raises(StoreError, match=rf"^{re.escape(str(stored.path))}: this result has no {kind} file\.$"):
        read(store, stored, kind)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["../../secret", "/etc/hostname", "..", "", "a\0b"])
def test_a_result_never_reads_outside_its_folder(tmp_path: Path, store: ResultStore, kind: str, name: str) -> None:
    """A file name in a JSON that came from elsewhere is a name and no path, whatever it says."""
    made = make()
    stored = store.put(made.result, made.records, made.run, made.tokens)
    (file,) = stored.path.parent.glob(f"*.{kind}.parquet")
    secret = stored.path.parent / "../../secret"
    secret.write_bytes(file.read_bytes())
    reference = FileRef(file=name, sha256=hashlib.sha256(file.read_bytes()).hexdigest())
    changes: dict[str, Any] = {kind: reference}
    moved = Stored(stored.path, dataclasses.replace(stored.result, **changes))
    with pytest.raises(StoreError, match="can't be read"):
        read(store, moved, kind)


# find


def test_finding(store: ResultStore) -> None:
    """By name or, where nothing is called so, by a part of it, in any case; in the order of the paths."""
    names = [("org/Small", "docs"), ("org/large", "docs"), ("org/large", "FAQ-docs"), ("other/x", "pairs")]
    stored = {name: store.put(make(model=name[0], task=name[1]).result) for name in names}
    store.put(failure(make(model="other/x", task="docs").result))

    def found(**wanted: Any) -> list[tuple[str, str]]:
        return [(each.result.model.name, each.result.task.name) for each in store.find(**wanted)]

    everything = list(store.find())
    assert [each.path for each in everything] == sorted(each.path for each in everything)
    assert len(everything) == 5
    assert all(each in everything for each in stored.values())
    assert set(found(model="LARGE")) == {names[1], names[2]}
    assert set(found(model="org/")) == {names[0], names[1], names[2]}
    assert found(model="small") == [names[0]]
    assert set(found(task="Docs")) == {names[0], names[1], ("other/x", "docs")}
    assert set(found(task="doc")) == {names[0], names[1], names[2], ("other/x", "docs")}
    assert set(found(task=["faq", "pairs"])) == {names[2], names[3]}
    assert found(task=[]) == []
    assert found(subset="all") == found()
    assert found(subset="mean") == []
    assert found(task="faq") == [names[2]]
    assert found(model="large", task="FAQ") == [names[2]]
    assert found(status="error") == [("other/x", "docs")]
    assert len(found(status="ok")) == 4
    assert found(model="x", task="docs", status="ok") == []
    assert found(model="no such") == []


def test_finding_by_what_a_label_tells(store: ResultStore) -> None:
    """Options that differ from the defaults can be asked for, as they stand in tables."""
    plain, half = make().result, make(dtype="bfloat16").result
    for result in (plain, half):
        store.put(result)
    assert [stored.result for stored in store.find(model="bfloat16")] == [half]
    assert len(list(store.find(model="model"))) == 2


def test_other_files_are_no_results(store: ResultStore) -> None:
    """Notes, hidden and temporary files, and JSON files at another depth are passed over."""
    stored = store.put(make().result)
    folder = stored.path.parent
    (folder / "notes.txt").write_text("x", encoding="utf-8")
    (folder / ".hidden.json").write_text("x", encoding="utf-8")
    (folder / ".x.json.1-ab.tmp").write_text("x", encoding="utf-8")
    (folder / "deeper").mkdir()
    (folder / "deeper" / "x.json").write_text("x", encoding="utf-8")
    (store.root / "board.json").write_text("x", encoding="utf-8")
    assert list(store.find()) == [stored]


def test_a_broken_file_among_results_is_told(store: ResultStore) -> None:
    """Not passed over silently: a board without it would be another board."""
    stored = store.put(make().result)
    (stored.path.parent / "z.json").write_text("{", encoding="utf-8")
    with pytest.raises(StoreError, match=r"z\.json: not valid JSON"):
        list(store.find())


def test_a_whole_evaluation(tmp_path: Path, store: ResultStore) -> None:
    """What the runner stored for retrieval is read back: the numbers follow from the ranking that lies beside them."""
    folder = write_beir(
        tmp_path / "docs",
        corpus={"d1": "red apple", "d2": "green pear", "d3": "blue plum"},
        queries={"q1": "red apple", "q2": "plum"},
        qrels={"q1": {"d1": 1}, "q2": {"d2": 1}},
    )
    spec = TaskSpec(name="docs", type="retrieval", dataset=DatasetRef(path=str(folder)), options={"depth": 10})
    task = TASK_TYPES.get("retrieval").bind(spec, root=tmp_path)
    options = local.RunOptions(statistics=StatisticsOptions(resamples=0))
    (outcome,) = local.run([ModelSpec(name="hashing", backend="hashing")], [task], store, options)
    assert outcome.error is None
    (stored,) = store.find()
    assert stored == outcome.stored[-1]
    assert isinstance(stored.result.timings, Timings)
    run, records = store.run(stored), store.records(stored)
    assert records.ids == ("q1", "q2")
    ranks = [[doc for doc, _ in run.hits(query)].index(doc) for query, doc in (("q1", "d1"), ("q2", "d2"))]
    expected = [1 / math.log2(rank + 2) for rank in ranks]
    np.testing.assert_allclose(records.columns["ndcg_at_10"], expected, rtol=1e-12)
    assert ranks[0] == 0
    assert stored.result.main_value is not None
    assert stored.result.main_value.value == pytest.approx(sum(expected) / 2, rel=1e-12)
    assert border.dump(stored.result)["model"]["revision"].startswith("builtin:")


def test_a_broken_file_need_not_stand_in_the_way(store: ResultStore) -> None:
    """One is an error that says what to do; where its message can be put aside, the others are found."""
    good = store.put(make().result)
    bad = store.put(make(task="other").result).path
    bad.write_bytes(bad.read_bytes()[:-20])
    with pytest.raises(StoreError, match=r"not valid JSON .*\nRun that evaluation again, or remove the file\."):
        list(store.find())
    broken: list[str] = []
    assert list(store.find(broken=broken)) == [good]
    (message,) = broken
    assert message.startswith(f"{bad}: not valid JSON")
    bad.unlink()
    bad.mkdir()
    broken.clear()
    assert list(store.find(broken=broken)) == [good]
    assert "Is a directory" in broken[0]


def test_nothing_goes_from_a_folder_with_a_broken_result(store: ResultStore) -> None:
    """What it refers to can't be known, so its files are spared, however old."""
    made = make()
    stored = store.put(made.result, made.records, made.run, made.tokens)
    stored.path.write_text("{", encoding="utf-8")
    for path in stored.path.parent.iterdir():
        os.utime(path, (0, 0))
    assert store.garbage() == []
    stored.path.unlink()
    assert {path.suffix for path in store.garbage()} == {".parquet"}


def test_a_copy_beside_a_result_is_no_result(store: ResultStore) -> None:
    """A file under another name, or in the folder of another task, is told and left out, whatever it says."""
    stored = store.put(make().result)
    content = stored.path.read_bytes()
    stray = [stored.path.with_name(f"test.all.copy.{stored.path.name.split('.')[2]}.json")]
    other = stored.path.parent.parent / "other"
    other.mkdir()
    stray.append(other / stored.path.name)
    for path in stray:
        path.write_bytes(content)
    broken: list[str] = []
    assert list(store.find(broken=broken)) == [stored]
    assert sorted(message.splitlines()[0] for message in broken) == sorted(
        f"{path}: not where this result belongs; a copy?" for path in stray
    )
    with pytest.raises(StoreError, match="not where this result belongs"):
        list(store.find())


def test_a_folder_that_cannot_be_read_is_told(store: ResultStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its results would be missing from a table without a word."""
    stored = store.put(make().result)
    real = os.scandir

    def refuse(path: Any) -> Any:
        if Path(path) == stored.path.parent:
            raise PermissionError(13, "Permission denied", str(path))
        return real(path)

    monkeypatch.setattr(os, "scandir", refuse)
    broken: list[str] = []
    assert list(store.find(broken=broken)) == []
    assert broken == [f"{stored.path.parent}: can't be read (Permission denied)."]
