"""The pytest plugin, in test suites of its own: what passes, what fails and how, and what it costs at the start."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from embeval.store.results import ResultStore
from embeval.store.tags import Tags
from tests.support import stored as made

pytest_plugins = "pytester"

HEAVY = {"torch", "transformers", "numpy", "pydantic", "pyarrow", "scipy", "mteb", "yaml", "typer", "rich"}
GOOD = np.tile([1.0, 0.5, 1.0, 0.0], 100)
"""So many that none that differs rules out a loss of 0.0125: -ln(0.05) / 400 is 0.0075."""
LITTLE = np.where(np.arange(400) % 4 == 3, 1.0, np.where(np.arange(400) % 4 == 0, 0.0, GOOD))
"""Better on a quarter of the items and worse on another: equal in the mean, and not shown to be."""
RULES = "rules: [{metric: docs/ndcg_at_10, no_regression: 0.02}]\n"


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results of a baseline and of three candidates."""
    store = ResultStore(tmp_path_factory.mktemp("filled") / "results")
    for model, values in {"base": GOOD, "same": GOOD, "worse": GOOD - 0.1, "little": LITTLE}.items():
        made.put(store, {"ndcg_at_10": list(values)}, model=f"org/{model}")
    Tags(store.root).put("prod", tuple(store.find(model="base")))
    return store.root


@pytest.fixture(autouse=True)
def suite(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, filled: Path) -> None:
    """A copy of them beside a policy; the plugin and nothing else, whatever is installed."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    shutil.copytree(filled, pytester.path / "results")
    (pytester.path / "gate.yaml").write_text(RULES, encoding="utf-8")
    pytester.makeini("[pytest]\n")


def run(pytester: pytest.Pytester, *words: str) -> pytest.RunResult:
    """pytest with the plugin on what was written."""
    return pytester.runpytest("-p", "embeval.pytest_plugin", "-p", "no:cacheprovider", *words)


def test_what_the_fixture_gives(pytester: pytest.Pytester) -> None:
    """A report where the gate passes; a failure with the rule, its reason and no traceback where it doesn't."""
    pytester.makepyfile(
        """
        def test_passes(embeval_gate):
            report = embeval_gate("gate.yaml", "same", baseline="tag:prod")
            assert report.outcome == "pass" and report.verdicts[0].candidate == "same"

        def test_fails(embeval_gate):
            embeval_gate("gate.yaml", candidate="worse", baseline="base")

        def test_inconclusive(embeval_gate):
            embeval_gate("gate.yaml", "little", baseline="base")

        def test_broken(embeval_gate):
            embeval_gate("gate.yaml", "base", baseline="base")

        def test_two(embeval_gate):
            embeval_gate("gate.yaml", ["same", "worse"], baseline="base")
        """
    )
    done = run(pytester)
    done.assert_outcomes(passed=2, failed=3)
    out = done.stdout.str()
    blocks = dict(re.findall(r"^_+ test_(\w+) _+\n(.*?)(?=\n[_=]{3})", out, re.DOTALL | re.MULTILINE))
    assert blocks["fails"].splitlines() == [
        f"embeval gate: fail  ({pytester.path / 'gate.yaml'})",
        "fail: worse against base, rules that hold: 0 of 1",
        "  fail: docs/ndcg_at_10 no_regression 0.02",
        "    The difference is -0.1000, and with 95 % confidence it is below -0.0200 (bound -0.0842).",
    ]
    assert blocks["inconclusive"].startswith("embeval gate: inconclusive  (")
    assert "  inconclusive: docs/ndcg_at_10 no_regression 0.02\n" in blocks["inconclusive"]
    assert blocks["broken"].startswith("embeval gate: error  (")
    assert "is baseline and candidate at once" in blocks["broken"]
    assert "pytest_plugin.py" not in out
    (summary,) = re.findall(r"=+ embeval gate =+\n(.*?)\n=", out, re.DOTALL)
    assert [line.replace("test_what_the_fixture_gives.py::", "") for line in summary.splitlines()] == [
        "pass: same against base, rules that hold: 1 of 1  (test_passes)",
        "fail: worse against base, rules that hold: 0 of 1  (test_fails)",
        "inconclusive: little against base, rules that hold: 0 of 1  (test_inconclusive)",
        "error: base against base, rules that hold: 0 of 1  (test_broken)",
        "pass: same against base, rules that hold: 1 of 1  (test_two)",
        "fail: worse against base, rules that hold: 0 of 1  (test_two)",
    ]


ASSERTS = """
    from embeval.pytest_plugin import assert_no_regression

    def test_passes():
        rule = assert_no_regression("same", "base", "docs/ndcg_at_10", 0.02)
        assert rule.value == 0.0 and rule.threshold == -0.02

    def test_share():
        assert_no_regression("same", "tag:prod", metric="docs/ndcg_at_10", margin="2%")

    def test_fails():
        assert_no_regression("worse", "base", "docs/ndcg_at_10", 0.02)

    def test_inconclusive():
        assert_no_regression("little", "base", "docs/ndcg_at_10", 0.02)

    def test_let_pass():
        assert_no_regression("little", "base", "docs/ndcg_at_10", 0.02, on_inconclusive="pass")

    def test_broken():
        assert_no_regression("worse", "base", "other/ndcg_at_10", 0.02)

    def test_mistaken():
        assert_no_regression("worse", "base", "docs/ndgc_at_10", 0.02)
    """


def test_the_assertion(pytester: pytest.Pytester) -> None:
    """An AssertionError with the numbers where it isn't shown; an error of its own kind where nothing was decided."""
    pytester.makepyfile(ASSERTS)
    done = run(pytester)
    done.assert_outcomes(passed=3, failed=4)
    out = done.stdout.str()
    blocks = dict(re.findall(r"^_+ test_(\w+) _+\n(.*?)(?=\n[_=]{3})", out, re.DOTALL | re.MULTILINE))
    said = [line.removeprefix("E   ").strip() for line in blocks["fails"].splitlines() if line.startswith("E  ")]
    assert said == [
        "AssertionError: docs/ndcg_at_10 no_regression 0.02: fail",
        "assert -0.1000 > -0.0200, for sure",
        "where -0.1000 is worse compared with base",
        "and -0.1140 and -0.0842 are its bounds, each with 95 % confidence",
        "The difference is -0.1000, and with 95 % confidence it is below -0.0200 (bound -0.0842).",
    ]
    assert 'assert_no_regression("worse", "base", "docs/ndcg_at_10", 0.02)' in blocks["fails"]
    assert "AssertionError: docs/ndcg_at_10 no_regression 0.02: inconclusive" in blocks["inconclusive"]
    assert "EvidenceError: worse has no result of the task 'other'. There are: docs." in blocks["broken"]
    assert "ndgc_at_10" in blocks["mistaken"]
    assert "'ndcg_at_10'" in blocks["mistaken"]
    assert "AssertionError" not in blocks["broken"] + blocks["mistaken"]
    for each in blocks.values():
        assert "pytest_plugin.py" not in each  # no frame of ours


def test_a_policy_that_is_wrong(pytester: pytest.Pytester) -> None:
    """The message of the mistake with its line, and nothing of where it was raised."""
    (pytester.path / "gate.yaml").write_text("rules: [{metric: docs/ndcg_at_10, minn: 1}]\n", encoding="utf-8")
    pytester.makepyfile("def test_it(embeval_gate): embeval_gate('gate.yaml', 'same', baseline='base')")
    done = run(pytester)
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(["embeval gate: error", "*gate.yaml, line 1: *minn*"])
    assert "pytest_plugin.py" not in done.stdout.str()


def test_where_results_are(pytester: pytest.Pytester) -> None:
    """The test's word counts before the option's, and that before the policy's; all start at the root of the suite."""
    (pytester.path / "results").rename(pytester.path / "there")
    (pytester.path / "embeval.yaml").write_text(f"results: there\ngate:\n  {RULES}", encoding="utf-8")
    pytester.makepyfile(
        """
        from embeval.pytest_plugin import assert_no_regression

        def test_policy(embeval_gate, monkeypatch, tmp_path):
            monkeypatch.chdir(tmp_path)
            embeval_gate(candidate="same", baseline="base")

        def test_said(embeval_gate):
            embeval_gate({"rules": [{"metric": "docs/ndcg_at_10", "min": 0.1}]}, "same", results="there")
            assert_no_regression("same", "base", "docs/ndcg_at_10", 0.1, results="there")

        def test_option(embeval_gate):
            assert_no_regression("same", "base", "docs/ndcg_at_10", 0.1)
        """
    )
    run(pytester).assert_outcomes(passed=2, failed=1)
    run(pytester, "--embeval-results", "there").assert_outcomes(passed=3)
    run(pytester, "--embeval-results", "nowhere").assert_outcomes(passed=1, failed=2)


def test_with_workers(pytester: pytest.Pytester) -> None:
    """Verdicts come home from the workers of xdist and stand in the summary, each once, and in the JUnit file."""
    pytester.makepyfile(ASSERTS)
    done = run(pytester, "-p", "xdist.plugin", "-n", "2", "--junitxml", "junit.xml")
    done.assert_outcomes(passed=3, failed=4)
    (summary,) = re.findall(r"=+ embeval gate =+\n(.*?)\n=", done.stdout.str(), re.DOTALL)
    found = sorted(re.findall(r"^(\w+): .*::test_(\w+)\)$", summary, re.MULTILINE))
    assert found == sorted(
        [
            *[("pass", "passes"), ("pass", "share"), ("pass", "let_pass"), ("fail", "fails")],
            *[("inconclusive", "inconclusive"), ("error", "broken")],
        ]
    )
    properties = ET.parse(pytester.path / "junit.xml").iter("property")  # noqa: S314  # our own file
    assert sorted(each.attrib["value"].split(":")[0] for each in properties) == sorted(kind for kind, _ in found)


def test_a_suite_without_gates_sees_nothing_of_it(pytester: pytest.Pytester) -> None:
    """No section, no warning."""
    pytester.makepyfile("def test_it(): pass")
    done = run(pytester, "-W", "error")
    done.assert_outcomes(passed=1)
    assert "embeval" not in done.stdout.str().replace("embeval.pytest_plugin", "")


def test_starting_loads_nothing_heavy(pytester: pytest.Pytester) -> None:
    """A suite without a gate runs with none of the libraries that a gate needs."""
    pytester.makepyfile(
        f"""
        import sys

        def test_it():
            loaded = {{name.split(".")[0] for name in sys.modules}}
            assert "embeval.pytest_plugin" in sys.modules and not loaded & {HEAVY!r}
        """
    )
    pytester.runpytest_subprocess("-p", "embeval.pytest_plugin", "-p", "no:cacheprovider").assert_outcomes(passed=1)


def test_a_missing_package_is_named(pytester: pytest.Pytester) -> None:
    """A suite without a gate runs; a gate says what to install."""
    pytester.makeconftest("import sys; sys.modules['yaml'] = None; sys.modules['numpy'] = None")
    pytester.makepyfile(
        "def test_plain(): pass\n\ndef test_gate(embeval_gate): embeval_gate('gate.yaml', 'same', baseline='base')"
    )
    done = pytester.runpytest_subprocess("-p", "embeval.pytest_plugin", "-p", "no:cacheprovider")
    done.assert_outcomes(passed=1, failed=1)
    done.stdout.fnmatch_lines(
        ["embeval: the package * is missing, which a gate needs.", "pip install -r requirements-*"]
    )
