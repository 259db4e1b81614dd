"""The README says what the program does."""

from __future__ import annotations

import math
import re
from pathlib import Path

import pytest

from embeval.leaderboard import definition
from embeval.store.results import ResultStore
from embeval.workflows.config import load_config
from tests.support import readme
from tests.support.commands import embeval, fresh

TEXT = readme.README.read_text(encoding="utf-8")
BLOCKS = re.findall(r"```yaml\n(.*?)```", TEXT, re.DOTALL)
BOARD = next(each for each in BLOCKS if "rank_by" in each)
YAML = [each for each in BLOCKS if each != BOARD]


def test_generated_parts_are_fresh() -> None:
    """Mended by: python -m tests.support.readme."""
    assert readme.filled(TEXT) == TEXT


def test_every_command_shown_exists() -> None:
    """Each ``embeval …`` of a code block or of inline code starts with a verb that is there."""
    known = {tuple(name.split()[1:]) for name in readme.commands()}
    shown = re.findall(r"(?:^\$ |`)embeval ([a-z]+(?: [a-z]+)?)", TEXT, flags=re.MULTILINE)
    assert len(shown) > 10
    for words in shown:
        first, *rest = words.split()
        assert (first,) in known or any((first, each) in known for each in rest), words


def test_local_links_lead_somewhere(repository: Path) -> None:
    """Every relative link names a file of the checkout."""
    for target in re.findall(r"\]\((?!https?:)([^)#]+)\)", TEXT):
        assert (repository / target).exists(), target


def test_the_unrelated_package_is_never_recommended(repository: Path) -> None:
    """``pip install embeval`` would install something else: no file says so."""
    wrong = re.compile(r"pip install (?:-\S+ )*['\"]?embeval(?!-toolkit)")
    files = [
        path for path in repository.rglob("*") if path.suffix in (".md", ".py", ".toml") and ".venv" not in path.parts
    ]
    offenders = [path for path in files if wrong.search(path.read_text(encoding="utf-8")) and path != Path(__file__)]
    assert len(files) > 50
    assert offenders == []


@pytest.mark.timing
def test_the_tour_gives_the_values_that_it_shows(tmp_path: Path) -> None:
    """The table of the tour, row by row, from the command above it."""
    done = fresh(
        *"run -m demo -m hashing -t demo-docs -t demo-pairs".split(), cwd=tmp_path, env={"EMBEVAL_BM25": "true"}
    )
    assert done.code == 0, done.err
    rows = re.findall(
        r"^ (\S+) +(demo-\S+) +test +(\S+) +(\d\.\d{4}) +(\d\.\d{4}) – (\d\.\d{4}) +(\d+)$", TEXT, re.MULTILINE
    )
    assert len(rows) == 5
    stored = {
        (each.result.model.label, each.result.task.name): each.result.main_value
        for each in ResultStore(tmp_path / "results").find()
        if each.result.subset == "all"
    }
    for label, task, metric, *numbers, items in rows:
        value = stored[label, task]
        assert value is not None
        shown = [f"{number:.4f}" for number in (value.value, value.ci_low, value.ci_high) if number is not None]
        assert (shown, str(value.n_items)) == (numbers, items), (label, task, metric)


def write_golden(folder: Path) -> None:
    """A golden set in the README's form."""
    (folder / "qrels").mkdir(parents=True)
    (folder / "corpus.jsonl").write_text(
        '{"_id": "doc-1", "title": "Refunds", "text": "You can ask for a refund."}\n'
        '{"_id": "doc-2", "title": "Orders", "text": "Where orders are listed."}\n',
        encoding="utf-8",
    )
    (folder / "queries.jsonl").write_text(
        '{"_id": "q-1", "text": "how do I get a refund", "kind": "paraphrase"}\n'
        '{"_id": "q-2", "text": "weather on Mars", "answerable": false}\n'
        '{"_id": "q-3", "text": "refund", "kind": "paraphrase"}\n',
        encoding="utf-8",
    )
    judged = "query-id\tcorpus-id\tscore\nq-1\tdoc-1\t1\nq-3\tdoc-2\t1\n"
    (folder / "qrels" / "test.tsv").write_text(judged, encoding="utf-8")


def test_your_own_files_as_the_readme_describes_them(tmp_path: Path) -> None:
    """A golden set and a csv in the README's form, the YAML of the README on them."""
    write_golden(tmp_path / "golden" / "support-kb")
    (tmp_path / "pairs").mkdir()
    (tmp_path / "pairs" / "test.csv").write_text(
        "left,right,score\na red key,a red key,5\na red key,blue folders,1\nold token,new token,3\n", encoding="utf-8"
    )
    gate, block = (each for each in YAML if "mteb" not in each)
    models = re.compile(r"^models:\n(?:  .*\n)+", re.MULTILINE)
    both = models.sub("models: [hashing, 'hashing,dim=64']\n", block) + gate
    (tmp_path / "embeval.yaml").write_text(both, encoding="utf-8")
    done = embeval("run", "--json", cwd=tmp_path)
    assert done.code == 0, done.err
    by_task = {result["task"]["name"]: result for result in done.json["results"]}
    assert by_task["support-kb"]["scores"]["ndcg_at_10"]["value"] == pytest.approx((1 + 1 / math.log2(3)) / 2)
    assert by_task["support-kb"]["counts"]["queries_unanswerable"] == 1
    assert by_task["pairs"]["scores"]["cosine_spearman"]["value"] == pytest.approx(1.0)

    assert embeval("results", "tag", "prod", "-m", "hashing", cwd=tmp_path).code == 0
    decided = embeval("gate", "hashing (dim=64)", "--json", cwd=tmp_path)
    report = decided.json
    assert decided.code == report["exit_code"] == 3  # two queries are too few for the 20 that labels need
    rules = report["verdicts"][0]["rules"]
    assert [rule["kind"] for rule in rules] == ["no_regression", "no_regression", "min", "any"]
    assert rules[1]["outcome"] == "error"
    assert [rule["waiver"] is not None for rule in rules] == [False, False, True, False]


def test_the_tasks_of_mteb_as_the_readme_names_them(tmp_path: Path) -> None:
    """The YAML of the README comes to tasks of these types and sub-sets, each once, all from its mirror."""
    pytest.importorskip("mteb")
    (block,) = (each for each in YAML if "mteb" in each)
    (tmp_path / "embeval.yaml").write_text(block, encoding="utf-8")
    tasks = {task.spec.name: task.spec for task in load_config(tmp_path / "embeval.yaml").tasks}
    assert {"mteb:STSBenchmark", "mteb:TwitterURLCorpus"} < set(tasks)
    assert "mteb:SCIDOCS" not in tasks
    amazon = tasks["mteb:AmazonCounterfactualClassification"]
    assert (amazon.dataset.split, tuple(amazon.options["subsets"])) == ("test", ("en", "de"))
    assert {Path(spec.options["mirror"]).name for spec in tasks.values()} == {"mirror"}


def test_the_board_of_the_readme(tmp_path: Path) -> None:
    """Its board.yaml is one, with the tasks that it shows."""
    folder = tmp_path / "leaderboards" / "models"
    folder.mkdir(parents=True)
    (tmp_path / "embeval.yaml").write_text("gate: {rules: []}\n", encoding="utf-8")
    (folder / "board.yaml").write_text(BOARD, encoding="utf-8")
    found = definition.load(folder / "board.yaml")
    assert [(each.task, each.metric, each.group, each.weight) for each in found.shown] == [
        ("STS12", None, None, 1.0),
        ("support-kb", "recall_at_10", "Ours", 2.0),
    ]
    assert (found.board.production, found.board.reference) == ("prod", "all-MiniLM-L6-v2")


def test_the_python_of_the_readme(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The block runs, and prints what is known."""
    write_golden(tmp_path / "golden" / "support-kb")
    monkeypatch.chdir(tmp_path)
    (simple,) = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    exec(simple.replace('"demo"', '"hashing"'), {})  # noqa: S102
    value, low, high = map(float, capsys.readouterr().out.split())
    assert value == pytest.approx((1 + 1 / math.log2(3)) / 2)
    assert low <= value <= high
