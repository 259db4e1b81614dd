"""Stored results to and from mteb's result files, and into model cards."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from embeval.core import strict_json
from embeval.core.result import Result
from embeval.core.words import plural
from embeval.errors import ConfigError, DataError, StoreError
from embeval.mteb_bridge.exchange import from_mteb, layout, model_card, to_mteb
from embeval.store import atomic
from embeval.store.results import ResultStore, Stored, name_filter


@dataclass(frozen=True)
class ImportReport:
    """What became of the files of a folder."""

    stored: tuple[Stored, ...]
    """Results that are there now and were not before, or not so."""
    unchanged: int
    """Results that were there already, just so."""
    others: int
    """JSON files that are no results, such as lists of models."""
    problems: tuple[str, ...]
    """One message for each file that was left out."""


def import_mteb(
    folder: Path,
    store: ResultStore,
    *,
    model: str | None = None,
    task: list[str] | None = None,
    overwrite: bool = False,
) -> ImportReport:
    """Puts published results of mteb into a store, each marked as imported.

    ``model`` and ``task`` are names or parts of them, as ``ResultStore.find`` takes them. A file that can't be read is
    told, and so is one that says something else than an earlier import, unless ``overwrite``. Raises ``DataError``
    where the folder holds no result at all that fits, and ``StoreError`` where nothing can be written.
    """
    if not folder.is_dir():
        raise DataError(
            f"{folder}: {'not a folder' if folder.exists() else 'no such folder'}. Give a folder of mteb's results."
        )
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
    stored, problems, unchanged, others = list[Stored](), list[str](), 0, 0
    for place in places:
        try:
            if not from_mteb.names_a_task(place.file):
                others += 1
                continue
            found = from_mteb.read(place, folder)
            new = [result for result in found if not _is_there(store, result)]
            if not overwrite:
                _refuse_others(store, new, place.file)
        except DataError as error:
            problems.append(str(error))
            continue
        unchanged += len(found) - len(new)
        stored += [store.put(result) for result in new]
    return ImportReport(tuple(stored), unchanged, others, tuple(problems))


def _is_there(store: ResultStore, result: Result) -> bool:
    path = store.path(result)
    try:
        return path.is_file() and _content(store.get(path)) == _content(result)
    except StoreError:
        return False  # broken on disk, and then replaced if that was asked for


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
    known = f", {plural(report.unchanged, 'result was', 'results were')} there already" if report.unchanged else ""
    of = f"of {plural(models, 'model')} on {plural(tasks, 'task')} " if report.stored else ""
    others = f" {plural(report.others, 'other JSON file')} passed over." if report.others else ""
    return f"{plural(len(report.stored), 'result')} {of}imported{known}.{others}"


@dataclass(frozen=True)
class ExportReport:
    """What was written."""

    files: tuple[Path, ...]
    """Result files, without those that tell of models."""
    left_out: tuple[str, ...]
    """One sentence for each result that has no place in the form."""


def export_mteb(results: list[Result], folder: Path, *, overwrite: bool = False) -> ExportReport:
    """Writes results as mteb's files below ``folder``, where ``mteb.ResultCache(folder)`` finds them.

    Raises ``StoreError`` where none of the results is of a task of mteb, and ``ConfigError`` for a file that is there
    and says something else, unless ``overwrite``; then nothing was written.
    """
    made = to_mteb.files(_ours(results))
    if not made.files:
        why = f" {made.left_out[0]}" if made.left_out else ""
        raise StoreError(f"No stored result of a task of mteb fits.{why} 'embeval results list' shows what there is.")
    texts = {folder / each.path: strict_json.dumps(each.content).encode("utf-8") for each in made.files}
    for path, text in texts.items():
        if not overwrite and path.exists() and path.read_bytes() != text:
            raise ConfigError(f"{path} exists and says something else. Choose another folder, or give --force.")
    for path, text in texts.items():
        atomic.write(path, text)
    return ExportReport(tuple(path for path in texts if path.name != layout.META), made.left_out)


def _ours(results: list[Result]) -> list[Result]:
    """Those that were measured here; imported ones are published already, and count where there are no others."""
    return [result for result in results if result.imported is None] or results


def model_card_text(results: list[Result], readme: Path | None) -> str:
    """The YAML block with ``model-index``, or a README with it, which keeps all that it has.

    Raises ``StoreError`` where the results are not of one model, ``ConfigError`` for a README that can't be read.
    """
    found = model_card.index(_ours(results))
    if readme is None:
        return model_card.block(found)
    try:
        text = readme.read_bytes().decode("utf-8") if readme.exists() else ""
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{readme}: can't be read ({error}).") from None
    return model_card.merged(text, found, str(readme))
