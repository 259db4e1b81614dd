"""The ~ of paths."""

from __future__ import annotations

from pathlib import Path

import pytest

from embeval.core.paths import expanded
from embeval.errors import ConfigError


def test_a_home_folder_is_filled_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a shell does it."""
    monkeypatch.setenv("HOME", "/home/me")
    assert expanded("~/models") == Path("/home/me/models")
    assert expanded(Path("models/~x")) == Path("models/~x")


def test_an_unknown_user_is_told() -> None:
    """No traceback of pathlib's."""
    with pytest.raises(ConfigError, match=r"'~no-such-user/x': the home folder .* not known here"):
        expanded("~no-such-user/x")
