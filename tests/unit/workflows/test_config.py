"""embeval.yaml: every key, every complaint with its line."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from embeval.core.specs import ModelSpec, RuntimeOptions, StatisticsOptions
from embeval.core.verdict import Waiver
from embeval.data.minimal_pairs import MinimalPairColumns
from embeval.data.pairs import PairColumns
from embeval.data.texts import TextColumns
from embeval.errors import ConfigError, DataError, UsageError
from embeval.gates.policy import Resampling
from embeval.mteb_bridge.tasks.classification import ClassificationOptions, ClassificationTask
from embeval.mteb_bridge.tasks.clustering import ClusteringOptions, ClusteringTask
from embeval.mteb_bridge.tasks.mteb import MtebOptions, MtebTask
from embeval.tasks import TASK_TYPES
from embeval.tasks.masked_lm import MaskedLmOptions, MaskedLmTask
from embeval.tasks.minimal_pairs import MinimalPairsOptions, MinimalPairsTask
from embeval.tasks.pseudo_likelihood import PseudoLikelihoodOptions, PseudoLikelihoodTask
from embeval.tasks.replaced_tokens import ReplacedTokensOptions, ReplacedTokensTask
from embeval.tasks.retrieval import RetrievalOptions, RetrievalTask
from embeval.tasks.sts import StsTask
from embeval.workflows import requests
from embeval.workflows.config import Config, config_schema, load_config
from embeval.workflows.mteb_entries import MtebEntry
from tests.support.data import write_pairs

EVERY_KEY = """\
models:
  - demo
  - name: org/model
    backend: sentence_transformers
    revision: 0123456789abcdef0123456789abcdef01234567
    pooling: cls
    normalize: true
    max_seq_length: 64
    prompts: {query: "query: ", document: "passage: "}
    truncate_dim: 128
    dtype: float16
    similarity: dot
    args: {trust_remote_code: false}
    prompting: swap
    quantize: binary
    rescore: 4
tasks:
  - demo-docs,depth=50
  - name: support-kb
    type: retrieval
    data: golden/support-kb
    split: dev
    main_score: recall_at_10
    languages: [eng, deu]
    license: CC0-1.0
    citation: us
    version: 2
    depth: 200
    cutoffs: [1, 10, 100]
    index: brute
    ties: average
    self_match: drop
    missing_queries: skip
    no_relevant: skip
    gains: exp2
    map_denominator: min(k,R)
    index_options: {}
    context_passages: [3]
    context_tokens: [500, 1000]
    latency: 7
    rerank: null
    unreachable: keep
  - name: our-pairs
    type: sts
    data: pairs.csv
    columns: {sentence1: left, sentence2: right, score: gold, id: number, subset: part}
  - mteb: STS17
    types: [STS]
    languages: [spa]
    domains: [News]
    splits: [test]
    subsets: [es-en]
    parity: mteb
    main_score: cosine_pearson
    mirror: copies
    rerank: null
  - name: topics
    type: classification
    data: topics
    samples_per_label: 16
    experiments: 5
    folds: null
    train_split: dev
    classifier: knn
    neighbors: 3
  - name: groups
    type: clustering
    data: groups.csv
    draws: 4
    documents_per_draw: 99
    max_documents: 50
    batch_size: 32
    max_depth: 2
  - name: told
    type: replaced_tokens
    data: held-out.txt
    probability: 0.2
    seed: 7
    draws: 3
    generator: null
    unit: paragraph
  - name: prose
    type: pseudo_likelihood
    data: prose.txt
    modes: [original]
    stride: 8
    sample: 0.25
    seed: 6
    keep_tokens: true
    unit: paragraph
    columns: {}
  - name: masked
    type: masked_lm
    data: texts.jsonl
    masking: aligned
    probability: 0.2
    draws: 3
    seed: 5
    at_least_one: true
    unit: line
    columns: {text: body}
  - name: grammar
    type: minimal_pairs
    data: grammar
    mode: original
    per_paradigm: 50
    columns: {sentence_good: right, sentence_bad: wrong, paradigm: kind, field: area, term: point, id: number}
results: out
data: sets
mirror: more-copies
bm25: false
runtime:
  device: cpu
  batch_tokens: 512
  num_threads: 2
  compile: true
  cache: false
statistics:
  resamples: 500
  level: 0.9
  seed: 3
gate:
  baseline: tag:prod
  candidate: [new, newer]
  rules:
    - {metric: support-kb/recall_at_10, min: 0.5, "on": bound, name: floor}
    - {metric: support-kb/ndcg_at_10, no_regression: 2%, by: kind, min_items: 30}
    - all: [{metric: demo-docs/ndcg_at_10, max: 1}]
    - any: [{metric: our-pairs/cosine_spearman, improve: true}]
    - {at_least: 1, of: [{metric: our-pairs/cosine_pearson, improve: 0.01}]}
  on_inconclusive: pass
  alpha: 0.1
  max_baseline_age_days: 90
  max_candidate_age_days: 7
  allow_unverifiable: true
  min_slice_items: 25
  waivers: [{rule: floor, until: 2026-12-31, reason: agreed, approved_by: Kim}]
  documents: 1000000
  statistics: {resamples: 2000, seed: 4}
  show_lost: 3
  unseen: as_seen
"""


DESCRIBED = (
    *("RuntimeOptions", "StatisticsOptions", "ModelSpec", "PairColumns", "MinimalPairColumns"),
    *("Policy", "Rule", "Resampling", "Waiver"),
)
"""Records whose fields are keys of the file."""


def load(folder: Path, text: str | bytes, **options: Any) -> Config:
    """The file's content, the file being ``embeval.yaml`` in a folder."""
    file = folder / "embeval.yaml"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return load_config(file, **options)


def complaint(folder: Path, text: str | bytes) -> str:
    """What is said about a file, without the folder."""
    with pytest.raises(UsageError) as caught:
        load(folder, text)
    message = str(caught.value)
    assert 1 <= len(message.splitlines()) <= 3
    return message.replace(f"{folder}/", "")


def keys_of(value: Any) -> Iterable[str]:
    """Every key below a value of a JSON Schema's ``properties``, or of a loaded file."""
    import yaml

    def walk(node: Any) -> Iterable[str]:
        if isinstance(node, dict):
            for key, below in node.items():
                yield key
                yield from walk(below)
        elif isinstance(node, list):
            for below in node:
                yield from walk(below)

    return walk(yaml.safe_load(value))


# --- what a file says ---------------------------------------------------------------------------------------------


def test_every_key_is_read(tmp_path: Path) -> None:
    """Models, tasks and settings equal what the file says, to the last option."""
    config = load(tmp_path, EVERY_KEY)
    assert config.models == (
        ModelSpec(name="demo"),
        ModelSpec(
            name="org/model",
            revision="0123456789abcdef0123456789abcdef01234567",
            pooling="cls",
            normalize=True,
            max_seq_length=64,
            prompts={"query": "query: ", "document": "passage: "},
            truncate_dim=128,
            dtype="float16",
            similarity="dot",
            args={"trust_remote_code": False},
            prompting="swap",
            quantize="binary",
            rescore=4,
        ),
    )
    docs, support, pairs, of_mteb, topics, groups, told, prose, masked, grammar = config.tasks
    assert isinstance(told, ReplacedTokensTask)
    assert told.options == ReplacedTokensOptions(probability=0.2, seed=7, draws=3, unit="paragraph")
    assert isinstance(docs, RetrievalTask)
    assert isinstance(support, RetrievalTask)
    assert isinstance(pairs, StsTask)
    assert isinstance(of_mteb, MtebTask)
    assert (docs.spec.name, docs.options.depth) == ("demo-docs", 50)
    spec = support.spec
    assert (spec.name, spec.dataset.split, spec.main_score, spec.version) == ("support-kb", "dev", "recall_at_10", 2)
    assert (spec.languages, spec.license, spec.citation) == (("eng", "deu"), "CC0-1.0", "us")
    chosen = {field.name: getattr(support.options, field.name) for field in fields(RetrievalOptions)}
    assert {name: chosen.pop(name) for name in ("depth", "cutoffs")} == {"depth": 200, "cutoffs": (1, 10, 100)}
    assert {name: str(value) for name, value in chosen.items()} == {
        "index": "brute",
        "index_options": "{}",
        "context_passages": "(3,)",
        "context_tokens": "(500, 1000)",
        "rerank": "None",
        "latency": "7",
        "ties": "average",
        "self_match": "drop",
        "missing_queries": "skip",
        "no_relevant": "skip",
        "gains": "exp2",
        "map_denominator": "min(k,R)",
        "unreachable": "keep",
    }
    assert pairs.options.columns == PairColumns(
        sentence1="left", sentence2="right", score="gold", id="number", subset="part"
    )
    assert (of_mteb.spec.name, of_mteb.spec.main_score) == ("mteb:STS17", "cosine_pearson")
    assert of_mteb.options == MtebOptions(subsets=("es-en",), parity="mteb", mirror="copies")
    assert of_mteb.mirror == tmp_path / "copies"
    assert isinstance(topics, ClassificationTask)
    assert topics.options == ClassificationOptions(
        samples_per_label=16, experiments=5, train_split="dev", classifier="knn", neighbors=3
    )
    assert isinstance(groups, ClusteringTask)
    assert groups.options == ClusteringOptions(
        draws=4, documents_per_draw=99, max_documents=50, batch_size=32, max_depth=2
    )
    assert isinstance(prose, PseudoLikelihoodTask)
    assert prose.options == PseudoLikelihoodOptions(
        modes=("original",), stride=8, sample=0.25, seed=6, keep_tokens=True, unit="paragraph"
    )
    assert isinstance(masked, MaskedLmTask)
    assert masked.options == MaskedLmOptions(
        masking="aligned", probability=0.2, draws=3, seed=5, at_least_one=True, columns=TextColumns(text="body")
    )
    assert isinstance(grammar, MinimalPairsTask)
    assert grammar.options == MinimalPairsOptions(
        mode="original",
        per_paradigm=50,
        columns=MinimalPairColumns(
            sentence_good="right", sentence_bad="wrong", paradigm="kind", field="area", term="point", id="number"
        ),
    )
    assert config.runtime == RuntimeOptions(device="cpu", batch_tokens=512, num_threads=2, compile=True, cache=False)
    assert config.statistics == StatisticsOptions(resamples=500, level=0.9, seed=3)
    assert config.bm25 is False
    assert config.gate is not None
    assert (config.gate.baseline, config.gate.candidates) == ("tag:prod", ("new", "newer"))
    assert [rule.kind for rule in config.gate.rules] == ["min", "no_regression", "all", "any", "at_least"]
    assert config.gate.waivers == (Waiver(rule="floor", until="2026-12-31", reason="agreed", approved_by="Kim"),)
    assert config.gate.statistics == Resampling(resamples=2000, seed=4)
    assert (config.path, config.results, config.data, config.mirror) == (
        tmp_path / "embeval.yaml",
        tmp_path / "out",
        tmp_path / "sets",
        tmp_path / "more-copies",
    )


def test_a_rule_on_a_task_that_the_file_does_not_have(tmp_path: Path) -> None:
    """Told with its line and the nearest task, long before a gate is run."""
    text = "tasks: [demo-docs]\ngate:\n  rules:\n    - {metric: demo-doc/ndcg_at_10, min: 0.5}\n"
    assert complaint(tmp_path, text) == (
        "embeval.yaml, line 4: gate.rules[0].metric: Unknown task 'demo-doc'. Did you mean 'demo-docs'?"
    )
    assert load(tmp_path, text.replace("demo-doc/", "demo-docs/")).gate is not None


def test_no_key_is_forgotten_above() -> None:
    """The keys of the file above are all the keys that the schema knows, but for the names inside free mappings."""
    schema = config_schema()
    known = set(schema["properties"])
    for name in (
        "RuntimeOptions",
        "StatisticsOptions",
        "ModelSpec",
        "PairColumns",
        "TextColumns",
        "MinimalPairColumns",
        "Policy",
        "Rule",
        "Resampling",
        "Waiver",
    ):
        known |= set(schema["$defs"][name]["properties"])
    for entry in schema["properties"]["tasks"]["items"]["anyOf"]:
        known |= set(entry.get("properties", {}))
    free = {"query", "document", "trust_remote_code"}
    assert set(keys_of(EVERY_KEY)) - free == known


def test_what_is_left_out_has_its_default(tmp_path: Path) -> None:
    """Only models and tasks are needed."""
    config = load(tmp_path, "models: [hashing]\ntasks: [demo-docs]\n")
    assert config.models == (ModelSpec(name="hashing", backend="hashing"),)
    assert (config.results, config.data) == (tmp_path / "results", None)
    assert (config.runtime, config.statistics) == (RuntimeOptions(), StatisticsOptions())


@pytest.mark.parametrize("text", ["results: out\n", "models:\ntasks:\n", "models: []\ntasks: []\n", "models: ~\n"])
def test_lists_may_be_empty(tmp_path: Path, text: str) -> None:
    """-m and -t can fill them."""
    config = load(tmp_path, text)
    assert (config.models, config.tasks) == ((), ())


def test_relative_paths_start_at_the_folder_of_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Results, data, model folders and task data, wherever the command is run; hub names stay as they are."""
    folder = tmp_path / "project"
    folder.mkdir()
    write_pairs(folder / "pairs.jsonl", [("a", "b", 1.0)])
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    (folder / "embeval.yaml").write_text(
        "models: [./mine, ../theirs, {name: ./third, dtype: float16}, org/hub, /abs/model]\n"
        "tasks: [pairs.jsonl, STS12, {data: ../up.csv, type: sts}]\n"
        "results: ../out\n"
        "data: sets\n",
        encoding="utf-8",
    )
    config = load_config(Path("../project/embeval.yaml"))
    names = [model.name for model in config.models]
    assert [Path(name).resolve() for name in names[:3]] == [folder / "mine", tmp_path / "theirs", folder / "third"]
    assert names[3:] == ["org/hub", "/abs/model"]
    paths = [task.path.resolve() for task in config.tasks if isinstance(task, StsTask)]
    assert paths == [folder / "pairs.jsonl", folder / "sets/sts/STS12/test.jsonl.gz", tmp_path / "up.csv"]
    assert config.results.resolve() == tmp_path / "out"
    assert config.data is not None
    assert config.data.resolve() == folder / "sets"


def test_a_model_folder_without_a_dot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``models/b`` is the folder beside the file, wherever the command is run; one of the current folder is refused.

    Otherwise the same file would evaluate one model here and another there, under one label.
    """
    for folder in ("project/models/b", "elsewhere/models/b", "elsewhere/models/c"):
        (tmp_path / folder).mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "elsewhere")
    file = tmp_path / "project" / "embeval.yaml"
    file.write_text("models: [models/b, models/hub]\ntasks: []\n", encoding="utf-8")
    config = load_config(file)
    assert [model.name for model in config.models] == [str(tmp_path / "project" / "models" / "b"), "models/hub"]
    file.write_text("models:\n  - demo\n  - {name: models/c}\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"line 3: models\[1\]: 'models/c' is a folder of the current directory"):
        load_config(file)


def test_a_folder_called_like_a_model_without_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``demo`` and ``hashing`` stay what they are, whatever lies beside the file or in the current folder."""
    for folder in ("project/demo", "project/hashing", "elsewhere/demo", "elsewhere/hashing"):
        (tmp_path / folder).mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "elsewhere")
    file = tmp_path / "project" / "embeval.yaml"
    file.write_text("models: [demo, hashing, {name: mine, backend: hashing}]\ntasks: []\n", encoding="utf-8")
    assert [model.name for model in load_config(file).models] == ["demo", "hashing", "mine"]


def test_data_given_beside_the_file_wins(tmp_path: Path) -> None:
    """--data stands over ``data``, and starts where the command is run."""
    config = load(tmp_path, "models: [hashing]\ntasks: [STS12]\ndata: sets\n", data=Path("/other"))
    (task,) = config.tasks
    assert isinstance(task, StsTask)
    assert task.path == Path("/other/sts/STS12/test.jsonl.gz")


def test_missing_data_of_a_catalogue_task(tmp_path: Path) -> None:
    """The evaluation can't be done as it stands, and the message says which folder is missing."""
    with pytest.raises(DataError, match="DIR/sts/STS12"):
        load(tmp_path, "models: [hashing]\ntasks: [STS12]\n")


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-8"])
def test_a_byte_order_mark_is_no_content(tmp_path: Path, encoding: str) -> None:
    """Some editors write one."""
    text = "models: [hashing]\ntasks: [demo-docs]\nresults: Ergebnisse-ü\n"
    assert load(tmp_path, text.encode(encoding)).results == tmp_path / "Ergebnisse-ü"


def test_line_ends_of_windows(tmp_path: Path) -> None:
    """CRLF changes neither the content nor the lines."""
    assert load(tmp_path, b"models:\r\n  - hashing\r\ntasks:\r\n  - demo-docs\r\n").models[0].name == "hashing"
    assert "line 3:" in complaint(tmp_path, b"models:\r\n  - hashing\r\ntaks:\r\n  - demo-docs\r\n")


def test_anchors_and_merge_keys(tmp_path: Path) -> None:
    """YAML's own way not to write things twice."""
    config = load(
        tmp_path,
        "models:\n"
        "  - &base {name: org/model, truncate_dim: 128}\n"
        "  - {<<: *base, truncate_dim: 64}\n"
        "tasks: [demo-docs]\n",
    )
    assert [model.truncate_dim for model in config.models] == [128, 64]
    assert {model.name for model in config.models} == {"org/model"}


# --- what is wrong with a file ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "line", "key", "nearest"),
    [
        ("models: [demo]\ntaks: [demo-docs]\n", 2, "taks", "tasks"),
        ("# a comment\n\nmodel: [demo]\n", 3, "model", "models"),
        ("models: [demo]\nruntime:\n  device: cpu\n  batchtokens: 5\n", 4, "batchtokens", "batch_tokens"),
        ("statistics:\n  seeds: 5\nmodels: [demo]\n", 2, "seeds", "seed"),
        ("models:\n  - demo\n  - name: x\n    truncate_dims: 5\n", 4, "truncate_dims", "truncate_dim"),
        ("models:\n  - {name: x, poling: cls}\n", 2, "poling", "pooling"),
        ("tasks:\n  - demo-docs\n  - name: x\n    type: sts\n    data: x.csv\n    splitt: y\n", 6, "splitt", "split"),
        ("tasks:\n  - name: x\n    type: sts\n    data: x.csv\n    column: {}\n", 5, "column", "columns"),
        ("tasks:\n  - type: sts\n    data: x.csv\n    columns:\n      scores: gold\n", 5, "scores", "score"),
        ("tasks:\n  - type: retrieval\n    data: x\n    dept: 5\n", 4, "dept", "depth"),
        ("tasks:\n  - name: demo-docs\n    selfmatch: keep\n", 3, "selfmatch", "self_match"),
        ("tasks:\n  - demo-pairs\n  - demo-docs,dept=5\n", 3, "dept", "depth"),
    ],
)
def test_unknown_keys_at_every_level(tmp_path: Path, text: str, line: int, key: str, nearest: str) -> None:
    """The complaint names the file, the line of the key, the key and the nearest known one."""
    message = complaint(tmp_path, text)
    assert message.startswith(f"embeval.yaml, line {line}: ")
    assert f"{key}: unknown key." in message
    assert f"Did you mean {nearest!r}" in message


def test_unknown_keys_with_nothing_near_list_what_is_known(tmp_path: Path) -> None:
    """So that one sees what there is."""
    message = complaint(tmp_path, "models: [demo]\nxyz: 1\n")
    known = "bm25, data, gate, mirror, models, results, runtime, statistics, tasks"
    assert message == f"embeval.yaml, line 2: xyz: unknown key. Known: {known}."


@pytest.mark.parametrize(
    ("text", "line", "parts"),
    [
        ("tasks: [demo-docs]\nmodels: demo\n", 2, ["models must be a list", "- "]),
        ("models: [demo]\ntasks: demo-docs\n", 2, ["tasks must be a list"]),
        ("models: {name: demo}\n", 1, ["models must be a list"]),
        ("runtime:\n  batch_tokens: 1.5\n", 2, ["runtime.batch_tokens: must be a whole number or 'auto', not 1.5"]),
        ("runtime:\n  batch_tokens: all\n", 2, ["runtime.batch_tokens: must be a whole number or 'auto', not 'all'"]),
        ("models: []\nresults: ~nobody-here/r\n", 2, ["results: '~nobody-here/r'", "Write the path out"]),
        ("models: []\ndata: ~nobody-here/r\n", 2, ["data: '~nobody-here/r'", "Write the path out"]),
        ("\nmodels: 0\n", 2, ["models must be a list"]),
        ("\ntasks: ''\n", 2, ["tasks must be a list"]),
        ("\nmodels: {}\n", 2, ["models must be a list"]),
        ("models:\n  - demo\n  - 5\n", 3, ["models[1]", "5"]),
        ("models:\n  - [demo]\n", 2, ["models[0]", "['demo']"]),
        ("tasks:\n  - demo-docs\n  -\n", 3, ["tasks[1]"]),
        ("models:\n  - demo\n  - name: 5\n", 3, ["models[1]", "name", "5"]),
        ("models:\n  - name: x\n    truncate_dim: '5'\n", 3, ["truncate_dim", "'5'"]),
        ("models:\n  - name: x\n    prompts: {query: 5}\n", 3, ["prompts.query", "5"]),
        ("models:\n  - name: x\n    prompts:\n      query: 5\n", 4, ["prompts.query", "5"]),
        ("models:\n  - name: x\n    dtype: float8\n", 3, ["dtype", "'float8'", "'bfloat16'"]),
        ("models:\n  - pooling: cls\n", 2, ["'name' is missing"]),
        ("models: [demo]\nresults: 5\n", 2, ["results", "5"]),
        ("models: [demo]\nresults: [a]\n", 2, ["results"]),
        ("models: [demo]\ndata: true\n", 2, ["data", "True"]),
        ("models: [demo]\nruntime: fast\n", 2, ["runtime", "'fast'"]),
        ("runtime:\n  device: cpu\n  batch_tokens: many\n", 3, ["runtime.batch_tokens", "'many'"]),
        ("runtime:\n  batch_tokens: 0\n", 2, ["batch_tokens: must be at least 1, not 0"]),
        ("statistics:\n  seed: 1\n  resamples: 1.5\n", 3, ["statistics.resamples", "1.5"]),
        ("models: [demo]\nstatistics:\n  resamples: 5\n", 3, ["resamples: must be 0 or at least 100, not 5"]),
        ("models: [demo]\nstatistics:\n  seed: 0\n  level: 1.0\n", 4, ["level: must lie in [0.5, 1), not 1.0"]),
        ("models: [demo]\nstatistics:\n  level: .nan\n", 3, ["level"]),
        ("tasks:\n  - type: sts\n    data: x.csv\n    version: '2'\n", 4, ["version", "'2'"]),
        ("tasks:\n  - type: sts\n    data: x.csv\n    split: 5\n", 4, ["split", "5"]),
        ("tasks:\n  - type: sts\n    data: x.csv\n    languages: eng\n", 4, ["languages", "'eng'"]),
        ("tasks:\n  - type: sts\n    name: x\n    data: 5\n", 4, ["data", "5"]),
        ("tasks:\n  - name: x\n    data: x.csv\n    type: [sts]\n", 4, ["type", "['sts']"]),
        ("tasks:\n  - name: x\n    data: x.csv\n    type: stss\n", 4, ["'stss'", "'sts'"]),
        ("models:\n  - name: x\n    backend: hashin\n", 3, ["'hashin'", "'hashing'"]),
        ("tasks:\n  - type: retrieval\n    data: x\n    depth: '5'\n", 4, ["depth", "'5'"]),
        ("tasks:\n  - type: retrieval\n    data: x\n    ties: random\n", 4, ["ties", "'random'", "'doc_id_desc'"]),
        ("tasks:\n  - type: retrieval\n    data: x\n    depth: 5\n", 4, ["depth 5 is less"]),
        (
            "tasks:\n  - type: retrieval\n    data: x\n    main_score: bleu\n",
            4,
            ["'bleu' is not a metric of retrieval"],
        ),
        ("tasks:\n  - demo-docs\n  - name: nothing\n", 3, ["tasks[1]", "Unknown task 'nothing'"]),
        ("tasks:\n  - demo-docs\n\n  - demo-dcs\n", 4, ["tasks[1]", "Did you mean 'demo-docs'"]),
        ("tasks:\n  - demo-docs\n  - demo-docs\n", 3, ["Two tasks are called 'demo-docs'"]),
    ],
)
def test_wrong_values(tmp_path: Path, text: str, line: int, parts: list[str]) -> None:
    """The complaint names the file, the line of the value, the key and what stands there."""
    message = complaint(tmp_path, text)
    assert message.startswith(f"embeval.yaml, line {line}: "), message
    for part in parts:
        assert part in message


def test_dates_are_the_text_that_they_are_in_the_file(tmp_path: Path) -> None:
    """YAML would make a date of it; a folder or a revision may be called so."""
    file = tmp_path / "embeval.yaml"
    file.write_text("models:\n  - {name: x, revision: 2024-01-01}\nresults: 2024-02-03\n", encoding="utf-8")
    config = load_config(file)
    assert config.results == tmp_path / "2024-02-03"
    assert config.models[0].revision == "2024-01-01"


@pytest.mark.parametrize("key", ["~", "1", "1.5", "true", "2024-01-01", "[a, b]", "? {a: b}\n"])
def test_keys_that_are_no_text(tmp_path: Path, key: str) -> None:
    """Null, numbers, dates and lists as keys are unknown keys, or no YAML that can be read; never a fault of ours."""
    assert complaint(tmp_path, f"models: [demo]\n{key}: 3\n").startswith("embeval.yaml, line 2: ")


@pytest.mark.parametrize(
    ("text", "line", "key"),
    [
        ("models: [demo]\ntasks: [demo-docs]\nmodels: [hashing]\n", 3, "models"),
        ("runtime:\n  device: cpu\n  batch_tokens: 5\n  device: cuda\n", 4, "device"),
        ("models:\n  - name: x\n    dtype: float16\n    name: y\n", 4, "name"),
        ("tasks:\n  - {type: sts, data: a.csv, data: b.csv}\n", 2, "data"),
        ("models:\n  - name: x\n    prompts:\n      query: a\n      query: b\n", 5, "query"),
    ],
)
def test_a_key_that_stands_twice(tmp_path: Path, text: str, line: int, key: str) -> None:
    """YAML would let the last one win silently."""
    assert complaint(tmp_path, text) == f"embeval.yaml, line {line}: the key {key!r} stands here twice."


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("models:\n\t- demo\n", 2),
        ("models: [demo\n", 2),
        ("models:\n  - demo\n tasks:\n  - x\n", 3),
        ("models: [demo]\ntasks: 'demo\n", 3),
        ("models: [demo]\n}\n", 2),
        ("models: [demo]\n---\ntasks: [demo-docs]\n", 2),
        ("models: *nowhere\n", 1),
        ("models: [demo]\ntasks: !!python/object:os.system [x]\n", 2),
    ],
)
def test_broken_yaml(tmp_path: Path, text: str, line: int) -> None:
    """The complaint names the file and the line and says that it is no valid YAML."""
    message = complaint(tmp_path, text)
    assert re.match(rf"embeval\.yaml, line {line}: not valid YAML \(.+\)\.$", message), message


@pytest.mark.parametrize("text", ["", "\n\n", "# only a comment\n", "---\n", "- demo\n", "demo\n", "5\n"])
def test_a_file_without_keys(tmp_path: Path, text: str) -> None:
    """Empty files, lists and single words are told what is needed."""
    assert complaint(tmp_path, text) == "embeval.yaml: the file must hold keys such as 'models' and 'tasks'."


@pytest.mark.timeout(30)
def test_an_alias_bomb_is_refused_quickly(tmp_path: Path) -> None:
    """A kilobyte that stands for ten billion values is not unfolded."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 10)]
    message = complaint(tmp_path, "\n".join(lines) + "\n")
    assert message == "embeval.yaml: more than 100000 values once aliases are followed."


@pytest.mark.parametrize(
    "text",
    [
        "models: &x [demo, *x]\n",
        "models: [demo]\nruntime: &x {device: *x}\n",
        "a: &x\n  b: &y\n    c: *x\n    d: *y\n",
    ],
)
def test_an_alias_inside_itself_is_refused(tmp_path: Path, text: str) -> None:
    """It would have no end, and the message says that an alias is the reason."""
    message = complaint(tmp_path, text)
    assert message.startswith("embeval.yaml")
    assert "alias" in message
    assert "recursion" not in message


def test_deep_nesting_is_refused(tmp_path: Path) -> None:
    """Ten thousand brackets are no evaluation."""
    assert complaint(tmp_path, "models: " + "[" * 10_000 + "]" * 10_000 + "\n").startswith("embeval.yaml")


@pytest.mark.parametrize("data", [b"models: [\xff\xfe]\n", b"\x00\x01", "models: [demo]\n".encode("utf-16")])
def test_what_is_no_text(tmp_path: Path, data: bytes) -> None:
    """Other encodings and binary files are named as such."""
    message = complaint(tmp_path, data)
    assert message.startswith("embeval.yaml")
    assert "can't be read" in message or "not valid YAML" in message


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    """A missing file gets the advice to write one, a folder is named as one."""
    with pytest.raises(ConfigError, match=r"none\.yaml: no such file\. 'embeval init' writes one\."):
        load_config(tmp_path / "none.yaml")
    with pytest.raises(ConfigError, match="can't be read"):
        load_config(tmp_path)


# --- the schema ---------------------------------------------------------------------------------------------------


def test_the_schema_describes_every_key() -> None:
    """Each property has a description, its own or that of what it refers to; nothing else is allowed."""
    schema = config_schema()
    assert schema["additionalProperties"] is False
    described = 0

    def walk(node: Any) -> None:
        nonlocal described
        if isinstance(node, list):
            for below in node:
                walk(below)
        if isinstance(node, dict):
            for name, below in node.get("properties", {}).items():
                target = schema["$defs"][below["$ref"].rsplit("/", 1)[-1]] if "$ref" in below else {}
                assert below.get("description") or target.get("description"), name
                described += 1
            for below in node.values():
                walk(below)

    walk(schema)
    assert described > 40


def test_the_schema_knows_what_tasks_may_say() -> None:
    """For each type of task the common keys and the options of the type, for tasks of mteb their own, and no others."""
    schema = config_schema()
    *entries, of_mteb = schema["properties"]["tasks"]["items"]["anyOf"][1:]
    assert {entry["properties"]["type"]["const"]: set(entry["properties"]) for entry in entries} == {
        name: {*requests.TASK_KEYS, *(field.name for field in fields(TASK_TYPES.get(name).options))}
        for name in TASK_TYPES.names()
        if name != "mteb"
    }
    assert set(of_mteb["properties"]) == {field.name for field in fields(MtebEntry)}
    assert of_mteb["required"] == ["mteb"]
    assert not any(entry["additionalProperties"] for entry in [*entries, of_mteb])


def test_paths_of_run_files_and_of_parts_start_at_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a run, and of each part of a hybrid; names that are no paths stay."""
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "a.trec").write_text("q Q0 d 1 1 x\n")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    text = "models: ['ranking:runs/a.trec', 'hybrid:demo+bm25 + ranking:runs/a.trec+./m', bm25]\ntasks: []\n"
    run = f"{tmp_path}/runs/a.trec"
    assert [model.name for model in load(tmp_path, text).models] == [
        run,
        f"demo+bm25+ranking:{run}+{tmp_path}/m",
        "bm25",
    ]
    (tmp_path / "elsewhere" / "b.trec").write_text("q Q0 d 1 1 x\n")
    with pytest.raises(ConfigError, match=r"line 1: models\[0\]: 'b.trec' is a file of the current directory"):
        load(tmp_path, "models: ['hybrid:bm25+ranking:b.trec']\ntasks: []\n")
