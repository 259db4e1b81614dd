"""What mteb 2.26 lists of models. all-MiniLM-L6-v2 has 22,713,216 parameters, 384 dimensions and 256 tokens."""

from __future__ import annotations

from typing import Any

import pytest

from embeval.core.facts import ModelFacts
from embeval.core.specs import ModelSpec
from embeval.mteb_bridge import model_facts

MINILM = "sentence-transformers/all-MiniLM-L6-v2"
COMMIT = "8b3219a92973c328a8e22fadcfa821b5dc75636a"
LISTED = ModelFacts(
    parameters=22_713_216,
    dimensions=384,
    max_tokens=256,
    weight_bytes=87 * 2**20,
    languages=("eng-Latn",),
    license="apache-2.0",
)


def test_a_model_that_is_listed() -> None:
    """All that is known of it; its 4 bytes a parameter agree with mteb's memory to the MiB."""
    found = model_facts.of(ModelSpec(name=MINILM, revision=COMMIT))
    assert found == LISTED
    assert abs(4 * 22_713_216 - 87 * 2**20) < 2**20


def test_another_way_of_running_it_tells_nothing_of_its_vectors() -> None:
    """Parameters, languages and licence stay."""
    found = model_facts.of(ModelSpec(name=MINILM, revision=COMMIT, args={"embed_dim": 64}))
    assert found == ModelFacts(parameters=22_713_216, languages=("eng-Latn",), license="apache-2.0")


@pytest.mark.parametrize("spec", [("nobody/knows-it", COMMIT), (MINILM, "sha256:" + "ab" * 32)])
def test_one_that_is_not(spec: tuple[str, str]) -> None:
    """Nor a folder of this machine, whatever it is called."""
    assert model_facts.of(ModelSpec(name=spec[0], revision=spec[1])) == ModelFacts()


@pytest.mark.parametrize(
    ("meta", "expected"),
    [
        ({"embed_dim": [64, 768, 256]}, ModelFacts(dimensions=768)),
        ({"max_tokens": 512.0, "n_parameters": 5}, ModelFacts(parameters=5, max_tokens=512)),
        ({"max_tokens": float("inf"), "n_parameters": -1, "embed_dim": True}, ModelFacts()),
        ({"memory_usage_mb": 0.5}, ModelFacts(weight_bytes=2**19)),
        ({"languages": None, "license": None, "embed_dim": "384"}, ModelFacts()),
        ({"languages": "eng", "license": ["mit"]}, ModelFacts()),
    ],
)
def test_what_a_file_may_hold(meta: dict[str, Any], expected: ModelFacts) -> None:
    """Of a range of dimensions the largest; what is of another kind than mteb writes is left out."""
    assert model_facts.declared(meta) == expected
