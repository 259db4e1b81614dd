"""What a model card declares."""

from __future__ import annotations

from pathlib import Path

import pytest

from embeval.encoders import card


@pytest.mark.parametrize(
    ("text", "languages"),
    [
        ("---\nlanguage: en\nlicense: mit\n---\n# Model\n", ("en",)),
        ("---\nlanguage: [en, de]\n---\n", ("en", "de")),
        ("---\nlanguage:\n- en\n- de\nlicense: mit\n---\n", ("en", "de")),
        ("---\nlanguage:\n  - multilingual\n  - 'zh'\n---\n", ("multilingual", "zh")),
        ('---\ntags:\n- x\nlanguage: "pt" # two\n---\n', ("pt",)),
        ("---\r\nlanguage:\r\n- no\r\n- en\r\n---\r\n", ("no", "en")),
        ("---\nlicense: mit\n---\nlanguage: en\n", ()),
        ("---\nlanguage:\n---\n", ()),
        ("---\nlanguage: {a: b}\n---\n", ()),
        ("---\nlanguage: [en\n---\n", ()),
        ("---\n- language\n---\n", ()),
        ("# Model\n\nlanguage: en\n", ()),
        ("", ()),
    ],
)
def test_languages_of_a_card(tmp_path: Path, text: str, languages: tuple[str, ...]) -> None:
    """From the front matter in each form that the hub takes, "no" being Norwegian; nowhere else."""
    file = tmp_path / "README.md"
    file.write_bytes(text.encode())
    assert card.languages(file) == languages


def test_no_card_no_languages(tmp_path: Path) -> None:
    """Also where it is a folder."""
    assert card.languages(tmp_path / "README.md") == ()
    assert card.languages(tmp_path) == ()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("---\nlicense: mit\n---\n", "mit"),
        ("---\nlicense: other\nlicense_name: own-terms\n---\n", "own-terms"),
        ("---\nlicense: other\n---\n", "other"),
        ("---\nlicense: [mit]\n---\n", None),
        ("license: mit\n", None),
    ],
)
def test_licence_of_a_card(tmp_path: Path, text: str, expected: str | None) -> None:
    """By its own name where the hub knows none for it."""
    file = tmp_path / "README.md"
    file.write_text(text, encoding="utf-8")
    assert card.license_of(file) == expected
