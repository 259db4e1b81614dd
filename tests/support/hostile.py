"""Texts that try to be more than texts."""

from __future__ import annotations

from hypothesis import strategies as st

PIECES = (
    *(
        "<script>alert(1)</script>",
        "&amp;",
        "&",
        '"',
        "'",
        "]]>",
        "|",
        "\\",
        "`",
        "```",
        "~~",
        "**",
        "_",
        "[x](y)",
        "![",
        "](",
    ),
    *("@team", "#12", "!7", "GH-3", "https://a.example", "www.a.example", "\n", "\n\n", "# ", "- ", "1. ", "---", "> "),
    *(
        "\x00",
        "\x1b[31m",
        "\u202e",
        "\u2028",
        "שלום",
        "你好",
        "👩\u200d🚀",
        "<!--",
        "-->",
        "[ ] ",
        "$x$",
        " ",
        "<details>",
        "\ufeff",
    ),
)
"""What HTML, XML, Markdown, GitHub and terminals would read as their own, and letters that need care."""


def hostile() -> st.SearchStrategy[str]:
    """Texts of such pieces and of anything else."""
    anything = st.text(st.characters(codec="utf-8"), max_size=5)
    return st.lists(st.sampled_from(PIECES) | anything, min_size=1, max_size=8).map("".join)
