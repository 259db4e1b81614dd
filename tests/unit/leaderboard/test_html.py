"""The page of a board as text: what it is put together from. What it does is seen in tests/browser."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from embeval.core import border
from embeval.errors import MissingPackageError
from embeval.leaderboard.render import html as page
from embeval.leaderboard.snapshot import Cell, Snapshot
from tests.support import boards, shown
from tests.support.pages import with_texts

HOSTILE = '</script><script>alert(1)</script><!--"&@@DATA@@\u2028\u2029'


def unpacked(packed: dict[str, object]) -> Snapshot:
    """The board again, by the words of ``packed``."""
    columns, values = packed.pop("cells"), packed.pop("values")
    assert isinstance(columns, list)
    assert isinstance(values, list)
    models = packed["models"]
    assert isinstance(models, list)
    for row, model in enumerate(models):
        model["cells"] = [
            {"value": known[row]}
            | {
                name: value[row] if isinstance(value, list) else value
                for name, value in column.items()
                if name != "there"
            }
            if column["there"] is None or column["there"][row]
            else None
            for column, known in zip(columns, values, strict=True)
        ]
    return border.load(Snapshot, packed)


def test_nothing_is_lost_when_cells_are_packed() -> None:
    """Gaps, undefined values and marks among them."""
    made = boards.synthetic(4, 3, n_tested=2)
    changed = list(made.models)
    changed[1] = replace(changed[1], cells=(None, changed[1].cells[1], Cell(value=None, reason="one class only")))
    changed[2] = replace(changed[2], cells=tuple(each and replace(each, imported=True) for each in changed[2].cells))
    changed[3] = replace(changed[3], cells=(None, *changed[3].cells[1:]))
    made = replace(made, models=tuple(changed))
    packed = json.loads(json.dumps(page.packed(made)))
    assert packed["cells"][0]["there"] == [1, 0, 1, 0]
    assert packed["cells"][1]["there"] is None
    assert packed["cells"][1]["n_items"] == 500
    assert unpacked(packed) == made


def test_the_answer_stands_above_the_table() -> None:
    """Names in bold, and only shown whatever is in them."""
    made = boards.synthetic(4, 3, n_tested=2)
    made = replace(made, models=tuple(replace(model, label=f"{model.label}{HOSTILE}") for model in made.models))
    answer = page.html(made).split('<p id="answer">')[1].split("</p>")[0]
    assert answer.startswith("Of the 2 models that could be tested, <b><bdi>model-0000")
    assert set(re.findall(r"<[^>]*>", answer)) == {"<b>", "</b>", "<bdi>", "</bdi>"}


def test_no_text_ends_an_element_or_stands_for_a_part() -> None:
    """A hostile board makes a page with the very scripts of any other."""
    plain = boards.synthetic(3, 2, n_tested=2)
    made = page.html(with_texts(plain, lambda text: f"{text}{HOSTILE}", frozenset({"rank_by"})))
    assert "<script>alert" not in made
    assert made.count("<script") == page.html(plain).count("<script")
    data = re.search(r'id="data">(.*?)</script>', made, re.DOTALL)
    assert data is not None
    assert json.loads(data[1])["title"] == f"{plain.title}{HOSTILE}"


def test_scripts_run_by_their_hash() -> None:
    """Those of the policy are of the two that are started."""
    made = page.html(boards.synthetic(2, 1))
    found = re.search(r'Content-Security-Policy" content="(.*?)">', made)
    assert found is not None
    policy = found[1].replace("&#39;", "'")
    own = made.rpartition("<script>")[2].partition("</script>")[0]
    charts = made.partition('id="charts-library">')[2].partition("</script>")[0]
    for script in (own, charts):
        assert f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'" in policy
    assert "unsafe-inline" not in policy.partition("script-src")[2].partition(";")[0]
    others = [rule for rule in policy.split("; ") if not rule.startswith("script-src ")]
    assert others == [
        "default-src 'none'",
        "style-src 'unsafe-inline'",
        "img-src data: blob:",
        "base-uri 'none'",
        "form-action 'none'",
    ]


def test_no_name_stands_twice() -> None:
    """All scripts are one: a second function of a name would silently take the place of the first."""
    text = "\n".join((page.PAGE / name).read_text(encoding="utf-8") for name in page.SCRIPTS)
    names = re.findall(r"^(?:async )?(?:function|const|let|class) (\w+)", text, re.MULTILINE)
    assert [name for name, n in Counter(names).items() if n > 1] == []
    assert set(names) & {"valueOf", "toString", "name", "status", "event", "top", "parent", "length"} == set()


def test_every_script_and_style_is_in_the_page() -> None:
    """None lies in the folder without being used."""
    assert {each.name for each in Path(page.PAGE).iterdir()} == {*page.SCRIPTS, *page.STYLES}


def test_the_page_is_the_same_every_time() -> None:
    """To the byte."""
    assert page.html(boards.synthetic(5, 4, n_tested=3)) == page.html(boards.synthetic(5, 4, n_tested=3))


def test_a_library_that_is_missing_is_named() -> None:
    """With what it is for."""
    with pytest.raises(MissingPackageError, match=r"(?s)The page of a board.*no_such_library"):
        page.library("no_such_library", "library.js")


def test_thousands_of_failed_runs() -> None:
    """The first, and how many more there are."""
    text = page.html(replace(shown.small(), failures=tuple(f"run {number}" for number in range(3000))))
    assert text.count("Failed:</span>") == 50
    assert "<li>And 2950 more failed runs.</li>" in text
