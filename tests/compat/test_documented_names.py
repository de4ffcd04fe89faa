"""Most of the names that PyTorch documents can be imported from the stand-in."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from importlib.machinery import ModuleSpec
from typing import Any

import numpy as np
import pytest

import tallow as tl
from tallow.compat import symbols
from tallow.compat.stand_in import TorchFinder, is_module
from tallow.compat.torch.nn.attention import bias
from tallow.testing import make_tensor

torch = pytest.importorskip("torch", reason="PyTorch, the reference of these tests, is not installed")

# Modules with a page in PyTorch's documentation, whose names are their `__all__`; without those that import slowly.
PAGES = """
accelerator accelerator.memory amp autograd autograd.forward_ad autograd.function autograd.functional
autograd.gradcheck autograd.grad_mode autograd.graph autograd.profiler compiler cpu cuda cuda.amp cuda.comm cuda.gds
cuda.memory cuda.nvtx cuda.random cuda.streams cuda.tunable distributed distributed.algorithms.join
distributed.device_mesh distributed.distributed_c10d distributed.elastic.events distributed.elastic.metrics
distributed.elastic.multiprocessing distributed.elastic.rendezvous distributed.elastic.timer distributed.fsdp
distributed.launcher distributed.nn distributed.optim distributed.rpc distributions distributions.constraints
distributions.transforms fft func futures fx fx.traceback hub jit library linalg masked monitor mps mtia
multiprocessing nested nn nn.attention nn.attention.bias nn.functional nn.init nn.parallel nn.utils
nn.utils.parametrizations nn.utils.parametrize nn.utils.prune nn.utils.rnn nn.utils.stateless optim optim.lr_scheduler
optim.swa_utils overrides package profiler quasirandom random serialization signal.windows sparse special testing
utils utils.benchmark utils.checkpoint utils.data utils.deterministic utils.dlpack utils.flop_counter utils.hooks
utils.model_zoo utils.module_tracker xpu
"""


def documented(path: str) -> Iterator[str]:
    """The names of a module of PyTorch that have a docstring of their own."""
    module: Any = importlib.import_module(path)
    listed = getattr(module, "__all__", None) or [n for n, v in vars(module).items() if callable(v)]
    for name in sorted(set(listed)):
        value = getattr(module, name, None)
        text = getattr(value, "__doc__", None)
        is_own = str(getattr(value, "__module__", "torch")).startswith("torch")
        constant = isinstance(value, int | float | str | bool | tuple | list | dict)
        if not name.startswith("_") and isinstance(text, str) and text.strip() and is_own and not constant:
            yield name


def has(owner: Any, name: str) -> bool:
    """Return whether a name exists; its use may raise."""
    try:
        return hasattr(owner, name)
    except RuntimeError:  # an attribute that only other tensors have
        return True


@pytest.mark.filterwarnings("ignore")
def test_most_documented_names_can_be_imported() -> None:
    finder = TorchFinder({})
    missing: dict[str, list[str]] = {}
    count = 0
    for page in ("torch", *(f"torch.{page}" for page in PAGES.split())):
        names = list(documented(page))
        owner = finder.create_module(ModuleSpec(page, finder)) if is_module(page) else None
        missing[page] = [name for name in names if owner is None or not has(owner, name)]
        count += len(names)
    absent = sum(map(len, missing.values()))
    assert count > 1500
    assert absent < 0.05 * count, f"{absent} of {count}: { {page: names for page, names in missing.items() if names} }"


def test_methods_of_tensors() -> None:
    names = [name for name in dir(torch.Tensor) if not name.startswith("_")]
    missing = [name for name in names if not has(tl.Tensor, name)]
    assert len(missing) < 0.05 * len(names), missing


def test_functions_of_unknown_sizes_are_functions_of_numbers() -> None:
    for call in ("sym_int(-2.5)", "sym_max(2, 1.5)", "sym_min(2, 3)", "sym_not(True)", "sym_float(3)"):
        ours, theirs = (eval(f"m.{call}", {"m": m}) for m in (symbols, torch))
        assert (ours, type(ours)) == (theirs, type(theirs))
    assert symbols.sym_ite(True, 1, 2) == torch.sym_ite(True, 1, 2)
    assert symbols.sym_sum([1, 2, 3]) == torch.sym_sum([1, 2, 3])
    assert symbols.cond(tl.tensor(False), lambda x: x, lambda x: -x, (3,)) == -3


@pytest.mark.parametrize("corner", ["causal_upper_left", "causal_lower_right"])
def test_masks_of_earlier_positions(corner: str) -> None:
    q, k = np.random.default_rng(0).standard_normal((2, 1, 2, 5, 4), np.float32)
    mask = getattr(importlib.import_module("torch.nn.attention.bias"), corner)(3, 5)
    expected = torch.nn.functional.scaled_dot_product_attention(
        *(torch.from_numpy(x) for x in (q[:, :, :3], k, k)), attn_mask=mask
    )
    own = tl.nn.functional.scaled_dot_product_attention(
        *(tl.from_numpy(x) for x in (q[:, :, :3], k, k)), attn_mask=getattr(bias, corner)(3, 5)
    )
    np.testing.assert_allclose(own.numpy(), expected.numpy(), atol=1e-6)


def test_names_without_meaning_raise_in_use() -> None:
    finder = TorchFinder({})
    for page, name in (("torch.nested", "nested_tensor"), ("torch.package", "PackageExporter")):
        value = getattr(finder.create_module(ModuleSpec(page, finder)), name)
        with pytest.raises(RuntimeError, match=name):
            value([])


def test_made_tensors_are_in_range() -> None:
    for dtype in (tl.float32, tl.bfloat16, tl.complex64, tl.int16, tl.uint8, tl.bool):
        x = make_tensor(4, 5, dtype=dtype, device="cpu", noncontiguous=True, exclude_zero=dtype is not tl.bool)
        assert x.dtype is dtype
        assert tuple(x.shape) == (4, 5)
        assert not x.is_contiguous()
        assert dtype is tl.bool or (x != 0).all()
    x = make_tensor((100,), dtype=tl.float64, device="cpu", low=2, high=3, requires_grad=True)
    assert 2 <= x.min() <= x.max() < 3
    assert x.requires_grad


def test_a_wrong_gradient_of_a_gradient_is_found() -> None:
    class Cube(tl.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            return g * 3 * x.detach() ** 2  # right, but its own gradient is lost

    x = tl.tensor([1.0, 2.0], dtype=tl.float64, requires_grad=True)
    assert tl.autograd.gradcheck(Cube.apply, (x,))
    with pytest.raises(RuntimeError, match="differs"):
        tl.autograd.gradgradcheck(Cube.apply, (x,))
