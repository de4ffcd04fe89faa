"""The functions of torch.nn.functional: the ops that say `F` in the table, and what is composed of them here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tallow.names import names_of
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

if TYPE_CHECKING:
    from tallow.signatures.functional import *  # noqa: F403

__getattr__, __dir__ = names_of(__name__, offered=OFFERED["F"])  # a user's own op may be offered later
