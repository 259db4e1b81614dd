"""Minimal pairs, against brute force with transformers alone."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from embeval.core.progress import Silent
from embeval.core.protocols import Collected
from embeval.core.protocols import LanguageModelKind as Kind
from embeval.core.specs import DatasetRef, ModelSpec, TaskSpec
from embeval.data.minimal_pairs import MinimalPairs
from embeval.encoders import loading as encoders
from embeval.errors import ConfigError, EvaluationError
from embeval.language_models import loading
from embeval.tasks import _language, minimal_pairs
from embeval.tasks.minimal_pairs import MinimalPairsTask
from tests.support.data import write_jsonl
from tests.support.language_models import model_of, word_tokenizer
from tests.support.minimal_pairs import PARADIGMS, save_causal, write_blimp
from tests.support.models import save_tiny_checkpoint

ALL = [pair for _, _, pairs in PARADIGMS.values() for pair in pairs]


def task(path: Path = Path(), **options: Any) -> MinimalPairsTask:
    """A task on a file or folder."""
    main_score = options.pop("main_score", None)
    dataset = DatasetRef(path=str(path))
    spec = TaskSpec(name="t", type="minimal_pairs", dataset=dataset, main_score=main_score, options=options)
    return minimal_pairs.TASK.bind(spec, root=Path())


def pairs_of(pairs: Iterable[tuple[str, str]]) -> MinimalPairs:
    """Pairs of one paradigm."""
    good, bad = zip(*pairs, strict=True)
    return MinimalPairs(tuple(f"p/{n}" for n in range(len(good))), good, bad, ("p",) * len(good))


def collected(folder: Path, payload: MinimalPairs, of: MinimalPairsTask | None = None) -> Collected:
    """What the model of a folder gets."""
    located = encoders.resolve(ModelSpec(name=str(folder)))
    fitted = (of or task()).fitted(*loading.known_of(located), located.spec)
    return fitted.collect(payload, loading.load(located, fitted.kind), Silent())


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny masked model."""
    return save_tiny_checkpoint(tmp_path_factory.mktemp("bert"), "bert", head="AutoModelForMaskedLM")


@pytest.fixture(scope="module")
def gpt(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny causal model with a begin token."""
    return save_causal(tmp_path_factory.mktemp("gpt"))


@cache
def of_transformers(folder: Path, head: str) -> tuple[Any, Any]:
    """Tokenizer and model."""
    import transformers

    model = getattr(transformers, head).from_pretrained(folder).eval()
    return transformers.AutoTokenizer.from_pretrained(folder), model


def pll_by_hand(folder: Path, text: str, mode: str) -> float:
    """The sum of ln p of each token under its mask, one pass each, by transformers alone."""
    import torch

    tokenizer, model = of_transformers(folder, "AutoModelForMaskedLM")
    encoded = tokenizer(text)
    ids, words = encoded["input_ids"], encoded.word_ids()
    total = 0.0
    for place, word in enumerate(words):
        if word is None:
            continue
        hidden = [
            at == place or (mode == "within_word_l2r" and at > place and words[at] == word) for at in range(len(ids))
        ]
        masked = [tokenizer.mask_token_id if hide else each for each, hide in zip(ids, hidden, strict=True)]
        with torch.inference_mode():
            logits = model(torch.tensor([masked])).logits[0, place]
        total -= float(torch.nn.functional.cross_entropy(logits[None], torch.tensor([ids[place]])))
    return total


def ll_by_hand(folder: Path, text: str) -> float:
    """The sum of ln p of each token behind the begin token, by transformers alone."""
    import torch

    tokenizer, model = of_transformers(folder, "AutoModelForCausalLM")
    ids = torch.tensor([[tokenizer.bos_token_id, *tokenizer(text)["input_ids"]]])
    with torch.inference_mode():
        loss = model(ids, labels=ids).loss  # the mean over all but the first
    return -float(loss) * (ids.shape[1] - 1)


@pytest.mark.parametrize("mode", ["within_word_l2r", "original"])
def test_masked_models_are_scored_by_pll(bert: Path, mode: str) -> None:
    """Both sums of each pair, and who wins; words of several pieces among them."""
    found = collected(bert, pairs_of(ALL), task(mode=mode)).records.columns
    assert set(found) == {"pll_accuracy", "good", "bad"}
    good, bad = (np.array([pll_by_hand(bert, pair[side], mode) for pair in ALL]) for side in (0, 1))
    np.testing.assert_allclose(found["good"], good, rtol=1e-5)
    np.testing.assert_allclose(found["bad"], bad, rtol=1e-5)
    assert found["pll_accuracy"].tolist() == (good > bad).astype(float).tolist()
    assert 0 < found["pll_accuracy"].mean() < 1


def test_causal_models_are_scored_by_log_likelihood(gpt: Path) -> None:
    """In a column of another name. How masked models are asked makes no difference."""
    found = collected(gpt, pairs_of(ALL)).records.columns
    assert set(found) == {"ll_accuracy", "good", "bad"}
    good, bad = (np.array([ll_by_hand(gpt, pair[side]) for pair in ALL]) for side in (0, 1))
    np.testing.assert_allclose(found["good"], good, rtol=1e-5)
    np.testing.assert_allclose(found["bad"], bad, rtol=1e-5)
    assert found["ll_accuracy"].tolist() == (good > bad).astype(float).tolist()
    assert 0 < found["ll_accuracy"].mean() < 1
    other = collected(gpt, pairs_of(ALL), task(mode="original")).records.columns
    assert np.array_equal(other["good"], found["good"])


@pytest.mark.parametrize("kind", ["masked", "causal"])
def test_the_word_with_the_number_zero_is_scored(tmp_path: Path, kind: Kind) -> None:
    """As any other: where a library leaves out what is 0, it leaves out this word. Sums of ln p by hand."""
    tokenizer = word_tokenizer(tmp_path, ["the", "red", "fox"])
    assert tokenizer.convert_tokens_to_ids("the") == 0
    model = model_of(tokenizer, lambda ids, place, target: math.exp(-3 if target == 0 else -1), kind=kind)
    fitted = task().fitted(kind, None, model.spec)
    found = fitted.collect(pairs_of([("the fox", "the the"), ("the", "red fox")]), model, Silent()).records.columns
    assert found["good"].tolist() == pytest.approx([-4.0, -3.0], rel=1e-6)
    assert found["bad"].tolist() == pytest.approx([-6.0, -2.0], rel=1e-6)


@pytest.mark.parametrize("model", ["bert", "gpt"])
def test_one_pair_alone_is_as_among_many(model: str, request: pytest.FixtureRequest) -> None:
    """Sums to float32's digits, and the same winners."""
    folder = request.getfixturevalue(model)
    together = collected(folder, pairs_of(ALL)).records.columns
    name = next(iter(together))
    for row, pair in enumerate(ALL[:4]):
        alone = collected(folder, pairs_of([pair])).records.columns
        np.testing.assert_allclose(alone["good"][0], together["good"][row], rtol=1e-6)
        assert alone[name][0] == together[name][row]


@pytest.mark.parametrize("model", ["bert", "gpt"])
def test_sentences_with_the_same_tokens_tie(
    model: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half, though another batch is computed otherwise: they are scored once. Both are told, and counted."""
    monkeypatch.setattr(_language, "VARIANTS_AT_ONCE", 1)  # each sentence in a batch of its own
    folder = request.getfixturevalue(model)
    twin = ("the old  key", "the old key") if model == "gpt" else ("The old key", "the old key")
    found = collected(folder, pairs_of([*ALL[:3], twin, ("a key", "a key")]))
    name = minimal_pairs.METRICS["causal" if model == "gpt" else "masked"]
    assert found.records.columns[name].tolist()[3:] == [0.5, 0.5]
    assert (found.records.columns["good"][3:] == found.records.columns["bad"][3:]).all()
    assert (found.counts["pairs_tied"], found.counts["pairs_same_tokens"]) == (2, 2)
    assert "2 pairs have two sentences with the same tokens (1 in the data already): no model can tell" in str(
        found.warnings
    )
    # 6 sentences of 3 pairs, the twins as one, and one that stands twice in its pair
    assert found.counts["sentences"] == 9
    if model == "gpt":
        assert found.counts["passes"] == 8


def test_the_better_one_is_told_up_to_rounding() -> None:
    """1, 0 and half for what differs by a millionth of itself and less; a real difference is far larger."""
    good = np.array([-10.0, -10.1, -10.0, -60.0, -60.0, 0.0])
    bad = np.array([-10.1, -10.0, -10.0, -60.00005, -60.0001, 0.0])
    assert minimal_pairs.preferred(good, bad).tolist() == [1.0, 0.0, 0.5, 0.5, 1.0, 0.5]


def test_labels_are_those_of_the_data(tmp_path: Path, bert: Path) -> None:
    """Paradigm, field and phenomenon of each pair, by which accuracies are means; whatever the files are called."""
    of = task(write_blimp(tmp_path / "blimp"))
    payload = of.load()
    records = collected(bert, payload, of).records
    assert records.unit == "pair"
    assert records.ids[:4] == ("article/0", "article/1", "article/2", "order/0")
    values = records.columns["pll_accuracy"]
    for name, place in (("subset", None), ("field", 0), ("term", 1)):
        expected: dict[str, list[float]] = {}
        for paradigm in sorted(PARADIGMS):
            label = paradigm if place is None else str(PARADIGMS[paradigm][place])
            wins = [
                float(pll_by_hand(bert, good, "within_word_l2r") > pll_by_hand(bert, bad, "within_word_l2r"))
                for good, bad in PARADIGMS[paradigm][2]
            ]
            expected.setdefault(label, []).extend(wins)
        found = {label: values[rows].tolist() for label, rows in records.rows_by(name).items()}
        assert found == expected
    for file in sorted((tmp_path / "blimp").iterdir(), reverse=True):
        file.rename(file.with_name(f"z{len(file.name):02}.jsonl"))
    assert of.protocol(of.load()) == of.protocol(payload)


def test_some_of_each_paradigm(tmp_path: Path) -> None:
    """The first by id, in another protocol; as many as there are where there are fewer."""
    folder = write_blimp(tmp_path / "blimp")
    whole, few = task(folder), task(folder, per_paradigm=3)
    payload = few.load()
    assert payload.ids == tuple(f"{name}/{n}" for name in ("article", "order", "verb_number") for n in range(3))
    assert payload.good[3:5] == ("restore the backup", "scan a page into the archive")
    assert payload.fields == ("morphology",) * 3 + ("syntax",) * 3 + ("morphology",) * 3
    assert few.protocol(payload)["per_paradigm"] == 3
    assert few.protocol(payload)["data"] != whole.protocol(whole.load())["data"]
    with pytest.raises(ConfigError, match="per_paradigm: must be at least 1, not 0"):
        task(folder, per_paradigm=0)


def test_no_labels_that_the_data_has_not(bert: Path) -> None:
    """Without fields there is no such slice."""
    assert set(collected(bert, pairs_of(ALL[:2])).records.slices) == {"subset"}


def test_what_is_measured_stands_in_the_protocol(bert: Path, gpt: Path) -> None:
    """PLL by its mode and log-likelihood are no one measure, and their metrics have two names."""
    payload = pairs_of(ALL)
    found = {}
    for folder, mode in ((bert, "within_word_l2r"), (bert, "original"), (gpt, "original")):
        located = encoders.resolve(ModelSpec(name=str(folder)))
        fitted = task(mode=mode).fitted(*loading.known_of(located), located.spec)
        found[fitted.protocol(payload)["scoring"]] = fitted.metrics(payload)[0].name
    assert found == {
        "pseudo_log_likelihood:within_word_l2r": "pll_accuracy",
        "pseudo_log_likelihood:original": "pll_accuracy",
        "log_likelihood": "ll_accuracy",
    }


@pytest.mark.parametrize(
    ("kind", "head", "why"),
    [
        ("electra", "AutoModelForPreTraining", "discriminator tells replaced tokens"),
        ("xlnet", "AutoModelForCausalLM", "orders of prediction"),
        ("t5", "AutoModelForSeq2SeqLM", "encoder-decoder"),
        ("bert", "AutoModel", "no language-model head"),
        ("gpt2", "AutoModel", "no language-model head"),
    ],
)
def test_other_models_are_refused_with_the_reason(tmp_path: Path, kind: str, head: str, why: str) -> None:
    """By what they are, before they are loaded."""
    folder = save_tiny_checkpoint(tmp_path / "model", kind, head=head)
    located = encoders.resolve(ModelSpec(name=str(folder), pooling="mean"))
    with pytest.raises(EvaluationError, match=rf"can't be evaluated on the task 't': .*{why}"):
        task().fitted(*loading.known_of(located), located.spec)


def test_a_main_score_of_the_other_kind_is_refused(bert: Path, gpt: Path) -> None:
    """As is one that the task doesn't have at all."""
    for folder, other in ((bert, "ll_accuracy"), (gpt, "pll_accuracy")):
        located = encoders.resolve(ModelSpec(name=str(folder)))
        with pytest.raises(EvaluationError, match=f"main score of the task 't' is {other}, and .* has p?ll_accuracy"):
            task(main_score=other).fitted(*loading.known_of(located), located.spec)
    with pytest.raises(ConfigError, match=r"'accuracy' is not a metric of minimal_pairs\. Did you mean 'll_acc"):
        task(main_score="accuracy")


def test_a_sentence_without_a_token_is_refused(tmp_path: Path, bert: Path) -> None:
    """A sum over nothing is 0 and larger than any other."""
    with pytest.raises(EvaluationError, match=r"sentence_bad of p/1 has no token that .* can score"):
        collected(bert, pairs_of([ALL[0], ("a key", "[SEP]")]))
    silent = save_causal(tmp_path / "model", begin="none")
    with pytest.raises(EvaluationError, match="sentence_good of p/0 has no token"):
        collected(silent, pairs_of([("key", "a key")]))


def test_a_masked_model_that_can_hide_nothing_is_refused(bert: Path) -> None:
    """Without a mask token, and without room for a token of a text."""
    model = loading.load(encoders.resolve(ModelSpec(name=str(bert))), "masked")
    frame, model.frame = model.frame, replace(model.frame, mask_id=None)
    with pytest.raises(EvaluationError, match="has no mask token"):
        task().collect(pairs_of(ALL), model, Silent())
    model.frame, model.limit = frame, 2
    with pytest.raises(EvaluationError, match="takes 2 tokens, which its special tokens fill"):
        task().collect(pairs_of(ALL), model, Silent())


def test_without_a_begin_token_the_first_is_not_scored_and_that_is_told(tmp_path: Path, gpt: Path) -> None:
    """The model has no probability for it. One with such a token has no such note."""
    silent = save_causal(tmp_path / "model", begin="none")
    note = "first token of each sentence is not scored"
    assert note in str(collected(silent, pairs_of(ALL)).warnings)
    assert note not in str(collected(gpt, pairs_of(ALL)).warnings)


def test_long_sentences(bert: Path, gpt: Path) -> None:
    """A masked model sees a window around each token; a causal one would give the likelihood of a part: refused."""
    long = " ".join(["the old key"] * 6)
    found = collected(bert, pairs_of([(long, long + " day"), ALL[0]])).records.columns
    assert np.isfinite(found["good"]).all()
    with pytest.raises(EvaluationError, match=r"sentence_good of p/1 has 19 tokens, and .* takes 16"):
        collected(gpt, pairs_of([ALL[0], (long, "a key")]))
    just = " ".join(["key"] * 15)
    assert np.isfinite(collected(gpt, pairs_of([(just, "a key")])).records.columns["good"]).all()


def test_chance_is_told_where_it_is_near() -> None:
    """Wilson's 95 % interval of 55 of 100 is 0.452 to 0.644 (scipy 1.16's binomtest), of 20 0.133 to 0.289."""
    from scipy.stats import binomtest

    for wins, told in ((55, "Not told from chance (0.5)"), (20, "Worse than chance (0.5)")):
        (sentence,) = minimal_pairs.by_chance(np.repeat([1.0, 0.0], [wins, 100 - wins]))
        low, high = binomtest(wins, 100).proportion_ci(method="wilson")
        assert sentence.startswith(told)
        assert f"{wins / 100:.3f}, has the 95 % interval {low:.3f} to {high:.3f}" in sentence
    assert list(minimal_pairs.by_chance(np.repeat([1.0, 0.0], [70, 30]))) == []


def test_names_of_columns(tmp_path: Path, bert: Path) -> None:
    """Another file's own, without paradigm and ids."""
    write_jsonl(tmp_path / "ours.jsonl", [{"right": good, "wrong": bad} for good, bad in ALL])
    of = task(tmp_path / "ours.jsonl", columns={"sentence_good": "right", "sentence_bad": "wrong"})
    payload = of.load()
    assert (payload.ids[0], payload.good, len(payload)) == ("ours/1", tuple(good for good, _ in ALL), len(ALL))
    assert collected(bert, payload, of).counts["pairs"] == len(ALL)
