"""The data of a task of mteb, from the hub or from a mirror, with the hash of what it holds."""

from __future__ import annotations

import contextlib
import copy
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from embeval.errors import DataError, UnknownNameError
from embeval.mteb_bridge import categories, door
from embeval.mteb_bridge.categories import Category, Parity, Setting

LOCAL = "local"
"""The revision of a data set that didn't come from the hub: mteb demands one, and it must not be the hub's."""


@dataclass(frozen=True)
class Loaded:
    """A task of mteb with its data."""

    setting: Setting
    """The task, its split and its sub-sets. Its task object is never evaluated itself: ``instance`` copies it."""
    category: Category
    """Which kind of task it is."""

    @cached_property
    def data_hash(self) -> str:
        """sha256 over what can change a number, whatever file or format it came from."""
        whole = hashlib.sha256()
        for subset in self.setting.subsets:
            for row in ([subset], *self.category.content(self.setting, subset)):
                for part in row:
                    data = part.encode("utf-8", "surrogatepass")
                    whole.update(len(data).to_bytes(8, "little") + data)
                whole.update(b"\n")
        return whole.hexdigest()

    def instance(self) -> Setting:
        """The setting with a task object of its own, its random states as they are after loading.

        mteb draws from them while it evaluates, so an object that was evaluated before gives other numbers.
        """
        task = copy.copy(self.setting.task)
        task.rng_state, task.np_rng = copy.deepcopy(task.rng_state), copy.deepcopy(task.np_rng)
        return replace(self.setting, task=task)


def find(name: str) -> Any:
    """A new task object of mteb by its name. Raises ``UnknownNameError`` with the closest names."""
    library = door.library()
    with door.quiet():
        names = {each.casefold(): each for each in _names()}
        if name.casefold() not in names:
            raise UnknownNameError("mteb task", name, _names(), hint="'embeval tasks list --mteb' lists them.")
        return library.get_task(names[name.casefold()])


@cache
def _names() -> tuple[str, ...]:
    library = door.library()

    return tuple(sorted(each.metadata.name for each in library.get_tasks(exclude_superseded=False)))


def load(
    name: str, split: str, *, subsets: tuple[str, ...] | None, parity: Parity, mirror: Path | None
) -> Loaded:  # fmt: skip
    """A task with the data of one split. Raises ``DataError`` where it isn't there or can't be read."""
    task = find(name)
    with door.quiet():
        task.hf_subsets = [each for each in task.hf_subsets if subsets is None or each in subsets]
        task.filter_eval_splits([split])
        category = categories.of(task)
        if mirror is not None:
            folder = mirror / task.metadata.name
            task.metadata = task.metadata.model_copy(
                update={"dataset": {**task.metadata.dataset, "path": str(folder), "revision": LOCAL}}
            )
        with _offline() if mirror is not None else contextlib.nullcontext():
            try:
                task.load_data()
            except Exception as error:
                raise DataError(f"mteb:{name}: its data can't be loaded ({error}).") from error
    eager(task)
    setting = Setting(task=task, split=split, subsets=tuple(task.hf_subsets), parity=parity)
    return Loaded(setting, category)


@contextlib.contextmanager
def _offline() -> Iterator[None]:
    """Inside, neither the hub nor any other place is asked for data."""
    import datasets
    import huggingface_hub.constants as hub

    before = datasets.config.HF_HUB_OFFLINE, hub.HF_HUB_OFFLINE
    datasets.config.HF_HUB_OFFLINE = hub.HF_HUB_OFFLINE = True
    try:
        yield
    finally:
        datasets.config.HF_HUB_OFFLINE, hub.HF_HUB_OFFLINE = before


def eager(task: Any) -> None:
    """Makes the columns of a task's data lists, where mteb would read them row by row from the disk, many times."""
    import datasets

    def made(value: Any) -> Any:
        if isinstance(value, datasets.DatasetDict):
            return datasets.DatasetDict({key: made(each) for key, each in value.items()})
        if isinstance(value, datasets.Dataset):
            found = copy.copy(value)
            found.__class__ = _eager_class()
            return found
        if type(value) is dict:
            return {key: made(each) for key, each in value.items()}
        return value

    task.dataset = made(task.dataset)


@cache
def _eager_class() -> type:
    import datasets

    class Eager(datasets.Dataset):  # type: ignore[misc]  # datasets has no types
        """A data set whose columns come as lists."""

        def __getitem__(self, key: Any) -> Any:
            found = super().__getitem__(key)
            return found[:] if isinstance(key, str) else found

    return Eager
