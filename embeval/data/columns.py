"""Which column of a file plays which part, for files whose columns are called as someone liked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from embeval.data import files
from embeval.errors import ConfigError, DataError, did_you_mean

Given = Mapping[str, Sequence[str]]
"""Part -> columns, as the user says."""


@dataclass(frozen=True)
class Part:
    """A part that a column can play."""

    usual: tuple[str, ...]
    """Names by which the column is found."""
    needed: bool = False
    several: bool = False
    """Whether several columns may play it."""


def parse(words: Sequence[str], parts: Mapping[str, Part], mapping: Path | None = None) -> dict[str, tuple[str, ...]]:
    """Part -> columns from words like ``question=frage`` and from a YAML file; the words win.

    Raises ``ConfigError`` for unknown parts, and where a part that takes one column is given several.
    """
    found: dict[str, list[str]] = {}
    for word in (each for given in words for each in given.split(",")):
        part, equals, name = word.partition("=")
        if not equals or not name.strip():
            raise ConfigError(f"--columns takes part=column, such as question=frage, not {word!r}.")
        found.setdefault(part.strip(), []).append(name.strip())
    result = {part: tuple(names) for part, names in found.items()}
    if mapping is not None:
        result = {**_from_yaml(mapping), **result}
    for part, names in result.items():
        if part not in parts:
            raise ConfigError(
                f"{part!r} is no part that a column can play here. {did_you_mean(part, parts)} "
                f"Parts: {', '.join(parts)}.".replace(".  ", ". ")
            )
        if len(names) > 1 and not parts[part].several:
            raise ConfigError(f"{part!r} takes one column, not {', '.join(map(repr, names))}.")
    return result


def _from_yaml(path: Path) -> dict[str, tuple[str, ...]]:
    try:
        value = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{path}: can't be read ({error.strerror or error}).") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: not valid YAML ({str(error).splitlines()[0]}).") from None
    if not isinstance(value, dict):
        raise ConfigError(f"{path}: lines like 'question: frage' are needed.")
    found = {}
    for part, names in value.items():
        each = names if isinstance(names, list) else [names]
        if not isinstance(part, str) or not each or not all(isinstance(name, str) and name for name in each):
            raise ConfigError(f"{path}: {part!r} must name a column, or be a list of columns, not {names!r}.")
        found[part] = tuple(each)
    return found


def assign(
    parts: Mapping[str, Part], given: Given, rows: Sequence[files.Row], path: Path
) -> dict[str, tuple[str, ...]]:
    """Part -> columns that are there, for every part that has one.

    Raises ``DataError`` for a column that isn't there, for a part that is needed and has none, and where several
    columns could play one.
    """
    there = list(dict.fromkeys(name for row in rows for name in row.values))
    shown = f"Columns: {', '.join(map(repr, there))}."
    line = 1 if files.kind_or_none(path) in ("csv", "tsv") else rows[0].line
    found: dict[str, tuple[str, ...]] = {}
    for part, names in given.items():
        for name in names:
            if name not in there:
                raise DataError(
                    f"{path}, line {line}: there is no column {name!r}. {shown} {did_you_mean(name, there)}".rstrip()
                )
        found[part] = tuple(names)
    taken = {name for names in found.values() for name in names}
    for part, about in parts.items():
        if part in found:
            continue
        fitting = tuple(name for name in there if name in about.usual and name not in taken)
        if len(fitting) > 1 and not about.several:
            raise DataError(
                f"{path}, line {line}: {' and '.join(map(repr, fitting))} could each be the {part}.\n"
                f"Say which one it is: --columns {part}={fitting[0]}"
            )
        if fitting:
            found[part] = fitting
        elif about.needed and part in taken:
            other = next(name for name, columns in found.items() if part in columns)
            raise DataError(
                f"{path}, line {line}: the column {part!r} is the {other} already, and there is none for the {part}. "
                f"{shown}\nSay which one it is: --columns {part}=NAME"
            )
        elif about.needed:
            close = did_you_mean(part, there)
            raise DataError(
                f"{path}, line {line}: there is no column {part!r}. {shown} {close}".rstrip()
                + f"\nSay which one it is: --columns {part}=NAME"
            )
    return found
