"""Fixtures for all tests."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

from tests.support.models import save_tiny_model

os.environ.setdefault("HF_HUB_OFFLINE", "1")
# A test must not see what the person running it has set for embeval, except where data is and screenshots go.
_KEPT = ("EMBEVAL_TEST_DATA", "EMBEVAL_REQUIRE_DATA", "EMBEVAL_REQUIRE_BROWSER", "EMBEVAL_SCREENSHOTS")
for _name in [name for name in os.environ if name.startswith("EMBEVAL_")]:
    if _name not in _KEPT:
        del os.environ[_name]

# How long an example takes says how busy the machine is.
settings.register_profile("embeval", deadline=None)
settings.load_profile("embeval")

REPOSITORY = Path(__file__).parents[1]


@pytest.fixture(autouse=True, scope="session")
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache folder of these tests' own, also for the commands that they start."""
    folder = tmp_path_factory.mktemp("cache")
    os.environ["XDG_CACHE_HOME"] = str(folder)
    return folder


@pytest.fixture(scope="session")
def repository() -> Path:
    """The checkout."""
    return REPOSITORY


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of real evaluation data; skips where it is absent, fails there with EMBEVAL_REQUIRE_DATA=1."""
    configured = os.environ.get("EMBEVAL_TEST_DATA")
    folder = Path(configured) if configured else REPOSITORY.parent / "shared" / "data"
    if not folder.is_dir():
        reason = f"no real evaluation data in {folder} (set EMBEVAL_TEST_DATA)"
        if os.environ.get("EMBEVAL_REQUIRE_DATA") == "1":
            pytest.fail(reason)
        pytest.skip(reason)
    return folder


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random BERT: mean pooling, normalised, 16 tokens at most."""
    return save_tiny_model(tmp_path_factory.mktemp("models") / "tiny")
