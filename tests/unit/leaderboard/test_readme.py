"""The README of a board: what stands where, and texts from data that stay texts.

Structure is read with markdown-it-py 4.3, which renders CommonMark and GitHub's tables.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from embeval.leaderboard.definition import RankBy
from embeval.leaderboard.render.readme import letters_of, readme
from embeval.leaderboard.snapshot import Snapshot
from tests.support import boards, shown
from tests.support.hostile import hostile
from tests.support.pages import with_texts

STEERING = frozenset({"rank_by", "gaps", "outputs", "metric", "letters", "outcome", "trained_on", "dtype", "similarity",
                      "backend", "quantize", "prompting", "pooling"})  # fmt: skip
"""Fields that aren't texts."""


class Read(HTMLParser):
    """A rendered README: its tables, its headings, and every element in it."""

    def __init__(self, markdown: str) -> None:
        super().__init__()
        self.tables: list[list[list[str]]] = []
        self.items: list[str] = []
        self.headings: list[str] = []
        self.tags: list[tuple[str, Mapping[str, str | None]]] = []
        self._text = ""
        self.feed(MarkdownIt("commonmark", {"html": True}).enable("table").render(markdown))

    def handle_starttag(self, tag: str, attrs: Sequence[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        if tag in ("td", "th", "li", "h1", "h2", "h3"):
            self._text = ""
        if tag == "br":
            self._text += " "

    def handle_endtag(self, tag: str) -> None:
        if tag in ("td", "th"):
            self.tables[-1][-1].append(self._text)
        elif tag == "li":
            self.items.append(self._text)
        elif tag in ("h1", "h2", "h3"):
            self.headings.append(self._text)

    def handle_data(self, data: str) -> None:
        self._text += data

    def column(self, table: int, heading: str) -> list[str]:
        """The cells below a heading."""
        top, *rows = self.tables[table]
        return [row[top.index(heading)] for row in rows]


@pytest.fixture(scope="module")
def seen() -> Read:
    """The small board."""
    return Read(readme(shown.small()))


def test_the_answer_comes_first() -> None:
    """Below the heading and the description, names in bold."""
    lines = [line for line in readme(shown.small()).splitlines() if line]
    at = next(place for place, line in enumerate(lines) if "confidence" in line)
    assert lines[at].startswith(
        "**big** and **mid** may each be the best, and the data can't tell which; the other one is"
    )
    assert lines[at + 1].startswith("4 models on 3 tasks")


@pytest.mark.parametrize(
    ("rank_by", "told"),
    [("mean_task", "as if they were as bad as the worst there"), ("borda", "without points there")],
)
def test_models_ranked_with_gaps_are_marked_and_how_is_told(rank_by: RankBy, told: str) -> None:
    """A star at the rank, and below the table what stands for a gap, as the remark of the tests has it."""
    made = shown.small()
    far = replace(made.models[3], standing=replace(made.models[3].standing, rank=4))
    text = readme(replace(made, rank_by=rank_by, models=(*made.models[:3], far)))
    assert Read(text).column(0, "Rank") == ["1", "2", "3", "4*"]
    assert f"\\* ranked with gaps, {told}; means are of complete models only." in text


def test_ranks_with_intervals_letters_and_what_is_not_ranked(seen: Read) -> None:
    """A row for each model; a model with a gap has no rank and no mean, and its gap is counted."""
    assert seen.column(0, "Rank") == ["1", "2", "3", "—"]
    assert seen.column(0, "95 % interval") == ["1–2", "1–3", "2–3", ""]
    assert seen.column(0, "Ties") == ["a", "ab", "b", ""]
    assert seen.column(0, "Model") == ["big, reference, in use", "mid", "low", "far (imported)"]
    assert seen.column(0, "Mean") == ["0.7500", "0.7350", "0.4500", "—"]
    assert seen.column(0, "STS") == ["0.7000", "0.7200", "0.5000", "—"]
    assert seen.column(0, "Recall@10") == ["0.9100", "", "", ""]
    assert seen.column(0, "Gaps") == ["", "", "", "1"]
    assert seen.column(0, "Gate") == ["in use", "fail", "", ""]
    assert "Likelihood" not in seen.tables[0][0]


def test_what_cannot_be_told_apart_in_words(seen: Read) -> None:
    """Groups by letter, and why a model has no interval."""
    text = readme(shown.small())
    assert seen.items[:2] == ["a: big and mid", "b: mid and low"]
    assert "tests of 3 pairs over the items of all tasks, corrected by Holm, at 95 %" in text
    assert "No interval: far (imported) (imported: no items)." in text


def test_a_model_alone_in_its_group_is_told_apart() -> None:
    """One letter of its own: from every other model; a letter beside another says nothing of the kind."""
    made = shown.small()
    alone = [replace(each, standing=replace(each.standing, letters=letters))
             for each, letters in zip(made.models, ("a", "b", "c1", "b"), strict=True)]  # fmt: skip
    text = readme(replace(made, models=tuple(alone)))
    assert "- **a**: big, told apart from every other model" in text
    assert "- **c1**: low, told apart from every other model" in text
    assert {letter: [each.label for each in there] for letter, there in letters_of(alone).items()} == {
        "a": ["big"], "b": ["mid", "far (imported)"], "c1": ["low"],
    }  # fmt: skip


def test_where_all_are_told_apart() -> None:
    """One sentence instead of a list of every model by itself."""
    made = shown.small()
    alone = [replace(each, standing=replace(each.standing, letters=letters))
             for each, letters in zip(made.models, ("a", "b", "c", None), strict=True)]  # fmt: skip
    text = readme(replace(made, models=tuple(alone)))
    assert "None of the 3 models tested: the data tells each from every other, by tests of 3 pairs" in text
    assert "share a letter" not in text
    assert "- **a**" not in text


def test_what_models_take_and_keep(seen: Read) -> None:
    """Figures as people read them; what another machine measured is marked and named."""
    assert seen.column(1, "p95 ms") == ["31.2", "8.12°", "", ""]
    assert seen.column(1, "Tokens/s") == ["1,234", "9,000°", "", ""]
    assert seen.column(1, "Parameters") == ["110.0 M", "22.7 M", "", ""]
    assert seen.column(1, "Weights") == ["420 MiB", "86.7 MiB", "", ""]
    assert seen.column(1, "Vector") == ["3.1 kB", "1.5 kB", "", ""]
    assert "° of another machine, and not to be held against the others: mid of another" in readme(shown.small())
    assert seen.headings[3:5] == ["What they take", "Beside big"]
    assert seen.column(2, "Quality") == ["98.0 %", "60.0 %", ""]
    assert seen.column(2, "Weights") == ["20.7 %", "", ""]
    assert "mid: fail. docs/ndcg_at_10 fell by 0.05." in seen.items


def test_a_system_without_vectors_has_no_length_and_no_precision() -> None:
    """BM25 has neither; a model of no dimensions would be read as a mistake."""
    made = shown.small()
    bare = replace(made.models[0], facts=replace(made.models[0].facts, dimensions=0))
    seen = Read(readme(replace(made, models=(bare, *made.models[1:]))))
    assert seen.column(1, "Dimensions") == ["", "384", "", ""]
    table = next(place for place, each in enumerate(seen.tables) if "Precision" in each[0])
    assert seen.column(table, "Precision")[:2] == ["", "float32"]


def test_every_task_with_its_interval(seen: Read) -> None:
    """Tasks as rows by group; a gap, something undefined, a rough interval and training data are marked."""
    assert seen.column(3, "Task") == ["docs", "pairs", "texts"]
    assert seen.column(3, "Metric") == ["ndcg_at_10", "cosine_spearman", "perplexity ↓"]
    assert seen.column(3, "big") == ["0.8000 [0.7500,\xa00.8500]", "0.7000† ≈[0.6000,\xa00.8000]", "n/a constant_input"]
    assert seen.column(3, "far (imported)") == ["0.9000", "—", "—"]
    assert "texts: of different tokenisers" in seen.items


def test_models_are_told_with_what_they_are(seen: Read) -> None:
    """Prompts, precision, the settings of published ones, and links to reports."""
    assert seen.column(4, "Prompts") == ["", "query “query: ”", "", ""]
    assert seen.column(4, "Revision") == ["sha256:abababab"] * 4
    assert seen.column(4, "Settings")[3] == "mteb 1.12.75, max_tokens 512"
    links = [attributes["href"] for tag, attributes in seen.tags if tag == "a"]
    assert "reports/mid-12345678.html" in links
    assert links[:4] == ["index.html", "board.csv", "board.parquet", "board.json"]
    (image,) = (attributes for tag, attributes in seen.tags if tag == "img")
    assert image["src"] == "ranks.svg"
    assert image["alt"] == (
        "Ranks by the mean over tasks: 1 big (between 1 and 2), 2 mid (between 1 and 3), 3 low (between 2 and 3)"
    )


def test_links_only_to_what_is_written() -> None:
    """A board that writes its README alone links to nothing but its definition."""
    seen = Read(readme(replace(shown.small(), outputs=("readme",))))
    links = [attributes["href"] for tag, attributes in seen.tags if tag == "a"]
    assert links == ["reports/mid-12345678.html", "board.yaml"]
    assert not any(tag == "img" for tag, _ in seen.tags)


def test_a_large_board_is_cut_and_says_so() -> None:
    """Fifty models, a table for each group, and where the others are."""
    text = readme(replace(boards.synthetic(60, 10), outputs=("readme", "csv")))
    seen = Read(text)
    assert len(seen.tables[0]) == 51
    assert "And 10 more models, in [board.csv](board.csv)." in text
    assert [each for each in seen.headings if each in boards.GROUPS] == list(boards.GROUPS)
    assert len(text) < 100_000


def test_without_models() -> None:
    """It says so."""
    empty = Snapshot(title="", columns=(), models=())
    assert "There are no results to show." in readme(empty)
    assert readme(empty).startswith("# Leaderboard\n")


def _not_empty(text: str) -> str:
    """A model has to have a name."""
    return text if text.strip() else "x"


@settings(max_examples=40, deadline=None)
@given(st.lists(hostile(), min_size=3, max_size=3))
def test_texts_from_data_stay_texts(texts: list[str]) -> None:
    """Whatever names, notes and ids hold: the same elements and links, and as many cells in each row."""
    place = iter(range(10**6))
    plain = with_texts(shown.small(), lambda text: f"t{next(place) % 7}", STEERING)
    wild = with_texts(shown.small(), lambda text: _not_empty(texts[next(place) % 3]), STEERING)
    expected, seen = Read(readme(plain)), Read(readme(wild))
    own = set("table thead tbody tr th td h1 h2 h3 p ul li strong em sub br a img pre code".split())
    assert {tag for tag, _ in seen.tags} <= own
    for of_seen in seen.tables:
        assert len({len(row) for row in of_seen}) == 1
    assert len([tag for tag, _ in seen.tags if tag == "img"]) == 1
    targets = [re.sub(r"^reports/.*", "report", str(each["href"])) for tag, each in seen.tags if tag == "a"]
    there = [re.sub(r"^reports/.*", "report", str(each["href"])) for tag, each in expected.tags if tag == "a"]
    assert [each for each in targets if each.endswith((".html", ".csv", ".yaml", ".json", ".parquet"))][:4] == there[:4]
    assert len(targets) == len(there)
