"""What a model card declares in its front matter."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any


def languages(card: Path) -> tuple[str, ...]:
    """The languages that a model card declares; none where there is no card, or where it says none."""
    declared = _front(card).get("language")
    listed = declared if isinstance(declared, list) else [declared]
    return tuple(each for each in listed if isinstance(each, str) and each)


def license_of(card: Path) -> str | None:
    """The licence that a model card declares; None where there is no card, or where it says none."""
    front = _front(card)
    declared = front.get("license")
    if declared == "other":
        declared = front.get("license_name") or declared
    return declared if isinstance(declared, str) and declared else None


def _front(card: Path) -> Mapping[str, Any]:
    try:
        text = card.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return {}
    import yaml

    if not text.startswith("---"):
        return {}
    try:
        front = yaml.load(text.split("\n---", 1)[0], Loader=yaml.BaseLoader)  # noqa: S506 - texts only: "no" is Norwegian
    except yaml.YAMLError:
        return {}
    return front if isinstance(front, dict) else {}
