"""The report of the study of intervals: tables from its figures, and what follows from them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

Parts = Mapping[str, Mapping[str, list[float]]]
""""topic / population / n" -> method -> figures."""

WANTED = (94.0, 96.0)
"""Per cent that a nominal 95 % interval shall cover."""
USED = {
    "nDCG": "bca",
    "Spearman": "bca",
    "accuracy": "wilson",
    "F1": "wilson of tp / (tp + fp + fn)",
    "difference": "studentised",
}
"""The method of each kind of number."""

ORDER = ("percentile", "t", "fisher z", "bca", "studentised", "wilson", "score", "wilson of tp / (tp + fp + fn)")
"""Of columns."""

HEAD = """# How far intervals and gates can be trusted

Made by `python -m benchmarks.study_intervals`; figures and machine in `intervals.json`. Every line comes from
{repetitions:,} repetitions: a population whose truth is known is drawn from, and the product's own bounds are asked
whether they hold the truth. The standard error of a coverage of 95 % is then 0.2, and that of a false-pass rate of
5 % too. Within a repetition there are 1,000 resamples (500 for correlations of 1,000 pairs and for power) where an
evaluation draws 10,000; that costs 0.1 to 0.2 points of coverage. Accuracy is summed exactly.

"""

FINDINGS = """## What follows

- **Single scores.** BCa, and Wilson's for a share of right answers, cover 94 to 96 % for nDCG, Spearman and accuracy
  from 50 items on. Percentiles, which were used before, don't: an easy set of 50 queries is covered in 92 %, and an
  accuracy of 50 items in 81 % at worst. At 20 items BCa covers 92 to 97 %, so a result of fewer than 50 items is marked
  approximate (`APPROXIMATE_BELOW`). An interval of whole numbers can't cover the same share at every true accuracy:
  93 to 98 % at 50 items, 94 to 97 % at 200.
- **F1.** Wilson's interval of tp / (tp + fp + fn), carried over to F1 (`embeval.stats.intervals.f1`), covers 95 to 96 %
  at every size; BCa covers 91 to 98 % at 50 items, as few of them count. No metric is an F1 of items yet.
- **Differences.** The score interval of two accuracies holds from 50 items on unless next to none changed (88 % where
  two are expected to). The studentised interval of two means holds where many queries changed: from 200 on at 30 %
  changed, from 1,000 on at 10 %. With fewer it is too narrow (80 % at 50 queries of which 10 % changed), and a
  comparison says so where fewer than 25 items differ. Where all queries jitter and one in a hundred is lost altogether,
  it covers 73 % at 50 and 69 % at 200, and nothing in the items can tell that: such losses are too rare to be among
  them.
- **Gates** don't hang on these intervals. The bound that decides supposes one more item, which is lost altogether.
  With it a candidate at the margin passes in at most 5 % of the cases in every population and size here; without it,
  in up to 54 % at 50 queries. `unseen: as_seen` stands between: at 200 queries and more it passes in 5 % at most but
  for jitter with rare losses, at 50 it is as wrong as the table says. Correlations: 5.1 to 5.4 %, which is 5 within
  the error of the simulation. Means of values without known limits, such as milliseconds, have no such item.
- **The price** is power at small sizes: an equal candidate passes a margin of 0.02 in 5 % of the cases at 50 queries
  and in 99 % at 1,000, where one query in ten changed. In the other cases the gate says inconclusive. To pass in four
  of five cases an equal candidate takes about 500 queries where one in ten changed, and more than 1,000 where three
  in ten did.

"""

COVERAGE = """## Coverage of nominal 95 % intervals

In per cent; the method in use is in bold (of nDCG, Wilson's instead of BCa where all values are 0 or 1). In brackets
how often the truth lay below and above the interval: 2.5 and 2.5 would be ideal.

"""

DIFFERENCES = """## The interval of a difference

Two systems on the same items, one of them truly worse by half the margin below.

"""

PASSES = """## Gates that pass wrongly

`no_regression` for a candidate that loses exactly the margin: per cent that pass. `decides` is the bound that a gate
uses; `as_seen` is what the policy `unseen: as_seen` makes of it, which supposes that no item changes by more than the
largest change seen; the others are what it would be without the item that stands for what was not seen
(`embeval.stats.intervals.with_unseen`). For correlations, which have no such item, it is BCa.

"""

POWER = """## Gates that pass rightly

`no_regression` with margin 0.02: per cent that pass, by the true difference of the candidate. First by the bound that
decides, in brackets by BCa alone, which passes wrongly as often as the table above says. At -0.02 it would be 5 or
less.

"""


def text(parts: Parts, repetitions: int) -> str:
    """The whole report in Markdown."""
    chapters = [HEAD.format(repetitions=repetitions), FINDINGS, COVERAGE]
    chapters += [_coverage(parts, topic) for topic in ("nDCG", "Spearman", "accuracy", "F1")]
    chapters += [DIFFERENCES, _coverage(parts, "difference")]
    chapters += [PASSES, _passes(parts), POWER, _power(parts)]
    return "".join(chapters)


def outside(parts: Parts, topic: str) -> list[str]:
    """Where the method in use covers less than 94 or more than 96 %."""
    return [
        f"{population}, n = {n}: {covered:.1f}"
        for population, n, figures in _of(parts, topic)
        if not WANTED[0] <= (covered := _covered(topic, figures[_used(topic, figures)])) <= WANTED[1]
    ]


def _of(parts: Parts, topic: str) -> Iterator[tuple[str, int, Mapping[str, list[float]]]]:
    places: dict[str, int] = {}
    found = []
    for name, figures in parts.items():
        about, population, n = name.split(" / ")
        if about == topic:
            found.append((places.setdefault(population, len(places)), population, int(n), figures))
    for _, population, items, figures in sorted(found, key=lambda each: each[0] * 10**6 + each[2]):
        yield population, items, figures


def _used(topic: str, figures: Mapping[str, list[float]]) -> str:
    return "score" if "score" in figures else USED[topic]


def _covered(topic: str, figures: list[float]) -> float:
    return figures[0] if topic == "accuracy" else figures[2]


def _cell(topic: str, figures: list[float]) -> str:
    if topic == "accuracy":
        return f"{figures[0]:.1f}, from {figures[1]:.1f} to {figures[2]:.1f}"
    return f"{figures[2]:.1f} ({figures[0]:.1f}, {figures[1]:.1f})"


def _coverage(parts: Parts, topic: str) -> str:
    rows = list(_of(parts, topic))
    methods = sorted({method for _, _, figures in rows for method in figures}, key=ORDER.index)
    body = []
    for population, n, figures in rows:
        cells = {method: _cell(topic, each) for method, each in figures.items()}
        cells[_used(topic, figures)] = f"**{cells[_used(topic, figures)]}**"
        body.append([population, str(n), *(cells.get(method, "") for method in methods)])
    note = "" if topic != "accuracy" else "Mean over true accuracies, from the lowest to the highest.\n\n"
    misses = outside(parts, topic)
    what = "Means" if topic == "accuracy" else "All"
    verdict = f"Outside 94 to 96 %: {'; '.join(misses)}." if misses else f"{what} within 94 to 96 %."
    heading = "" if topic == "difference" else f"### {topic}\n\n"
    return f"{heading}{note}{_table([topic, 'n', *methods], body)}\n{verdict}\n\n"


def _passes(parts: Parts) -> str:
    titles = ["percentile", "t", "bca", "as_seen", "decides"]
    body = []
    for topic in ("pass", "pass Spearman"):
        for population, n, figures in _of(parts, topic):
            shown = {**figures, "decides": figures.get("decisive", figures["bca"])}
            body.append([population, str(n), *(f"{shown[each][0]:.1f}" if each in shown else "" for each in titles)])
    return _table(["differences", "n", *titles], body) + "\n"


def _power(parts: Parts) -> str:
    rows = list(_of(parts, "power"))
    gains = sorted(rows[0][2], key=float)
    body = [
        [population, str(n), *(f"{figures[gain][1]:.0f} ({figures[gain][0]:.0f})" for gain in gains)]
        for population, n, figures in rows
    ]
    return _table(["differences", "n", *gains], body)


def _table(titles: list[str], body: list[list[Any]]) -> str:
    lines = [titles, ["---"] * len(titles), *body]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)
