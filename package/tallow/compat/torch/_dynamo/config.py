"""torch._dynamo.config: settings of PyTorch's compiler. They are stored, and have no effect."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import Any

accumulated_cache_size_limit = accumulated_recompile_limit = 256
allow_unspec_int_on_nn_module = False
assume_static_by_default = automatic_dynamic_shapes = True
cache_size_limit = recompile_limit = 8
capture_dynamic_output_shape_ops = capture_scalar_outputs = False
compiled_autograd = False
disable = False
dynamic_shapes = True
error_on_recompile = False
inline_inbuilt_nn_modules = True
log_level = 30
optimize_ddp = True
skip_fwd_side_effects_in_bwd_under_checkpoint = False
suppress_errors = False
verbose = False


@contextlib.contextmanager
def patch(changes: dict[str, Any] | str | None = None, value: Any = None, **further: Any) -> Iterator[None]:
    """Change settings for a block, or for the calls of a decorated function: by a dict, by keywords, or one by name."""
    changes = {changes: value} if isinstance(changes, str) else {**(changes or {}), **further}
    settings = vars(sys.modules[__name__])
    before = {name: settings.get(name) for name in changes}
    settings.update(changes)
    try:
        yield
    finally:
        settings.update(before)
