"""Strict JSON against RFC 8259 and against a second parser (jiter, which pydantic carries)."""

from __future__ import annotations

import hashlib
import json
import math
from typing import Any

import pydantic_core
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from embeval.core import strict_json

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4), max_leaves=12
)
relaxed = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


def typed(value: Any) -> Any:
    """The value with the type of each part, so that 1, 1.0 and True, or 0.0 and -0.0, are told apart."""
    if isinstance(value, dict):
        return {key: typed(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [typed(inner) for inner in value]
    return type(value).__name__, value.hex() if isinstance(value, float) else value


@relaxed
@given(value=VALUES)
def test_round_trip(value: Any) -> None:
    """What is written is read back, to the type and the last bit, as text and as bytes."""
    for written in (strict_json.dumps(value), strict_json.canonical(value)):
        assert typed(strict_json.loads(written)) == typed(value)
        assert typed(strict_json.loads(written.encode("utf-8"))) == typed(value)


@relaxed
@given(value=VALUES)
def test_another_parser_reads_what_is_written(value: Any) -> None:
    """A strict parser in Rust, told to refuse NaN and Infinity, finds the same value."""
    for written in (strict_json.dumps(value), strict_json.canonical(value)):
        assert typed(pydantic_core.from_json(written, allow_inf_nan=False)) == typed(value)


def turned(value: Any) -> Any:
    """The value with the keys of every object in reverse order."""
    if isinstance(value, dict):
        return {key: turned(inner) for key, inner in reversed(value.items())}
    return [turned(inner) for inner in value] if isinstance(value, list) else value


@relaxed
@given(value=VALUES)
def test_order_of_keys_does_not_matter(value: Any) -> None:
    """Equal values give equal text, on one line where it is canonical, and equal digests."""
    assert strict_json.canonical(turned(value)) == strict_json.canonical(value)
    assert strict_json.dumps(turned(value)) == strict_json.dumps(value)
    assert strict_json.digest(turned(value)) == strict_json.digest(value)
    assert "\n" not in strict_json.canonical(value)


def test_dumps_has_one_form() -> None:
    """Sorted keys, two spaces, letters unescaped, a final newline; written by hand."""
    value = {"b": [1, True, None], "a": {"ü": "é\n東", "A": 0.1}, "c": {}, "d": []}
    assert strict_json.dumps(value) == (
        '{\n  "a": {\n    "A": 0.1,\n    "ü": "é\\n東"\n  },\n'
        '  "b": [\n    1,\n    true,\n    null\n  ],\n  "c": {},\n  "d": []\n}\n'
    )


def test_canonical_has_one_form() -> None:
    """No spaces, sorted keys, letters unescaped; written by hand."""
    value = {"b": [1, True, None, -0.5], "a": {"ü": "é", "A": "\t"}}
    assert strict_json.canonical(value) == '{"a":{"A":"\\t","ü":"é"},"b":[1,true,null,-0.5]}'


def test_digest_is_sha256_of_the_canonical_form() -> None:
    """sha256 of the empty object is a published value; another one is hashed from text written by hand."""
    assert strict_json.digest({}) == "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"
    expected = hashlib.sha256('{"a":"é","b":[1,2.5]}'.encode()).hexdigest()
    assert strict_json.digest({"b": [1, 2.5], "a": "é"}) == expected


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ([1, 2], [2, 1]),
        ({"a": 1}, {"a": "1"}),
        ({"a": None}, {}),
        (["ab", "c"], ["a", "bc"]),
        (True, "true"),
        (0, False),
    ],
)
def test_different_values_have_different_digests(one: Any, other: Any) -> None:
    """Values that look alike are kept apart."""
    assert strict_json.digest(one) != strict_json.digest(other)


@pytest.mark.parametrize("word", ["NaN", "Infinity", "-Infinity"])
@pytest.mark.parametrize("around", ["{}", "[1, {}]", '{{"a": {{"b": {}}}}}'])
def test_words_that_are_no_numbers_are_refused(word: str, around: str) -> None:
    """NaN and Infinity, at the top or inside, which Python's json reads; the message names the word."""
    text = around.format(word)
    json.loads(text)
    with pytest.raises(ValueError, match=f"^{word} is not a JSON number$"):
        strict_json.loads(text)


@pytest.mark.parametrize("text", ["1e999", "-1e999", '{"score": 1e400}', "[2e308]"])
def test_a_number_beyond_float_is_refused(text: str) -> None:
    """A number too large for a double would be read as Infinity, which the doc-string rules out."""
    assert math.isinf(float(text.strip('{}[]"score: ')))
    with pytest.raises(ValueError, match=r"\S"):
        strict_json.loads(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "   ",
        "{",
        "[1,]",
        '{"a": 1,}',
        "{'a': 1}",
        "{a: 1}",
        '{"a" 1}',
        "01",
        "+1",
        "1.",
        ".5",
        "0x10",
        "1_000",
        "True",
        "None",
        "[1] 2",
        '"\n"',
        '"\\x41"',
        '"\\u12"',
        "// why\n1",
        "\ufeff1",
        "\u00a01",
        "[" * 200_000,
        '{"a":' * 200_000,
        "9" * 5_000,
    ],
    ids=lambda text: repr(text[:12]),
)
def test_broken_json_is_a_value_error(text: str) -> None:
    """Whatever is no JSON, or nested without end, is one kind of error."""
    with pytest.raises(ValueError, match=r"\S"):
        strict_json.loads(text)


@pytest.mark.parametrize(
    "data",
    [b'"\xff"', b'"\xc3("', b'"\xed\xa0\x80"', b"\x80"],
    ids=["byte ff", "cut sequence", "encoded surrogate", "lone continuation"],
)
def test_bytes_that_are_no_utf8_are_refused(data: bytes) -> None:
    """RFC 8259, section 8.1: JSON text is UTF-8."""
    with pytest.raises(ValueError, match=r"\S"):
        strict_json.loads(data)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-32"])
def test_other_encodings_are_refused(encoding: str) -> None:
    """RFC 8259, section 8.1, and the module's doc-string: UTF-8 and nothing else."""
    with pytest.raises(ValueError, match=r"\S"):
        strict_json.loads('{"a": 1}'.encode(encoding))


@pytest.mark.parametrize("text", ['{"a": 1, "a": 2}', '{"a": 1, "a": 1}', '[{"x": {"b": null, "a": 1, "b": 0}}]'])
def test_a_key_that_comes_twice_is_refused(text: str) -> None:
    """Which of the two values counts is undefined (RFC 8259, section 4), so neither may win silently."""
    with pytest.raises(ValueError, match=r"\S"):
        strict_json.loads(text)


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("write", [strict_json.dumps, strict_json.canonical, strict_json.digest])
def test_nan_is_never_written(number: float, write: Any) -> None:
    """No form of writing lets NaN or Infinity out, at the top or inside."""
    for value in (number, [1, {"a": number}]):
        with pytest.raises(ValueError, match="JSON compliant"):
            write(value)
