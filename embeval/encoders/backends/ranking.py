"""``ranking``: the rankings of a TREC run file as a system, so that any first stage can be measured or fused.

``-m ranking:runs/splade.trec``; the file may be gzipped. Each line has six columns between blanks: query id, ``Q0``,
document id, rank, score, tag. The score decides and the rank is not read, as in trec_eval. A document that stands
twice for a query counts once, at its best score. Hits that are not in the corpus at hand are left out and counted.
"""

from __future__ import annotations

import gzip
import math
import zlib
from array import array
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np

from embeval.core import ir
from embeval.core.ir import Run, TieRule
from embeval.core.paths import expanded
from embeval.core.progress import Progress, Silent
from embeval.core.protocols import EncoderInfo, Ranker
from embeval.core.specs import ModelSpec, RuntimeOptions
from embeval.core.words import are, plural
from embeval.encoders import locate, rankers
from embeval.encoders.locate import Located
from embeval.errors import ConfigError, ModelError

COLUMNS = 6
LARGEST = float(np.finfo(np.float32).max)
"""A run's scores are float32."""


class _Line(NamedTuple):
    query: str
    doc: str
    score: float


@dataclass
class _Rankings:
    """The lines of a file, by query."""

    docs: dict[str, int] = field(default_factory=dict)
    """Doc id -> number."""
    hits: dict[str, tuple[array[int], array[float]]] = field(default_factory=dict)
    """Query id -> numbers of documents and their scores."""

    def add(self, line: _Line) -> None:
        docs, scores = self.hits.setdefault(line.query, (array("q"), array("d")))
        docs.append(self.docs.setdefault(line.doc, len(self.docs)))
        scores.append(line.score)


class _Ranking:
    """A ``Ranker`` that knows its rankings beforehand."""

    def __init__(self, spec: ModelSpec, path: Path) -> None:
        self.spec = spec
        self._path = path
        self._rankings = _Rankings()
        for line in _lines(path):
            self._rankings.add(line)
        if not self._rankings.hits:
            raise ModelError(f"{path}: the file holds no rankings.")
        self._outside = 0

    @property
    def info(self) -> EncoderInfo:
        """No dimensions; remarks of the hits that the last ``rank`` left out."""
        n = self._outside
        return rankers.info(
            {}, [f"{plural(n, 'hit')} of the run {are(n)} not in the corpus and left out."] if n else []
        )

    def rank(
        self,
        doc_ids: Sequence[str],
        doc_texts: Sequence[str],
        query_ids: Sequence[str],
        query_texts: Sequence[str],
        *,
        depth: int,
        ties: TieRule,
        progress: Progress | None = None,
    ) -> Run:
        """The ``depth`` best documents of the file per query; none for a query that it lacks.

        Raises ``ModelError`` where the file fits neither the queries nor the corpus: it is another task's.
        """
        progress = progress or Silent()
        numbers = self._rankings.docs
        place = np.full(len(numbers), ir.NOTHING, dtype=np.int64)
        for row, doc in enumerate(doc_ids):
            if (number := numbers.get(doc)) is not None:
                place[number] = row
        self._refuse_misfit(query_ids, doc_ids, known=bool((place >= 0).any()))
        keys = ir.tie_keys(doc_ids, ties)
        hits, n_duplicates, self._outside = [], 0, 0
        progress.start("queries", len(query_ids), "rankings")
        for query in query_ids:
            docs, scores = self._rankings.hits.get(query, (array("q"), array("d")))
            found = place[np.asarray(docs, dtype=np.int64)]
            inside = found >= 0
            self._outside += int((~inside).sum())
            once = _once(found[inside], np.asarray(scores, dtype=np.float32)[inside])
            n_duplicates += int(inside.sum()) - len(once[0])
            hits.append(rankers.best(once, keys, depth))
            progress.advance(1)
        progress.finish()
        return replace(rankers.assembled(query_ids, doc_ids, hits, ties), n_duplicates=n_duplicates)

    def _refuse_misfit(self, query_ids: Sequence[str], doc_ids: Sequence[str], *, known: bool) -> None:
        if query_ids and not any(query in self._rankings.hits for query in query_ids):
            what, there, wanted = "queries", next(iter(self._rankings.hits)), query_ids[0]
        elif doc_ids and not known:
            what, there, wanted = "documents", next(iter(self._rankings.docs)), doc_ids[0]
        else:
            return
        raise ModelError(
            f"{self._path}: none of its {what} is one of this task. It has ids such as {there!r}, the task such as "
            f"{wanted!r}."
        )


def _once(docs: np.ndarray, scores: np.ndarray) -> rankers.Hits:
    """Each document once, at its best score."""
    order = np.lexsort((-scores, docs))
    docs, scores = docs[order], scores[order]
    first = np.append(True, docs[1:] != docs[:-1])[: len(docs)]
    return docs[first], scores[first]


def _lines(path: Path) -> Iterator[_Line]:
    """Raises ``ModelError`` with file and line."""
    try:
        with ExitStack() as stack:
            raw: IO[bytes] = stack.enter_context(path.open("rb"))
            if raw.read(2) == b"\x1f\x8b":
                raw.seek(0)
                raw = stack.enter_context(gzip.GzipFile(fileobj=raw))  # type: ignore[arg-type]  # it reads as one
            else:
                raw.seek(0)
            for number, line in enumerate(raw, start=1):
                if line.strip():
                    yield _line(line, path, number)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise ModelError(f"{path}: not a whole gzip file ({error}). Fetch it again.") from None


def _line(line: bytes, path: Path, number: int) -> _Line:
    where = f"{path}, line {number}"
    try:
        text = line.decode("utf-8-sig" if number == 1 else "utf-8")
    except UnicodeDecodeError as error:
        raise ModelError(f"{where}: not UTF-8 text ({error.reason}).") from None
    columns = text.split()
    if len(columns) != COLUMNS:
        raise ModelError(
            f"{where}: a run has {COLUMNS} columns (query id, Q0, document id, rank, score, tag), "
            f"and here {are(len(columns))} {len(columns)}."
        )
    query, _, doc, _, stated, _ = columns
    try:
        score = math.nan if "_" in stated else float(stated)
    except ValueError:
        score = math.nan
    if not abs(score) <= LARGEST:
        raise ModelError(f"{where}: the score {stated!r} is not a finite number of 32 bits.")
    return _Line(query, doc, score)


class _Backend(rankers.RankingBackend):
    summary = "rankings that another system made, from a TREC run file"
    options = ()

    def resolve(self, spec: ModelSpec, *, verify: bool) -> Located:
        rankers.refuse_settings(spec)
        if spec.args:
            raise ConfigError(f"Backend 'ranking' has no option {min(spec.args)!r}, nor any other.")
        path = expanded(spec.name)
        if not path.is_file():
            what = "is a folder. Give the file" if path.is_dir() else "no such file"
            raise ModelError(f"Run {spec.name!r}: {what}.")
        actual = locate.files_revision({"run": path}, verify=verify)
        if spec.revision not in (None, actual):
            raise ModelError(
                f"Run {spec.name!r} is not the revision that was asked for.\nAsked: {spec.revision}\nFound: {actual}"
            )
        return Located(replace(spec, name=locate.short_name(path.resolve()), revision=actual), path)

    def load(self, located: Located, runtime: RuntimeOptions) -> Ranker:
        assert located.folder is not None
        return _Ranking(located.spec, located.folder)


BACKEND = _Backend()
