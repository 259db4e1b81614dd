"""The ranks of a board as one SVG: a bar over the ranks that the data leaves open, a point at the rank itself.

It has a ground and colours of its own, for light and dark, since a README shows it as an image.
"""

from __future__ import annotations

from collections.abc import Iterator

from embeval.core import figures
from embeval.core.characters import cut, visible
from embeval.leaderboard.render.deciding import RANKED_BY, ranks_between
from embeval.leaderboard.snapshot import Model, Snapshot
from embeval.pages.looks import outline

SHOWN = 40
"""Models drawn: the first by rank."""
LONGEST = 42
"""Characters of a label."""
WIDTH, ROW, TOP, BOTTOM = 860, 26, 40, 12
NAMES, MEANS, LEFT, RIGHT = 16, 392, 412, 796
"""Where names start, means end, and the scale starts and ends; letters stand behind it."""
TICKS = 10
"""Lines of the scale, about."""
_STEPS = [digit * 10**power for power in range(9) for digit in (1, 2, 5)]
STYLE = (
    ":root{--ground:#fff;--text:#1f2328;--quiet:#59636e;--line:#d8dee4;--bar:#9ec1f5;--point:#0969da}"
    "@media(prefers-color-scheme:dark){:root{--ground:#0d1117;--text:#e6edf3;--quiet:#9198a1;--line:#2f353d;"
    "--bar:#1f4b85;--point:#58a6ff}}"
    "text{font:13px -apple-system,'Segoe UI',Roboto,'Noto Sans',Helvetica,Arial,sans-serif;fill:var(--text)}"
    ".quiet{fill:var(--quiet);font-size:12px}.number{text-anchor:end;font-variant-numeric:tabular-nums}"
    ".middle{text-anchor:middle}.line{stroke:var(--line)}.ground{fill:var(--ground)}"
    ".bar{stroke:var(--bar);stroke-width:9;stroke-linecap:round}.point{fill:var(--point)}"
    ".hollow{fill:var(--ground);stroke:var(--point);stroke-width:1.6}"
)


def svg(made: Snapshot) -> str:
    """The picture, a document of its own; without ranked models it says so."""
    drawn = shown(made)
    height = TOP + ROW * max(len(drawn), 1) + BOTTOM
    most = max([2, *(max(each.standing.rank or 1, each.standing.rank_high or 1) for each in drawn)])
    size = f'viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label="{_safe(words(made))}">',
        f"<title>{_safe(made.title)}</title>",
        f"<style>{STYLE}</style>",
        f'<rect class="ground" width="{WIDTH}" height="{height}" rx="6"/>',
        *(_scale(most, height, _mean_heading(made)) if drawn else ()),
        *(part for number, model in enumerate(drawn) for part in _row(model, TOP + ROW * (number + 0.5), most, made)),
        *([] if drawn else [_text("quiet", NAMES, TOP, "No model is ranked.")]),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def shown(made: Snapshot) -> list[Model]:
    """The models that are drawn."""
    return [model for model in made.models if model.standing.rank is not None][:SHOWN]


def words(made: Snapshot) -> str:
    """The picture for those who don't see it."""
    said = [
        f"{model.standing.rank} {model.label}" + (f" (between {between})" if (between := _open(model)) else "")
        for model in shown(made)[:5]
    ]
    more = ", …" if len(shown(made)) > len(said) else ""
    return f"Ranks by {RANKED_BY[made.rank_by]}: {', '.join(said)}{more}"


def _open(model: Model) -> str:
    return ranks_between(model).replace("–", " and ") if "–" in ranks_between(model) else ""


def _mean_heading(made: Snapshot) -> str:
    return {"mean_task": "Mean", "mean_type": "Mean of groups", "borda": "Mean"}[made.rank_by]


def _scale(most: int, height: float, heading: str) -> Iterator[str]:
    yield _text("quiet", NAMES, 26, "Model")
    yield _text("quiet number", MEANS, 26, heading)
    step = next(each for each in _STEPS if most <= each * TICKS)
    for rank in [1, *range(step if step > 1 else 2, most + 1, step)]:
        x = _x(rank, most)
        yield f'<line class="line" x1="{x:.1f}" y1="{TOP - 6}" x2="{x:.1f}" y2="{height - BOTTOM + 2:.1f}"/>'
        yield _text("quiet middle", x, 26, str(rank))
    yield _text("quiet middle", (LEFT + RIGHT) / 2, 12, "Rank")
    yield _text("quiet", RIGHT + 10, 26, "Ties")


def _row(model: Model, y: float, most: int, made: Snapshot) -> Iterator[str]:
    standing = model.standing
    assert standing.rank is not None
    mean = standing.mean_type if made.rank_by == "mean_type" else standing.mean_task
    yield _text("", NAMES, y + 4.5, cut(visible(model.label), LONGEST))
    yield _text("number", MEANS, y + 4.5, figures.figure(mean))
    x = _x(standing.rank, most)
    known = standing.rank_low is not None and standing.rank_high is not None
    if standing.rank_low is not None and standing.rank_high is not None:
        low, high = _x(standing.rank_low, most), _x(standing.rank_high, most)
        yield f'<line class="bar" x1="{low:.1f}" y1="{y:.1f}" x2="{high:.1f}" y2="{y:.1f}"/>'
    yield f'<path class="{"point" if known else "hollow"}" d="{outline("circle", x, y, 4.5)}"/>'
    if standing.letters:
        yield _text("", RIGHT + 10, y + 4.5, standing.letters)


def _x(rank: int, most: int) -> float:
    return LEFT + 12 + (rank - 1) / (most - 1) * (RIGHT - LEFT - 24)


def _text(name: str, x: float, y: float, text: str) -> str:
    kind = f' class="{name}"' if name else ""
    return f'<text{kind} x="{x:.1f}" y="{y:.1f}">{_safe(text)}</text>'


def _safe(text: str) -> str:
    from markupsafe import escape

    return str(escape(visible(" ".join(text.split()))))
