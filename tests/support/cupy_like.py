"""A stand-in for CuPy that computes with NumPy, to test tallow's `cuda` device without a GPU.

What it emulates:
- Names: it has exactly the functions, parameters and attributes that `cupy_names.json` lists, which
  `record_cupy_names.py` reads from CuPy. Code that uses any other name fails here.
- Types: like CuPy, it raises on arguments that mix its arrays with NumPy arrays and on implicit conversion to NumPy,
  returns 0-d arrays where NumPy returns scalars, rejects `where=` in ufuncs, never warns, and has `at`, `reduce` and
  `accumulate` only for the ufuncs and dtypes for which CuPy has them.
- Values: `cupy_behaviour` replaces the functions for which CuPy's source computes something different from NumPy.
- Devices: several GPUs with a current one (`Gpu`); streams, graph capture and what it forbids (`streams_like`); kernels
  (`cuda_emulator`) and cuBLAS (`blas_like`).

It does not emulate the arithmetic, accuracy or speed of a GPU: only a run on a GPU tests those.
"""

from __future__ import annotations

import json
import operator
import weakref
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

import tallow_cuda
from support import blas_like, cuda_emulator, cupy_behaviour, streams_like
from tallow.devices import device, register_backend
from tallow.errors import DeviceError
from tallow_cuda.decoding import GraphedStep

NAMES = json.loads(Path(__file__).with_name("cupy_names.json").read_text())
FROM_HOST = {"array", "asarray", "asanyarray", "ascontiguousarray", "asfortranarray"}  # these accept NumPy arrays
TO_HOST = {"asnumpy"}
# The size of their results is known on the device only.
COUNTING = {"argwhere", "extract", "flatnonzero", "nonzero", "unique", "ndarray.nonzero"}
ON_DEVICE = {"broadcast_to": 1, "isin": 2, "where": 1}  # how many of their first arguments must be arrays
VIEWS = {"ravel", "reshape", "squeeze", "swapaxes", "transpose", "view"}
IN_PLACE = {"copyto", "fill_diagonal", "place", "put", "putmask"}
IN_PLACE |= {f"ndarray.{name}" for name in ("fill", "itemset", "partition", "put", "set", "sort")}


OWNERS: weakref.WeakValueDictionary[int, Array] = weakref.WeakValueDictionary()


class LikeCupyError(TypeError):
    """Raised for a call that CuPy rejects or does not have."""


def unwrap(x: Any) -> Any:
    """Return the NumPy value of an argument. Raise LikeCupyError if the argument is or contains a NumPy array."""
    if isinstance(x, Array):
        x.check_current()
        return x.host
    if isinstance(x, np.ndarray):
        raise LikeCupyError(f"a NumPy array of shape {x.shape} was mixed with CuPy arrays")
    if type(x) in (tuple, list):
        return type(x)(unwrap(item) for item in x)
    if isinstance(x, slice):
        return slice(unwrap(x.start), unwrap(x.stop), unwrap(x.step))
    return x


def wrap(x: Any) -> Any:
    if isinstance(x, np.ndarray | np.generic):
        owner = OWNERS.get(id(x))
        # A function without anything to do, such as astype(copy=False), returns its argument.
        return owner if owner is not None and owner.host is x else Array(np.asarray(x))
    if isinstance(x, tuple | list):
        items = [wrap(item) for item in x]
        return type(x)(*items) if hasattr(x, "_fields") else type(x)(items)
    return x


def checked_call(name: str, function: Callable[..., Any], parameters: list[str] | None) -> Callable[..., Any]:
    """Return `function` as a function of stand-in arrays that takes only CuPy's parameters.

    If the current stream is capturing, record the call, or raise if CuPy cannot capture it.
    """

    def call(*args: Any, **kwargs: Any) -> Any:
        if parameters is not None:
            unknown = kwargs.keys() - set(parameters)
            if unknown or len(args) > len(parameters):
                called = f"{len(args)} arguments and {sorted(kwargs)}"
                raise LikeCupyError(f"cupy's {name} takes {parameters}; it was called with {called}")
        if name in FROM_HOST:
            if not isinstance(args[0], Array):
                streams_like.refuse_if_capturing(f"cupy.{name} of host data")
            args = (from_host(args[0]), *args[1:])
        for x in args[: ON_DEVICE.get(name, 0)]:
            if not (isinstance(x, Array) or (name == "where" and isinstance(x, np.bool_))):  # it calls x.astype
                raise LikeCupyError(f"cupy.{name} takes arrays, not {type(x).__name__}")
        if name in COUNTING:
            streams_like.refuse_if_capturing(f"cupy.{name}")
        out = kwargs.get("out")
        args, kwargs = unwrap(args), {k: unwrap(v) for k, v in kwargs.items()}
        if name in ("concatenate", "stack") and cupy_behaviour.concatenates_by_table(args[0]):
            streams_like.refuse_if_capturing(f"cupy.{name} of more than eight small arrays")
        if name in cupy_behaviour.BY_CUBLAS and any(isinstance(x, np.ndarray) and x.dtype.kind == "f" for x in args):
            streams_like.refuse_if_capturing(f"cupy.{name}")
        with np.errstate(all="ignore"):
            if streams_like.captured_steps() is None:
                result = function(*args, **kwargs)
            else:
                result = streams_like.record_call(function, args, kwargs, writes=out is not None or name in IN_PLACE)
        return wrap(result) if out is None else out

    return call


def from_host(x: Any) -> Any:
    """Unwrap an argument of cupy.array: stand-in arrays, NumPy arrays, numbers, and nested sequences of these."""
    if type(x) in (tuple, list):
        return [from_host(item) for item in x]
    return Array(x) if isinstance(x, np.ndarray) else x


class Ufunc:
    def __init__(self, name: str) -> None:
        self.name = name
        self._ufunc: Any = getattr(np, name)
        self._call = checked_call(name, cupy_behaviour.UFUNCS.get(name, self._ufunc), None)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not kwargs.keys() <= {"out", "dtype", "casting"}:
            raise LikeCupyError(f"cupy.{self.name} takes out, dtype and casting, not {sorted(kwargs)}")
        return self._call(*args, **kwargs)

    def __getattr__(self, method: str) -> Any:
        if method == "outer":
            return checked_call(method, self._ufunc.outer, None)
        if method not in NAMES["ufunc_methods"]:
            raise AttributeError(f"cupy.{self.name} has no {method!r}")
        if self.name not in NAMES["ufunc_methods"][method]:
            raise LikeCupyError(f"cupy.{self.name}.{method} is not supported")
        if method == "at":
            return self._at
        return checked_call(f"{self.name}.{method}", getattr(self._ufunc, method), None)

    def _at(self, target: Array, index: Any, values: Any) -> None:
        if target.dtype.name not in NAMES["at_dtypes"]:
            raise LikeCupyError(f"cupy.{self.name}.at does not take {target.dtype}")
        if cupy_behaviour.write_synchronizes(indices(index), isinstance(values, Array)):
            streams_like.refuse_if_capturing(f"cupy.{self.name}.at")
        self._write(target.host, indices(index), unwrap(values))

    def _write(self, target: Any, index: Any, values: Any) -> None:
        extreme = partial(cupy_behaviour.extreme_at, self._ufunc)
        write = extreme if self.name in ("maximum", "minimum") else self._ufunc.at
        if not streams_like.record(lambda: write(target, index, values)):
            write(target, index, values)


class Namespace:
    """A CuPy module that has only the functions CuPy has."""

    def __init__(
        self,
        name: str,
        numpy_module: Any,
        names: dict[str, list[str] | None],
        overrides: dict[str, Callable[..., Any]] | None = None,
    ) -> None:
        self._name = name
        self._numpy = numpy_module
        self._names = names
        self._overrides = overrides or {}  # functions whose result differs in CuPy

    def __getattr__(self, name: str) -> Any:
        if name not in self._names:
            raise AttributeError(f"{self._name} has no {name!r}")
        value = checked_call(name, self._overrides.get(name) or getattr(self._numpy, name), self._names[name])
        setattr(self, name, value)  # so that later look-ups return the same object
        return value


class Linalg(Namespace):
    """The module `cupy.linalg`. CuPy cannot capture it, because it uses cuSOLVER."""

    def __getattr__(self, name: str) -> Any:
        function = super().__getattr__(name)

        def call(*args: Any, **kwargs: Any) -> Any:
            streams_like.refuse_if_capturing(f"cupy.linalg.{name}")
            return function(*args, **kwargs)

        setattr(self, name, call)
        return call


class Module(Namespace):
    """The module `cupy`."""

    def __init__(self) -> None:
        super().__init__("cupy", np, NAMES["functions"], cupy_behaviour.FUNCTIONS)
        self.ndarray = Array
        self.linalg = Linalg("cupy.linalg", np.linalg, NAMES["linalg"], cupy_behaviour.LINALG)
        self.fft = Namespace("cupy.fft", np.fft, NAMES["fft"])
        self.lib = type("lib", (), {})()
        self.lib.stride_tricks = Namespace("stride_tricks", np.lib.stride_tricks, NAMES["stride_tricks"])
        self.cuda = gpus()

    def array(self, x: Any, *args: Any, **kwargs: Any) -> Any:
        """Create an array. Copy from another GPU only if contiguous, as CuPy does (_core/core.pyx, ndarray.copy)."""
        if isinstance(x, Array) and x.gpu != Gpu.current:
            if not (x.host.flags.c_contiguous or x.host.flags.f_contiguous):
                raise NotImplementedError("CuPy cannot copy non-contiguous array between devices.")
            return Array(x.host.copy(order="K"))
        return checked_call("array", np.array, NAMES["functions"]["array"])(x, *args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        if name in NAMES["ufuncs"]:
            setattr(self, name, Ufunc(name))
            return getattr(self, name)
        if name in NAMES["constants"]:
            return getattr(np, name)
        if name in TO_HOST:
            return lambda x: x.get()
        return super().__getattr__(name)


def gpus() -> SimpleNamespace:
    """Return the module `cupy.cuda`, with the functions that describe the GPUs."""
    properties = {"name": b"like CuPy", "major": 9, "minor": 0, "totalGlobalMem": 1 << 30, "multiProcessorCount": 1}
    runtime = SimpleNamespace(
        getDevice=lambda: Gpu.current, getDeviceCount=lambda: Gpu.count, getDeviceProperties=lambda index: properties
    )
    runtime.streamCaptureModeRelaxed = 2
    return SimpleNamespace(runtime=runtime, Device=Gpu, **streams_like.NAMES)


class Gpu:
    """Emulates cupy.cuda.Device. There is one GPU by default; tests can set `count`."""

    count = 1
    current = 0

    def __init__(self, index: int | None = None) -> None:
        self.id = Gpu.current if index is None else index
        self.outside: list[int] = []

    def use(self) -> None:
        Gpu.current = self.id

    def synchronize(self) -> None:
        streams_like.refuse_if_capturing("synchronize")

    def __enter__(self) -> Gpu:
        self.outside.append(Gpu.current)
        self.use()
        return self

    def __exit__(self, *error: object) -> None:
        Gpu.current = self.outside.pop()


streams_like.current_device = lambda: Gpu.current


class Array:
    """The class `cupy.ndarray`, a wrapper of a NumPy array."""

    __slots__ = ("__weakref__", "base", "gpu", "host")

    def __init__(self, host: np.ndarray[Any, Any]) -> None:
        self.host = host
        # As in CuPy, all views share one base: the array that owns the memory.
        self.base: Array | None = None
        if isinstance(host.base, np.ndarray):
            owner = OWNERS.get(id(host.base))
            self.base = Array(host.base) if owner is None else owner
        else:
            OWNERS[id(host)] = self
        self.gpu: int = Gpu.current if self.base is None else self.base.gpu

    def check_current(self) -> None:
        """Raise unless the array is on the current device. CuPy raises too, or reads over peer access."""
        if self.gpu != Gpu.current:
            raise LikeCupyError(f"Array device must be same as the current device: {self.gpu}, {Gpu.current}")

    def __getattr__(self, name: str) -> Any:
        if name in NAMES["methods"]:
            if name not in VIEWS:
                self.check_current()
            other = cupy_behaviour.FUNCTIONS.get(name)
            method = getattr(self.host, name) if other is None else partial(other, self.host)
            return checked_call(f"ndarray.{name}", method, NAMES["methods"][name])
        if name == "device":
            return Gpu(self.gpu)
        if name == "data":
            return SimpleNamespace(ptr=self.host.ctypes.data)
        if name == "flags":  # CuPy has no flag for read-only memory
            return SimpleNamespace(**{flag: getattr(self.host.flags, flag) for flag in NAMES["flags"]})
        if name in NAMES["attributes"]:
            value = getattr(self.host, name)
            return wrap(value) if isinstance(value, np.ndarray) else value
        raise AttributeError(f"cupy.ndarray has no {name!r}")

    def diagonal(self, *args: Any, **kwargs: Any) -> Array:
        result = checked_call("ndarray.diagonal", self.host.diagonal, NAMES["methods"]["diagonal"])(*args, **kwargs)
        result.host.flags.writeable = True  # NumPy returns a read-only view, CuPy does not
        return result

    def get(self) -> np.ndarray[Any, Any]:
        streams_like.refuse_if_capturing("get")
        return self.host.copy()

    def item(self, *args: int) -> Any:
        return self.get().item(*args)

    def tolist(self) -> Any:
        return self.get().tolist()

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise LikeCupyError("implicit conversion to a NumPy array; CuPy wants .get()")

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if ufunc.__name__ not in NAMES["ufuncs"]:
            raise LikeCupyError(f"cupy has no ufunc {ufunc.__name__!r}")
        if "out" in kwargs:
            kwargs["out"] = kwargs["out"][0] if ufunc.nout == 1 else kwargs["out"]
        function = getattr(MODULE, ufunc.__name__)
        return function(*inputs, **kwargs) if method == "__call__" else getattr(function, method)(*inputs, **kwargs)

    def __array_function__(self, function: Callable[..., Any], types: Any, args: Any, kwargs: Any) -> Any:
        owner: Any = MODULE.linalg if "linalg" in function.__module__ else MODULE
        return getattr(owner, function.__name__)(*args, **kwargs)

    def __getitem__(self, key: Any) -> Any:
        key = indices(key)
        if any(isinstance(k, np.ndarray) and k.dtype == bool for k in (key if isinstance(key, tuple) else (key,))):
            streams_like.refuse_if_capturing("an index with a boolean mask")  # their number is known on the device only
        result = self.host[key]
        if isinstance(result, np.generic):  # CuPy returns a 0-d view
            keys = key if isinstance(key, tuple) else (key,)
            result = self.host[(*keys, ...)] if ... not in keys else np.asarray(result)
        elif streams_like.captured_steps() is not None:
            result = streams_like.record_call(operator.getitem, (self.host, key), {}, writes=False)
        return Array(result)

    def __setitem__(self, key: Any, value: Any) -> None:
        self.check_current()
        is_number = isinstance(value, np.ndarray) and not value.ndim  # CuPy accepts 0-d NumPy arrays only here
        is_on_device = isinstance(value, Array)
        key, value = indices(key), value if is_number else unwrap(value)
        if cupy_behaviour.write_synchronizes(key, is_on_device):
            streams_like.refuse_if_capturing("a write with array indices")
        if not streams_like.record(lambda: self.host.__setitem__(key, value)):
            self.host[key] = value

    def __len__(self) -> int:
        return len(self.host)

    def __iter__(self) -> Any:
        return (self[i] for i in range(len(self)))

    def __bool__(self) -> bool:
        return bool(self.get())

    def __int__(self) -> int:
        return int(self.get())

    def __float__(self) -> float:
        return float(self.get())

    def __index__(self) -> int:
        return operator.index(self.get())

    def __repr__(self) -> str:
        return f"like_cupy.{self.host!r}"

    __hash__ = None  # type: ignore[assignment]


def indices(key: Any) -> Any:
    """Convert an index that CuPy accepts to NumPy's: arrays of both kinds, lists, slices, integers."""
    keys = key if isinstance(key, tuple) else (key,)
    if any(isinstance(k, np.ndarray | list) for k in keys):
        streams_like.refuse_if_capturing("an index on the host")
    converted = tuple(k.host if isinstance(k, Array) else k for k in keys)
    return converted if isinstance(key, tuple) else converted[0]


def _define_operators() -> None:
    def binary(name: str) -> Any:
        function = operation(name)
        return lambda self, other: checked_call(name.strip("_"), function, None)(self, other)

    def unary(name: str) -> Any:
        function = getattr(np.ndarray, name)
        return lambda self: checked_call(name, function, None)(self)

    arithmetic = ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "lshift", "rshift", "and", "or", "xor"]
    reflected = [f"r{name}" for name in [*arithmetic, "matmul", "divmod"]]
    for name in [*arithmetic, "matmul", "divmod", *reflected, "eq", "ne", "lt", "le", "gt", "ge"]:
        setattr(Array, f"__{name}__", binary(f"__{name}__"))
    for name in ["neg", "pos", "abs", "invert"]:
        setattr(Array, f"__{name}__", unary(f"__{name}__"))
    for name in arithmetic:
        setattr(Array, f"__i{name}__", in_place(f"__i{name}__"))


def operation(name: str) -> Callable[..., Any]:
    """Return the binary operator of the special method `name` (such as "__rmod__") with CuPy's behaviour."""
    plain = name.strip("_")
    reflected = plain[0] == "r" and plain != "rshift"
    ufunc = cupy_behaviour.UFUNCS.get(cupy_behaviour.OPERATORS.get(plain.removeprefix("r" if reflected else ""), ""))
    if ufunc is None:
        return getattr(np.ndarray, name)
    return (lambda x, y: ufunc(y, x)) if reflected else ufunc


def in_place(name: str) -> Callable[[Array, Any], Array]:
    ufunc = cupy_behaviour.UFUNCS.get(cupy_behaviour.OPERATORS.get(name.strip("_")[1:], ""))
    function: Any = getattr(np.ndarray, name) if ufunc is None else lambda x, y: ufunc(x, y, out=x)

    def call(self: Array, other: Any) -> Array:
        self.check_current()
        other = unwrap(other)
        with np.errstate(all="ignore"):
            if not streams_like.record(lambda: function(self.host, other)):
                function(self.host, other)
        return self

    return call


_define_operators()
MODULE = Module()


def check_exists(target: device) -> Gpu:
    if target.index is not None and target.index >= Gpu.count:
        raise DeviceError(f"device not found: {str(target)!r}", hint=f"the last one is 'cuda:{Gpu.count - 1}'")
    return Gpu(target.index)


class PinnedMemory(bytearray):
    """Emulates cupy.cuda.PinnedMemoryPointer."""


class Backend:
    """Emulates `tallow_cuda.backend.CupyBackend`."""

    type = "cuda"
    array_type = Array
    module: Any = MODULE

    tf32 = False

    def __init__(self) -> None:
        self.kernels: dict[Any, Any] = {}
        self.prepared: list[Any] = []  # streams that have a cuBLAS handle

    compile_kernel = staticmethod(cuda_emulator.compile_kernel)

    def gemm(self, *args: Any) -> None:
        if streams_like.get_current_stream() not in self.prepared:
            self.prepare_capture()
        if not streams_like.record(lambda: blas_like.gemm(*args)):
            blas_like.gemm(*args)

    def multiprocessors(self) -> int:
        return 1

    def shared_bytes(self) -> tuple[int, int]:
        return cuda_emulator.max_shared_bytes, cuda_emulator.max_shared_bytes + 1024

    graph_pool = streams_like.MemoryPool

    decode_runner = GraphedStep

    def prepare_capture(self) -> None:
        streams_like.refuse_if_capturing("creating a cuBLAS handle")
        self.prepared.append(streams_like.get_current_stream())

    def compute_capability(self) -> tuple[int, int]:
        return 9, 0  # the newest target that tests.support.nvrtc compiles for

    def can_overlap(self) -> bool:
        return True

    def allow_tf32(self, allowed: bool) -> None:
        self.tf32 = allowed

    def device_of(self, array: Array) -> device:
        return device("cuda", array.gpu)

    def guard(self, array: Array) -> Gpu | None:
        return None if array.gpu == Gpu.current else Gpu(array.gpu)

    def guard_on(self, target: device) -> Gpu | None:
        return None if target.index == Gpu.current else check_exists(target)

    def make_current(self, array: Array) -> None:
        Gpu(array.gpu).use()

    def from_host(self, array: np.ndarray[Any, Any], target: device, non_blocking: bool = False) -> Array:
        streams_like.refuse_if_capturing("a copy from the host")
        with check_exists(target):
            return Array(array.copy())

    def pin(self, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        pinned = np.frombuffer(PinnedMemory(max(array.nbytes, 1)), array.dtype, array.size).reshape(array.shape)
        pinned[...] = array
        return pinned

    def is_pinned(self, array: np.ndarray[Any, Any]) -> bool:
        base: Any = array
        while isinstance(base, np.ndarray | memoryview):
            base = base.base if isinstance(base, np.ndarray) else base.obj
        return isinstance(base, PinnedMemory)

    def linalg_errors(self) -> Any:
        return cupy_behaviour.errstate(linalg="raise")

    def is_capturing(self) -> bool:
        return streams_like.captured_steps() is not None

    def to_host(self, array: Array) -> np.ndarray[Any, Any]:
        return array.get()

    def transfer(self, array: Array, target: device) -> Array:
        with array.device:
            if not (array.flags.c_contiguous or array.flags.f_contiguous):
                array = MODULE.ascontiguousarray(array)
        with check_exists(target):
            return MODULE.array(array)


def register() -> Backend:
    """Register the stand-in as the device `cuda` of this process."""
    backend = Backend()
    register_backend(backend)
    tallow_cuda.register_kernels(backend)
    return backend
