"""BLiMP: minimal pairs of English, 1,000 for each of 67 paradigms; those that the folder holds are evaluated."""

from embeval.core.specs import DatasetRef, TaskSpec

SPEC = TaskSpec(
    name="blimp",
    type="minimal_pairs",
    dataset=DatasetRef(path="lm/blimp", split="test"),
    languages=("eng",),
    license="CC-BY-4.0",
    citation="Warstadt et al., BLiMP: The Benchmark of Linguistic Minimal Pairs for English, TACL 2020",
)
