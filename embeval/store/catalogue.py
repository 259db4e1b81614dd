"""What a folder of results holds, remembered beside it, so that thousands of them are found without reading each.

``.catalogue.npz`` keeps, for each folder and each result file, size, times and inode, and what was read there. A file
or a folder of which all of these are the same as then is not read again; whatever else there is, is. The file is a
memory and no more: without it everything is read, it can go at any time, and one that is broken or from another release
is as good as none. It is replaced as a whole, and only where many results had to be read, so that a small folder has
none. Nothing that decides may rest on it: ``Stored.remembered`` marks what comes from there.
"""

from __future__ import annotations

import contextlib
import io
import os
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt

from embeval.core import border, collector, strict_json
from embeval.core.provenance import installed
from embeval.core.result import Result
from embeval.errors import StoreError
from embeval.store import atomic
from embeval.store.packed import ABSENT, Arrays, Packed, Packer, Wanted, names_of

FILE = ".catalogue.npz"
"""Its name, in the folder of results."""
FORM = 1
"""Version of its form."""
DEPTH = 4
"""Folders between the root and a result: model, revision, digest, task."""
MANY = 300
"""It is written where so many results had to be read: to read fewer takes no time that anybody feels."""
UNSETTLED_NS = 2_000_000_000
"""What was changed less than two seconds before it was read may have been changed again since within one tick of the
file system's clock, the coarsest of which are so long."""

Stamp = tuple[int, int, int, int]
"""Size, time of the last change of the content and of the entry (ns), inode: what no longer is as it was shows here."""
Folders = Mapping[str, tuple[Stamp, Sequence[str]]]
"""Folder -> its stamp, and the names in it that matter."""
Read = Callable[[Path], tuple[strict_json.Json, Result]]
Tell = Callable[[StoreError], None]

NO_STAMP: Stamp = (-1, -1, -1, -1)
"""What nothing has."""


@dataclass(frozen=True)
class _Catalogue:
    """What was seen and read at some time."""

    folders: Folders = field(default_factory=dict)
    """The folders."""
    rows: Mapping[str, tuple[int, Stamp]] = field(default_factory=dict)
    """File -> its row among the results, and its stamp, sorted by the parts of the paths."""
    arrays: Arrays = field(default_factory=Arrays.none)
    """The results."""


@dataclass(frozen=True)
class Holdings:
    """The results that are in a folder now."""

    packed: Packed
    """Most of many of them."""
    rows: Mapping[str, int]
    """File -> its row among those, relative to the folder of results, sorted by the parts of the paths."""
    unread: Collection[str] = ()
    """Files of those that weren't read this time."""
    fresh: Mapping[str, Result] = field(default_factory=dict)
    """File -> result, of those that aren't packed."""

    def names(self) -> tuple[set[str], set[str]]:
        """(names of the tasks, labels and names of the models)."""
        tasks, models = self.packed.names(list(self.rows.values()))
        tasks |= {each.task.name for each in self.fresh.values()}
        models |= {
            name for each in self.fresh.values() for name in names_of(each.model, imported=each.imported is not None)
        }
        return tasks, models

    def fitting(self, wanted: Wanted) -> Iterator[tuple[str, Result, bool]]:
        """(file, result, whether its file wasn't read this time), of those that are wanted, in the order of paths."""
        rows = set(self.packed.fitting(list(self.rows.values()), wanted))
        found = [(place, row) for place, row in self.rows.items() if row in rows]
        others = [(place, ABSENT) for place, result in self.fresh.items() if wanted.fits(result)]
        if others:
            found = sorted([*found, *others], key=lambda each: _parts(each[0]))
        for place, row in found:
            if row == ABSENT:
                yield place, self.fresh[place], False
            else:
                yield place, self.packed.result(row), place in self.unread


@collector.paused()
def holdings(root: Path, read: Read, tell: Tell) -> Holdings:
    """Every result in a folder.

    ``read`` gives the JSON of a file and the result in it; ``tell`` takes what can't be read.
    """
    if not root.is_dir():
        return Holdings(Packed(Arrays.none()), {})
    known, now = _load(root), time.time_ns()
    folders, n_listed = _listed(str(root), known.folders, tell)
    stamps, remembered = _stamped(str(root), folders, known)
    files = sorted((place for place in _files(folders) if place not in remembered), key=_parts)
    packer: Packer | None = None
    if known.rows and n_listed >= MANY:
        packer = Packer(known.arrays.take(list(remembered.values())))
    fresh: list[str] = []
    waiting: list[tuple[strict_json.Json, Result]] = []
    for place in files:
        try:
            waiting.append(read(root / place))
        except StoreError as error:
            tell(error)
            continue
        fresh.append(place)
        if packer is None and len(waiting) == MANY:
            packer = Packer(known.arrays.take(list(remembered.values())))
        if packer is not None:
            for value, result in waiting:
                packer.add(value, result)
            waiting.clear()
    if packer is None:
        results = (result for _, result in waiting)
        return Holdings(Packed(known.arrays), remembered, remembered.keys(), dict(zip(fresh, results, strict=True)))
    places = [*remembered, *fresh]
    order = sorted(range(len(places)), key=lambda row: _parts(places[row]))
    arrays = packer.arrays().take(order)
    rows = {places[old]: new for new, old in enumerate(order)}
    settled = {place: (row, _settled(stamps.get(place, NO_STAMP), now)) for place, row in rows.items()}
    seen = {place: (_settled(stamp, now), names) for place, (stamp, names) in folders.items()}
    _save(root, _Catalogue(seen, settled, arrays))
    return Holdings(Packed(arrays), rows, remembered.keys())


def _parts(place: str) -> list[str]:
    return place.split("/")


def _stamp(path: str, *, folder: bool = False) -> Stamp:
    """Raises ``OSError``. The size of a folder says nothing, and some file systems change it as they like."""
    found = os.stat(path)  # noqa: PTH116 - a hundred thousand of them
    return 0 if folder else found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino & (2**63 - 1)


def _settled(stamp: Stamp, now: int) -> Stamp:
    """A stamp, or none where the thing may have changed again since with the same one."""
    return stamp if max(stamp[1], stamp[2]) < now - UNSETTLED_NS else NO_STAMP


def _stamped(root: str, folders: Folders, known: _Catalogue) -> tuple[dict[str, Stamp], dict[str, int]]:
    """(stamp of each file, row of each that is as it was)."""
    stamps: dict[str, Stamp] = {}
    remembered: dict[str, int] = {}
    nothing = ABSENT, NO_STAMP
    for place in _files(folders):
        row, before = known.rows.get(place, nothing)
        try:
            stamp = stamps[place] = _stamp(f"{root}/{place}")
        except OSError:  # it is told on reading
            continue
        if stamp == before:
            remembered[place] = row
    in_order = sorted(remembered.items(), key=lambda each: each[1])
    return stamps, dict(in_order)


def _listed(root: str, known: Folders, tell: Tell) -> tuple[dict[str, tuple[Stamp, Sequence[str]]], int]:
    """(the folders that are there now, how many of them had to be listed)."""
    found: dict[str, tuple[Stamp, Sequence[str]]] = {}
    n_listed = 0
    nothing: tuple[Stamp, Sequence[str]] = NO_STAMP, ()
    waiting = [("", 0)]
    while waiting:
        place, depth = waiting.pop()
        path = f"{root}/{place}" if place else root
        before, names = known.get(place, nothing)
        try:
            stamp = _stamp(path, folder=True)  # before it is listed: what changes meanwhile shows later
            if stamp != before:
                names = _names(path, depth)
                n_listed += 1
        except OSError as error:
            tell(StoreError(f"{path}: can't be read ({error.strerror})."))
            continue
        found[place] = stamp, names
        if depth < DEPTH:
            waiting += [(f"{place}/{name}" if place else name, depth + 1) for name in names]
    return found, n_listed


def _names(path: str, depth: int) -> Sequence[str]:
    """The names in a folder that matter: its folders, or in that of a task what should be results."""
    with os.scandir(path) as there:
        if depth == DEPTH:
            return [each.name for each in there if each.name.endswith(".json") and not each.name.startswith(".")]
        return [each.name for each in there if each.is_dir(follow_symlinks=False)]


def _files(folders: Folders) -> Iterator[str]:
    """The files that should be results."""
    for place, (_, names) in folders.items():
        if place.count("/") == DEPTH - 1:
            for name in names:
                yield f"{place}/{name}"


def _form() -> str:
    """What a catalogue has to be of to be understood."""
    return strict_json.canonical([FORM, border.form(Result), installed(("embeval-toolkit",))])


def _save(root: Path, catalogue: _Catalogue) -> None:
    """Writes a catalogue; where that can't be done, everything goes on without."""
    arrays = catalogue.arrays
    content = io.BytesIO()
    np.savez(
        content,
        form=_packed_texts([_form()]),
        folders=_packed_texts(catalogue.folders),
        folder_stamps=_packed_stamps(stamp for stamp, _ in catalogue.folders.values()),
        names=_packed_texts("/".join(names) for _, names in catalogue.folders.values()),
        files=_packed_texts(catalogue.rows),
        file_stamps=_packed_stamps(stamp for _, stamp in catalogue.rows.values()),
        texts=_packed_texts(arrays.texts),
        own=_packed_texts(arrays.own),
        parts=arrays.parts,
        starts=arrays.starts,
        numbers=arrays.numbers,
        rests=arrays.rests,
    )
    with contextlib.suppress(StoreError):
        atomic.sweep(root)
        atomic.write(root / FILE, content.getvalue())


def _load(root: Path) -> _Catalogue:
    """The catalogue of a folder; one of nothing where there is none that can be read and understood."""
    try:
        with (root / FILE).open("rb") as file, np.load(file, allow_pickle=False) as read:
            if _texts(read["form"]) != [_form()]:
                return _Catalogue()
            names = ([*names.split("/")] if names else [] for names in _texts(read["names"]))
            folders = zip(_texts(read["folders"]), zip(_stamps(read["folder_stamps"]), names, strict=True), strict=True)
            rows = zip(_texts(read["files"]), enumerate(_stamps(read["file_stamps"])), strict=True)
            return _Catalogue(
                dict(folders),
                dict(rows),
                Arrays(
                    texts=tuple(_texts(read["texts"])),
                    own=tuple(_texts(read["own"])),
                    **{name: read[name] for name in ("parts", "starts", "numbers", "rests")},
                ),
            )
    except Exception:  # whatever is wrong with a memory, there are the files
        return _Catalogue()


def _packed_texts(texts: Iterable[str]) -> npt.NDArray[np.uint8]:
    """Names and JSON, neither of which has a zero in it."""
    return np.frombuffer("".join(f"{text}\0" for text in texts).encode("utf-8", "surrogateescape"), np.uint8)


def _texts(packed: npt.NDArray[np.uint8]) -> list[str]:
    return packed.tobytes().decode("utf-8", "surrogateescape").split("\0")[:-1]


def _packed_stamps(stamps: Iterable[Stamp]) -> npt.NDArray[np.int64]:
    return np.array(list(stamps), np.int64).reshape(-1, len(NO_STAMP))


def _stamps(packed: npt.NDArray[np.int64]) -> list[Stamp]:
    return list(zip(*packed.T.tolist(), strict=True))
