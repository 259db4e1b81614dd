"""The end of ``embeval demo``, a release question: may the int8 ONNX export of the model replace the model itself?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from embeval.compare.report import CompareReport
from embeval.core import border, strict_json
from embeval.core.progress import Progress
from embeval.core.specs import ModelSpec, RuntimeOptions
from embeval.core.verdict import GateReport
from embeval.core.yaml_files import read_yaml
from embeval.errors import EvaluationError
from embeval.gates import policy as policies
from embeval.gates.render.html import html
from embeval.runner import local
from embeval.store import atomic
from embeval.store.results import ResultStore
from embeval.workflows import comparing, export, gating, requests, samples
from embeval.workflows.comparing import CompareRequest

BASELINE = "all-MiniLM-L6-v2"
"""Label of the model."""
FOLDER = "minilm-int8"
"""Folder of the export, whose name stands in tables."""
EXPORTS = "demo-export"
"""Folder that it lies in, beside those of results."""
SAMPLE = "demo-pairs"
"""What the export is compared on."""
POLICY_FILE, REPORT_FILE = "demo-gate.yaml", "demo-gate.html"
"""What is left in a folder of results that is kept."""
MARGIN, STRICTER = 0.05, 0.01
"""Of the policy below, and one that so few queries can't show."""
POLICY = f"""\
# When a model may replace the one that is in use. Every key: embeval schema config
rules:
  - {{metric: demo-docs/ndcg_at_10, no_regression: {MARGIN}}}
  - {{metric: demo-docs/recall_at_100, min: 0.95}}
  - {{metric: demo-pairs/cosine_spearman, no_regression: {MARGIN}}}
documents: 100000          # of the corpus in production, for the cost of a new index
show_lost: 3
"""


@dataclass(frozen=True, kw_only=True)
class Release:
    """What became of the question."""

    question: str
    """The question."""
    comparison: CompareReport
    """Both models."""
    report: GateReport
    """The verdict."""
    stricter: GateReport
    """The verdict under a smaller margin."""
    files: tuple[Path, ...]
    """What was left on disk, where results are kept."""

    @property
    def explanation(self) -> str:
        """What the exit codes mean, as sentences."""
        first = self.stricter.verdicts[0].rules[0]
        needed = f" About {first.needs_items:,} would." if first.needs_items else ""
        code, stricter = self.report.exit_code, self.stricter.exit_code
        words = self.report.outcome.value, self.stricter.outcome.value
        return (
            f"embeval gate ends with exit code {code} here ({words[0]}), which is what a CI job goes by: 0 pass, "
            f"1 fail, 4 inconclusive, 3 broken evidence. With a margin of {STRICTER} instead of {MARGIN} it ends with "
            f"{stricter} ({words[1]}): so few queries don't show that no more is lost.{needed}"
        )

    def to_json(self) -> strict_json.Json:
        """Plain values."""
        return {
            "question": self.question,
            "comparison": self.comparison.to_json(),
            "gate": border.dump(self.report),
            "stricter_gate": border.dump(self.stricter),
            "files": [str(path) for path in self.files],
        }


def ask(
    store: ResultStore,
    model: ModelSpec,
    tasks: tuple[str, ...],
    folder: Path,
    *,
    keep: bool,
    say: Callable[[str], None],
    progress: Progress,
) -> Release:
    """Exports the model to ``folder``, evaluates the export, and lets the policy decide.

    ``model`` as its stored results have it. With ``keep`` policy and report are left beside the results. Raises the
    error of the first step that fails.
    """
    say("A release question: may an int8 ONNX export replace the model?")
    faster, size = _exported(folder / EXPORTS / FOLDER, model, say)
    spec = requests.parse_model(f"onnx:{folder / EXPORTS / FOLDER},dtype=int8")
    bound = [requests.parse_task(name, root=Path(), data=None) for name in tasks]
    candidate = ""
    for outcome in local.run([spec], bound, store, local.RunOptions(), progress=progress):
        if outcome.error is not None:
            raise outcome.error
        assert outcome.result is not None
        candidate = outcome.result.model.label
        say(f"  {candidate} on {outcome.result.task.name} ({outcome.seconds:.1f} s)")
    sides = (model.label, candidate)
    policy = folder / POLICY_FILE
    atomic.write(policy, POLICY.encode("utf-8"))
    report = _decide(store, sides, policy, MARGIN)
    files = [policy]
    if keep:
        atomic.write(folder / REPORT_FILE, html(report).encode("utf-8"))
        files.append(folder / REPORT_FILE)
    comparison = comparing.compare(CompareRequest(sides=sides, results=store.root, tasks=tasks, show=0))
    return Release(
        question=(
            f"May {candidate} replace {model.label}? It is {faster:.1f} times as fast here and has {size:.0%} "
            "of the size."
        ),
        comparison=replace(comparison, worst_slices=(), changes=()),  # the gate's report has them
        report=report,
        stricter=_decide(store, sides, policy, STRICTER),
        files=tuple(files) if keep else (),
    )


def _exported(folder: Path, model: ModelSpec, say: Callable[[str], None]) -> tuple[float, float]:
    """(times as fast, share of the size) of the export in a folder, which is made where it isn't there already."""
    report = folder / export.REPORT
    found = strict_json.loads(report.read_bytes()) if report.is_file() else None
    if found is None or found["revision"] != model.revision:
        made = export.run(
            requests.parse_model("demo"),
            folder,
            ["int8"],
            sample=samples.take(SAMPLE),
            runtime=RuntimeOptions(),
            overwrite=True,
            say=lambda step: say(f"  {step}"),
        )
        if made.problems:
            raise EvaluationError(f"The export is not near enough to the model: {made.problems[0]}.")
        found = made.to_json()
    (graph,) = found["graphs"]
    return graph["tokens_per_s"] / found["reference"]["tokens_per_s"], graph["bytes"] / found["model_bytes"]


def _decide(store: ResultStore, sides: tuple[str, str], file: Path, margin: float) -> GateReport:
    """The verdict of the policy with another margin."""
    value, _ = read_yaml(file)
    rules = [{**rule, "no_regression": margin} if "no_regression" in rule else rule for rule in value["rules"]]
    policy = policies.from_value({**value, "rules": rules}, file.name)
    baseline, candidate = sides
    return gating.gate(
        gating.Request(policy=policy, source=file.name, results=store.root, candidates=(candidate,), baseline=baseline)
    )
