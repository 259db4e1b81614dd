"""The demo sentence pairs: office and documents, scored 0 to 5. Ships with the package."""

from embeval.core.specs import DatasetRef, TaskSpec

SPEC = TaskSpec(
    name="demo-pairs",
    type="sts",
    dataset=DatasetRef(path="embeval:data/demo/sts.jsonl", split="test"),
    languages=("eng",),
    license="Apache-2.0",
    citation="embeval/data/demo/DATASHEET.md",
)
