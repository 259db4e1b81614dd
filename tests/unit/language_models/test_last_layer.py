"""The last layer at one place per text gives what the whole layer gives there."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers

from embeval.core.specs import ModelSpec, RuntimeOptions
from embeval.encoders import locate, torch_speed
from embeval.language_models.backends import transformers as backend
from embeval.language_models.backends.transformers import scores
from embeval.language_models.last_layer import LastLayer, fits, narrowed
from tests.support.models import save_tiny_checkpoint

IDS = torch.tensor([[7, 8, 9, 10, 11, 12], [12, 9, 7, 0, 0, 0], [8, 0, 0, 0, 0, 0]])
MASK = (IDS != 0).long()


def body_of(folder: Path, kind: str, **config: Any) -> Any:
    """The body of a tiny model."""
    save_tiny_checkpoint(folder, kind, **config)
    return transformers.AutoModel.from_pretrained(folder).eval()


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("kind", ["bert", "roberta", "electra"])
@torch.inference_mode()
def test_it_is_the_row_of_the_whole_layer(tmp_path: Path, kind: str, packed: bool) -> None:
    """At every place, with texts of three lengths; also with the layers that a CPU runs faster."""
    body = body_of(tmp_path / kind, kind)
    whole = body(input_ids=IDS, attention_mask=MASK)[0]
    if packed:
        torch_speed.speed_up(body, torch.float32, rows=32)
    last = narrowed(body)
    assert last is not None
    for places in ([0, 0, 0], [5, 2, 0], [3, 1, 0]):
        last.places = torch.tensor(places)
        found = body(input_ids=IDS, attention_mask=MASK)[0]
        assert found.shape == (3, 1, 32)
        torch.testing.assert_close(found[:, 0], whole[torch.arange(3), places], atol=2e-6, rtol=1e-5)
    last.places = None
    torch.testing.assert_close(body(input_ids=IDS, attention_mask=MASK)[0], whole, atol=2e-6, rtol=1e-5)


@pytest.mark.parametrize("kind", ["albert", "distilbert", "deberta-v2", "modernbert", "mpnet"])
@torch.inference_mode()
def test_a_layer_of_another_form_stays(tmp_path: Path, kind: str) -> None:
    """Names or numbers don't fit: the body is as it was."""
    body = body_of(tmp_path / kind, kind)
    whole = body(input_ids=IDS, attention_mask=MASK)[0]
    assert narrowed(body) is None
    assert torch.equal(body(input_ids=IDS, attention_mask=MASK)[0], whole)


@torch.inference_mode()
def test_a_layer_of_that_form_that_computes_otherwise_stays(tmp_path: Path) -> None:
    """Relative positions in the attention: the same names, other numbers."""
    body = body_of(tmp_path / "bert", "bert")
    body.encoder.layer[-1].attention.self.scaling = 3.0
    assert narrowed(body) is None


@torch.inference_mode()
def test_what_rounding_hides_is_seen_before_a_body_is_cast(tmp_path: Path) -> None:
    """A layer that computes a little otherwise passes in bfloat16; a model in bfloat16 keeps it all the same."""
    save_tiny_checkpoint(tmp_path, "bert", head="AutoModelForMaskedLM")
    model = transformers.AutoModelForMaskedLM.from_pretrained(tmp_path).eval()
    assert fits(model.base_model)
    assert type(model.base_model.encoder.layer[-1]).__name__ == "BertLayer"
    model.base_model.encoder.layer[-1].attention.self.scaling *= 1.2
    assert not fits(model.base_model)
    assert narrowed(copy.deepcopy(model.base_model).to(torch.bfloat16)) is not None


@pytest.mark.parametrize(("factor", "narrow"), [(1.0, True), (1.2, False)])
def test_a_model_in_bfloat16_is_tried_in_float32(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, factor: float, narrow: bool
) -> None:
    """Where the layer is of another form, the body runs all of it."""
    save_tiny_checkpoint(tmp_path, "bert", head="AutoModelForMaskedLM")
    model = transformers.AutoModelForMaskedLM.from_pretrained(tmp_path).eval()
    model.base_model.encoder.layer[-1].attention.self.scaling *= factor
    monkeypatch.setattr(backend, "load_with_head", lambda *_: (model, []))
    located = locate.locate(ModelSpec(name=str(tmp_path), dtype="bfloat16"))
    scorer = backend.BACKEND.load(located, "masked", RuntimeOptions(device="cpu"), pad_id=0).run
    shapes = []
    scorer._body.encoder.register_forward_hook(lambda *call: shapes.append(call[2][0].shape[1]))  # type: ignore[attr-defined]
    row, place = np.zeros(1, dtype=np.intp), np.ones(1, dtype=np.intp)
    features = {"input_ids": IDS[:1].numpy(), "attention_mask": MASK[:1].numpy()}
    scorer(features, row, place, IDS[0, 1:2].numpy())
    assert shapes == [1 if narrow else 6]


@torch.inference_mode()
def test_each_place_sees_what_the_mask_lets_it_see(tmp_path: Path) -> None:
    """A mask with a row for every token, here of the neighbours alone, against the whole layer."""
    body = body_of(tmp_path / "bert", "bert")
    layer = body.encoder.layer[-1]
    hidden = torch.randn(3, 6, 32, generator=torch.Generator().manual_seed(0))
    at = torch.arange(6)
    near = ((at[:, None] - at).abs() <= 1)[None, None].expand(3, 1, 6, 6)
    for mask in (near, near[:1], torch.zeros(near.shape).masked_fill(~near, torch.finfo(torch.float32).min)):
        whole = layer(hidden, mask)
        last = LastLayer(layer)
        last.places = torch.tensor([5, 0, 3])
        torch.testing.assert_close(last(hidden, mask)[:, 0], whole[torch.arange(3), last.places], atol=2e-6, rtol=1e-5)


def test_scores_are_counted_exactly() -> None:
    """By hand: one larger and three equal ones, all equal, and the largest; natural logarithms of a softmax."""
    logits = torch.tensor([[2.0, 1.0, 1.0, 1.0, 0.0], [0.5] * 5, [0.0, 1.0, 2.0, 3.0, 4.0]])
    found = scores(logits, torch.tensor([1, 4, 4]))
    assert found[:, 1:].tolist() == [[1, 3], [0, 5], [0, 1]]
    expected = [torch.log_softmax(logits.double(), 1)[row, at].item() for row, at in enumerate([1, 4, 4])]
    torch.testing.assert_close(found[:, 0].double(), torch.tensor(expected, dtype=torch.float64), atol=1e-6, rtol=0)
