"""Which cheaper forms of all-MiniLM-L6-v2 pass ``no_regression: 0.01`` against float32, on every public set?

``python -m benchmarks.gate_precisions FOLDER`` exports and evaluates into FOLDER what isn't there yet (a quarter of an
hour on two cores) and lets the gate decide, with both settings of ``unseen``.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks.harness import data_folder, write
from embeval import api
from embeval.core.verdict import RuleVerdict

BASELINE = "all-MiniLM-L6-v2"
MARGIN = 0.01
FORMS = {
    "bfloat16": ("demo,dtype=bfloat16", f"{BASELINE} (bfloat16)"),
    "int8 (ONNX)": ("onnx:{folder}/minilm,dtype=int8", "minilm (int8)"),
    "192 dimensions": ("demo,truncate_dim=192", f"{BASELINE} (192d)"),
    "64 dimensions": ("demo,truncate_dim=64", f"{BASELINE} (64d)"),
}
"""Name in the table -> (model as the command line takes it, label of its results)."""
RETRIEVAL = ("SciFact", "Cranfield", "CISI", "Vaswani", "ADI")
STS = (
    *("STSBenchmark", "STS12", "STS14", "STS15", "BIOSSES"),
    *(f"STSBenchmarkMultilingualSTS-{language}" for language in ("de", "es", "zh")),
)


def main() -> None:
    """Evaluates what is missing, decides, and writes figures and table."""
    folder, data = Path(sys.argv[1]).resolve(), data_folder()
    if data is None:
        sys.exit("There is no evaluation data: set EMBEVAL_TEST_DATA.")
    embeval = [sys.executable, "-m", "embeval"]
    if not (folder / "minilm").exists():
        subprocess.run(
            [*embeval, "export", "demo", "-o", str(folder / "minilm"), "--precision", "fp32,int8"], check=True
        )
    models = ["demo", *(model.format(folder=folder) for model, _ in FORMS.values())]
    words = [word for model in models for word in ("-m", model)]
    words += [word for task in (*RETRIEVAL, *STS) for word in ("-t", task)]
    where = ["--results", str(folder / "results"), "--data", str(data), "--no-bm25"]
    subprocess.run([*embeval, "run", *words, *where], check=True)

    rules = [{"metric": f"{task}/ndcg_at_10", "no_regression": MARGIN} for task in RETRIEVAL]
    rules += [{"metric": f"{task}/cosine_spearman", "no_regression": MARGIN} for task in STS]
    found: dict[str, dict[str, dict[str, Any]]] = {task: {} for task in (*RETRIEVAL, *STS)}
    for name, (_, label) in FORMS.items():
        for unseen in ("any", "as_seen"):
            policy = {"rules": rules, "unseen": unseen}
            report = api.gate(policy, label, baseline=BASELINE, results=folder / "results")
            for rule in report.verdicts[0].rules:
                assert rule.task is not None
                found[rule.task].setdefault(name, {})[unseen] = _figures(rule)
    write("gate_precisions", {"margin": MARGIN, "tasks": found})
    print(_table(found))


def _figures(rule: RuleVerdict) -> dict[str, Any]:
    assert rule.value is not None
    assert rule.bound is not None
    assert rule.comparison is not None
    return {
        "items": rule.comparison.n_items,
        "difference": round(rule.value, 5),
        "bound": round(rule.bound, 5),
        "outcome": rule.outcome.value,
    }


def _table(found: dict[str, dict[str, dict[str, Any]]]) -> str:
    """Markdown: difference and outcome, where they differ both outcomes."""
    lines = ["| | items | " + " | ".join(FORMS) + " |", "|---|---|" + "---|" * len(FORMS)]
    for task, forms in found.items():
        cells = []
        for each in forms.values():
            outcomes = dict.fromkeys(each[unseen]["outcome"] for unseen in ("any", "as_seen"))
            cells.append(f"{each['any']['difference']:+.4f} {' / '.join(outcomes)}")
        name = task.replace("MultilingualSTS", "")
        items = next(iter(forms.values()))["any"]["items"]
        lines.append(f"| {name} | {items} | {' | '.join(cells)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
