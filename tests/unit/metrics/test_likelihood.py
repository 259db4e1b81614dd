"""Losses and pseudo-perplexities against closed forms, brute force, and scipy's bootstrap and permutation tests."""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import bootstrap as scipy_bootstrap
from scipy.stats import permutation_test

from embeval import metrics
from embeval.core.protocols import Undefined
from embeval.core.records import ItemRecords
from embeval.core.specs import StatisticsOptions
from embeval.metrics import RatioOf
from embeval.metrics.likelihood import FAMILY, RATIOS
from embeval.stats import many, paired, scoring

Columns = dict[str, np.ndarray]

L2R, ORIGINAL = "within_word_l2r", "original"
STATISTICS = StatisticsOptions(resamples=999)


def of(name: str, columns: Mapping[str, Sequence[float]]) -> float | Undefined:
    """The metric of some columns."""
    return metrics.get(name).aggregate({column: np.array(values, dtype=float) for column, values in columns.items()})


def texts(n: int, seed: int, *, shift: float = 0.0) -> Columns:
    """PLL of n texts, of another length each; lengths are the same for every seed."""
    tokens = np.random.default_rng(0).integers(3, 60, n).astype(float)
    nats = tokens * (2.0 + shift) + np.sqrt(tokens) * np.random.default_rng(seed).normal(0, 1, n)
    return {f"pll_{L2R}": -nats, "tokens": tokens, "words": np.ceil(tokens / 2), "characters": 4 * tokens}


def records(columns: Columns, clusters: tuple[str, ...] | None = None) -> ItemRecords:
    """The same as items."""
    n = len(next(iter(columns.values())))
    return ItemRecords(unit="text", ids=tuple(f"t{row}" for row in range(n)), columns=columns, clusters=clusters)


def test_a_pseudo_perplexity_counts_tokens_and_not_sentences() -> None:
    """PLL of tokens (-1, -1) and (-3): exp(5 / 3) = 5.294, and not exp of the mean per sentence, (e^1 + e^3) / 2."""
    value = of(f"pppl_{L2R}", {f"pll_{L2R}": [-2, -3], "tokens": [2, 1]})
    assert value == pytest.approx(5.294490050470299, rel=1e-12)  # e^(5/3)
    assert value != pytest.approx((math.e + math.e**3) / 2, rel=0.5)


@pytest.mark.parametrize("vocabulary", [2, 1000, 30_522])
def test_a_uniform_model_has_the_size_of_its_vocabulary(vocabulary: int) -> None:
    """ln V nats and log2 V bits per token, a pseudo-perplexity of V, hits of 1 / V, whatever the lengths."""
    tokens = [3.0, 0.0, 17.0, 1.0]
    nats = [each * math.log(vocabulary) for each in tokens]
    masked: dict[str, list[float]] = {
        "nats": nats,
        "hits_1": [each / vocabulary for each in tokens],
        "masked_tokens": tokens,
    }
    assert of("mlm_loss", masked) == pytest.approx(math.log(vocabulary), rel=1e-12)
    assert of("mlm_loss_bits", masked) == pytest.approx(math.log2(vocabulary), rel=1e-12)
    assert of("mlm_accuracy", masked) == pytest.approx(1 / vocabulary)
    for mode in (L2R, ORIGINAL):
        assert of(f"pppl_{mode}", {f"pll_{mode}": [-each for each in nats], "tokens": tokens}) == pytest.approx(
            vocabulary, rel=1e-12
        )


def test_each_metric_by_hand() -> None:
    """Every ratio of two texts: sums 6 nats (PLL -6) over what each name says."""
    pll = {f"pll_{L2R}": [-2, -4], f"pll_{ORIGINAL}": [-1, -2]}
    masked = {"nats": [2, 4], "hits_1": [1, 0], "hits_5": [1, 2]}
    replaced = {"rtd_nats": [1, 2], "rtd_correct": [3, 5], "rtd_replaced_correct": [0, 1]}
    expected = {
        f"pppl_{L2R}": math.exp(6 / 5),
        f"word_pppl_{L2R}": math.exp(6 / 3),
        f"bits_per_character_{L2R}": 6 / math.log(2) / 20,
        f"pppl_{ORIGINAL}": math.exp(3 / 5),
        f"word_pppl_{ORIGINAL}": math.exp(3 / 3),
        f"bits_per_character_{ORIGINAL}": 3 / math.log(2) / 20,
        "mlm_loss": 6 / 4,
        "mlm_loss_bits": 6 / math.log(2) / 4,
        "mlm_accuracy": 1 / 4,
        "mlm_top_5": 3 / 4,
        "mlm_loss_per_word": 6 / 2,
        "mlm_bits_per_character": 6 / math.log(2) / 8,
        "rtd_loss": 3 / 10,
        "rtd_accuracy": 8 / 10,
        "rtd_recall": 1 / 4,
        "pll_accuracy": 0.75,
        "ll_accuracy": 0.25,
    }
    counted = {"tokens": [2, 3], "words": [1, 2], "characters": [8, 12], "masked_tokens": [1, 3]}
    counted |= {"masked_words": [1, 1], "masked_characters": [3, 5], "rtd_tokens": [4, 6], "rtd_replaced": [1, 3]}
    shares = {"pll_accuracy": [1, 0.5], "ll_accuracy": [0.5, 0]}
    columns: Mapping[str, Sequence[float]] = {**pll, **masked, **replaced, **counted, **shares}
    assert {name: of(name, columns) for name in FAMILY.names()} == pytest.approx(expected, rel=1e-12)


def test_direction_and_what_is_counted() -> None:
    """Losses and perplexities are better when low; what is per token of a tokenizer says so."""
    better = {"mlm_accuracy", "mlm_top_5", "rtd_accuracy", "rtd_recall", "pll_accuracy", "ll_accuracy"}
    free = {f"{kind}_{mode}" for kind in ("word_pppl", "bits_per_character") for mode in (L2R, ORIGINAL)}
    free |= {"mlm_loss_per_word", "mlm_bits_per_character", "pll_accuracy", "ll_accuracy"}
    made = [metrics.get(name) for name in FAMILY.names()]
    assert {metric.name for metric in made if metric.higher_is_better} == better
    assert {metric.name for metric in made if not getattr(metric, "per_token", False)} == free
    assert {metric.version for metric in made} == {1}


@pytest.mark.parametrize("metric", RATIOS, ids=lambda metric: metric.name)
def test_undefined_is_never_a_number(metric: RatioOf) -> None:
    """Nothing counted: the reason names what; resamples and swaps of nothing but such items are NaN, without a word."""
    empty = {metric.numerator: np.array([-1.0, 0.0, -2.0]), metric.denominator: np.array([0.0, 0.0, 4.0])}
    first = {name: column[:2] for name, column in empty.items()}
    assert metric.aggregate(first) == Undefined(f"no_{metric.denominator}")
    assert metric.aggregate({name: column[:0] for name, column in empty.items()}) == Undefined("too_few_items")
    values = metric.resampler([metric], empty)(np.array([[3, 1], [0, 1], [0, 1]]))
    assert np.isnan(values[0]).tolist() == [True, False]
    full = {**empty, metric.denominator: np.array([1.0, 1.0, 0.0])}
    differences = metric.swapper([metric], empty, full)(np.array([[1.0, 1.0], [1.0, 1.0], [1.0, -1.0]]))
    assert np.isnan(differences[0]).tolist() == [False, True]


def test_a_perplexity_beyond_a_float_is_undefined() -> None:
    """e^709.78 is the largest one; a mean above it gives a reason, and no infinity and no warning."""
    name = f"pppl_{L2R}"
    largest = math.log(sys.float_info.max)
    assert of(name, {f"pll_{L2R}": [-709.0], "tokens": [1]}) == pytest.approx(math.exp(709.0), rel=1e-12)
    assert of(name, {f"pll_{L2R}": [-largest - 0.1], "tokens": [1]}) == Undefined("overflow")
    assert of("mlm_loss", {"nats": [1e308, 1e308], "masked_tokens": [1, 1]}) == Undefined("overflow")
    metric = metrics.get(name)
    columns = {f"pll_{L2R}": np.array([-1.0, -900.0]), "tokens": np.ones(2)}
    values = metric.resampler([metric], columns)(np.array([[2, 0], [0, 2]]))  # type: ignore[attr-defined]
    assert values[0, 0] == pytest.approx(math.e)
    assert np.isnan(values[0, 1])
    low = {f"pll_{L2R}": np.array([900.0]), "tokens": np.ones(1)}  # no log-likelihood is positive, and yet no warning
    assert metric.aggregate(low) == 0.0


def test_what_a_value_takes() -> None:
    """``at`` is the inverse: so much of the numerator per unit gives the value."""
    for metric in RATIOS:
        columns = {metric.numerator: np.array([3.0, 7.0]) * metric.at(2.5), metric.denominator: np.array([3.0, 7.0])}
        assert metric.aggregate(columns) == pytest.approx(2.5, rel=1e-12), metric.name


SMALL = st.integers(1, 7).flatmap(
    lambda n: st.tuples(
        *(arrays(float, n, elements=st.floats(-50, 50, width=32)) for _ in range(2)),
        *(arrays(float, n, elements=st.integers(0, 9).map(float)) for _ in range(2)),
        arrays(np.int64, (n, 3), elements=st.integers(0, 4)),
        arrays(bool, (n, 3)),
    )
)


@given(SMALL)
def test_resamples_and_swaps_by_brute_force(drawn: tuple[np.ndarray, ...]) -> None:
    """Items repeated as often as counted; of swapped ones both sums change sides. All ratios in one go."""
    above, above_other, below, below_other, counts, stays = drawn
    one, other = {}, {}
    for place, name in enumerate(dict.fromkeys(name for metric in RATIOS for name in metric.columns)):
        is_above = name in {metric.numerator for metric in RATIOS}
        one[name], other[name] = (above + place, above_other) if is_above else (below, below_other)
    resampled = RatioOf.resampler(RATIOS, one)(counts)
    swapped = RatioOf.swapper(RATIOS, one, other)(np.where(stays, 1.0, -1.0))
    for row, metric in enumerate(RATIOS):
        for column in range(3):
            repeated = {name: np.repeat(one[name], counts[:, column]) for name in metric.columns}
            same(resampled[row, column], metric.aggregate(repeated))
            keep = stays[:, column]
            sides = [
                metric.aggregate({name: np.where(keep, a[name], b[name]) for name in metric.columns})
                for a, b in ((one, other), (other, one))
            ]
            if isinstance(sides[0], Undefined) or isinstance(sides[1], Undefined):
                assert np.isnan(swapped[row, column])
            else:
                scale = max(abs(sides[0]), abs(sides[1]), 1.0)
                assert swapped[row, column] == pytest.approx(sides[1] - sides[0], abs=1e-9 * scale)


def same(found: float, expected: float | Undefined) -> None:
    """NaN stands for undefined."""
    if isinstance(expected, Undefined):
        assert np.isnan(found)
    else:
        assert found == pytest.approx(expected, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("name", [f"pppl_{L2R}", f"bits_per_character_{L2R}"])
def test_the_interval_is_that_of_scipy(name: str) -> None:
    """BCa of a score: ``scipy.stats.bootstrap`` (paired, BCa) on the same texts, within the error of resampling."""
    metric: Any = metrics.get(name)
    columns = texts(80, 1)
    above, below = (columns[each] for each in metric.columns)

    def statistic(numerator: np.ndarray, denominator: np.ndarray, axis: int = -1) -> Any:
        ratio = metric.factor * numerator.sum(axis=axis) / denominator.sum(axis=axis)
        return np.exp(ratio) if metric.exponential else ratio

    expected = scipy_bootstrap(
        (above, below), statistic, paired=True, n_resamples=20_000, method="BCa", random_state=np.random.default_rng(1)
    ).confidence_interval
    value = scoring.estimate(records(columns), [metric], StatisticsOptions(resamples=20_000), "x")[name].to_value(
        StatisticsOptions()
    )
    width = expected.high - expected.low
    assert value.interval == "bca"
    assert value.ci_low is not None
    assert value.ci_high is not None
    assert [value.ci_low, value.ci_high] == pytest.approx([expected.low, expected.high], abs=0.03 * width)


def test_the_p_value_is_that_of_scipy() -> None:
    """All 2^11 swaps of eleven texts: equal to ``scipy.stats.permutation_test`` on the indices of both sides."""
    name, n = f"pppl_{L2R}", 11
    one, other = texts(n, 1), texts(n, 2, shift=0.15)
    both = {column: np.stack([one[column], other[column]]) for column in (f"pll_{L2R}", "tokens")}

    def statistic(baseline: np.ndarray, candidate: np.ndarray, axis: int = -1) -> Any:
        def value(side: np.ndarray) -> Any:
            place = side.astype(int)
            item = np.broadcast_to(np.arange(n), place.shape)
            sums = [both[column][place, item].sum(axis=axis) for column in (f"pll_{L2R}", "tokens")]
            return np.exp(-sums[0] / sums[1])

        return value(candidate) - value(baseline)

    expected = permutation_test(
        (np.zeros(n), np.ones(n)), statistic, permutation_type="samples", n_resamples=np.inf, vectorized=True
    )
    found = paired.compare(records(one), records(other), [metrics.get(name)], StatisticsOptions(resamples=4096), "x")[
        name
    ]
    assert found.contrast().estimate == pytest.approx(expected.statistic, rel=1e-12)
    p = found.p_value()
    assert p is not None
    assert p[0] == pytest.approx(expected.pvalue, rel=1e-12)
    assert p[1] == "randomization"


def test_standard_errors_are_those_of_the_delta_method() -> None:
    """Of a board's pairs: the jackknife's error of a difference of PPPL is near the linearised one of n texts."""
    name, n = f"pppl_{L2R}", 400
    sides = [texts(n, 1), texts(n, 2, shift=0.1), texts(n, 3)]
    spread = many.spread([records(side) for side in sides], metrics.get(name))
    for i, j in itertools.combinations(range(3), 2):
        pulls = []
        for side in (sides[i], sides[j]):
            mean = -side[f"pll_{L2R}"].sum() / side["tokens"].sum()
            pulls.append(math.exp(mean) * (-side[f"pll_{L2R}"] - mean * side["tokens"]) / side["tokens"].mean())
        expected = (pulls[1] - pulls[0]).std(ddof=1) / math.sqrt(n)
        assert math.sqrt(spread.variances[i, j]) == pytest.approx(expected, rel=0.02)
    assert spread.different[0, 1] == n


def test_texts_of_a_cluster_stay_together() -> None:
    """A text that is there four times, as a cluster: the interval of n texts, and not the narrower one of 4 n."""
    columns = texts(60, 1)
    fourfold = {name: np.repeat(column, 4) for name, column in columns.items()}
    clusters = tuple(f"c{row // 4:03}" for row in range(240))
    metric = metrics.get(f"pppl_{L2R}")
    widths = []
    for side in (records(columns), records(fourfold, clusters), records(fourfold)):
        value = scoring.estimate(side, [metric], STATISTICS, "x")[metric.name].to_value(STATISTICS)
        assert value.ci_low is not None
        assert value.ci_high is not None
        widths.append(value.ci_high - value.ci_low)
    assert widths[1] == pytest.approx(widths[0], rel=0.15)
    assert widths[2] == pytest.approx(widths[0] / 2, rel=0.15)
