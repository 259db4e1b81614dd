"""YAML files with the line of every key, so that each complaint can name it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from embeval.core.border import KeyPath
from embeval.errors import ConfigError

MAX_NODES = 100_000
"""Values that a file may have once its aliases are followed: a small file of nested aliases can stand for billions."""
TEXT_KEYS = ("tag:yaml.org,2002:str", "tag:yaml.org,2002:merge")
OLD_BOOLEANS = ("on", "off", "yes", "no")
"""Words that YAML 1.2 no longer takes for true and false."""


def read_yaml(path: Path, *, hint: str = "'embeval init' writes one.") -> tuple[Any, dict[KeyPath, int]]:
    """(value, line of each key path). Raises ``ConfigError`` for broken YAML, double keys and endless aliases.

    ``hint`` is what to do where there is no such file.
    """
    import yaml

    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise ConfigError(f"{path}: no such file. {hint}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: can't be read ({error}).") from None
    try:
        loader = _loader()
        node = yaml.compose(text, Loader=loader)
        lines: dict[KeyPath, int] = {}
        if node is not None:
            _walk(node, (), lines, path, ())
        value = yaml.load(text, Loader=loader)  # noqa: S506  # the loader below is a SafeLoader
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f", line {mark.line + 1}" if mark is not None else ""
        raise ConfigError(f"{path}{place}: not valid YAML ({error.problem or error.context}).") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise ConfigError(f"{path}: not valid YAML ({str(error).splitlines()[0]}).") from None
    return value, lines


def _loader() -> Any:
    """A SafeLoader that leaves dates, and keys such as ``on``, as the text that they are in the file."""
    import yaml

    class Loader(yaml.SafeLoader):
        def compose_mapping_node(self, anchor: Any) -> Any:
            node = super().compose_mapping_node(anchor)
            for key, _ in node.value:
                if key.tag == "tag:yaml.org,2002:bool" and key.value.lower() in OLD_BOOLEANS:
                    key.tag = TEXT_KEYS[0]
            return node

    Loader.yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    return Loader


def _walk(node: Any, where: KeyPath, lines: dict[KeyPath, int], path: Path, inside: tuple[int, ...]) -> None:
    import yaml

    if id(node) in inside:
        raise ConfigError(f"{path}, line {node.start_mark.line + 1}: this value contains itself through an alias.")
    if len(lines) > MAX_NODES:
        raise ConfigError(f"{path}: more than {MAX_NODES} values once aliases are followed.")
    lines[where] = node.start_mark.line + 1
    if isinstance(node, yaml.MappingNode):
        for key, below in node.value:
            line = key.start_mark.line + 1
            if not isinstance(key, yaml.ScalarNode) or key.tag not in TEXT_KEYS:
                shown = key.value if isinstance(key, yaml.ScalarNode) else "…"
                raise ConfigError(f"{path}, line {line}: unknown key {shown!r}. A key must be text.")
            here = (*where, key.value)
            if here in lines:
                raise ConfigError(f"{path}, line {line}: the key {key.value!r} stands here twice.")
            _walk(below, here, lines, path, (*inside, id(node)))
            lines[here] = line
    elif isinstance(node, yaml.SequenceNode):
        for number, below in enumerate(node.value):
            _walk(below, (*where, number), lines, path, (*inside, id(node)))


def line_of(lines: Mapping[KeyPath, int], where: KeyPath) -> int:
    """The line of a key path, or of the nearest one above it that has a line."""
    while where and where not in lines:
        where = where[:-1]
    return lines.get(where, 1)
