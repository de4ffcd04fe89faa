"""Random calls of the compiled kernels, whose arrays lie between pages without access (`guarded_pages`)."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from cases import Case, load_all

import tallow as tl
from support.guarded_pages import Array, GuardedPages
from tallow import kernels
from tallow.kernels import library

SIZES = (1, 2, 3, 4, 7, 8, 9, 15, 16, 17, 31, 33, 63, 65, 100)  # around the lengths of vectors
DTYPES = (np.float32, np.float32, np.float32, np.float16)
LARGEST = 1 << 16  # elements of an input: a call takes milliseconds under a sanitizer
LEFT_OUT = "combinations"  # of 100 elements there are millions, and no kernel computes them


class GuardedKernels:
    """Lets every kernel of the table compute on guarded pages, and counts the calls."""

    def __init__(self, choose: random.Random) -> None:
        self._choose = choose
        self.counts: dict[str, int] = {}
        kernels.info()  # registers the kernels
        for (name, backend), entry in list(kernels.KERNELS.items()):
            if backend == library.BACKEND:
                kernels.KERNELS[name, backend] = entry._replace(fn=self._guarded(name, entry.fn))

    @property
    def calls(self) -> int:
        """The number of calls so far."""
        return sum(self.counts.values())

    def _guarded(self, name: str, kernel: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            self.counts[name] = self.counts.get(name, 0) + 1
            pages: list[GuardedPages] = []
            with self._guarded_memory(pages):
                own = [self._copy(arg, pages) if type(arg) is np.ndarray else arg for arg in args]
                result = kernel(*own)
            for guarded in pages:
                guarded.check()
            for arg, copy in zip(args, own, strict=True):
                if copy is not arg and arg.flags.writeable:
                    arg[...] = copy  # kernels that write into an argument
            return result

        return call

    def _copy(self, array: Array, pages: list[GuardedPages]) -> Array:
        pages.append(GuardedPages(array.shape, array.dtype, self._choose.random() < 0.7))
        pages[-1].array[...] = array
        return pages[-1].array

    @contextmanager
    def _guarded_memory(self, pages: list[GuardedPages]) -> Iterator[None]:
        """Let numpy.empty return guarded pages: for results, and for memory in which kernels compute."""
        usual = np.empty

        def empty(shape: Any, dtype: Any = float, *args: Any, **options: Any) -> Array:
            if args or options or dtype is None or np.dtype(dtype).hasobject:
                return usual(shape, dtype, *args, **options)
            pages.append(GuardedPages(tuple(np.atleast_1d(shape).tolist()), dtype, self._choose.random() < 0.7))
            return pages[-1].array.reshape(shape)

        np.empty = empty
        try:
            yield
        finally:
            np.empty = usual


def random_inputs(case: Case, choose: random.Random) -> list[Array]:
    """Return inputs of a case in other sizes, which are replaced consistently."""
    sizes = sorted({n for a in case.inputs for n in a.shape})
    new = {n: choose.choice((n, n, *SIZES)) for n in sizes}
    dtype = choose.choice(DTYPES)
    inputs = []
    for a in case.inputs:
        shape = tuple(new[n] for n in a.shape)
        if np.prod(shape, dtype=float) > LARGEST or not a.size:
            shape = a.shape
        inputs.append(np.resize(a, shape).astype(dtype if a.dtype.kind == "f" else a.dtype))
    return inputs


def make_calls(count: int, seed: int, say: Callable[[str], None]) -> dict[str, int]:
    """Call ops with random inputs until kernels have been called `count` times; return the calls of each kernel.

    Args:  say: is told of each call before it is made.
    """
    choose = random.Random(seed)
    guarded = GuardedKernels(choose)
    cases: Sequence[Case] = [
        case
        for case in load_all()
        if not case.id.startswith(LEFT_OUT) and any(a.dtype.kind == "f" for a in case.inputs)
    ]
    number = 0
    while guarded.calls < count:
        number += 1
        case = choose.choice(cases)
        inputs = random_inputs(case, choose)
        say(f"{guarded.calls} calls; seed {seed}, {number}: {case.id} {[(a.shape, a.dtype.name) for a in inputs]}")
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            try:
                _call(case, inputs)
            except AssertionError:
                raise
            except Exception:  # most sizes fit no op: what matters is that no kernel is called with them
                continue
    return guarded.counts


def _call(case: Case, inputs: list[Array]) -> None:
    tensors = [tl.tensor(a, requires_grad=case.grad and a.dtype.kind == "f") for a in inputs]
    result = case.call(tl, *tensors)
    outputs = [y for y in (result if isinstance(result, tuple) else (result,)) if isinstance(y, tl.Tensor)]
    total = sum(y.float().sum() for y in outputs if y.requires_grad)
    if isinstance(total, tl.Tensor):
        total.backward()
