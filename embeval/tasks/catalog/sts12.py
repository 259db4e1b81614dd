"""SemEval 2012 STS, English: 3,108 pairs in several sub-sets, scored 0 to 5."""

from embeval.core.specs import DatasetRef, TaskSpec

SPEC = TaskSpec(
    name="STS12",
    type="sts",
    dataset=DatasetRef(path="sts/STS12/test.jsonl.gz", split="test"),
    languages=("eng",),
    license="scores CC BY-SA; sentences under the terms of their sources",
    citation="Agirre et al., SemEval-2012 Task 6: A Pilot on Semantic Textual Similarity, 2012",
)
