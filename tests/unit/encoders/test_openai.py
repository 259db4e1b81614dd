"""The backend ``openai`` against a real server on loopback: answers, failures, limits, and where the key goes."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import embeval
from embeval.core.protocols import Encoder
from embeval.core.specs import ModelSpec, Role, RuntimeOptions, StatisticsOptions
from embeval.encoders import loading
from embeval.errors import ConfigError, InvalidEmbeddingsError, ModelError
from embeval.metrics import cost
from tests.support.data import write_pairs
from tests.support.endpoint import DIM, Endpoint, Failure, serving, vector

pytestmark = pytest.mark.enable_socket

KEY = "sk-never-to-be-seen-anywhere"
TEXTS = [f"text number {number} of several" for number in range(10)]


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """None of the variables that whoever runs these tests has set."""
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    """A server that behaves, until a test changes it."""
    with serving() as found:
        yield found


def spec_of(endpoint: Endpoint, *, args: dict[str, Any] | None = None, **fields: Any) -> ModelSpec:
    """A model behind the server."""
    return ModelSpec(name="some-model", backend="openai", args={"base_url": endpoint.url, **(args or {})}, **fields)


def load(endpoint: Endpoint, **fields: Any) -> Encoder:
    """The model, loaded."""
    return loading.load(loading.resolve(spec_of(endpoint, **fields)))


def vectors(encoder: Encoder, texts: list[str] = TEXTS) -> np.ndarray:
    """Encoded as plain texts."""
    return encoder.encode(texts, role=Role.TEXT).vectors


def expected(texts: list[str] = TEXTS, dim: int = DIM) -> np.ndarray:
    """What the server has for the texts, without any request."""
    return np.array([vector(text, dim) for text in texts], dtype=np.float32)


def set_limits(monkeypatch: pytest.MonkeyPatch, **limits: float) -> None:
    """EMBEVAL_API_… variables."""
    for name, value in limits.items():
        monkeypatch.setenv(f"EMBEVAL_API_{name.upper()}", str(value))


@pytest.mark.parametrize("floats", [False, True], ids=["base64", "numbers"])
def test_vectors_are_those_of_the_server_to_the_bit(endpoint: Endpoint, floats: bool) -> None:
    """In either encoding, with the prompt before the text; float32 survives both."""
    endpoint.floats = floats
    assert np.array_equal(vectors(load(endpoint)), expected())
    queries = load(endpoint, prompts={"query": "query: "}).encode(TEXTS, role=Role.QUERY).vectors
    assert np.array_equal(queries, expected([f"query: {text}" for text in TEXTS]))


def test_vectors_in_another_order_are_put_in_order(endpoint: Endpoint) -> None:
    """By their index, as the API has it."""
    endpoint.shuffled = True
    assert np.array_equal(vectors(load(endpoint)), expected())


def test_no_text_is_sent_twice_and_no_empty_one_at_all(endpoint: Endpoint) -> None:
    """After the first request, which asks for the dimensions."""
    found = vectors(load(endpoint), ["one", "", "two", "one"])
    assert np.array_equal(found[[0, 2, 3]], expected(["one", "two", "one"]))
    assert not found[1].any()
    assert sorted(endpoint.texts()) == ["dimensions", "one", "two"]


def test_dimensions_are_asked_for_and_checked(endpoint: Endpoint) -> None:
    """They reach the server, set the length, and a server that ignores them is refused."""
    encoder = load(endpoint, args={"dimensions": 8})
    assert encoder.info.dim == 8
    assert np.array_equal(vectors(encoder), expected(dim=8))
    assert {body["dimensions"] for body in endpoint.requests} == {8}

    def ignore(answer: dict[str, Any]) -> None:
        for each in answer["data"]:
            each["embedding"] = [0.5] * DIM

    endpoint.edit = ignore
    with pytest.raises(ModelError, match="a vector of 32 dimensions, where 8 were expected"):
        load(endpoint, args={"dimensions": 8})


@pytest.mark.parametrize("status", [408, 429, 500, 503])
def test_what_may_pass_is_tried_again(endpoint: Endpoint, status: int) -> None:
    """Two failures, then an answer: one request more for each, and the right vectors."""
    encoder = load(endpoint)
    endpoint.failures = [Failure(status), Failure(status)]
    assert np.array_equal(vectors(encoder), expected())
    assert len(endpoint.requests) == 1 + 3


def test_retry_after_is_waited_for(endpoint: Endpoint) -> None:
    """0.9 s, which no back-off of a first retry reaches (0.375 to 0.5 s)."""
    encoder = load(endpoint)
    endpoint.failures = [Failure(429, headers={"retry-after": "0.9"})]
    assert np.array_equal(vectors(encoder), expected())
    assert endpoint.times[2] - endpoint.times[1] >= 0.9


def test_retries_end(endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    """After max_retries, with the status and what the server said."""
    set_limits(monkeypatch, max_retries=2)
    encoder = load(endpoint)
    endpoint.failures = [Failure(429, "too many tokens")] * 9
    with pytest.raises(ModelError, match="answered with status 429: too many tokens") as caught:
        vectors(encoder)
    assert "EMBEVAL_API_REQUESTS_PER_MINUTE" in str(caught.value)
    assert len(endpoint.requests) == 1 + 3


@pytest.mark.parametrize("status", [400, 401, 403, 404, 422])
def test_what_stays_wrong_is_not_tried_again(endpoint: Endpoint, status: int) -> None:
    """One request, and a message of three lines at most."""
    endpoint.failures = [Failure(status, "no " * 500)] * 9
    with pytest.raises(
        ModelError, match=f"Model 'some-model' at {endpoint.url} answered with status {status}"
    ) as caught:
        load(endpoint)
    assert len(endpoint.requests) == 1
    assert len(str(caught.value).splitlines()) <= 3
    assert len(str(caught.value)) < 500


def test_a_text_that_is_too_long_is_named(endpoint: Endpoint) -> None:
    """The longest one, though it was sent together with others."""
    endpoint.max_bytes = 200
    with pytest.raises(ModelError, match="maximum context length is 200") as caught:
        vectors(load(endpoint), [*TEXTS, "long winded " * 40])
    assert "The text: 480 characters, starting with 'long winded long winded " in str(caught.value)


def test_too_many_texts_at_once_are_told_from_a_long_one(endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    """The message names the variable, and with it the same texts go through."""
    endpoint.max_texts = 4
    with pytest.raises(ModelError, match=r"held 10 texts. Send fewer at once with EMBEVAL_API_TEXTS_PER_REQUEST"):
        vectors(load(endpoint))
    set_limits(monkeypatch, texts_per_request=4)
    assert np.array_equal(vectors(load(endpoint)), expected())


def test_requests_hold_no_more_than_allowed(endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    """3 texts, or 20 tokens at 3 bytes each; a text above that goes alone."""
    set_limits(monkeypatch, texts_per_request=3, tokens_per_request=20)
    texts = ["x" * 90, *(f"{number:030d}" for number in range(4)), *"abcd"]
    assert np.array_equal(vectors(load(endpoint), texts), expected(texts))
    sizes = [[len(text) for text in body["input"]] for body in endpoint.requests[1:]]
    assert sorted(sizes, reverse=True) == [[90], [30, 30], [30, 30], [1, 1, 1], [1]]


def test_requests_run_at_the_same_time_and_keep_their_order(
    endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ten requests of 0.2 s by five threads: five at once, no more, and each text has its own vector."""
    set_limits(monkeypatch, texts_per_request=1, concurrency=5)
    encoder = load(endpoint)
    endpoint.seconds = 0.2
    assert np.array_equal(vectors(encoder), expected())
    assert endpoint.most_at_once == 5


def test_after_a_failure_nothing_more_is_sent(endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of ten requests by two threads the first is refused at once: the other eight stay."""
    set_limits(monkeypatch, texts_per_request=1, concurrency=2)
    encoder = load(endpoint)
    endpoint.failures = [Failure(403, "stop")]
    endpoint.seconds = 0.1
    with pytest.raises(ModelError, match="status 403: stop"):
        vectors(encoder)
    time.sleep(0.3)  # for requests that should not be
    assert len(endpoint.requests) <= 1 + 2 + 1  # a thread may take one more while the other fails


@pytest.mark.parametrize(
    ("limits", "seconds"),
    [({"requests_per_minute": 1200}, 0.05), ({"tokens_per_minute": 12_000}, 0.05)],
    ids=["requests", "tokens"],
)
def test_a_rate_limit_is_kept(
    endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch, limits: dict[str, float], seconds: float
) -> None:
    """1200 requests a minute are one in 50 ms; so are 12,000 tokens where each request has 10 (30 bytes)."""
    set_limits(monkeypatch, texts_per_request=1, **limits)
    texts = [f"{number:030d}" for number in range(8)]
    encoder = load(endpoint)
    began = time.monotonic()
    assert np.array_equal(vectors(encoder, texts), expected(texts))
    assert max(endpoint.times) - began >= 7 * seconds


def test_a_dead_server_is_told_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Connection refused, in words, at the address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
    set_limits(monkeypatch, max_retries=0)
    with pytest.raises(ModelError, match=f"at {url} can't be reached: .*refused") as caught:
        load(Endpoint(url=url))
    assert "Is the server running" in str(caught.value)


def test_a_slow_server_is_given_up(endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    """After the time-out, and as many tries as allowed."""
    set_limits(monkeypatch, timeout_s=0.1, max_retries=1)
    endpoint.seconds = 0.4
    with pytest.raises(ModelError, match=r"no answer within 0\.1 s, in 2 tries"):
        load(endpoint)
    assert len(endpoint.requests) == 2


def _drop_one(answer: dict[str, Any]) -> None:
    answer["data"].pop()


def _repeat_an_index(answer: dict[str, Any]) -> None:
    for each in answer["data"]:
        each["index"] = 0


def _number(answer: dict[str, Any]) -> None:
    answer["data"][-1]["embedding"] = 7.0


def _words(answer: dict[str, Any]) -> None:
    answer["data"][-1]["embedding"] = ["a"] * DIM


def _digits_in_words(answer: dict[str, Any]) -> None:
    answer["data"][-1]["embedding"] = ["0.5"] * DIM


def _yes_and_no(answer: dict[str, Any]) -> None:
    answer["data"][-1]["embedding"] = [0.5] * (DIM - 1) + [True]


def _beyond_any_float(answer: dict[str, Any]) -> None:
    answer["data"][-1]["embedding"] = [10**400] * DIM


def _broken_base64(answer: dict[str, Any]) -> None:
    answer["data"][-1]["embedding"] = "AAA!"


def _shorter(answer: dict[str, Any]) -> None:
    answer["data"][-1]["embedding"] = [0.5] * (DIM - 1)


def _no_data(answer: dict[str, Any]) -> None:
    del answer["data"]


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (_drop_one, "gave 9 vectors for 10 texts"),
        (_repeat_an_index, "'index' is not 0 to 9, each once"),
        (_number, "neither a list of numbers nor base64"),
        (_words, "neither a list of numbers nor base64"),
        (_digits_in_words, "neither a list of numbers nor base64"),
        (_yes_and_no, "neither a list of numbers nor base64"),
        (_beyond_any_float, "neither a list of numbers nor base64"),
        (_broken_base64, "neither a list of numbers nor base64"),
        (_shorter, "a vector of 31 dimensions, where 32 were expected"),
        (_no_data, "without a list 'data'"),
    ],
)
def test_an_answer_that_is_no_answer_gives_no_vector(endpoint: Endpoint, edit: Any, message: str) -> None:
    """Each kind is refused by what is wrong with it."""
    encoder = load(endpoint)
    endpoint.edit = edit
    with pytest.raises(ModelError, match=message):
        vectors(encoder)


@pytest.mark.parametrize("page", [b"<html>hello</html>", b"[" * 100_000], ids=["page", "brackets"])
def test_a_page_instead_of_json(endpoint: Endpoint, page: bytes) -> None:
    """What a proxy or a wrong address answers, and what no parser gets to the end of."""
    endpoint.raw = page
    with pytest.raises(ModelError, match=r"(?s)not JSON.*ends in /v1"):
        load(endpoint)


@pytest.mark.parametrize("floats", [False, True], ids=["base64", "numbers"])
def test_nan_is_refused_by_the_name_of_its_text(endpoint: Endpoint, floats: bool) -> None:
    """Never a score from it, in either encoding."""
    import base64

    encoder = load(endpoint)
    bad = np.array([np.nan] + [0.5] * (DIM - 1), dtype="<f4")

    def edit(answer: dict[str, Any]) -> None:
        answer["data"][2]["embedding"] = bad.tolist() if floats else base64.b64encode(bad.tobytes()).decode()

    endpoint.edit = edit
    with pytest.raises(InvalidEmbeddingsError, match=r"NaN in the embeddings of 1 of 10 texts: 'd2'"):
        encoder.encode(TEXTS, role=Role.DOCUMENT, ids=[f"d{number}" for number in range(10)])


def test_usage_and_cost_are_summed(endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    """One token for the first request, then 5 words in each of 10 texts, at 2 per million: 102 millionths."""
    set_limits(monkeypatch, texts_per_request=3, price_per_million_tokens=2)
    encoder = load(endpoint)
    vectors(encoder)
    totals = {name: encoder.info.extra[name] for name in ("requests_so_far", "tokens_so_far", "cost_so_far")}
    assert totals == {"requests_so_far": "5", "tokens_so_far": "51", "cost_so_far": "0.000102"}
    assert cost.usd_per_million_queries(encoder.info, 12.5) == 25.0
    endpoint.usage = False
    vectors(encoder, ["more"])
    assert "tokens_so_far" not in encoder.info.extra  # a sum that misses some would be a wrong number
    assert encoder.encode(["x"], role=Role.TEXT).counts.tokens_lost is None


def test_the_key_goes_to_the_server_and_nowhere_else(
    endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Not into the encoder's repr, nor any file of a result, nor a message, though the server repeats it."""
    endpoint.key = KEY
    monkeypatch.setenv("TEAM_KEY", KEY)
    spec = spec_of(endpoint, args={"api_key_env": "TEAM_KEY"})
    encoder = loading.load(loading.resolve(spec))
    assert endpoint.headers[0]["authorization"] == f"Bearer {KEY}"
    assert KEY not in f"{encoder!r} {encoder} {encoder.info!r} {encoder.spec!r} {encoder.spec.label}"
    pairs = write_pairs(tmp_path / "pairs.jsonl", [("a b", "c", 1.0), ("d", "e", 2.0), ("f", "g", 3.0)])
    result = embeval.evaluate(
        spec, f"sts:{pairs}", results=tmp_path / "results", statistics=StatisticsOptions(resamples=0)
    )[0]
    assert result.model.revision == "unverifiable"
    assert result.provenance.extra["endpoint"] == endpoint.url
    files = [path for path in (tmp_path / "results").rglob("*") if path.is_file()]
    assert files
    assert all(KEY.encode() not in path.read_bytes() for path in files)
    wrong = "sk-wrong-and-secret-too"
    monkeypatch.setenv("TEAM_KEY", wrong)
    with pytest.raises(
        ModelError, match=r"status 401: Incorrect key: Bearer …\.\nIs the key in .* TEAM_KEY right"
    ) as caught:
        loading.load(loading.resolve(spec))
    assert wrong not in str(caught.value)


def test_keys_that_are_missing_or_no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Elsewhere than on this machine a key is needed; half-pasted ones are told without being shown."""
    spec = ModelSpec(name="m", backend="openai", args={"base_url": "https://models.invalid/v1"})
    with pytest.raises(ConfigError, match="variable OPENAI_API_KEY is not set"):
        loading.load(loading.resolve(spec))
    monkeypatch.setenv("OPENAI_API_KEY", "sk-\u201cquoted\u201d")
    with pytest.raises(ConfigError, match="OPENAI_API_KEY holds characters that no key has") as caught:
        loading.load(loading.resolve(spec))
    assert "quoted" not in str(caught.value)


def resolved(**fields: Any) -> ModelSpec:
    """A spec, resolved."""
    return loading.resolve(ModelSpec(**{"name": "m", "backend": "openai", **fields})).spec


def test_the_address_is_part_of_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever it came from; OpenAI's own address is the same as none, and how fast to send is no part of it."""
    default = resolved()
    assert resolved(args={"base_url": "https://api.openai.com/v1/"}).digest == default.digest
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    monkeypatch.setenv("EMBEVAL_API_CONCURRENCY", "9")
    assert resolved().args == {"base_url": "http://127.0.0.1:9/v1"}
    assert resolved().digest != default.digest
    assert resolved(args={"base_url": "https://api.openai.com/v1"}).digest == default.digest


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"pooling": "mean"}, "pooling and dtype are the endpoint's own"),
        ({"dtype": "float16"}, "pooling and dtype are the endpoint's own"),
        ({"max_seq_length": 128}, "max_seq_length can't act"),
        ({"normalize": False}, "can't be undone"),
        ({"args": {"concurrency": 3}}, "no option 'concurrency'; its options are base_url, api_key_env, dimensions"),
        ({"args": {"dimensions": 0}}, "dimensions must be a whole number from 1, not 0"),
        ({"args": {"dimensions": True}}, "dimensions must be a whole number from 1, not True"),
        ({"args": {"base_url": 7}}, "base_url must be text"),
        ({"args": {"base_url": "localhost:8000"}}, "base_url must be an address"),
    ],
)
def test_settings_that_can_not_act_are_refused(fields: dict[str, Any], message: str) -> None:
    """Before any request."""
    with pytest.raises(ConfigError, match=message):
        resolved(**fields)


@pytest.mark.parametrize(
    "args",
    [
        {"base_url": "https://me:hush-hush@host/v1"},
        {"base_url": "https://host/v1?key=hush-hush"},
        {"api_key_env": "sk-hush-hush"},
    ],
)
def test_a_secret_in_the_spec_is_refused_unrepeated(args: dict[str, str]) -> None:
    """A spec is stored with every result."""
    with pytest.raises(ConfigError) as caught:
        resolved(args=args)
    assert "hush" not in str(caught.value)


def test_a_pinned_revision_and_a_device_are_refused(endpoint: Endpoint) -> None:
    """Nobody can hold an endpoint to either."""
    with pytest.raises(ModelError, match="behind an endpoint, so revision 'abc' can't be asked for"):
        resolved(revision="abc")
    with pytest.raises(ConfigError, match="the device 'cpu' can't be used"):
        loading.load(loading.resolve(spec_of(endpoint)), RuntimeOptions(device="cpu"))


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("CONCURRENCY", "0", "must be a whole number from 1, not '0'"),
        ("CONCURRENCY", "2.5", "must be a whole number from 1, not '2.5'"),
        ("MAX_RETRIES", "-1", "must be a whole number from 0, not '-1'"),
        ("REQUESTS_PER_MINUTE", "nan", "must be a number above 0, not 'nan'"),
        ("TIMEOUT_S", "soon", "must be a number above 0, not 'soon'"),
    ],
)
def test_limits_that_are_none(
    endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch, name: str, value: str, message: str
) -> None:
    """The variable is named."""
    monkeypatch.setenv(f"EMBEVAL_API_{name}", value)
    with pytest.raises(ConfigError, match=f"EMBEVAL_API_{name} {message}"):
        load(endpoint)


def test_half_of_a_character_is_refused(endpoint: Endpoint) -> None:
    """JSON can't carry it, and another text must not be scored in its place."""
    with pytest.raises(ModelError, match="half of a character"):
        vectors(load(endpoint), ["a \ud800 b"])
