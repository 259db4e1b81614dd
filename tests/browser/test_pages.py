"""Pages in a real browser: nothing runs, nothing is asked for, nothing is wider than a phone."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from embeval.compare.html import html as compare_html
from embeval.gates.render.html import html as gate_html
from tests.support.gates import compare_report, gate_reports
from tests.support.pages import Seen, read, with_texts

BROWSER = next(
    (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None
)
pytestmark = pytest.mark.skipif(BROWSER is None, reason="no chromium on this machine")
HOSTILE = (
    "</title></style><script>document.title='ran'</script><img src=https://asked.example/a.png onerror=alert()>"
    '<link rel=stylesheet href=https://asked.example/b.css>" onload="alert(2)" ]]> <svg/onload=alert(3)> '
) + "long" * 40
PAGES = {
    "gate": gate_html(with_texts(gate_reports()["several"], lambda text: f"{text} {HOSTILE}")),
    "compare": compare_html(with_texts(compare_report(), lambda text: f"{text} {HOSTILE}")),
}


def opened(page: str, folder: Path, width: int = 1280) -> tuple[str, str, set[str]]:
    """The page as the browser has it in the end, what it logged, and the hosts that it asked."""
    (folder / "page.html").write_text(page, encoding="utf-8")
    log = folder / "net.json"
    assert BROWSER is not None
    options = (
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-background-networking",
        "--enable-logging=stderr",
    )
    done = subprocess.run(
        [
            *(BROWSER, *options, f"--user-data-dir={folder / 'profile'}", f"--log-net-log={log}"),
            *(f"--window-size={width},900", "--dump-dom", (folder / "page.html").as_uri()),
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    hosts = set(re.findall(r'"url":"https?://([^/"]+)', log.read_text(encoding="utf-8")))
    # Those that the browser itself would call home to are no business of a page.
    asked = {host for host in hosts if not host.endswith((".google.com", ".gvt1.com", ".googleapis.com"))}
    return done.stdout, "\n".join(re.findall(r".*CONSOLE.*", done.stderr)), asked


def started(seen: Seen) -> list[str]:
    """Its elements in their order; the browser writes ends of its own."""
    return [tag for tag in seen.tags if not tag.startswith("/")]


@pytest.mark.parametrize("name", PAGES)
def test_nothing_runs_and_nothing_is_asked_for(name: str, tmp_path: Path) -> None:
    """With hostile texts throughout: no message, no request, and the very elements that were written."""
    dom, messages, asked = opened(PAGES[name], tmp_path)
    assert messages == ""
    assert asked == set()
    seen = read(dom)
    assert [tag for tag in seen.tags if tag in ("script", "img", "iframe")] == []
    assert started(seen) == started(read(PAGES[name]))
    assert "asked.example" in seen.text


@pytest.mark.parametrize("name", PAGES)
def test_a_phone_shows_it_whole(name: str, tmp_path: Path) -> None:
    """Not wider than 390 pixels, long names and all.

    A copy without the policy holds a script that measures; and a picture, to prove that the test above would see one.
    """
    added = (
        "<img src=https://asked.example/a.png width=1 height=1><script>console.log('measured');"
        "document.title = JSON.stringify([innerWidth, document.documentElement.scrollWidth,"
        "...[...document.querySelectorAll('body *')].map(each => Math.ceil(each.getBoundingClientRect().right))])"
        "</script>"
    )
    unbound = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", PAGES[name])
    dom, messages, asked = opened(unbound.replace("</body>", f"{added}</body>"), tmp_path, width=390)
    assert "measured" in messages
    assert asked == {"asked.example"}
    found = re.search(r"<title>(\[.*?\])</title>", dom)
    assert found is not None
    width, needed, *edges = json.loads(found[1])
    assert needed <= width <= 500
    assert max(edges) <= width
