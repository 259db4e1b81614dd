"""Which results a user means who tags some: those named, with the sub-sets and means that belong to them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from embeval.core import strict_json
from embeval.errors import StoreError
from embeval.store.results import ResultStore, Stored


@dataclass(frozen=True)
class Chosen:
    """Results to be tagged, and what was not taken."""

    results: tuple[Stored, ...]
    """Those meant; more than one model's where the words fit several."""
    older: tuple[Stored, ...] = ()
    """Results of the same tasks that were made earlier, with other data or options."""
    broken: tuple[str, ...] = ()
    """One message for each file of the folder that is no result."""


def chosen(
    store: ResultStore, which: Sequence[str] = (), *, model: str | None = None, task: Sequence[str] | None = None
) -> Chosen:
    """The results that words and filters fit, all of them without any.

    ``which`` are ids, JSON files or parts of their paths. What was measured in one go stays together: sub-sets and
    means come along. Where a task is there with several data or options, the last one counts, unless ``which`` names
    another. Raises ``StoreError`` where nothing fits.
    """
    broken: list[str] = []
    everything = list(store.find(model=model, task=task, status="ok", broken=broken))
    if model is not None:  # a variant has the name of the model that it is one of, and another label
        everything = [each for each in everything if each.result.label == model] or everything
    named = everything if not which else [each for word in which for each in _fitting(store, everything, word)]
    if not named:
        raise StoreError(broken[0] if broken else "No stored result fits. 'embeval results list' shows what there is.")
    wanted = {_measured(each) for each in named}
    together = [each for each in everything if _measured(each) in wanted]
    last = _last(together)
    older = () if which else tuple(each for each in together if _measured(each) != last[_place(each)])
    return Chosen(tuple(each for each in together if each not in older), older, tuple(broken))


def _fitting(store: ResultStore, everything: Sequence[Stored], word: str) -> list[Stored]:
    """The results that one word names. Raises ``StoreError`` for none."""
    if Path(word).is_file():
        file = Path(word).resolve()
        found = [each for each in everything if each.path.resolve() == file]
    else:
        found = [each for each in everything if word == each.id] or [
            each for each in everything if word.casefold() in str(each.path.relative_to(store.root)).casefold()
        ]
    if not found:
        raise StoreError(f"No stored result fits {word!r}. 'embeval results list' shows what there is.")
    return found


def _measured(stored: Stored) -> str:
    """Equal for the sub-sets and means of one measurement of one model."""
    signature = stored.result.signature
    return strict_json.digest(
        [signature.model_digest, stored.result.task.name, stored.result.split, {**signature.protocol, "subset": None}]
    )


def _place(stored: Stored) -> tuple[str, str, str]:
    return stored.result.signature.model_digest, stored.result.task.name, stored.result.split


def _last(results: Sequence[Stored]) -> dict[tuple[str, str, str], str]:
    """(model, task, split) -> the measurement that was made last."""
    by_time = sorted(results, key=lambda each: each.result.started_at)
    return {_place(each): _measured(each) for each in by_time}
