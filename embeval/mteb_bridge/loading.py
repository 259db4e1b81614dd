"""The data of a task of mteb, from the hub or from a mirror, with the hash of what it holds."""

from __future__ import annotations

import copy
import hashlib
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from embeval.errors import DataError, EmbevalError, UnknownNameError
from embeval.mteb_bridge import categories, door, row_counts, sealing
from embeval.mteb_bridge import mirror as mirrors
from embeval.mteb_bridge.categories import ONE_SUBSET, Category, Parity, Setting, splits_of

LOCAL = "local"
"""The revision of a data set that didn't come from the hub: mteb demands one, and it must not be the hub's."""


@dataclass(frozen=True)
class Loaded:
    """A task of mteb with its data."""

    setting: Setting
    """The task, its split and its sub-sets. Its task object is never evaluated itself: ``instance`` copies it."""
    category: Category
    """Which kind of task it is."""
    origin: str | None = None
    """Where the data came from, without a path of this machine; None for one's own files."""
    warnings: tuple[str, ...] = ()
    """What a reader of the numbers should know of the data."""

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
    names = {each.casefold(): each for each in mirrors.sources()}
    if name.casefold() not in names:
        raise UnknownNameError("mteb task", name, names.values(), hint="'embeval tasks list --mteb' lists them.")
    with door.quiet():
        return library.get_task(names[name.casefold()])


def load(
    name: str, split: str, *, subsets: tuple[str, ...] | None, parity: Parity, mirror: Path | None
) -> Loaded:  # fmt: skip
    """A task with the data of one split. Raises ``DataError`` where it isn't there or can't be read."""
    task = find(name)
    _refuse_unknown(task, subsets)
    category = categories.of(task)
    place = None if mirror is None else mirrors.located(mirror, task.metadata.name)
    with door.quiet():
        task.hf_subsets = [each for each in task.hf_subsets if subsets is None or each in subsets]
        task.filter_eval_splits([split])
    if place is None or mirror is None:
        fill(task)
    else:
        with sealing.sealed(mirror, task.metadata.name, place):
            fill(task, place.folder)
    _refuse_missing(task, split)
    warnings = []
    if place is not None and not place.is_published:
        splits = {split, getattr(task, "train_split", split)}
        warnings = [f"The data differs from mteb's: {each}." for each in row_counts.differences(task, splits)]
    eager(task)
    setting = Setting(task=task, split=split, subsets=tuple(task.hf_subsets), parity=parity)
    origin = "hub" if place is None else place.origin
    return Loaded(setting, category, origin=origin, warnings=tuple(warnings))


def fill(task: Any, folder: Path | None = None) -> None:
    """Loads the data of a task object, from a folder where one is given. Raises ``DataError``."""
    configurations = () if folder is None else _from_folder(task, folder)
    try:
        with door.quiet():
            task.load_data()
            if hasattr(task, "convert_v1_dataset_format_to_v2"):
                task.convert_v1_dataset_format_to_v2(num_proc=None)
    except EmbevalError:
        raise
    except Exception as error:  # the code of any of a thousand tasks may raise anything
        place = "" if folder is None else f" from {folder}"
        there = [each for each in task.hf_subsets if {each, f"{each}-qrels"} & set(configurations)]
        some = f"mteb:{task.metadata.name},subsets=[{','.join(there)}]"
        is_part = 0 < len(there) < len(task.hf_subsets)
        hint = f"\nThe sub-sets that are there are evaluated alone with -t '{some}'." if is_part else ""
        why = _emptiness(folder) or _why(error)
        if folder is None:
            pull = f"embeval data pull {task.metadata.name} --to DIR"
            hint = f"\nWhere the hub can't be reached: '{pull}' where it can, then --mirror DIR."
        raise DataError(f"mteb:{task.metadata.name}: its data can't be loaded{place} ({why}).{hint}") from error


def _from_folder(task: Any, folder: Path) -> tuple[str, ...]:
    """Makes a task object load from a folder. Gives the folder's configurations."""
    import datasets

    dataset = {**task.metadata.dataset, "path": str(folder), "revision": LOCAL}
    task.metadata = task.metadata.model_copy(update={"dataset": dataset})
    try:
        with door.quiet():
            found = tuple(datasets.get_dataset_config_names(str(folder)))
    except Exception as error:  # of whatever library reads the files
        raise DataError(f"{folder}: can't be read as a data set ({_why(error)}).") from error
    if task.fast_loading and ONE_SUBSET not in found:  # no file of all languages, but one of each
        task.fast_loading = False
    return found


def _emptiness(folder: Path | None) -> str | None:
    """That a file of a folder is empty, of which ``datasets`` says nothing that could be understood."""
    names = [] if folder is None else mirrors.files_of(folder)
    empty = [name for name in names if name != "README.md" and (Path(folder or "") / name).stat().st_size == 0]
    return f"{empty[0]} is empty" if empty else None


def _why(error: Exception) -> str:
    """The first line of what went wrong, and of what led to it where that says more."""
    texts = [str(each).strip() or type(each).__name__ for each in (error, error.__cause__) if each is not None]
    return "; ".join(dict.fromkeys(text.splitlines()[0][:300] for text in texts))


def _refuse_unknown(task: Any, subsets: tuple[str, ...] | None) -> None:
    known = task.metadata.hf_subsets
    for subset in subsets or ():
        if subset not in known:
            raise UnknownNameError(f"sub-set of mteb:{task.metadata.name}", subset, known)


def _refuse_missing(task: Any, split: str) -> None:
    for subset in task.hf_subsets:
        there = splits_of(task, subset)
        if split not in there:
            raise DataError(f"mteb:{task.metadata.name}: its data has no split {split!r}, but {', '.join(there)}.")


def eager(task: Any) -> None:
    """Makes the columns of a task's data lists, where mteb would read them row by row from the disk, many times."""
    import datasets

    def made(value: Any) -> Any:
        if isinstance(value, datasets.DatasetDict):
            return datasets.DatasetDict({key: made(each) for key, each in value.items()})
        if isinstance(value, datasets.Dataset):
            return _eager_class().of(value)
        if type(value) is dict:
            return {key: made(each) for key, each in value.items()}
        return value

    task.dataset = made(task.dataset)


@cache
def _eager_class() -> Any:
    import datasets

    class Eager(datasets.Dataset):  # type: ignore[misc]  # datasets has no types
        """A data set whose columns come as lists, and those of rows selected from it too."""

        @classmethod
        def of(cls, dataset: Any) -> Any:
            found = copy.copy(dataset)
            found.__class__ = cls
            return found

        def select(self, *args: Any, **keys: Any) -> Any:
            return self.of(super().select(*args, **keys))

        def __getitem__(self, key: Any) -> Any:
            found = super().__getitem__(key)
            return found[:] if isinstance(key, str) else found

    return Eager
