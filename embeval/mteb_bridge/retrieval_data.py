"""The data of a retrieval task of mteb as ``RetrievalData``: texts put together as mteb's data loaders do it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from embeval.core.ir import Qrels
from embeval.data.beir import RetrievalData
from embeval.mteb_bridge import door
from embeval.mteb_bridge.categories._category import Setting
from embeval.retrieval.first_stage import Texts

Candidates = Mapping[str, Sequence[str]]
"""Query id -> ids of the documents to be ranked for it."""


def documents(corpus: Any) -> Texts:
    """The documents of a ``datasets.Dataset``, title and text joined by a space; of several with one id the first.

    Source: mteb 2.26 ``_corpus_to_dict``.
    """
    texts = list(corpus["text"][:])
    if "title" in corpus.column_names:
        titles = corpus["title"][:]
        texts = [f"{title} {text}" if title else text for title, text in zip(titles, texts, strict=True)]
    return _unique(corpus["id"][:], [text.strip() for text in texts])


def queries(rows: Any) -> Texts:
    """The queries of a ``datasets.Dataset``, followed by their instruction where they have one; talks as one text.

    Source: mteb 2.26 ``_retrieval_texts``.
    """
    texts = list(rows["text"][:])
    if texts and isinstance(texts[0], list):
        instructions = rows["instruction"][:] if "instruction" in rows.column_names else [None] * len(texts)
        return _unique(rows["id"][:], [_talk(*pair) for pair in zip(texts, instructions, strict=True)])
    if "instruction" in rows.column_names:
        pairs = zip(texts, rows["instruction"][:], strict=True)
        texts = [text if instruction is None else f"{text} {instruction}" for text, instruction in pairs]
    return _unique(rows["id"][:], texts)


def _talk(turns: Any, instruction: str | None) -> str:
    from mteb._create_dataloaders import _convert_conv_history_to_query

    row = {"text": turns} if instruction is None else {"text": turns, "instruction": instruction}
    with door.quiet():
        return str(_convert_conv_history_to_query(row)["text"])


def _unique(ids: Sequence[Any], texts: Sequence[str]) -> Texts:
    first: dict[str, str] = {}
    for name, text in zip(ids, texts, strict=True):
        first.setdefault(str(name), text)
    return Texts(tuple(first), tuple(first.values()))


def rows_of(setting: Setting, subset: str) -> Any:
    """What mteb's task class holds of a sub-set: ``corpus``, ``queries``, ``relevant_docs`` and ``top_ranked``."""
    setting.task.convert_v1_dataset_format_to_v2(None)  # does nothing where it is in that format already
    return setting.rows(subset)


def judgments(rows: Any) -> Qrels:
    """The judgments of the queries that there are, in the order of the queries."""
    relevant = rows["relevant_docs"]
    return Qrels(
        {
            str(query): {str(doc): int(grade) for doc, grade in relevant[query].items()}
            for query in dict.fromkeys(rows["queries"]["id"][:])
            if relevant.get(query)
        }
    )


def candidates(rows: Any) -> Candidates | None:
    """The documents to be ranked for each query; None where that is the whole corpus."""
    given = rows["top_ranked"]
    return None if given is None else {str(query): [str(doc) for doc in docs] for query, docs in given.items()}


def read(setting: Setting, subset: str) -> RetrievalData:
    """Corpus, queries and judgments of a sub-set."""
    rows = rows_of(setting, subset)
    corpus, asked, qrels = documents(rows["corpus"]), queries(rows["queries"]), judgments(rows)
    known = set(corpus.ids)
    missing = {
        query: tuple(doc for doc, grade in grades.items() if grade > 0 and doc not in known)
        for query, grades in qrels.judgments.items()
    }
    return RetrievalData(
        doc_ids=corpus.ids,
        doc_texts=corpus.texts,
        queries=dict(zip(asked.ids, asked.texts, strict=True)),
        qrels=qrels,
        unreachable={query: docs for query, docs in missing.items() if docs},
    )
