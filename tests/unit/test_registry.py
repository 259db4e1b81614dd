"""Parts found by file name and by entry point."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from embeval.errors import EvaluationError, UnknownNameError
from embeval.registry import Registry

GROUP = "tests.parts"
Offer = Callable[[Iterable[tuple[str, str]]], None]


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A package with parts: two that work, one that can't be imported, a private file and a folder."""
    name = f"parts_{abs(hash(str(tmp_path)))}"
    folder = tmp_path / name
    (folder / "inner").mkdir(parents=True)
    (folder / "__init__.py").write_text("", encoding="utf-8")
    (folder / "inner" / "__init__.py").write_text("", encoding="utf-8")
    (folder / "word_count.py").write_text("PART = 'the part word_count'\n", encoding="utf-8")
    (folder / "hashing.py").write_text("PART = 'the part hashing'\n", encoding="utf-8")
    (folder / "broken.py").write_text("raise RuntimeError('imported')\n", encoding="utf-8")
    (folder / "_shared.py").write_text("PART = 'not a part'\n", encoding="utf-8")
    plugin = tmp_path / f"plugin_{name}.py"
    plugin.write_text("PART = 'the part of a plug-in'\n", encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    return name


@pytest.fixture
def offer(monkeypatch: pytest.MonkeyPatch) -> Offer:
    """Makes other packages offer parts as (name, module:attribute)."""

    def install(points: Iterable[tuple[str, str]]) -> None:
        made = [EntryPoint(name=name, value=value, group=GROUP) for name, value in points]
        monkeypatch.setattr(
            "embeval.registry.entry_points", lambda *, group: [point for point in made if point.group == group]
        )

    return install


def registry(package: str, group: str = GROUP) -> Registry[str]:
    """The registry under test."""
    return Registry(kind="kind of part", package=package, attribute="PART", group=group)


def test_names_are_file_names_and_nothing_is_imported(package: str) -> None:
    """Private files and folders are no parts; a file that can't even be imported is listed all the same."""
    assert registry(package).names() == ("broken", "hashing", "word_count")
    assert not [name for name in sys.modules if name.startswith(f"{package}.")]


def test_get_imports_that_one_file(package: str) -> None:
    """The attribute of the module comes back, and no other module is imported."""
    assert registry(package).get("word_count") == "the part word_count"
    assert [name for name in sys.modules if name.startswith(f"{package}.")] == [f"{package}.word_count"]


def test_a_hyphen_stands_for_an_underscore(package: str) -> None:
    """``word-count`` is ``word_count``."""
    assert registry(package).get("word-count") == "the part word_count"


@pytest.mark.parametrize("name", ["_shared", "inner", "", "word_count.py", "..word_count"])
def test_what_is_no_part_is_unknown(package: str, name: str) -> None:
    """Private files, folders and paths can't be reached by name."""
    with pytest.raises(UnknownNameError, match="Unknown kind of part"):
        registry(package).get(name)


def test_unknown_names_are_answered_with_the_closest(package: str) -> None:
    """The message names the kind, the wrong name and the nearest right one."""
    with pytest.raises(UnknownNameError) as caught:
        registry(package).get("wordcount")
    assert str(caught.value) == "Unknown kind of part 'wordcount'. Did you mean 'word_count'?"
    assert caught.value.known == ("broken", "hashing", "word_count")


def test_plug_ins_stand_beside_the_built_ins(package: str, offer: Offer) -> None:
    """An entry point of the group is listed without being loaded, and loaded when asked for."""
    offer([("other", f"plugin_{package}:PART"), ("no-such", "no_such_module_anywhere:PART")])
    found = registry(package)
    assert found.names() == ("broken", "hashing", "no_such", "other", "word_count")
    assert f"plugin_{package}" not in sys.modules
    assert found.get("other") == "the part of a plug-in"


def test_plug_ins_of_another_group_are_not_ours(package: str, offer: Offer) -> None:
    """Only the group of the registry counts."""
    offer([("other", f"plugin_{package}:PART")])
    assert registry(package, group="another.group").names() == ("broken", "hashing", "word_count")


def test_close_plug_in_names_are_offered(package: str, offer: Offer) -> None:
    """The advice "did you mean" knows plug-ins too."""
    offer([("sparse", f"plugin_{package}:PART")])
    with pytest.raises(UnknownNameError, match="Did you mean 'sparse'"):
        registry(package).get("sprase")


@pytest.mark.parametrize("name", ["word_count", "word-count"])
def test_a_plug_in_with_the_name_of_a_built_in_is_refused(package: str, offer: Offer, name: str) -> None:
    """Whichever spelling it takes: two parts of one name would make it a matter of chance which one runs."""
    offer([(name, f"plugin_{package}:PART")])
    with pytest.raises(EvaluationError) as caught:
        registry(package).names()
    message = str(caught.value)
    assert message.startswith(f"Two packages offer the kind of part '{name}'")
    assert f"plugin_{package}:PART" in message
    assert "Uninstall one of them." in message


def test_two_plug_ins_of_one_name_are_refused(package: str, offer: Offer) -> None:
    """The same for two other packages."""
    offer([("twice", f"plugin_{package}:PART"), ("twice", "elsewhere:PART")])
    with pytest.raises(EvaluationError, match="Two packages offer the kind of part 'twice'; one comes from 'elsewhere"):
        registry(package).get("twice")


def test_the_package_s_own_parts_are_found() -> None:
    """Backends, task types, indexes, metric families and the catalogue each read their own folder."""
    from embeval.encoders.loading import BACKENDS
    from embeval.metrics._family import FAMILIES
    from embeval.retrieval.kinds import INDEXES
    from embeval.tasks import TASK_TYPES
    from embeval.tasks.catalog import CATALOG

    assert {"hashing", "sentence_transformers"} <= set(BACKENDS.names())
    assert BACKENDS.get("sentence-transformers") is BACKENDS.get("sentence_transformers")
    assert {"retrieval", "sts"} <= set(TASK_TYPES.names())
    assert {"brute", "flat"} <= set(INDEXES.names())
    assert {"correlation", "ranking"} <= set(FAMILIES.names())
    assert {"demo_docs", "demo_pairs", "sts12"} <= set(CATALOG.names())
    assert CATALOG.get("demo-docs").name == "demo-docs"
