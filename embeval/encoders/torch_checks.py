"""Whether a model is whole. The libraries start missing weights at random, and say so in a log only."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from embeval.core.words import plural
from embeval.encoders.tokens import refuse_no_vocabulary
from embeval.errors import ModelError

CONSTANTS = ("position_ids", "masked_bias", "attn.bias", "attention.bias", "inv_freq")
"""Ends of names of buffers that older versions of the library saved, and that are no weights."""
UNREAD = {"pooler", "seq_relationship"}
"""Parts of a checkpoint that nobody misses: what BERT's training reads the next sentence off."""
POSITIONS = ("position_embeddings", "embed_positions", "wpe")
"""What models call their table of positions."""
WHY_NOT = "Perhaps a file of it is missing, or belongs to another version of the library."
"""The usual reason why a model can't be loaded."""
NEWER_DEBERTA_HEAD = "lm_predictions.lm_head."
"""What begins the names of the weights of DeBERTa's own head, which transformers doesn't load unless it is told to."""
SHOWN = 3
"""Names of weights in a message."""


@dataclass(frozen=True)
class Load:
    """One model of transformers that was loaded."""

    model: Any
    missing: tuple[str, ...]
    """Weights that the model has and the files don't: started at random."""
    unused: tuple[str, ...]
    """Weights that the files have and the model doesn't."""
    mismatched: tuple[str, ...]
    """Weights that have another shape in the files than in the model."""


@contextlib.contextmanager
def recorded_loads() -> Iterator[list[Load]]:
    """Every model that transformers loads inside, with what its files lacked and what they had too much.

    ``output_loading_info`` tells it, but sentence-transformers doesn't pass that on; so it is asked for underneath.
    """
    from transformers import PreTrainedModel

    loads: list[Load] = []
    original = PreTrainedModel.__dict__["from_pretrained"]

    def from_pretrained(cls: Any, *args: Any, **options: Any) -> Any:
        if options.pop("output_loading_info", False):
            return original.__func__(cls, *args, output_loading_info=True, **options)
        # Mismatched shapes are told by us, with their names: the library raises and leaves the names to a log.
        options.setdefault("ignore_mismatched_sizes", True)
        model, info = original.__func__(cls, *args, output_loading_info=True, **options)
        mismatched = sorted(f"{name} {list(there)} for {list(own)}" for name, there, own in info["mismatched_keys"])
        loads.append(
            Load(
                model,
                missing=tuple(sorted(info["missing_keys"])),
                unused=tuple(sorted(info["unexpected_keys"])),
                mismatched=tuple(mismatched),
            )
        )
        return model

    PreTrainedModel.from_pretrained = classmethod(from_pretrained)
    try:
        yield loads
    finally:
        PreTrainedModel.from_pretrained = original


def not_loaded(error: Exception, name: str, library: str, advice: str = WHY_NOT) -> ModelError:
    """What to say where a library can't load a model, with its own reason."""
    if "custom code" in str(error) and "trust_remote_code" in str(error):
        return ModelError(
            f"Model {name!r} brings code of its own, which {library} needs to run it.\n"
            "args: {trust_remote_code: true} runs it. Do so only if you trust where the model comes from."
        )
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return ModelError(
        f"Model {name!r} can't be loaded with {library}.\n"
        f"{type(error).__name__}: {(' '.join(lines[:2]) or 'no reason given')[:300]}\n{advice}"
    )


def refuse_missing_weights(
    loads: list[Load], name: str, *, pools_tokens: bool, language_head: bool = False
) -> list[str]:
    """Sentences about weights that were not used. Raises ``ModelError`` where some are missing.

    It says so where they are those of a language-model head, which many models drop (``language_head``).

    A pooler is not counted where token vectors are pooled (``pools_tokens``): nothing reads it then, and many models
    come without. Nor are heads that the file has beside the body, as checkpoints of language models do.
    """
    remarks = []
    for load in loads:
        if load.mismatched:
            raise ModelError(
                f"Model {name!r}: {plural(len(load.mismatched), 'weight has', 'weights have')} another shape in its "
                f"files, such as {_some(load.mismatched)}.\nDoes config.json belong to these weights?"
            )
        missing = [key for key in load.missing if not (pools_tokens and "pooler" in key.split("."))]
        if missing and language_head:
            _refuse_missing_head(load, missing, name)
        if missing:
            raise ModelError(
                f"Model {name!r}: {plural(len(missing), 'weight is', 'weights are')} not in its files, such as "
                f"{_some(missing)}.\nThey would be random numbers. Does config.json belong to these weights?"
            )
        own = {child for part in (load.model, load.model.base_model) for child, _ in part.named_children()}
        prefix = f"{load.model.base_model_prefix}."
        unused = [key for key in load.unused if key.removeprefix(prefix).split(".")[0] in own]
        if unused := [key for key in unused if not UNREAD & set(key.split(".")) and not key.endswith(CONSTANTS)]:
            which = plural(len(unused), "weight in the model's files is", "weights in the model's files are")
            remarks.append(f"{which} not used, such as {_some(unused)}.")
    return remarks


def _refuse_missing_head(load: Load, missing: Sequence[str], name: str) -> None:
    """Raises ``ModelError`` where all that is missing is the head."""
    if any(key.split(".")[0] == load.model.base_model_prefix for key in missing):
        return
    advice = "An embedding model usually drops its head. Evaluate the checkpoint that it was trained from."
    if any(key.startswith(NEWER_DEBERTA_HEAD) for key in load.unused):
        advice = f'They hold another one ({NEWER_DEBERTA_HEAD}…), which "legacy": false in config.json loads.'
    raise ModelError(
        f"Model {name!r}: the language-model head is missing in its files: {_some(missing)} would be random numbers.\n"
        f"{advice}"
    )


def refuse_wrong_vocabulary(tokenizer: Any, model: Any, name: str) -> None:
    """Raises ``ModelError`` where a tokenizer knows no words, or gives ids that the model has no vector for."""
    embeddings = getattr(model, "get_input_embeddings", lambda: None)()
    refuse_no_vocabulary(tokenizer, name, n_vectors=getattr(embeddings, "num_embeddings", None))


def position_limit(model: Any) -> int | None:
    """Tokens that the model has positions for; None where positions are not learned one by one."""
    from torch import nn

    for name, module in model.named_modules():
        if name.rpartition(".")[2] in POSITIONS and isinstance(module, nn.Embedding):
            # RoBERTa and its kin count positions from behind the padding id, BART and OPT from an offset of their own.
            behind_padding = module.padding_idx + 1 if module.padding_idx is not None else 0
            return module.num_embeddings - int(getattr(module, "offset", behind_padding))
    return None


def _some(keys: Sequence[str]) -> str:
    return ", ".join(keys[:SHOWN])
