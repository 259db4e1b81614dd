"""One result, in full, for the terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from embeval.cli import _state, _tables
from embeval.store.results import Stored


def result(stored: Stored) -> None:
    """Prints everything that a result says."""
    shown = stored.result
    _state.out(f"{shown.model.label} on {shown.task.name} ({shown.split}, {shown.subset}): {shown.status}")
    if shown.error is not None:
        _state.out(f"{shown.error.type}: {shown.error.message}")
    if shown.scores:
        main = shown.main_score
        ordered = sorted(shown.scores.items(), key=lambda item: item[0] != main)
        _state.out(_tables.scores(ordered, shown.statistics.level))
    for warning in shown.warnings:
        _state.out(f"Note: {warning}")
    _pairs("Counts", shown.counts)
    model: dict[str, Any] = {
        "name": shown.model.name,
        "revision": shown.model.revision,
        "backend": shown.model.backend,
        "dtype": shown.model.dtype,
        "digest": shown.signature.model_digest[:8],
        **{f"prompt ({role})": repr(text) for role, text in shown.signature.prompts.items()},
    }
    _pairs("Model", model)
    _pairs("Protocol", {**shown.signature.protocol, "digest": shown.signature.protocol_digest[:8]})
    origin = shown.provenance
    _pairs(
        "Provenance",
        {
            "code": f"{origin.git_commit or 'no repository'}{' with changes' if origin.git_dirty else ''}",
            "packages": ", ".join(f"{name} {version}" for name, version in origin.packages.items()),
            "machine": f"{origin.cpu}, {origin.n_cpus} CPUs, {origin.os}, Python {origin.python}",
            "device": f"{origin.device}, {origin.num_threads} threads, {origin.batch_tokens} tokens per batch",
        },
    )
    if shown.timings is not None:
        timings = shown.timings
        phases = ", ".join(f"{name} {seconds:.2f} s" for name, seconds in timings.phases.items())
        _pairs(
            "Timings",
            {
                "started": timings.started_at,
                "wall": f"{timings.wall_s:.2f} s ({phases})",
                "CPU": f"{timings.cpu_s:.2f} s",
                "speed": f"{timings.texts_per_s or '—'} texts/s, {timings.tokens_per_s or '—'} tokens/s",
                "peak memory": f"{timings.peak_rss_mib} MiB",
            },
        )
    _state.out(f"File: {stored.path}")


def _pairs(title: str, values: Mapping[str, Any]) -> None:
    if not values:
        return
    made = _tables.table([title, ""])
    for name, value in values.items():
        _tables.add(made, [name, "not known" if value is None else str(value)])
    _state.out(made)
