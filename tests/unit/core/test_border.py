"""The border between JSON and dataclasses: what gets in, what is refused, and in which words."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import pytest

from embeval.core import border, strict_json
from embeval.core.border import BORDER, BorderError, Problem


@dataclass(frozen=True, kw_only=True)
class Inner:
    """A part."""

    __pydantic_config__ = BORDER

    value: float
    """A number."""
    label: str = "none"
    """A word."""


@dataclass(frozen=True, kw_only=True)
class Outer:
    """A whole."""

    __pydantic_config__ = BORDER

    inner: Inner
    """One part."""
    count: int = 1
    """How many, at least one."""
    flag: bool = False
    """Yes or no."""
    kind: Literal["red", "blue"] = "red"
    """Which one."""
    several: tuple[Inner, ...] = ()
    """More parts."""
    maybe: Inner | None = None
    """A part that may be missing."""
    table: Mapping[str, Inner] = field(default_factory=dict)
    """Parts by name."""
    options: Mapping[str, str | int | bool | None] = field(default_factory=dict)
    """Anything simple."""

    def __post_init__(self) -> None:
        if self.count < 1:
            raise ValueError(f"count must be at least 1, not {self.count}")


INNER: dict[str, Any] = {"value": 1.5}


def problems(value: Any, cls: type[Any] = Outer) -> tuple[Problem, ...]:
    """What is found wrong in a value."""
    with pytest.raises(BorderError) as caught:
        border.load(cls, value)
    return caught.value.problems


def test_json_becomes_the_dataclass() -> None:
    """Lists become tuples, objects their dataclasses, and what is absent its default."""
    loaded = border.load(
        Outer,
        {
            "inner": {"value": 1.5, "label": "a"},
            "kind": "blue",
            "several": [{"value": 2.5}, {"value": -3.0}],
            "table": {"x": {"value": 0.0}},
            "options": {"a": 1, "b": True, "c": "1", "d": None},
        },
    )
    assert loaded == Outer(
        inner=Inner(value=1.5, label="a"),
        kind="blue",
        several=(Inner(value=2.5), Inner(value=-3.0)),
        table={"x": Inner(value=0.0)},
        options={"a": 1, "b": True, "c": "1", "d": None},
    )
    assert isinstance(loaded.several, tuple)
    assert isinstance(loaded.several[0], Inner)
    assert loaded.options["b"] is True


def test_dump_gives_plain_json_and_load_takes_it_back() -> None:
    """Tuples become lists, every field is written, and reading gives an equal value."""
    whole = Outer(inner=Inner(value=1.5), several=(Inner(value=2.0),), options={"a": None})
    plain = border.dump(whole)
    assert plain == {
        "inner": {"value": 1.5, "label": "none"},
        "count": 1,
        "flag": False,
        "kind": "red",
        "several": [{"value": 2.0, "label": "none"}],
        "maybe": None,
        "table": {},
        "options": {"a": None},
    }
    assert isinstance(plain["several"], list)
    assert border.load(Outer, plain) == whole


def test_a_whole_number_is_a_float_but_nothing_else_changes_its_type() -> None:
    """``5`` fits a float field, as JSON has one kind of number."""
    loaded = border.load(Inner, {"value": 5})
    assert loaded.value == 5.0
    assert type(loaded.value) is float


@pytest.mark.parametrize(
    ("value", "path", "shown"),
    [
        ({"inner": INNER, "count": "5"}, ("count",), "'5'"),
        ({"inner": INNER, "count": 5.0}, ("count",), "5.0"),
        ({"inner": INNER, "count": True}, ("count",), "True"),
        ({"inner": INNER, "count": None}, ("count",), "None"),
        ({"inner": INNER, "flag": 1}, ("flag",), "1"),
        ({"inner": INNER, "flag": "true"}, ("flag",), "'true'"),
        ({"inner": INNER, "kind": "green"}, ("kind",), "'green'"),
        ({"inner": INNER, "several": {"value": 1.0}}, ("several",), "{'value': 1.0}"),
        ({"inner": INNER, "several": [INNER, {"value": "1"}]}, ("several", 1, "value"), "'1'"),
        ({"inner": INNER, "table": {"x": {"value": None}}}, ("table", "x", "value"), "None"),
        ({"inner": {"value": "1.5"}}, ("inner", "value"), "'1.5'"),
        ({"inner": {"value": True}}, ("inner", "value"), "True"),
        ({"inner": {"value": 1.0, "label": 3}}, ("inner", "label"), "3"),
        ({"inner": [1.5]}, ("inner",), "[1.5]"),
        ([], (), "[]"),
        ("text", (), "'text'"),
        (None, (), "None"),
    ],
)
def test_a_wrong_type_is_refused_with_its_place(value: Any, path: tuple[str | int, ...], shown: str) -> None:
    """Nothing is converted, and the problem tells where and what was found."""
    (problem,) = problems(value)
    assert problem.path == path
    assert problem.text.endswith(f", not {shown}")
    assert "\n" not in str(problem)


def test_every_problem_is_reported() -> None:
    """Three faults give three problems, and the error's text holds them all."""
    with pytest.raises(BorderError) as caught:
        border.load(Outer, {"inner": {}, "count": "x", "flg": True})
    assert {problem.path for problem in caught.value.problems} == {("inner",), ("count",), ("flg",)}
    assert all(str(problem) in str(caught.value) for problem in caught.value.problems)


def test_a_missing_key_is_named() -> None:
    """At the top without a path, inside with the path of the object that lacks it."""
    assert [str(problem) for problem in problems({})] == ["the key 'inner' is missing"]
    assert [str(problem) for problem in problems({"inner": INNER, "several": [INNER, {}]})] == [
        "several[1]: the key 'value' is missing"
    ]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"inner": INNER, "cuont": 1}, "cuont: unknown key. Did you mean 'count'?"),
        ({"inner": {"value": 1.0, "labell": ""}}, "inner.labell: unknown key. Did you mean 'label'?"),
        ({"inner": {"value": 1.0, "zzz": ""}}, "inner.zzz: unknown key. Known: label, value."),
        (
            {"inner": INNER, "several": [{"value": 1.0, "labell": ""}]},
            "several[0].labell: unknown key. Did you mean 'label'?",
        ),
        ({"inner": INNER, "maybe": {"value": 1.0, "zzz": 1}}, "maybe.zzz: unknown key. Known: label, value."),
        (
            {"inner": INNER, "table": {"x": {"value": 1.0, "labell": 1}}},
            "table.x.labell: unknown key. Did you mean 'label'?",
        ),
        ({"inner": INNER, "table": {"x": {"value": 1.0, "zzz": 1}}}, "table.x.zzz: unknown key. Known: label, value."),
    ],
)
def test_an_unknown_key_is_refused_with_the_keys_of_its_place(value: Any, message: str) -> None:
    """The nearest known key of that very object is offered, or its keys are listed."""
    assert [str(problem) for problem in problems(value)] == [message]


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_no_number_gets_in_that_is_none(number: float) -> None:
    """NaN and Infinity are refused before anything is built."""
    (problem,) = problems({"value": number}, Inner)
    assert str(problem) == f"value: must be a finite number, not {number}"


@pytest.mark.parametrize(
    "value", [{"value": object()}, {"value": {1, 2}}, {"value": b"1"}], ids=["object", "set", "bytes"]
)
def test_what_is_no_json_value_is_refused(value: Any) -> None:
    """Python values that no JSON file can hold."""
    (problem,) = problems(value, Inner)
    assert str(problem).startswith("value: must be text, a number, true, false or null, not the ")


def test_a_value_inside_itself_is_refused() -> None:
    """Endless nesting ends as a problem and not as a crash."""
    endless: dict[str, Any] = {}
    endless["value"] = endless
    deep: Any = 1.0
    for _ in range(100_000):
        deep = [deep]
    for value in (endless, {"value": deep}):
        (problem,) = problems(value, Inner)
        assert str(problem) == "nested too deeply"
    while isinstance(deep, list):  # taken apart step by step: letting go of it at once would nest as deeply
        deep = deep.pop()


def test_a_check_of_the_dataclass_speaks_for_itself() -> None:
    """What ``__post_init__`` raises is the whole message, at the field that it starts with."""
    found = problems({"inner": INNER, "count": 0})
    assert [str(problem) for problem in found] == ["count: must be at least 1, not 0"]


def test_a_value_of_no_allowed_type_is_one_problem() -> None:
    """A choice of types is one fault at the key that the user wrote, not one per type under a made-up key."""
    assert {problem.path for problem in problems({"inner": INNER, "options": {"a": [1]}})} == {("options", "a")}


def test_a_long_value_is_cut() -> None:
    """A text of 10,000 characters doesn't end up whole in the message."""
    (problem,) = problems({"inner": INNER, "count": "x" * 10_000})
    assert len(str(problem)) < 150
    assert problem.text.endswith("…")


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ((), ""),
        (("a",), "a"),
        (("tasks", 0, "columns", "score"), "tasks[0].columns.score"),
        ((2, "a"), "[2].a"),
        (("a", 1, 2), "a[1][2]"),
    ],
)
def test_paths_are_spelled_as_people_write_them(path: border.KeyPath, text: str) -> None:
    """Dots between keys, brackets around positions."""
    assert border.spell(path) == text


@pytest.mark.parametrize(
    "text",
    [
        '{"inner": {"value": 0.12345678901234567890123}, "count": 123456789012345678901234567890}',
        '{"inner": {"value": 2.2250738585072011e-308}, "several": [{"value": 1E2}, {"value": 7}]}',
        '{"options": {"\\u00e4": "\\ud83d\\ude00", "": null}, "inner": {"label": "\\u0000", "value": -0.0}}',
        '{"inner": {"value": 1}, "options": {"lone": "\\ud83d"}}',
        '{"inner": {"value": "1"}, "count": true}',
        '{"inner": {"value": 1}, "cuont": 1, "count": 0}',
        '{"inner": {"value": null}, "several": {}}',
        "[" * 150 + "]" * 150,
    ],
)
def test_a_record_from_its_text_is_what_its_values_give(text: str) -> None:
    """The short way through the text changes neither what is built nor what is refused, nor the words for it."""
    value = strict_json.loads(text)
    outcomes: list[Any] = []
    for given in (None, text.encode()):
        try:
            outcomes.append(border.load(Outer, value, given))
        except (BorderError, UnicodeEncodeError) as error:
            outcomes.append(f"{type(error).__name__} {error}")
    assert outcomes[0] == outcomes[1]


def test_a_problem_at_the_top_has_no_path() -> None:
    """With a path it stands before a colon, without one there is no colon."""
    assert str(Problem((), "wrong")) == "wrong"
    assert str(Problem(("a", 0), "wrong")) == "a[0]: wrong"


@pytest.mark.parametrize(
    ("path", "keys"),
    [
        ((), {"inner", "count", "flag", "kind", "several", "maybe", "table", "options"}),
        (("inner",), {"value", "label"}),
        (("several", 3), {"value", "label"}),
        (("maybe",), {"value", "label"}),
        (("table", "x"), {"value", "label"}),
    ],
)
def test_keys_at_a_place(path: border.KeyPath, keys: set[str]) -> None:
    """The fields of the dataclass that stands there, whatever lies between."""
    assert set(border.keys_at(border.schema(Outer), path)) == keys


def test_the_schema_describes_every_field() -> None:
    """Docstrings under fields become descriptions, and unknown keys are ruled out there too."""
    schema = border.schema(Outer)
    assert {name: entry.get("description") for name, entry in schema["properties"].items()} == {
        "inner": "One part.",
        "count": "How many, at least one.",
        "flag": "Yes or no.",
        "kind": "Which one.",
        "several": "More parts.",
        "maybe": "A part that may be missing.",
        "table": "Parts by name.",
        "options": "Anything simple.",
    }
    assert schema["additionalProperties"] is False
    assert schema["required"] == ["inner"]
    assert schema["$defs"]["Inner"]["required"] == ["value"]
