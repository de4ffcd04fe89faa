"""Names of `torch.nn.modules.module` that tallow itself does not have."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

_EXTRA_STATE_KEY_SUFFIX = "_extra_state"
# Hooks on registration, which no function adds to.
_global_parameter_registration_hooks: OrderedDict[int, Any] = OrderedDict()
_global_buffer_registration_hooks: OrderedDict[int, Any] = OrderedDict()
_global_module_registration_hooks: OrderedDict[int, Any] = OrderedDict()
