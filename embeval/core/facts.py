"""What a model is, as far as people choose by it: size, limits, languages, licence."""

from __future__ import annotations

from dataclasses import dataclass, replace

from embeval.core.border import BORDER


@dataclass(frozen=True, kw_only=True)
class ModelFacts:
    """What is known of a model besides its scores; null where it isn't."""

    __pydantic_config__ = BORDER

    parameters: int | None = None
    """Parameters; 0 for a system without any."""
    dimensions: int | None = None
    """Length of its vectors, after truncation; 0 for a system without vectors."""
    max_tokens: int | None = None
    """Tokens that it keeps of a text; null: no limit, or not known."""
    weight_bytes: int | None = None
    """Bytes of its weights in the memory of the machine, in the number format that it runs in."""
    languages: tuple[str, ...] = ()
    """As its makers declare them; empty: they don't."""
    license: str | None = None
    """Its licence, as its makers declare it."""

    def completed(self, other: ModelFacts) -> ModelFacts:
        """The same, with what isn't known here as ``other`` tells it."""
        missing = {
            name: told
            for name, own in vars(self).items()
            if own in (None, ()) and (told := getattr(other, name)) not in (None, ())
        }
        return replace(self, **missing)
