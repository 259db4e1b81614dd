"""Faster kernels against torch's own in float64: equal, or not used."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn
from transformers import AutoModel, BertConfig, BertModel, LlamaConfig, LlamaModel, XLNetConfig, XLNetModel

from embeval.encoders import torch_speed
from embeval.encoders.torch_speed import ATTENTION, PackedLinear, speed_up

needs_kernels = pytest.mark.skipif(not torch_speed._has_kernels(), reason="this torch has no oneDNN kernels")
TOLERANCE = {torch.float32: 1e-5, torch.bfloat16: 1e-2}
"""Relative to the largest value: bfloat16 has 8 bits."""
SIZES: dict[str, Any] = {
    "vocab_size": 50,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 48,
    "max_position_embeddings": 64,
}


@pytest.fixture(autouse=True)
def seeded() -> Any:
    """The same random numbers for each test, and none taken from others."""
    with torch.random.fork_rng(), torch.inference_mode():
        torch.manual_seed(0)
        yield


def bert(activation: str = "gelu", dtype: torch.dtype = torch.float32, attention: str = "sdpa") -> Any:
    """A random BERT."""
    config = BertConfig(**SIZES, hidden_act=activation, attn_implementation=attention, initializer_range=0.2)
    return BertModel(config).to(dtype).eval()


def kinds(model: nn.Module) -> set[type]:
    """Which classes of linear layers a model has."""
    return {type(module) for module in model.modules() if isinstance(module, nn.Linear | PackedLinear)}


def near(found: torch.Tensor, expected: torch.Tensor, dtype: torch.dtype) -> None:
    """Asserts equality to the tolerance of a number format."""
    error = (found.double() - expected.double()).abs().max()
    assert error <= TOLERANCE[dtype] * expected.abs().max()


@needs_kernels
@pytest.mark.parametrize("dtype", list(TOLERANCE))
@pytest.mark.parametrize("gelu", [False, True])
@pytest.mark.parametrize("bias", [False, True])
def test_packed_layers_equal_linear_ones(dtype: torch.dtype, gelu: bool, bias: bool) -> None:
    """Weights laid out for 64 tokens, used for any number of them: nn.Linear and GELU in float64."""
    linear = nn.Linear(33, 17, bias=bias).to(dtype)
    packed = torch_speed._packed(linear, dtype, gelu=gelu, rows=64)
    assert packed is not None
    exact = nn.Linear(33, 17, bias=bias).double()
    exact.load_state_dict(linear.state_dict())
    for shape in ((1, 33), (64, 33), (3, 5, 33), (2, 300, 33)):
        inputs = torch.randn(shape).to(dtype)
        expected = exact(inputs.double())
        found = packed(inputs)
        assert (found.dtype, found.shape) == (dtype, expected.shape)
        near(found, nn.functional.gelu(expected) if gelu else expected, dtype)


@needs_kernels
def test_a_packed_layer_tells_its_dtype_and_no_numbers() -> None:
    """T5 asks for ``weight.dtype``; whoever computes with the weight gets NaN, and it takes no memory."""
    packed = torch_speed._packed(nn.Linear(300, 200), torch.float32, gelu=False, rows=8)
    assert packed is not None
    assert (packed.weight.dtype, packed.weight.shape) == (torch.float32, (200, 300))
    assert packed.weight.isnan().all()
    assert packed.weight.untyped_storage().nbytes() == 4
    assert list(packed.parameters()) == []


@needs_kernels
@pytest.mark.parametrize("dtype", list(TOLERANCE))
def test_a_fast_model_gives_the_same_vectors(dtype: torch.dtype) -> None:
    """A BERT with padding: all its linear layers are replaced, GELU with them, and its hidden states stay."""
    model = bert(dtype=dtype)
    ids, mask = torch.randint(0, 50, (3, 9)), torch.ones(3, 9, dtype=torch.long)
    mask[0, 5:] = 0
    expected = bert().double()
    expected.load_state_dict(model.state_dict())
    before = expected(ids, mask).last_hidden_state
    speed_up(model, dtype, rows=64)
    assert kinds(model) == {PackedLinear}
    assert all(isinstance(layer.intermediate.intermediate_act_fn, nn.Identity) for layer in model.encoder.layer)
    assert model.config._attn_implementation == (ATTENTION if dtype == torch.bfloat16 else "sdpa")
    found = model(ids, mask).last_hidden_state
    error = (found.double() - before)[mask.bool()].abs().max()
    assert error < {torch.float32: 1e-5, torch.bfloat16: 0.15}[dtype]


@needs_kernels
@pytest.mark.parametrize("activation", ["gelu_new", "gelu_pytorch_tanh", "relu", "silu"])
def test_other_activations_are_not_fused(activation: str) -> None:
    """GELU by tanh differs from GELU by the error function in the 4th digit: the layer is packed without it."""
    model = bert(activation)
    ids = torch.randint(0, 50, (2, 9))
    before = model(ids).last_hidden_state
    speed_up(model, torch.float32, rows=64)
    assert kinds(model) == {PackedLinear}
    assert not any(isinstance(layer.intermediate.intermediate_act_fn, nn.Identity) for layer in model.encoder.layer)
    torch.testing.assert_close(model(ids).last_hidden_state, before, atol=1e-5, rtol=0)


def test_what_counts_as_gelu() -> None:
    """By what it computes, not by its name; nothing that fails on a tensor, or gives none."""

    def fails(_: Any) -> Any:
        raise TypeError

    assert torch_speed._is_gelu(nn.GELU())
    assert torch_speed._is_gelu(nn.functional.gelu)
    for other in (nn.GELU("tanh"), nn.ReLU(), nn.Identity(), None, "gelu", fails, lambda _: 3):
        assert not torch_speed._is_gelu(other)


def refused() -> Any:
    """A model, after an attempt to speed it up."""
    model = bert()
    speed_up(model, torch.float32, rows=64)
    return model


def test_a_model_is_left_alone_where_there_are_no_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """torch without oneDNN."""
    monkeypatch.setattr(torch_speed, "_has_kernels", lambda: False)
    assert kinds(refused()) == {nn.Linear}


@needs_kernels
def test_a_model_is_left_alone_where_kernels_fail_or_are_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that raises, one that is off by a thousandth, and one that forgets the activation."""
    right = torch.ops.mkldnn._linear_pointwise

    def fails(*_: Any) -> Any:
        raise RuntimeError("not on this processor")

    monkeypatch.setattr(torch.ops.mkldnn, "_linear_pointwise", fails)
    assert kinds(refused()) == {nn.Linear}
    monkeypatch.setattr(torch.ops.mkldnn, "_linear_pointwise", lambda *given: right(*given) * 1.001)
    assert kinds(refused()) == {nn.Linear}
    monkeypatch.setattr(torch.ops.mkldnn, "_linear_pointwise", lambda *given: right(*given[:3], "none", [], ""))
    model = refused()
    assert kinds(model) == {PackedLinear}
    assert not any(isinstance(layer.intermediate.intermediate_act_fn, nn.Identity) for layer in model.encoder.layer)


def test_other_number_formats_are_left_alone() -> None:
    """float16 has no kernel here, and a layer of another dtype than the model's keeps its own."""
    model = bert(dtype=torch.float16)
    speed_up(model, torch.float16, rows=64)
    assert kinds(model) == {nn.Linear}
    mixed = bert()
    speed_up(mixed, torch.bfloat16, rows=64)
    assert kinds(mixed) == {nn.Linear}


@needs_kernels
def test_attention_that_is_not_the_library_s_stays() -> None:
    """A model that was asked for eager attention, and one that has only its own."""
    model = bert(dtype=torch.bfloat16, attention="eager")
    speed_up(model, torch.bfloat16, rows=64)
    assert model.config._attn_implementation == "eager"
    own = XLNetModel(XLNetConfig(vocab_size=50, d_model=32, n_layer=1, n_head=2, d_inner=48)).to(torch.bfloat16).eval()
    before = own.config._attn_implementation
    speed_up(own, torch.bfloat16, rows=64)
    assert own.config._attn_implementation == before


SHAPE = (2, 3, 6, 4)
"""Batch, heads, tokens, width of a head."""


def attend(
    module: Any, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor | None, **options: Any
) -> torch.Tensor:
    """Our attention, back in the order of torch."""
    return torch_speed._attention(module, q, k, v, mask, **options)[0].transpose(1, 2)


def exact(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor | None = None, **options: Any
) -> torch.Tensor:
    """torch's attention in float64."""
    mask = mask.double() if mask is not None and mask.is_floating_point() else mask
    found: torch.Tensor = nn.functional.scaled_dot_product_attention(
        q.double(), k.double(), v.double(), attn_mask=mask, **options
    )
    return found


NOT_CAUSAL = SimpleNamespace(is_causal=False)


@pytest.mark.parametrize("dtype", list(TOLERANCE))
def test_attention_equals_that_of_torch(dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a mask, with one of yes and no, with one that is added, with a scale, and with a bias of positions."""
    monkeypatch.setattr(torch_speed, "_library_attention", lambda: pytest.fail("must be ours"))
    q, k, v = (torch.randn(SHAPE).to(dtype) for _ in range(3))
    allowed = torch.rand(2, 1, 6, 6) > 0.4
    allowed[..., 0] = True
    added = torch.where(allowed, 0.0, torch.finfo(torch.float32).min).to(dtype)
    bias = torch.randn(1, 3, 6, 6).to(dtype)
    near(attend(NOT_CAUSAL, q, k, v, None), exact(q, k, v), dtype)
    near(attend(NOT_CAUSAL, q, k, v, allowed), exact(q, k, v, allowed), dtype)
    near(attend(NOT_CAUSAL, q, k, v, added), exact(q, k, v, allowed), dtype)
    near(attend(NOT_CAUSAL, q, k, v, allowed, scaling=1.0), exact(q, k, v, allowed, scale=1.0), dtype)
    near(attend(NOT_CAUSAL, q, k, v, None, position_bias=bias), exact(q, k, v, bias), dtype)
    both = bias.double().masked_fill(~allowed, -torch.inf)
    near(attend(NOT_CAUSAL, q, k, v, allowed, position_bias=bias), exact(q, k, v, both), dtype)
    near(attend(SimpleNamespace(is_causal=True), q, k, v, allowed), exact(q, k, v, allowed), dtype)


def test_rows_of_padding_alone_are_numbers() -> None:
    """A token that may look at nothing gets some number, and others the same as without it."""
    q, k, v = (torch.randn(SHAPE).to(torch.bfloat16) for _ in range(3))
    allowed = torch.ones(2, 1, 6, 6, dtype=torch.bool)
    allowed[1, :, 4:] = False
    allowed[1, :, :, 4:] = False
    found = attend(NOT_CAUSAL, q, k, v, allowed)
    assert found.isfinite().all()
    near(found[0], exact(q, k, v)[0], torch.bfloat16)
    near(found[1, :, :4], exact(q[1:, :, :4], k[1:, :, :4], v[1:, :, :4])[0], torch.bfloat16)


def test_what_is_left_to_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    """Causal without a mask, fewer heads of keys than of queries, and long texts: its result, unchanged."""
    calls = []
    library = torch_speed._library_attention()

    def counted(*given: Any, **options: Any) -> Any:
        calls.append(options)
        return library(*given, **options)

    monkeypatch.setattr(torch_speed, "_library_attention", lambda: counted)
    monkeypatch.setattr(torch_speed, "LONGEST", 6)
    q, k, v = (torch.randn(SHAPE) for _ in range(3))
    causal = exact(q, k, v, is_causal=True)
    near(attend(SimpleNamespace(is_causal=True), q, k, v, None), causal, torch.float32)
    near(attend(SimpleNamespace(), q, k, v, None), causal, torch.float32)  # as the library has it where nothing is said
    near(attend(NOT_CAUSAL, q, k, v, None, is_causal=True), causal, torch.float32)
    assert len(calls) == 3
    near(attend(SimpleNamespace(is_causal=True), q, k, v, None, is_causal=False), exact(q, k, v), torch.float32)
    assert len(calls) == 3
    grouped = SimpleNamespace(is_causal=False, num_key_value_groups=3)
    one = slice(0, 1)
    spread = exact(q, k[:, one].expand(SHAPE), v[:, one].expand(SHAPE))
    near(attend(grouped, q, k[:, one], v[:, one], None), spread, torch.float32)
    assert len(calls) == 4
    q, k, v = (torch.randn(1, 2, 7, 4) for _ in range(3))
    bias = torch.randn(1, 2, 7, 7)
    near(attend(NOT_CAUSAL, q, k, v, None, position_bias=bias), exact(q, k, v, bias), torch.float32)
    assert len(calls) == 5
    with pytest.raises(ValueError, match="does not support `softcap`"):
        attend(NOT_CAUSAL, q[:, :, :3], k[:, :, :3], v[:, :, :3], None, softcap=30.0)


@needs_kernels
@pytest.mark.parametrize("heads", [1, 2])
def test_causal_models_stay_causal(heads: int) -> None:
    """A Llama in bfloat16, with and without padding: the states of a text's beginning don't hang on its end."""
    config = LlamaConfig(**SIZES, num_key_value_heads=heads, attn_implementation="sdpa", initializer_range=0.2)
    model: Any = LlamaModel(config).to(torch.bfloat16).eval()
    slow: Any = AutoModel.from_config(config).float().eval()
    slow.load_state_dict(model.state_dict())
    speed_up(model, torch.bfloat16, rows=64)
    assert model.config._attn_implementation == ATTENTION
    ids, mask = torch.randint(0, 50, (2, 9)), torch.ones(2, 9, dtype=torch.long)
    changed = ids.clone()
    changed[:, 6:] = (ids[:, 6:] + 1) % 50
    for padding in (0, 3):
        mask[1, :padding] = 0
        found = model(ids, attention_mask=mask).last_hidden_state
        beginning = model(changed, attention_mask=mask).last_hidden_state
        assert torch.equal(found[0, :6], beginning[0, :6])
        assert not torch.equal(found[0, 6:], beginning[0, 6:])
        expected = slow(ids, attention_mask=mask).last_hidden_state
        cosines = nn.functional.cosine_similarity(found.float(), expected, dim=-1)[mask.bool()]
        assert cosines.min() > 0.999


def test_a_block_that_only_looks_like_a_residual_one_stays() -> None:
    """The layers of BERT's block under the same names, put together otherwise: the sum comes after the norm."""
    import torch
    from torch import nn

    from embeval.encoders import torch_speed

    class Other(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.dense, self.LayerNorm = nn.Linear(16, 16), nn.LayerNorm(16)

        def forward(self, hidden_states: torch.Tensor, input_tensor: torch.Tensor) -> torch.Tensor:
            return self.LayerNorm(self.dense(hidden_states)) + input_tensor  # type: ignore[no-any-return]

    torch.manual_seed(0)
    model = nn.ModuleDict({"block": Other()}).eval()
    inputs = torch.randn(1, 5, 16), torch.randn(1, 5, 16)
    with torch.inference_mode():
        before = model["block"](*inputs)
        torch_speed.speed_up(model, torch.float32, rows=64)
        after = model["block"](*inputs)
    assert isinstance(model["block"], Other)
    assert torch.allclose(before, after, atol=1e-5)


class Summed(nn.Module):
    """The two parts of a block by name, with a sum between them."""

    def __init__(self) -> None:
        super().__init__()
        self.dense = nn.Linear(8, 8)
        self.intermediate_act_fn = nn.GELU()

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        """[..., 8] from [..., 8]."""
        mixed: torch.Tensor = self.intermediate_act_fn(self.dense(hidden_states) + hidden_states)
        return mixed


def test_a_block_put_together_otherwise_is_left_alone() -> None:
    """Fused by the names of its parts its sum would come after the activation."""
    model = nn.ModuleDict({"block": Summed()})
    inputs = torch.linspace(-2, 2, 48).reshape(2, 3, 8)
    with torch.inference_mode():
        expected = model["block"](inputs)
        speed_up(model, torch.float32, rows=16)
        torch.testing.assert_close(model["block"](inputs), expected, atol=1e-5, rtol=0)
