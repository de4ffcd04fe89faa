"""The extras cuda12 and cuda13 install exactly the CUDA libraries that tallow uses through CuPy."""

from __future__ import annotations

import re
import tomllib

import pytest
from support.paths import ROOT

# Libraries that parts of CuPy 14.2 need: cupy_backends/cuda/libs/__init__.py loads one for each of its modules, and
# these name libcublas, libcusolver, ... in their ELF headers. cuSOLVER itself links cuBLAS and cuSPARSE. NVRTC compiles
# every kernel, with the headers of the runtime.
LIBRARIES = {
    r"\b(xp|cupy|module)\.linalg\.": ("cusolver", "cusparse", "cublas"),
    r"\.linalg\.[a-z]+": ("cusolver", "cusparse", "cublas"),
    r"\b(xp|cupy|array_module\([^)]*\))\.(matmul|dot|tensordot|einsum|vdot|inner)\b": ("cublas",),
    r'load_nvidia_dynamic_lib\("cublas"\)': ("cublas",),
    r"\b(xp|cupy|array_module\([^)]*\))\.fft\b": ("cufft",),
    r"\b(xp|cupy|array_module\([^)]*\))\.random\b": ("curand",),
    r"\bcupyx\.scipy\.sparse\b": ("cusparse",),
    r"\bcupyx?\.cutensor\b": ("cutensor",),
    r"\bcupy\.(RawModule|RawKernel|ElementwiseKernel|empty|asarray)\b": ("cuda-nvrtc", "cuda-runtime"),
}
WHEELS = {"cuda12": "nvidia-{}-cu12", "cuda13": "nvidia-{}"}


def used_libraries() -> set[str]:
    """Return the libraries that the ops and the CUDA path use."""
    files = [*(ROOT / "package" / "tallow" / "ops").glob("*.py"), *(ROOT / "native_gpu").rglob("*.py")]
    files += [*(ROOT / "package" / "tallow" / "optim").rglob("*.py"), ROOT / "package" / "tallow" / "random.py"]
    text = "\n".join(path.read_text() for path in files)
    return {library for pattern, names in LIBRARIES.items() if re.search(pattern, text) for library in names}


@pytest.mark.parametrize("extra", WHEELS)
def test_the_extra_lists_the_required_libraries(extra: str) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    listed = {re.split(r"[<>=!~; ]", spec)[0] for spec in project["optional-dependencies"][extra]}
    required = {WHEELS[extra].format(library) for library in used_libraries()}
    assert listed == required | {f"cupy-{extra}x"}
