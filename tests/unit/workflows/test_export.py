"""Exports that are there as a whole or not at all."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from embeval.core.specs import ModelSpec, RerankerSpec, RuntimeOptions
from embeval.encoders import export as graphs_of
from embeval.encoders import loading
from embeval.encoders.export import Precision
from embeval.errors import ConfigError, EvaluationError, ModelError, StoreError
from embeval.language_models import export as language_graphs_of
from embeval.language_models import loading as language_loading
from embeval.language_models import parity as token_parity
from embeval.rerankers import loading as reranker_loading
from embeval.workflows import export, samples
from embeval.workflows.export import Report
from embeval.workflows.samples import Sample
from tests.support.commands import command, environment
from tests.support.exports import (
    copy_of,
    cross_encoder,
    exported,
    exported_cross_encoder,
    exported_language_model,
    language_model,
    source,
)
from tests.support.models import edit_json, save_tiny_checkpoint
from tests.support.words import WORDS

SAMPLE = Sample("words", tuple(f"{left} {right}" for left in WORDS[:6] for right in WORDS[20:26]), None)


@pytest.fixture(autouse=True)
def one_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    """The slow exporter of torch runs once, in tests/support; here its folder is copied."""

    def write_folder(located: Any, out: Path) -> Path:
        graphs_of.refuse_settings(located)
        for file in exported("tiny").rglob("*"):
            if file.is_file():
                target = out / file.relative_to(exported("tiny"))
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(file.read_bytes())
        return out / "onnx/model.onnx"

    exported("tiny")
    monkeypatch.setattr(graphs_of, "write_folder", write_folder)


def run(out: Path, *precisions: Precision, model: ModelSpec | None = None, **options: Any) -> Report:
    """An export of the tiny model."""
    return export.run(
        model or source("tiny"),
        out,
        precisions or ("fp32",),
        sample=SAMPLE,
        runtime=RuntimeOptions(),
        say=lambda _: None,
        **options,
    )


def everything(folder: Path) -> list[str]:
    """All names in a folder, hidden ones too."""
    return sorted(path.name for path in folder.iterdir())


def graphs(folder: Path) -> list[str]:
    """Names of the graphs of an export."""
    return sorted(path.name for path in (folder / "onnx").iterdir())


def test_all_precisions_and_their_report(tmp_path: Path) -> None:
    """Files, sizes, strict JSON; nothing else is left beside the folder."""
    report = run(tmp_path / "out", "fp32", "fp16", "int8", "int8-static", min_cosine=0.9)
    assert report.problems == []
    assert everything(tmp_path) == ["out"]
    assert graphs(tmp_path / "out") == ["model.onnx", "model_fp16.onnx", "model_int8.onnx", "model_int8_static.onnx"]
    content = json.loads(
        (tmp_path / "out/parity.json").read_text(encoding="utf-8"), parse_constant=lambda word: pytest.fail(word)
    )
    assert content == report.to_json()
    assert [each["precision"] for each in content["graphs"]] == ["fp32", "fp16", "int8", "int8-static"]
    for each in content["graphs"]:
        assert each["bytes"] == (tmp_path / "out" / each["file"]).stat().st_size
        assert each["parity"]["n_texts"] == 36
        assert each["passes"]
        assert each["bounds"]["cosine_min"] == 0.9
    assert content["graphs"][0]["parity"]["cosine_min"] >= 0.9999
    assert content["reference"]["parity"]["cosine_min"] == pytest.approx(1.0, abs=1e-6)
    assert content["model_bytes"] == (Path(source("tiny").name) / "model.safetensors").stat().st_size


def test_float32_is_not_kept_where_it_is_not_asked_for(tmp_path: Path) -> None:
    """It is needed on the way only."""
    run(tmp_path / "out", "int8", min_cosine=0.5)
    assert graphs(tmp_path / "out") == ["model_int8.onnx"]


def test_a_bound_that_breaks_writes_nothing(tmp_path: Path) -> None:
    """int8 is not equal to float32; the other graph isn't written either."""
    report = run(tmp_path / "out", "fp32", "int8", min_cosine=1.0)
    assert any(problem.startswith("int8: cosine_min 0.99") for problem in report.problems)
    assert everything(tmp_path) == []


def test_a_folder_that_is_in_use(tmp_path: Path) -> None:
    """Not without overwrite, and then as a whole; an empty one is taken."""
    out = tmp_path / "out"
    out.mkdir()
    run(out)
    (out / "stale").write_text("old", encoding="utf-8")
    with pytest.raises(ConfigError, match="exists and is not empty"):
        run(out, "int8")
    run(out, "int8", overwrite=True, min_cosine=0.5)
    assert not (out / "stale").exists()
    assert graphs(out) == ["model_int8.onnx"]
    assert everything(tmp_path) == ["out"]


def test_an_earlier_export_survives_one_that_fails(tmp_path: Path) -> None:
    """--force replaces it by a whole one only."""
    run(tmp_path / "out")
    before = (tmp_path / "out/parity.json").read_bytes()
    assert run(tmp_path / "out", "int8", overwrite=True, min_cosine=1.0).problems
    assert (tmp_path / "out/parity.json").read_bytes() == before
    assert everything(tmp_path) == ["out"]


def test_what_is_no_export_is_never_replaced(tmp_path: Path) -> None:
    """A folder with something else, a file."""
    (tmp_path / "home").mkdir()
    (tmp_path / "home/letters").write_text("dear", encoding="utf-8")
    (tmp_path / "file").write_text("mine", encoding="utf-8")
    for name in ("home", "file"):
        with pytest.raises(ConfigError, match=r"is no export .it has no parity.json., so --force doesn't replace it"):
            run(tmp_path / name, overwrite=True)
    assert (tmp_path / "home/letters").read_text(encoding="utf-8") == "dear"


@pytest.mark.parametrize("below", [True, False])
def test_the_model_itself_is_not_written_over(tmp_path: Path, *, below: bool) -> None:
    """Neither into its folder nor as a folder around it."""
    around = tmp_path / "around"
    model = copy_of("tiny", around / "model")
    (around / "parity.json").write_text("{}", encoding="utf-8")
    spec = ModelSpec(name=str(model))
    with pytest.raises(ConfigError, match="and the model's own folder overlap"):
        run(model / "export" if below else around, model=spec, overwrite=True)
    assert (model / "modules.json").is_file()


def test_a_folder_given_by_dots(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty working directory is a place like any other."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    run(Path())
    assert graphs(tmp_path / "here") == ["model.onnx"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    """An error of ours."""
    tmp_path.chmod(0o500)
    with pytest.raises(StoreError, match="can't be written to"):
        run(tmp_path / "out")


def test_a_file_where_a_folder_is_wanted(tmp_path: Path) -> None:
    """An error of ours."""
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(StoreError, match=r"The export can't be written to .*out .Not a directory"):
        run(tmp_path / "file" / "out")


def test_a_disk_that_fills_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is left of it."""

    def full(*_: Any) -> Path:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(graphs_of, "to_int8", full)
    with pytest.raises(StoreError, match=r"No space left on device.\.\nNothing was left there"):
        run(tmp_path / "out", "int8")
    assert everything(tmp_path) == []


def test_a_rename_that_fails_puts_the_old_one_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The earlier export is where it was."""
    run(tmp_path / "out")
    before = (tmp_path / "out/parity.json").read_bytes()
    original = Path.rename

    def rename(self: Path, target: Path) -> Path:
        if self.name.endswith(".partial"):
            raise OSError(errno.EIO, "Input/output error")
        return original(self, target)

    monkeypatch.setattr(Path, "rename", rename)
    with pytest.raises(StoreError, match="Input/output error"):
        run(tmp_path / "out", overwrite=True)
    assert (tmp_path / "out/parity.json").read_bytes() == before
    assert everything(tmp_path) == ["out"]


def test_what_a_killed_exchange_left_is_put_back(tmp_path: Path) -> None:
    """A process that was killed between two renames: the earlier export is there again, and nothing else."""
    run(tmp_path / "out")
    before = (tmp_path / "out/parity.json").read_bytes()
    dead = subprocess.Popen(["true"])
    dead.wait()
    hidden = tmp_path / f"{export._prefix(tmp_path / 'out')}{dead.pid}.old"
    (tmp_path / "out").rename(hidden)
    with pytest.raises(ConfigError, match="not empty"):
        run(tmp_path / "out")
    assert (tmp_path / "out/parity.json").read_bytes() == before
    hidden.mkdir()  # killed after the exchange, while the replaced one was being removed
    run(tmp_path / "out", overwrite=True)
    assert everything(tmp_path) == ["out"]


def test_ctrl_c_in_the_exchange_puts_the_old_one_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a failure of the system does."""
    run(tmp_path / "out")
    original = Path.rename

    def rename(self: Path, target: Path) -> Path:
        if self.name.endswith(".partial"):
            raise KeyboardInterrupt
        return original(self, target)

    monkeypatch.setattr(Path, "rename", rename)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "out", overwrite=True)
    assert everything(tmp_path) == ["out"]


def test_what_was_put_there_in_the_meantime_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder that somebody filled while the export ran is no export to replace."""
    original = export._report

    def report(*given: Any) -> Report:
        (tmp_path / "out").mkdir()
        (tmp_path / "out/notes.txt").write_text("mine", encoding="utf-8")
        return original(*given)

    monkeypatch.setattr(export, "_report", report)
    with pytest.raises(ConfigError, match="not empty"):
        run(tmp_path / "out")
    assert (tmp_path / "out/notes.txt").read_text(encoding="utf-8") == "mine"
    assert everything(tmp_path) == ["out"]


def test_a_link_to_itself_is_refused(tmp_path: Path) -> None:
    """At once, and not after the work."""
    (tmp_path / "out").symlink_to(tmp_path / "out")
    with pytest.raises(ConfigError, match="leads back to itself"):
        run(tmp_path / "out")


def test_a_converter_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One line of its reason, and nothing is left."""

    def fails(*_: Any) -> Path:
        raise RuntimeError("unknown node\nand more")

    monkeypatch.setattr(graphs_of, "to_float16", fails)
    with pytest.raises(EvaluationError, match=r"can't be converted to fp16\.\nunknown node$"):
        run(tmp_path / "out", "fp16")
    assert everything(tmp_path) == []


@pytest.mark.parametrize("lm_head", [False, True])
def test_a_kill_leaves_nothing_at_the_target(tmp_path: Path, *, lm_head: bool) -> None:
    """Only a hidden folder, which the next export removes; that of a process that runs is left alone."""
    model = str(language_model("bert")) if lm_head else source("tiny").name
    head = ["--lm-head"] if lm_head else []
    words: Sequence[str] = command("export", model, "-o", "out", "--precision", "fp32,int8", *head)
    process = subprocess.Popen(words, cwd=tmp_path, env=environment(), stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    end = time.monotonic() + 120
    while not any(tmp_path.glob(".out.*.partial/*")) and time.monotonic() < end:
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    (left,) = everything(tmp_path)
    assert left.startswith(".out.")
    running = left.replace(f".{process.pid}.", f".{os.getppid()}.")
    (tmp_path / running).mkdir()
    with pytest.raises(ConfigError, match="truncate_dim"):
        run(tmp_path / "out", model=replace(source("tiny"), truncate_dim=4))
    assert everything(tmp_path) == [running]


CANDIDATES = Sample("words", SAMPLE.texts, None, tuple((word, SAMPLE.texts[:12]) for word in WORDS[:8]))


@pytest.fixture
def one_cross_encoder(monkeypatch: pytest.MonkeyPatch) -> None:
    """The slow exporter runs once for it, too."""

    def write_cross_encoder(located: Any, out: Path) -> Path:
        shutil.copytree(exported_cross_encoder(), out, dirs_exist_ok=True)
        return out / "onnx/model.onnx"

    exported_cross_encoder()
    monkeypatch.setattr(graphs_of, "write_cross_encoder", write_cross_encoder)


def run_pairs(out: Path, *precisions: Precision, sample: Sample = CANDIDATES, **options: Any) -> Report:
    """An export of the tiny cross-encoder."""
    return export.run(
        ModelSpec(name=str(cross_encoder())),
        out,
        precisions or ("fp32",),
        sample=sample,
        runtime=RuntimeOptions(device="cpu"),
        say=lambda _: None,
        **options,
    )


@pytest.mark.usefixtures("one_cross_encoder")
def test_a_cross_encoder_is_compared_by_its_scores(tmp_path: Path) -> None:
    """Its logits, their ranks and the best document of each query; a folder that a reranker loads."""
    report = run_pairs(tmp_path / "out", "fp32", "fp16", "int8", min_spearman=0.5)
    assert report.problems == []
    content = json.loads((tmp_path / "out/parity.json").read_text(encoding="utf-8"))
    exact, half, coarse = (each["parity"] for each in content["graphs"])
    assert exact["n_pairs"] == 8 * 12
    assert exact["max_abs"] < 5e-6
    assert exact["top_1"] == 1.0
    assert coarse["spearman"] < half["spearman"] <= exact["spearman"]
    assert 5e-6 < half["max_abs"] < coarse["max_abs"]
    assert half["max_abs"] < 2**-7  # a half keeps 11 bits; how far its sums stray depends on the processor
    pairs = [(query, text) for query, texts in CANDIDATES.candidates for text in texts]
    wanted = scores_of(RerankerSpec(name=str(cross_encoder())), pairs)
    graph = RerankerSpec(name=str(tmp_path / "out"), backend="onnx")
    for spec, told in ((graph, exact), (replace(graph, dtype="float16"), half), (replace(graph, dtype="int8"), coarse)):
        found = scores_of(spec, pairs)
        # the batches are others here, so the last bits of a score may be, too
        assert told["max_abs"] == pytest.approx(np.abs(found - wanted).max(), rel=0.05, abs=5e-6)
        assert told["spearman"] == pytest.approx(stats.spearmanr(found, wanted).statistic, abs=2e-4)


def scores_of(spec: RerankerSpec, pairs: Sequence[tuple[str, str]]) -> Any:
    """What a cross-encoder gives for them, as logits."""
    spec = replace(spec, args={**spec.args, "label": 0})
    return reranker_loading.load(reranker_loading.resolve(spec)).score(pairs).scores


@pytest.mark.usefixtures("one_cross_encoder")
def test_a_cross_encoder_that_breaks_a_bound_is_not_written(tmp_path: Path) -> None:
    """No int8 keeps all ranks."""
    report = run_pairs(tmp_path / "out", "int8", min_spearman=1.0)
    assert report.problems[0].startswith("int8: spearman 0.9")
    assert everything(tmp_path) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"min_cosine": 0.9}, "is a cross-encoder and has no cosines. Use --min-spearman"),
        ({"sample": SAMPLE}, "give --sample a retrieval task"),
    ],
)
def test_what_a_cross_encoder_has_not(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    """Told before anything is made."""
    with pytest.raises(ConfigError, match=message):
        run_pairs(tmp_path / "out", **options)
    with pytest.raises(ConfigError, match="for which there is no int8-static"):
        run_pairs(tmp_path / "out", "int8-static")
    assert everything(tmp_path) == []


def test_a_bound_on_scores_is_not_for_vectors(tmp_path: Path) -> None:
    """And the other way round."""
    with pytest.raises(ConfigError, match="--min-spearman is for cross-encoders"):
        run(tmp_path / "out", min_spearman=0.9)


@pytest.fixture
def one_language_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """The slow exporter runs once for it, too."""

    def write_folder(located: Any, kind: str, out: Path) -> Path:
        graphs_of.refuse_settings(located)
        assert kind == "masked"
        shutil.copytree(
            exported_language_model("bert"), out, dirs_exist_ok=True, ignore=shutil.ignore_patterns("model_*")
        )
        return out / "onnx/model.onnx"

    exported_language_model("bert")
    monkeypatch.setattr(language_graphs_of, "write_folder", write_folder)


def run_language_model(out: Path, *precisions: Precision, model: Path | None = None, **options: Any) -> Report:
    """An export of the tiny masked language model with its head."""
    return export.run(
        ModelSpec(name=str(model or language_model("bert"))),
        out,
        precisions or ("fp32",),
        sample=SAMPLE,
        runtime=RuntimeOptions(device="cpu"),
        say=lambda _: None,
        **{"lm_head": True, **options},
    )


@pytest.mark.usefixtures("one_language_model")
def test_a_language_model_is_compared_by_its_tokens(tmp_path: Path) -> None:
    """Two tokens of each text, masked as for pseudo-likelihoods; its own scores and the graphs', by hand."""
    report = run_language_model(tmp_path / "out", "fp32", "fp16", "int8")
    assert report.problems == []
    assert everything(tmp_path) == ["out"]
    content = json.loads(
        (tmp_path / "out/parity.json").read_text(encoding="utf-8"), parse_constant=lambda word: pytest.fail(word)
    )
    exact, half, coarse = (each["parity"] for each in content["graphs"])
    assert content["reference"]["parity"] == {
        "n_tokens": 72,
        "max_abs": 0.0,
        "mean_abs": 0.0,
        "loss_change": 0.0,
        "top_1": 1.0,
    }
    assert exact["max_abs"] < 1e-4
    assert 1e-5 < half["mean_abs"] < coarse["mean_abs"]
    own = loading.resolve(ModelSpec(name=str(language_model("bert"))))
    model = language_loading.load(own, "masked", RuntimeOptions(device="cpu"))
    wanted = model.score(token_parity.variants(model, SAMPLE.texts)).log_prob
    spec = ModelSpec(name=str(tmp_path / "out"), backend="onnx", dtype="float16")
    graph = language_loading.load(loading.resolve(spec), "masked", RuntimeOptions(device="cpu"))
    found = graph.score(token_parity.variants(graph, SAMPLE.texts)).log_prob
    assert half["max_abs"] == pytest.approx(np.abs(found - wanted).max(), rel=0.05, abs=1e-5)
    assert half["loss_change"] == pytest.approx(wanted.mean() - found.mean(), rel=0.05, abs=1e-5)


@pytest.mark.usefixtures("one_language_model")
def test_a_language_model_that_breaks_a_bound_is_not_written(tmp_path: Path) -> None:
    """No int8 keeps the loss to the last digit; the one bound that is given is the only one."""
    report = run_language_model(tmp_path / "out", "int8", max_loss_change=1e-9)
    (problem,) = report.problems
    assert problem.startswith("int8: loss_change ")
    assert problem.endswith("is above 1e-09 in size")
    assert everything(tmp_path) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"min_cosine": 0.9}, "--min-cosine is not for models that are exported with --lm-head. Use --max-loss-change"),
        ({"min_spearman": 0.9}, "--min-spearman is not for models"),
        (
            {"lm_head": False, "max_loss_change": 0.1},
            "--max-loss-change is for models that are exported with --lm-head",
        ),
    ],
)
def test_bounds_of_another_kind_of_model(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    """Told before anything is made."""
    with pytest.raises(ConfigError, match=message):
        run_language_model(tmp_path / "out", **options)
    with pytest.raises(ConfigError, match="with --lm-head there is no int8-static"):
        run_language_model(tmp_path / "out", "int8-static")
    assert everything(tmp_path) == []


def test_a_sample_of_texts(tmp_path: Path) -> None:
    """The file of a task that scores tokens, too: its distinct texts."""
    (tmp_path / "texts.txt").write_text("\n".join([*WORDS[:9], WORDS[0]]), encoding="utf-8")
    taken = samples.take(f"pseudo_likelihood:{tmp_path / 'texts.txt'}")
    assert (taken.texts, taken.pairs, taken.candidates) == (tuple(WORDS[:9]), None, ())


def test_models_without_a_head_to_export(tmp_path: Path) -> None:
    """None in the files, none of ours, and one that was never trained."""
    for model, message in (
        (Path(source("tiny").name), "can't be exported with a language-model head: its files hold no language-model"),
        (exported("tiny"), "can't be exported"),
    ):
        with pytest.raises(ConfigError, match=message):
            run_language_model(tmp_path / "out", model=model)
    bare = save_tiny_checkpoint(tmp_path / "bare", "bert")
    edit_json(bare / "config.json", architectures=["BertForMaskedLM"])
    with pytest.raises(ModelError, match=r"head is missing in its files: cls\.predictions\.bias"):
        run_language_model(tmp_path / "out", model=bare)
    assert everything(tmp_path) == ["bare"]
