"""What of mteb, datasets and tqdm we lean on though nobody promises it, and who of ours does.

A new version of theirs that changes one of these fails here, by its name, and not as a wrong number or a strange error
somewhere else. ``test_nothing_else_is_leant_on`` keeps the list whole.
"""

from __future__ import annotations

import ast
import inspect
import io
import sys
from collections.abc import Iterator
from contextlib import redirect_stderr
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import embeval.mteb_bridge
from embeval.errors import EvaluationError
from embeval.mteb_bridge import door, evaluation, loaders
from embeval.mteb_bridge.categories import CATEGORIES, Setting

OURS = Path(embeval.mteb_bridge.__file__).parent


@dataclass(frozen=True)
class Internal:
    """Something of a library that isn't part of its interface."""

    module: str
    name: str
    """Dotted below the module."""
    user: str
    """The file of ours that needs it, and for what."""
    parameters: tuple[str, ...] = ()
    """Parameters that must be there, where it is a function."""

    def __str__(self) -> str:
        return f"{self.module}.{self.name}"


INTERNALS = [
    Internal(
        "mteb.abstasks",
        "AbsTask._save_task_predictions",
        "evaluation: replaced on the task object, to keep predictions",
        ("predictions", "hf_subset"),
    ),
    Internal(
        "mteb.abstasks",
        "AbsTask.evaluate",
        "evaluation",
        ("model", "split", "subsets_to_run", "encode_kwargs", "prediction_folder"),
    ),
    Internal("mteb.abstasks", "AbsTaskBitextMining._DEFAULT_PAIR", "categories/bitext: the two columns"),
    Internal("mteb.abstasks", "AbsTaskRetrieval.task_specific_scores", "tasks/_bridged: who needs every query"),
    Internal(
        "mteb.abstasks",
        "AbsTaskRetrieval.convert_v1_dataset_format_to_v2",
        "loading, retrieval_data",
        ("num_proc",),
    ),
    Internal(
        "mteb.abstasks",
        "AbsTaskClassification._calculate_scores",
        "tasks/classification: replaced, since labels of one's own may be none of 0 and 1",
        ("y_test", "y_pred"),
    ),
    Internal(
        "mteb.abstasks.abstask",
        "_multilabel_subsampling",
        "categories/multilabel: which rows mteb drew",
        ("dataset_dict", "seed", "splits", "label", "n_samples"),
    ),
    Internal("mteb.abstasks.task_metadata", "TaskMetadata._hf_task_type", "exchange/model_card: the hub's word"),
    Internal("mteb.get_tasks", "_TASKS_REGISTRY", "names: every task"),
    Internal("mteb.get_tasks", "_TASK_RENAMES", "names: what tasks were called before"),
    Internal("mteb._create_dataloaders", "_convert_conv_history_to_query", "retrieval_data: talks as one text"),
    Internal(
        "mteb._create_dataloaders",
        "create_dataloader",
        "loaders: replaced wherever mteb evaluates",
        ("dataset", "task_metadata", "prompt_type", "input_column"),
    ),
    Internal("mteb._create_dataloaders", "_create_dataloader_from_texts", "loaders: replaced likewise", ("text",)),
    Internal("datasets.load", "dataset_module_factory", "sealing: sent to the mirror", ("path", "revision")),
    Internal("datasets.inspect", "dataset_module_factory", "sealing: sent to the mirror", ("path", "revision")),
    Internal(
        "datasets",
        "Dataset.rename_column",
        "sealing: leaves final names alone",
        ("original_column_name", "new_column_name"),
    ),
    Internal("datasets", "Dataset.rename_columns", "sealing: leaves final names alone", ("column_mapping",)),
    *(
        Internal("datasets.config", name, "sealing: set while a mirror is read")
        for name in (
            "HF_HUB_OFFLINE",
            "HF_DATASETS_CACHE",
            "DOWNLOADED_DATASETS_PATH",
            "EXTRACTED_DATASETS_PATH",
            "DOWNLOADED_DATASETS_DIR",
            "EXTRACTED_DATASETS_DIR",
        )
    ),
    Internal("huggingface_hub.constants", "HF_HUB_OFFLINE", "sealing: set while a mirror is read"),
]
OF_OBJECTS = {"STS12": ("rng_state", "np_rng"), "SciFact": ("_top_k",)}
"""Task -> attributes of its object: random states, which ``Loaded.instance`` copies, and how deep rankings are."""


@pytest.mark.parametrize("internal", INTERNALS, ids=str)
def test_what_we_lean_on_is_there(internal: Internal) -> None:
    """It has its name, and takes what we hand over."""
    door.library()
    value: Any = import_module(internal.module)
    for part in internal.name.split("."):
        assert hasattr(value, part), f"{internal} is gone, which embeval/mteb_bridge needs: {internal.user}"
        value = getattr(value, part)
    if internal.parameters:
        there = inspect.signature(value).parameters
        lacking = [name for name in internal.parameters if name not in there]
        assert not lacking, f"{internal} no longer takes {lacking}, which embeval/mteb_bridge needs: {internal.user}"


@pytest.mark.parametrize("name", CATEGORIES.names())
def test_categories_are_of_classes_that_mteb_has(name: str) -> None:
    """Else tasks of the category would be told to be of an unknown type."""
    door.library()
    assert hasattr(import_module("mteb.abstasks"), CATEGORIES.get(name).task_class)


def test_nothing_else_is_leant_on() -> None:
    """Names with an underscore that our files take from mteb or datasets all stand in the list above."""
    listed = {internal.name.rpartition(".")[2] for internal in INTERNALS} | {*sum(OF_OBJECTS.values(), ())}
    found = {name: file.name for file in sorted(OURS.rglob("*.py")) for name in _private_names(file)}
    assert {name: file for name, file in found.items() if name not in listed} == {}


def _private_names(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in ("mteb", "datasets"):
            yield from (alias.name for alias in node.names if alias.name.startswith("_"))
        elif isinstance(node, ast.Attribute) and node.attr.startswith("_") and not node.attr.startswith("__"):
            of_ours = isinstance(node.value, ast.Name) and node.value.id in ("self", "row")  # a row is a named tuple
            if not of_ours:
                yield node.attr


@pytest.mark.parametrize("name", OF_OBJECTS)
def test_task_objects_hold_what_is_read_from_them(name: str) -> None:
    """Attributes that a class of mteb has only once there is an object of it."""
    assert {*OF_OBJECTS[name]} <= set(vars(door.library().get_task(name)))


def test_evaluators_take_their_loaders_from_where_they_are_replaced() -> None:
    """Each module of mteb that evaluates texts gets our lists inside, and has its own function back afterwards.

    Where none is replaced nothing fails, but mteb imports torch for its data loaders.
    """
    door.library()
    import_module("mteb.abstasks")
    names = {
        module
        for module in sys.modules
        if module.startswith(loaders.PLACES) and "create_dataloader" in vars(sys.modules[module])
    }
    evaluators = ("any_sts_evaluator", "clustering_evaluator", "pair_classification_evaluator")
    assert {"mteb.abstasks.classification", *(f"mteb._evaluators.{each}" for each in evaluators)} <= names
    before = {name: vars(sys.modules[name])["create_dataloader"] for name in names}
    with loaders.of_texts():
        assert not [name for name in names if vars(sys.modules[name])["create_dataloader"] is before[name]]
    assert {name: vars(sys.modules[name])["create_dataloader"] for name in names} == before


def test_a_version_of_mteb_that_keeps_predictions_elsewhere_is_refused() -> None:
    """A task object without the method that we replace: an error that says so, not records without predictions."""
    from types import SimpleNamespace

    setting = Setting(task=SimpleNamespace(metadata=SimpleNamespace(name="X")), split="test", subsets=("default",))
    with pytest.raises(EvaluationError, match=r"^mteb:X: mteb \S+ doesn't hand over predictions as embeval needs it"):
        evaluation.run(setting, CATEGORIES.get("sts"), model=None)


def test_no_bar_is_drawn_while_mteb_is_kept_quiet() -> None:
    """Not by tqdm, and not by what datasets and the hub's client make of it; afterwards they are drawn again."""
    import tqdm
    from datasets.utils import tqdm as of_datasets
    from huggingface_hub.utils.tqdm import tqdm as of_hub
    from tqdm.auto import tqdm as automatic

    original = tqdm.tqdm.__init__
    with redirect_stderr(io.StringIO()) as inside, door.quiet():
        for bar in (tqdm.tqdm, automatic, of_datasets, of_hub):
            assert list(bar(range(3))) == [0, 1, 2]
    assert inside.getvalue() == ""
    assert tqdm.tqdm.__init__ is original
    with redirect_stderr(io.StringIO()) as outside:
        list(tqdm.tqdm(range(3)))
    assert "3/3" in outside.getvalue()
