"""Loading with a mirror: no network, and what ``datasets`` makes of the files in a folder of ours."""

from __future__ import annotations

import contextlib
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from embeval.core import strict_json
from embeval.encoders.locate import cache_folder
from embeval.errors import ConfigError, DataError
from embeval.mteb_bridge import door, mirror

FOLDER = "mteb"
"""Below ``cache_folder()``: one folder for what ``datasets`` made of each data set."""
MAX_BYTES = 20 * 1024**3
"""Size of that folder from which the data sets go that were not used for the longest time."""
BUSY_S = 3600
"""So long nothing is removed that another process may just have begun to use."""
NETWORK_EVENTS = ("socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto")

_changing = threading.RLock()  # the settings of datasets are those of the whole process
_sealed: set[int] = set()


class NetworkRefusedError(ConnectionError):
    """Something tried to reach the network while data was loaded from a mirror."""


@contextlib.contextmanager
def sealed(folder: Path, task_name: str, place: mirror.Place) -> Iterator[None]:
    """Inside, this thread reaches no network, and data sets of the hub are looked for in the mirror ``folder``."""
    with _changing, contextlib.ExitStack() as stack:
        stack.enter_context(_offline())
        stack.enter_context(_no_sockets())
        stack.enter_context(_redirected(folder, task_name, place))
        stack.enter_context(_own_cache(place))
        if not place.is_published:
            stack.enter_context(_names_as_wanted())
        yield


@contextlib.contextmanager
def _offline() -> Iterator[None]:
    import datasets
    import huggingface_hub.constants as hub

    before = datasets.config.HF_HUB_OFFLINE, hub.HF_HUB_OFFLINE
    datasets.config.HF_HUB_OFFLINE = hub.HF_HUB_OFFLINE = True
    try:
        yield
    finally:
        datasets.config.HF_HUB_OFFLINE, hub.HF_HUB_OFFLINE = before


@contextlib.contextmanager
def _no_sockets() -> Iterator[None]:
    _listen()
    thread = threading.get_ident()
    _sealed.add(thread)
    try:
        yield
    finally:
        _sealed.discard(thread)


@cache
def _listen() -> None:
    """An audit hook can't be taken back, but it sees every connection, whatever library makes it."""
    sys.addaudithook(_refuse_network)


def _refuse_network(event: str, arguments: tuple[Any, ...]) -> None:
    if not _sealed or event not in NETWORK_EVENTS or threading.get_ident() not in _sealed:
        return
    address = arguments[-1] if event in ("socket.connect", "socket.sendto") else arguments[0]
    if event == "socket.connect" and isinstance(address, str | bytes):
        return  # a socket of this machine
    raise NetworkRefusedError(f"with a mirror the network is not used, and something asked for {address!r}")


@contextlib.contextmanager
def _redirected(folder: Path, task_name: str, place: mirror.Place) -> Iterator[None]:
    """Some tasks name a data set in their code, whatever their metadata says."""
    import datasets.inspect as looking
    import datasets.load as loading

    original = loading.dataset_module_factory
    own = mirror.sources()[task_name].path

    def here(path: str, revision: str | None = None, **options: Any) -> Any:
        if not Path(path).is_dir():
            found = place.folder if path == own else _elsewhere(folder, path, revision, task_name)
            path, revision = str(found), None
        return original(path, revision=revision, **options)

    loading.dataset_module_factory = looking.dataset_module_factory = here
    try:
        yield
    finally:
        loading.dataset_module_factory = looking.dataset_module_factory = original


def _elsewhere(folder: Path, path: str, revision: str | None, task_name: str) -> Path:
    """The folder of another data set than the task's own. Raises ``DataError``."""
    stored = mirror.stored(folder, path)
    fitting = [each for each in stored if revision in (None, each.name)]
    if len(fitting) != 1:
        which = f" at revision {revision}" if revision else ""
        raise DataError(
            f"mteb:{task_name} also needs the data set {path}{which}, of which the mirror {folder} has "
            f"{'several revisions' if fitting else 'none'}."
        )
    place = mirror.Place(fitting[0], mirror.read_manifest(fitting[0]))
    mirror.refuse_changed(place)
    return place.folder


@contextlib.contextmanager
def _names_as_wanted() -> Iterator[None]:
    """Inside, a column that has the name already which a task would give it is left alone.

    Tasks rename columns of the hub's data set; rows that people have at hand often carry the final names.
    """
    from datasets import Dataset

    one, several = Dataset.rename_column, Dataset.rename_columns

    # Named as datasets names them, which passes some by name.
    def rename_column(self: Any, original_column_name: str, new_column_name: str, *rest: Any) -> Any:
        is_done = original_column_name not in self.column_names and new_column_name in self.column_names
        return self if is_done else one(self, original_column_name, new_column_name, *rest)

    def rename_columns(self: Any, column_mapping: Mapping[str, str], *rest: Any) -> Any:
        there = self.column_names
        left = {old: new for old, new in column_mapping.items() if old in there or new not in there}
        return several(self, left, *rest) if left else self

    Dataset.rename_column, Dataset.rename_columns = rename_column, rename_columns
    try:
        yield
    finally:
        Dataset.rename_column, Dataset.rename_columns = one, several


@contextlib.contextmanager
def _own_cache(place: mirror.Place) -> Iterator[None]:
    """Inside, ``datasets`` keeps the tables that it makes in a folder which is found again by what the files hold.

    By itself it takes a file for unchanged that has the same name and time.
    """
    import datasets

    key = strict_json.digest(
        {"files": mirror.hashes(place.folder), "datasets": datasets.__version__, "mteb": door.installed_version()}
    )
    names = ("HF_DATASETS_CACHE", "DOWNLOADED_DATASETS_PATH", "EXTRACTED_DATASETS_PATH")
    before = {name: getattr(datasets.config, name) for name in names}
    with _folder(key[:32]) as own:
        unpacked = own / datasets.config.DOWNLOADED_DATASETS_DIR
        places = own, unpacked, unpacked / datasets.config.EXTRACTED_DATASETS_DIR
        for name, where in zip(names, places, strict=True):
            setattr(datasets.config, name, where)
        try:
            yield
        finally:
            for name, value in before.items():
                setattr(datasets.config, name, value)
            shutil.rmtree(unpacked, ignore_errors=True)


@contextlib.contextmanager
def _folder(key: str) -> Iterator[Path]:
    """A folder of ours; where there can be none, a temporary one: what is open in it stays readable."""
    try:
        own = cache_folder() / FOLDER / key
        is_new = not own.exists()
        own.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=own):
            pass
    except (OSError, ConfigError):
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as temporary:
            yield Path(temporary)
        return
    own.touch()
    for left in own.rglob("cache-*.arrow"):  # of transforms, which may get another name each time
        with contextlib.suppress(OSError):
            if left.stat().st_mtime < time.time() - BUSY_S:
                left.unlink()
    if is_new:
        make_room(own.parent)
    yield own


def make_room(folder: Path, max_bytes: int = MAX_BYTES) -> None:
    """Removes data sets that were not used for the longest time, until the rest is not larger than ``max_bytes``."""
    with contextlib.suppress(OSError):
        sizes = {
            each: sum(file.stat().st_size for file in each.rglob("*") if file.is_file()) for each in folder.iterdir()
        }
        used = {each: each.stat().st_mtime for each in sizes}
        for each in sorted(sizes, key=lambda each: used[each]):
            if sum(sizes.values()) <= max_bytes or used[each] > time.time() - BUSY_S:
                return
            shutil.rmtree(each, ignore_errors=True)
            del sizes[each]
