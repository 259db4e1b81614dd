"""Minimal pairs for tiny models, and tiny causal models with a token that begins a text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.support.data import write_jsonl
from tests.support.models import save_tiny_checkpoint

PARADIGMS: dict[str, tuple[str, str, list[tuple[str, str]]]] = {
    "verb_number": (
        "morphology",
        "agreement",
        [
            ("the files are old", "the files is old"),
            ("the server is new", "the server are new"),
            ("a user was fast", "a user were fast"),
            ("the three users were slow", "the three users was slow"),
        ],
    ),
    "article": (
        "morphology",
        "determiner",
        [
            ("an old key", "a old key"),
            ("an archive of a user", "a archive of a user"),
            ("a new token for an archive", "a new token for a archive"),
        ],
    ),
    "order": (
        "syntax",
        "order",
        [
            ("restore the backup", "the restore backup"),
            ("scan a page into the archive", "scan page a into the archive"),
            ("the key of the day.", "key the of the day."),
            ("red and blue", "and red blue"),
        ],
    ),
}
"""Paradigm -> field, phenomenon, pairs of an acceptable sentence and another."""


def write_blimp(folder: Path) -> Path:
    """The paradigms in BLiMP's form, one file each."""
    for paradigm, (field, term, pairs) in PARADIGMS.items():
        rows = [
            {
                "sentence_good": good,
                "sentence_bad": bad,
                "field": field,
                "linguistics_term": term,
                "UID": paradigm,
                "pairID": str(number),
            }
            for number, (good, bad) in enumerate(pairs)
        ]
        write_jsonl(folder / f"{paradigm}.jsonl", rows)
    return folder


def save_causal(folder: Path, kind: str = "gpt2", *, begin: str = "named", **config: Any) -> Path:
    """A tiny causal model. ``begin``: its token is only ``named``, as GPT-2's, ``put`` before texts, or ``none``."""
    from tokenizers.processors import TemplateProcessing
    from transformers import AutoTokenizer

    save_tiny_checkpoint(folder, kind, head="AutoModelForCausalLM", **config)
    if begin != "none":
        tokenizer = AutoTokenizer.from_pretrained(folder)
        tokenizer.bos_token = "[END]"
        if begin == "put":
            special = [("[END]", tokenizer.bos_token_id)]
            tokenizer.backend_tokenizer.post_processor = TemplateProcessing(single="[END] $A", special_tokens=special)
        tokenizer.save_pretrained(folder)
    return folder
