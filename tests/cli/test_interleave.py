"""``embeval run --interleave`` as users meet it."""

from __future__ import annotations

from pathlib import Path

from tests.support.commands import here

TWO = ("-m", "hashing", "-m", "hashing,dim=64", "-m", "bm25")


def test_models_are_timed_in_turns(tmp_path: Path) -> None:
    """One session for all three, a line for each, and each once in the JSON; the second time nothing is left to do."""
    words = ("run", *TWO, "-t", "demo-docs,latency=5", "--interleave", "--resamples", "100", "--json")
    done = here(*words, cwd=tmp_path)
    assert done.code == 0, done.err
    assert done.err.count("Timed in turns: demo-docs · ") == 3
    assert [step["status"] for step in done.json["steps"]] == ["timed"] * 3
    sessions = {result["timings"]["session"] for result in done.json["results"]}
    assert len(sessions) == 1
    assert None not in sessions
    for result in done.json["results"]:
        assert result["scores"]["latency_p95_ms"]["n_items"] == 5
        assert result["scores"]["latency_p95_ms"]["value"] > 0
    again = here(*words, cwd=tmp_path, env={"EMBEVAL_INTERLEAVE": "1"})
    assert [step["status"] for step in again.json["steps"]] == ["skipped"] * 3
    assert again.json["results"] == done.json["results"]


def test_a_table_says_what_was_timed_in_turns(tmp_path: Path) -> None:
    """By the variable as well as by the option."""
    words = ("run", *TWO, "-t", "demo-docs,latency=1", "--resamples", "0")
    done = here(*words, cwd=tmp_path, env={"EMBEVAL_INTERLEAVE": "true"})
    assert done.code == 0, done.err
    assert done.out.count("timed in turns") == 3


def test_nothing_to_take_turns(tmp_path: Path) -> None:
    """One model, or a task without latency: told at once, exit code 2, and nothing is written."""
    for words, told in (
        (("-m", "hashing", "-t", "demo-docs,latency=5"), "Timing in turns needs two models, -m A -m B."),
        ((*TWO, "-t", "demo-docs"), "Timing in turns needs a task that is timed, as -t TASK,latency=200."),
    ):
        done = here("run", *words, "--interleave", cwd=tmp_path, env={"EMBEVAL_BM25": "true"})
        assert (done.code, done.out) == (2, "")
        assert told in done.err
        assert list(tmp_path.iterdir()) == []
