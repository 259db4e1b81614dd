"""``embeval export`` as users meet it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from typer.testing import CliRunner

from embeval.cli import _state
from embeval.cli import export as verb
from embeval.core.specs import ModelSpec
from embeval.encoders.export import FILES, Precision
from embeval.encoders.parity import Bounds, Parity
from embeval.language_models.parity import TokenParity
from embeval.workflows import export as workflow
from embeval.workflows.export import Exported, Report
from embeval.workflows.trials import Trial
from tests.support.commands import embeval
from tests.support.exports import language_model, source


def test_export_and_run(tmp_path: Path) -> None:
    """A folder relative to the working directory, its report as JSON on stdout alone, and a run with it."""
    done = embeval(
        "export",
        source("tiny").name,
        "-o",
        "out",
        "--precision",
        "int8,fp32",
        "--min-cosine",
        "0.5",
        "--json",
        cwd=tmp_path,
    )
    assert done.code == 0, done.err
    assert done.json["folder"] == "out"
    assert done.json["written"] is True
    assert done.json["problems"] == []
    assert [each["precision"] for each in done.json["graphs"]] == ["int8", "fp32"]
    assert done.json["graphs"][1]["parity"]["cosine_min"] >= 0.9999
    assert done.json["sample"] == "demo-docs+demo-pairs"
    stored = json.loads((tmp_path / "out/parity.json").read_text(encoding="utf-8"))
    assert {**stored, "folder": "out", "written": True} == done.json
    assert [line.split(" …")[0] for line in done.err.splitlines()] == [
        "writing the graph",
        "making int8",
        "comparing",
        "Written: out. Use it with -m onnx:out,dtype=int8 or -m onnx:out",
    ]
    used = embeval("run", "-m", "onnx:out,dtype=int8", "-t", "demo-pairs", "--resamples", "100", "--json", cwd=tmp_path)
    assert used.code == 0, used.err
    (result,) = [each for each in used.json["results"] if each["subset"] == "all"]
    assert result["model"]["dtype"] == "int8"
    assert "CPUExecutionProvider" in json.dumps(result["provenance"])


def test_a_language_model_and_its_tasks(tmp_path: Path) -> None:
    """With its head: a text's pseudo-likelihood is that of torch; where vectors are wanted, it is refused."""
    (tmp_path / "texts.txt").write_text("restore a backup of the server\n\nthe key, by day\na\n", encoding="utf-8")
    model = str(language_model("bert"))
    done = embeval("export", model, "-o", "out", "--lm-head", "--json", "--threads", "1", cwd=tmp_path)
    assert done.code == 0, done.err
    (graph,) = done.json["graphs"]
    assert graph["parity"]["mean_abs"] < 1e-4
    assert done.err.splitlines()[-1] == "Written: out. Use it with -m onnx:out"
    few = ("--resamples", "0", "--threads", "1")
    used = embeval(
        "run", "-m", model, "-m", "onnx:out", "-t", "pseudo_likelihood:texts.txt", *few, "--json", cwd=tmp_path
    )
    assert used.code == 0, used.err
    torch, onnx = (each for each in used.json["results"] if each["subset"] == "all")
    assert torch["signature"]["tokenizer"] == onnx["signature"]["tokenizer"]
    assert "CPUExecutionProvider" in json.dumps(onnx["provenance"])
    assert torch["scores"].keys() == onnx["scores"].keys() > {"pppl_original"}
    for name, score in torch["scores"].items():
        assert onnx["scores"][name]["value"] == pytest.approx(score["value"], rel=1e-4)
    for words in (("run", "-m", "onnx:out", "-t", "demo-pairs", *few), ("models", "show", "onnx:out")):
        refused = embeval(*words, cwd=tmp_path)
        assert refused.code == 3
        assert "gives probabilities of tokens and no vectors" in refused.err
        assert "Traceback" not in refused.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--to", "gguf"), "--to must be onnx, not 'gguf'"),
        (("--precision", "fp32,int4"), "--precision must be fp32, fp16, int8, int8-static, or several with commas"),
        (("-o", "full"), "full exists and is not empty"),
        (("-o", "full", "--force"), "so --force doesn't replace it"),
        (("--sample", "few.jsonl"), "few.jsonl"),
        (("--lm-head",), "can't be exported with a language-model head"),
    ],
)
def test_mistakes(tmp_path: Path, words: tuple[str, ...], message: str) -> None:
    """Exit code 2 and a message, before a model is loaded."""
    (tmp_path / "full").mkdir()
    (tmp_path / "full/letter").write_text("dear", encoding="utf-8")
    done = embeval("export", source("tiny").name, *words, cwd=tmp_path)
    assert done.code in (2, 3)
    assert message in done.err
    assert "Traceback" not in done.err
    assert sorted(each.name for each in tmp_path.iterdir()) == ["full"]


def test_a_model_that_cannot_be_exported(tmp_path: Path) -> None:
    """The baseline has no graph."""
    done = embeval("export", "hashing", cwd=tmp_path)
    assert (done.code, done.out) == (2, "")
    assert "can't be exported; models of sentence_transformers and transformers can" in done.err
    assert list(tmp_path.iterdir()) == []


def trial(name: str, cosine: float, *problems: str) -> Trial:
    """With long numbers."""
    return Trial(
        name=name,
        tokens_per_s=123_456.7,
        parity=Parity(n_texts=512, cosine_min=cosine, cosine_mean=0.99, max_abs=1e-2, top_10_overlap=0.912),
        spearman=0.8912,
        spearman_delta=-0.0048,
        bounds=Bounds(cosine_min=0.97, top_10_overlap=0.8),
        problems=problems,
    )


def report(*problems: str) -> Report:
    """Two graphs."""
    precisions: tuple[Precision, ...] = ("fp32", "int8-static")
    return Report(
        folder=Path("out"),
        model=ModelSpec(name="m"),
        model_bytes=90_000_000,
        sample="demo-docs",
        reference=trial("torch", 1.0),
        graphs=tuple(
            Exported(
                precision=precision,
                file=f"onnx/{FILES[precision]}",
                n_bytes=123_000_000,
                trial=trial(precision, 0.98535, *problems),
            )
            for precision in precisions
        ),
    )


def test_a_broken_bound_exits_3(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The table says what fails, stderr that nothing was written."""
    monkeypatch.setattr(workflow, "run", lambda *_, **__: report("cosine_min 0.98535 is below 1"))
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(verb.app, ["hashing", "-o", "out", "--min-cosine", "1.0"])
    assert done.exit_code == 3
    assert "fails: cosine_min 0.98535 is below 1" in done.stdout
    assert "Error: out was not written. fp32: cosine_min 0.98535 is below 1; int8-static: cosine_min" in done.stderr
    assert "Written" not in done.stderr


@pytest.mark.parametrize("width", [80, 120])
def test_a_table_of_tokens_fits(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], width: int
) -> None:
    """Differences in nats, and what they are."""
    monkeypatch.setattr(_state, "console", lambda stderr=False: Console(width=width))
    changes = TokenParity(n_tokens=1024, max_abs=0.321, mean_abs=0.0123, loss_change=-0.00456, top_1=0.987)
    made = report()
    of_tokens: dict[str, Any] = {"parity": changes, "spearman": None, "spearman_delta": None}
    graphs = tuple(replace(each, trial=replace(each.trial, **of_tokens)) for each in made.graphs)
    verb._show(replace(made, reference=replace(made.reference, **of_tokens), graphs=graphs))
    shown = capsys.readouterr()
    assert max(len(line.rstrip()) for line in shown.out.splitlines()) <= width
    assert all(word in shown.out for word in ("Mean diff", "1.2e-02", "Loss", "-4.6e-03", "98.7%"))
    assert "log-probability" in shown.err


@pytest.mark.parametrize("width", [80, 120])
def test_the_table_fits_the_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], width: int
) -> None:
    """Columns that matter less go first; the smallest cosine and the verdict stay."""
    monkeypatch.setattr(_state, "console", lambda stderr=False: Console(width=width))
    verb._show(report())
    lines = capsys.readouterr().out.splitlines()
    assert max(len(line.rstrip()) for line in lines) <= width
    assert "…" not in "".join(lines)
    assert all(word in "".join(lines) for word in ("Cosine min", "0.985350", "passes", "int8-static"))
