"""The functions of torch.linalg: the ops and functions that say `linalg`, without the `linalg_` of their names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tallow.errors import LinAlgError
from tallow.names import names_of
from tallow.offer import OFFERED

__all__ = ["LinAlgError"]

if TYPE_CHECKING:
    from tallow.signatures.linalg import *  # noqa: F403

__getattr__, __dir__ = names_of(__name__, offered=OFFERED["linalg"])
