"""No encoder is ever given a perplexity: only a pseudo-perplexity, whatever prints it."""

from __future__ import annotations

import re

import pytest

from embeval.metrics import FAMILIES
from embeval.tasks import TASK_TYPES, catalog

ALONE = re.compile(r"(?<![a-z])(perplexity|ppl)(?![a-z])")
"""The word, or its short form, where no ``pseudo-`` stands before it and no ``p`` belongs to it."""


def told(text: str) -> bool:
    """Whether a text speaks of perplexity without saying that it is a pseudo-perplexity."""
    return ALONE.search(re.sub(r"pseudo[-_ ]perplexity", "", text.casefold())) is not None


def test_the_rule_tells_the_two_apart() -> None:
    """By examples of both."""
    wrong = ["perplexity", "Perplexity of texts", "word_perplexity", "ppl", "PPL_original", "word_ppl"]
    right = ["pseudo-perplexity", "pppl_original", "word_pppl_within_word_l2r", "pseudo_perplexity", "PPPL"]
    assert [told(text) for text in wrong + right] == [True] * len(wrong) + [False] * len(right)


@pytest.mark.parametrize("family", FAMILIES.names())
def test_names_of_metrics(family: str) -> None:
    """Of every family; tables head their columns by these names."""
    assert not [name for name in FAMILIES.get(family).names() if told(name)]


@pytest.mark.parametrize("name", TASK_TYPES.names())
def test_types_of_tasks(name: str) -> None:
    """Name, summary and main score."""
    task_type = TASK_TYPES.get(name)
    assert not [text for text in (name, task_type.summary, task_type.main_score) if told(text)]


def test_tasks_of_the_catalogue() -> None:
    """Names, main scores and categories."""
    for spec in catalog.specs():
        assert not [text for text in (spec.name, spec.main_score or "", spec.category or "") if told(text)]
