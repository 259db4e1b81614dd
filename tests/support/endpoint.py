"""A server on loopback that speaks ``/v1/embeddings``, and misbehaves when told to."""

from __future__ import annotations

import base64
import hashlib
import json
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np

DIM = 32


def vector(text: str, dim: int = DIM) -> list[float]:
    """The unit vector that the server has for a text: normal numbers seeded by its sha256."""
    seed = int.from_bytes(hashlib.sha256(text.encode("utf-8")).digest()[:8], "little")
    drawn = np.random.default_rng(seed).standard_normal(dim)
    return [float(each) for each in (drawn / np.linalg.norm(drawn)).astype(np.float32)]


@dataclass(frozen=True)
class Failure:
    """An answer that is no embedding."""

    status: int
    message: str = "overloaded"
    headers: dict[str, str] = field(default_factory=lambda: {"retry-after-ms": "20"})


@dataclass
class Endpoint:
    """What the server does, and what it saw. A test changes the one and reads the other."""

    url: str = ""
    """Base address, ending in /v1."""
    key: str | None = None
    """The only key that is accepted; None: any."""
    failures: list[Failure] = field(default_factory=list)
    """What the next requests are answered with, before good answers follow."""
    max_bytes: int | None = None
    """Longest text that is accepted."""
    max_texts: int | None = None
    """Most texts in a request."""
    seconds: float = 0.0
    """How long each answer takes."""
    floats: bool = False
    """Lists of numbers, though base64 was asked for."""
    shuffled: bool = False
    """The vectors in another order than the texts, each with its index."""
    usage: bool = True
    """Whether tokens are told: one per word."""
    edit: Any = None
    """Changes the answer before it is sent: a function of the dict, once ``floats`` are made."""
    raw: bytes | None = None
    """Sent instead of any answer."""
    requests: list[dict[str, Any]] = field(default_factory=list)
    """Bodies of the requests, in the order they came."""
    times: list[float] = field(default_factory=list)
    """When they came, in seconds."""
    headers: list[dict[str, str]] = field(default_factory=list)
    """Their headers."""
    most_at_once: int = 0
    """Requests that were under way together."""
    _now: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def texts(self) -> list[str]:
        """Every text that was asked for, in order."""
        return [text for body in self.requests for text in body["input"]]

    def answer(self, body: dict[str, Any], headers: dict[str, str]) -> tuple[int, dict[str, str], bytes]:
        """(status, headers, content)."""
        with self._lock:
            self.requests.append(body)
            self.headers.append(headers)
            self.times.append(time.monotonic())
            self._now += 1
            self.most_at_once = max(self.most_at_once, self._now)
            failure = self._failure(body["input"], headers.get("authorization", ""))
        try:
            time.sleep(self.seconds)
        finally:
            with self._lock:
                self._now -= 1
        if failure is not None:
            content = json.dumps({"error": {"message": failure.message, "type": "test"}}).encode()
            return failure.status, failure.headers, content
        return 200, {}, self.raw if self.raw is not None else json.dumps(self._good(body)).encode()

    def _failure(self, texts: Sequence[str], authorization: str) -> Failure | None:
        if self.key is not None and authorization != f"Bearer {self.key}":
            return Failure(401, f"Incorrect key: {authorization}")
        if self.failures:
            return self.failures.pop(0)
        if self.max_bytes is not None and any(len(text.encode()) > self.max_bytes for text in texts):
            return Failure(400, f"maximum context length is {self.max_bytes}")
        if self.max_texts is not None and len(texts) > self.max_texts:
            return Failure(422, f"batch size {len(texts)} > maximum allowed batch size {self.max_texts}")
        return None

    def _good(self, body: dict[str, Any]) -> dict[str, Any]:
        data: list[dict[str, Any]] = []
        for place, text in enumerate(body["input"]):
            numbers: Any = vector(text, body.get("dimensions", DIM))
            if body.get("encoding_format") == "base64" and not self.floats:
                numbers = base64.b64encode(np.array(numbers, dtype="<f4").tobytes()).decode()
            data.append({"object": "embedding", "index": place, "embedding": numbers})
        answer: dict[str, Any] = {
            "object": "list",
            "model": body["model"],
            "data": data[::-1] if self.shuffled else data,
        }
        if self.usage:
            tokens = sum(len(text.split()) for text in body["input"])
            answer["usage"] = {"prompt_tokens": tokens, "total_tokens": tokens}
        if self.edit is not None:
            self.edit(answer)
        return answer


def _handler(endpoint: Endpoint) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            headers: dict[str, str] = {}
            if self.path != "/v1/embeddings":
                status, content = 404, b"no such page"
            else:
                status, headers, content = endpoint.answer(body, {k.lower(): v for k, v in self.headers.items()})
            try:
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)
            except ConnectionError:
                pass  # the client gave up waiting

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - as http.server calls it
            """Nothing: standard error belongs to the tests."""

    return Handler


def _start(endpoint: Endpoint) -> ThreadingHTTPServer:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(endpoint))
    server.daemon_threads = True
    endpoint.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    return server


@contextmanager
def serving() -> Iterator[Endpoint]:
    """A server for one test."""
    endpoint = Endpoint()
    server = _start(endpoint)
    try:
        yield endpoint
    finally:
        server.shutdown()
        server.server_close()


@cache
def forever() -> Endpoint:
    """One server for all tests that only need a good one; it ends with the process."""
    endpoint = Endpoint()
    _start(endpoint)
    return endpoint
