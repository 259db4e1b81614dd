"""Indexes on disk: written, opened, broken."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import faiss
import numpy as np
import pytest

from embeval.core.embeddings import Vectors
from embeval.core.ir import TieRule, tie_keys
from embeval.errors import ConfigError, DataError, InvalidEmbeddingsError, StoreError
from embeval.retrieval import approximate, stored
from embeval.retrieval.kinds import INDEXES
from embeval.retrieval.search import TopK
from embeval.retrieval.stored import StoredIndex

RNG = np.random.default_rng(9)
TOPICS = RNG.normal(size=(20, 16))
DOCS = (TOPICS[RNG.integers(0, 20, 500)] + 0.5 * RNG.normal(size=(500, 16))).astype(np.float32)
QUERIES = DOCS[:7] + np.float32(0.01)
IDS = [f"doc {number:03} ü" for number in RNG.permutation(500)]
KINDS = INDEXES.names()


def _chunks(docs: Vectors = DOCS) -> Iterator[Vectors]:
    yield docs[:200]
    yield docs[200:]


def _build(folder: Path, kind: str = "exact", **rest: Any) -> StoredIndex:
    return stored.build(folder, _chunks(), IDS, dim=16, kind=kind, **rest)


@pytest.mark.parametrize("similarity", ["cosine", "euclidean"])
@pytest.mark.parametrize("kind", KINDS)
def test_opened_again_it_finds_the_same(kind: str, similarity: Any, tmp_path: Path) -> None:
    """As the search in memory does, to the bit; and it knows what it is."""
    built = _build(tmp_path / "index", kind, similarity=similarity, description={"model": "sha256:1"})
    opened = stored.open_index(tmp_path / "index", verify=True)
    keys = tie_keys(IDS, TieRule.DOC_ID_DESC)
    if INDEXES.get(kind).exact:
        top = TopK(QUERIES, k=20, similarity=similarity, tie_keys=keys, index="brute")
        top.add(DOCS)
        expected = top.result()
    else:
        expected, _ = approximate.search_corpus(
            _chunks(), QUERIES, k=20, kind=kind, similarity=similarity, tie_keys=keys
        )
    for index in (built, opened):
        found = index.search(QUERIES, 20)
        assert np.array_equal(found.positions, expected.positions)
        assert np.array_equal(found.scores, expected.scores)
    assert (opened.kind, opened.similarity, opened.dim, len(opened)) == (kind, similarity, 16, 500)
    assert opened.doc_ids == tuple(IDS)
    assert dict(opened.description) == {"model": "sha256:1"}
    file = "vectors.npy" if INDEXES.get(kind).exact else "index.faiss"
    assert opened.n_bytes == (tmp_path / "index" / file).stat().st_size
    assert [path.name for path in tmp_path.iterdir()] == ["index"]


@pytest.mark.parametrize("kind", KINDS)
def test_an_index_of_nothing(kind: str, tmp_path: Path) -> None:
    """No documents: no hits, and no error."""
    stored.build(tmp_path / "index", [], [], dim=16, kind=kind)
    found = stored.open_index(tmp_path / "index").search(QUERIES, 3)
    assert found.positions.tolist() == [[-1] * 3] * 7


def test_options_are_kept_and_hold_when_opened(tmp_path: Path) -> None:
    """nprobe is no part of FAISS's file as people set it, so it comes from the record."""
    _build(tmp_path / "index", "ivf", options={"nlist": 9, "nprobe": 9})
    opened = stored.open_index(tmp_path / "index")
    assert dict(opened.record.settled) == {"nlist": 9, "nprobe": 9, "rescore": 1}
    top = TopK(QUERIES, k=20, similarity="cosine", tie_keys=tie_keys(IDS, TieRule.DOC_ID_DESC), index="brute")
    top.add(DOCS)
    assert np.array_equal(opened.search(QUERIES, 20).positions, top.result().positions)


@pytest.mark.parametrize("kind", ["exact", "hnsw"])
def test_wrong_queries_are_refused(kind: str, tmp_path: Path) -> None:
    """Other dimensions mean another model; NaN means nothing."""
    index = _build(tmp_path / "index", kind)
    with pytest.raises(StoreError, match="holds vectors of 16 dimensions, but the queries have 8"):
        index.search(QUERIES[:, :8], 3)
    with pytest.raises(InvalidEmbeddingsError, match="The queries gave NaN"):
        index.search(QUERIES * np.float32(np.nan), 3)


def test_what_does_not_fit_leaves_nothing_behind(tmp_path: Path) -> None:
    """Ids that come twice or don't match, NaN, impossible options: no folder, no temporary one."""
    with pytest.raises(DataError, match="unique"):
        stored.build(tmp_path / "index", _chunks(), ["a"] * 500, dim=16)
    with pytest.raises(DataError, match="500 vectors came for 499 documents"):
        stored.build(tmp_path / "index", _chunks(), IDS[:-1], dim=16)
    with pytest.raises(InvalidEmbeddingsError, match="The vectors to store gave NaN"):
        stored.build(tmp_path / "index", [DOCS * np.float32(np.nan)], IDS, dim=16, kind="ivf")
    with pytest.raises(ConfigError, match="nlist"):
        _build(tmp_path / "index", "ivf", options={"nlist": -1})
    with pytest.raises(ConfigError, match="nlist: unknown key"):
        _build(tmp_path / "index", "exact", options={"nlist": 4})
    with pytest.raises(ConfigError, match="can't compare by manhattan"):
        _build(tmp_path / "index", "hnsw", similarity="manhattan")
    assert list(tmp_path.iterdir()) == []


def test_an_index_is_replaced_only_when_asked(tmp_path: Path) -> None:
    """And a folder with something else in it never is."""
    _build(tmp_path / "index")
    with pytest.raises(StoreError, match="holds an index already"):
        _build(tmp_path / "index", "ivf")
    assert stored.open_index(tmp_path / "index").kind == "exact"
    assert _build(tmp_path / "index", "ivf", overwrite=True).kind == "ivf"
    with pytest.raises(DataError):
        stored.build(tmp_path / "index", _chunks(), IDS[:-1], dim=16, overwrite=True)
    assert stored.open_index(tmp_path / "index", verify=True).kind == "ivf"
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "cat.jpg").write_text("cat")
    with pytest.raises(StoreError, match="holds no index"):
        _build(tmp_path / "photos", overwrite=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["index", "photos"]


@pytest.mark.parametrize("kind", KINDS)
def test_cut_files_are_refused_by_name(kind: str, tmp_path: Path) -> None:
    """Each file in turn: one byte short, empty, gone."""
    _build(tmp_path / "whole", kind)
    for path in sorted((tmp_path / "whole").iterdir()):
        content = path.read_bytes()
        for broken in (content[:-1], b"", None):
            if path.name == "index.json" and broken == content[:-1]:
                continue  # only the final newline, which says nothing
            path.unlink()
            if broken is not None:
                path.write_bytes(broken)
            with pytest.raises(StoreError, match=path.name):
                stored.open_index(tmp_path / "whole")
        path.write_bytes(content)
    assert len(stored.open_index(tmp_path / "whole", verify=True)) == 500


@pytest.mark.parametrize("kind", KINDS)
def test_a_flipped_byte_is_found(kind: str, tmp_path: Path) -> None:
    """At once in what FAISS reads and in the ids, in the vectors by ``verify``."""
    _build(tmp_path / "index", kind)
    for name in ("vectors.npy", "doc_ids.json", "index.faiss"):
        path = tmp_path / "index" / name
        if not path.exists():
            continue
        content = path.read_bytes()
        for place in (len(content) // 3, len(content) - 2):
            path.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
            with pytest.raises(StoreError, match=f"{name} is not what was written: its sha256 differs"):
                stored.open_index(tmp_path / "index", verify=name == "vectors.npy")
        path.write_bytes(content)


def test_a_record_that_was_changed_or_is_none_is_refused(tmp_path: Path) -> None:
    """Another kind, a newer format, no JSON, JSON of something else."""
    _build(tmp_path / "index", "hnsw")
    path = tmp_path / "index" / "index.json"
    content = path.read_text()
    for changed, message in [
        (content.replace('"hnsw"', '"ivf"'), "was changed after"),
        (content.replace('"dim": 16', '"dim": 8'), "was changed after"),
        (content.replace('"format": 1', '"format": 2'), "newer embeval"),
        (content[:50], "can't be read"),
        ("[]", "describes no index"),
        ('{"format": 1}', "describes no index"),
    ]:
        assert changed != content
        path.write_text(changed)
        with pytest.raises(StoreError, match=message):
            stored.open_index(tmp_path / "index")
    shutil.rmtree(tmp_path / "index")
    with pytest.raises(StoreError, match="There is no index in"):
        stored.open_index(tmp_path / "index")


@pytest.mark.parametrize(("kind", "engine"), [("ivf", faiss.IndexFlatIP(16)), ("hnsw", faiss.IndexHNSWFlat(8, 4))])
def test_files_of_another_index_are_refused(kind: str, engine: Any, tmp_path: Path) -> None:
    """A FAISS file of another kind or size behind a record that is sound in itself."""
    _build(tmp_path / "index", kind)
    faiss.write_index(engine, str(tmp_path / "index" / "index.faiss"))
    _sign_again(tmp_path / "index")
    with pytest.raises(StoreError, match=f"not an index of kind '{kind}' with 500 of 16"):
        stored.open_index(tmp_path / "index")
    (tmp_path / "index" / "index.faiss").write_bytes(b"nothing that FAISS ever wrote")
    _sign_again(tmp_path / "index")
    with pytest.raises(StoreError, match="is no FAISS index"):
        stored.open_index(tmp_path / "index")


def _sign_again(folder: Path) -> None:
    from embeval.core import border, strict_json

    record = json.loads((folder / "index.json").read_text())
    for name in record["files"]:
        content = folder / name
        record["files"][name] = {"n_bytes": content.stat().st_size, "sha256": stored._sha256(content)}
    signed = border.load(stored.IndexRecord, record).signed()
    (folder / "index.json").write_text(strict_json.dumps(border.dump(signed)))
