"""How requests to an endpoint are sent: limits from the environment, in parallel, at a steady pace, and counted.

None of this changes a vector, so it is no part of a model's spec. Every variable is optional:

==========================================  ====================================================================
``EMBEVAL_API_CONCURRENCY``                 requests under way at once (4)
``EMBEVAL_API_TEXTS_PER_REQUEST``           texts in one request at most (256)
``EMBEVAL_API_TOKENS_PER_REQUEST``          estimated tokens in one request at most (32768)
``EMBEVAL_API_REQUESTS_PER_MINUTE``         rate limit kept on this side (none)
``EMBEVAL_API_TOKENS_PER_MINUTE``           the same for tokens (none)
``EMBEVAL_API_MAX_RETRIES``                 tries after the first one (6)
``EMBEVAL_API_TIMEOUT_S``                   seconds to wait for an answer (60)
``EMBEVAL_API_PRICE_PER_MILLION_TOKENS``    for the cost in the provenance (unknown)
==========================================  ====================================================================
"""

from __future__ import annotations

import os
import queue
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from typing import TypeVar

from embeval.errors import ConfigError

PREFIX = "EMBEVAL_API_"

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True, kw_only=True)
class Limits:
    """How much is sent, how fast, and how often again."""

    concurrency: int = 4
    """Requests under way at once."""
    texts_per_request: int = 256
    """Texts in one request at most."""
    tokens_per_request: int = 32_768
    """Estimated tokens in one request at most; a longer text gets a request of its own."""
    requests_per_minute: float | None = None
    """Rate limit kept on this side; None: none."""
    tokens_per_minute: float | None = None
    """The same for tokens."""
    max_retries: int = 6
    """Tries after the first one."""
    timeout_s: float = 60.0
    """Seconds to wait for an answer."""
    price_per_million_tokens: float | None = None
    """US dollars; None: not known."""

    @classmethod
    def from_environment(cls) -> Limits:
        """What ``EMBEVAL_API_…`` says. Raises ``ConfigError`` for what is no number in range."""
        found = {}
        for each in fields(cls):
            name = PREFIX + each.name.upper()
            if text := os.environ.get(name, "").strip():
                found[each.name] = _number(name, text, whole=each.type == "int")
        return cls(**found)  # type: ignore[arg-type]  # each is of the type of its field


VARIABLES = tuple(PREFIX + each.name.upper() for each in fields(Limits))
"""The environment variables that are read here."""
_FROM_ZERO = ("MAX_RETRIES", "PRICE_PER_MILLION_TOKENS")


def _number(name: str, text: str, *, whole: bool) -> int | float:
    kind = "a whole number" if whole else "a number"
    least = "from 0" if name.removeprefix(PREFIX) in _FROM_ZERO else "from 1" if whole else "above 0"
    try:
        value = int(text) if whole else float(text)
    except ValueError:
        value = -1
    if not 0 <= value < 1e12 or (value == 0 and least != "from 0"):
        raise ConfigError(f"The environment variable {name} must be {kind} {least}, not {text!r}.")
    return value


def in_parallel(work: Callable[[T], R], items: Sequence[T], n_threads: int) -> list[R]:
    """What ``work`` makes of each item, in the order of the items. Raises the first error; what waits is then left.

    The threads are daemons, which an executor's are not: a process that is told to stop shall not wait for answers.
    """
    waiting: queue.SimpleQueue[int] = queue.SimpleQueue()
    done: queue.SimpleQueue[tuple[int, R] | BaseException] = queue.SimpleQueue()
    for place in range(len(items)):
        waiting.put(place)
    stopped = threading.Event()

    def run() -> None:
        while not stopped.is_set():
            try:
                place = waiting.get_nowait()
            except queue.Empty:
                return
            try:
                done.put((place, work(items[place])))
            except BaseException as error:  # raised again by the thread that waits for it
                stopped.set()
                done.put(error)

    for _ in range(min(n_threads, len(items))):
        threading.Thread(target=run, name="embeval-endpoint", daemon=True).start()
    found: dict[int, R] = {}
    try:
        while len(found) < len(items):
            answer = done.get()
            if isinstance(answer, BaseException):
                raise answer
            found[answer[0]] = answer[1]
    finally:
        stopped.set()
    return [found[place] for place in range(len(items))]


@dataclass
class Pace:
    """Spaces requests so that neither rate limit is exceeded. Tries after the first one are not counted."""

    limits: Limits
    _next: float = 0.0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def wait(self, tokens: int) -> None:
        """Returns when a request of so many tokens may be sent."""
        with self._lock:
            start = max(time.monotonic(), self._next)
            self._next = start + self._seconds(1, tokens)
        time.sleep(max(0.0, start - time.monotonic()))

    def _seconds(self, requests: int, tokens: int) -> float:
        """How long so much takes at the allowed rates."""
        per_minute = ((requests, self.limits.requests_per_minute), (tokens, self.limits.tokens_per_minute))
        return max(60.0 * amount / rate if rate else 0.0 for amount, rate in per_minute)


@dataclass
class Usage:
    """What was sent so far. May be added to from many threads."""

    requests: int = 0
    """Answered requests."""
    tokens: int | None = 0
    """Tokens as the endpoint counted them; None once an answer said nothing of them."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, tokens: int | None) -> None:
        """One answered request."""
        with self._lock:
            self.requests += 1
            self.tokens = None if self.tokens is None or tokens is None else self.tokens + tokens

    def described(self, price_per_million_tokens: float | None) -> dict[str, str]:
        """For the provenance: totals since the model was loaded, so over all tasks of a run so far."""
        found = {"requests_so_far": str(self.requests)}
        if price_per_million_tokens is not None:
            found["price_per_million_tokens"] = str(price_per_million_tokens)
        if self.tokens is not None:
            found["tokens_so_far"] = str(self.tokens)
            if price_per_million_tokens is not None:
                found["cost_so_far"] = f"{self.tokens * price_per_million_tokens / 1e6:.6f}"
        return found
