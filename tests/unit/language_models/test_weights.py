"""What is said of the weights of a model with its head."""

from __future__ import annotations

from pathlib import Path

from embeval.core.specs import ModelSpec
from embeval.encoders import loading as encoders
from embeval.language_models import loading
from tests.support.models import edit_json, save_tiny_checkpoint


def test_layers_that_are_not_used_are_told(tmp_path: Path) -> None:
    """The configuration of a smaller model beside the weights: numbers would be those of neither."""
    folder = save_tiny_checkpoint(tmp_path / "model", "bert", head="AutoModelForMaskedLM")
    edit_json(folder / "config.json", num_hidden_layers=1)
    (remark,) = loading.load(encoders.resolve(ModelSpec(name=str(folder))), "masked").info.remarks
    assert remark.startswith("16 weights in the model's files are not used, such as bert.encoder.layer.1.attention.")


def test_nobody_misses_the_head_for_the_next_sentence(tmp_path: Path) -> None:
    """BERT's own checkpoints have it, and the pooler that it reads."""
    folder = save_tiny_checkpoint(tmp_path / "model", "bert", head="AutoModelForPreTraining")
    assert loading.load(encoders.resolve(ModelSpec(name=str(folder))), "masked").info.remarks == ()
