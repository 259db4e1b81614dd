"""A built board as one self-contained page: a table to sort, filter and choose in, charts, models in detail.

Everything is in the page: no request leaves it. Scripts run by the hash of their text only, so nothing that stands in
a name, a text or a note can run. The two libraries lie in the page as plain text: the table's is imported as a module
at once, that of the charts is started when the table stands.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Sequence
from dataclasses import fields, replace
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

from embeval.core import border, packages, strict_json
from embeval.core.strict_json import Json
from embeval.leaderboard.answer import answer
from embeval.leaderboard.render.deciding import RANKED_BY
from embeval.leaderboard.snapshot import Cell, Snapshot
from embeval.pages import page

PAGE = Path(__file__).parent / "page"
STYLES = ("board.css", "charts.css")
"""Our style sheets, in their order, after those of every page."""
SCRIPTS = (
    "data.js",
    "state.js",
    "elements.js",
    "figures.js",
    "address.js",
    "libraries.js",
    "ranks.js",
    "columns.js",
    "filters.js",
    "choosing.js",
    "picking.js",
    "table.js",
    "theme.js",
    "labels.js",
    "quality.js",
    "charts.js",
    "pareto.js",
    "intervals.js",
    "heatmap.js",
    "profile.js",
    "history.js",
    "detail.js",
    "comparison.js",
    "main.js",
)
"""Our scripts, in their order: together they are one script."""
FIELDS = tuple(each.name for each in fields(Cell) if each.name != "value")
DETAILS = ("cells", "pairs")
"""What the scripts read only when somebody asks for it."""


def html(made: Snapshot) -> str:
    """The page. Raises ``MissingPackageError`` where a package of the charts or of the table is not installed."""
    from markupsafe import Markup

    charts = library("plotly", "package_data/plotly.min.js")
    own = _texts(SCRIPTS)
    data = packed(made)
    details = {name: data.pop(name) for name in DETAILS}
    texts = {
        "STYLE": _texts(STYLES),
        "DATA": inert(data),
        "DETAILS": inert(details),
        "TABLE": library("itables", "html/dt_bundle.js"),
        "CHARTS": charts,
        "OWN": own,
    }
    shell = page.render(
        "embeval.leaderboard.render",
        "board.html",
        made=made,
        groups=list(dict.fromkeys(column.group for column in made.columns if column.refused is None)),
        answer=Markup(answer(made, _strong, page.data)),  # noqa: S704  # escaped piece by piece
        ranked_by=RANKED_BY[made.rank_by],
        hashes=f"{_hash(own)} {_hash(charts)}",
    )
    # Put in last and as they are: a template would change characters of scripts, and with them their hash.
    # No text from data can hold a mark, since it can't hold a bare <.
    parts = re.split("<@([A-Z]+)@>", shell)
    return "".join(texts[part] if number % 2 else part for number, part in enumerate(parts))


def _strong(label: str) -> str:
    return f"<b>{page.data(label)}</b>"


def packed(made: Snapshot) -> dict[str, Json]:
    """What the page's scripts read: the board, its cells by column instead of by model.

    ``values`` holds a list for each column, in the order of the models, null for a gap. Of its cells every other field
    is such a list, or one value where all are the same; ``there`` says which models have a cell, null: all. So a
    thousand models on sixty tasks take a tenth of the room.
    """
    without = replace(made, models=tuple(replace(model, cells=()) for model in made.models))
    shape = border.dump(without)
    assert isinstance(shape, dict)
    columns = [[model.cells[place] for model in made.models] for place in range(len(made.columns))]
    return {
        **shape,
        "values": [[None if cell is None else cell.value for cell in cells] for cells in columns],
        "cells": [_column_of(cells) for cells in columns],
    }


def _column_of(cells: Sequence[Cell | None]) -> dict[str, Json]:
    there: list[Json] = [int(cell is not None) for cell in cells]
    made: dict[str, Json] = {"there": None if all(there) else there}
    for name in FIELDS:
        values = [None if cell is None else getattr(cell, name) for cell in cells]
        known = [value for value, has in zip(values, there, strict=True) if has]
        same = bool(known) and all(value == known[0] and type(value) is type(known[0]) for value in known)
        made[name] = known[0] if same else values
    return made


def inert(value: Json) -> str:
    """JSON for an element of type application/json: nothing in it ends the element."""
    return (
        strict_json.canonical(value).replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
    )


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


@lru_cache
def _texts(names: tuple[str, ...]) -> str:
    return "\n".join((PAGE / name).read_text(encoding="utf-8") for name in names)


@lru_cache
def library(package: str, file: str) -> str:
    """The text of a file of a package, which isn't imported for it; no end of a script stands in it."""
    found = find_spec(package)
    if found is None or not found.submodule_search_locations:
        packages.require(package, extra="", purpose="The page of a board")
    assert found is not None
    text = (Path(next(iter(found.submodule_search_locations or ()))) / file).read_text(encoding="utf-8")
    return text.replace("</script", "<\\/script")
