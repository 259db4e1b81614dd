"""What a browser would make of a page: its elements, its texts, and what it would fetch."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from enum import Enum
from html.parser import HTMLParser
from typing import Any, TypeVar, cast

T = TypeVar("T")

VOID = {"meta", "link", "br", "img", "input", "hr"}
"""Elements without an end."""
FETCHING = {"src", "href", "srcset", "action", "formaction", "data", "poster", "background", "ping", "xlink:href"}
"""Attributes that hold an address."""
ACTIVE = {"script", "iframe", "object", "embed", "form", "base", "img", "video", "audio", "template", "portal"}
"""Elements that no page of ours has."""


@dataclass
class Seen(HTMLParser):
    """A page, read."""

    tags: list[str] = field(default_factory=list)
    attributes: list[tuple[str, str, str]] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    styles: list[str] = field(default_factory=list)
    open: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag not in VOID and not (self.get_starttag_text() or "").endswith("/>"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag
        self.tags.append(f"/{tag}")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]

    def handle_data(self, data: str) -> None:
        (self.styles if self.open[-1:] == ["style"] else self.texts).append(data)

    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"a comment: {data}")

    @property
    def text(self) -> str:
        """All that is shown or read aloud."""
        return "".join(self.texts)

    def values(self, name: str) -> list[str]:
        """The values of an attribute, in their order."""
        return [value for _, found, value in self.attributes if found == name]


def read(html: str) -> Seen:
    """The page; fails where elements don't close in turn."""
    seen = Seen()
    seen.feed(html)
    seen.close()
    assert seen.open == []
    return seen


def fetched(seen: Seen) -> list[str]:
    """Whatever on a page would fetch or run something."""
    found = [f"<{tag}>" for tag in seen.tags if tag in ACTIVE]
    for tag, name, value in seen.attributes:
        if name.startswith("on") or name == "style":
            found.append(f"{tag} {name}")
        if name in FETCHING and not re.match(r"(#|data:)", value):
            found.append(f"{tag} {name}={value}")
        if name == "http-equiv" and value != "Content-Security-Policy":
            found.append(f"{tag} {value}")
    return found + [each for style in seen.styles for each in re.findall(r"@import|url\(|expression\(", style)]


def with_texts(value: T, change: Callable[[str], str], kept: frozenset[str] = frozenset({"kind"})) -> T:
    """The same record with every text in it changed, but for fields that steer what is shown."""
    return cast("T", _changed(value, change, kept))


def _changed(value: Any, change: Callable[[str], str], kept: frozenset[str]) -> Any:
    if isinstance(value, Enum):
        return value
    if isinstance(value, str):
        return change(value)
    if isinstance(value, tuple):
        return tuple(_changed(each, change, kept) for each in value)
    if isinstance(value, Mapping):
        return {change(name): _changed(each, change, kept) for name, each in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        parts = {each.name: getattr(value, each.name) for each in fields(value) if each.name not in kept}
        return replace(value, **{name: _changed(part, change, kept) for name, part in parts.items()})
    return value
