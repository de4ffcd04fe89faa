"""Write cupy_names.json: what CuPy offers, by name and parameter, so that code can be held to it without a GPU.

python tests/support/record_cupy_names.py        where CuPy is installed; it needs no GPU
"""

from __future__ import annotations

import inspect
import json
import re
from pathlib import Path
from typing import Any

import cupy

# As in cupy/_core/_kernel.pyx and _routines_*.pyx: these methods of ufuncs exist for these ufuncs alone.
UFUNC_METHODS = {
    "at": ["add", "maximum", "minimum", "bitwise_and", "bitwise_or", "bitwise_xor"],
    "reduce": ["add", "multiply"],
    "accumulate": ["add", "multiply"],
    "reduceat": ["add"],
}
# Those that `at` takes; CUDA has no atomic operations on the others.
AT_DTYPES = ["int32", "uint32", "uint64", "float32", "float64"]


def parameters(function: Any) -> list[str] | None:
    """The names of its parameters; None where any are taken or nothing is known."""
    try:
        found = inspect.signature(function).parameters.values()
    except ValueError:  # compiled by Cython, which writes the signature into the docstring
        match = re.match(r"\S*?\((.*?)\)(?: ->.*)?$", (function.__doc__ or "").split("\n")[0])
        if match is None or "*" in match[1]:
            return None
        names = [re.split(r"[=:]", word)[0].split()[-1] for word in match[1].split(",") if word.strip()]
        return names[1:] if names[:1] == ["self"] else names
    if any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in found):
        return None
    return [p.name for p in found if p.name != "self"]


def public(owner: Any) -> dict[str, Any]:
    return {name: getattr(owner, name) for name in sorted(dir(owner)) if not name.startswith("_")}


def functions(owner: Any) -> dict[str, list[str] | None]:
    return {n: parameters(f) for n, f in public(owner).items() if callable(f) and not isinstance(f, type | cupy.ufunc)}


record = {
    "cupy": cupy.__version__,
    "ufuncs": sorted(name for name, value in public(cupy).items() if isinstance(value, cupy.ufunc)),
    "ufunc_methods": UFUNC_METHODS,
    "at_dtypes": AT_DTYPES,
    "functions": functions(cupy),
    "linalg": functions(cupy.linalg),
    "stride_tricks": functions(cupy.lib.stride_tricks),
    "constants": sorted(name for name, value in public(cupy).items() if isinstance(value, float | type | None)),
    "methods": functions(cupy.ndarray),
    "flags": sorted(public(cupy._core.flags.Flags)),
    "attributes": sorted(name for name, value in public(cupy.ndarray).items() if not callable(value)),
}
Path(__file__).with_name("cupy_names.json").write_text(json.dumps(record, indent=1) + "\n")
