"""The embeval.yaml that ``embeval init`` writes: what it does, and what its comments promise."""

from __future__ import annotations

import re
from pathlib import Path

from embeval.core.specs import ModelSpec, RuntimeOptions, StatisticsOptions
from embeval.tasks.retrieval import RetrievalTask
from embeval.tasks.sts import StsTask
from embeval.workflows.config import Config, config_schema, load_config
from embeval.workflows.template import TEMPLATE

_EXAMPLE = re.compile(r"^( *)# (?![A-Z])(.*)$")
"""A commented-out example. Sentences for people begin with a capital letter."""


def load(folder: Path, text: str) -> Config:
    """The content of a file."""
    file = folder / "embeval.yaml"
    file.write_text(text, encoding="utf-8")
    return load_config(file)


def uncommented() -> str:
    """The template with every example brought to life, by taking the '# ' away and nothing else."""
    return "".join(_EXAMPLE.sub(r"\1\2", line) + "\n" for line in TEMPLATE.splitlines())


def test_it_runs_as_it_is(tmp_path: Path) -> None:
    """The demo model and the baseline on the bundled data, with default settings."""
    config = load(tmp_path, TEMPLATE)
    assert config.models == (ModelSpec(name="demo"), ModelSpec(name="hashing", backend="hashing"))
    assert [task.spec.name for task in config.tasks] == ["demo-docs", "demo-pairs"]
    assert [task.spec.type for task in config.tasks] == ["retrieval", "sts"]
    assert len(config.tasks[0].load().doc_ids) == 232
    assert len(config.tasks[1].load()) == 73
    assert config.results == tmp_path / "results"
    assert (config.runtime, config.statistics) == (RuntimeOptions(), StatisticsOptions())


def test_its_examples_load_too(tmp_path: Path) -> None:
    """With the comment marks taken away the file still loads, and says what the examples say."""
    config = load(tmp_path, uncommented())
    assert config.models == (
        ModelSpec(name="demo"),
        ModelSpec(name="hashing", backend="hashing"),
        ModelSpec(name="sentence-transformers/all-mpnet-base-v2"),
        ModelSpec(name=str(tmp_path / "my-model")),
        ModelSpec(
            name=str(tmp_path / "my-e5"),
            prompts={"query": "query: ", "document": "passage: "},
            truncate_dim=256,
        ),
    )
    support, pairs, *of_mteb = config.tasks[2:]
    assert isinstance(support, RetrievalTask)
    assert isinstance(pairs, StsTask)
    assert (support.spec.name, support.path) == ("support-kb", tmp_path / "golden" / "support-kb")
    assert (pairs.spec.name, pairs.path) == ("our-pairs", tmp_path / "pairs" / "test.jsonl")
    assert of_mteb[0].spec.name == "mteb:STSBenchmark"  # and not again as a part of the benchmark
    assert len({task.spec.name for task in of_mteb}) == len(of_mteb) >= 19  # 9 STS and 10 retrieval tasks
    assert {task.spec.options["mirror"] for task in of_mteb} == {str(tmp_path / "mirror")}
    assert config.runtime == RuntimeOptions(device="cpu", batch_tokens=2048)
    # The commented-out statistics are the defaults, so that bringing them to life changes no number.
    assert config.statistics == StatisticsOptions()


def test_every_example_was_brought_to_life() -> None:
    """What is still a comment is a sentence; at least nine lines were examples."""
    before, after = TEMPLATE.splitlines(), uncommented().splitlines()
    assert sum(a != b for a, b in zip(before, after, strict=True)) >= 9
    for line in after:
        if line.lstrip().startswith("#"):
            assert re.match(r" *# [A-Z]", line), line


def test_every_setting_is_mentioned() -> None:
    """Whoever reads the file meets each top-level key, but for ``data``, which catalogue tasks alone need."""
    known = set(config_schema()["properties"])
    assert {key for key in known if re.search(rf"^(# )?{key}:", TEMPLATE, re.MULTILINE)} == known - {"data"}


def test_it_is_easy_on_the_eye() -> None:
    """Lines of at most 100 characters, no tabs, no trailing white space, one final newline."""
    assert TEMPLATE.endswith("\n")
    assert not TEMPLATE.endswith("\n\n")
    for line in TEMPLATE.splitlines():
        assert len(line) <= 100
        assert line == line.rstrip()
        assert "\t" not in line
