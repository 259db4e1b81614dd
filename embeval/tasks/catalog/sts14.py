"""SemEval 2014 STS, English: 3,750 pairs in several sub-sets, scored 0 to 5."""

from embeval.core.specs import DatasetRef, TaskSpec

SPEC = TaskSpec(
    name="STS14",
    type="sts",
    dataset=DatasetRef(path="sts/STS14/test.jsonl.gz", split="test"),
    languages=("eng",),
    license="scores CC BY-SA; sentences under the terms of their sources",
    citation="Agirre et al., SemEval-2014 Task 10: Multilingual Semantic Textual Similarity, 2014",
)
