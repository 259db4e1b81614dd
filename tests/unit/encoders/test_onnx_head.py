"""A language model's head stays as it is when its body is converted, on a graph built by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from embeval.encoders import export, onnx_head

WORDS = np.random.default_rng(0).standard_normal((20, 8)).astype(np.float32)


SHAPES: dict[str, list[str | int | None]] = {"looked_up": ["i", 8], "hidden": ["i", 8], "asked": ["p", 8]}


def tied(places: str = onnx_head.PLACES) -> Any:
    """A model whose words' vectors give their scores, too: ids [T] and places [M] in, scores [M, 20] out."""
    node = helper.make_node
    graph = helper.make_graph(
        [
            node("Gather", ["words", "input_ids"], ["looked_up"], name="look"),
            node("Mul", ["looked_up", "two"], ["hidden"], name="double"),
            node("Transpose", ["words"], ["turned"], name="turn", perm=[1, 0]),
            node("Mul", ["turned", "two"], ["doubled"], name="double_weights"),
            node("Gather", ["hidden", places], ["asked"], name="ask"),
            node("MatMul", ["asked", "doubled"], ["scores"], name="score"),
        ],
        "tied",
        [helper.make_tensor_value_info(name, TensorProto.INT64, [name[0]]) for name in ("input_ids", places)],
        [helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["p", 20])],
        [numpy_helper.from_array(WORDS, "words"), numpy_helper.from_array(np.array(2.0, dtype=np.float32), "two")],
        value_info=[helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in SHAPES.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def scores(model: Any, places: str = onnx_head.PLACES) -> Any:
    """Of two places in a text, by onnx's own evaluator: onnxruntime leaves out roundings that cost it time on a CPU."""
    onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])  # that it takes it
    fed = {"input_ids": np.array([3, 5, 7, 9]), places: np.array([2, 0])}
    (found,) = list(ReferenceEvaluator(model).run(None, fed))
    return found


def test_what_the_head_is() -> None:
    """What depends on the places, and weights that are turned for it alone; nothing where there are no places."""
    assert onnx_head.node_names(tied()) == {"turn", "double_weights", "ask", "score"}
    assert onnx_head.node_names(tied("spots")) == set()


def test_the_head_is_computed_in_float32() -> None:
    """The body doubles in halves, and the head multiplies with weights that lost nothing: both read the one table."""
    rounded = WORDS.astype(np.float16).astype(np.float32)
    wanted = 2 * rounded[[7, 3]] @ (2 * WORDS.T)
    made = onnx_head.with_body(tied(), export.halved)
    np.testing.assert_allclose(scores(made), wanted, rtol=1e-6, atol=1e-5)
    assert [each.data_type for each in made.graph.initializer if list(each.dims) == [20, 8]] == [TensorProto.FLOAT]
    everything = scores(onnx_head.with_body(tied("spots"), export.halved), "spots")
    assert np.abs(everything - wanted).max() > 1e-3
