"""Texts on a terminal: nothing in them steers it, and no markup is read out of them."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from embeval.cli._texts import about, plain


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\x1b[31mred\x1b[0m", "a␛[31mred␛[0m"),
        ("ring\x07 back\x08 null\x00 del\x7f", "ring␇ back␈ null␀ del␡"),
        ("csi \x9b31m osc \x9d0;title\x9c", "csi \ufffd31m osc \ufffd0;title\ufffd"),
        ("one\ntwo\r\nthree\ttab\u2028four", "one two  three tab four"),
        ("abc\u202egnp.exe\u2066x\u200f", "abc\ufffdgnp.exe\ufffdx\ufffd"),
        ("half \ud800", "half \ufffd"),
        ("[bold]no markup[/bold] naïve 日本語 👩\u200d💻", "[bold]no markup[/bold] naïve 日本語 👩\u200d💻"),
    ],
)
def test_plain(text: str, shown: str) -> None:
    """Controls become pictures, line ends spaces, marks that turn the direction a sign; all else stays."""
    assert plain(text) == shown


def test_the_words_of_the_query_are_emphasised_and_escapes_do_not_arrive() -> None:
    """In bold, in an excerpt; printed on a terminal with colours."""
    stream = io.StringIO()
    console = Console(file=stream, force_terminal=True, color_system="standard", width=60, markup=False)
    console.print(about("the \x1b]0;title\x07 quick [red]fox[/red]", "a fox", 40))
    assert stream.getvalue() == "the ␛]0;title␇ quick [red]\x1b[1mfox\x1b[0m[/red]\n"
