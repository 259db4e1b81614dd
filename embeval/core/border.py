"""The border between dataclasses in memory and JSON on disk.

In memory every record is a frozen dataclass; pydantic checks it where it comes in from a file and describes
it as a JSON Schema. Both read the one definition, so they can't drift apart. A dataclass that crosses the
border carries ``__pydantic_config__ = BORDER`` and a docstring under each field.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from embeval.core import strict_json
from embeval.errors import did_you_mean

if TYPE_CHECKING:
    from pydantic import TypeAdapter

T = TypeVar("T")

DOCSTRINGS = "use_attribute_docstrings"
"""Setting by which field docstrings become descriptions. They are read from the source code, which takes longer than
everything else about a record, so only ``schema`` does."""
BORDER: Any = {"extra": "forbid", DOCSTRINGS: False, "allow_inf_nan": False}
"""Shared pydantic settings: unknown keys refused, no NaN."""

KeyPath = tuple[str | int, ...]


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong in a value from outside."""

    path: KeyPath
    """Where: keys and list positions from the top."""
    text: str
    """What is wrong, in words for the person who wrote the value."""

    def __str__(self) -> str:
        return f"{spell(self.path)}: {self.text}" if self.path else self.text


class BorderError(ValueError):
    """A value from outside doesn't fit its record; callers turn it into an error that names the file."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(str(problem) for problem in self.problems))


def spell(path: KeyPath) -> str:
    """The path as people write it: ``tasks[0].columns.score``."""
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else (f".{step}" if text else step)
    return text


_adapters: dict[Any, TypeAdapter[Any]] = {}


def _adapter(cls: Any) -> TypeAdapter[Any]:
    if cls not in _adapters:
        from pydantic import TypeAdapter

        _adapters[cls] = TypeAdapter(cls)
    return _adapters[cls]


def load(cls: type[T], value: strict_json.Json, text: bytes | None = None) -> T:
    """``cls`` built from plain JSON values. Raises ``BorderError`` with every problem found.

    ``text`` is what ``strict_json.loads`` has read the value from: a record that it fits is built without looking for
    what JSON can't hold.
    """
    from pydantic import ValidationError

    if text is not None:
        with contextlib.suppress(ValidationError):  # what is wrong is found below
            return restore(cls, text)
    try:
        strange = list(_not_json(value, ()))
    except RecursionError:
        strange = [Problem((), "nested too deeply")]
    if strange:
        raise BorderError(strange)
    text_again = strict_json.canonical(value)
    try:
        # Strict JSON mode: a list may become a tuple, but "5" never becomes 5 and 1 never becomes True.
        return restore(cls, text_again)
    except ValidationError as error:
        raise BorderError(list(_problems(error.errors(), schema(cls)))) from None


def restore(cls: type[T], text: str | bytes) -> T:
    """``cls`` built from text that is known to be strict JSON. Raises pydantic's ``ValidationError``."""
    built: T = _adapter(cls).validate_json(text, strict=True)
    return built


def text_of(value: Any) -> str:
    """JSON text of a border dataclass with all of its fields, which ``restore`` reads."""
    return _adapter(type(value)).dump_json(value).decode("utf-8")


def dump(value: Any) -> strict_json.Json:
    """Plain JSON values of a border dataclass; tuples become lists.

    Null fields that the class names in ``left_out_if_null`` are left out.
    """
    dumped = _adapter(type(value)).dump_python(_with_dicts(value), mode="json")
    _leave_out(value, dumped)
    return dumped


def _with_dicts(value: Any) -> Any:
    """A record whose own mappings are dicts: pydantic writes no others."""
    own = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    others = {name: dict(each) for name, each in own.items() if isinstance(each, Mapping) and type(each) is not dict}
    return dataclasses.replace(value, **others) if others else value


def _leave_out(value: Any, dumped: Any) -> None:
    """Removes null fields of a record, and of the records that it holds itself, not in lists."""
    for field in dataclasses.fields(value):
        if dataclasses.is_dataclass(below := getattr(value, field.name)):
            _leave_out(below, dumped[field.name])
    for name in getattr(type(value), "left_out_if_null", ()):
        if dumped[name] is None:
            del dumped[name]


def schema(cls: Any) -> dict[str, Any]:
    """The JSON Schema of a border dataclass, with the docstrings of its fields."""
    from pydantic import TypeAdapter

    BORDER[DOCSTRINGS] = True
    try:
        return TypeAdapter(cls).json_schema()
    finally:
        BORDER[DOCSTRINGS] = False


def form(cls: Any) -> str:
    """Hash of what a border dataclass demands of JSON, 64 hexadecimal digits."""
    return strict_json.digest(_adapter(cls).json_schema())


@dataclass(frozen=True)
class Described:
    """A field for people: listings, help and the README."""

    name: str
    """Its key."""
    default: Any
    """Its default in plain JSON values; None for null or none."""
    text: str
    """What it does, on one line."""
    choices: tuple[str, ...] = ()
    """Its values, where only some are allowed."""


def describe(cls: Any) -> tuple[Described, ...]:
    """The fields of a border dataclass in their order."""
    whole = schema(cls)
    # A class that holds itself, as a group of rules does, stands among the definitions.
    own = whole["$defs"][whole["$ref"].rsplit("/", 1)[-1]] if "$ref" in whole else whole
    found = []
    for name, field in own["properties"].items():
        # A description that an enum has itself is not repeated by pydantic at the field.
        options = [field, *field.get("anyOf", ())]
        targets = [whole["$defs"][option["$ref"].rsplit("/", 1)[-1]] for option in options if "$ref" in option]
        text = field.get("description") or next((target["description"] for target in targets), "")
        choices = tuple(str(value) for target in [*options, *targets] for value in target.get("enum", ()))
        found.append(Described(name, field.get("default"), " ".join(text.split()).replace("``", "`"), choices))
    return tuple(found)


def _not_json(value: Any, path: KeyPath) -> Iterable[Problem]:
    """What in a value JSON can't hold: NaN, dates, keys that aren't text."""
    if isinstance(value, Mapping):
        for key, below in value.items():
            if isinstance(key, str):
                yield from _not_json(below, (*path, key))
            else:
                yield Problem(path, f"the key {key!r} must be text; put it in quotes")
    elif isinstance(value, list | tuple):
        for number, below in enumerate(value):
            yield from _not_json(below, (*path, number))
    elif isinstance(value, float) and not math.isfinite(value):
        yield Problem(path, f"must be a finite number, not {value}")
    elif value is not None and not isinstance(value, str | int | float | bool):
        yield Problem(path, f"must be text, a number, true, false or null, not the {type(value).__name__} {value}")


TYPE_TAGS = {"str": "text", "int": "a whole number", "float": "a number", "bool": "true or false", "none": "null"}
"""What pydantic appends to the place of an error in a union, and the word for it."""
_LITERAL = re.compile(r"literal\[(.+)\]")


def _problems(errors: Iterable[Any], whole: Mapping[str, Any]) -> Iterable[Problem]:
    unions: dict[KeyPath, list[str]] = {}
    inputs: dict[KeyPath, Any] = {}
    for error in errors:
        path: KeyPath = tuple(error["loc"])
        if error["type"] in ("extra_forbidden", "unexpected_keyword_argument"):
            yield unknown_key(path, keys_at(whole, path[:-1]))
        elif error["type"] in ("missing", "missing_argument", "missing_keyword_only_argument"):
            yield Problem(path[:-1], f"the key {path[-1]!r} is missing")
        elif error["type"] == "value_error":
            text = str(error["ctx"]["error"])  # from a __post_init__, which starts with the name of the field
            field, _, rest = text.partition(" ")
            named = field in keys_at(whole, path)
            yield Problem((*path, field), rest) if named else Problem(path, text)
        elif path and (word := _type_word(path[-1])):
            unions.setdefault(path[:-1], []).append(word)
            inputs[path[:-1]] = error["input"]
        else:
            yield Problem(path, f"{error['msg']}, not {_shown(error['input'])}")
    for path, words in unions.items():  # one problem for all the types that a value could have had
        yield Problem(path, f"must be {', '.join(words[:-1])} or {words[-1]}, not {_shown(inputs[path])}")


def _type_word(tag: str | int) -> str | None:
    """The word for what pydantic appends; ``literal['auto','none']`` are these words themselves."""
    if isinstance(tag, str) and (found := _LITERAL.fullmatch(tag)):
        return found[1].replace(",", ", ")
    return TYPE_TAGS.get(str(tag))


def _shown(value: Any) -> str:
    shown = repr(value)
    return shown if len(shown) <= 60 else shown[:57] + "…"


def unknown_key(path: KeyPath, known: Iterable[str]) -> Problem:
    """The problem of a key that nobody reads; names the nearest known key."""
    known = sorted(known)
    advice = did_you_mean(str(path[-1]), known) or f"Known: {', '.join(known)}."
    return Problem(path, f"unknown key. {advice}")


def keys_at(whole: Mapping[str, Any], path: KeyPath) -> tuple[str, ...]:
    """The keys that a JSON Schema allows at a path."""

    def resolve(node: Mapping[str, Any]) -> Mapping[str, Any]:
        while "$ref" in node:
            node = whole["$defs"][node["$ref"].rsplit("/", 1)[-1]]
        return node

    nodes = [resolve(whole)]
    for step in path:
        below: list[Mapping[str, Any]] = []
        for node in nodes:
            for option in [node, *map(resolve, node.get("anyOf", ()))]:
                if isinstance(step, int) and "items" in option:
                    below.append(resolve(option["items"]))
                elif step in option.get("properties", {}):
                    below.append(resolve(option["properties"][step]))
                elif isinstance(option.get("additionalProperties"), dict):
                    below.append(resolve(option["additionalProperties"]))
        nodes = below or nodes
    options = [option for node in nodes for option in [node, *map(resolve, node.get("anyOf", ()))]]
    return tuple(dict.fromkeys(key for option in options for key in option.get("properties", {})))
