"""Run a kernel on several threads: natively Python's, since ctypes releases the GIL while C computes
(native_threads.py); in the tab workers that run the same library on the same memory (tab_threads.py).

A part is a C function and its arguments. The result of a part does not depend on the number of parts, so results are
the same for any number of threads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from tallow.dtypes import Array
from tallow.errors import ShapeError
from tallow.kernels.bindings import native_threads, tab_threads
from tallow.kernels.bindings.arrays import CACHE_LINE, FLOAT32, ITEM, address, contiguous, new_memory
from tallow.kernels.library import IN_BROWSER, CFunction
from tallow.kernels.table import PLANS
from tallow.kernels.threads import thread_count as _of_process

WORTH_A_THREAD = 500_000  # multiplications: with fewer, 5 to 25 µs, a thread costs more than it saves
WORTH_THE_GIL = 4_000_000  # for one part: to give up the GIL costs 3 µs more than to keep it for 0.1 ms at most
FLOATS_OF_LINE = CACHE_LINE // ITEM
thread_count = tab_threads.thread_count if IN_BROWSER else _of_process

# An argument, by its position, and what a part, [first, last) of a range, adds to it: these times `first`, and times
# what is left after `last`.
Step = tuple[int, int, int]


def threads_for(work: float) -> int:
    """Return the number of threads for so many multiplications, if each thread takes what is left: one, or all."""
    return thread_count() if work >= WORTH_A_THREAD else 1


def bounds_of_parts(count: int, work: float) -> list[int]:
    """Return where parts of range(count) begin, and its end: as many parts as `work`, multiplications, justifies."""
    parts = max(_parts_of(count, work), 1)
    return [count * i // parts for i in range(parts + 1)]


def _parts_of(count: int, work: float) -> int:
    return 1 if work < WORTH_A_THREAD else int(min(count, thread_count(), 1 + work // WORTH_A_THREAD))


def is_short(work: float) -> bool:
    """Return whether a call is not worth more threads, and keeps the GIL."""
    return work < WORTH_A_THREAD or (work < WORTH_THE_GIL and thread_count() == 1)


def call_small(function: CFunction, work: float, *arguments: Any) -> bool:
    """Call a C function once, with arrays and numbers, if the work is not worth a thread. Return whether it was called.

    The functions below do the same. Arguments that are not packed for them first save 0.2 µs, a tenth of such a call.
    """
    if work >= WORTH_A_THREAD:
        return False
    function.on_arrays(*arguments)
    return True


def call_alone(
    function: CFunction, arguments: Sequence[Any], scratch: int | None, numbers: tuple[float, ...] = ()
) -> None:
    """Call a C function once, for all of a range, as `by_steps` and `by_range` do if the work `is_short`."""
    memory = () if scratch is None else (np.empty(scratch, FLOAT32),)
    function.on_arrays(*arguments, *memory, *numbers)


def call(function: CFunction, work: float, *arguments: Any) -> None:
    """Call a C function once, with arrays and numbers; it holds the GIL if the work is not worth a thread."""
    if not call_small(function, work, *arguments):
        function(*[address(each) if isinstance(each, np.ndarray) else each for each in arguments])


def may_wait() -> bool:
    """Return whether the calling thread may sleep in C until another one wakes it: in the tab, with several threads."""
    return IN_BROWSER and tab_threads.may_wait()


def address_of_failures() -> int | None:
    """Return the address of the number of parts that have failed in other threads; None outside of browsers."""
    return tab_threads.address_of_failures() if IN_BROWSER else None


def by_steps(
    function: CFunction, arguments: Sequence[Any], work: float, groups: int, *steps: Step,
    group: int = 1, length: int | None = None, scratch: int | None = None, numbers: tuple[float, ...] = (),
) -> None:  # fmt: skip
    """Call `function(*arguments, scratch, *numbers)` for parts of a range, on as many threads as `work` justifies.

    Args:    arguments: those for all of the range: pointers and integers
             work: multiplications for all; groups: how many there are; a part has whole ones
             steps: what a part adds to some arguments
             group: length of a group; length: of all, of which the last part has what is left
             scratch: floats of memory that each part needs, with irrelevant contents; without it the function has no
             such argument
    """
    if work < WORTH_A_THREAD or ((parts := _parts_of(groups, work)) <= 1 and work < WORTH_THE_GIL):
        call_alone(function, arguments, scratch, numbers)
        return
    memory: tuple[Any, ...]
    memory, floats = (), 0
    if scratch is not None:
        floats = -(-scratch // FLOATS_OF_LINE) * FLOATS_OF_LINE
        memory = (new_memory(floats * max(parts, 1)),)
    of_words = _of_words(len(arguments), floats * ITEM, steps)
    whole = groups if length is None else length
    team = tab_threads if IN_BROWSER else native_threads
    team.divide(function, parts, groups, group, whole, of_words, *arguments, *memory, *numbers)


@lru_cache(PLANS)
def _of_words(words: int, scratch: int, steps: tuple[Step, ...]) -> Array:
    """Return a step for each word, as on_arrays.c takes them; the last word is the address of scratch memory."""
    of_words = np.zeros((words + 1, 3), np.intp)
    of_words[-1, 2] = scratch
    for word, by_first, by_last in steps:
        of_words[word, :2] = by_first, by_last
    return of_words


def by_range(
    function: CFunction, arrays: Sequence[Array | None], count: int, work: float, *others: int,
    scratch: int | None = None, numbers: tuple[float, ...] = (), group: int = 1,
) -> None:  # fmt: skip
    """Call `function(*arrays, first, last, *others, scratch, *numbers)` for parts of range(count); see `by_steps`."""
    if work < WORTH_A_THREAD or is_short(work):  # as `call_alone`, whose arguments would be packed for it
        memory = () if scratch is None else (np.empty(scratch, FLOAT32),)
        function.on_arrays(*arrays, 0, count, *others, *memory, *numbers)
        return
    n = len(arrays)
    steps, arguments = ((n, 1, 0), (n + 1, 0, -1)), (*arrays, 0, count, *others)
    groups = -(-count // group)
    by_steps(function, arguments, work, groups, *steps, group=group, length=count, scratch=scratch, numbers=numbers)


ELEMENT = 8.0  # multiplications that take as long as a sum or product of two arrays, mostly the memory's time
EXPONENTIAL = 20.0  # multiplications that take as long as one exponential


def by_rows(
    function: CFunction, arrays: Sequence[Array | None], rows: int, work: float, *others: float, shared: int = 0
) -> None:
    """Call `function(*addresses, count, *others)` for parts of the rows of contiguous arrays.

    Args:    work: multiplications for all rows
             shared: how many of the arrays, the last ones, are for all rows
    """
    if work < WORTH_A_THREAD or is_short(work):
        function.on_arrays(*arrays, rows, *others)
        return
    n = len(arrays)
    steps = [(i, a.nbytes // rows, 0) for i, a in enumerate(arrays[: n - shared]) if a is not None and rows]
    by_steps(function, (*arrays, rows, *others), work, rows, *steps, (n, -1, -1))


def elementwise(
    name: str, function: CFunction, work: float, *operands: Array, numbers: tuple[float, ...] = ()
) -> Array:
    """Return a new array: call `function(*addresses, count, *numbers)` for it and float32 operands of its shape.

    Args:    work: multiplications for each element
    Raises:  ShapeError, DtypeError
    """
    y, operands = _prepared(name, operands)
    size = y.size
    if size:
        work *= size
        if not call_small(function, work, y, *operands, size, *numbers):
            by_rows(function, (y, *operands), size, work, *numbers)
    return y


def rowwise(name: str, function: CFunction, work: float, *operands: Array) -> Array:
    """Return a new array: call `function(*addresses, rows, n)` for it and float32 operands of its shape, (..., n).

    Args:    work: multiplications for each element
    Raises:  ShapeError, DtypeError
    """
    y, operands = _prepared(name, operands)
    size = y.size
    if size:
        n = y.shape[-1]
        work *= size
        if not call_small(function, work, y, *operands, size // n, n):
            by_rows(function, (y, *operands), size // n, work, n)
    return y


def row_kernel(name: str, function: CFunction, work: float) -> Callable[[Array], Array]:
    """Return the kernel that is `rowwise` for one operand. With a small one it calls only C."""
    on_arrays, few = function.on_arrays, WORTH_A_THREAD / work

    def kernel(x: Array) -> Array:
        size, shape = x.size, x.shape
        if x.dtype is FLOAT32 and 0 < size < few and x.flags.carray:
            y, n = np.empty(shape, FLOAT32), shape[-1]
            on_arrays(y, x, size // n, n)
            return y
        return rowwise(name, function, work, x)

    return kernel


def element_kernel(name: str, function: CFunction, work: float) -> Callable[[Array], Array]:
    """Return the kernel that is `elementwise` for one operand. With a small one it calls only C."""
    on_arrays, few = function.on_arrays, WORTH_A_THREAD / work

    def kernel(x: Array) -> Array:
        size = x.size
        if x.dtype is FLOAT32 and 0 < size < few and x.flags.carray:
            y = np.empty(x.shape, FLOAT32)
            on_arrays(y, x, size)
            return y
        return elementwise(name, function, work, x)

    return kernel


def _prepared(name: str, operands: tuple[Array, ...]) -> tuple[Array, tuple[Array, ...]]:
    """Return an empty array for the result, and the operands ready for C."""
    shape = operands[0].shape
    if len(operands) == 1:
        return np.empty(shape, FLOAT32), (contiguous(operands[0]),)
    for other in operands[1:]:
        if other.shape != shape:
            raise ShapeError(f"{name}: {operands[0].shape} and {other.shape} differ")
    return np.empty(shape, FLOAT32), tuple(map(contiguous, operands))
