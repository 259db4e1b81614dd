"""The pause of the garbage collector ends as it began."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from embeval.core import collector


@pytest.fixture(autouse=True)
def enabled() -> Iterator[None]:
    """The collector as it is for the other tests."""
    yield
    gc.enable()


def nested() -> None:
    """One pause in another, and an error."""
    with collector.paused():
        with collector.paused():
            assert not gc.isenabled()
        assert not gc.isenabled()
        raise ValueError("x")


def test_it_is_off_within_and_on_after_an_error_too() -> None:
    """Also where one pause stands in another."""
    with pytest.raises(ValueError, match="x"):
        nested()
    assert gc.isenabled()


def test_whoever_turned_it_off_finds_it_off() -> None:
    """The pause turns on nothing that it didn't turn off."""
    gc.disable()
    with collector.paused():
        pass
    assert not gc.isenabled()
