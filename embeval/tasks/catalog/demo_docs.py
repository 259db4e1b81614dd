"""The demo golden set: questions about the manual of an invented product. Ships with the package."""

from embeval.core.specs import DatasetRef, TaskSpec

SPEC = TaskSpec(
    name="demo-docs",
    type="retrieval",
    dataset=DatasetRef(path="embeval:data/demo", split="test"),
    options={"self_match": "keep"},
    languages=("eng",),
    license="Apache-2.0",
    citation="embeval/data/demo/DATASHEET.md",
)
