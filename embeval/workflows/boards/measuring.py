"""What the models of a board are and take: facts, recall, times, sizes, costs.

Recall and index sizes are of the same tasks for every model; a model that lacks one of them has none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from embeval.compare import facts as counted
from embeval.core.facts import ModelFacts
from embeval.core.languages import codes
from embeval.core.quantization import bytes_per_vector
from embeval.core.result import Result
from embeval.core.specs import ModelSpec
from embeval.core.words import plural
from embeval.leaderboard.board import Board, Row, listed
from embeval.leaderboard.definition import Definition
from embeval.leaderboard.snapshot import Measures, Model
from embeval.metrics.cost import PRICE
from embeval.workflows.boards import timing
from embeval.workflows.boards.timing import Timing

PER_MILLION = 1e6


def facts(results: Sequence[Result]) -> ModelFacts:
    """What is known of a model by its results, languages as ISO 639-3 codes."""
    found = ModelFacts()
    for each in dict.fromkeys(result.facts for result in results if result.facts is not None):
        found = found.completed(each)
    if found.dimensions is None:  # results from before facts were kept tell them otherwise
        told = (each.counts.get("dimensions") or each.model.truncate_dim for each in results)
        found = replace(found, dimensions=next((each for each in told if each is not None), None))
    return replace(found, languages=codes(found.languages))


def measures(board: Board, definition: Definition) -> list[Measures]:
    """What each row of the table takes."""
    recalls = _on_every_corpus(board, lambda result: _score(result, f"recall_at_{definition.board.rag_k}"))
    indexes = _on_every_corpus(board, _index_mib)
    timings = timing.timings(board)
    made = [
        _with_times(
            Measures(
                recall=None if recall is None else sum(recall) / len(recall),
                index_mib=None if index is None else sum(index),
                vector_bytes=_vector_bytes(row),
            ),
            found,
        )
        for row, recall, index, found in zip(board.rows, recalls, indexes, timings, strict=True)
    ]
    lent = _lent(made, board)
    return [
        replace(each, usd_per_million_tokens=_usd(row, each, definition.board.usd_per_hour))
        for row, each in zip(board.rows, lent, strict=True)
    ]


def remarks(models: Sequence[Model]) -> list[str]:
    """What a reader of the values and measures should know, as sentences."""
    found = []
    seen = {
        each.label: sum(cell is not None and cell.trained_on == "declared" for cell in each.cells) for each in models
    }
    if any(seen.values()):
        told = [f"{label} on {plural(n, 'task')}" for label, n in seen.items() if n]
        found.append(f"Not zero-shot, as makers of the models declare: {listed(told)}.")
    if away := [each.label for each in models if each.measures.elsewhere]:
        found.append(
            "Measured on another machine than most models, so times and speeds say little beside theirs: "
            f"{listed(away)}."
        )
    timed = [each.measures.session for each in models if each.measures.latency_p95_ms is not None]
    if len(timed) > 1 and (None in timed or len(set(timed)) > 1):
        found.append(
            "Latencies were not all measured in turns, and a machine is now fast and now slow: small differences say "
            "nothing. 'embeval run --interleave' measures in turns."
        )
    if any(each.measures.speed_of is not None for each in models):
        found.append("Models that only cut or quantise the vectors of another have its speed.")
    return found


def _with_times(measures: Measures, found: Timing | None) -> Measures:
    if found is None:
        return measures
    return replace(
        measures,
        latency_p95_ms=found.latency_ms,
        session=found.session,
        tokens_per_s=found.tokens_per_s,
        machine=str(found.machine),
        elsewhere=found.elsewhere,
    )


def _on_every_corpus(board: Board, value_of: Callable[[Result], float | None]) -> list[list[float] | None]:
    """For each row its values on the retrieval tasks that any row has one on; None where it lacks one of them."""
    corpora = {key: (key.task, key.split, key.protocol) for key in board.columns}
    found = [
        {
            corpora[key]: value
            for key, result in row.results.items()
            if _searches(result) and key in corpora and (value := value_of(result)) is not None
        }
        for row in board.rows
    ]
    wanted = sorted(set().union(*found))
    whole = [bool(wanted) and len(of_row) == len(wanted) for of_row in found]
    return [[of_row[each] for each in wanted] if has else None for of_row, has in zip(found, whole, strict=True)]


def _searches(result: Result) -> bool:
    """Whether a task searches a corpus, so that recall and an index mean something."""
    return result.task.type == "retrieval" or result.task.category == "Retrieval"


def _score(result: Result, metric: str) -> float | None:
    found = result.scores.get(metric)
    return None if found is None else found.value


def _index_mib(result: Result) -> float | None:
    """As it was measured, else what follows from the vectors."""
    if (measured := _score(result, "index_mib")) is not None:
        return measured
    size, n = counted.value(result, "index_bytes_per_document"), result.counts.get("documents")
    return None if size is None or n is None else size * n / counted.MIB


def _vector_bytes(row: Row) -> int | None:
    results = list(row.results.values())
    for each in results:
        if (told := each.counts.get("vector_bytes")) is not None:
            return told
    dimensions = facts(results).dimensions
    return bytes_per_vector(dimensions, results[0].model.quantize) if dimensions else dimensions


def _lent(made: Sequence[Measures], board: Board) -> list[Measures]:
    """The measures, where those that weren't timed have the speed of a model with the same encoder."""
    models = [next(iter(row.results.values())).model for row in board.rows]
    encoders = [_encoder(each).digest for each in models]
    lenders: dict[str, int] = {}
    for place in sorted(
        range(len(made)), key=lambda place: (models[place].digest != encoders[place], models[place].label)
    ):
        if made[place].tokens_per_s is not None:
            lenders.setdefault(encoders[place], place)
    found = []
    for encoder, own in zip(encoders, made, strict=True):
        lender = lenders.get(encoder)
        if own.tokens_per_s is not None or lender is None or own.machine not in (None, made[lender].machine):
            found.append(own)
            continue
        theirs = made[lender]
        found.append(
            replace(
                own,
                tokens_per_s=theirs.tokens_per_s,
                speed_of=board.rows[lender].label,
                machine=theirs.machine,
                elsewhere=theirs.elsewhere,
            )
        )
    return found


def _encoder(model: ModelSpec) -> ModelSpec:
    """Equal for models that compute the same vectors and only cut, scale, compare or store them otherwise."""
    return replace(model, truncate_dim=None, quantize=None, rescore=None, similarity=None, normalize=None)


def _usd(row: Row, found: Measures, usd_per_hour: float | None) -> float | None:
    """The price of an endpoint; else what the machine of the board costs while it encodes a million tokens."""
    prices = [price for each in row.results.values() if (price := each.provenance.extra.get(PRICE)) is not None]
    if prices:
        return float(prices[-1])
    if usd_per_hour is None or found.tokens_per_s is None or found.elsewhere:
        return None
    return usd_per_hour / 3600 / found.tokens_per_s * PER_MILLION
