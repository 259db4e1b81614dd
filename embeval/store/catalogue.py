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
from array import array
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
Stamps = npt.NDArray[np.int64]
"""int64 [N, 4]: one in a row."""
Read = Callable[[Path], tuple[strict_json.Json, Result]]
Tell = Callable[[StoreError], None]

NO_STAMP: Stamp = (-1, -1, -1, -1)
"""What nothing has."""
GONE: Stamp = (-2, -2, -2, -2)
"""What is put down for a thing that isn't there; unlike that of any that was."""


@dataclass(frozen=True)
class _Folders:
    """The root, which is called "", and the folders in it."""

    places: Sequence[str] = ()
    """Their paths."""
    stamps: Stamps = field(default_factory=lambda: _stamps([]))
    """Their stamps."""
    names: Sequence[str] = ()
    """The names in each that matter, one after the other with ``/`` between them."""

    def files(self) -> list[str]:
        """What should be results."""
        inside = zip(self.places, self.names, strict=True)
        of_tasks = ((place, names) for place, names in inside if names and _depth(place) == DEPTH)
        return [f"{place}/{name}" for place, names in of_tasks for name in names.split("/")]


@dataclass(frozen=True)
class _Catalogue:
    """What was seen and read at some time."""

    folders: _Folders = field(default_factory=_Folders)
    """The folders."""
    files: Sequence[str] = ()
    """File of each result, sorted by the parts of the paths."""
    stamps: Stamps = field(default_factory=lambda: _stamps([]))
    """Their stamps."""
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
    there = folders.files()
    stamps = _stamps_of(str(root), there)
    remembered = _unchanged(there, stamps, known)
    files = sorted((place for place in there if place not in remembered), key=_parts)
    packer: Packer | None = None
    if known.files and n_listed >= MANY:
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
    at = {place: number for number, place in enumerate(there)}
    settled = _settled(stamps[[at[place] for place in rows]], now)
    seen = _Folders(folders.places, _settled(folders.stamps, now), folders.names)
    _save(root, _Catalogue(seen, list(rows), settled, arrays))
    return Holdings(Packed(arrays), rows, remembered.keys())


def _parts(place: str) -> list[str]:
    return place.split("/")


def _stamp(path: str, *, folder: bool = False) -> Stamp:
    """Raises ``OSError``. The size of a folder says nothing, and some file systems change it as they like."""
    found = os.stat(path)  # noqa: PTH116 - a hundred thousand of them
    return 0 if folder else found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino & (2**63 - 1)


def _stamps(stamps: Iterable[Stamp]) -> Stamps:
    return np.array(list(stamps), np.int64).reshape(-1, len(NO_STAMP))


def _stamps_of(root: str, places: Iterable[str], *, folder: bool = False) -> Stamps:
    """The stamps of files, or of folders."""
    made = array("q")
    for place in places:
        try:
            made.extend(_stamp(f"{root}/{place}", folder=folder))
        except OSError:  # it is told on reading
            made.extend(GONE)
    return np.array(made, np.int64).reshape(-1, len(NO_STAMP))


def _settled(stamps: Stamps, now: int) -> Stamps:
    """Stamps, or none where a thing may have changed again since with the same one."""
    young = stamps[:, 1:3].max(axis=1) >= now - UNSETTLED_NS
    return np.where(young[:, None], np.array(NO_STAMP), stamps)


def _unchanged(places: Sequence[str], stamps: Stamps, known: _Catalogue) -> dict[str, int]:
    """File -> row, of those that are as they were, in the order of the rows."""
    before = {place: row for row, place in enumerate(known.files)}
    rows = np.array([before.get(place, ABSENT) for place in places], np.int64)
    same = (stamps == np.concatenate([known.stamps, _stamps([NO_STAMP])])[rows]).all(axis=1)  # ABSENT is the last
    found = sorted((int(rows[at]), places[at]) for at in np.flatnonzero(same).tolist())
    return {place: row for row, place in found}


def _listed(root: str, known: _Folders, tell: Tell) -> tuple[_Folders, int]:
    """(the folders that are there now, how many of them had to be listed)."""
    stamps = _stamps_of(root, known.places, folder=True)
    changed = np.flatnonzero((stamps != known.stamps).any(axis=1)).tolist()
    listed: dict[str, tuple[Stamp, str]] = {}
    for place in (known.places[at] for at in changed):
        with contextlib.suppress(OSError):  # it is told below, if it still is among those that are there
            listed[place] = _inside(root, place)
    if known.places and all(listed.get(known.places[at], ("", ""))[1] == known.names[at] for at in changed):
        stamps[changed] = [listed[known.places[at]][0] for at in changed]
        return _Folders(known.places, stamps, known.names), len(changed)
    unchanged = {place: at for at, place in enumerate(known.places)}
    for at in changed:
        del unchanged[known.places[at]]
    found: dict[str, tuple[Stamp, str]] = {}
    waiting = [""]
    while waiting:
        place = waiting.pop()
        try:
            if place in unchanged:
                at = unchanged[place]
                size, content, entry, inode = known.stamps[at].tolist()
                found[place] = (size, content, entry, inode), known.names[at]
            else:
                found[place] = listed[place] = listed.get(place) or _inside(root, place)
        except OSError as error:
            path = f"{root}/{place}" if place else root
            tell(StoreError(f"{path}: can't be read ({error.strerror})."))
            continue
        if _depth(place) < DEPTH and (names := found[place][1]):
            waiting += [f"{place}/{name}" if place else name for name in names.split("/")]
    inside = [names for _, names in found.values()]
    return _Folders(list(found), _stamps(stamp for stamp, _ in found.values()), inside), len(listed)


def _depth(place: str) -> int:
    """Folders between the root and what is in a folder."""
    return place.count("/") + 1 if place else 0


def _inside(root: str, place: str) -> tuple[Stamp, str]:
    """(stamp of a folder, the names in it that matter). Raises ``OSError``."""
    path = f"{root}/{place}" if place else root
    stamp = _stamp(path, folder=True)  # before it is listed: what changes meanwhile shows later
    return stamp, "/".join(sorted(_names(path, _depth(place))))


def _names(path: str, depth: int) -> Sequence[str]:
    """The names in a folder that matter: its folders, or in that of a task what should be results."""
    with os.scandir(path) as there:
        if depth == DEPTH:
            return [each.name for each in there if each.name.endswith(".json") and not each.name.startswith(".")]
        return [each.name for each in there if each.is_dir(follow_symlinks=False)]


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
        folders=_packed_texts(catalogue.folders.places),
        folder_stamps=catalogue.folders.stamps,
        names=_packed_texts(catalogue.folders.names),
        files=_packed_texts(catalogue.files),
        file_stamps=catalogue.stamps,
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
            return _Catalogue(
                _Folders(_texts(read["folders"]), read["folder_stamps"], _texts(read["names"])),
                _texts(read["files"]),
                read["file_stamps"],
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
