"""Items lost and gained against the reference, and reports: from stored results, held to their rows by hand."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from embeval.core.ir import Run
from embeval.core.signature import SEVERAL_TOKENIZERS
from embeval.data.beir import load_beir
from embeval.leaderboard import definition
from embeval.leaderboard.snapshot import Item, Snapshot
from embeval.store.results import ResultStore
from embeval.workflows.boards import building, items, reports, writing
from tests.support import stored
from tests.support.data import write_beir
from tests.support.pages import fetched, read

BEFORE = [1.0, 0.5, 0.0, 0.25, 1.0, 0.75, 0.5, 0.5]
AFTER = [0.0, 0.5, 1.0, 0.5, 0.75, 0.75, 0.0, 0.5]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Results of two models on two tasks, and of a third on one, and a board of them."""
    store = ResultStore(tmp_path / "results")
    for task in ("docs", "more"):
        stored.put(store, {"ndcg_at_10": BEFORE}, model="org/old", task=task)
        stored.put(store, {"ndcg_at_10": AFTER}, model="org/new", task=task)
    stored.put(store, {"ndcg_at_10": BEFORE[::-1]}, model="org/third", task="docs")
    return tmp_path


def board(folder: Path, text: str) -> tuple[definition.Definition, Snapshot]:
    """The definition, and what is built from it."""
    file = folder / "board.yaml"
    file.write_text(f"outputs: [json]\n{text}", encoding="utf-8")
    found = definition.load(file)
    return found, building.snapshot(found)


def test_the_largest_losses_and_gains_of_each_task(folder: Path) -> None:
    """Counts of all, the largest first, no more than asked for; nothing of the reference itself."""
    _, made = board(folder, "reference: old\nitems: 2\n")
    by_label = {model.label: model for model in made.models}
    assert by_label["old"].items == ()
    first, second = by_label["new"].items
    assert (first.column, second.column) == (0, 1)
    assert (first.n_lost, first.n_gained) == (3, 2)
    assert first.lost == (Item(id="q0", reference=1.0, value=0.0), Item(id="q6", reference=0.5, value=0.0))
    assert first.gained == (Item(id="q2", reference=0.0, value=1.0), Item(id="q3", reference=0.25, value=0.5))
    assert [each.column for each in by_label["third"].items] == [0]


@pytest.mark.parametrize("text", ["", "reference: old\nitems: 0\n"])
def test_none_without_a_reference_or_where_none_are_asked_for(folder: Path, text: str) -> None:
    """And then no items are read."""
    assert {model.items for model in board(folder, text)[1].models} == {()}


def test_metrics_of_all_items_together_have_no_lists() -> None:
    """A correlation; a metric that nobody here knows."""
    assert items.of_items("ndcg_at_10")
    assert not items.of_items("cosine_spearman")
    assert not items.of_items("some_metric_of_mteb")


def test_broken_items_give_no_list(folder: Path) -> None:
    """Those of one model on one task are changed: its other list stays."""
    (broken,) = (each for each in ResultStore(folder / "results").find(model="org/new", task="docs"))
    assert broken.result.items is not None
    (broken.path.parent / broken.result.items.file).write_bytes(b"PAR1")
    _, made = board(folder, "reference: old\n")
    new = next(model for model in made.models if model.label == "new")
    assert [made.columns[each.column].task for each in new.items] == ["more"]


def test_texts_only_where_they_are_asked_for_and_at_hand(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The query, cut to 200 characters, of data with the very hash; else none, and a sentence that says so."""
    monkeypatch.chdir(folder)  # where the data of these results lies
    ids = [f"q{row}" for row in range(8)]
    long = "how to pay " * 50
    write_beir(
        folder / "texts",
        corpus={f"d{row}": f"document {row}" for row in range(8)},
        queries={query: f"{query}: {long}" for query in ids},
        qrels={query: {f"d{row}": 1} for row, query in enumerate(ids)},
    )
    run = Run.from_dict({query: {f"d{row}": float(row) for row in range(8)} for query in ids})
    protocol = {"data": load_beir(folder / "texts").data_hash}
    store = ResultStore(folder / "results")
    for model, values in (("org/old", BEFORE), ("org/new", AFTER)):
        stored.put(store, {"ndcg_at_10": values}, model=model, task="texts", run=run, protocol=protocol, documents=8)

    def lost(text: str) -> tuple[Item, tuple[str, ...]]:
        made = board(folder, f"reference: old\nitems: 1\nreports: true\n{text}")[1]
        new = next(model for model in made.models if model.label == "new")
        of_texts = next(each for each in new.items if made.columns[each.column].task == "texts")
        return of_texts.lost[0], made.remarks

    assert lost("")[0].text is None
    item, _ = lost("texts: true\n")
    assert item.text is not None
    assert item.text.startswith("q0: how to pay how")
    assert (len(item.text), item.text[-1]) == (200, "…")
    found, made = board(folder, "reference: old\nitems: 1\nreports: true\ntexts: true\n")
    report = next(model.report for model in made.models if model.label == "new")
    assert "q0: how to pay how" in read(reports.pages(made, found)[str(report)].decode()).text
    (folder / "texts" / "queries.jsonl").unlink()
    item, remarks = lost("texts: true\n")
    assert item.text is None
    assert "The texts of texts are not at hand, or not those that were used." in remarks


def test_a_report_for_each_model_beside_the_reference(folder: Path) -> None:
    """Differences by hand, one file each; equal bytes once more, and no path of this machine in them."""
    found, made = board(folder, "reference: old\nreports: true\n")
    linked = {model.label: model.report for model in made.models}
    assert linked["old"] is None
    pages = reports.pages(made, found)
    assert set(pages) == {linked["new"], linked["third"]}
    page = read(pages[str(linked["new"])].decode())
    assert "new against old" in page.text
    assert "-0.0625" in page.text  # half an item less in eight
    assert "worse on 3, better on 2, unchanged on 3" in page.text
    assert fetched(page) == []
    assert str(folder) not in page.text
    third = read(pages[str(linked["third"])].decode()).text
    assert "more: one of the two has no items of it that can be used." in third
    assert reports.pages(made, found) == pages
    written = writing.write(made, found)
    assert {path.relative_to(folder).as_posix() for path in written} == {"board.json", *pages}
    assert writing.check(found).stale == ()
    (folder / str(linked["new"])).unlink()
    assert [each.path.name for each in writing.check(found).stale] == [Path(str(linked["new"])).name]


def test_a_report_says_why_values_per_token_are_not_compared(tmp_path: Path) -> None:
    """Two tokenizers: the column is on the page as one that is not compared, with the reason."""
    store = ResultStore(tmp_path / "results")
    for model, tokenizer in (("old", "aa"), ("new", "bb")):
        columns = {"nats": BEFORE, "masked_tokens": [1.0] * 8}
        stored.put(store, columns, model=f"org/{model}", task="texts", measured=["mlm_loss"], tokenizer=tokenizer)
    found, made = board(tmp_path, "reference: old\nreports: true\n")
    (page,) = reports.pages(made, found).values()
    assert f"texts: {SEVERAL_TOKENIZERS}." in read(page.decode()).text


def test_no_reports_unless_asked_for(folder: Path) -> None:
    """No link, no page."""
    found, made = board(folder, "reference: old\n")
    assert {model.report for model in made.models} == {None}
    assert reports.pages(made, found) == {}


@pytest.mark.parametrize(
    "label", ["../../etc/passwd", "a/b", "a\\b", "…", "", "con", "x" * 500, "<script>", "a b\n", "\ud800"]
)
def test_names_of_reports_are_safe(label: str) -> None:
    """In their folder, of letters, digits and dashes, short, and another for another label."""
    name = reports.file_of(label)
    assert re.fullmatch(r"reports/[A-Za-z0-9-]{1,60}-[0-9a-f]{8}\.html", name)
    assert reports.file_of(label + "x") != name
