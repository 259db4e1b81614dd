"""Models that are no folder, from the command line: an endpoint, and vectors made elsewhere."""

from __future__ import annotations

import signal
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.contracts.examples import retrieval_task
from tests.support.commands import command, embeval, environment
from tests.support.endpoint import serving

SMALL = ("--resamples", "0", "--quiet")


@pytest.mark.enable_socket
def test_an_endpoint(tmp_path: Path) -> None:
    """A good key gives a result, a wrong one exit code 3 and the name of its variable; neither shows a key."""
    retrieval_task(tmp_path)
    with serving() as endpoint:
        endpoint.key = "sk-good-and-secret"
        model = f"openai:text-embedding-3-small,base_url={endpoint.url},dimensions=16"
        env = {"OPENAI_API_KEY": "sk-good-and-secret", "NO_PROXY": "127.0.0.1"}
        done = embeval("run", "-m", model, "-t", "beir", "--json", *SMALL, cwd=tmp_path, env=env)
        assert done.code == 0, done.err
        env["OPENAI_API_KEY"] = "sk-wrong-and-secret"
        refused = embeval("run", "-m", model, "-t", "beir", "--overwrite", "--no-cache", *SMALL, cwd=tmp_path, env=env)
    assert refused.code == 3
    assert "status 401" in refused.err
    assert "Is the key in the environment variable OPENAI_API_KEY right?" in refused.err
    assert "secret" not in done.out + done.err + refused.out + refused.err


@pytest.mark.enable_socket
def test_a_dead_server(tmp_path: Path) -> None:
    """Exit code 3 and the address, without a traceback."""
    retrieval_task(tmp_path)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
    env = {"EMBEVAL_API_MAX_RETRIES": "0", "NO_PROXY": "127.0.0.1"}
    done = embeval("run", "-m", f"openai:m,base_url={url}", "-t", "beir", *SMALL, cwd=tmp_path, env=env)
    assert done.code == 3
    assert f"Model 'm' at {url} can't be reached: " in done.err
    assert "Traceback" not in done.err


@pytest.mark.enable_socket
def test_ctrl_c_does_not_wait_for_an_answer(tmp_path: Path) -> None:
    """With four requests under way that take 20 s: exit code 130 within a few seconds."""
    retrieval_task(tmp_path)
    with serving() as endpoint:
        endpoint.edit = lambda _: time.sleep(20.0 if len(endpoint.requests) > 1 else 0.0)
        words = command("run", "-m", f"openai:m,base_url={endpoint.url}", "-t", "beir", *SMALL)
        env = environment({"NO_PROXY": "127.0.0.1", "EMBEVAL_API_TEXTS_PER_REQUEST": "1"})
        with subprocess.Popen(words, cwd=tmp_path, env=env, stderr=subprocess.PIPE, text=True) as running:
            _wait(lambda: len(endpoint.requests) > 2)
            began = time.monotonic()
            running.send_signal(signal.SIGINT)
            running.communicate(timeout=15)
    assert running.returncode == 130
    assert time.monotonic() - began < 10


def _wait(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)


def test_precomputed_vectors(tmp_path: Path) -> None:
    """A folder that is not there is exit code 3; with vectors by id it is a model."""
    retrieval_task(tmp_path)
    words = ("run", "-m", "precomputed:vectors/", "-t", "beir", *SMALL)
    missing = embeval(*words, cwd=tmp_path)
    assert missing.code == 3
    assert "Vectors 'vectors': no such file or folder." in missing.err
    folder = tmp_path / "vectors"
    folder.mkdir()
    for stem, n in (("queries", 3), ("documents", 6)):
        np.save(folder / f"{stem}.npy", np.eye(n, 6, dtype=np.float32))
        (folder / f"{stem}.ids.txt").write_text("".join(f"{stem[0]}{row}\n" for row in range(1, n + 1)))
    done = embeval(*words, "--json", cwd=tmp_path)
    assert done.code == 0, done.err
    file = "vectors/queries.npy"
    shown = embeval("models", "show", f"precomputed:{file}", "--json", cwd=tmp_path).json
    assert (shown["dimensions"], shown["disk_bytes"]) == (6, (tmp_path / file).stat().st_size)


def test_doctor_knows_the_variables_of_endpoints(tmp_path: Path) -> None:
    """One that is read, and one that is misspelled."""
    env = {"EMBEVAL_API_CONCURRENCY": "2", "EMBEVAL_API_CONCURENCY": "3"}
    checks = embeval("doctor", "--json", cwd=tmp_path, env=env).json
    found = [check["found"] for check in checks if check["name"] == "environment"]
    assert found[0] == "set and used: EMBEVAL_API_CONCURRENCY=2, EMBEVAL_BM25=false"
    assert found[1].startswith("EMBEVAL_API_CONCURENCY is set, but nothing reads it. Did you mean")
