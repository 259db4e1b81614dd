"""Which prompt is used: the order of names, and what wins."""

from __future__ import annotations

import itertools

import pytest

from embeval.core.protocols import TaskRef
from embeval.core.specs import Role
from embeval.encoders.prompts import NO_PROMPT, Prompt, resolve

TASK = TaskRef(name="SciFact", type="retrieval")
ORDER = ["SciFact-query", "SciFact", "retrieval-query", "retrieval", "query"]


@pytest.mark.parametrize(("first", "second"), list(itertools.pairwise(ORDER)))
def test_the_more_specific_name_wins(first: str, second: str) -> None:
    """Task and role, task, type and role, type, role: the order of mteb 2.26."""
    declared = {second: "second", first: "first"}
    assert resolve(Role.QUERY, TASK, own={}, declared=declared) == Prompt("first", first)


def test_own_prompts_win_over_declared_ones() -> None:
    """Even where the declared name is more specific; and an empty text of one's own means none."""
    declared = {"SciFact-query": "declared"}
    assert resolve(Role.QUERY, TASK, own={"query": "own"}, declared=declared) == Prompt("own", "query")
    assert resolve(Role.QUERY, TASK, own={"query": ""}, declared=declared) == Prompt("", "query")


@pytest.mark.parametrize("name", ["document", "passage", "corpus"])
def test_documents_have_three_names(name: str) -> None:
    """As in sentence-transformers 6.2 ``encode_document``."""
    assert resolve(Role.DOCUMENT, TASK, own={}, declared={name: "p: "}) == Prompt("p: ", name)


def test_default_prompt_is_for_texts_without_a_role() -> None:
    """It must not get into documents; queries and documents without a prompt have none."""
    declared = {"query": "q: "}
    assert resolve(Role.TEXT, TASK, own={}, declared=declared, default_name="query") == Prompt("q: ", "query")
    assert resolve(Role.DOCUMENT, TASK, own={}, declared=declared, default_name="query") == NO_PROMPT
    assert resolve(Role.TEXT, None, own={}, declared=declared) == NO_PROMPT


@pytest.mark.parametrize("name", ["Query", "RETRIEVAL", "Retrieval-query", "scifact"])
def test_upper_and_lower_case_are_alike(name: str) -> None:
    """mteb's types are STS and Retrieval, and models declare prompts by these; the name told is the declared one."""
    assert resolve(Role.QUERY, TASK, own={}, declared={name: "p: "}) == Prompt("p: ", name)
    assert resolve(Role.QUERY, TASK, own={name: "p: "}, declared={"query": "q: "}) == Prompt("p: ", name)


def test_prompting_none_finds_nothing() -> None:
    """Neither one's own prompt nor the model's, nor its default."""
    for role in Role:
        found = resolve(
            role, TASK, own={"query": "own"}, declared={"SciFact": "x", "d": "y"}, default_name="d", prompting="none"
        )
        assert found == NO_PROMPT


@pytest.mark.parametrize("document", ["document", "passage", "corpus"])
def test_prompting_swap_gives_each_side_the_prompt_of_the_other(document: str) -> None:
    """Under any name that a model declares for documents; own prompts and those of tasks too; text is neither."""
    declared = {"query": "q: ", document: "d: ", "text": "t: "}
    swapped = [resolve(role, TASK, own={}, declared=declared, prompting="swap").text for role in Role]
    assert swapped == ["d: ", "q: ", ""]
    own = {"query": "Q", "SciFact-query": "S"}
    found = [resolve(role, TASK, own=own, declared=declared, prompting="swap").text for role in Role]
    assert found == ["d: ", "S", ""]
