"""``embeval schema``: JSON Schemas, made from the classes that read and write the files."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from embeval.cli import _state
from embeval.cli._state import DebugOption, JsonOption, QuietOption

app = typer.Typer(add_completion=False)


class What(StrEnum):
    """What to describe."""

    RESULT = "result"
    CONFIG = "config"
    BOARD = "board"


@app.command()
def schema(
    what: Annotated[What, typer.Argument(help="result, config (embeval.yaml) or board (board.yaml).")],
    json: JsonOption = False,
    quiet: QuietOption = False,
    debug: DebugOption = False,
) -> None:
    """Prints the JSON Schema of a result, of embeval.yaml or of board.yaml.

    Editors that know YAML complete and check these files with it: embeval schema config > embeval.schema.json
    """
    from embeval.core import border
    from embeval.core.result import Result
    from embeval.leaderboard.definition import BoardFile
    from embeval.workflows.config import config_schema

    if what is What.CONFIG:
        _state.out_json(config_schema())
        return
    described = border.schema(Result if what is What.RESULT else BoardFile)
    _state.out_json({"$schema": "https://json-schema.org/draft/2020-12/schema", **described})
