"""Model folders by name: one on this machine, or a repository of the Hugging Face Hub, fetched once.

Downloads are those of the package `huggingface_hub`, an extra: its cache (`HF_HOME`), its tokens (`HF_TOKEN` or
`hf auth login`), its mirror (`HF_ENDPOINT`), its offline mode (`HF_HUB_OFFLINE=1`), resuming and progress bars.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tallow.errors import HubError, MissingPackageError

REPOSITORY = re.compile(r"(?:[\w.-]+/)?[\w.-]+")
DESCRIPTIONS = ("*.json", "*.txt", "*.model", "*.jinja", "*.tiktoken")
WEIGHTS = (("*.safetensors",), ("pytorch_model*.bin",))  # the first that the repository has
# Other forms of the same weights, which tallow does not read.
LEFT_OUT = ("original/*", "onnx/*", "openvino/*", "coreml/*", "consolidated*", "*.fp16.*", "flax_model*", "tf_model*")


def local_folder(name: str | Path, *, revision: str | None = None, token: str | None = None) -> Path:
    """The folder that `name` is, or that the Hub's repository of this name is fetched to.

    Args:
        name: a path, or `owner/repository`. A folder of that name on this machine goes before the Hub's.
        revision: a branch, tag or commit of the repository; None means its main branch.
        token: of the Hub, for repositories that ask for one; None means the one that is logged in.

    Raises:  HubError when there is neither, or the Hub refuses or cannot be reached; MissingPackageError
    """
    path = Path(name).expanduser()
    if path.is_dir():
        return path
    if path.is_file():
        raise HubError(f"{path} is a file", mend="pass the model's folder")
    repository = str(name)
    if not REPOSITORY.fullmatch(repository) or repository.startswith("."):
        raise HubError(f"there is no folder {repository}", mend="pass a model's folder, or owner/repository of the Hub")
    if sys.platform == "emscripten":
        raise HubError(
            f"there is no folder {repository}, and a browser's Python cannot open connections of its own",
            mend="fetch the files in the page, and write them to a folder",
        )
    for weights in WEIGHTS:
        folder = _fetch(repository, [*DESCRIPTIONS, *weights], revision, token)
        if any(next(folder.rglob(pattern), None) for pattern in weights):
            return folder
    raise HubError(
        f"{repository} has neither safetensors nor pytorch_model.bin", mend="look at its files on the Hub's page"
    )


def _fetch(repository: str, patterns: Sequence[str], revision: str | None, token: str | None) -> Path:
    try:
        import huggingface_hub  # optional: the extra `hub`
        from huggingface_hub import errors
    except ImportError as error:
        raise MissingPackageError("huggingface_hub", f"fetching {repository}", "hub") from error
    try:
        found: Any = huggingface_hub.snapshot_download(
            repository, revision=revision, token=token, allow_patterns=list(patterns), ignore_patterns=list(LEFT_OUT)
        )
    except errors.GatedRepoError as error:
        mend = f"accept its terms at https://huggingface.co/{repository}, then log in: hf auth login"
        raise HubError(f"{repository} is open only to those who have accepted its terms", mend) from error
    except errors.RepositoryNotFoundError as error:
        mend = "check the name; a private one needs a token: hf auth login"
        raise HubError(
            f"the Hub has no repository {repository}, or not for you; nor is there such a folder", mend
        ) from error
    except errors.RevisionNotFoundError as error:
        raise HubError(f"{repository} has no revision {revision!r}", mend="name a branch, a tag or a commit") from error
    except errors.LocalEntryNotFoundError as error:
        mend = "connect, or unset HF_HUB_OFFLINE; or pass a folder"
        raise HubError(f"{repository} is not in the cache, and the Hub cannot be reached", mend) from error
    except (errors.HfHubHTTPError, OSError) as error:
        raise HubError(
            f"{repository} could not be fetched: {error}", mend="try again; what has come is kept"
        ) from error
    return Path(found)
