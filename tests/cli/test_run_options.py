"""What the options of ``embeval run`` that say how a model is run come to in the request."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from embeval import api
from embeval.cli import run
from embeval.core.specs import RuntimeOptions
from embeval.errors import ConfigError, UsageError
from tests.support.commands import embeval

RUNNER = CliRunner()
HASHING = ("-m", "hashing", "-t", "demo-pairs")


@pytest.fixture
def requests(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[api.Request]:
    """What would have been run."""
    seen: list[api.Request] = []

    def noted(request: api.Request, **others: Any) -> Iterator[Any]:
        seen.append(request)
        return iter(())

    monkeypatch.setattr(api, "run", noted)
    monkeypatch.chdir(tmp_path)
    return seen


@pytest.mark.parametrize(
    ("words", "env", "expected"),
    [
        ((), {}, RuntimeOptions()),
        (("--batch-tokens", "auto"), {}, RuntimeOptions(batch_tokens="auto")),
        (("--batch-tokens", "512"), {}, RuntimeOptions(batch_tokens=512)),
        ((), {"EMBEVAL_BATCH_TOKENS": "auto"}, RuntimeOptions(batch_tokens="auto")),
        (("--compile",), {}, RuntimeOptions(compile=True)),
        ((), {"EMBEVAL_COMPILE": "1"}, RuntimeOptions(compile=True)),
        (("--no-cache",), {}, RuntimeOptions(cache=False)),
        (("--cache",), {}, RuntimeOptions()),
        ((), {"EMBEVAL_USE_CACHE": "0"}, RuntimeOptions(cache=False)),
        (("--cache",), {"EMBEVAL_USE_CACHE": "0"}, RuntimeOptions()),
    ],
)
def test_runtime(
    requests: list[api.Request], words: tuple[str, ...], env: dict[str, str], expected: RuntimeOptions
) -> None:
    """From words and variables, words first."""
    done = RUNNER.invoke(run.app, [*HASHING, *words], env=env)
    assert done.exit_code == 0, done.output
    assert requests[0].runtime == expected


def test_words_win_over_the_file(requests: list[api.Request]) -> None:
    """What is not said stays as the file has it."""
    Path("embeval.yaml").write_text(
        "models: [hashing]\ntasks: [demo-pairs]\nruntime: {batch_tokens: 99, cache: false, compile: true}\n"
    )
    for words in ((), ("--batch-tokens", "auto", "--cache")):
        assert RUNNER.invoke(run.app, words).exit_code == 0
    assert [each.runtime for each in requests] == [
        RuntimeOptions(batch_tokens=99, cache=False, compile=True),
        RuntimeOptions(batch_tokens="auto", cache=True, compile=True),
    ]


@pytest.mark.parametrize("value", ["0", "-1", "fast", "1.5", "²", "", "9" * 5000])
def test_a_budget_is_a_whole_number_or_auto(requests: list[api.Request], value: str) -> None:
    """Told with what was typed."""
    done = RUNNER.invoke(run.app, [*HASHING, f"--batch-tokens={value}"])
    assert isinstance(done.exception, UsageError)
    assert f"--batch-tokens must be a whole number from 1, or auto, not {value!r}" in str(done.exception)
    assert requests == []


def test_models_in_several_precisions_and_prompt_modes(requests: list[api.Request]) -> None:
    """Each mode of each model, in the precision; what states its own dtype, or has no choice, keeps it."""
    words = ["-m", "org/model", "-m", "hashing", "-m", "org/other,dtype=float16", "-t", "demo-pairs"]
    done = RUNNER.invoke(run.app, [*words, "--precision", "bf16", "--prompts", "auto,none"])
    assert done.exit_code == 0, done.output
    found = [(model.name, model.dtype, model.prompting) for model in requests[0].models]
    assert found == [
        ("org/model", "bfloat16", "auto"),
        ("org/model", "bfloat16", "none"),
        ("hashing", "float32", "auto"),
        ("hashing", "float32", "none"),
        ("org/other", "float16", "auto"),
        ("org/other", "float16", "none"),
    ]


@pytest.mark.parametrize(("name", "value"), [("precision", "half"), ("prompts", "off")])
def test_other_words_are_refused(requests: list[api.Request], name: str, value: str) -> None:
    """With what there is."""
    done = RUNNER.invoke(run.app, [*HASHING, f"--{name}", value])
    assert isinstance(done.exception, ConfigError)
    assert f"{name} must be " in str(done.exception)
    assert repr(value) in str(done.exception)
    assert requests == []


def test_precision_auto_says_what_was_chosen(tmp_path: Path) -> None:
    """One line per model on stderr; the results are those of the chosen format."""
    words = ("run", *HASHING, "--precision", "auto", "--resamples", "0", "--json")
    done = embeval(*words, cwd=tmp_path, env={"XDG_CACHE_HOME": str(tmp_path / "cache")})
    assert done.code == 0, done.err
    assert "Looking for the fastest precision that gives nearly the vectors of float32 …" in done.err
    assert "  hashing: float32, where there was nothing to choose" in done.err
    assert done.json["results"][0]["model"]["dtype"] == "float32"


def test_precision_auto_is_not_for_tokens(tmp_path: Path) -> None:
    """Vectors that are nearly those of float32 say nothing of log-probabilities."""
    (tmp_path / "texts.txt").write_text("An old server.\n", encoding="utf-8")
    done = embeval("run", *HASHING, "-t", "pseudo_likelihood:texts.txt", "--precision", "auto", cwd=tmp_path)
    assert done.code == 2
    assert "--precision auto compares vectors, which says nothing of the log-probabilities of tokens" in done.err
    assert "the task 'texts-pll'" in done.err


def test_quantised_vectors_are_rows_of_their_own(tmp_path: Path) -> None:
    """From the words for a model; the second and third find the vectors of the first."""
    models = ("hashing", "hashing,quantize=int8", "hashing,quantize=binary,rescore=4")
    words = ("run", *(word for model in models for word in ("-m", model)), "-t", "demo-docs", "--resamples", "0")
    done = embeval(*words, cwd=tmp_path, env={"XDG_CACHE_HOME": str(tmp_path / "cache")})
    assert done.code == 0, done.err
    assert [line.rsplit("·", 1)[1].strip() for line in done.err.splitlines() if "texts encoded" in line] == [
        "341 texts encoded",
        "0 texts encoded",
        "0 texts encoded",
    ]
    assert "hashing (binary vectors rescored x4)" in done.out
    lone = embeval("run", "-m", "hashing,rescore=4", "-t", "demo-docs", cwd=tmp_path)
    assert lone.code == 2
    assert "needs quantize" in lone.err
