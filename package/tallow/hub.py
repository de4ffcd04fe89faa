"""Models by name: one on this machine, or a repository of the Hugging Face Hub, fetched once.

Downloads are those of the package `huggingface_hub`, an extra: its cache (`HF_HOME`), its tokens (`HF_TOKEN` or
`hf auth login`), its mirror (`HF_ENDPOINT`), its offline mode (`HF_HUB_OFFLINE=1`), resuming and progress bars. In a
browser `hub_in_browser` does what can be done there.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tallow import hub_in_browser
from tallow.errors import HubError, MissingPackageError
from tallow.io.gguf import is_gguf
from tallow.io.gguf_shards import pattern_of

IN_BROWSER = sys.platform == "emscripten"
CONFIG = "config.json"
GGUF = ".gguf"
_PART = r"(?!\.)[\w.-]+"  # of a path: none reaches out of a folder, and none is hidden
REPOSITORY = re.compile(rf"(?:{_PART}/)?{_PART}")
# No address, and no path of Windows.
FILE_IN_REPOSITORY = re.compile(rf"((?:{_PART}/)?{_PART}):((?:{_PART}/)*{_PART}\.gguf)")
DESCRIPTIONS = ("*.json", "*.txt", "*.model", "*.jinja", "*.tiktoken")
WEIGHTS = (("*.safetensors",), ("pytorch_model*.bin",))  # the first that the repository has
# Other forms of the same weights, which tallow does not read.
LEFT_OUT = ("original/*", "onnx/*", "openvino/*", "coreml/*", "consolidated*", "*.fp16.*", "flax_model*", "tf_model*")


def local_model(name: str | Path, *, revision: str | None = None, token: str | None = None) -> Path:
    """The folder or the GGUF file that `name` is, or that it is fetched to.

    Args:
        name: as `local_folder`; or a GGUF file, one on this machine or `owner/repository:file.gguf` of the Hub. The
            other shards of a model that is in several are fetched with it.
        revision, token: as `local_folder`

    Raises:  as `local_folder`
    """
    path = Path(name).expanduser()
    if path.is_dir() and not (path / CONFIG).exists() and (files := sorted(path.glob(f"*{GGUF}"))):
        raise HubError(f"{path} has GGUF files and no {CONFIG}", mend=f"name one of the files: {files[0]}")
    if path.is_file() and (path.suffix == GGUF or is_gguf(path)):
        return path
    if named := FILE_IN_REPOSITORY.fullmatch(str(name)):
        return _fetch_file(named[1], named[2], revision, token)
    if path.suffix == GGUF and not path.exists():
        raise HubError(f"there is no file {path}", mend=f"pass one that is there, or owner/repository:file{GGUF}")
    return local_folder(name, revision=revision, token=token)


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
        takes = "tallow.models.AutoModel loads GGUF files" if is_gguf(path) else "pass the model's folder"
        raise HubError(f"{path} is a file", mend=takes)
    repository = str(name)
    if not REPOSITORY.fullmatch(repository):
        raise HubError(f"there is no folder {repository}", mend="pass a model's folder, or owner/repository of the Hub")
    for weights in WEIGHTS:
        folder = _fetch(repository, [*DESCRIPTIONS, *weights], revision, token)
        if any(next(folder.rglob(pattern), None) for pattern in weights):
            return folder
    files = _gguf_files(repository, revision, token)
    mend = f"name one of its GGUF files: {repository}:{files[0]}" if files else "look at its files on the Hub's page"
    raise HubError(f"{repository} has neither safetensors nor pytorch_model.bin", mend)


def _fetch_file(repository: str, file: str, revision: str | None, token: str | None) -> Path:
    path = _fetch(repository, [pattern_of(file)], revision, token, ()) / file
    if not path.exists():
        files = ", ".join(_gguf_files(repository, revision, token)) or "no GGUF file"
        raise HubError(f"{repository} has no file {file}", mend=f"it has {files}")
    return path


def _gguf_files(repository: str, revision: str | None, token: str | None) -> list[str]:
    """What a repository that has just been asked for could be loaded from."""
    if IN_BROWSER:
        names = [file.name for file in hub_in_browser.files(repository, revision, token)]
        return sorted(name for name in names if name.endswith(GGUF))
    import huggingface_hub  # optional: the extra `hub`

    try:
        names = huggingface_hub.HfApi(token=token).list_repo_files(repository, revision=revision)
    except (huggingface_hub.errors.HfHubHTTPError, OSError):  # it is for an error message, which can do without
        return []
    return sorted(name for name in names if name.endswith(GGUF))


def _fetch(
    repository: str,
    patterns: Sequence[str],
    revision: str | None,
    token: str | None,
    left_out: Sequence[str] = LEFT_OUT,
) -> Path:
    if revision is not None and not {"", ".", ".."}.isdisjoint(revision.split("/")):  # a path out of an address
        raise HubError(f"{repository} has no revision {revision!r}", mend="name a branch, a tag or a commit")
    if IN_BROWSER:
        return hub_in_browser.snapshot(repository, patterns, left_out, revision, token)
    try:
        import huggingface_hub  # optional: the extra `hub`
        from huggingface_hub import errors
    except ImportError as error:
        raise MissingPackageError("huggingface_hub", f"fetching {repository}", "hub") from error
    try:
        found: Any = huggingface_hub.snapshot_download(
            repository, revision=revision, token=token, allow_patterns=list(patterns), ignore_patterns=list(left_out)
        )
    except errors.GatedRepoError as error:
        mend = f"accept its terms at https://huggingface.co/{repository}, then log in: hf auth login"
        raise HubError(f"{repository} is open only to those who have accepted its terms", mend) from error
    except errors.RepositoryNotFoundError as error:
        mend = "check the name; a private one needs a token: hf auth login"
        raise HubError(
            f"the Hub has no repository {repository}, or not for you; nor is there such a folder", mend
        ) from error
    except errors.HFValidationError as error:  # a ValueError
        raise HubError(f"{repository} is no name of a repository: {error}", mend="check the name") from error
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
