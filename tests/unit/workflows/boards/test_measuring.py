"""What models take, from results whose numbers were chosen so that means and medians can be told by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from embeval.core import border, strict_json
from embeval.core.facts import ModelFacts
from embeval.core.result import Imported, Result
from embeval.leaderboard import definition
from embeval.leaderboard.board import build
from embeval.leaderboard.definition import BoardFile, Definition
from embeval.leaderboard.snapshot import Cell, Measures, Model, Standing
from embeval.store.results import ResultStore
from embeval.workflows.boards import building, measuring
from tests.support.measured import result
from tests.support.stored import put


def taken(results: Sequence[Result], **board: object) -> dict[str, Measures]:
    """What each model of a board takes, by its label."""
    file = Definition(Path("board.yaml"), BoardFile(**board))  # type: ignore[arg-type]
    table = build(results)
    return {row.label: each for row, each in zip(table.rows, measuring.measures(table, file), strict=True)}


def models(measures: dict[str, Measures]) -> list[Model]:
    """Rows of a board that differ in what they take."""
    row = {"digest": "0" * 8, "cells": (), "standing": Standing()}
    return [
        Model(label=label, spec=result(label).model, measures=each, **row)  # type: ignore[arg-type]
        for label, each in measures.items()
    ]


def test_recall_is_the_mean_over_the_tasks_that_search() -> None:
    """(0.4 + 0.8) / 2, at the depth that is asked for; sentence pairs have no part in it."""
    found = taken(
        [
            result(task="one", scores={"recall_at_5": 0.4, "recall_at_10": 0.5}),
            result(task="two", kind="mteb", category="Retrieval", scores={"recall_at_5": 0.8}),
            result(task="pairs", kind="sts"),
            result(task="ranked", kind="reranking", scores={"recall_at_5": 0.0}),
        ],
        rag_k=5,
    )
    assert found["minilm"].recall == pytest.approx(0.6)


def test_a_model_without_one_of_the_tasks_has_no_recall() -> None:
    """Its mean would be over other tasks than that of the model beside it; what no model has is nobody's gap."""
    scores = {"recall_at_10": 0.5}
    found = taken(
        [
            result("whole", "one", scores=scores),
            result("whole", "two", scores=scores),
            result("whole", "three"),
            result("part", "one", scores=scores),
            result("part", "two", scores={"recall_at_10": None}),
            result("part", "three"),
        ]
    )
    assert (found["whole"].recall, found["part"].recall) == (0.5, None)


def test_the_size_of_an_index() -> None:
    """As it was measured, else bytes of a vector by documents: 4 MiB and 1024 x 1024 bytes make 5 MiB."""
    found = taken(
        [
            result(task="one", scores={"index_mib": 4.0}, counts={"documents": 10, "vector_bytes": 1024}),
            result(task="two", counts={"documents": 1024, "vector_bytes": 1024}),
            result("bm25", "one", counts={"documents": 10}),
        ]
    )
    assert (found["minilm"].index_mib, found["bm25"].index_mib) == (5.0, None)


def test_columns_of_one_search_have_one_index(tmp_path: Path) -> None:
    """The mean over sub-sets and all queries together: 1,000 vectors of 16 bytes, once."""
    store = ResultStore(tmp_path / "results")
    columns = {"ndcg_at_10": [0.5] * 60, "recall_at_10": [0.2] * 30 + [0.6] * 30}
    subsets = {"subset": ["a"] * 30 + ["b"] * 30}
    for stored in put(store, columns, slices=subsets, documents=1000):
        told = replace(stored.result, counts={**stored.result.counts, "vector_bytes": 16})
        stored.path.write_text(strict_json.dumps(border.dump(told)), encoding="utf-8")
    text = "tasks: [{task: docs, subset: mean}, {task: docs, subset: all}]\nresults: [results]\n"
    (tmp_path / "board.yaml").write_text(text, encoding="utf-8")
    (found,) = building.snapshot(definition.load(tmp_path / "board.yaml")).models
    assert [cell and cell.n_items for cell in found.cells] == [60, 60]
    assert found.measures.index_mib == 16_000 / 2**20
    assert found.measures.recall == pytest.approx(0.4)


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (result(counts={"vector_bytes": 68}), 68),
        (result(facts=ModelFacts(dimensions=384)), 1536),
        (result(facts=ModelFacts(dimensions=64), truncate_dim=64, quantize="int8"), 68),
        (result(facts=ModelFacts(dimensions=384), quantize="binary"), 48),
        (result(truncate_dim=64), 256),
        (result(facts=ModelFacts(dimensions=0)), 0),
        (result(), None),
    ],
)
def test_bytes_of_a_vector(made: Result, expected: int | None) -> None:
    """4 a dimension; as int8 one and 4 for the scale, as binary a bit; words have none."""
    (found,) = taken([made]).values()
    assert found.vector_bytes == expected


def test_facts_of_a_model_are_gathered_from_its_results() -> None:
    """An older result tells the dimensions at least; languages are ISO 639-3, whoever declared them."""
    known = ModelFacts(parameters=7, languages=("en", "deu-Latn"), license="mit")
    older = result(truncate_dim=64)
    assert measuring.facts([older, result(facts=known)]) == ModelFacts(
        parameters=7, dimensions=64, languages=("deu", "eng"), license="mit"
    )
    assert measuring.facts([result(counts={"dimensions": 384})]) == ModelFacts(dimensions=384)


def test_what_a_million_tokens_cost() -> None:
    """At 2000 tokens a second 500 s, of an hour that costs 7.20 USD; an endpoint has its price, whatever the hour."""
    found = taken(
        [
            result("here", speed=2000.0),
            result("there", device="endpoint", extra={"price_per_million_tokens": "0.02"}, speed=10.0),
            result("unknown"),
        ],
        usd_per_hour=7.2,
    )
    assert found["here"].usd_per_million_tokens == pytest.approx(1.0)
    assert (found["there"].usd_per_million_tokens, found["unknown"].usd_per_million_tokens) == (0.02, None)
    assert taken([result("here", speed=2000.0)])["here"].usd_per_million_tokens is None


def test_the_hour_of_another_machine_costs_something_else() -> None:
    """So that nothing is said of it."""
    found = taken(
        [result("a", speed=1.0), result("b", speed=1.0), result("c", speed=1.0, cpu="Xeon")], usd_per_hour=1.0
    )
    assert [found[name].usd_per_million_tokens is None for name in "abc"] == [False, False, True]


def test_a_model_that_only_cuts_vectors_has_the_speed_of_the_other() -> None:
    """Its own texts came from the cache; another number format or prompt is another encoder, and isn't lent any."""
    found = taken(
        [
            result(speed=800.0),
            result(texts=0, truncate_dim=64),
            result(texts=0, quantize="binary", rescore=4),
            result(texts=0, dtype="bfloat16"),
            result(texts=0, prompts={"query": "q: "}),
            result(speed=900.0, truncate_dim=32),
        ],
        usd_per_hour=1.0,
    )
    lent = {label: (each.tokens_per_s, each.speed_of) for label, each in found.items()}
    assert lent == {
        "minilm": (800.0, None),
        "minilm (64d)": (800.0, "minilm"),
        "minilm (binary vectors rescored x4)": (800.0, "minilm"),
        "minilm (bfloat16)": (None, None),
        "minilm (own prompts)": (None, None),
        "minilm (32d)": (900.0, None),
    }
    assert found["minilm (64d)"].usd_per_million_tokens == found["minilm"].usd_per_million_tokens
    assert found["minilm (64d)"].machine == found["minilm"].machine
    assert measuring.remarks(models(found)) == [
        "Models that only cut or quantise the vectors of another have its speed."
    ]


def test_speed_is_not_lent_across_machines() -> None:
    """A latency of one machine beside a speed of another would look like one measurement."""
    late = {"latency_p95_ms": 9.0}
    found = taken([result(speed=800.0), result(texts=0, truncate_dim=64, cpu="Xeon", scores=late)])
    assert (found["minilm (64d)"].tokens_per_s, found["minilm (64d)"].machine) == (
        None,
        "Xeon, 4 processors, 2 threads",
    )


def test_published_values_say_nothing_of_times() -> None:
    """Nobody knows what they were measured on; their recall counts as ours does."""
    told = Imported(source="x.json", mteb_version="2.0", dataset_revision="1")
    (found,) = taken([replace(result(speed=9.0, scores={"recall_at_10": 0.5}), imported=told)]).values()
    assert (found.recall, found.tokens_per_s, found.machine) == (0.5, None, None)


def test_models_that_were_trained_on_the_data_are_named() -> None:
    """With the number of tasks; that nothing is declared is no news."""
    declared, other, none = Cell(value=0.5, trained_on="declared"), Cell(value=0.5, trained_on="not_declared"), None
    rows = models(dict.fromkeys(("a", "b", "c"), Measures()))
    cells = [(declared, other, declared), (other, other, none), (none, declared, other)]
    marked = [replace(row, cells=of_row) for row, of_row in zip(rows, cells, strict=True)]
    assert measuring.remarks(marked) == ["Not zero-shot, as makers of the models declare: a on 2 tasks, c on 1 task."]


def test_what_a_reader_should_know() -> None:
    """Of other machines, and of latencies that were measured one after another."""
    late = {"latency_p95_ms": 9.0}
    together = [result(name, scores=late, session="s") for name in ("a", "b")]
    assert measuring.remarks(models(taken(together))) == []
    (apart,) = measuring.remarks(models(taken([*together, result("c", scores=late)])))
    assert apart.startswith("Latencies were not all measured in turns")
    away, _ = measuring.remarks(models(taken([*together, result("d", scores=late, cpu="Xeon")])))
    assert away == "Measured on another machine than most models, so times and speeds say little beside theirs: d."
