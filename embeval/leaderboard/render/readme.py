"""A built board as a README that GitHub shows: ranks, what can't be told apart, costs, and every task."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from urllib.parse import quote

from embeval.core import figures
from embeval.core.markdown import escape, table
from embeval.core.words import are, plural
from embeval.leaderboard.answer import answer
from embeval.leaderboard.board import DOWN, LESS, TRAINED
from embeval.leaderboard.definition import OUTPUTS
from embeval.leaderboard.render import deciding, picture
from embeval.leaderboard.render.deciding import Deciding
from embeval.leaderboard.snapshot import Cell, Column, Model, Snapshot

SHOWN = 50
"""Models shown. GitHub cuts a long page, and nobody reads one."""
SIDE_BY_SIDE = 8
"""So many models have columns of their own beside the tasks; more are rows."""
UNBROKEN = "\N{NO-BREAK SPACE}"
NAMED = 12
"""Groups of models, and models of a group, that are named."""
FAILURES = 20
"""Failed runs that are named."""
Lines = Iterator[str]


def readme(made: Snapshot) -> str:
    """Markdown; names and texts from data are escaped throughout."""
    parts = (_top, _ranks, _apart, _costs, _beside, _gate, _tasks, _models, _remarks, _how)
    return "\n".join(line for part in parts for line in part(made)).strip() + "\n"


def _top(made: Snapshot) -> Lines:
    yield f"# {escape(made.title) or 'Leaderboard'}"
    yield ""
    if made.description.strip():
        for paragraph in re.split(r"\n\s*\n", made.description.strip()):
            yield escape(paragraph)
            yield ""
    ranked = sum(model.standing.rank is not None for model in made.models)
    groups = list(dict.fromkeys(column.group for column in made.columns))
    of_groups = f" of {plural(len(groups), 'group')} ({', '.join(map(escape, groups))})" if len(groups) > 1 else ""
    by = f", ranked by {deciding.RANKED_BY[made.rank_by]}" if ranked else ""
    newest = f" The newest result is of {escape(made.date[:10])}." if made.date else ""
    models, tasks = plural(len(made.models), "model"), plural(len(made.columns), "task")
    if said := answer(made, _strong, escape):
        yield said
        yield ""
    yield f"{models} on {tasks}{of_groups}{by}.{newest}"
    links = [
        ("html", "The page to sort, filter and compare in"),
        ("csv", "CSV"),
        ("parquet", "Parquet"),
        ("json", "JSON"),
    ]
    there = [f"[{words}]({OUTPUTS[kind]})" for kind, words in links if kind in made.outputs]
    if there:
        yield ""
        yield " · ".join(there)
    if "svg" in made.outputs and ranked > 1:
        yield ""
        # A bracket of a label would end the words of the picture.
        said = picture.words(made).translate(str.maketrans("[]", "()"))
        yield f"![{escape(said)}]({OUTPUTS['svg']})"


def _strong(label: str) -> str:
    return f"**{escape(label.strip())}**"


def _ranks(made: Snapshot) -> Lines:
    if not made.models:
        yield from ("", "There are no results to show.")
        return
    yield from ("", "## Ranks", "")
    groups = list(dict.fromkeys(column.group for column in made.columns if column.refused is None))
    columns = [
        Deciding("Mean", lambda model: figures.figure(model.standing.mean_task)),
        *([Deciding("Mean of groups", lambda model: figures.figure(model.standing.mean_type))] * (len(groups) > 1)),
        *(Deciding(escape(name), _group(name)) for name in groups if len(groups) > 1),
        *deciding.known(
            [
                Deciding(f"Recall@{made.rag_k}", lambda model: _or_nothing(model.measures.recall)),
                Deciding("Borda", lambda model: str(model.standing.borda or "")),
                Deciding("Gaps", lambda model: str(model.standing.gaps or "")),
                Deciding("Gate", deciding.outcome, is_number=False),
            ],
            made.models,
        ),
    ]
    level = figures.percent(made.level)
    before = [
        Deciding("Rank", deciding.rank),
        *deciding.known(
            [
                Deciding(f"{level} interval", deciding.ranks_between),
                Deciding("Ties", lambda model: model.standing.letters or "", is_number=False),
            ],
            made.models,
        ),
    ]
    yield from _table(made, columns, before)
    if any(model.standing.rank is not None and model.standing.gaps for model in made.models):
        how = deciding.GAPS_COUNT[made.rank_by]
        yield from ("", f"\\* ranked with gaps, {how}; means are of complete models only.")
    if (n := len(made.models) - SHOWN) > 0:
        elsewhere = [OUTPUTS[kind] for kind in ("html", "csv") if kind in made.outputs]
        where = f", in {' and '.join(f'[{name}]({name})' for name in elsewhere)}" if elsewhere else ""
        yield from ("", f"And {plural(n, 'more model')}{where}.")


def _group(name: str) -> Callable[[Model], str]:
    return lambda model: figures.figure(model.standing.groups.get(name))


def _or_nothing(value: float | None) -> str:
    return "" if value is None else figures.figure(value)


def _apart(made: Snapshot) -> Lines:
    tested = [model for model in made.models if model.standing.letters]
    untested = [model for model in made.models if not model.standing.letters]
    if tested:
        yield from ("", "### What can't be told apart", "")
        n_pairs = len(tested) * (len(tested) - 1) // 2
        groups = list(letters_of(tested).items())
        how = (
            f"tests of {plural(n_pairs, 'pair')} over the items of all tasks, corrected by Holm, at "
            f"{figures.percent(made.level)}"
        )
        if len(groups) == len(tested):
            yield f"None of the {len(tested)} models tested: the data tells each from every other, by {how}."
            groups = []
        else:
            yield (
                f"Models that share a letter can't be told apart: {how}. That is not the same as equal. The interval "
                "holds every rank that the tests leave open."
            )
            yield ""
        for letter, members in groups[:NAMED]:
            yield f"- **{letter}**: {_together(members)}"
        if (n := len(groups) - NAMED) > 0:
            yield f"- and {plural(n, 'more group')}"
    if untested and len(made.models) > 1:
        reasons: dict[str, list[str]] = defaultdict(list)
        for model in untested:
            reasons[model.standing.untested or "not tested"].append(model.label)
        yield ""
        said = [f"{_listed(labels)} ({escape(why)})" for why, labels in reasons.items()]
        yield f"No interval: {'; '.join(said)}."


def letters_of(models: Sequence[Model]) -> dict[str, list[Model]]:
    """Letter -> the models that have it, in their order, by the first place of a letter."""
    found: dict[str, list[Model]] = defaultdict(list)
    for model in models:
        for letter in re.findall(r"[a-z]\d*", model.standing.letters or ""):
            found[letter].append(model)
    return dict(found)


def _together(members: Sequence[Model]) -> str:
    if len(members) > 1:
        return _listed([model.label for model in members])
    alone = len(re.findall(r"[a-z]", members[0].standing.letters or "")) == 1
    return f"{escape(members[0].label)}{', told apart from every other model' if alone else ''}"


def _listed(labels: Sequence[str]) -> str:
    names = [escape(label) for label in labels[:NAMED]]
    if (n := len(labels) - NAMED) > 0:
        return f"{', '.join(names)} and {n} more"
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _costs(made: Snapshot) -> Lines:
    columns = deciding.costs(made)
    if not columns:
        return
    yield from ("", "## What they take", "")
    yield from _table(made, columns)
    machines = list(
        dict.fromkeys(
            model.measures.machine
            for model in made.models
            if model.measures.machine is not None and not model.measures.elsewhere
        )
    )
    if machines:
        yield from ("", f"Times and speeds are of {'; '.join(map(escape, machines))}.")
    if any(model.measures.elsewhere for model in made.models):
        told = [
            f"{escape(model.label)} of {escape(model.measures.machine or 'another machine')}"
            for model in made.models
            if model.measures.elsewhere
        ]
        yield from (
            "",
            f"{deciding.ELSEWHERE} of another machine, and not to be held against the others: " + "; ".join(told),
        )


def _beside(made: Snapshot) -> Lines:
    columns = deciding.beside(made)
    if made.reference is None or not columns:
        return
    yield from ("", f"## Beside {escape(made.models[made.reference].label)}", "")
    yield from _table(made, columns, without=made.reference)


def _gate(made: Snapshot) -> Lines:
    decided = [model for model in made.models if model.gate is not None]
    if not decided:
        return
    beside = "" if made.production is None else f" {escape(made.production)}"
    yield from ("", f"## May it replace{beside or ' the model in use'}?", "")
    for model in decided[:SHOWN]:
        assert model.gate is not None
        yield f"- {escape(model.label)}: **{deciding.outcome(model)}**. {escape(model.gate.sentence)}"


def _tasks(made: Snapshot) -> Lines:
    if not made.columns or not made.models:
        return
    yield from ("", "## Tasks", "")
    if len(made.models) <= SIDE_BY_SIDE:
        yield from _tasks_down(made)
    else:
        yield from _models_down(made)
    notes = []
    cells = [cell for model in made.models[:SHOWN] for cell in model.cells if cell is not None]
    if any(cell.low is not None for cell in cells):
        notes.append("Below a value: its confidence interval, of this task alone.")
    if any(cell.rough for cell in cells):
        notes.append("≈ of fewer than 50 items: approximate.")
    if any(not column.higher_is_better for column in made.columns):
        notes.append(LESS)
    if any(cell is None for model in made.models[:SHOWN] for cell in model.cells):
        notes.append("— no result.")
    if notes:
        yield from ("", " ".join(notes))
    refused = [f"{escape(column.heading)}: {escape(column.refused)}" for column in made.columns if column.refused]
    if refused:
        yield from ("", "Not counted in ranks:", "", *(f"- {each}" for each in refused))


def _tasks_down(made: Snapshot) -> Lines:
    """Tasks as rows, by group."""
    several = len({column.group for column in made.columns}) > 1
    labels = [escape(model.label) for model in made.models]
    headings = [*(["Group"] * several), "Task", "Metric", "Items", *labels]
    rows, last = [], None
    for place, column in _by_group(made.columns):
        group = f"**{escape(column.group)}**" if column.group != last else ""
        last = column.group
        n = "" if column.n_items is None else f"{column.n_items:,}"
        cells = [_cell(model.cells[place]) for model in made.models]
        rows.append([*([group] * several), escape(column.heading), _metric(column), n, *cells])
    yield from table(headings, rows, right=("Items", *labels))


def _models_down(made: Snapshot) -> Lines:
    """Models as rows, a table for each group."""
    groups: dict[str, list[tuple[int, Column]]] = defaultdict(list)
    for place, column in _by_group(made.columns):
        groups[column.group].append((place, column))
    for number, (name, there) in enumerate(groups.items()):
        if number:
            yield ""
        yield from (f"### {escape(name)}", "")
        headings = [f"{escape(column.heading)}<br><sub>{_metric(column)}</sub>" for _, column in there]
        rows = [
            [escape(model.label), *(_cell(model.cells[place]) for place, _ in there)] for model in made.models[:SHOWN]
        ]
        yield from table(["Model", *headings], rows, right=headings)


def _by_group(columns: Sequence[Column]) -> list[tuple[int, Column]]:
    order = list(dict.fromkeys(column.group for column in columns))
    return sorted(enumerate(columns), key=lambda each: order.index(each[1].group))


def _metric(column: Column) -> str:
    split = "" if column.split == "test" else f" ({column.split})"
    return escape(f"{column.metric}{'' if column.higher_is_better else f' {DOWN}'}{split}")


def _cell(cell: Cell | None) -> str:
    if cell is None:
        return "—"
    if cell.value is None:
        return f"n/a<br><sub>{escape(cell.reason or 'undefined')}</sub>"
    mark = TRAINED if cell.trained_on == "declared" else ""
    if cell.low is None or cell.high is None:
        return f"{figures.figure(cell.value)}{mark}"
    rough = "≈" if cell.rough else ""
    interval = figures.interval(cell.low, cell.high).replace(" ", UNBROKEN)
    return f"{figures.figure(cell.value)}{mark}<br><sub>{rough}{interval}</sub>"


def _models(made: Snapshot) -> Lines:
    if not made.models:
        return
    yield from ("", "## Models", "")
    yield from _table(made, deciding.identity(made), links=True)
    if any(model.items for model in made.models) and made.reference is not None and "html" in made.outputs:
        reference = escape(made.models[made.reference].label)
        yield from ("", f"Items lost and gained against {reference}: in [the page]({OUTPUTS['html']}), by model.")


def _table(
    made: Snapshot,
    columns: Sequence[Deciding],
    before: Sequence[Deciding] = (),
    *,
    links: bool = False,
    without: int | None = None,
) -> Lines:
    headings = [*(each.heading for each in before), "Model", *(each.heading for each in columns)]
    right = [each.heading for each in (*before, *columns) if each.is_number]
    rows = [
        [
            *(escape(each.text(model)) for each in before),
            _name(made, place, links=links),
            *(escape(each.text(model)) for each in columns),
        ]
        for place, model in enumerate(made.models[:SHOWN])
        if place != without
    ]
    yield from table(headings, rows, right=right)


def _name(made: Snapshot, place: int, *, links: bool) -> str:
    model = made.models[place]
    name = escape(model.label)
    if links and model.report is not None:
        name = f"{name} ([report]({quote(model.report)}))"
    return "".join([name, *(f", *{role}*" for role in deciding.roles(made, place))])


def _remarks(made: Snapshot) -> Lines:
    if made.remarks:
        yield from ("", "## Remarks", "", *(f"- {escape(each)}" for each in made.remarks))
    if made.failures:
        n = len(made.failures)
        yield from ("", f"{plural(n, 'run')} {are(n)} missing because of a failure:", "")
        yield from (f"- {escape(each)}" for each in made.failures[:FAILURES])
        if (more := n - FAILURES) > 0:
            yield f"- … and {more} more."


def _how(_made: Snapshot) -> Lines:
    yield from (
        "",
        "## How it was made",
        "",
        "By embeval from stored results, as [board.yaml](board.yaml) says. In this folder:",
        "",
        "```console",
        "$ embeval leaderboard build .           # makes these files again",
        "$ embeval leaderboard build . --check   # fails where they are not what comes out",
        "```",
    )
