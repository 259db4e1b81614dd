"""Results: made by the runner's own code, written as strict JSON and read back."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from embeval import metrics
from embeval.core import border, provenance, strict_json
from embeval.core.provenance import Provenance
from embeval.core.records import ItemRecords
from embeval.core.result import (
    SCHEMA_VERSION,
    Failure,
    FileRef,
    Imported,
    MetricValue,
    Result,
    Timings,
    without_timings,
)
from embeval.core.signature import Signature
from embeval.core.specs import DatasetRef, ModelSpec, StatisticsOptions, TaskSpec
from embeval.runner import assemble

relaxed = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=60)

TASK = TaskSpec(name="pairs", type="sts", dataset=DatasetRef(path="pairs.jsonl"))
MODEL = ModelSpec(name="org/model", revision="abc", prompts={"text": "t: "})
TIMINGS = Timings(started_at="2025-01-01T00:00:00+00:00", wall_s=1.5, cpu_s=2.0, phases={"encode": 1.0})


def evaluated(timings: Timings | None = TIMINGS) -> Result:
    """The result of four pairs, ranked rightly but for the last two; no intervals."""
    evidence = assemble.Evidence(
        model=MODEL,
        task=TASK,
        protocol={"type": "sts", "data": "ff"},
        metrics=[metrics.get("cosine_spearman"), metrics.get("cosine_pearson")],
        records=ItemRecords(
            unit="pair",
            ids=("1", "2", "3", "4"),
            columns={"gold": np.array([1.0, 2.0, 3.0, 4.0]), "cosine": np.array([0.1, 0.2, 0.4, 0.3])},
        ),
        provenance=provenance.collect(device="cpu", num_threads=1),
        counts={"pairs": 4, "texts_truncated": None},
        warnings=("Something to know.",),
        prompts={"text": "t: "},
    )
    (part,) = assemble.results(evidence, StatisticsOptions(resamples=0), timings)
    return part.result


def failed() -> Result:
    """The result of a run that came to nothing."""
    return Result(
        status="error",
        task=TASK,
        model=MODEL,
        split="test",
        subset="all",
        signature=assemble.signature(MODEL, {"task": "pairs"}, "all", (), {}),
        provenance=provenance.collect(),
        error=Failure(type="DataError", message="pairs.jsonl: no such file."),
    )


def through_json(result: Result) -> Result:
    """Written to bytes and read back."""
    data = strict_json.dumps(border.dump(result)).encode("utf-8")
    return border.load(Result, strict_json.loads(data))


def test_the_main_value_is_that_of_the_main_score() -> None:
    """One swap among four: Spearman 1 - 6 * 2 / (4 * 15) = 0.8."""
    result = evaluated()
    assert result.main_score == "cosine_spearman"
    assert result.main_value is result.scores["cosine_spearman"]
    assert result.main_value.value == pytest.approx(0.8, abs=1e-12)
    assert result.main_value.n_items == 4


def test_without_scores_there_is_no_main_value() -> None:
    """A failed run has none, nor has a main score that was not computed."""
    assert failed().main_value is None
    assert dataclasses.replace(evaluated(), main_score="ndcg_at_10").main_value is None


@pytest.mark.parametrize("make", [evaluated, failed])
def test_results_survive_json(make: Any) -> None:
    """An evaluation and a failure, read back equal."""
    result = make()
    assert through_json(result) == result


TEXT = st.text(max_size=8)
NAME = st.from_regex(r"[a-z][a-z0-9.-]{0,8}", fullmatch=True)
NUMBER = st.floats(allow_nan=False, allow_infinity=False)
REFERENCE = st.none() | st.builds(FileRef, file=TEXT, sha256=TEXT)
VALUES = st.builds(
    MetricValue,
    value=st.none() | NUMBER,
    ci_low=st.none() | NUMBER,
    ci_high=st.none() | NUMBER,
    n_items=st.integers(0, 2**70),
    n_unscored=st.integers(0),
    reason=st.none() | TEXT,
    note=st.none() | TEXT,
)
RESULTS = st.builds(
    Result,
    status=st.sampled_from(["ok", "error"]),
    task=st.builds(
        TaskSpec,
        name=NAME,
        type=TEXT,
        dataset=st.builds(DatasetRef, path=TEXT, split=NAME),
        options=st.dictionaries(TEXT, st.none() | st.booleans() | st.integers() | NUMBER | TEXT, max_size=2),
        languages=st.lists(TEXT, max_size=2).map(tuple),
    ),
    model=st.builds(ModelSpec, name=NAME, revision=st.none() | TEXT, prompts=st.dictionaries(TEXT, TEXT, max_size=2)),
    split=TEXT,
    subset=TEXT,
    scores=st.dictionaries(TEXT, VALUES, max_size=3),
    main_score=st.none() | TEXT,
    statistics=st.builds(
        StatisticsOptions,
        resamples=st.just(0) | st.integers(100, 1_000_000),
        level=st.floats(0.5, 0.99),
        seed=st.integers(0),
    ),
    counts=st.dictionaries(TEXT, st.none() | st.integers(), max_size=3),
    warnings=st.lists(TEXT, max_size=2).map(tuple),
    items=REFERENCE,
    run=REFERENCE,
    signature=st.builds(
        Signature,
        protocol=st.dictionaries(TEXT, st.none() | st.booleans() | st.integers() | NUMBER | TEXT, max_size=3),
        metrics=st.dictionaries(TEXT, st.integers(), max_size=2),
        model_digest=TEXT,
        prompts=st.dictionaries(TEXT, TEXT, max_size=2),
    ),
    provenance=st.builds(
        Provenance,
        python=TEXT,
        packages=st.dictionaries(TEXT, TEXT, max_size=2),
        git_commit=st.none() | TEXT,
        git_dirty=st.none() | st.booleans(),
        os=TEXT,
        cpu=TEXT,
        n_cpus=st.integers(),
        extra=st.dictionaries(TEXT, TEXT, max_size=2),
    ),
    timings=st.none()
    | st.builds(
        Timings, started_at=TEXT, wall_s=NUMBER, cpu_s=NUMBER, phases=st.dictionaries(TEXT, NUMBER, max_size=2)
    ),
    error=st.none() | st.builds(Failure, type=TEXT, message=TEXT),
)


@relaxed
@given(result=RESULTS)
def test_any_result_survives_json(result: Result) -> None:
    """Whatever texts and numbers it holds: equal when read back, and the same bytes when written again."""
    back = through_json(result)
    assert back == result
    assert strict_json.dumps(border.dump(back)) == strict_json.dumps(border.dump(result))
    assert back.signature.protocol_digest == result.signature.protocol_digest


def test_every_field_is_written() -> None:
    """A reader in another language finds each field, null where there is nothing."""
    written = border.dump(evaluated())
    assert set(written) == {field.name for field in dataclasses.fields(Result)} - {*Result.left_out_if_null}
    assert written["schema_version"] == SCHEMA_VERSION == 1
    assert written["error"] is None
    assert set(written["scores"]["cosine_spearman"]) == {field.name for field in dataclasses.fields(MetricValue)}


def test_fields_that_came_later_leave_older_results_as_they_are() -> None:
    """Null, they aren't written, so the hash of a result that is stored without them stays; set, they come back."""
    plain = evaluated()
    assert plain.trained_on is None
    assert "trained_on" not in border.dump(plain)
    origin = Imported(source="a.json", mteb_version=None, dataset_revision="r", settings={"max_tokens": 256})
    later = dataclasses.replace(plain, imported=origin, trained_on="unknown")
    assert through_json(later) == later
    assert border.dump(later)["imported"]["settings"] == {"max_tokens": 256}


def test_equal_runs_differ_in_timings_only() -> None:
    """Two evaluations with other timings are the same without them; everything else is kept."""
    one = border.dump(evaluated())
    other = border.dump(evaluated(dataclasses.replace(TIMINGS, wall_s=99.0, started_at="2026-01-01T00:00:00+00:00")))
    assert one != other
    assert without_timings(one) == without_timings(other)
    assert set(one) - set(without_timings(one)) == {"timings"}
    assert without_timings({**one, "split": "dev"}) != without_timings(one)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"schema_version": 2}, "schema_version: must be 1, not 2"),
        ({"schema_version": "1"}, "schema_version: Input should be a valid integer, not '1'"),
        ({"schema_version": True}, "schema_version: Input should be a valid integer, not True"),
        ({"status": "skipped"}, "status: Input should be 'ok' or 'error', not 'skipped'"),
        ({"main_scor": "x"}, "main_scor: unknown key. Did you mean 'main_score'?"),
        ({"split": None}, "split: Input should be a valid string, not None"),
        ({"warnings": "text"}, "warnings: Input should be a valid array, not 'text'"),
        (
            {"scores": {"map": {"value": "0.5", "n_items": 1}}},
            "scores.map.value: Input should be a valid number, not '0.5'",
        ),
        ({"scores": {"map": {"value": 0.5}}}, "scores.map: the key 'n_items' is missing"),
        (
            {"scores": {"map": {"value": 0.5, "n_items": 1, "ci_hihg": 0.6}}},
            "scores.map.ci_hihg: unknown key. Did you mean 'ci_high'?",
        ),
    ],
)
def test_a_file_of_another_form_is_refused(change: dict[str, Any], message: str) -> None:
    """Nothing is converted or ignored, and the place is named."""
    with pytest.raises(border.BorderError) as caught:
        border.load(Result, {**border.dump(evaluated()), **change})
    assert [str(problem) for problem in caught.value.problems] == [message]


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("name", ["value", "ci_low", "ci_high"])
def test_a_number_that_is_none_is_neither_written_nor_read(number: float, name: str) -> None:
    """NaN and Infinity in a score don't reach a file, and don't come back out of a value."""
    result = evaluated()
    change: dict[str, Any] = {name: number}
    broken = dataclasses.replace(result.scores["cosine_spearman"], **change)
    written = border.dump(dataclasses.replace(result, scores={"cosine_spearman": broken}))
    with pytest.raises(ValueError, match="JSON compliant"):
        strict_json.dumps(written)
    with pytest.raises(border.BorderError):
        border.load(Result, written)


def test_the_schema_names_every_field_with_a_description() -> None:
    """Each object of the JSON Schema is closed, and no field of it is left undocumented."""
    schema = border.schema(Result)
    objects = [schema, *schema["$defs"].values()]
    assert {"MetricValue", "ModelSpec", "TaskSpec", "Signature", "Provenance", "Timings"} <= set(schema["$defs"])
    for each in objects:
        assert each["additionalProperties"] is False
        for name, entry in each["properties"].items():
            assert entry.get("description"), f"{each['title']}.{name}"
    assert set(schema["properties"]) == {field.name for field in dataclasses.fields(Result)}
