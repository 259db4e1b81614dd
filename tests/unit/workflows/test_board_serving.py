"""A served board: what is answered and to whom, and when it is built again."""

from __future__ import annotations

import http.client
import json
import os
import re
import shutil
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from embeval.errors import ConfigError, UsageError
from embeval.workflows.boards import building, serving, watching, writing
from tests.support.board_files import NDCG, POOR, RECALL, board, three
from tests.support.stored import put

pytestmark = pytest.mark.enable_socket
TEXT = "results: [../../results]\noutputs: [html, json]\n"


@dataclass
class Answer:
    """What came back."""

    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass
class Site:
    """A served board, and what was told of it."""

    path: Path
    address: str
    told: list[str] = field(default_factory=list)

    @property
    def port(self) -> int:
        """Where it listens."""
        return urlsplit(self.address).port or 0

    def ask(self, path: str, *, method: str = "GET", **headers: str) -> Answer:
        """The answer to one request, the path sent as it is."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        try:
            connection.putrequest(method, path, skip_host="Host" in headers, skip_accept_encoding=True)
            for name, value in headers.items():
                connection.putheader(name.replace("_", "-"), value)
            connection.endheaders()
            found = connection.getresponse()
            return Answer(found.status, dict(found.getheaders()), found.read())
        finally:
            connection.close()


def serve(path: Path, stack: ExitStack) -> Site:
    """The board at a free port, until the stack is closed."""
    told: list[str] = []
    return Site(path, stack.enter_context(serving.served(path, 0, told.append)), told)


def until(site: Site, path: str, etag: str, seconds: float = 20.0) -> Answer:
    """The first answer with another tag."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if (found := site.ask(path)).headers["ETag"] != etag:
            return found
        time.sleep(0.05)
    raise AssertionError(f"{path} has not changed: {site.told}")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A board that stays as it is."""
    root = tmp_path_factory.mktemp("served")
    three(root)
    with ExitStack() as stack:
        yield serve(board(root, TEXT).path, stack)


# --- what is answered ---------------------------------------------------------------------------------------------


def test_the_files_of_a_board(site: Site) -> None:
    """Each with its type and length, the page also at the root; a query is passed over; nothing lies on disk."""
    page = site.ask("/")
    assert (page.status, page.headers["Content-Type"]) == (200, "text/html; charset=utf-8")
    assert site.ask("/index.html?x=1").body == page.body
    assert site.ask("/board%2Ejson").body == site.ask("/board.json").body
    assert json.loads(site.ask("/board.json").body)["title"] == "mine"
    assert int(page.headers["Content-Length"]) == len(page.body)
    assert page.headers["X-Content-Type-Options"] == "nosniff"
    assert page.headers["X-Frame-Options"] == "DENY"
    assert page.headers["Cross-Origin-Resource-Policy"] == "same-origin"
    assert page.headers["Referrer-Policy"] == "no-referrer"
    assert page.headers["Cache-Control"] == "no-cache"
    assert [path.name for path in site.path.parent.iterdir()] == ["board.yaml"]
    assert site.told == [site.told[0]]
    assert re.fullmatch(r"Built mine: 3 models, 2 columns \(\d+\.\d s\)\.", site.told[0])


@pytest.mark.parametrize(
    "path",
    [
        "/board.yaml",
        "/../../results/tags.json",
        "/..%2f..%2fresults",
        "/%2e%2e/%2e%2e/etc/passwd",
        "//etc/passwd",
        "/index.html/",
        "/./index.html",
        "/INDEX.HTML",
        "/README.md",
        "/index.html%00",
        "/\\..\\x",
        "/%ff",
    ],
)
def test_no_other_path_is_served(path: str, site: Site) -> None:
    """Whatever it may be taken for."""
    assert site.ask(path).status == 404


def test_an_address_that_makes_no_sense(site: Site) -> None:
    """It is answered as well."""
    assert site.ask("http://[", Host=f"127.0.0.1:{site.port}").status == 404


def test_only_our_own_name_is_answered(site: Site) -> None:
    """A page of another site whose name leads to this machine gets nothing; neither does a request without a name."""
    for host in (f"127.0.0.1:{site.port}", f"localhost:{site.port}", f"LOCALHOST:{site.port}"):
        assert site.ask("/", Host=host).status == 200, host
    for host in (
        f"evil.example:{site.port}",
        "127.0.0.1",
        "localhost:1",
        f"127.0.0.1.evil.example:{site.port}",
        f"127.0.0.1:{site.port}:{site.port}",
        "",
    ):
        found = site.ask("/board.json", Host=host)
        assert (found.status, b"models" in found.body) == (421, False), host


def test_it_listens_on_this_machine_alone(site: Site) -> None:
    """The port is open at the loopback address, and at no other of this machine."""
    assert site.address == f"http://127.0.0.1:{site.port}/"
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as other:
        other.bind(("127.0.0.2", site.port))  # taken if the server had every address


def test_many_come_at_once() -> None:
    """Each gets a place in the queue at once, also while nobody looks after it."""
    server = serving._Server(("127.0.0.1", 0), serving.handler(serving.Served()))
    with ExitStack() as stack:
        stack.callback(server.server_close)
        for _ in range(50):
            stack.enter_context(socket.create_connection(("127.0.0.1", server.server_address[1]), timeout=2))


def test_nothing_but_reading(site: Site) -> None:
    """HEAD has the head alone; what would change something is no method here."""
    head = site.ask("/", method="HEAD")
    assert (head.status, head.body, head.headers["ETag"]) == (200, b"", site.ask("/").headers["ETag"])
    for method in ("POST", "PUT", "DELETE", "OPTIONS"):
        assert site.ask("/", method=method).status == 501


def test_what_is_known_is_not_sent_again(site: Site) -> None:
    """304 for the tag that was given, weak or among others; the content for another one."""
    page = site.ask("/")
    for known in (page.headers["ETag"], f'"x", W/{page.headers["ETag"]}', "*"):
        again = site.ask("/", If_None_Match=known)
        assert (again.status, again.body, again.headers["ETag"]) == (304, b"", page.headers["ETag"]), known
    assert site.ask("/", If_None_Match='"other"').status == 200


def test_the_served_page_and_the_written_one(site: Site) -> None:
    """They differ in the script that loads the page again, and in what the policy allows for it."""
    from embeval.leaderboard import definition

    of = definition.load(site.path)
    written = writing.rendered(building.snapshot(of), of)[of.output("html")].decode()
    served = site.ask("/").body.decode()
    assert "connect-src" not in written
    assert "/version" not in written
    script = f"<script>{serving.reload(site.ask('/version').body.decode())}</script>\n"
    assert served.count(script) == 1
    policy = re.search(r"connect-src 'self'; script-src ('sha256-[^']+') ", served)
    assert policy is not None
    back = served.replace(script, "").replace("connect-src 'self'; ", "").replace(f"{policy[1]} ", "", 1)
    assert back == written


# --- when it is built again ---------------------------------------------------------------------------------------


def test_built_again_as_results_arrive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A new result is shown; a broken file keeps the last good board and is told; once it is mended, it counts."""
    monkeypatch.setattr(serving, "INTERVAL_S", 0.05)
    store = three(tmp_path)
    with ExitStack() as stack:
        site = serve(board(tmp_path, TEXT).path, stack)
        first, version = site.ask("/board.json"), site.ask("/version").body
        put(store, {NDCG: POOR, RECALL: POOR}, model="org/new", task="docs")
        second = until(site, "/board.json", first.headers["ETag"])
        assert [each["label"] for each in json.loads(second.body)["models"]] == ["good", "fair", "poor", "new"]
        assert site.ask("/version").body != version

        n_told = len(site.told)
        site.path.write_text(TEXT + "rank_by: mean\n", encoding="utf-8")
        while len(site.told) == n_told:
            time.sleep(0.05)
        assert site.told[-1].startswith("Not built: ")
        assert "board.yaml, line 3: rank_by" in site.told[-1]
        assert site.ask("/board.json").headers["ETag"] == second.headers["ETag"]
        assert site.ask("/").status == 200

        site.path.write_text(TEXT + "title: Mended\n", encoding="utf-8")
        third = until(site, "/board.json", second.headers["ETag"])
        assert json.loads(third.body)["title"] == "Mended"
    with pytest.raises(ConnectionRefusedError):
        site.ask("/")


def test_a_board_without_results_yet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page says why there is none, in words that run nothing, and shows it once there is one."""
    monkeypatch.setattr(serving, "INTERVAL_S", 0.05)
    (tmp_path / "results").mkdir()
    path = board(tmp_path, TEXT + "tasks: ['<script>alert(1)</script>']\n").path
    with ExitStack() as stack:
        site = serve(path, stack)
        page = site.ask("/")
        assert page.status == 200
        assert b"there are no results in ../../results" in page.body
        assert site.told[0].startswith("Not built: ")
        three(tmp_path)
        still = until(site, "/", page.headers["ETag"])
        assert b"&lt;script&gt;alert(1)&lt;/script&gt;" in still.body
        assert still.body.count(b"<script>") == 1
        path.write_text(TEXT, encoding="utf-8")
        while b"No board yet" in site.ask("/").body:
            time.sleep(0.05)
        assert site.ask("/board.json").status == 200


def test_a_board_as_it_was_built(tmp_path: Path) -> None:
    """Where the results aren't here, as in a checkout: its page, though that isn't kept either, and why."""
    three(tmp_path)
    found = board(tmp_path, TEXT.replace("html, ", ""))
    writing.write(building.snapshot(found), found)
    shutil.rmtree(tmp_path / "results")
    with ExitStack() as stack:
        site = serve(found.path, stack)
        assert site.told == ["mine as it was built before: the results aren't here."]
        assert site.ask("/").body == site.ask("/index.html").body
        assert b'<table id="board"' in site.ask("/").body
        assert json.loads(site.ask("/board.json").body)["title"] == "mine"


def test_what_cannot_be_served(tmp_path: Path) -> None:
    """A port that is taken or none, and a file that is broken from the start."""
    three(tmp_path)
    path = board(tmp_path, TEXT).path
    with ExitStack() as stack:
        site = serve(path, stack)
        with pytest.raises(UsageError, match=rf"Port {site.port} of 127\.0\.0\.1 can't be used"):
            stack.enter_context(serving.served(path, site.port, lambda _: None))
    path.write_text("titel: x\n", encoding="utf-8")
    with pytest.raises(ConfigError, match="line 1: titel: unknown key"), serving.served(path, 0, lambda _: None):
        pass


def test_a_run_that_writes_and_one_that_never_stops(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are let settle, so that a run's are shown together; one that never pauses is shown all the same."""
    three(tmp_path)
    path = board(tmp_path, TEXT).path
    keeper = serving.Keeper(path, lambda _: None, serving.Served())
    keeper.build()
    builds: list[int] = []
    number = 0
    build = keeper.build

    def counted() -> None:
        builds.append(number)
        build()

    monkeypatch.setattr(keeper, "build", counted)
    for _ in range(3):
        keeper.look()
    assert builds == []
    for number in range(10, 14):  # two changes, then quiet
        if number < 12:
            (tmp_path / "results" / "x.json").write_text("x" * number, encoding="utf-8")
        keeper.look()
    assert builds == [12]
    for number in range(100, 100 + serving.MOST_LOOKS):
        (tmp_path / "results" / "x.json").write_text("x" * number, encoding="utf-8")
        keeper.look()
    assert builds == [12, 100 + serving.MOST_LOOKS - 1]


def test_a_fault_stops_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error that nobody foresaw is told, and the next look goes on."""
    told: list[str] = []
    stop = threading.Event()
    keeper = serving.Keeper(tmp_path / "board.yaml", told.append, serving.Served())
    looks = 0

    def look() -> None:
        nonlocal looks
        looks += 1
        if looks == 3:
            stop.set()
        raise RuntimeError("odd")

    monkeypatch.setattr(serving, "INTERVAL_S", 0.01)
    monkeypatch.setattr(keeper, "look", look)
    keeper.run(stop)
    assert told == ["Not built: RuntimeError: odd"] * 3


def test_what_counts_as_a_change(tmp_path: Path) -> None:
    """A result added, changed in place under its old time or removed, the tags, the policy and the file itself."""
    store = three(tmp_path)
    (tmp_path / "gate.yaml").write_text("", encoding="utf-8")
    of = board(tmp_path, TEXT + "gate: ../../gate.yaml\n")

    def state() -> watching.State:
        return watching.state(of.path, of)

    seen = [state()]
    assert state() == seen[0]

    def changed() -> bool:
        seen.append(state())
        return seen[-1] not in seen[:-1]

    put(store, {NDCG: POOR, RECALL: POOR}, model="org/new", task="docs")
    assert changed()
    stored = next(store.find())
    told = stored.path.stat()
    stored.path.write_bytes(stored.path.read_bytes() + b"\n")
    os.utime(stored.path, ns=(told.st_atime_ns, told.st_mtime_ns))
    assert changed()
    stored.path.unlink()
    assert changed()
    (store.root / "tags.json").write_text("{}", encoding="utf-8")
    assert changed()
    (tmp_path / "gate.yaml").write_text("rules: []", encoding="utf-8")
    assert changed()
    of.path.write_text(TEXT, encoding="utf-8")
    assert changed()
    for name in (".catalogue.json", "x.parquet"):  # what is hidden, and what is written before its result
        (store.root / name).write_text("x", encoding="utf-8")
        assert not changed()
