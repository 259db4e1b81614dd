"""A language model with its head as an ONNX graph, asked at chosen places only.

The folder is that of ``encoders.export``. The graph has the inputs ``input_ids`` and ``attention_mask`` [B, T],
``rows``, ``places`` and ``targets`` [M] and the output ``scores`` float32 [M, 3], which are those of
``model.TokenScorer``. All sizes are free. The head runs on M places and not on B x T tokens: a vocabulary is wide, and
few tokens are asked for.

The tokenizer's files stay as they are, so that results of the graph and of the model itself are of one tokenizer.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from embeval.core.protocols import LanguageModelKind as Kind
from embeval.encoders import export, modules, onnx_head, torch_checks
from embeval.encoders.backends.onnx import KIND
from embeval.encoders.locate import Located
from embeval.language_models import heads
from embeval.language_models.backends.onnx import SCORES, VOCABULARY
from embeval.language_models.backends.transformers import load_with_head, scores

INPUTS = ("input_ids", "attention_mask", "rows", onnx_head.PLACES, "targets")


def write_folder(located: Located, kind: Kind, out: Path) -> Path:
    """Writes the model in float32 and all that belongs to it to ``out``; gives the graph's file.

    Raises ``ConfigError`` for settings that an export can't carry, ``ModelError`` for a model that can't be exported.
    """
    export.refuse_settings(located)
    assert located.folder is not None
    transformer = modules.transformer_folder(located.folder, located.spec)
    model, _ = load_with_head(located, kind)
    positions = torch_checks.position_limit(model)
    export.copy_files(located.folder, out)
    below = out / transformer.relative_to(located.folder)
    module = _module(model, kind, located.spec.name)
    graph = export.write_graph(module, _examples(), below, located.spec.name, output=SCORES)
    about = {"head": "language_model", KIND: kind, VOCABULARY: module.head.width}
    export.note(below, located.spec, positions=positions, **about)
    return graph


def _module(model: Any, kind: Kind, name: str) -> Any:
    import torch

    export.attend_plainly(model)
    body = model.base_model
    back = 1 if kind == "causal" else 0

    class Graph(torch.nn.Module):
        """Body and head with their inputs by place and one output."""

        def __init__(self) -> None:
            super().__init__()
            self.body, self.head = body, heads.head_of(model, name)

        def forward(self, *given: torch.Tensor) -> torch.Tensor:
            """[M, 3]."""
            input_ids, attention_mask, rows, places, targets = given
            hidden = self.body(input_ids=input_ids, attention_mask=attention_mask)[0]
            found: torch.Tensor = scores(self.head.logits(hidden[rows, places - back]), targets)
            return found

    return Graph()


def _examples() -> dict[str, Any]:
    """Two texts of which one is padded, asked at three places: sizes of one would be taken for ones that never change.

    A mask of ones alone would be taken for one that is never needed.
    """
    import torch

    ids = torch.arange(14).reshape(2, 7) % 5
    mask = torch.ones_like(ids)
    mask[1, 4:] = 0
    asked = torch.tensor([[0, 0, 1], [2, 4, 1], [1, 0, 1]])
    return dict(zip(INPUTS, (ids, mask, *asked), strict=True))
