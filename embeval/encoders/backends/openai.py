"""``openai``: any endpoint that speaks OpenAI's ``/v1/embeddings``, through the ``openai`` package (extra ``api``).

The name is the model's name at the endpoint. Options: ``base_url`` (default: ``OPENAI_BASE_URL``, else OpenAI's own),
``api_key_env`` (the environment variable with the key, default ``OPENAI_API_KEY``; a server on this machine needs
none), ``dimensions`` (asked of the endpoint, for models that can shorten their vectors). How fast requests are sent,
and how often again, is set by ``EMBEVAL_API_…`` variables (``embeval/encoders/endpoint.py``).

What answers behind a name can't be verified, so the revision is the word ``unverifiable``. The endpoint decides how
long a text may be and doesn't tell what it cut off, so ``max_seq_length`` is refused and lost tokens are not known.

The package tries again on 408, 409, 429, 5xx, time-outs and lost connections, after the time that ``Retry-After``
names (two minutes at most) or after 0.5, 1, 2, 4, 8, 8, … seconds less up to a quarter.
"""

from __future__ import annotations

import base64
import binascii
import ipaddress
import json
import os
import re
import weakref
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import numpy.typing as npt

from embeval.core.packages import require
from embeval.core.protocols import Encoder, EncoderInfo
from embeval.core.specs import Dtype, ModelSpec, Role, RuntimeOptions
from embeval.encoders.batching import Lengths, Rows
from embeval.encoders.encoder import BatchedEncoder, check_dim
from embeval.encoders.endpoint import Limits, Pace, Usage, in_parallel
from embeval.encoders.locate import Located
from embeval.errors import ConfigError, ModelError

REVISION = "unverifiable"
DEFAULT_URL = "https://api.openai.com/v1"
DEFAULT_KEY_VARIABLE = "OPENAI_API_KEY"
NO_KEY = "no-key-needed"
"""What a server on this machine is sent where no key is set; the package insists on one."""
BYTES_PER_TOKEN = 3
"""UTF-8 bytes behind an estimated token: on the safe side for English (4 to 5), about right for Chinese."""
WAVES = 4
"""Requests per thread between two reports of progress."""
PROBE = "dimensions"
"""The text that is sent first, to learn how long the vectors are and whether the endpoint answers at all."""
PROBE_RETRIES = 2
MAX_MESSAGE = 200
"""Characters that are shown of what a server says."""
TOO_MUCH = (400, 413, 422)
"""What servers answer to a text, or to a request, that is too long."""

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True)
class _Texts:
    texts: list[str]
    lengths: Lengths
    """Estimated tokens."""
    lost: Lengths | None = None
    unknown: Lengths | None = None

    def key(self, row: int) -> bytes:
        return self.texts[row].encode("utf-8")


class _Endpoint:
    """Texts to vectors by requests, several at a time."""

    default_prompt_name: str | None = None

    def __init__(self, spec: ModelSpec, runtime: RuntimeOptions) -> None:
        if runtime.device != "auto":
            raise ConfigError(f"Backend 'openai' runs elsewhere; the device {runtime.device!r} can't be used.")
        self._openai = require("openai", extra="api", purpose="The backend 'openai'")
        self._spec, self._limits = spec, Limits.from_environment()
        self._pace, self._usage = Pace(self._limits), Usage()
        self._url = str(spec.args.get("base_url", DEFAULT_URL))
        self._key = _key(spec, self._url)
        self._client = self._openai.OpenAI(
            base_url=self._url,
            api_key=self._key,
            timeout=self._limits.timeout_s,
            max_retries=min(PROBE_RETRIES, self._limits.max_retries),  # a dead server is told soon
        )
        # Else its connections wait for the garbage collector; also where the first request ends in an error.
        weakref.finalize(self, self._client.close)
        self._dim: int | None = None
        self._dim = self._request([PROBE]).shape[1]
        self._client = self._client.with_options(max_retries=self._limits.max_retries)
        budget = WAVES * self._limits.concurrency * self._limits.tokens_per_request
        self.info = EncoderInfo(
            dim=check_dim(spec, self._dim),
            max_seq_length=None,
            similarity=spec.similarity or "cosine",
            prompts={},
            pooling=None,
            n_parameters=None,
            device="endpoint",
            num_threads=None,
            batch_tokens=runtime.budget_or(budget),
            extra=self._extra(),
        )

    def _extra(self) -> dict[str, str]:
        return {"endpoint": self._url, **self._usage.described(self._limits.price_per_million_tokens)}

    def prepare(self, texts: Sequence[str], *, prompt: str, role: Role) -> _Texts:
        whole = [prompt + text for text in texts]
        return _Texts(whole, np.array([_estimate(text) for text in whole], dtype=np.int64))

    def forward(self, prepared: _Texts, rows: Rows) -> npt.NDArray[np.float32]:
        found = in_parallel(self._request, list(self._requests(prepared, rows)), self._limits.concurrency)
        self.info = replace(self.info, extra=self._extra())
        return np.concatenate(found)

    def _requests(self, prepared: _Texts, rows: Rows) -> Iterator[list[str]]:
        """The texts of each request, in the order of the rows."""
        texts: list[str] = []
        tokens = 0
        for row in rows.tolist():
            more = int(prepared.lengths[row])
            full = len(texts) == self._limits.texts_per_request or tokens + more > self._limits.tokens_per_request
            if texts and full:
                yield texts
                texts, tokens = [], 0
            texts.append(prepared.texts[row])
            tokens += more
        yield texts

    def _request(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """float32 [len(texts), d] of one request. Raises ``ModelError``."""
        try:
            content = self._send(texts)
        except self._openai.APIStatusError as error:
            raise ModelError(self._refusal(error, texts)) from None
        except self._openai.APITimeoutError:
            seconds, tries = self._limits.timeout_s, self._client.max_retries + 1
            raise ModelError(
                f"{self._where} gave no answer within {seconds:g} s, in {tries} {'try' if tries == 1 else 'tries'}.\n"
                "Give it more time with EMBEVAL_API_TIMEOUT_S, or less to do with EMBEVAL_API_TEXTS_PER_REQUEST."
            ) from None
        except self._openai.APIConnectionError as error:
            raise ModelError(
                f"{self._where} can't be reached: {self._short(error.__cause__ or error)}.\nIs the server running, and "
                "is base_url right?"
            ) from None
        except self._openai.OpenAIError as error:
            raise ModelError(f"{self._where} failed: {self._short(error)}.") from None
        vectors, tokens = self._parsed(content, len(texts))
        self._usage.add(tokens)
        return vectors

    def _send(self, texts: Sequence[str]) -> bytes:
        self._pace.wait(sum(map(_estimate, texts)))
        asked = {"dimensions": self._spec.args["dimensions"]} if "dimensions" in self._spec.args else {}
        # The raw answer: the package builds its objects without checking anything that is in it.
        answer = self._client.embeddings.with_raw_response.create(
            model=self._spec.name, input=list(texts), encoding_format="base64", **asked
        )
        return bytes(answer.content)

    @property
    def _where(self) -> str:
        return f"Model {self._spec.name!r} at {self._url}"

    def _refusal(self, error: Any, texts: Sequence[str]) -> str:
        """What a status says, in three lines at most."""
        status = error.status_code
        first = f"{self._where} answered with status {status}: {self._short(_server_message(error))}."
        if status in (401, 403):
            variable = self._spec.args.get("api_key_env", DEFAULT_KEY_VARIABLE)
            return f"{first}\nIs the key in the environment variable {variable} right?"
        if status == 404:
            return f"{first}\nIs the name of the model right, and base_url? It usually ends in /v1."
        if status == 429:
            return f"{first}\nSlow down with EMBEVAL_API_REQUESTS_PER_MINUTE or EMBEVAL_API_TOKENS_PER_MINUTE."
        if status in TOO_MUCH:
            longest = max(texts, key=_estimate)
            if len(texts) == 1 or not self._accepts(longest):
                return f"{first}\nThe text: {len(longest)} characters, starting with {longest[:40]!r}."
            return (
                f"{first}\nThe request held {len(texts)} texts. Send fewer at once with "
                "EMBEVAL_API_TEXTS_PER_REQUEST or EMBEVAL_API_TOKENS_PER_REQUEST."
            )
        return first

    def _accepts(self, text: str) -> bool:
        """Whether a text that was refused among others is accepted alone."""
        try:
            self._send([text])
        except self._openai.OpenAIError:
            return False
        return True

    def _short(self, error: object) -> str:
        """One line that never holds the key, though a server may have repeated it."""
        words = " ".join(str(error).replace(self._key, "…").split()).rstrip(".")
        text = "".join(each if each.isprintable() else "?" for each in words) or type(error).__name__
        return text if len(text) <= MAX_MESSAGE else text[: MAX_MESSAGE - 1] + "…"

    def _parsed(self, content: bytes, n: int) -> tuple[npt.NDArray[np.float32], int | None]:
        """(float32 [n, d] in the order asked for, tokens as the endpoint counted them)."""
        try:
            answer = json.loads(content)  # takes a bare NaN, which is then refused with the name of its text
        except (ValueError, RecursionError):  # the latter for brackets within brackets without end
            raise ModelError(
                f"{self._where} answered with something that is not JSON.\nIs base_url right? It usually ends in /v1."
            ) from None
        data = answer.get("data") if isinstance(answer, dict) else None
        if not isinstance(data, list) or not all(isinstance(each, dict) for each in data):
            raise ModelError(f"{self._where} answered without a list 'data', so it holds no embeddings.")
        if len(data) != n:
            raise ModelError(f"{self._where} gave {len(data)} vectors for {n} texts.")
        place = [each.get("index", number) for number, each in enumerate(data)]
        if not all(type(each) is int for each in place) or sorted(place) != list(range(n)):
            raise ModelError(f"{self._where} gave vectors whose 'index' is not 0 to {n - 1}, each once.")
        vectors = [self._vector(data[row].get("embedding")) for row in np.argsort(place).tolist()]
        usage = answer.get("usage")
        tokens = usage.get("prompt_tokens") if isinstance(usage, dict) else None
        return np.stack(vectors), tokens if type(tokens) is int and tokens >= 0 else None

    def _vector(self, value: object) -> npt.NDArray[np.float32]:
        """float32 [d] of a list of numbers, or of base64 over little-endian float32."""
        try:
            if isinstance(value, str):
                vector = np.frombuffer(base64.b64decode(value, validate=True), dtype="<f4").astype(np.float32)
            else:
                if isinstance(value, list) and not {str, bool}.isdisjoint(map(type, value)):
                    raise ValueError("numpy would take '0.5' and true for numbers")
                with np.errstate(over="ignore"):
                    vector = np.array(value, dtype=np.float64).astype(np.float32)
        except (ValueError, TypeError, OverflowError, binascii.Error):
            vector = np.empty(0, dtype=np.float32)
        if vector.ndim != 1 or not len(vector):
            raise ModelError(f"{self._where} gave an embedding that is neither a list of numbers nor base64 of them.")
        wanted = self._spec.args.get("dimensions") or self._dim or len(vector)
        if len(vector) != wanted:
            raise ModelError(f"{self._where} gave a vector of {len(vector)} dimensions, where {wanted} were expected.")
        return vector


def _estimate(text: str) -> int:
    """Tokens, about. Raises ``ModelError`` for half of a character, which JSON can't carry."""
    try:
        return max(1, -(-len(text.encode("utf-8")) // BYTES_PER_TOKEN))
    except UnicodeEncodeError:
        raise ModelError(f"A text holds half of a character and can't be sent: {text[:40]!r}.") from None


def _server_message(error: Any) -> str:
    """The message inside the usual ``{"error": {"message": …}}``, else what there is."""
    body = error.body
    if isinstance(body, dict):
        found = body.get("message", body.get("detail", body.get("error")))
        return str(found if found is not None else body)
    return str(body or error.message)


def _is_loopback(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _key(spec: ModelSpec, url: str) -> str:
    """The key from the environment. Raises ``ConfigError``, which names the variable and never the key."""
    variable = str(spec.args.get("api_key_env", DEFAULT_KEY_VARIABLE))
    key = os.environ.get(variable, "").strip()
    if not key:
        if _is_loopback(url):
            return NO_KEY
        raise ConfigError(
            f"Model {spec.name!r} at {url} needs a key, and the environment variable {variable} is not set.\n"
            "Set it, or name another variable with api_key_env."
        )
    if not key.isascii() or not key.isprintable():
        raise ConfigError(f"The key in the environment variable {variable} holds characters that no key has.")
    return key


def _with_url(spec: ModelSpec) -> ModelSpec:
    """The spec with the address that it stands for, so that two servers never pass for one model."""
    url = str(spec.args.get("base_url") or os.environ.get("OPENAI_BASE_URL", "").strip() or DEFAULT_URL).rstrip("/")
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigError("Backend 'openai': base_url must be an address such as http://127.0.0.1:8000/v1.")
    if parts.username is not None or parts.password is not None or parts.query:
        # It is stored with every result, so it must hold no secret; and it is not repeated here.
        raise ConfigError(
            "Backend 'openai': base_url must hold no user, password or query. Give the key by api_key_env."
        )
    others = {name: value for name, value in spec.args.items() if name != "base_url"}
    return replace(spec, args=others if url == DEFAULT_URL else {**others, "base_url": url})


def _check(spec: ModelSpec) -> None:
    """Raises ``ConfigError`` for settings that this backend doesn't have."""
    if unknown := sorted(set(spec.args) - set(_Backend.options)):
        options = ", ".join(_Backend.options)
        raise ConfigError(f"Backend 'openai' has no option {unknown[0]!r}; its options are {options}.")
    if spec.pooling is not None or spec.dtype != "float32":
        raise ConfigError("Backend 'openai': pooling and dtype are the endpoint's own. Leave them out.")
    if spec.max_seq_length is not None:
        raise ConfigError(
            "Backend 'openai': the endpoint decides how long a text may be, so max_seq_length can't act. Leave it out."
        )
    if spec.normalize is False:
        raise ConfigError("Backend 'openai': what the endpoint normalises can't be undone. Leave normalize out.")
    if not isinstance(spec.args.get("base_url", ""), str):
        raise ConfigError("Backend 'openai': base_url must be text.")
    if not _VARIABLE.fullmatch(str(spec.args.get("api_key_env", DEFAULT_KEY_VARIABLE))):
        # Perhaps the key itself, so it is not repeated here.
        raise ConfigError(
            "Backend 'openai': api_key_env must be the name of an environment variable that holds the key."
        )
    dim = spec.args.get("dimensions", 1)
    if type(dim) is not int or dim < 1:
        raise ConfigError(f"Backend 'openai': dimensions must be a whole number from 1, not {dim!r}.")


class _Backend:
    summary = "any endpoint that speaks OpenAI's /v1/embeddings"
    options = ("base_url", "api_key_env", "dimensions")
    dtypes: tuple[Dtype, ...] = ("float32",)

    def resolve(self, spec: ModelSpec, *, verify: bool) -> Located:
        _check(spec)
        if spec.revision not in (None, REVISION):
            raise ModelError(
                f"Model {spec.name!r} is behind an endpoint, so revision {spec.revision!r} can't be asked for.\n"
                f"Leave it out; the result says {REVISION!r}."
            )
        return Located(replace(_with_url(spec), revision=REVISION), None)

    def load(self, located: Located, runtime: RuntimeOptions) -> Encoder:
        return BatchedEncoder(located.spec, _Endpoint(located.spec, runtime))


BACKEND = _Backend()
