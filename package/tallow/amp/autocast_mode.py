"""autocast: matrix products in lower precision, losses in float32, without changes to the model."""

from __future__ import annotations

from contextlib import ContextDecorator
from functools import partial, wraps
from typing import Any

from tallow import cuda, dtypes
from tallow.errors import DeviceError, warn
from tallow.tape.modes import mode

DEFAULTS = {"cpu": dtypes.bfloat16, "cuda": dtypes.float16}


class autocast(ContextDecorator):
    """Compute in mixed precision inside: `with autocast("cuda", dtype=tl.float16):`. Also a decorator.

    Matrix products, convolutions, attention and recurrent layers get float operands in `dtype`; losses and ops that
    need precision get them in float32, and so do other ops that get both. float64 and integers do not change.
    `tallow.core.autocast` lists the ops. On the CPU, halves are stored in 16 bits and computed in float32, which saves
    memory but not time.

    Args:
        device_type: the type of the devices it applies to, "cpu" or "cuda".
        dtype: bfloat16 on the CPU and float16 on CUDA by default.
        cache_enabled: has no effect: weights are converted each time they are used.

    Raises: DeviceError for another device type. For "cuda" without a GPU, and for a dtype other than float16 and
        bfloat16, it warns and has no effect.
    """

    def __init__(
        self, device_type: str, dtype: Any = None, enabled: bool = True, cache_enabled: bool | None = None
    ) -> None:
        if device_type not in DEFAULTS:
            raise DeviceError(f"autocast: no device of type {device_type!r}", hint=f"use one of {list(DEFAULTS)}")
        self.device = device_type
        self.fast_dtype = DEFAULTS[device_type] if dtype is None else dtypes.as_dtype(dtype)
        self._enabled = enabled and self._is_possible()
        self._saved: list[dict[str, dtypes.dtype] | None] = []

    def _is_possible(self) -> bool:
        if self.device == "cuda" and not cuda.is_available():
            warn("autocast: device_type is 'cuda', but there is no GPU; disabled")
            return False
        if self.fast_dtype not in DEFAULTS.values():
            warn(f"autocast: {self.fast_dtype} is not among {[d.name for d in DEFAULTS.values()]}; disabled")
            return False
        return True

    def __enter__(self) -> autocast:
        self._saved.append(mode.autocast)
        others = {device: dtype for device, dtype in (mode.autocast or {}).items() if device != self.device}
        mode.autocast = (others | {self.device: self.fast_dtype} if self._enabled else others) or None
        return self

    def __exit__(self, *exc_info: object) -> None:
        mode.autocast = self._saved.pop()


def is_autocast_available(device_type: str) -> bool:
    """Return whether `autocast` supports the device type."""
    return device_type in DEFAULTS


def is_autocast_enabled(device_type: str = "cuda") -> bool:
    """Return whether autocast is on now for the device type."""
    return device_type in (mode.autocast or {})


def get_autocast_dtype(device_type: str) -> dtypes.dtype:
    """Return the dtype that autocast lowers operands to; outside of autocast, the default for the device type."""
    if device_type not in DEFAULTS:
        raise DeviceError(f"autocast: no device of type {device_type!r}", hint=f"use one of {list(DEFAULTS)}")
    return (mode.autocast or DEFAULTS).get(device_type, DEFAULTS[device_type])


def custom_fwd(fwd: Any = None, *, device_type: str, cast_inputs: Any = None) -> Any:
    """Decorate the forward of an `autograd.Function`: `@custom_fwd(device_type="cuda", cast_inputs=tl.float32)`.

    Args:
        cast_inputs: where autocast is on, convert float arguments to this dtype and compute without autocast. None
            leaves it on.
    """
    if fwd is None:
        return partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)

    @wraps(fwd)
    def forward(ctx: Any, *args: Any, **kwargs: Any) -> Any:
        ctx._autocast = is_autocast_enabled(device_type), get_autocast_dtype(device_type)
        if cast_inputs is None or not ctx._autocast[0]:
            return fwd(ctx, *args, **kwargs)
        ctx._autocast = False, ctx._autocast[1]

        def cast(x: Any) -> Any:
            is_float = getattr(x, "is_floating_point", bool)() and x.dtype is not dtypes.float64
            return x.to(cast_inputs) if is_float and x.device.type == device_type else x

        with autocast(device_type, enabled=False):
            return fwd(ctx, *map(cast, args), **{name: cast(value) for name, value in kwargs.items()})

    return forward


def custom_bwd(bwd: Any = None, *, device_type: str) -> Any:
    """Decorate the backward of an `autograd.Function` whose forward has `custom_fwd`: autocast is as it was there."""
    if bwd is None:
        return partial(custom_bwd, device_type=device_type)

    @wraps(bwd)
    def backward(ctx: Any, *grads: Any) -> Any:
        enabled, dtype = ctx._autocast
        with autocast(device_type, dtype, enabled):
            return bwd(ctx, *grads)

    return backward
