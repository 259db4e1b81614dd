"""Latency by a clock that moves only when a stage says so, so that every number is known beforehand."""

from __future__ import annotations

import gc
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from embeval.retrieval import latency

MS = 1_000_000


class Watch:
    """A clock that stages push forward."""

    def __init__(self) -> None:
        self.now = 0
        self.asked: list[str] = []
        """Queries that reached the first stage, in their order."""
        self.collecting: set[bool] = set()
        """Whether the garbage collector was on while a stage ran."""

    def __call__(self) -> int:
        return self.now

    def encode(self, query: str) -> tuple[str, int]:
        """Takes as many milliseconds as the query says, and 100 more for the very first one."""
        self.now += int(query) * MS + (0 if self.asked else 100 * MS)
        self.asked.append(query)
        self.collecting.add(gc.isenabled())
        return query, int(query)

    def search(self, encoded: tuple[str, int]) -> list[str]:
        """Takes 10 times as long, and one ms more each time that a query comes again."""
        query, number = encoded
        self.now += 10 * number * MS + self.asked.count(query) * MS
        return [query]


def test_stages_by_hand() -> None:
    """Queries of 1, 2 and 3 ms: cold apart, two warm-ups, then three repeats whose median is the middle one."""
    watch = Watch()
    found = latency.measure(
        [("encode", watch.encode), ("search", watch.search)], ["1", "2", "3"], warmup=2, repeats=3, clock=watch
    )
    assert found.cold_ms == {"encode": 101.0, "search": 11.0}
    assert found.stage_ms["encode"].tolist() == [1.0, 2.0, 3.0]
    # Seen before counting: "1" twice (cold, warm-up), "2" once, "3" never; the second repeat is the median.
    assert found.stage_ms["search"].tolist() == [10.0 + 4, 20.0 + 3, 30.0 + 2]
    assert found.total_ms.tolist() == [15.0, 25.0, 35.0]
    assert (found.warmup, found.repeats) == (2, 3)
    assert watch.asked[:3] == ["1", "1", "2"]
    assert len(watch.asked) == 3 + 9


def test_columns_for_the_metrics() -> None:
    """Times of each query by row; the cold one in the first row alone, as it was measured once."""
    watch = Watch()
    found = latency.measure([("encode", watch.encode)], ["1", "2"], warmup=0, repeats=1, clock=watch)
    columns = {name: [None if value != value else value for value in each] for name, each in found.columns().items()}
    assert columns == {
        "latency_ms": [1.0, 2.0],
        "encode_latency_ms": [1.0, 2.0],
        "cold_latency_ms": [101.0, None],
        "encode_cold_latency_ms": [101.0, None],
    }


def test_every_repeat_has_an_order_of_its_own() -> None:
    """Each repeat asks every query once, in an order that the seed decides and that is not that of the list."""
    queries = [str(number) for number in range(1, 21)]

    def orders(seed: int) -> list[list[str]]:
        watch = Watch()
        latency.measure([("encode", watch.encode)], queries, warmup=3, repeats=3, seed=seed, clock=watch)
        counted = watch.asked[4:]
        return [counted[start : start + 20] for start in (0, 20, 40)]

    first = orders(0)
    assert all(Counter(order) == Counter(queries) for order in first)
    assert len({tuple(order) for order in [queries, *first]}) == 4
    assert orders(0) == first
    assert orders(1) != first


def test_the_total_is_the_median_of_sums() -> None:
    """Stages that are slow in different repeats: 1 + 9, 9 + 1 and 5 + 7 have the median 10, their stages 5 and 7."""
    watch = Watch()
    slow = iter([(0, 0), (1, 9), (9, 1), (5, 7)])

    def first(query: str) -> int:
        one, other = next(slow)
        watch.now += one * MS
        return other

    def second(milliseconds: int) -> None:
        watch.now += milliseconds * MS

    found = latency.measure([("a", first), ("b", second)], ["q"], warmup=0, repeats=3, clock=watch)
    assert {name: column.tolist() for name, column in found.stage_ms.items()} == {"a": [5.0], "b": [7.0]}
    assert found.total_ms.tolist() == [10.0]


@pytest.mark.parametrize("was_on", [True, False])
def test_the_garbage_collector_waits(was_on: bool) -> None:
    """Off while stages run, and afterwards as it was, also where a stage fails."""
    watch = Watch()

    def broken(query: str) -> None:
        raise RuntimeError(query)

    try:
        if not was_on:
            gc.disable()
        latency.measure([("encode", watch.encode)], ["1"], warmup=1, repeats=1, clock=watch)
        assert watch.collecting == {False}
        assert gc.isenabled() is was_on
        with pytest.raises(RuntimeError):
            latency.measure([("encode", broken)], ["1"])
        assert gc.isenabled() is was_on
    finally:
        gc.enable()


def test_throughput_by_hand() -> None:
    """Three queries in 30, 10 and 20 ms, after 500 uncounted: the median 20 ms makes 150 queries per second."""
    watch = Watch()
    spent = iter([500, 30, 10, 20])

    def batch(queries: Sequence[str]) -> None:
        assert list(queries) == ["a", "b", "c"]
        watch.now += next(spent) * MS

    assert latency.throughput(batch, ["a", "b", "c"], repeats=3, clock=watch) == 150.0
    assert next(spent, None) is None


def test_the_real_clock_counts_milliseconds() -> None:
    """A stage that sleeps for 5 ms takes at least that, and less than a second; a batch of 4 likewise."""
    found = latency.measure([("search", lambda _: time.sleep(0.005))], ["q"], warmup=0, repeats=2)
    assert 5.0 <= found.total_ms[0] < 1000.0
    assert 4.0 < latency.throughput(lambda _: time.sleep(0.005), list("abcd"), repeats=1) <= 4 / 0.005


def test_nothing_to_measure_is_refused() -> None:
    """No stage, two of one name, no query, no repeat."""
    watch = Watch()
    encode = ("encode", watch.encode)
    for stages, queries, repeats in (
        ([], ["1"], 1),
        ([encode, encode], ["1"], 1),
        ([encode], [], 1),
        ([encode], ["1"], 0),
    ):
        with pytest.raises(ValueError, match="latency needs"):
            latency.measure(stages, queries, repeats=repeats)
    for no_queries, repeats in (([], 1), (["1"], 0)):
        with pytest.raises(ValueError, match="throughput needs"):
            latency.throughput(list, no_queries, repeats=repeats)


class Machine:
    """Systems on one machine that gets slower: each answer takes ``step_ns`` longer than the one before."""

    def __init__(self, step_ns: int = 0) -> None:
        self.now, self.step_ns = 0, step_ns
        self.answers: list[tuple[str, str]] = []
        """(system, query) in their order."""

    def __call__(self) -> int:
        return self.now

    def answering(self, name: str, milliseconds: int) -> Callable[[str], str]:
        """A system that takes so long when the machine is fresh."""

        def answer(query: str) -> str:
            self.now += milliseconds * MS + len(self.answers) * self.step_ns
            self.answers.append((name, query))
            return query

        return answer


QUERIES = [str(number) for number in range(20)]


def test_a_machine_that_gets_slower_hits_both_sides_alike() -> None:
    """Two equal systems, 1 µs more with each answer, 20 queries once each.

    One after the other the second is 20 µs slower on average (and one for the cold answer between them). In turns,
    answers come in pairs; each system is first in every other pair, so both sums are that of 20 of the counts 2 to 41:
    (2 + 41) / 2 = 21.5 on average, for each of them.
    """
    machine = Machine(step_ns=1_000)
    pair = [[("search", machine.answering(name, 5))] for name in "AB"]
    in_turns = latency.measure_in_turns(pair, QUERIES, warmup=0, repeats=1, clock=machine)
    assert [each.total_ms.mean() for each in in_turns] == pytest.approx([5.0215, 5.0215], abs=1e-12)
    assert [each.cold_ms for each in in_turns] == [{"search": 5.0}, {"search": 5.001}]

    machine = Machine(step_ns=1_000)
    alone = [
        latency.measure([("search", machine.answering(name, 5))], QUERIES, warmup=0, repeats=1, clock=machine)
        for name in "AB"
    ]
    one, other = (each.total_ms.mean() for each in alone)
    assert other - one == pytest.approx(0.021, abs=1e-12)


def test_values_in_turns_by_hand() -> None:
    """On a steady machine each system has its own times, whatever the others take: 3 ms, 1 + 4 ms, and 20 ms."""
    machine = Machine()
    systems = [
        [("search", machine.answering("a", 3))],
        [("encode", machine.answering("b", 1)), ("search", machine.answering("b", 4))],
        [("search", machine.answering("c", 20))],
    ]
    found = latency.measure_in_turns(systems, QUERIES[:7], warmup=2, repeats=3, clock=machine)
    assert [set(each.total_ms.tolist()) for each in found] == [{3.0}, {5.0}, {20.0}]
    assert {name: set(column.tolist()) for name, column in found[1].stage_ms.items()} == {
        "encode": {1.0},
        "search": {4.0},
    }
    assert [sum(each.cold_ms.values()) for each in found] == [3.0, 5.0, 20.0]
    assert [(each.warmup, each.repeats) for each in found] == [(2, 3)] * 3


def test_every_system_is_at_every_place_equally_often() -> None:
    """Three systems, 9 queries, 2 repeats: 18 rounds of one query each, and 6 times at each place."""
    machine = Machine()
    systems = [[("search", machine.answering(name, 1))] for name in "abc"]
    latency.measure_in_turns(systems, QUERIES[:9], warmup=3, repeats=2, clock=machine)
    warm_ups, counted = machine.answers[3:12], machine.answers[12:]
    assert Counter(warm_ups) == Counter((name, query) for name in "abc" for query in "012")
    rounds = [counted[start : start + 3] for start in range(0, len(counted), 3)]
    assert all(len({query for _, query in each}) == 1 for each in rounds)
    assert Counter(each[0][1] for each in rounds) == Counter(QUERIES[:9] * 2)
    for place in range(3):
        assert Counter(each[place][0] for each in rounds) == {"a": 6, "b": 6, "c": 6}
    assert len({tuple(name for name, _ in each) for each in rounds}) > 3  # no system always follows the same one


def test_throughput_in_turns_by_hand() -> None:
    """Batches of 20 queries in 100 ms and 250 ms, each batch 1 ms later than the one before.

    Uncounted ones take 0 and 1 ms more. In three rounds, numbered from 2, one system goes at 2, 5, 6 and the other at
    3, 4, 7, or the last round the other way round; the medians are 5 and 4, whichever is first.
    """
    machine = Machine(step_ns=MS)
    batches: list[Callable[[Sequence[str]], Any]] = [
        lambda queries: machine.answering("a", 100)(queries[0]),
        lambda queries: machine.answering("b", 250)(queries[0]),
    ]
    one, other = latency.throughput_in_turns(batches, QUERIES, repeats=3, clock=machine)
    late = 5 if machine.answers[2][0] == "a" else 4
    assert one == pytest.approx(20 / (0.100 + late / 1000))
    assert other == pytest.approx(20 / (0.250 + (9 - late) / 1000))


def test_no_system_has_no_turn() -> None:
    """And one without stages is refused among others too."""
    with pytest.raises(ValueError, match="latency needs a system"):
        latency.measure_in_turns([], ["1"])
    with pytest.raises(ValueError, match="latency needs stages"):
        latency.measure_in_turns([[("search", list)], []], ["1"])
    with pytest.raises(ValueError, match="throughput needs a system"):
        latency.throughput_in_turns([], ["1"])
