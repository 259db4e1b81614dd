"""SemEval 2015 STS, English: 3,000 pairs in several sub-sets, scored 0 to 5."""

from embeval.core.specs import DatasetRef, TaskSpec

SPEC = TaskSpec(
    name="STS15",
    type="sts",
    dataset=DatasetRef(path="sts/STS15/test.jsonl.gz", split="test"),
    languages=("eng",),
    license="scores CC BY-SA; sentences under the terms of their sources",
    citation="Agirre et al., SemEval-2015 Task 2: Semantic Textual Similarity, 2015",
)
