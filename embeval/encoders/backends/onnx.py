"""``onnx``: an exported model in our own onnxruntime session, on CPU, CUDA or TensorRT.

The graph runs the transformer; tokenizer, pooling, dense layers, normalisation and prompts come from the files beside
it, never from a guess. ``dtype`` chooses among the graphs of a folder: ``onnx/model.onnx`` (float32),
``onnx/model_fp16.onnx``, ``onnx/model_int8.onnx``; ``args.file`` names any other. ``embeval export`` writes such
folders, and so do optimum and sentence-transformers.

In a graph with dynamic int8, activations are scaled by what is in the batch: a text's vector then hangs, a little, on
its neighbours. ``embeval models check`` shows by how much.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from embeval.core.protocols import Encoder, EncoderInfo
from embeval.core.specs import Dtype, ModelSpec, Role, RuntimeOptions
from embeval.encoders import locate, modules, tokens
from embeval.encoders.batching import Rows
from embeval.encoders.encoder import BatchedEncoder, check_dim
from embeval.encoders.locate import Located
from embeval.encoders.onnx_session import Session
from embeval.encoders.tokens import Tokens
from embeval.errors import ConfigError, ModelError

FILES: dict[str, tuple[str, ...]] = {
    "float32": ("model.onnx",),
    "float16": ("model_fp16.onnx", "model_float16.onnx"),
    "int8": ("model_int8.onnx", "model_quantized.onnx", "model_qint8_*.onnx", "model_quint8_*.onnx"),
}
"""Names of the graph for each number format: ours and those of optimum and sentence-transformers."""
CPU_BATCH_TOKENS, GPU_BATCH_TOKENS = 1_024, 32_768
EXPORT_FILE = "embeval_export.json"
"""What an export says of itself beside its graph: which model it was, and for how many tokens it has positions. Of a
language model's, with its head, also which kind of one it is."""

KIND = "kind"
"""The key in it that only a language model's export has."""


class _Backend:
    summary = "an exported model in onnxruntime: cpu, cuda or tensorrt"
    options = ("file", "provider")
    dtypes: tuple[Dtype, ...] = ("float32", "float16", "int8")

    def resolve(self, spec: ModelSpec, *, verify: bool) -> Located:
        for name, value in spec.args.items():
            if name not in self.options:
                raise ConfigError(f"Backend 'onnx' has no option {name!r}; it takes {', '.join(self.options)}.")
            if not isinstance(value, str) or not value:
                raise ConfigError(f"Model {spec.name!r}: {name} must be text, not {value!r}.")
        if not str(spec.args.get("file", ".onnx")).endswith(".onnx"):
            raise ConfigError(
                f"Model {spec.name!r}: file must be the name of an .onnx file, not {spec.args['file']!r}."
            )
        if spec.dtype not in FILES:
            raise ConfigError(
                f"Model {spec.name!r}: the backend 'onnx' has {', '.join(FILES)}, but no dtype {spec.dtype!r}.",
                key=("dtype",),
            )
        patterns = [str(spec.args["file"])] if "file" in spec.args else list(FILES[spec.dtype])
        return locate.locate(spec, verify=verify, graphs=patterns)

    def load(self, located: Located, runtime: RuntimeOptions) -> Encoder:
        return BatchedEncoder(located.spec, _Onnx(located, runtime))


BACKEND = _Backend()


class _Onnx:
    def __init__(self, located: Located, runtime: RuntimeOptions) -> None:
        assert located.folder is not None
        spec = located.spec
        if runtime.compile:
            raise ConfigError("The backend 'onnx' has nothing to compile; leave --compile out.")
        refuse_language_model(located.folder, spec)
        file = graph_file(located.folder, spec)
        provider = spec.args.get("provider")
        self._session = Session(file, runtime, provider=None if provider is None else str(provider), name=spec.name)
        if self._session.gives_tokens:
            stack = modules.read(located.folder, spec)
        else:
            _refuse_pooling(spec, file)
            stack = modules.without_pooling(located.folder, spec)
        self._stack = stack
        self._tokenizer = load_tokenizer(stack.transformer, spec)
        if stack.max_seq_length is not None:
            self._tokenizer.model_max_length = stack.max_seq_length
        positions = position_limit(stack.transformer)
        self._limit, remarks = tokens.choose_limit(
            self._tokenizer, asked=spec.max_seq_length, positions=positions, name=spec.name
        )
        self.left = tokens.pads_left(self._tokenizer, positions)
        self.default_prompt_name = stack.default_prompt_name
        if not self._session.gives_tokens:
            remarks.append(f"{file.name} pools by itself; the modules declared beside it were not run.")
        on_cpu = self._session.device == "cpu"
        self.info = EncoderInfo(
            dim=check_dim(spec, self._dim()),
            max_seq_length=self._limit,
            similarity=spec.similarity or stack.similarity or "cosine",
            prompts=dict(stack.prompts or {}),
            pooling="+".join(stack.pooling) if self._session.gives_tokens else "in the graph",
            n_parameters=None,
            device=self._session.device,
            num_threads=self._session.num_threads if on_cpu else None,
            batch_tokens=runtime.budget_or(CPU_BATCH_TOKENS if on_cpu else GPU_BATCH_TOKENS),
            extra={"execution_provider": self._session.provider, "graph": file.name},
            remarks=tuple(remarks),
        )

    def prepare(self, texts: Sequence[str], *, prompt: str, role: Role) -> Tokens:
        whole = [prompt + text for text in texts] if prompt else texts
        if self._stack.lower_case:
            whole = [text.lower() for text in whole]
        return tokens.tokenize(self._tokenizer, whole, self._limit)

    def forward(self, prepared: Tokens, rows: Rows) -> npt.NDArray[np.float32]:
        features = tokens.pad(self._tokenizer, prepared, rows, left=self.left)
        output = self._session.run(features).astype(np.float32, copy=False)
        if not self._session.gives_tokens:
            return np.ascontiguousarray(output)
        pooled = self._stack.pooled(output, features["attention_mask"]).astype(np.float32, copy=False)
        return self._stack.finished(pooled)

    def _dim(self) -> int:
        """The length of a vector, by making one."""
        return int(self.forward(self.prepare(["a"], prompt="", role=Role.TEXT), np.array([0], dtype=np.intp)).shape[1])


def _refuse_pooling(spec: ModelSpec, file: Path) -> None:
    if spec.pooling is not None:
        raise ConfigError(f"Model {spec.name!r}: {file.name} pools by itself, so its pooling can't be set.")


def graph_file(folder: Path, spec: ModelSpec) -> Path:
    """The graph that a spec asks for. Raises ``ModelError`` that lists those that are there."""
    patterns = (str(spec.args["file"]),) if "file" in spec.args else FILES[spec.dtype]
    found = locate.graphs_in(folder, patterns)
    if not found:
        there = ", ".join(path.relative_to(folder).as_posix() for path in sorted(folder.rglob("*.onnx")))
        wanted = f"no {spec.args['file']}" if "file" in spec.args else f"no graph in {spec.dtype}"
        raise ModelError(
            f"Model folder of {spec.name!r} has {wanted}; there {'is ' + there if there else 'are no .onnx files'}.\n"
            "'embeval export' makes them."
        )
    return found[0]


def noted(folder: Path) -> Mapping[str, Any]:
    """What ``EXPORT_FILE`` in a transformer's folder says; empty where we didn't write the export."""
    return _json(folder / EXPORT_FILE)


def refuse_language_model(folder: Path, spec: ModelSpec) -> None:
    """Raises ``ModelError`` where the graphs of a folder give scores of tokens, as a language model's do."""
    if KIND in noted(modules.transformer_folder(folder, spec)):
        raise ModelError(
            f"Model {spec.name!r} was exported with its language-model head: its graph gives probabilities of tokens "
            "and no vectors.\nTasks that score tokens take it, such as pseudo_likelihood. For vectors export the model "
            "without --lm-head."
        )


def load_tokenizer(folder: Path, spec: ModelSpec) -> Any:
    """The fast tokenizer of a folder, ready to pad. Raises ``ModelError``."""
    from embeval.encoders.torch_runtime import quiet_libraries

    with quiet_libraries():
        from transformers import AutoTokenizer

        try:
            remote = bool(spec.args.get("trust_remote_code", False))  # said either way, as the library asks otherwise
            tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=remote)
        except Exception as error:  # the library raises whatever it likes for a broken folder
            reason = next((line for line in str(error).splitlines() if line.strip()), "no reason given")
            raise ModelError(f"Model {spec.name!r}: its tokenizer can't be loaded.\n{reason[:300]}") from error
    if not tokenizer.is_fast:
        raise ModelError(f"Model {spec.name!r} has no fast tokenizer (tokenizer.json). Export it again.")
    tokens.refuse_no_vocabulary(tokenizer, spec.name, n_vectors=_json(folder / "config.json").get("vocab_size"))
    if tokenizer.pad_token_id is None and tokenizer.eos_token_id is not None:
        tokenizer.pad_token = tokenizer.eos_token  # what stands under the mask is never read
    return tokenizer


def _json(file: Path) -> dict[str, Any]:
    return modules.json_object(file) if file.is_file() else {}


ROTARY_OR_RELATIVE = (
    "deberta-v2 gemma gemma2 gemma3_text llama mistral modernbert mt5 qwen2 qwen3 t5 umt5 xlnet".split()
)
"""Types of models whose ``max_position_embeddings`` is no table that ends."""
BEHIND_PADDING = ("roberta", "xlm-roberta", "camembert", "mpnet", "longformer")
"""Types of models that count positions from behind the padding id."""


def position_limit(folder: Path) -> int | None:
    """Tokens that the model has positions for, from its configuration; None where it has no table of them."""
    exported = _json(folder / EXPORT_FILE)
    if "positions" in exported:
        return modules.whole_number(exported, "positions", folder / EXPORT_FILE, least=1)
    file = folder / "config.json"
    config = _json(file)
    kind, size = config.get("model_type", ""), modules.whole_number(config, "max_position_embeddings", file, least=1)
    if size is None or kind in ROTARY_OR_RELATIVE:
        return None
    if kind not in BEHIND_PADDING:
        return size
    padding = modules.whole_number(config, "pad_token_id", file, least=0)
    return size - (1 if padding is None else padding) - 1
