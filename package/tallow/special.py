"""The functions of torch.special: the ops and functions that say `special`, some under another name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tallow.names import names_of
from tallow.offer import OFFERED

LATER = {"expit": "tallow:sigmoid", "gammaln": "tallow:lgamma", "psi": "tallow:digamma"}

__all__: list[str] = []
if TYPE_CHECKING:
    from tallow.signatures.special import *  # noqa: F403

__getattr__, __dir__ = names_of(__name__, later=LATER, offered=OFFERED["special"])
