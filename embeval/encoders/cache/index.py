"""The index of the cache: an LMDB environment, opened when it is needed, shared by the threads of a process.

LMDB must not be opened twice in a process, nor used across a fork, and its map must grow by hand: all of that is
kept here. Work is handed in as a function of a transaction, so that it can be done again in a larger map.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from embeval.errors import StoreError

if TYPE_CHECKING:
    from lmdb import Environment, Transaction

FORMAT = b"1"
INITIAL_MAP_BYTES = 64 << 20
MAX_READERS = 2048
"""Threads, over all processes, that may read at once."""
_FORMAT_KEY = b"mformat"

T = TypeVar("T")


@dataclass(frozen=True)
class Tables:
    """A transaction, in which each table is named by one byte that its keys begin with."""

    txn: Transaction[bytes]

    def get(self, table: bytes, key: bytes) -> bytes | None:
        """A value, or None."""
        return self.txn.get(table + key)

    def put(self, table: bytes, key: bytes, value: bytes) -> None:
        """Sets a value."""
        self.txn.put(table + key, value)

    def delete(self, table: bytes, key: bytes) -> None:
        """Removes a value, if it is there."""
        self.txn.delete(table + key)

    def items(self, table: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Keys and values of a table, in the order of the keys."""
        cursor = self.txn.cursor()
        if cursor.set_range(table):
            for key, value in cursor:
                if not key.startswith(table):
                    return
                yield key[len(table) :], value


class Index:
    """The index in one folder. All methods may raise ``OSError``, ``lmdb.Error`` and ``StoreError``."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.users = 0
        self._lock = threading.RLock()
        self._env: Environment | None = None
        self._identity: tuple[int, int] | None = None
        self._pid = os.getpid()
        self._busy = False
        self._inherited: Environment | None = None

    @property
    def file(self) -> Path:
        """LMDB's data file."""
        return self.folder / "data.mdb"

    def read(self, work: Callable[[Tables], T]) -> T | None:
        """What ``work`` gives for the index as it is; None where there is no index. Keep it short."""
        return self._do(work, write=False)

    def write(self, work: Callable[[Tables], T]) -> T:
        """What ``work`` gives, once all it did is on disk; nothing of it is, where it raises.

        One writer at a time, over all processes. ``work`` may be called more than once.
        """
        done = self._do(lambda tables: (work(tables),), write=True)
        assert done is not None
        return done[0]

    def close(self) -> None:
        """Gives file and map back; the next call opens them again."""
        with self._lock:
            if self._env is not None:
                self._env.close()
                self._env = None

    def _do(self, work: Callable[[Tables], T], *, write: bool) -> T | None:
        import lmdb

        with self._lock:
            while True:
                try:
                    env = self._opened(create=write)
                except lmdb.MapResizedError:  # by another process, between opening and looking: opened again
                    continue
                if env is None:
                    return None
                try:
                    self._busy = True
                    with env.begin(write=write) as txn:
                        if not self._is_current():  # removed while this writer waited for its turn
                            continue
                        if write:
                            _fill_map(env, self.file)
                        return work(Tables(txn))
                except lmdb.MapFullError:
                    env.set_mapsize(2 * env.info()["map_size"])
                except lmdb.MapResizedError:  # by another process
                    env.set_mapsize(0)
                except lmdb.Error:
                    self.close()  # after some errors, an environment fails for good
                    raise
                finally:
                    self._busy = False

    def _is_current(self) -> bool:
        return self._identity == _identity(self.file)

    def _opened(self, *, create: bool) -> Environment | None:
        if self._env is not None and (self._pid != os.getpid() or not self._is_current()):
            self.close()
        if self._env is None and (create or self.file.exists()):
            self._open()
        return self._env

    def _open(self) -> None:
        import lmdb

        self.folder.mkdir(parents=True, exist_ok=True)
        env = lmdb.open(str(self.folder), map_size=INITIAL_MAP_BYTES, max_readers=MAX_READERS, readahead=False)
        try:
            env.reader_check()  # places of readers that were killed
            stat, info = env.stat(), env.info()
            if self.file.stat().st_size < (info["last_pgno"] + 1) * stat["psize"]:
                raise lmdb.CorruptedError("the index is cut short")  # reading on would kill the process
            _check_format(env, self.file, new=stat["entries"] == 0)
            self._identity = _identity(self.file)
        except BaseException:
            env.close()
            raise
        self._env, self._pid = env, os.getpid()

    def after_fork(self) -> None:
        """In the child: a lock of its own. The parent's environment is closed here before the child opens one.

        Where a thread of the parent was in the middle of a transaction, closing would end that, so it is never closed;
        LMDB then refuses to open another one, and this child has no cache.
        """
        self._lock = threading.RLock()
        if self._busy:
            self._inherited, self._env, self._busy = self._env, None, False


def _fill_map(env: Environment, file: Path) -> None:
    """Makes the file as long as the map, with a hole; to be called in a write transaction, so that nobody cuts it.

    LMDB counts pages that were taken and given back in one transaction, and never writes them. A file that such pages
    end would look like one that was cut.
    """
    n_bytes = env.info()["map_size"]
    if file.stat().st_size < n_bytes:
        os.truncate(file, n_bytes)


def _check_format(env: Environment, file: Path, *, new: bool) -> None:
    with env.begin(write=new) as txn:
        if new:
            _fill_map(env, file)
        found = txn.get(_FORMAT_KEY)
        if found is None and new:
            txn.put(_FORMAT_KEY, FORMAT)
        elif found != FORMAT:
            shown = "unknown" if found is None else found.decode(errors="replace")
            raise StoreError(f"it has format {shown}, and this version of embeval reads {FORMAT.decode()}")


def _identity(file: Path) -> tuple[int, int] | None:
    try:
        found = file.stat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


_indexes: dict[Path, Index] = {}
_registry = threading.Lock()


def share(folder: Path) -> Index:
    """The one ``Index`` of this process for a folder; to be given back by ``release``."""
    with _registry:
        index = _indexes.setdefault(folder, Index(folder))
        index.users += 1
        return index


def release(index: Index) -> None:
    """Closes an index that nobody else in this process uses."""
    with _registry:
        index.users -= 1
        if index.users == 0:
            del _indexes[index.folder]
            index.close()


def _after_fork() -> None:
    global _registry
    _registry = threading.Lock()
    for index in _indexes.values():
        index.after_fork()


os.register_at_fork(after_in_child=_after_fork)
