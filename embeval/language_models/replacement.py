"""Texts some of whose tokens were replaced, for a discriminator to tell.

Which tokens, and by what, hangs on the text, a seed and the number of the draw alone: not on the file it stands in, the
order, the batch or the device. With a generator the tokens that are chosen are masked, all at once, and each is drawn
from the generator's distribution there. A token that comes out as it was counts as kept.

Source: Clark et al., ICLR 2020.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from embeval.encoders import batching
from embeval.encoders.tokens import whole
from embeval.errors import ModelError
from embeval.language_models import windows
from embeval.language_models.model import KEPT, REPLACED, LanguageModel
from embeval.language_models.tokenization import Frame, Text
from embeval.language_models.variants import Ids, Places, Variants, packed
from embeval.stats import rng

Uniforms = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Choice:
    """Which tokens of a text are to be replaced."""

    places: Places
    """intp [m]: their places among the tokens, rising."""
    uniforms: Uniforms
    """float64 [m] in [0, 1): what decides by which token each is replaced."""


def choose(text: str, tokens: Text, *, probability: float, seed: int, draw: int) -> Choice:
    """Each token that is content with that probability. A larger probability chooses the same and more."""
    random = np.random.default_rng(rng.seed_sequence(seed, "replaced tokens", str(draw), whole(text)))
    both = random.random((len(tokens), 2))
    places = np.flatnonzero(tokens.scored & (both[:, 0] < probability))
    return Choice(places, both[places, 1])


def at_random(choice: Choice, among: Ids) -> Ids:
    """int32 [m]: for each token chosen any of ``among``, all equally likely."""
    return among[np.floor(choice.uniforms * len(among)).astype(np.intp)]


def by_generator(generator: LanguageModel, texts: Sequence[Text], choices: Sequence[Choice]) -> list[Ids]:
    """int32 [m] per text: for each token chosen a draw from what a masked model finds probable there.

    Raises ``ModelError`` where its backend gives no distributions.
    """
    frame = generator.frame
    assert frame.mask_id is not None
    variants, uniforms, owners = [], [], []
    for number, (text, choice) in enumerate(zip(texts, choices, strict=True)):
        ids = text.ids.copy()
        ids[choice.places] = frame.mask_id
        for start, stop, first, behind in parts(len(text), room=generator.room):
            inside = (choice.places >= first) & (choice.places < behind)
            if inside.any():
                at = choice.places[inside] - start + len(frame.before)
                variants.append(packed(frame.around(ids[start:stop]), at, np.zeros(len(at), dtype=np.int32)))
                uniforms.append(choice.uniforms[inside])
                owners.append(number)
    filled: list[list[Ids]] = [[] for _ in texts]
    for owner, drawn in zip(owners, _drawn(generator, variants, uniforms), strict=True):
        filled[owner].append(drawn)
    return [np.concatenate([np.zeros(0, dtype=np.int32), *each]) for each in filled]


def _drawn(generator: LanguageModel, variants: Sequence[str], uniforms: Sequence[Uniforms]) -> list[Ids]:
    backend = generator.backend
    if (draw := getattr(backend.run, "draw", None)) is None:
        raise ModelError(
            f"Model {generator.spec.label!r} can't be a generator: its backend {generator.spec.backend!r} gives "
            "probabilities of single tokens only.\nGive its torch checkpoint."
        )
    prepared = Variants.of(variants)
    found: list[Ids] = [np.zeros(0, dtype=np.int32)] * len(variants)
    for rows in batching.plan(prepared.lengths, backend.info.batch_tokens):
        of_row, places, _ = prepared.wanted(rows)
        wanted = np.concatenate([uniforms[row] for row in rows.tolist()])
        features = prepared.padded(rows, generator.frame.pad_id)
        drawn = draw(features, of_row, places, wanted, generator.frame.n_tokens).astype(np.int32)
        bounds = np.cumsum(prepared.n_targets[rows])[:-1]
        for row, part in zip(rows.tolist(), np.split(drawn, bounds), strict=True):
            found[row] = part
    return found


def variants(text: Text, frame: Frame, choice: Choice, filled: Ids, *, room: int | None) -> Iterator[tuple[str, int]]:
    """(variant with every content token as a target, how many of them were replaced) for each window of a text."""
    ids = text.ids.copy()
    ids[choice.places] = filled
    targets = np.where(ids != text.ids, REPLACED, KEPT).astype(np.int32)
    for start, stop, first, behind in parts(len(text), room=room):
        at = first + np.flatnonzero(text.scored[first:behind])
        if len(at):
            places = at - start + len(frame.before)
            yield packed(frame.around(ids[start:stop]), places, targets[at]), int(targets[at].sum())


def parts(n: int, *, room: int | None) -> Iterator[tuple[int, int, int, int]]:
    """(begin, end, first token, behind the last) of windows that overlap by half, and of what is told in each.

    Every token is told in the window in which it has most on both its sides.
    """
    size = n if room is None else min(n, room)
    begins = windows.starts_of(np.arange(n), n, room=room, stride=max(1, (room or 2) // 2))
    own, first = np.unique(begins, return_index=True)
    for begin, start, behind in zip(own.tolist(), first.tolist(), [*first[1:].tolist(), n], strict=True):
        yield begin, begin + size, start, behind
