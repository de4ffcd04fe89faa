"""The compiled SGD step fulfils the contract of its C file, and the optimizer uses it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.guarded_arrays import GuardedArray

import tallow as tl
from tallow import kernels
from tallow.errors import KernelUnavailable
from tallow.kernels import library

Array = np.ndarray[Any, Any]

LIBRARY = kernels.info()
pytestmark = pytest.mark.skipif(LIBRARY.library == "none", reason=f"no compiled kernels: {LIBRARY.reason}")

RTOL = 1e-6  # relative to the magnitudes of the summands
OPTIONS = [  # lr, momentum, dampening, weight_decay, nesterov, maximize
    (0.1, 0.9, 0.0, 0.0, False, False),
    (0.5, 0.8, 0.3, 0.1, False, True),
    (0.01, 0.9, 0.0, 0.01, True, False),
]
rng = np.random.default_rng(8)


def compiled(*args: Any) -> None:
    kernels.KERNELS["sgd_step", library.BACKEND].fn(*args)


def expected(p: Array, g: Array, b: Array | None, options: tuple[Any, ...]) -> tuple[Array, Array | None, Array]:
    """Return p and b after the step, in float64, and the magnitudes of the summands."""
    lr, momentum, dampening, decay, nesterov, maximize = options
    p, g = p.astype(np.float64), g.astype(np.float64)
    size = np.abs(g) + decay * np.abs(p)
    g = (-g if maximize else g) + decay * p
    if b is not None:
        size = size + momentum * np.abs(b)
        b = momentum * b.astype(np.float64) + (1 - dampening) * g
        g = g + momentum * b if nesterov else b
    return p - lr * g, b, size + np.abs(p)


@pytest.mark.parametrize("with_momentum", [False, True])
@pytest.mark.parametrize("options", OPTIONS, ids=range(len(OPTIONS)))
def test_any_length_and_alignment(options: tuple[Any, ...], with_momentum: bool) -> None:
    for n in [*range(20), 31, 257]:
        for shift in range(4):
            p, g, b = (GuardedArray(n, shift=(shift + i) % 4) for i in range(3))
            for array in (p, g, b):
                array.array[...] = rng.standard_normal(n)
            wanted_p, wanted_b, size = expected(p.array, g.array, b.array if with_momentum else None, options)
            before = g.array.copy(), b.array.copy()
            compiled(p.array, g.array, b.array if with_momentum else None, *options)
            assert (np.abs(p.check() - wanted_p) <= RTOL * size).all()
            np.testing.assert_array_equal(g.check(), before[0])
            if wanted_b is None:
                np.testing.assert_array_equal(b.check(), before[1])
            else:
                assert (np.abs(b.check() - wanted_b) <= RTOL * size).all()


def test_the_gradient_may_be_the_parameter() -> None:
    p, b = (rng.standard_normal(21).astype(np.float32) for _ in range(2))
    expected_values, _, size = expected(p, p, b, OPTIONS[1])
    compiled(p, p, b, *OPTIONS[1])
    assert (np.abs(p - expected_values) <= RTOL * size).all()


def test_unsupported_arrays_are_refused() -> None:
    good = [np.zeros((2, 3), np.float32) for _ in range(3)]
    read_only = np.zeros((2, 3), np.float32)
    read_only.flags.writeable = False
    for bad in (np.zeros((2, 3)), np.zeros((3, 2), np.float32).T, np.zeros(6, np.float32), read_only):
        for place in range(3):
            if place == 1 and bad is read_only:
                continue
            arrays = [*good[:place], bad, *good[place + 1 :]]
            with pytest.raises(KernelUnavailable):
                compiled(*arrays, *OPTIONS[0])


def test_a_list_is_updated_as_its_elements_are() -> None:
    import tallow.optim.sgd  # noqa: F401 - the array code, for the last gradient

    shapes = [(2, 3), (), (0,), (5, 7)]
    params, grads, buffers = ([np.asarray(rng.standard_normal(s), np.float32) for s in shapes] for _ in range(3))
    grads[3] = np.asfortranarray(grads[3])
    wanted = [expected(p, g, b, OPTIONS[1]) for p, g, b in zip(params, grads, buffers, strict=True)]
    kernels.KERNELS["sgd_steps", library.BACKEND].fn(params, grads, buffers, *OPTIONS[1])
    for p, b, (wanted_p, wanted_b, size) in zip(params, buffers, wanted, strict=True):
        assert (np.abs(p - wanted_p) <= RTOL * size).all()
        assert (np.abs(b - wanted_b) <= RTOL * size).all()


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_the_optimizer_steps_the_same_with_kernels_on_and_off(momentum: float) -> None:
    def run() -> Array:
        p = tl.from_numpy(np.linspace(-1, 1, 20_000, dtype=np.float32).reshape(100, 200)).requires_grad_()
        optimizer = tl.optim.SGD([p], lr=0.01, momentum=momentum, weight_decay=0.1)
        for _ in range(10):
            optimizer.backward_step((p.sin() * 3).square().sum())
        return p.detach().numpy()

    with kernels.off():
        plain = run()
    np.testing.assert_allclose(run(), plain, rtol=1e-5, atol=1e-5)


def test_without_decay_an_infinite_parameter_stays_infinite() -> None:
    p, g = np.array([np.inf, 1.0], np.float32), np.ones(2, np.float32)
    compiled(p, g, None, 0.5, 0.0, 0.0, 0.0, False, False)
    np.testing.assert_array_equal(p, np.array([np.inf, 0.5], np.float32))
