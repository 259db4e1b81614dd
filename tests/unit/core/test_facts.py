"""Facts of a model, filled up from a second source."""

from __future__ import annotations

from embeval.core.facts import ModelFacts


def test_what_is_missing_is_filled_up_and_nothing_else() -> None:
    """A 0 is known: a system without parameters has none."""
    card = ModelFacts(parameters=0, dimensions=384, languages=("en",))
    listed = ModelFacts(parameters=7, dimensions=768, max_tokens=512, languages=("deu-Latn",), license="mit")
    assert card.completed(listed) == ModelFacts(
        parameters=0, dimensions=384, max_tokens=512, languages=("en",), license="mit"
    )
    assert ModelFacts().completed(ModelFacts()) == ModelFacts()
