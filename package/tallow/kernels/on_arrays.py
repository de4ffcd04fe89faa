"""C functions as builtin functions of Python that take arrays; see src/runtime/on_arrays.c.

A small call by ctypes takes longer than the kernel: each address becomes an object and is converted back.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

MOST_WORDS = 16  # of a function: pointers and integers
_METH_FASTCALL = 0x80
HEAD = object.__basicsize__  # bytes of PyObject_HEAD; in an array, the address of the first element follows
_pointer_at = ctypes.c_void_p.from_address
_WORDS = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_ssize_t, ctypes.c_int)


class _Method(ctypes.Structure):
    """PyMethodDef of CPython's stable ABI."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("documentation", ctypes.c_char_p),
    )


Plan = tuple[int, int, int, int]

_methods: list[_Method] = []  # the builtin functions have their addresses


def address(array: np.ndarray[Any, Any]) -> int:
    """Return the address of the first element.

    It is the first field of PyArrayObject_fields, a C struct of NumPy's stable ABI. Reading it there takes an eighth
    of the time of `__array_interface__` and `ctypes.data`, which took as long as a kernel on a small array.
    """
    if type(array) is np.ndarray:
        return _pointer_at(id(array) + HEAD).value  # type: ignore[return-value]
    return array.__array_interface__["data"][0]


def plan(function: Any, number: int, result: Any, arguments: tuple[Any, ...]) -> Plan | None:
    """Return a C function's address, the numbers of its words and floats, and its own number; see src/runtime/calls.h.

    None if its arguments do not fit: no result; pointers and integers, then at most one float. Of integers shorter than
    a pointer there may be one: two could share a word of the stack.
    """
    words = _words(arguments)
    is_known = all(each in _WORDS for each in words)
    short = sum(ctypes.sizeof(each) < ctypes.sizeof(ctypes.c_void_p) for each in words)
    if result is not None or not 0 < len(words) <= MOST_WORDS or not is_known or short > 1:
        return None
    return _address(function), len(words), len(arguments) - len(words), number


def _words(arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    return arguments[:-1] if arguments[-1:] == (ctypes.c_float,) else arguments


class Builtins:
    """Makes builtin functions of the C functions of a process; the library has the code that they share.

    Such a function takes an array, None or an address for a pointer. It checks the number and the types of its
    arguments, but not dtypes and shapes. It holds the GIL: it is for calls that take less than 0.1 ms.
    """

    def __init__(self, library: ctypes.CDLL) -> None:
        api = ctypes.pythonapi
        names = ("PyLong_AsVoidPtr", "PyFloat_AsDouble", "PyErr_Occurred", "PyErr_SetString", "PyType_IsSubtype")
        more = ("Py_IncRef", "PyLong_FromLong", "PyEval_SaveThread", "PyEval_RestoreThread")
        objects = (id(None), id(np.ndarray), id(int), id(TypeError))
        functions = [_address(api[name]) for name in (*names, *more)]
        library.tl_python(ctypes.byref((ctypes.c_void_p * 14)(HEAD, *objects, *functions)))
        self._call, self._call_in_parts = _address(library.tl_call_on_arrays), _address(library.tl_call_in_parts)
        self._new = api["PyCFunction_NewEx"]  # not the attribute, whose types anyone in the process may set
        self._new.restype, self._new.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)

    def make(self, function: Any, plan: Plan | None) -> Callable[..., None]:
        """Return the builtin function of a C function, or one by ctypes if it has no plan."""
        return partial(_by_addresses, function) if plan is None else self._builtin(self._call, function, plan)

    def make_in_parts(self, function: Any, plan: Plan) -> Callable[..., int]:
        """Return the builtin function that calls a C function in parts; it gives up the GIL."""
        return self._builtin(self._call_in_parts, function, plan)

    def _builtin(self, call: int, function: Any, plan: Plan) -> Callable[..., Any]:
        method = _Method(function.__name__.encode(), call, _METH_FASTCALL, None)
        _methods.append(method)
        return self._new(ctypes.addressof(method), np.array(plan, np.intp), None)


def _by_addresses(function: Callable[..., None], *arguments: Any) -> None:
    function(*[address(each) if isinstance(each, np.ndarray) else each for each in arguments])


def _address(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0
