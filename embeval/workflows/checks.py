"""What ``embeval doctor`` looks at. Nothing here reaches for the network."""

from __future__ import annotations

import os
import platform
import shutil
from collections.abc import Collection, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from embeval.core import provenance
from embeval.encoders import cache, locate
from embeval.errors import EmbevalError, did_you_mean
from embeval.store import atomic

LOW_DISK_GIB = 1.0
LOW_MEMORY_GIB = 4.0

State = Literal["ok", "note", "error"]


@dataclass(frozen=True)
class Check:
    """One thing looked at."""

    state: State
    """``error``: evaluations would fail or mislead. ``note``: worth knowing."""
    name: str
    """What was looked at."""
    found: str
    """What was found, and what to do."""

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


def run(results: Path, *, variables: Collection[str]) -> list[Check]:
    """Every check, in a fixed order. ``variables`` are the environment variables that a command takes."""
    return [*_system(results), *_packages(), *_torch(), *_onnx(), *_model(), *_environment(variables)]


def _system(results: Path) -> Iterator[Check]:
    yield Check("ok", "Python", f"{platform.python_version()} on {platform.system()} {platform.machine()}")
    yield Check("ok", "processor", f"{provenance.cpu_name()}, {provenance.n_cpus()} usable CPUs")
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        gib = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30
        yield Check("ok" if gib >= LOW_MEMORY_GIB else "note", "memory", f"{gib:.1f} GiB")
    folder = results if results.is_dir() else _existing_parent(results)
    gib = shutil.disk_usage(folder).free / 2**30
    state: State = "ok" if gib >= LOW_DISK_GIB else "note"
    yield Check(state, "disk", f"{gib:.1f} GiB free where results go ({results})")
    try:
        atomic.refuse_unwritable(results)
        yield Check("ok", "results folder", f"{results}: can be written")
    except EmbevalError as error:
        yield Check("error", "results folder", str(error).replace("\n", " "))


def _existing_parent(path: Path) -> Path:
    path = path.resolve()
    while not path.exists() and path != path.parent:
        path = path.parent
    return path


def _packages() -> Iterator[Check]:
    found = provenance.installed((*provenance.PACKAGES, "mteb", "datasets", "pydantic"))
    yield Check("ok", "packages", ", ".join(f"{name} {version}" for name, version in found.items()))
    for name in ("torch", "transformers", "sentence-transformers", "faiss-cpu"):
        if name not in found:
            yield Check("error", name, f"not installed. Install it: pip install {name}")


def _torch() -> Iterator[Check]:
    try:
        import torch
    except ImportError as error:
        yield Check("error", "torch", f"can't be imported ({error})")
        return
    yield Check("ok", "torch", f"{torch.__version__}, {torch.get_num_threads()} threads")
    if torch.cuda.is_available():
        names = [torch.cuda.get_device_name(number) for number in range(torch.cuda.device_count())]
        yield Check("ok", "GPU", ", ".join(names))
    else:
        built = torch.version.cuda
        why = "torch is a CPU build" if built is None else f"torch is built for CUDA {built}, but sees no device"
        yield Check("note", "GPU", f"none ({why}); models run on the CPU")


def _onnx() -> Iterator[Check]:
    found = provenance.installed(("onnxruntime", "onnxruntime-gpu"))
    if len(found) == 2:
        yield Check(
            "error",
            "onnxruntime",
            "onnxruntime and onnxruntime-gpu are both installed and overwrite each other's files. "
            "Keep one: pip uninstall onnxruntime onnxruntime-gpu && pip install onnxruntime-gpu",
        )
        return
    if not found:
        yield Check("note", "onnxruntime", "not installed; the backend onnx needs it: pip install onnxruntime-gpu")
        return
    try:
        import onnxruntime

        providers = ", ".join(onnxruntime.get_available_providers())
        name, version = next(iter(found.items()))
        yield Check("ok", "onnxruntime", f"{name} {version}: {providers}")
    except ImportError as error:
        yield Check("error", "onnxruntime", f"can't be imported ({error})")


def _model() -> Iterator[Check]:
    from embeval.core.specs import ModelSpec

    try:
        located = locate.locate(ModelSpec(name=locate.DEMO_NAME))
        yield Check("ok", "demo model", f"{located.spec.name}, weights verified")
    except EmbevalError as error:
        yield Check("note", "demo model", str(error).replace("\n", " "))


def _environment(variables: Collection[str]) -> Iterator[Check]:
    own = sorted(name for name in os.environ if name.startswith("EMBEVAL_"))
    read = {*variables, locate.CACHE_VARIABLE, cache.LIMIT_VARIABLE}
    if used := [f"{name}={os.environ[name]}" for name in own if name in read]:
        yield Check("note", "environment", f"set and used: {', '.join(used)}")
    for name in own:
        if name not in read:
            near = did_you_mean(name, read)
            yield Check("note", "environment", f"{name} is set, but nothing reads it. {near}".rstrip())
    offline = os.environ.get("HF_HUB_OFFLINE", "").upper() in ("1", "ON", "YES", "TRUE")
    text = "off: only folders and cached models" if offline else "asked for models by name (HF_HUB_OFFLINE is not set)"
    yield Check("ok", "hub", text)
    yield Check("ok", "cache", f"{locate.cache_folder()}")
