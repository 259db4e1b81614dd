"""Work that several processes of a test run need, done by one of them."""

from __future__ import annotations

import fcntl
from collections.abc import Callable
from pathlib import Path


def once(place: Path, work: Callable[[], str], *, wait: bool = True) -> str | None:
    """What ``work`` came to in the process that was first, from the file ``place``.

    None: another process is at it, and ``wait`` is false. What failed there is tried again here.
    """
    with place.with_suffix(".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return None
        if not place.exists():
            # Whoever looks has the lock, so a file that is half written is never read; a kill ends the whole run.
            place.write_text(work(), encoding="utf-8")
        return place.read_text(encoding="utf-8")
