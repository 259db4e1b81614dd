"""Mending what can be mended without losing anything: ``embeval data lint --fix``."""

from __future__ import annotations

import gzip
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from embeval.core import strict_json
from embeval.core.words import plural
from embeval.data.beir import QRELS_HEADER
from embeval.data.golden import json_line
from embeval.store import atomic
from embeval.workflows.lint import reading
from embeval.workflows.lint.findings import LintOptions
from embeval.workflows.lint.gold import GoldSet
from embeval.workflows.lint.rules.duplicates import groups

Lines = list[tuple[int, str]]
"""(number, line without its end)."""


class Change(NamedTuple):
    """What was done to a file."""

    file: str
    """Path within the folder."""
    line: int | None
    """Line in the file as it was; None for the file as a whole."""
    done: str
    """What was done."""


@dataclass(frozen=True)
class _Renaming:
    """Ids that lose the spaces around them."""

    changed: Mapping[str, str]
    """Old id -> new id."""
    kept: frozenset[str]
    """Ids that stay."""

    def of(self, name: str) -> str:
        """The new id: also for a reference with spaces to an id without."""
        plain = name.strip()
        if name in self.changed or (name not in self.kept and plain in (self.kept | set(self.changed.values()))):
            return plain
        return name


@dataclass
class _Log:
    file: str
    changes: list[Change] = field(default_factory=list)

    def tell(self, line: int | None, done: str) -> None:
        self.changes.append(Change(self.file, line, done))


def fix(folder: Path, split: str, *, merge_duplicates: bool = False, backup: bool = True) -> list[Change]:
    """Mends the files of a set and tells each change; a second call changes nothing. Raises ``DataError``.

    Dropped: rows that are equal to an earlier one, second judgments with the same grade. Normalised: byte-order marks,
    line ends, spaces around ids where they stay unique. With ``merge_duplicates`` documents of the same text get the
    judgments of one another, where these agree. A file that can't be read to its end, or with a row that is not
    understood, is left alone. What a file was is kept beside it as ``NAME.orig``, unless ``backup`` is off.
    """
    gold, _ = reading.read(folder, LintOptions(split=split))
    documents = _renaming(gold, gold.corpus_file, [doc.id for doc in gold.documents])
    queries = _renaming(gold, gold.queries_file, [query.id for query in gold.queries])
    twins = _twins(gold) if merge_duplicates else {}
    changes: list[Change] = []
    written: list[tuple[Path, bytes]] = []

    def mend(file: str, lines: Callable[[Lines, _Log], list[str]]) -> None:
        path, log = folder / file, _Log(file)
        if file in gold.incomplete or not path.is_file():
            return
        old = list(reading.open_lines(path))
        ends = sum(line.endswith(("\r", "\r\n")) for _, line in old)
        if reading.marked(path):
            log.tell(1, "byte-order mark removed")
        if ends:
            log.tell(None, f"{plural(ends, 'line end')} of another system replaced")
        new = lines([(number, line.rstrip("\r\n")) for number, line in old], log)
        if log.changes:
            written.append((path, "".join(f"{line}\n" for line in new).encode("utf-8")))
            changes.extend(log.changes)

    mend(gold.corpus_file, lambda lines, log: _objects(lines, log, documents, None))
    mend(gold.queries_file, lambda lines, log: _objects(lines, log, queries, documents))
    for name, file in gold.qrels_files.items():
        added = twins.get(name, [])
        mend(file, lambda lines, log, added=added: _judgments(lines, log, queries, documents, added))  # type: ignore[misc]
    for path, data in written:
        if backup:
            atomic.write(_free(path), path.read_bytes())
        atomic.write(path, gzip.compress(data, mtime=0) if path.name.endswith(".gz") else data)
    return changes


def _renaming(gold: GoldSet, file: str, names: Iterable[str]) -> _Renaming:
    """Which ids lose the spaces around them: those that stay unique; none where not all ids are known."""
    distinct = frozenset(names)
    if file in gold.incomplete:
        return _Renaming({}, distinct)
    taken = Counter(name.strip() for name in distinct)
    changed = {name: plain for name in distinct if (plain := name.strip()) and plain != name and taken[plain] == 1}
    return _Renaming(changed, distinct - changed.keys())


def _objects(lines: Lines, log: _Log, own: _Renaming, excluded: _Renaming | None) -> list[str]:
    """The rows of a corpus or queries file."""
    seen: dict[str, set[str]] = defaultdict(set)
    kept = []
    for number, line in lines:
        if not line.strip():
            kept.append(line)
            continue
        values = strict_json.loads(line)
        renamed = dict(values)
        if isinstance(values["_id"], str):
            renamed["_id"] = own.of(values["_id"])
        if excluded is not None and isinstance(values.get("exclude"), list):
            renamed["exclude"] = [excluded.of(doc) for doc in values["exclude"]]
        content, name = strict_json.canonical(renamed), str(renamed["_id"])
        if content in seen[name]:
            log.tell(number, f"equal row of {name!r} dropped")
            continue
        seen[name].add(content)
        if renamed != values:
            log.tell(number, f"spaces around an id stripped: {name!r}")
            line = json_line(renamed).removesuffix("\n")
        kept.append(line)
    return kept


def _judgments(
    lines: Lines, log: _Log, queries: _Renaming, documents: _Renaming, added: list[tuple[str, str, int]]
) -> list[str]:
    """The rows of a qrels file."""
    header = lines[0][1].split("\t")
    place = {name: header.index(name) for name in QRELS_HEADER}
    rows = [(number, line, line.split("\t")) for number, line in lines[1:]]
    grades: dict[tuple[str, str], set[float]] = defaultdict(set)

    def pair(fields: list[str]) -> tuple[str, str]:
        return queries.of(fields[place["query-id"]]), documents.of(fields[place["corpus-id"]])

    for _, line, fields in rows:
        if line:
            grades[pair(fields)].add(float(fields[place["score"]]))
    kept, seen = [lines[0][1]], set()
    for number, line, fields in rows:
        if not line:
            kept.append(line)
            continue
        named = pair(fields)
        old = (fields[place["query-id"]], fields[place["corpus-id"]])
        if len(grades[named]) > 1:  # contradictions are for people
            kept.append(line)
            continue
        if named in seen:
            log.tell(number, f"second judgment of query {named[0]!r}, document {named[1]!r} dropped")
            continue
        seen.add(named)
        if named != old:
            log.tell(number, f"spaces around an id stripped: query {named[0]!r}, document {named[1]!r}")
            fields[place["query-id"]], fields[place["corpus-id"]] = named
        kept.append("\t".join(fields))
    for query, doc, grade in added:
        new = {"query-id": queries.of(query), "corpus-id": documents.of(doc), "score": str(grade)}
        if (new["query-id"], new["corpus-id"]) in grades:
            continue
        log.tell(None, f"query {query!r}: document {doc!r} judged {grade}, as the one with the same text")
        kept.append("\t".join(new.get(name, "") for name in header))
    return kept


def _twins(gold: GoldSet) -> dict[str, list[tuple[str, str, int]]]:
    """Split -> (query, document, grade) for documents whose text has that grade elsewhere and no other."""
    found: dict[str, list[tuple[str, str, int]]] = defaultdict(list)
    group_of = {doc.id: group for group in groups(gold) for doc in group}
    for split, of_split in gold.grades.items():
        for query, grades in of_split.items():
            excluded = gold.by_query[query].excluded if query in gold.by_query else ()
            for group in {id(group_of[doc]): group_of[doc] for doc in grades if doc in group_of}.values():
                known = {grades[doc.id] for doc in group if doc.id in grades}
                if len(known) == 1 and max(known) > 0:
                    found[split] += [
                        (query, doc.id, max(known)) for doc in group if doc.id not in grades and doc.id not in excluded
                    ]
    return found


def _free(path: Path) -> Path:
    """A name for what the file was, that nothing has yet."""
    name, n = path.with_name(f"{path.name}.orig"), 1
    while name.exists():
        n += 1
        name = path.with_name(f"{path.name}.orig{n}")
    return name
