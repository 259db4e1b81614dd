"""What every page has: escaping that can't be left out, nothing that is fetched, colours that can be read."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import pairwise, product
from pathlib import Path

import pytest

from embeval.compare.html import html as compare_html
from embeval.gates.render.html import html as gate_html
from embeval.pages.looks import LOOKS
from embeval.pages.page import data, mark
from tests.support.gates import compare_report, gate_reports
from tests.support.pages import Seen, fetched, read

PAGES = {
    **{name: gate_html(report) for name, report in gate_reports().items()},
    "compare": compare_html(compare_report()),
}


def schemes() -> dict[str, dict[str, str]]:
    """The colours by name, for light, dark and print."""
    (style,) = read(PAGES["pass"]).styles
    blocks = re.findall(r":root \{(.*?)\}", style, re.DOTALL)
    found = [dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6})", block)) for block in blocks]
    return dict(zip(("light", "dark", "print"), found, strict=True))


def luminance(colour: str) -> float:
    """Relative luminance. Source: WCAG 2.2."""
    shares = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4 for each in shares)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    """Contrast ratio. Source: WCAG 2.2."""
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def test_contrast_of_black_and_white() -> None:
    """The ratio that WCAG names for them."""
    assert contrast("#000000", "#ffffff") == pytest.approx(21.0)


@pytest.mark.parametrize("scheme", ["light", "dark", "print"])
def test_text_can_be_read(scheme: str) -> None:
    """4.5 to 1 for every colour of text on every ground that it stands on (WCAG 2.2, 1.4.3)."""
    colours = schemes()[scheme]
    grounds = ("ground", "raised")
    pairs = [*product(("text", "muted", "link"), grounds), ("muted", "quiet-ground")]
    for tone in {look.tone for look in LOOKS.values()}:
        pairs += [(tone, f"{tone}-ground"), ("text", f"{tone}-ground"), *product((tone,), grounds)]
    assert {pair: ratio for pair in pairs if (ratio := contrast(colours[pair[0]], colours[pair[1]])) < 4.5} == {}


@pytest.mark.parametrize("name", PAGES)
def test_nothing_is_fetched_and_nothing_runs(name: str) -> None:
    """No script, no style sheet, font or picture from elsewhere; and a policy that would stop them."""
    seen = read(PAGES[name])
    assert fetched(seen) == []
    (policy,) = [
        value for tag, key, value in seen.attributes if (tag, key) == ("meta", "content") and "'none'" in value
    ]
    assert policy.startswith("default-src 'none'; style-src 'unsafe-inline'; img-src data:;")
    assert PAGES[name].index("Content-Security-Policy") < PAGES[name].index("<style>")


@pytest.mark.parametrize("name", PAGES)
def test_a_page_can_be_walked_through_without_seeing_it(name: str) -> None:
    """A language, a title, landmarks, headings without gaps, heads of columns, and words for every picture."""
    seen = read(PAGES[name])
    assert ("html", "lang", "en") in seen.attributes
    assert [seen.tags.count(tag) for tag in ("header", "main", "footer", "h1")] == [1] * 4
    levels = [int(tag[1]) for tag in seen.tags if re.fullmatch(r"h[1-6]", tag)]
    assert all(below - above <= 1 for above, below in pairwise(levels))
    assert seen.tags.count("th") == sum(tag == "th" and name == "scope" for tag, name, _ in seen.attributes)
    assert seen.tags.count("svg") == sum(
        tag == "svg" and (name, value) in (("role", "img"), ("aria-hidden", "true"))
        for tag, name, value in seen.attributes
    )
    assert broken_links(seen) == []


def broken_links(seen: Seen) -> list[str]:
    """Anchors and labels that point at no element."""
    wanted = [*seen.values("aria-labelledby"), *(link[1:] for link in seen.values("href") if link.startswith("#"))]
    return [each for each in wanted if seen.values("id").count(each) != 1]


def test_no_template_can_leave_escaping_out() -> None:
    """The filter that would switch it off stands in none of them."""
    import embeval

    folder = Path(embeval.__file__).parent
    templates = [path for path in folder.rglob("templates/*") if path.suffix == ".html"]
    assert {path.name for path in templates} >= {"page.html", "parts.html", "gate.html", "compare.html"}
    for path in templates:
        assert not re.search(r"\|\s*safe|autoescape|Markup", path.read_text(encoding="utf-8")), path


def test_data() -> None:
    """Escaped, its direction kept to itself."""
    assert data('<b>"&\x00') == "<bdi>&lt;b&gt;&#34;&amp;\N{REPLACEMENT CHARACTER}</bdi>"


@pytest.mark.parametrize("name", LOOKS)
def test_marks(name: str) -> None:
    """Hidden from those who hear the word beside it; in the colour of their outcome."""
    made: Mapping[str, str] = {key: value for _, key, value in read(mark(name)).attributes}
    assert made["aria-hidden"] == "true"
    assert made["class"] in ("point", "point hollow") or LOOKS[name].tone in made["class"]
