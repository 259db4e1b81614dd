"""``embeval data``: golden sets, made, checked and split, and mirrors of mteb's data."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from embeval.cli import _mirror, _state
from embeval.cli._complete import complete_model
from embeval.cli._state import DebugOption, DeviceOption, JsonOption, QuietOption, ThreadsOption
from embeval.core.paths import expanded
from embeval.errors import ConfigError, ExitCode, UsageError

if TYPE_CHECKING:
    from embeval.data.golden import GoldenSet

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    help="Makes golden sets from what you have, checks them, and splits them; keeps mirrors of mteb's data.",
)
app.command()(_mirror.pull)
app.command()(_mirror.mirror)

FolderArgument = Annotated[str, typer.Argument(help="A BEIR folder: corpus.jsonl, queries.jsonl, qrels/.")]
MaxShownOption = Annotated[
    int, typer.Option("--max-shown", envvar="EMBEVAL_MAX_SHOWN", help="Places listed of each kind of finding.", min=0)
]

TABLE = {"columns", "mapping"}
DOCUMENTS = {*TABLE, *"questions chunker chunk_size overlap tokenizer judge encoding skip_unreadable split".split()}
OPTIONS: dict[str, set[str]] = {
    "a BEIR folder": {"split", "unreachable"},
    "a TREC collection": {*TABLE, *"documents topics qrels topic_fields encoding split unreachable".split()},
    "a file of pairs": {*TABLE, "split"},
    "a data set of the hub": {*TABLE, "split", "unreachable"},
    "a folder of documents": DOCUMENTS,
    "a task of mteb": {"columns", "anyway"},
}
"""What a golden set is made from -> the options that go with it, beside those that always do."""


@app.command("import")
def import_(
    sources: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="SOURCE",
            help="A BEIR folder, a file of question-document pairs (.jsonl .csv .tsv .parquet), a folder of documents "
            "(.txt .md .html .pdf .docx), or hf:NAME[,config=…,split=…,revision=…]. With --as-mteb, files and folders "
            "named by split (test.jsonl, de/test.csv) or [SUBSET/]SPLIT=FILE.",
        ),
    ] = None,
    to: Annotated[str | None, typer.Option("--to", envvar="EMBEVAL_IMPORT_TO", help="Folder to write. Needed.")] = None,
    columns: Annotated[
        list[str] | None,
        typer.Option(
            "--columns",
            envvar="EMBEVAL_IMPORT_COLUMNS",
            help="Which column plays which part: question=frage,document=antwort. Repeatable.",
        ),
    ] = None,
    mapping: Annotated[
        str | None,
        typer.Option("--mapping", envvar="EMBEVAL_IMPORT_MAPPING", help="The same as a YAML file: question: frage."),
    ] = None,
    split: Annotated[
        str | None,
        typer.Option(
            "--split",
            envvar="EMBEVAL_IMPORT_SPLIT",
            help="Name of the split.  (default: test; of a BEIR folder: all that it has)",
        ),
    ] = None,
    documents: Annotated[
        str | None,
        typer.Option(
            "--documents",
            envvar="EMBEVAL_IMPORT_DOCUMENTS",
            help="TREC: documents, <DOC> or .jsonl .csv .tsv .parquet.",
        ),
    ] = None,
    topics: Annotated[
        str | None,
        typer.Option(
            "--topics", envvar="EMBEVAL_IMPORT_TOPICS", help="TREC: topics, <top>, lines of id and text, or a table."
        ),
    ] = None,
    qrels: Annotated[
        str | None,
        typer.Option(
            "--qrels", envvar="EMBEVAL_IMPORT_QRELS", help="TREC: judgments in four columns, topic 0 document grade."
        ),
    ] = None,
    topic_fields: Annotated[
        str | None,
        typer.Option(
            "--topic-fields",
            envvar="EMBEVAL_IMPORT_TOPIC_FIELDS",
            help="TREC: what of a <top> is the query: title,desc,narr.  (default: title)",
        ),
    ] = None,
    unreachable: Annotated[
        str | None,
        typer.Option(
            "--unreachable",
            envvar="EMBEVAL_IMPORT_UNREACHABLE",
            help="Relevant documents that the corpus lacks: error or keep.  (default: error)",
        ),
    ] = None,
    questions: Annotated[
        str | None,
        typer.Option(
            "--questions",
            envvar="EMBEVAL_IMPORT_QUESTIONS",
            help="Documents: questions with their document, quote or chunk (.jsonl .csv .tsv .parquet).",
        ),
    ] = None,
    chunker: Annotated[
        str | None,
        typer.Option(
            "--chunker",
            envvar="EMBEVAL_IMPORT_CHUNKER",
            help="Documents: how they are cut: none, tokens, heading or sentence.  (default: none)",
        ),
    ] = None,
    chunk_size: Annotated[
        int | None,
        typer.Option(
            "--chunk-size",
            envvar="EMBEVAL_IMPORT_CHUNK_SIZE",
            help="Words of a passage, or tokens with --tokenizer.  (default: 200)",
            min=1,
        ),
    ] = None,
    overlap: Annotated[
        int | None,
        typer.Option(
            "--overlap",
            envvar="EMBEVAL_IMPORT_OVERLAP",
            help="How many of them the next passage has again.  (default: 0)",
            min=0,
        ),
    ] = None,
    tokenizer: Annotated[
        str | None,
        typer.Option(
            "--tokenizer", envvar="EMBEVAL_IMPORT_TOKENIZER", help="Counts the tokens of this model; without it, words."
        ),
    ] = None,
    judge: Annotated[
        str | None,
        typer.Option(
            "--judge",
            envvar="EMBEVAL_IMPORT_JUDGE",
            help="Relevant passages: document (all of it), chunk, quote, or auto, what the question names most "
            "closely.  (default: auto)",
        ),
    ] = None,
    encoding: Annotated[
        str | None,
        typer.Option(
            "--encoding", envvar="EMBEVAL_IMPORT_ENCODING", help="Of text files that are not UTF-8: latin-1, cp1252."
        ),
    ] = None,
    skip_unreadable: Annotated[
        bool,
        typer.Option(
            "--skip-unreadable",
            envvar="EMBEVAL_IMPORT_SKIP_UNREADABLE",
            help="Leaves out documents that can't be read, and lists them.",
        ),
    ] = False,
    limit: Annotated[
        int | None,
        typer.Option(
            "--limit",
            envvar="EMBEVAL_IMPORT_LIMIT",
            help="Keeps the first so many questions; all documents stay.",
            min=1,
        ),
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", envvar="EMBEVAL_IMPORT_OVERWRITE", help="Replaces an earlier golden set.")
    ] = False,
    as_mteb: Annotated[
        str | None,
        typer.Option(
            "--as-mteb",
            envvar="EMBEVAL_IMPORT_AS_MTEB",
            help="Lays the files out as the data of this task of mteb, in the mirror --to.",
        ),
    ] = None,
    anyway: Annotated[
        bool,
        typer.Option(
            "--anyway",
            envvar="EMBEVAL_IMPORT_ANYWAY",
            help="With --as-mteb: also where there are not as many rows as mteb says.",
        ),
    ] = False,
    json: JsonOption = False,
    quiet: QuietOption = False,
    debug: DebugOption = False,
) -> None:
    """Writes a golden set: corpus.jsonl, queries.jsonl, qrels and a datasheet of where it came from.

    It is written whole or not at all. Examples: embeval data import faq.csv --to golden/faq --columns question=frage
    ·  embeval data import docs --questions questions.csv --chunker heading --to golden/docs
    ·  embeval data import test.csv --as-mteb STS12 --to mirror
    """
    from embeval.workflows import golden_sets

    if to is None:
        raise UsageError("Say where to write it: --to FOLDER.")
    given: dict[str, Any] = {
        "columns": columns,
        "mapping": mapping,
        "split": split,
        "documents": documents,
        "topics": topics,
        "qrels": qrels,
        "topic_fields": topic_fields,
        "unreachable": unreachable,
        "questions": questions,
        "chunker": chunker,
        "chunk_size": chunk_size,
        "overlap": overlap,
        "tokenizer": tokenizer,
        "judge": judge,
        "encoding": encoding,
        "skip_unreadable": skip_unreadable or None,
        "anyway": anyway or None,
    }
    if as_mteb is not None:
        _refuse_options("a task of mteb", given)
        if limit is not None:
            raise UsageError("--limit doesn't go with --as-mteb.")
        _import_as_mteb(as_mteb, sources or [], to, given, overwrite=overwrite, json=json)
        return
    if len(sources or ()) > 1:
        raise UsageError("Several files or folders go with --as-mteb only. Import one after the other.")
    source = sources[0] if sources else None
    kind = _kind(source, given)
    _refuse_options(kind, given)
    _refuse_name(split or "test", "--split")
    golden, read = _read(kind, source, given)
    folder = expanded(to)
    golden = golden_sets.store(golden, folder, sources=read, limit=limit, overwrite=overwrite)
    if json:
        _state.out_json({"folder": str(folder), **golden.datasheet()})
        return
    for text in golden.notes:
        _state.note(f"Note: {text}")
    _show(golden, folder)


def _import_as_mteb(
    task: str, sources: list[str], to: str, given: dict[str, Any], *, overwrite: bool, json: bool
) -> None:  # fmt: skip
    from embeval.mteb_bridge import importing

    if not sources:
        raise UsageError(f"Say which files: embeval data import test.jsonl --as-mteb {task} --to {to}.")
    renamed = {}
    for word in (each for words in given["columns"] or () for each in words.split(",")):
        name, equals, column = word.partition("=")
        if not equals or not name or not column:
            raise ConfigError(f"--columns takes name=column, such as sentence1=text_a, not {word!r}.")
        renamed[name] = column
    done = importing.import_as(
        task.removeprefix("mteb:"),
        sources,
        expanded(to),
        columns=renamed,
        anyway=bool(given["anyway"]),
        overwrite=overwrite,
    )
    if json:
        from dataclasses import asdict

        _state.out_json({**asdict(done), "folder": str(done.folder)})
        return
    _mirror.tell(done, to)


@app.command()
def split(
    folder: Annotated[str, typer.Argument(help="A golden set.")],
    into: Annotated[
        str | None,
        typer.Option("--into", envvar="EMBEVAL_SPLIT_INTO", help="Parts and their shares: dev=0.5,test=0.5. Needed."),
    ] = None,
    source: Annotated[
        str, typer.Option("--from", envvar="EMBEVAL_SPLIT_FROM", help="The split that is cut in parts.")
    ] = "test",
    seed: Annotated[int, typer.Option("--seed", envvar="EMBEVAL_SPLIT_SEED", help="Another seed, other parts.")] = 0,
    by: Annotated[
        list[str] | None,
        typer.Option(
            "--by", envvar="EMBEVAL_SPLIT_BY", help="Shares out the queries of each value of this label. Repeatable."
        ),
    ] = None,
    overwrite: Annotated[
        bool,
        typer.Option(
            "--overwrite",
            envvar="EMBEVAL_SPLIT_OVERWRITE",
            help="Replaces splits that are there; the one that is cut is kept as NAME-whole.",
        ),
    ] = False,
    json: JsonOption = False,
    quiet: QuietOption = False,
    debug: DebugOption = False,
) -> None:
    """Cuts the queries of a split in parts, such as one to develop on and one to test with.

    Queries that are nearly the same stay together. The parts hang on the
    queries and the seed alone, not on the order of lines.

    Example: embeval data split golden/faq --into dev=0.3,final=0.7 --by kind
    """
    from dataclasses import asdict

    from embeval.workflows import golden_sets

    if into is None:
        raise UsageError("Say which parts: --into dev=0.5,test=0.5.")
    _refuse_name(source, "--from")
    labels = [name.strip() for word in by or () for name in word.split(",") if name.strip()]
    report = golden_sets.split(
        expanded(folder), _shares(into), source=source, seed=seed, by=labels, overwrite=overwrite
    )
    if json:
        _state.out_json({"folder": str(expanded(folder)), "seed": seed, "by": labels, **asdict(report)})
        return
    from embeval.cli import _tables

    numbers = ["Share", "Queries", "Unanswerable", "Judgments"]
    rows = [
        [part.name, f"{part.share:g}", f"{part.queries:,}", f"{part.unanswerable:,}", f"{part.judgments:,}"]
        for part in report.parts
    ]
    _state.out(_tables.fitting(["Split", *numbers], rows, _state.console(), right=numbers, spare=()))
    if report.kept_as is not None:
        _state.note(f"What {report.source} was before is kept as {report.kept_as}.")
    n_queries = sum(part.queries + part.unanswerable for part in report.parts)
    if report.n_groups < n_queries:
        _state.note(
            f"{n_queries:,} queries are {report.n_groups:,} groups of nearly the same ones; the largest has "
            f"{report.largest_group:,}."
        )


@app.command()
def lint(
    folder: FolderArgument,
    split: Annotated[str, typer.Option(envvar="EMBEVAL_SPLIT", help="The split to look at, or 'all'.")] = "test",
    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            "-m",
            envvar="EMBEVAL_MODEL",
            help="Also says what this model's limit cuts off.",
            autocompletion=complete_model,
        ),
    ] = None,
    public: Annotated[
        bool,
        typer.Option(
            "--public",
            envvar="EMBEVAL_PUBLIC",
            help="A published set: what isn't in the corpus is a warning, with the ceiling that it sets.",
        ),
    ] = False,
    strict: Annotated[
        bool, typer.Option("--strict", envvar="EMBEVAL_STRICT", help="Exits with 3 on warnings too.")
    ] = False,
    fix: Annotated[
        bool,
        typer.Option("--fix", envvar="EMBEVAL_FIX", help="First mends what can be mended without losing anything."),
    ] = False,
    merge_duplicates: Annotated[
        bool,
        typer.Option(
            "--merge-duplicates",
            envvar="EMBEVAL_MERGE_DUPLICATES",
            help="With --fix: gives documents of the same text the same judgments.",
        ),
    ] = False,
    backup: Annotated[
        bool,
        typer.Option("--backup/--no-backup", envvar="EMBEVAL_BACKUP", help="Keeps mended files as NAME.orig."),
    ] = True,
    max_shown: MaxShownOption = 5,
    device: DeviceOption = None,
    threads: ThreadsOption = None,
    json: JsonOption = False,
    quiet: QuietOption = False,
    debug: DebugOption = False,
) -> None:
    """Checks a golden set before anything is encoded: every problem with its place, its effect and what to do.

    Exits with 3 where there are errors.

    Examples: embeval data lint my-set  ·  embeval data lint my-set --fix  ·  embeval data lint my-set -m demo --strict
    """
    if merge_duplicates and not fix:
        raise UsageError("--merge-duplicates changes files, so it needs --fix.")
    from embeval.workflows.lint import fixing
    from embeval.workflows.lint.findings import LintOptions
    from embeval.workflows.lint.run import lint as check
    from embeval.workflows.requests import parse_model

    options = LintOptions(
        split=split,
        public=public,
        model=parse_model(model) if model is not None else None,
        runtime=_state.runtime(device=device, num_threads=threads),
    )
    path = expanded(folder)
    changes = fixing.fix(path, split, merge_duplicates=merge_duplicates, backup=backup) if fix else []
    report = check(path, options, _state.progress())
    passes = report.passes(strict=strict)
    if json:
        value = report.to_json()
        value["summary"]["passes"] = passes
        _state.out_json({**value, "changes": [change._asdict() for change in changes]} if fix else value)
    else:
        from embeval.cli import _findings

        for change in changes:
            _state.out_text(f"{_findings.place(change.file, change.line)}: {change.done}\n")
        if fix and not changes:
            _state.note("There was nothing to mend.")
        _findings.report(report, max_shown)
    if not passes:
        raise typer.Exit(ExitCode.CANNOT_EVALUATE)


@app.command()
def overlap(
    folder: FolderArgument,
    training: Annotated[
        list[str],
        typer.Option(
            "--training",
            envvar="EMBEVAL_TRAINING",
            help="A file or folder of training texts: txt, jsonl, csv, tsv, parquet, each also with .gz. Repeatable.",
        ),
    ],
    texts: Annotated[
        list[str] | None,
        typer.Option(
            envvar="EMBEVAL_TEXTS",
            help="queries, positives, documents or all. Repeatable.  (default: queries and positives)",
        ),
    ] = None,
    split: Annotated[
        str, typer.Option(envvar="EMBEVAL_SPLIT", help="The split whose relevant documents are the positives.")
    ] = "test",
    column: Annotated[
        list[str] | None,
        typer.Option(envvar="EMBEVAL_COLUMN", help="A column of the corpus. Repeatable.  (default: every text)"),
    ] = None,
    ngram: Annotated[int, typer.Option(envvar="EMBEVAL_NGRAM", help="Words in a row that are looked for.")] = 13,
    threshold: Annotated[
        float,
        typer.Option(
            envvar="EMBEVAL_THRESHOLD",
            help="Share of its n-grams, or Jaccard index of its shingles, from which a text is contaminated.",
        ),
    ] = 0.8,
    fail_over: Annotated[
        float | None,
        typer.Option(
            "--fail-over",
            envvar="EMBEVAL_FAIL_OVER",
            help="Exits with 1 where a greater share of the queries, positives or documents is contaminated.",
            min=0.0,
            max=1.0,
        ),
    ] = None,
    max_shown: MaxShownOption = 20,
    json: JsonOption = False,
    quiet: QuietOption = False,
    debug: DebugOption = False,
) -> None:
    """Tells which texts of a golden set stand in a training corpus: as they are, in pieces, or nearly.

    Example: embeval data overlap my-set --training corpus/ --texts all --fail-over 0.01
    """
    from embeval.workflows import overlap as workflow

    roles = tuple(dict.fromkeys(role for each in texts or ("queries", "positives") for role in _roles(each)))
    options = workflow.OverlapOptions(
        texts=roles, split=split, ngram=ngram, threshold=threshold, columns=tuple(column or ())
    )
    corpora = [expanded(each) for each in training]
    found = workflow.overlap(expanded(folder), corpora, options, _state.progress())
    if json:
        _state.out_json(found.to_json())
    else:
        from embeval.cli import _findings

        _findings.overlap(found, max_shown)
    if fail_over is not None and found.worst > fail_over:
        _state.note(f"{found.worst:.2%} are contaminated, which is over the {fail_over:.2%} of --fail-over.")
        raise typer.Exit(ExitCode.OVER_BOUND)


def _roles(given: str) -> tuple[str, ...]:
    from embeval.workflows.overlap import ROLES

    if given == "all":
        return ("queries", "documents")
    if given not in ROLES:
        raise UsageError(f"--texts must be {', '.join(ROLES)} or all, not {given!r}.")
    return (given,)


def _kind(source: str | None, given: dict[str, Any]) -> str:
    """What the golden set is to be made from: a key of ``OPTIONS``. Raises ``UsageError``."""
    from embeval.data import files
    from embeval.data.beir import is_beir

    trec = [name for name in ("documents", "topics", "qrels") if given[name] is not None]
    if trec:
        if missing := [name for name in ("documents", "topics", "qrels") if name not in trec]:
            raise UsageError(f"A TREC collection also needs --{missing[0]}.")
        if source is not None:
            raise UsageError(f"Either {source!r} or --documents, --topics and --qrels, not both.")
        return "a TREC collection"
    if source is None:
        raise UsageError("Say what to import: a folder, a file or hf:NAME.\nSee 'embeval data import --help'.")
    if source.startswith("hf:"):
        return "a data set of the hub"
    path = expanded(source)
    if path.is_dir():
        return "a BEIR folder" if is_beir(path) else "a folder of documents"
    if path.exists():  # else its absence is what is wrong, and not its ending
        files.kind(path)
    return "a file of pairs"


def _refuse_options(kind: str, given: dict[str, Any]) -> None:
    for name, value in given.items():
        if value is not None and value != [] and name not in OPTIONS[kind]:
            fitting = " or ".join(each for each, names in OPTIONS.items() if name in names)
            raise UsageError(f"--{name.replace('_', '-')} goes with {fitting}, not with {kind}.")


def _read(kind: str, source: str | None, given: dict[str, Any]) -> tuple[GoldenSet, list[Path]]:
    """(the golden set, the files and folders that it was read from)."""
    from embeval.data.beir import Unreachable

    split = given["split"] or "test"
    unreachable = Unreachable(_choice("--unreachable", given["unreachable"] or "error", tuple(Unreachable)))
    if kind == "a TREC collection":
        return _read_trec(given, split, unreachable)
    assert source is not None
    path = expanded(source)
    if kind == "a BEIR folder":
        from embeval.data import from_beir

        return from_beir.read(path, split=given["split"], unreachable=unreachable), [path]
    from embeval.data import from_pairs

    if kind == "a data set of the hub":
        from embeval.data import from_hub

        columns = _columns(given, from_pairs.PARTS)
        name, _ = from_hub.parse(source)
        golden = from_hub.read(source, given=columns, split=split, unreachable=unreachable)
        return golden, [folder] if (folder := expanded(name)).is_dir() else []
    if kind == "a file of pairs":
        from embeval.data import files
        from embeval.data.golden import read_input

        columns = _columns(given, from_pairs.PARTS)
        golden = from_pairs.read(list(files.rows(path)), path, given=columns, split=split)
        golden.inputs.append(read_input(path))
        return golden, [path]
    return _read_documents(path, given, split)


def _read_trec(given: dict[str, Any], split: str, unreachable: Any) -> tuple[GoldenSet, list[Path]]:
    from embeval.data import from_trec

    words = [word.strip() for word in (given["topic_fields"] or "title").split(",")]
    sources = [expanded(given[name]) for name in ("documents", "topics", "qrels")]
    golden = from_trec.read(
        *sources,
        given=_columns(given, from_trec.PARTS),
        topic_fields=tuple(_choice("--topic-fields", word, from_trec.TOPIC_FIELDS) for word in words),
        split=split,
        encoding=_encoding(given["encoding"]),
        unreachable=unreachable,
    )
    return golden, sources


def _read_documents(path: Path, given: dict[str, Any], split: str) -> tuple[GoldenSet, list[Path]]:
    from embeval.data import chunking, from_documents
    from embeval.workflows import golden_sets

    chunker = _choice("--chunker", given["chunker"] or "none", chunking.CHUNKERS)
    cutting_options = [name for name in ("chunk_size", "overlap", "tokenizer") if given[name] is not None]
    if chunker == "none" and cutting_options:
        raise UsageError(
            f"--{cutting_options[0].replace('_', '-')} needs a --chunker: tokens, heading or sentence, "
            "since without one documents stay whole."
        )
    if given["questions"] is None and given["judge"] is not None:
        raise UsageError("--judge needs --questions.")
    size, overlap = given["chunk_size"] or 200, given["overlap"] or 0
    if overlap >= size:
        raise UsageError(f"--overlap must be smaller than --chunk-size, not {overlap} of {size}.")
    units, tokenizer = (
        golden_sets.token_units(given["tokenizer"]) if given["tokenizer"] is not None else (chunking.words, None)
    )
    questions = expanded(given["questions"]) if given["questions"] is not None else None
    golden = from_documents.read(
        path,
        questions,
        cutting=from_documents.Cutting(chunker, size, overlap, units, tokenizer),
        judge=_choice("--judge", given["judge"] or "auto", from_documents.JUDGES),
        given=_columns(given, from_documents.PARTS),
        split=split,
        encoding=_encoding(given["encoding"]),
        skip_unreadable=bool(given["skip_unreadable"]),
        progress=_state.progress(),
    )
    return golden, [path, *([questions] if questions is not None else [])]


def _columns(given: dict[str, Any], parts: Any) -> dict[str, tuple[str, ...]]:
    from embeval.data import columns

    mapping = expanded(given["mapping"]) if given["mapping"] is not None else None
    return columns.parse(given["columns"] or [], parts, mapping)


def _choice(option: str, value: str, choices: tuple[Any, ...]) -> Any:
    if value not in choices:
        raise ConfigError(f"{option} must be {', '.join(map(str, choices))}, not {value!r}.")
    return value


def _encoding(name: str | None) -> str | None:
    import codecs

    if name is None:
        return None
    try:
        "a".encode(name)
        return codecs.lookup(name).name
    except (LookupError, ValueError):
        raise ConfigError(f"--encoding: there is no encoding {name!r}. Usual ones: utf-16, latin-1, cp1252.") from None


def _refuse_name(name: str, option: str) -> None:
    if not name or name.startswith((".", "-")) or not all(each.isalnum() or each in "._-" for each in name):
        raise ConfigError(f"{option}: {name!r} must be a plain name of letters, digits, '.', '_' and '-'.")


def _shares(words: str) -> dict[str, float]:
    shares: dict[str, float] = {}
    for word in words.split(","):
        name, equals, text = word.partition("=")
        name = name.strip()
        try:
            share = float(text)
        except ValueError:
            share = 0.0
        if not equals or not 0 < share < 1:
            raise ConfigError(f"--into takes part=share with a share between 0 and 1, not {word!r}.")
        _refuse_name(name, "--into")
        if name in shares:
            raise ConfigError(f"--into names {name!r} twice.")
        shares[name] = share
    return shares


def _show(golden: GoldenSet, folder: Path) -> None:
    counts = golden.counts
    if golden.queries is None:
        _state.out_text(f"{folder}: {counts['documents']:,} documents, no questions.\n")
        _state.note(
            "Next: write questions with their document, quote or chunk into a file, and import again with "
            "--questions FILE --overwrite."
        )
        return
    unanswerable = f" ({counts['unanswerable']:,} unanswerable)" if counts["unanswerable"] else ""
    _state.out_text(
        f"{folder}: {counts['documents']:,} documents, {counts['queries']:,} queries{unanswerable}, "
        f"{counts['judgments']:,} judgments ({counts['relevant']:,} relevant) in {', '.join(sorted(golden.qrels))}.\n"
    )
    named = "" if "test" in golden.qrels else f",split={min(golden.qrels)}"
    _state.note(f"Evaluate on it: embeval run -m MODEL -t retrieval:{folder}{named}")
