"""Policies: what they say, and where and how a wrong one is complained about."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from embeval.errors import ConfigError
from embeval.gates import policy
from embeval.gates.policy import Margin, MetricRef, Place, Policy, Rule, parse_margin, parse_metric

NDCG = "metric: docs/ndcg_at_10"


def read(folder: Path, text: str) -> Policy:
    """The policy of a file."""
    file = folder / "gate.yaml"
    file.write_text(text, encoding="utf-8")
    return policy.load(file).policy


def complaint(folder: Path, text: str) -> str:
    """What is said about a file, without its folder."""
    with pytest.raises(ConfigError) as caught:
        read(folder, text)
    return str(caught.value).replace(f"{folder}/", "")


def rules(*lines: str) -> str:
    """A policy of these rules, the first on line 2."""
    return "rules:\n" + "".join(f"  - {{{line}}}\n" for line in lines)


def test_a_policy_of_its_own_and_one_under_gate_are_the_same(tmp_path: Path) -> None:
    """The digest too; and the file may hold the folder of results."""
    text = rules(f"{NDCG}, no_regression: 0.01")
    own = read(tmp_path, text)
    (tmp_path / "embeval.yaml").write_text(
        "results: out\ndata: sets\ngate:\n" + "".join(f"  {line}\n" for line in text.splitlines()), encoding="utf-8"
    )
    found = policy.load(tmp_path / "embeval.yaml")
    assert found.policy == own
    assert found.policy.digest == own.digest
    assert (found.results, found.data) == (tmp_path / "out", tmp_path / "sets")
    assert own.digest != read(tmp_path, text.replace("0.01", "0.02")).digest


def test_on_is_a_key_although_yaml_takes_the_word_for_true(tmp_path: Path) -> None:
    """YAML 1.1 reads ``on`` as a truth value; values such as ``on`` stay what they are."""
    (rule,) = read(tmp_path, rules(f"{NDCG}, min: 0.5, on: bound")).rules
    assert (rule.on, rule.min) == ("bound", 0.5)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("docs/ndcg_at_10", MetricRef(Place("docs"), "ndcg_at_10")),
        (
            "docs[split=dev,subset=en,slice=kind:a,b]/ndcg_at_10",
            MetricRef(Place("docs", "dev", "en"), "ndcg_at_10", "kind", "a,b"),
        ),
        ("a/b[slice=kind:x/y, split=dev]/mrr_at_10", MetricRef(Place("a/b", "dev"), "mrr_at_10", "kind", "x/y")),
        ("docs/dimensions", MetricRef(Place("docs"), "dimensions")),
    ],
)
def test_metrics_are_named_with_their_place(text: str, expected: MetricRef) -> None:
    """Task, split, sub-set, slice with label; labels may hold commas and slashes."""
    assert parse_metric(text) == expected


@pytest.mark.parametrize(
    "text", ["ndcg_at_10", "/ndcg_at_10", "docs/", "docs[kind=x]/ndcg_at_10", "docs[slice=kind]/ndcg_at_10",
             "docs[split=]/ndcg_at_10", "docs[split=a,split=b]/ndcg_at_10", "docs[]/ndcg_at_10"],
)  # fmt: skip
def test_what_is_no_metric(text: str) -> None:
    """Each is refused."""
    with pytest.raises(ConfigError):
        parse_metric(text)


def test_margins() -> None:
    """A number, or a share of the baseline."""
    assert parse_margin(0.01) == Margin(0.01)
    assert parse_margin("2%") == Margin(0.02, relative=True)
    for wrong in (0, -0.1, float("nan"), float("inf"), "0%", "-1%", "nan", "100%", "0.01", "inf%"):
        with pytest.raises(ConfigError):
            parse_margin(wrong)


@pytest.mark.parametrize("threshold", [".nan", ".inf", "-.inf", "nan", "inf"])
@pytest.mark.parametrize("kind", ["min", "max", "no_regression", "improve"])
def test_f20_d_a_threshold_that_is_no_finite_number(tmp_path: Path, kind: str, threshold: str) -> None:
    """Refused with the line, whatever the rule (fault F20, d)."""
    message = complaint(tmp_path, rules(f"{NDCG}, {kind}: {threshold}"))
    assert message.startswith("gate.yaml, line 2: rules[0].")
    assert kind in message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("rules: []\n", "line 1: rules: must hold at least one rule: a policy without rules decides nothing"),
        ("baseline: x\n", "line 1: the key 'rules' is missing"),
        ("rulez: []\n", "line 1: rulez: unknown key. Did you mean 'rules'?"),
        (rules(f"{NDCG}, minn: 1"), "line 2: rules[0].minn: unknown key. Did you mean 'min'?"),
        (
            rules("metric: docs/ndgc_at_10, min: 1"),
            ("line 2: rules[0].metric: Unknown metric 'ndgc_at_10'. "
            "Did you mean 'ndcg_at_10' or 'ndcg_at_100' or 'ndcg_at_1'?"),
        ),
        (
            rules(f"{NDCG}, min: 1, max: 2"),
            ("line 2: rules[0]: a rule says exactly one of min, max, no_regression, improve, all, any, "
            "at_least; found min and max"),
        ),
        (rules("min: 1"), "line 2: rules[0]: the key 'metric' is missing"),
        (
            rules(f"{NDCG}, no_regression: 0"),
            ("line 2: rules[0].no_regression: must be finite and above 0, not 0.0: without a margin nothing "
            "can be shown"),
        ),
        (rules(f"{NDCG}, improve: -1"), "line 2: rules[0].improve: must be finite and not negative, not -1.0"),
        (
            rules(f"{NDCG}, improve: false"),
            "line 2: rules[0].improve: must be true or a number; leave it out where nothing has to improve",
        ),
        (
            rules(f"{NDCG}, min: 1") + "max_baseline_age_days: 1000000000000\n",
            "line 3: max_baseline_age_days: must be from 1 to 36500, not 1000000000000",
        ),
        (
            rules(f"{NDCG}, min: 1") + "max_candidate_age_days: 0\n",
            "line 3: max_candidate_age_days: must be from 1 to 36500, not 0",
        ),
        (
            rules(f"{NDCG}, min: 1") + f"documents: {10**16}\n",
            f"line 3: documents: must be from 1 to {10**15}, not {10**16}",
        ),
        (rules("any: []"), "line 2: rules[0].any: must hold at least one rule: an empty group decides nothing"),
        (
            rules(f"at_least: 3, of: [{{{NDCG}, min: 1}}]"),
            "line 2: rules[0].at_least: must be from 1 to 1, the rules in 'of', not 3",
        ),
        (rules("at_least: 1"), "line 2: rules[0].at_least: needs 'of' with the rules that it counts"),
        (
            rules(f"{NDCG}, improve: true", f"{NDCG}, improve: 0.1"),
            "line 3: rules[1]: the same rule as rules[0]: docs/ndcg_at_10 improve 0.1",
        ),
        (
            rules("metric: docs/dimensions, max: 1, on: bound"),
            "line 2: rules[0].on: needs a metric that items have; dimensions is one number of the whole result",
        ),
        (
            rules(f"{NDCG}, min: 1") + "waivers:\n  - {rule: docs/ndcg_at_1, until: 2026-12-31, reason: x}\n",
            "line 4: waivers[0].rule: no rule is called 'docs/ndcg_at_1'. Did you mean 'docs/ndcg_at_10'?",
        ),
        (
            rules(f"{NDCG}, min: 1") + "waivers:\n  - {rule: docs/ndcg_at_10, until: 2026-02-30, reason: x}\n",
            "line 4: waivers[0].until: must be a day such as 2026-12-31, not '2026-02-30'",
        ),
        (
            rules(f"{NDCG}, min: 1") + "waivers:\n  - {rule: docs/ndcg_at_10, until: 2026-02-20, reason: ' '}\n",
            "line 4: waivers[0].reason: must say why",
        ),
        (
            rules(f"{NDCG}, min: 1", f"{NDCG}, improve: true")
            + "waivers:\n  - {rule: docs/ndcg_at_10, until: 2026-02-20, reason: x}\n",
            "line 5: waivers[0].rule: 2 rules are on docs/ndcg_at_10; give the one that is meant a name",
        ),
        (
            rules(f"any: [{{{NDCG}, min: 1}}]")
            + "waivers:\n  - {rule: docs/ndcg_at_10, until: 2026-02-20, reason: x}\n",
            "line 4: waivers[0].rule: docs/ndcg_at_10 counts in a group; name the group and waive that",
        ),
        (
            rules(f"{NDCG}, min: 1") + "statistics: {resamples: 999}\n",
            "line 3: statistics.resamples: must be from 1000 to 1000000, not 999",
        ),
        (rules(f"{NDCG}, min: 1") + "alpha: 0\n", "line 3: alpha: must lie between 0.001 and 0.2, not 0.0"),
    ],
)  # fmt: skip
def test_wrong_policies(tmp_path: Path, text: str, message: str) -> None:
    """Each complaint names file, line and key, and the nearest name where one is close."""
    assert complaint(tmp_path, text) == f"gate.yaml, {message}"


def test_a_rule_in_one_line() -> None:
    """As reports show it."""
    one = Rule(metric="docs/ndcg_at_10", no_regression="2%", by="kind")
    other = Rule(metric="docs/mrr_at_10", min=0.5, on="bound")
    assert one.text == "docs/ndcg_at_10 no_regression 2% by kind"
    assert other.text == "docs/mrr_at_10 min 0.5 on bound"
    group = Rule(at_least=1, of=(one, Rule(any=(other,))))
    assert group.text == f"at least 1 of ({one.text}; any of ({other.text}))"
    whole = Policy(rules=(group,))
    assert whole.singles == (one, other)
    assert whole.places == (Place("docs"),)
    assert whole.compares
    assert not Policy(rules=(other,)).compares


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        (
            {"no_regression": 2},
            'no_regression: must be below 1, as every ndcg_at_10 is; for 2 % of the baseline write "2%"',
        ),
        ({"no_regression": 1.0}, "no_regression: must be below 1"),
        ({"improve": 1.5}, "improve: must be below 1"),
        ({"min": -5}, "min: must lie between -1 and 1, as every ndcg_at_10 does, not -5"),
        ({"max": 5}, "max: must lie between -1 and 1"),
    ],
)
def test_a_rule_that_could_never_block_is_refused(rule: dict[str, float], said: str) -> None:
    """A margin or threshold beyond every value of a metric; of latencies, which know no bound, it may be any."""
    with pytest.raises(ConfigError, match=re.escape(said)):
        policy.from_value({"rules": [{"metric": "docs/ndcg_at_10", **rule}]}, "policy")
    policy.from_value({"rules": [{"metric": "docs/latency_p95_ms", "max": 30}]}, "policy")
