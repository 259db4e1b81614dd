"""STS benchmark, machine-translated to Spanish by DeepL: 1,379 pairs scored 0 to 5."""

from embeval.core.specs import DatasetRef, TaskSpec

SPEC = TaskSpec(
    name="STSBenchmarkMultilingualSTS-es",
    type="sts",
    dataset=DatasetRef(path="sts/stsb_multi_mt/es/test.jsonl.gz", split="test"),
    languages=("spa",),
    license="scores CC BY-SA 4.0; sentences under the terms of their sources",
    citation="Cer et al., SemEval-2017 Task 1, 2017; May, Machine translated multilingual STS benchmark dataset, 2021",
)
