"""The cache of vectors: what was put comes back bit for bit or not at all, whatever happens to process and disk."""

from __future__ import annotations

import errno
import os
import re
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from embeval.core.progress import Silent
from embeval.encoders.cache import TokenCounts, VectorCache, index, open_cache, records, upkeep
from embeval.encoders.cache.index import Index, Tables
from embeval.encoders.cache.sizes import parse_size, size_text
from embeval.errors import ConfigError, StoreError
from tests.conftest import REPOSITORY
from tests.support.caching import DESCRIPTION, DIM, KEY, PER_PUT, batch, counts_of, refuse_wrong, vectors_of

OTHER_KEY = "a0" * 32
ROW_BYTES = 48 + 4 * DIM
"""By the layout that shards.py describes."""
TEXTS = ["one", "two", "three", "four"]


@pytest.fixture
def cache(tmp_path: Path) -> Iterator[VectorCache]:
    """A cache in a folder that is not there yet."""
    made = VectorCache(tmp_path / "vectors")
    yield made
    made.close()


def put(cache: VectorCache, texts: list[str], key: str = KEY) -> None:
    """Puts texts with the vectors that follow from them."""
    cache.shelf(key, DESCRIPTION).put(texts, vectors_of(texts), counts_of(texts))


def there(cache: VectorCache, texts: list[str], key: str = KEY) -> list[str]:
    """Which of the texts the cache has."""
    return [texts[row] for row in cache.shelf(key, DESCRIPTION).get(texts).rows]


def files(cache: VectorCache) -> list[Path]:
    """Files of rows, the oldest first."""
    return sorted(cache.folder.glob("shelves/*/*.rows"), key=lambda path: path.name)


def disk_bytes(folder: Path) -> int:
    """As du counts."""
    return sum(path.stat().st_blocks * 512 for path in folder.rglob("*") if path.is_file())


def process(*words: object) -> subprocess.Popen[str]:
    """``tests.support.caching`` in a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "tests.support.caching", *map(str, words)],
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finished(started: subprocess.Popen[str]) -> str:
    """What a process printed, once it is clear that it went well."""
    out, err = started.communicate(timeout=120)
    assert started.returncode == 0, err[-2000:]
    return out


# --- put and get --------------------------------------------------------------------------------------------------


def test_vectors_and_counts_come_back_bit_for_bit(cache: VectorCache, tmp_path: Path) -> None:
    """Also the bits of -0.0 and of the smallest number, and from another object on the same folder."""
    vectors = vectors_of(TEXTS)
    vectors[0, :2] = np.array([-0.0, 1e-45], dtype=np.float32)
    counts = counts_of(TEXTS)
    cache.shelf(KEY, DESCRIPTION).put(TEXTS, vectors, counts)
    cache.close()
    again = VectorCache(tmp_path / "vectors")
    found = again.shelf(KEY, {}).get(TEXTS)
    assert found.rows.tolist() == [0, 1, 2, 3]
    assert (str(found.rows.dtype), str(found.vectors.dtype)) == ("int64", "float32")
    assert found.vectors.tobytes() == vectors.tobytes()
    assert found.counts.lengths.tolist() == [3, 3, 5, 4]
    assert found.counts.lost is not None
    assert found.counts.lost.tolist() == [0, 0, 2, 1]
    assert found.counts.unknown is None
    assert found.counts.keys.tobytes() == counts.keys.tobytes()
    again.close()


def test_rows_are_those_of_the_question(cache: VectorCache) -> None:
    """In its order, with its repetitions, without what is not there."""
    put(cache, TEXTS)
    found = cache.shelf(KEY, {}).get(["four", "none", "one", "four", "nor this"])
    assert found.rows.tolist() == [0, 2, 3]
    assert found.vectors.tobytes() == vectors_of(["four", "one", "four"]).tobytes()
    found.vectors[:] = 0  # a copy: what is on disk stays
    assert refuse_wrong(cache, TEXTS) == 4


def test_a_text_is_kept_once(cache: VectorCache) -> None:
    """Within a put and over two; the vector that was there first stays."""
    put(cache, ["one", "two", "one"])
    cache.shelf(KEY, {}).put(["two", "three"], np.ones((2, DIM), np.float32), counts_of(["two", "three"]))
    found = cache.shelf(KEY, {}).get(["one", "two", "three"])
    assert found.vectors[:2].tobytes() == vectors_of(["one", "two"]).tobytes()
    assert (found.vectors[2] == 1).all()
    assert files(cache)[0].stat().st_size == 3 * ROW_BYTES


@pytest.mark.parametrize("text", ["", "\0", "a\0", "a", "\ud800", "\ud800\udc00", "\U00010000", "é", "e\u0301"])
def test_any_text_and_no_other(cache: VectorCache, text: str) -> None:
    """Empty, NUL, lone surrogates; and what looks alike is not alike."""
    put(cache, [text])
    assert there(cache, ["", "\0", "a\0", "a", "\ud800", "\ud800\udc00", "\U00010000", "é", "e\u0301"]) == [text]


def test_nothing_of_nothing(cache: VectorCache) -> None:
    """No texts are fine, before there is a cache and after; looking makes no folder."""
    found = cache.shelf(KEY, {}).get([])
    assert (found.rows.shape, found.vectors.shape, found.counts.keys.shape) == ((0,), (0, 0), (0, 16))
    cache.shelf(KEY, {}).put([], np.zeros((0, DIM), np.float32), counts_of([]))
    assert there(cache, TEXTS) == []
    assert cache.note("x") is None
    assert not cache.folder.exists()
    put(cache, TEXTS)
    assert cache.shelf(KEY, {}).get([]).rows.tolist() == []
    assert cache.shelf(KEY, {}).get(["no"]).vectors.shape == (0, DIM)
    assert cache.trouble is None


def test_another_key_is_another_shelf(cache: VectorCache) -> None:
    """Fault F8: role, prompt, weights, dtype … are in the key, so nothing of one is ever given for the other."""
    put(cache, TEXTS)
    assert there(cache, TEXTS, OTHER_KEY) == []
    cache.shelf(OTHER_KEY, {}).put(["one"], np.ones((1, 2), np.float32), counts_of(["one"]))
    assert cache.shelf(OTHER_KEY, {}).get(TEXTS).vectors.tolist() == [[1, 1]]
    assert refuse_wrong(cache, TEXTS) == 4


def test_what_does_not_fit_is_refused(cache: VectorCache) -> None:
    """A wrong call is a fault of the program, and nothing of it is kept."""
    shelf = cache.shelf(KEY, DESCRIPTION)
    put(cache, ["one"])
    two, counts = ["two"], counts_of(["two"])
    with pytest.raises(ValueError, match="holds vectors of 24 numbers, not 23"):
        shelf.put(two, vectors_of(two, 23), counts)
    with pytest.raises(ValueError, match=re.escape("must be float32 [n, d], not float64 [1, 24]")):
        shelf.put(two, vectors_of(two).astype(np.float64), counts)
    with pytest.raises(ValueError, match="2 texts, but 1 vectors"):
        shelf.put(TEXTS[:2], vectors_of(two), counts)
    with pytest.raises(ValueError, match="1 texts, but 2 unknown"):
        shelf.put(two, vectors_of(two), TokenCounts(counts.lengths, None, np.zeros(2, np.int64), counts.keys))
    with pytest.raises(ValueError, match=re.escape("keys must be uint8 [1, 16]")):
        shelf.put(two, vectors_of(two), TokenCounts(counts.lengths, None, None, counts.keys[:, :8]))
    for key in ("", "5c" * 31, "5C" * 32, "../" + "0" * 61):
        with pytest.raises(ValueError, match="must be 64 hex digits"):
            cache.shelf(key, {})
    assert there(cache, ["one", "two"]) == ["one"]


def test_notes(cache: VectorCache) -> None:
    """Small values, the last one counts."""
    cache.put_note("model/" + "x" * 1000, b"first")
    cache.put_note("model/" + "x" * 1000, b"\0second")
    assert cache.note("model/" + "x" * 1000) == b"\0second"
    assert cache.note("model/") is None


def test_the_layout_of_a_row(cache: VectorCache) -> None:
    """As shards.py says, read by plain means: crc32, two digests, three counts, the vector."""
    import struct
    import zlib

    put(cache, ["three"])
    row = files(cache)[0].read_bytes()
    assert len(row) == ROW_BYTES
    assert struct.unpack("<I", row[:4])[0] == zlib.crc32(row[4:])
    assert row[20:36] == counts_of(["three"]).keys.tobytes()
    assert struct.unpack("<iii", row[36:48]) == (5, 2, -1)
    assert row[48:] == vectors_of(["three"]).tobytes()


# --- size ---------------------------------------------------------------------------------------------------------


def test_the_oldest_go_first(tmp_path: Path) -> None:
    """Over all shelves, whole files at a time; the folder never outgrows the limit."""
    limit = 600_000
    cache = VectorCache(tmp_path / "vectors", max_bytes=limit)
    for number in range(120):
        put(cache, batch("fifo", number), OTHER_KEY if number % 3 == 0 else KEY)
        assert disk_bytes(cache.folder) <= limit
        assert sum(path.stat().st_size for path in files(cache)) == sum(
            shelf.n_bytes for shelf in upkeep.stats(cache).shelves
        )
        assert there(cache, batch("fifo", number), OTHER_KEY if number % 3 == 0 else KEY) == batch("fifo", number)
    for key, numbers in ((KEY, [n for n in range(120) if n % 3]), (OTHER_KEY, [n for n in range(120) if n % 3 == 0])):
        kept = [bool(there(cache, [text], key)) for number in numbers for text in batch("fifo", number)]
        assert kept == sorted(kept)  # none, and from some text on, all
        assert not kept[0]
    # Nor is more dropped than needs be; of vectors as short as these, the index takes as much as they do.
    assert sum(path.stat().st_size for path in files(cache)) > limit / 3
    found = upkeep.stats(cache)
    counted = upkeep.verify(cache, Silent())
    assert (counted.bad, counted.left_over) == ((), ())
    assert counted.n_vectors == sum(shelf.n_vectors for shelf in found.shelves)
    assert counted.n_vectors * ROW_BYTES == sum(shelf.n_bytes for shelf in found.shelves)
    cache.close()


def test_a_put_beyond_the_limit_is_not_kept(tmp_path: Path) -> None:
    """It fails nobody, what was there stays, and the reason is told once."""
    cache = VectorCache(tmp_path / "vectors", max_bytes=200_000)
    put(cache, ["one"])
    put(cache, [str(number) for number in range(2000)])
    assert there(cache, ["one", "0", "1999"]) == ["one"]
    assert cache.trouble is not None
    assert "its limit of 195 KiB is less than what is to be kept at once. Set EMBEVAL_CACHE_LIMIT" in cache.trouble
    put(cache, ["two"])
    assert there(cache, ["one", "two"]) == ["one", "two"]
    cache.close()


def test_a_limit_of_nothing_is_no_cache(tmp_path: Path) -> None:
    """And no trouble either."""
    cache = VectorCache(tmp_path / "vectors", max_bytes=0)
    put(cache, TEXTS)
    assert (there(cache, TEXTS), cache.trouble, cache.folder.exists()) == ([], None, False)
    cache.close()


def test_disk_use_is_near_that_of_the_numbers(tmp_path: Path) -> None:
    """40,000 vectors of 256 numbers in blocks: at most 1.2 times 1,024 bytes each, index included."""
    cache = VectorCache(tmp_path / "vectors")
    shelf = cache.shelf(KEY, {})
    vectors = np.random.default_rng(0).standard_normal((10_000, 256), dtype=np.float32)
    for number in range(4):
        texts = [f"{number} {row}" for row in range(10_000)]
        none = np.zeros(10_000, dtype=np.int64)
        shelf.put(texts, vectors, TokenCounts(none, None, None, np.zeros((10_000, 16), np.uint8)))
    assert disk_bytes(cache.folder) <= 1.2 * 40_000 * 1024
    assert shelf.get(texts).vectors.tobytes() == vectors.tobytes()
    cache.close()


def test_the_map_grows(cache: VectorCache, monkeypatch: pytest.MonkeyPatch) -> None:
    """From a size that holds next to nothing."""
    monkeypatch.setattr(index, "INITIAL_MAP_BYTES", 1 << 16)
    for number in range(40):
        put(cache, batch("map", number))
    assert (cache.folder / "index" / "data.mdb").stat().st_size > 1 << 16
    assert sum(refuse_wrong(cache, batch("map", number)) for number in range(40)) == 40 * PER_PUT
    assert cache.trouble is None


@pytest.mark.parametrize(
    ("text", "n_bytes"),
    [("0", 0), ("1000000", 10**6), ("20GB", 20 * 10**9), ("500MiB", 500 * 2**20), ("1.5 gib", 3 * 2**29), (" 7 B ", 7)],
)
def test_sizes(text: str, n_bytes: int) -> None:
    """Powers of 1000 without an i, of 1024 with it."""
    assert parse_size(text, "x") == n_bytes


@pytest.mark.parametrize("text", ["", "GB", "-1GB", "1e9", "20 G B", "20Gb/s", "nan", "inf", "1.GB", "٣GB", "20GB\n1"])
def test_what_is_no_size(text: str) -> None:
    """The name of the setting, what was given, and what would be right."""
    with pytest.raises(
        ConfigError, match=re.escape(f"LIMIT must be a size such as 20GB, 500MiB or 1000000 (bytes), not {text!r}")
    ):
        parse_size(text, "LIMIT")


def test_sizes_for_people() -> None:
    """Two or three digits."""
    assert [size_text(n) for n in (0, 1023, 1024, 1536, 200 * 2**20, 20 * 2**30, 5000 * 2**40)] == [
        *("0 B", "1023 B", "1.0 KiB", "1.5 KiB", "200 MiB", "20.0 GiB", "5000 TiB")
    ]


def test_where_the_users_cache_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Below the cache folder, 20 GiB without a limit of the user's own; nonsense is told at once."""
    monkeypatch.setenv("EMBEVAL_CACHE", str(tmp_path / "c"))
    cache = open_cache()
    assert (cache.folder, cache.max_bytes) == (tmp_path / "c" / "vectors", 20 * 2**30)
    cache.close()
    monkeypatch.setenv("EMBEVAL_CACHE_LIMIT", "2GB")
    cache = open_cache()
    assert cache.max_bytes == 2 * 10**9
    cache.close()
    monkeypatch.setenv("EMBEVAL_CACHE_LIMIT", "much")
    with pytest.raises(ConfigError, match="EMBEVAL_CACHE_LIMIT must be a size"):
        open_cache()
    assert not (tmp_path / "c").exists()


def test_lmdb_is_loaded_when_it_is_needed() -> None:
    """Not by the import of the package."""
    code = "import sys, embeval.encoders.cache; sys.exit('lmdb' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=REPOSITORY, check=False).returncode == 0


# --- damage -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", [0, 4, 20, 36, 44, 48, ROW_BYTES - 1])
def test_a_flipped_bit_is_a_miss(cache: VectorCache, place: int) -> None:
    """Wherever in a row; verify finds it, and the next put mends it."""
    put(cache, TEXTS)
    data = bytearray(files(cache)[0].read_bytes())
    data[ROW_BYTES + place] ^= 1
    files(cache)[0].write_bytes(data)
    assert there(cache, TEXTS) == ["one", "three", "four"]
    assert refuse_wrong(cache, TEXTS) == 3
    assert cache.n_damaged == 2
    found = upkeep.verify(cache, Silent())
    assert [(shelf.key, shelf.description, shelf.n_bad) for shelf in found.bad] == [(KEY, DESCRIPTION, 1)]
    put(cache, TEXTS)
    assert refuse_wrong(cache, TEXTS) == 4
    assert upkeep.verify(cache, Silent()) == upkeep.Verified(4, (), (), 0)
    assert [shelf.n_vectors for shelf in upkeep.stats(cache).shelves] == [4]


def test_verify_forgets_what_is_damaged(cache: VectorCache) -> None:
    """With fix, and only that."""
    put(cache, TEXTS)
    data = bytearray(files(cache)[0].read_bytes())
    data[-1] ^= 128
    files(cache)[0].write_bytes(data)
    assert upkeep.verify(cache, Silent(), fix=True).bad[0].n_bad == 1
    assert upkeep.verify(cache, Silent()) == upkeep.Verified(3, (), (), 0)
    assert there(cache, TEXTS) == ["one", "two", "three"]
    assert [shelf.n_vectors for shelf in upkeep.stats(cache).shelves] == [3]


def test_a_file_cut_short_or_gone(cache: VectorCache) -> None:
    """What it no longer holds is a miss, and put again it is there."""
    put(cache, TEXTS)
    os.truncate(files(cache)[0], 2 * ROW_BYTES + 50)
    assert there(cache, TEXTS) == ["one", "two"]
    assert upkeep.verify(cache, Silent()).bad[0].n_bad == 2
    put(cache, TEXTS)
    assert refuse_wrong(cache, TEXTS) == 4
    files(cache)[0].unlink()
    assert there(cache, TEXTS) == []
    assert upkeep.verify(cache, Silent()).bad[0].n_bad == 4
    put(cache, TEXTS)
    assert refuse_wrong(cache, TEXTS) == 4
    assert cache.trouble is None


def test_a_file_of_another_shelf(cache: VectorCache) -> None:
    """Swapped files give misses: a row knows its text and its shelf."""
    put(cache, TEXTS)
    put(cache, TEXTS, OTHER_KEY)
    first, second = files(cache)
    first.write_bytes(second.read_bytes())
    assert there(cache, TEXTS) == []
    assert there(cache, TEXTS, OTHER_KEY) == TEXTS


def test_what_a_damaged_file_no_longer_tells_is_dropped_too(tmp_path: Path) -> None:
    """Making room finds the vectors of an unreadable file by the index, so that this one doesn't grow for ever."""
    cache = VectorCache(tmp_path / "vectors", max_bytes=400_000)
    put(cache, batch("gone", 0))
    files(cache)[0].unlink()
    for number in range(1, 60):
        put(cache, batch("gone", number))
    counted = upkeep.verify(cache, Silent())
    assert counted.bad == ()
    assert counted.n_vectors == sum(shelf.n_vectors for shelf in upkeep.stats(cache).shelves)
    cache.close()


def test_bytes_behind_the_end_are_written_over(cache: VectorCache) -> None:
    """A writer that was killed before its commit leaves such, or a file that the index doesn't know."""
    put(cache, ["one"])
    with files(cache)[0].open("ab") as file:
        file.write(b"x" * 1000)
    orphan = files(cache)[0].with_name("00000099.rows")
    orphan.write_bytes(b"y" * 500)
    assert upkeep.verify(cache, Silent()) == upkeep.Verified(1, (), (orphan,), 1500)
    put(cache, ["two"])
    assert refuse_wrong(cache, TEXTS[:2]) == 2
    assert files(cache) == [orphan.with_name("00000000.rows")]
    assert files(cache)[0].stat().st_size == 2 * ROW_BYTES
    with files(cache)[0].open("ab") as file:
        file.write(b"x" * 1000)
    orphan.write_bytes(b"y" * 500)
    assert upkeep.verify(cache, Silent(), fix=True).n_left_over_bytes == 1500
    assert upkeep.verify(cache, Silent()) == upkeep.Verified(2, (), (), 0)


def garbage(file: Path) -> None:
    """Not an LMDB file at all."""
    file.write_bytes(b"garbage " * 4096)


def cut(file: Path) -> None:
    """Pages that the index refers to are not in the file any more."""
    os.truncate(file, 3 * 4096)


def of_a_later_version(file: Path) -> None:
    """An index with another format number."""
    import lmdb

    with lmdb.open(str(file.parent)) as env, env.begin(write=True) as txn:
        txn.put(b"mformat", b"7")


def test_pages_that_were_never_written(tmp_path: Path) -> None:
    """LMDB counts pages that it took and gave back within a transaction: an index that ends so is not cut short."""
    for seed in range(5):
        chance, expected = np.random.default_rng(seed), set[int]()
        index = Index(tmp_path / str(seed))
        for _ in range(8):
            changes = [(bool(chance.integers(2)), int(chance.integers(2000)), int(chance.integers(1200))) for _ in "ab"]

            def work(tables: Tables, changes: list[tuple[bool, int, int]] = changes) -> None:
                for new, start, n in changes:
                    for key in range(start, start + n):
                        if new:
                            tables.put(b"v", key.to_bytes(8, "big"), bytes(8))
                        else:
                            tables.delete(b"v", key.to_bytes(8, "big"))

            index.write(work)
            for new, start, n in changes:
                expected = expected | set(range(start, start + n)) if new else expected - set(range(start, start + n))
            index.close()
            found = index.read(lambda tables: {int.from_bytes(key, "big") for key, _ in tables.items(b"v")})
            assert found == expected
        index.close()


@pytest.mark.parametrize(
    ("spoil", "reason"), [(garbage, "MDB_INVALID"), (cut, "cut short"), (of_a_later_version, "format 7")]
)
def test_an_index_that_can_not_be_read(tmp_path: Path, spoil: Callable[[Path], None], reason: str) -> None:
    """No vectors, nothing kept, nothing touched; the way out is named, and it works."""
    cache = VectorCache(tmp_path / "vectors")
    for number in range(5):
        put(cache, batch("x", number))
    cache.close()
    spoil(tmp_path / "vectors" / "index" / "data.mdb")
    before = (tmp_path / "vectors" / "index" / "data.mdb").read_bytes()
    cache = VectorCache(tmp_path / "vectors")
    assert there(cache, TEXTS) == []
    put(cache, TEXTS)
    cache.put_note("a", b"b")
    assert cache.trouble is not None
    assert reason in cache.trouble
    assert cache.trouble.endswith("'embeval cache prune --all' empties it.")
    assert (tmp_path / "vectors" / "index" / "data.mdb").read_bytes() == before
    with pytest.raises(StoreError, match="prune --all"):
        upkeep.stats(cache)
    upkeep.prune_all(cache)
    assert list(tmp_path.iterdir()) == []
    put(cache, TEXTS)
    assert refuse_wrong(cache, TEXTS) == 4
    cache.close()


@pytest.mark.parametrize("table", [records.SHELVES, records.VECTORS, records.SHARDS])
def test_an_entry_of_the_index_that_has_changed(cache: VectorCache, table: bytes) -> None:
    """Whatever it says now, no evaluation fails, and no wrong vector comes out."""
    put(cache, TEXTS)

    def spoil(tables: index.Tables) -> None:
        for key, value in list(tables.items(table)):
            tables.put(table, key, value.replace(b"24", b"84") if table == records.SHELVES else value[:-1])

    cache.index.write(spoil)
    refuse_wrong(cache, TEXTS)
    put(cache, ["five"])
    assert cache.trouble is not None
    assert cache.trouble.endswith("its index is damaged. 'embeval cache prune --all' empties it.")
    with pytest.raises(StoreError, match="its index is damaged"):
        upkeep.verify(cache, Silent())


@pytest.mark.parametrize("folder", ["/proc/embeval/vectors", "/dev/null/vectors"])
def test_a_folder_that_can_not_be(folder: str) -> None:
    """A file in the way, a file system that takes none: an evaluation goes on without a cache."""
    cache = VectorCache(Path(folder))
    assert there(cache, TEXTS) == []
    put(cache, TEXTS)
    assert cache.note("x") is None
    assert there(cache, TEXTS) == []
    assert cache.trouble is not None
    assert re.search("can't be used: .+ Set EMBEVAL_CACHE to a folder elsewhere", cache.trouble)
    cache.close()


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may write everywhere")
def test_a_read_only_folder(cache: VectorCache) -> None:
    """Nothing found, nothing kept, a reason."""
    cache.folder.mkdir()
    cache.folder.chmod(0o500)
    put(cache, TEXTS)
    assert there(cache, TEXTS) == []
    assert cache.trouble is not None
    assert "Permission denied" in cache.trouble


def test_a_full_disk(cache: VectorCache, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the middle of writing: what was there stays, the new is not there, and once there is space it is kept."""
    put(cache, TEXTS[:2])
    real = os.pwrite
    room = [100]

    def pwrite(descriptor: int, data: Any, offset: int) -> int:
        if not room[0]:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        n_written = real(descriptor, data[: room[0]], offset)
        room[0] -= n_written
        return n_written

    with monkeypatch.context() as patched:
        patched.setattr(os, "pwrite", pwrite)
        put(cache, TEXTS)
        assert there(cache, TEXTS) == TEXTS[:2]
    assert cache.trouble is not None
    assert cache.trouble.endswith(
        "No space left on device. Free some space, or set EMBEVAL_CACHE to a folder elsewhere."
    )
    put(cache, TEXTS)
    assert refuse_wrong(cache, TEXTS) == 4
    assert files(cache)[0].stat().st_size == 4 * ROW_BYTES


# --- processes ----------------------------------------------------------------------------------------------------


def test_a_kill_at_any_moment(cache: VectorCache) -> None:
    """SIGKILL while it writes, 12 times: all that a put acknowledged is there and right, and the next put works."""
    draw = np.random.default_rng(7)
    n_acknowledged = 0
    for attempt in range(12):
        writer = process("write", cache.folder, f"kill {attempt}", 100_000, 10**9)
        assert writer.stdout is not None
        first = writer.stdout.readline()
        time.sleep(draw.uniform(0, 0.06))
        writer.send_signal(signal.SIGKILL)
        rest, err = writer.communicate(timeout=60)
        assert writer.returncode == -signal.SIGKILL, err
        done = [int(line) for line in (first + rest).splitlines(keepends=True) if line.endswith("\n")]
        n_acknowledged += len(done)
        for number in done:
            assert refuse_wrong(cache, batch(f"kill {attempt}", number)) == PER_PUT
        # The put that was cut off: all of it or nothing.
        assert refuse_wrong(cache, batch(f"kill {attempt}", len(done))) in (0, PER_PUT)
        put(cache, batch("after", attempt))
        assert refuse_wrong(cache, batch("after", attempt)) == PER_PUT
    found = upkeep.verify(cache, Silent())
    assert found.bad == ()
    assert found.n_vectors >= (n_acknowledged + 12) * PER_PUT > 24 * PER_PUT
    assert (cache.trouble, cache.n_damaged) == (None, 0)


def test_readers_beside_a_writer_that_drops_what_they_read(cache: VectorCache) -> None:
    """Three processes read for two seconds what a fourth writes and drops again: never a wrong vector."""
    writer = process("write", cache.folder, "both", 200, 700_000)
    readers = [process("read", cache.folder, "both", 2) for _ in range(3)]
    assert finished(writer).split()[-1] == "199"
    assert all(int(finished(reader)) > 0 for reader in readers)
    assert upkeep.verify(cache, Silent()).bad == ()
    assert there(cache, batch("both", 0)) == []
    assert refuse_wrong(cache, batch("both", 199)) == PER_PUT


def test_two_writers_at_once(cache: VectorCache) -> None:
    """Of the same texts and of others: each text is kept once, under a map that both make grow."""
    writers = [process("write", cache.folder, prefix, 40, 10**9) for prefix in ("same", "same", "other")]
    for writer in writers:
        finished(writer)
    assert sum(refuse_wrong(cache, batch(prefix, n)) for prefix in ("same", "other") for n in range(40)) == 80 * PER_PUT
    assert upkeep.verify(cache, Silent()) == upkeep.Verified(80 * PER_PUT, (), (), 0)
    assert sum(path.stat().st_size for path in files(cache)) == 80 * PER_PUT * ROW_BYTES


def test_threads(cache: VectorCache, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two objects on one folder, four threads, one index that grows under all of them."""
    monkeypatch.setattr(index, "INITIAL_MAP_BYTES", 1 << 16)
    other = VectorCache(cache.folder)
    failed: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for step in range(15):
                put(cache if number % 2 else other, batch(f"thread {number}", step))
                assert refuse_wrong(cache, batch(f"thread {number}", step)) == PER_PUT
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    other.close()
    assert failed == []
    assert (cache.trouble, other.trouble) == (None, None)
    assert upkeep.verify(cache, Silent()).n_vectors == 4 * 15 * PER_PUT


def in_child(work: Callable[[], bool]) -> None:
    """Forks; fails where ``work`` fails in the child, or takes longer than ten seconds."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forking beside threads, which is what is tested
        child = os.fork()
    if child == 0:
        code = 1
        try:
            signal.alarm(10)
            code = 0 if work() else 1
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0


def test_a_fork(cache: VectorCache) -> None:
    """Parent and child go on with the same object, each with an environment of its own."""
    put(cache, TEXTS[:2])

    def work() -> bool:
        put(cache, ["three"])
        return refuse_wrong(cache, TEXTS) == 3 and cache.trouble is None

    in_child(work)
    assert refuse_wrong(cache, TEXTS) == 3
    put(cache, ["four"])
    assert refuse_wrong(cache, TEXTS) == 4


def test_a_fork_in_the_middle_of_a_transaction(cache: VectorCache) -> None:
    """The child has no cache and says so; it neither hangs nor spoils what the parent is writing."""
    put(cache, ["one"])
    began, go_on = threading.Event(), threading.Event()

    def slow(tables: index.Tables) -> None:
        tables.put(b"n", b"slow", b"kept")
        began.set()
        go_on.wait(20)

    thread = threading.Thread(target=lambda: cache.index.write(slow))
    thread.start()
    began.wait(20)
    in_child(lambda: there(cache, ["one"]) == [] and cache.trouble is not None)
    go_on.set()
    thread.join()
    assert cache.index.read(lambda tables: tables.get(b"n", b"slow")) == b"kept"
    put(cache, ["two"])
    assert refuse_wrong(cache, TEXTS) == 2


def test_a_cache_that_is_removed_under_a_process(cache: VectorCache) -> None:
    """It notices, finds nothing, and starts anew."""
    put(cache, TEXTS)
    other = VectorCache(cache.folder)
    subprocess.run(["rm", "-r", str(cache.folder)], check=True)
    assert there(cache, TEXTS) == []
    put(cache, TEXTS[:3])
    assert refuse_wrong(other, TEXTS) == 3
    assert (cache.trouble, other.trouble) == (None, None)
    other.close()


# --- upkeep -------------------------------------------------------------------------------------------------------


def test_stats_and_pruning(cache: VectorCache) -> None:
    """Counts and sizes by the layout of rows; a dry run only counts."""
    put(cache, TEXTS)
    cache.shelf(OTHER_KEY, {"model": "other"}).put(["a"], np.ones((1, 2), np.float32), counts_of(["a"]))
    large, small = upkeep.stats(cache).shelves
    assert (large.key, large.description, large.dim, large.n_vectors) == (KEY, DESCRIPTION, DIM, 4)
    assert (large.n_bytes, small.n_bytes, small.dim) == (4 * ROW_BYTES, 48 + 8, 2)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", large.created)
    assert large.created <= large.written
    gone = upkeep.Pruned(4, 4 * ROW_BYTES)
    assert upkeep.prune_models(cache, "ORG/mod", dry_run=True) == gone
    assert refuse_wrong(cache, TEXTS) == 4
    assert upkeep.prune_models(cache, "ORG/mod") == gone
    assert there(cache, TEXTS) == []
    assert [shelf.key for shelf in upkeep.stats(cache).shelves] == [OTHER_KEY]
    assert upkeep.prune_models(cache, "ORG/mod") == upkeep.Pruned(0, 0)
    put(cache, TEXTS)  # with a number that no file had before
    assert [path.name for path in files(cache)] == ["00000001.rows", "00000002.rows"]
    assert upkeep.prune_to(cache, 10**9) == upkeep.Pruned(0, 0)
    assert upkeep.prune_to(cache, 0, dry_run=True).n_vectors == 5
    assert upkeep.prune_to(cache, 0) == upkeep.Pruned(5, 4 * ROW_BYTES + 56)
    assert files(cache) == []
    put(cache, TEXTS)
    size = disk_bytes(cache.folder)
    assert upkeep.prune_all(cache, dry_run=True).n_vectors == 4
    assert refuse_wrong(cache, TEXTS) == 4
    assert size / 2 < upkeep.prune_all(cache).n_bytes <= size
    assert not cache.folder.exists()


def test_pruning_to_a_size_drops_the_oldest(tmp_path: Path) -> None:
    """As much as is needed and no more."""
    cache = VectorCache(tmp_path / "vectors")
    for number in range(3):
        put(cache, [f"{number} {row}" for row in range(4000)], f"{number:064x}")
    size = disk_bytes(cache.folder)
    assert upkeep.prune_to(cache, size) == upkeep.Pruned(0, 0)
    assert upkeep.prune_to(cache, size - 1000) == upkeep.Pruned(4000, 4000 * ROW_BYTES)
    assert disk_bytes(cache.folder) < size - 1000
    assert [len(there(cache, [f"{number} 0"], f"{number:064x}")) for number in range(3)] == [0, 1, 1]
    cache.close()


def test_upkeep_of_what_is_not_there(cache: VectorCache) -> None:
    """Empty, and no folder is made."""
    assert upkeep.stats(cache).shelves == ()
    assert upkeep.verify(cache, Silent()) == upkeep.Verified(0, (), (), 0)
    assert upkeep.prune_to(cache, 0) == upkeep.prune_all(cache) == upkeep.Pruned(0, 0)
    assert upkeep.prune_models(cache, "x") == upkeep.Pruned(0, 0)
    assert not cache.folder.exists()


def test_an_index_that_grows_while_it_is_opened_is_opened_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process enlarged the map between opening and the first look: no trouble, and the note is there."""
    import lmdb

    from embeval.encoders.cache import index

    first = VectorCache(tmp_path)
    first.put_note("a", b"1")
    first.close()
    real, calls = index._check_format, []

    def grown(env: lmdb.Environment, file: Path, *, new: bool) -> None:
        calls.append(new)
        if len(calls) == 1:
            raise lmdb.MapResizedError("grew")
        real(env, file, new=new)

    monkeypatch.setattr(index, "_check_format", grown)
    cache = VectorCache(tmp_path)
    assert cache.note("a") == b"1"
    assert cache.trouble is None
    assert calls == [False, False]
