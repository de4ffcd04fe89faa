"""The functions of torch.special: the ops and functions that say `special`, some under another name."""

from __future__ import annotations

from typing import Any

from tallow.errors import MissingNameError
from tallow.offer import OFFERED

NAMES = {"expit": "sigmoid", "gammaln": "lgamma", "psi": "digamma"}  # this module's word -> the package's


def __getattr__(name: str) -> Any:
    if name in OFFERED["special"]:
        return OFFERED["special"][name]
    if name in NAMES:
        return OFFERED["tl"][NAMES[name]]
    raise MissingNameError(
        f"module 'tallow.special' has no attribute {name!r}",
        mend="it may be a name of PyTorch's that tallow does not have yet; see dir(tallow.special)",
    )


def __dir__() -> list[str]:
    return sorted({*OFFERED["special"], *NAMES})
