"""SciFact as in BEIR: 300 scientific claims against 5,183 abstracts."""

from embeval.core.specs import DatasetRef, TaskSpec

SPEC = TaskSpec(
    name="SciFact",
    type="retrieval",
    dataset=DatasetRef(path="retrieval/SciFact", split="test"),
    options={"self_match": "keep"},
    languages=("eng",),
    license="claims CC BY 4.0; abstracts ODC-By 1.0",
    citation="Wadden et al., Fact or Fiction: Verifying Scientific Claims, 2020; Thakur et al., BEIR, 2021",
)
