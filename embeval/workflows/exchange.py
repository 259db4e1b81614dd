"""Stored results to and from mteb's result files, and into model cards."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from embeval.core.result import Result
from embeval.errors import DataError
from embeval.mteb_bridge.exchange import from_mteb, layout
from embeval.store.results import ResultStore, Stored, name_filter


@dataclass(frozen=True)
class ImportReport:
    """What became of the files of a folder."""

    stored: tuple[Stored, ...]
    """Results that are there now and were not before, or not so."""
    unchanged: int
    """Results that were there already, just so."""
    problems: tuple[str, ...]
    """One message for each file that was left out."""


def import_mteb(
    folder: Path, store: ResultStore, *, model: str | None = None, task: list[str] | None = None, overwrite: bool = False
) -> ImportReport:
    """Puts published results of mteb into a store, each marked as imported.

    ``model`` and ``task`` are names or parts of them, as ``ResultStore.find`` takes them. A file that can't be read is
    told, and so is one that says something else than an earlier import, unless ``overwrite``. Raises ``DataError``
    where the folder holds no result at all that fits, and ``StoreError`` where nothing can be written.
    """
    if not folder.is_dir():
        raise DataError(f"{folder}: no such folder. Give a folder of mteb's results.")
    store.refuse_unwritable()
    places = list(layout.places(folder))
    fits_model = name_filter([place.model for place in places], None if model is None else [model])
    fits_task = name_filter([place.file.stem for place in places], task)
    places = [place for place in places if fits_model(place.model) and fits_task(place.file.stem)]
    if not places:
        raise DataError(
            f"{folder}: no result of mteb there{' that fits' if model or task else ''}. They lie in "
            "results/<org>__<model>/<revision>/<task>.json."
        )
    stored, problems, unchanged = list[Stored](), list[str](), 0
    for place in places:
        try:
            found = from_mteb.read(place, folder)
            new = [result for result in found if not _is_there(store, result)]
            if not overwrite:
                _refuse_others(store, new, place.file)
        except DataError as error:
            problems.append(str(error))
            continue
        unchanged += len(found) - len(new)
        stored += [store.put(result) for result in new]
    return ImportReport(tuple(stored), unchanged, tuple(problems))


def _is_there(store: ResultStore, result: Result) -> bool:
    path = store.path(result)
    return path.is_file() and _content(store.get(path)) == _content(result)


def _content(result: Result) -> Result:
    """A result without the name of the file that it was read from."""
    imported = result.imported
    return result if imported is None else replace(result, imported=replace(imported, source=""))


def _refuse_others(store: ResultStore, results: list[Result], file: Path) -> None:
    for result in results:
        if store.path(result).exists():
            raise DataError(
                f"{file}: other values than those imported before for {result.model.name} on {result.task.name}; "
                "left as they were. --force replaces them."
            )


def summary(report: ImportReport) -> str:
    """One sentence for people."""
    models = len({(each.result.model.name, each.result.model.revision) for each in report.stored})
    tasks = len({each.result.task.name for each in report.stored})
    known = f", {report.unchanged} were there already" if report.unchanged else ""
    return f"{len(report.stored)} results of {models} models on {tasks} tasks imported{known}."


