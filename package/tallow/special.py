"""The functions of torch.special: ops and functions published at the place "special"."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tallow.core.public_api import PUBLIC
from tallow.lazy_names import names_of

LAZY = {
    "expit": "tallow:sigmoid",
    "gammainc": "tallow:igamma",
    "gammaincc": "tallow:igammac",
    "gammaln": "tallow:lgamma",
    "logsumexp": "tallow:logsumexp",
    "modified_bessel_i0": "tallow.special:i0",
    "modified_bessel_i1": "tallow.special:i1",
    "psi": "tallow:digamma",
}

__all__: list[str] = []
if TYPE_CHECKING:
    from tallow.signatures.special import *  # noqa: F403

__getattr__, __dir__ = names_of(__name__, lazy=LAZY, registry=PUBLIC["special"])
