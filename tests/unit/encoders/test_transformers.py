"""The transformers backend against transformers 5.24: eager attention, each text alone, pooled by hand in numpy."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from embeval.core.specs import ModelSpec, Role, RuntimeOptions
from embeval.encoders import loading
from embeval.errors import ConfigError, ModelError
from tests.support.models import DECODERS, SIZES, edit_json, save_tiny_checkpoint, save_tiny_model

TEXTS = [
    "restore the document",
    "a",
    "The BACKUP server of the day",
    "key is in the night and the old file of the server at night",
    "night and day " * 12,
    "red green blue one two three token",
    "scan",
]
LIMIT = 16
"""Tokens that the tokenizers of the checkpoints declare."""
Floats = npt.NDArray[np.float32]


def weighted(hidden: Floats) -> Floats:
    """Mean with weights 1, 2, 3 and so on."""
    weights = np.arange(1, len(hidden) + 1, dtype=np.float32)
    return np.asarray(weights @ hidden / weights.sum())


BY_HAND: dict[str, Callable[[Floats], Floats]] = {
    "cls": lambda hidden: hidden[0],
    "lasttoken": lambda hidden: hidden[-1],
    "max": lambda hidden: hidden.max(axis=0),
    "mean": lambda hidden: hidden.mean(axis=0),
    "mean_sqrt_len": lambda hidden: hidden.sum(axis=0) / np.sqrt(np.float32(len(hidden))),
    "weightedmean": weighted,
}


def library_states(folder: Path, texts: list[str], end: int | None = None, limit: int = LIMIT) -> list[Floats]:
    """Hidden states [T, d] of each text alone, without padding."""
    import torch
    import transformers

    config = transformers.AutoConfig.from_pretrained(folder)
    kind = {"t5": transformers.T5EncoderModel, "umt5": transformers.UMT5EncoderModel}.get(config.model_type)
    kind = kind or transformers.AutoModel
    model = kind.from_pretrained(folder, attn_implementation="eager", dtype=torch.float32).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    takes_types = config.model_type in ("albert", "bert", "deberta-v2", "electra", "xlnet")
    states = []
    for text in texts:
        encoded = tokenizer(text, truncation=True, max_length=limit)
        ids = [*encoded["input_ids"][: limit - (end is not None)], *([] if end is None else [end])]
        inputs = {"input_ids": torch.tensor([ids]), "attention_mask": torch.ones(1, len(ids), dtype=torch.long)}
        if takes_types:
            inputs["token_type_ids"] = torch.tensor([encoded["token_type_ids"]])
        with torch.inference_mode():
            states.append(model(**inputs).last_hidden_state[0].numpy())
    return states


@dataclass(frozen=True)
class Checkpoint:
    """A folder, and what the library makes of ``TEXTS``."""

    kind: str
    folder: Path
    states: list[Floats]

    def expected(self, pooling: str) -> Floats:
        """Pooled by hand."""
        return np.stack([BY_HAND[pooling](each) for each in self.states])


@pytest.fixture(scope="session")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Checkpoint]:
    """A checkpoint of a type, made when it is asked for first."""
    made: dict[tuple[str, str], Checkpoint] = {}

    def checkpoint(kind: str, padding_side: str = "left") -> Checkpoint:
        if (kind, padding_side) not in made:
            folder = tmp_path_factory.mktemp(kind) / "model"
            save_tiny_checkpoint(folder, kind, padding_side=padding_side)
            made[kind, padding_side] = Checkpoint(kind, folder, library_states(folder, TEXTS))
        return made[kind, padding_side]

    return checkpoint


@pytest.fixture(scope="session", params=sorted(SIZES))
def checkpoint(request: pytest.FixtureRequest, checkpoints: Callable[..., Checkpoint]) -> Checkpoint:
    """A checkpoint of every type."""
    return checkpoints(request.param)


def near(found: Floats, expected: Floats) -> None:
    """Asserts equality to 2e-6 of the largest value."""
    np.testing.assert_allclose(found, expected, rtol=0, atol=2e-6 * max(1.0, float(np.abs(expected).max())))


def encoder(folder: Path, runtime: RuntimeOptions | None = None, **fields: Any) -> Any:
    """The model as we load it."""
    spec = ModelSpec(name=str(folder), backend="transformers", **{"pooling": "mean", **fields})
    return loading.load(loading.resolve(spec), runtime)


@pytest.mark.parametrize("pooling", sorted(BY_HAND))
def test_vectors_equal_the_library_pooled_by_hand(checkpoint: Checkpoint, pooling: str) -> None:
    """Every type and pooling, all texts in one batch: equal to 2e-6 of the largest value."""
    ours = encoder(checkpoint.folder, RuntimeOptions(batch_tokens=10_000), pooling=pooling)
    vectors = ours.encode(TEXTS, role=Role.TEXT).vectors
    near(vectors, checkpoint.expected(pooling))
    assert ours.info.remarks == ()
    assert ours.info.pooling == pooling


def test_batches_do_not_matter(checkpoint: Checkpoint) -> None:
    """Each text alone and all together: equal to 1e-6, whatever the type does with padding."""
    model = encoder(checkpoint.folder, RuntimeOptions(batch_tokens=10_000))
    together = model.encode(TEXTS, role=Role.TEXT).vectors
    alone = np.concatenate([model.encode([text], role=Role.TEXT).vectors for text in TEXTS])
    near(alone, together)


def test_lost_tokens_are_counted(checkpoint: Checkpoint) -> None:
    """The text of 36 words keeps 16 tokens with the special ones."""
    import transformers

    special = transformers.AutoTokenizer.from_pretrained(checkpoint.folder).num_special_tokens_to_add(pair=False)
    embeddings = encoder(checkpoint.folder).encode(TEXTS, role=Role.TEXT)
    counts = embeddings.counts
    assert counts.tokens_lost == 36 - (LIMIT - special)
    assert counts.tokens_kept == sum(len(each) for each in checkpoint.states)
    assert set(embeddings.truncated) == {4}


def test_bfloat16_is_near(checkpoint: Checkpoint) -> None:
    """Its vectors lie within a cosine of 0.999 of those in float32, in one batch and alone."""
    for budget in (1, 10_000):
        ours = encoder(checkpoint.folder, RuntimeOptions(batch_tokens=budget), dtype="bfloat16", normalize=True)
        vectors = ours.encode(TEXTS, role=Role.TEXT).vectors
        expected = checkpoint.expected("mean")
        cosines = (vectors * expected).sum(axis=1) / np.linalg.norm(expected, axis=1)
        assert cosines.min() > 0.999


@pytest.mark.parametrize("kind", DECODERS)
@pytest.mark.parametrize("side", ["left", "right"])
def test_the_last_token_of_decoders(checkpoints: Callable[..., Checkpoint], kind: str, side: str) -> None:
    """Whichever side the tokenizer pads on: the last token of each text, in one batch and in small ones."""
    made = checkpoints(kind, side)
    for budget in (20, 10_000):
        ours = encoder(made.folder, RuntimeOptions(batch_tokens=budget), pooling="lasttoken")
        vectors = ours.encode(TEXTS, role=Role.TEXT).vectors
        near(vectors, made.expected("lasttoken"))


@pytest.mark.parametrize("kind", DECODERS)
def test_an_end_token_is_appended(checkpoints: Callable[..., Checkpoint], kind: str) -> None:
    """``append_eos``: the vector of the end token, and a text that is full gives its last token up for it."""
    folder = checkpoints(kind).folder
    ours = encoder(folder, pooling="lasttoken", args={"append_eos": True})
    found = ours.encode(TEXTS, role=Role.TEXT)
    states = library_states(folder, TEXTS, end=2)
    near(found.vectors, np.stack([each[-1] for each in states]))
    assert found.counts.tokens_lost == 36 - LIMIT + 1
    assert found.counts.tokens_kept == sum(len(each) for each in states)


LIMITS = {
    "albert": 64,
    "bert": 64,
    "distilbert": 64,
    "electra": 64,
    "gpt2": 64,
    "roberta": 63,  # counts from behind its padding id, 0 here
    "mpnet": 62,  # its padding id is 1 whatever the configuration says
}


def test_the_longest_text_a_model_takes(checkpoint: Checkpoint) -> None:
    """As many tokens as there are positions give the library's vector; one more is refused. Others have no end."""
    limit = LIMITS.get(checkpoint.kind, 200)
    text = "the day and the night of the server " * 40
    ours = encoder(checkpoint.folder, max_seq_length=limit)
    found = ours.encode([text], role=Role.TEXT)
    assert found.counts.tokens_kept == limit
    states = library_states(checkpoint.folder, [text], limit=limit)
    near(found.vectors[0], states[0].mean(axis=0))
    if checkpoint.kind in LIMITS:
        with pytest.raises(ModelError, match=f"max_seq_length can't be {limit + 1}"):
            encoder(checkpoint.folder, max_seq_length=limit + 1)


def test_nothing_is_guessed(checkpoints: Callable[..., Checkpoint]) -> None:
    """No pooling, int8, and options that there are not or that are no yes or no."""
    folder = checkpoints("bert").folder
    for fields, message in (
        ({"pooling": None}, "doesn't guess how token vectors become one"),
        ({"dtype": "int8"}, "int8 needs an exported model"),
        ({"args": {"layer": 3}}, "no option 'layer'"),
        ({"args": {"append_eos": 1}}, "append_eos must be true or false"),
        ({"args": {"append_eos": True}}, "its tokenizer has no end token"),
    ):
        with pytest.raises(ConfigError, match=message):
            encoder(folder, **fields)


HEADS = [
    ("bert", "AutoModelForMaskedLM"),
    ("bert", "AutoModelForSequenceClassification"),
    ("roberta", "AutoModelForMaskedLM"),
    ("albert", "AutoModelForMaskedLM"),
    ("distilbert", "AutoModelForMaskedLM"),
    ("electra", "AutoModelForPreTraining"),
    ("deberta-v2", "AutoModelForMaskedLM"),
    ("modernbert", "AutoModelForMaskedLM"),
    ("mpnet", "AutoModelForMaskedLM"),
    ("xlnet", "AutoModelForCausalLM"),
    ("t5", "AutoModelForSeq2SeqLM"),
    ("umt5", "AutoModelForSeq2SeqLM"),
    ("llama", "AutoModelForCausalLM"),
    ("gpt2", "AutoModelForCausalLM"),
]


@pytest.mark.parametrize(("kind", "head"), HEADS)
def test_a_head_is_left_out(tmp_path: Path, kind: str, head: str) -> None:
    """A checkpoint with a head gives the vectors of its body, without a remark."""
    import transformers

    folder = save_tiny_checkpoint(tmp_path / "model", kind, head=head)
    body = getattr(transformers, head).from_pretrained(folder).base_model
    bare = tmp_path / "bare"
    body.save_pretrained(bare)
    for file in folder.glob("*token*"):
        shutil.copy(file, bare)
    ours = encoder(folder)
    vectors = ours.encode(TEXTS, role=Role.TEXT).vectors
    expected = np.stack([each.mean(axis=0) for each in library_states(bare, TEXTS)])
    near(vectors, expected)
    assert ours.info.remarks == ()


def renamed(folder: Path, change: Callable[[str], str | None]) -> None:
    """Gives weights other names, or takes them out."""
    from safetensors.torch import load_file, save_file

    weights = load_file(folder / "model.safetensors")
    named = {change(name): tensor.clone() for name, tensor in weights.items()}
    save_file({name: tensor for name, tensor in named.items() if name}, folder / "model.safetensors", {"format": "pt"})


def test_weights_that_are_not_there_are_refused(checkpoint: Checkpoint, tmp_path: Path) -> None:
    """One layer left out; and all names behind a prefix of another model, which leaves nothing but a "head"."""
    folder = Path(shutil.copytree(checkpoint.folder, tmp_path / "model"))
    renamed(folder, lambda name: None if ".1." in name and "decoder" not in name else name)
    if checkpoint.kind == "albert":  # its layers share their weights
        renamed(folder, lambda name: None if "ffn" in name else name)
    with pytest.raises(ModelError, match=r"not in its files, such as"):
        encoder(folder)
    folder = Path(shutil.copytree(checkpoint.folder, tmp_path / "other"))
    renamed(folder, lambda name: f"somebody.{name}")
    with pytest.raises(ModelError, match=r"not in its files, such as"):
        encoder(folder)


def test_code_of_the_model_is_not_run_unasked(tmp_path: Path) -> None:
    """A folder with a Python file of its own: refused without trust_remote_code, run and noted with it.

    Its model takes no token types, which the tokenizer gives all the same: they are left out.
    """
    folder = save_tiny_checkpoint(tmp_path / "model", "bert")
    expected = encoder(folder).encode(TEXTS, role=Role.TEXT).vectors
    (folder / "own.py").write_text(
        "from pathlib import Path\n"
        "from transformers import BertConfig, BertModel\n"
        f"Path({str(tmp_path / 'ran')!r}).touch()\n"
        "class OwnConfig(BertConfig):\n"
        "    model_type = 'own_kind'\n"
        "class OwnModel(BertModel):\n"
        "    config_class = OwnConfig\n"
        "    def forward(self, input_ids, attention_mask):\n"
        "        return super().forward(input_ids, attention_mask)\n"
    )
    edit_json(
        folder / "config.json",
        model_type="own_kind",
        auto_map={"AutoConfig": "own.OwnConfig", "AutoModel": "own.OwnModel"},
    )
    with pytest.raises(ModelError, match=r"brings code of its own.*\nargs: \{trust_remote_code: true\}"):
        encoder(folder)
    assert not (tmp_path / "ran").exists()
    trusted = encoder(folder, args={"trust_remote_code": True})
    assert (tmp_path / "ran").exists()
    assert trusted.info.extra == {"remote_code": "trusted"}
    near(trusted.encode(TEXTS, role=Role.TEXT).vectors, expected)


def test_modules_are_told_and_not_run(tmp_path: Path) -> None:
    """A sentence-transformers folder gives its transformer's vectors, pooled as was said and not normalised."""
    folder = save_tiny_model(tmp_path / "model", pooling="cls", normalize=True)
    ours = encoder(folder)
    assert ours.info.remarks == (
        "The model declares modules of its own (modules.json), which this backend does not run.",
    )
    expected = np.stack([each.mean(axis=0) for each in library_states(folder, TEXTS)])
    near(ours.encode(TEXTS, role=Role.TEXT).vectors, expected)
    scaled = encoder(folder, normalize=True).encode(TEXTS, role=Role.TEXT).vectors
    near(scaled, expected / np.linalg.norm(expected, axis=1, keepdims=True))


def test_an_xlnet_sees_its_types(checkpoints: Callable[..., Checkpoint]) -> None:
    """Without them its vectors are others, so the equality above says that they reach it, padding on the left."""
    import torch
    import transformers

    made = checkpoints("xlnet")
    tokenizer = transformers.AutoTokenizer.from_pretrained(made.folder)
    assert tokenizer.padding_side == "left"
    encoded = tokenizer(TEXTS[0])
    assert encoded["token_type_ids"] == [0, 0, 0, 0, 2]
    model = transformers.AutoModel.from_pretrained(made.folder).eval()
    with torch.inference_mode():
        without = model(torch.tensor([encoded["input_ids"]])).last_hidden_state[0].numpy()
    assert np.abs(without - made.states[0]).max() > 0.01


def test_a_configuration_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    """More layers than the files have, and a width that is not theirs."""
    folder = save_tiny_checkpoint(tmp_path / "model", "bert")
    whole = json.loads((folder / "config.json").read_text())
    for change, message in (
        ({"num_hidden_layers": 3}, "not in its files"),
        ({"intermediate_size": 65}, "another shape"),
    ):
        (folder / "config.json").write_text(json.dumps({**whole, **change}))
        with pytest.raises(ModelError, match=message):
            encoder(folder)
