"""The functions of torch.linalg: the ops and functions that say `linalg`, without the `linalg_` of their names."""

from __future__ import annotations

from typing import Any

from tallow.errors import LinAlgError, MissingNameError
from tallow.offer import OFFERED

__all__ = ["LinAlgError"]


def __getattr__(name: str) -> Any:
    if name in OFFERED["linalg"]:
        return OFFERED["linalg"][name]
    raise MissingNameError(
        f"module 'tallow.linalg' has no attribute {name!r}",
        mend="it may be a name of PyTorch's that tallow does not have yet; see dir(tallow.linalg)",
    )


def __dir__() -> list[str]:
    return sorted({*globals(), *OFFERED["linalg"]})
