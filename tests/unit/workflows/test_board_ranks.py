"""Boards from stored results: which models are tested, why others aren't, and columns that are refused."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from embeval import metrics
from embeval.core import strict_json
from embeval.core.result import Imported, MetricValue
from embeval.core.signature import NO_TOKENIZER, SEVERAL_TOKENIZERS
from embeval.core.specs import StatisticsOptions
from embeval.leaderboard import definition, ranking
from embeval.leaderboard.board import build
from embeval.leaderboard.snapshot import Model, Snapshot
from embeval.stats import paired
from embeval.stats.student import two_sided
from embeval.store.results import ResultStore, Stored
from embeval.workflows.boards import building, testing
from tests.support.stored import put

N = 40


@pytest.fixture
def store(tmp_path: Path) -> ResultStore:
    """A folder of results, beside the board's definition."""
    (tmp_path / "results").mkdir()
    (tmp_path / "board.yaml").write_text("results: [results]\n")
    return ResultStore(tmp_path / "results")


def values(seed: int, skill: float = 0.5, n: int = N) -> list[float]:
    """nDCG of queries."""
    return list(np.clip(np.random.default_rng(seed).normal(skill, 0.2, n), 0.0, 1.0))


def model(store: ResultStore, name: str, seed: int, skill: float = 0.5, tasks: Sequence[str] = ("docs",)) -> None:
    """Results of a model on some tasks."""
    for place, task in enumerate(tasks):
        put(store, {"ndcg_at_10": values(seed + 100 * place, skill)}, model=f"org/{name}", task=task)


def built(store: ResultStore) -> Snapshot:
    """The board of a folder."""
    return building.snapshot(definition.load(store.root.parent / "board.yaml"))


def rows(made: Snapshot) -> dict[str, Model]:
    """By label."""
    return {each.label: each for each in made.models}


def stored(store: ResultStore, name: str) -> Stored:
    """The result of a model on its only task."""
    (found,) = [each for each in store.find() if each.result.model.name == f"org/{name}"]
    return found


def untested(made: Snapshot) -> dict[str, str | None]:
    """Label -> why it has no interval."""
    return {each.label: each.standing.untested for each in made.models}


def test_models_with_items_are_tested(store: ResultStore) -> None:
    """The pairs of the board are those of the models in the order of its rows."""
    model(store, "good", 1, 0.8)
    model(store, "bad", 2, 0.2)
    made = built(store)
    assert [(each.label, each.standing.rank) for each in made.models] == [("good", 1), ("bad", 2)]
    assert made.tested == (0, 1)
    assert [(each.standing.rank_low, each.standing.rank_high) for each in made.models] == [(1, 1), (2, 2)]
    difference = np.array(values(1, 0.8)) - np.array(values(2, 0.2))
    (pairs,) = made.pairs
    assert list(pairs.variances) == [pytest.approx(float(np.var(difference, ddof=1)) / N, rel=1e-5)]
    assert (pairs.different, pairs.freedom) == ((N,), N - 1)


def test_how_sure_is_for_the_board_to_say(store: ResultStore) -> None:
    """What is apart at 50 % isn't at 99.99999 %."""
    model(store, "better", 1, 0.6)
    model(store, "worse", 2, 0.5)
    found = {}
    for level in (0.5, 0.9999999):
        (store.root.parent / "board.yaml").write_text(f"results: [results]\nlevel: {level}\n")
        made = built(store)
        assert made.level == level
        found[level] = [(each.standing.rank_low, each.standing.rank_high) for each in made.models]
    assert found == {0.5: [(1, 1), (2, 2)], 0.9999999: [(1, 2), (1, 2)]}


def test_items_in_another_order_are_the_same_items(store: ResultStore) -> None:
    """They are put in one order: the same model twice differs nowhere."""
    own = values(1)
    put(store, {"ndcg_at_10": own}, model="org/one")
    put(store, {"ndcg_at_10": own[::-1]}, model="org/other", ids=[f"q{row}" for row in range(N)][::-1])
    (pairs,) = built(store).pairs
    assert (pairs.variances, pairs.different) == ((0.0,), (0,))


def test_models_with_other_items_are_not_tested(store: ResultStore) -> None:
    """One that has another query says so; the others are held against each other."""
    model(store, "great", 1, 0.9)
    model(store, "good", 2, 0.7)
    put(store, {"ndcg_at_10": values(3)}, model="org/odd", ids=[f"x{row}" for row in range(N)])
    assert untested(built(store)) == {"great": None, "good": None, "odd": "other items than the others on docs"}


def test_gaps_and_imported_values_have_reasons(store: ResultStore) -> None:
    """A model without a result on a task, one whose metric is undefined, and one that was published elsewhere."""
    for name, seed in (("one", 1), ("two", 2)):
        model(store, name, seed, tasks=("docs", "faq"))
    model(store, "partly", 3)
    put(store, {"ndcg_at_10": [np.nan] * N}, model="org/undefined", task="faq")
    model(store, "undefined", 4)
    for task in ("docs", "faq"):
        published(store, "one", task, 0.6)
    made = built(store)
    assert untested(made) == {
        "one": None,
        "two": None,
        "partly": "a gap on faq",
        "undefined": "no value on faq: too_few_items",
        "one (published=True) (imported)": testing.IMPORTED,
    }
    assert rows(made)["one (published=True) (imported)"].standing.rank is not None
    assert rows(made)["undefined"].standing.rank is None


def published(store: ResultStore, name: str, task: str, value: float) -> None:
    """A value of a model that was published elsewhere, without items."""
    (like,) = [each.result for each in store.find() if (each.result.model.label, each.result.task.name) == (name, task)]
    store.put(
        replace(
            like,
            items=None,
            scores={"ndcg_at_10": MetricValue(value=value, n_items=0)},
            model=replace(like.model, args={"published": True}),
            signature=replace(
                like.signature,
                protocol={"task": task, "imported": True},
                model_digest=replace(like.model, args={"published": True}).digest,
            ),
            imported=Imported(source="x.json", mteb_version="2.0.0", dataset_revision="abc"),
        )
    )


def test_the_best_of_many_are_tested(store: ResultStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fifty, by what the board ranks by: here the lowest cost is best."""
    assert testing.MOST_TESTED == 50
    monkeypatch.setattr(testing, "MOST_TESTED", 2)
    for name, seed in (("dear", 1), ("cheap", 2), ("cheapest", 3)):
        cost = 10.0 ** (4 - seed) * np.array(values(seed)) + 1.0
        put(store, {"mae": list(cost)}, model=f"org/{name}", measured=["mae"])
    found = untested(built(store))
    assert {label for label, reason in found.items() if reason is None} == {"cheap", "cheapest"}
    assert found["dear"] == testing.NOT_AMONG_BEST


def test_broken_items_are_told_and_the_next_model_takes_the_place(
    store: ResultStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the place where results lie on this machine: pages must not depend on it."""
    monkeypatch.setattr(testing, "MOST_TESTED", 2)
    for name, skill in (("broken", 0.9), ("good", 0.7), ("bad", 0.3)):
        model(store, name, int(10 * skill), skill)
    found = stored(store, "broken")
    assert found.result.items is not None
    (found.path.parent / found.result.items.file).write_bytes(b"no parquet")
    made = built(store)
    assert untested(made) == {"broken": testing.UNREADABLE, "good": None, "bad": None}
    (remark,) = [each for each in made.remarks if "not tested" in each]
    assert remark.startswith("broken is not tested: ")
    assert str(store.root) not in remark
    assert rows(made)["broken"].standing.rank == 1


def test_scores_that_do_not_follow_from_the_items_are_told(store: ResultStore) -> None:
    """A value that was changed by hand isn't tested."""
    for name, skill in (("changed", 0.9), ("good", 0.7), ("bad", 0.3)):
        model(store, name, int(10 * skill), skill)
    path = stored(store, "changed").path
    value = strict_json.loads(path.read_bytes())
    assert isinstance(value, dict)
    value["scores"]["ndcg_at_10"]["value"] = 0.99
    path.write_text(strict_json.dumps(value))
    made = built(store)
    assert untested(made) == {"changed": testing.UNSOUND, "good": None, "bad": None}
    assert any("the items give" in each and str(store.root) not in each for each in made.remarks)


def test_values_of_other_items_tell_nobody_apart(store: ResultStore) -> None:
    """A query without a value on one side only: no test with that model, and a remark says so."""
    model(store, "one", 1, 0.9)
    model(store, "two", 2, 0.3)
    put(store, {"ndcg_at_10": [np.nan, *values(3, 0.6)[1:]]}, model="org/lacking")
    made = built(store)
    assert [(each.label, each.standing.letters) for each in made.models] == [
        ("one", "a"),
        ("lacking", "ab"),
        ("two", "b"),
    ]
    assert any(each.startswith("2 pairs of models can't be told apart") for each in made.remarks)


def test_columns_of_both_directions_are_told(store: ResultStore) -> None:
    """No means, and Borda's ranks without intervals; nothing is read for tests that can't be made."""
    (store.root.parent / "board.yaml").write_text("results: [results]\nrank_by: borda\n")
    for name, seed in (("one", 1), ("two", 2)):
        model(store, name, seed, 0.3 * seed)
        put(store, {"mae": values(seed, 0.3 * seed)}, model=f"org/{name}", task="scores")
    made = built(store)
    assert [(each.standing.rank, each.standing.mean_task, each.standing.letters) for each in made.models] == [
        (1, None, None)
    ] * 2
    assert made.tested == ()
    assert set(untested(made).values()) == {ranking.TWO_WAYS}
    assert "No means, and nothing tested: higher is better in some columns and lower in others." in made.remarks


def test_ranked_gaps_are_told(store: ResultStore) -> None:
    """Where the definition asks for it, models with gaps are ranked, and a remark says how."""
    (store.root.parent / "board.yaml").write_text("results: [results]\ngaps: rank\n")
    for name, skill in (("one", 0.3), ("two", 0.6)):
        model(store, name, int(10 * skill), skill, ("docs", "faq"))
    model(store, "partly", 3, 0.65)
    made = built(store)
    assert [(each.label, each.standing.rank, each.standing.gaps) for each in made.models] == [
        ("two", 1, 0),
        ("partly", 2, 1),
        ("one", 3, 0),
    ]
    assert [(each.standing.rank_low, each.standing.rank_high) for each in made.models] == [(1, 2), (None, None), (2, 3)]
    assert "Models with gaps are ranked as well, as if they were as bad as the worst there." in made.remarks


def test_times_are_not_tested(store: ResultStore) -> None:
    """Queries timed in one run say nothing of the next: no model is told apart, and a remark says why."""
    for name, seed in (("quick", 1), ("slow", 9)):
        times = seed * (np.array(values(seed)) + 1.0)
        put(store, {"latency_ms": list(times)}, model=f"org/{name}", measured=["latency_p95_ms"])
    made = built(store)
    assert [(each.label, each.standing.rank, each.standing.letters) for each in made.models] == [
        ("quick", 1, "a"),
        ("slow", 2, "a"),
    ]
    assert any(each.endswith("tested on docs: times differ from run to run.") for each in made.remarks)


def test_p_values_agree_with_those_of_compare(store: ResultStore) -> None:
    """Student's p beside that of 10,000 paired swaps (``stats.randomization``), on nDCG with ties: within a fifth."""
    rng = np.random.default_rng(5)
    base = rng.choice([0.0, 0.39, 0.63, 1.0], 200)
    other = np.where(rng.random(200) < 0.4, rng.choice([0.0, 0.39, 0.63, 1.0], 200) + 0.1, base).clip(0.0, 1.0)
    put(store, {"ndcg_at_10": list(base)}, model="org/one")
    put(store, {"ndcg_at_10": list(other)}, model="org/other")
    (pairs,) = built(store).pairs
    one, two = (store.records(stored(store, name)) for name in ("one", "other"))
    swapped = paired.compare(one, two, [metrics.get("ndcg_at_10")], StatisticsOptions(), "x")["ndcg_at_10"].p_value()
    assert swapped is not None
    gap = float(other.mean() - base.mean())
    assert pairs.variances[0] is not None
    found = two_sided(gap / pairs.variances[0] ** 0.5, pairs.freedom)
    assert 0.001 < found < 0.2
    assert found == pytest.approx(swapped[0], rel=0.2)


def lost(store: ResultStore, name: str, seed: int, tokenizer: str | None) -> None:
    """A loss per token of a model's own tokenizer, of texts of one token."""
    columns = {"nats": values(seed), "masked_tokens": [1.0] * len(values(seed))}
    put(store, columns, model=f"org/{name}", task="loss", measured=["mlm_loss"], tokenizer=tokenizer)


@pytest.mark.parametrize(
    ("tokenizers", "refused"),
    [
        (("wordpiece", "wordpiece"), {None}),
        (("wordpiece", "bpe"), {SEVERAL_TOKENIZERS}),
        (("wordpiece", None), {NO_TOKENIZER}),
        ((None, None), {NO_TOKENIZER}),
    ],
)
def test_values_per_token_are_ranked_of_one_tokenizer_only(
    store: ResultStore, tokenizers: tuple[str | None, str | None], refused: set[str | None]
) -> None:
    """Refused columns say why, and models are ranked by the others alone; nats and errors together have no mean."""
    for name, seed, tokenizer in zip(("one", "other"), (1, 2), tokenizers, strict=True):
        lost(store, name, seed, tokenizer)
        put(store, {"mae": values(seed + 5)}, model=f"org/{name}", measured=["mae"])
    made = built(store)
    of_loss = [column for column in made.columns if column.task == "loss"]
    assert {column.refused for column in of_loss} == refused
    table = build([each.result for each in store.find()])
    if refused == {None}:
        assert {(each.standing.rank, each.standing.mean_task, each.standing.untested) for each in made.models} == {
            (None, None, ranking.UNITS)
        }
        assert "No means, and nothing tested: the columns have different units." in made.remarks
        assert {row.mean for row in table.rows} == {None}
    else:
        assert {each.standing.rank for each in made.models} == {1, 2}
        expected = sorted(float(np.mean(values(seed + 5))) for seed in (1, 2))
        assert [each.standing.mean_task for each in made.models] == pytest.approx(expected)
        assert [row.mean for row in table.rows] == pytest.approx(expected)
    assert any(each.startswith("Not ranked by loss") for each in table.remarks()) == (refused != {None})


def test_values_per_word_are_ranked_whatever_the_tokenizers(store: ResultStore) -> None:
    """The same nats over the same words: one column, ranked by the smaller loss, though tokens differ."""
    for name, seed, tokenizer in (("one", 1, "wordpiece"), ("other", 2, "bpe"), ("old", 3, None)):
        columns = {"nats": values(seed), "masked_words": [2.0] * len(values(seed))}
        put(store, columns, model=f"org/{name}", task="loss", measured=["mlm_loss_per_word"], tokenizer=tokenizer)
    made = built(store)
    assert [column.refused for column in made.columns] == [None]
    means = {model.label: model.cells[0].value for model in made.models if model.cells[0] is not None}
    assert means == pytest.approx(
        {name: np.mean(values(seed)) / 2 for name, seed in (("one", 1), ("other", 2), ("old", 3))}
    )
    assert [model.label for model in made.models] == sorted(means, key=lambda name: means[name] or 0.0)
