"""Where a model is and which revision it is."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from pathlib import Path

import pytest

from embeval.core.specs import ModelSpec
from embeval.encoders import locate
from embeval.errors import ConfigError, MissingPackageError, ModelError


@pytest.fixture
def copy(tiny_model: Path, tmp_path: Path) -> Path:
    """A model folder to change."""
    return Path(shutil.copytree(tiny_model, tmp_path / "copy"))


def revision(folder: Path, *, verify: bool = False) -> str:
    """The resolved revision of a folder."""
    found = locate.locate(ModelSpec(name=str(folder)), verify=verify).spec.revision
    assert found is not None
    return found


def test_a_folder_is_named_by_its_content(copy: Path, tmp_path: Path) -> None:
    """Equal files elsewhere are the same revision and digest; the name in the result has no path."""
    other = Path(shutil.copytree(copy, tmp_path / "elsewhere" / "model"))
    first, second = (locate.locate(ModelSpec(name=str(folder))).spec for folder in (copy, other))
    assert first.revision == second.revision
    assert first.digest == second.digest
    assert (first.name, second.name) == ("copy", "elsewhere/model")  # "model" alone would say nothing


@pytest.mark.parametrize("name", ["model.safetensors", "tokenizer.json", "1_Pooling/config.json", "modules.json"])
def test_one_byte_changes_the_revision(copy: Path, name: str) -> None:
    """Weights, tokenizer and configuration all count (F8)."""
    before = revision(copy)
    file = copy / name
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    assert revision(copy) != before


def test_texts_for_people_do_not_change_the_revision(copy: Path) -> None:
    """A README or a hidden file is not part of the model."""
    before = revision(copy)
    (copy / "README.md").write_text("# hello", encoding="utf-8")
    (copy / ".gitattributes").write_text("x", encoding="utf-8")
    assert revision(copy) == before


def test_a_pinned_revision_is_checked(copy: Path) -> None:
    """The right one loads, another is refused with both named."""
    right = revision(copy)
    assert locate.locate(ModelSpec(name=str(copy), revision=right)).spec.revision == right
    with pytest.raises(ModelError, match="is not the revision that was asked for"):
        locate.locate(ModelSpec(name=str(copy), revision="sha256:0000"))


def test_hashes_are_remembered_until_the_file_changes(copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second look reads no file; ``verify`` reads them all again, and a poisoned memory is found out by it."""
    before = revision(copy)
    reads: list[object] = []
    original = hashlib.file_digest

    def counted(file: object, name: str) -> object:
        reads.append(file)
        return original(file, name)  # type: ignore[arg-type]

    monkeypatch.setattr(hashlib, "file_digest", counted)
    assert revision(copy) == before
    assert not reads
    memory = locate.cache_folder() / "hashes.json"
    known = json.loads(memory.read_text(encoding="utf-8"))
    for path, entry in known.items():
        if path.startswith(str(copy.resolve())):
            entry[3] = "0" * 64
    memory.write_text(json.dumps(known), encoding="utf-8")
    assert revision(copy) != before
    assert revision(copy, verify=True) == before
    assert reads
    assert revision(copy) == before


@pytest.mark.parametrize("content", ["", "[]", "{broken", '{"x": 1}', '{"x": [1, 2]}'])
def test_a_broken_memory_costs_time_only(copy: Path, content: str) -> None:
    """Whatever is in the file of remembered hashes, the revision is right."""
    before = revision(copy, verify=True)
    (locate.cache_folder() / "hashes.json").write_text(content, encoding="utf-8")
    assert revision(copy) == before


def test_a_cache_folder_that_cannot_be_written_is_no_obstacle(
    copy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A read-only home must not stop an evaluation."""
    blocked = tmp_path / "file"
    blocked.write_text("", encoding="utf-8")
    expected = revision(copy)
    monkeypatch.setenv("EMBEVAL_CACHE", str(blocked / "below"))
    assert revision(copy) == expected


def test_a_file_put_in_the_place_of_another_is_noticed(copy: Path) -> None:
    """Of the same size and time, as a copy with times kept may be: it is another inode."""
    file = copy / "model.safetensors"
    before, stat = revision(copy), file.stat()
    other = copy.parent / "other"
    other.write_bytes(file.read_bytes()[:-1] + b"\x7f")
    os.utime(other, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    other.replace(file)
    assert (file.stat().st_size, file.stat().st_mtime_ns) == (stat.st_size, stat.st_mtime_ns)
    assert revision(copy) != before


def test_what_is_no_model(tmp_path: Path) -> None:
    """A file, an empty folder and a folder that isn't there each get their own message."""
    file = tmp_path / "weights.bin"
    file.write_bytes(b"x")
    with pytest.raises(ModelError, match=r"is a file\. Give the folder"):
        locate.locate(ModelSpec(name=str(file)))
    (tmp_path / "empty").mkdir()
    with pytest.raises(ModelError, match="holds no model: neither"):
        locate.locate(ModelSpec(name=str(tmp_path / "empty")))
    with pytest.raises(ModelError, match="does not exist"):
        locate.locate(ModelSpec(name=str(tmp_path / "nothing")))


def test_what_a_training_left_is_not_part_of_the_model(copy: Path) -> None:
    """Pickles below checkpoint-500 are never read, and take no part in the revision; elsewhere they are refused."""
    before = revision(copy)
    for name in ("checkpoint-500", "elsewhere"):
        (copy / name).mkdir()
        (copy / name / "pytorch_model.bin").write_bytes(b"x")
        if name == "checkpoint-500":
            (copy / name / "config.json").write_text("{}", encoding="utf-8")
            locate.refuse_pickled_weights(copy)
            assert revision(copy) == before
    with pytest.raises(ModelError, match=r"holds elsewhere/pytorch_model.bin and no safetensors beside it"):
        locate.refuse_pickled_weights(copy)


def test_a_folder_that_is_not_whole(copy: Path) -> None:
    """A link to a file that isn't there, as an interrupted download leaves it, and a pipe, which never ends."""
    (copy / "broken.json").symlink_to("nowhere")
    with pytest.raises(ModelError, match=r"broken.json leads nowhere. The model folder is not whole"):
        locate.locate(ModelSpec(name=str(copy)))
    (copy / "broken.json").unlink()
    os.mkfifo(copy / "pipe.json")
    with pytest.raises(ModelError, match=r"pipe.json is no regular file"):
        locate.locate(ModelSpec(name=str(copy)))


def test_demo_weights_are_checked_before_they_are_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    """The expected hash is the published one, and any other content is refused."""
    pytest.importorskip(locate.DEMO_PACKAGE, reason="the extra 'demo' is not installed")
    found = locate.locate(ModelSpec(name="demo"))
    assert found.spec.name == "demo/all-MiniLM-L6-v2"
    assert locate.locate(ModelSpec(name="demo/all-MiniLM-L6-v2")).spec == found.spec
    monkeypatch.setattr(locate, "DEMO_WEIGHTS_SHA256", "0" * 64)
    with pytest.raises(ModelError, match="weights of the demo model are not the expected ones"):
        locate.locate(ModelSpec(name="demo"))


def test_without_the_demo_extra_the_message_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """No traceback, and the command that helps."""
    monkeypatch.setattr(locate, "DEMO_PACKAGE", "no_such_package_here")
    with pytest.raises(MissingPackageError, match=r"pip install 'embeval-toolkit\[demo\]'"):
        locate.locate(ModelSpec(name="demo"))


def test_the_cache_folder_of_a_user_without_a_home(monkeypatch: pytest.MonkeyPatch) -> None:
    """A ~ in the variable is followed; without one and without a home, the message names the variable."""

    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setenv("HOME", "/home/me")
    monkeypatch.setenv("EMBEVAL_CACHE", "~/c")
    assert locate.cache_folder() == Path("/home/me/c")
    monkeypatch.delenv("EMBEVAL_CACHE")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", homeless)
    with pytest.raises(ConfigError, match="Set EMBEVAL_CACHE"):
        locate.cache_folder()


def test_a_module_behind_a_link_is_part_of_the_revision(tmp_path: Path) -> None:
    """What is loaded from there counts as if it lay in the folder; a link that leads back is left out."""
    folder, elsewhere = tmp_path / "model", tmp_path / "pooling"
    for each in (folder, elsewhere):
        each.mkdir()
        (each / "config.json").write_text("{}", encoding="utf-8")
    (folder / "1_Pooling").symlink_to(elsewhere)
    (folder / "loop").symlink_to(folder)
    assert sorted(locate.relevant_files(folder)) == ["1_Pooling/config.json", "config.json"]
    before = locate.folder_revision(folder, verify=True)
    (elsewhere / "config.json").write_text('{"pooling_mode": "cls"}', encoding="utf-8")
    assert locate.folder_revision(folder, verify=True) != before


def test_a_file_name_that_is_no_text(tmp_path: Path) -> None:
    """Bytes that are not UTF-8, as old archives leave them."""
    (tmp_path / "config.json").write_text("{}", encoding="utf-8")
    before = locate.folder_revision(tmp_path)
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/f\xff.json")).write_text("{}", encoding="utf-8")
    assert locate.folder_revision(tmp_path) != before
