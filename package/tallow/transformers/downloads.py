"""Find a model's folder by transformers' arguments: revision, subfolder, cache, and others."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from tallow.errors import ArgumentError, HubError, TallowWarning, warn
from tallow.hub import download_options, local_folder
from tallow.transformers.without_effect import Neutral, effective

# Arguments that do not change which files are found.
NEUTRAL: Neutral = {
    **dict.fromkeys(("proxies", "code_revision", "mirror", "user_agent"), (None,)),
    "resume_download": (None, True, False),  # what is left of a download is always fetched
    "weights_only": (None, True),  # no code of a file ever runs
}


def find_folder(
    name: str | Path, kwargs: Mapping[str, Any], locate: Callable[..., Path] = local_folder
) -> tuple[Path, dict[str, Any]]:
    """Return the local folder of a model, after downloading it if necessary, and the other arguments.

    Args:
        name: a folder, a file, or `owner/repository`.
        kwargs: `revision`, `token`, `subfolder`, `cache_dir`, `local_files_only`, `force_download`,
            `trust_remote_code`; the others are returned.
        locate: finds the folder.

    Raises:  HubError; ArgumentError for a subfolder that leads out of the folder
    """
    others = effective("from_pretrained", kwargs, NEUTRAL)
    former = others.pop("use_auth_token", None)  # the name of older versions
    token = others.pop("token", None) or former
    revision, subfolder = others.pop("revision", None), str(others.pop("subfolder", None) or "")
    if others.pop("trust_remote_code", False):
        warn("trust_remote_code=True has no effect: tallow runs no code of a repository", TallowWarning)
    settings = {key: others.pop(key) for key in ("cache_dir", "local_files_only", "force_download") if key in others}
    if not isinstance(name, str | PathLike) or not str(name):
        raise ArgumentError(f"the name of a model is {name!r:.80}", hint="pass a folder, or owner/repository")
    path = Path(name).expanduser()
    if not path.exists():
        with download_options(**settings):
            path = locate(name, revision=None if revision == "main" else revision, token=_token(token))
    if subfolder:
        inner = (path / subfolder).resolve()
        if not inner.is_relative_to(path.resolve()):
            raise ArgumentError(f"subfolder={subfolder!r} is not in {path}", hint="pass a folder of the repository")
        if not inner.is_dir():
            raise HubError(f"{path} has no folder {subfolder}", hint="check the files of the repository")
        path = path / subfolder
    return path, others


def _token(token: Any) -> str | None:
    return token if isinstance(token, str) else None  # True means that of the login, as None does here
