"""A hub of data sets on loopback, as far as ``huggingface_hub`` 2.4 asks one, which misbehaves when told to."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

COMMIT = "0123456789abcdef0123456789abcdef01234567"
LARGE = 64
"""Bytes from which a file is kept by its sha256, and not as a blob of git."""


@dataclass
class Hub:
    """What the server holds, and what it was asked for. A test changes the one and reads the other."""

    url: str = ""
    files: dict[str, dict[str, bytes]] = field(default_factory=dict)
    """Data set -> path -> content, the same at every revision."""
    gated: set[str] = field(default_factory=set)
    """Data sets that are given out on request only."""
    broken: dict[str, bytes] = field(default_factory=dict)
    """Path -> what is sent in place of its content."""
    refused: set[str] = field(default_factory=set)
    """Paths for which the server has no answer."""
    stalled: set[str] = field(default_factory=set)
    """Paths of which half is sent, and then nothing until the hub ends."""
    sent: list[str] = field(default_factory=list)
    """Paths of the files that were sent."""
    ended: threading.Event = field(default_factory=threading.Event)
    """Whether the hub has ended."""


def _oid(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


def _lfs(content: bytes) -> dict[str, Any] | None:
    if len(content) < LARGE:
        return None
    return {"oid": hashlib.sha256(content).hexdigest(), "size": len(content), "pointerSize": 127}


class _Handler(BaseHTTPRequestHandler):
    hub: Hub

    def log_message(self, *_: Any) -> None:
        """Says nothing."""

    def do_HEAD(self) -> None:
        """The headers of an answer."""
        self._answer(body=False)

    def do_GET(self) -> None:
        """A whole answer."""
        self._answer(body=True)

    def _answer(self, *, body: bool) -> None:
        parts = self.path.partition("?")[0].strip("/").split("/")
        if parts[0] == "api":
            parts = parts[1:]
        name = "/".join(parts[1:3])
        if name not in self.hub.files:
            self._send(401, b"{}", {"X-Error-Code": "RepoNotFound"}, body=body)
        elif name in self.hub.gated:
            self._send(403, b"{}", {"X-Error-Code": "GatedRepo"}, body=body)
        elif parts[3] == "revision":
            self._send(200, json.dumps(self._info(name)).encode(), {}, body=body)
        elif parts[3] == "tree":
            self._send(200, json.dumps(self._tree(name)).encode(), {}, body=body)
        else:
            self._file(name, "/".join(parts[5:]), body=body)

    def _info(self, name: str) -> dict[str, Any]:
        siblings = [
            {
                "rfilename": path,
                "size": len(content),
                "blobId": _oid(content),
                **({} if (lfs := _lfs(content)) is None else {"lfs": {**lfs, "sha256": lfs["oid"]}}),
            }
            for path, content in self.hub.files[name].items()
        ]
        return {"id": name, "sha": COMMIT, "siblings": siblings, "private": False, "tags": [], "downloads": 0}

    def _tree(self, name: str) -> list[dict[str, Any]]:
        return [
            {
                "type": "file",
                "path": path,
                "size": len(content),
                "oid": _oid(content),
                **({} if (lfs := _lfs(content)) is None else {"lfs": lfs}),
            }
            for path, content in self.hub.files[name].items()
        ]

    def _file(self, name: str, path: str, *, body: bool) -> None:
        if path in self.hub.refused:
            self._send(404, b"", {"X-Error-Code": "EntryNotFound"}, body=body)
            return
        content = self.hub.files[name][path]
        sent = self.hub.broken.get(path, content)
        if body:
            self.hub.sent.append(path)
            if path in self.hub.stalled:
                self._stall(content)
                return
        lfs = _lfs(content)
        etag = _oid(content) if lfs is None else lfs["oid"]
        self._send(200, sent, {"ETag": f'"{etag}"', "X-Repo-Commit": COMMIT}, body=body)

    def _stall(self, content: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content[: len(content) // 2])
        self.wfile.flush()
        self.hub.ended.wait()

    def _send(self, status: int, content: bytes, headers: dict[str, str], *, body: bool) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(content))}.items():
            self.send_header(name, value)
        self.end_headers()
        if body:
            self.wfile.write(content)


@contextmanager
def running() -> Iterator[Hub]:
    """A hub that answers until the block ends."""
    hub = Hub()
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"hub": hub}))
    hub.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield hub
    finally:
        hub.ended.set()
        server.shutdown()
        server.server_close()
        thread.join()
