"""A golden set from a data set of the Hugging Face hub, or from a local folder laid out like one."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from embeval.core.paths import expanded
from embeval.core.words import plural
from embeval.data import columns, files, from_pairs
from embeval.data.beir import Unreachable
from embeval.data.from_beir import unreachable_note
from embeval.data.from_pairs import RELEVANT, refuse_id, whole_grade
from embeval.data.golden import GoldenSet, listed, read_input
from embeval.errors import ConfigError, DataError, did_you_mean

SETTINGS = ("config", "split", "revision")
JUDGING = ("default", "qrels")
"""Configurations that hold the judgments, beside those named corpus and queries."""


def parse(word: str) -> tuple[str, dict[str, str]]:
    """(name, settings) of ``hf:NAME,config=…,split=…,revision=…``. Raises ``ConfigError``."""
    name, *rest = word.removeprefix("hf:").split(",")
    settings = {}
    for each in rest:
        key, equals, value = each.partition("=")
        if not equals or not value or key not in SETTINGS:
            raise ConfigError(f"hf:{name} takes {', '.join(SETTINGS)}, each with '=', not {each!r}.")
        settings[key] = value
    if not name:
        raise ConfigError("hf: needs the name of a data set: hf:org/name.")
    return name, settings


def read(
    word: str, *, given: columns.Given, split: str, unreachable: Unreachable = Unreachable.ERROR
) -> GoldenSet:  # fmt: skip
    """The golden set of ``hf:NAME``.

    With configurations ``corpus`` and ``queries``, as mteb lays retrieval sets out, these are the rows and the
    configuration ``default``, ``qrels`` or ``config=`` the judgments; else the rows are question-document pairs.
    Raises ``DataError`` where it can't be loaded.
    """
    name, settings = parse(word)
    where = Path(f"hf:{name}")
    wanted = settings.get("split", split)
    folder = expanded(name)
    name = str(folder) if folder.is_dir() else name
    with _library(name) as datasets:
        commit = settings.get("revision") if folder.is_dir() else _commit(name, settings.get("revision"))
        configurations = datasets.get_dataset_config_names(name, revision=commit)
    if {"corpus", "queries"} <= set(configurations):
        golden = _retrieval(name, configurations, settings.get("config"), wanted, commit, where, unreachable)
        golden.qrels = {split: golden.qrels[wanted]}
    else:
        config = _one(settings.get("config"), configurations, f"{where}: configuration")
        rows = list(_rows(name, config, wanted, commit))
        golden = from_pairs.read(rows, where, given=given, split=split, kind="hub")
        golden.options["config"] = config
    golden.source = folder.resolve().name if folder.is_dir() else name
    if folder.is_dir():
        golden.inputs = [
            read_input(path, path.relative_to(folder).as_posix())
            for path in sorted(folder.rglob("*"))
            if path.is_file() and not path.name.startswith(".")
        ]
    golden.options |= {"split": split, "hub_split": wanted, "revision": commit}
    return golden


def _retrieval(
    name: str,
    configurations: list[str],
    config: str | None,
    split: str,
    commit: str | None,
    where: Path,
    unreachable: Unreachable,
) -> GoldenSet:
    judging = config or next((each for each in JUDGING if each in configurations), None)
    judging = _one(judging, [each for each in configurations if each not in ("corpus", "queries")], f"{where}: qrels")
    documents = {
        doc: {"_id": doc, "title": row.values.get("title") or "", "text": files.text(row, where, "text")}
        for doc, row in _by_id(name, "corpus", split, commit, where)
    }
    queries = {
        query: {
            **{key: value for key, value in row.values.items() if isinstance(value, str | bool)},
            "_id": query,
            "text": files.text(row, where, "text"),
        }
        for query, row in _by_id(name, "queries", split, commit, where)
    }
    judgments: dict[str, dict[str, int]] = {}
    for row in _rows(name, judging, split, commit):
        query, doc = files.identifier(row, where, "query-id"), files.identifier(row, where, "corpus-id")
        refuse_id(query, row, where)
        refuse_id(doc, row, where)
        grade = whole_grade(row, where, "score") if row.values.get("score") is not None else RELEVANT
        if query not in queries:
            raise DataError(f"{where}, {judging}, row {row.line}: the judged query {query!r} is not among the queries.")
        if judgments.setdefault(query, {}).setdefault(doc, grade) != grade:
            raise DataError(f"{where}, {judging}, row {row.line}: {query!r} and {doc!r} are judged twice, differently.")
    missing = {
        doc for grades in judgments.values() for doc, grade in grades.items() if grade > 0 and doc not in documents
    }
    if missing and unreachable == Unreachable.ERROR:
        raise DataError(
            f"{where}: {plural(len(missing), 'relevant document')} not in the corpus, which no model can find: "
            f"{listed(sorted(map(repr, missing)))}.\nSay --unreachable keep to import it as it is."
        )
    return GoldenSet(
        kind="hub",
        source=name,
        documents=list(documents.values()),
        # A data set of several splits lists the queries of all of them together.
        queries=[row for query, row in queries.items() if query in judgments or row.get("answerable") is False],
        qrels={split: judgments},
        options={"config": judging, "unreachable": str(unreachable)},
        notes=[unreachable_note(len(missing))] if missing else [],
    )


def _by_id(name: str, config: str, split: str, commit: str | None, where: Path) -> Iterator[tuple[str, files.Row]]:
    seen = set()
    for row in _rows(name, config, split, commit, own=config):
        found = files.identifier(row, where, "_id" if "_id" in row.values else "id")
        refuse_id(found, row, where)
        if found in seen:
            raise DataError(f"{where}, {config}, row {row.line}: the id {found!r} appears twice.")
        seen.add(found)
        yield found, row


def _rows(name: str, config: str, split: str, commit: str | None, own: str | None = None) -> Iterator[files.Row]:
    """The rows of a split; where the configuration has one split only, or one called like itself (``own``), of that."""
    with _library(name) as datasets:
        there = datasets.get_dataset_split_names(name, config, revision=commit)
        chosen = split
        if own is not None:
            chosen = own if own in there else there[0] if len(there) == 1 else split
        if chosen not in there:
            raise DataError(
                f"hf:{name}: there is no split {chosen!r} in {config!r}. Splits: {', '.join(there)}. "
                f"{did_you_mean(chosen, there)}".rstrip()
            )
        loaded = datasets.load_dataset(name, config, split=chosen, revision=commit)
    for number, values in enumerate(loaded, start=1):
        yield files.Row(number, values)


def _one(wanted: str | None, there: list[str], what: str) -> str:
    if wanted is None and len(there) == 1:
        return there[0]
    if wanted in there:
        return wanted
    said = f"no {wanted!r} there" if wanted else "there are several"
    raise DataError(f"{what}: {said}. Say config=, one of: {', '.join(there) or 'none'}.")


def _commit(name: str, revision: str | None) -> str | None:
    """The commit that a revision stands for now; what was given where the hub can't be asked."""
    from huggingface_hub import HfApi
    from huggingface_hub.constants import HF_HUB_OFFLINE

    if HF_HUB_OFFLINE or (revision and re.fullmatch(r"[0-9a-f]{40}", revision)):
        return revision
    return HfApi().dataset_info(name, revision=revision).sha or revision


@contextlib.contextmanager
def _library(name: str) -> Iterator[Any]:
    """The library ``datasets``, silent. Whatever it raises becomes a ``DataError``: that depends on layers below it."""
    datasets = import_module("datasets")
    level, has_bars = datasets.logging.get_verbosity(), datasets.is_progress_bar_enabled()
    datasets.logging.set_verbosity(datasets.logging.CRITICAL)
    datasets.disable_progress_bars()
    try:
        yield datasets
    except (DataError, MemoryError):
        raise
    except Exception as error:
        cause = error.__cause__ or error
        first = next((line for line in str(cause).splitlines() if line.strip()), type(cause).__name__)
        raise DataError(
            f"hf:{name} can't be loaded ({first[:160]}).\n"
            "Is the name right, and can the hub be reached? A local folder works as well: hf:./folder."
        ) from None
    finally:
        datasets.logging.set_verbosity(level)
        if has_bars:
            datasets.enable_progress_bars()
