"""Pair classification: one item is a pair of texts, with each similarity of the two and whether they belong together.

Similarities are ours: cosine 0 with a zero vector, where mteb gives 0.5. The metrics find the best threshold on them
themselves. What mteb makes of its own similarities is kept beside ours where the two differ.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, get_args

import numpy as np
import numpy.typing as npt

from embeval.core.records import Column, ItemRecords
from embeval.core.similarity import SIMILARITIES
from embeval.core.specs import SimilarityName
from embeval.errors import DataError
from embeval.metrics.pair_threshold import FAMILY, GOLD, OWN, Threshold
from embeval.mteb_bridge.categories._category import PARITY_PREFIX, Gathered, Outcome, Setting, texts

OURS = tuple(name for name in FAMILY.names() if not name.startswith(PARITY_PREFIX))
OF_MTEB = {
    OWN: ("similarity_scores", 1.0),
    "cosine": ("cosine_scores", 1.0),
    "dot": ("dot_scores", 1.0),
    "euclidean": ("euclidean_distances", -1.0),
    "manhattan": ("manhattan_distances", -1.0),
}
"""Similarity -> mteb's name of its scores, and their sign where higher is to be more alike."""
ROUNDING = 1e-4
"""Similarities that differ by less, as a share of the largest, do so because mteb computes them in float32."""
SAME = 1e-9
"""Values that differ by less are the same."""


class _PairClassification:
    task_class = "AbsTaskPairClassification"
    one_thread = False
    together = False

    def content(self, setting: Setting, subset: str) -> Iterator[Sequence[str]]:
        task, rows = setting.task, _rows(setting, subset)
        columns = (task.input1_column_name, task.input2_column_name, task.label_column_name)
        yield from zip(*(texts(rows[name]) for name in columns), strict=True)

    def metrics(self, setting: Setting) -> Sequence[str]:
        names = tuple(dict.fromkeys([setting.task.metadata.main_score, *OURS]))
        return names if setting.parity == "embeval" else (*(PARITY_PREFIX + name for name in names), *names)

    def gather(self, setting: Setting, outcomes: Mapping[str, Outcome], model: Any) -> Gathered:
        parts: list[dict[str, Column]] = []
        ids: list[str] = []
        differ: dict[str, None] = {}
        for subset in setting.subsets:
            part = {GOLD: _gold(setting, subset), **_similarities(model, subset)}
            part |= _of_mteb(outcomes[subset].predictions)
            differ |= dict.fromkeys(_differing(part))
            ids += [setting.name(subset, row) for row in range(len(part[GOLD]))]
            parts.append(part)
        columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        if not differ and setting.parity == "embeval":
            columns = {name: column for name, column in columns.items() if not name.startswith(PARITY_PREFIX)}
        main = setting.task.metadata.main_score
        sizes = {subset: len(part[GOLD]) for subset, part in zip(setting.subsets, parts, strict=True)}
        return Gathered(
            records=ItemRecords(unit="pair", ids=tuple(ids), columns=columns, slices=setting.labels(sizes)),
            counts={"pairs": len(ids), "pairs_that_belong_together": int(columns[GOLD].sum())},
            warnings=(_told(main, parts),) if main in differ else (),
            also=tuple(PARITY_PREFIX + name for name in OURS if name in differ),
        )


def _rows(setting: Setting, subset: str) -> Mapping[str, Any]:
    """The pairs column by column. Older data sets hold all of them in lists of a single row."""
    rows = setting.rows(subset)
    task = setting.task
    found = {name: rows[name] for name in (task.input1_column_name, task.input2_column_name, task.label_column_name)}
    if len(rows) == 1 and isinstance(rows[0][task.label_column_name], list):
        return {name: values[0] for name, values in found.items()}
    return found


def _gold(setting: Setting, subset: str) -> Column:
    labels = np.array(_rows(setting, subset)[setting.task.label_column_name], dtype=np.float64)
    if len(wrong := np.flatnonzero(~np.isin(labels, (0.0, 1.0)))):
        row = int(wrong[0])
        raise DataError(
            f"mteb:{setting.task.metadata.name}, {subset}, {setting.split}, row {row}: the label of a pair must be "
            f"0 or 1, not {labels[row]:g}."
        )
    return labels


def _similarities(model: Any, subset: str) -> dict[str, Column]:
    left, right = model.vectors(subset)  # of both sides, in the order in which mteb asked for them
    found: dict[str, npt.NDArray[np.float64]] = {
        name: SIMILARITIES[name](left, right).astype(np.float64) for name in get_args(SimilarityName)
    }
    return {OWN: found[model.encoder.info.similarity], **found}


def _of_mteb(predictions: Mapping[str, Sequence[float]]) -> dict[str, Column]:
    return {
        PARITY_PREFIX + name: sign * np.array(predictions[theirs], dtype=np.float64)
        for name, (theirs, sign) in OF_MTEB.items()
    }


def _differing(columns: Mapping[str, Column]) -> list[str]:
    """Names of our metrics of which mteb's value is another one, and not for rounding only."""
    compared = {GOLD: columns[GOLD]}
    for name in OF_MTEB:
        ours, theirs = columns[name], columns[PARITY_PREFIX + name]
        apart = np.abs(ours - theirs).max(initial=0.0) > ROUNDING * max(np.abs(ours).max(initial=0.0), 1.0)
        compared |= {name: ours, PARITY_PREFIX + name: theirs if apart else ours}
    ours, theirs = _values(OURS, compared), _values([PARITY_PREFIX + name for name in OURS], compared)
    # Where one is undefined, which is NaN here, so is the other one.
    return [name for name, one, other in zip(OURS, ours, theirs, strict=True) if abs(one - other) > SAME]


def _values(names: Sequence[str], columns: Mapping[str, Column]) -> Column:
    """float64 [len(names)]: the metrics, NaN where undefined."""
    family = [metric for name in names if (metric := FAMILY.make(name)) is not None]
    once = np.ones((len(columns[GOLD]), 1), dtype=np.int64)
    return Threshold.resampler(family, columns)(once)[:, 0]


def _told(main: str, parts: Sequence[Mapping[str, Column]]) -> str:
    ours, theirs = np.mean([_values([main, PARITY_PREFIX + main], part) for part in parts], axis=0)
    return (
        f"mteb gives {main} {theirs:.4f} here, and it is {ours:.4f}: mteb doesn't try the threshold that accepts every "
        "pair, nor the one that accepts none, and takes the cosine with a zero vector for 0.5."
    )


CATEGORY = _PairClassification()
