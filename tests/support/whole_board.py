"""A small board that has everything a board may have, and the same one with texts that try to be more than texts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from embeval.core.facts import ModelFacts
from embeval.core.result import Imported
from embeval.core.specs import ModelSpec
from embeval.leaderboard.snapshot import GateOutcome, Item, ItemList, Measures, Model, Point, Retention, Snapshot
from tests.support.boards import synthetic
from tests.support.pages import with_texts

CHOICES = frozenset(
    {"rank_by", "gaps", "dtype", "pooling", "similarity", "prompting", "quantize", "trained_on", "outcome", "outputs"}
)
"""Fields of a board that hold one word of a few: a file with another is refused."""
HOSTILE = (
    "</script></style></title></template><script>window.ran=1</script><img src=https://asked.example/a.png "
    'onerror="window.ran=2"><svg onload=\'window.ran=3\'></svg><a href="javascript:window.ran=4">link</a><b>bold</b>'
    '<style>body{display:none}</style>" autofocus onfocus="window.ran=5" x=\'`${window.ran=6}` {{7*7}} {% x %} '
    "@@DATA@@ @@ %{y} $& $1 &lt;i&gt; &amp; ]]> <!-- \u2028 \u2029 \u202e\u05d0\u2066 =1+1 | [x](https://asked.example/b)"
)
"""What HTML, scripts, templates, charts and spreadsheets would read as their own."""


def whole() -> Snapshot:
    """Six models on five tasks, three of them tested, one imported: every field of a board is set on some row."""
    made = synthetic(6, 5, n_tested=3)
    columns = tuple(
        replace(each, refused="per-token values of different tokenisers" if place == 4 else None, weight=1.0 + place)
        for place, each in enumerate(made.columns)
    )
    return replace(
        made,
        title="A whole board",
        description="What a reader should know first.",
        columns=columns,
        models=tuple(_with_all(place, model) for place, model in enumerate(made.models)),
        reference=0,
        production=made.models[0].label,
        history=tuple(_point(model, number) for model in made.models[:2] for number in range(3)),
        remarks=("Latencies come from different machines.",),
        failures=("org/other on Task00: out of memory.",),
        date="2026-11-01T10:00:00+00:00",
        outputs=("html", "readme", "csv", "json", "parquet"),
    )


def hostile(change: Callable[[str], str] = lambda text: f"{text} {HOSTILE}") -> Snapshot:
    """The whole board with every text in it changed, but for words of a fixed choice."""
    return with_texts(whole(), change, CHOICES)


def _with_all(place: int, model: Model) -> Model:
    cells = list(model.cells)
    first = cells[0]
    assert first is not None
    cells[0] = replace(first, trained_on="declared", rough=True, result=f"{place:012x}")
    if place == 5:
        cells[1] = None
        cells[2] = replace(first, value=None, low=None, high=None, reason="constant_input")
    spec = replace(
        model.spec,
        pooling="mean",
        normalize=True,
        max_seq_length=256,
        prompts={"query": "query: "},
        truncate_dim=128,
        dtype="bfloat16",
        similarity="cosine",
        args={"trust_remote_code": False, "note": "as published"},
        quantize="int8",
        rescore=4,
    )
    far = Imported(
        source="results/org__model/file.json",
        mteb_version="2.26.0",
        dataset_revision="0123abcd",
        evaluation_time=12.5,
        settings={"max_tokens": 512, "note": "from a paper"},
    )
    standing = model.standing
    return replace(
        model,
        spec=spec if place == 1 else ModelSpec(name=model.spec.name, revision=model.spec.revision),
        prompts={"query": "query: ", "document": "passage: "} if place == 1 else {},
        facts=ModelFacts(
            parameters=22_700_000 * (place + 1),
            dimensions=384,
            max_tokens=256,
            weight_bytes=90_000_000 * (place + 1),
            languages=("eng", "deu"),
            license="apache-2.0",
        ),
        imported=far if place == 4 else None,
        cells=tuple(None if cell is None else replace(cell, imported=place == 4) for cell in cells),
        standing=replace(standing, untested="imported: no items", gaps=int(place == 5)) if place > 2 else standing,
        measures=Measures(
            recall=0.9 - place / 50,
            latency_p95_ms=4.0 + place,
            tokens_per_s=9000.0 / (place + 1),
            index_mib=12.5,
            usd_per_million_tokens=0.02 * (place + 1),
            machine="2 × Some CPU" if place < 5 else "8 × Another CPU",
            elsewhere=place == 5,
            session="0a1b2c3d" if place < 2 else None,
            speed_of="model-0002" if place == 1 else None,
            vector_bytes=4 * 384 // (place + 1),
        ),
        retention=None if place == 0 else Retention(quality=0.98, size=0.5, vectors=0.25, speed=1.8),
        gate=GateOutcome(
            outcome="in_use" if place == 0 else "inconclusive",
            sentence="It would take 400 items more.",
            rules=() if place == 0 else ("Task00/ndcg_at_10: no regression of 0.01 is shown.",),
        ),
        items=() if place == 0 else (_items(),),
        report=None if place == 0 else f"reports/model-{place}.html",
    )


def _items() -> ItemList:
    lost = Item(id="q1", reference=1.0, value=0.0, text="How do I change my address?")
    gained = Item(id="q2", reference=0.2, value=0.9, text="שלום 你好")
    return ItemList(column=0, n_lost=7, n_gained=3, lost=(lost,), gained=(gained,))


def _point(model: Model, number: int) -> Point:
    values = tuple(None if each is None or each.value is None else each.value - number / 100 for each in model.cells)
    known = [each for each in values if each is not None]
    return Point(
        model=model.spec.name,
        label=model.label,
        revision=f"sha256:{number:064x}",
        date=f"2026-0{3 - number}-01T00:00:00+00:00",
        values=values,
        mean=sum(known) / len(known),
    )
