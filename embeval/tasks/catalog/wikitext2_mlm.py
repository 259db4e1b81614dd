"""WikiText-2, raw, test: words of 2,891 lines of Wikipedia, masked alike for all models."""

from embeval.core.specs import DatasetRef, TaskSpec

SPEC = TaskSpec(
    name="wikitext2-mlm",
    type="masked_lm",
    dataset=DatasetRef(path="lm/wikitext2_raw/wiki.test.raw.gz", split="test"),
    options={"masking": "aligned"},
    main_score="mlm_loss_per_word",
    languages=("eng",),
    license="CC BY-SA 3.0 and GFDL",
    citation="Merity et al., Pointer Sentinel Mixture Models, 2017",
)
