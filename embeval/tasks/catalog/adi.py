"""ADI: 35 questions of information science against 82 abstracts; for quick runs."""

from embeval.core.specs import DatasetRef, TaskSpec

SPEC = TaskSpec(
    name="ADI",
    type="retrieval",
    dataset=DatasetRef(path="retrieval/ADI", split="test"),
    options={"self_match": "keep"},
    languages=("eng",),
    license="public test collection; no explicit licence",
    citation="Salton, The SMART Retrieval System, 1971",
)
