"""Entries ``{mteb: NAME}`` and words ``mteb:NAME``: what they come to, and what is wrong with them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from embeval.core.protocols import Task
from embeval.errors import ConfigError, UsageError
from embeval.mteb_bridge.names import Filters
from embeval.workflows import mteb_entries, requests
from embeval.workflows.config import load_config
from tests.support.models import save_tiny_cross_encoder


def parsed(text: str, **options: Any) -> list[Task[Any]]:
    """The tasks of a word."""
    return requests.parse_tasks(text, root=Path("root"), data=None, **options)


def specs(tasks: list[Task[Any]]) -> list[tuple[str, str, dict[str, Any]]]:
    """Name, split and options."""
    return [(task.spec.name, task.spec.dataset.split, dict(task.spec.options)) for task in tasks]


def test_settings_of_a_word() -> None:
    """One name alone needs no list; the mirror starts at the root."""
    tasks = parsed("mteb:sts17,subsets=es-en,parity=mteb,mirror=copies")
    assert specs(tasks) == [("mteb:STS17", "test", {"subsets": ["es-en"], "mirror": "copies", "parity": "mteb"})]
    assert tasks[0].mirror == Path("root/copies")  # type: ignore[attr-defined]  # of this type alone


def test_mirror_and_filters_of_the_command_line() -> None:
    """They hold for every word; a word's own mirror comes first."""
    kept = Filters(types=("STS",), languages=("spa",))
    assert specs(parsed("mteb:STS17", mirror=Path("elsewhere"), filters=kept)) == [
        ("mteb:STS17", "test", {"subsets": ["es-en", "es-es"], "mirror": "elsewhere"})
    ]
    own = parsed("mteb:STS12,mirror=copies", mirror=Path("elsewhere"))
    assert specs(own) == [("mteb:STS12", "test", {"mirror": "copies"})]


def test_a_reranker_goes_to_the_task(tmp_path: Path) -> None:
    """By its folder, or by settings; told again, the word gives the same task."""
    folder = save_tiny_cross_encoder(tmp_path / "reranker")
    for word in (f"mteb:SciFact,rerank={folder}", f"mteb:SciFact,rerank.model={folder},rerank.depth=7"):
        (task,) = parsed(word)
        (again,) = parsed(mteb_entries._word(task.spec))
        assert again.spec == task.spec
    assert task.spec.options["rerank"] == {"model": str(folder), "depth": 7}
    assert task.second.options.depth == 7  # type: ignore[attr-defined]  # of tasks that rank


def test_commas_and_blanks_of_a_benchmark() -> None:
    """``MTEB(eng, v2)`` is one name, with settings after it."""
    assert {task.spec.name for task in parsed("mteb:MTEB(eng, v2),types=STS,domains=[Medical]")} == {"mteb:BIOSSES"}


def test_one_task_is_needed_elsewhere() -> None:
    """``parse_task`` is for places that take one."""
    assert requests.parse_task("mteb:STS12", root=Path(), data=None).spec.name == "mteb:STS12"
    with pytest.raises(UsageError, match="stands for 6 tasks, and one is needed here"):
        requests.parse_task("mteb:STS1*", root=Path(), data=None)


def test_each_word_of_a_benchmark_stands_for_one_of_its_tasks() -> None:
    """Parsed again, the words give the tasks of the benchmark; names that are stored stay as they are."""
    text = "mteb:MTEB(eng, v2),types=[STS],parity=mteb"
    words = mteb_entries.words(text)
    assert len(words) == 9
    assert [each for word in words for each in specs(parsed(word))] == specs(parsed(text))
    assert mteb_entries.words("mteb:STS1", ["mteb:STS12"]) == ["mteb:STS1"]  # a part of a name, as elsewhere
    assert mteb_entries.words("demo-docs") == ["demo-docs"]


def test_results_of_a_benchmark_are_filed_under_its_tasks() -> None:
    """Those that are there, by their whole names: STSBenchmarkMultilingualSTS is no part of it."""
    there = ["mteb:STS12", "mteb:STSBenchmark", "mteb:STSBenchmarkMultilingualSTS", "support-kb"]
    found = mteb_entries.filed_under("mteb:MTEB(eng, v2)", there)
    assert found == ["mteb:STS12", "mteb:STSBenchmark"]
    assert mteb_entries.filed_under("mteb:MTEB(eng, v2)", ["support-kb"]) == ["mteb:MTEB(eng, v2)"]


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("{mteb: STS12, type: STS}", "line 2: tasks[0]: mteb:STS12: type: unknown key. Did you mean 'types'?"),
        (
            "{mteb: STS12, parity: both}",
            "line 2: tasks[0]: mteb:STS12: parity: Input should be 'embeval' or 'mteb', not 'both'",
        ),
        ("{mteb: STS12, types: []}", "line 2: tasks[0]: mteb:STS12: types must name at least one."),
        ("{mteb: 12}", "line 2: tasks[0]: 'mteb' must be the name of a task or benchmark of mteb, not 12."),
        ("{mteb: STS120}", "line 2: tasks[0]: Unknown mteb task or benchmark 'STS120'. Did you mean 'STS12'"),
        ("{type: mteb, data: STS12}", "line 2: tasks[0]: A task of mteb is named by {mteb: NAME}"),
        ("'mteb:'", "line 2: tasks[0]: 'mteb' must be the name of a task or benchmark of mteb, not ''."),
        (
            "{mteb: STS17, subsets: [es-en]}\n  - mteb:STS17",
            "line 3: mteb:STS17 (test) is asked for twice, with other options or sub-sets.",
        ),
    ],
)
def test_complaints_have_their_line(tmp_path: Path, entry: str, message: str) -> None:
    """As those of every other entry."""
    file = tmp_path / "embeval.yaml"
    file.write_text(f"tasks:\n  - {entry}\n", encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        load_config(file)
    assert message in str(caught.value)
