"""A built board with something of everything that is shown of one."""

from __future__ import annotations

from collections.abc import Sequence

from embeval.core.facts import ModelFacts
from embeval.core.result import Imported
from embeval.core.specs import ModelSpec
from embeval.leaderboard.snapshot import (
    Cell,
    GateOutcome,
    Item,
    ItemList,
    Measures,
    Model,
    Retention,
    Snapshot,
    Standing,
)
from tests.support.boards import column


def model(label: str, values: Sequence[Cell | None], standing: Standing, **fields: object) -> Model:
    """A row."""
    given = {"spec": ModelSpec(name=f"org/{label}", revision="sha256:" + "ab" * 32), "digest": "12345678", **fields}
    return Model(label=label, cells=tuple(values), standing=standing, **given)  # type: ignore[arg-type]


def small() -> Snapshot:
    """Three models that are tested, with letters a, ab and b, and one that was published elsewhere and has a gap."""
    columns = (
        column("docs", "Retrieval", "ndcg_at_10"),
        column("pairs", "STS", "cosine_spearman", n_items=30),
        column("texts", "Likelihood", "perplexity", higher_is_better=False, refused="of different tokenisers"),
    )

    def cells(docs: float, pairs: float) -> list[Cell | None]:
        return [
            Cell(value=docs, low=docs - 0.05, high=docs + 0.05, n_items=100, result="0a0a0a0a"),
            Cell(value=pairs, low=pairs - 0.1, high=pairs + 0.1, n_items=30, rough=True, trained_on="declared"),
            Cell(value=None, reason="constant_input", n_items=3),
        ]

    def standing(rank: int, low: int, high: int, letters: str, docs: float, pairs: float) -> Standing:
        return Standing(
            rank=rank, rank_low=low, rank_high=high, letters=letters, mean_task=(docs + pairs) / 2,
            mean_type=(docs + pairs) / 2, borda=rank, groups={"Retrieval": docs, "STS": pairs},
        )  # fmt: skip

    lost = ItemList(column=0, n_lost=7, n_gained=2, lost=(Item(id="q1", reference=1.0, value=0.0, text="how to pay"),))
    models = (
        model(
            "big", cells(0.8, 0.7), standing(1, 1, 2, "a", 0.8, 0.7), date="2026-05-01T00:00:00+00:00",
            facts=ModelFacts(parameters=110_000_000, dimensions=768, weight_bytes=440_000_000, license="mit"),
            measures=Measures(
                recall=0.91, latency_p95_ms=31.25, tokens_per_s=1234.5, vector_bytes=3072, machine="cpu, 2 threads"
            ),
            gate=GateOutcome(outcome="in_use", sentence="It is the one in use."),
        ),
        model(
            "mid", cells(0.75, 0.72), standing(2, 1, 3, "ab", 0.75, 0.72), prompts={"query": "query: "},
            facts=ModelFacts(parameters=22_700_000, dimensions=384, weight_bytes=90_900_000),
            measures=Measures(
                latency_p95_ms=8.125, tokens_per_s=9000.0, vector_bytes=1536, machine="another", elsewhere=True
            ),
            retention=Retention(quality=0.98, size=0.2066, vectors=0.5),
            gate=GateOutcome(outcome="fail", sentence="docs/ndcg_at_10 fell by 0.05."), items=(lost,),
            report="reports/mid-12345678.html",
        ),
        model("low", cells(0.4, 0.5), standing(3, 2, 3, "b", 0.4, 0.5), retention=Retention(quality=0.6)),
        model(
            "far (imported)",
            [Cell(value=0.9, imported=True), None, None],
            Standing(gaps=1, untested="imported: no items", groups={"Retrieval": 0.9, "STS": None}),
            imported=Imported(
                source="far.json", mteb_version="1.12.75", dataset_revision="abc", settings={"max_tokens": 512}
            ),
        ),
    )  # fmt: skip
    return Snapshot(
        title="Support search",
        description="What we tried.\n\nIn spring.",
        columns=columns,
        models=models,
        tested=(0, 1, 2),
        reference=0,
        production="big",
        remarks=("Brackets hold 95 % intervals.",),
        failures=("other on docs: no such file.",),
        date="2026-05-01T00:00:00+00:00",
        outputs=("html", "readme", "svg", "csv", "json", "parquet"),
    )
