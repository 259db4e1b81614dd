"""What it takes to bring another model into a search that runs: its documents have to be encoded again."""

from __future__ import annotations

from dataclasses import replace

from embeval.core import figures
from embeval.core.result import Result
from embeval.core.specs import Role

GUESSED = 1_000_000
"""Documents in the command that measures, where nobody said how many there are."""


def warning(baseline: Result, candidate: Result, documents: int | None) -> str | None:
    """That the candidate needs a full re-index, and what this costs; None where documents keep their vectors.

    ``documents`` is how many the search holds; None: as many as the data that was evaluated on. The time is that of
    the machine and the settings of the candidate's run.
    """
    if _document_side(baseline) == _document_side(candidate):
        return None
    n = documents if documents is not None else candidate.counts.get("documents")
    whole = "all documents" if n is None else f"{n:,} {'document' if n == 1 else 'documents'}"
    first = (
        f"{candidate.model.label} needs a full re-index: vectors of documents that {baseline.model.label} made are of "
        "no use to it."
    )
    if baseline.counts.get("dimensions") is None and not _has_texts(baseline):
        first = f"{candidate.model.label} needs a full index: {baseline.model.label} ranks without vectors."
    if candidate.counts.get("dimensions") is None and not _has_texts(candidate):
        return f"{first} It ranks without vectors: nothing is encoded, but {whole} have to be indexed anew."
    return " ".join([first, *_cost(candidate, n, whole), "Until all are done, both indexes must lie side by side."])


def seconds(result: Result, documents: int) -> float | None:
    """How long so many documents take at the measured speed, of the measured length; None where none was measured."""
    timings, n = result.timings, result.counts.get("documents")
    if timings is None or not n:
        return None
    tokens = result.counts.get("documents_tokens_kept")
    if timings.tokens_per_s and tokens:  # queries are shorter than documents, so texts per second say less
        return documents * tokens / n / timings.tokens_per_s
    return documents / timings.texts_per_s if timings.texts_per_s else None


def _document_side(result: Result) -> tuple[str, str | None]:
    """What the vectors of documents hang on: the model without the prompts of queries, and the prompt of documents."""
    model, used = replace(result.model, rescore=None), result.signature.prompts.get("document")
    if used is not None:
        return replace(model, prompts={}, prompting="auto").digest, used
    prompts = {role: text for role, text in model.prompts.items() if role != Role.QUERY}
    return replace(model, prompts=prompts).digest, None  # a task without documents tells nothing of their prompt


def _has_texts(result: Result) -> bool:
    return "documents" in result.counts or "texts" in result.counts


def _cost(candidate: Result, n: int | None, whole: str) -> list[str]:
    needed = None if n is None else seconds(candidate, n)
    found = []
    if needed is not None:
        found.append(f"{whole[0].upper()}{whole[1:]} take {figures.duration(needed)} at the speed of this run.")
    else:
        found.append(
            f"How long {whole} take was not measured: no document went through the model, or all came from the cache; "
            f"'embeval models show MODEL --documents {n or GUESSED}' measures it."
        )
    size = candidate.counts.get("vector_bytes")
    if size is not None and n is not None:
        found.append(f"Their vectors take {figures.size(n * size)}.")
    elif size is not None:
        found.append(f"A vector takes {figures.size(size)}.")
    return found
