"""Golden sets made from what there is, and split."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from embeval.core import strict_json
from embeval.data import beir, files, splitting
from embeval.data.beir import Unreachable
from embeval.data.golden import DATASHEET, GoldenSet, limited, qrels_lines, write
from embeval.errors import ConfigError, DataError, UnknownNameError, UsageError
from embeval.store import atomic, folders

if TYPE_CHECKING:
    from embeval.data.chunking import Units

FILES = ("corpus.jsonl", "corpus.jsonl.gz", "queries.jsonl", "queries.jsonl.gz", "qrels", DATASHEET)
"""What a golden set's folder holds; where there is anything else, it is not replaced."""
WHOLE = "whole"
"""``test-whole``: what a split was before it was replaced by its own parts."""


def store(
    golden: GoldenSet, folder: Path, *, sources: Sequence[Path], limit: int | None, overwrite: bool
) -> GoldenSet:  # fmt: skip
    """Writes a golden set, whole or not at all, once it has been read back. Gives what was written.

    Raises ``ConfigError`` where something is in the way, ``DataError`` where it can't be evaluated.
    """
    if limit is not None and golden.queries is None:
        raise UsageError("--limit keeps the first questions, and there are none: give --questions.")
    golden = limited(golden, limit)
    _refuse_overlap(folder, sources)
    unreachable = Unreachable(golden.options.get("unreachable", Unreachable.ERROR))
    with folders.written(folder, overwrite=overwrite, refuse_to_replace=_refuse_foreign, hint="--overwrite") as partial:
        write(golden, partial)
        for split in golden.qrels:
            if not golden.qrels[split]:
                raise DataError(f"{golden.source}: there is no judgment for the split {split!r}.")
            try:
                beir.load_beir(partial, split, unreachable=unreachable)
            except DataError as error:
                raise DataError(str(error).replace(str(partial), str(folder))) from None
    return golden


def _refuse_overlap(folder: Path, sources: Sequence[Path]) -> None:
    """Raises ``ConfigError`` where what is read would be replaced."""
    place = Path(os.path.realpath(folder))
    for source in sources:
        there = Path(os.path.realpath(source))
        if there == place or place in there.parents:
            raise ConfigError(f"{source} is read, so {folder} can't be written over it. Choose another folder.")


def _refuse_foreign(folder: Path) -> None:
    foreign = sorted(path.name for path in folder.iterdir() if path.name not in FILES)
    if foreign:
        raise ConfigError(
            f"{folder} also holds {foreign[0]!r}, which is no part of a golden set, so --overwrite doesn't replace it. "
            "Choose another folder."
        )
    if not beir.is_beir(folder):
        raise ConfigError(f"{folder} is no golden set, so --overwrite doesn't replace it. Choose another folder.")


def token_units(model: str) -> tuple[Units, str]:
    """(what finds the tokens of a text by a model's tokenizer, name and revision of the model).

    Raises ``ModelError``, and ``ConfigError`` for a model without a tokenizer.
    """
    from embeval.encoders import loading, modules
    from embeval.encoders.backends.onnx import load_tokenizer
    from embeval.workflows.requests import parse_model

    located = loading.resolve(parse_model(model))
    if located.folder is None:
        raise ConfigError(f"Model {located.spec.name!r} has no tokenizer. Leave --tokenizer out to count words.")
    tokenizer = load_tokenizer(modules.read(located.folder, located.spec).transformer, located.spec)

    def spans(text: str) -> list[tuple[int, int]]:
        encoded = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True, verbose=False)
        return [(start, end) for start, end in encoded["offset_mapping"] if start < end]

    return spans, f"{Path(located.spec.name).name}@{located.spec.revision}"


@dataclass(frozen=True)
class Part:
    """A part of a split."""

    name: str
    share: float
    queries: int
    """Judged queries that can be answered."""
    unanswerable: int
    judgments: int


@dataclass(frozen=True)
class SplitReport:
    """How a split was cut."""

    source: str
    parts: tuple[Part, ...]
    n_groups: int
    """Groups of queries that are nearly the same, single ones included."""
    largest_group: int
    """Queries of the largest of them."""
    kept_as: str | None
    """Name under which the split was kept that a part replaced."""


def split(
    folder: Path,
    shares: Mapping[str, float],
    *,
    source: str = "test",
    seed: int = 0,
    by: Sequence[str] = (),
    overwrite: bool = False,
) -> SplitReport:
    """Writes ``qrels/<part>.tsv`` and ``qrels/<part>.unanswerable.txt`` for each part of a split.

    Queries that are nearly the same are in one part. Where a part has the name of the split itself, the split is kept
    as ``<split>-whole``. Raises ``ConfigError`` where files would be replaced without ``overwrite``.
    """
    _refuse_shares(shares)
    data = beir.load_beir(folder, source, unreachable=Unreachable.KEEP)
    kept_as = f"{source}-{WHOLE}" if source in shares else None
    _refuse_existing(folder, [*shares, *([kept_as] if kept_as else [])], source, overwrite)
    wanted = {query: data.queries[query] for query in {*data.qrels.judgments, *data.unanswerable}}
    groups = splitting.groups(wanted)
    labels = _labels(folder, by, wanted)
    strata = {query: (query in data.unanswerable, *labels[query]) for query in wanted}
    assigned = splitting.assign(groups, shares, strata, seed)
    if empty := [name for name in shares if name not in set(assigned.values())]:
        raise DataError(f"{folder}: {len(wanted)} queries are too few, the part {empty[0]!r} would have none.")
    parts = []
    texts: dict[str, tuple[str, str]] = {}
    for name, share in shares.items():
        own = sorted(query for query in wanted if assigned[query] == name)
        judgments = {q: dict(sorted(data.qrels.judgments[q].items())) for q in own if q in data.qrels.judgments}
        unanswerable = [query for query in own if query in data.unanswerable]
        if not judgments:
            raise DataError(f"{folder}: {len(wanted)} queries are too few, the part {name!r} would have no judgments.")
        texts[name] = "".join(qrels_lines(judgments)), "".join(f"{query}\n" for query in unanswerable)
        parts.append(
            Part(name, share, len(own) - len(unanswerable), len(unanswerable), sum(map(len, judgments.values())))
        )
    _write_parts(folder, texts, source, kept_as, has_unanswerable=bool(data.unanswerable))
    report = SplitReport(source, tuple(parts), len(groups), max(map(len, groups)), kept_as)
    _record(folder, report, seed, by)
    return report


def _refuse_shares(shares: Mapping[str, float]) -> None:
    if len(shares) < 2:
        raise ConfigError("--into needs two parts or more, such as dev=0.5,test=0.5.")
    if abs(sum(shares.values()) - 1) > 1e-6:
        raise ConfigError(f"The shares of --into must add up to 1, not {sum(shares.values()):g}.")


def _qrels_files(folder: Path, split: str) -> list[Path]:
    """The files of a split that are there."""
    qrels = folder / "qrels"
    named = [qrels / f"{split}.tsv", qrels / f"{split}.tsv.gz", beir.unanswerable_file(folder, split)]
    return [path for path in named if path.exists()]


def _refuse_existing(folder: Path, names: Sequence[str], source: str, overwrite: bool) -> None:
    whole = f"{source}-{WHOLE}"
    if whole in names and (there := _qrels_files(folder, whole)):
        raise ConfigError(
            f"{there[0]} is there: {source!r} was split before and is no longer whole.\n"
            f"Say --from {whole}, or give the parts other names."
        )
    there = [path for name in names for path in _qrels_files(folder, name)]
    if there and not overwrite:
        raise ConfigError(
            f"{there[0]} is there already. Give the parts other names, or --overwrite to replace it"
            + (f"; {source!r} is then kept as {whole!r}." if source in names else ".")
        )


def _labels(folder: Path, by: Sequence[str], wanted: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """Query -> its labels, empty where it has none."""
    path = next(each for each in (folder / "queries.jsonl", folder / "queries.jsonl.gz") if each.exists())
    found: dict[str, tuple[str, ...]] = dict.fromkeys(wanted, ())
    if not by:
        return found
    known: set[str] = set()
    for row in files.rows(path):
        query = files.identifier(row, path, "_id")
        known |= {name for name, value in row.values.items() if isinstance(value, str | bool | int)}
        if query in found:
            found[query] = tuple(str(row.values.get(name, "")) for name in by)
    for name in by:
        if name not in known:
            raise UnknownNameError("label of the queries", name, known - {"_id", "text"})
    return found


def _write_parts(
    folder: Path, texts: Mapping[str, tuple[str, str]], source: str, kept_as: str | None, *, has_unanswerable: bool
) -> None:
    """The whole split first, under its new name, and the part that replaces it last: a kill loses nothing."""
    if kept_as is not None:
        for path in _qrels_files(folder, source):
            atomic.write(path.with_name(path.name.replace(source, kept_as, 1)), path.read_bytes())
    for name in sorted(texts, key=lambda name: name == source):
        judgments, unanswerable = texts[name]
        listing = beir.unanswerable_file(folder, name)
        if has_unanswerable:
            atomic.write(listing, unanswerable.encode("utf-8"))
        elif listing.exists():
            listing.unlink()
        gzipped = folder / "qrels" / f"{name}.tsv.gz"
        atomic.write(folder / "qrels" / f"{name}.tsv", judgments.encode("utf-8"))
        gzipped.unlink(missing_ok=True)


def _record(folder: Path, report: SplitReport, seed: int, by: Sequence[str]) -> None:
    """Adds to the datasheet, where there is one, what was done."""
    path = folder / DATASHEET
    if not path.is_file():
        return
    try:
        sheet = strict_json.loads(path.read_bytes())
    except ValueError:
        return
    if not isinstance(sheet, dict) or not isinstance(splits := sheet.setdefault("splits", {}), dict):
        return
    origin: dict[str, Any] = {"from": report.kept_as or report.source, "seed": seed, "by": list(by)}
    if report.kept_as is not None and report.source in splits:
        splits[report.kept_as] = splits[report.source]
    for part in report.parts:
        splits[part.name] = {
            "queries": part.queries,
            "unanswerable": part.unanswerable,
            "judgments": part.judgments,
            "share": part.share,
            **origin,
        }
    try:
        data = strict_json.dumps(sheet).encode("utf-8")
    except UnicodeEncodeError:  # half of a character: nothing that was written here
        return
    atomic.write(path, data)
