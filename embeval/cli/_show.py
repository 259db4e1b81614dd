"""One result, in full, for the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from embeval.cli import _state, _tables
from embeval.core import strict_json
from embeval.core.result import Imported, MetricValue, Result
from embeval.core.words import plural
from embeval.leaderboard.board import APPROXIMATE
from embeval.leaderboard.render.cells import number
from embeval.metrics import FAMILIES
from embeval.store.results import Stored
from embeval.workflows.report import FieldValue, Item, ItemTokens, LabelValue, SliceValue

BAR = 24
"""Characters of the longest bar of a token."""
TRAINED_ON = {
    "declared": "declared to hold this data, or data that overlaps with it: not zero-shot",
    "not_declared": "declared, and this data is not in it",
    "unknown": "unknown; this may be a part of it",
}
"""What is known of the training of a model, in words."""


def title(shown: Result) -> None:
    """Prints which result it is."""
    part = "" if shown.subset == "all" else f", {shown.subset}"
    _state.out(f"{shown.label} on {shown.task.name} ({shown.split}{part})")


def slices(name: str, metric: str, values: list[SliceValue], level: float) -> None:
    """Prints a metric by label."""
    made = _tables.table([name, "Items", metric, f"{level * 100:g} % interval"], right=(1, 2, 3))
    for each in values:
        shown = _tables.value_text(each.value)
        _tables.add(made, [each.label or "(none)", str(each.value.n_items), shown, _tables.interval(each.value)])
    _state.out(made)
    if any(each.value.approximate for each in values):
        _state.out(APPROXIMATE)


def all_slices(metric: str, values: list[LabelValue], level: float) -> None:
    """Prints a metric by label of every slice."""
    if not values:
        _state.out("This result has no slices: its items have no labels.")
        return
    heading = f"{level * 100:g} % interval"
    rows = [
        [name, label or "(none)", str(value.n_items), _tables.value_text(value), _tables.interval(value)]
        for name, label, value in values
    ]
    headings = ["Slice", "Label", "Items", metric, heading]
    _state.out(_tables.fitting(headings, rows, _state.console(), right=("Items", metric), spare=(heading,)))
    if any(each.value.approximate for each in values):
        _state.out(APPROXIMATE)


def items(metric: str, values: list[Item]) -> None:
    """Prints single items."""
    names = list(values[0].labels) if values else []
    rows = [[each.id, number(each.value), *(each.labels[name] for name in names)] for each in values]
    _state.out(_tables.fitting(["Item", metric, *names], rows, _state.console(), right=(metric,), spare=names))


def tokens(shown: ItemTokens) -> None:
    """Prints the tokens of an item: how probable each is, and the more surprising, the longer its bar."""
    found = shown.tokens
    modes = list(found.log_probs)
    nats = -found.log_probs[modes[0]].astype(float)
    longest = max([1.0, *nats.tolist()])
    rows = [
        [
            token,
            str(found.word[row]),
            *(f"{float(found.log_probs[mode][row]):.4f}" for mode in modes),
            "▇" * round(BAR * float(nats[row]) / longest),
        ]
        for row, token in enumerate(found.tokens)
    ]
    totals = [shown.values.get(f"pll_{mode}") for mode in modes]
    headings = ["Token", "Word", *(f"ln p, {mode}" for mode in modes), "Surprise"]
    right = ("Word", *headings[2:-1])
    _state.out(f"Item {shown.id}, {plural(len(found), 'token')}")
    if len(found):
        _state.out(
            _tables.fitting(headings, rows, _state.console(), right=right, whole=("Token",), spare=("Surprise", "Word"))
        )
    for mode, total in zip(modes, totals, strict=True):
        _state.out(f"PLL, {mode}: {'not scored' if total is None else f'{total:.4f}'}")


def result(stored: Stored, fields: Sequence[FieldValue] = ()) -> None:
    """Prints everything that a result says, and its main metric by field where there are fields."""
    shown = stored.result
    title(shown)
    if shown.error is not None:
        _state.out(f"Failed: {shown.error.type}: {shown.error.message}")
    if shown.scores:
        _state.out(_tables.scores(_ordered(shown), shown.statistics.level, _state.console()))
        if fields:
            _state.out(_tables.by_field(shown.main_score or "", fields, shown.statistics.level, _state.console()))
        of_fields = [value for field in fields for value in (field.value, *(part.value for part in field.parts))]
        for line in _tables.legend(shown.scores, (*shown.scores.values(), *of_fields)):
            _state.out(line)
    for warning in shown.warnings:
        _state.out(f"Note: {warning}")
    if shown.trained_on is not None:
        _state.out(f"Training data: {TRAINED_ON[shown.trained_on]}.")
    _pairs("Counts", shown.counts)
    model: dict[str, Any] = {
        "name": shown.model.name,
        "revision": shown.model.revision,
        "backend": shown.model.backend,
        "dtype": shown.model.dtype,
        "digest": shown.signature.model_digest[:8],
        **{f"prompt ({role})": repr(text) for role, text in shown.signature.prompts.items()},
    }
    if shown.signature.tokenizer is not None:
        model["tokenizer"] = shown.signature.tokenizer.removeprefix("sha256:")[:8]
    _pairs("Model", model)
    _pairs("Protocol", {**shown.signature.protocol, "digest": shown.signature.protocol_digest[:8]}, missing="null")
    if shown.imported is not None:
        _imported(shown.imported)
    else:
        _provenance(shown)
    _state.out(f"File: {stored.path}")


def _imported(origin: Imported) -> None:
    told = {name: strict_json.canonical(value) for name, value in origin.settings.items()}
    seconds = {} if origin.evaluation_time is None else {"evaluation": f"{origin.evaluation_time:.1f} s"}
    _pairs(
        "Imported",
        {
            "from": origin.source,
            "mteb": origin.mteb_version,
            "data revision": origin.dataset_revision,
            **seconds,
            **told,
        },
    )


def _provenance(shown: Result) -> None:
    origin = shown.provenance
    run = {"device": f"{origin.device}, {origin.num_threads} threads, {origin.batch_tokens} tokens per batch"}
    _pairs(
        "Provenance",
        {
            "code": f"{origin.git_commit or 'no repository'}{' with changes' if origin.git_dirty else ''}",
            "packages": ", ".join(f"{name} {version}" for name, version in origin.packages.items()),
            "machine": f"{origin.cpu}, {origin.n_cpus} CPUs, {origin.os}, Python {origin.python}",
            **(run if origin.device is not None else {}),
        },
    )
    if shown.timings is not None:
        timings = shown.timings
        unit = "passes" if "passes" in shown.counts else "texts"
        phases = ", ".join(f"{name} {seconds:.2f} s" for name, seconds in timings.phases.items())
        _pairs(
            "Timings",
            {
                "started": timings.started_at,
                "wall": f"{timings.wall_s:.2f} s ({phases})",
                "CPU": f"{timings.cpu_s:.2f} s",
                "speed": f"{timings.texts_per_s or '—'} {unit}/s, {timings.tokens_per_s or '—'} tokens/s",
                "peak memory": f"{timings.peak_rss_mib} MiB",
            },
        )


def _ordered(shown: Result) -> list[tuple[str, MetricValue]]:
    """The main metric, then the others family by family as these list them; files hold them by name."""
    usual = [name for family in FAMILIES.names() for name in FAMILIES.get(family).names()]
    place = {name: number for number, name in enumerate(usual)}
    return sorted(
        shown.scores.items(), key=lambda item: (item[0] != shown.main_score, place.get(item[0], len(place)), item[0])
    )


def _pairs(title: str, values: Mapping[str, Any], *, missing: str = "not known") -> None:
    if not values:
        return
    made = _tables.table([title, ""])
    for name, value in values.items():
        _tables.add(made, [name, missing if value is None else str(value)])
    _state.out(made)
