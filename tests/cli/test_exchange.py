"""``results import`` and ``results export --as``: what they print where, and how they end."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from embeval.store.results import ResultStore
from tests.support import stored as made
from tests.support.commands import here


def published(folder: Path, value: float = 0.72369) -> None:
    """One file of mteb's layout, with the first digits of all-MiniLM-L6-v2's published score."""
    folder.mkdir(parents=True, exist_ok=True)
    scores = {"cosine_spearman": value, "main_score": value, "hf_subset": "default", "languages": ["eng-Latn"]}
    result = {"task_name": "STS12", "mteb_version": "1.12.75", "dataset_revision": "a0d554a6", "evaluation_time": 1.0}
    (folder / "STS12.json").write_text(json.dumps({**result, "scores": {"test": [scores]}}), encoding="utf-8")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with published results."""
    published(tmp_path / "published" / "results" / "sentence-transformers__all-MiniLM-L6-v2" / "8b3219a9")
    return tmp_path


def test_published_results_on_a_leaderboard(project: Path) -> None:
    """Imported, listed and shown as such, with where they come from; exported again they are the same file."""
    done = here("results", "import", "--mteb", "published", cwd=project)
    assert (done.code, done.out, done.err) == (0, "1 result of 1 model on 1 task imported.\n", "")
    again = here("results", "import", "--mteb", "published", "--json", cwd=project)
    assert (again.code, again.json) == (0, {"imported": [], "unchanged": 1, "problems": []})
    board = here("leaderboard", "show", "--format", "markdown", cwd=project).out
    assert "| all-MiniLM-L6-v2 (imported) | 0.7237 |" in board
    assert "all-MiniLM-L6-v2 (imported): mteb 1.12.75, settings not told." in board
    shown = here("results", "show", "-m", "all-MiniLM-L6-v2 (imported)", cwd=project).out
    assert "results/sentence-transformers__all-MiniLM-L6-v2/8b3219a9/STS12.json" in shown
    assert "Training data: declared, and this data is not in it." in shown
    out = here("results", "export", "--as", "mteb", "out", cwd=project)
    assert (out.code, out.err) == (0, "Wrote 1 file below out.\n")
    (file,) = (project / "out").rglob("STS12.json")
    assert json.loads(file.read_bytes())["scores"]["test"][0]["cosine_spearman"] == 0.72369
    assert file.parent.name == "8b3219a9"


def test_a_comparison_with_them_is_refused(project: Path) -> None:
    """With what to do instead, and exit code 3; a gate's outcome is an error."""
    here("results", "import", "--mteb", "published", cwd=project)
    made.put(ResultStore(project / "results"), {"cosine": [1.0, 0.5], "gold": [1.0, 2.0]}, measured=["cosine_spearman"])
    done = here("compare", "all-MiniLM-L6-v2", "org/model", cwd=project)
    assert done.code == 3
    assert "published values have no items to compare or decide on" in done.err
    assert "embeval run -m sentence-transformers/all-MiniLM-L6-v2 -t TASK" in done.err
    (project / "gate.yaml").write_text(
        "rules:\n  - {metric: 'mteb:STS12/cosine_spearman', min: 0.5}\n", encoding="utf-8"
    )
    gate = here("gate", "all-MiniLM-L6-v2", "--policy", "gate.yaml", cwd=project)
    assert gate.code == 3, gate
    assert "no items" in gate.out + gate.err


def test_broken_files_are_told(project: Path) -> None:
    """What can be read is imported, and the exit code says that something was left out."""
    folder = project / "published" / "results" / "sentence-transformers__all-MiniLM-L6-v2" / "8b3219a9"
    (folder / "STS13.json").write_text("{", encoding="utf-8")
    done = here("results", "import", "--mteb", "published", cwd=project)
    assert done.code == 3
    assert done.out.startswith("1 result of 1 model")
    assert done.err.startswith("Left out: ")
    assert "STS13.json: not valid JSON" in done.err
    published(folder, 0.5)
    other = here("results", "import", "--mteb", "published", "-t", "STS12", cwd=project)
    assert (other.code, "--force replaces them" in other.err) == (3, True)
    forced = here("results", "import", "--mteb", "published", "-t", "STS12", "--force", cwd=project)
    assert (forced.code, forced.out) == (0, "1 result of 1 model on 1 task imported.\n")


def test_a_model_card(project: Path) -> None:
    """On standard output, or in a README that keeps its text."""
    made.put(ResultStore(project / "results"), {"ndcg_at_10": [1.0, 0.5, 0.0]}, model="org/one")
    out = here("results", "export", "--as", "model-card", "-m", "org/one", cwd=project)
    assert (out.code, out.err) == (0, "")
    assert out.out.startswith("---\nmodel-index:\n- name: one\n")
    assert "value: 0.5\n" in out.out
    (project / "README.md").write_text("# One\n", encoding="utf-8")
    done = here("results", "export", "--as", "model-card", "README.md", "-m", "org/one", cwd=project)
    assert (done.code, done.err) == (0, "Wrote README.md.\n")
    assert (project / "README.md").read_text(encoding="utf-8") == out.out + "# One\n"
    made.put(ResultStore(project / "results"), {"ndcg_at_10": [1.0, 1.0, 1.0]}, model="org/one", truncate_dim=64)
    both = here("results", "export", "--as", "model-card", "-m", "org/one", cwd=project)
    assert (both.code, both.out) == (3, "")
    same = here("results", "export", "--as", "model-card", "-m", "one", cwd=project)  # the whole label of one of them
    assert (same.code, same.out) == (0, out.out)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["import"], "--mteb"),
        (["import", "--mteb", "nothing"], "nothing: no such folder"),
        (["import", "--mteb", "published.txt"], "published.txt: not a folder"),
        (["export", "--as", "mteb"], "Where to?"),
        (["export", "--as", "mteb", "out", "--format", "csv"], "can't go together"),
        (["export", "--as", "model-card", "--json"], "No stored result"),
    ],
)
def test_mistakes(words: list[str], said: str, project: Path) -> None:
    """What was wrong, in one line."""
    (project / "published.txt").write_text("a file\n", encoding="utf-8")
    done = here("results", *words, cwd=project)
    assert done.code in (2, 3)
    assert said in done.err
