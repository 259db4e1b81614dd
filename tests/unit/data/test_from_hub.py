"""Golden sets from data sets of the hub: a local folder that ``datasets`` loads stands for one."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest

from embeval.data import from_hub
from embeval.data.golden import GoldenSet
from embeval.errors import ConfigError, DataError
from tests.support.data import write_jsonl

CARD = """---
configs:
- {config_name: corpus, data_files: [{split: corpus, path: corpus.jsonl}]}
- {config_name: queries, data_files: [{split: queries, path: queries.jsonl}]}
- {config_name: default, data_files: [{split: dev, path: qrels/dev.jsonl}, {split: test, path: qrels/test.jsonl}]}
---
"""


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(import_module("datasets").config, "HF_DATASETS_CACHE", tmp_path / "cache")


@pytest.fixture
def retrieval(tmp_path: Path) -> Path:
    """A data set laid out as mteb 2.26 lays retrieval sets out."""
    folder = tmp_path / "set"
    write_jsonl(
        folder / "corpus.jsonl",
        [{"_id": "d1", "title": "T", "text": "one"}, {"_id": "d2", "title": None, "text": "two"}],
    )
    write_jsonl(folder / "queries.jsonl", [{"_id": f"q{number}", "text": f"{number}?"} for number in (1, 2, 3)])
    judged = {"query-id": "q1", "corpus-id": "d1", "score": 1}
    write_jsonl(folder / "qrels" / "test.jsonl", [judged, {**judged, "query-id": "q2", "score": 0}])
    write_jsonl(folder / "qrels" / "dev.jsonl", [{**judged, "query-id": "q3", "corpus-id": "d2"}])
    (folder / "README.md").write_text(CARD, encoding="utf-8")
    return folder


def made(word: str) -> GoldenSet:
    """The set of a word."""
    return from_hub.read(word, given={}, split="test")


def test_a_retrieval_set(retrieval: Path) -> None:
    """Rows of three configurations, and only the queries of the split."""
    golden = made(f"hf:{retrieval}")
    assert golden.documents == [
        {"_id": "d1", "title": "T", "text": "one"},
        {"_id": "d2", "title": "", "text": "two"},
    ]
    assert golden.queries == [{"_id": "q1", "text": "1?"}, {"_id": "q2", "text": "2?"}]
    assert golden.qrels == {"test": {"q1": {"d1": 1}, "q2": {"d1": 0}}}
    assert golden.source == "set"
    assert "qrels/test.jsonl" in [each.name for each in golden.inputs]
    dev = made(f"hf:{retrieval},split=dev")
    assert dev.qrels == {"test": {"q3": {"d2": 1}}}
    assert (dev.options["hub_split"], dev.options["config"]) == ("dev", "default")


def test_pairs(tmp_path: Path) -> None:
    """A set of one configuration is one of pairs."""
    write_jsonl(tmp_path / "pairs" / "test.jsonl", [{"question": "a?", "context": "A"}])
    golden = made(f"hf:{tmp_path / 'pairs'}")
    assert [row["text"] for row in golden.documents] == ["A"]
    assert golden.kind == "hub"


def test_what_is_not_there(retrieval: Path) -> None:
    """Splits and configurations are named; a document that is missing is."""
    with pytest.raises(DataError, match=r"no split 'tset' in 'default'\. Splits: dev, test\. Did you mean 'test'\?"):
        made(f"hf:{retrieval},split=tset")
    with pytest.raises(DataError, match=r"qrels: no 'nope' there\. Say config=, one of: default"):
        made(f"hf:{retrieval},config=nope")
    write_jsonl(retrieval / "qrels" / "test.jsonl", [{"query-id": "q1", "corpus-id": "d9", "score": 1}])
    with pytest.raises(DataError, match="1 relevant document not in the corpus, which no model can find: 'd9'"):
        made(f"hf:{retrieval}")


def test_without_a_hub() -> None:
    """The reason is told, and what would work."""
    with pytest.raises(DataError, match=r"hf:no/such can't be loaded \(.*\)\.\nIs the name right, and can the hub be"):
        made("hf:no/such")


@pytest.mark.parametrize("word", ["hf:", "hf:a,b=c", "hf:a,split=", "hf:a,split"])
def test_words_that_say_nothing(word: str) -> None:
    """Unknown settings, and ones without a value."""
    with pytest.raises(ConfigError, match=r"hf:.* (takes config, split, revision|needs the name)"):
        from_hub.parse(word)
