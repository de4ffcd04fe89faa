"""Optimizers and schedulers compared with PyTorch: equal parameters after equal gradients, and transferable states."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tallow as tl

torch = pytest.importorskip("torch", reason="PyTorch, the reference of these tests, is not installed")

STEPS = 20
SHAPES = [(3, 4), (4,), (), (2, 65)]
MATRICES = [(3, 4), (70, 5), (2, 65)]  # the arguments Muon accepts
TOLERANCE = {"float32": 1e-6, "float64": 1e-10}
MUON_TOLERANCE = 1e-4  # one unit of bfloat16 in a step of 0.01: sums of products are taken in a different order

OPTIMIZERS: list[tuple[str, dict[str, Any]]] = [
    ("SGD", {}),
    ("SGD", {"lr": 0.1, "weight_decay": 0.1}),
    ("SGD", {"lr": 0.1, "momentum": 0.9}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.3, "weight_decay": 0.01}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.01}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True, "maximize": True}),
    ("SGD", {"lr": 0.1, "maximize": True, "weight_decay": 0.1}),
    *(
        (name, options)
        for name in ("Adam", "AdamW")
        for options in (
            {},
            {"lr": 0.01, "betas": (0.8, 0.95), "eps": 1e-4},
            {"lr": 0.01, "weight_decay": 0.1},
            {"lr": 0.01, "amsgrad": True},
            {"lr": 0.01, "amsgrad": True, "maximize": True, "weight_decay": 0.02},
        )
    ),
    ("Adam", {"lr": 0.01, "weight_decay": 0.1, "decoupled_weight_decay": True}),
    ("RMSprop", {}),
    ("Rprop", {}),
    ("Rprop", {"lr": 0.1, "etas": (0.4, 1.5), "step_sizes": (0.01, 0.2), "maximize": True}),
    ("RMSprop", {"alpha": 0.9, "eps": 1e-4, "weight_decay": 0.1}),
    ("RMSprop", {"momentum": 0.9}),
    ("RMSprop", {"centered": True, "eps": 1e-3}),
    ("RMSprop", {"centered": True, "momentum": 0.5, "weight_decay": 0.1, "maximize": True, "eps": 1e-3}),
    ("Adagrad", {}),
    ("Adagrad", {"lr": 0.1, "lr_decay": 0.1, "weight_decay": 0.1, "initial_accumulator_value": 0.5}),
    ("Adagrad", {"eps": 1e-3, "maximize": True}),
    ("Adadelta", {}),
    ("Adadelta", {"lr": 0.5, "rho": 0.8, "eps": 1e-3, "weight_decay": 0.1, "maximize": True}),
    ("Adamax", {}),
    ("Adamax", {"lr": 0.01, "betas": (0.8, 0.9), "eps": 1e-3, "weight_decay": 0.1, "maximize": True}),
    ("NAdam", {}),
    ("NAdam", {"lr": 0.01, "betas": (0.8, 0.9), "eps": 1e-3, "momentum_decay": 0.1, "weight_decay": 0.1}),
    ("NAdam", {"lr": 0.01, "weight_decay": 0.1, "decoupled_weight_decay": True, "maximize": True}),
    ("RAdam", {"lr": 0.01}),
    ("RAdam", {"lr": 0.01, "betas": (0.8, 0.9), "eps": 1e-3, "weight_decay": 0.1}),
    ("RAdam", {"lr": 0.01, "weight_decay": 0.1, "decoupled_weight_decay": True, "maximize": True}),
    ("ASGD", {}),
    ("ASGD", {"lr": 0.01, "lambd": 0.01, "alpha": 0.5, "t0": 4, "weight_decay": 0.1, "maximize": True}),
    ("Adafactor", {}),
    ("Adafactor", {"lr": 0.1, "beta2_decay": -0.5, "eps": (1e-3, 1e-2), "d": 2.0, "weight_decay": 0.1}),
    ("Adafactor", {"lr": 0.05, "maximize": True}),
    ("Muon", {}),
    ("Muon", {"lr": 0.1, "weight_decay": 0.0, "nesterov": False, "adjust_lr_fn": "match_rms_adamw"}),
    ("Muon", {"momentum": 0.5, "ns_coefficients": (3.0, -3.2, 1.2), "ns_steps": 3, "adjust_lr_fn": "original"}),
    ("Lion", {}),
    ("Lion", {"lr": 0.01, "betas": (0.8, 0.9), "weight_decay": 0.1}),
]
IN_PYTORCH = [(name, options) for name, options in OPTIMIZERS if name != "Lion"]
NAMES = [f"{name}-{'-'.join(options) or 'defaults'}" for name, options in OPTIMIZERS]


class ReferenceLion(torch.optim.Optimizer):  # type: ignore[misc,name-defined]
    """arXiv:2302.06675, algorithm 2, in PyTorch ops: PyTorch has no Lion."""

    def __init__(self, params: Any, lr: float = 1e-4, betas: Any = (0.9, 0.99), weight_decay: float = 0.0) -> None:
        super().__init__(params, {"lr": lr, "betas": betas, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:
        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            for p in group["params"]:
                m = self.state[p].setdefault("exp_avg", torch.zeros_like(p))
                update = beta1 * m + (1 - beta1) * p.grad
                p.sub_(group["lr"] * (update.sign() + group["weight_decay"] * p))
                m.copy_(beta2 * m + (1 - beta2) * p.grad)


class Run:
    """Parameters and an optimizer of one of the two libraries, with gradients from a seed."""

    def __init__(self, module: Any, name: str, options: dict[str, Any], dtype: str = "float64") -> None:
        rng = np.random.default_rng(1)
        self.module, self.dtype = module, getattr(module, dtype)
        self.params = [
            self.tensor(rng.standard_normal(shape)).requires_grad_()
            for shape in (MATRICES if name == "Muon" else SHAPES)
        ]
        self.gradients = np.random.default_rng(2)
        kind = ReferenceLion if (module, name) == (torch, "Lion") else getattr(module.optim, name)
        self.optimizer = kind(self.params, **options)

    def tensor(self, array: Any) -> Any:
        return self.module.from_numpy(np.asarray(array)).to(self.dtype)

    def step(self, number: int = 1) -> None:
        for _ in range(number):
            for i, p in enumerate(self.params):
                p.grad = self.tensor(10.0 ** (1 - i) * self.gradients.standard_normal(tuple(p.shape)))
            self.optimizer.step()

    def round(self, half: Any) -> None:
        """Round PyTorch's parameters and state, except for counters, to the dtype `half`."""
        for p in self.params:
            moments = [t for key, t in self.optimizer.state[p].items() if key not in ("step", "mu_product")]
            for t in (p.data, *moments):
                t.copy_(t.to(half))

    def values(self) -> list[np.ndarray[Any, Any]]:
        return [p.detach().double().numpy().copy() for p in self.params]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("name", "options"), OPTIMIZERS, ids=NAMES)
def test_twenty_steps_are_pytorchs(name: str, options: dict[str, Any], dtype: str) -> None:
    mine, theirs = Run(tl, name, options, dtype), Run(torch, name, options, dtype)
    before = mine.values()
    tolerance = MUON_TOLERANCE if name == "Muon" else TOLERANCE[dtype]
    for _ in range(STEPS):
        mine.step()
        theirs.step()
        for a, b in zip(mine.values(), theirs.values(), strict=True):
            np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)
    assert all((a != b).any() for a, b in zip(before, mine.values(), strict=True)), "no parameter changed"
    assert [p.dtype for p in mine.params] == [mine.dtype] * len(mine.params)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize(("name", "options"), OPTIMIZERS, ids=NAMES)
def test_halves_are_computed_in_float32_and_rounded(name: str, options: dict[str, Any], dtype: str) -> None:
    """The reference is PyTorch in float32, with its parameters and state rounded after each step."""
    half = getattr(torch, dtype)
    like_half = {"eps": (torch.finfo(half).eps, 1e-3)} if name == "Adafactor" and "eps" not in options else {}
    mine, theirs = Run(tl, name, options, dtype), Run(torch, name, options | like_half, "float32")
    round_to_half = theirs.tensor
    theirs.tensor = lambda array: round_to_half(array).to(half).float()
    theirs.round(half)
    atol = MUON_TOLERANCE if name == "Muon" else 1e-5
    for _ in range(5):
        mine.step()
        theirs.step()
        theirs.round(half)
        for a, b in zip(mine.values(), theirs.values(), strict=True):
            np.testing.assert_allclose(a, b, rtol=2 * torch.finfo(half).eps, atol=atol)
    for param, state in mine.optimizer.state.items():
        assert all(t.dtype is (param.dtype if t.ndim else tl.float32) for t in state.values() if param.ndim)


@pytest.mark.parametrize(("name", "options"), IN_PYTORCH, ids=NAMES[: len(IN_PYTORCH)])
def test_state_dict_has_pytorchs_format(name: str, options: dict[str, Any]) -> None:
    mine, theirs = Run(tl, name, options), Run(torch, name, options)
    mine.step(3)
    theirs.step(3)
    ours, reference = mine.optimizer.state_dict(), theirs.optimizer.state_dict()
    assert ours["param_groups"] == reference["param_groups"]
    assert list(ours["state"]) == list(reference["state"])
    for key, entry in reference["state"].items():
        assert ours["state"][key].keys() == entry.keys()
        for part, value in entry.items():
            our_value = ours["state"][key][part]
            assert str(our_value.dtype).split(".")[1] == str(value.dtype).split(".")[1], part
            np.testing.assert_allclose(our_value.numpy(), value.numpy(), rtol=1e-6, atol=1e-10, err_msg=part)


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize(("name", "options"), OPTIMIZERS, ids=NAMES)
def test_state_dict_round_trip_is_bit_equal(name: str, options: dict[str, Any], dtype: str) -> None:
    uninterrupted, interrupted = Run(tl, name, options, dtype), Run(tl, name, options, dtype)
    uninterrupted.step(6)
    interrupted.step(3)
    resumed = Run(tl, name, {"lr": 123.0}, dtype)
    resumed.optimizer.load_state_dict(interrupted.optimizer.state_dict())
    resumed.gradients = interrupted.gradients
    for p, q in zip(resumed.params, interrupted.params, strict=True):
        p.data = q.detach().clone()
    resumed.step(3)
    for a, b in zip(resumed.values(), uninterrupted.values(), strict=True):
        np.testing.assert_array_equal(a, b)


def as_tallow(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return tl.from_numpy(value.numpy().copy())
    if isinstance(value, dict):
        return {k: as_tallow(v) for k, v in value.items()}
    return [as_tallow(v) for v in value] if isinstance(value, list) else value


@pytest.mark.parametrize(("name", "options"), OPTIMIZERS, ids=NAMES)
def test_continues_from_pytorchs_state(name: str, options: dict[str, Any]) -> None:
    theirs = Run(torch, name, options)
    theirs.step(3)
    mine = Run(tl, name, {})
    mine.optimizer.load_state_dict(as_tallow(theirs.optimizer.state_dict()))
    mine.gradients = np.random.default_rng()
    mine.gradients.bit_generator.state = theirs.gradients.bit_generator.state
    for p, q in zip(mine.params, theirs.params, strict=True):
        p.data = tl.from_numpy(q.detach().numpy().copy())
    mine.step(3)
    theirs.step(3)
    for a, b in zip(mine.values(), theirs.values(), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-7, atol=1e-7)  # mu_product and step are float32


@pytest.mark.parametrize("name", ["SGD", "AdamW"])
def test_groups_with_options_of_their_own(name: str) -> None:
    runs = []
    for module in (tl, torch):
        run = Run(module, name, {})
        a, b, c, d = run.params
        run.optimizer = getattr(module.optim, name)(
            [{"params": [a, b], "lr": 0.1}, {"params": c, "weight_decay": 0.5}], lr=0.01
        )
        run.optimizer.add_param_group({"params": [d], "lr": 0.5})
        run.step(5)
        runs.append(run)
    for mine, theirs in zip(*(run.values() for run in runs), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-10, atol=1e-10)
    assert repr(runs[0].optimizer) == repr(runs[1].optimizer)


@pytest.mark.parametrize("name", sorted({name for name, _ in IN_PYTORCH}))
def test_constructor_takes_pytorchs_arguments_in_order(name: str) -> None:
    mine, theirs = (inspect.signature(getattr(m.optim, name)).parameters for m in (tl, torch))
    assert [(p.name, p.kind, p.default) for p in mine.values()] == [
        (p.name, p.kind, p.default) for p in theirs.values()
    ]


Broken = Callable[[Any, Any, type], Any]
REFUSED: list[tuple[str, Broken]] = [
    ("no-parameters", lambda m, p, o: o([])),
    ("a-tensor", lambda m, p, o: o(p)),
    ("not-iterable", lambda m, p, o: o(3)),
    ("not-a-tensor", lambda m, p, o: o([1.0])),
    ("non-leaf", lambda m, p, o: o([p * 2])),
    ("set", lambda m, p, o: o([{"params": {p}}])),
    ("in-two-groups", lambda m, p, o: o([{"params": [p]}, {"params": [p]}])),
    ("named-and-not", lambda m, p, o: o([("a", p), m.zeros(2)])),
    ("group-is-no-dict", lambda m, p, o: o([p]).add_param_group([p])),
    ("named-beside-not", lambda m, p, o: o([p]).add_param_group({"params": [("a", m.zeros(2))]})),
    ("negative-lr", lambda m, p, o: o([p], lr=-1.0)),
    ("wide-lr", lambda m, p, o: o([p], lr=m.ones(2))),
    ("other-number-of-groups", lambda m, p, o: o([p]).load_state_dict({"state": {}, "param_groups": []})),
    (
        "other-number-of-parameters",
        lambda m, p, o: o([p]).load_state_dict({"state": {}, "param_groups": [{"params": [0, 1]}]}),
    ),
]


@pytest.mark.parametrize("name", sorted({name for name, _ in IN_PYTORCH}))
@pytest.mark.parametrize("call", [c for _, c in REFUSED], ids=[i for i, _ in REFUSED])
def test_errors_as_in_pytorch(name: str, call: Broken) -> None:
    errors = []
    for module in (torch, tl):
        with pytest.raises(Exception) as caught:
            call(module, module.ones(2).requires_grad_(), getattr(module.optim, name))
        errors.append(caught.value)
    theirs, mine = errors
    assert isinstance(mine, tl.errors.TallowError)
    assert isinstance(mine, type(theirs)), (mine, theirs)


OTHER_WORDS = {
    "Adafactor",
    "Muon",
}  # PyTorch's other optimizers say "Invalid weight_decay value", as all of tallow's do
OPTIONS_REFUSED = [
    *((name, {"weight_decay": -0.1}) for name in sorted({name for name, _ in IN_PYTORCH} - {"Rprop"} - OTHER_WORDS)),
    *(("Rprop", o) for o in ({"etas": (1.5, 1.2)}, {"etas": (0.5, 0.9)})),
    *(
        ("SGD", o)
        for o in ({"momentum": -1.0}, {"nesterov": True}, {"nesterov": True, "momentum": 0.9, "dampening": 0.1})
    ),
    *(
        (name, o)
        for name in ("Adam", "AdamW", "Adamax", "NAdam", "RAdam")
        for o in ({"eps": -1.0}, {"betas": (1.0, 0.9)}, {"betas": (0.9, -0.1)}, {"lr": float("nan")})
    ),
    ("NAdam", {"momentum_decay": -1.0}),
    *(("RMSprop", o) for o in ({"alpha": -1.0}, {"momentum": -1.0}, {"eps": -1.0})),
    *(("Adagrad", o) for o in ({"lr_decay": -1.0}, {"initial_accumulator_value": -1.0}, {"eps": -1.0})),
    *(("SparseAdam", o) for o in ({"lr": 0.0}, {"eps": 0.0}, {"betas": (1.0, 0.9)})),
    ("Muon", {"adjust_lr_fn": "none"}),
    *(("Adafactor", o) for o in ({"beta2_decay": 0.1}, {"d": 0.5})),
    *(("Adadelta", o) for o in ({"rho": 1.5}, {"rho": -0.5}, {"eps": -1.0})),
]


@pytest.mark.parametrize("options", [{"weight_decay": -0.1}, {"lr": -1.0}, {"lr": float("nan")}, {"eps": (-1.0, 1e-3)}])
@pytest.mark.parametrize("name", sorted(OTHER_WORDS))
def test_options_with_our_own_messages(name: str, options: dict[str, Any]) -> None:
    if name == "Muon" and "eps" in options:
        options = {"momentum": -1.0}
    for module in (torch, tl):
        with pytest.raises(ValueError):
            getattr(module.optim, name)([module.ones(2, 2)], **options)


@pytest.mark.parametrize(("name", "options"), OPTIONS_REFUSED, ids=[f"{n}-{o}" for n, o in OPTIONS_REFUSED])
def test_options_with_pytorchs_messages(name: str, options: dict[str, Any]) -> None:
    messages = []
    for module in (torch, tl):
        with pytest.raises(ValueError) as caught:
            getattr(module.optim, name)([module.ones(2)], **options)
        messages.append(str(caught.value))
    assert messages[1].startswith(messages[0])
