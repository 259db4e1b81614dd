"""Imported values on a leaderboard, and what it says of the training of models."""

from __future__ import annotations

from dataclasses import replace

from embeval.core.provenance import Provenance
from embeval.core.result import Imported, MetricValue, Result, TrainedOn
from embeval.core.signature import Signature
from embeval.core.specs import DatasetRef, ModelSpec, TaskSpec
from embeval.leaderboard.board import Board, build
from embeval.leaderboard.render.markdown import markdown

OURS = ModelSpec(name="org/mini", revision="a" * 40)
THEIRS = ModelSpec(name="org/mini", revision="a" * 40, backend="imported")


def made(
    value: float,
    *,
    model: ModelSpec = OURS,
    subset: str = "all",
    subsets: list[str] | None = None,
    only: str | None = None,
    trained_on: TrainedOn | None = None,
) -> Result:
    """A result of ours on a task of mteb, with its interval."""
    protocol = {"type": "mteb", "task": "STS12", "split": "test", "subset": subset, "data": "hash"}
    return Result(
        status="ok",
        task=TaskSpec(
            name="mteb:STS12",
            type="mteb",
            dataset=DatasetRef(path="STS12"),
            options={} if only is None else {"subsets": [only]},
        ),
        model=model,
        split="test",
        subset=subset,
        scores={"cosine_spearman": MetricValue(value=value, ci_low=value - 0.1, ci_high=value + 0.1, n_items=100)},
        main_score="cosine_spearman",
        signature=Signature(
            protocol=protocol if subsets is None else {**protocol, "subsets": subsets, "stands": "mean"},
            metrics={"cosine_spearman": 1},
            model_digest=model.digest,
        ),
        provenance=Provenance(python="3", packages={}, os="os", cpu="cpu", n_cpus=1),
        trained_on=trained_on,
    )


def published(
    value: float,
    *,
    subset: str = "all",
    subsets: list[str] | None = None,
    revision: str = "a0d554a64d88",
    trained_on: TrainedOn | None = "unknown",
) -> Result:
    """What an import makes of a published value."""
    mine = made(value, model=THEIRS, subset=subset, trained_on=trained_on)
    protocol = {"type": "mteb", "task": "STS12", "split": "test", "subset": subset, "imported": "mteb"}
    protocol |= {"data_revision": revision}
    return replace(
        mine,
        scores={"cosine_spearman": MetricValue(value=value, n_items=0)},
        signature=Signature(
            protocol=protocol if subsets is None else {**protocol, "subsets": subsets, "stands": "mean"},
            model_digest=THEIRS.digest,
        ),
        imported=Imported(
            source="results/x.json", mteb_version="1.12.75", dataset_revision=revision, settings={"max_tokens": 256}
        ),
    )


def values(board: Board) -> dict[str, list[float | None]]:
    """Label -> value of each column, None for a gap."""
    return {
        row.label: [None if key not in row.cells else row.cells[key].value for key in board.columns]
        for row in board.rows
    }


def test_a_published_value_stands_beside_ours() -> None:
    """In one column, though nobody can tell whether the data is the same; its row says that it is imported."""
    board = build([made(0.72), published(0.7237)])
    assert values(board) == {"mini": [0.72], "mini (imported)": [0.7237]}
    assert list(board.headings.values()) == ["mteb:STS12"]


def test_it_has_its_own_column_where_there_is_none_of_ours() -> None:
    """Two revisions of the data are two columns."""
    board = build([published(0.7), replace(published(0.8, revision="b" * 40), model=replace(THEIRS, name="org/maxi"))])
    assert len(board.columns) == 2
    assert sorted(board.headings.values()) == [
        "mteb:STS12 data_revision=a0d554a6",
        "mteb:STS12 data_revision=bbbbbbbb",
    ]


def test_only_values_of_the_same_parts_share_a_column() -> None:
    """One language alone stands beside that language of several, never beside all of them."""
    english = build([made(0.6, only="en"), published(0.64, subset="en", subsets=["de", "en"])])
    assert values(english) == {"mini": [0.6], "mini (imported)": [0.64]}
    german = build([made(0.6, only="en"), published(0.58, subset="de", subsets=["de", "en"])])
    assert values(german) == {"mini": [0.6]}
    means = [made(0.61, subset="mean", subsets=["en", "de"]), published(0.62, subset="mean", subsets=["de", "en"])]
    assert values(build(means)) == {"mini": [0.61], "mini (imported)": [0.62]}
    more = published(0.63, subset="mean", subsets=["de", "en", "ja"])
    assert len(build([means[0], more]).columns) == 2


def test_settings_and_data_of_imported_values_are_told() -> None:
    """The version of mteb, what is known of the run, the revision of the data."""
    told = build([made(0.72), published(0.7237)]).remarks()
    assert "mini (imported): mteb 1.12.75, max_tokens 256." in told
    assert "Data of imported values: mteb:STS12 a0d554a6." in told
    assert not any("imported" in remark for remark in build([made(0.72)]).remarks())


def test_what_is_not_zero_shot_is_marked() -> None:
    """At the value, and explained below; in JSON at the value as well."""
    board = build([made(0.72, trained_on="declared")])
    assert "| mini | 0.7200† [0.6200, 0.8200] |" in markdown(board)
    assert any(remark.startswith("† marks values that aren't zero-shot") for remark in board.remarks())
    assert board.to_json()["rows"][0]["values"][0]["trained_on"] == "declared"


def test_unknown_is_said_and_never_taken_for_clean() -> None:
    """Models that declare nothing are named; one that declares other sets is neither named nor marked."""
    silent = replace(made(0.7, trained_on="unknown"), model=replace(OURS, name="org/silent"))
    board = build([made(0.72, trained_on="not_declared"), silent])
    assert "Unknown whether trained on this data: silent." in board.remarks()
    assert "†" not in markdown(board)
