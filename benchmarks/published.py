"""Our scores beside published ones: every number of ``reference_scores.json`` whose data is at hand.

Runs all-MiniLM-L6-v2 on mteb's tasks from the data laid out as a mirror, and writes ``results/published.json`` and
``results/published.md``. Takes ten minutes on two cores; what was encoded before is read from the cache. With names of
tasks as words, only these are run, and the table is printed.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.harness import RESULTS, data_folder, write
from embeval.core import strict_json
from embeval.core.specs import ModelSpec, StatisticsOptions
from embeval.runner import local
from embeval.store.results import ResultStore
from tests.support.mirror import TASKS, bound, lay_out

MODEL = "sentence-transformers/all-MiniLM-L6-v2"
EXPLAINED = {
    "BIOSSES": "the copy of the data: mteb itself gives 0.8125 cosine_spearman on it",
    "STS14": "the copy of the data: mteb itself gives 0.7560 cosine_spearman on it",
}
"""task -> why it differs."""
TOLD = 2e-4
"""From this difference on the table says why."""


@dataclass(frozen=True)
class Row:
    """One published number."""

    task: str
    subset: str
    split: str
    metric: str
    published: float
    ours: float
    ci_low: float | None
    ci_high: float | None
    difference: float
    mteb_version: str | None
    """mteb that the published number was made with."""
    data: str
    """What is known of the copy of the data."""


def main() -> None:
    """Runs the tasks and writes the table."""
    data = data_folder()
    if data is None:
        sys.exit("published.py needs the data and its reference_scores.json: set EMBEVAL_TEST_DATA.")
    content: Any = strict_json.loads((data / "reference_scores.json").read_bytes())
    published = content["mteb_results"]["models"][MODEL]
    names = sys.argv[1:] or [name for name in TASKS if name in published]
    with tempfile.TemporaryDirectory() as folder:
        mirror = lay_out(data, Path(folder) / "mirror", names)
        rows = [row for name in names for row in _rows(name, published[name][0], mirror, Path(folder) / "results")]
    if sys.argv[1:]:
        print(table(rows), end="")
        return
    write("published", {"model": MODEL, "scores": [asdict(row) for row in rows]})
    (RESULTS / "published.md").write_text(table(rows), encoding="utf-8")


def table(rows: Sequence[Row]) -> str:
    """The rows as Markdown."""
    lines = [
        f"# {MODEL}: ours beside published scores",
        "",
        "Published: embeddings-benchmark/results. Made by `python -m benchmarks.published`.",
        "",
        "| task | sub-set | split | metric | ours | 95 % interval | published | difference | why |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        interval = "" if row.ci_low is None or row.ci_high is None else f"{row.ci_low:.4f} – {row.ci_high:.4f}"
        why = EXPLAINED.get(row.task, "") if abs(row.difference) > TOLD else ""
        numbers = f"{row.ours:.4f} | {interval} | {row.published:.4f} | {row.difference:+.4f}"
        lines.append(f"| {row.task} | {row.subset} | {row.split} | {row.metric} | {numbers} | {why} |")
    return "\n".join([*lines, ""])


def _rows(name: str, published: Any, mirror: Path, results: Path) -> list[Row]:
    """A row for each split and sub-set that was published and is here."""
    rows = []
    for split, scores in published["scores"].items():
        if not _has(mirror / name, split):
            continue
        (outcome,) = local.run(
            [ModelSpec(name="demo")],
            [bound(name, mirror, split=split)],
            ResultStore(results),
            local.RunOptions(statistics=StatisticsOptions(resamples=2_000)),
        )
        if outcome.error is not None:
            raise outcome.error
        ours = {stored.result.subset: stored.result for stored in outcome.stored}
        for each in scores:
            subset = each["hf_subset"]
            result = ours.get("all" if subset == "default" else subset)
            if result is None:
                continue
            main = str(result.main_score)
            for metric in [main, *(name for name in result.scores if name != main and name in each)]:
                value, score = result.scores[metric], each["main_score" if metric == main else metric]
                if value.value is None:
                    continue
                rows.append(
                    Row(
                        task=name,
                        subset=subset,
                        split=split,
                        metric=metric,
                        published=score,
                        ours=value.value,
                        ci_low=value.ci_low,
                        ci_high=value.ci_high,
                        difference=value.value - score,
                        mteb_version=published["mteb_version"],
                        data=published["data_status"],
                    )
                )
    return rows


def _has(folder: Path, split: str) -> bool:
    return any(folder.rglob(f"{split}.jsonl*"))


if __name__ == "__main__":
    main()
