"""A board on this machine's own address, built again whenever its results change.

What is served lies in memory: a request can only name one of the board's files, and nothing on disk is written. The
server listens on the loopback address alone, and answers only those who call it by a name of that address: a page of
another site whose name leads here gets nothing.
"""

from __future__ import annotations

import base64
import hashlib
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from socketserver import TCPServer, ThreadingMixIn
from typing import Any
from urllib.parse import unquote, urlsplit

from embeval.core.words import plural
from embeval.errors import EmbevalError, UsageError
from embeval.leaderboard import definition
from embeval.leaderboard.definition import OUTPUTS, Definition
from embeval.leaderboard.snapshot import Snapshot
from embeval.pages import page
from embeval.workflows.boards import opening, watching, writing

HOST = "127.0.0.1"
INTERVAL_S = 1.0
"""Between two looks at the results."""
BUSY = 10
"""A look takes at most one part in so many of the time, however many results there are."""
QUIET_LOOKS = 1
"""Looks without a change before results count as complete: a run writes several files at once."""
MOST_LOOKS = 15
"""A run that never pauses is shown after so many."""
VERSION = "/version"
"""Where the page asks whether there is a newer one."""
NOT_BUILT = "Not built: "
"""Begins what is told of a board that can't be built."""
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".md": "text/markdown; charset=utf-8",
    ".csv": "text/csv; charset=utf-8",
    ".json": "application/json",
    ".svg": "image/svg+xml",
    ".parquet": "application/vnd.apache.parquet",
}
RELOAD = """
setInterval(async () => {
  if (document.hidden) return;
  try {
    const told = await (await fetch("/version", { cache: "no-store" })).text();
    if (told !== "@VERSION@") location.reload();
  } catch {} // the server has stopped; the page stays
}, 1000);
"""
"""Added to the page where it is served, and only there: it asks for the version, and loads the page again. The page
holds its own version, since a newer one may be there before it asks for the first time."""
POLICY = "default-src 'none'; script-src "
"""The beginning of the page's content security policy."""


@dataclass(frozen=True)
class Content:
    """One file as it is served."""

    data: bytes
    """Its bytes."""
    type: str
    """Its media type."""

    @property
    def etag(self) -> str:
        """Changes with the bytes."""
        return f'"{hashlib.sha256(self.data).hexdigest()[:32]}"'


@dataclass
class Served:
    """What is served now. Replaced as a whole, so that no request sees a part of an old board and of a new one."""

    files: Mapping[str, Content] = field(default_factory=dict)
    """Path of the address -> content."""


def files_of(made: Snapshot, of: Definition) -> dict[str, Content]:
    """Path of the address -> content, for each file of a board; the page itself also at ``/``."""
    found = {
        f"/{path.relative_to(of.path.parent).as_posix()}": Content(data, TYPES.get(path.suffix, "text/plain"))
        for path, data in writing.everything(made, of).items()
    }
    version = _version(each.data for each in found.values())
    first = f"/{OUTPUTS['html']}"
    # Whoever serves a board wants to look at its page, also where that isn't kept.
    written = found[first].data if first in found else writing.FORMS["html"](made)
    found[first] = found["/"] = Content(live(written, version), TYPES[".html"])
    return {**found, VERSION: _told(version)}


def live(html: bytes, version: str) -> bytes:
    """The page with a script that loads it again when there is another version than this."""
    script = reload(version)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    allowed = f"default-src 'none'; connect-src 'self'; script-src 'sha256-{digest}' ".encode()
    before, found, after = html.partition(POLICY.encode())
    body, end, rest = after.rpartition(b"</body>")
    if not found or not end:
        return html
    return b"".join((before, allowed, body, f"<script>{script}</script>\n".encode(), end, rest))


def reload(version: str) -> str:
    """The script of a page of this version."""
    return RELOAD.replace("@VERSION@", version)


def _version(contents: Iterable[bytes]) -> str:
    """Changes with any of them."""
    each = "".join(hashlib.sha256(data).hexdigest() for data in contents)
    return hashlib.sha256(each.encode()).hexdigest()[:32]


def _told(version: str) -> Content:
    return Content(version.encode(), "text/plain; charset=utf-8")


def waiting(problem: str) -> dict[str, Content]:
    """What is served while there is no board yet: why, and the board once there is one."""
    html = page.render("embeval.leaderboard.render", "waiting.html", text=problem).encode()
    version = _version([html])
    return {"/": Content(live(html, version), TYPES[".html"]), VERSION: _told(version)}


class Keeper:
    """Builds a board, and builds it again when what it is made from has changed."""

    def __init__(self, path: Path, tell: Callable[[str], None], served: Served) -> None:
        self.path, self.tell, self.served = path, tell, served
        self.current: Definition | None = None
        self._seen: watching.State = ()
        self._built: watching.State | None = None
        self._quiet = self._waited = 0

    def build(self) -> None:
        """Puts the board as it is now in place; a problem is told, and what was served before stays."""
        began = time.perf_counter()
        # Looked at before it is read: what changes meanwhile is noticed at the next look.
        self._built = watching.state(self.path, self.current)
        try:
            self.current = definition.load(self.path)
            self._built = self._seen = watching.state(self.path, self.current)
            opened = opening.defined(self.current)
            made = opened.made
            self.served.files = files_of(made, self.current)
        except EmbevalError as error:
            self.tell(f"{NOT_BUILT}{error}")
            if not self.served.files or self.served.files.keys() == {"/", VERSION}:
                self.served.files = waiting(str(error))
            return
        models, tasks = plural(len(made.models), "model"), plural(len(made.columns), "column")
        if opened.why is not None:
            self.tell(f"{made.title} as it was built before: {opened.why}")
            return
        self.tell(f"Built {made.title}: {models}, {tasks} ({time.perf_counter() - began:.1f} s).")

    def look(self) -> None:
        """Builds again once something has changed and then stayed so for a moment."""
        now = watching.state(self.path, self.current)
        if now == self._built:
            self._seen, self._quiet, self._waited = now, 0, 0
            return
        self._quiet = self._quiet + 1 if now == self._seen else 0
        self._seen, self._waited = now, self._waited + 1
        if self._quiet >= QUIET_LOOKS or self._waited >= MOST_LOOKS:
            self._quiet = self._waited = 0
            self.build()

    def run(self, stop: threading.Event) -> None:
        """Looks until it is to stop. A fault is told, and the next look goes on."""
        pause = INTERVAL_S
        while not stop.wait(pause):
            began = time.perf_counter()
            try:
                self.look()
            except Exception as error:  # of whatever kind: the last good page stays
                self.tell(f"{NOT_BUILT}{type(error).__name__}: {error}")
            pause = max(INTERVAL_S, BUSY * (time.perf_counter() - began))


def handler(served: Served) -> type[BaseHTTPRequestHandler]:
    """What answers requests with the files of ``served``."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        server_version, sys_version = "embeval", ""
        timeout = 30

        def do_GET(self) -> None:
            self._answer(with_body=True)

        def do_HEAD(self) -> None:
            self._answer(with_body=False)

        def _answer(self, *, with_body: bool) -> None:
            if not self._is_called_by_our_name():
                self._refuse(HTTPStatus.MISDIRECTED_REQUEST)
                return
            content = served.files.get(_path_of(self.path))
            if content is None:
                self._refuse(HTTPStatus.NOT_FOUND)
                return
            known = [each.strip().removeprefix("W/") for each in self.headers.get("If-None-Match", "").split(",")]
            fresh = content.etag in known or "*" in known
            self.send_response(HTTPStatus.NOT_MODIFIED if fresh else HTTPStatus.OK)
            self.send_header("ETag", content.etag)
            self._head()
            if fresh:
                self.end_headers()
                return
            self.send_header("Content-Type", content.type)
            self.send_header("Content-Length", str(len(content.data)))
            self.end_headers()
            if with_body:
                self.wfile.write(content.data)

        def _is_called_by_our_name(self) -> bool:
            port = self.connection.getsockname()[1]
            name, _, given = self.headers.get("Host", "").lower().partition(":")
            return name in (HOST, "localhost") and (given or "80") == str(port)

        def _refuse(self, status: HTTPStatus) -> None:
            text = f"{status.value} {status.phrase}\n".encode()
            self.send_response(status)
            self._head()
            self.send_header("Content-Type", "text/plain; charset=utf-8")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(text)

        def _head(self) -> None:
            self.send_header("Cache-Control", "no-cache")
            self.send_header("X-Content-Type-Options", "nosniff")
            self.send_header("X-Frame-Options", "DENY")
            self.send_header("Cross-Origin-Resource-Policy", "same-origin")
            self.send_header("Referrer-Policy", "no-referrer")

        def log_message(self, *_: Any) -> None:
            """Nothing: whoever serves a board wants to read of its results, not of requests."""

    return Handler


def _path_of(target: str) -> str:
    """The path that a request asks for; that of nothing where it makes no sense."""
    try:
        return unquote(urlsplit(target).path, errors="replace")
    except ValueError:
        return ""


class _Server(ThreadingMixIn, TCPServer):
    # Not HTTPServer, which asks the network for the name of the address.
    daemon_threads = True
    request_queue_size = 128  # with the five of the library, a sixth at once waits for a second and more
    allow_reuse_address = True  # one that was stopped just now doesn't block the port

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Nothing: a reader that has gone in the middle of an answer is no trouble."""


@contextmanager
def served(path: Path, port: int, tell: Callable[[str], None]) -> Iterator[str]:
    """Serves a board in the background, and gives its address. ``port`` 0 takes any that is free.

    ``tell`` gets a sentence for each time that it was built or could not be. Raises ``ConfigError`` for a file that
    is broken at the start, and ``UsageError`` for a port that is taken.
    """
    definition.load(path)
    now = Served()
    try:
        server = _Server((HOST, port), handler(now))
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UsageError(f"Port {port} of {HOST} can't be used ({reason}). Give another with --port; 0: any.") from None
    keeper, stop = Keeper(path, tell, now), threading.Event()
    keeper.build()
    threads = [
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.2}, daemon=True),
        threading.Thread(target=keeper.run, args=(stop,), daemon=True),
    ]
    for thread in threads:
        thread.start()
    try:
        yield f"http://{HOST}:{server.server_address[1]}/"
    finally:
        stop.set()
        server.shutdown()
        server.server_close()
