"""Files that people have, laid out in a mirror as the data of a task of mteb."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any

import yaml

from embeval.core.paths import expanded
from embeval.data import files
from embeval.data.files import Row
from embeval.errors import ConfigError, DataError, UsageError
from embeval.mteb_bridge import loading, mirror, row_counts, sealing
from embeval.mteb_bridge.categories import ONE_SUBSET, SEARCHED, splits_of
from embeval.mteb_bridge.mirror import Manifest, MirroredFile, Place
from embeval.store import folders

CORPUS, QUERIES, QRELS = "corpus", "queries", "qrels"
RETRIEVAL = (CORPUS, QUERIES, QRELS, "top_ranked", "instruction")
"""Tables of a retrieval task, as mteb calls their configurations."""
USUAL_SPLITS = ("train", "dev", "validation", "test")
IDS = ("_id", "id", "query-id", "corpus-id")
"""Columns that hold ids, which mteb wants as text."""
NUMBERS = ("score", "similarity_score", "label", "labels", "relevance", "value")
"""Columns that hold numbers, as long as all of them do, in files that know text only."""
BATCH = 10_000
"""Rows that are held in memory at once."""

_INTEGER = re.compile(r"[+-]?\d+", re.ASCII)
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)


@dataclass(frozen=True, kw_only=True)
class Table:
    """A file and the place that its rows have in a data set."""

    path: Path
    configuration: str
    """mteb's sub-set, or a table of a retrieval task."""
    split: str


@dataclass(frozen=True, kw_only=True)
class Imported:
    """What was laid out."""

    folder: Path
    task: str
    """The task, as mteb spells it."""
    rows: Mapping[str, int]
    """``configuration/split`` -> rows."""
    subsets: tuple[str, ...]
    """Sub-sets of the task that there are files of."""
    missing: tuple[str, ...]
    """Sub-sets of the task that there is no file of."""
    differences: tuple[str, ...]
    """Where the rows are not as many as mteb says, in words."""


def import_as(
    task_name: str,
    given: Sequence[str],
    into: Path,
    *,
    columns: Mapping[str, str] | None = None,
    anyway: bool = False,
    overwrite: bool = False,
) -> Imported:
    """Lays files out as the data of a task of mteb, whole or not at all, once mteb has loaded them.

    ``given`` are files and folders, with ``SUBSET/SPLIT=`` before those whose name doesn't say it. ``columns`` are
    new names -> names in the files. Raises ``DataError`` where mteb can't load them, or where there are not as many
    rows as mteb says, unless ``anyway``.
    """
    task = loading.find(task_name)
    name = task.metadata.name
    tables = _tables(task, given)
    folder = into / name
    with folders.written(folder, overwrite=overwrite, refuse_to_replace=_refuse_foreign, hint="--overwrite") as partial:
        rows = {}
        for table in tables:
            place = partial / table.configuration / f"{table.split}.parquet"
            rows[f"{table.configuration}/{table.split}"] = _write(table, place, columns or {})
        (partial / "README.md").write_text(_card(tables), encoding="utf-8")
        try:
            differences = _load(task, tables, into, partial)
        except DataError as error:
            raise DataError(str(error).replace(str(partial), str(folder))) from None
        if differences and not anyway:
            raise DataError(
                f"mteb:{name}: {'; '.join(differences)}.\nThese files are not the data that its published scores are "
                "of. Say --anyway to import them; results then carry a warning."
            )
        mirror.write_manifest(partial, _manifest(name, tables, partial))
    return Imported(
        folder=folder,
        task=name,
        rows=rows,
        subsets=tuple(task.hf_subsets),
        missing=tuple(each for each in task.metadata.hf_subsets if each not in task.hf_subsets),
        differences=tuple(differences),
    )


def _load(task: Any, tables: Sequence[Table], into: Path, partial: Path) -> list[str]:
    """Loads what was laid out, as a run will. Gives where it differs from mteb's statistics."""
    known = task.metadata.hf_subsets
    if len(known) > 1:
        there = {_subset(table.configuration, known) for table in tables}
        task.hf_subsets = [each for each in known if each in there]
    splits = {table.split for table in tables}
    evaluated = [each for each in task.metadata.eval_splits if each in splits]
    if not evaluated:
        raise DataError(
            f"mteb:{task.metadata.name} is evaluated on {' and '.join(task.metadata.eval_splits)}, and there is a file "
            f"of {' and '.join(sorted(splits))} only."
        )
    task.filter_eval_splits(evaluated)
    with sealing.sealed(into, task.metadata.name, Place(partial, None)):
        loading.fill(task, partial)
    _refuse_without_training(task)
    return row_counts.differences(task)


def _refuse_without_training(task: Any) -> None:
    split = getattr(task, "train_split", None)
    if split is None or getattr(task, "is_cross_validation", False):
        return
    for subset in task.hf_subsets:
        if split not in splits_of(task, subset):
            raise DataError(f"mteb:{task.metadata.name} trains on the split {split!r}, and there is no file of it.")


def _refuse_foreign(folder: Path) -> None:
    manifest = mirror.read_manifest(folder)
    if manifest is None or manifest.source != "import":
        raise ConfigError(f"{folder} was laid out by hand, so --overwrite doesn't replace it. Choose another folder.")


def _manifest(name: str, tables: Sequence[Table], partial: Path) -> Manifest:
    return Manifest(
        source="import",
        stored_at=datetime.now(UTC).isoformat(timespec="seconds"),
        files={
            each: MirroredFile(size=(partial / each).stat().st_size, sha256=sha256)
            for each, sha256 in mirror.hashes(partial).items()
        },
        task=name,
        inputs={"/".join(table.path.parts[-2:]): _sha256(table.path) for table in tables},
    )


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _card(tables: Sequence[Table]) -> str:
    """The README by which ``datasets`` knows the configurations and their files."""
    splits: dict[str, list[dict[str, str]]] = {}
    for table in tables:
        path = f"{table.configuration}/{table.split}.parquet"
        splits.setdefault(table.configuration, []).append({"split": table.split, "path": path})
    configs = [{"config_name": name, "data_files": of_config} for name, of_config in splits.items()]
    return f"---\n{yaml.safe_dump({'configs': configs}, sort_keys=False)}---\n"


def _tables(task: Any, given: Sequence[str]) -> list[Table]:
    """Where the rows of each file belong. Raises ``UsageError`` where that can't be told."""
    found = []
    for word in given:
        place, equals, name = word.partition("=")
        if not equals or expanded(word).exists():
            place, name = "", word
        path = expanded(name)
        if not path.exists():
            raise DataError(f"{path}: no such file.")
        if path.is_dir():
            inside = [path / each for each in mirror.files_of(path) if files.kind_or_none(path / each)]
            if place:
                raise UsageError(f"{word}: {name} is a folder. Name a file after {place!r}=.")
            if not inside:
                raise DataError(f"{path}: there is no .jsonl, .csv, .tsv or .parquet file in it.")
            found += [_table(task, each, each.relative_to(path).parts) for each in inside]
        else:
            found.append(_table(task, path, tuple(place.split("/")) if place else path.parts[-3:], said=bool(place)))
    for number, table in enumerate(found):
        for other in found[:number]:
            if (table.configuration, table.split) == (other.configuration, other.split):
                raise UsageError(f"{other.path} and {table.path} would both be {table.configuration}/{table.split}.")
    return found


def _table(task: Any, path: Path, parts: Sequence[str], *, said: bool = False) -> Table:
    """The place of one file: as it was ``said``, or by the names of the file and its folders."""
    words = [*parts[:-1], parts[-1] if said else parts[-1].partition(".")[0]]
    found = (_in_retrieval if _is_retrieval(task) else _in_rows)(task, words)
    if found is None:
        example = "corpus=FILE queries=FILE qrels/test=FILE" if _is_retrieval(task) else "test=FILE"
        several = task.metadata.hf_subsets
        sub = f", each after its sub-set ({several[0]}/…): {', '.join(several[:8])}" if len(several) > 1 else ""
        raise UsageError(f"{path}: say which part of mteb:{task.metadata.name} it is: {example}{sub}.")
    configuration, split = found
    return Table(path=path, configuration=configuration, split=split)


def _is_retrieval(task: Any) -> bool:
    """Whether mteb reads a corpus, queries and judgments."""
    return SEARCHED in {parent.__name__ for parent in type(task).__mro__}


def _in_rows(task: Any, words: Sequence[str]) -> tuple[str, str] | None:
    """(configuration, split) of rows: the last word is the split, the one before it the sub-set."""
    known = task.metadata.hf_subsets
    splits = {*task.metadata.eval_splits, getattr(task, "train_split", "train"), *USUAL_SPLITS}
    if words[-1] not in splits:
        return None
    if len(known) == 1 and not task.metadata.is_multilingual:
        return task.metadata.dataset.get("name", ONE_SUBSET), words[-1]
    subset = _known(words[-2], known) if len(words) > 1 else None
    subset = subset or (known[0] if len(known) == 1 else None)
    return None if subset is None else (subset, words[-1])


def _in_retrieval(task: Any, words: Sequence[str]) -> tuple[str, str] | None:
    """(configuration, split): ``[sub-set/]corpus``, ``[sub-set/]qrels[/split]`` and so on."""
    at = next((number for number in range(len(words) - 1, -1, -1) if words[number] in RETRIEVAL), None)
    if at is None or len(words) - at > 2:
        return None
    table, rest = words[at], words[at + 1 :]
    splits = task.metadata.eval_splits
    if rest:
        split = rest[0]
    elif table in (CORPUS, QUERIES, "instruction"):
        split = table
    elif len(splits) == 1:
        split = splits[0]
    else:
        return None
    if not task.metadata.is_multilingual:
        return (ONE_SUBSET if table == QRELS else table), split
    known = task.metadata.hf_subsets
    subset = _known(words[at - 1], known) if at else None
    subset = subset or (known[0] if len(known) == 1 else None)
    return None if subset is None else (f"{subset}-{table}", split)


def _known(word: str, subsets: Collection[str]) -> str | None:
    """The sub-set that a word names, however it is spelled."""
    return next((each for each in subsets if each.casefold() == word.casefold()), None)


def _subset(configuration: str, known: Collection[str]) -> str:
    """The sub-set that a configuration belongs to."""
    if configuration in known:
        return configuration
    return next(each for each in known if configuration in {f"{each}-{table}" for table in RETRIEVAL})


def _write(table: Table, place: Path, columns: Mapping[str, str]) -> int:
    """Writes the rows of a file as parquet. Gives how many they are."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    casts = _casts(table.path, columns)
    schema = _schema(table.path, columns, casts)
    place.parent.mkdir(parents=True, exist_ok=True)
    n_rows = 0
    with pq.ParquetWriter(place, schema) as writer:
        values = (made for _, made in _rows(table.path, columns, casts))
        while batch := list(islice(values, BATCH)):
            n_rows += len(batch)
            try:
                writer.write_table(pa.Table.from_pylist(batch, schema=schema))
            except (pa.ArrowException, UnicodeEncodeError) as error:
                raise DataError(f"{table.path}: its rows don't fit in one table ({str(error)[:200]}).") from None
    return n_rows


def _schema(path: Path, columns: Mapping[str, str], casts: Mapping[str, type]) -> Any:
    """The types of the columns, found over all rows. Raises ``DataError`` where a column holds several."""
    import pyarrow as pa

    found = None
    kinds: dict[str, tuple[str, int]] = {}
    rows = _rows(path, columns, casts)
    while batch := list(islice(rows, BATCH)):
        for row, values in batch:
            for name, value in values.items():
                if value is None:
                    continue
                kind = "number" if type(value) in (int, float) else type(value).__name__
                before, line = kinds.setdefault(name, (kind, row.line))
                if before != kind:
                    raise DataError(
                        f"{path}, line {row.line}: {name!r} holds a {kind} here and a {before} in line {line}."
                    )
        names = dict.fromkeys(name for _, values in batch for name in values)
        try:
            of_batch = pa.schema([(name, pa.array([values.get(name) for _, values in batch]).type) for name in names])
            both = [of_batch] if found is None else [found, of_batch]
            found = pa.unify_schemas(both, promote_options="permissive")
        except (pa.ArrowException, UnicodeEncodeError) as error:
            raise DataError(f"{path}: its rows don't fit in one table ({str(error)[:200]}).") from None
    return found


def _rows(path: Path, columns: Mapping[str, str], casts: Mapping[str, type]) -> Iterator[tuple[Row, dict[str, Any]]]:
    """Each row of a file, and its values under the names that mteb knows; what belongs to nothing is left out."""
    names = {old: new for new, old in columns.items()}
    for row in files.rows(path):
        yield (
            row,
            {
                name: _value(value, name, row, path, casts.get(name))
                for old, value in row.values.items()
                for name in [names.get(old, old)]
                if not isinstance(value, Mapping)
            },
        )


def _value(value: Any, name: str, row: Row, path: Path, cast: type | None) -> Any:
    if name in IDS:
        return files.identifier(Row(row.line, {name: value}), path, name)
    if cast is not None:
        return cast(value)
    return files.whole_characters(value, row, path, name) if isinstance(value, str) else value


def _casts(path: Path, columns: Mapping[str, str]) -> dict[str, type]:
    """Column -> type, of those columns of a csv or tsv file that hold nothing but numbers."""
    if files.kind(path) not in ("csv", "tsv"):
        return {}
    wanted = {columns.get(name, name): name for name in NUMBERS}
    types: dict[str, type] = {}
    for row in files.rows(path):
        for old, name in wanted.items():
            if (value := row.values.get(old)) is None or types.get(name) is str:
                continue
            kind = int if _INTEGER.fullmatch(value) else float if _NUMBER.fullmatch(value) else str
            types[name] = kind if types.get(name) in (None, int) or kind is str else float
    return {name: kind for name, kind in types.items() if kind is not str}
