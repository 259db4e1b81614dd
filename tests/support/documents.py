"""Documents of several kinds, made by hand or by the library that is known for them."""

from __future__ import annotations

import io
from pathlib import Path

FONT = "/Resources<</Font<</F1 3 0 R>>>>"


def pdf(*pages: str) -> bytes:
    """A PDF file with one line per page, or none where that is empty. Source: ISO 32000-1, 7.5."""
    kids = " ".join(f"{4 + 2 * number} 0 R" for number in range(len(pages)))
    objects = [
        "<</Type/Catalog/Pages 2 0 R>>",
        f"<</Type/Pages/Kids[{kids}]/Count {len(pages)}>>",
        "<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    ]
    for number, text in enumerate(pages):
        content = f"BT /F1 12 Tf 20 200 Td ({text}) Tj ET" if text else ""
        objects += [
            f"<</Type/Page/Parent 2 0 R/MediaBox[0 0 300 300]/Contents {5 + 2 * number} 0 R{FONT}>>",
            f"<</Length {len(content)}>>stream\n{content}\nendstream",
        ]
    whole, places = b"%PDF-1.4\n", []
    for number, body in enumerate(objects, start=1):
        places.append(len(whole))
        whole += f"{number} 0 obj{body}endobj\n".encode("latin-1")
    table = "".join(f"{place:010d} 00000 n \n" for place in places)
    end = f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}trailer<</Size {len(objects) + 1}/Root 1 0 R>>\n"
    return whole + f"{end}startxref\n{len(whole)}\n%%EOF".encode("latin-1")


def encrypted_pdf(text: str, password: str) -> bytes:
    """The same behind a password."""
    from pypdf import PdfReader, PdfWriter

    writer = PdfWriter()
    writer.append(PdfReader(io.BytesIO(pdf(text))))
    writer.encrypt(user_password=password, owner_password="owner", algorithm="RC4-128")
    out = io.BytesIO()
    writer.write(out)
    return out.getvalue()


def docx(path: Path) -> Path:
    """A Word file with a heading, a paragraph and a table."""
    from docx import Document

    document = Document()
    document.add_heading("Restore", level=1)
    document.add_paragraph("Stop the server first.")
    table = document.add_table(2, 2)
    for row, cells in enumerate([("key", "value"), ("a  b", "c")]):
        for column, text in enumerate(cells):
            table.cell(row, column).text = text
    document.add_heading("Then", level=2)
    document.add_paragraph("Über alles.")
    path.parent.mkdir(parents=True, exist_ok=True)
    document.save(str(path))
    return path
