"""Operations on many arrays at once: a GPU needs one launch for all, and returns nothing to the host."""

from __future__ import annotations

from tallow import kernels
from tallow.devices import array_module, device_of, device_type_of
from tallow.dtypes import Array, cast, dtype_of, widen
from tallow.kernels import kernel


def total_norm(arrays: list[Array]) -> Array:
    """Return √(Σ x²) over the elements of all arrays, as a zero-dim array.

    Dtypes:  floats of one dtype, on one device -> float32 for halves, else the same
    """
    return kernels.pick("total_norm", device_type_of(arrays[0]), arrays).fn(arrays)


@kernel("total_norm", "array")
def total_norm_array(arrays: list[Array]) -> Array:
    """Return √(Σ x²) over the elements of all arrays."""
    xp = array_module(arrays[0])
    squares = [(wide * wide).sum() for wide in map(widen, arrays)]
    return xp.asarray(xp.sqrt(sum(squares[1:], squares[0])))


def scale_all(arrays: list[Array], factor: float | Array, found: Array | None = None) -> None:
    """Multiply all arrays by one number, in place.

    Args:
        arrays: floats of one dtype, on one device
        factor: a number, or an array of one element on the device
        found: a float32 array of one element on the device, which is set to 1 if a product is not finite
    """
    kernels.pick("scale_all", device_type_of(arrays[0]), arrays, factor, found).fn(arrays, factor, found)


@kernel("scale_all", "array")
def scale_all_array(arrays: list[Array], factor: float | Array, found: Array | None) -> None:
    """Multiply all arrays by `factor`, in place."""
    factor = factor if isinstance(factor, float) else widen(factor)
    for array in arrays:
        wide = widen(array)
        wide *= factor
        if wide is not array:
            array[...] = wide = cast(wide, dtype_of(array))
        if found is not None:
            xp = array_module(array)
            found[...] = xp.maximum(found, ~xp.isfinite(widen(wide)).all())


def alike(arrays: list[Array]) -> list[list[Array]]:
    """Group the arrays by dtype and device."""
    lists: dict[object, list[Array]] = {}
    for array in arrays:
        lists.setdefault((array.dtype, device_of(array)), []).append(array)
    return list(lists.values())
