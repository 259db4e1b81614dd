"""STS benchmark, English test split: 1,379 pairs scored 0 to 5."""

from embeval.core.specs import DatasetRef, TaskSpec

SPEC = TaskSpec(
    name="STSBenchmark",
    type="sts",
    dataset=DatasetRef(path="sts/stsbenchmark/test.jsonl.gz", split="test"),
    languages=("eng",),
    license="scores CC BY-SA 4.0; sentences under the terms of their sources",
    citation="Cer et al., SemEval-2017 Task 1: Semantic Textual Similarity, 2017",
)
