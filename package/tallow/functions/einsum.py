"""Einstein summation, by permuting, multiplying matrices and summing."""

from __future__ import annotations

import math
import operator
import string
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import repeat
from typing import Any

from tallow.core.public_api import public
from tallow.core.tensor import Tensor
from tallow.core.whole_calls import recorded_whole
from tallow.errors import ArgumentTypeError, ShapeError
from tallow.ops.dims import as_int

Label = str | int | tuple[str, int]  # a letter, a number of the list form, or a dimension covered by the ellipsis
Labels = list[Label]
ELLIPSIS = "..."
EQUATIONS = 256  # with shapes, whose plans are kept


class Plan:
    """The ops that compute an einsum of tensors of certain shapes.

    Attributes:
        steps: a function, the place of the tensor that its result replaces, and its other arguments; or a function of
            the first two tensors, whose result replaces both, and None.
    """

    def __init__(self) -> None:
        self.steps: list[tuple[Callable[..., Tensor], int | None, tuple[Any, ...]]] = []

    def __call__(self, tensors: list[Tensor]) -> Tensor:
        for function, place, arguments in self.steps:
            if place is None:
                tensors[:2] = [function(*tensors[:2])]
            else:
                tensors[place] = function(tensors[place], *arguments)
        return tensors[0]


class Term:
    """The shape of a tensor of a plan, now at some place, and the labels of its dimensions."""

    def __init__(self, plan: Plan, place: int, shape: Sequence[int], labels: Labels) -> None:
        self.plan, self.place, self.shape, self.labels = plan, place, shape, labels

    def change(self, function: Callable[..., Tensor], arguments: tuple[Any, ...], labels: Labels) -> None:
        """Add a function of the tensor to the plan; the result has dimensions with these labels."""
        self.shape = [self.size(x) or 0 for x in labels]
        self.labels = labels
        self.plan.steps.append((function, self.place, arguments))

    def reshape(self, shape: Sequence[int]) -> None:
        """Add a reshape to the plan. The labels stay: of a term that is used up, or the same ones."""
        self.shape = shape
        self.plan.steps.append((Tensor.reshape, self.place, (tuple(shape),)))

    def arrange(self, labels: Labels) -> None:
        """Bring the dimensions into the order of `labels`; they have length one for labels that the term lacks."""
        own = [x for x in labels if x in self.labels]
        if own != self.labels:
            self.change(Tensor.permute, (tuple(self.labels.index(x) for x in own),), own)
        if len(own) < len(labels):
            self.reshape([1 if (n := self.size(x)) is None else n for x in labels])

    def size(self, label: Label) -> int | None:
        """Return the length of a labelled dimension; None if the operand does not have it."""
        return self.shape[self.labels.index(label)] if label in self.labels else None

    def to_matrices(self, batch: Labels, rows: Labels, columns: Labels) -> None:
        """Make the term a batch of matrices. The batch dimensions stay separate, because they may broadcast."""
        self.arrange([*batch, *rows, *columns])
        if len(rows) == len(columns) == 1:
            return
        sizes, split = self.shape, len(batch) + len(rows)
        self.reshape([*sizes[: len(batch)], math.prod(sizes[len(batch) : split]), math.prod(sizes[split:])])

    def drop(self, labels: set[Label]) -> None:
        """Sum over those of these labels that the term has; a dimension of one element is only left out."""
        ones = [x for x in self.labels if x in labels and self.size(x) == 1]
        if ones:
            places = tuple(self.labels.index(x) for x in ones)
            self.change(Tensor.squeeze, (places,), [x for x in self.labels if x not in ones])
        self.sum_over(labels)

    def sum_over(self, labels: set[Label]) -> None:
        """Sum over those of these labels that the term has."""
        dims = tuple(i for i, x in enumerate(self.labels) if x in labels)
        if dims:
            self.change(Tensor.sum, (dims,), [x for x in self.labels if x not in labels])


@public("tl")
@recorded_whole
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
        _expect_tensors(tensors)
        return _plan_of_equation(equation, *[t.array.shape for t in tensors])(tensors)
    tensors, inputs, output = _from_lists((equation, *operands))
    _expect_tensors(tensors)
    return _plan(inputs, output, [t.array.shape for t in tensors])(tensors)


def _expect_tensors(operands: list[Any]) -> None:
    if not operands or not all(map(isinstance, operands, repeat(Tensor))):
        raise ArgumentTypeError(f"einsum: expected tensors as operands, got {[type(t).__name__ for t in operands]}")


@lru_cache(EQUATIONS)
def _plan_of_equation(equation: str, *shapes: Sequence[int]) -> Plan:
    return _plan(*_parse(equation), shapes)


def _plan(inputs: list[list[Any]], output: list[Any] | None, shapes: Sequence[Sequence[int]]) -> Plan:
    """Return the plan for operands with these labels and shapes."""
    if len(inputs) != len(shapes):
        raise ShapeError(f"einsum: the equation has {len(inputs)} operands, got {len(shapes)} tensors")
    plan = Plan()
    terms = [_term(plan, i, *operand) for i, operand in enumerate(zip(shapes, inputs, strict=True))]
    _check_sizes(terms)
    result_labels = _output(inputs, terms, output)
    while len(terms) > 1:
        later = {x for term in terms[2:] for x in term.labels}
        terms[:2] = [_contract(plan, terms[0], terms[1], later.union(result_labels))]
    terms[0].sum_over(set(terms[0].labels) - set(result_labels))
    terms[0].arrange(result_labels)
    return plan


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
    return [ELLIPSIS if x is Ellipsis else as_int(x, "einsum") for x in labels]


def _term(plan: Plan, number: int, shape: Sequence[int], labels: list[Any]) -> Term:
    """Label each dimension, those of the ellipsis from the right; take the diagonal for repeated labels."""
    covered = len(shape) - len(labels) + (ELLIPSIS in labels)
    if covered < 0 or (covered > 0 and ELLIPSIS not in labels):
        raise ShapeError(f"einsum: operand {number} has {len(shape)} dimensions, its subscripts name {len(labels)}")
    full: Labels = []
    for x in labels:
        full.extend([(ELLIPSIS, i) for i in range(covered, 0, -1)] if x == ELLIPSIS else [x])
    term = Term(plan, number, shape, full)
    for x in dict.fromkeys(full):
        while term.labels.count(x) > 1:
            first = term.labels.index(x)
            second = term.labels.index(x, first + 1)
            sizes = term.shape[first], term.shape[second]
            if sizes[0] != sizes[1]:
                raise ShapeError(
                    f"einsum: operand {number} has sizes {sizes[0]} and {sizes[1]} for the repeated subscript {x!r}"
                )
            others = [y for i, y in enumerate(term.labels) if i not in (first, second)]
            term.change(Tensor.diagonal, (0, first, second), [*others, x])
    return term


def _check_sizes(terms: list[Term]) -> None:
    sizes: dict[Label, int] = {}
    for term in terms:
        for x, n in zip(term.labels, term.shape, strict=True):
            size = sizes.setdefault(x, n)
            if size == 1:
                sizes[x] = n
            elif n not in (1, size):
                seen = f"which does not broadcast with previously seen size {size}"
                raise ShapeError(f"einsum: subscript {x!r} has size {n}, {seen}")


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


def _contract(plan: Plan, a: Term, b: Term, needed: set[Label]) -> Term:
    """Multiply the first two terms, and sum over the labels that no other term needs."""
    a.place, b.place = 0, 1
    done = {x for x in (*a.labels, *b.labels) if x not in needed}
    alone = {x for x in done if a.size(x) != b.size(x) or a.size(x) == 1}  # longer than one in one of them at most
    a.drop(alone)
    b.drop(alone)
    shared = [x for x in a.labels if x in b.labels]
    batch, inner = [x for x in shared if x in needed], [x for x in shared if x not in needed]
    rows, columns = [x for x in a.labels if x not in shared], [x for x in b.labels if x not in shared]
    labels = [*batch, *rows, *columns]
    sizes = [b.size(x) if a.size(x) in (1, None) and x not in rows else a.size(x) for x in labels]
    product = Term(plan, 0, [n or 0 for n in sizes], labels)
    if not inner:
        a.arrange(labels)
        b.arrange(labels)
        plan.steps.append((operator.mul, None, ()))
        return product
    a.to_matrices(batch, rows, inner)
    b.to_matrices(batch, inner, columns)
    plan.steps.append((operator.matmul, None, ()))
    if not len(rows) == len(columns) == 1:
        product.reshape(product.shape)
    return product
