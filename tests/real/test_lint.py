"""Lint on published sets: what they are known for, and no error."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path

import pytest

from embeval.workflows.lint.findings import LintOptions
from embeval.workflows.lint.run import lint

pytestmark = pytest.mark.real

UNJUDGED = {"SciFact": 0, "Cranfield": 0, "CISI": 36, "Vaswani_NPL": 0, "ADI": 0}
"""Set -> queries without judgments, as the data folder's README counts them."""


@pytest.mark.parametrize("name", UNJUDGED)
def test_published_sets(real_data: Path, name: str) -> None:
    """No errors; empty and same texts as counted here from the corpus file alone."""
    folder = real_data / "retrieval" / name
    report = lint(folder, LintOptions())
    assert report.passes()
    codes = Counter(each.check.code for each in report.findings)
    assert codes["unjudged-query"] == UNJUDGED[name]
    with gzip.open(folder / "corpus.jsonl.gz", "rt", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    texts = Counter(" ".join(f"{row.get('title') or ''} {row['text']}".split()) for row in rows)
    assert codes["empty-document"] == texts.pop("", 0)
    assert codes["same-text"] == sum(n > 1 for n in texts.values())
    assert report.ceilings["test"]["ndcg_at_10"].reachable == 1.0
