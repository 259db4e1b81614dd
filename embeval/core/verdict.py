"""What a release gate decides: an outcome for each rule, for each candidate, and for the whole."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from embeval.core.border import BORDER
from embeval.core.comparison import Comparison, ItemChange
from embeval.errors import ExitCode


class Outcome(StrEnum):
    """What becomes of a rule or a candidate."""

    PASS = "pass"  # noqa: S105  # a verdict, not a password
    FAIL = "fail"
    INCONCLUSIVE = "inconclusive"
    """The evidence is sound and too little."""
    ERROR = "error"
    """The evidence is missing or broken."""

    @property
    def exit_code(self) -> ExitCode:
        """What ``embeval gate`` ends with."""
        return {
            Outcome.PASS: ExitCode.OK,
            Outcome.FAIL: ExitCode.OVER_BOUND,
            Outcome.INCONCLUSIVE: ExitCode.INCONCLUSIVE,
            Outcome.ERROR: ExitCode.CANNOT_EVALUATE,
        }[self]


@dataclass(frozen=True, kw_only=True)
class Waiver:
    """An agreed exception from a rule."""

    __pydantic_config__ = BORDER

    rule: str
    """The rule's metric as the policy writes it, or its ``name``."""
    until: str
    """Last day on which it holds, as 2026-12-31."""
    reason: str
    """Why it was agreed on."""
    approved_by: str | None = None
    """Who agreed."""


@dataclass(frozen=True, kw_only=True)
class RuleVerdict:
    """What became of one rule for one candidate."""

    __pydantic_config__ = BORDER

    rule: str
    """The rule in one line, as the policy has it: ``support-kb/ndcg_at_10 no_regression 0.01``."""
    kind: str
    """``min``, ``max``, ``no_regression``, ``improve``, or of groups ``all``, ``any``, ``at_least``."""
    outcome: Outcome
    """Before any waiver."""
    reason: str
    """Why, as a sentence with the numbers."""
    task: str | None = None
    """Task that the rule speaks of; null for a group."""
    metric: str | None = None
    """Its metric."""
    slice: str | None = None
    """Slice and label, ``kind:paraphrase``, where the rule speaks of one."""
    value: float | None = None
    """What is held against the threshold: the candidate's value, or the difference to the baseline."""
    low: float | None = None
    """Lower end of the interval of ``value``, for a drawing."""
    high: float | None = None
    """Upper end of it."""
    level: float | None = None
    """Coverage of that interval."""
    bound: float | None = None
    """The one-sided bound that decided; null where the point value did."""
    threshold: float | None = None
    """What it was held against, in the unit of ``value``."""
    higher_is_better: bool = True
    """Whether ``value`` has to lie above ``threshold``."""
    is_test: bool = False
    """Whether it is a test with an error rate; a point value against a threshold is none."""
    alpha: float | None = None
    """Error rate at which it was tested, after corrections."""
    needs_items: int | None = None
    """Where inconclusive: items of this kind that would decide four times in five."""
    comparison: Comparison | None = None
    """The comparison behind it."""
    waiver: Waiver | None = None
    """The waiver that makes it not block, in force today."""
    rules: tuple[RuleVerdict, ...] = ()
    """The rules of a group."""

    @property
    def blocks(self) -> bool:
        """Whether it stands in the way of a release. Broken evidence can't be waived."""
        return self.outcome is not Outcome.PASS and (self.waiver is None or self.outcome is Outcome.ERROR)


@dataclass(frozen=True, kw_only=True)
class SliceChange:
    """A label on which a candidate is below its baseline."""

    __pydantic_config__ = BORDER

    comparison: Comparison
    """The comparison on its items."""


@dataclass(frozen=True, kw_only=True)
class Lost:
    """Items that a candidate lost on a task."""

    __pydantic_config__ = BORDER

    task: str
    """The task."""
    metric: str
    """The metric by which they are worse."""
    n_lost: int
    """Items on which the candidate is worse."""
    n_gained: int
    """Items on which it is better."""
    items: tuple[ItemChange, ...]
    """The worst of them."""


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What a policy says of one candidate."""

    __pydantic_config__ = BORDER

    outcome: Outcome
    """Of all rules together, waivers and ``on_inconclusive`` counted in."""
    candidate: str
    """Label of the candidate."""
    candidate_digest: str | None = None
    """Its model digest."""
    baseline: str | None = None
    """Label of the baseline; null where no rule needs one."""
    baseline_digest: str | None = None
    """Its model digest."""
    rules: tuple[RuleVerdict, ...] = ()
    """Every rule of the policy, in its order."""
    warnings: tuple[str, ...] = ()
    """What a reader should know: a re-index and its cost, waivers that end soon, what was overridden."""
    slices: tuple[SliceChange, ...] = ()
    """The worst slices, worst first."""
    lost: tuple[Lost, ...] = ()
    """Items lost, by task."""


@dataclass(frozen=True, kw_only=True)
class GateReport:
    """Everything that a gate has to say."""

    __pydantic_config__ = BORDER

    schema_version: int = 1
    """Version of this form."""
    outcome: Outcome
    """Of the whole: passes where a candidate passes, and nothing is broken."""
    exit_code: int
    """What the process ends with; follows from ``outcome``."""
    policy: str
    """Where the policy was read from."""
    policy_digest: str
    """sha256 of the policy's content."""
    made_at: str
    """UTC, ISO 8601."""
    embeval: str
    """Version of embeval."""
    verdicts: tuple[Verdict, ...]
    """One per candidate."""
    warnings: tuple[str, ...] = ()
    """What speaks of the gate as a whole."""
    error: str | None = None
    """Why nothing could be decided."""

    def __post_init__(self) -> None:
        if self.exit_code != self.outcome.exit_code:
            raise ValueError(
                f"exit_code must be {int(self.outcome.exit_code)} for {self.outcome}, not {self.exit_code}"
            )
