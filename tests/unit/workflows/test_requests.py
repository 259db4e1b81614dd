"""From the words that a user types to models and tasks."""

from __future__ import annotations

from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

from embeval.core.protocols import Task
from embeval.core.specs import ModelSpec
from embeval.encoders.loading import BACKENDS
from embeval.errors import ConfigError, DataError, UnknownNameError, UsageError
from embeval.tasks.retrieval import RetrievalTask
from embeval.tasks.sts import StsTask
from embeval.workflows import requests
from tests.support.data import write_beir, write_jsonl, write_pairs


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder with pairs, pairs under other column names, and a golden set."""
    write_pairs(tmp_path / "pairs.jsonl", [("a", "b", 1.0)])
    write_pairs(tmp_path / "stsb" / "dev.jsonl", [("a", "b", 1.0)])
    write_jsonl(tmp_path / "odd.jsonl", [{"left": "a", "right": "b", "gold": 1.0}])
    write_beir(
        tmp_path / "golden" / "support",
        corpus={"d": "text"},
        queries={"q": "text"},
        qrels={"q": {"d": 1}},
    )
    return tmp_path


def parse(text: str, root: Path, data: Path | None = None) -> Task[Any]:
    """A task from a word of the command line."""
    return requests.parse_task(text, root=root, data=data)


def bind(entry: dict[str, Any], root: Path, data: Path | None = None) -> Task[Any]:
    """A task from an entry of embeval.yaml."""
    return requests.task_from(entry, root=root, data=data)


# --- settings in words --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "head", "settings"),
    [
        ("demo", "demo", {}),
        ("demo,truncate_dim=128", "demo", {"truncate_dim": 128}),
        ("m,a=1,b=true,c=x y,d=1.5,e=", "m", {"a": 1, "b": True, "c": "x y", "d": 1.5, "e": None}),
        ('m,prompt="query: "', "m", {"prompt": "query: "}),
        ("m,p=a=b", "m", {"p": "a=b"}),
        ("sts:a,b.csv,split=dev", "sts:a,b.csv", {"split": "dev"}),
        ("a,b.csv", "a,b.csv", {}),
        ("x,1a=2", "x,1a=2", {}),
        ("m,p=query: ", "m", {"p": {"query": None}}),
        ("m,p=[", "m", {"p": "["}),
        ("golden,cutoffs=[7, 9],depth=50", "golden", {"cutoffs": [7, 9], "depth": 50}),
        ("golden,cutoffs=[7,9]", "golden", {"cutoffs": [7, 9]}),
        (
            "a.csv,columns.score=gold,columns.sentence1=left,split=dev",
            "a.csv",
            {"columns": {"score": "gold", "sentence1": "left"}, "split": "dev"},
        ),
        ("m,prompts.query='q, or: '", "m", {"prompts": {"query": "q, or: "}}),
        ("m,a=one, two,b=1", "m", {"a": "one, two", "b": 1}),
        ("", "", {}),
    ],
)
def test_split_settings(text: str, head: str, settings: dict[str, Any]) -> None:
    """Settings come off the end, values are read as YAML reads them, and a comma in a name is no setting."""
    assert requests.split_settings(text) == (head, settings)


def test_settings_keep_their_order() -> None:
    """As they were typed."""
    assert list(requests.split_settings("m,z=1,a=2,k=3")[1]) == ["z", "a", "k"]


def test_a_setting_given_twice_is_refused() -> None:
    """Neither the first nor the last wins silently."""
    for text, key in (
        ("hashing,dim=8,dim=16", "dim"),
        ("a.csv,columns.score=x,columns.score=y", "columns.score"),
        ("a.csv,columns=x,columns.score=y", "columns"),
        ("a.csv,columns.score=y,columns=x", "columns"),
    ):
        with pytest.raises(ConfigError, match=f"'{key}' is set twice in '{text}'"):
            requests.split_settings(text)


def test_columns_and_lists_reach_the_task(root: Path) -> None:
    """What is typed behind a path is what the task is bound with."""
    pairs = parse("odd.jsonl,type=sts,columns.sentence1=left,columns.sentence2=right,columns.score=gold", root)
    payload = pairs.load()
    assert (payload.left, payload.right, payload.gold.tolist()) == (("a",), ("b",), [1.0])
    golden = parse("golden/support,cutoffs=[1, 7]", root)
    assert "recall_at_7" in [metric.name for metric in golden.metrics(golden.load())]


# --- models -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("demo", ModelSpec(name="demo")),
        ("org/model", ModelSpec(name="org/model")),
        ("./my-model", ModelSpec(name="./my-model")),
        ("hashing", ModelSpec(name="hashing", backend="hashing")),
        ("hashing:x", ModelSpec(name="x", backend="hashing")),
        ("hashing:", ModelSpec(name="hashing", backend="hashing")),
        ("hashing:x,dim=64", ModelSpec(name="x", backend="hashing", args={"dim": 64})),
        ("hashing,dim=64", ModelSpec(name="hashing", backend="hashing", args={"dim": 64})),
        ("hashing,name=base", ModelSpec(name="base", backend="hashing")),
        ("sentence_transformers:org/model", ModelSpec(name="org/model")),
        ("sentence-transformers:org/model", ModelSpec(name="org/model")),
        ("sentence-transformers/all-MiniLM-L6-v2", ModelSpec(name="sentence-transformers/all-MiniLM-L6-v2")),
        ("demo,truncate_dim=128,dtype=float16", ModelSpec(name="demo", truncate_dim=128, dtype="float16")),
        (
            "demo,pooling=cls,normalize=true,max_seq_length=64,similarity=dot,revision=main",
            ModelSpec(name="demo", pooling="cls", normalize=True, max_seq_length=64, similarity="dot", revision="main"),
        ),
        ("demo,trust_remote_code=true", ModelSpec(name="demo", args={"trust_remote_code": True})),
        ("no_such_backend:x", ModelSpec(name="no_such_backend:x")),
    ],
)
def test_parse_model(text: str, expected: ModelSpec) -> None:
    """Backend, name, fields of a model, and what is no field as an option of the backend."""
    assert requests.parse_model(text) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "'' names no model"),
        (",dim=3", "',dim=3' names no model"),
        ("demo,truncate_dim=many", "model 'demo,truncate_dim=many': truncate_dim: .* not 'many'"),
        ("demo,normalize=1", "normalize: .* not 1"),
        ("demo,dtype=float8", "dtype: .*'float32', 'bfloat16', 'float16' or 'int8', not 'float8'"),
        ("demo,pooling=average", "pooling: .*'cls', 'mean'.* not 'average'"),
        ("demo,revision=12", "revision: .* not 12"),
    ],
)
def test_wrong_models_are_refused(text: str, message: str) -> None:
    """The message holds what was typed, the setting and the value."""
    with pytest.raises(ConfigError, match=message):
        requests.parse_model(text)


def test_an_unknown_backend_offers_the_closest() -> None:
    """Where a backend is named by its key, it must exist."""
    with pytest.raises(ConfigError, match=r"^model: Unknown encoder backend 'hashin'\. Did you mean 'hashing'"):
        requests.model_from({"name": "x", "backend": "hashin"}, where="model")
    with pytest.raises(ConfigError, match=r"^model: truncate_dm: unknown key\. Did you mean 'truncate_dim'\?"):
        requests.model_from({"name": "x", "truncate_dm": 3}, where="model")
    with pytest.raises(ConfigError, match=r"^model: the key 'name' is missing"):
        requests.model_from({"truncate_dim": 3}, where="model")


@pytest.mark.parametrize("name", ["our_backend", "our-backend"])
def test_the_backend_of_a_plug_in_is_found(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """A plug-in is chosen by the name that it has, with a hyphen or without."""
    point = EntryPoint(name=name, value="embeval.encoders.backends.hashing:BACKEND", group="embeval.backends")
    monkeypatch.setitem(vars(BACKENDS), "_plugins", {"our_backend": point})
    assert requests.parse_model(f"{name}:x,dim=64") == ModelSpec(name="x", backend="our_backend", args={"dim": 64})


# --- tasks --------------------------------------------------------------------------------------------------------


def test_names_of_the_catalogue(root: Path) -> None:
    """Upper and lower case alike; the data of the package is found wherever the command is run."""
    docs, pairs = parse("Demo-Docs", root), parse("demo-pairs", root)
    assert isinstance(docs, RetrievalTask)
    assert isinstance(pairs, StsTask)
    assert (docs.spec.name, docs.spec.type, docs.spec.languages) == ("demo-docs", "retrieval", ("eng",))
    assert len(docs.load().doc_ids) == 232
    assert len(pairs.load()) == 73


def test_settings_of_a_catalogue_task_stand_over_its_own(root: Path) -> None:
    """Options, metric, split and version; what is not set stays."""
    task = parse("demo-docs,depth=50,main_score=recall_at_10,version=3", root)
    assert isinstance(task, RetrievalTask)
    assert (task.spec.main_score, task.spec.version, task.options.depth) == ("recall_at_10", 3, 50)
    assert task.options.self_match == "keep"
    assert task.spec.license == "Apache-2.0"


def test_catalogue_tasks_find_their_data_under_the_data_folder(root: Path) -> None:
    """Without the folder, the message says which path is needed and where to read more."""
    task = parse("STS12", root, data=root / "sets")
    assert isinstance(task, StsTask)
    assert task.path == root / "sets" / "sts" / "STS12" / "test.jsonl.gz"
    with pytest.raises(DataError) as caught:
        parse("STS12", root)
    assert "--data DIR (or EMBEVAL_DATA): DIR/sts/STS12/test.jsonl.gz" in str(caught.value)
    assert "embeval tasks show STS12" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "name", "kind", "split"),
    [
        ("pairs.jsonl", "pairs", "sts", "test"),
        ("sts:pairs.jsonl", "pairs", "sts", "test"),
        ("sts:pairs.jsonl,name=mine,split=dev", "mine", "sts", "dev"),
        ("stsb/dev.jsonl", "stsb", "sts", "dev"),
        ("golden/support", "support", "retrieval", "test"),
        ("retrieval:golden/support,split=train", "support", "retrieval", "train"),
        ("sts:not-there-yet.csv.gz", "not-there-yet", "sts", "test"),
        ("masked_lm:held-out.txt", "held-out-mlm", "masked_lm", "test"),
        ("masked_lm:held-out.txt,masking=aligned", "held-out-mlm-aligned", "masked_lm", "test"),
        ("masked_lm:wiki/dev.txt,masking=whole_word", "wiki-mlm-whole-word", "masked_lm", "dev"),
        ("masked_lm:held-out.txt,name=mine", "mine", "masked_lm", "test"),
        ("replaced_tokens:held-out.txt", "held-out-rtd", "replaced_tokens", "test"),
        ("pseudo_likelihood:held-out.txt", "held-out-pll", "pseudo_likelihood", "test"),
    ],
)
def test_own_data(root: Path, text: str, name: str, kind: str, split: str) -> None:
    """Type, name and split are found from the path and the columns where they are left out."""
    spec = parse(text, root).spec
    assert (spec.name, spec.type, spec.dataset.split) == (name, kind, split)


def test_paths_start_at_the_root(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Relative ones under it, absolute ones as they are, ``~`` at home."""
    monkeypatch.setenv("HOME", str(root / "home"))
    relative, absolute, home = (parse(f"sts:{path}", root) for path in ("x.csv", "/data/x.csv", "~/x.csv"))
    assert isinstance(relative, StsTask)
    assert isinstance(absolute, StsTask)
    assert isinstance(home, StsTask)
    assert relative.path == root / "x.csv"
    assert absolute.path == Path("/data/x.csv")
    assert home.path == root / "home" / "x.csv"


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("demo-dcs", UnknownNameError, "Unknown task 'demo-dcs'. Did you mean 'demo-docs'"),
        ("nothing", UnknownNameError, "Unknown task 'nothing'.*Nor is there a file or folder of that name"),
        ("stss:pairs.jsonl", DataError, "/stss:pairs.jsonl: no such file or folder."),
        ("golden/eval", DataError, "/golden/eval: no such file or folder."),
        ("odd.jsonl", ConfigError, r"the columns 'left', 'right', 'gold' don't tell .*\n.*as in sts:odd.jsonl"),
        ("stsb", ConfigError, "this folder holds no corpus.jsonl"),
        ("demo-docs,type=sts", ConfigError, "'demo-docs' of the catalogue is of type 'retrieval', not 'sts'"),
        ("demo-docs,depht=5", ConfigError, r"Task 'demo-docs' \(retrieval\): depht: unknown key. Did you mean 'depth'"),
        ("demo-docs,depth=many", ConfigError, "depth: .* not 'many'"),
        ("demo-docs,ties=random", ConfigError, "ties: .*'doc_id_desc'.* not 'random'"),
        ("demo-docs,index=flet", ConfigError, "'flet'. Did you mean 'flat'"),
        ("demo-docs,depth=5", ConfigError, "depth 5 is less than the cut-off of the main score 'ndcg_at_10'"),
        ("demo-docs,main_score=cosine_spearman", ConfigError, "'cosine_spearman' is not a metric of retrieval"),
        ("sts:pairs.jsonl,main_score=ndcg_at_10", UsageError, "'ndcg_at_10'"),
        ("sts:pairs.jsonl,main_score=spearman", UsageError, "'cosine_spearman'"),
        ("sts:pairs.jsonl,version=two", ConfigError, "version: .* not 'two'"),
        ("sts:", ConfigError, "'data' must be the path of a file or folder, not ''"),
    ],
)
def test_wrong_tasks_are_refused_before_anything_runs(
    root: Path, text: str, error: type[Exception], message: str
) -> None:
    """Names, types, options and metrics are checked when they are read, and the message names what was wrong."""
    with pytest.raises(error, match=message):
        parse(text, root)


def test_missing_and_empty_files_are_data_errors(root: Path) -> None:
    """Without a type the columns have to be read, and there are none."""
    (root / "empty.jsonl").write_text("", encoding="utf-8")
    with pytest.raises(DataError, match=r"empty\.jsonl: the file holds no rows"):
        parse("empty.jsonl", root)
    with pytest.raises(DataError, match=r"gone\.jsonl: no such file or folder"):
        bind({"data": "gone.jsonl"}, root)


def test_entries_with_keys(root: Path) -> None:
    """Every key of an entry reaches the spec, what is no common key the options of the type."""
    task = bind(
        {
            "name": "ours",
            "type": "sts",
            "data": "odd.jsonl",
            "split": "dev",
            "main_score": "dot_pearson",
            "languages": ["deu", "eng"],
            "license": "CC0-1.0",
            "citation": "us",
            "version": 2,
            "columns": {"sentence1": "left", "sentence2": "right", "score": "gold"},
        },
        root,
    )
    assert isinstance(task, StsTask)
    spec = task.spec
    assert (spec.name, spec.type, spec.dataset.path, spec.dataset.split) == ("ours", "sts", "odd.jsonl", "dev")
    assert (spec.main_score, spec.languages, spec.license) == ("dot_pearson", ("deu", "eng"), "CC0-1.0")
    assert (spec.citation, spec.version) == ("us", 2)
    assert task.load().left == ("a",)
    with pytest.raises(ConfigError, match="A task needs 'data'"):
        bind({"type": "sts"}, root)
    with pytest.raises(UnknownNameError, match=r"Unknown task 'mine'.*'data: …'"):
        bind({"name": "mine", "type": "sts"}, root)


def test_a_catalogue_name_with_data_of_ones_own(root: Path) -> None:
    """``data`` makes it one's own task, whatever it is called."""
    task = bind({"name": "STS12", "data": "pairs.jsonl"}, root)
    assert isinstance(task, StsTask)
    assert (task.spec.name, task.path, task.spec.citation) == ("STS12", root / "pairs.jsonl", None)


def test_a_split_is_a_file_of_its_own(root: Path) -> None:
    """Of a catalogue task the file beside the known one; where there is none to be, or a name says otherwise, refused.

    The same pairs under the name of another split would be a result that is wrong.
    """
    dev = parse("STS12,split=dev", root, root)
    assert isinstance(dev, StsTask)
    assert (dev.path, dev.spec.dataset.split) == (root / "sts" / "STS12" / "dev.jsonl.gz", "dev")
    with pytest.raises(ConfigError, match="'demo-pairs' has one split, 'test', and not 'dev'"):
        parse("demo-pairs,split=dev", root)
    with pytest.raises(ConfigError, match=r"dev\.jsonl is not the split 'test'"):
        parse("sts:stsb/dev.jsonl,split=test", root)
    own = parse("sts:pairs.jsonl,split=dev", root)
    assert isinstance(own, StsTask)
    assert own.path == root / "pairs.jsonl"
    with pytest.raises(ConfigError, match="split: must be a plain name"):
        parse("golden/support,split=../qrels/test", root)


def test_a_name_that_holds_nul_is_refused(root: Path) -> None:
    """No system takes it as part of a path."""
    with pytest.raises(ConfigError, match="holds a NUL character"):
        parse("pairs\0.jsonl", root)


@pytest.mark.parametrize("name", ["", " "])
def test_empty_names_are_refused(root: Path, name: str) -> None:
    """They would head a row and name a folder."""
    with pytest.raises(ConfigError, match="name: must not be empty"):
        bind({"name": name, "data": "pairs.jsonl"}, root)
    with pytest.raises(ConfigError, match="'name' must be text, not None"):
        bind({"name": None, "data": "pairs.jsonl"}, root)


def test_two_tasks_of_one_name_are_refused(root: Path) -> None:
    """They would write to one folder of results; two splits of one task don't."""
    twice = [parse("sts:pairs.jsonl", root), parse("sts:odd.jsonl,name=pairs", root)]
    with pytest.raises(ConfigError) as caught:
        requests.refuse_same_names(twice)
    message = str(caught.value)
    assert message.startswith("Two tasks are called 'pairs' (pairs.jsonl and odd.jsonl).")
    assert ",name=" in message
    requests.refuse_same_names([parse("sts:pairs.jsonl", root), parse("sts:pairs.jsonl,split=dev", root)])


def test_systems_that_rank() -> None:
    """``bm25`` alone is one, a run file and a hybrid are by their backend, with options of the parts."""
    assert requests.parse_model("bm25") == ModelSpec(name="bm25", backend="bm25")
    assert requests.parse_model("bm25,k1=0.9,b=0.4") == ModelSpec(
        name="bm25", backend="bm25", args={"k1": 0.9, "b": 0.4}
    )
    assert requests.parse_model("ranking:runs/splade.trec") == ModelSpec(name="runs/splade.trec", backend="ranking")
    hybrid = requests.parse_model("hybrid:demo+bm25,method=weighted,weights=0.7,0.3,language=german")
    args = {"method": "weighted", "weights": "0.7,0.3", "language": "german"}
    assert hybrid == ModelSpec(name="demo+bm25", backend="hybrid", args=args)


def test_a_name_that_says_the_backend_needs_no_other_word() -> None:
    """``{name: bm25, args: …}`` of embeval.yaml is the same model as ``bm25,language=german``."""
    from_keys = requests.model_from({"name": "bm25", "args": {"language": "german"}}, where="model")
    assert from_keys == requests.parse_model("bm25,language=german")
    assert requests.model_from({"name": "bm25", "backend": "static"}, where="model").backend == "static"
