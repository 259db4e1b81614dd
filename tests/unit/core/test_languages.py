"""Names of languages as one, held against mteb 2.26's own table of ISO 639-3 and the names of transformers' Whisper."""

from __future__ import annotations

import pytest

from embeval.core.languages import CODES, codes


@pytest.mark.parametrize(
    ("declared", "expected"),
    [
        (("en",), ("eng",)),
        (("eng-Latn", "deu-Latn"), ("deu", "eng")),
        (("zh-Hant", "zho-Hans", "zh_TW"), ("zho",)),
        (("EN", " de "), ("deu", "eng")),
        (("multilingual", "code"), ("code", "multilingual")),
        (("", "  "), ()),
        (("<b>",), ("<b>",)),
    ],
)
def test_codes(declared: tuple[str, ...], expected: tuple[str, ...]) -> None:
    """Each once and sorted; a word that is no code stays as it is."""
    assert codes(declared) == expected


def test_the_table_names_the_languages_of_other_tables() -> None:
    """Two letters by the name that Whisper has for them lead to the three letters that mteb has for that name.

    Left out are languages that the two call otherwise.
    """
    from mteb.languages.iso_mappings import ISO_TO_LANGUAGE
    from transformers.models.whisper.tokenization_whisper import LANGUAGES

    assert len(CODES) == len(set(CODES.values())) == 184
    named = {name.casefold(): code for code, name in ISO_TO_LANGUAGE.items()}
    compared = {two: named[name] for two, name in LANGUAGES.items() if name in named and two in CODES}
    assert len(compared) > 60
    assert {two: CODES[two] for two in compared} == compared
