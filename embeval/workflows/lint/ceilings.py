"""The most that any model can reach, where relevant documents can't be found."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from embeval.core.ir import Qrels, Run, judge
from embeval.metrics import ranking
from embeval.workflows.lint.findings import Ceiling
from embeval.workflows.lint.gold import GoldSet

METRICS = ("ndcg_at_10", "recall_at_10", "recall_at_100")


def ceilings(gold: GoldSet) -> dict[str, dict[str, Ceiling]]:
    """Split -> metric -> mean of a perfect ranking over the queries that a run counts."""
    unanswerable = frozenset(query.id for query in gold.by_query.values() if not query.answerable)
    found = {}
    for split, grades in gold.grades.items():
        known = {query: of_query for query, of_query in grades.items() if query in gold.by_query}
        if known.keys() <= unanswerable:
            continue
        reachable = {
            query: [doc for doc in of_query if doc in gold.by_doc and doc not in gold.by_query[query].excluded]
            for query, of_query in known.items()
        }
        best, whole = _best(known, reachable, unanswerable), _best(known, known, unanswerable)
        found[split] = {name: Ceiling(best[name], whole[name]) for name in METRICS}
    return found


def _best(
    grades: Mapping[str, Mapping[str, int]], there: Mapping[str, Collection[str]], unanswerable: frozenset[str]
) -> dict[str, float]:
    """The metrics of the documents that are there, ranked by their grades."""
    perfect = Run.from_dict({query: {doc: float(grades[query][doc]) for doc in docs} for query, docs in there.items()})
    judged = judge(perfect, Qrels(grades), exclude=unanswerable)
    return {name: float(column.mean()) for name, column in ranking.measure(judged, METRICS).items()}
