"""What language models learn from and what is kept from them, in the real files."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import corpora

pytestmark = pytest.mark.real

ARTICLES = 60
"""Of WikiText-2's test set, as Merity et al. (2016) count them."""
ADDRESS_WORDS = {"Adams 1825": 2915, "Lincoln 1865": 700, "Roosevelt 1905": 985}
"""As lists of inaugural addresses give them; counts differ by a few words."""


def test_whole_documents_are_held_out(real_data: Path) -> None:
    """Six of sixty articles, three addresses of about their known lengths, and no line on both sides."""
    articles = corpora.wikitext(real_data)
    assert len(articles) == ARTICLES
    split = corpora.split(real_data)
    assert [each for each in split.held_out if each in articles] == corpora.held_out_articles(articles)
    words = {
        each.name: sum(len(line.split()) for line in each.lines) for each in split.held_out if each not in articles
    }
    assert words == {name: pytest.approx(count, abs=10) for name, count in ADDRESS_WORDS.items()}
    learned, held_out = ({line for each in side for line in each.lines} for side in (split.learned, split.held_out))
    assert not learned & held_out


def test_there_are_sentences_enough(real_data: Path) -> None:
    """5,000 different ones, of which 200 are a part."""
    sentences = corpora.sentences(real_data, 5000)
    assert len(set(sentences)) == 5000
    assert sentences[:200] == corpora.sentences(real_data, 200)
    assert {len(each.split()) for each in sentences} == set(range(5, 61))
