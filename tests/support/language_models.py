"""Language models that are made up: a function of token ids in the place of a network."""

from __future__ import annotations

import atexit
import functools
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from embeval.core.protocols import LanguageModelKind as Kind
from embeval.core.specs import ModelSpec
from embeval.encoders.encoder import BatchedEncoder
from embeval.encoders.shelves import Shelves
from embeval.language_models.model import LanguageModel, VariantBackend, as_model, info_of
from embeval.language_models.tokenization import Frame
from tests.support.models import save_tiny_checkpoint

KINDS: dict[Kind, tuple[str, str]] = {
    "masked": ("bert", "AutoModelForMaskedLM"),
    "causal": ("gpt2", "AutoModelForCausalLM"),
    "replaced": ("electra", "AutoModelForPreTraining"),
}
"""Kind -> (type of a tiny model, class that it is saved as)."""


@functools.cache
def tiny_language_model(kind: Kind) -> Path:
    """A random checkpoint of that kind with its head; not to be changed."""
    folder = Path(tempfile.mkdtemp(prefix="embeval-tests-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    family, head = KINDS[kind]
    return save_tiny_checkpoint(folder / family, family, head=head)


Probability = Callable[[list[int], int, int], float]
"""(ids of the text as the model sees them, place, token wanted there) to the token's probability."""


def model_of(
    tokenizer: Any,
    probability: Probability,
    *,
    kind: Kind = "masked",
    limit: int | None = None,
    shelves: Shelves | None = None,
    batch_tokens: int = 64,
) -> LanguageModel:
    """A language model that gives each target the probability that the function says."""

    def run(
        features: dict[str, npt.NDArray[np.int64]],
        rows: npt.NDArray[np.intp],
        places: npt.NDArray[np.intp],
        targets: npt.NDArray[np.int64],
    ) -> npt.NDArray[np.float32]:
        found = []
        for row, place, target in zip(rows.tolist(), places.tolist(), targets.tolist(), strict=True):
            length = int(features["attention_mask"][row].sum())
            found.append(np.log(probability(features["input_ids"][row, :length].tolist(), place, target)))
        scores = np.array(found, dtype=np.float32)
        return np.stack([scores, np.zeros_like(scores), np.ones_like(scores)], axis=1)

    spec = ModelSpec(name="made-up", revision="builtin:1")
    frame = Frame.of(tokenizer, spec.name)
    info = info_of(device="cpu", num_threads=1, batch_tokens=batch_tokens, n_parameters=0)
    backend = VariantBackend(info, kind, run, pad_id=frame.pad_id)
    encoder = BatchedEncoder(as_model(spec, kind), backend, shelves=shelves)
    return LanguageModel(spec, kind, tokenizer, frame, limit=limit, encoder=encoder)


def word_tokenizer(folder: Path, words: list[str]) -> Any:
    """A tokenizer of whole words in the order given, the first with id 0; [CLS], [SEP], [MASK], [PAD], [UNK] follow.

    A word with a plus, such as ``souve+nir``, is one word of two tokens.
    """
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    pieces: dict[str, None] = {}
    for word in words:
        first, *rest = word.split("+")
        pieces |= dict.fromkeys([first, *(f"##{each}" for each in rest)])
    vocabulary = {piece: number for number, piece in enumerate([*pieces, "[CLS]", "[SEP]", "[MASK]", "[PAD]", "[UNK]"])}
    made = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]", max_input_chars_per_word=100))
    made.normalizer = normalizers.Lowercase()
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    made.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[(each, vocabulary[each]) for each in ("[CLS]", "[SEP]")]
    )
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=made,
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
        pad_token="[PAD]",
        unk_token="[UNK]",
        model_max_length=64,
    )
    tokenizer.save_pretrained(folder)
    return tokenizer
