"""Release gates inside a test suite: the fixture ``embeval_gate`` and ``assert_no_regression``.

pytest loads this file at every start where embeval is installed, so it imports nothing but pytest; the rest is
imported by the first gate. A test whose evidence is missing or broken fails too, with the word ``error`` and what to
do: nothing was decided, which is not the same as worse.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NoReturn, Protocol

import pytest

if TYPE_CHECKING:
    from embeval.core.verdict import GateReport, RuleVerdict
    from embeval.gates.policy import Policy

PROPERTY = "embeval gate"
"""Under this name a test's report carries its verdicts, also from a worker of xdist and into JUnit files."""
RESULTS = "results"
"""Folder of results below the root of the test suite."""
LIGHT = "pip install -r requirements-gate.txt"
"""What brings the packages that a gate needs."""

PathText = str | PathLike[str]
_running: list[pytest.Item] = []
"""The test that runs; more than one where a test runs pytest itself."""


class Gate(Protocol):
    """What the fixture ``embeval_gate`` gives."""

    def __call__(
        self,
        policy: PathText | Mapping[str, Any] | Policy = "embeval.yaml",
        candidate: PathText | Sequence[PathText] | None = None,
        *,
        baseline: PathText | None = None,
        results: PathText | None = None,
    ) -> GateReport:
        """The report of a gate that passes; any other outcome fails the test with what blocks.

        ``policy`` is a file, its keys or a ``Policy``. ``candidate`` and ``baseline`` are named as for ``embeval gate``
        and default to the policy's; ``results`` is the folder of results. Paths start at the root of the test suite.
        """


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the one option."""
    parser.getgroup("embeval", "release gates").addoption(
        "--embeval-results",
        metavar="FOLDER",
        default=None,
        help="Folder of results that gates read, unless the test or the policy names one.  (default: results)",
    )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Remembers which test runs, for ``assert_no_regression``."""
    _running.append(item)
    try:
        return (yield)
    finally:
        _running.pop()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """A section with the verdict of every gate."""
    lines = [
        f"{text}  ({report.nodeid})"
        for reports in terminalreporter.stats.values()
        for report in reports
        if getattr(report, "when", None) == "teardown"
        for name, text in report.user_properties
        if name == PROPERTY
    ]
    if lines:
        terminalreporter.section(PROPERTY)
        for line in lines:
            terminalreporter.line(line)


@pytest.fixture
def embeval_gate(request: pytest.FixtureRequest) -> Gate:
    """Decides whether a model may be released, from stored results, and fails the test where it may not.

    ``report = embeval_gate("gate.yaml", "my-new-model", baseline="tag:prod")``
    """
    root = request.config.rootpath

    def gate(
        policy: PathText | Mapping[str, Any] | Policy = "embeval.yaml",
        candidate: PathText | Sequence[PathText] | None = None,
        *,
        baseline: PathText | None = None,
        results: PathText | None = None,
    ) -> GateReport:
        __tracebackhide__ = True
        listed = [candidate] if candidate is None or isinstance(candidate, str | PathLike) else list(candidate)
        report = _decided(
            root / policy if isinstance(policy, str | PathLike) else policy,
            None if candidate is None else [_rooted(each, root) for each in listed if each is not None],
            None if baseline is None else _rooted(baseline, root),
            _results(request.config, results),
        )
        for line in _verdicts(report):
            request.node.user_properties.append((PROPERTY, line))
        if report.exit_code:
            pytest.fail("\n".join(_text(report)), pytrace=False)
        return report

    return gate


def assert_no_regression(
    candidate: PathText,
    baseline: PathText,
    metric: str,
    margin: float | str,
    *,
    results: PathText | None = None,
    on_inconclusive: Literal["fail", "pass"] = "fail",
) -> RuleVerdict:
    """What was shown: that a metric of ``candidate`` is not worse than that of ``baseline`` by ``margin`` or more.

    ``metric`` as rules write it, ``support-kb/ndcg_at_10``; ``margin`` a number, or a share of the baseline such as
    ``"2%"``. Candidate and baseline are named as for ``embeval gate``. Raises ``AssertionError`` with the numbers where
    that was not shown (too little evidence is not enough, unless ``on_inconclusive`` is ``pass``), ``EvidenceError``
    where results are missing or broken, ``UsageError`` for a metric or margin that is none.
    """
    __tracebackhide__ = True
    config = _running[-1].config if _running else None
    root = config.rootpath if config is not None else Path()
    policy = {"rules": [{"metric": metric, "no_regression": margin}], "on_inconclusive": on_inconclusive}
    folder = _results(config, results)
    report = _decided(policy, _rooted(candidate, root), _rooted(baseline, root), folder, as_is=True)
    if _running:
        _running[-1].user_properties += [(PROPERTY, line) for line in _verdicts(report)]
    if report.error is not None or not report.verdicts:
        _broken(report.error or "Nothing was decided.")
    (verdict,) = report.verdicts
    (rule,) = verdict.rules
    if rule.outcome.value == "error":
        _broken(rule.reason)
    if report.exit_code:
        raise AssertionError("\n".join(_numbers(rule, verdict.candidate, verdict.baseline or "")))
    return rule


def _decided(
    policy: Any, candidate: Any, baseline: str | None, results: tuple[Path | None, Path], *, as_is: bool = False
) -> GateReport:
    """The report. An error of embeval fails the test with its message alone, or comes through ``as_is``."""
    __tracebackhide__ = True
    try:
        from embeval import api
        from embeval.errors import EmbevalError
        from embeval.gates import policy as policies
    except ImportError as error:
        pytest.fail(f"embeval: the package {error.name!r} is missing, which a gate needs.\n{LIGHT}", pytrace=False)
    chosen, otherwise = results
    try:
        if chosen is None:
            chosen = (policies.load(policy).results if isinstance(policy, Path) else None) or otherwise
        return api.gate(policy, candidate, baseline=baseline, results=chosen)
    except EmbevalError as error:
        if as_is:
            raise error.with_traceback(None) from None  # the frames below are no concern of the test
        pytest.fail(f"embeval gate: error\n{error}", pytrace=False)


def _broken(message: str) -> NoReturn:
    __tracebackhide__ = True
    from embeval.errors import EvidenceError

    raise EvidenceError(message)


def _results(config: pytest.Config | None, given: PathText | None) -> tuple[Path | None, Path]:
    """(folder of results as the test or the option says, folder if the policy says none either)."""
    root = config.rootpath if config is not None else Path()
    chosen = given or (config.getoption("--embeval-results") if config is not None else None)
    return None if chosen is None else root / chosen, root / RESULTS


def _rooted(text: PathText, root: Path) -> str:
    """A path of results starts at the root of the test suite; whatever is no path there stays as it is."""
    return str(root / text) if fspath(text) and (root / text).exists() else fspath(text)


def _verdicts(report: GateReport) -> list[str]:
    """One line for each candidate."""
    if report.error is not None:
        return [f"{report.outcome.value}: {report.error.splitlines()[0]}"]
    return [
        f"{verdict.outcome.value}: {verdict.candidate}"
        + (f" against {verdict.baseline}" if verdict.baseline is not None else "")
        + f", rules that hold: {sum(not rule.blocks for rule in verdict.rules)} of {len(verdict.rules)}"
        for verdict in report.verdicts
    ]


def _text(report: GateReport) -> Iterator[str]:
    """The outcome, and what blocks each candidate."""
    yield f"embeval gate: {report.outcome.value}  ({report.policy})"
    if report.error is not None:
        yield report.error
        return
    for verdict, line in zip(report.verdicts, _verdicts(report), strict=True):
        yield line
        for rule in verdict.rules:
            if rule.blocks:
                yield from _rule(rule, "  ")


def _rule(rule: RuleVerdict, indent: str) -> Iterator[str]:
    yield f"{indent}{rule.outcome.value}: {rule.rule}"
    yield from (f"{indent}  {line}" for line in rule.reason.splitlines())
    for member in rule.rules:
        if member.blocks:
            yield from _rule(member, f"{indent}  ")


def _numbers(rule: RuleVerdict, candidate: str, baseline: str) -> Iterator[str]:
    """A failed assertion in the words of pytest: what was asked for, and the numbers behind it."""
    yield f"{rule.rule}: {rule.outcome.value}"
    if rule.value is not None and rule.threshold is not None:
        sign = ">" if rule.higher_is_better else "<"
        yield f"assert {rule.value:+.4f} {sign} {rule.threshold:+.4f}, for sure"
        yield f"  where {rule.value:+.4f} is {candidate} compared with {baseline}"
    if rule.low is not None and rule.high is not None and rule.alpha is not None:
        confidence = f"each with {100 * (1 - rule.alpha):g} % confidence"
        yield f"  and {rule.low:+.4f} and {rule.high:+.4f} are its bounds, {confidence}"
    yield from rule.reason.splitlines()
