"""BIOSSES: 100 pairs of biomedical sentences, mean of five annotators, 0 to 4."""

from embeval.core.specs import DatasetRef, TaskSpec

SPEC = TaskSpec(
    name="BIOSSES",
    type="sts",
    dataset=DatasetRef(path="sts/BIOSSES/test.jsonl.gz", split="test"),
    languages=("eng",),
    license="GPL-3.0 (repository); data free for research",
    citation="Soğancıoğlu et al., BIOSSES: a semantic sentence similarity estimation system, 2017",
)
