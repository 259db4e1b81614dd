"""Models of the Hugging Face hub: found in the local cache, or downloaded once."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from embeval.errors import ModelError

FILES = ("*.safetensors", "*.json", "*.txt", "*.model", "*.py", "*.jinja")
"""What a model needs. Weights in other formats are never downloaded."""

_COMMIT = re.compile(r"[0-9a-f]{40}")


def snapshot(name: str, revision: str | None, *, graphs: Sequence[str] = ()) -> Path:
    """The local folder of a model; its name is the commit. ``graphs`` are patterns of ONNX files, wanted with it.

    A branch or tag, and no revision at all, means the newest commit where the hub can be reached, else the one
    that was downloaded last. Raises ``ModelError``.
    """
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HFValidationError

    commit, no_hub = (revision, "") if revision and _COMMIT.fullmatch(revision) else _newest(name, revision)
    try:
        folder = Path(snapshot_download(name, revision=commit or revision, local_files_only=True))
        if any(any(folder.rglob(Path(pattern).name)) for pattern in graphs or ("*.safetensors",)):
            return folder
    except HFValidationError:
        raise ModelError(
            f"Model {name!r} is neither a folder here nor a possible hub name (like 'org/model')."
        ) from None
    except OSError:
        pass  # not in the cache
    if not no_hub:
        try:
            return Path(snapshot_download(name, revision=commit or revision, allow_patterns=_patterns(graphs)))
        except Exception as error:  # which errors these are depends on the HTTP library that the hub client uses
            no_hub = _reason(error)
    raise ModelError(
        f"Model {name!r} is neither a folder here nor in the local hub cache, and it can't be downloaded ({no_hub}).\n"
        "Give a folder, or 'demo' for the model that comes with the extra 'demo'."
    )


def _patterns(graphs: Sequence[str]) -> list[str]:
    if not graphs:
        return list(FILES)
    names = [Path(pattern).name for pattern in graphs]
    wanted = [f"{folder}{name}{end}" for name in names for folder in ("", "*/") for end in ("", "[._]data*")]
    # The weights of torch are the largest files, and not needed; those of dense layers are in folders of their own.
    return [*(pattern for pattern in FILES if pattern != "*.safetensors"), "*_Dense/*.safetensors", *wanted]


def _newest(name: str, revision: str | None) -> tuple[str | None, str]:
    """(commit, "") as the hub says, or (None, why it can't be asked)."""
    from huggingface_hub import HfApi
    from huggingface_hub.constants import HF_HUB_OFFLINE
    from huggingface_hub.errors import HFValidationError

    if HF_HUB_OFFLINE:
        return None, "HF_HUB_OFFLINE is set"
    try:
        return HfApi().model_info(name, revision=revision).sha, ""
    except HFValidationError:
        return None, ""
    except Exception as error:  # as above
        status = getattr(getattr(error, "response", None), "status_code", None)
        if status in (401, 403, 404):
            at = f" at revision {revision!r}" if revision else ""
            raise ModelError(
                f"Model {name!r} is neither a folder here nor a model of the hub that you may read{at}."
            ) from None
        return None, _reason(error)


def _reason(error: Exception) -> str:
    first = next((line for line in str(error).splitlines() if line.strip()), "")
    return f"the hub can't be reached: {type(error).__name__}: {first[:120]}"
