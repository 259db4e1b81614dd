"""Which latencies and speeds of models stand beside each other."""

from __future__ import annotations

from collections.abc import Sequence

from embeval.core.facts import ModelFacts
from embeval.core.result import Result
from embeval.leaderboard.board import build
from embeval.workflows.boards import timing
from embeval.workflows.boards.timing import Timing
from tests.support.measured import result


def timed(results: Sequence[Result]) -> dict[str, Timing | None]:
    """How fast each model is, by its label."""
    table = build(results)
    return {row.label: each for row, each in zip(table.rows, timing.timings(table), strict=True)}


def known(results: Sequence[Result]) -> dict[str, Timing]:
    """The same, of models that all were measured."""
    return {label: each for label, each in timed(results).items() if each is not None}


def late(ms: float) -> dict[str, float | None]:
    """A latency."""
    return {"latency_p95_ms": ms}


def test_the_median_over_tasks() -> None:
    """Of 10, 20, 90 ms and of 100, 300, 900 tokens a second."""
    rows = [("one", 10.0, 900.0), ("two", 90.0, 100.0), ("three", 20.0, 300.0)]
    (found,) = known([result(task=task, scores=late(ms), speed=speed) for task, ms, speed in rows]).values()
    assert (found.latency_ms, found.tokens_per_s) == (20.0, 300.0)
    assert (str(found.machine), found.elsewhere) == ("EPYC, 4 processors, 2 threads", False)


def test_a_run_of_few_texts_has_no_speed() -> None:
    """499 are too few, 500 are not; what came from the cache took no time at all."""
    found = timed(
        [
            result("few", speed=9.0, texts=499),
            result("enough", speed=9.0, texts=500),
            result("cached", texts=0),
        ]
    )
    assert (found["few"], found["cached"]) == (None, None)
    assert found["enough"] is not None
    assert found["enough"].tokens_per_s == 9.0


def test_models_are_timed_on_the_tasks_that_they_share() -> None:
    """Of one that was timed on short texts as well the long ones count alone: 100, not the median of 100 and 900."""
    found = known(
        [
            result("a", "long", speed=100.0),
            result("a", "short", speed=900.0),
            result("b", "long", speed=200.0),
        ]
    )
    assert (found["a"].tokens_per_s, found["b"].tokens_per_s) == (100.0, 200.0)


def test_models_that_share_no_task_have_their_own() -> None:
    """Better than nothing; which tasks they were is in the results."""
    found = known([result("a", "long", speed=100.0), result("b", "short", speed=900.0)])
    assert (found["a"].tokens_per_s, found["b"].tokens_per_s) == (100.0, 900.0)


def test_the_machine_that_most_models_were_measured_on() -> None:
    """A model that was measured there too is shown with that; one that wasn't is marked."""
    found = known(
        [
            result("a", "one", speed=100.0),
            result("b", "one", speed=100.0),
            result("c", "one", speed=110.0),
            result("c", "two", speed=500.0, cpu="Xeon"),
            result("c", "three", speed=500.0, cpu="Xeon"),
            result("d", "one", speed=700.0, device="cuda:0 (H200)"),
            result("e", "one", speed=700.0, device="endpoint", threads=None),
        ]
    )
    away = {label for label, each in found.items() if each.elsewhere}
    assert (away, found.keys() - away) == ({"d", "e"}, {"a", "b", "c"})
    assert (found["c"].tokens_per_s, str(found["c"].machine)) == (110.0, "EPYC, 4 processors, 2 threads")
    assert str(found["d"].machine) == "EPYC, 4 processors, cuda:0 (H200), 2 threads"
    assert str(found["e"].machine) == "endpoint"


def test_other_threads_are_another_machine() -> None:
    """But not for a system without parameters, which has no use for them."""
    bare = ModelFacts(parameters=0)
    found = known(
        [
            result("a", scores=late(9.0)),
            result("b", scores=late(9.0)),
            result("c", scores=late(9.0), threads=8),
            result("bm25", scores=late(1.0), threads=1, facts=bare),
        ]
    )
    assert {label: each.elsewhere for label, each in found.items()} == {
        "a": False,
        "b": False,
        "c": True,
        "bm25": False,
    }
    assert str(found["bm25"].machine) == "EPYC, 4 processors"
    assert [each.elsewhere for each in known([result("bm25", scores=late(1.0), threads=1, facts=bare)]).values()] == [
        False
    ]


def test_latencies_that_were_measured_in_turns_say_so() -> None:
    """Of every task that counts, in the same runs; a run has an id for each task."""
    found = known(
        [
            result("a", "one", scores=late(1.0), session="s1"),
            result("a", "two", scores=late(1.0), session="s2"),
            result("b", "one", scores=late(2.0), session="s1"),
            result("b", "two", scores=late(2.0), session="s2"),
            result("c", "one", scores=late(3.0), session="s1"),
            result("c", "two", scores=late(3.0)),
            result("d", "one", scores=late(4.0), session="s1"),
            result("d", "two", scores=late(4.0), session="other"),
        ]
    )
    assert found["a"].session == found["b"].session is not None
    assert found["c"].session is None
    assert found["d"].session not in (None, found["a"].session)


def test_what_was_measured_on_older_data_does_not_count() -> None:
    """It has no column: 5 tokens a second of the newest state of the data, not the median with 100."""
    old, new = (result(speed=speed, data=data, day=day) for speed, data, day in ((100.0, "old", 1), (5.0, "new", 2)))
    (found,) = known([old, new]).values()
    assert found.tokens_per_s == 5.0


def test_a_table_that_nobody_timed() -> None:
    """Says nothing of times."""
    assert timed([result("a"), result("b")]) == {"a": None, "b": None}
