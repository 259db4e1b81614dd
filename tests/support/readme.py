"""The parts of the README that are made from the code.

``python -m tests.support.readme`` writes them; a test fails where they are stale.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import typer

README = Path(__file__).parents[2] / "README.md"


def commands() -> dict[str, Any]:
    """``embeval run`` and so on -> its click command, sub-commands included, groups left out."""
    from embeval.cli.main import VERBS

    found: dict[str, Any] = {}
    for verb in VERBS:
        command = typer.main.get_command(import_module(f"embeval.cli.{verb}").app)
        below = getattr(command, "commands", None)
        if below:
            found.update({f"embeval {verb} {name}": each for name, each in below.items()})
        else:
            found[f"embeval {verb}"] = command
    return found


def first_line(command: Any) -> str:
    """What a command does, in one line."""
    return str(command.help).strip().splitlines()[0]


def command_table() -> str:
    """Markdown: every command with what it does and its options."""
    lines = ["| command | does | options |", "|---|---|---|"]
    for name, command in commands().items():
        shown = [
            max(parameter.opts, key=len) if parameter.opts[0].startswith("-") else f"`{parameter.name.upper()}`"
            for parameter in command.params
            if parameter.name not in ("json", "quiet", "debug", "help")
        ]
        options = " ".join(each if each.startswith("`") else f"`{each}`" for each in shown)
        lines.append(f"| `{name}` | {first_line(command)} | {options} |")
    return "\n".join(lines)


def model_table() -> str:
    """Markdown: every setting of a model, then those of single backends."""
    from embeval.core import border
    from embeval.core.specs import ModelSpec
    from embeval.encoders.loading import BACKENDS

    lines = ["| setting | default | what it does |", "|---|---|---|"]
    for field in border.describe(ModelSpec):
        if field.name == "args":
            continue
        default = "" if field.default is None else f"`{field.default}`"
        choices = f" One of {', '.join(f'`{each}`' for each in field.choices)}." if field.choices else ""
        lines.append(f"| `{field.name}` | {default} | {field.text}{choices} |")
    for name in BACKENDS.names():
        lines += [
            f"| `{option}` | | Of the backend `{name}`; in YAML under `args`. |"
            for option in BACKENDS.get(name).options
        ]
    return "\n".join(lines)


def task_table() -> str:
    """Markdown: every task type with its options."""
    from embeval.core import border
    from embeval.tasks import TASK_TYPES

    lines = ["| type | option | default | what it does |", "|---|---|---|---|"]
    for name in TASK_TYPES.names():
        for option in border.describe(TASK_TYPES.get(name).options):
            default = "" if option.default is None else f"`{option.default}`"
            choices = f" One of {', '.join(f'`{each}`' for each in option.choices)}." if option.choices else ""
            lines.append(f"| `{name}` | `{option.name}` | {default} | {option.text}{choices} |")
    return "\n".join(lines)


def index_table() -> str:
    """Markdown: every kind of index with its options, then what a reranker can be told."""
    from embeval.core import border
    from embeval.retrieval.kinds import INDEXES, ApproximateType
    from embeval.tasks._retrieval_options import RerankOptions

    lines = ["| index | what it is | option | default | what it does |", "|---|---|---|---|---|"]
    for name in INDEXES.names():
        kind = INDEXES.get(name)
        lines.append(f"| `{name}` | {kind.summary} | | | |")
        for option in border.describe(kind.options) if isinstance(kind, ApproximateType) else ():
            default = "" if option.default is None else f"`{option.default}`"
            lines.append(f"| | | `{option.name}` | {default} | {option.text} |")
    lines += ["", "| of `rerank` | default | what it does |", "|---|---|---|"]
    for option in border.describe(RerankOptions):
        default = "" if option.default is None else f"`{option.default}`"
        choices = f" One of {', '.join(f'`{each}`' for each in option.choices)}." if option.choices else ""
        lines.append(f"| `{option.name}` | {default} | {option.text}{choices} |")
    return "\n".join(lines)


def exit_code_table() -> str:
    """Markdown: every exit code that a command can end with today."""
    return "\n".join(
        [
            "| code | meaning |",
            "|---|---|",
            "| 0 | everything that was asked for is done |",
            (
                "| 1 | the gate blocks, a bound that you set is passed (`data overlap --fail-over`), or a committed "
                "board is stale (`leaderboard build --check`) |"
            ),
            "| 2 | the command, an option or the configuration is wrong |",
            "| 3 | it could not be evaluated: data, model, store or evidence; or a task of the run failed |",
            "| 4 | the gate can't tell: too little evidence; blocks, unless the policy says otherwise |",
            "| 70 | a fault in embeval |",
            "| 130 | interrupted; finished results are stored |",
        ]
    )


def policy_table() -> str:
    """Markdown: every key of a policy, then those of its rules."""
    from embeval.core import border
    from embeval.core.verdict import Waiver
    from embeval.gates.policy import Policy, Resampling, Rule

    lines = ["| of | key | default | what it does |", "|---|---|---|---|"]
    for name, cls in (("`gate`", Policy), ("`statistics`", Resampling), ("a rule", Rule), ("a waiver", Waiver)):
        for field in border.describe(cls):
            default = "" if field.default is None or field.default == [] else f"`{field.default}`"
            default = "" if isinstance(field.default, dict) else default
            lines.append(f"| {name} | `{field.name}` | {default} | {field.text} |")
    return "\n".join(lines)


def board_table() -> str:
    """Markdown: every key of a board, then those of its tasks."""
    from embeval.core import border
    from embeval.leaderboard.definition import BoardFile, ShownTask

    lines = ["| of | key | default | what it does |", "|---|---|---|---|"]
    for name, cls in (("`board.yaml`", BoardFile), ("a task", ShownTask)):
        for field in border.describe(cls):
            default = "" if field.default in (None, [], "") else f"`{_shown(field.default)}`"
            lines.append(f"| {name} | `{field.name}` | {default} | {field.text} |")
    return "\n".join(lines)


def _shown(default: Any) -> str:
    return ", ".join(map(str, default)) if isinstance(default, list) else str(default)


PARTS = {
    "commands": command_table,
    "models": model_table,
    "tasks": task_table,
    "indexes": index_table,
    "policy": policy_table,
    "board": board_table,
    "exit codes": exit_code_table,
}


def filled(text: str) -> str:
    """The README with its generated parts made anew."""
    for name, make in PARTS.items():
        begin, end = f"<!-- generated: {name} -->\n", "<!-- end -->"
        before, found, after = text.partition(begin)
        if not found or end not in after:
            raise ValueError(f"the README has no part named {name!r}")
        text = f"{before}{begin}{make()}\n{end}{after.split(end, 1)[1]}"
    return text


if __name__ == "__main__":
    README.write_text(filled(README.read_text(encoding="utf-8")), encoding="utf-8")
