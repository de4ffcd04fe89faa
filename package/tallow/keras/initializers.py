"""Initial values of weights, under their Keras names: call an initializer with a shape to get a tensor.

The last two dims of a kernel are its inputs and outputs, the ones before them its window, as in Keras. Random values
come from tallow's default generator, which `keras.utils.set_random_seed` seeds; with `seed=` an initializer uses a
separate generator and returns the same values for each weight of a shape, as in Keras.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import tallow as tl
from tallow import dtypes
from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError
from tallow.keras.dtype_names import as_dtype
from tallow.keras.lookup import classes_of, resolve
from tallow.keras.naming import snake_case
from tallow.keras.serialization import deserialize_keras_object, serialize_keras_object
from tallow.lazy_names import names_of
from tallow.nn import init
from tallow.random import Generator

# The standard deviation of a standard normal distribution truncated at ±2.
TRUNCATED_STD = 0.87962566103423978


class Initializer:
    """Base class of initializers; a subclass defines `__call__(shape, dtype)`, and `get_config` for its arguments."""

    def __call__(self, shape: Sequence[int], dtype: Any = None) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} does not define __call__(shape, dtype)")

    def get_config(self) -> dict[str, Any]:
        """Return the constructor arguments."""
        return {}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Any:
        """Create an initializer from its configuration."""
        return cls(**config)

    def clone(self) -> Any:
        """Return a copy."""
        return self.from_config(self.get_config())


def _empty(shape: Sequence[int], dtype: Any) -> Tensor:
    return tl.empty(shape, dtype=dtypes.float32 if dtype is None else as_dtype(dtype))


class Zeros(Initializer):
    """Initialize with 0."""

    def __call__(self, shape: Sequence[int], dtype: Any = None) -> Tensor:
        return init.zeros_(_empty(shape, dtype))


class Ones(Initializer):
    """Initialize with 1."""

    def __call__(self, shape: Sequence[int], dtype: Any = None) -> Tensor:
        return init.ones_(_empty(shape, dtype))


class Constant(Initializer):
    """Initialize with `value`, a number, or an array that broadcasts to the shape."""

    def __init__(self, value: Any = 0.0) -> None:
        self.value = value

    def __call__(self, shape: Sequence[int], dtype: Any = None) -> Tensor:
        tensor = _empty(shape, dtype)
        tensor[...] = tl.as_tensor(self.value)
        return tensor

    def get_config(self) -> dict[str, Any]:
        return {"value": self.value}


class Identity(Initializer):
    """Initialize a matrix with `gain` on the diagonal, and 0 elsewhere."""

    def __init__(self, gain: float = 1.0) -> None:
        self.gain = gain

    def __call__(self, shape: Sequence[int], dtype: Any = None) -> Tensor:
        return init.eye_(_empty(shape, dtype)).mul_(self.gain)

    def get_config(self) -> dict[str, Any]:
        return {"gain": self.gain}


class _Random(Initializer):
    """Base class of random initializers; a seed is reused for each weight."""

    def __init__(self, seed: int | None = None) -> None:
        self.seed = seed

    @property
    def _generator(self) -> Generator | None:
        return None if self.seed is None else Generator().manual_seed(self.seed)

    def get_config(self) -> dict[str, Any]:
        return {"seed": self.seed}


class RandomUniform(_Random):
    """Initialize from U(minval, maxval)."""

    def __init__(self, minval: float = -0.05, maxval: float = 0.05, seed: int | None = None) -> None:
        super().__init__(seed)
        self.minval = minval
        self.maxval = maxval

    def __call__(self, shape: Sequence[int], dtype: Any = None) -> Tensor:
        return init.uniform_(_empty(shape, dtype), self.minval, self.maxval, self._generator)

    def get_config(self) -> dict[str, Any]:
        return {"minval": self.minval, "maxval": self.maxval, **super().get_config()}


class RandomNormal(_Random):
    """Initialize from N(mean, stddev²)."""

    def __init__(self, mean: float = 0.0, stddev: float = 0.05, seed: int | None = None) -> None:
        super().__init__(seed)
        self.mean = mean
        self.stddev = stddev

    def __call__(self, shape: Sequence[int], dtype: Any = None) -> Tensor:
        return init.normal_(_empty(shape, dtype), self.mean, self.stddev, self._generator)

    def get_config(self) -> dict[str, Any]:
        return {"mean": self.mean, "stddev": self.stddev, **super().get_config()}


class TruncatedNormal(RandomNormal):
    """Initialize from N(mean, stddev²), drawing again values more than two stddev from the mean."""

    def __call__(self, shape: Sequence[int], dtype: Any = None) -> Tensor:
        reach = 2 * self.stddev
        low, high = self.mean - reach, self.mean + reach
        return init.trunc_normal_(_empty(shape, dtype), self.mean, self.stddev, low, high, self._generator)


class Orthogonal(_Random):
    """Initialize with `gain` times an orthogonal matrix; all dims but the last are merged.

    Source:  Saxe et al. 2013, arXiv:1312.6120
    """

    def __init__(self, gain: float = 1.0, seed: int | None = None) -> None:
        super().__init__(seed)
        self.gain = gain

    def __call__(self, shape: Sequence[int], dtype: Any = None) -> Tensor:
        if len(shape) < 2:
            raise ArgumentError(f"Orthogonal: expected at least two dims, got shape {tuple(shape)}")
        matrix = _empty((math.prod(shape[:-1]), shape[-1]), dtype)
        return init.orthogonal_(matrix, self.gain, self._generator).reshape(tuple(shape))

    def get_config(self) -> dict[str, Any]:
        return {"gain": self.gain, **super().get_config()}


class VarianceScaling(_Random):
    """Initialize with variance scale / n, where n is the number of inputs, of outputs, or their mean.

    Args:
        mode: fan_in, fan_out or fan_avg.
        distribution: uniform, truncated_normal or untruncated_normal.
        input_axes, output_axes: the input and output axes of the kernel, if its layout is not (*window, inputs,
            outputs).
    """

    MODES = ("fan_in", "fan_out", "fan_avg")
    DISTRIBUTIONS = ("uniform", "truncated_normal", "untruncated_normal")

    def __init__(
        self,
        scale: float = 1.0,
        mode: str = "fan_in",
        distribution: str = "truncated_normal",
        seed: int | None = None,
        input_axes: Sequence[int] | None = None,
        output_axes: Sequence[int] | None = None,
    ) -> None:
        super().__init__(seed)
        if scale <= 0:
            raise ArgumentError(f"VarianceScaling: scale must be positive, got {scale}")
        if mode not in self.MODES or distribution not in self.DISTRIBUTIONS:
            raise ArgumentError(
                f"VarianceScaling: mode={mode!r}, distribution={distribution!r}",
                hint=f"use a mode of {', '.join(self.MODES)}; a distribution of {', '.join(self.DISTRIBUTIONS)}",
            )
        self.scale = scale
        self.mode = mode
        self.distribution = distribution
        self.input_axes = input_axes
        self.output_axes = output_axes

    def __call__(self, shape: Sequence[int], dtype: Any = None) -> Tensor:
        fan_in, fan_out = compute_fans(shape, self.input_axes, self.output_axes)
        n = {"fan_in": fan_in, "fan_out": fan_out, "fan_avg": (fan_in + fan_out) / 2}[self.mode]
        variance = self.scale / max(1.0, n)
        tensor = _empty(shape, dtype)
        if self.distribution == "uniform":
            bound = math.sqrt(3 * variance)
            return init.uniform_(tensor, -bound, bound, self._generator)
        std = math.sqrt(variance)
        if self.distribution == "untruncated_normal":
            return init.normal_(tensor, 0.0, std, self._generator)
        std /= TRUNCATED_STD
        return init.trunc_normal_(tensor, 0.0, std, -2 * std, 2 * std, self._generator)

    def get_config(self) -> dict[str, Any]:
        options = {"scale": self.scale, "mode": self.mode, "distribution": self.distribution}
        return {**options, **super().get_config(), "input_axes": self.input_axes, "output_axes": self.output_axes}


class _FixedScaling(VarianceScaling):
    """VarianceScaling with scale, mode and distribution fixed by the subclass."""

    settings: tuple[float, str, str]

    def __init__(
        self,
        seed: int | None = None,
        input_axes: Sequence[int] | None = None,
        output_axes: Sequence[int] | None = None,
    ) -> None:
        super().__init__(*self.settings, seed=seed, input_axes=input_axes, output_axes=output_axes)

    def get_config(self) -> dict[str, Any]:
        return {"seed": self.seed, "input_axes": self.input_axes, "output_axes": self.output_axes}


class GlorotUniform(_FixedScaling):
    """Glorot (Xavier) initialization from a uniform distribution.  Source: Glorot & Bengio 2010"""

    settings = (1.0, "fan_avg", "uniform")


class GlorotNormal(_FixedScaling):
    """Glorot (Xavier) initialization from a truncated normal distribution.  Source: Glorot & Bengio 2010"""

    settings = (1.0, "fan_avg", "truncated_normal")


class HeUniform(_FixedScaling):
    """He initialization from a uniform distribution.  Source: He et al. 2015, arXiv:1502.01852"""

    settings = (2.0, "fan_in", "uniform")


class HeNormal(_FixedScaling):
    """He initialization from a truncated normal distribution.  Source: He et al. 2015, arXiv:1502.01852"""

    settings = (2.0, "fan_in", "truncated_normal")


class LecunUniform(_FixedScaling):
    """LeCun initialization from a uniform distribution.  Source: Klambauer et al. 2017, arXiv:1706.02515"""

    settings = (1.0, "fan_in", "uniform")


class LecunNormal(_FixedScaling):
    """LeCun initialization from a truncated normal distribution.  Source: Klambauer et al. 2017, arXiv:1706.02515"""

    settings = (1.0, "fan_in", "truncated_normal")


class STFT(Initializer):
    """Initialize with the kernel of a short-time Fourier transform.

    Args:
        side: "real" or "imag".
        window: "hann", "hamming", "blackman", "bartlett", "boxcar", weights of the window's length, or None.
        scaling: divide by the root of the sum of squares ("density") or by the sum ("spectrum") of the weights; None
            for no scaling.
        periodic: use a periodic window instead of a symmetric one.

    Shapes:  (window, 1, frequencies)
    """

    def __init__(
        self, side: str = "real", window: Any = "hann", scaling: str | None = "density", periodic: bool = False
    ) -> None:
        if side not in ("real", "imag") or scaling not in (None, "density", "spectrum"):
            raise ArgumentError(f"STFT: side={side!r}, scaling={scaling!r}")
        self.side, self.window, self.scaling, self.periodic = side, window, scaling, periodic

    def __call__(self, shape: Sequence[int], dtype: Any = None) -> Tensor:
        length, _, frequencies = shape
        kind = dtypes.float32 if dtype is None else as_dtype(dtype)
        angles = -2 * math.pi / (2 * (frequencies - 1)) * tl.outer(tl.arange(length), tl.arange(frequencies)).double()
        kernel = angles.cos() if self.side == "real" else angles.sin()
        weights = self._weights(length)
        if weights is not None:
            scale = {"density": weights.square().sum().sqrt(), "spectrum": weights.abs().sum(), None: 1.0}[self.scaling]
            kernel = kernel * weights[:, None] / scale
        return kernel[:, None].to(kind)

    def _weights(self, length: int) -> Tensor | None:
        if self.window is None:
            return None
        if not isinstance(self.window, str):
            weights = tl.as_tensor(self.window).double()
        elif self.window in WINDOWS:
            weights = WINDOWS[self.window](length, periodic=self.periodic, dtype=dtypes.float64)
        else:
            raise ArgumentError(f"STFT: window={self.window!r}", hint=f"use {', '.join(map(repr, WINDOWS))}")
        if tuple(weights.shape) != (length,):
            raise ArgumentError(f"STFT: a window of shape {tuple(weights.shape)} for a length of {length}")
        return weights

    def get_config(self) -> dict[str, Any]:
        return {"side": self.side, "window": self.window, "periodic": self.periodic, "scaling": self.scaling}


def _boxcar(length: int, periodic: bool, dtype: Any) -> Tensor:
    return tl.ones(length, dtype=dtype)


WINDOWS: dict[str, Any] = {
    "hann": tl.hann_window,
    "hamming": tl.hamming_window,
    "blackman": tl.blackman_window,
    "bartlett": tl.bartlett_window,
    "boxcar": _boxcar,
}


def compute_fans(
    shape: Sequence[int], input_axes: Sequence[int] | None = None, output_axes: Sequence[int] | None = None
) -> tuple[int, int]:
    """Return the number of inputs per output of a kernel, and the number of outputs per input.

    Without axes the layout of the kernel is (*window, in, out).
    """
    if input_axes is not None and output_axes is not None:
        return math.prod(shape[axis] for axis in input_axes), math.prod(shape[axis] for axis in output_axes)
    if len(shape) < 2:
        n = shape[0] if shape else 1
        return n, n
    window = math.prod(shape[:-2])
    return shape[-2] * window, shape[-1] * window


def with_axes(identifier: Any, input_axes: Sequence[int], output_axes: Sequence[int]) -> Any:
    """Return the initializer of a kernel with these axes; set them on a VarianceScaling that has none."""
    initializer = get(identifier)
    if not isinstance(initializer, VarianceScaling) or None not in (initializer.input_axes, initializer.output_axes):
        return initializer
    clone = initializer.clone()
    clone.input_axes, clone.output_axes = tuple(input_axes), tuple(output_axes)
    return clone


# Keras' aliases.
IdentityInitializer, OrthogonalInitializer, STFTInitializer, stft = Identity, Orthogonal, STFT, STFT
constant, identity, ones, orthogonal, zeros = Constant, Identity, Ones, Orthogonal, Zeros
glorot_normal, glorot_uniform = GlorotNormal, GlorotUniform
he_normal, he_uniform = HeNormal, HeUniform
lecun_normal, lecun_uniform = LecunNormal, LecunUniform
random_normal, random_uniform, truncated_normal = RandomNormal, RandomUniform, TruncatedNormal
uniform, normal, variance_scaling = RandomUniform, RandomNormal, VarianceScaling

CLASSES = classes_of(globals(), Initializer)
NAMES = CLASSES | {snake_case(name): cls for name, cls in CLASSES.items()}
NAMES |= {"uniform": RandomUniform, "normal": RandomNormal}


def get(identifier: Any) -> Any:
    """Return the initializer for a name, a class or a saved configuration; return a callable unchanged.

    Raises:  ArgumentError for an unknown name, with similar names; ArgumentTypeError for anything else
    """
    return resolve(identifier, NAMES, "an initializer", "a shape")


def serialize(initializer: Any) -> Any:
    """Return an initializer as plain values."""
    return serialize_keras_object(initializer)


def deserialize(config: Any, custom_objects: Any = None) -> Any:
    """Return the initializer that `serialize` described."""
    return deserialize_keras_object(config, custom_objects)


__all__ = [
    "IdentityInitializer",
    "Initializer",
    "OrthogonalInitializer",
    "STFTInitializer",
    "deserialize",
    "get",
    "serialize",
]
__all__ += list(NAMES)

__getattr__, __dir__ = names_of(__name__)
