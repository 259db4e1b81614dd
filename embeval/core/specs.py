"""What is evaluated, on what, and how: specs that a result is fully determined by."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import ClassVar, Literal

from embeval.core import strict_json
from embeval.core.border import BORDER

Dtype = Literal["float32", "bfloat16", "float16", "int8"]
Quantization = Literal["int8", "binary"]
Prompting = Literal["auto", "none", "swap"]
PoolingName = Literal["cls", "mean", "max", "lasttoken", "weightedmean", "mean_sqrt_len"]
SimilarityName = Literal["cosine", "dot", "euclidean", "manhattan"]
Scalar = str | int | float | bool | None

MAX_THREADS = 1024
"""More are a typing mistake, and would take a machine down."""

MAX_RESAMPLES = 1_000_000
"""More tell nothing new, and take the memory of a machine."""

_LATER_FIELDS = {"prompting": "auto", "quantize": None, "rescore": None}
"""Fields that came after results were stored: at their defaults they don't count, so that these stay what they are."""
_ANY_MODEL = re.compile(r"model|checkpoint[-_]?\d*|final|best|last|output|export|main|\d+", re.IGNORECASE)
_PLAIN_NAME = re.compile(r"\w[\w.-]*")
_DEVICE = re.compile(r"auto|cpu|mps|cuda(:\d{1,3})?")


class Role(StrEnum):
    """What a text is to the model: models with prompts treat the two sides of a search differently."""

    QUERY = "query"
    DOCUMENT = "document"
    TEXT = "text"
    """Neither side, as in STS, where both sentences are alike."""


def could_be_any(name: str) -> bool:
    """Whether the name of a folder says nothing of the model in it: ``model``, ``checkpoint-500``."""
    return _ANY_MODEL.fullmatch(name) is not None


@dataclass(frozen=True, kw_only=True)
class ModelSpec:
    """A model with everything that may change a score, and nothing else."""

    __pydantic_config__ = BORDER

    name: str
    """Hub name, local folder, or ``demo``; in a stored result the short name without any local path."""
    backend: str = "sentence_transformers"
    """Which file of ``embeval/encoders/backends`` runs it."""
    revision: str | None = None
    """Commit, ``sha256:…`` of the model's files, or ``builtin:…``; never null in a result. Given for a local
    folder, it must match."""
    pooling: PoolingName | None = None
    """Overrides the pooling that the model declares."""
    normalize: bool | None = None
    """true: unit length whatever the model does; false: the model must not normalise; null: as the model does."""
    max_seq_length: int | None = None
    """Tokens kept of a text; null: as the model declares."""
    prompts: Mapping[str, str] = field(default_factory=dict)
    """Text put before each input, by role (``query``, ``document``), task name or task type; overrides the
    model's own."""
    truncate_dim: int | None = None
    """First dimensions kept (Matryoshka); re-normalised if the full vector was."""
    dtype: Dtype = "float32"
    """Number format inside the model; int8 needs an exported model. Everything after the model is float32 or
    better."""
    similarity: SimilarityName | None = None
    """How two vectors are compared; null: as the model declares, else cosine."""
    args: Mapping[str, Scalar] = field(default_factory=dict)
    """Options of the backend, such as ``trust_remote_code: true`` or ``dim: 512``."""
    prompting: Prompting = "auto"
    """``none``: no prompt for anything; ``swap``: queries get the prompt of documents and documents that of queries.
    To see what prompts are worth."""
    quantize: Quantization | None = None
    """What vectors are stored as: ``int8`` (one scale per vector) or ``binary`` (the sign of each dimension)."""
    rescore: int | None = None
    """With quantize: so many candidates per wanted hit are found with quantised queries, and ranked by the query's
    own float32 vector; null: the quantised ranking stands."""

    def __post_init__(self) -> None:
        if not str(self.name).strip():
            raise ValueError("name must not be empty")
        if self.rescore is not None and self.quantize is None:
            raise ValueError("rescore needs quantize: without it nothing is lost that could be won back")
        if self.rescore is not None and not 1 <= self.rescore <= 1000:
            raise ValueError(f"rescore must be from 1 to 1000 candidates per hit, not {self.rescore}")

    @property
    def digest(self) -> str:
        """sha256 over all fields. Where the revision is a hash of the files, the name does not count."""
        fields = dataclasses.asdict(self)
        if self.revision is not None and self.revision.startswith("sha256:"):
            del fields["name"]
        for name, default in _LATER_FIELDS.items():
            if fields[name] == default:
                del fields[name]
        return strict_json.digest(fields)

    @property
    def label(self) -> str:
        """A short name for tables: the part of the name that says something, with what differs from the defaults."""
        outer, _, short = self.name.rstrip("/").rpartition("/")
        parts = [f"{outer}/{short}" if outer and could_be_any(short) else short]
        if self.dtype != "float32":
            parts.append(self.dtype)
        if self.pooling is not None:
            parts.append(self.pooling)
        if self.truncate_dim is not None:
            parts.append(f"{self.truncate_dim}d")
        if self.max_seq_length is not None:
            parts.append(f"{self.max_seq_length} tokens")
        if self.similarity is not None:
            parts.append(self.similarity)
        if self.normalize is not None:
            parts.append("normalised" if self.normalize else "not normalised")
        if self.prompts:
            parts.append("own prompts")
        if self.prompting != "auto":
            parts.append({"none": "no prompts", "swap": "swapped prompts"}[self.prompting])
        if self.quantize is not None:
            parts.append(f"{self.quantize} vectors" + (f" rescored x{self.rescore}" if self.rescore else ""))
        parts.extend(f"{key}={value}" for key, value in sorted(self.args.items()))
        return parts[0] if len(parts) == 1 else f"{parts[0]} ({', '.join(parts[1:])})"


@dataclass(frozen=True, kw_only=True)
class RerankerSpec:
    """A cross-encoder with everything that may change a score of a pair, and nothing else."""

    __pydantic_config__ = BORDER

    name: str
    """Hub name or local folder; in a stored result the short name without any local path."""
    backend: str = "sentence_transformers"
    """Which file of ``embeval/rerankers/backends`` runs it."""
    revision: str | None = None
    """Commit or ``sha256:…`` of the model's files; never null in a result. Given for a local folder, it must match."""
    max_seq_length: int | None = None
    """Tokens kept of a pair, special ones included; null: as the model declares."""
    dtype: Dtype = "float32"
    """Number format inside the model. Everything after the model is float32."""
    args: Mapping[str, Scalar] = field(default_factory=dict)
    """Options of the backend, such as ``trust_remote_code: true`` or ``label: 1``."""

    def __post_init__(self) -> None:
        if not str(self.name).strip():
            raise ValueError("name must not be empty")

    @property
    def digest(self) -> str:
        """sha256 over all fields. Where the revision is a hash of the files, the name does not count."""
        fields = dataclasses.asdict(self)
        if self.revision is not None and self.revision.startswith("sha256:"):
            del fields["name"]
        return strict_json.digest(fields)


@dataclass(frozen=True, kw_only=True)
class RuntimeOptions:
    """How a model is run. Changes the speed, not what is measured; recorded in the provenance."""

    __pydantic_config__ = BORDER

    device: str = "auto"
    """``auto``, ``cpu``, ``cuda``, ``cuda:1`` or ``mps``. Asking for a device that is not there is an error."""
    batch_tokens: int | Literal["auto"] | None = None
    """Padded tokens per batch; ``auto``: measured once on this machine; null: the default of a CPU, and ``auto`` on
    a GPU."""
    num_threads: int | None = None
    """CPU threads of the model; null: as torch chooses."""
    compile: bool = False
    """Whether the model goes through torch.compile first: slow to start, then faster."""
    cache: bool = True
    """Whether vectors are kept on this machine and found again."""

    def budget_or(self, default: int) -> int:
        """The padded tokens per batch that were asked for as a number, else the default."""
        return self.batch_tokens if isinstance(self.batch_tokens, int) else default

    def __post_init__(self) -> None:
        if not _DEVICE.fullmatch(self.device):
            raise ValueError(f"device must be auto, cpu, mps, cuda or cuda:0 and so on, not {self.device!r}")
        for name in ("batch_tokens", "num_threads"):
            value = getattr(self, name)
            if isinstance(value, int) and value < 1:
                raise ValueError(f"{name} must be at least 1, not {value}")
        if self.num_threads is not None and self.num_threads > MAX_THREADS:
            raise ValueError(f"num_threads must be at most {MAX_THREADS}, not {self.num_threads}")


@dataclass(frozen=True, kw_only=True)
class StatisticsOptions:
    """How the uncertainty of a score is estimated."""

    __pydantic_config__ = BORDER

    resamples: int = 10_000
    """Bootstrap resamples behind each interval; 0 turns intervals off."""
    level: float = 0.95
    """Coverage that the interval aims at."""
    seed: int = 0
    """Seed of the resampling."""

    def __post_init__(self) -> None:
        if self.resamples < 0 or 0 < self.resamples < 100:
            raise ValueError(f"resamples must be 0 or at least 100, not {self.resamples}")
        if self.resamples > MAX_RESAMPLES:
            raise ValueError(f"resamples must be at most {MAX_RESAMPLES}, not {self.resamples}")
        if not 0.5 <= self.level < 1.0:
            raise ValueError(f"level must lie in [0.5, 1), not {self.level}")
        if self.seed < 0:
            raise ValueError(f"seed must not be negative, but is {self.seed}")


@dataclass(frozen=True, kw_only=True)
class DatasetRef:
    """Where rows come from."""

    __pydantic_config__ = BORDER

    path: str
    """File or folder. In the catalogue relative to the data root, in embeval.yaml to the file's folder."""
    split: str = "test"
    """Which part of the data set."""

    def __post_init__(self) -> None:
        if not _PLAIN_NAME.fullmatch(str(self.split)):
            raise ValueError(f"split must be a plain name such as test, not {self.split!r}")


@dataclass(frozen=True, kw_only=True)
class TaskSpec:
    """A task type, bound to data and options."""

    __pydantic_config__ = BORDER
    left_out_if_null: ClassVar[tuple[str, ...]] = ("category",)

    name: str
    """Short and unique; names the folder of its results."""
    type: str
    """Which file of ``embeval/tasks`` runs it."""
    dataset: DatasetRef
    """Its data."""
    options: Mapping[str, strict_json.Json] = field(default_factory=dict)
    """Options of the task type that differ from their defaults."""
    main_score: str | None = None
    """The metric that stands for the task in tables; null: the task type's."""
    languages: tuple[str, ...] = ()
    """ISO 639-3 codes."""
    license: str | None = None
    """Licence of the data as its source states it."""
    citation: str | None = None
    """Where the data was published."""
    version: int = 1
    """Raised when the same name measures something else; results of different versions are not comparable."""
    category: str | None = None
    """What kind of task it is, in mteb's words (``Retrieval``, ``STS``), where its type alone doesn't say; null: it
    does."""

    def __post_init__(self) -> None:
        if not str(self.name).strip():
            raise ValueError("name must not be empty")
        if self.version < 1:
            raise ValueError(f"version must be at least 1, not {self.version}")
