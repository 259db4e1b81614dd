"""The words that tiny tokenizers know."""

from __future__ import annotations

WORDS = (
    "the a an of to and in is it on for with as this that from by at or be are was archive backup restore document "
    "server user token key file folder page scan query red blue green one two three night day old new fast slow"
).split()
