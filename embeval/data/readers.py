"""The text of a document, whatever kind of file it is: ``.txt .md .html .htm .pdf .docx``.

Line ends become line feeds; half characters become U+FFFD. HTML, PDF and Word files are read by beautifulsoup4 with
lxml, pypdf and python-docx.
"""

from __future__ import annotations

import codecs
import logging
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from embeval.core.packages import require
from embeval.errors import DataError

MAX_BYTES = 256 * 1024 * 1024
"""Larger files are no documents; what is packed in a Word file may be as large."""
OLD_OFFICE = bytes.fromhex("d0cf11e0a1b11ae1")
"""What .doc files begin with, and .docx files that are encrypted."""
BLOCKS = frozenset(
    "address article aside blockquote body button caption dd details dialog div dl dt fieldset figcaption figure "
    "footer form h1 h2 h3 h4 h5 h6 header hr html legend li main nav ol option p pre section select summary table "
    "tbody td textarea tfoot th thead title tr ul".split()
)
"""Elements of HTML that begin a line of their own."""
UNSEEN = frozenset("head noscript script style template title".split())
"""Elements whose text a browser doesn't show."""

_ATX = re.compile(r" {0,3}(#{1,6})(?:[ \t]|$)")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_UNDERLINE = re.compile(r" {0,3}(=+|-+)[ \t]*$")


@dataclass(frozen=True)
class Document:
    """What was read from a file."""

    text: str
    """Its text; passages are given by offsets into it."""
    title: str = ""
    """The title of a web page; empty for all others."""
    headings: tuple[int, ...] = ()
    """Where in the text a heading begins, rising: of Markdown, HTML and Word files."""


def read(path: Path, encoding: str | None = None) -> Document:
    """The text of a file. ``encoding`` is that of text, Markdown and HTML files; None is what they say, else UTF-8.

    Raises ``DataError`` for what can't be read, is encrypted or broken, and where there is no text.
    """
    try:
        if not path.is_file():
            raise DataError(f"{path}: is not a regular file.")
        if (size := path.stat().st_size) > MAX_BYTES:
            raise DataError(
                f"{path}: {size / 2**20:,.0f} MiB, and a document has {MAX_BYTES >> 20} at most. Cut it up."
            )
        data = path.read_bytes()
    except OSError as error:
        raise DataError(f"{path}: can't be read ({error.strerror or error}).") from None
    found = READERS[path.suffix.lower()](data, path, encoding)
    if not found.text.strip():
        scanned = " Is it scanned? Then run text recognition on it first." if path.suffix.lower() == ".pdf" else ""
        raise DataError(f"{path}: there is no text in it.{scanned}")
    return found


def _plain(data: bytes, path: Path, encoding: str | None) -> Document:
    return Document(_decoded(data, path, encoding))


def _markdown(data: bytes, path: Path, encoding: str | None) -> Document:
    text = _decoded(data, path, encoding)
    return Document(text, headings=markdown_headings(text))


def markdown_headings(text: str) -> tuple[int, ...]:
    """Where headings begin: lines with # and lines underlined with = or -, outside of fenced code."""
    found: list[int] = []
    fence = ""
    previous, previous_start, start = "", 0, 0
    for line in text.split("\n"):
        mark = _FENCE.match(line)
        if fence:
            if mark and mark[1].startswith(fence) and not line.strip().strip(fence[0]):
                fence = ""
            previous = ""
        elif mark:
            fence, previous = mark[1], ""
        elif _ATX.match(line):
            found.append(start)
            previous = ""
        elif _UNDERLINE.match(line) and previous.strip() and not previous.lstrip().startswith((">", "-", "*", "|")):
            found.append(previous_start)
            previous = ""
        else:
            previous, previous_start = line, start
        start += len(line) + 1
    return tuple(found)


def _html(data: bytes, path: Path, encoding: str | None) -> Document:
    bs4 = require("bs4", extra="docs", purpose="Reading HTML files")
    require("lxml", extra="docs", purpose="Reading HTML files")
    if encoding is None:
        from bs4.dammit import EncodingDetector

        declared = EncodingDetector.find_declared_encoding(data, is_html=True)
        encoding = declared if not data.startswith(codecs.BOM_UTF8) and _is_known(declared) else None
    try:
        soup = bs4.BeautifulSoup(_decoded(data, path, encoding), "lxml")
        title = " ".join(soup.title.get_text().split()) if soup.title is not None else ""
        text, headings = _shown(soup, bs4.NavigableString)
    except (RecursionError, ValueError, AssertionError) as error:
        raise DataError(f"{path}: not readable as HTML ({_reason(error)}).") from None
    return Document(text, title, headings)


def _shown(soup: Any, plain: type[Any]) -> tuple[str, tuple[int, ...]]:
    """(text that a browser shows, a line for each block; where headings begin)."""
    lines: list[str] = []
    headings: list[int] = []
    pieces: list[str] = []
    heading_lines: list[bool] = []
    block: Any = None
    is_pre = False

    def end_line() -> None:
        whole = "".join(pieces)
        shown = whole.strip("\n").rstrip() if is_pre else " ".join(whole.split())
        if shown.strip():
            lines.append(shown)
            heading_lines.append(block is not None and re.fullmatch(r"h[1-6]", block.name) is not None)
        pieces.clear()

    for node in soup.descendants:
        if getattr(node, "name", None) == "br":
            pieces.append("\n")
            if not is_pre:
                end_line()
            continue
        if type(node) is not plain:  # comments, scripts, styles and declarations have types of their own
            continue
        parents = list(node.parents)
        if any(each.name in UNSEEN for each in parents):
            continue
        own = next((each for each in parents if each.name in BLOCKS), None)
        if own is not block:
            end_line()
            block, is_pre = own, any(each.name == "pre" for each in parents)
        pieces.append(str(node))
    end_line()
    start = 0
    for line, is_heading in zip(lines, heading_lines, strict=True):
        if is_heading:
            headings.append(start)
        start += len(line) + 1
    return "\n".join(lines), tuple(headings)


def _pdf(data: bytes, path: Path, _encoding: str | None) -> Document:
    pypdf = require("pypdf", extra="docs", purpose="Reading PDF files")
    logger = logging.getLogger("pypdf")
    level = logger.level
    logger.setLevel(logging.CRITICAL)  # it tells of every small fault that it mended
    try:
        import io

        reader = pypdf.PdfReader(io.BytesIO(data))
        if reader.is_encrypted and not _opens(reader):
            raise DataError(f"{path}: is encrypted. Save it without a password.")
        pages = [page.extract_text() for page in reader.pages]
    except (DataError, MemoryError):
        raise
    except Exception as error:  # for a broken file the library raises whatever its parts do
        raise DataError(f"{path}: not a readable PDF file ({_reason(error)}).") from None
    finally:
        logger.setLevel(level)
    return Document(_lines("\n\n".join(pages)))


def _opens(reader: Any) -> bool:
    """Whether a PDF file opens without a password, as those do that only forbid printing."""
    try:
        return bool(reader.decrypt(""))
    except Exception:  # a cipher that needs another package
        return False


def _docx(data: bytes, path: Path, _encoding: str | None) -> Document:
    docx = require("docx", extra="docs", purpose="Reading Word files")
    if data.startswith(OLD_OFFICE):
        raise DataError(f"{path}: is encrypted, or an old .doc file. Save it as .docx without a password.")
    import io
    import zipfile

    try:
        with zipfile.ZipFile(io.BytesIO(data)) as packed:
            unpacked = sum(each.file_size for each in packed.infolist())
        if unpacked > MAX_BYTES:
            raise DataError(f"{path}: unpacks to {unpacked / 2**20:,.0f} MiB; {MAX_BYTES >> 20} at most.")
        blocks = list(_word_blocks(docx.Document(io.BytesIO(data))))
    except (DataError, MemoryError):
        raise
    except Exception as error:  # as above
        raise DataError(f"{path}: not a readable Word file ({_reason(error)}).") from None
    headings, start, lines = [], 0, []
    for text, is_heading in blocks:
        line = _lines(text)
        if is_heading and line.strip():
            headings.append(start)
        lines.append(line)
        start += len(line) + 1
    return Document("\n".join(lines), headings=tuple(headings))


def _word_blocks(document: Any) -> list[tuple[str, bool]]:
    """(text, whether it is a heading) of paragraphs, and of tables row by row with tabs between cells."""
    found = []
    for block in document.iter_inner_content():
        if hasattr(block, "rows"):
            for row in block.rows:
                cells: dict[int, str] = {}  # a merged cell comes once for each column that it spans
                for cell in row.cells:
                    cells.setdefault(id(cell._tc), " ".join(cell.text.split()))
                found.append(("\t".join(cells.values()), False))
        else:
            style = getattr(block.style, "name", None) or ""
            found.append((block.text, style.startswith("Heading") or style == "Title"))
    return found


READERS: Mapping[str, Callable[[bytes, Path, str | None], Document]] = {
    ".txt": _plain,
    ".md": _markdown,
    ".html": _html,
    ".htm": _html,
    ".pdf": _pdf,
    ".docx": _docx,
}
"""Ending -> reader."""


def _decoded(data: bytes, path: Path, encoding: str | None) -> str:
    try:
        text = data.decode(encoding or "utf-8-sig")
    except UnicodeDecodeError as error:
        guess = ""
        if encoding is None and data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            guess = " It looks like utf-16."
        raise DataError(
            f"{path}: not {encoding or 'UTF-8'} text (byte {error.object[error.start]:#04x} at {error.start})."
            f"{guess} Say what it is with --encoding."
        ) from None
    except LookupError:
        raise DataError(f"{path}: unknown encoding {encoding!r}.") from None
    if "\0" in text:
        raise DataError(f"{path}: holds NUL characters (at {text.index(chr(0))}), so it is no text.")
    return _lines(text)


def _is_known(encoding: str | None) -> bool:
    try:
        return encoding is not None and codecs.lookup(encoding)._is_text_encoding
    except LookupError:
        return False


def _lines(text: str) -> str:
    text = text.replace("\r\n", "\n").replace("\r", "\n").removeprefix("\ufeff")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def _reason(error: BaseException) -> str:
    first = next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
    return first[:120]
