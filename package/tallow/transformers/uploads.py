"""Upload files to the Hub, by the package `huggingface_hub`."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tallow.errors import MissingPackageError


def upload(
    save: Callable[[str | Path], Any],
    repo_id: str,
    *,
    commit_message: str,
    private: bool | None = None,
    token: str | None = None,
    revision: str | None = None,
    create_pr: bool = False,
) -> Any:
    """Upload the files that `save` writes to a folder. The repository is created if it does not exist.

    Args:    the others are those of `huggingface_hub.HfApi.upload_folder`
    Raises:  MissingPackageError without `huggingface_hub`; the errors of that package
    """
    try:
        from huggingface_hub import HfApi  # optional: the extra `hub`
    except ImportError as error:
        raise MissingPackageError("huggingface_hub", f"uploading to {repo_id}", "hub") from error
    api = HfApi(token=token)
    repository = api.create_repo(repo_id, private=private, exist_ok=True).repo_id
    with tempfile.TemporaryDirectory() as folder:
        save(folder)
        return api.upload_folder(
            repo_id=repository,
            folder_path=folder,
            commit_message=commit_message,
            revision=revision,
            create_pr=create_pr,
        )
