"""A golden set from a BEIR folder: the same rows, once they have been checked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from embeval.core.words import plural
from embeval.data import files
from embeval.data.beir import RetrievalData, Unreachable, load_beir, unanswerable_file
from embeval.data.golden import GoldenSet, read_input
from embeval.errors import DataError


def splits(folder: Path) -> tuple[str, ...]:
    """Names of the splits of a BEIR folder, sorted."""
    found = {path.name.removesuffix(".gz") for path in (folder / "qrels").glob("*.tsv*")}
    return tuple(sorted(name.removesuffix(".tsv") for name in found if name.endswith(".tsv")))


def read(folder: Path, *, split: str | None, unreachable: Unreachable = Unreachable.ERROR) -> GoldenSet:
    """The golden set of one split, or of every one. Raises ``DataError`` where ``load_beir`` does."""
    wanted = (split,) if split is not None else splits(folder)
    if not wanted:
        raise DataError(f"{folder / 'qrels'}: there are no .tsv files, so there are no judgments.")
    loaded = {each: load_beir(folder, each, unreachable=unreachable) for each in wanted}
    used = [_file(folder, "corpus.jsonl"), _file(folder, "queries.jsonl")]
    used += [_file(folder / "qrels", f"{each}.tsv") for each in wanted]
    missing = {doc for data in loaded.values() for docs in data.unreachable.values() for doc in docs}
    return GoldenSet(
        kind="beir",
        source=folder.resolve().name,
        documents=_rows(used[0]),
        queries=_rows(used[1]),
        qrels={each: data.qrels.judgments for each, data in loaded.items()},
        unanswerable={each: _own_unanswerable(folder, each, data) for each, data in loaded.items()},
        inputs=[read_input(path, path.relative_to(folder).as_posix()) for path in used],
        options={"splits": list(wanted), "unreachable": str(unreachable)},
        notes=[unreachable_note(len(missing))] if missing else [],
    )


def unreachable_note(n_documents: int) -> str:
    """What to know of relevant documents that the corpus lacks."""
    return (
        f"{plural(n_documents, 'relevant document')} not in the corpus, which no model can find; "
        "the task needs 'unreachable: keep'."
    )


def _own_unanswerable(folder: Path, split: str, data: RetrievalData) -> list[str] | None:
    """The unanswerable queries of a split that says which are its own."""
    return sorted(data.unanswerable) if unanswerable_file(folder, split).exists() else None


def _file(folder: Path, name: str) -> Path:
    return next(path for path in (folder / name, folder / f"{name}.gz") if path.exists())


def _rows(path: Path) -> list[dict[str, Any]]:
    """Rows with their ids as text and everything else as it is."""
    return [{**row.values, "_id": files.identifier(row, path, "_id")} for row in files.rows(path)]
