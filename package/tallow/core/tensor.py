"""Tensor: an array and its history.

The ops are not here: `public_api.py` adds them to the class from the table of ops.
"""

from __future__ import annotations

import builtins
import copy
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Self, TypeVar
from weakref import ref

import numpy as np

from tallow import devices, dtypes
from tallow.core import printing
from tallow.core.size import Size, new_size
from tallow.dtypes import Array
from tallow.errors import (
    ArgumentError,
    ArgumentTypeError,
    DtypeError,
    GraphError,
    MissingNameError,
    NumericError,
    ShapeError,
    UnsupportedError,
)
from tallow.ops.dims import as_ints, is_int, normalize_dim
from tallow.ops.memory_format import (
    CHANNELS_LAST_NDIM,
    contiguous_format,
    dims_in_memory,
    memory_format,
    preserve_format,
    strided,
)
from tallow.ops.memory_format import layout as Layout
from tallow.ops.sparse import RowGradient
from tallow.ops.table import OPS
from tallow.tape.graph import Node, Output, refresh_view
from tallow.tape.hooks import NodeHooks, RemovableHandle, run_hooks
from tallow.tape.modes import mode
from tallow.tape.views import Fields
from tallow.tape.writes import owner_of, write_count

T = TypeVar("T", bound="Tensor")
_new: Callable[..., Any] = object.__new__  # an object without an array: quicker than a constructor

if TYPE_CHECKING:
    from tallow.signatures.methods import Methods
else:
    Methods = object  # public_api.py adds the ops to the class below

_ndarray, _BF16 = np.ndarray, dtypes.BF16


class Tensor(Methods):
    """An array with a dtype, a device and an autograd history, as torch.Tensor.

    `array` is the NumPy or CuPy array itself; views of a tensor are views of its array. A bfloat16 tensor's array holds
    bit patterns (see `tallow.dtypes`).

    Args:
        data: an array or a nested sequence of numbers, which is converted to the default dtype (an array that has it is
            not copied); or a size as separate integers, for uninitialised elements.
    """

    array: Array

    # Defaults that most tensors never change stay on the class: creating a tensor then sets one attribute.
    _requires_grad = False
    _grad: Tensor | None = None
    _node: Node | Output | None = None  # the op that made it, or one output of it; None for a leaf
    _base: Tensor | None = None  # the tensor that a view is a view of; never itself a view
    _base_node: Node | Output | None = None  # the base's node when the view's history was made
    # How the view was made, see `View`; None if it was made under no_grad. Of a base: how its shape changed in place.
    _view: Fields | None = None
    _is_apart = False  # made by `.data`: its in-place writes are noted for its own array, see `tape.writes`
    _inference = False
    _is_param = False  # of a subclass: it is a parameter all the same, see `nn.Parameter`
    _hooks: dict[int, Callable[[Tensor], Tensor | None]] | None = None
    _post_hooks: dict[int, Callable[[Tensor, Tensor], Any]] | None = None  # called with the leaf and the gradient
    _retained: RemovableHandle | None = None  # of a tensor that is no leaf and keeps its gradient
    _answer: Callable[..., Any] | None = None  # of a sparse tensor: computes functions that fail for lack of an array
    # Of a class that computes ops by `__torch_dispatch__`, see `tallow.core.dispatch`: sends ops to it, makes wrappers.
    _watch: Callable[[], None] | None = None
    _make_wrapper: Callable[..., Any] | None = None
    _end: Callable[[], Any] | None = None  # a weak reference to the `AccumulateGrad` of a leaf

    __array_priority__ = 1000  # so that numpy_array + tensor calls the tensor's operator
    __hash__ = object.__hash__

    def __new__(cls, *values: Any, data: Any = None, device: Any = None, requires_grad: bool = False) -> Self:
        """Create a tensor of the default dtype from data, or of uninitialised memory from a size.

        A subclass may have a `__new__` with arguments of its own, and an `__init__`, as in PyTorch.
        """
        self = _new(cls)
        if cls._watch is not None:
            cls._watch()
        data = values if data is None else (data,)
        if len(data) == 1 and devices.is_array(data[0]):
            self.array = dtypes.cast(data[0], dtypes.get_default_dtype())
        elif len(data) == 1 and isinstance(data[0], Tensor):
            self.array = data[0].array
        elif all(map(is_int, data)):
            self.array = np.empty(as_ints(data, "Tensor") if data else (0,), dtypes.get_default_dtype().storage)
        else:
            self.array = np.asarray(data[0] if len(data) == 1 else data, dtypes.get_default_dtype().storage)
        if device is not None:
            self.array = devices.move(self.array, devices.device(device))
        if requires_grad:
            self.requires_grad_()
        return self

    @staticmethod
    def _make_subclass(cls: type[T], data: Tensor, require_grad: builtins.bool = False) -> T:
        """Return a leaf of a subclass on the memory of a tensor."""
        return cls._rebuild(data.array, require_grad)

    @staticmethod
    def _make_wrapper_subclass(cls: type[T], *args: Any, **kwargs: Any) -> T:
        """Return a tensor of a subclass without memory, see `tallow.core.dispatch.make_wrapper`.

        Raises: ArgumentTypeError for a class without `__torch_dispatch__`.
        """
        if cls._make_wrapper is None:
            raise ArgumentTypeError(f"_make_wrapper_subclass: {cls.__name__} must define __torch_dispatch__")
        wrapper: T = cls._make_wrapper(*args, **kwargs)
        return wrapper

    def as_subclass(self, cls: type[T]) -> T:
        """Return a view of the tensor, with its history, as an object of a subclass."""
        view: Any = self.view_as(self)
        view.__class__ = cls
        if cls._watch is not None:
            cls._watch()
        return view

    # -------------------------------------------------------------------------------------------------- the array

    @property
    def shape(self) -> Size:
        """The sizes of the dims."""
        return new_size(Size, self.array.shape)

    @property
    def ndim(self) -> int:
        """The number of dims."""
        return self.array.ndim

    @property
    def dtype(self) -> dtypes.dtype:
        """The dtype of the elements."""
        return dtypes.BY_STORAGE[self.array.dtype]

    @property
    def layout(self) -> Layout:
        """The layout of the elements: `strided`, dense."""
        return strided

    @property
    def device(self) -> devices.device:
        """The device that holds the elements."""
        return devices.device_of(self.array)

    @property
    def itemsize(self) -> int:
        """The size of an element in bytes."""
        return self.array.itemsize

    @property
    def nbytes(self) -> int:
        """The size of all elements in bytes."""
        return self.array.nbytes

    @property
    def is_cuda(self) -> builtins.bool:
        """Return whether the tensor is on a CUDA device."""
        return devices.device_type_of(self.array) == "cuda"

    @property
    def is_cpu(self) -> builtins.bool:
        """Return whether the tensor is on the CPU."""
        return devices.device_type_of(self.array) == "cpu"

    @property
    def is_meta(self) -> builtins.bool:
        """Return whether the tensor is on device "meta", and so has no elements."""
        return devices.device_type_of(self.array) == "meta"

    # Kinds of tensors that tallow does not have; programs written for PyTorch check these.
    is_sparse = is_sparse_csr = is_quantized = is_nested = is_mps = is_mkldnn = is_xpu = False
    is_ipu = is_maia = is_mtia = is_vulkan = is_xla = False

    def size(self, dim: int | None = None) -> Any:
        """Return the shape, or the size of one dim."""
        if dim is None:
            return self.shape
        return self.array.shape[normalize_dim(dim, self.array.ndim, "size")]

    def dim(self) -> int:
        """Return the number of dims."""
        return self.array.ndim

    ndimension = dim

    def numel(self) -> int:
        """Return the number of elements."""
        return self.array.size

    nelement = numel

    def element_size(self) -> int:
        """Return the size of an element in bytes."""
        return self.array.itemsize

    def stride(self, dim: int | None = None) -> Any:
        """Return the strides, or that of one dim, in elements (NumPy counts bytes); on meta, as on another device."""
        shape, strides = self.array.shape, [s // self.array.itemsize for s in self.array.strides]
        for d in range(len(shape) - 1, -1, -1):
            if strides[d] == 0 and shape[d] == 1:  # a dim that NumPy has inserted, as in a[None]
                strides[d] = shape[d + 1] * strides[d + 1] if d + 1 < len(shape) else 1
        return tuple(strides) if dim is None else strides[normalize_dim(dim, self.array.ndim, "stride")]

    def storage_offset(self) -> int:
        """Return the offset of the first element in the memory that the tensor is a view of, in elements."""
        if self.is_meta:
            return self.array.start // self.array.itemsize
        base = self.array.base
        if not devices.is_array(base):
            return 0
        start, own = (
            a.__array_interface__["data"][0] if type(a) is np.ndarray else a.data.ptr for a in (base, self.array)
        )
        return (own - start) // self.array.itemsize

    def data_ptr(self) -> int:
        """Return the address of the first element; 0 on device meta, where there is none."""
        if type(self.array) is np.ndarray:
            return self.array.ctypes.data
        return 0 if self.is_meta else self.array.data.ptr

    def is_contiguous(self, memory_format: memory_format = contiguous_format) -> builtins.bool:
        """Return whether the elements are in row-major order, or in that of `memory_format`, without gaps."""
        if memory_format in (contiguous_format, preserve_format):
            return self.array.flags.c_contiguous
        if self.array.ndim != CHANNELS_LAST_NDIM.get(memory_format) or not self.array.size:
            return False
        return self.array.transpose(dims_in_memory(self.array.strides, memory_format)).flags.c_contiguous

    def is_floating_point(self) -> builtins.bool:
        """Return whether the dtype is a floating-point dtype."""
        return self.dtype.is_floating_point

    @property
    def real(self) -> Tensor:
        """The real parts, as a view; the tensor itself if it is not complex. Assigning writes them."""
        return OPS["real_of"].call(self) if self.is_complex() else self

    @real.setter
    def real(self, value: Any) -> None:
        self.real[...] = value

    @property
    def imag(self) -> Tensor:
        """The imaginary parts, as a view. Assigning writes them. Raises: UnsupportedError for real numbers."""
        if not self.is_complex():
            raise UnsupportedError("imag is not implemented for tensors with non-complex dtypes")
        return OPS["imag_of"].call(self)

    @imag.setter
    def imag(self, value: Any) -> None:
        self.imag[...] = value

    def is_complex(self) -> builtins.bool:
        """Return whether the dtype is a complex dtype."""
        return self.array.dtype.kind == "c" or self.dtype.is_complex

    def is_signed(self) -> builtins.bool:
        """Return whether the dtype has negative numbers."""
        return self.dtype.is_signed

    def get_device(self) -> int:
        """Return the index of the CUDA device; -1 on the CPU."""
        index = self.device.index
        return -1 if index is None else index

    # -------------------------------------------------------------------------------------------------- conversion

    def numpy(self, *, force: builtins.bool = False) -> np.ndarray[Any, Any]:
        """Return the NumPy array itself, without a copy.

        Args:
            force: detach, move to the CPU and convert dtypes that NumPy lacks to wider ones first, if needed.

        Raises: without `force`, GraphError if the tensor requires grad, ArgumentTypeError if it is not on the CPU or
            NumPy lacks its dtype: bfloat16, float8 and complex32.
        """
        is_native = self.dtype is not dtypes.bfloat16 and self.array.dtype.kind != "V"
        if force:
            return self.cpu().array if is_native else dtypes.numbers_of(self.cpu().array)
        if self.requires_grad and mode.recording:
            raise GraphError("can't call numpy() on Tensor that requires grad", hint="use tensor.detach().numpy()")
        if type(self.array) is not np.ndarray and (self.is_meta or not isinstance(self.array, np.ndarray)):
            raise ArgumentTypeError(
                f"can't convert a tensor on {self.device} to numpy", hint="use tensor.cpu().numpy()"
            )
        if is_native:
            return self.array
        if self.dtype.category == 1:  # uint16
            return self.array.view(dtypes.plain_storage(self.dtype))
        raise ArgumentTypeError(f"NumPy has no {self.dtype.name}", hint="use tensor.float().numpy()")

    def _host(self) -> np.ndarray[Any, Any]:
        return dtypes.numbers_of(devices.backend_of(self.array).to_host(self.array))

    def __array__(self, dtype: Any = None, copy: builtins.bool | None = None) -> np.ndarray[Any, Any]:
        return np.array(self.numpy(), dtype=dtype, copy=copy)

    def __array_wrap__(self, array: Array, context: Any = None, return_scalar: builtins.bool = False) -> Tensor:
        """Return the result of a NumPy function of tensors as a tensor: np.sin(x)."""
        return from_array(np.asarray(array))

    def __dlpack__(self, **kwargs: Any) -> Any:
        if self.requires_grad:
            raise GraphError("can't export a Tensor that requires grad", hint="use tensor.detach()")
        return self.array.__dlpack__(**kwargs)

    def __dlpack_device__(self) -> Any:
        return self.array.__dlpack_device__()

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        if not self.is_cuda:
            raise AttributeError("__cuda_array_interface__ is for tensors on a CUDA device")
        return self.array.__cuda_array_interface__

    def item(self) -> Any:
        """Return the only element as a Python number."""
        array = self.array
        if type(array) is _ndarray and array.size == 1:
            value = array.item()
            # The bits of a bfloat16, and the fields of a packed dtype, are no numbers.
            if type(value) is float or (array.dtype is not _BF16 and type(value) is not tuple):
                return value
        if array.size != 1:
            raise ArgumentError(
                f"a Tensor with {array.size} elements cannot be converted to Scalar", hint="use tolist()"
            )
        return self._host().item()

    def tolist(self) -> Any:
        """Return the elements as nested lists of Python numbers; a number for a 0-d tensor."""
        return self._host().tolist()

    def __bool__(self) -> builtins.bool:
        if self.array.size != 1:
            values = "more than one value" if self.array.size else "no values"
            raise ShapeError(
                f"Boolean value of Tensor with {values} is ambiguous", hint="reduce it first, with any() or all()"
            )
        return builtins.bool(self._host().item())

    def __complex__(self) -> complex:
        return complex(self.item())

    def __int__(self) -> int:
        return int(_real(self.item()))

    def __float__(self) -> float:
        return float(_real(self.item()))

    def __index__(self) -> int:
        if self.dtype.category > 1 or self.array.size != 1:
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
        if not isinstance(element, Tensor | int | float | complex | np.generic):
            raise ArgumentError(
                f"Tensor.__contains__ only supports Tensor or scalar, but you passed in a {type(element).__name__}"
            )
        return builtins.bool((self == element).any())

    def __repr__(self) -> str:
        return printing.tensor_repr(self)

    def __format__(self, spec: str) -> str:
        if spec and self.array.ndim:
            raise ArgumentTypeError(f"format {spec!r} is for 0-d tensors", hint="format each element, or use str(x)")
        is_number = not self.array.ndim and type(self) is Tensor and not self.is_meta
        return format(self.item(), spec) if spec or is_number else str(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        if self._node is not None:
            raise GraphError("only leaf tensors can be deep-copied", hint="use tensor.detach().clone()")
        result = self._rebuild(self.array.copy(order="K"), self._requires_grad)
        memo[id(self)] = result
        result.__dict__.update(copy.deepcopy(self._attributes(), memo))
        if self._grad is not None:
            result._grad = self._grad.__deepcopy__(memo)
        return result

    def __copy__(self) -> Tensor:
        """Return a leaf on the same memory."""
        result = self._rebuild(self.array, self._requires_grad)
        result.__dict__.update(self._attributes())
        return result

    def _attributes(self) -> dict[str, Any]:
        """Return the attributes that a subclass or a user has set."""
        return {name: value for name, value in self.__dict__.items() if name != "array" and not hasattr(Tensor, name)}

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        host = devices.backend_of(self.array).to_host(self.array)
        return _unpickle, (type(self), host, str(self.device), self.requires_grad), self._attributes()

    @classmethod
    def _rebuild(cls, array: Array, requires_grad: builtins.bool) -> Self:
        """Create a leaf of this class without calling its constructor, which in a subclass may take other arguments."""
        result = _new(cls)
        if cls._watch is not None:
            cls._watch()
        result.array = array
        result._requires_grad = requires_grad
        return result

    def __getattr__(self, name: str) -> Any:
        raise MissingNameError(
            f"{type(self).__name__!r} object has no attribute {name!r}",
            hint="tallow may not support this PyTorch name yet; see dir(tallow.Tensor)",
        )

    # ---------------------------------------------------------------------------------------------------- autograd

    @property
    def requires_grad(self) -> builtins.bool:
        """Return whether ops on this tensor are recorded."""
        if self._base is not None:
            refresh_view(self)
        return self._requires_grad

    @requires_grad.setter
    def requires_grad(self, value: builtins.bool) -> None:
        self.requires_grad_(value)

    def requires_grad_(self, requires_grad: builtins.bool = True) -> Tensor:
        """Set whether autograd records ops on this leaf.

        Raises: GraphError for False on a tensor that is not a leaf, DtypeError for a dtype that is not floating-point.
        """
        if not isinstance(requires_grad, builtins.bool):
            raise ArgumentTypeError(f"requires_grad_: expected True or False, got {requires_grad!r:.80}")
        if self._node is not None:
            if requires_grad:
                return self
            raise GraphError("you can only change requires_grad flags of leaf variables", hint="use tensor.detach()")
        if requires_grad and self.dtype.category < 2:
            raise DtypeError(
                f"only Tensors of floating point and complex dtype can require gradients, not {self.dtype}"
            )
        if requires_grad and self._inference and not mode.inference:
            raise GraphError("a tensor made in inference_mode cannot require gradients", hint="clone() it first")
        self._requires_grad = requires_grad
        return self

    @property
    def is_leaf(self) -> builtins.bool:
        """Return whether no recorded op made this tensor."""
        if self._base is not None:
            refresh_view(self)
        return self._node is None

    def _is_view(self) -> builtins.bool:
        """Return whether the tensor is a view of another."""
        return self._base is not None

    @property
    def grad_fn(self) -> Node | None:
        """The node of the op that made this tensor; None for a leaf."""
        if self._base is not None:
            refresh_view(self)
        node = self._node.node if isinstance(self._node, Output) else self._node
        return None if node is None else node.named()

    @property
    def output_nr(self) -> int:
        """The index of this tensor among the outputs of `grad_fn`."""
        return self._node.index if isinstance(self._node, Output) else 0

    @property
    def grad(self) -> Tensor | None:
        """The gradient that `backward` has accumulated; None before the first."""
        return self._grad

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        if value is not None:
            if not isinstance(value, Tensor):
                raise ArgumentTypeError(f"grad must be a Tensor or None, not {type(value).__name__}")
            if value.shape != self.shape or value.dtype is not self.dtype:
                raise ShapeError(
                    f"grad of {self.dtype} {tuple(self.shape)} cannot be {value.dtype} {tuple(value.shape)}"
                )
        self._grad = value

    @property
    def data(self) -> Tensor:
        """The same memory without the history.

        Unlike with `detach()`, a write through it is not noticed where this tensor is needed for a gradient.
        """
        result = self.detach()
        result.array, result._is_apart = self.array.view(), True
        return result

    @data.setter
    def data(self, value: Tensor) -> None:
        self.array = value.array

    @property
    def _version(self) -> int:
        return write_count(self.array if self._is_apart else owner_of(self.array))

    def physical(self) -> Tensor:
        """Return the tensor that holds the elements: this one, but under vmap one with the batch dims."""
        return self

    def is_inference(self) -> builtins.bool:
        """Return whether the tensor was made in inference_mode."""
        return self._inference

    def detach(self) -> Tensor:
        """Return a tensor on the same memory without the history."""
        result = _new(Tensor)
        result.array = self.array
        if self._inference:
            result._inference = True
        if self._is_apart:
            result._is_apart = True
        return result

    def detach_(self) -> Tensor:
        """Remove the history of this tensor, which becomes a leaf."""
        self._node, self._requires_grad = None, False
        self._base = self._view = self._base_node = None
        return self

    def retain_grad(self) -> None:
        """Store the gradient in `.grad` although the tensor is not a leaf."""
        if not self.requires_grad:
            raise GraphError("can't retain_grad on a Tensor that does not require grad")
        if self._node is not None and self._retained is None:
            self._keep_grad()

    def _keep_grad(self) -> None:
        """Store the gradient of the tensor's current node in `.grad`; after an in-place write that is a new node."""
        if self._retained is not None:
            self._retained.remove()
        hooks, index = self._node_hooks()
        # Weak, because the tensor refers to the node that holds the hook.
        self._retained = RemovableHandle(hooks.retained.setdefault(index, {}), ref(self))

    def _node_hooks(self) -> tuple[NodeHooks, int]:
        """Return the hooks of the node that made this tensor, and the index of the output."""
        node = self._node
        return (node.node.get_hooks(), node.index) if isinstance(node, Output) else (node.get_hooks(), 0)  # type: ignore[union-attr]

    def _retain(self, grad: Tensor) -> None:
        """Add a gradient to `.grad` of a tensor that is no leaf. Never in place: whoever has the former keeps it."""
        grad = grad.to(self.dtype)
        self._grad = grad.clone() if self._grad is None else self._grad + grad

    @property
    def retains_grad(self) -> builtins.bool:
        """Return whether `retain_grad` was called."""
        return self._retained is not None

    def register_hook(self, hook: Callable[[Tensor], Tensor | None]) -> RemovableHandle:
        """Call `hook` with the gradient of this tensor whenever it is computed. A tensor it returns replaces it."""
        if not self.requires_grad:
            raise GraphError("cannot register a hook on a tensor that doesn't require gradient")
        if self._node is not None:
            hooks, index = self._node_hooks()
            return RemovableHandle(hooks.of_outputs.setdefault(index, {}), hook)
        if self._hooks is None:
            self._hooks = {}
        return RemovableHandle(self._hooks, hook)

    def register_post_accumulate_grad_hook(self, hook: Callable[[Tensor], None]) -> RemovableHandle:
        """Call `hook` with this leaf each time its `.grad` has been filled."""
        if self._node is not None or not self._requires_grad:
            raise GraphError("post accumulate grad hooks are for leaf tensors that require grad")
        return self._add_post_hook(lambda leaf, _: hook(leaf))

    def _add_post_hook(self, hook: Callable[[Tensor, Tensor], Any]) -> RemovableHandle:
        if self._post_hooks is None:
            self._post_hooks = {}
        return RemovableHandle(self._post_hooks, hook)

    def _run_post_hooks(self, grad: Tensor) -> None:
        for hook in list((self._post_hooks or {}).values()):
            hook(self, grad)

    def _like(self, g: Array) -> Tensor:
        """Return a gradient array as a tensor of this tensor's dtype."""
        if type(g) is RowGradient:
            return RowGradient.as_tensor(g).to(self.dtype)
        return wrap(dtypes.cast(_array_of(g), self.dtype))

    def _accumulate(self, g: Array, owned: builtins.bool) -> Tensor:
        """Add a gradient to `.grad`. Return the gradient of this pass, after the hooks.

        Args:
            owned: no other object refers to `g`, so it may become `.grad` without a copy.
        """
        array = g
        if type(g) is not np.ndarray or g.dtype is not self.array.dtype:
            if type(g) is RowGradient:
                return self._add_sparse(self._like(g))
            g = _array_of(g)
            array = dtypes.cast(g, self.dtype)
        grad = wrap(array if owned or array is not g else array.copy())
        is_seen = self._node is None and self._hooks
        if is_seen:
            grad = run_hooks(self._hooks or {}, grad)
        if self._grad is not None and self._grad.is_sparse:
            self._grad = grad + self._grad
        elif self._grad is None:
            self._grad = wrap(grad.array.copy()) if is_seen else grad  # a hook may keep what it has seen
        else:
            total = self._grad.array
            if total.dtype in dtypes.HALVES:
                total[...] = dtypes.cast(dtypes.widen(total) + dtypes.widen(grad.array), self.dtype)
            else:
                total += grad.array
        if self._post_hooks:
            self._run_post_hooks(grad)
        return grad

    def _add_sparse(self, grad: Tensor) -> Tensor:
        """Add a sparse gradient to `.grad`."""
        if self._node is None and self._hooks:
            grad = run_hooks(self._hooks, grad)
        total = self._grad
        self._grad = grad if total is None else total + grad
        if self._post_hooks:
            self._run_post_hooks(grad)
        return grad

    def _of_gradient(self, g: Tensor) -> Tensor:
        """Return a gradient with a graph, of this tensor's dtype."""
        return g.to(self.dtype)

    if TYPE_CHECKING:  # added to the class by public_api.py

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


def from_array(array: Array) -> Tensor:
    """As `wrap`. Raises: DtypeError for a dtype that no tensor has."""
    dtypes.dtype_of(array)
    return wrap(array)


def wrap(array: Array) -> Tensor:
    """Return a tensor of this very array, without a history."""
    tensor = _new(Tensor)
    tensor.array = array
    if mode.inference:
        tensor._inference = True
    return tensor


def _array_of(g: Any) -> Array:
    """Return a gradient as an array. NumPy returns scalars, not arrays, for computations on zero-dim arrays."""
    return np.asarray(g) if isinstance(g, np.generic) else g


def _unpickle(cls: type[Tensor], array: Array, device: str, requires_grad: bool) -> Tensor:
    return cls._rebuild(devices.move(dtypes.cast(array, dtypes.dtype_of(array)), devices.device(device)), requires_grad)


def _real(number: Any) -> Any:
    """Return a number as a real one.  Raises: NumericError for a complex number with an imaginary part"""
    if type(number) is not complex:
        return number
    if number.imag:
        raise NumericError(f"value {number} cannot be converted to a real number", hint="take its .real")
    return number.real


NodeHooks.tensor_of = staticmethod(lambda g: wrap(_array_of(g)))
