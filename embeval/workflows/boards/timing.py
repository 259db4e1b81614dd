"""Latencies and speeds of models as they can stand beside each other: of one machine, and of the tasks that all share.

A model that was measured on the machine that most were is shown with what it did there; any other is marked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from statistics import median
from typing import NamedTuple

from embeval.core.result import Result
from embeval.core.words import plural
from embeval.leaderboard.board import Board, ColumnKey, Row

MIN_TEXTS = 500
"""Texts that have to go through a model before its speed means something: the first batches are slow."""
LATENCY = "latency_p95_ms"
ENDPOINT = "endpoint"
"""The device of a model that runs behind one, whatever machine asks it."""
PLAIN = (None, "cpu")
"""Devices that the name of the processor tells already."""


class Machine(NamedTuple):
    """What a model was run on."""

    hardware: str
    """Processor, and the device where it is another one."""
    threads: int | None
    """CPU threads of the model; None: it has no parameters that would be spread over them."""

    def fits(self, other: Machine) -> bool:
        """Whether times of the two say something beside each other."""
        return self.hardware == other.hardware and (None in (self.threads, other.threads) or self == other)

    def __str__(self) -> str:
        return self.hardware if self.threads is None else f"{self.hardware}, {plural(self.threads, 'thread')}"


Measurement = tuple[str, str, str]
"""(task, split, protocol): what was measured, however many columns it has."""


@dataclass(frozen=True)
class Timing:
    """How fast a model is on one machine."""

    machine: Machine
    """The machine."""
    elsewhere: bool
    """Whether it is another one than most models were measured on."""
    latency_ms: float | None
    """Median over tasks of the 95th percentile of a query."""
    session: str | None
    """Equal for models whose latencies were measured in turns; None: some were measured alone."""
    tokens_per_s: float | None
    """Median over tasks."""


@dataclass
class _Found:
    """What was measured on one machine."""

    latencies: dict[Measurement, tuple[float, str | None]] = field(default_factory=dict)
    """With the id of the run in which they were measured in turns."""
    speeds: dict[Measurement, float] = field(default_factory=dict)

    @property
    def n(self) -> int:
        return len(self.latencies) + len(self.speeds)


def timings(board: Board) -> list[Timing | None]:
    """How fast each row of a table is; None where nobody measured it."""
    there = frozenset(board.columns)
    found = [_by_machine(row, there) for row in board.rows]
    counts = Counter(machine for of_row in found for machine in of_row)
    if not counts:
        return [None] * len(board.rows)
    usual = min(counts, key=lambda each: (each.threads is None, -counts[each], str(each)))
    chosen = [_chosen(of_row, usual) for of_row in found]
    measured = [of_row[machine] for of_row, machine in zip(found, chosen, strict=True) if machine is not None]
    timed = _shared([each.latencies for each in measured])
    encoded = _shared([each.speeds for each in measured])
    return [
        None if machine is None else _timing(machine, usual, of_row[machine], timed, encoded)
        for of_row, machine in zip(found, chosen, strict=True)
    ]


def _by_machine(row: Row, columns: Collection[ColumnKey]) -> dict[Machine, _Found]:
    found: dict[Machine, _Found] = {}
    for key, result in row.results.items():
        at, measurement = result.timings, (key.task, key.split, key.protocol)
        if at is None or result.imported is not None or key not in columns:
            continue
        latency = result.scores.get(LATENCY)
        own = found.setdefault(_machine(result), _Found())
        if latency is not None and latency.value is not None:
            own.latencies[measurement] = latency.value, at.session
        if at.tokens_per_s is not None and (at.texts_encoded or 0) >= MIN_TEXTS:
            own.speeds[measurement] = at.tokens_per_s
    return {machine: own for machine, own in found.items() if own.n}


def _machine(result: Result) -> Machine:
    origin = result.provenance
    if origin.device == ENDPOINT:
        return Machine(ENDPOINT, None)
    told = f"{origin.cpu}, {plural(origin.n_cpus, 'processor')}"
    if origin.device not in PLAIN:
        told = f"{told}, {origin.device}"
    bare = result.facts is not None and result.facts.parameters == 0
    return Machine(told, None if bare else origin.num_threads)


def _chosen(of_row: Mapping[Machine, _Found], usual: Machine) -> Machine | None:
    """The usual machine where the model was measured there, else the one that it was measured most on."""
    if not of_row:
        return None
    return min(of_row, key=lambda each: (each != usual, not each.fits(usual), -of_row[each].n, str(each)))


def _shared(measured: Sequence[Mapping[Measurement, object]]) -> frozenset[Measurement]:
    """The tasks that every model was measured on that was measured at all; empty: there are none."""
    there = [frozenset(each) for each in measured if each]
    return frozenset.intersection(*there) if there else frozenset()


def _timing(
    machine: Machine, usual: Machine, found: _Found, timed: frozenset[Measurement], encoded: frozenset[Measurement]
) -> Timing:
    latencies = {key: each for key, each in found.latencies.items() if key in timed or not timed}
    speeds = [each for key, each in found.speeds.items() if key in encoded or not encoded]
    return Timing(
        machine=machine,
        elsewhere=not machine.fits(usual),
        latency_ms=median(value for value, _ in latencies.values()) if latencies else None,
        session=_session({session for _, session in latencies.values()}),
        tokens_per_s=median(speeds) if speeds else None,
    )


def _session(sessions: set[str | None]) -> str | None:
    """One id for the runs of all tasks, each of which has its own."""
    together = [each for each in sessions if each is not None]
    if not together or len(together) < len(sessions):
        return None
    return sha256(" ".join(sorted(together)).encode()).hexdigest()[:8]
