"""From collected records to results, with every number worked out by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest

from embeval import metrics
from embeval.core.ir import Run, TieRule
from embeval.core.provenance import Provenance
from embeval.core.records import ItemRecords
from embeval.core.result import Timings
from embeval.core.specs import DatasetRef, ModelSpec, StatisticsOptions, TaskSpec
from embeval.runner import assemble
from embeval.runner.assemble import Evidence, Part

NONE = StatisticsOptions(resamples=0)
MODEL = ModelSpec(name="org/model", revision="builtin:1")
TASK = TaskSpec(name="mine", type="sts", dataset=DatasetRef(path="pairs.jsonl", split="dev"))
TIMINGS = Timings(started_at="2020-01-01T00:00:00+00:00", wall_s=1.0, cpu_s=2.0)


def records(gold: Sequence[float], cosine: Sequence[float], subsets: Sequence[str] = ()) -> ItemRecords:
    """Pairs p0, p1, … with a gold score and a cosine each."""
    return ItemRecords(
        unit="pair",
        ids=tuple(f"p{number}" for number in range(len(gold))),
        columns={"gold": np.array(gold, dtype=np.float64), "cosine": np.array(cosine, dtype=np.float64)},
        slices={"subset": tuple(subsets)} if subsets else {},
    )


def evidence(of: ItemRecords, run: Run | None = None) -> Evidence:
    """What a task and a model left behind."""
    return Evidence(
        model=MODEL,
        task=TASK,
        protocol={"data": "abc", "split": "dev"},
        metrics=[metrics.get("cosine_spearman"), metrics.get("cosine_pearson")],
        records=of,
        provenance=Provenance(python="3", packages={}, os="os", cpu="cpu", n_cpus=1),
        run=run,
        counts={"pairs": len(of)},
        warnings=("mind this",),
        prompts={"text": "p: "},
    )


def values(parts: Sequence[Part], metric: str = "cosine_spearman") -> Mapping[str, float | None]:
    """Sub-set -> value of a metric."""
    return {part.result.subset: part.result.scores[metric].value for part in parts}


# A: order kept. B: the two best exchanged. The gold of B is interleaved with that of A.
GOLD = [1.0, 3.0, 5.0, 7.0, 2.0, 4.0, 6.0]
COSINE = [0.1, 0.2, 0.3, 0.4, 0.5, 0.9, 0.7]
SUBSETS = ["A", "A", "A", "A", "B", "B", "B"]


def test_each_sub_set_their_means_and_all() -> None:
    """A 1, B 1/2; mean 3/4, weighted by items (4 + 3/2) / 7; pooled by ranks over all seven."""
    parts = assemble.results(evidence(records(GOLD, COSINE, SUBSETS)), NONE, None)
    assert [part.result.subset for part in parts] == ["A", "B", "mean", "wmean", "all"]
    # Pooled: gold ranks 1 3 5 7 2 4 6, cosine ranks 1 2 3 4 5 7 6; squared gaps 0 1 4 9 9 9 0 = 32.
    assert values(parts) == {
        "A": pytest.approx(1.0),
        "B": pytest.approx(0.5),
        "mean": pytest.approx(0.75),
        "wmean": pytest.approx(5.5 / 7),
        "all": pytest.approx(1 - 6 * 32 / (7 * 48)),
    }


def test_every_metric_is_averaged_by_itself() -> None:
    """Pearson of A is 1 (a straight line) and of B 1/2; its means follow."""
    assert values(assemble.results(evidence(records(GOLD, COSINE, SUBSETS)), NONE, None), "cosine_pearson") == {
        "A": pytest.approx(1.0),
        # Gold -2 0 2 and cosine -0.2 0.2 0 around their means: 0.4 / sqrt(8 * 0.08).
        "B": pytest.approx(0.5),
        "mean": pytest.approx(0.75),
        "wmean": pytest.approx(5.5 / 7),
        "all": pytest.approx(float(np.corrcoef(GOLD, COSINE)[0, 1])),
    }


def test_items_of_each_part() -> None:
    """A sub-set holds its own rows, the pooled result and the means hold all; counts of items follow."""
    parts = assemble.results(evidence(records(GOLD, COSINE, SUBSETS)), NONE, None)
    ids = {part.result.subset: part.records.ids for part in parts}
    everything = tuple(f"p{number}" for number in range(7))
    assert ids == {
        "A": everything[:4],
        "B": everything[4:],
        "mean": everything,
        "wmean": everything,
        "all": everything,
    }
    assert {part.result.subset: part.result.scores["cosine_spearman"].n_items for part in parts} == {
        "A": 4,
        "B": 3,
        "mean": 7,
        "wmean": 7,
        "all": 7,
    }


@pytest.mark.parametrize("tokenizer", [None, "aa"])
def test_the_tokenizer_stands_in_the_signature_of_each_part(tokenizer: str | None) -> None:
    """Of sub-sets and means as of the whole, and outside of the protocol."""
    parts = assemble.results(replace(evidence(records(GOLD, COSINE, SUBSETS)), tokenizer=tokenizer), NONE, None)
    assert [part.result.signature.tokenizer for part in parts] == [tokenizer] * 5
    assert all("tokenizer" not in part.result.signature.protocol for part in parts)


@pytest.mark.parametrize("subsets", [(), ["only"] * 7])
def test_nothing_to_average(subsets: Sequence[str]) -> None:
    """Without sub-sets, or with a single one, there is one result: all."""
    parts = assemble.results(evidence(records(GOLD, COSINE, subsets)), NONE, None)
    assert [part.result.subset for part in parts] == ["all"]


def test_undefined_in_one_sub_set_is_undefined_in_the_means() -> None:
    """A constant gold has no correlation: null with the reason, never 0; the pooled value exists."""
    parts = assemble.results(evidence(records([2.0, 2.0, 1.0, 3.0], [0.1, 0.2, 0.3, 0.4], "AABB")), NONE, None)
    found = {part.result.subset: part.result.scores["cosine_spearman"] for part in parts}
    assert (found["A"].value, found["A"].reason) == (None, "constant_input")
    assert found["B"].value == pytest.approx(1.0)
    for weighting in ("mean", "wmean"):
        assert (found[weighting].value, found[weighting].reason) == (None, "undefined_in_subset:A")
    # Gold ranks 2.5 2.5 1 4, cosine ranks 1 2 3 4: covariance 1.5, variances 4.5 and 5.
    assert found["all"].value == pytest.approx(1.5 / np.sqrt(4.5 * 5.0))


def test_unscored_items_are_left_out_and_counted() -> None:
    """NaN in a column means no value: the pair counts as unscored in its sub-set, in the means and in all."""
    cosine = [*COSINE[:5], np.nan, COSINE[6]]
    parts = assemble.results(evidence(records(GOLD, cosine, SUBSETS)), NONE, None)
    found = {part.result.subset: part.result.scores["cosine_spearman"] for part in parts}
    assert {name: (value.n_items, value.n_unscored) for name, value in found.items()} == {
        "A": (4, 0),
        "B": (2, 1),
        "mean": (6, 1),
        "wmean": (6, 1),
        "all": (6, 1),
    }
    assert found["wmean"].value == pytest.approx((4 * 1.0 + 2 * 1.0) / 6)


def test_one_for_all_comes_last_and_alone_carries_the_ranking() -> None:
    """Its file means "finished", so it is written after the others."""
    run = Run.from_rows([("p0", "d1", 1.0)], ties=TieRule.DOC_ID_DESC)
    parts = assemble.results(evidence(records(GOLD, COSINE, SUBSETS), run), NONE, None)
    assert parts[-1].result.subset == assemble.ALL == "all"
    assert [part.run is run for part in parts] == [False, False, False, False, True]


def test_results_say_what_was_measured_and_how() -> None:
    """Model, task, split, counts, warnings, statistics and timings come through; the first metric is the main one."""
    (part,) = assemble.results(evidence(records(GOLD, COSINE)), NONE, TIMINGS)
    result = part.result
    assert (result.status, result.model, result.task, result.split) == ("ok", MODEL, TASK, "dev")
    assert result.main_score == "cosine_spearman"
    assert list(result.scores) == ["cosine_spearman", "cosine_pearson"]
    assert (result.counts, result.warnings) == ({"pairs": 7}, ("mind this",))
    assert (result.statistics, result.timings, result.error) == (NONE, TIMINGS, None)


def test_the_signature_names_everything_that_must_agree() -> None:
    """Protocol with the sub-set, version of each metric, model and prompts; sub-sets differ in nothing else."""
    parts = assemble.results(evidence(records(GOLD, COSINE, SUBSETS)), NONE, None)
    signatures = {part.result.subset: part.result.signature for part in parts}
    assert signatures["A"].protocol == {"data": "abc", "split": "dev", "subset": "A"}
    assert signatures["A"].metrics == {"cosine_spearman": 1, "cosine_pearson": 1}
    assert signatures["A"].model_digest == MODEL.digest
    assert signatures["A"].prompts == {"text": "p: "}
    (difference,) = signatures["A"].differences(signatures["all"])
    assert difference.startswith("subset: ")
    assert len({signature.protocol_digest for signature in signatures.values()}) == 5
    assert assemble.signature(
        MODEL, {"data": "abc", "split": "dev"}, "A", evidence(records(GOLD, COSINE)).metrics, {}
    ) == replace(signatures["A"], prompts={})


def test_intervals_follow_the_statistics() -> None:
    """A value lies in its interval; another seed gives another one; none without resamples."""
    rng = np.random.default_rng(0)
    gold = rng.normal(size=60)
    of = records(gold.tolist(), (gold + rng.normal(size=60)).tolist(), ["A"] * 30 + ["B"] * 30)

    def interval(statistics: StatisticsOptions, subset: str) -> tuple[float, float]:
        parts = assemble.results(evidence(of), statistics, None)
        value = next(part.result for part in parts if part.result.subset == subset).scores["cosine_spearman"]
        assert value.value is not None
        assert value.ci_low is not None
        assert value.ci_high is not None
        assert value.ci_low < value.value < value.ci_high
        return value.ci_low, value.ci_high

    for subset in ("A", "mean", "wmean", "all"):
        once = interval(StatisticsOptions(resamples=200), subset)
        assert interval(StatisticsOptions(resamples=200), subset) == once
        assert interval(StatisticsOptions(resamples=200, seed=1), subset) != once
        narrow = interval(StatisticsOptions(resamples=200, level=0.5), subset)
        assert once[0] < narrow[0] < narrow[1] < once[1]
    for part in assemble.results(evidence(of), NONE, None):
        value = part.result.scores["cosine_spearman"]
        assert (value.ci_low, value.ci_high) == (None, None)


def test_the_interval_of_a_part_does_not_hang_on_the_others() -> None:
    """A has the same interval with C beside it as without: streams belong to a task, split and sub-set."""
    statistics = StatisticsOptions(resamples=200)
    of = records(GOLD, COSINE, SUBSETS)
    first = assemble.results(evidence(of), statistics, None)[0].result
    more = records([*GOLD, 1.0, 9.0], [*COSINE, 0.3, 0.8], [*SUBSETS, "C", "C"])
    assert assemble.results(evidence(more), statistics, None)[0].result.scores == first.scores


def test_sub_sets_are_resampled_independently() -> None:
    """Two sub-sets with equal rows have different intervals, and their mean is surer than either: by sqrt 2."""
    rng = np.random.default_rng(0)
    gold = rng.normal(size=100)
    cosine = gold + rng.normal(size=100)
    of = records([*gold, *gold], [*cosine, *cosine], ["A"] * 100 + ["B"] * 100)
    found = {
        part.result.subset: part.result.scores["cosine_pearson"]
        for part in assemble.results(evidence(of), StatisticsOptions(resamples=2000), None)
    }
    width = {
        subset: (value.ci_high or 0.0) - (value.ci_low or 0.0) for subset, value in found.items() if subset != "all"
    }
    assert found["A"].value == found["B"].value
    assert found["A"].ci_low != found["B"].ci_low
    assert (width["A"] + width["B"]) / 2 / width["mean"] == pytest.approx(np.sqrt(2), rel=0.1)
