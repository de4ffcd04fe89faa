"""Tensors while a run is recorded: they ask the recorder for their sizes, and do not tell their values."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from tallow.core.tensor import Tensor
from tallow.errors import TraceError
from tallow.export.recorder import Recorder
from tallow.fx.patching import Patcher
from tallow.ops.dims import normalize_dim
from tallow.tape.modes import mode

READS = ("item", "tolist", "numpy", "__array__", "__bool__", "__int__", "__float__", "__index__", "__dlpack__")


@contextmanager
def recorded_tensors(recorder: Recorder) -> Iterator[None]:
    """Replace methods of Tensor in the block. In other threads they do what they always do."""
    with Patcher() as patcher:
        for name in READS:
            patcher.method(Tensor, name, _reading(name, Tensor.__dict__[name]))
        for name, replacement in _sizes(recorder).items():
            patcher.method(Tensor, name, replacement)
        yield


def _reading(name: str, method: Callable[..., Any]) -> Callable[..., Any]:
    def read(self: Tensor, *args: Any, **kwargs: Any) -> Any:
        if isinstance(tracer := mode.tracer, Recorder):
            tracer.reads(self.array, name.strip("_") + "()")
        return method(self, *args, **kwargs)

    return read


def _is_of(packages: tuple[str, ...], frame: FrameType) -> bool:
    name: str = frame.f_globals.get("__name__", "")
    return name.startswith(packages)


def _sizes(recorder: Recorder) -> dict[str, Any]:
    def shape_of(self: Tensor) -> Any:
        tracer = mode.tracer
        return tracer.shape_of(self) if isinstance(tracer, Recorder) else before["shape"].fget(self)

    def size(self: Tensor, dim: int | None = None) -> Any:
        return shape_of(self) if dim is None else shape_of(self)[normalize_dim(dim, self.array.ndim, "size")]

    def numel(self: Tensor) -> Any:
        return shape_of(self).numel()

    def length(self: Tensor) -> int:
        result: int = before["__len__"](self)
        if isinstance(tracer := mode.tracer, Recorder) and type(tracer.shape_of(self)[0]) is not int:
            raise TraceError(f"export: len() of a size that may vary{tracer.place()}", hint="use x.shape[0]")
        return result

    def detaching(name: str) -> Callable[[Tensor], Tensor]:
        def detach(self: Tensor) -> Tensor:
            result: Tensor = before[name](self)
            if isinstance(tracer := mode.tracer, Recorder):
                tracer.detached(self, result)
            return result

        return detach

    def data(self: Tensor) -> Any:
        return self.detach() if isinstance(mode.tracer, Recorder) else before["data"].fget(self)

    def array_of(self: Tensor) -> Any:
        array = vars(self).get("array", before)
        if array is before:
            raise AttributeError("array")
        if isinstance(tracer := mode.tracer, Recorder):
            tracer.touches(self)
            if not _is_of(tracer.readers, sys._getframe(1)):
                tracer.reads(array, ".array")
        return array

    def set_array(self: Tensor, array: Any) -> None:
        recorder.sets(self, array)
        vars(self)["array"] = array

    before = {name: Tensor.__dict__[name] for name in ("shape", "size", "data", "detach", "detach_", "__len__")}
    return {
        "shape": property(shape_of),
        "size": size,
        "__len__": length,
        "array": property(array_of, set_array),
        "detach": detaching("detach"),
        "detach_": detaching("detach_"),
        "numel": numel,
        "nelement": numel,
        "data": property(data, before["data"].fset),
    }
