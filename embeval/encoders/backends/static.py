"""``static``: one vector per token, averaged. Neither a transformer nor torch; nearly all its time goes to tokenising.

Model2Vec folders (the tensor ``embeddings``) are run as model2vec 0.10 does: the unknown token is left out, a text is
cut to ``max_length`` tokens (512) and, before that, to as many times the vocabulary's median token length in
characters; then ``weights`` and ``mapping``, the mean, and ``normalize``. Folders of sentence-transformers whose first
module is ``StaticEmbedding`` (the tensor ``embedding.weight``) are run as that library does in 6.2: the unknown token
counts like any other, texts are cut only where tokenizer.json says so; then Dense and Normalize where they follow.
Special tokens are added to neither.

In one thing it differs from model2vec: vectors stored in 16 or 8 bits are averaged in float32, and the mean is not
rounded back to 16.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from embeval.core.protocols import Encoder, EncoderInfo
from embeval.core.specs import Dtype, ModelSpec, Role, RuntimeOptions
from embeval.encoders import locate, modules, static_files
from embeval.encoders.batching import Lengths, Rows
from embeval.encoders.encoder import BatchedEncoder, check_dim
from embeval.encoders.locate import Located
from embeval.encoders.tokens import TOKENIZE_AT_ONCE, whole
from embeval.errors import ConfigError, ModelError

DEFAULT_BATCH_TOKENS = 65_536


class _Backend:
    summary = "static token embeddings (Model2Vec, StaticEmbedding); numpy, without torch"
    options = ()
    dtypes: tuple[Dtype, ...] = ("float32",)

    def resolve(self, spec: ModelSpec, *, verify: bool) -> Located:
        if spec.args:
            raise ConfigError(f"Backend 'static' has no option {min(spec.args)!r}; it takes none.")
        if spec.pooling is not None:
            raise ConfigError("Backend 'static' always takes the mean; leave pooling out.", key=("pooling",))
        if spec.dtype != "float32":
            raise ConfigError("Backend 'static' computes in float32; leave dtype out.", key=("dtype",))
        return locate.locate(spec, verify=verify)

    def load(self, located: Located, runtime: RuntimeOptions) -> Encoder:
        return BatchedEncoder(located.spec, _Static(located, runtime))


BACKEND = _Backend()


@dataclass(frozen=True)
class _Bags:
    """The tokens of all texts end to end; those averaged for text i are ``ids[start[i] : start[i] + sizes[i]]``."""

    ids: npt.NDArray[np.int32]
    start: Lengths
    sizes: Lengths
    lengths: Lengths
    """Kept tokens, those among them that are left out of the mean."""
    lost: Lengths
    unknown: Lengths | None

    def key(self, row: int) -> bytes:
        return self.ids[self.start[row] : self.start[row] + self.sizes[row]].tobytes()


class _Static:
    def __init__(self, located: Located, runtime: RuntimeOptions) -> None:
        assert located.folder is not None
        spec = located.spec
        if runtime.device not in ("auto", "cpu"):
            raise ConfigError(f"Backend 'static' runs on the CPU; the device {runtime.device!r} can't be used.")
        locate.refuse_pickled_weights(located.folder)
        self._model = model = static_files.read(located.folder, spec.name)
        if spec.normalize is False and model.normalizes:
            raise ModelError(
                f"Model {spec.name!r} ends with a normalisation of its own, so 'normalize: false' can't be honoured. "
                "Leave normalize out."
            )
        self._limit = spec.max_seq_length if spec.max_seq_length is not None else model.limit
        prompts, self.default_prompt_name, similarity = modules.declared_settings(model.declared, spec.name)
        self.info = EncoderInfo(
            dim=check_dim(spec, self._after(np.zeros((1, model.matrix.shape[1]), dtype=np.float32)).shape[1]),
            max_seq_length=self._limit,
            similarity=spec.similarity or similarity or "cosine",
            prompts=prompts,
            pooling="mean",
            n_parameters=model.n_parameters,
            device="cpu",
            num_threads=None,
            batch_tokens=runtime.budget_or(DEFAULT_BATCH_TOKENS),
            remarks=("compile was asked for, but static models are not compiled.",) if runtime.compile else (),
        )

    def prepare(self, texts: Sequence[str], *, prompt: str, role: Role) -> _Bags:
        blocks = [
            self._tokenize([prompt + text for text in texts[start : start + TOKENIZE_AT_ONCE]])
            for start in range(0, len(texts), TOKENIZE_AT_ONCE)
        ]
        ids = np.concatenate([np.zeros(0, dtype=np.int32), *(block[0] for block in blocks)])
        lengths, lost = (np.concatenate([np.zeros(0, dtype=np.int64), *(block[n] for block in blocks)]) for n in (1, 2))
        unknown, sizes = None, lengths
        if self._model.unknown_id is not None:
            is_unknown = ids == self._model.unknown_id
            owner = np.repeat(np.arange(len(lengths)), lengths)
            unknown = np.bincount(owner[is_unknown], minlength=len(lengths)).astype(np.int64)
            if self._model.drops_unknown:
                ids, sizes = ids[~is_unknown], lengths - unknown
        return _Bags(ids, np.cumsum(sizes) - sizes, sizes, lengths, lost, unknown)

    def _tokenize(self, texts: list[str]) -> tuple[npt.NDArray[np.int32], Lengths, Lengths]:
        """(kept ids end to end, how many of each text, how many each lost)."""
        model, limit = self._model, self._limit
        characters = None if limit is None or model.token_characters is None else limit * model.token_characters
        cut = {} if characters is None else {row: text for row, text in enumerate(texts) if len(text) > characters}
        rows = self._ids([text[:characters] if row in cut else text for row, text in enumerate(texts)])
        lengths, ids = _flat(rows)
        kept = lengths if limit is None else np.minimum(lengths, limit)
        lost = lengths - kept
        if lost.any():
            place = np.arange(len(ids)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
            ids = ids[place >= np.repeat(lost, lengths) if model.keeps_end else place < np.repeat(kept, lengths)]
        for row, uncut in zip(cut, self._ids(list(cut.values())), strict=True):
            # A word that is cut in its middle may become more tokens than it was.
            lost[row] = max(1, len(uncut) - kept[row]) if uncut != rows[row][: kept[row]] else 0
        return ids, kept, lost

    def _ids(self, texts: list[str]) -> list[list[int]]:
        readable = [whole(text) for text in texts]
        encodings = self._model.tokenizer.encode_batch_fast(readable, add_special_tokens=False) if texts else []
        return [encoding.ids for encoding in encodings]

    def forward(self, prepared: _Bags, rows: Rows) -> npt.NDArray[np.float32]:
        from scipy.sparse import csr_array

        model, sizes = self._model, prepared.sizes[rows]
        ends = np.concatenate([[0], np.cumsum(sizes)])
        ids = prepared.ids[np.repeat(prepared.start[rows] - ends[:-1], sizes) + np.arange(ends[-1])]
        columns = ids if model.mapping is None else model.mapping[ids]
        factors = np.ones(len(ids), dtype=np.float32) if model.weights is None else model.weights[ids]
        # A sparse product sums up rows of the matrix without copying them first: several times faster than reduceat.
        sums = csr_array((factors, columns, ends), shape=(len(rows), len(model.matrix))) @ model.matrix
        return self._after(sums / np.maximum(sizes, 1).astype(np.float32)[:, None])

    def _after(self, vectors: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        for step in self._model.steps:
            vectors = step(vectors)
        return vectors


def _flat(rows: list[list[int]]) -> tuple[Lengths, npt.NDArray[np.int32]]:
    lengths = np.fromiter(map(len, rows), dtype=np.int64, count=len(rows))
    ids = np.fromiter(itertools.chain.from_iterable(rows), dtype=np.int32, count=int(lengths.sum()))
    return lengths, ids
