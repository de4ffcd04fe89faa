"""torch._C: the names of PyTorch's extension module that programs use."""

from __future__ import annotations

from contextlib import AbstractContextManager, ExitStack
from enum import Enum
from types import SimpleNamespace
from typing import Any

from tallow import random
from tallow.compat.absent import absent
from tallow.core import watching
from tallow.core.overrides import disabled, subclasses, without_subclasses
from tallow.core.tensor import Tensor
from tallow.devices import device as _as_device
from tallow.dtypes import Dtype, dtype
from tallow.errors import LinAlgError

_FUNCTIONALITIES = "Dense Quantized Sparse SparseCsr NestedTensor Autograd"
_BACKENDS = "CPU CUDA HIP XLA MPS IPU XPU HPU VE Lazy Meta MTIA PrivateUse1 PrivateUse2 PrivateUse3"
_OTHERS = (
    "Undefined Dense Fake Functionalize Named Conjugate Negative Python PythonDispatcher BackendSelect ADInplaceOrView "
    "AutogradOther AutogradFunctionality AutogradNestedTensor Tracer Autocast FuncTorchBatched FuncTorchVmapMode "
    "Batched VmapMode FuncTorchGradWrapper DeferredInit PythonTLSSnapshot TESTING_ONLY_GenericWrapper "
    "TESTING_ONLY_GenericMode PreDispatch Autograd CompositeImplicitAutograd CompositeExplicitAutograd "
    "CompositeExplicitAutogradNonFunctional CompositeImplicitAutogradNestedTensor QuantizedCPU SparseCPU SparseCUDA"
)
_KEYS = [*_OTHERS.split(), *(f"{kind}{name}" for name in _BACKENDS.split() for kind in ("", "Autograd", "Autocast"))]
_enumeration: Any = Enum
DispatchKey = _enumeration("DispatchKey", _KEYS)


class DispatchKeySet:
    """A set of dispatch keys. No op reads it."""

    def __init__(self, *keys: Any) -> None:
        self._keys = frozenset(keys)

    def has(self, key: Any) -> bool:
        """Return whether a key is in the set."""
        return key in self._keys

    def __or__(self, other: DispatchKeySet) -> DispatchKeySet:
        return DispatchKeySet(*self._keys, *other._keys)


class _Guard(AbstractContextManager[None]):
    """A context in which PyTorch's dispatcher leaves out some keys. There is no dispatcher, so it does nothing."""

    def __init__(self, *keys: object) -> None:
        self.keys = keys

    def __exit__(self, *exc_info: object) -> None:
        """Do nothing."""


class _ExcludeDispatchKeyGuard(_Guard):
    """A guard of keys."""


class _AutoDispatchBelowAutograd(_Guard):
    """A guard of the keys of autograd."""


DisableTorchFunctionSubclass = without_subclasses


class DisableTorchFunction(AbstractContextManager[None]):
    """A context in which neither tensor subclasses nor modes answer for functions."""

    def __enter__(self) -> None:
        self._blocks = ExitStack()
        self._blocks.enter_context(without_subclasses())
        self._blocks.enter_context(watching.without_modes())

    def __exit__(self, *exc_info: object) -> None:
        self._blocks.close()


_LinAlgError, Generator = LinAlgError, random.Generator
_TensorMeta = type(Tensor)
_TensorBase = Tensor
_dtype = dtype
Graph, Value, Node, ScriptMethod = (
    absent(f"torch._C.{name}", "tallow has no TorchScript graphs; use torch.fx")
    for name in ("Graph", "Value", "Node", "ScriptMethod")
)


class _CudaDeviceProperties:
    """The class of what `torch.cuda.get_device_properties` returns in PyTorch."""


def _log_api_usage_once(*event: object) -> None:
    """Do nothing: nothing is logged."""


def _get_tracing_state() -> None:
    """Return None: nothing is traced by TorchScript."""


_disabled_torch_function_impl = _disabled_torch_dispatch_impl = disabled


def _are_functorch_transforms_active() -> bool:
    return False


def _is_torch_function_enabled() -> bool:
    return not subclasses.are_off


def _is_torch_function_mode_enabled() -> bool:
    return bool(watching.calls.modes)


def _len_torch_function_stack() -> int:
    return len(watching.calls.modes)


def _get_privateuse1_backend_name() -> str:
    return "privateuseone"


def _get_default_device() -> str:
    return "cpu"


def _get_accelerator() -> Any:
    return _as_device("cpu")


def _is_alias_of(a: Tensor, b: Tensor) -> bool:
    """Return whether two tensors share memory."""
    return bool(a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr())


def _set_nothing(*value: object) -> bool:
    """Return False: TorchScript's compilers, which it would switch, do not exist."""
    return False


_SWITCHES = [
    "_jit_set_profiling_executor",
    "_jit_set_profiling_mode",
    "_jit_override_can_fuse_on_cpu",
    "_jit_override_can_fuse_on_gpu",
    "_jit_set_texpr_fuser_enabled",
    "_jit_set_nvfuser_enabled",
    "_jit_set_nvfuser_guard_mode",
    "_jit_set_autocast_mode",
    "_jit_can_fuse_on_cpu",
    "_jit_can_fuse_on_gpu",
    "_jit_texpr_fuser_enabled",
    "_set_math_sdp_allow_fp16_bf16_reduction",
]
globals().update(dict.fromkeys(_SWITCHES, _set_nothing))


def _parse_to(
    device: Any = None,
    dtype: Any = None,
    non_blocking: bool = False,
    copy: bool = False,
    *,
    memory_format: Any = None,
    tensor: Tensor | None = None,
) -> tuple[Any, Any, bool, Any]:
    """Return the device, dtype, `non_blocking` and `memory_format` that arguments of `Tensor.to` mean."""
    if isinstance(device, Dtype):  # to(dtype, non_blocking, copy)
        given = dtype
        device, dtype = None, device
        non_blocking = bool(given) if given is not None else non_blocking
    like = device if isinstance(device, Tensor) else tensor
    if like is not None:  # to(other, non_blocking, copy)
        return like.device, like.dtype, bool(dtype) or non_blocking, memory_format
    return None if device is None else _as_device(device), dtype, non_blocking, memory_format


_nn = SimpleNamespace(_parse_to=_parse_to)
TensorType, FloatType, IntType = (
    absent(f"torch._C.{name}", "it is a type of TorchScript; use torch.Tensor")
    for name in ("TensorType", "FloatType", "IntType")
)
