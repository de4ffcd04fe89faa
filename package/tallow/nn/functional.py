"""The functions of torch.nn.functional: the ops that say `F`, and functions from `tallow.functions`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tallow.core.public_api import PUBLIC

# Importing these modules registers their functions.
from tallow.functions import attention as _attention  # noqa: F401
from tallow.functions import classification_loss as _classification_loss  # noqa: F401
from tallow.functions import embedding as _embedding  # noqa: F401
from tallow.functions import fractional_pooling as _fractional_pooling  # noqa: F401
from tallow.functions import interpolation as _interpolation  # noqa: F401
from tallow.functions import loss as _loss  # noqa: F401
from tallow.functions import margin_loss as _margin_loss  # noqa: F401
from tallow.functions import multi_head_attention as _multi_head_attention  # noqa: F401
from tallow.functions import normalization as _normalization  # noqa: F401
from tallow.lazy_names import names_of

globals().update(PUBLIC["F"])

if TYPE_CHECKING:
    from tallow.signatures.functional import *  # noqa: F403

__getattr__, __dir__ = names_of(__name__, registry=PUBLIC["F"])  # a user's own op may be published later
