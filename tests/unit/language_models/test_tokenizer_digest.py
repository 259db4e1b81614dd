"""When two tokenizers are one: how texts are cut decides, and not how a library writes it down."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from embeval.language_models.tokenization import digest
from tests.support import tokenizers
from tests.support.models import edit_json, save_tokenizer


def pieces(folder: Path, text: str) -> list[str]:
    """A text as transformers cuts it with that folder."""
    from transformers import AutoTokenizer

    found: list[str] = AutoTokenizer.from_pretrained(folder).tokenize(text)
    return found


@pytest.fixture
def two(tmp_path: Path) -> tuple[Path, Path]:
    """Two folders with the same WordPiece tokenizer."""
    (first := tmp_path / "first").mkdir()
    save_tokenizer(first)
    return first, Path(shutil.copytree(first, tmp_path / "second"))


@pytest.mark.parametrize("whole", [True, False], ids=["tokenizer.json", "vocab.txt"])
def test_settings_that_change_tokens_change_the_digest(two: tuple[Path, Path], whole: bool) -> None:
    """``do_lower_case`` acts over tokenizer.json, as transformers 5.24 reads it: shown by the tokens themselves."""
    for folder in two:
        if not whole:
            (folder / "tokenizer.json").unlink()
    first, second = two
    assert digest(first) == digest(second)
    edit_json(second / "tokenizer_config.json", do_lower_case=False)
    assert pieces(first, "Backup") == ["backup"]
    assert pieces(second, "Backup") == ["[UNK]"]
    assert digest(first) != digest(second)


def test_settings_that_change_nothing_do_not(two: tuple[Path, Path]) -> None:
    """Limits, sides, the library's own notes, and values that say what goes without saying."""
    first, second = two
    edit_json(second / "tokenizer_config.json", model_max_length=99, padding_side="left", strip_accents=None)
    edit_json(second / "tokenizer_config.json", backend="other", split_by_punct=False)
    edit_json(second / "tokenizer.json", padding={"strategy": "BatchLongest"}, truncation={"max_length": 4})
    assert digest(first) == digest(second)


def test_older_and_newer_ways_to_write_merges_are_one(tmp_path: Path) -> None:
    """``"a b"`` is ``["a", "b"]``, and a switch that is off may be left out; another order of merges is another."""
    tokenizers.save_byte_level(tmp_path)
    file = tmp_path / "tokenizer.json"
    before = digest(tmp_path)
    model = json.loads(file.read_text(encoding="utf-8"))["model"]
    older = {key: value for key, value in model.items() if key not in ("byte_fallback", "ignore_merges")}
    older["merges"] = [" ".join(pair) for pair in model["merges"]]
    edit_json(file, model=older)
    assert digest(tmp_path) == before
    edit_json(file, model={**older, "merges": older["merges"][::-1]})
    assert digest(tmp_path) != before


@pytest.mark.parametrize("content", ["", "[1]", "{", "[" * 100_000])
def test_no_tokenizer_or_a_broken_one_has_none(tmp_path: Path, content: str) -> None:
    """None; whoever loads the model says what is wrong."""
    assert digest(tmp_path) is None
    (tmp_path / "tokenizer.json").write_text(content, encoding="utf-8")
    assert digest(tmp_path) is None


def test_a_word_more_is_another_tokenizer(two: tuple[Path, Path]) -> None:
    """In vocab.txt as well as in tokenizer.json."""
    first, second = two
    for folder in two:
        (folder / "tokenizer.json").unlink()
    with (second / "vocab.txt").open("a", encoding="utf-8") as file:
        file.write("more\n")
    assert digest(first) != digest(second)
