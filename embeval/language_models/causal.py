"""The variant of a text whose score is its log-likelihood under a causal model: the sum of ln p(token | those before).

One pass scores all tokens. What a tokenizer puts in front of a text itself stays there and nothing is added to it;
where it puts nothing, its begin token stands in front, so that the first token is scored too. A model whose tokenizer
has no such token says nothing of the first token, which then is not scored. The end of a text is never scored.
"""

from __future__ import annotations

import numpy as np

from embeval.language_models.tokenization import Frame, Text
from embeval.language_models.variants import Ids, Places, packed


def begin(frame: Frame) -> Ids:
    """int32 [B]: what stands before every text; empty where the first token is not scored."""
    if len(frame.before) or frame.begin_id is None:
        return frame.before
    return np.array([frame.begin_id], dtype=np.int32)


def scored_places(text: Text, frame: Frame) -> Places:
    """intp [m]: places of the tokens that count: content, with something before it."""
    first = 0 if len(begin(frame)) else 1
    return np.flatnonzero(text.scored[first:]) + first


def variant(text: Text, frame: Frame) -> str:
    """The text as the model sees it, with all tokens that count as targets."""
    before, places = begin(frame), scored_places(text, frame)
    return packed(np.concatenate([before, text.ids]), places + len(before), text.ids[places])
