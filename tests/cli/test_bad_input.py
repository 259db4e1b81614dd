"""What a user gets wrong: one to three lines that name what, where and what to do, and nothing half done."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.support.commands import Done, embeval

PAIR = {"sentence1": "a b", "sentence2": "a c", "score": 1.0}
CORPUS = '{"_id": "d1", "title": "", "text": "restore"}\n{"_id": "d2", "title": "", "text": "rotate"}\n'
QUERIES = '{"_id": "q1", "text": "restore"}\n{"_id": "q2", "text": "rotate"}\n'
QRELS = "query-id\tcorpus-id\tscore\nq1\td1\t1\nq2\td2\t1\n"
STS = ("run", "-m", "hashing", "-t", "sts:pairs.jsonl")
FINE = ("run", "-m", "hashing", "-t", "demo-pairs")


@dataclass(frozen=True)
class Case:
    """A mistake."""

    code: int
    """Exit code that it ends with."""
    words: tuple[str, ...]
    """The command, without --quiet."""
    says: tuple[str, ...]
    """What stderr must hold."""
    files: Mapping[str, str | bytes] = field(default_factory=dict)
    """Files in the folder in which the command is run."""


@dataclass(frozen=True)
class Broken:
    """A task whose data is broken."""

    task: str
    """As it is given to -t, its path relative to a folder of its own."""
    says: tuple[str, ...]
    """What the message must hold; paths start at that folder."""
    files: Mapping[str, str | bytes] = field(default_factory=dict)
    """Files in it."""


def jsonl(*rows: Mapping[str, object] | str) -> str:
    """One row per line; text goes in as it is."""
    return "".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows)


def golden(corpus: str = CORPUS, queries: str = QUERIES, qrels: str = QRELS) -> dict[str, str | bytes]:
    """A golden set; an empty text leaves the file out."""
    files = {"golden/corpus.jsonl": corpus, "golden/queries.jsonl": queries, "golden/qrels/test.tsv": qrels}
    return {name: text for name, text in files.items() if text}


def pairs(*rows: Mapping[str, object] | str) -> dict[str, str | bytes]:
    """A file of sentence pairs."""
    return {"pairs.jsonl": jsonl(*rows)}


DATA: dict[str, Broken] = {
    "missing column": Broken(
        "sts:pairs.jsonl",
        ("pairs.jsonl, line 1", "no column 'score'", "Columns: 'sentence1', 'sentence2'"),
        pairs({"sentence1": "a", "sentence2": "b"}),
    ),
    "missing column of a tsv": Broken(
        "golden",
        ("golden/qrels/test.tsv, line 1", "no column 'query-id'", "query-id, corpus-id, score"),
        golden(qrels="query\tdoc\tgrade\nq1\td1\t1\n"),
    ),
    "bad JSON": Broken(
        "sts:pairs.jsonl", ("pairs.jsonl, line 3: not valid JSON",), pairs(PAIR, PAIR, '{"sentence1": ')
    ),
    "bad JSON in a corpus": Broken(
        "golden", ("golden/corpus.jsonl, line 3: not valid JSON",), golden(corpus=CORPUS + "{]\n")
    ),
    "no object": Broken(
        "sts:pairs.jsonl", ("pairs.jsonl, line 2: a JSON object is needed, not list",), pairs(PAIR, "[1]")
    ),
    "NaN": Broken("sts:pairs.jsonl", ("pairs.jsonl, line 1", "NaN"), pairs(PAIR | {"score": float("nan")})),
    "duplicate pairs": Broken(
        "sts:pairs.jsonl",
        ("pairs.jsonl, line 3: the id 'x' stands already in line 1",),
        pairs({**PAIR, "id": "x"}, {**PAIR, "id": "y"}, {**PAIR, "id": "x"}),
    ),
    "duplicate documents": Broken(
        "golden", ("golden/corpus.jsonl, line 3: the id 'd1' appears twice",), golden(corpus=CORPUS + CORPUS)
    ),
    "duplicate judgments": Broken(
        "golden",
        ("golden/qrels/test.tsv, line 4: query 'q1', document 'd1' is judged twice",),
        golden(qrels=QRELS + "q1\td1\t2\n"),
    ),
    "judged query that is not there": Broken(
        "golden",
        ("golden/qrels/test.tsv, line 4", "not in the queries file: 'q9'"),
        golden(qrels=QRELS + "q9\td1\t1\n"),
    ),
    "judged document that is not there": Broken(
        "golden",
        ("golden/qrels/test.tsv", "'d9' of query 'q1'", "not in the corpus", "unreachable: keep"),
        golden(qrels=QRELS + "q1\td9\t1\n"),
    ),
    "score in words": Broken(
        "sts:pairs.jsonl",
        ("pairs.jsonl, line 2: 'score' must be a number, not 'high'",),
        pairs(PAIR, {**PAIR, "score": "high"}),
    ),
    "score in words in a csv": Broken(
        "sts:pairs.csv",
        ("pairs.csv, line 2: 'score' must be a number, not 'high'",),
        {"pairs.csv": "sentence1,sentence2,score\na,b,high\n"},
    ),
    "half a grade": Broken(
        "golden",
        (
            "golden/qrels/test.tsv, line 2: relevance must be a whole number",
            "not '0.5'",
        ),
        golden(qrels="query-id\tcorpus-id\tscore\nq1\td1\t0.5\n"),
    ),
    "endless score": Broken(
        "sts:pairs.jsonl", ("pairs.jsonl, line 1: 'score' must be a finite number",), pairs({**PAIR, "score": "inf"})
    ),
    "number for a text": Broken(
        "sts:pairs.jsonl", ("pairs.jsonl, line 1: 'sentence2' must be text, not 5",), pairs({**PAIR, "sentence2": 5})
    ),
    "empty file": Broken("sts:pairs.jsonl", ("pairs.jsonl: the file holds no rows",), {"pairs.jsonl": ""}),
    "blank lines": Broken("sts:pairs.jsonl", ("pairs.jsonl: the file holds no rows",), {"pairs.jsonl": "\n \n"}),
    "empty corpus": Broken("golden", ("golden/corpus.jsonl: the file holds no rows",), golden(corpus="\n")),
    "header only": Broken(
        "golden",
        ("golden/qrels/test.tsv: the file holds no rows",),
        golden(qrels="query-id\tcorpus-id\tscore\n"),
    ),
    "no queries file": Broken(
        "golden", ("golden: there is no queries.jsonl or queries.jsonl.gz in this folder",), golden(queries="")
    ),
    "no such split": Broken(
        "golden,split=dev",
        ("golden/qrels/dev.tsv: no such file, so there is no split 'dev'", "Splits there: test"),
        golden(),
    ),
    "no such file": Broken("sts:pairs.jsonl", ("pairs.jsonl: no such file",)),
    "a folder for a file": Broken("sts:golden", ("golden: is a folder; a file is needed here",), golden()),
    "an ending that nobody knows": Broken(
        "sts:pairs.txt",
        ("pairs.txt: unknown kind of file", ".jsonl, .csv, .tsv or .parquet"),
        {"pairs.txt": "a b 1\n"},
    ),
    "not UTF-8": Broken(
        "sts:pairs.jsonl", ("pairs.jsonl, line 1: not UTF-8 text",), {"pairs.jsonl": b'{"sentence1": "\xff"}\n'}
    ),
    "half a gzip file": Broken(
        "sts:pairs.jsonl.gz",
        ("pairs.jsonl.gz: not a whole gzip file",),
        {"pairs.jsonl.gz": gzip.compress(jsonl(*[PAIR] * 50).encode())[:-10]},
    ),
    "no parquet": Broken(
        "sts:pairs.parquet",
        ("pairs.parquet: not a readable parquet file",),
        {"pairs.parquet": b"PAR1 no PAR1"},
    ),
    "a field too many": Broken(
        "sts:pairs.csv",
        ("pairs.csv, line 2: 4 fields, but the header has 3",),
        {"pairs.csv": "sentence1,sentence2,score\na,b,1,2\n"},
    ),
}
"""Found while a step runs: recorded, exit code 3."""

EARLY = {
    "unknown task": Case(
        2, ("run", "-m", "hashing", "-t", "demo-dcs"), ("task 'demo-dcs'", "Did you mean 'demo-docs'")
    ),
    "unknown task with nothing near": Case(2, ("run", "-m", "hashing", "-t", "zzz"), ("task 'zzz'", "Known: ADI")),
    "columns that tell nothing": Case(
        2,
        ("run", "-m", "hashing", "-t", "odd.jsonl"),
        ("odd.jsonl", "'left', 'right'", "sts:odd.jsonl"),
        {"odd.jsonl": jsonl({"left": "a", "right": "b"})},
    ),
    "unknown option of a task": Case(
        2, ("run", "-m", "hashing", "-t", "demo-docs,dept=5"), ("'demo-docs'", "dept: unknown key", "'depth'")
    ),
    "unknown value of an option of a task": Case(
        2, ("run", "-m", "hashing", "-t", "demo-docs,ties=random"), ("'demo-docs'", "ties", "'random'", "'average'")
    ),
    "metric of another type of task": Case(
        2,
        ("run", "-m", "hashing", "-t", "demo-pairs,main_score=ndcg_at_10"),
        ("demo-pairs", "'ndcg_at_10'"),
    ),
    "unknown option of a model": Case(
        2, ("run", "-m", "hashing,dimm=64", "-t", "demo-pairs"), ("dimm: unknown key", "'dim'")
    ),
    "wrong value of a model": Case(
        2, ("run", "-m", "hashing,dim=3", "-t", "demo-pairs"), ("dim must be a whole number from 8 to 65536, not 3",)
    ),
    "unknown device": Case(2, (*FINE, "--device", "gpu7"), ("device must be", "'gpu7'")),
    "unknown model folder": Case(
        3, ("run", "-m", "./none", "-t", "demo-pairs"), ("Model folder './none'", "not exist")
    ),
    "unknown model of the hub": Case(
        3,
        ("run", "-m", "no/such-model", "-t", "demo-pairs"),
        ("Model 'no/such-model'", "HF_HUB_OFFLINE", "Give a folder, or 'demo'"),
    ),
    "a file for a model": Case(
        3,
        ("run", "-m", "./model.bin", "-t", "demo-pairs"),
        ("'./model.bin' is a file", "config.json"),
        {"model.bin": "x"},
    ),
    "an empty folder for a model": Case(
        3, ("run", "-m", "./model", "-t", "demo-pairs"), ("model", "holds no model"), {"model/README.md": "x"}
    ),
    "two tasks of one name": Case(
        2,
        ("run", "-m", "hashing", "-t", "sts:pairs.jsonl", "-t", "sts:pairs.jsonl"),
        ("Two tasks are called 'pairs'", ",name="),
        pairs(PAIR),
    ),
    "one task twice": Case(
        2,
        (*FINE, "-t", "demo-pairs"),
        ("Two tasks are called 'demo-pairs'",),
    ),
    "data of the catalogue without a folder": Case(
        3,
        ("run", "-m", "hashing", "-t", "STS12"),
        ("'STS12'", "--data DIR", "DIR/sts/STS12/test.jsonl.gz"),
    ),
    "negative resamples": Case(2, (*FINE, "--resamples", "-1"), ("resamples must be 0 or at least 100, not -1",)),
    "too few resamples": Case(2, (*FINE, "--resamples", "10"), ("resamples must be 0 or at least 100, not 10",)),
    "nothing to do": Case(2, ("run",), ("-m MODEL", "embeval init")),
    "a model and nothing to do": Case(2, ("run", "-m", "hashing"), ("-t TASK", "embeval init")),
    "missing evaluation file": Case(2, ("run", "-c", "none.yaml"), ("none.yaml: no such file", "embeval init")),
    "a folder for an evaluation file": Case(
        2, ("run", "-c", "folder"), ("folder: ", "can't be read"), {"folder/x": ""}
    ),
    "unknown key": Case(
        2,
        ("run",),
        ("embeval.yaml, line 4: runtime.batchtokens: unknown key", "'batch_tokens'"),
        {"embeval.yaml": "models: [hashing]\ntasks: [demo-pairs]\nruntime:\n  batchtokens: 5\n"},
    ),
    "unknown key of a task": Case(
        2,
        ("run", "-c", "my.yaml"),
        ("my.yaml, line 6", "dept: unknown key", "'depth'"),
        {"my.yaml": "models:\n  - hashing\ntasks:\n  - demo-pairs\n  - name: demo-docs\n    dept: 5\n"},
    ),
    "broken YAML": Case(
        2, ("run",), ("embeval.yaml, line 2: not valid YAML",), {"embeval.yaml": "models: [hashing]\n\ttasks: x\n"}
    ),
    "a name for a list": Case(
        2, ("run",), ("embeval.yaml, line 1: models must be a list",), {"embeval.yaml": "models: demo\n"}
    ),
    "a key that is no text": Case(
        2, ("run",), ("embeval.yaml, line 1", "unknown key"), {"embeval.yaml": "~: 1\nmodels: [hashing]\n"}
    ),
    "an empty evaluation file": Case(2, ("run",), ("embeval.yaml", "'models' and 'tasks'"), {"embeval.yaml": ""}),
    "an evaluation file without tasks": Case(
        2, ("run",), ("no tasks to evaluate", "embeval.yaml"), {"embeval.yaml": "models: [hashing]\n"}
    ),
    "unknown metric": Case(2, ("leaderboard", "show", "--metric", "ndgc_at_10"), ("'ndgc_at_10'", "'ndcg_at_10'")),
    "no results": Case(3, ("leaderboard", "show"), ("no results to show in results", "embeval run")),
    "no such result": Case(3, ("results", "show", "x"), ("No stored result fits", "embeval results list")),
    "a result that is none": Case(
        3, ("results", "show", "x.json"), ("x.json", "not a result of schema version 1"), {"x.json": "{}"}
    ),
    "a result that is broken": Case(3, ("results", "show", "x.json"), ("x.json: not valid JSON",), {"x.json": "{"}),
    "a broken result among the results": Case(
        3,
        ("leaderboard", "show"),
        ("results/m/r/d/t/test.all.0.json: not valid JSON",),
        {"results/m/r/d/t/test.all.0.json": ""},
    ),
    "model to show that is not there": Case(3, ("models", "show", "./none"), ("'./none' does not exist",)),
    "task to show that is not there": Case(2, ("tasks", "show", "scifat"), ("'scifat'", "'SciFact'")),
    "file of a task to show that is broken": Case(
        3, ("tasks", "show", "sts:pairs.jsonl"), ("pairs.jsonl, line 1: not valid JSON",), pairs("{")
    ),
    "evaluation file that is there": Case(2, ("init",), ("embeval.yaml", "--force"), {"embeval.yaml": "mine"}),
}
"""Found before any step runs, or by another verb than run."""

STORE = {
    "results folder that is a file": Case(
        3, (*FINE, "--results", "file"), ("Can't write file", "is a file, not a folder"), {"file": "in the way"}
    ),
    "results folder below a file": Case(
        3,
        (*FINE, "--results", "file/below"),
        ("Can't write file/below", "is a file, not a folder"),
        {"file": "in the way"},
    ),
    "results folder below a file, for the record of a failure": Case(
        3,
        (*STS, "--results", "file/below"),
        ("Can't write file/below", "is a file, not a folder"),
        {"file": "in the way", "pairs.jsonl": ""},
    ),
}
"""Results that can't be written."""

PARSER = {
    "unknown option": Case(2, (*FINE, "--resample", "5"), ("No such option", "--resamples")),
    "resamples in words": Case(2, (*FINE, "--resamples", "many"), ("--resamples", "many")),
    "negative seed": Case(2, (*FINE, "--seed", "-1"), ("--seed", "-1", "0")),
    "no threads": Case(2, (*FINE, "--threads", "0"), ("--threads", "0", "1")),
    "no tokens": Case(2, (*FINE, "--batch-tokens", "0"), ("--batch-tokens", "0", "1")),
    "unknown format": Case(
        2, ("leaderboard", "show", "--format", "html"), ("): 'html' is not one of 'table', 'markdown'.",)
    ),
    "unknown schema": Case(2, ("schema", "yaml"), ("yaml", "result", "config")),
    "no schema": Case(2, ("schema",), ("what", "result", "config")),
    "an argument too many": Case(2, ("run", "demo-docs"), ("demo-docs", "embeval run")),
    "unknown verb": Case(2, ("evaluate",), ("No such command 'evaluate'", "embeval")),
}
"""Found by the parser of the command line."""


def write(folder: Path, files: Mapping[str, str | bytes]) -> None:
    """Files below a folder."""
    for name, content in files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content if isinstance(content, bytes) else content.encode())


def attempt(case: Case, folder: Path) -> Done:
    """The command in a folder with its files."""
    write(folder, case.files)
    quiet = ["--quiet"] if case.words[0] == "run" else []
    return embeval(*case.words, *quiet, cwd=folder)


def explains(done: Done, case: Case) -> None:
    """Exit code, one to three lines on stderr that hold what they must, nothing on stdout."""
    assert done.code == case.code, done.err
    assert "Traceback" not in done.err
    for part in case.says:
        assert part in done.err
    assert done.out == ""
    lines = done.err.splitlines()
    assert 1 <= len(lines) <= 3, done.err
    assert all(len(line) <= 320 for line in lines)
    assert not any(character in done.err for character in "╭│╰")


def files_below(folder: Path) -> list[str]:
    """Names of all files below a folder."""
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


@dataclass(frozen=True)
class Attempts:
    """All broken tasks in one run."""

    folder: Path
    done: Done
    steps: Mapping[str, Any]
    """Name of the case -> what became of its step."""


@pytest.fixture(scope="module")
def attempts(tmp_path_factory: pytest.TempPathFactory) -> Attempts:
    """One process instead of thirty; each case has a folder and a task name of its own, and a good task comes last."""
    folder = tmp_path_factory.mktemp("bad")
    write(folder, pairs(PAIR, PAIR, PAIR))
    words = []
    for number, case in enumerate(DATA.values()):
        write(folder / str(number), case.files)
        kind, colon, path = case.task.rpartition(":")
        words += ["-t", f"{kind}{colon}{number}/{path},name=case-{number}"]
    done = embeval("run", "-m", "hashing", *words, "-t", "sts:pairs.jsonl", "--json", "--quiet", cwd=folder)
    steps = dict(zip([*DATA, "good"], done.json["steps"], strict=True))
    return Attempts(folder, done, steps)


@pytest.mark.parametrize("name", list(DATA))
def test_bad_data(attempts: Attempts, name: str) -> None:
    """A message with file and line, on stderr and as the record of the failure, which is all that is written."""
    number, case = list(DATA).index(name), DATA[name]
    step = attempts.steps[name]
    assert (step["status"], step["files"]) == ("failed", [])
    assert step["error"]["type"] == "DataError"
    message = step["error"]["message"]
    for part in case.says:
        assert part in message.replace(f"{number}/", "")
    assert len(message.splitlines()) <= 2
    assert f"Failed: {message}\n" in attempts.done.err
    (folder,) = (attempts.folder / "results").glob(f"*/*/*/case-{number}")
    (record,) = folder.iterdir()
    assert record.name == f"{'dev' if 'split=dev' in case.task else 'test'}.all.error.json"
    assert json.loads(record.read_bytes())["error"] == step["error"]


def test_bad_data_costs_nothing_but_its_own_step(attempts: Attempts) -> None:
    """The task after thirty broken ones is evaluated; stderr holds nothing but messages, and the exit code is 3."""
    assert attempts.done.code == 3
    assert attempts.steps["good"]["status"] == "done"
    assert "Traceback" not in attempts.done.err
    messages = [step["error"]["message"] for name, step in attempts.steps.items() if name != "good"]
    assert attempts.done.err == "".join(f"Failed: {message}\n" for message in messages)


def test_data_of_the_catalogue_that_is_not_there(tmp_path: Path) -> None:
    """The path that was looked for, one line, exit code 3, and a record of the failure."""
    words = ("run", "-m", "hashing", "-t", "STS12", "--data", "none")
    done = attempt(Case(3, words, ()), tmp_path)
    assert (done.code, done.out) == (3, "")
    assert done.err == "Failed: none/sts/STS12/test.jsonl.gz: no such file.\n"
    assert files_below(tmp_path) == ["test.all.error.json"]


@pytest.mark.parametrize("name", list(EARLY))
def test_bad_words_settings_and_models(tmp_path: Path, name: str) -> None:
    """A message that names the mistake and the way out; no results folder is made."""
    case = EARLY[name]
    explains(attempt(case, tmp_path), case)
    assert not (tmp_path / "results").exists() or any(file.startswith("results/") for file in case.files)
    assert files_below(tmp_path) == sorted(Path(file).name for file in case.files)


@pytest.mark.parametrize("name", list(STORE))
def test_results_that_cannot_be_written(tmp_path: Path, name: str) -> None:
    """Exit code 3 with the path; what was in the way is untouched, and nothing is written elsewhere."""
    case = STORE[name]
    explains(attempt(case, tmp_path), case)
    assert files_below(tmp_path) == sorted(case.files)
    assert (tmp_path / "file").read_text(encoding="utf-8") == "in the way"


@pytest.mark.parametrize("name", list(PARSER))
def test_words_that_the_parser_refuses(tmp_path: Path, name: str) -> None:
    """The same form as any other mistake: the option, the value and what is possible, in at most three lines."""
    case = PARSER[name]
    explains(attempt(case, tmp_path), case)
    assert list(tmp_path.iterdir()) == []
