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

MOST_KILLS = 12
TASK = "pseudo_likelihood"


def contents(root: str) -> dict[str, bytes]:
    """Items and tokens, and results without their timings."""
    found = {path.name: path.read_bytes() for path in Path(root).rglob("*.parquet")}
    for path in Path(root).rglob("*.all.*.json"):
        found[path.name] = strict_json.dumps(without_timings(strict_json.loads(path.read_bytes()))).encode()
    return found


def test_killed_and_resumed(repository: Path, tmp_path: Path) -> None:
    """At moments all over a run until one falls into its middle: what was kept isn't computed again."""
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
        early, late = 0.0, 1.5 * whole.seconds
        kept = list[int]()
        while not any(0 < each < n_passes for each in kept):
            # Halfway between a moment when nothing had been kept and one when everything had.
            assert len(kept) < MOST_KILLS, kept
            killed = replace(
                wanted,
                results=f"{wanted.results}-{len(kept)}",
                cache=f"{wanted.cache}-{len(kept)}",
                kill_after=(early + late) / 2,
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
            early, late = (early, (early + late) / 2) if kept[-1] == n_passes else ((early + late) / 2, late)
