"""Einstein summation, by permuting, multiplying matrices and summing."""

from __future__ import annotations

import math
import string
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

from tallow.core.public_api import public
from tallow.core.tensor import Tensor
from tallow.errors import ArgumentTypeError, ShapeError

Label = str | int | tuple[str, int]  # a letter, a number of the list form, or a dimension covered by the ellipsis
Labels = list[Label]
ELLIPSIS = "..."
EQUATIONS = 256  # whose labels are kept


class Term:
    """An operand and the labels of its dimensions."""

    def __init__(self, tensor: Tensor, labels: Labels) -> None:
        self.tensor, self.labels = tensor, labels

    def arranged(self, labels: Labels) -> Tensor:
        """Return the tensor with dimensions in the order of `labels`, of length one for labels that it lacks."""
        own = [x for x in labels if x in self.labels]
        moved = self.tensor.permute([self.labels.index(x) for x in own]) if own != self.labels else self.tensor
        if len(own) == len(labels):
            return moved
        sizes = iter(moved.shape)
        return moved.reshape([next(sizes) if x in self.labels else 1 for x in labels])

    def size(self, label: Label) -> int | None:
        """Return the length of a labelled dimension; None if the operand does not have it."""
        return self.tensor.shape[self.labels.index(label)] if label in self.labels else None

    def matrices(self, batch: Labels, rows: Labels, columns: Labels) -> Tensor:
        """Return the tensor as a batch of matrices. The batch dimensions stay separate, because they may broadcast."""
        tensor = self.arranged([*batch, *rows, *columns])
        if len(rows) == len(columns) == 1:
            return tensor
        sizes, split = tensor.shape, len(batch) + len(rows)
        return tensor.reshape(*sizes[: len(batch)], math.prod(sizes[len(batch) : split]), math.prod(sizes[split:]))

    def summed(self, labels: Iterable[Label]) -> Term:
        """Sum over these labels."""
        labels = set(labels)
        dims = [i for i, x in enumerate(self.labels) if x in labels]
        if not dims:
            return self
        return Term(self.tensor.sum(dims), [x for i, x in enumerate(self.labels) if i not in dims])


@public("tl")
def einsum(equation: Any, *operands: Any) -> Tensor:
    """Sum products of the operands' elements over dimensions named by letters.

    A letter of the inputs that the output lacks is summed over; without "->", the output has the letters that occur
    once, in alphabetical order. "..." covers any dimensions that have no letter; they broadcast. The operands are
    multiplied from left to right, each pair as one batch of matrix products.

    Args:
        equation: "ij,jk->ik"; or the first operand of the list form: einsum(a, [0, 1], b, [1, 2], [0, 2]).

    Raises:  ShapeError
    Example:
        >>> import tallow as tl
        >>> tl.einsum("ii", tl.eye(3))
        tensor(3.)
    """
    if isinstance(equation, str):
        tensors = list(operands[0]) if len(operands) == 1 and isinstance(operands[0], list | tuple) else list(operands)
        inputs, output = _parse(equation)
    else:
        tensors, inputs, output = _from_lists((equation, *operands))
    if not tensors or not all(isinstance(t, Tensor) for t in tensors):
        raise ArgumentTypeError(f"einsum: expected tensors as operands, got {[type(t).__name__ for t in tensors]}")
    if len(inputs) != len(tensors):
        raise ShapeError(f"einsum: the equation has {len(inputs)} operands, got {len(tensors)} tensors")
    terms = [_term(t, labels, i) for i, (t, labels) in enumerate(zip(tensors, inputs, strict=True))]
    _check_sizes(terms)
    result_labels = _output(inputs, terms, output)
    while len(terms) > 1:
        later = {x for term in terms[2:] for x in term.labels}
        terms[:2] = [_contract(terms[0], terms[1], later.union(result_labels))]
    last = terms[0].summed(set(terms[0].labels) - set(result_labels))
    return last.arranged(result_labels)


@lru_cache(EQUATIONS)
def _parse(equation: str) -> tuple[list[list[Any]], list[Any] | None]:
    """Return the labels of each operand and of the output, with ellipses."""
    left, arrow, right = equation.replace(" ", "").partition("->")
    return [_letters(part, equation) for part in left.split(",")], _letters(right, equation) if arrow else None


def _letters(part: str, equation: str) -> list[Any]:
    before, dots, after = part.partition(ELLIPSIS)
    strange = set(before + after) - set(string.ascii_letters)
    if strange:
        names = "".join(sorted(strange))
        raise ShapeError(f"einsum: {names!r} in {equation!r}", hint="subscripts are letters, and one '...' an operand")
    return [*before, *([ELLIPSIS] if dots else []), *after]


def _from_lists(arguments: Sequence[Any]) -> tuple[list[Any], list[list[Any]], list[Any] | None]:
    count = len(arguments) // 2
    tensors, lists = list(arguments[: 2 * count : 2]), list(arguments[1 : 2 * count : 2])
    output = arguments[-1] if len(arguments) % 2 else None
    return tensors, [_named(labels) for labels in lists], None if output is None else _named(output)


def _named(labels: Sequence[Any]) -> list[Any]:
    return [ELLIPSIS if x is Ellipsis else x for x in labels]


def _term(tensor: Tensor, labels: list[Any], number: int) -> Term:
    """Label each dimension, those of the ellipsis from the right; take the diagonal for repeated labels."""
    covered = tensor.ndim - len(labels) + (ELLIPSIS in labels)
    if covered < 0 or (covered > 0 and ELLIPSIS not in labels):
        raise ShapeError(f"einsum: operand {number} has {tensor.ndim} dimensions, its subscripts name {len(labels)}")
    full: Labels = []
    for x in labels:
        full.extend([(ELLIPSIS, i) for i in range(covered, 0, -1)] if x == ELLIPSIS else [x])
    for x in dict.fromkeys(full):
        while full.count(x) > 1:
            first = full.index(x)
            second = full.index(x, first + 1)
            if tensor.shape[first] != tensor.shape[second]:
                sizes = f"{tensor.shape[first]} and {tensor.shape[second]}"
                raise ShapeError(f"einsum: operand {number} has sizes {sizes} for the repeated subscript {x!r}")
            tensor = tensor.diagonal(0, first, second)
            full = [y for i, y in enumerate(full) if i not in (first, second)] + [x]
    return Term(tensor, full)


def _check_sizes(terms: list[Term]) -> None:
    sizes: dict[Label, int] = {}
    for term in terms:
        for x, n in zip(term.labels, term.tensor.shape, strict=True):
            size = sizes.setdefault(x, n)
            if size == 1:
                sizes[x] = n
            elif n not in (1, size):
                raise ShapeError(f"einsum: subscript {x!r} has size {size} in one operand and {n} in another")


def _output(inputs: list[list[Any]], terms: list[Term], output: list[Any] | None) -> Labels:
    """Return the labels of the result; without `output` those that appear once, and all of an ellipsis."""
    given = [x for labels in inputs for x in labels if x != ELLIPSIS]
    covered = sorted({x for term in terms for x in term.labels if isinstance(x, tuple)}, key=lambda x: -x[1])
    if output is None:
        return [*covered, *sorted(x for x in set(given) if given.count(x) == 1)]
    result_labels: Labels = []
    for x in output:
        result_labels.extend(covered if x == ELLIPSIS else [x])
    for x in result_labels:
        if result_labels.count(x) > 1 or x not in (*given, *covered):
            reason = "appears more than once" if result_labels.count(x) > 1 else "does not appear in any operand"
            raise ShapeError(f"einsum: output subscript {x!r} {reason}")
    return result_labels


def _contract(a: Term, b: Term, needed: set[Label]) -> Term:
    """Multiply two terms, and sum over the labels that no other term needs."""
    done = {x for x in (*a.labels, *b.labels) if x not in needed}
    alone = {x for x in done if a.size(x) != b.size(x)}  # in one of them only, or of length one in the other
    a, b = a.summed(alone), b.summed(alone)
    shared = [x for x in a.labels if x in b.labels]
    batch, inner = [x for x in shared if x in needed], [x for x in shared if x not in needed]
    rows, columns = [x for x in a.labels if x not in shared], [x for x in b.labels if x not in shared]
    labels = [*batch, *rows, *columns]
    if not inner:
        return Term(a.arranged(labels) * b.arranged(labels), labels)
    product = a.matrices(batch, rows, inner) @ b.matrices(batch, inner, columns)
    if not len(rows) == len(columns) == 1:
        sizes: list[Any] = [*product.shape[:-2], *(a.size(x) for x in rows), *(b.size(x) for x in columns)]
        product = product.reshape(sizes)
    return Term(product, labels)
