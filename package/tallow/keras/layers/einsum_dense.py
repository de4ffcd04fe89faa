"""Dense layer defined by a two-operand einsum."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import tallow as tl
from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError, ShapeError
from tallow.keras import initializers
from tallow.keras.layers.affine import Affine, as_float
from tallow.keras.layers.input_spec import InputSpec
from tallow.keras.shapes import Shape

# "ab,bc->ac", "...ab,bc->...ac" or "ab...,bc->ac...".
FORM = re.compile(r"(\.{3})?([a-zA-Z]+)(\.{3})?,([a-zA-Z]+)->(\.{3})?([a-zA-Z]+)(\.{3})?")


class Equation(NamedTuple):
    """The letters of an einsum's operands, and the position of the dims under "..."."""

    inputs: str
    kernel: str
    outputs: str
    is_left: bool  # the named dims are at the end, after "..."
    is_right: bool


class EinsumDense(Affine):
    """activation(einsum(equation, x, kernel) + bias).

    Args:    as keras.layers.EinsumDense, without lora and quantization
        equation: the einsum, such as "ab,bc->ac"; the batch comes first; "..." at one end stands for unchanged dims.
        output_shape: the sizes of the output letters after the first; None for sizes taken from the input.
        bias_axes: the output letters of the bias; None means no bias.

    Example:
        EinsumDense("abc,cd->abd", output_shape=(None, 64), bias_axes="d")  # Dense(64) at each step
    """

    def __init__(
        self,
        equation: str,
        output_shape: Any,
        activation: Any = None,
        bias_axes: str | None = None,
        kernel_initializer: Any = "glorot_uniform",
        bias_initializer: Any = "zeros",
        kernel_regularizer: Any = None,
        bias_regularizer: Any = None,
        kernel_constraint: Any = None,
        bias_constraint: Any = None,
        activity_regularizer: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            activation, bias_axes is not None, kernel_initializer, bias_initializer, kernel_regularizer,
            bias_regularizer, activity_regularizer, kernel_constraint, bias_constraint, **kwargs,
        )  # fmt: skip
        self.equation = equation
        self.partial_output_shape = (output_shape,) if isinstance(output_shape, int) else tuple(output_shape)
        self.bias_axes = bias_axes
        self._letters = self._parse(equation)
        if bias_axes is not None and not set(bias_axes) <= set(self._letters.outputs):
            raise ArgumentError(f"{self.name}: bias_axes={bias_axes!r} must be output letters of {equation!r}")

    def _parse(self, equation: str) -> Equation:
        match = FORM.fullmatch(equation.replace(" ", ""))
        if match is not None:
            left, inputs, right, kernel, left_out, outputs, right_out = match.groups()
            if left == left_out and right == right_out and not (left and right):
                return Equation(inputs, kernel, outputs, left is not None, right is not None)
        raise ArgumentError(
            f"{self.name}: equation={equation!r}",
            hint="use the form 'ab,bc->ac', '...ab,bc->...ac' or 'ab...,bc->ac...'",
        )

    def _full_shape(self, input_shape: Shape) -> tuple[list[int | None], dict[str, int | None]]:
        """Return the output shape, and the size of each letter of the equation."""
        letters = self._letters
        unnamed = len(input_shape) - len(letters.inputs)
        if unnamed < 0 or (unnamed and not (letters.is_left or letters.is_right)):
            raise ShapeError(f"{self.name}: {self.equation!r} does not fit an input of shape {tuple(input_shape)}")
        named = input_shape[unnamed:] if letters.is_left else input_shape[: len(letters.inputs)]
        input_sizes = dict(zip(letters.inputs, named, strict=True))
        output: list[int | None] = [input_shape[0], *self.partial_output_shape]
        if letters.is_left and unnamed:
            output[1:1] = input_shape[1:unnamed]
        elif unnamed:
            output += input_shape[len(letters.inputs) :]
        start = unnamed if letters.is_left else 0
        output_sizes = output[start : start + len(letters.outputs)]
        if len(output_sizes) != len(letters.outputs):
            raise ShapeError(
                f"{self.name}: {self.equation!r} has {len(letters.outputs)} output dims, including the batch; "
                f"output_shape={self.partial_output_shape} does not fit"
            )
        sizes = dict(zip(letters.outputs, output_sizes, strict=True))
        for place, letter in enumerate(letters.outputs, start):
            if letter in input_sizes and input_sizes[letter] is not None and sizes[letter] != input_sizes[letter]:
                if sizes[letter] is not None:
                    raise ShapeError(
                        f"{self.name}: {letter} is {input_sizes[letter]} in the input and "
                        f"{sizes[letter]} in output_shape"
                    )
                output[place] = input_sizes[letter]
        return output, input_sizes | {letter: size for letter, size in sizes.items() if letter not in input_sizes}

    def build(self, input_shape: Shape) -> None:
        letters = self._letters
        _, sizes = self._full_shape(input_shape)
        unknown = [letter for letter in letters.kernel if sizes.get(letter) is None]
        if unknown:
            raise ShapeError(f"{self.name}: unknown sizes of {', '.join(unknown)} in {self.equation!r}")
        outer = [axis for axis, letter in enumerate(letters.kernel) if letter in letters.outputs]
        inner = [axis for axis, letter in enumerate(letters.kernel) if letter not in letters.outputs]
        self.kernel_initializer = initializers.with_axes(self.kernel_initializer, inner, outer)
        self.kernel = self.add_kernel(tuple(sizes[letter] for letter in letters.kernel), "kernel")  # type: ignore[misc]
        self.bias = self.add_bias(self._bias_shape(len(input_shape) - len(letters.inputs), sizes))
        self.input_spec = InputSpec(ndim=len(input_shape))

    def _bias_shape(self, unnamed: int, sizes: dict[str, int | None]) -> tuple[int, ...]:
        if self.bias_axes is None:
            return ()
        letters = self._letters
        first = min(letters.outputs.index(letter) for letter in self.bias_axes)
        shape: list[Any] = [sizes[letter] if letter in self.bias_axes else 1 for letter in letters.outputs[first:]]
        return tuple(shape + [1] * (unnamed if letters.is_right else 0))

    def call(self, x: Tensor) -> Tensor:
        y = tl.einsum(self.equation, as_float(x, self.kernel), self.kernel)
        return self.activation(y if self.bias is None else y + self.bias)

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        return tuple(self._full_shape(input_shape)[0])
