"""The row of BM25 that every run on retrieval tasks has."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.commands import embeval

SHOWN = {"EMBEVAL_BM25": "true"}
RUN = ("run", "-m", "hashing", "-t", "demo-docs", "-t", "demo-pairs", "--resamples", "0", "--json")


def models_by_task(cwd: Path, *words: str, **env: str) -> list[tuple[str, str]]:
    """(task, model) of each result, in order."""
    done = embeval(*RUN, *words, cwd=cwd, env={**SHOWN, **env})
    assert done.code == 0, done.err
    whole = [each for each in done.json["results"] if each["subset"] == "all"]
    return [(each["task"]["name"], each["model"]["name"]) for each in whole]


def test_bm25_comes_last_and_only_where_it_fits(tmp_path: Path) -> None:
    """One row for the retrieval task, none for sentence pairs, and none twice."""
    plain = [("demo-docs", "hashing"), ("demo-pairs", "hashing")]
    assert models_by_task(tmp_path) == [*plain, ("demo-docs", "bm25")]
    assert models_by_task(tmp_path, "--no-bm25") == plain
    assert models_by_task(tmp_path, EMBEVAL_BM25="0") == plain
    assert models_by_task(tmp_path, "--bm25", EMBEVAL_BM25="0") == [*plain, ("demo-docs", "bm25")]


def test_bm25_with_settings_of_ones_own_stands_alone(tmp_path: Path) -> None:
    """Who names a BM25 of their own gets that one, and not another beside it."""
    done = embeval("run", "-m", "bm25,k1=0.9", "-t", "demo-docs", "--resamples", "0", "--json", cwd=tmp_path, env=SHOWN)
    assert [each["model"]["args"] for each in done.json["results"]] == [{"k1": 0.9}]


def test_the_file_says_it_too(tmp_path: Path) -> None:
    """``bm25: false`` in embeval.yaml; words win over it."""
    text = "models: [hashing]\ntasks: [demo-docs]\nbm25: false\nstatistics: {resamples: 0}\n"
    (tmp_path / "embeval.yaml").write_text(text, encoding="utf-8")
    for words, n in (((), 1), (("--bm25",), 2)):
        done = embeval("run", "--json", *words, cwd=tmp_path, env={"EMBEVAL_BM25": ""})
        assert len(done.json["results"]) == n, done.err


@pytest.mark.parametrize("model", ["bm25", "hybrid:hashing+bm25"])
def test_what_ranks_documents_can_not_score_pairs(tmp_path: Path, model: str) -> None:
    """A recorded failure that says which tasks it fits."""
    done = embeval("run", "-m", model, "-t", "demo-pairs", cwd=tmp_path)
    assert done.code == 3
    assert "gives no vectors" in done.err
    assert "It fits tasks of type retrieval." in done.err
