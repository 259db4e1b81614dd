"""The backend ``precomputed``: the right vector for each text from every layout, or a message that says why not."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import embeval
from embeval.core.embeddings import Embeddings
from embeval.core.protocols import Encoder
from embeval.core.specs import ModelSpec, Role, RuntimeOptions, StatisticsOptions
from embeval.encoders import loading
from embeval.encoders.locate import Located
from embeval.errors import ConfigError, InvalidEmbeddingsError, ModelError
from tests.contracts.examples import retrieval_task
from tests.support.data import write_jsonl, write_pairs

ROWS = {"one": [1.0, 2.0, 2.0], "two": [0.0, 3.0, 4.0], "three": [5.0, 0.0, 12.0]}
NAMES = list(ROWS)
VALUES = np.array(list(ROWS.values()), dtype=np.float32)


def write_parquet(path: Path, vectors: Any, **columns: Any) -> Path:
    """Vectors with other columns."""
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = vectors if isinstance(vectors, (pa.Array, list)) else list(np.asarray(vectors))
    pq.write_table(pa.table({"embedding": rows, **columns}), path)
    return path


def write_npy(
    path: Path, vectors: Any, *, ids: Sequence[str] | None = None, texts: Sequence[str] | None = None
) -> Path:
    """Vectors with what names them beside."""
    path.parent.mkdir(parents=True, exist_ok=True)
    np.save(path, vectors)
    if ids is not None:
        path.with_suffix(".ids.txt").write_text("".join(f"{each}\n" for each in ids), encoding="utf-8")
    if texts is not None:
        write_jsonl(path.with_suffix(".texts.jsonl"), [{"text": each} for each in texts])
    return path


def load(path: Path, **fields: Any) -> Encoder:
    """An encoder of the vectors."""
    return loading.load(loading.resolve(ModelSpec(name=str(path), backend="precomputed", **fields)))


def encode(
    path: Path, texts: Sequence[str], role: Role = Role.TEXT, ids: Sequence[str] = (), **fields: Any
) -> Embeddings:
    """Texts by their vectors."""
    return load(path, **fields).encode(texts, role=role, ids=ids)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", ">f4"])
@pytest.mark.parametrize("layout", ["parquet text", "parquet id", "npy texts", "npy ids"])
def test_each_text_has_its_own_vector(tmp_path: Path, layout: str, dtype: str) -> None:
    """From every layout and float type, in the order asked for, repeated texts too."""
    values = VALUES.astype(dtype)
    kind, by = layout.split()
    if kind == "npy":
        path = write_npy(tmp_path / "v.npy", values, **{by: NAMES})
    else:
        native = pa.array(list(values.astype(values.dtype.newbyteorder("="))))
        path = write_parquet(tmp_path / "v.parquet", native, **{by: NAMES})
    asked = ["three", "one", "two", "one"]
    by_id = by in ("id", "ids")
    found = encode(path, ["?"] * 4 if by_id else asked, ids=asked if by_id else ())
    assert found.vectors.dtype == np.float32
    assert np.array_equal(found.vectors, VALUES[[2, 0, 1, 0]])


@pytest.mark.parametrize("kind", [pa.list_(pa.float32()), pa.large_list(pa.float64()), pa.list_(pa.float16(), 3)])
def test_every_kind_of_list_in_parquet(tmp_path: Path, kind: Any) -> None:
    """Variable, large and fixed-size lists."""
    path = write_parquet(tmp_path / "v.parquet", pa.array(VALUES.tolist(), type=kind), text=NAMES)
    assert np.array_equal(encode(path, NAMES).vectors, VALUES)


def test_a_parquet_of_several_row_groups(tmp_path: Path) -> None:
    """10,000 rows by whole-number ids, the last of them too."""
    values = np.arange(20_000, dtype=np.float32).reshape(-1, 2)
    path = write_parquet(tmp_path / "v.parquet", values, id=list(range(10_000)))
    assert np.array_equal(encode(path, ["?"] * 2, ids=["9999", "4096"]).vectors, values[[9999, 4096]])


def test_a_folder_by_role(tmp_path: Path) -> None:
    """The same id as a query and as a document; texts serve the role without a file of its own."""
    write_npy(tmp_path / "v" / "queries.npy", VALUES[:1], ids=["1"])
    write_parquet(tmp_path / "v" / "texts.parquet", VALUES[1:2], id=["1"])
    assert np.array_equal(encode(tmp_path / "v", ["?"], Role.QUERY, ["1"]).vectors, VALUES[:1])
    for role in (Role.DOCUMENT, Role.TEXT):
        assert np.array_equal(encode(tmp_path / "v", ["?"], role, ["1"]).vectors, VALUES[1:2])


def test_a_column_of_roles(tmp_path: Path) -> None:
    """One file for both sides of a search: the query's and the document's vector of one text."""
    path = write_parquet(
        tmp_path / "v.parquet", VALUES, text=["same", "same", "other"], role=["query", "document", "text"]
    )
    assert np.array_equal(encode(path, ["same"], Role.QUERY).vectors, VALUES[:1])
    assert np.array_equal(encode(path, ["same"], Role.DOCUMENT).vectors, VALUES[1:2])
    assert np.array_equal(encode(path, ["other"], Role.TEXT).vectors, VALUES[2:])


def test_a_role_that_is_nowhere(tmp_path: Path) -> None:
    """The message says what is there."""
    write_npy(tmp_path / "v" / "queries.npy", VALUES, texts=NAMES)
    with pytest.raises(ModelError, match=r"hold none for documents, .* They hold: queries \(queries\.npy\)\."):
        encode(tmp_path / "v", ["one"], Role.DOCUMENT)


def test_two_files_for_one_role(tmp_path: Path) -> None:
    """A row of queries in texts.parquet beside queries.parquet: nobody knows which one is meant."""
    write_parquet(tmp_path / "v" / "queries.parquet", VALUES, text=NAMES)
    write_parquet(tmp_path / "v" / "texts.parquet", VALUES, text=NAMES, role=["query", "text", "text"])
    with pytest.raises(ModelError, match=r"queries\.parquet and texts\.parquet both hold queries"):
        load(tmp_path / "v")
    write_npy(tmp_path / "v" / "queries.npy", VALUES, texts=NAMES)
    with pytest.raises(ModelError, match=r"queries\.parquet and queries\.npy are both there"):
        load(tmp_path / "v")


def test_an_empty_text_is_zero_whatever_the_file_says(tmp_path: Path) -> None:
    """As with every backend; and it needs no row."""
    path = write_parquet(tmp_path / "v.parquet", VALUES, text=["one", "", "three"])
    found = encode(path, ["", "one", " \n"])
    assert np.array_equal(found.vectors, np.array([[0, 0, 0], [1, 2, 2], [0, 0, 0]], dtype=np.float32))
    assert (found.counts.n_texts, found.counts.n_empty, found.counts.n_zero) == (3, 2, 2)
    assert (found.counts.n_truncated, found.counts.tokens_lost, found.truncated) == (None, None, None)


def test_settings_that_act(tmp_path: Path) -> None:
    """Unit length, fewer dimensions, another similarity; by hand: [0, 3, 4] is [0, 0.6, 0.8] at length 1."""
    path = write_parquet(tmp_path / "v.parquet", VALUES, text=NAMES)
    assert not encode(path, ["two"]).normalized
    whole = encode(path, ["two"], normalize=True)
    np.testing.assert_allclose(whole.vectors, [[0.0, 0.6, 0.8]], atol=1e-7)
    assert whole.normalized
    assert np.array_equal(encode(path, ["two"], truncate_dim=2).vectors, [[0.0, 3.0]])
    assert load(path, truncate_dim=2).info.dim == 2
    assert load(path).info.similarity == "cosine"
    assert load(path, similarity="dot").info.similarity == "dot"


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"pooling": "cls"}, "pooling can't act"),
        ({"dtype": "float16"}, "dtype can't act"),
        ({"max_seq_length": 9}, "max_seq_length can't act"),
        ({"prompts": {"query": "q: "}}, "prompts can't act"),
        ({"args": {"dim": 9}}, "has no options, so not 'dim' either"),
    ],
)
def test_settings_that_can_not_act(tmp_path: Path, fields: dict[str, Any], message: str) -> None:
    """Refused before any file is read."""
    with pytest.raises(ConfigError, match=message):
        loading.resolve(ModelSpec(name=str(tmp_path / "none.npy"), backend="precomputed", **fields))


def test_a_gpu_is_refused(tmp_path: Path) -> None:
    """Files run nowhere."""
    path = write_parquet(tmp_path / "v.parquet", VALUES, text=NAMES)
    located = loading.resolve(ModelSpec(name=str(path), backend="precomputed"))
    with pytest.raises(ConfigError, match="the device 'cuda' can't be used"):
        loading.load(located, RuntimeOptions(device="cuda"))


def test_what_is_missing_is_named_and_counted(tmp_path: Path) -> None:
    """The first five, by id where there are ids, and how they were looked for."""
    by_text = write_parquet(tmp_path / "t.parquet", VALUES, text=NAMES)
    with pytest.raises(ModelError, match=r"holds no vector for 1 of 2 queries: 'q7'\.\n.*by their exact text.*'One'"):
        encode(by_text, ["one", "One"], Role.QUERY, ["q1", "q7"])
    by_id = write_npy(tmp_path / "i.npy", VALUES, ids=NAMES)
    with pytest.raises(ModelError, match=r"no vector for 6 of 6 texts: 'x0', 'x1', 'x2', 'x3', 'x4', …\.\n.*by id\."):
        encode(by_id, ["?"] * 6, ids=[f"x{number}" for number in range(6)])
    with pytest.raises(ModelError, match="holds vectors by id, and these texts have none"):
        encode(by_id, ["one"])


def test_one_key_with_two_vectors(tmp_path: Path) -> None:
    """Refused by line; equal ones, and the last digits that batches leave, are no contradiction."""
    twice = ["one", "two", "one"]
    path = write_npy(tmp_path / "v.npy", VALUES, ids=twice)
    with pytest.raises(ModelError, match=r"v\.ids\.txt, line 3: the id 'one' has another vector already, of row 1"):
        load(path)
    with pytest.raises(ModelError, match=r"p\.parquet, row 3: the text 'one' has another vector already, of row 1"):
        load(write_parquet(tmp_path / "p.parquet", VALUES, text=twice))
    near = np.array([VALUES[0], VALUES[1], VALUES[0] * (1 + 1e-6)], dtype=np.float32)
    found = encode(write_parquet(tmp_path / "n.parquet", near, text=twice), ["one"])
    assert np.array_equal(found.vectors, VALUES[:1])


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e300])
def test_nan_and_infinity_are_refused_by_id(tmp_path: Path, bad: float) -> None:
    """Also a float64 that float32 can't hold; rows that nobody asks for do no harm."""
    values = VALUES.astype(np.float64)
    values[1, 2] = bad
    for path, given in [
        (write_npy(tmp_path / "v.npy", values, ids=NAMES), NAMES),
        (write_parquet(tmp_path / "v.parquet", values, id=NAMES), NAMES),
    ]:
        with pytest.raises(InvalidEmbeddingsError, match="in the embeddings of 1 of 3 texts: 'two'"):
            encode(path, ["?"] * 3, ids=given)
        assert np.array_equal(encode(path, ["?"], ids=["three"]).vectors, VALUES[2:])


def test_dimensions_must_agree(tmp_path: Path) -> None:
    """Between the files of a folder, and within a file."""
    write_npy(tmp_path / "v" / "queries.npy", VALUES, ids=NAMES)
    write_npy(tmp_path / "v" / "documents.npy", VALUES[:, :2], ids=NAMES)
    with pytest.raises(ModelError, match=r"different dimensions: 2 in documents\.npy and 3 in queries\.npy"):
        load(tmp_path / "v")
    ragged = write_parquet(tmp_path / "r.parquet", [[1.0, 2.0], [1.0, 2.0, 3.0]], text=["a", "b"])
    with pytest.raises(ModelError, match=r"row 2: 'embedding' has 3 dimensions, where the first has 2"):
        load(ragged)


def test_broken_files_are_told_by_file_and_line(tmp_path: Path) -> None:
    """Each with what to do, none with a number."""

    def refused(path: Path, message: str) -> None:
        with pytest.raises(ModelError, match=message):
            load(path)

    refused(tmp_path / "none", "no such file or folder")
    (tmp_path / "empty").mkdir()
    refused(tmp_path / "empty", r"holds no vectors: none of queries\.parquet, documents\.parquet, texts\.parquet")
    (tmp_path / "v.csv").write_text("1,2")
    refused(tmp_path / "v.csv", r"Use \.parquet or \.npy")
    refused(write_npy(tmp_path / "a.npy", VALUES), r"neither of a\.ids\.txt .* is beside it")
    refused(write_npy(tmp_path / "b.npy", VALUES, ids=NAMES, texts=NAMES), r"both of b\.ids\.txt .* are beside it")
    refused(write_npy(tmp_path / "c.npy", VALUES, ids=NAMES[:2]), r"c\.ids\.txt has 2 lines, but c\.npy has 3 rows")
    refused(write_npy(tmp_path / "d.npy", VALUES, ids=["a", "", "c"]), r"d\.ids\.txt, line 2: is empty")
    refused(write_npy(tmp_path / "e.npy", VALUES[0], ids=NAMES), r"not float32 \[3\]")
    refused(write_npy(tmp_path / "f.npy", VALUES.astype(np.int8), ids=NAMES), r"not int8 \[3, 3\]")
    objects = np.array([{"a": 1}], dtype=object)
    np.save(tmp_path / "g.npy", objects, allow_pickle=True)
    (tmp_path / "g.ids.txt").write_text("one\n")
    refused(tmp_path / "g.npy", r"g\.npy: not a readable \.npy of numbers")
    whole = write_npy(tmp_path / "h.npy", VALUES, texts=NAMES)
    (tmp_path / "h.texts.jsonl").write_text('{"text": "one"}\n{"text": 2}\n{"text": "three"}\n')
    refused(whole, r'h\.texts\.jsonl, line 2: \{"text": …\} is needed')
    (tmp_path / "h.texts.jsonl").write_text('{"text": "one"}\n{"text": \n')
    refused(whole, r"h\.texts\.jsonl, line 2: not valid JSON")
    (tmp_path / "h.texts.jsonl").write_bytes(b"\xff\xfe")
    refused(whole, r"h\.texts\.jsonl: not UTF-8")
    (tmp_path / "i.parquet").write_bytes(b"PAR1 no more")
    refused(tmp_path / "i.parquet", r"i\.parquet: not a readable parquet file")
    pq.write_table(pa.table({"vector": [[1.0]], "text": ["a"]}), tmp_path / "j.parquet")
    refused(tmp_path / "j.parquet", r"no column 'embedding'\. Columns: 'vector', 'text'")
    refused(write_parquet(tmp_path / "k.parquet", [[1.0], None], text=["a", "b"]), r"row 2: 'embedding' has no vector")
    refused(write_parquet(tmp_path / "l.parquet", [["a"]], text=["a"]), "must be lists of floats, not list<")
    refused(write_parquet(tmp_path / "m.parquet", [[1.0]], text=[7]), r"row 1: 'text' must be text, not 7")
    refused(write_parquet(tmp_path / "n.parquet", [[1.0]], text=["a"], role=["doc"]), "'role' must be query, document")
    kind = pa.list_(pa.float32())
    refused(write_parquet(tmp_path / "o.parquet", pa.array([], type=kind), text=pa.array([], pa.string())), "no rows")


def test_the_revision_is_that_of_the_content(tmp_path: Path) -> None:
    """Another name for the same files changes nothing; another vector or id does, and a pin holds."""
    first = write_npy(tmp_path / "a.npy", VALUES, ids=NAMES)
    revision = loading.resolve(ModelSpec(name=str(first), backend="precomputed")).spec.revision
    assert revision is not None
    assert revision.startswith("sha256:")
    same = write_npy(tmp_path / "elsewhere" / "b.npy", VALUES, ids=NAMES)
    assert loading.resolve(ModelSpec(name=str(same), backend="precomputed")).spec.revision == revision
    for other in (
        write_npy(tmp_path / "c.npy", VALUES + 1, ids=NAMES),
        write_npy(tmp_path / "d.npy", VALUES, ids=NAMES[::-1]),
    ):
        with pytest.raises(ModelError, match="not the revision that was asked for"):
            loading.resolve(ModelSpec(name=str(other), backend="precomputed", revision=revision))


def test_an_npy_is_mapped_and_not_read(tmp_path: Path) -> None:
    """Of 256 MiB of vectors in a sparse file, those asked for and no more are brought into memory."""
    path = tmp_path / "v.npy"
    mapped = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(1024, 65_536))
    mapped[-1, :2] = [3.0, 4.0]
    mapped.flush()
    del mapped
    path.with_suffix(".ids.txt").write_text("".join(f"{row}\n" for row in range(1024)))
    spec = ModelSpec(name="v", backend="precomputed", revision="sha256:0")  # resolved: hashing would read all of it
    tracemalloc.start()
    try:
        found = loading.load(Located(spec, path)).encode(["?", "?"], role=Role.TEXT, ids=["1023", "0"])
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert found.vectors[0, :3].tolist() == [3.0, 4.0, 0.0]
    assert peak < 16 * 2**20


def hashing(texts: Sequence[str]) -> np.ndarray:
    """The vectors of the baseline."""
    return (
        loading.load(loading.resolve(ModelSpec(name="hashing", backend="hashing")))
        .encode(texts, role=Role.TEXT)
        .vectors
    )


def _rows(file: Path) -> dict[str, str]:
    rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    return {row["_id"]: f"{row.get('title', '')} {row['text']}".strip() for row in rows}


@pytest.mark.parametrize("layout", ["folder of npy by id", "parquet by text", "npy by text"])
def test_vectors_of_a_model_give_its_scores(tmp_path: Path, layout: str) -> None:
    """Retrieval on a small BEIR folder: every metric and interval equals that of the model that made the vectors."""
    task = retrieval_task(tmp_path)
    corpus, queries = _rows(tmp_path / "beir" / "corpus.jsonl"), _rows(tmp_path / "beir" / "queries.jsonl")
    path = tmp_path / "vectors"
    both = [*queries.values(), *corpus.values()]
    if layout == "folder of npy by id":
        for stem, texts in (("queries", queries), ("documents", corpus)):
            write_npy(path / f"{stem}.npy", hashing(list(texts.values())), ids=list(texts))
    elif layout == "parquet by text":
        path = write_parquet(tmp_path / "vectors.parquet", hashing(both), text=both)
    else:
        path = write_npy(tmp_path / "vectors.npy", hashing(both), texts=both)
    statistics = StatisticsOptions(resamples=200)
    own, read = embeval.evaluate(
        ["hashing", f"precomputed:{path}"],
        str(tmp_path / task.dataset.path),
        results=tmp_path / "r",
        statistics=statistics,
    )
    assert own.scores["ndcg_at_10"].value is not None
    assert own.scores == read.scores


def test_sentences_of_pairs_by_id(tmp_path: Path) -> None:
    """``7 sentence 1`` and ``7 sentence 2`` are the ids of pair 7, as the message and the documentation say."""
    rows = [("red backup", "blue backup", 3.0), ("old token", "new token", 2.0), ("a file", "the folder", 1.0)]
    pairs = write_pairs(tmp_path / "pairs.jsonl", rows)
    texts = [text for left, right, _ in rows for text in (left, right)]
    ids = [f"{pair} sentence {side}" for pair in (1, 2, 3) for side in (1, 2)]
    path = write_npy(tmp_path / "v.npy", hashing(texts), ids=ids)
    own, read = embeval.evaluate(
        ["hashing", f"precomputed:{path}"],
        f"sts:{pairs}",
        results=tmp_path / "r",
        statistics=StatisticsOptions(resamples=0),
    )
    assert own.scores["cosine_pearson"].value is not None
    assert own.scores == read.scores
