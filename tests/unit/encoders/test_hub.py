"""Hub models, from a cache laid out as huggingface_hub lays it out, and from a hub that runs in a thread."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from embeval.core.specs import ModelSpec, Role
from embeval.encoders import hub, loading
from embeval.errors import ModelError

COMMIT = "0123456789abcdef0123456789abcdef01234567"
NEWER = "89abcdef0123456789abcdef0123456789abcdef"


@pytest.fixture
def cached(tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A hub cache that holds ``team/tiny`` at one commit, its main branch."""
    repository = tmp_path / "models--team--tiny"
    shutil.copytree(tiny_model, repository / "snapshots" / COMMIT)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(COMMIT, encoding="utf-8")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    return tmp_path


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    """HF_HUB_OFFLINE is set."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)


class Answers:
    """What the hub client would be told, instead of a network."""

    def __init__(self) -> None:
        self.newest: Callable[[], str] = lambda: COMMIT
        self.download: Callable[[], Path] = lambda: pytest.fail("nothing should be downloaded")
        self.asked: list[dict[str, Any]] = []


@pytest.fixture
def online(monkeypatch: pytest.MonkeyPatch) -> Answers:
    """The hub client with answers of the test's choice; look-ups in the cache are the real ones."""
    import huggingface_hub

    answers = Answers()
    original = huggingface_hub.snapshot_download

    class Api:
        def model_info(self, name: str, revision: str | None = None) -> Any:
            class Info:
                sha = answers.newest()

            return Info

    def snapshot_download(name: str, **options: Any) -> str:
        if options.get("local_files_only"):
            return str(original(name, **options))
        answers.asked.append(options)
        return str(answers.download())

    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    monkeypatch.setattr(huggingface_hub, "HfApi", Api)
    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot_download)
    return answers


@pytest.mark.usefixtures("offline")
@pytest.mark.parametrize("revision", [None, "main", COMMIT])
def test_cached_model_without_a_network(cached: Path, revision: str | None) -> None:
    """The revision in the result is the commit, however it was asked for, and the model runs."""
    located = loading.resolve(ModelSpec(name="team/tiny", revision=revision))
    assert located.spec.revision == COMMIT
    assert located.spec.name == "team/tiny"
    assert loading.load(located).encode(["a"], role=Role.TEXT).vectors.shape == (1, 32)


@pytest.mark.usefixtures("cached", "offline")
def test_what_is_not_cached_can_not_be_had_offline() -> None:
    """The message says why, and what can be done without a hub."""
    with pytest.raises(
        ModelError, match=r"neither a folder here nor in the local hub cache.*HF_HUB_OFFLINE is set"
    ) as error:
        loading.resolve(ModelSpec(name="team/other"))
    assert "'demo'" in str(error.value)
    assert len(str(error.value).splitlines()) == 2
    with pytest.raises(ModelError, match="local hub cache"):
        loading.resolve(ModelSpec(name="team/tiny", revision=NEWER))


@pytest.mark.usefixtures("offline")
@pytest.mark.parametrize("name", ["two words", "-dash", "a" * 200])
def test_impossible_names(name: str) -> None:
    """What can't be a hub name is not looked up."""
    with pytest.raises(ModelError, match="nor a possible hub name"):
        loading.resolve(ModelSpec(name=name))


@pytest.mark.usefixtures("cached")
def test_newest_commit_is_asked_for_and_not_downloaded_again(online: Answers) -> None:
    """The branch is resolved by the hub; its commit is in the cache already."""
    assert hub.snapshot("team/tiny", None).name == COMMIT


def test_a_newer_commit_is_downloaded_in_safe_formats_only(cached: Path, online: Answers, tiny_model: Path) -> None:
    """Asked by commit, and for no pickle."""
    online.newest = lambda: NEWER
    online.download = lambda: Path(shutil.copytree(tiny_model, cached / "models--team--tiny" / "snapshots" / NEWER))
    assert hub.snapshot("team/tiny", None).name == NEWER
    (asked,) = online.asked
    assert asked["revision"] == NEWER
    assert not any(pattern.endswith((".bin", ".pt", ".pkl")) for pattern in asked["allow_patterns"])


@pytest.mark.usefixtures("cached")
def test_without_a_network_the_cached_model_still_loads(online: Answers) -> None:
    """The hub can't be reached: what was downloaded before is used."""

    def unreachable() -> str:
        raise ConnectionError("no route to host")

    online.newest = unreachable
    assert hub.snapshot("team/tiny", None).name == COMMIT
    with pytest.raises(ModelError, match="ConnectionError: no route to host"):
        hub.snapshot("team/other", None)


@pytest.mark.usefixtures("cached")
def test_a_model_that_is_not_there(online: Answers) -> None:
    """404 and 401 mean the same to a user: no such model for you."""

    class NotFoundError(Exception):
        def __init__(self, code: int) -> None:
            self.response = type("Response", (), {"status_code": code})()

    for code in (401, 403, 404):

        def missing(code: int = code) -> str:
            raise NotFoundError(code)

        online.newest = missing
        with pytest.raises(ModelError, match="nor a model of the hub that you may read"):
            hub.snapshot("team/tiny", None)


@pytest.mark.usefixtures("offline")
def test_a_cached_model_without_its_graph_is_not_enough(cached: Path) -> None:
    """For a backend that runs graphs, weights of torch are no model; with the graph it is found."""
    with pytest.raises(ModelError, match="HF_HUB_OFFLINE is set"):
        hub.snapshot("team/tiny", None, graphs=["model.onnx"])
    folder = cached / "models--team--tiny/snapshots" / COMMIT
    (folder / "onnx").mkdir()
    (folder / "onnx/model.onnx").write_bytes(b"graph")
    assert hub.snapshot("team/tiny", None, graphs=["model.onnx"]) == folder
    assert hub.snapshot("team/tiny", None, graphs=["model_int8.onnx", "onnx/model.onnx"]) == folder


def test_only_the_graph_that_is_wanted_is_downloaded(tmp_path: Path, online: Answers) -> None:
    """With its external data and the dense layers, without torch's weights and without other graphs."""
    from fnmatch import fnmatch

    online.download = lambda: tmp_path
    hub.snapshot("team/none", COMMIT, graphs=["model_int8.onnx"])
    (asked,) = online.asked
    files = {
        "model.safetensors": False,
        "onnx/model.onnx": False,
        "onnx/model_int8.onnx": True,
        "onnx/model_int8.onnx_data": True,
        "onnx/model_int8.onnx.data": True,
        "2_Dense/model.safetensors": True,
        "tokenizer.json": True,
        "1_Pooling/config.json": True,
    }
    found = {name: any(fnmatch(name, pattern) for pattern in asked["allow_patterns"]) for name in files}
    assert found == files
