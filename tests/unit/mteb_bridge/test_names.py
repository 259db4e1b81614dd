"""Names of tasks and benchmarks, patterns and filters, against what mteb 2.26 itself answers."""

from __future__ import annotations

from typing import Any

import mteb
import pytest

from embeval.errors import ConfigError, UnknownNameError
from embeval.mteb_bridge import names, overview
from embeval.mteb_bridge.names import Filters, expand

BENCHMARK = "MTEB(eng, v2)"


def wanted(*tasks: mteb.AbsTask) -> set[tuple[str, str, frozenset[str]]]:
    """What mteb would evaluate: task, split, sub-sets."""
    return {(task.metadata.name, split, frozenset(task.hf_subsets)) for task in tasks for split in task.eval_splits}


def expanded(name: str, *filters: Filters) -> set[tuple[str, str, frozenset[str]]]:
    """What the name comes to; all sub-sets of a task by their names."""
    found = expand(name, *filters)
    every = {each.name: mteb.get_task(each.name).metadata.hf_subsets for each in found}
    return {(each.name, each.split, frozenset(each.subsets or every[each.name])) for each in found}


@pytest.mark.parametrize("name", ["STS12", "sts12", " STS12 "])
def test_a_task_by_name(name: str) -> None:
    """Upper and lower case and blanks don't count; all sub-sets are None, and what mteb says of the data is told."""
    (found,) = expand(name)
    assert (found.name, found.split, found.subsets, found.languages) == ("STS12", "test", None, ("eng",))
    assert found.citation == "https://www.aclweb.org/anthology/S12-1051.pdf"


@pytest.mark.parametrize("name", [BENCHMARK, "mteb(eng,v2)", "MTEB(eng)"])
def test_a_benchmark_is_what_mteb_says(name: str) -> None:
    """The same tasks, splits and sub-sets (MassiveIntentClassification in English), also by its alias."""
    found = expanded(name)
    assert found == wanted(*mteb.get_benchmark(BENCHMARK).tasks)
    assert len(found) == 41


def test_an_aggregate_is_its_tasks() -> None:
    """CQADupstackRetrieval of MTEB(eng, v1) is twelve, in the split that the benchmark names."""
    aggregate: Any
    (aggregate,) = (
        task for task in mteb.get_benchmark("MTEB(eng, v1)").tasks if task.metadata.name == "CQADupstackRetrieval"
    )
    expected = {(task.metadata.name, "test") for task in aggregate.tasks}
    assert len(expected) == 12
    assert {(each.name, each.split) for each in expand("CQADupstackRetrieval")} == expected
    assert expected < {(each.name, each.split) for each in expand("MTEB(eng, v1)")}


@pytest.mark.parametrize(
    ("filters", "keys"),
    [
        (Filters(types=("STS",), languages=("deu",)), {"task_types": ["STS"], "languages": ["deu"]}),
        (Filters(types=("bitext-mining", "summarization")), {"task_types": ["BitextMining", "Summarization"]}),
        (Filters(domains=("legal",), languages=("fra", "eng")), {"domains": ["Legal"], "languages": ["fra", "eng"]}),
        (Filters(languages=("swe-Latn",)), {"languages": ["swe"]}),
    ],
)
def test_filters_keep_what_mteb_would(filters: Filters, keys: dict[str, Any]) -> None:
    """Tasks and sub-sets of ``mteb.get_tasks`` under the same filters, without aggregates."""
    tasks = mteb.get_tasks(**keys, modalities=["text"], exclusive_modality_filter=True, exclude_aggregate=True)
    assert tasks
    assert expanded("*", filters) == wanted(*tasks)


def test_filters_come_one_after_the_other() -> None:
    """Those of an entry and those of the command line both hold."""
    found = expand(BENCHMARK, Filters(types=("STS",)), Filters(domains=("Medical",)))
    assert [each.name for each in found] == ["BIOSSES"]


def test_filters_change_nothing_of_mteb() -> None:
    """A benchmark is whole again after a part of it was asked for: mteb hands out the same objects each time."""
    expand(BENCHMARK, Filters(languages=("deu", "eng")), subsets=("en-en",))
    assert len(expand(BENCHMARK)) == 41


def test_types() -> None:
    """As mteb's metadata has them; a task that is run carries it, so that a board can group by it."""
    assert [each.type for name in ("STS17", "Banking77Classification", "SciFact") for each in expand(name)] == [
        "STS",
        "Classification",
        "Retrieval",
    ]


def test_patterns() -> None:
    """``*`` stands for anything; what mteb has superseded is not meant."""
    assert {each.name for each in expand("STS1*")} == {f"STS{year}" for year in (12, 13, 14, 15, 16, 17)}
    assert "STSBenchmark.v2" in {each.name for each in expand("stsb*")}
    assert "STSBenchmark" not in {each.name for each in expand("stsb*")}


def test_splits_and_subsets_of_ones_own() -> None:
    """In place of mteb's; of a benchmark only the tasks that have the sub-set are meant."""
    (found,) = expand("STSBenchmark", splits=("dev",))
    assert (found.split, found.subsets) == ("dev", None)
    assert [(each.name, each.subsets) for each in expand("STS17", subsets=("es-en", "en-de"))] == [
        ("STS17", ("en-de", "es-en"))
    ]
    assert [each.name for each in expand(BENCHMARK, subsets=("en-en",))] == ["STS17"]


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("STS21", {}, "Unknown mteb task or benchmark 'STS21'. Did you mean 'STS"),
        ("MTEB(eng, v3)", {}, "Did you mean 'MTEB(eng, v2)'"),
        ("NothingLike*", {}, "No task fits this pattern"),
        ("STS17", {"subsets": ("xx",)}, "Unknown sub-set of mteb:STS17 'xx'"),
    ],
)
def test_unknown_names(name: str, options: dict[str, tuple[str, ...]], message: str) -> None:
    """With what is close to them."""
    with pytest.raises(UnknownNameError) as caught:
        expand(name, **options)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("filters", "message"),
    [
        (Filters(types=("Retreival",)), "Unknown type of mteb tasks 'Retreival'. Did you mean 'Retrieval'"),
        (Filters(languages=("german",)), "Did you mean 'grn'? Languages are ISO 639-3 codes, such as deu."),
        (Filters(domains=("Law",)), "Unknown domain of mteb tasks 'Law'"),
    ],
)
def test_unknown_filters(filters: Filters, message: str) -> None:
    """A filter that nothing could fit is a slip, and not an empty answer."""
    with pytest.raises(UnknownNameError) as caught:
        expand("*", filters)
    assert message in str(caught.value)


def test_nothing_left() -> None:
    """Says by which filters."""
    with pytest.raises(ConfigError) as caught:
        expand("STS12", Filters(types=("Retrieval",), languages=("deu",)))
    assert str(caught.value) == "mteb:STS12: no task of the type Retrieval and the language deu."


def test_overview_tells_size_and_licence() -> None:
    """As mteb's statistics and metadata have them; 1379 pairs are the test split of STSBenchmark (Cer et al. 2017)."""
    (found,) = overview.described(names.named("STSBenchmark"))
    assert (found.items, found.license, found.main_score) == (1379, "not specified", "cosine_spearman")
    assert (found.superseded_by, found.in_mirror) == ("STSBenchmark.v2", None)
    listed = overview.tasks(Filters(types=("Summarization",)))
    expected = mteb.get_tasks(task_types=["Summarization"], modalities=["text"])
    assert [each.name for each in listed] == sorted(task.metadata.name for task in expected)


def test_benchmarks_with_images_are_left_out_of_the_overview() -> None:
    """41 tasks of texts are offered, a benchmark of images is not."""
    found = {each.name: each.tasks for each in overview.benchmarks()}
    assert found[BENCHMARK] == 41
    assert "MIEB(eng)" not in found
