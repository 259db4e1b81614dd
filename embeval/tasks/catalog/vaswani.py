"""Vaswani (NPL): 93 questions of physics against 11,429 short abstracts."""

from embeval.core.specs import DatasetRef, TaskSpec

SPEC = TaskSpec(
    name="Vaswani",
    type="retrieval",
    dataset=DatasetRef(path="retrieval/Vaswani_NPL", split="test"),
    options={"self_match": "keep"},
    languages=("eng",),
    license="public test collection; no explicit licence",
    citation="Vaswani & Cameron, The National Physical Laboratory experiments in statistical word associations, 1970",
)
