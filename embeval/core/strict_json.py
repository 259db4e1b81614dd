"""JSON as RFC 8259 has it: UTF-8, no NaN, no Infinity, keys sorted, one form for one value.

Python's ``json`` reads and writes the bare words ``NaN`` and ``Infinity``, which no other strict parser
accepts; and a NaN that slips into a result file later looks like a number. Both are refused here.
"""

from __future__ import annotations

import hashlib
import json
import math
from typing import Any, NoReturn

Json = Any
"""Anything that JSON can hold: None, bool, int, float, str, lists and string-keyed mappings of these."""


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not a JSON number")


def _finite(digits: str) -> float:
    value = float(digits)
    if math.isinf(value):
        raise ValueError(f"{digits} is too large for a number")
    return value


def _once(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    built = dict(pairs)
    if len(built) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"the key {next(name for name in names if names.count(name) > 1)!r} stands here twice")
    return built


def loads(text: str | bytes) -> Json:
    """The value that ``text`` holds, bytes being UTF-8.

    Raises ``ValueError`` for broken JSON, NaN, numbers beyond a float, a key that comes twice and endless nesting.
    """
    if isinstance(text, bytes):
        text = text.decode("utf-8")
    try:
        return json.loads(text, parse_constant=_refuse, parse_float=_finite, object_pairs_hook=_once)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def dumps(value: Json) -> str:
    """Indented JSON with sorted keys and a final newline. Raises ``ValueError`` on NaN and Infinity."""
    return json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n"


def canonical(value: Json) -> str:
    """One-line JSON with sorted keys: equal values give equal text. Raises ``ValueError`` on NaN and Infinity."""
    return json.dumps(value, separators=(",", ":"), sort_keys=True, ensure_ascii=False, allow_nan=False)


def digest(value: Json) -> str:
    """sha256 of the canonical form, 64 hexadecimal digits."""
    return hashlib.sha256(canonical(value).encode("utf-8")).hexdigest()
