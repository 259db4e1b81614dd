"""CISI: 76 judged questions of library science against 1,460 abstracts."""

from embeval.core.specs import DatasetRef, TaskSpec

SPEC = TaskSpec(
    name="CISI",
    type="retrieval",
    dataset=DatasetRef(path="retrieval/CISI", split="test"),
    options={"self_match": "keep"},
    languages=("eng",),
    license="public test collection; no explicit licence",
    citation="Fox, Characterization of two new experimental collections, 1983",
)
