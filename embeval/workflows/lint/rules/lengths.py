"""What a model's limit cuts off: documents, and relevant documents of which the telling part is lost."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from embeval.core.specs import Role
from embeval.data.lexical import content_words, words
from embeval.encoders import loading
from embeval.encoders.encoder import BatchedEncoder
from embeval.errors import ConfigError
from embeval.workflows.lint.findings import Check, Finding, Severity
from embeval.workflows.lint.gold import GoldSet

WORD_ENDS = re.compile(r"\S+")
TRUNCATED = Check(
    "truncated",
    Severity.NOTE,
    "The model does not see the end of some texts.",
    "Cut documents into passages, or take a model that reads more.",
)
LOST = Check(
    "truncated-positive",
    Severity.WARNING,
    "What a relevant document shares with its query lies behind the model's limit only.",
    "Cut documents into passages, or take a model that reads more.",
)


def _rule(gold: GoldSet) -> Iterator[Finding]:
    if gold.options.model is None:
        return
    encoder = loading.load(loading.resolve(gold.options.model), gold.options.runtime)
    if not isinstance(encoder, BatchedEncoder) or encoder.info.max_seq_length is None:
        return
    limit = encoder.info.max_seq_length
    texts = {doc.id: doc.text for doc in gold.by_doc.values() if doc.text}
    cut = _cut(encoder, texts, Role.DOCUMENT)
    for file, role, n, of in (
        (gold.corpus_file, "documents", len(cut), len(texts)),
        (gold.queries_file, "queries", *_queries(encoder, gold)),
    ):
        if n:
            text = f"{n} of {of} {role} are longer than the {limit} tokens of {gold.options.model.name}."
            yield TRUNCATED.at(text, file=file)
    concerned = {row.document for _, row in gold.positives} & cut
    seen = _seen(encoder, {doc: texts[doc] for doc in sorted(concerned)})
    for split, row in gold.positives:
        if row.document not in seen:
            continue
        wanted = content_words(gold.by_query[row.query].text or "")
        shared = wanted & frozenset(words(texts[row.document]))
        if shared and not wanted & frozenset(words(seen[row.document])):
            text = f"query {row.query!r}, document {row.document!r}: {', '.join(sorted(shared)[:5])}."
            yield LOST.at(text, file=gold.qrels_files[split], line=row.line, ids=[row.query, row.document])


def _queries(encoder: BatchedEncoder[Any], gold: GoldSet) -> tuple[int, int]:
    texts = {query.id: query.text for query in gold.by_query.values() if query.text}
    return len(_cut(encoder, texts, Role.QUERY)), len(texts)


def _cut(encoder: BatchedEncoder[Any], texts: Mapping[str, str], role: Role) -> set[str]:
    """Ids of texts that lose tokens. Raises ``ConfigError`` for a model that doesn't tell."""
    lost = _lost(encoder, list(texts.values()), role)
    return {name for name, n in zip(texts, lost, strict=True) if n}


def _lost(encoder: BatchedEncoder[Any], texts: Sequence[str], role: Role) -> list[int]:
    lost = encoder.backend.prepare(texts, prompt=encoder.prompt(role), role=role).lost
    if lost is None:
        raise ConfigError(f"{encoder.spec.label} doesn't tell what it cuts off, so --model can't be checked with it.")
    return [int(n) for n in lost]


def _seen(encoder: BatchedEncoder[Any], texts: Mapping[str, str]) -> dict[str, str]:
    """The longest beginning of each text, in whole words, of which nothing is cut off; found by bisection."""
    ends = {name: [0, *(word.end() for word in WORD_ENDS.finditer(text))] for name, text in texts.items()}
    low = dict.fromkeys(texts, 0)
    high = {name: len(places) - 1 for name, places in ends.items()}
    while open_ := [name for name in texts if high[name] - low[name] > 1]:
        middle = {name: (low[name] + high[name]) // 2 for name in open_}
        lost = _lost(encoder, [texts[name][: ends[name][middle[name]]] for name in open_], Role.DOCUMENT)
        for name, n in zip(open_, lost, strict=True):
            (high if n else low)[name] = middle[name]
    return {name: text[: ends[name][low[name]]] for name, text in texts.items()}


RULE = _rule
