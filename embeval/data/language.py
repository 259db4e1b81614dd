"""The language of a text, by py3langid; offline, without a model to download."""

from __future__ import annotations

from functools import cache
from typing import Any

MIN_LETTERS = 20
"""Shorter texts are not told apart reliably."""
SURE = 0.9
"""Probability from which an answer is taken."""
UNKNOWN = ""


def language_of(text: str) -> str:
    """ISO 639-1 code of the language of a text; empty where it is too short or not clear."""
    if sum(map(str.isalpha, text)) < MIN_LETTERS:
        return UNKNOWN
    code, probability = _identifier().classify(text[:2000])
    return str(code) if probability >= SURE else UNKNOWN


@cache
def _identifier() -> Any:
    from py3langid import langid

    return langid.LanguageIdentifier.from_model_file(langid.MODEL_FILE, norm_probs=True)
