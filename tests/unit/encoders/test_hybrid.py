"""Hybrids: their parts, their settings, and what pins them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from embeval.core.protocols import Encoder, Hybrid, Ranker
from embeval.core.specs import ModelSpec, RuntimeOptions
from embeval.encoders import loading
from embeval.errors import ConfigError, ModelError
from tests.support.models import save_tiny_model


def spec(name: str = "hashing+bm25", **fields: Any) -> ModelSpec:
    """A hybrid as it is asked for."""
    return ModelSpec(name=name, backend="hybrid", **fields)


def load(name: str = "hashing+bm25", **fields: Any) -> Hybrid:
    """A hybrid, loaded."""
    system = loading.load_system(loading.resolve(spec(name, **fields)))
    assert isinstance(system, Hybrid)
    return system


def test_parts_are_loaded_in_their_order() -> None:
    """An encoder and a ranker; the info is that of the encoder wherever it stands, with the versions of both."""
    hybrid = load("bm25 + hashing:mine")
    bm25, hashing = hybrid.parts
    assert isinstance(bm25, Ranker)
    assert isinstance(hashing, Encoder)
    assert (bm25.spec.name, hashing.spec.name, hybrid.spec.name) == ("bm25", "mine", "bm25+mine")
    assert hybrid.info.dim == hashing.info.dim == 256
    assert hybrid.info.extra["part 2"] == "mine, builtin:1"
    assert "bm25s" in hybrid.info.extra
    assert (hybrid.method, hybrid.rrf_k, hybrid.weights) == ("rrf", 60, ())


def test_settings_go_where_they_can_act() -> None:
    """Those of vectors to the encoder, options to whichever part has them, and all into the digest of the whole."""
    hybrid = load(truncate_dim=16, prompts={"query": "q "}, args={"dim": 64, "k1": 0.9, "method": "weighted"})
    hashing, bm25 = hybrid.parts
    assert (hashing.spec.truncate_dim, dict(hashing.spec.prompts), dict(hashing.spec.args)) == (
        16,
        {"query": "q "},
        {"dim": 64},
    )
    assert hashing.info.dim == 16
    assert bm25.spec == replace(ModelSpec(name="bm25", backend="bm25", revision="builtin:1"), args={"k1": 0.9})
    assert hybrid.method == "weighted"
    plain = load().spec
    assert len({hybrid.spec.digest, plain.digest, load(args={"k1": 0.9}).spec.digest}) == 3
    assert load(args={"k1": 0.9}).spec.revision != plain.revision


@pytest.mark.parametrize(
    ("value", "weights"), [("0.7,0.3", (0.7, 0.3)), (0.25, (0.25, 0.75)), (1, (1.0, 0.0)), ("2, 1", (2.0, 1.0))]
)
def test_weights(value: object, weights: tuple[float, ...]) -> None:
    """One per part, or the first of two."""
    assert load(args={"weights": value}).weights == pytest.approx(weights)


@pytest.mark.parametrize(
    ("name", "fields", "message"),
    [
        ("hashing", {}, "at least two parts are needed"),
        ("hashing+", {}, "a part has no name"),
        ("hashing+hybrid:hashing", {}, "a hybrid can't be a part of another"),
        ("bm25+bm25", {}, "the part 'bm25' is named twice"),
        ("hashing+bm25", {"args": {"method": "sum"}}, "method must be rrf or weighted, not 'sum'"),
        ("hashing+bm25", {"args": {"rrf_k": -1}}, "rrf_k must be a whole number from 0"),
        ("hashing+bm25", {"args": {"rrf_k": 60.0}}, "rrf_k must be a whole number from 0"),
        ("hashing+bm25", {"args": {"rrf_k": 9, "method": "weighted"}}, "rrf_k is part of the method rrf"),
        ("hashing+bm25", {"args": {"weights": "1,2,3"}}, "weights must be 2 numbers from 0 .*, not '1,2,3'"),
        ("hashing+bm25", {"args": {"weights": 1.5}}, "weights must be 2 numbers .* or one from 0 to 1"),
        ("hashing+bm25", {"args": {"weights": "0,0"}}, "weights must be 2 numbers"),
        ("hashing+bm25", {"args": {"weights": "-1,2"}}, "weights must be 2 numbers"),
        ("hashing+bm25", {"args": {"weights": "nan,1"}}, "weights must be 2 numbers"),
        ("hashing+bm25", {"args": {"weights": True}}, "weights must be 2 numbers"),
        ("hashing+bm25", {"args": {"base_url": "x"}}, "neither it nor a part of it has the option 'base_url'"),
        ("hashing+bm25", {"args": {"language": "xx"}}, "'bm25': language must be one of"),
        ("hashing+bm25", {"pooling": "mean"}, "'hashing' has no pooling"),
    ],
)
def test_impossible_hybrids(name: str, fields: dict[str, Any], message: str) -> None:
    """Refused when resolved, before anything runs."""
    with pytest.raises(ConfigError, match=message):
        loading.resolve(spec(name, **fields))


def test_settings_of_vectors_without_an_encoder(tmp_path: Path) -> None:
    """Two rankers: truncate_dim can act on neither."""
    (tmp_path / "a.trec").write_text("q1 Q0 d1 1 1 x\n")
    name = f"bm25+ranking:{tmp_path / 'a.trec'}"
    assert load(name).spec.name == "bm25+a.trec"
    assert load(name).info.dim == 0
    with pytest.raises(ConfigError, match="'hybrid' ranks documents without a model, so truncate_dim can't act"):
        loading.resolve(spec(name, truncate_dim=8))


def test_the_revision_follows_from_the_parts(tmp_path: Path) -> None:
    """Equal for equal content wherever it lies, another for other content, and refused where it isn't as asked."""
    for folder, line in (("one", "q1 Q0 d1 1 1 x\n"), ("two", "q1 Q0 d1 1 1 x\n"), ("three", "q1 Q0 d1 1 2 x\n")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a.trec").write_text(line)
    names = [f"bm25+ranking:{tmp_path / folder / 'a.trec'}" for folder in ("one", "two", "three")]
    first, second, third = (loading.resolve(spec(name)).spec for name in names)
    assert first == second
    assert first.revision != third.revision
    assert first.revision is not None
    assert first.revision.startswith("sha256:")
    assert str(tmp_path) not in repr(first)
    assert loading.resolve(spec(names[0], revision=first.revision)).spec == first
    with pytest.raises(ModelError, match="is not the revision that was asked for: a part is another one"):
        loading.resolve(spec(names[2], revision=first.revision))


def test_a_part_that_changes_between_finding_and_loading_is_refused(tmp_path: Path) -> None:
    """The revision of the whole was told, so it must be the parts of that revision that run."""
    file = tmp_path / "a.trec"
    file.write_text("q1 Q0 d1 1 1 x\n")
    located = loading.resolve(spec(f"bm25+ranking:{file}"))
    file.write_text("q1 Q0 d1 1 2 x\nq2 Q0 d1 1 1 x\n")
    with pytest.raises(ModelError, match="not the revision that was asked for"):
        loading.load_system(located)


def test_a_local_model_leaves_no_path(tmp_path: Path) -> None:
    """Name, label and provenance hold the short name of the folder."""
    folder = save_tiny_model(tmp_path / "my-model")
    hybrid = load(f"bm25+{folder}")
    assert hybrid.spec.label == "bm25+my-model"
    assert str(tmp_path) not in repr((hybrid.spec, hybrid.info, [part.spec for part in hybrid.parts]))


def test_options_are_those_of_all_parts() -> None:
    """So that the command line takes ``language=german`` for a hybrid."""
    options = loading.BACKENDS.get("hybrid").options
    assert options[:3] == ("method", "rrf_k", "weights")
    assert {"k1", "language", "dim", "trust_remote_code"} < set(options)
    assert len(set(options)) == len(options)


def test_a_device_is_for_the_encoder() -> None:
    """bm25 takes part beside a model on a GPU; hashing refuses one as it does alone."""
    located = loading.resolve(spec())
    with pytest.raises(ConfigError, match="'hashing' runs on the CPU"):
        loading.load_system(located, RuntimeOptions(device="cuda"))
