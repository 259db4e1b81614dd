"""What happened to the texts of a task, as counts for the result and as sentences for its reader."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from embeval.core.embeddings import Embeddings, TextCounts
from embeval.core.protocols import Encoder


@dataclass
class Alike:
    """Finds different texts that look the same to the model once truncated."""

    _seen: Counter[bytes] = field(default_factory=Counter)

    @classmethod
    def of(cls, embeddings: Embeddings) -> Alike:
        """Of one batch of texts."""
        alike = cls()
        alike.add(embeddings)
        return alike

    def add(self, embeddings: Embeddings) -> None:
        """More texts."""
        self._seen.update((embeddings.truncated or {}).values())

    @property
    def n(self) -> int:
        """Texts that share what is left of them with another one."""
        return sum(count for count in self._seen.values() if count > 1)


def texts(what: str, counts: TextCounts) -> dict[str, int | None]:
    """The counts under names that start with what the texts are: ``documents_truncated``."""
    return {
        what: counts.n_texts,
        f"{what}_empty": counts.n_empty,
        f"{what}_zero_vectors": counts.n_zero,
        f"{what}_truncated": counts.n_truncated,
        f"{what}_tokens_kept": counts.tokens_kept,
        f"{what}_tokens_lost": counts.tokens_lost,
    }


def warnings(
    groups: Iterable[tuple[str, TextCounts, Alike]],
    *,
    encoder: Encoder,
    prompts_used: Sequence[str],
    needs_prompts: bool,
) -> list[str]:
    """Sentences about what a reader of the numbers should know."""
    found = []
    for what, counts, alike in groups:
        if counts.n_truncated:
            assert counts.tokens_kept is not None
            assert counts.tokens_lost is not None
            share = counts.tokens_lost / (counts.tokens_kept + counts.tokens_lost)
            found.append(
                f"{counts.n_truncated} of {counts.n_texts} {what} were truncated to "
                f"{encoder.info.max_seq_length} tokens: {counts.tokens_lost} tokens lost ({share:.1%})."
            )
        if alike.n:
            found.append(f"{alike.n} truncated {what} look the same to the model as another of them.")
        if counts.n_empty:
            found.append(f"{counts.n_empty} of {counts.n_texts} {what} are empty.")
        if counts.n_zero:
            found.append(f"{counts.n_zero} of {counts.n_texts} {what} have an all-zero vector: cosine 0 with anything.")
    if needs_prompts and encoder.info.prompts and not any(prompts_used):
        declared = ", ".join(sorted(encoder.info.prompts))
        found.append(f"The model declares prompts ({declared}), and this run used none.")
    return found
