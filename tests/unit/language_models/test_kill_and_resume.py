"""Pseudo-likelihoods of a run that is killed and started again: the same bytes, and no masked text twice."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

from embeval.core import strict_json
from embeval.core.result import without_timings
from embeval.store.results import ResultStore
from tests.support.killing import Wanted, server, vectors_kept
from tests.support.language_models import tiny_language_model
from tests.support.mocks import sentence

KILLS = 3
TASK = "pseudo_likelihood"


def contents(root: str) -> dict[str, bytes]:
    """Items and tokens, and results without their timings."""
    found = {path.name: path.read_bytes() for path in Path(root).rglob("*.parquet")}
    for path in Path(root).rglob("*.all.*.json"):
        found[path.name] = strict_json.dumps(without_timings(strict_json.loads(path.read_bytes()))).encode()
    return found


def test_killed_and_resumed(repository: Path, tmp_path: Path) -> None:
    """At moments all over a run, the sample that is timed among them: what was kept isn't computed again."""
    dice = random.Random(0)  # noqa: S311 - data for tests, no secret
    texts = [" ".join(sentence(dice) for _ in range(4)) for _ in range(130)]
    (tmp_path / "texts.txt").write_text("\n".join(texts), encoding="utf-8")
    wanted = Wanted(
        model=str(tiny_language_model("masked")),
        mirror="",
        tasks=(f"{TASK}:{tmp_path}/texts.txt",),
        results=str(tmp_path / "results"),
        cache=str(tmp_path / "cache"),
    )
    with server(repository, ("sentence_transformers", "transformers.models.bert.modeling_bert")) as runs:
        whole = runs.run(wanted)
        expected, n_passes = contents(wanted.results), vectors_kept(Path(wanted.cache))
        assert {Path(name).suffixes[-2] for name in expected if name.endswith("parquet")} == {".items", ".tokens"}
        (stored,) = ResultStore(Path(wanted.results)).find()
        assert stored.result.counts["passes"] == n_passes > 2_048
        ((_, status, n_encoded),) = whole.steps
        assert (status, n_encoded) == ("done", n_passes)
        kept = []
        for number in range(KILLS):
            killed = replace(
                wanted,
                results=f"{wanted.results}-{number}",
                cache=f"{wanted.cache}-{number}",
                kill_after=whole.seconds * (number + 0.5) / KILLS,
            )
            runs.run(killed)
            assert contents(killed.results) in ({}, expected)
            kept.append(vectors_kept(Path(killed.cache)))
            ((_, status, n_encoded),) = runs.run(replace(killed, kill_after=None)).steps
            if status == "done":
                assert n_encoded == n_passes - kept[-1]
            else:
                assert (status, kept[-1]) == ("skipped", n_passes)
            assert contents(killed.results) == expected, killed.kill_after
        assert any(0 < each < n_passes for each in kept), kept
