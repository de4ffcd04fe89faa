"""The functions of torch.nn.functional: the ops that say `F` in the table, and what is composed of them here."""

from __future__ import annotations

from typing import Any

from tallow.errors import MissingNameError
from tallow.nn.functional import (  # noqa: F401 - they offer their functions
    attention,
    classification_loss,
    embedding,
    interpolation,
    loss,
    margin_loss,
    multi_head_attention,
    normalization,
)
from tallow.offer import OFFERED

globals().update(OFFERED["F"])  # takes the place of the modules of the same names


def __getattr__(name: str) -> Any:
    if name in OFFERED["F"]:  # offered after this module was imported, such as a user's own op
        return OFFERED["F"][name]
    raise MissingNameError(
        f"module 'tallow.nn.functional' has no attribute {name!r}",
        mend="it may be a name of PyTorch's that tallow does not have yet; see dir(tallow.nn.functional)",
    )


def __dir__() -> list[str]:
    return sorted({*globals(), *OFFERED["F"]})
