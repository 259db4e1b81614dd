"""Sizes as people write them."""

from __future__ import annotations

import re
from fractions import Fraction

from embeval.errors import ConfigError

UNITS = {
    "": 1,
    "B": 1,
    **{f"{letter}B": 1000**power for power, letter in enumerate("KMGT", 1)},
    **{f"{letter}IB": 1024**power for power, letter in enumerate("KMGT", 1)},
}
_SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]*)")


def parse_size(text: str, name: str) -> int:
    """Bytes: ``20GB`` is 20·10⁹, ``500MiB`` is 500·2²⁰, a bare number is bytes.

    Raises ``ConfigError``, with ``name`` for what was set, where it is no size.
    """
    found = _SIZE.fullmatch(text.strip())
    if found is None or found[2].upper() not in UNITS:
        raise ConfigError(f"{name} must be a size such as 20GB, 500MiB or 1000000 (bytes), not {text!r}.")
    return int(Fraction(found[1]) * UNITS[found[2].upper()])


def size_text(n_bytes: int) -> str:
    """``1.5 GiB``: the size to two or three digits."""
    size, unit = float(n_bytes), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if size < 1024:
            break
        size, unit = size / 1024, larger
    return f"{size:.1f} {unit}" if unit != "B" and size < 100 else f"{size:.0f} {unit}"
