"""One ONNX model on one execution provider: the one that was asked for, or an error."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from embeval.core import provenance
from embeval.core.specs import RuntimeOptions
from embeval.errors import ConfigError, ModelError

PROVIDERS = {"cpu": "CPUExecutionProvider", "cuda": "CUDAExecutionProvider", "tensorrt": "TensorrtExecutionProvider"}
"""Short names of execution providers."""
TYPES: Mapping[str, Any] = {"tensor(int64)": np.int64, "tensor(int32)": np.int32}
TOKEN_OUTPUTS = ("last_hidden_state", "token_embeddings", "hidden_states")
TEXT_OUTPUTS = ("sentence_embedding", "text_embeds", "embeddings")
NO_VECTORS = ("logits", "pooler_output", "present")
"""Outputs that have the shape of vectors and are something else: scores of words, a head's input, a decoder's cache."""
VECTOR_TYPES = ("tensor(float)", "tensor(float16)", "tensor(double)")
SILENT = 4
"""onnxruntime's log level "fatal": what goes wrong is raised, and told by us."""

Array = npt.NDArray[Any]


class Session:
    """A graph ready to run.

    ``output`` names the one to take, where that is no vectors; ``advice`` is told where it isn't there.
    """

    def __init__(
        self,
        file: Path,
        runtime: RuntimeOptions,
        *,
        provider: str | None,
        name: str,
        output: str | None = None,
        advice: str = "",
    ) -> None:
        try:
            import onnxruntime
        except ImportError as error:
            raise ModelError(
                f"The backend 'onnx' needs onnxruntime, which can't be imported ({error}).\n"
                "pip install onnxruntime-gpu (it also runs without a GPU)."
            ) from error
        self._runtime = onnxruntime
        self._name = name
        wanted, self._device_id = _wanted(runtime.device, provider, onnxruntime.get_available_providers())
        options = onnxruntime.SessionOptions()
        options.log_severity_level = SILENT
        self.num_threads = runtime.num_threads or provenance.n_cpus()
        options.intra_op_num_threads = self.num_threads
        may_choose = runtime.device == "auto" and provider is None
        try:
            with _silent_stderr():
                try:
                    self._session = _opened(onnxruntime, file, options, wanted, self._device_id)
                except Exception:
                    if not may_choose or wanted == PROVIDERS["cpu"]:
                        raise
                    self._session = _opened(onnxruntime, file, options, PROVIDERS["cpu"], 0)
            if may_choose:  # there may be a build for GPUs, and a GPU that it can't use
                wanted = self.provider
        except Exception as error:  # onnxruntime's errors share no base class
            if wanted != PROVIDERS["cpu"]:
                raise ModelError(
                    f"Model {name!r} was to run on {wanted}, which can't be used here.\n"
                    f"{_first_line(error)}\n'embeval doctor' shows what this machine can do."
                ) from error
            raise ModelError(
                f"Model {name!r}: {file.name} can't be opened by onnxruntime.\n{_first_line(error)}"
            ) from error
        if self.provider != wanted:
            raise ModelError(
                f"Model {name!r} was to run on {wanted}, but onnxruntime uses {self.provider}.\n"
                "'embeval doctor' shows what this machine can do."
            )
        self.inputs = {each.name: TYPES.get(each.type) for each in self._session.get_inputs()}
        self.output, self.gives_tokens = self._choose_output() if output is None else (self._has(output, advice), False)

    @property
    def provider(self) -> str:
        """The execution provider in use, by onnxruntime's name."""
        return str(self._session.get_providers()[0])

    @property
    def device(self) -> str:
        """``cpu`` or ``cuda:0``."""
        return "cpu" if self.provider == PROVIDERS["cpu"] else f"cuda:{self._device_id}"

    @property
    def width(self) -> int | None:
        """The length of the output's vectors, where the graph says it."""
        shape = next(each.shape for each in self._session.get_outputs() if each.name == self.output)
        return int(shape[-1]) if isinstance(shape[-1], int) else None

    def run(self, features: Mapping[str, Array]) -> Array:
        """The chosen output for named inputs [B, T], as numpy on the CPU."""
        feeds = self._feeds(features)
        try:
            if self.device == "cpu":
                return np.asarray(self._session.run([self.output], feeds)[0])
            return self._run_bound(feeds)
        except Exception as error:  # as above
            reason = _first_line(error)
            if "allocate" in reason or "out of memory" in reason.lower():
                raise MemoryError(reason) from error
            rows, longest = features["input_ids"].shape
            raise ModelError(
                f"Model {self._name!r} fails on a batch of {rows} texts of up to {longest} tokens.\n{reason}"
            ) from error

    def _run_bound(self, feeds: Mapping[str, Array]) -> Array:
        """The same with inputs and output bound to the GPU: nothing is copied there and back between the layers."""
        binding = self._session.io_binding()
        for name, array in feeds.items():
            value = self._runtime.OrtValue.ortvalue_from_numpy(array, "cuda", self._device_id)
            binding.bind_ortvalue_input(name, value)
        binding.bind_output(self.output, "cuda", self._device_id)
        self._session.run_with_iobinding(binding)
        return np.asarray(binding.copy_outputs_to_cpu()[0])

    def _feeds(self, features: Mapping[str, Array]) -> dict[str, Array]:
        """The inputs that the graph declares, and no others (G19)."""
        feeds = {}
        for name, kind in self.inputs.items():
            if name in features:
                array = features[name]
            elif name == "token_type_ids":
                array = np.zeros_like(features["input_ids"])
            elif name == "position_ids":
                array = np.maximum(np.cumsum(features["attention_mask"], axis=1) - 1, 0)
            else:
                raise ModelError(f"Model {self._name!r}: its graph wants an input {name!r}, which is not known here.")
            feeds[name] = np.ascontiguousarray(array, dtype=kind) if kind is not None else array
        return feeds

    def _has(self, output: str, advice: str) -> str:
        every = [each.name for each in self._session.get_outputs()]
        if output not in every:
            told = f"Model {self._name!r}: its graph gives {', '.join(every)}, and no {output!r}."
            raise ModelError(f"{told}\n{advice}" if advice else told)
        return output

    def _choose_output(self) -> tuple[str, bool]:
        """(name, whether it holds a vector per token). Raises ``ModelError`` where no output fits."""
        every = [each.name for each in self._session.get_outputs()]
        outputs = {
            each.name: len(each.shape or ())
            for each in self._session.get_outputs()
            if each.type in VECTOR_TYPES and not each.name.startswith(NO_VECTORS)
        }
        for names, rank, per_token in ((TOKEN_OUTPUTS, 3, True), (TEXT_OUTPUTS, 2, False)):
            for name in names:
                if outputs.get(name) == rank:
                    return name, per_token
        by_rank = {rank: name for name, rank in reversed(outputs.items())}
        for rank in (3, 2):
            if rank in by_rank:
                return by_rank[rank], rank == 3
        raise ModelError(f"Model {self._name!r}: none of its outputs ({', '.join(every)}) holds vectors.")


def _wanted(device: str, provider: str | None, available: list[str]) -> tuple[str, int]:
    """(execution provider, number of the GPU)."""
    kind, _, number = device.partition(":")
    if kind == "mps":
        raise ModelError("Device 'mps' was asked for, but the backend 'onnx' runs on cpu and cuda.")
    if provider is not None:
        if provider not in PROVIDERS:
            raise ConfigError(f"provider must be {', '.join(PROVIDERS)}, not {provider!r}.")
        if kind not in ("auto", "cpu" if provider == "cpu" else "cuda"):
            raise ConfigError(f"provider {provider!r} does not run on the device {device!r}.")
        wanted = PROVIDERS[provider]
    elif kind == "auto":
        wanted = PROVIDERS["cuda"] if PROVIDERS["cuda"] in available and _sees_gpu() else PROVIDERS["cpu"]
    else:
        wanted = PROVIDERS[kind]
    if wanted not in available:
        raise ModelError(
            f"{wanted} was asked for, but this onnxruntime has only {', '.join(available)}.\n"
            "'embeval doctor' shows what this machine can do."
        )
    return wanted, int(number or 0)


def _sees_gpu() -> bool:
    return Path("/dev/nvidia0").exists() or Path("/dev/dxg").exists()


def _opened(onnxruntime: Any, file: Path, options: Any, provider: str, device_id: int) -> Any:
    settings = {} if provider == PROVIDERS["cpu"] else {"device_id": device_id}
    chain: list[Any] = [(provider, settings)]
    if provider == PROVIDERS["tensorrt"]:
        chain.append((PROVIDERS["cuda"], settings))  # for what TensorRT leaves over
    # Its fallback would go on with the CPU after a failure, here or in the middle of a run, and print that to stdout.
    return onnxruntime.InferenceSession(str(file), options, providers=chain, enable_fallback=0)


def _first_line(error: Exception) -> str:
    line = next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
    return line[:300]


@contextlib.contextmanager
def _silent_stderr() -> Iterator[None]:
    """onnxruntime prints to the file descriptor what it then also raises or works around."""
    try:
        kept = os.dup(2)
    except OSError:  # stderr is closed
        yield
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)
