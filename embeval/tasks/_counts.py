"""What happened to the texts of a task, as counts for the result and as sentences for its reader."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from embeval.core.embeddings import Alike, TextCounts
from embeval.core.protocols import Encoder
from embeval.core.quantization import bytes_per_vector
from embeval.core.words import are, plural

UNKNOWN_SHARE = 0.05
"""Unknown tokens beyond this share are told: the texts are in a script that the model doesn't read."""


def texts(what: str, counts: TextCounts) -> dict[str, int | None]:
    """The counts under names that start with what the texts are: ``documents_truncated``."""
    return {
        what: counts.n_texts,
        f"{what}_empty": counts.n_empty,
        f"{what}_zero_vectors": counts.n_zero,
        f"{what}_truncated": counts.n_truncated,
        f"{what}_tokens_kept": counts.tokens_kept,
        f"{what}_tokens_lost": counts.tokens_lost,
        f"{what}_tokens_unknown": counts.tokens_unknown,
    }


def sizes(encoders: Sequence[Encoder]) -> dict[str, int | None]:
    """Dimensions of a text's vectors, and what they take as they are stored; those of several encoders added up."""
    return {
        "dimensions": sum(encoder.info.dim for encoder in encoders),
        "vector_bytes": sum(bytes_per_vector(encoder.info.dim, encoder.spec.quantize) for encoder in encoders),
    }


def warnings(
    groups: Iterable[tuple[str, TextCounts, Alike]],
    *,
    encoder: Encoder,
    prompts_used: Sequence[str],
) -> list[str]:
    """Sentences about what a reader of the numbers should know."""
    found = list(encoder.info.remarks)
    for what, counts, alike in groups:
        of_all = f"of {counts.n_texts} {what}"
        if n := counts.n_truncated:
            assert counts.tokens_kept is not None
            assert counts.tokens_lost is not None
            share = counts.tokens_lost / (counts.tokens_kept + counts.tokens_lost)
            found.append(
                f"{n} {of_all} cut to {encoder.info.max_seq_length} tokens: "
                f"{plural(counts.tokens_lost, 'token')} lost ({share:.1%})."
            )
        if (
            counts.tokens_unknown
            and counts.tokens_kept
            and ((share := counts.tokens_unknown / counts.tokens_kept) > UNKNOWN_SHARE)
        ):
            found.append(f"The tokenizer does not know {share:.0%} of the tokens of the {what}.")
        if alike.n:
            found.append(f"{alike.n} {of_all} look the same to the model as another one, once cut.")
        if n := counts.n_empty:
            found.append(f"{n} {of_all} {are(n)} empty: cosine 0 with anything.")
        if n := counts.n_zero - counts.n_empty:
            found.append(f"{n} {of_all} {'has' if n == 1 else 'have'} an all-zero vector: cosine 0 with anything.")
    own = encoder.spec.prompts
    if own and not set(own.values()) & set(prompts_used):
        names = ", ".join(sorted(own))
        found.append(f"The prompts given ({names}) fit no role, name or type of this task and were not used.")
    elif encoder.info.prompts and not own and not any(prompts_used):
        declared = ", ".join(sorted(encoder.info.prompts))
        found.append(f"The model declares prompts ({declared}), and this run used none.")
    return found
