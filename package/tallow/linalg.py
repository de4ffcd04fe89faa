"""The functions of torch.linalg: ops and functions published at the place "linalg", without the prefix `linalg_`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tallow.core.public_api import PUBLIC
from tallow.errors import LinAlgError
from tallow.lazy_names import names_of

__all__ = ["LinAlgError"]

if TYPE_CHECKING:
    from tallow.signatures.linalg import *  # noqa: F403

__getattr__, __dir__ = names_of(__name__, registry=PUBLIC["linalg"])
