"""Write cupy_names.json: CuPy's public names and parameters, so that code can be checked against them without a GPU.

python tests/support/record_cupy_names.py        where CuPy is installed; it needs no GPU
"""

from __future__ import annotations

import inspect
import json
import re
from pathlib import Path
from typing import Any

import cupy

# As in cupy/_core/_kernel.pyx and _routines_*.pyx: these methods exist only for these ufuncs.
UFUNC_METHODS = {
    "at": ["add", "maximum", "minimum", "bitwise_and", "bitwise_or", "bitwise_xor"],
    "reduce": ["add", "multiply"],
    "accumulate": ["add", "multiply"],
    "reduceat": ["add"],
}
# The dtypes that `at` accepts; CUDA has no atomic operations for the others.
AT_DTYPES = ["int32", "uint32", "uint64", "float32", "float64"]


def parameters(function: Any) -> list[str] | None:
    """Return the names of the parameters. Return None if any are accepted or nothing is known."""
    try:
        signature = inspect.signature(function).parameters.values()
    except ValueError:  # Cython-compiled functions have their signature in the docstring
        match = re.match(r"\S*?\((.*?)\)(?: ->.*)?$", (function.__doc__ or "").split("\n")[0])
        if match is None or "*" in match[1]:
            return None
        names = [re.split(r"[=:]", word)[0].split()[-1] for word in match[1].split(",") if word.strip()]
        return names[1:] if names[:1] == ["self"] else names
    if any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in signature):
        return None
    return [p.name for p in signature if p.name != "self"]


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
    "fft": functions(cupy.fft),
    "stride_tricks": functions(cupy.lib.stride_tricks),
    "constants": sorted(name for name, value in public(cupy).items() if isinstance(value, float | type | None)),
    "methods": functions(cupy.ndarray),
    "flags": sorted(public(cupy._core.flags.Flags)),
    "attributes": sorted(name for name, value in public(cupy.ndarray).items() if not callable(value)),
}
Path(__file__).with_name("cupy_names.json").write_text(json.dumps(record, indent=1) + "\n")
