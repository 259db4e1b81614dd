"""An index on disk: a folder that is whole or not there.

::

    index.json     what it is: kind, options, similarity, sizes and sha256 of the other files
    doc_ids.json   the ids, in the order of the vectors
    vectors.npy    float32 [n, d], memory-mapped: what exact kinds search, and what every hit is scored by
    index.faiss    of approximate kinds: the FAISS index

FAISS trusts its files, and a broken one can end the process. So ``index.faiss`` is read only after its sha256 is found
right; the vectors are checked by size, and by sha256 with ``verify``.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import shutil
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt

from embeval.core import border, strict_json
from embeval.core.border import BORDER
from embeval.core.embeddings import Vectors, refuse_nonfinite
from embeval.core.ir import TieRule, tie_keys
from embeval.core.progress import Progress, Silent
from embeval.core.specs import SimilarityName
from embeval.errors import DataError, EmbevalError, StoreError
from embeval.retrieval import approximate
from embeval.retrieval.kinds import INDEXES, Approximate, ApproximateType, Neighbours, read_options
from embeval.retrieval.search import TopK
from embeval.retrieval.vectors_file import VectorsWriter, open_vectors
from embeval.store import atomic

FORMAT = 1
"""Raised when older versions can't read what is written."""
CHUNK = 50_000
"""Vectors that an exact search looks through at once."""
RECORD, IDS, VECTORS, ENGINE = "index.json", "doc_ids.json", "vectors.npy", "index.faiss"
AGAIN = "Build the index again."


@dataclass(frozen=True)
class FileFacts:
    """What is known of a file."""

    __pydantic_config__ = BORDER

    n_bytes: int
    """Its size."""
    sha256: str
    """Its content, 64 hexadecimal digits."""


@dataclass(frozen=True, kw_only=True)
class IndexRecord:
    """What ``index.json`` holds."""

    __pydantic_config__ = BORDER

    format: int
    """Version of the folder's form."""
    kind: str
    """Kind of index."""
    similarity: SimilarityName
    """How vectors are compared."""
    dim: int
    """Dimensions of a vector."""
    n: int
    """Vectors."""
    options: Mapping[str, strict_json.Json]
    """Options of the kind as they were given."""
    settled: Mapping[str, strict_json.Json]
    """Options as they were used."""
    description: Mapping[str, str]
    """What the builder says of it, such as the model's digest."""
    files: Mapping[str, FileFacts]
    """The other files."""
    digest: str = ""
    """sha256 of all the above."""

    def signed(self) -> IndexRecord:
        """With the digest that belongs to it."""
        fields = border.dump(replace(self, digest=""))
        return replace(self, digest=strict_json.digest(fields))


@dataclass(frozen=True)
class StoredIndex:
    """An opened index. Search it with vectors of the model that it was built with."""

    folder: Path
    """Where it lies."""
    record: IndexRecord
    """What it is."""
    doc_ids: tuple[str, ...]
    """Ids of the documents, in the order of positions."""
    vectors: Vectors
    """float32 [n, d], memory-mapped."""
    engine: Approximate | None = field(default=None, repr=False)
    """The index of an approximate kind."""

    @property
    def kind(self) -> str:
        """Kind of index."""
        return self.record.kind

    @property
    def similarity(self) -> SimilarityName:
        """How vectors are compared."""
        return self.record.similarity

    @property
    def dim(self) -> int:
        """Dimensions of a vector."""
        return self.record.dim

    @property
    def description(self) -> Mapping[str, str]:
        """What the builder said of it."""
        return self.record.description

    @property
    def n_bytes(self) -> int:
        """Bytes of the index: the FAISS file of an approximate kind, the vectors of an exact one."""
        return self.record.files[ENGINE if ENGINE in self.record.files else VECTORS].n_bytes

    def __len__(self) -> int:
        return self.record.n

    @cached_property
    def _tie_keys(self) -> npt.NDArray[np.int64]:
        return tie_keys(self.doc_ids, TieRule.DOC_ID_DESC)

    def search(self, queries: Vectors, k: int) -> Neighbours:
        """The k best documents per query of float32 [Q, d], best first, -1 and -inf where there are fewer.

        Scores are the true ones for every kind; equal ones are ordered by id, the greater first. Raises ``StoreError``
        where the queries have other dimensions, ``InvalidEmbeddingsError`` where they hold NaN or Inf.
        """
        if queries.ndim != 2 or queries.shape[1] != self.dim:
            raise StoreError(
                f"{self.folder} holds vectors of {self.dim} dimensions, but the queries have {queries.shape[-1]}.\n"
                "Search it with the model that it was built with."
            )
        if self.engine is not None:
            refuse_nonfinite(queries, by="The queries")
            return approximate.search(
                self.engine, self.vectors, queries, k=k, similarity=self.similarity, tie_keys=self._tie_keys
            )
        top = TopK(queries, k=k, similarity=self.similarity, tie_keys=self._tie_keys, index=self.kind)
        for start in range(0, len(self), CHUNK):
            top.add(np.asarray(self.vectors[start : start + CHUNK]))
        return top.result()


def build(
    folder: Path,
    chunks: Iterable[Vectors],
    doc_ids: Sequence[str],
    *,
    dim: int,
    kind: str = "exact",
    similarity: SimilarityName = "cosine",
    options: Mapping[str, strict_json.Json] | None = None,
    description: Mapping[str, str] | None = None,
    progress: Progress | None = None,
    overwrite: bool = False,
) -> StoredIndex:
    """An index of float32 [n, dim] ``chunks`` in a new folder, opened.

    The folder appears when all of it is on disk. ``overwrite`` replaces an index that is there, and nothing else.
    Raises ``ConfigError`` for options that can't be, ``DataError`` where ids and vectors don't match, ``StoreError``
    where the folder can't be written.
    """
    if isinstance(INDEXES.get(kind), ApproximateType):
        approximate.check(kind, similarity, dim, options or {})
    else:
        read_options(kind, options or {})
    if len(set(doc_ids)) < len(doc_ids):
        raise DataError("Document ids must be unique, but some come twice. Nothing was indexed.")
    _refuse_taken(folder, overwrite=overwrite)
    temporary = folder.with_name(f".{folder.name}.{os.getpid()}-{secrets.token_hex(4)}.tmp")
    try:
        with _writing(folder):
            _sweep(folder)
            temporary.mkdir(parents=True)
            with VectorsWriter(temporary / VECTORS, dim) as writer:
                for chunk in chunks:
                    writer.append(chunk)
            if writer.n != len(doc_ids):
                raise DataError(f"{writer.n} vectors came for {len(doc_ids)} documents. Nothing was indexed.")
            atomic.write(temporary / IDS, (strict_json.canonical(list(doc_ids)) + "\n").encode("utf-8"))
            settled = _build_engine(temporary, kind, similarity, options or {}, progress or Silent())
            record = IndexRecord(
                format=FORMAT,
                kind=kind,
                similarity=similarity,
                dim=dim,
                n=writer.n,
                options=dict(options or {}),
                settled=settled,
                description=dict(description or {}),
                files={
                    name: FileFacts((temporary / name).stat().st_size, _sha256(temporary / name))
                    for name in (IDS, VECTORS, ENGINE)
                    if (temporary / name).exists()
                },
            ).signed()
            atomic.write(temporary / RECORD, strict_json.dumps(border.dump(record)).encode("utf-8"))
            _into_place(temporary, folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return open_index(folder)


def open_index(folder: Path, *, verify: bool = False) -> StoredIndex:
    """The index of a folder, memory-mapped where its kind allows. ``verify`` reads all of it and compares sha256.

    Raises ``StoreError`` where something is missing, cut, changed, or no index.
    """
    record = _read_record(folder)
    index_type = INDEXES.get(record.kind)
    wanted = {IDS, VECTORS, *([ENGINE] if isinstance(index_type, ApproximateType) else [])}
    if set(record.files) != wanted:
        raise StoreError(f"{folder / RECORD} lists other files than an index of kind {record.kind!r} has.\n{AGAIN}")
    for name, facts in record.files.items():
        _check_file(folder / name, facts, content=verify or name != VECTORS)
    vectors = open_vectors(folder / VECTORS)
    doc_ids = tuple(strict_json.loads((folder / IDS).read_bytes()))
    if vectors.shape != (record.n, record.dim) or len(doc_ids) != record.n:
        raise StoreError(f"The files of {folder} don't belong together.\n{AGAIN}")
    engine = None
    if isinstance(index_type, ApproximateType) and record.n:
        options = read_options(record.kind, record.options)
        engine = index_type.read(folder / ENGINE, record.dim, record.similarity, options, record.n)
    elif isinstance(index_type, ApproximateType):
        engine = approximate.build(vectors, kind=record.kind, similarity=record.similarity, options=record.options)
    return StoredIndex(folder, record, doc_ids, vectors, engine)


def _build_engine(
    folder: Path,
    kind: str,
    similarity: SimilarityName,
    options: Mapping[str, strict_json.Json],
    progress: Progress,
) -> Mapping[str, strict_json.Json]:
    if not isinstance(INDEXES.get(kind), ApproximateType):
        return {}
    vectors = open_vectors(folder / VECTORS)
    index = approximate.build(vectors, kind=kind, similarity=similarity, options=options, progress=progress)
    index.write(folder / ENGINE)
    with (folder / ENGINE).open("rb+") as file:
        os.fsync(file.fileno())
    return index.settled


def _read_record(folder: Path) -> IndexRecord:
    path = folder / RECORD
    try:
        content = strict_json.loads(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        raise StoreError(f"There is no index in {folder}: it has no {RECORD}.") from None
    except (OSError, ValueError) as error:
        raise StoreError(f"{path} can't be read: {error}\n{AGAIN}") from None
    if isinstance(content, dict) and isinstance(content.get("format"), int) and content["format"] > FORMAT:
        raise StoreError(f"{path} was written by a newer embeval. Update embeval, or build the index again.")
    try:
        record = border.load(IndexRecord, content)
    except border.BorderError as error:
        raise StoreError(f"{path} describes no index: {error.problems[0]}\n{AGAIN}") from None
    if record != record.signed():
        raise StoreError(f"{path} was changed after the index was built.\n{AGAIN}")
    return record


def _check_file(path: Path, facts: FileFacts, *, content: bool) -> None:
    try:
        size = path.stat().st_size
        if size != facts.n_bytes:
            raise StoreError(f"{path} has {size} bytes instead of {facts.n_bytes}: it was cut or changed.\n{AGAIN}")
        if content and _sha256(path) != facts.sha256:
            raise StoreError(f"{path} is not what was written: its sha256 differs.\n{AGAIN}")
    except OSError as error:
        raise StoreError(f"{path} can't be read: {error.strerror or error}.\n{AGAIN}") from None


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _refuse_taken(folder: Path, *, overwrite: bool) -> None:
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return
    if not (folder.is_dir() and (folder / RECORD).is_file()):
        raise StoreError(f"{folder} is there already and holds no index. Choose another place.")
    if not overwrite:
        raise StoreError(f"{folder} holds an index already. Remove it first, or choose another place.")


def _into_place(temporary: Path, folder: Path) -> None:
    old = temporary.with_suffix(".old.tmp")
    if folder.exists():
        folder.replace(old)  # a folder can't be replaced in one step; a kill between the two leaves both on disk
    try:
        temporary.replace(folder)
    except OSError:
        if old.exists():
            old.replace(folder)
        raise
    shutil.rmtree(old, ignore_errors=True)


@contextlib.contextmanager
def _writing(folder: Path) -> Iterator[None]:
    try:
        yield
    except EmbevalError:
        raise
    except (OSError, RuntimeError) as error:  # FAISS reports a full disk as a RuntimeError
        reason = getattr(error, "strerror", None) or str(error).strip().splitlines()[-1]
        raise StoreError(f"Can't write {folder}: {reason}.\nFree some space, or write elsewhere.") from None


def _sweep(folder: Path) -> None:
    limit = time.time() - atomic.STALE_AFTER_S
    with contextlib.suppress(OSError):
        for left in folder.parent.glob(f".{folder.name}.*.tmp"):
            if left.stat().st_mtime < limit:
                shutil.rmtree(left, ignore_errors=True)
