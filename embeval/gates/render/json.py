"""A gate's report as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

from embeval.core import border, strict_json
from embeval.core.characters import REPLACEMENT

if TYPE_CHECKING:
    from embeval.core.verdict import GateReport


def json_text(report: GateReport) -> str:
    """The report as strict JSON, one line per value, with a final newline.

    A lone surrogate in a text becomes U+FFFD, since UTF-8 can't hold it. Raises ``ValueError`` on NaN and Infinity.
    """
    return _encodable(strict_json.dumps(border.dump(report)))


def _encodable(text: str) -> str:
    return text if text.isascii() else "".join(REPLACEMENT if "\ud800" <= each <= "\udfff" else each for each in text)
