"""The text of documents, and what is said of those that have none."""

from __future__ import annotations

from pathlib import Path

import pytest

from embeval.data import readers
from embeval.data.readers import read
from embeval.errors import DataError
from tests.support.documents import docx, encrypted_pdf, pdf

HTML = """<!doctype html><html><head><meta charset="utf-8"><title>The
 Title</title><style>p {}</style></head><body><!-- no --><h1>Head &amp; all</h1>loose
<p>Hello <b>bold</b>, wor<i>ld</i><br>next   line</p><script>var x = "no";</script><noscript>no</noscript>
<ul><li>one<li>two <ul><li>inner</ul> after</ul><pre>a
  b</pre><h2>Über</h2><table><tr><td>c1</td><td>c2</td></tr></table><template>no</template></body></html>"""


def test_text_and_markdown(tmp_path: Path) -> None:
    """A byte-order mark goes, line ends become line feeds, all else stays."""
    (tmp_path / "a.txt").write_bytes(b"\xef\xbb\xbf a\r\nb\rc\xc3\xa9 \n")
    assert read(tmp_path / "a.txt").text == " a\nb\ncé \n"
    (tmp_path / "a.MD").write_bytes(b"intro\r\n# head\r\ntext")
    assert read(tmp_path / "a.MD") == readers.Document("intro\n# head\ntext", headings=(6,))


def test_encodings(tmp_path: Path) -> None:
    """UTF-8 or what was said; never a guess. The byte is named: 0xfc is the second one."""
    (tmp_path / "a.txt").write_bytes("für".encode("cp1252"))
    assert read(tmp_path / "a.txt", "cp1252").text == "für"
    with pytest.raises(DataError, match=r"a\.txt: not UTF-8 text \(byte 0xfc at 1\)\. Say what it is with --encoding"):
        read(tmp_path / "a.txt")
    (tmp_path / "b.txt").write_bytes("für".encode("utf-16"))
    with pytest.raises(DataError, match="It looks like utf-16"):
        read(tmp_path / "b.txt")
    assert read(tmp_path / "b.txt", "utf-16").text == "für"
    (tmp_path / "c.txt").write_bytes(b"a\0b")
    with pytest.raises(DataError, match=r"NUL characters \(at 1\)"):
        read(tmp_path / "c.txt")


def test_html(tmp_path: Path) -> None:
    """What a browser shows, a line for each block; the title apart; where headings begin."""
    (tmp_path / "a.html").write_text(HTML, encoding="utf-8")
    found = read(tmp_path / "a.html")
    lines = ["Head & all", "loose", "Hello bold, world", "next line", "one", "two", "inner", "after", "a\n  b", "Über"]
    assert found.text == "\n".join([*lines, "c1", "c2"])
    assert found.title == "The Title"
    assert [found.text[at:].split("\n")[0] for at in found.headings] == ["Head & all", "Über"]


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ('<meta charset="iso-8859-1"><p>für'.encode("latin-1"), "für"),
        ('<meta http-equiv="Content-Type" content="text/html; charset=windows-1252"><p>€'.encode("cp1252"), "€"),
        ("<p>für".encode(), "für"),
        (b'\xef\xbb\xbf<meta charset="latin-1"><p>f\xc3\xbcr', "für"),
        (b'<meta charset="nonsense"><p>x', "x"),
        (b'<meta charset="base64"><p>x', "x"),
    ],
)
def test_encoding_of_html(tmp_path: Path, data: bytes, text: str) -> None:
    """As the page says; a byte-order mark is stronger; what is no encoding says nothing."""
    (tmp_path / "a.htm").write_bytes(data)
    assert read(tmp_path / "a.htm").text == text


def test_html_that_is_not_what_it_says(tmp_path: Path) -> None:
    """Refused, not guessed."""
    (tmp_path / "a.htm").write_bytes("<p>für".encode("latin-1"))
    with pytest.raises(DataError, match=r"not UTF-8 text \(byte 0xfc at 4\)"):
        read(tmp_path / "a.htm")


def test_pdf(tmp_path: Path) -> None:
    """Pages with an empty line between them."""
    (tmp_path / "a.pdf").write_bytes(pdf("First page", "Second page"))
    assert read(tmp_path / "a.pdf").text == "First page\n\nSecond page"


def test_word(tmp_path: Path) -> None:
    """Paragraphs, and rows of tables with tabs; headings by their style."""
    found = read(docx(tmp_path / "a.docx"))
    assert found.text == "Restore\nStop the server first.\nkey\tvalue\na b\tc\nThen\nÜber alles."
    assert found.headings == (0, found.text.index("Then"))


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("a.pdf", encrypted_pdf("x", "secret"), r"a\.pdf: is encrypted"),
        ("a.pdf", pdf(""), "no text in it. Is it scanned"),
        ("a.pdf", b"%PDF-1.4 broken", "not a readable PDF file"),
        ("a.pdf", b"", "not a readable PDF file"),
        ("a.docx", b"PK nonsense", "not a readable Word file"),
        ("a.docx", bytes.fromhex("d0cf11e0a1b11ae1") + b"rest", "is encrypted, or an old .doc file"),
        ("a.txt", b" \n\t", r"a\.txt: there is no text in it\.$"),
        ("a.html", b"<script>x</script>", "there is no text in it"),
        ("a.md", b"", "there is no text in it"),
    ],
)
def test_what_cannot_be_read(tmp_path: Path, name: str, data: bytes, said: str) -> None:
    """Each is told by its name, with what is wrong."""
    (tmp_path / name).write_bytes(data)
    with pytest.raises(DataError, match=said):
        read(tmp_path / name)


def test_a_pdf_that_opens_without_a_password(tmp_path: Path) -> None:
    """Those that only forbid printing are read."""
    (tmp_path / "a.pdf").write_bytes(encrypted_pdf("Readable", ""))
    assert read(tmp_path / "a.pdf").text == "Readable"


def test_huge_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not read at all; nor are Word files that unpack to more."""
    monkeypatch.setattr(readers, "MAX_BYTES", 10)
    (tmp_path / "a.txt").write_text("more than ten", encoding="utf-8")
    with pytest.raises(DataError, match=r"a\.txt: 0 MiB, and a document has 0 at most"):
        read(tmp_path / "a.txt")
    monkeypatch.setattr(readers, "MAX_BYTES", docx(tmp_path / "a.docx").stat().st_size)
    with pytest.raises(DataError, match="unpacks to"):
        read(tmp_path / "a.docx")


def test_half_a_character_is_replaced(tmp_path: Path) -> None:
    """UTF-7 can spell the first half of one alone; U+FFFD stands for it."""
    (tmp_path / "a.txt").write_bytes(b"a+2D0-b")
    assert read(tmp_path / "a.txt", "utf-7").text == "a\ufffdb"
