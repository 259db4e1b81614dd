"""``data pull`` with the real client of the hub, asking a hub on loopback."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from embeval.errors import ConfigError, DataError, StoreError, UnknownNameError
from embeval.mteb_bridge import loading, mirror, pulling
from embeval.mteb_bridge.names import Filters
from embeval.mteb_bridge.pulling import Pulled
from tests.support import hub
from tests.support.hub import Hub

pytestmark = pytest.mark.enable_socket
ROWS = "".join(
    json.dumps({"sentence1": f"a{number}", "sentence2": "b", "score": number / 20}) + "\n" for number in range(100)
).encode()
FILES = {"test.jsonl": ROWS, "README.md": b"---\n---\n", ".gitattributes": b"x"}


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Hub]:
    """A hub with the data of BIOSSES and STS12."""
    with hub.running() as running:
        running.files = {"mteb/biosses-sts": dict(FILES), "mteb/sts12-sts": dict(FILES)}
        template = f"{running.url}/{{repo_id}}/resolve/{{revision}}/{{filename}}"
        for name, value in {
            "ENDPOINT": running.url,
            "HUGGINGFACE_CO_URL_TEMPLATE": template,
            "HF_HUB_OFFLINE": False,
            "HF_HUB_CACHE": str(tmp_path / "hub"),
        }.items():
            monkeypatch.setattr(f"huggingface_hub.constants.{name}", value)
        yield running


def pull(folder: Path, *names: str) -> list[Pulled]:
    """What became of each data set."""
    return list(pulling.pull(names, folder))


def test_a_pulled_data_set_is_whole_and_loads(server: Hub, tmp_path: Path) -> None:
    """Its manifest says what the hub has, by hashlib; the second time nothing is downloaded."""
    (first,) = pull(tmp_path, "mteb:BIOSSES")
    assert (first.status, first.bytes, first.tasks) == ("pulled", len(ROWS) + 8, ("BIOSSES",))
    place = mirror.located(tmp_path, "BIOSSES")
    assert place.manifest is not None
    assert place.folder == tmp_path / "mteb" / "biosses-sts" / "d3fb88f8f02e40887cd149695127462bbcf29b4a"
    assert place.manifest.commit == hub.COMMIT
    assert {name: file.sha256 for name, file in place.manifest.files.items()} == {
        name: hashlib.sha256(FILES[name]).hexdigest() for name in ("README.md", "test.jsonl")
    }
    found = loading.load("BIOSSES", "test", subsets=None, parity="embeval", mirror=tmp_path)
    assert found.setting.rows("default")["sentence1"][:2] == ["a0", "a1"]
    assert found.origin == f"mirror of mteb/biosses-sts at {hub.COMMIT}"
    server.sent.clear()
    (second,) = pull(tmp_path, "BIOSSES")
    assert (second.status, second.bytes, server.sent) == ("present", first.bytes, [])


def test_what_was_downloaded_is_not_downloaded_again(server: Hub, tmp_path: Path) -> None:
    """A failed attempt leaves nothing that looks whole, and the next one goes on where it ended."""
    server.refused.add("test.jsonl")
    (failed,) = pull(tmp_path, "STS12")
    assert (failed.status, mirror.has(tmp_path, "STS12")) == ("failed", False)
    server.refused.clear()
    server.sent.clear()
    assert [each.status for each in pull(tmp_path, "STS12")] == ["pulled"]
    assert "README.md" not in server.sent
    assert "test.jsonl" in server.sent
    assert [path.name for path in (tmp_path / "mteb" / "sts12-sts").iterdir()] == [
        "a0d554a64d88156834ff5ae9920b964011b16384"
    ]


@pytest.mark.parametrize("name", ["test.jsonl", "README.md"])
def test_a_file_that_is_not_the_hubs_is_refused(server: Hub, tmp_path: Path, name: str) -> None:
    """Also of the same size; large files have a sha256 on the hub, small ones the hash of git."""
    server.broken[name] = FILES[name][:-1] + b" "
    (failed,) = pull(tmp_path, "STS12")
    assert str(failed.error) == f"mteb/sts12-sts: {name} isn't what the hub has; it was removed. Pull again to go on."
    assert not mirror.has(tmp_path, "STS12")
    server.broken.clear()
    assert [each.status for each in pull(tmp_path, "STS12")] == ["pulled"]


def test_each_failure_says_what_to_do_and_stops_nothing(server: Hub, tmp_path: Path) -> None:
    """Gated, private or gone, and read by a script; the others are stored."""
    server.files |= {"mteb/sts13-sts": dict(FILES), "mteb/sts15-sts": {**FILES, "sts15-sts.py": b"print()"}}
    server.gated.add("mteb/sts13-sts")
    done = pull(tmp_path, "STS13", "STS14", "STS15", "STS12")
    assert [each.status for each in done] == ["failed"] * 3 + ["pulled"]
    assert [str(each.error) for each in done[:3]] == [
        (
            "mteb/sts13-sts is given out on request. Ask for it on https://huggingface.co/datasets/mteb/sts13-sts, "
            "then log in with 'hf auth login'."
        ),
        "mteb/sts14-sts is private, or no longer on the hub. Where you may read it, log in with 'hf auth login'.",
        "mteb/sts15-sts is read by a script of its own (sts15-sts.py), which no mteb of today runs.",
    ]


def test_names_and_filters(server: Hub, tmp_path: Path) -> None:
    """Patterns and filters as everywhere; nothing is downloaded before all names are known."""
    filters = Filters(types=("STS",), domains=("Medical",))
    done = list(pulling.pull(["BIOSS*", "STS12"], tmp_path, filters=filters))
    assert [(each.tasks, each.status) for each in done] == [(("BIOSSES",), "pulled"), (("BIOSSES-VN",), "failed")]
    server.sent.clear()
    with pytest.raises(UnknownNameError, match="STS1Z"):
        pull(tmp_path, "STS12", "STS1Z")
    with pytest.raises(ConfigError, match="No task of these names fits the filters"):
        list(pulling.pull(["STS12"], tmp_path, filters=Filters(types=("Clustering",))))
    assert server.sent == []


def test_places_that_cannot_be_used(
    server: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    """What lies in the way stays; a disk that is too small is told before anything is downloaded; offline is told."""
    place = tmp_path / "mteb" / "sts12-sts" / "a0d554a64d88156834ff5ae9920b964011b16384"
    place.mkdir(parents=True)
    (place / "mine.txt").write_text("mine", encoding="utf-8")
    (failed,) = pull(tmp_path, "STS12")
    assert isinstance(failed.error, StoreError)
    assert (place / "mine.txt").read_text(encoding="utf-8") == "mine"
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(StoreError, match="not a folder"):
        pull(tmp_path / "file", "BIOSSES")
    server.files["mteb/biosses-sts"]["huge.bin"] = b""
    monkeypatch.setattr("shutil.disk_usage", lambda _: type("Usage", (), {"free": 100})())
    (failed,) = pull(tmp_path, "BIOSSES")
    assert str(failed.error) == f"mteb/biosses-sts is 5.3 kB, and {tmp_path / 'mteb'} has 100 B left. Free some space."
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    (failed,) = pull(tmp_path, "BIOSSES")
    assert isinstance(failed.error, DataError)
    assert str(failed.error) == "mteb/biosses-sts can't be asked for: HF_HUB_OFFLINE is set."
    assert server.sent == []
