"""Steps, norms and products of many arrays at once, by CUDA kernels, compared with the formulas in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support import cuda_emulator
from support.card import Card, round_to

import tallow as tl
from tallow import kernels
from tallow.dtypes import bfloat16, dtype, float16, float32

# below a vector load, at the edge of a block, and more than one block
SIZES = [(1,), (3, 5), (0,), (4096,), (4099,), (2, 4500)]
EXACT = {float32: 2e-6, float16: 1e-3, bfloat16: 8e-3}


def arrays(dtype: dtype, seed: int, sizes: Any = SIZES) -> list[Any]:
    rng = np.random.default_rng(seed)
    return [round_to(rng.standard_normal(size), dtype) for size in sizes]


def call(name: str, *args: Any) -> None:
    with kernels.require("cuda"):
        kernels.pick(name, "cuda", *args).fn(*args)


def compare(card: Card, results: list[Any], expected: list[Any], dtype: dtype) -> None:
    for got, values in zip(results, expected, strict=True):
        np.testing.assert_allclose(card.get(got), values, rtol=EXACT[dtype], atol=EXACT[dtype])


def adam(p: Any, g: Any, m: Any, v: Any, top: Any, t: int, options: dict[str, Any]) -> tuple[Any, ...]:
    lr, beta1, beta2, eps, decay, decoupled, maximize = options.values()
    p = p * (1 - lr * decay) if decoupled else p
    g = (-g if maximize else g) + (0 if decoupled else decay * p)
    m, v = beta1 * m + (1 - beta1) * g, beta2 * v + (1 - beta2) * g * g
    top = v if top is None else np.maximum(top, v)
    return p - lr / (1 - beta1**t) * m / (np.sqrt(top / (1 - beta2**t)) + eps), m, v, top


ADAMS = [
    {"lr": 0.1, "beta1": 0.9, "beta2": 0.999, "eps": 1e-8, "decay": 0.1, "decoupled": True, "maximize": False},
    {"lr": 0.05, "beta1": 0.0, "beta2": 0.5, "eps": 1e-3, "decay": 0.2, "decoupled": False, "maximize": True},
]


@pytest.mark.parametrize("where", ["host", "device"])
@pytest.mark.parametrize("dtype", [float32, bfloat16], ids=str)
def test_adam(card: Card, dtype: dtype, where: str) -> None:
    """`where` is the device of the step counter; then the learning rate is there too."""
    for options, amsgrad, t in ((ADAMS[0], False, 1), (ADAMS[1], True, 1000)):
        p, g, m = (arrays(dtype, seed) for seed in range(3))
        v, top = ([a * a for a in arrays(dtype, seed)] for seed in (3, 4))
        v, top = ([round_to(a, dtype) for a in each] for each in (v, top))
        on_device = [[card.put(a, dtype) for a in each] for each in (p, g, m, v, top)]
        tops = on_device.pop()
        tops = tops if amsgrad else None
        counts = [card.put(np.float32(t - 1)) for _ in p]
        lr, *rest = options.values()
        on_host = where == "host"
        steps, rate = (float(t), lr) if on_host else (counts, card.put(np.float32(lr)))
        call("adam_steps", *on_device, tops, steps, rate, *rest)
        expected = [
            adam(*each, t, options) for each in zip(p, g, m, v, top if amsgrad else [None] * len(p), strict=True)
        ]
        for i, result in enumerate((on_device[0], on_device[2], on_device[3])):
            compare(card, result, [each[i] for each in expected], dtype)
        if tops is not None:
            compare(card, tops, [each[3] for each in expected], dtype)
        assert on_host or all(card.get(count) == t for count in counts)


@pytest.mark.parametrize("dtype", [float32, bfloat16], ids=str)
def test_sgd(card: Card, dtype: dtype) -> None:
    p, g, b = (arrays(dtype, seed) for seed in range(3))
    on_device = [[card.put(a, dtype) for a in each] for each in (p, g, b)]
    call("sgd_steps", *on_device, 0.1, 0.9, 0.0, 0.01, True, False)
    gs = [x + 0.01 * y for x, y in zip(g, p, strict=True)]
    kept = [0.9 * x + y for x, y in zip(b, gs, strict=True)]
    compare(card, on_device[2], kept, dtype)
    compare(card, on_device[0], [x - 0.1 * (y + 0.9 * z) for x, y, z in zip(p, gs, kept, strict=True)], dtype)
    on_device = [[card.put(a, dtype) for a in each] for each in (p, g)]
    call("sgd_steps", *on_device, None, 0.1, 0.0, 0.0, 0.0, False, True)
    compare(card, on_device[0], [x + 0.1 * y for x, y in zip(p, g, strict=True)], dtype)


@pytest.mark.parametrize("dtype", [float32, float16], ids=str)
def test_the_norm_of_many_arrays_and_their_product(card: Card, dtype: dtype) -> None:
    """More arrays than one launch takes."""
    values = arrays(dtype, 1, [*SIZES, *[(7,)] * 70])
    on_device = [card.put(a, dtype) for a in values]
    total = np.sqrt(sum((a * a).sum() for a in values))
    for order in (False, True):  # the same bits whichever block is first
        cuda_emulator.backwards = order
        try:
            norm = card.run_once(lambda: kernels.pick("total_norm", "cuda", on_device).fn(on_device))
        finally:
            cuda_emulator.backwards = False
        np.testing.assert_allclose(card.get(norm), total, rtol=1e-6)
    call("scale_all", on_device, card.put(np.float32(0.5)), None)
    compare(card, on_device, [a * 0.5 for a in values], dtype)
    total_norm = card.put(np.float32(0))
    call("scale_all", on_device, 0.25, total_norm)
    compare(card, on_device, [a * 0.125 for a in values], dtype)
    assert card.get(total_norm) == 0
    on_device[-1] = card.put(np.array([1.0] * 6 + [np.inf]), dtype)
    call("scale_all", on_device, 1.0, total_norm)
    assert card.get(total_norm) == 1


def test_arrays_off_alignment(card: Card) -> None:
    p, g, m, v = (card.put(np.abs(round_to(np.random.default_rng(i).standard_normal(130), float32))) for i in range(4))
    before = [card.get(a) for a in (p, g, m, v)]
    call("adam_steps", [p[1:]], [g[1:]], [m[1:]], [v[1:]], None, 2.0, *ADAMS[0].values())
    expected = adam(*[a[1:] for a in before], None, 2, ADAMS[0])
    for results, values, old in ((p, expected[0], before[0]), (m, expected[1], before[2]), (v, expected[2], before[3])):
        np.testing.assert_allclose(card.get(results)[1:], values, rtol=2e-6, atol=1e-6)
        assert card.get(results)[0] == old[0]


def model(device: str) -> Any:
    tl.manual_seed(3)
    return tl.nn.Sequential(tl.nn.Linear(6, 5), tl.nn.ReLU(), tl.nn.Linear(5, 4)).to(device)


KINDS = {
    "AdamW": lambda ps: tl.optim.AdamW(ps, lr=0.05, amsgrad=True),
    "capturable": lambda ps: tl.optim.AdamW(ps, lr=tl.tensor(0.05), amsgrad=True, capturable=True),
    "with its rate on the device": lambda ps: tl.optim.AdamW(
        ps, lr=tl.tensor(0.05, device=ps[0].device), amsgrad=True, capturable=True
    ),
    "SGD": lambda ps: tl.optim.SGD(ps, lr=0.05, momentum=0.9, weight_decay=0.1, dampening=0.3),
}


@pytest.mark.parametrize("kind", KINDS)
def test_training_goes_as_on_the_cpu(cuda: str, kind: str) -> None:
    """With clipping and scaling, in one launch for all parameters; a state is saved and loaded."""
    results = []
    for device in ("cpu", cuda):
        net = model(device)
        optimizer = KINDS[kind](list(net.parameters()))
        scaler = tl.amp.GradScaler("cpu", init_scale=256.0)  # the stand-in counts launches, a GPU does not
        x = tl.arange(18.0).reshape(3, 6).to(device) / 9 - 1
        cuda_emulator.launched.clear()
        for step in range(4):
            optimizer.zero_grad()
            loss = (net(x) ** 2).mean()
            scaler.scale(loss * (float("inf") if step == 2 else 1.0)).backward()
            scaler.unscale_(optimizer)
            tl.nn.utils.clip_grad_norm_(net.parameters(), 0.5)
            scaler.step(optimizer)
            scaler.update()
        if cuda_emulator.launched:
            steps = [name for name in cuda_emulator.launched if name.endswith("_steps")]
            assert len(steps) == (3 if kind in ("AdamW", "SGD") else 6)  # one with a step counter
        assert scaler.get_scale() == 128.0
        optimizer.load_state_dict(optimizer.state_dict())
        results.append([p.detach().cpu().numpy() for p in net.parameters()])
        counts = [state["step"].device.type for state in optimizer.state.values() if "step" in state]
        assert set(counts) <= {"cpu" if kind in ("AdamW", "SGD") else device}
    for cpu_value, cuda_value in zip(*results, strict=True):
        np.testing.assert_allclose(cuda_value, cpu_value, rtol=1e-5, atol=1e-6)
