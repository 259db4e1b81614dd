"""What decides beside quality, and what tells models apart, as texts: a column each, for tables without a page."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from embeval.core import figures
from embeval.core.result import Imported
from embeval.core.strict_json import canonical
from embeval.leaderboard.definition import RankBy
from embeval.leaderboard.snapshot import Model, Retention, Snapshot

RANKED_BY: dict[RankBy, str] = {
    "mean_task": "the mean over tasks",
    "mean_type": "the mean over groups of the means within them",
    "borda": "Borda's count of the ranks on each task",
}
"""By the name in the definition."""
GAPS_COUNT: dict[RankBy, str] = {
    "mean_task": "as if they were as bad as the worst there",
    "mean_type": "as if they were as bad as the worst there",
    "borda": "without points there",
}
"""How models with gaps are ranked, where they are."""
UNRANKED = "—"
"""In place of a rank."""
ELSEWHERE = "°"
"""Marks times and speeds of another machine than most."""


@dataclass(frozen=True)
class Deciding:
    """A column."""

    heading: str
    """What stands above it."""
    text: Callable[[Model], str]
    """What stands in the row of a model; empty: not known."""
    is_number: bool = True
    """Whether it is put to the right."""


def costs(made: Snapshot) -> list[Deciding]:
    """The columns of what models take, of which something is known."""
    columns = [
        Deciding("p95 ms", lambda model: _timed(model, model.measures.latency_p95_ms)),
        Deciding("Tokens/s", lambda model: _timed(model, model.measures.tokens_per_s)),
        Deciding("Parameters", lambda model: count(model.facts.parameters)),
        Deciding("Weights", lambda model: _mebibytes(model.facts.weight_bytes)),
        Deciding("Dimensions", lambda model: count(model.facts.dimensions or None)),
        Deciding("Vector", lambda model: _size(model.measures.vector_bytes)),
        Deciding("Index MiB", lambda model: _plain(model.measures.index_mib)),
        Deciding("$ per 1M tokens", lambda model: _plain(model.measures.usd_per_million_tokens)),
    ]
    return known(columns, made.models)


def beside(made: Snapshot) -> list[Deciding]:
    """The columns of what models keep of the reference, of which something is known."""

    def kept(share: Callable[[Retention], float | None], told: Callable[[float], str]) -> Callable[[Model], str]:
        def text(model: Model) -> str:
            value = None if model.retention is None else share(model.retention)
            return "" if value is None else told(value)

        return text

    columns = [
        Deciding("Quality", kept(lambda each: each.quality, _part)),
        Deciding("Weights", kept(lambda each: each.size, _part)),
        Deciding("Vector", kept(lambda each: each.vectors, _part)),
        Deciding("Speed", kept(lambda each: each.speed, lambda share: f"{share:.2f} ×")),
    ]
    return known(columns, made.models)


def identity(made: Snapshot) -> list[Deciding]:
    """The columns of what models are, of which something is known."""
    columns = [
        Deciding("Runs by", lambda model: model.spec.backend, is_number=False),
        Deciding("Precision", _precision, is_number=False),
        Deciding("Revision", lambda model: revision(model.spec.revision), is_number=False),
        Deciding("Tokens kept", lambda model: count(model.facts.max_tokens)),
        Deciding("Languages", lambda model: _first(model.facts.languages), is_number=False),
        Deciding("Licence", lambda model: model.facts.license or "", is_number=False),
        Deciding("Prompts", prompts, is_number=False),
        Deciding("Settings", lambda model: settings(model.imported), is_number=False),
        Deciding("Evaluated", lambda model: (model.date or "")[:10], is_number=False),
    ]
    return known(columns, made.models)


def known(columns: Sequence[Deciding], models: Sequence[Model]) -> list[Deciding]:
    """Those of which something is known of some model."""
    return [column for column in columns if any(column.text(model) for model in models)]


def ranks_between(model: Model) -> str:
    """``1–3``, ``4``; empty where there is no test."""
    low, high = model.standing.rank_low, model.standing.rank_high
    if low is None or high is None:
        return ""
    return str(low) if low == high else f"{low}–{high}"


def rank(model: Model) -> str:
    """Its rank, marked where it has gaps: ``3*``."""
    standing = model.standing
    return UNRANKED if standing.rank is None else f"{standing.rank}{'*' if standing.gaps else ''}"


def roles(made: Snapshot, place: int) -> list[str]:
    """What a model is to the board: ``reference``, ``in use``."""
    found = ["reference"] if place == made.reference else []
    return found + (["in use"] if made.models[place].label == made.production else [])


def outcome(model: Model) -> str:
    """What the gate says: ``pass``, ``in use``; empty where nothing decides."""
    return "" if model.gate is None else model.gate.outcome.replace("_", " ")


def revision(full: str | None) -> str:
    """The beginning of a revision: ``sha256:c4a57a7f``."""
    kind, _, value = (full or "").rpartition(":")
    return f"{kind}:{value[:8]}" if kind in ("sha256", "sha1") else value[:8] if len(value) == 40 else full or ""


def prompts(model: Model) -> str:
    """``query “query: ”``: the text put before inputs, by role."""
    return ", ".join(f"{role} “{text}”" for role, text in sorted(model.prompts.items()) if text)


def settings(imported: Imported | None) -> str:
    """How an imported model was run, as far as it is told."""
    if imported is None:
        return ""
    version = [] if imported.mteb_version is None else [f"mteb {imported.mteb_version}"]
    return ", ".join([*version, *(f"{name} {canonical(value)}" for name, value in sorted(imported.settings.items()))])


def count(n: int | None) -> str:
    """``384``, ``22.7 M``, ``7.1 B``."""
    if n is None:
        return ""
    for unit, factor in (("B", 10**9), ("M", 10**6)):
        if n >= factor:
            return f"{n / factor:.1f} {unit}"
    return f"{n:,}"


def _precision(model: Model) -> str:
    """The number format; empty where nothing is computed here, or no vectors are, as in BM25."""
    return "" if model.imported or model.facts.dimensions == 0 else model.spec.dtype


def _mebibytes(n_bytes: int | None) -> str:
    return "" if n_bytes is None else f"{_plain(n_bytes / 2**20)} MiB" if n_bytes else "0"


def _size(n_bytes: int | None) -> str:
    return "" if n_bytes is None else figures.size(n_bytes) if n_bytes else "0"


def _part(share: float) -> str:
    return f"{share * 100:.1f} %"


def _timed(model: Model, value: float | None) -> str:
    return f"{_plain(value)}{ELSEWHERE if model.measures.elsewhere else ''}" if value is not None else ""


def _plain(value: float | None) -> str:
    """Three digits that say something."""
    if value is None:
        return ""
    return f"{value:,.0f}" if abs(value) >= 100.0 else f"{value:.3g}"


def _first(names: Iterable[str], shown: int = 3) -> str:
    there = list(names)
    more = f" and {len(there) - shown} more" if len(there) > shown else ""
    return f"{', '.join(there[:shown])}{more}"
