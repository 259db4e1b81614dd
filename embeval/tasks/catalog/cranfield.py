"""Cranfield 1400: 225 questions of aerodynamics against 1,400 abstracts, binary judgments."""

from embeval.core.specs import DatasetRef, TaskSpec

SPEC = TaskSpec(
    name="Cranfield",
    type="retrieval",
    dataset=DatasetRef(path="retrieval/Cranfield", split="test"),
    options={"self_match": "keep"},
    languages=("eng",),
    license="public test collection; no explicit licence",
    citation="Cleverdon, The Cranfield tests on index language devices, 1967",
)
