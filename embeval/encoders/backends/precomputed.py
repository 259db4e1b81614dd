"""``precomputed``: vectors that another system made, read from files. No model runs here.

The name is a file or a folder:

=====================  ============================================================================================
``X.parquet``          columns ``embedding`` (list of floats) and ``text``, ``id`` or both; perhaps ``role``
``X.npy``              floats [n, d], with ``X.ids.txt`` (one id per line) or ``X.texts.jsonl`` (``{"text": …}`` per
                       line) beside it, row by row
a folder               ``queries``, ``documents`` and ``texts``, each as ``.parquet`` or ``.npy``; ``texts`` serves
                       every role that has no file of its own
=====================  ============================================================================================

Where a file has texts, a vector is found by the exact text, else by id. The ids of a retrieval task are those of its
queries and documents; where a query and a document share an id, keep them in files of their own. In STS, the sentences
of pair 7 are ``7 sentence 1`` and ``7 sentence 2``. The text of a BEIR document is title and text joined by a space.

An ``.npy`` is mapped and not read, so it may be larger than memory. An empty text has a zero vector whatever the files
say, as with every other backend. Prompts and limits are those of the system that made the vectors.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from embeval.core import strict_json
from embeval.core.embeddings import Embeddings, TextCounts, Vectors, refuse_nonfinite, zero_rows
from embeval.core.paths import expanded
from embeval.core.progress import Progress, Silent
from embeval.core.protocols import Encoder, EncoderInfo, TaskRef
from embeval.core.specs import Dtype, ModelSpec, Role, RuntimeOptions
from embeval.encoders import locate
from embeval.encoders.encoder import NORM_TOLERANCE, check_dim, finish
from embeval.encoders.locate import Located
from embeval.errors import ConfigError, ModelError

STEMS: Mapping[Role, str] = {Role.QUERY: "queries", Role.DOCUMENT: "documents", Role.TEXT: "texts"}
"""What the file of a role is called in a folder."""
SHOWN = 5
"""Ids listed in a message."""
SAME = 1e-5
"""How far two vectors of one text may differ, relative to the largest component: batches leave such traces."""


@dataclass(frozen=True)
class _File:
    """Vectors on disk, and what names them."""

    vectors: Path
    labels: Path | None = None
    """Ids or texts beside an ``.npy``."""

    def parts(self, stem: str) -> dict[str, Path]:
        """The files under names that don't hang on what the user called them."""
        found = {f"{stem}{self.vectors.suffix}": self.vectors}
        if self.labels is not None:
            found[stem + self.labels.name.removeprefix(self.vectors.stem)] = self.labels
        return found


@dataclass
class _Table:
    """Vectors by text or by id."""

    file: Path
    vectors: npt.NDArray[np.floating[Any]]
    """[n, d] of any float type, perhaps mapped."""
    by_text: bool
    rows: dict[str, int] = field(default_factory=dict)

    def add(self, key: str, row: int, where: str) -> None:
        """Raises ``ModelError`` where the key stands for another vector already."""
        first = self.rows.setdefault(key, row)
        if first != row and not _alike(self.vectors[first], self.vectors[row]):
            what = "text" if self.by_text else "id"
            raise ModelError(
                f"{where}: the {what} {_shown(key)} has another vector already, of row {first + 1}.\n"
                "If it is a query there and a document here, keep them apart: queries and documents in files of "
                "their own."
            )


def _alike(one: npt.NDArray[Any], other: npt.NDArray[Any]) -> bool:
    return bool(np.allclose(one, other, rtol=0.0, atol=SAME * float(np.abs(one).max())))


class _Precomputed:
    """An ``Encoder`` that looks vectors up."""

    def __init__(self, located: Located, runtime: RuntimeOptions) -> None:
        if runtime.device not in ("auto", "cpu"):
            raise ConfigError(f"Backend 'precomputed' reads files; the device {runtime.device!r} can't be used.")
        assert located.folder is not None
        self.spec = located.spec
        self._tables: dict[Role | None, _Table] = {}
        for role, file in _files(located.folder).items():
            for of, table in _read(file, role).items():
                if (other := self._tables.setdefault(of, table)) is not table:
                    what = STEMS[of or Role.TEXT]
                    raise ModelError(f"{other.file} and {table.file.name} both hold {what}. Remove those of one.")
        dims = {table.vectors.shape[1]: table.file.name for table in self._tables.values()}
        if len(dims) > 1:
            stated = " and ".join(f"{dim} in {name}" for dim, name in sorted(dims.items()))
            raise ModelError(f"Vectors {self.spec.name!r} have different dimensions: {stated}.")
        self.info = EncoderInfo(
            dim=check_dim(self.spec, next(iter(dims))),
            max_seq_length=None,
            similarity=self.spec.similarity or "cosine",
            prompts={},
            pooling=None,
            n_parameters=None,
            device="cpu",
            num_threads=None,
            batch_tokens=runtime.budget_or(1),
        )

    @cached_property
    def _digest(self) -> str:
        return self.spec.digest

    def prompt(self, role: Role, task: TaskRef | None = None) -> str:
        """None: whatever was put before the texts is in the vectors already."""
        return ""

    def encode(
        self,
        texts: Sequence[str],
        *,
        role: Role,
        task: TaskRef | None = None,
        ids: Sequence[str] = (),
        progress: Progress | None = None,
    ) -> Embeddings:
        """Embeddings in the order of the texts. Raises ``ModelError`` naming those that no file has."""
        if isinstance(texts, str):  # a sequence of letters, which nobody means
            raise TypeError("texts must be a sequence of str, not one str")
        texts = list(texts)
        names = list(ids) if len(ids) else [text[:40] for text in texts]
        full = [row for row, text in enumerate(texts) if text.strip()]
        vectors = np.zeros((len(texts), self.info.dim), dtype=np.float32)
        if full:
            table = self._table(role)
            rows = self._rows(table, role, [texts[row] for row in full], [ids[row] for row in full] if len(ids) else ())
            with np.errstate(over="ignore"):  # a float64 beyond float32 becomes Inf, which is refused by name
                found: Vectors = table.vectors[rows].astype(np.float32)
            refuse_nonfinite(found, [names[row] for row in full], by=str(table.file))
            vectors[full] = finish(self.spec, found, role)
        (progress or Silent()).advance(len(texts))
        zero = zero_rows(vectors)
        lengths = np.linalg.norm(vectors.astype(np.float64), axis=1)
        return Embeddings(
            vectors=vectors,
            role=role,
            normalized=bool(np.all(zero | (np.abs(lengths - 1.0) < NORM_TOLERANCE))),
            spec_digest=self._digest,
            counts=TextCounts(
                n_texts=len(texts),
                n_empty=len(texts) - len(full),
                n_zero=int(zero.sum()),
                n_truncated=None,
                tokens_kept=None,
                tokens_lost=None,
                tokens_unknown=None,
            ),
            truncated=None,
        )

    def _table(self, role: Role) -> _Table:
        table = self._tables.get(role, self._tables.get(None))
        if table is None:
            there = " and ".join(f"{STEMS[each]} ({self._tables[each].file.name})" for each in self._tables if each)
            raise ModelError(
                f"Vectors {self.spec.name!r} hold none for {STEMS[role]}, which this task needs. They hold: {there}.\n"
                f"Add {STEMS[role]}.parquet{'' if role == Role.TEXT else ', or texts.parquet for every role'}."
            )
        return table

    def _rows(self, table: _Table, role: Role, texts: Sequence[str], ids: Sequence[str]) -> npt.NDArray[np.intp]:
        if not table.by_text and not len(ids):
            raise ModelError(f"{table.file} holds vectors by id, and these {STEMS[role]} have none. Give their texts.")
        keys = texts if table.by_text else ids
        rows = np.array([table.rows.get(key, -1) for key in keys], dtype=np.intp)
        if len(missing := np.flatnonzero(rows < 0)):
            shown = ", ".join(_shown(ids[row] if len(ids) else texts[row]) for row in missing[:SHOWN])
            first = _shown(keys[missing[0]])
            how = f"by their exact text, and the first that is missing is {first}" if table.by_text else "by id"
            raise ModelError(
                f"{table.file} holds no vector for {len(missing)} of {len(keys)} {STEMS[role]}: "
                f"{shown}{', …' if len(missing) > SHOWN else ''}.\nThey are looked up {how}."
            )
        return rows


def _shown(key: str) -> str:
    return repr(key if len(key) <= 60 else key[:59] + "…")


def _files(path: Path) -> dict[Role | None, _File]:
    """The files of each role, None standing for every other role. Raises ``ModelError`` for what is not there."""
    if path.is_file():
        return {None: _file(path)}
    if not path.is_dir():
        raise ModelError(f"Vectors {str(path)!r}: no such file or folder.")
    found: dict[Role | None, _File] = {}
    for role, stem in STEMS.items():
        there = [file for suffix in (".parquet", ".npy") if (file := path / f"{stem}{suffix}").is_file()]
        if len(there) > 1:
            raise ModelError(f"{there[0]} and {there[1].name} are both there, and may differ. Remove one.")
        if there:
            found[None if role == Role.TEXT else role] = _file(there[0])
    if not found:
        names = ", ".join(f"{stem}.parquet" for stem in STEMS.values())
        raise ModelError(f"Folder {str(path)!r} holds no vectors: none of {names}, nor the same as .npy, is there.")
    return found


def _file(path: Path) -> _File:
    if path.suffix == ".parquet":
        return _File(path)
    if path.suffix != ".npy":
        raise ModelError(f"Vectors {str(path)!r}: unknown kind of file. Use .parquet or .npy.")
    there = [label for end in ("ids.txt", "texts.jsonl") if (label := path.with_suffix(f".{end}")).is_file()]
    if len(there) != 1:
        names = f'{path.stem}.ids.txt (one id per line) or {path.stem}.texts.jsonl ({{"text": …}} per line)'
        raise ModelError(
            f"{path}: {'both' if there else 'neither'} of {names} {'are' if there else 'is'} beside it. "
            "One of them says what each row is."
        )
    return _File(path, there[0])


def _read(file: _File, role: Role | None) -> dict[Role | None, _Table]:
    return _read_parquet(file.vectors, role) if file.labels is None else {role: _read_npy(file.vectors, file.labels)}


def _read_npy(path: Path, labels: Path) -> _Table:
    try:
        vectors = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError, OSError) as error:
        raise ModelError(f"{path}: not a readable .npy of numbers ({_first_line(error)}).") from None
    if not isinstance(vectors, np.ndarray):
        raise ModelError(f"{path}: is an archive of arrays; one .npy is needed.")
    if vectors.ndim != 2 or vectors.dtype.kind != "f" or vectors.dtype.itemsize > 8 or not vectors.size:
        raise ModelError(
            f"{path}: float16, float32 or float64 [n, d] is needed, not {vectors.dtype} {list(vectors.shape)}."
        )
    table = _Table(path, vectors, by_text=labels.suffix == ".jsonl")
    n = 0
    for n, key in enumerate(_keys(labels), start=1):
        if n <= len(vectors):
            table.add(key, n - 1, f"{labels}, line {n}")
    if n != len(vectors):
        raise ModelError(f"{labels} has {n} lines, but {path.name} has {len(vectors)} rows.")
    return table


def _keys(path: Path) -> Iterator[str]:
    """What each line stands for."""
    try:
        with path.open(encoding="utf-8-sig", newline="\n") as file:
            for number, line in enumerate(file, start=1):
                yield _key(line.rstrip("\r\n"), path, number)
    except UnicodeDecodeError as error:
        raise ModelError(f"{path}: not UTF-8 text ({error.reason}).") from None


def _key(line: str, path: Path, number: int) -> str:
    if path.suffix == ".txt":
        if not line:
            raise ModelError(f"{path}, line {number}: is empty; an id is needed for every row.")
        return line
    try:
        value = strict_json.loads(line)
    except ValueError as error:
        raise ModelError(f"{path}, line {number}: not valid JSON ({_first_line(error)}).") from None
    text = value.get("text") if isinstance(value, dict) else None
    if not isinstance(text, str):
        raise ModelError(f'{path}, line {number}: {{"text": …}} is needed.')
    return text


def _read_parquet(path: Path, role: Role | None) -> dict[Role | None, _Table]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as parquet:
            names = parquet.schema_arrow.names
            key = "text" if "text" in names else "id"
            for needed in ("embedding", key):
                if needed not in names:
                    raise ModelError(
                        f"{path}: there is no column {needed!r}. Columns: {', '.join(map(repr, names))}.\n"
                        "Needed are 'embedding', and 'text' or 'id'."
                    )
            columns = ["embedding", key, *(["role"] if "role" in names else [])]
            pieces: list[Vectors] = []
            labels: list[tuple[str, Role | None]] = []
            for batch in parquet.iter_batches(batch_size=4096, columns=columns):
                pieces.append(_vectors(batch.column("embedding"), path, len(labels), pieces))
                roles = batch.column("role").to_pylist() if "role" in columns else [None] * len(batch)
                for value, named in zip(batch.column(key).to_pylist(), roles, strict=True):
                    where = f"{path}, row {len(labels) + 1}"
                    labels.append((_label(value, key, where), _role(named, role, where)))
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise ModelError(f"{path}: not a readable parquet file ({_first_line(error)}).") from None
    if not pieces:
        raise ModelError(f"{path}: the file holds no rows.")
    vectors = np.concatenate(pieces)
    tables: dict[Role | None, _Table] = {}
    for row, (label, of) in enumerate(labels):
        table = tables.setdefault(of, _Table(path, vectors, by_text=key == "text"))
        table.add(label, row, f"{path}, row {row + 1}")
    return tables


def _vectors(column: Any, path: Path, done: int, before: Sequence[Vectors]) -> Vectors:
    """float32 [n, d] of a column of lists."""
    import pyarrow.types as types

    kind = column.type
    is_list = types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)
    if not is_list or not types.is_floating(kind.value_type):
        raise ModelError(f"{path}: 'embedding' must be lists of floats, not {kind}.")
    rows = column.to_numpy(zero_copy_only=False)  # one array per row; None where there is none
    dim = before[0].shape[1] if before else len(rows[0]) if rows[0] is not None else 0
    for place, row in enumerate(rows):
        if row is None or not len(row) or len(row) != dim:
            there = "no vector" if row is None or not len(row) else f"{len(row)} dimensions, where the first has {dim}"
            raise ModelError(f"{path}, row {done + place + 1}: 'embedding' has {there}.")
    with np.errstate(over="ignore"):
        return np.stack(rows).astype(np.float32)


def _label(value: Any, key: str, where: str) -> str:
    if isinstance(value, str):
        return value
    if key == "id" and isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    raise ModelError(f"{where}: {key!r} must be text, not {value!r}.")


def _role(named: Any, of_file: Role | None, where: str) -> Role | None:
    """Whose vector a row is; None for every role."""
    if named is None:
        return of_file
    if named not in tuple(Role):
        raise ModelError(f"{where}: 'role' must be query, document or text, not {named!r}.")
    if of_file is not None and named != of_file:
        raise ModelError(f"{where}: 'role' is {named!r} in a file of {STEMS[of_file]}.")
    return None if named == Role.TEXT else Role(named)


def _first_line(error: BaseException) -> str:
    return str(error).splitlines()[0][:160] if str(error) else type(error).__name__


def _refuse_settings(spec: ModelSpec) -> None:
    """Raises ``ConfigError`` for settings that could not act: the vectors are there already."""
    if spec.args:
        raise ConfigError(f"Backend 'precomputed' has no options, so not {min(spec.args)!r} either.")
    for name, default in (("pooling", None), ("dtype", "float32"), ("max_seq_length", None)):
        if getattr(spec, name) != default:
            raise ConfigError(f"Backend 'precomputed' runs no model, so {name} can't act. Leave it out.")
    if spec.prompts:
        raise ConfigError(
            "Backend 'precomputed' runs no model, so prompts can't act: they belong before the texts when the vectors "
            "are made. Leave them out."
        )


class _Backend:
    summary = "vectors that another system made, from .npy or .parquet files"
    options = ()
    dtypes: tuple[Dtype, ...] = ("float32",)

    def resolve(self, spec: ModelSpec, *, verify: bool) -> Located:
        _refuse_settings(spec)
        path = expanded(spec.name)
        files: dict[str, Path] = {}
        for role, file in _files(path).items():
            files.update(file.parts(STEMS[role or Role.TEXT]))
        actual = locate.files_revision(files, verify=verify)
        if spec.revision not in (None, actual):
            raise ModelError(
                f"Vectors {spec.name!r} are not the revision that was asked for.\n"
                f"Asked: {spec.revision}\nFound: {actual}"
            )
        return Located(replace(spec, name=locate.short_name(path.resolve()), revision=actual), path)

    def load(self, located: Located, runtime: RuntimeOptions) -> Encoder:
        return _Precomputed(located, runtime)


BACKEND = _Backend()
