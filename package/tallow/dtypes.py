"""Dtypes, and PyTorch's rules for mixing them.

A tensor's dtype follows from that of its array. bfloat16 needs a convention: NumPy lacks it, so a bfloat16 tensor holds
the upper sixteen bits of each float32 in a `uint16` array, on every device. Half precision is for storage and exchange:
ops compute in float32 and round.

The dtypes in `PACKED` only hold values, convert and move: uint16, eight-bit floats, complex32 and the quantized ones.
Their arrays have NumPy dtypes with one named field, or two, so that the dtype of an array is enough to recognise each.
No arithmetic of NumPy takes such arrays.

Source: PyTorch's documentation, "Tensor Attributes", torch.dtype.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable
from typing import Annotated, Any

import numpy as np

from tallow import float8
from tallow.errors import ArgumentTypeError, DtypeError, warn

Array = Annotated[Any, "Array"]  # a NumPy or CuPy array: both have the interface, and no common base class
Scalar = builtins.float  # mypy's numeric tower: int and bool too


class dtype:
    """A data type of elements.

    Attributes:
        name: PyTorch's.
        storage: the NumPy dtype of the arrays that hold the elements.
        category: 0 bool, 1 integer, 2 floating point, 3 complex; promotion takes the higher one, whatever its width.
    """

    # Not a dataclass: programs that walk through dataclasses would walk through dtypes.
    __slots__ = ("category", "name", "storage")

    def __init__(self, name: str, storage: np.dtype[Any], category: builtins.int) -> None:
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "storage", storage)
        object.__setattr__(self, "category", category)

    name: str
    storage: np.dtype[Any]
    category: builtins.int

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"a dtype cannot be changed: {name}")

    @property
    def is_floating_point(self) -> builtins.bool:
        """Return whether this is a floating-point dtype."""
        return self.category == 2

    @property
    def is_complex(self) -> builtins.bool:
        """Return whether this is a complex dtype."""
        return self.category == 3

    @property
    def is_signed(self) -> builtins.bool:
        """Return whether the dtype has negative numbers. Raises: DtypeError for quantized dtypes."""
        if self in _QUANTIZED:
            raise DtypeError(f"isSignedType not supported for quantized types like {self}")
        return self is not float8_e8m0fnu and (self.category >= 2 or self.storage.kind == "i")

    @property
    def itemsize(self) -> builtins.int:
        """The size of an element in bytes."""
        return self.storage.itemsize

    def to_real(self) -> dtype:
        """Return the dtype of the real part of complex numbers; for other dtypes the dtype itself."""
        return _REAL_OF.get(self, self)

    def to_complex(self) -> dtype:
        """Return the complex dtype whose parts have this dtype; a complex dtype itself.

        Raises:  DtypeError if there is none
        """
        if self.is_complex:
            return self
        if self is bfloat16:
            return complex64
        for kind, part in _REAL_OF.items():
            if part is self:
                return kind
        raise DtypeError(f"{self} has no complex dtype", hint="convert to float32 or float64 first")

    def __copy__(self) -> dtype:
        return self

    def __deepcopy__(self, memo: Any) -> dtype:
        return self

    def __repr__(self) -> str:
        return f"tallow.{self.name}"

    def __reduce__(self) -> str:
        return self.name  # pickled by name, so that unpickling gives the same object


Dtype = dtype  # for annotations where the lower-case name means something else


def _packed(name: str, part: str, category: builtins.int) -> dtype:
    """Return a dtype whose arrays have one named field."""
    return dtype(name, np.dtype([(name, part)]), category)


complex128 = dtype("complex128", np.dtype(np.complex128), 3)
complex64 = dtype("complex64", np.dtype(np.complex64), 3)
float64 = dtype("float64", np.dtype(np.float64), 2)
float32 = dtype("float32", np.dtype(np.float32), 2)
float16 = dtype("float16", np.dtype(np.float16), 2)
bfloat16 = dtype("bfloat16", np.dtype(np.uint16), 2)
int64 = dtype("int64", np.dtype(np.int64), 1)
int32 = dtype("int32", np.dtype(np.int32), 1)
int16 = dtype("int16", np.dtype(np.int16), 1)
int8 = dtype("int8", np.dtype(np.int8), 1)
uint64 = dtype("uint64", np.dtype(np.uint64), 1)
uint32 = dtype("uint32", np.dtype(np.uint32), 1)
uint8 = dtype("uint8", np.dtype(np.uint8), 1)
bool = dtype("bool", np.dtype(np.bool_), 0)
double, float, half, long, int, short = float64, float32, float16, int64, int32, int16

complex32 = dtype("complex32", np.dtype([("real", np.float16), ("imag", np.float16)]), 3)
float8_e4m3fn = _packed("float8_e4m3fn", "u1", 2)
float8_e5m2 = _packed("float8_e5m2", "u1", 2)
float8_e4m3fnuz = _packed("float8_e4m3fnuz", "u1", 2)
float8_e5m2fnuz = _packed("float8_e5m2fnuz", "u1", 2)
float8_e8m0fnu = _packed("float8_e8m0fnu", "u1", 2)
uint16 = _packed("uint16", "u2", 1)
qint8, quint8, qint32 = _packed("qint8", "i1", 1), _packed("quint8", "u1", 1), _packed("qint32", "i4", 1)
quint4x2, quint2x4 = _packed("quint4x2", "u1", 1), _packed("quint2x4", "u1", 1)
cdouble, cfloat, chalf = complex128, complex64, complex32

ALL = (
    *(complex128, complex64, float64, float32, float16, bfloat16),
    *(int64, int32, int16, int8, uint32, uint8, bool),
)
FLOAT8 = (float8_e4m3fn, float8_e5m2, float8_e4m3fnuz, float8_e5m2fnuz, float8_e8m0fnu)
_QUANTIZED = (qint8, quint8, qint32, quint4x2, quint2x4)
PACKED = (complex32, *FLOAT8, uint16, *_QUANTIZED)
BY_STORAGE = {d.storage: d for d in (*ALL, uint64, *PACKED)}
_REAL_OF = {complex128: float64, complex64: float32, complex32: float16}

F16 = float16.storage
BF16 = bfloat16.storage
HALVES = frozenset((F16, BF16))  # storage of half-precision floats, which ops compute in float32

_OF_PYTHON = {
    builtins.complex: complex128,
    builtins.float: float64,
    builtins.int: int64,
    builtins.bool: bool,
}
_default = float32


def get_default_dtype() -> dtype:
    """Return the dtype of float results that nothing else determines."""
    return _default


def default_or(spec: Any) -> dtype:
    """Return the dtype as in `as_dtype`, or the default dtype for None."""
    return _default if spec is None else as_dtype(spec)


def set_default_dtype(d: dtype) -> None:
    """Set the dtype of float results that nothing else determines: `tensor(1.5)`, `int_tensor / 2`."""
    global _default
    if not (isinstance(d, dtype) and d.is_floating_point):
        raise ArgumentTypeError(
            f"set_default_dtype: {d!r:.80} is not a floating-point dtype", hint="use float32 or float64"
        )
    _default = d


def as_dtype(spec: Any) -> dtype:
    """Return the dtype for a tallow dtype, a NumPy dtype or type, or Python's `complex`, `float`, `int`, `bool`."""
    if isinstance(spec, dtype):
        return spec
    if isinstance(spec, type) and spec in _OF_PYTHON:
        return _OF_PYTHON[spec]
    try:  # a name is no dtype, as in PyTorch
        storage = None if spec is None or isinstance(spec, str) else np.dtype(spec)  # NumPy's dtype(None) is float64
    except TypeError:
        storage = None
    if storage == BF16:
        return uint16  # to NumPy these are integers
    if storage is None or storage not in BY_STORAGE:
        names = ", ".join(d.name for d in ALL)
        raise ArgumentTypeError(f"{spec!r} is not a tallow dtype", hint=f"use one of {names}")
    return BY_STORAGE[storage]


def dtype_of(array: Array) -> dtype:
    """Return the dtype of a tensor with this array. Raises: DtypeError if there is none."""
    try:
        return BY_STORAGE[array.dtype]
    except KeyError:
        raise DtypeError(
            f"arrays of {array.dtype} have no dtype in tallow", hint="convert it first, e.g. array.astype('float32')"
        ) from None


# Array type -> the function that converts between float32, float16 and bfloat16 by the best kernel of its device.
CONVERTERS: dict[type, Callable[[Array, dtype], Array]] = {}
WITH_KERNELS = frozenset((float32.storage, *HALVES))


def widen(array: Array) -> Array:
    """Convert float16 or bfloat16 storage to float32; return any other array unchanged."""
    return CONVERTERS.get(type(array), array_cast)(array, float32) if array.dtype in HALVES else array


def cast(array: Array, to: dtype) -> Array:
    """Convert elements to a dtype, without a copy if nothing changes. bfloat16 rounds to nearest even and keeps NaN.

    Of complex numbers, real dtypes get the real parts.

    The result has the very object `to.storage` as its dtype. NumPy also makes equal ones, for example when it unpickles
    an array, but the fast paths of ops compare dtypes by identity.
    """
    if array.dtype == to.storage:
        return array if array.dtype is to.storage else array.view(to.storage)
    if array.dtype in WITH_KERNELS and to.storage in WITH_KERNELS:
        return CONVERTERS.get(type(array), array_cast)(array, to)
    return array_cast(widen(array), to)


def array_cast(array: Array, to: dtype) -> Array:
    """Compute `cast` by functions of NumPy or CuPy alone."""
    if not array.ndim:  # NumPy's operators turn zero-dim arrays into scalars
        return array_cast(array.reshape(1), to).reshape(())
    if array.dtype == BF16:
        array = (array.astype(np.uint32) << np.uint32(16)).view(np.float32)
    kind = array.dtype.kind
    if kind == "V" or to.storage.kind == "V":
        return _pack(numbers_of(array), to) if to.storage.kind == "V" else cast(numbers_of(array), to)
    if kind == "c" and to.category in (1, 2):
        warn(DISCARDED)
        array = array.real
        if array.dtype == to.storage:
            return array.copy()
    if to is not bfloat16:
        return array.astype(to.storage, copy=False)
    if array.size <= ROUNDED_AT_ONCE:
        return _round_to_bfloat16(array)
    flat = array.reshape(-1)
    rounded = np.empty_like(flat, np.uint16)  # a CuPy array for a CuPy array
    for start in range(0, flat.size, ROUNDED_AT_ONCE):
        rounded[start : start + ROUNDED_AT_ONCE] = _round_to_bfloat16(flat[start : start + ROUNDED_AT_ONCE])
    return rounded.reshape(array.shape)


DISCARDED = "Casting complex values to real discards the imaginary part"


def numbers_of(array: Array) -> Array:
    """Return the elements as an array that NumPy computes with: halves in float32, packed dtypes in a wider one.

    complex32 becomes complex64, float8 float32, uint16 int32; quantized integers stay as wide as they are.
    """
    if array.dtype.kind != "V":
        return widen(array)
    packed = BY_STORAGE[array.dtype]
    if packed is complex32:
        numbers = np.empty(array.shape, np.complex64)
        numbers.real, numbers.imag = array["real"], array["imag"]
        return numbers
    plain = array.view(plain_storage(packed))
    if packed.is_floating_point:
        return float8.values_of(packed.name)[plain]
    return plain.astype(np.int32) if packed is uint16 else plain  # a uint16 array would be one of bfloat16


def plain_storage(d: dtype) -> np.dtype[Any]:
    """Return the NumPy dtype of the elements' bits: that of the field of a packed dtype, else the storage itself."""
    return d.storage[0] if d.storage.names else d.storage


def _pack(array: Array, to: dtype) -> Array:
    """Return numbers as elements of a dtype in `PACKED`, in new memory."""
    if to is complex32:
        packed = np.empty(array.shape, to.storage)
        packed["real"], packed["imag"] = array.real, array.imag
        return packed
    if array.dtype.kind == "c":
        warn(DISCARDED)
        array = array.real
    if to.is_floating_point:
        return float8.bytes_of(array, to.name).view(to.storage)
    return array.astype(plain_storage(to)).view(to.storage)


ROUNDED_AT_ONCE = 2**16  # elements; temporary arrays stay small, and in the cache


def _round_to_bfloat16(array: Array) -> Array:
    bits = array.astype(np.float32).view(np.uint32)
    rounded = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)
    is_nan = (bits & np.uint32(0x7FFFFFFF)) > np.uint32(0x7F800000)
    rounded[is_nan] = 0x7FC0
    return rounded.astype(np.uint16)


def promote_types(type1: dtype, type2: dtype) -> dtype:
    """Return the smallest dtype that both convert to. A float dtype takes precedence over any integer dtype.

    Raises:  ArgumentTypeError for what is not a dtype; DtypeError for float8 and another dtype, and for uint16 and
        another integer dtype
    """
    for given in (type1, type2):
        if not isinstance(given, dtype):
            raise ArgumentTypeError(f"promote_types: expected a dtype, got {given!r:.80}")
    if type1 is type2:
        return type1
    if type1 in FLOAT8 or type2 in FLOAT8:
        raise DtypeError(f"promotion for float8 types is not supported, attempted to promote {type1} and {type2}")
    if type1.category == 3 or type2.category == 3:
        return _promote_complex(type1, type2)
    if type1.category != type2.category:
        return type1 if type1.category > type2.category else type2
    if type1 in PACKED or type2 in PACKED:
        raise DtypeError(f"promotion for {type1} and {type2} is not supported", hint="convert one of them")
    if {type1, type2} == {float16, bfloat16}:
        return float32
    if bfloat16 in (type1, type2):
        return type1 if type2 is bfloat16 else type2
    promoted = np.promote_types(type1.storage, type2.storage)
    return BY_STORAGE[promoted]


def _promote_complex(type1: dtype, type2: dtype) -> dtype:
    """Return the smallest complex dtype for both; integers do not widen it."""
    if type1.category < 2 or type2.category < 2:
        return type1 if type1.category == 3 else type2
    return promote_types(type1.to_real(), type2.to_real()).to_complex()


def can_cast(from_: dtype, to: dtype) -> builtins.bool:
    """Return whether an in-place op may store `from_` in `to`: never to a lower category."""
    return from_.category <= to.category


def result_type(operands: Iterable[Any]) -> dtype:
    """Return the common dtype of arrays and Python numbers.

    Arrays with dims come first. A zero-dim array, and after it a Python number, counts only if its category is higher
    than that of the dtype so far.
    """
    ranks: list[dtype | None] = [None, None, None]  # arrays with dims, zero-dim arrays, numbers
    for x in operands:
        if x is None:
            continue
        if hasattr(x, "dtype") and hasattr(x, "ndim"):
            rank, d = (0 if x.ndim else 1), dtype_of(x)
        else:
            rank, d = 2, scalar_dtype(x)
        current = ranks[rank]
        ranks[rank] = d if current is None else promote_types(current, d)
    result: dtype | None = None
    for lower in ranks:
        if result is None:
            result = lower
        elif lower is not None and lower.category > result.category:
            result = promote_types(result, lower)
    if result is None:
        raise ArgumentTypeError("result_type: no tensor or number among the arguments")
    return result


def scalar_dtype(value: Any) -> dtype:
    """Return the dtype of a Python or NumPy number."""
    if isinstance(value, builtins.bool | np.bool_):
        return bool
    if isinstance(value, builtins.int | np.integer):
        return int64
    if isinstance(value, builtins.float | np.floating):
        return _default
    if isinstance(value, builtins.complex | np.complexfloating):
        return _default.to_complex()
    raise ArgumentTypeError(f"expected a Tensor or a number, not {type(value).__name__}: {value!r}")


class finfo:
    """Limits of a floating-point dtype, as torch.finfo; for a complex dtype, those of its parts."""

    def __init__(self, type: dtype | None = None) -> None:
        d = get_default_dtype() if type is None else type.to_real()
        if not d.is_floating_point:
            raise ArgumentTypeError(f"finfo: {d} is not a floating-point dtype", hint="use tl.iinfo")
        self.dtype = d.name
        self.bits = 8 * d.itemsize
        if d is bfloat16:
            self.eps, self.tiny, self.resolution = 2.0**-7, 2.0**-126, 1e-2
            self.max = builtins.float(np.uint32(0x7F7F0000).view(np.float32))
        elif d in FLOAT8:
            _, mantissa_bits, bias = float8.FORMATS[d.name]
            self.eps, self.resolution = 2.0**-mantissa_bits, 1.0
            self.tiny, self.max = 2.0 ** (1 - bias), float8.LARGEST[d.name]
        else:
            n = np.finfo(d.storage)
            self.eps, self.tiny, self.max = builtins.float(n.eps), builtins.float(n.tiny), builtins.float(n.max)
            self.resolution = 10.0**-n.precision
        self.min = -self.max
        self.smallest_normal = self.tiny

    def __repr__(self) -> str:
        names = ("resolution", "min", "max", "eps", "smallest_normal", "tiny")
        fields = ", ".join(f"{name}={getattr(self, name):g}" for name in names)
        return f"finfo({fields}, dtype={self.dtype})"


class iinfo:
    """Limits of an integer dtype, as torch.iinfo."""

    def __init__(self, type: dtype) -> None:
        if type.category != 1:
            raise ArgumentTypeError(f"iinfo: {type} is not an integer dtype", hint="use tl.finfo")
        n = np.iinfo(plain_storage(type))
        self.dtype = type.name
        self.bits, self.max, self.min = n.bits, builtins.int(n.max), builtins.int(n.min)

    def __repr__(self) -> str:
        return f"iinfo(min={self.min:g}, max={self.max:g}, dtype={self.dtype})"
