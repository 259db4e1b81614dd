"""``embeval export``: a model as ONNX graphs, each proven near enough to the model itself, or nothing."""

from __future__ import annotations

import contextlib
import glob
import os
import platform
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from embeval.core import strict_json
from embeval.core.protocols import LanguageModelKind
from embeval.core.specs import Dtype, ModelSpec, RerankerSpec, RuntimeOptions
from embeval.encoders import export, loading
from embeval.encoders.export import FILES, Precision
from embeval.encoders.locate import Located
from embeval.encoders.parity import BOUNDS, Bounds
from embeval.errors import ConfigError, EvaluationError, StoreError
from embeval.language_models import kinds
from embeval.language_models import loading as language_loading
from embeval.language_models import parity as token_parity
from embeval.language_models.parity import TokenBounds, TokenParity
from embeval.rerankers import loading as reranker_loading
from embeval.rerankers import parity as score_parity
from embeval.rerankers.parity import ScoreBounds, ScoreParity
from embeval.workflows import trials
from embeval.workflows.samples import Sample
from embeval.workflows.trials import Trial

DTYPES: dict[Precision, Dtype] = {"fp32": "float32", "fp16": "float16", "int8": "int8", "int8-static": "int8"}
CALIBRATION_TEXTS = 128
REPORT = "parity.json"
MODEL = "the model itself"
PARTIAL, OLD = ".partial", ".old"
"""Endings of folders beside that of an export: in the making, and what it replaces, for the moment of the exchange."""


@dataclass(frozen=True, kw_only=True)
class Exported:
    """A graph and how it compares."""

    precision: Precision
    """Number format."""
    file: str
    """Its path in the folder."""
    n_bytes: int
    """Its size on disk, external data included."""
    trial: Trial
    """Speed and parity."""


@dataclass(frozen=True, kw_only=True)
class Report:
    """What an export came to."""

    folder: Path
    """Where it is, or would be."""
    model: ModelSpec
    """The model, its revision resolved."""
    model_bytes: int
    """Size of its own weights on disk."""
    sample: str
    """What it was compared on."""
    reference: Trial
    """The model itself."""
    graphs: tuple[Exported, ...]
    """The graphs."""

    @property
    def of_cross_encoder(self) -> bool:
        """Whether the model scores pairs, and gives no vectors."""
        return isinstance(self.reference.parity, ScoreParity)

    @property
    def of_language_model(self) -> bool:
        """Whether the model's head was exported with it, so that it gives probabilities of tokens."""
        return isinstance(self.reference.parity, TokenParity)

    @property
    def problems(self) -> list[str]:
        """What keeps the export from being written."""
        return [f"{each.precision}: {problem}" for each in self.graphs for problem in each.trial.problems]

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "model": self.model.name,
            "revision": self.model.revision,
            "model_bytes": self.model_bytes,
            "sample": self.sample,
            "reference": self.reference.to_json(),
            "graphs": [
                {"precision": each.precision, "file": each.file, "bytes": each.n_bytes, **each.trial.to_json()}
                for each in self.graphs
            ],
            "problems": self.problems,
        }


def run(
    model: ModelSpec,
    out: Path,
    precisions: Sequence[Precision],
    *,
    sample: Sample,
    runtime: RuntimeOptions,
    min_cosine: float | None = None,
    min_spearman: float | None = None,
    max_loss_change: float | None = None,
    lm_head: bool = False,
    overwrite: bool = False,
    say: Callable[[str], None],
) -> Report:
    """Exports to ``out``, which is there as a whole or not at all: not where a graph breaks a bound.

    ``min_cosine`` replaces the bound on the cosine of every precision, ``min_spearman`` that on the rank correlation of
    a cross-encoder's scores, ``max_loss_change`` all bounds of a language model. ``lm_head`` exports the language-model
    head too, of a model that has one. ``overwrite`` replaces an earlier export. Raises ``ConfigError`` where ``out`` is
    in use, ``StoreError`` where it can't be written.
    """
    place = Path(os.path.realpath(out))  # Path.resolve has no words for links that lead to each other
    _mend(place)
    _refuse_place(place, overwrite=overwrite)
    located = loading.resolve(model)
    if located.folder is not None and _overlap(place, located.folder):
        raise ConfigError(f"{out} and the model's own folder overlap. Choose another folder.")
    kind = _kind(located) if lm_head else None
    scores_pairs = kind is None and export.is_cross_encoder(located)
    if kind is not None:
        _refuse_for_language_model(located, precisions, min_cosine, min_spearman)
    elif max_loss_change is not None:
        raise ConfigError("--max-loss-change is for models that are exported with --lm-head.")
    elif scores_pairs:
        _refuse_for_cross_encoder(located, precisions, sample, min_cosine)
    elif min_spearman is not None:
        raise ConfigError("--min-spearman is for cross-encoders; this model gives vectors. Use --min-cosine.")
    partial = place.with_name(f"{_prefix(place)}{os.getpid()}{PARTIAL}")
    try:
        _sweep(place)
        partial.mkdir(parents=True)
        say("writing the graph")
        graph = _graph(located, kind, partial, scores_pairs=scores_pairs)
        files = {"fp32": graph}
        for precision in precisions:
            if precision != "fp32":
                say(f"making {precision}")
                files[precision] = _converted(precision, graph, partial, sample)
        say("comparing")
        wanted = {precision: files[precision] for precision in precisions}
        if kind is not None:
            found = _try_language_models(located, kind, partial, wanted, sample, runtime, max_loss_change)
        elif scores_pairs:
            found = _try_rerankers(located, partial, wanted, sample, runtime, min_spearman)
        else:
            found = _try_encoders(located, partial, wanted, sample, runtime, min_cosine)
        report = _report(located, partial, out, wanted, sample, found)
        if not report.problems:
            if "fp32" not in precisions:
                graph.unlink()
                for beside in graph.parent.glob(f"{graph.name}[._]data*"):
                    beside.unlink()
            (partial / REPORT).write_text(strict_json.dumps(report.to_json()), encoding="utf-8")
            _refuse_place(place, overwrite=overwrite)  # again: it has been minutes
            _put_in_place(partial, place)
        return report
    except OSError as error:
        raise StoreError(
            f"The export can't be written to {out} ({error.strerror or error}).\nNothing was left there; "
            "free some space, or choose another folder with --out."
        ) from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _refuse_place(out: Path, *, overwrite: bool) -> None:
    """Raises ``ConfigError`` where something is in the way. What is no export is never replaced."""
    if out.is_symlink():  # and that of a path which has been followed to its end
        raise ConfigError(f"{out} is a link that leads back to itself. Choose another folder.")
    if not out.exists() or (out.is_dir() and not any(out.iterdir())):
        return
    if not overwrite:
        raise ConfigError(f"{out} exists and is not empty. Choose another folder, or give --force to replace it.")
    if not (out / REPORT).is_file():
        raise ConfigError(f"{out} is no export (it has no {REPORT}), so --force doesn't replace it. Choose another.")


def _overlap(one: Path, other: Path) -> bool:
    left, right = (Path(os.path.realpath(each)) for each in (one, other))
    return left == right or left in right.parents or right in left.parents


def _prefix(out: Path) -> str:
    """What the names of folders in the making begin with, on this machine."""
    return f".{out.name}.{platform.node().replace('/', '_')}."


def _sweep(out: Path) -> None:
    """Removes what killed processes of this machine were making, and what they had replaced."""
    for left in (*_left_by_the_dead(out, PARTIAL), *_left_by_the_dead(out, OLD)):
        shutil.rmtree(left, ignore_errors=True)


def _mend(out: Path) -> None:
    """Puts an export back that a process was killed in the middle of replacing."""
    for old in _left_by_the_dead(out, OLD):
        if not out.exists():
            with contextlib.suppress(OSError):  # then it stays where it is
                old.rename(out)


def _left_by_the_dead(out: Path, ending: str) -> list[Path]:
    """Folders beside ``out`` that processes of this machine, killed since, had made."""
    found = []
    for left in out.parent.glob(f"{glob.escape(_prefix(out))}*{ending}"):
        number = left.name.removeprefix(_prefix(out)).removesuffix(ending)
        if number.isdecimal() and not _is_alive(int(number)):
            found.append(left)
    return found


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass  # another user's
    return True


def _converted(precision: Precision, graph: Path, folder: Path, sample: Sample) -> Path:
    try:
        if precision == "fp16":
            return export.to_float16(graph)
        if precision == "int8":
            return export.to_int8(graph)
        return export.to_static_int8(graph, folder, sample.texts[:CALIBRATION_TEXTS])
    except (MemoryError, OSError, ConfigError):
        raise
    except Exception as error:  # the converters raise what they like
        reason = next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
        raise EvaluationError(f"The graph can't be converted to {precision}.\n{reason[:300]}") from error


def _kind(located: Located) -> LanguageModelKind:
    """What kind of language model it is. Raises ``ConfigError`` where it is none."""
    name = located.spec.name
    if located.spec.backend not in export.EXPORTED:  # told as for any other model
        export.refuse_settings(located)
    kind, _ = language_loading.known_of(located)
    for each in ("masked", "causal", "replaced"):
        if kind == each:
            return each
    raise ConfigError(f"{name} can't be exported with a language-model head: {kinds.WHY_NOT[kind]}.")


def _graph(located: Located, kind: LanguageModelKind | None, partial: Path, *, scores_pairs: bool) -> Path:
    if kind is not None:
        from embeval.language_models import export as language_export  # brings torch

        return language_export.write_folder(located, kind, partial)
    return (export.write_cross_encoder if scores_pairs else export.write_folder)(located, partial)


def _refuse_for_language_model(
    located: Located, precisions: Sequence[Precision], min_cosine: float | None, min_spearman: float | None
) -> None:
    if "int8-static" in precisions:
        raise ConfigError(f"{located.spec.name}: with --lm-head there is no int8-static. Use int8.")
    if min_cosine is not None or min_spearman is not None:
        given = "--min-cosine" if min_cosine is not None else "--min-spearman"
        raise ConfigError(f"{given} is not for models that are exported with --lm-head. Use --max-loss-change.")


def _refuse_for_cross_encoder(
    located: Located, precisions: Sequence[Precision], sample: Sample, min_cosine: float | None
) -> None:
    if "int8-static" in precisions:
        raise ConfigError(f"{located.spec.name} is a cross-encoder, for which there is no int8-static. Use int8.")
    if min_cosine is not None:
        raise ConfigError(f"{located.spec.name} is a cross-encoder and has no cosines. Use --min-spearman.")
    if not sample.candidates:
        raise ConfigError(f"{located.spec.name} is a cross-encoder: give --sample a retrieval task to compare it on.")


def _as_model(partial: Path, precision: Precision, file: Path) -> ModelSpec:
    """A graph of the folder, as a model that can be loaded."""
    args = {"file": file.relative_to(partial).as_posix()}
    return ModelSpec(name=str(partial), backend="onnx", dtype=DTYPES[precision], args=args)


def _try_encoders(
    located: Located,
    partial: Path,
    files: Mapping[Precision, Path],
    sample: Sample,
    runtime: RuntimeOptions,
    min_cosine: float | None,
) -> list[Trial]:
    encoders = {MODEL: loading.load(located, runtime)}
    bounds: dict[str, Bounds] = {}
    for precision, file in files.items():
        spec = _as_model(partial, precision, file)
        encoders[precision] = loading.load(loading.resolve(spec), runtime)
        bound = BOUNDS[spec.dtype]
        bounds[precision] = bound if min_cosine is None else Bounds(cosine_min=min_cosine, top_10_overlap=0.0)
    return trials.run(encoders, bounds, sample)


def _try_rerankers(
    located: Located,
    partial: Path,
    files: Mapping[Precision, Path],
    sample: Sample,
    runtime: RuntimeOptions,
    min_spearman: float | None,
) -> list[Trial]:
    args = {"label": 0}  # all labels come out of one and the same product
    own = RerankerSpec(name=str(located.folder), args={**located.spec.args, **args})
    rerankers = {MODEL: reranker_loading.load(reranker_loading.resolve(own), runtime)}
    bounds: dict[str, ScoreBounds] = {}
    for precision, file in files.items():
        graph = _as_model(partial, precision, file)
        spec = RerankerSpec(name=graph.name, backend=graph.backend, dtype=graph.dtype, args={**graph.args, **args})
        rerankers[precision] = reranker_loading.load(reranker_loading.resolve(spec), runtime)
        bound = score_parity.BOUNDS[spec.dtype]
        bounds[precision] = bound if min_spearman is None else ScoreBounds(spearman=min_spearman, top_1=0.0)
    return trials.run_rerankers(rerankers, bounds, sample)


def _try_language_models(
    located: Located,
    kind: LanguageModelKind,
    partial: Path,
    files: Mapping[Precision, Path],
    sample: Sample,
    runtime: RuntimeOptions,
    max_loss_change: float | None,
) -> list[Trial]:
    models = {MODEL: language_loading.load(located, kind, runtime)}
    bounds: dict[str, TokenBounds] = {}
    for precision, file in files.items():
        spec = _as_model(partial, precision, file)
        models[precision] = language_loading.load(loading.resolve(spec), kind, runtime)
        bound = token_parity.BOUNDS[spec.dtype]
        bounds[precision] = bound if max_loss_change is None else TokenBounds(loss_change=max_loss_change)
    return trials.run_language_models(models, bounds, sample)


def _report(
    located: Located, partial: Path, out: Path, files: Mapping[Precision, Path], sample: Sample, found: list[Trial]
) -> Report:
    assert located.folder is not None
    return Report(
        folder=out,
        model=located.spec,
        model_bytes=sum(file.stat().st_size for file in located.folder.rglob("*.safetensors")),
        sample=sample.name,
        reference=found[0],
        graphs=tuple(
            Exported(
                precision=precision,
                file=file.relative_to(partial).as_posix(),
                n_bytes=sum(each.stat().st_size for each in file.parent.glob(f"{file.name}*")),
                trial=trial,
            )
            for (precision, file), trial in zip(files.items(), found[1:], strict=True)
        ),
    )


def _put_in_place(partial: Path, out: Path) -> None:
    old = partial.with_suffix(OLD)
    try:
        if out.exists():
            out.rename(old)
        partial.rename(out)
    except BaseException:  # Ctrl-C as well
        if old.exists() and not out.exists():
            old.rename(out)
        raise
    shutil.rmtree(old, ignore_errors=True)


assert set(DTYPES) == set(FILES)
