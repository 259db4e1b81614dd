"""Templates filled in: escaped throughout, in a page that fetches nothing."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from embeval.core import figures
from embeval.core.characters import cut, visible
from embeval.core.words import plural
from embeval.pages.looks import look, outline

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup


def render(package: str, template: str, **values: Any) -> str:
    """The page of ``template`` in the folder ``templates`` of ``package``; it may extend those of this package.

    Every value is escaped, and control characters in it become U+FFFD. Raises ``UndefinedError`` for a name without a
    value.
    """
    return _environment(package).get_template(template).render(**values)


@lru_cache
def _environment(package: str) -> Environment:
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

    made = Environment(
        loader=ChoiceLoader([PackageLoader(package), PackageLoader("embeval.pages")]),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_finished,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(
        figure=figures.figure,
        signed=figures.signed,
        interval=lambda each: figures.interval(each[0], each[1]),
        probability=figures.probability,
        percent=figures.percent,
        rank=figures.rank,
        plural=plural,
        cut=cut,
        data=data,
        tone=lambda name: look(str(name)).tone,
    )
    made.globals.update(mark=mark)
    return made


def _finished(value: Any) -> Any:
    from markupsafe import Markup

    if isinstance(value, Markup):
        return Markup(visible(value))  # noqa: S704  # it was markup before
    return "—" if value is None else visible(str(value))


def data(text: object) -> Markup:
    """A text from data: escaped, and its direction kept from moving what stands beside it."""
    from markupsafe import Markup

    return Markup("<bdi>{}</bdi>").format(visible(str(text)))


def mark(name: str) -> Markup:
    """The shape of an outcome or finding, for beside its word."""
    from markupsafe import Markup

    shape, tone = look(str(name))
    hollow = " hollow" if shape == "ring" else ""
    return Markup(  # noqa: S704  # of our own words only
        f'<svg class="mark {tone}" aria-hidden="true" viewBox="0 0 16 16">'
        f'<path class="point{hollow}" d="{outline(shape, 8, 8, 5.5)}"/></svg>'
    )
