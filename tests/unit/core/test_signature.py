"""Signatures: when two results measure the same thing."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from embeval.core import border, strict_json
from embeval.core.signature import NO_TOKENIZER, SEVERAL_TOKENIZERS, Signature, other_tokens

relaxed = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
# One type of number, so that equal in Python means equal in JSON.
VALUES = st.none() | st.integers(-3, 3) | st.sampled_from(["", "x", "absent", "exact"])
PROTOCOLS = st.dictionaries(st.sampled_from(["data", "depth", "split", "ties"]), VALUES, max_size=4)


def signature(protocol: dict[str, Any], **fields: Any) -> Signature:
    """A signature of some model."""
    return Signature(protocol=protocol, **{"model_digest": "m", **fields})


def test_the_digest_is_sha256_of_the_protocol() -> None:
    """From text written by hand, in whatever order the keys come."""
    expected = hashlib.sha256(b'{"data":"ff","depth":10,"self_match":null}').hexdigest()
    assert signature({"depth": 10, "data": "ff", "self_match": None}).protocol_digest == expected
    assert signature({"self_match": None, "data": "ff", "depth": 10}).protocol_digest == expected


def test_only_the_protocol_half_counts() -> None:
    """Another model, other prompts or another version of a metric are compared on the same protocol."""
    one = signature({"depth": 10}, metrics={"map": 1}, prompts={"query": "q: "})
    other = signature({"depth": 10}, model_digest="n", metrics={"map": 2, "mrr": 1})
    assert one.protocol_digest == other.protocol_digest
    assert one.differences(other) == ()


def test_differences_are_told_in_words() -> None:
    """Changed, missing and added keys in alphabetical order, this one's value first."""
    one = signature({"depth": 10, "data": "aa", "ties": "x", "same": [1]})
    other = signature({"depth": 100, "data": "bb", "split": "dev", "same": [1]})
    assert one.differences(other) == (
        'data: "aa" and "bb"',
        "depth: 10 and 100",
        'split: absent and "dev"',
        'ties: "x" and absent',
    )
    assert other.differences(one)[1] == "depth: 100 and 10"


@relaxed
@given(one=PROTOCOLS, other=PROTOCOLS)
def test_no_difference_means_equal_digests(one: dict[str, Any], other: dict[str, Any]) -> None:
    """The two ways to ask give one answer, from both sides."""
    a, b = signature(one), signature(other)
    assert (a.differences(b) == ()) == (a.protocol_digest == b.protocol_digest)
    assert len(a.differences(b)) == len(b.differences(a))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"depth": 1}, {"depth": True}),
        ({"depth": 0}, {"depth": False}),
        ({"split": "(absent)"}, {}),
        ({"options": [1]}, {"options": [True]}),
    ],
)
def test_values_that_python_takes_for_equal_are_told_apart(one: dict[str, Any], other: dict[str, Any]) -> None:
    """Where the digests differ there is a difference to tell: 1 is not true, and no text means "absent"."""
    assert signature(one).protocol_digest != signature(other).protocol_digest
    assert signature(one).differences(signature(other)) != ()


def test_it_survives_json() -> None:
    """Read back it is equal, digest and all."""
    whole = signature(
        {"type": "sts", "version": 1, "tie": None, "list": [1, "a", False]},
        metrics={"cosine_spearman": 3},
        prompts={"text": "é\n"},
    )
    back = border.load(Signature, strict_json.loads(strict_json.dumps(border.dump(whole))))
    assert back == whole
    assert back.protocol_digest == whole.protocol_digest


def test_a_tokenizer_leaves_older_results_as_they_are() -> None:
    """Null, it isn't written, so that their hash stays; set, it comes back, and is no part of the protocol."""
    old = signature({"data": "ff"})
    assert strict_json.dumps(border.dump(old)) == strict_json.dumps(
        {"protocol": {"data": "ff"}, "metrics": {}, "model_digest": "m", "prompts": {}}
    )
    new = signature({"data": "ff"}, tokenizer="aa")
    assert border.load(Signature, strict_json.loads(strict_json.dumps(border.dump(new)))) == new
    assert border.dump(new) != border.dump(old)
    assert new.protocol_digest == old.protocol_digest
    assert new.differences(old) == ()


@pytest.mark.parametrize(
    ("tokenizers", "reason"),
    [
        ((), None),
        (("aa",), None),
        (("aa", "aa", "aa"), None),
        (("aa", "bb"), SEVERAL_TOKENIZERS),
        (("aa", None), NO_TOKENIZER),
        ((None, None), NO_TOKENIZER),
        ((None,), NO_TOKENIZER),
    ],
)
def test_values_per_token_ask_for_one_named_tokenizer(tokenizers: tuple[str | None, ...], reason: str | None) -> None:
    """All name the same: nothing is in the way. A missing name says nothing of which tokenizer it was."""
    assert other_tokens(signature({}, tokenizer=each) for each in tokenizers) == reason
