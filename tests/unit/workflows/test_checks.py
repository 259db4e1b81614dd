"""What ``embeval doctor`` finds, and what it calls an error."""

from __future__ import annotations

import builtins
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from embeval.core import provenance
from embeval.encoders import locate
from embeval.errors import ModelError
from embeval.workflows import checks
from embeval.workflows.checks import Check

INSTALLED = {
    "torch": "1.0",
    "transformers": "2.0",
    "sentence-transformers": "3.0",
    "faiss-cpu": "4.0",
    "onnxruntime-gpu": "5.0",
}


@pytest.fixture(autouse=True)
def _no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the tests are run with."""
    for name in [name for name in os.environ if name.startswith("EMBEVAL_")]:
        monkeypatch.delenv(name)


def found(name: str, state: checks.State, made: list[Check]) -> Check:
    """The one check of that name, which must have that state."""
    (check,) = [check for check in made if check.name == name]
    assert check.state == state, check
    return check


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The packages that seem to be installed; tests change it."""
    versions = dict(INSTALLED)

    def look(packages: tuple[str, ...]) -> Mapping[str, str]:
        return {name: versions[name] for name in packages if name in versions}

    monkeypatch.setattr(provenance, "installed", look)
    return versions


def disk(monkeypatch: pytest.MonkeyPatch, *, free_gib: float) -> None:
    """Makes every disk have that much space left."""
    usage = shutil.disk_usage("/")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=int(free_gib * 2**30)))


def system(results: Path) -> list[Check]:
    """The checks of machine and results folder."""
    return list(checks._system(results))


def test_everything_in_a_fixed_order(tmp_path: Path) -> None:
    """Each thing once, and no error on a machine on which these tests run."""
    made = checks.run(tmp_path / "results", variables=())
    names = [check.name for check in made]
    assert names == [
        "Python",
        "processor",
        "memory",
        "disk",
        "results folder",
        "packages",
        "torch",
        "GPU",
        "onnxruntime",
        "demo model",
        "hub",
        "cache",
    ]
    assert [check for check in made if check.state == "error"] == []
    assert all(check.found for check in made)
    assert not (tmp_path / "results").exists()


def test_as_json() -> None:
    """State, name and what was found."""
    assert Check("note", "GPU", "none").to_json() == {"state": "note", "name": "GPU", "found": "none"}


@pytest.mark.parametrize("place", ["results", "results/that/will/be/made"])
def test_a_results_folder_that_can_be_written(tmp_path: Path, place: str) -> None:
    """There or yet to be made; nothing is left behind."""
    (tmp_path / "results").mkdir()
    check = found("results folder", "ok", system(tmp_path / place))
    assert check.found == f"{tmp_path / place}: can be written"
    assert list(tmp_path.rglob("*")) == [tmp_path / "results"]


@pytest.mark.parametrize("place", ["file", "file/below", "file/below/that"])
def test_a_results_folder_that_is_a_file(tmp_path: Path, place: str) -> None:
    """A file in the way makes every run fail, so it is an error here."""
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    check = found("results folder", "error", system(tmp_path / place))
    assert str(tmp_path / place) in check.found
    assert "A part of that path is a file" in check.found


def test_a_results_folder_that_refuses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The reason of the system is shown."""

    def refuse(**_: Any) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("tempfile.TemporaryFile", refuse)
    check = found("results folder", "error", system(tmp_path))
    assert check.found.startswith(f"Can't write {tmp_path}. Permission denied. Write elsewhere with --results.")


@pytest.mark.parametrize(("free_gib", "state"), [(0.5, "note"), (0.99, "note"), (1.0, "ok"), (50.0, "ok")])
def test_little_space_is_worth_a_note(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, free_gib: float, state: checks.State
) -> None:
    """Below 1 GiB; the folder need not exist yet."""
    disk(monkeypatch, free_gib=free_gib)
    check = found("disk", state, system(tmp_path / "not" / "yet"))
    assert check.found == f"{free_gib:.1f} GiB free where results go ({tmp_path / 'not' / 'yet'})"


def test_installed_packages_are_listed(installed: dict[str, str]) -> None:
    """With their versions, without importing them."""
    (check,) = checks._packages()
    assert (check.state, check.name) == ("ok", "packages")
    assert check.found == "torch 1.0, transformers 2.0, sentence-transformers 3.0, faiss-cpu 4.0"


@pytest.mark.parametrize("missing", ["torch", "transformers", "sentence-transformers", "faiss-cpu"])
def test_a_missing_package_is_an_error(installed: dict[str, str], missing: str) -> None:
    """With the command that installs it."""
    del installed[missing]
    check = found(missing, "error", list(checks._packages()))
    assert check.found == f"not installed. Install it: pip install {missing}"


def test_both_onnxruntimes_are_an_error(installed: dict[str, str]) -> None:
    """They overwrite each other's files; the message says how to keep one."""
    installed["onnxruntime"] = "5.0"
    (check,) = checks._onnx()
    assert (check.state, check.name) == ("error", "onnxruntime")
    assert "onnxruntime and onnxruntime-gpu are both installed" in check.found
    assert "pip uninstall onnxruntime onnxruntime-gpu && pip install onnxruntime-gpu" in check.found


def test_no_onnxruntime_is_worth_a_note(installed: dict[str, str]) -> None:
    """Only a backend needs it."""
    del installed["onnxruntime-gpu"]
    text = "not installed; the backend onnx needs it: pip install onnxruntime-gpu"
    assert list(checks._onnx()) == [Check("note", "onnxruntime", text)]


def test_an_onnxruntime_that_cannot_be_imported_is_an_error(
    installed: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Installed is not enough."""
    refuse_import(monkeypatch, "onnxruntime")
    (check,) = checks._onnx()
    assert (check.state, check.found) == ("error", "can't be imported (no onnxruntime today)")


def test_a_torch_that_cannot_be_imported_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """And there is nothing to say about a GPU then."""
    refuse_import(monkeypatch, "torch")
    assert list(checks._torch()) == [Check("error", "torch", "can't be imported (no torch today)")]


def refuse_import(monkeypatch: pytest.MonkeyPatch, package: str) -> None:
    """Makes one package fail to import."""
    real = builtins.__import__

    def refuse(name: str, *args: Any, **kwargs: Any) -> Any:
        if name == package:
            raise ImportError(f"no {package} today")
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", refuse)


def test_torch_and_devices() -> None:
    """Version and threads as torch tells them; no GPU is a note with the reason, never an error."""
    import torch

    made = list(checks._torch())
    assert found("torch", "ok", made).found == f"{torch.__version__}, {torch.get_num_threads()} threads"
    if torch.cuda.is_available():
        assert torch.cuda.get_device_name(0) in found("GPU", "ok", made).found
    else:
        assert found("GPU", "note", made).found.startswith("none (torch is ")


def test_the_demo_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """Found and verified, or a note on one line that says what is missing."""
    (check,) = checks._model()
    assert (check.state, check.found) == ("ok", "demo/all-MiniLM-L6-v2, weights verified")

    def refuse(*_: Any, **__: Any) -> None:
        raise ModelError("It is not here.\nInstall it.")

    monkeypatch.setattr(locate, "locate", refuse)
    assert list(checks._model()) == [Check("note", "demo model", "It is not here. Install it.")]


KNOWN = ("EMBEVAL_SEED", "EMBEVAL_RESULTS")


def test_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Variables of ours that are set, in order, since they act without being seen; nothing where there are none."""
    assert "environment" not in [check.name for check in checks._environment(KNOWN)]
    monkeypatch.setenv("EMBEVAL_SEED", "7")
    monkeypatch.setenv("EMBEVAL_CACHE", str(tmp_path))
    made = list(checks._environment(KNOWN))
    assert found("environment", "note", made).found == f"set and used: EMBEVAL_CACHE={tmp_path}, EMBEVAL_SEED=7"
    assert found("cache", "ok", made).found == str(tmp_path)


@pytest.mark.parametrize(
    ("value", "offline"), [("1", True), ("true", True), ("ON", True), ("yes", True), ("0", False), ("", False)]
)
def test_the_hub(monkeypatch: pytest.MonkeyPatch, value: str, offline: bool) -> None:
    """Off where HF_HUB_OFFLINE says so, in the spellings that the hub's own library takes."""
    monkeypatch.setenv("HF_HUB_OFFLINE", value)
    check = found("hub", "ok", list(checks._environment(KNOWN)))
    assert check.found.startswith("off" if offline else "asked for models by name")


def test_a_variable_that_nothing_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Misspelt, most likely: it is told with the nearest one that is there, and not as used."""
    monkeypatch.setenv("EMBEVAL_RESULT", "x")
    check = found("environment", "note", list(checks._environment(KNOWN)))
    assert check.found.startswith("EMBEVAL_RESULT is set, but nothing reads it. Did you mean 'EMBEVAL_RESULTS'")
