"""Summarization: one item is a text, and how well the scores of its machine summaries follow people's.

The score of a machine summary is its largest similarity with any summary of the text by a person.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from embeval.core.protocols import PARITY_PREFIX, Undefined
from embeval.core.records import Column, ItemRecords
from embeval.core.similarity import SIMILARITIES
from embeval.core.specs import SimilarityName
from embeval.core.words import plural
from embeval.metrics.correlation import Correlation, Kind
from embeval.metrics.summarization import NAMES
from embeval.mteb_bridge.categories._category import Gathered, Outcome, Setting, texts

OWN = "similarity"
"""The similarity by which the model means its vectors to be compared."""
KINDS: tuple[Kind, ...] = ("spearman", "pearson")
WITH_P_VALUES = "DeprecatedSummarizationEvaluator"
"""mteb's evaluator that takes the mean of coefficients and p-values; mteb keeps it for its first data sets."""
SAME = 1e-9
"""Values that differ by less are the same."""


class _Summarization:
    task_class = "AbsTaskSummarization"
    one_thread = True
    together = False

    def content(self, setting: Setting, subset: str) -> Iterator[Sequence[str]]:
        rows, task = setting.rows(subset), setting.task
        columns = (task.human_summaries_column_name, task.machine_summaries_column_name, task.relevancy_column_name)
        for row in zip(*(rows[name] for name in columns), strict=True):
            yield [part for values in row for part in (str(len(values)), *texts(values))]

    def metrics(self, setting: Setting) -> Sequence[str]:
        names = tuple(dict.fromkeys([f"mean_{setting.task.metadata.main_score}", *NAMES]))
        return names if setting.parity == "embeval" else (*(PARITY_PREFIX + name for name in names), *names)

    def gather(self, setting: Setting, outcomes: Mapping[str, Outcome], model: Any) -> Gathered:
        with_p_values = setting.task.evaluator.__name__ == WITH_P_VALUES
        rows: list[dict[str, float]] = []
        ids: list[str] = []
        sizes: dict[str, int] = {}
        n_summaries = 0
        for subset in setting.subsets:
            scored = list(_scored(setting, subset, model))
            rows += [{**_ours(scores), **_theirs(scores, with_p_values)} for scores in scored]
            ids += [setting.name(subset, row) for row in range(len(scored))]
            sizes[subset] = len(scored)
            n_summaries += sum(len(scores["gold"]) for scores in scored)
        columns = {name: np.array([row[name] for row in rows]) for name in rows[0]}
        differ = [name for name in NAMES if _differ(columns[name], columns[PARITY_PREFIX + name])]
        if not differ and setting.parity == "embeval":
            columns = {name: columns[name] for name in NAMES}
        main = f"mean_{setting.task.metadata.main_score}"
        skipped = int(np.isnan(columns[main]).sum())
        warnings = [_skipped(skipped, len(ids))] if skipped else []
        if main in differ:
            warnings.append(_told(setting, outcomes, with_p_values))
        return Gathered(
            records=ItemRecords(unit="text", ids=tuple(ids), columns=columns, slices=setting.labels(sizes)),
            counts={"texts_with_summaries": len(ids), "summaries_scored": n_summaries, "constant_input": skipped},
            warnings=tuple(warnings),
            also=tuple(PARITY_PREFIX + name for name in differ),
        )


def _scored(setting: Setting, subset: str, model: Any) -> Iterator[dict[str, Column]]:
    """Of each text, float64 [machine summaries]: ``gold`` and their score by each similarity."""
    rows, task = setting.rows(subset), setting.task
    by_people, by_machines = model.vectors(subset)  # in the order in which mteb asks for them
    by_name: dict[str, SimilarityName] = {"cosine": "cosine", "dot": "dot", OWN: model.encoder.info.similarity}
    human = machine = 0
    for people, machines, gold in zip(
        rows[task.human_summaries_column_name],
        rows[task.machine_summaries_column_name],
        rows[task.relevancy_column_name],
        strict=True,
    ):
        left = by_machines[machine : machine + len(machines)]
        right = by_people[human : human + len(people)]
        machine, human = machine + len(machines), human + len(people)
        scores = {"gold": np.array(gold, dtype=np.float64)}
        for name, similarity in by_name.items():
            scores[name] = SIMILARITIES[similarity](left[:, None], right[None]).max(axis=1).astype(np.float64)
        yield scores


def _metrics() -> Iterator[tuple[str, Correlation]]:
    for score in ("cosine", "dot", OWN):
        for kind in KINDS:
            name = f"mean_{kind}" if score == OWN else f"mean_{score}_{kind}"
            yield name, Correlation(kind=kind, x="gold", y=score, name=name)


def _ours(scores: Mapping[str, Column]) -> dict[str, float]:
    """Coefficients of one text; NaN where the summaries all have one score."""
    values = {name: metric.aggregate(scores) for name, metric in _metrics()}
    return {name: np.nan if isinstance(value, Undefined) else value for name, value in values.items()}


def _theirs(scores: Mapping[str, Column], with_p_values: bool) -> dict[str, float]:
    """The same as mteb has it: no value at all for a text where people's, the cosine or the dot product has none."""
    if any(np.ptp(scores[name]) == 0.0 for name in ("gold", "cosine", "dot")):
        return {PARITY_PREFIX + name: np.nan for name in NAMES}
    if not with_p_values:
        return {PARITY_PREFIX + name: value for name, value in _ours(scores).items()}
    from scipy import stats

    tests = {"spearman": stats.spearmanr, "pearson": stats.pearsonr}
    return {
        PARITY_PREFIX + name: float(np.mean(tests[metric.kind](scores["gold"], scores[metric.y])))
        for name, metric in _metrics()
    }


def _differ(ours: Column, theirs: Column) -> bool:
    return not np.allclose(ours, theirs, rtol=0.0, atol=SAME, equal_nan=True)


def _skipped(n: int, of: int) -> str:
    return (
        f"{n} of {plural(of, 'text')} left out (constant_input): its summaries all have one score, or people's are one."
    )


def _told(setting: Setting, outcomes: Mapping[str, Outcome], with_p_values: bool) -> str:
    main = setting.task.metadata.main_score
    theirs = np.mean([outcomes[subset].scores[main] for subset in setting.subsets])
    if np.isnan(theirs):
        return f"mteb gives no {main} here: no text is left that it has a value for."
    why = "takes the mean of coefficients and p-values" if with_p_values else "leaves out texts that have a value"
    return f"mteb gives {main} {theirs:.4f} here: it {why}."


CATEGORY = _Summarization()
