"""What must be equal for two results to be compared or to share a column of a leaderboard."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from embeval.core import strict_json
from embeval.core.border import BORDER

WHOLE = "all"
"""Sub-set of the result for every item of a split, pooled."""
RESERVED_SUBSETS = (WHOLE, "mean", "wmean")
"""Sub-sets that are not a part of the data: the pooled results, whose names no part may take."""
STANDS = "stands"
"""Key of the protocol that names the sub-set which stands for a task where it isn't ``WHOLE``."""
NO_TOKENIZER = "values per token, not all with a named tokenizer; per word or per character they can be compared"
"""Why values per token can't be held against each other, where nobody knows what they are per."""
SEVERAL_TOKENIZERS = "values per token of different tokenizers; per word or per character they can be compared"
"""Why they can't, where a token isn't the same for all."""


@dataclass(frozen=True, kw_only=True)
class Signature:
    """The protocol half says what was measured, the model half with what."""

    __pydantic_config__ = BORDER
    left_out_if_null: ClassVar[tuple[str, ...]] = ("tokenizer",)
    """Fields that came after results were stored: null ones aren't written, so that the hash of these stays."""

    protocol: Mapping[str, strict_json.Json]
    """Task type and version, data hash, split, subset, and every option that can change a number."""
    metrics: Mapping[str, int] = field(default_factory=dict)
    """Version of each metric computed. Two results can be compared on the metrics that agree."""
    model_digest: str
    """``ModelSpec.digest`` of the resolved model."""
    prompts: Mapping[str, str] = field(default_factory=dict)
    """The text put before inputs of each role."""
    tokenizer: str | None = None
    """Digest of the model's tokenizer, where values per token hang on it; no part of the protocol, since values per
    word are comparable all the same. Metrics per token are compared only where it is equal."""

    @property
    def stands(self) -> str:
        """The sub-set whose result stands for the task: every item pooled, or ``mean`` where the protocol says so."""
        return str(self.protocol.get(STANDS, WHOLE))

    @property
    def protocol_digest(self) -> str:
        """sha256 of the protocol half, 64 hexadecimal digits."""
        return strict_json.digest(dict(self.protocol))

    def differences(self, other: Signature) -> tuple[str, ...]:
        """The parts of the protocol in which two results differ, as sentences; empty if comparable."""
        mine, theirs = (
            {key: strict_json.canonical(value) for key, value in each.protocol.items()} for each in (self, other)
        )
        return tuple(
            f"{key}: {mine.get(key, 'absent')} and {theirs.get(key, 'absent')}"
            for key in sorted({*mine, *theirs})
            if mine.get(key) != theirs.get(key)
        )


def other_tokens(signatures: Iterable[Signature]) -> str | None:
    """Why values per token of these results can't be held against each other; None where they can.

    Whether a metric has such values is told by ``metrics.is_per_token``.
    """
    tokenizers = {each.tokenizer for each in signatures}
    if None in tokenizers:
        return NO_TOKENIZER
    return SEVERAL_TOKENIZERS if len(tokenizers) > 1 else None
