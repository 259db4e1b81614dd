"""BM25 against its formulas written out, and against bm25s 0.3.16 used directly."""

from __future__ import annotations

import hashlib
import logging
import math
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from embeval.core.ir import TieRule
from embeval.core.protocols import Ranker
from embeval.core.specs import ModelSpec
from embeval.encoders import lexicon, loading
from embeval.errors import ConfigError

DOCS = {
    "d1": "cat sat mat cat",
    "d2": "dog sat log",
    "d3": "cat dog cat dog cat bird",
    "d4": "bird",
    "d5": "fish pond water reed frog newt",
    "d6": "",
}
LENGTHS = {doc: len(text.split()) for doc, text in DOCS.items()}
AVERAGE = sum(LENGTHS.values()) / len(DOCS)
K1, B = 1.4, 0.6
PINNED_STOP_WORDS = "8e332a36a02f583f"


def rank(docs: Mapping[str, str], queries: Sequence[str], depth: int = 100, **args: Any) -> list[dict[str, float]]:
    """Hits of each query, best first."""
    ranker = loading.load_system(loading.resolve(ModelSpec(name="bm25", backend="bm25", args=args)))
    assert isinstance(ranker, Ranker)
    names = tuple(f"q{number}" for number in range(len(queries)))
    run = ranker.rank(tuple(docs), tuple(docs.values()), names, queries, depth=depth, ties=TieRule.DOC_ID_DESC)
    return [dict(run.hits(name)) for name in names]


def by_the_formula(method: str, query: str, doc: str, delta: float) -> float:
    """The score of a document as Kamphuis et al. (ECIR 2020) and Lv & Zhai (2011) write it."""
    total = 0.0
    for term in query.split():
        tf = DOCS[doc].split().count(term)
        df, n = sum(term in text.split() for text in DOCS.values()), len(DOCS)
        length = 1 - B + B * LENGTHS[doc] / AVERAGE
        if not df:
            continue
        if method == "lucene":
            total += math.log(1 + (n - df + 0.5) / (df + 0.5)) * tf / (tf + K1 * length)
        elif method == "robertson":
            total += max(math.log((n - df + 0.5) / (df + 0.5)), 0.0) * tf / (tf + K1 * length)
        elif method == "atire":
            total += math.log(n / df) * (K1 + 1) * tf / (tf + K1 * length)
        elif method == "bm25l":
            # Also for a term that the document lacks, where the shift is all that is left (bm25s, as Kamphuis et al.).
            shifted = tf / length + delta
            total += math.log((n + 1) / (df + 0.5)) * (K1 + 1) * shifted / (K1 + shifted)
        else:
            total += math.log((n + 1) / df) * ((K1 + 1) * tf / (tf + K1 * length) + delta)
    return total


@pytest.mark.parametrize(
    ("method", "delta"),
    [
        ("lucene", None),
        ("robertson", None),
        ("atire", None),
        ("bm25l", 0.5),
        ("bm25l", 0.9),
        ("bm25+", 1.0),
        ("bm25+", 0.3),
    ],
)
def test_scores_are_those_of_the_formula(method: str, delta: float | None) -> None:
    """Every hit of every query, to the float32 digit; hits are the documents with a term and a score above 0."""
    queries = ["cat", "cat dog", "cat cat bird", "reed", "sat sat unknown"]
    default = {"bm25l": 0.5, "bm25+": 1.0}.get(method)
    args: dict[str, Any] = {} if delta == default else {"delta": delta}
    found = rank(DOCS, queries, k1=K1, b=B, method=method, language="none", **args)
    for query, hits in zip(queries, found, strict=True):
        expected = {doc: by_the_formula(method, query, doc, delta or 0.0) for doc in DOCS}
        wanted = {doc for doc, text in DOCS.items() if set(query.split()) & set(text.split()) and expected[doc] > 0}
        assert set(hits) == wanted
        for doc, score in hits.items():
            assert score == pytest.approx(expected[doc], rel=2e-7)
        assert list(hits.values()) == sorted(hits.values(), reverse=True)


def test_a_term_of_most_documents_is_no_hit_with_robertson() -> None:
    """Its weight is 0 there: "cat" is in 3 of 4 documents."""
    docs = {"d1": "cat", "d2": "cat dog", "d3": "cat", "d4": "fish"}
    dog = math.log(3.5 / 1.5) / (1 + 1.2 * (0.25 + 0.75 * 2 / 1.25))
    assert rank(docs, ["cat", "dog cat"], method="robertson") == [{}, {"d2": pytest.approx(dog, rel=1e-6)}]
    assert len(rank(docs, ["cat"], method="lucene")[0]) == 3


@pytest.mark.parametrize("method", ["lucene", "robertson", "atire", "bm25l", "bm25+"])
def test_equal_to_bm25s_used_directly(method: str) -> None:
    """600 documents of Zipf's words: the scores of bm25s in float32 for the same tokens, to 1e-5."""
    rng = np.random.default_rng(7)
    tokens = [[f"w{word}" for word in rng.zipf(1.5, size=rng.integers(1, 60)) if word < 500] for _ in range(600)]
    queries = [[f"w{word}" for word in rng.integers(1, 300, size=5)] for _ in range(20)]
    delta = {"bm25l": 0.5, "bm25+": 1.0}.get(method, 0.0)
    index = lexicon.bm25s().BM25(k1=1.2, b=0.75, method=method, delta=delta)
    index.index(tokens, show_progress=False)
    docs = {f"d{row:03d}": " ".join(words) for row, words in enumerate(tokens)}
    found = rank(docs, [" ".join(words) for words in queries], depth=600, method=method, language="none")
    for words, hits in zip(queries, found, strict=True):
        scores = index.get_scores(words)
        shared = {row for row, of_doc in enumerate(tokens) if set(words) & set(of_doc) and scores[row] > 0}
        assert {int(doc[1:]) for doc in hits} == shared
        np.testing.assert_allclose(list(hits.values()), scores[[int(doc[1:]) for doc in hits]], rtol=1e-5, atol=1e-6)


def test_defaults_are_those_of_lucene() -> None:
    """k1 1.2, b 0.75, the lucene method, English stems and Lucene's stop words."""
    docs = {"d1": "The cats were running", "d2": "a dog runs and runs", "d3": "of and the"}
    stated: dict[str, Any] = {"k1": 1.2, "b": 0.75, "method": "lucene", "language": "english", "stopwords": "english"}
    found = rank(docs, ["a running cat", "the"])
    assert found == rank(docs, ["a running cat", "the"], **stated)
    n, average = 3, (3 + 3 + 0) / 3  # "the", "a", "and", "of" are gone; "were" stays, as in Lucene's list
    idf = {1: math.log(1 + (n - 1 + 0.5) / 1.5), 2: math.log(1 + (n - 2 + 0.5) / 2.5)}

    def part(tf: int, df: int) -> float:
        return idf[df] * tf / (tf + 1.2 * (0.25 + 0.75 * 3 / average))

    assert found[0] == pytest.approx({"d1": part(1, 2) + part(1, 1), "d2": part(2, 2)}, rel=1e-6)
    assert found[1] == {}


def test_words_of_all_scripts() -> None:
    """Marks stay in words, full width and ligatures are folded, pairs where there are no spaces."""
    assert lexicon.words("It's Straße, ﬁle-name_2 ＡＢＣ") == ["it", "s", "strasse", "file", "name_2", "abc"]
    assert lexicon.words("e\u0301te\u0301 été") == ["été", "été"]
    assert lexicon.words("हिन्दी में தமிழ் עִבְרִית") == ["हिन्दी", "में", "தமிழ்", "עִבְרִית"]
    assert lexicon.words("東京タワー、水") == ["東京", "京タ", "タワ", "ワー", "水"]
    assert lexicon.words("GPU温度 in 한국어는") == ["gpu", "温度", "in", "한국", "국어", "어는"]
    assert lexicon.words("ภาษา")[:2] == ["ภา", "าษ"]
    assert lexicon.words("🙂 … \x00 \ud800") == []


def test_other_languages() -> None:
    """German stems and stop words find what English ones don't; ``none`` finds the word alone."""
    docs = {"d1": "Die Häuser der Stadt", "d2": "Der Hund"}
    assert set(rank(docs, ["das Haus"], language="german")[0]) == {"d1"}
    assert rank(docs, ["das Haus", "der"], language="none") == [{}, rank(docs, ["der"], language="none")[0]]
    assert set(rank(docs, ["der"], language="none")[0]) == {"d1", "d2"}
    assert rank(docs, ["der"], language="german") == [{}]
    assert set(rank(docs, ["der"], language="german", stopwords="none")[0]) == {"d1", "d2"}
    assert set(rank({"d1": "東京タワー"}, ["東京"])[0]) == {"d1"}


def test_stems_and_stop_words_are_pinned() -> None:
    """Other versions of the libraries may change them, and with them every score: raise REVISION then."""
    words = "running flies happily retrieval relational generously consistency knackeries".split()
    assert [lexicon.stemmer("english")(word) for word in words] == [
        "run",
        "fli",
        "happili",
        "retriev",
        "relat",
        "generous",
        "consist",
        "knackeri",
    ]
    listed = [f"{name} {word}" for name in sorted(lexicon.STOP_LISTS) for word in sorted(lexicon.stop_words(name))]
    assert hashlib.sha256("\n".join(listed).encode()).hexdigest()[:16] == PINNED_STOP_WORDS
    assert len(lexicon.stop_words("english")) == 33 + len(lexicon.AFTER_APOSTROPHE)
    assert lexicon.stop_words("finnish") == lexicon.stop_words("none") == frozenset()
    assert set(lexicon.STOP_LISTS) < set(lexicon.languages())


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ({"k1": -0.1}, "k1 must be a number from 0 to 100, not -0.1"),
        ({"k1": "1.2"}, "k1 must be a number from 0 to 100, not '1.2'"),
        ({"k1": math.nan}, "k1 must be a number from 0 to 100, not nan"),
        ({"k1": True}, "k1 must be a number"),
        ({"b": 1.01}, "b must be a number from 0 to 1, not 1.01"),
        ({"method": "bm25"}, "method must be one of lucene, robertson, atire, bm25l, bm25\\+, not 'bm25'"),
        ({"delta": 1}, "delta is part of bm25l and bm25\\+, not of lucene"),
        ({"delta": -1, "method": "bm25l"}, "delta must be a number from 0"),
        ({"language": "klingon"}, "language must be one of none, arabic, .*english.*, not 'klingon'"),
        ({"language": None}, "language must be one of"),
        ({"stopwords": "finnish"}, "stopwords must be one of none, danish, .*, not 'finnish'"),
        ({"k2": 1}, "no option 'k2'. Options: k1, b, method, delta, language, stopwords"),
    ],
)
def test_impossible_options(args: dict[str, Any], message: str) -> None:
    """Refused when the model is resolved, before anything runs."""
    with pytest.raises(ConfigError, match=message):
        loading.resolve(ModelSpec(name="bm25", backend="bm25", args=args))


def test_there_is_one_model() -> None:
    """A path or another name would be ignored, so it is refused."""
    with pytest.raises(ConfigError, match="has no models, so not 'my-index' either"):
        loading.resolve(ModelSpec(name="my-index", backend="bm25"))


def test_versions_are_in_the_provenance() -> None:
    """A result says which bm25s and which stemmer made it."""
    info = loading.load_system(loading.resolve(ModelSpec(name="bm25", backend="bm25"))).info
    assert set(info.extra) == {"bm25s", "PyStemmer"}
    assert info.extra["bm25s"] == lexicon.bm25s().__version__


def test_nothing_is_printed_or_logged(capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture) -> None:
    """No progress bar of bm25s, no message above debug."""
    with caplog.at_level(logging.INFO):
        rank(DOCS, ["cat"])
    assert capfd.readouterr() == ("", "")
    assert caplog.records == []


def test_accelerators_are_left_alone() -> None:
    """JAX would take a GPU's memory when bm25s is imported: neither it nor numba is, and both can be later."""
    code = (
        "import sys, types\n"
        "class Finder:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.split('.')[0] in ('jax', 'numba'): print('imported', name)\n"
        "sys.meta_path.insert(0, Finder())\n"
        "from embeval.encoders import lexicon\n"
        "lexicon.bm25s()\n"
        "assert 'jax' not in sys.modules and 'numba' not in sys.modules\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == ""


def test_another_corpus_gets_an_index_of_its_own() -> None:
    """The index of the last corpus is used for that one only."""
    ranker = loading.load_system(loading.resolve(ModelSpec(name="bm25", backend="bm25")))
    assert isinstance(ranker, Ranker)
    found = [
        ranker.rank(("a", "b"), texts, ("q",), ("backup",), depth=2, ties=TieRule.DOC_ID_DESC).hits("q")[0][0]
        for texts in (("a backup", "a token"), ("a token", "a backup"), ("a backup", "a token"))
    ]
    assert found == ["a", "b", "a"]
