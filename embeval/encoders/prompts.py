"""Which text is put before an input."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from embeval.core.protocols import TaskRef
from embeval.core.specs import Prompting, Role

SYNONYMS: Mapping[Role, tuple[str, ...]] = {
    Role.QUERY: ("query",),
    Role.DOCUMENT: ("document", "passage", "corpus"),
    Role.TEXT: (),
}
"""Names under which models declare the prompt of a role. Source: sentence-transformers 6.2 ``encode_document``."""
SWAPPED: Mapping[Role, Role] = {Role.QUERY: Role.DOCUMENT, Role.DOCUMENT: Role.QUERY}
"""The other side of a search."""


class Prompt(NamedTuple):
    """A resolved prompt."""

    text: str
    """What is put before the input; empty for none."""
    name: str | None
    """The name it was found under; None if none was found."""


NO_PROMPT = Prompt("", None)


def resolve(
    role: Role,
    task: TaskRef | None,
    *,
    own: Mapping[str, str],
    declared: Mapping[str, str],
    default_name: str | None = None,
    prompting: Prompting = "auto",
) -> Prompt:
    """The prompt for a role in a task. ``own`` (from the spec) wins over ``declared`` (by the model).

    In each, the first of these names that exists: task name and role, task name, task type and role, task type,
    role (with the role's synonyms). Upper and lower case are alike, since mteb's types are ``STS`` and ``Retrieval``
    and models declare prompts by these. An empty text of one's own is a choice: "no prompt". For texts that are
    neither query nor document, last the model's ``default_name``. Source: mteb 2.26 ``get_prompt_name``.

    Differs on purpose from sentence-transformers 6.2, which puts an empty "document" into every model and so never
    finds a declared "passage".

    ``prompting`` ``none`` finds nothing, and ``swap`` looks for a query what is meant for a document, and the other
    way round.
    """
    if prompting == "none":
        return NO_PROMPT
    names: list[str] = []
    roles = SYNONYMS[SWAPPED.get(role, role) if prompting == "swap" else role]
    for scope in (task.name, task.type) if task is not None else ():
        names += [f"{scope}-{word}" for word in roles]
        names.append(scope)
    names += roles
    for prompts in (own, declared):
        by_folded = {name.casefold(): name for name in prompts}
        for name in names:
            if (found := by_folded.get(name.casefold())) is not None:
                return Prompt(prompts[found], found)
    if role == Role.TEXT and default_name is not None and default_name in declared:
        return Prompt(declared[default_name], default_name)
    return NO_PROMPT
