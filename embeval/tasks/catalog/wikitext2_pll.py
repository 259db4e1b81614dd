"""WikiText-2, raw, test: the lines of 60 articles of Wikipedia."""

from embeval.core.specs import DatasetRef, TaskSpec

SPEC = TaskSpec(
    name="wikitext2-pll",
    type="pseudo_likelihood",
    dataset=DatasetRef(path="lm/wikitext2_raw/wiki.test.raw.gz", split="test"),
    languages=("eng",),
    license="CC BY-SA 3.0 and GFDL",
    citation="Merity et al., Pointer Sentinel Mixture Models, 2017",
)
