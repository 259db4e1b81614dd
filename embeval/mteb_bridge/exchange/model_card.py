"""Results as the metadata ``model-index`` of a model card, and into the YAML block at the top of a README."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from embeval.core import strict_json
from embeval.core.result import Result
from embeval.errors import ConfigError, StoreError
from embeval.mteb_bridge import door
from embeval.mteb_bridge.exchange import to_mteb
from embeval.mteb_bridge.exchange._latest import latest

KEY = "model-index"
SIMILARITY = "sentence-similarity"
"""The hub's word for what a model of the task types without a word of their own does."""
PIPELINES = {"retrieval": "text-retrieval", "classification": "text-classification", "reranking": "text-ranking"}
"""The hub's word for a task type."""
SOURCE = {"name": "MTEB", "url": "https://github.com/embeddings-benchmark/mteb/"}
"""Where imported values come from; what has no address has no source in a card."""
_SECTION = re.compile(r"^model-index:.*\n(?:(?:[ \t\-].*)?\r?\n)*", re.MULTILINE)
"""The key with what belongs to it: lines that are indented, are items of a list, or are empty."""
_BLOCK = re.compile(r"\A---[ \t]*\r?\n(.*?)^---[ \t]*$\r?\n?", re.DOTALL | re.MULTILINE)


def index(results: Iterable[Result]) -> list[dict[str, strict_json.Json]]:
    """``model-index``: the one model with an entry per task, split and sub-set, every metric at full precision.

    Raises ``StoreError`` where the results are of several models, or there are none.
    """
    wanted = [each for each in results if each.status == "ok" and each.main_value is not None]
    names = sorted({(each.model.label, each.signature.model_digest) for each in wanted})
    if not names:
        raise StoreError("No stored result fits. 'embeval results list' shows what there is.")
    if len(names) > 1:
        shown = ", ".join(dict.fromkeys(label for label, _ in names))
        raise StoreError(f"A model card is of one model, and these results are of {len(names)}: {shown}. Say --model.")
    groups = latest(wanted, lambda each: (each.task.name, each.split)).values()
    entries = [entry for group in groups for each in group if (entry := _entry(each))["metrics"]]
    return [{"name": names[0][0], "results": sorted(entries, key=_place)}]


def _entry(result: Result) -> dict[str, strict_json.Json]:
    main = result.main_score or ""
    ordered = sorted(result.scores, key=lambda name: (name != main, name))
    values = {name: result.scores[name].value for name in ordered}
    kind, dataset = _of_mteb(result) if result.task.type == "mteb" else _own(result)
    return {
        "task": kind,
        "dataset": dataset,
        "metrics": [
            {"type": name, "value": value, "name": name} for name, value in values.items() if value is not None
        ],
        **({} if result.imported is None else {"source": dict(SOURCE)}),
    }


def _own(result: Result) -> tuple[dict[str, str], dict[str, str]]:
    """Data that isn't on the hub is named by the task and the hash of its content."""
    kind = {"type": PIPELINES.get(result.task.type, SIMILARITY), "name": result.task.type}
    imported = result.imported
    return kind, {
        "type": result.task.name,
        "name": result.task.name,
        "config": result.subset,
        "split": result.split,
        "revision": f"sha256:{result.signature.protocol.get('data')}"
        if imported is None
        else imported.dataset_revision,
    }


def _of_mteb(result: Result) -> tuple[dict[str, str], dict[str, str]]:
    """As ``mteb.TaskResult.get_hf_eval_results`` names tasks and data."""
    task = result.task.dataset.path
    if (metadata := door.task_metadata(task)) is None:
        return _own(result)
    hub_type = metadata._hf_task_type()[0]
    part = to_mteb.subset_name(result) if result.subset == "all" else result.subset
    return {"type": hub_type, "name": str(metadata.type)}, {
        "type": metadata.dataset["path"],
        "name": f"{task} ({part})",
        "config": part,
        "split": result.split,
        "revision": to_mteb.dataset_revision(result),
    }


def block(found: list[dict[str, strict_json.Json]]) -> str:
    """The YAML block of a card that has nothing else."""
    return f"---\n{_yaml(found)}---\n"


def merged(readme: str, found: list[dict[str, strict_json.Json]], source: str) -> str:
    """A README with these entries in its YAML block; everything else stays as it is, to the letter.

    An entry for the same task, data, sub-set and split is replaced. Raises ``ConfigError`` for a block that is no YAML.
    """
    there = _BLOCK.match(readme)
    if there is None:
        return f"{block(found)}{readme}"
    front = there[1]
    section = _SECTION.search(front)
    old = None if section is None else _read(section[0], source)[KEY]
    text = _yaml(_with(old or [], found, source))
    front = f"{front}{text}" if section is None else f"{front[: section.start()]}{text}{front[section.end() :]}"
    _read(front, source)
    return f"{readme[: there.start(1)]}{front}{readme[there.end(1) :]}"


def _read(text: str, source: str) -> dict[str, Any]:
    import yaml

    class Loader(yaml.SafeLoader):
        """``no`` is Norwegian, and a date is a text."""

    Loader.yaml_implicit_resolvers = {
        first: [
            (tag, pattern)
            for tag, pattern in resolvers
            if tag not in ("tag:yaml.org,2002:timestamp", "tag:yaml.org,2002:bool")
        ]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    Loader.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile("true|false"), list("tf"))
    try:
        value = yaml.load(text, Loader=Loader)  # noqa: S506 - a SafeLoader
    except yaml.YAMLError as error:
        raise ConfigError(f"{source}: the block at its top is no YAML ({' '.join(str(error).split())}).") from None
    if not isinstance(value, dict):
        raise ConfigError(f"{source}: the block at its top is no mapping of keys to values.")
    return value


def _with(there: Any, found: list[dict[str, strict_json.Json]], source: str) -> list[dict[str, Any]]:
    if not (isinstance(there, list) and all(isinstance(each, Mapping) for each in there)):
        raise ConfigError(f"{source}: its {KEY} is no list of models.")
    models = [dict(each) for each in there] or [{"name": found[0]["name"], "results": []}]
    new = {_place(entry) for entry in found[0]["results"]}
    old = [entry for entry in models[0].get("results") or [] if _place(entry) not in new]
    models[0]["results"] = [*old, *found[0]["results"]]
    return models


def _place(entry: Mapping[str, Any]) -> tuple[str, ...]:
    """What an entry is about."""
    task, dataset = entry.get("task") or {}, entry.get("dataset") or {}
    return (str(task.get("type")), *(str(dataset.get(name)) for name in ("type", "name", "config", "split")))


def _yaml(found: list[dict[str, Any]]) -> str:
    import yaml

    return str(yaml.safe_dump({KEY: found}, sort_keys=False, allow_unicode=True, width=120))
