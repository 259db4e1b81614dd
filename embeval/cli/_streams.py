"""Standard output and error as they are met: closed, full, not UTF-8, or with a reader that has gone.

All that is printed goes through these two streams, whoever prints it: a verb, the parser's help, or a library.
"""

from __future__ import annotations

import codecs
import errno
import io
import os
import sys
from typing import TYPE_CHECKING, TextIO

from embeval.errors import EvaluationError

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

STDOUT, STDERR = 1, 2
STAND_INS = {
    **dict.fromkeys("–—─━╶╴╸╺", "-"),
    **dict.fromkeys("·│┃", "|"),
    **dict.fromkeys("╭╮╰╯┌┐└┘├┤┬┴┼", "+"),
    "≈": "~",
    "…": "...",
}
"""What is printed where a stream's encoding lacks a character; ``?`` for all others."""


class _Descriptor(io.FileIO):
    """A standard stream's file. What can't be written is told once; after that, nothing more is tried.

    A reader that has gone (``| head``) has seen enough, and that is no trouble at all. Nor is there anyone to tell
    about messages that can't be written.
    """

    def __init__(self, number: int) -> None:
        super().__init__(number, "wb", closefd=False)

    def write(self, data: ReadableBuffer) -> int:
        try:
            return super().write(data)
        except OSError as error:
            drop(self.fileno())
            if error.errno == errno.EPIPE or self.fileno() == STDERR:
                return memoryview(data).nbytes
            raise EvaluationError(f"Standard output can't be written ({error.strerror}).") from None


def prepare() -> None:
    """Puts streams in place that can be written whatever they are; to be called once, before anything is printed."""
    # A closed one leaves its number to the next file that is opened, and then a print would end up in that file.
    while (number := os.open(os.devnull, os.O_RDWR)) <= STDERR:
        os.set_inheritable(number, True)
    os.close(number)
    codecs.register_error("embeval", _stand_in)
    sys.stdout, sys.stderr = _guarded(sys.stdout, STDOUT), _guarded(sys.stderr, STDERR)


def drop(number: int) -> None:
    """Sends whatever is written from now on, and what a buffer still holds, nowhere."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, number)
    os.close(nowhere)


def is_utf8(stream: TextIO) -> bool:
    """Whether every character can be written to a stream."""
    return codecs.lookup(stream.encoding).name == "utf-8"


def _guarded(stream: TextIO | None, number: int) -> TextIO:
    """The stream over a ``_Descriptor``. None is what Python gives for a closed one."""
    binary = getattr(stream, "buffer", None)
    if stream is not None and not isinstance(getattr(binary, "raw", binary), io.FileIO):
        return stream  # a console of Windows, which is no file
    return io.TextIOWrapper(
        io.BufferedWriter(_Descriptor(number)),
        encoding="utf-8" if stream is None else stream.encoding,
        errors="embeval",
        line_buffering=stream is not None and bool(stream.line_buffering or getattr(stream, "write_through", False)),
    )


def _stand_in(error: UnicodeError) -> tuple[str | bytes, int]:
    """The handler for characters that an encoding lacks, one at a time."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    character = error.object[error.start]
    if "\udc80" <= character <= "\udcff":  # a byte of a file name that is no text: as it came in
        return bytes([ord(character) - 0xDC00]), error.start + 1
    return STAND_INS.get(character, "?"), error.start + 1
