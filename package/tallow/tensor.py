"""Tensor: an array, and what autograd needs to know about it.

The ops of a tensor are not here: `offer.py` hangs them on the class from the table of ops.
"""

from __future__ import annotations

import builtins
import copy
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any
from weakref import ref

import numpy as np

from tallow import autograd, devices, dtypes, printing
from tallow.autograd.graph import Node, Output, refresh_view
from tallow.autograd.modes import mode
from tallow.autograd.views import View
from tallow.autograd.writes import write_count
from tallow.dtypes import Array
from tallow.errors import ArgumentError, ArgumentTypeError, DtypeError, GraphError, MissingNameError, ShapeError
from tallow.layout import CHANNELS_LAST_NDIM, contiguous_format, dims_in_memory, memory_format, preserve_format
from tallow.ops.dims import normalize_dim
from tallow.size import Size

if TYPE_CHECKING:
    from tallow.signatures.methods import Methods
else:
    Methods = object  # offer.py hangs the ops on the class below


class Tensor(Methods):
    """An array with a dtype, a device and a history, as torch.Tensor.

    `array` is the NumPy or CuPy array itself; views of a tensor are views of its array. A bfloat16 tensor's array holds
    bit patterns (see `tallow.dtypes`).

    Args:
        data: an array, which is used as it is; or a nested sequence of numbers, which becomes the default dtype;
            or a size as separate integers, which leaves the elements uninitialised.
    """

    array: Array

    # What most tensors never change stays on the class: making a tensor then sets one attribute.
    _requires_grad = False
    _grad: Tensor | None = None
    _node: Node | Output | None = None  # the op that made it, or one output of it; None for a leaf
    _base: Tensor | None = None  # the tensor that a view is a view of; never itself a view
    _base_node: Node | Output | None = None  # the base's node when the view's history was made
    _view: View | None = None  # how the view was made; None if it was made under no_grad
    _reshaped: Node | Output | None = None  # its node when it last became a view of itself, as by `t_`
    _writes_noticed = True  # in-place writes count for autograd; not those through `.data`
    _inference = False
    _hooks: dict[int, Callable[[Tensor], Tensor | None]] | None = None
    _post_hooks: dict[int, Callable[[Tensor], None]] | None = None
    _retained: RemovableHandle | None = None  # of the hook that keeps the gradient of a tensor that is no leaf

    __array_priority__ = 1000  # so that numpy_array + tensor asks the tensor
    __hash__ = object.__hash__

    def __init__(self, *data: Any, requires_grad: bool = False) -> None:
        if len(data) == 1 and devices.is_array(data[0]):
            self.array = data[0]
            dtypes.dtype_of(self.array)
        elif len(data) == 1 and isinstance(data[0], Tensor):
            self.array = data[0].array
        elif all(isinstance(n, int) for n in data):
            self.array = np.empty(data if data else (0,), dtypes.get_default_dtype().storage)
        else:
            self.array = np.asarray(data[0] if len(data) == 1 else data, dtypes.get_default_dtype().storage)
        if requires_grad:
            self.requires_grad_()

    # -------------------------------------------------------------------------------------------------- the array

    @property
    def shape(self) -> Size:
        return Size(self.array.shape)

    @property
    def ndim(self) -> int:
        return self.array.ndim

    @property
    def dtype(self) -> dtypes.dtype:
        return dtypes.BY_STORAGE[self.array.dtype]

    @property
    def device(self) -> devices.device:
        return devices.device_of(self.array)

    @property
    def itemsize(self) -> int:
        return self.array.itemsize

    @property
    def nbytes(self) -> int:
        return self.array.nbytes

    @property
    def is_cuda(self) -> builtins.bool:
        return devices.device_type_of(self.array) == "cuda"

    @property
    def is_cpu(self) -> builtins.bool:
        return devices.device_type_of(self.array) == "cpu"

    @property
    def is_meta(self) -> builtins.bool:
        return devices.device_type_of(self.array) == "meta"

    # Kinds of tensors that PyTorch has and programs ask about.
    is_sparse = is_quantized = is_nested = is_mps = is_mkldnn = is_xpu = False

    def size(self, dim: int | None = None) -> Any:
        if dim is None:
            return self.shape
        return self.array.shape[normalize_dim(dim, self.array.ndim, "size")]

    def dim(self) -> int:
        return self.array.ndim

    ndimension = dim

    def numel(self) -> int:
        return self.array.size

    nelement = numel

    def element_size(self) -> int:
        return self.array.itemsize

    def stride(self, dim: int | None = None) -> Any:
        """Steps in elements, not bytes."""
        strides = tuple(s // self.array.itemsize for s in self.array.strides)
        return strides if dim is None else strides[normalize_dim(dim, self.array.ndim, "stride")]

    def storage_offset(self) -> int:
        """Distance in elements from the start of the memory that the tensor is a view of."""
        base = self.array.base
        if not devices.is_array(base):
            return 0
        start, own = (
            a.__array_interface__["data"][0] if type(a) is np.ndarray else a.data.ptr for a in (base, self.array)
        )
        return (own - start) // self.array.itemsize

    def data_ptr(self) -> int:
        return self.array.ctypes.data if type(self.array) is np.ndarray else self.array.data.ptr

    def is_contiguous(self, memory_format: memory_format = contiguous_format) -> builtins.bool:
        """Whether the elements lie in row-major order, or that of `memory_format`, without gaps."""
        if memory_format in (contiguous_format, preserve_format):
            return self.array.flags.c_contiguous
        if self.array.ndim != CHANNELS_LAST_NDIM.get(memory_format) or not self.array.size:
            return False
        return self.array.transpose(dims_in_memory(self.array.strides, memory_format)).flags.c_contiguous

    def is_floating_point(self) -> builtins.bool:
        return self.dtype.is_floating_point

    def is_complex(self) -> builtins.bool:
        return False

    def is_signed(self) -> builtins.bool:
        return self.dtype.is_signed

    def get_device(self) -> int:
        index = self.device.index
        return -1 if index is None else index

    # -------------------------------------------------------------------------------------------------- conversion

    def numpy(self, *, force: builtins.bool = False) -> np.ndarray[Any, Any]:
        """The NumPy array itself, without a copy.

        Raises: GraphError if the tensor requires grad, ArgumentTypeError if it is not on the CPU or is bfloat16,
            unless `force`, which detaches, moves and (bfloat16) widens first.
        """
        if force:
            return dtypes.widen(self.cpu().array) if self.dtype is dtypes.bfloat16 else self.cpu().array
        if self.requires_grad and mode.recording:
            raise GraphError("can't call numpy() on a Tensor that requires grad", mend="use tensor.detach().numpy()")
        if type(self.array) is not np.ndarray and not isinstance(self.array, np.ndarray):
            raise ArgumentTypeError(
                f"can't convert a tensor on {self.device} to numpy", mend="use tensor.cpu().numpy()"
            )
        if self.dtype is dtypes.bfloat16:
            raise ArgumentTypeError("NumPy has no bfloat16", mend="use tensor.float().numpy()")
        return self.array

    def _host(self) -> np.ndarray[Any, Any]:
        return dtypes.widen(devices.backend_of(self.array).to_host(self.array))

    def __array__(self, dtype: Any = None, copy: builtins.bool | None = None) -> np.ndarray[Any, Any]:
        return np.array(self.numpy(), dtype=dtype, copy=copy)

    def __array_wrap__(self, array: Array, context: Any = None, return_scalar: builtins.bool = False) -> Tensor:
        """What NumPy computes from tensors becomes a tensor again: np.sin(x)."""
        return Tensor(np.asarray(array))

    def __dlpack__(self, **kwargs: Any) -> Any:
        if self.requires_grad:
            raise GraphError("can't export a Tensor that requires grad", mend="use tensor.detach()")
        return self.array.__dlpack__(**kwargs)

    def __dlpack_device__(self) -> Any:
        return self.array.__dlpack_device__()

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        if not self.is_cuda:
            raise AttributeError("__cuda_array_interface__ is for tensors on a CUDA device")
        return self.array.__cuda_array_interface__

    def item(self) -> Any:
        """The only element, as a Python number."""
        if self.array.size != 1:
            raise ArgumentError(f"a Tensor with {self.array.size} elements cannot be converted to Scalar")
        return self._host().item()

    def tolist(self) -> Any:
        return self._host().tolist()

    def __bool__(self) -> builtins.bool:
        if self.array.size != 1:
            raise ShapeError(
                f"Boolean value of Tensor with {'more than one' if self.array.size else 'no'} values is ambiguous",
                mend="reduce it first, with any() or all()",
            )
        return builtins.bool(self._host().item())

    def __int__(self) -> int:
        return int(self.item())

    def __float__(self) -> float:
        return float(self.item())

    def __index__(self) -> int:
        if self.dtype.is_floating_point:
            raise ArgumentTypeError("only integer tensors of a single element can be converted to an index")
        return int(self.item())

    def __len__(self) -> int:
        if self.array.ndim == 0:
            raise ArgumentTypeError("len() of a 0-d tensor")
        return self.array.shape[0]

    def __iter__(self) -> Iterator[Tensor]:
        if self.array.ndim == 0:
            raise ArgumentTypeError("iteration over a 0-d tensor")
        return iter(self.unbind(0))

    def __contains__(self, element: Any) -> builtins.bool:
        return builtins.bool((self == element).any())

    def __repr__(self) -> str:
        return printing.tensor_repr(self)

    def __format__(self, spec: str) -> str:
        if spec and self.array.ndim:
            raise ArgumentTypeError(f"format {spec!r} is for tensors of no dims", mend="format each element, or str(x)")
        return format(self.item(), spec) if spec else str(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        if self._node is not None:
            raise GraphError("only leaf tensors can be deep-copied", mend="use tensor.detach().clone()")
        made = self._rebuild(self.array.copy(), self._requires_grad)
        memo[id(self)] = made
        made.__dict__.update(copy.deepcopy(self._attributes(), memo))
        if self._grad is not None:
            made._grad = self._grad.__deepcopy__(memo)
        return made

    def __copy__(self) -> Tensor:
        """A leaf on the same memory."""
        made = self._rebuild(self.array, self._requires_grad)
        made.__dict__.update(self._attributes())
        return made

    def _attributes(self) -> dict[str, Any]:
        """What a subclass or a user has set."""
        return {name: value for name, value in self.__dict__.items() if name != "array" and not hasattr(Tensor, name)}

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        host = devices.backend_of(self.array).to_host(self.array)
        return _unpickle, (type(self), host, str(self.device), self.requires_grad), self._attributes()

    @classmethod
    def _rebuild(cls, array: Array, requires_grad: builtins.bool) -> Tensor:
        """A leaf of this class; subclasses with a constructor of their own need not know."""
        made = cls.__new__(cls)
        made.array = array
        made._requires_grad = requires_grad
        return made

    def __getattr__(self, name: str) -> Any:
        raise MissingNameError(
            f"{type(self).__name__!r} object has no attribute {name!r}",
            mend="it may be a name of PyTorch's that tallow does not have yet; see dir(tallow.Tensor)",
        )

    # ---------------------------------------------------------------------------------------------------- autograd

    @property
    def requires_grad(self) -> builtins.bool:
        if self._base is not None:
            refresh_view(self)
        return self._requires_grad

    @requires_grad.setter
    def requires_grad(self, value: builtins.bool) -> None:
        self.requires_grad_(value)

    def requires_grad_(self, requires_grad: builtins.bool = True) -> Tensor:
        """Make a leaf take part in autograd, or no longer.

        Raises: GraphError for a tensor that an op made, DtypeError for one that is not of floating point.
        """
        if self._node is not None:
            if requires_grad:
                return self
            raise GraphError("you can only change requires_grad flags of leaf variables", mend="use tensor.detach()")
        if requires_grad and not self.dtype.is_floating_point:
            raise DtypeError(f"only Tensors of floating point dtype can require gradients, not {self.dtype}")
        if requires_grad and self._inference and not mode.inference:
            raise GraphError("a tensor made in inference_mode cannot require gradients", mend="clone() it first")
        self._requires_grad = requires_grad
        return self

    @property
    def is_leaf(self) -> builtins.bool:
        return self.grad_fn is None

    @property
    def grad_fn(self) -> Node | None:
        if self._base is not None:
            refresh_view(self)
        return self._node.node if isinstance(self._node, Output) else self._node

    @property
    def output_nr(self) -> int:
        return self._node.index if isinstance(self._node, Output) else 0

    @property
    def grad(self) -> Tensor | None:
        return self._grad

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        if value is not None:
            if not isinstance(value, Tensor):
                raise ArgumentTypeError(f"grad must be a Tensor or None, not {type(value).__name__}")
            if value.array.shape != self.array.shape or value.array.dtype != self.array.dtype:
                raise ShapeError(
                    f"grad of {self.dtype} {tuple(self.shape)} cannot be {value.dtype} {tuple(value.shape)}"
                )
        self._grad = value

    @property
    def data(self) -> Tensor:
        """The same memory without the history; unlike `detach()`, writes through it are not noticed by autograd."""
        made = self.detach()
        made._writes_noticed = False
        return made

    @data.setter
    def data(self, value: Tensor) -> None:
        self.array = value.array

    @property
    def _version(self) -> int:
        return write_count(self.array)

    def is_inference(self) -> builtins.bool:
        return self._inference

    def detach(self) -> Tensor:
        """The same memory without the history."""
        made = _new(Tensor)
        made.array = self.array
        if self._inference:
            made._inference = True
        return made

    def detach_(self) -> Tensor:
        self._node, self._requires_grad = None, False
        self._base = self._view = self._base_node = None
        return self

    def backward(
        self,
        gradient: Any = None,
        retain_graph: builtins.bool | None = None,
        create_graph: builtins.bool = False,
        inputs: Any = None,
    ) -> autograd.GradStore:
        """Fill `.grad` of the leaves this tensor depends on; see `tallow.autograd.backward`."""
        return autograd.backward(self, gradient, retain_graph, create_graph, inputs)

    def retain_grad(self) -> None:
        """Keep the gradient of a tensor that is not a leaf in `.grad` too."""
        if not self.requires_grad:
            raise GraphError("can't retain_grad on a Tensor that does not require grad")
        if self._node is not None and self._retained is None:
            self._keep_grad()

    def _keep_grad(self) -> None:
        """Keep the gradient of what the tensor is now, no longer of what it was before it was written in place."""
        if self._retained is not None:
            self._retained.remove()
        kept = ref(self)

        def keep(g: Array) -> None:
            tensor = kept()
            if tensor is not None:
                tensor._accumulate(g, owned=False)

        assert self._node is not None
        self._retained = _add_node_hook(self._node, keep)

    @property
    def retains_grad(self) -> builtins.bool:
        return self._retained is not None

    def register_hook(self, hook: Callable[[Tensor], Tensor | None]) -> RemovableHandle:
        """Call `hook` with the gradient of this tensor each time it is computed; what it returns takes its place."""
        if not self.requires_grad:
            raise GraphError("cannot register a hook on a tensor that doesn't require gradient")
        if self._node is not None:
            return _add_node_hook(self._node, lambda g: _run_hook(hook, wrap(_array_of(g))).array)
        if self._hooks is None:
            self._hooks = {}
        return RemovableHandle(self._hooks, hook)

    def register_post_accumulate_grad_hook(self, hook: Callable[[Tensor], None]) -> RemovableHandle:
        """Call `hook` with this leaf each time its `.grad` has been filled."""
        if self._node is not None or not self._requires_grad:
            raise GraphError("post accumulate grad hooks belong on leaf tensors that require grad")
        if self._post_hooks is None:
            self._post_hooks = {}
        return RemovableHandle(self._post_hooks, hook)

    def _run_hooks(self, grad: Tensor) -> Tensor:
        for hook in list((self._hooks or {}).values()):
            grad = _run_hook(hook, grad)
        return grad

    def _like(self, g: Array) -> Tensor:
        """A gradient array as a tensor of this tensor's dtype."""
        return wrap(dtypes.cast(_array_of(g), self.dtype))

    def _accumulate(self, g: Array, owned: builtins.bool) -> Tensor:
        """Add to `.grad`, keeping `g` itself only if nobody else holds it. Returns this pass's gradient."""
        g = _array_of(g)
        array = dtypes.cast(g, self.dtype)
        passed = wrap(array if owned or array is not g else array.copy())
        if self._node is None:
            passed = self._run_hooks(passed)
        if self._grad is None:
            self._grad = passed
        else:
            held = self._grad.array
            if held.dtype in dtypes.HALVES:
                held[...] = dtypes.cast(dtypes.widen(held) + dtypes.widen(passed.array), self.dtype)
            else:
                held += passed.array
        for hook in list((self._post_hooks or {}).values()):
            hook(self)
        return passed

    if TYPE_CHECKING:  # hung on the class by offer.py

        def __add__(self, other: Any) -> Tensor: ...
        def __radd__(self, other: Any) -> Tensor: ...
        def __iadd__(self, other: Any) -> Tensor: ...
        def __sub__(self, other: Any) -> Tensor: ...
        def __rsub__(self, other: Any) -> Tensor: ...
        def __isub__(self, other: Any) -> Tensor: ...
        def __mul__(self, other: Any) -> Tensor: ...
        def __rmul__(self, other: Any) -> Tensor: ...
        def __imul__(self, other: Any) -> Tensor: ...
        def __truediv__(self, other: Any) -> Tensor: ...
        def __rtruediv__(self, other: Any) -> Tensor: ...
        def __itruediv__(self, other: Any) -> Tensor: ...
        def __floordiv__(self, other: Any) -> Tensor: ...
        def __rfloordiv__(self, other: Any) -> Tensor: ...
        def __mod__(self, other: Any) -> Tensor: ...
        def __rmod__(self, other: Any) -> Tensor: ...
        def __pow__(self, other: Any) -> Tensor: ...
        def __rpow__(self, other: Any) -> Tensor: ...
        def __matmul__(self, other: Any) -> Tensor: ...
        def __rmatmul__(self, other: Any) -> Tensor: ...
        def __and__(self, other: Any) -> Tensor: ...
        def __or__(self, other: Any) -> Tensor: ...
        def __xor__(self, other: Any) -> Tensor: ...
        def __lshift__(self, other: Any) -> Tensor: ...
        def __rshift__(self, other: Any) -> Tensor: ...
        def __eq__(self, other: Any) -> Tensor: ...  # type: ignore[override]
        def __ne__(self, other: Any) -> Tensor: ...  # type: ignore[override]
        def __lt__(self, other: Any) -> Tensor: ...
        def __le__(self, other: Any) -> Tensor: ...
        def __gt__(self, other: Any) -> Tensor: ...
        def __ge__(self, other: Any) -> Tensor: ...
        def __neg__(self) -> Tensor: ...
        def __pos__(self) -> Tensor: ...
        def __abs__(self) -> Tensor: ...
        def __invert__(self) -> Tensor: ...
        def __getitem__(self, index: Any) -> Tensor: ...
        def __setitem__(self, index: Any, value: Any) -> None: ...


_new = Tensor.__new__


def wrap(array: Array) -> Tensor:
    """A tensor of this very array, without a history."""
    made = _new(Tensor)
    made.array = array
    if mode.inference:
        made._inference = True
    return made


def _array_of(g: Any) -> Array:
    """A gradient as an array; what NumPy computes from zero-dim arrays is no array."""
    return np.asarray(g) if isinstance(g, np.generic) else g


def _unpickle(cls: type[Tensor], array: Array, device: str, requires_grad: bool) -> Tensor:
    return cls._rebuild(devices.move(dtypes.cast(array, dtypes.dtype_of(array)), devices.device(device)), requires_grad)


def _run_hook(hook: Callable[[Tensor], Tensor | None], grad: Tensor) -> Tensor:
    """The gradient, or what the hook puts in its place."""
    replaced = hook(grad)
    if replaced is None:
        return grad
    if not isinstance(replaced, Tensor):
        raise ArgumentTypeError(f"a hook must return a Tensor or None, not {type(replaced).__name__}")
    if replaced.array.shape != grad.array.shape:
        raise GraphError(
            f"a hook has changed the shape of a gradient, from {tuple(grad.shape)} to {tuple(replaced.shape)}"
        )
    return replaced


class RemovableHandle:
    """Removes a hook: `handle.remove()`."""

    _next = 0

    def __init__(self, hooks: dict[int, Any], hook: Any) -> None:
        RemovableHandle._next += 1
        self.id = RemovableHandle._next
        self._hooks = hooks
        hooks[self.id] = hook

    def remove(self) -> None:
        self._hooks.pop(self.id, None)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.remove()


def _add_node_hook(edge: Node | Output, hook: Callable[[Array], Array | None]) -> RemovableHandle:
    node, index = (edge.node, edge.index) if isinstance(edge, Output) else (edge, 0)
    if node.hooks is None:
        node.hooks = {}
    return RemovableHandle(node.hooks.setdefault(index, {}), hook)
