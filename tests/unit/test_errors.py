"""The tree of errors, its exit codes, and the help that messages give."""

from __future__ import annotations

import inspect
import re

import pytest

from embeval import errors
from embeval.errors import (
    ConfigError,
    EmbevalError,
    EvaluationError,
    ExitCode,
    InvalidEmbeddingsError,
    MissingPackageError,
    UnknownNameError,
    UsageError,
    did_you_mean,
)

_DRAWN = re.compile(r"^ {4}(?P<branch>[│├└─ ]*)(?P<name>[A-Z]\w+) +(?P<code>\d+)(?: |$)")


def drawn_tree() -> dict[str, tuple[str | None, int]]:
    """Class name -> (parent, exit code), read from the drawing in the module docstring."""
    tree: dict[str, tuple[str | None, int]] = {}
    above: list[str] = []
    for line in (errors.__doc__ or "").splitlines():
        if match := _DRAWN.match(line):
            depth = len(match["branch"]) // 4
            del above[depth:]
            tree[match["name"]] = (above[-1] if above else None, int(match["code"]))
            above.append(match["name"])
    return tree


def real_tree() -> dict[str, tuple[str | None, int]]:
    """The same, read from the classes."""
    classes = [each for _, each in inspect.getmembers(errors, inspect.isclass) if issubclass(each, EmbevalError)]
    return {
        each.__name__: (
            next((base.__name__ for base in each.__bases__ if issubclass(base, EmbevalError)), None),
            int(each.exit_code),
        )
        for each in classes
    }


def test_the_drawn_tree_is_the_tree() -> None:
    """Names, parents and exit codes in the docstring equal those of the classes: none more, none less."""
    assert drawn_tree() == real_tree()
    assert len(real_tree()) == 12


def test_every_error_has_one_of_the_documented_exit_codes() -> None:
    """0, 1, 2, 3, 4, 70 and 130, as the README promises; users' mistakes are 2, what can't be evaluated is 3."""
    assert {code.name: int(code) for code in ExitCode} == {
        "OK": 0,
        "OVER_BOUND": 1,
        "USAGE": 2,
        "CANNOT_EVALUATE": 3,
        "INCONCLUSIVE": 4,
        "INTERNAL": 70,
        "INTERRUPTED": 130,
    }
    assert UsageError("x").exit_code == 2
    assert EvaluationError("x").exit_code == 3
    assert EmbevalError("x").exit_code == 70


def test_every_class_says_what_it_is_for() -> None:
    """Each has a docstring of its own."""
    for name in real_tree():
        own = vars(getattr(errors, name)).get("__doc__")
        assert own, name
        assert own != Exception.__doc__


def test_unknown_name_offers_the_closest() -> None:
    """At most three, whatever their case, and no list of all the others."""
    error = UnknownNameError("task", "STSB", ["stsb", "banking", "stsb-de"])
    assert str(error) == "Unknown task 'STSB'. Did you mean 'stsb' or 'stsb-de'?"
    assert (error.kind, error.name, error.known) == ("task", "STSB", ("banking", "stsb", "stsb-de"))


def test_unknown_name_lists_what_is_known_where_nothing_is_close() -> None:
    """Up to twelve names, sorted, with a mark that there are more; then the hint."""
    few = UnknownNameError("metric", "zzz", ["b", "a"], hint="Look again.")
    assert str(few) == "Unknown metric 'zzz'. Known: a, b. Look again."
    many = UnknownNameError("metric", "zzz", [f"n{number:02}" for number in range(13)])
    assert str(many) == f"Unknown metric 'zzz'. Known: {', '.join(f'n{number:02}' for number in range(12))}, …."
    assert str(UnknownNameError("metric", "zzz", [])) == "Unknown metric 'zzz'."


@pytest.mark.parametrize(
    ("name", "known", "expected"),
    [
        ("demo-dcs", ["demo-docs", "other"], "Did you mean 'demo-docs'?"),
        ("DEMO-DOCS", ["demo-docs"], "Did you mean 'demo-docs'?"),
        ("stsbenchmark", ["STSBenchmark"], "Did you mean 'STSBenchmark'?"),
        ("zzz", ["demo-docs"], ""),
        ("x", [], ""),
    ],
)
def test_did_you_mean(name: str, known: list[str], expected: str) -> None:
    """The known spelling is offered, upper and lower case alike; nothing where nothing is near."""
    assert did_you_mean(name, known) == expected


def test_missing_package_names_the_extra() -> None:
    """It is an ImportError too, and tells in two lines what needs which package and how to get it."""
    error = MissingPackageError("peft", "peft", "Fine-tuning with LoRA")
    assert isinstance(error, ImportError)
    assert (error.package, error.extra, error.exit_code) == ("peft", "peft", ExitCode.CANNOT_EVALUATE)
    first, second = str(error).splitlines()
    assert first == "Fine-tuning with LoRA needs the package 'peft', which is not installed."
    assert "pip install 'embeval-toolkit[peft]'" in second


def test_a_package_of_the_full_install_has_no_extra() -> None:
    """mteb is one of them: an empty pair of brackets would be no help."""
    first, second = str(MissingPackageError("mteb", "", "A task of mteb")).splitlines()
    assert first == "A task of mteb needs the package 'mteb', which is not installed."
    assert "pip install embeval-toolkit (from a checkout: pip install .)" in second
    assert "[" not in second


def test_errors_carry_what_their_callers_need() -> None:
    """The path of a wrong setting, the ids of texts without an embedding; both empty where not given."""
    assert ConfigError("x", ("models", 0)).key == ("models", 0)
    assert ConfigError("x").key == ()
    assert InvalidEmbeddingsError("x", ("q1",)).ids == ("q1",)
    assert InvalidEmbeddingsError("x").ids == ()
    assert str(ConfigError("what was wrong", ("models",))) == "what was wrong"
