"""Find models by name: a local path, or a repository of the Hugging Face Hub, downloaded once.

The package `huggingface_hub`, an extra, does the downloads, with its cache (`HF_HOME`), tokens (`HF_TOKEN` or `hf auth
login`), mirror (`HF_ENDPOINT`), offline mode (`HF_HUB_OFFLINE=1`), resuming and progress bars. In a browser,
`in_browser` replaces it as far as possible.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from tallow.errors import HubError, MissingPackageError
from tallow.hub import in_browser
from tallow.io.gguf import is_gguf
from tallow.io.gguf_shards import pattern_of
from tallow.io.model_folder import DESCRIPTIONS
from tallow.io.whole_folder import aside
from tallow.lazy_names import names_of

__all__ = [
    "download_options",
    "file_sizes",
    "local_file",
    "local_folder",
    "local_model",
    "local_settings",
    "local_variant",
]

__getattr__, __dir__ = names_of(__name__)

IN_BROWSER = sys.platform == "emscripten"
CONFIG = "config.json"
GGUF = ".gguf"
_PART = r"(?!\.)[\w.-]+"  # a path component; it cannot lead out of a folder and is not hidden
REPOSITORY = re.compile(rf"(?:{_PART}/)?{_PART}")
# Matches neither URLs nor Windows paths.
FILE_IN_REPOSITORY = re.compile(rf"((?:{_PART}/)?{_PART}):((?:{_PART}/)*{_PART}\.gguf)")
FILE_OF_REPOSITORY = re.compile(rf"({_PART}/{_PART}):((?:{_PART}/)*{_PART})")
WEIGHTS = (("*.safetensors",), ("pytorch_model*.bin",))  # the first that exists in the repository
# Other formats of the same weights, which tallow does not read.
IGNORED = ("original/*", "onnx/*", "openvino/*", "coreml/*", "consolidated*", "*.fp16.*", "flax_model*", "tf_model*")

_options: ContextVar[dict[str, Any]] = ContextVar("options of downloads", default={})  # noqa: B039 - never changed


@contextmanager
def download_options(
    *, cache_dir: str | Path | None = None, local_files_only: bool = False, force_download: bool = False
) -> Iterator[None]:
    """Set how repositories are downloaded in the block.

    Args:
        cache_dir: the folder of the cache; None means that of `huggingface_hub`.
        local_files_only: use the files of the cache, without asking the Hub.
        force_download: download files again that are in the cache.

    They have no effect in a browser, which has one cache.
    """
    options: dict[str, Any] = {"local_files_only": local_files_only, "force_download": force_download}
    token = _options.set(options if cache_dir is None else {**options, "cache_dir": cache_dir})
    try:
        yield
    finally:
        _options.reset(token)


def local_model(name: str | Path, *, revision: str | None = None, token: str | None = None) -> Path:
    """Return the local folder or GGUF file for `name`, after downloading it if necessary.

    Args:
        name: as in `local_folder`; or a GGUF file, a local path or `owner/repository:file.gguf` on the Hub. All shards
            of a split model are downloaded.
        revision, token: as in `local_folder`

    Raises:  as in `local_folder`
    """
    path = Path(name).expanduser()
    if path.is_dir() and not (path / CONFIG).exists() and (files := sorted(path.glob(f"*{GGUF}"))):
        raise HubError(f"{path} has GGUF files but no {CONFIG}", hint=f"pass one of the files: {files[0]}")
    if path.is_file() and (path.suffix == GGUF or is_gguf(path)):
        return path
    if match := FILE_IN_REPOSITORY.fullmatch(str(name)):
        return _fetch_file(match[1], match[2], revision, token)
    if path.suffix == GGUF and not path.exists():
        raise HubError(f"file not found: {path}", hint=f"pass an existing file, or owner/repository:file{GGUF}")
    return local_folder(name, revision=revision, token=token)


def local_file(
    repository: str, file: str, beside: Sequence[str] = (), *, revision: str | None = None, token: str | None = None
) -> Path:
    """Return the local path of one file of a Hub repository, after downloading it if necessary.

    Args:
        repository, file: `owner/repository`, and the path of the file in it.
        beside: patterns of files that are downloaded with it, if there are any.
        revision, token: as in `local_folder`

    Raises:  HubError if there is no such file, or the Hub refuses access or cannot be reached; MissingPackageError
    """
    path = _fetch(repository, [file, *beside], revision, token, ()) / file
    if not path.exists():
        raise HubError(f"{repository} has no file {file}", hint="check its files on the Hub")
    return path


def local_settings(name: str | Path, *, revision: str | None = None, token: str | None = None) -> Path:
    """Return the local folder for `name` as `local_folder` does, after downloading all but the weights."""
    folder = _present(name)
    return _fetch(str(name), DESCRIPTIONS, revision, token) if folder is None else folder


def local_variant(name: str | Path, variant: str, *, revision: str | None = None, token: str | None = None) -> Path:
    """Return the local folder for `name` as `local_folder` does, after downloading one variant of the weights alone.

    Args:    variant: a part of the names of files, such as "fp16" in model.fp16.safetensors
    """
    if (folder := _present(name)) is not None:
        return folder
    weights = [f"model.{variant}*.safetensors", f"pytorch_model.{variant}*.bin"]
    ignored = [pattern for pattern in IGNORED if pattern != "*.fp16.*"]
    return _fetch(str(name), [*DESCRIPTIONS, *weights], revision, token, ignored)


def file_sizes(name: str | Path, *, revision: str | None = None, token: str | None = None) -> dict[str, int]:
    """Return the bytes of each file of a local folder, or of a repository of the Hub without downloading it.

    Args:    name, revision, token: as in `local_folder`
    Raises:  HubError if neither exists, or the Hub refuses access or cannot be reached; MissingPackageError
    """
    if (folder := _present(name)) is not None:
        return {str(path.relative_to(folder)): path.stat().st_size for path in folder.rglob("*") if path.is_file()}
    repository = str(name)
    if IN_BROWSER:
        return {file.name: file.size for file in in_browser.files(repository, revision, token)}
    try:
        import huggingface_hub  # optional: the extra `hub`
    except ImportError as error:
        raise MissingPackageError("huggingface_hub", f"listing {repository}", "hub") from error
    try:
        tree = huggingface_hub.HfApi(token=token).list_repo_tree(repository, recursive=True, revision=revision)
        return {entry.path: entry.size for entry in tree if hasattr(entry, "size")}
    except (huggingface_hub.errors.HfHubHTTPError, huggingface_hub.errors.HFValidationError, OSError) as error:
        hint = "check the name and the network; a private repository needs a token: hf auth login"
        raise HubError(f"the files of {repository} cannot be listed: {error}", hint) from error


def local_folder(name: str | Path, *, revision: str | None = None, token: str | None = None) -> Path:
    """Return the local folder for `name`, after downloading the Hub repository of that name if necessary.

    Args:
        name: a path, or `owner/repository`. A local folder of that name takes precedence.
        revision: a branch, tag or commit of the repository; None means the main branch.
        token: Hub token, for repositories that require one; None means that of the login.

    Raises:  HubError if neither exists, or the Hub refuses access or cannot be reached; MissingPackageError
    """
    if (folder := _present(name)) is not None:
        return folder
    repository = str(name)
    for weights in WEIGHTS:
        folder = _fetch(repository, [*DESCRIPTIONS, *weights], revision, token)
        if any(next(folder.rglob(pattern), None) for pattern in weights):
            return folder
    files = _gguf_files(repository, revision, token)
    hint = f"pass one of its GGUF files: {repository}:{files[0]}" if files else "check its files on the Hub"
    raise HubError(f"{repository} has neither safetensors nor pytorch_model.bin", hint)


def _present(name: str | Path) -> Path | None:
    """Return the folder of this name; None for a repository.  Raises: HubError for what is neither"""
    path = Path(name).expanduser()
    if path.is_dir():
        return path
    if path.is_file():
        takes = "tallow.models.AutoModel loads GGUF files" if is_gguf(path) else "pass the model's folder"
        raise HubError(f"{path} is a file", hint=takes)
    if (former := aside(path)).is_dir():
        hint = f"put the former folder back, which is whole: mv {former} {path}; the next save to it does so too"
        raise HubError(f"{path} is missing: a process was killed while it replaced the folder", hint)
    if not REPOSITORY.fullmatch(str(name)):
        raise HubError(f"folder not found: {name!s}", hint="pass a model's folder, or owner/str(name) on the Hub")
    return None


def _fetch_file(repository: str, file: str, revision: str | None, token: str | None) -> Path:
    path = _fetch(repository, [pattern_of(file)], revision, token, ()) / file
    if not path.exists():
        files = ", ".join(_gguf_files(repository, revision, token)) or "no GGUF file"
        raise HubError(f"{repository} has no file {file}", hint=f"it has {files}")
    return path


def _gguf_files(repository: str, revision: str | None, token: str | None) -> list[str]:
    """Return the GGUF files of a repository, for error messages."""
    if IN_BROWSER:
        names = [file.name for file in in_browser.files(repository, revision, token)]
        return sorted(name for name in names if name.endswith(GGUF))
    import huggingface_hub  # optional: the extra `hub`

    try:
        names = huggingface_hub.HfApi(token=token).list_repo_files(repository, revision=revision)
    except (huggingface_hub.errors.HfHubHTTPError, OSError):  # only needed for an error message
        return []
    return sorted(name for name in names if name.endswith(GGUF))


def _fetch(
    repository: str,
    patterns: Sequence[str],
    revision: str | None,
    token: str | None,
    ignored: Sequence[str] = IGNORED,
) -> Path:
    if revision is not None and not {"", ".", ".."}.isdisjoint(revision.split("/")):  # it would change the URL's path
        raise HubError(f"{repository} has no revision {revision!r}", hint="pass a branch, a tag or a commit")
    if IN_BROWSER:
        return in_browser.snapshot(repository, patterns, ignored, revision, token)
    try:
        import huggingface_hub  # optional: the extra `hub`
        from huggingface_hub import errors
    except ImportError as error:
        raise MissingPackageError("huggingface_hub", f"downloading {repository}", "hub") from error
    try:
        path: Any = huggingface_hub.snapshot_download(
            repository,
            revision=revision,
            token=token,
            allow_patterns=list(patterns),
            ignore_patterns=list(ignored),
            **_options.get(),
        )
    except errors.GatedRepoError as error:
        hint = f"accept its terms at https://huggingface.co/{repository}, then log in: hf auth login"
        raise HubError(f"{repository} requires accepting its terms", hint) from error
    except errors.RepositoryNotFoundError as error:
        hint = "check the name; a private repository needs a token: hf auth login"
        raise HubError(f"no folder and no Hub repository {repository}, or no access to it", hint) from error
    except errors.HFValidationError as error:  # a ValueError
        raise HubError(f"{repository} is not a valid repository name: {error}", hint="check the name") from error
    except errors.RevisionNotFoundError as error:
        raise HubError(f"{repository} has no revision {revision!r}", hint="pass a branch, a tag or a commit") from error
    except errors.LocalEntryNotFoundError as error:
        hint = "check the path, connect to the network, or unset HF_HUB_OFFLINE"
        raise HubError(
            f"{repository} is neither a folder here nor in the Hub's cache, and the Hub cannot be reached", hint
        ) from error
    except (errors.HfHubHTTPError, OSError) as error:
        raise HubError(f"{repository} download failed: {error}", hint="try again; the download resumes") from error
    return Path(path)
