"""What a reader of a result is told about prompts."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest

from embeval.core.embeddings import Alike, TextCounts
from embeval.core.protocols import EncoderInfo
from embeval.core.specs import ModelSpec
from embeval.tasks import _counts
from tests.support.doubles import TableEncoder


@dataclass
class Prompted(TableEncoder):
    """An encoder whose spec has prompts of its own."""

    own: dict[str, str] = field(default_factory=dict)

    @property
    def spec(self) -> ModelSpec:
        return ModelSpec(name="table", revision="builtin:table", prompts=self.own)


UNUSED = "The prompts given (qury) fit no role, name or type of this task and were not used."
DECLARED = "The model declares prompts (query, search), and this run used none."


@pytest.mark.parametrize(
    ("own", "declared", "used", "told"),
    [
        ({}, {}, ["", ""], []),
        ({}, {"query": "q: ", "search": "s: "}, ["q: ", ""], []),
        ({}, {"query": "q: ", "search": "s: "}, ["", ""], [DECLARED]),
        ({"qury": "q: "}, {}, ["", ""], [UNUSED]),
        ({"qury": "q: "}, {"query": "d: "}, ["d: ", ""], [UNUSED]),
        ({"query": "q: "}, {}, ["q: ", ""], []),
        ({"query": ""}, {"query": "d: "}, ["", ""], []),
    ],
    ids=["none", "declared, used", "declared, unused", "misspelt", "misspelt beside", "own", "own says none"],
)
def test_prompts_that_were_not_used_are_told(
    own: dict[str, str], declared: dict[str, str], used: list[str], told: list[str]
) -> None:
    """Declared by the model and not used, or given and fitting nothing; an empty prompt of one's own is a choice."""
    encoder = Prompted({"a": (1.0,)}, prompts=declared, own=own)
    assert _counts.warnings([], encoder=encoder, prompts_used=used) == told


@pytest.mark.parametrize(
    ("unknown", "told"),
    [(None, []), (0, []), (5, []), (6, ["The tokenizer does not know 6% of the tokens of the documents."])],
)
def test_unknown_tokens_are_told_above_one_in_twenty(unknown: int | None, told: list[str]) -> None:
    """A few rare characters are normal; a script that the model doesn't read is not."""
    counts = TextCounts(n_texts=9, tokens_kept=100, tokens_unknown=unknown)
    encoder = TableEncoder({"a": (1.0,)})
    assert _counts.warnings([("documents", counts, Alike())], encoder=encoder, prompts_used=[]) == told
    assert _counts.texts("documents", counts)["documents_tokens_unknown"] == unknown


def test_remarks_on_the_model_come_first() -> None:
    """What was odd when it was loaded is said in every result of it."""

    class Odd(TableEncoder):
        @property
        def info(self) -> EncoderInfo:
            return replace(super().info, remarks=("Something is odd.",))

    assert _counts.warnings([], encoder=Odd({"a": (1.0,)}), prompts_used=[]) == ["Something is odd."]
