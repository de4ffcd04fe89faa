"""Layers that hash integers and strings into a fixed number of bins."""

from __future__ import annotations

from typing import Any

import numpy as np

import tallow as tl
from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError, ArgumentTypeError
from tallow.keras.config import floatx
from tallow.keras.layers.checks import positive
from tallow.keras.layers.encoding import check_mode, encode, encoded_shape, refuse_sparse
from tallow.keras.layers.fingerprints import combine, fingerprint, siphash
from tallow.keras.layers.layer import Layer
from tallow.keras.shapes import Shape
from tallow.keras.symbolic import KerasTensor

CROSS_KEY = 0xDECAFCAFFE  # TensorFlow's initial value of the hash of crossed features


def as_array(inputs: Any) -> np.ndarray[Any, Any]:
    """Convert tensors, arrays and lists of numbers or strings to an array; decode bytes."""
    array: np.ndarray[Any, Any] = inputs.numpy(force=True) if isinstance(inputs, Tensor) else np.asarray(inputs)
    if array.dtype.kind == "O":
        array = np.asarray([x.decode() if isinstance(x, bytes) else x for x in array.reshape(-1)]).reshape(array.shape)
    return np.char.decode(array) if array.dtype.kind == "S" else array


def each(array: np.ndarray[Any, Any], function: Any) -> np.ndarray[Any, Any]:
    """Apply a function that returns an integer to each element, once per distinct value."""
    distinct, inverse = np.unique(array, return_inverse=True)
    return np.array([function(x) for x in distinct.tolist()], np.int64)[inverse].reshape(array.shape)


class UntypedLayer(Layer):
    """Base class of layers that take strings: inputs are not converted to tensors."""

    def _convert(self, leaf: Any) -> Any:
        return leaf


class Hashing(UntypedLayer):
    """Hash integers or strings into bins.

    Args:
        num_bins: the number of bins.
        mask_value: a value that gets bin 0, which no other value uses.
        salt: a secret key of one or two integers, which makes the bins unpredictable.
        output_mode: "int", or an encoding of the bin as in CategoryEncoding.
        sparse: not supported.
    """

    def __init__(
        self,
        num_bins: int,
        mask_value: Any = None,
        salt: Any = None,
        output_mode: str = "int",
        sparse: bool = False,
        **kwargs: Any,
    ) -> None:
        mode = check_mode("Hashing", output_mode)
        super().__init__(**{**kwargs, "dtype": kwargs.get("dtype") or ("int64" if mode == "int" else floatx())})
        self.output_mode = mode
        refuse_sparse(self.name, sparse)
        self.num_bins = positive(self.name, "num_bins", num_bins)
        self.mask_value = mask_value
        self.salt = (salt, salt) if isinstance(salt, int) else None if salt is None else tuple(salt)
        if self.salt is not None and (len(self.salt) != 2 or not all(isinstance(n, int) for n in self.salt)):
            raise ArgumentError(f"{self.name}: salt={salt!r}", hint="pass one or two integers")

    def call(self, inputs: Any) -> Tensor:
        array = as_array(inputs)
        if array.dtype.kind == "f":
            array = array.astype(np.int64)
        has_mask = self.mask_value is not None and self.num_bins > 1
        bins = self.num_bins - has_mask

        def bin_of(x: Any) -> int:
            if has_mask and x == self.mask_value:
                return 0
            text = str(x).encode()
            return (fingerprint(text) if self.salt is None else siphash(text, self.salt)) % bins + has_mask

        indices = tl.as_tensor(each(array, bin_of))
        if self.output_mode == "int":
            return indices.to(self._dtype)
        return encode(indices, self.output_mode, self.num_bins, self._dtype)

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        return encoded_shape(input_shape, self.output_mode, self.num_bins)


class HashedCrossing(UntypedLayer):
    """Hash each combination of several features into a bin.

    Args:    num_bins, output_mode "int" or "one_hot", as in Hashing; sparse is not supported

    Shapes:  inputs, a list of (B) or (B, 1) of integers or strings -> the same, or (B, num_bins)
    """

    def __init__(
        self,
        num_bins: int,
        output_mode: str = "int",
        sparse: bool = False,
        name: str | None = None,
        dtype: Any = None,
    ) -> None:
        mode = check_mode("HashedCrossing", output_mode)
        super().__init__(name=name, dtype=dtype or ("int64" if mode == "int" else floatx()))
        if mode not in ("int", "one_hot"):
            raise ArgumentError(f"{self.name}: output_mode={output_mode!r}", hint="use 'int' or 'one_hot'")
        refuse_sparse(self.name, sparse)
        self.num_bins = positive(self.name, "num_bins", num_bins)
        self.output_mode = mode

    def call(self, inputs: Any) -> Tensor:
        if not isinstance(inputs, list | tuple) or len(inputs) < 2:
            raise ArgumentTypeError(f"{self.name}: expected a list of at least two features")
        arrays = [as_array(x) for x in inputs]
        shape = arrays[0].shape
        if any(array.shape != shape for array in arrays) or len(shape) > 2 or (len(shape) == 2 and shape[1] != 1):
            raise ArgumentError(f"{self.name}: expected features of the same shape, (B) or (B, 1)")
        bins = np.empty(arrays[0].size, np.int64)
        for index, values in enumerate(zip(*(array.reshape(-1).tolist() for array in arrays), strict=True)):
            combined = CROSS_KEY
            for value in values:
                combined = combine(combined, value % 2**64 if isinstance(value, int) else fingerprint(value.encode()))
            bins[index] = combined % self.num_bins
        indices = tl.as_tensor(bins.reshape(shape))
        if self.output_mode == "int":
            return indices.to(self._dtype)
        return encode(indices, self.output_mode, self.num_bins, self._dtype)

    def compute_output_spec(self, inputs: Any) -> Any:
        return KerasTensor(encoded_shape(inputs[0].shape, self.output_mode, self.num_bins), self._dtype)
