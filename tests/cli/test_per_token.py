"""Values per token of two tokenizers, on every road on which results meet: compare, gate, boards, Python and pytest."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from embeval import api
from embeval.core.specs import StatisticsOptions
from embeval.errors import EvidenceError, NotComparableError
from embeval.pytest_plugin import assert_no_regression
from embeval.store.results import ResultStore
from tests.support.commands import Done, here
from tests.support.stored import put

N = 90
WORDS = np.random.default_rng(0).integers(5, 40, N).astype(float)
MODE = "within_word_l2r"
PER_TOKEN, PER_WORD, PER_CHARACTER = f"pppl_{MODE}", f"word_pppl_{MODE}", f"bits_per_character_{MODE}"
WORDPIECE, BPE = "a1" * 32, "b2" * 32
REFUSED = "values per token of different tokenizers; per word or per character they can be compared"
NOT_NAMED = "values per token, not all with a named tokenizer; per word or per character they can be compared"
MODELS: Mapping[str, tuple[float, float, str | None]] = {
    "bert": (1.3, 3.0, WORDPIECE),
    "tuned": (1.3, 2.8, WORDPIECE),
    "roberta": (1.6, 2.9, BPE),
    "old": (1.3, 2.9, None),
}
"""Tokens and nats per word, and the tokenizer."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with results of four models on texts, and of two of them on rankings."""
    folder = tmp_path_factory.mktemp("per-token")
    store = ResultStore(folder / "results")
    for seed, (name, (tokens, nats, tokenizer)) in enumerate(MODELS.items()):
        columns = {
            f"pll_{MODE}": list(-nats * WORDS + np.random.default_rng(seed).normal(0, 1, N)),
            "tokens": list(np.ceil(tokens * WORDS)),
            "words": list(WORDS),
            "characters": list(5 * WORDS),
        }
        measured = [PER_TOKEN, PER_WORD, PER_CHARACTER]
        put(
            store,
            columns,
            model=f"org/{name}",
            task="texts",
            measured=measured,
            tokenizer=tokenizer,
            days=-400,
            slices={"kind": ["short", "long"] * (N // 2)},
        )
    for name in ("bert", "roberta"):
        put(store, {"ndcg_at_10": [0.5] * 49 + [1.0]}, model=f"org/{name}", task="docs", days=-400)
        columns = {"hits_1": [1.0] * 9, "masked_tokens": [2.0] * 9}
        tokenizer = MODELS[name][2]
        put(
            store,
            columns,
            model=f"org/{name}",
            task="masked",
            measured=["mlm_accuracy"],
            tokenizer=tokenizer,
            days=-400,
        )
    return folder


def compare(made: Path, *words: str) -> Done:
    """``embeval compare`` there."""
    return here("compare", *words, "--resamples", "300", cwd=made)


def test_one_tokenizer(made: Path) -> None:
    """Both name the same: the pseudo-perplexity is compared as any other metric, and lower is better."""
    (found,) = compare(made, "bert", "tuned", "--json").json["comparisons"]
    assert (found["metric"], found["finding"]) == (PER_TOKEN, "better")
    tokens, nats = np.ceil(1.3 * WORDS).sum(), WORDS.sum()
    assert found["baseline"] == pytest.approx(np.exp(3.0 * nats / tokens), rel=0.02)
    assert found["ci_low"] < found["delta"] < found["ci_high"] < 0


@pytest.mark.parametrize(("candidate", "reason"), [("roberta", REFUSED), ("old", NOT_NAMED)])
@pytest.mark.parametrize("words", [(), ("--metric", PER_TOKEN)])
def test_two_tokenizers_and_nothing_else_asked_for(
    made: Path, candidate: str, reason: str, words: tuple[str, ...]
) -> None:
    """Exit code 3, the metric, the reason, and what to ask for instead; no table of two numbers side by side."""
    done = compare(made, "bert", candidate, "-t", "texts", *words)
    assert (done.code, done.out) == (3, "")
    said = " ".join(done.err.split())
    assert f"Nothing of bert and {candidate} can be compared." in said
    assert f"{PER_TOKEN} of bert and {candidate} left out: {reason}." in said
    assert f"Instead: --metric {PER_CHARACTER} --metric {PER_WORD}." in said


def test_nothing_per_word_is_there(made: Path) -> None:
    """A task without values per word: it is the task that has to be run with such."""
    done = compare(made, "bert", "roberta", "-t", "masked", "--all-metrics")
    assert done.code == 3
    said = " ".join(done.err.split())
    assert (
        f"mlm_accuracy of bert and roberta left out: {REFUSED}. Instead: run the task so that it has such values."
        in said
    )


@pytest.mark.parametrize(
    ("words", "compared"),
    [
        (("--metric", PER_WORD), {PER_WORD}),
        (("--metric", PER_WORD, "--metric", PER_TOKEN), {PER_WORD}),
        (("--all-metrics",), {PER_WORD, PER_CHARACTER}),
    ],
)
def test_the_other_metrics_are_compared(made: Path, words: tuple[str, ...], compared: set[str]) -> None:
    """Those per word and per character, on all texts and by label; what was left out is told if it was asked for."""
    told = compare(made, "bert", "roberta", "-t", "texts", *words, "--by", "kind", "--json").json
    assert {each["metric"] for each in told["comparisons"]} == compared
    assert {(each["metric"], each["label"]) for each in told["slices"]} == {
        (name, label) for name in compared for label in ("short", "long")
    }
    assert PER_TOKEN not in {each["metric"] for each in told["worst_slices"]}
    asked = PER_TOKEN in words or "--all-metrics" in words
    assert [REFUSED in each and PER_TOKEN in each for each in told["not_comparable"]] == ([True] if asked else [])
    assert not any("No result that was compared has" in note for note in told["notes"])


def test_other_tasks_are_compared(made: Path) -> None:
    """Each task by its main metric: rankings are there, and the texts are told as not comparable."""
    done = compare(made, "bert", "roberta")
    assert done.code == 0, done.err
    said = " ".join(done.out.split()) + " ".join(done.err.split())
    assert "roberta against bert, 1 comparison" in said
    assert f"Not compared: texts (test): {PER_TOKEN} of bert and roberta left out: {REFUSED}." in said
    alone = compare(made, "bert", "roberta", "-t", "docs", "-t", "texts", "--metric", PER_TOKEN)
    assert (alone.code, REFUSED in " ".join(alone.err.split())) == (3, True)


def test_runs_of_one_system(tmp_path: Path) -> None:
    """Repetitions on either side: refused alike, and of one tokenizer it is only that it is no mean per item."""
    store = ResultStore(tmp_path / "results")
    for side, tokenizer in (("one", WORDPIECE), ("two", BPE), ("three", WORDPIECE)):
        for seed in range(2):
            columns = {"nats": list(WORDS + seed), "masked_tokens": list(WORDS), "masked_words": list(WORDS)}
            put(store, columns, model=f"org/{side}-{seed}", measured=["mlm_loss"], tokenizer=tokenizer)
    few = StatisticsOptions(resamples=100)
    with pytest.raises(NotComparableError, match=REFUSED):
        api.compare("one-*", "two-*", results=store.root, statistics=few)
    (found,) = api.compare("one-*", "three-*", results=store.root, statistics=few).comparisons
    assert found.reason is not None
    assert found.reason.startswith("a value of all items together")


def test_from_python(made: Path) -> None:
    """``api.compare`` raises with the reason among its parts."""
    with pytest.raises(NotComparableError) as caught:
        api.compare("bert", "roberta", tasks="texts", results=made / "results")
    (part,) = caught.value.parts
    assert part.startswith(f"texts (test): {PER_TOKEN} of bert and roberta left out: {REFUSED}")


@pytest.mark.parametrize("rule", ["no_regression: 2%", "no_regression: 0.5", "improve: 0"])
def test_a_gate_decides_nothing_on_other_tokens(made: Path, rule: str) -> None:
    """Outcome error and exit code 3 with the reason, however good the value; per word it decides."""
    policy = made / "gate.yaml"

    def gated(metric: str, candidate: str) -> Done:
        rules = f"  - {{metric: texts/{metric}, {rule}}}"
        policy.write_text(f"baseline: bert\nstatistics: {{resamples: 1000}}\nrules:\n{rules}\n", encoding="utf-8")
        return here("gate", candidate, "--policy", str(policy), "--json", cwd=made)

    for candidate, reason in (("roberta", REFUSED), ("old", NOT_NAMED)):
        done = gated(PER_TOKEN, candidate)
        (verdict,) = done.json["verdicts"]
        assert (done.code, verdict["outcome"]) == (3, "error")
        assert verdict["rules"][0]["reason"] == f"{PER_TOKEN} of texts: {reason}."
        assert gated(PER_WORD, candidate).code == 0
    assert gated(PER_TOKEN, "tuned").code == 0


def test_a_policy_on_pseudo_perplexity_blocks_what_it_has_to(made: Path) -> None:
    """``--self-test``: twice the margin on some texts, broken evidence, and a candidate that gains nothing."""
    rules = [{"metric": f"texts/{PER_TOKEN}", "no_regression": "2%"}, {"metric": f"texts/{PER_WORD}", "max": 30}]
    policy = {"baseline": "bert", "rules": rules, "statistics": {"resamples": 1000}}
    (made / "self.yaml").write_text(json.dumps(policy), encoding="utf-8")
    done = here("gate", "tuned", "--policy", "self.yaml", "--self-test", "--json", cwd=made)
    assert done.code == 0, done.out
    worse = [
        each for each in done.json["trials"] if "worse than the baseline" in each["harm"] or "above" in each["harm"]
    ]
    assert [(each["blocked"], each["outcome"] != "pass") for each in worse] == [(True, True)] * 2


def test_a_threshold_speaks_of_one_model_alone(made: Path) -> None:
    """``max`` on a pseudo-perplexity compares no tokenizers, so it is decided, named or not."""
    policy = {"rules": [{"metric": f"texts/{PER_TOKEN}", "max": 50}], "statistics": {"resamples": 1000}}
    for candidate in ("roberta", "old"):
        assert api.gate(policy, candidate, results=made / "results").exit_code == 0


def test_in_a_test_suite(made: Path) -> None:
    """``assert_no_regression`` raises ``EvidenceError``: nothing was decided."""
    results = made / "results"
    assert assert_no_regression("tuned", "bert", f"texts/{PER_TOKEN}", "2%", results=results).outcome == "pass"
    with pytest.raises(EvidenceError, match=REFUSED):
        assert_no_regression("roberta", "bert", f"texts/{PER_TOKEN}", "2%", results=results)


def test_a_board_does_not_rank_them(made: Path) -> None:
    """The values stand there with the reason; models are ranked per word, best first."""
    shown = here("leaderboard", "show", "-t", "texts", cwd=made)
    assert f"Not ranked by texts: {NOT_NAMED}." in " ".join(shown.out.split())
    ranked = here("leaderboard", "show", "-t", "texts", "--metric", PER_WORD, cwd=made).out
    assert "Not ranked" not in ranked
    places = [ranked.index(f" {name} ") for name in ("tuned", "bert")]
    assert places == sorted(places)


def test_a_result_shows_its_tokenizer(made: Path) -> None:
    """Its digest beside that of the model; nothing where there is none."""
    assert f"tokenizer   {BPE[:8]}" in here("results", "show", "roberta", "--task", "texts", cwd=made).out
    assert "tokenizer   " not in here("results", "show", "org/old", cwd=made).out
