"""The optimizer base class: groups, steps, hooks, staleness of saved tensors, and loading of invalid states."""

from __future__ import annotations

import copy
import math
import pickle
from typing import Any

import numpy as np
import pytest

import tallow as tl
from tallow.errors import (
    ArgumentError,
    ArgumentTypeError,
    CheckpointError,
    DtypeError,
    GraphError,
    ShapeError,
)
from tallow.optim import lr_scheduler

OTHERS = ("Optimizer", "LBFGS", "SparseAdam", "lr_scheduler", "swa_utils")  # SparseAdam takes no step
WITH_MATRICES = [getattr(tl.optim, name) for name in tl.optim.__all__ if name not in OTHERS]
ALL = [kind for kind in WITH_MATRICES if kind is not tl.optim.Muon]  # accepts matrices only
ELEMENTWISE = [kind for kind in ALL if kind is not tl.optim.Adafactor]  # its step depends on the whole parameter


def parameter(*shape: int) -> tl.Tensor:
    p = tl.ones(shape).requires_grad_()
    p.grad = tl.ones(shape)
    return p


@pytest.mark.parametrize("kind", ALL)
def test_a_step_goes_down_in_place(kind: Any) -> None:
    p, without_gradient = parameter(3), tl.ones(2).requires_grad_()
    array = p.array
    optimizer = kind([p, without_gradient], lr=0.1)
    assert optimizer.step() is None
    assert p.array is array
    assert (p < 1).all()
    assert (without_gradient == 1).all()
    assert without_gradient not in optimizer.state


@pytest.mark.parametrize("kind", ALL)
def test_maximize_goes_up(kind: Any) -> None:
    p = parameter(3)
    kind([p], lr=0.1, maximize=True).step()
    assert (p > 1).all()


@pytest.mark.parametrize("dtype", [tl.float16, tl.bfloat16], ids=str)
def test_momentum_of_a_half_is_kept_from_step_to_step(dtype: tl.dtype) -> None:
    """b = 1, 1.5, 1.75 and p = -b of each; both half dtypes represent these sums of powers of two."""
    p = tl.zeros(3, dtype=dtype).requires_grad_()
    optimizer = tl.optim.SGD([p], lr=1.0, momentum=0.5)
    for position in (-1.0, -2.5, -4.25):
        p.grad = tl.ones(3, dtype=dtype)
        optimizer.step()
        assert p.tolist() == [position] * 3
    assert optimizer.state[p]["momentum_buffer"].dtype is dtype
    assert optimizer.state[p]["momentum_buffer"].tolist() == [1.75] * 3


@pytest.mark.parametrize("kind", WITH_MATRICES)
def test_any_layout_and_size(kind: Any) -> None:
    """A transposed parameter is updated like a contiguous one, and an empty one raises no error."""
    start = np.arange(6.0).reshape(2, 3) + 1
    plain, turned = (tl.from_numpy(a).requires_grad_() for a in (start.copy(), start.T.copy().T))
    nothing = parameter(0, 3)
    optimizer = kind([plain, turned, nothing], lr=0.1)
    for _ in range(3):
        plain.grad = tl.from_numpy(start * 0.5)
        turned.grad = tl.from_numpy(start * 0.5)
        optimizer.step()
    assert (plain.detach().numpy() != start).all()
    np.testing.assert_array_equal(plain.detach().numpy(), turned.detach().numpy())
    assert nothing.shape == (0, 3)


@pytest.mark.parametrize("kind", ELEMENTWISE)
def test_a_zero_dim_parameter_moves_as_an_element_does(kind: Any) -> None:
    vector, point = (tl.ones(shape, dtype=tl.float64).requires_grad_() for shape in ((2,), ()))
    optimizer = kind([vector, point], lr=0.1)
    for _ in range(3):
        vector.grad = tl.tensor([0.5, 3.0], dtype=tl.float64)
        point.grad = tl.tensor(0.5, dtype=tl.float64)
        optimizer.step()
    assert point.item() == pytest.approx(vector[0].item())


def test_sparse_adam_refuses_dense_gradients() -> None:
    """PyTorch refuses these with this message."""
    with pytest.raises(GraphError, match="SparseAdam does not support dense gradients, please consider Adam instead"):
        tl.optim.SparseAdam([parameter(3)]).step()


def test_muon_takes_matrices_alone() -> None:
    optimizer = tl.optim.Muon([parameter(3, 2)])
    with pytest.raises(ArgumentError, match="2D"):
        optimizer.add_param_group({"params": [parameter(3)]})
    assert len(optimizer.param_groups) == 1


def test_muon_makes_the_step_orthogonal() -> None:
    """Singular values of the step are in 0.5 to 1.5, whatever those of the gradient (the first source)."""
    p = tl.zeros(8, 5).requires_grad_()
    p.grad = tl.tensor(np.random.default_rng(0).standard_normal((8, 5)) * np.logspace(0, -2, 5), dtype=tl.float32)
    tl.optim.Muon([p], lr=1.0, weight_decay=0.0).step()
    values = np.linalg.svd(p.detach().numpy() / np.sqrt(8 / 5), compute_uv=False)
    assert (values > 0.5).all()
    assert (values < 1.5).all()


def test_step_runs_the_closure_with_gradients_and_returns_its_loss() -> None:
    p = parameter(2)
    optimizer = tl.optim.SGD([p], lr=0.25)

    def closure() -> tl.Tensor:
        optimizer.zero_grad()
        loss = (p * p).sum()
        loss.backward()
        return loss

    with tl.no_grad():
        assert optimizer.step(closure).item() == 2.0
    assert p.tolist() == [0.5, 0.5]


def test_backward_step_uses_the_gradients_of_this_loss_alone() -> None:
    p = parameter(2)
    optimizer = tl.optim.SGD([p], lr=0.5)
    for _ in range(2):
        optimizer.backward_step((3 * p).sum())
    assert p.tolist() == [-2.0, -2.0]


def test_zero_grad() -> None:
    p = parameter(2)
    optimizer = tl.optim.SGD([p])
    grad = p.grad
    optimizer.zero_grad(set_to_none=False)
    assert p.grad is grad
    assert grad is not None
    assert grad.tolist() == [0.0, 0.0]
    optimizer.zero_grad()
    assert p.grad is None


@pytest.mark.parametrize("kind", ALL)
def test_a_step_makes_saved_values_stale(kind: Any) -> None:
    p = parameter(2)
    loss = (p * p).sum()
    kind([p], lr=0.1).step()
    with pytest.raises(GraphError, match="modified by an inplace operation"):
        loss.backward()


def test_parameters_in_read_only_memory_are_refused() -> None:
    array = np.ones(2, np.float32)
    array.flags.writeable = False
    p = tl.from_numpy(array) if array.flags.writeable else tl.Tensor(array)
    p.requires_grad_().grad = tl.ones(2)
    with pytest.raises(ShapeError, match="Adam: the memory cannot be written"):
        tl.optim.Adam([p]).step()


def test_hooks_surround_every_step() -> None:
    calls: list[Any] = []
    optimizer = tl.optim.SGD([parameter(1)], lr=0.5)
    before = optimizer.register_step_pre_hook(lambda o, args, kwargs: calls.append(("before", o is optimizer)))
    after = optimizer.register_step_post_hook(lambda o, args, kwargs: calls.append(("after", args[0] is optimizer)))
    optimizer.step()
    assert calls == [("before", True), ("after", True)]
    before.remove()
    after.remove()
    optimizer.step()
    assert len(calls) == 2


def test_hooks_surround_state_dicts() -> None:
    calls: list[Any] = []
    optimizer = tl.optim.SGD([parameter(1)], lr=0.5, momentum=0.9)
    optimizer.step()
    handles = [
        optimizer.register_state_dict_pre_hook(lambda o: calls.append("second")),
        optimizer.register_state_dict_pre_hook(lambda o: calls.append("first"), prepend=True),
        optimizer.register_state_dict_post_hook(lambda o, state: calls.append(sorted(state))),
        optimizer.register_state_dict_post_hook(lambda o, state: {**state, "epoch": 3}),
        optimizer.register_load_state_dict_pre_hook(lambda o, state: calls.append(state.pop("epoch"))),
        optimizer.register_load_state_dict_post_hook(lambda o: calls.append(o.param_groups[0]["lr"])),
    ]
    state = optimizer.state_dict()
    assert calls == ["first", "second", ["param_groups", "state"]]
    state["param_groups"][0]["lr"] = 0.25
    optimizer.load_state_dict(state)
    assert calls[3:] == [3, 0.25]
    assert state["epoch"] == 3  # the hook changed a copy
    for handle in handles:
        handle.remove()
    assert sorted(optimizer.state_dict()) == ["param_groups", "state"]
    assert len(calls) == 5


def test_a_pre_hook_may_change_the_arguments() -> None:
    optimizer = tl.optim.SGD([parameter(1)])
    optimizer.register_step_pre_hook(lambda o, args, kwargs: ((o, lambda: 7), {}))
    assert optimizer.step() == 7
    optimizer.register_step_pre_hook(lambda o, args, kwargs: 3)
    with pytest.raises(ArgumentError, match="must return None or"):
        optimizer.step()


class Halving(tl.optim.Optimizer):
    """A subclass in PyTorch's style, with a `step` of its own."""

    def __init__(self, params: Any) -> None:
        super().__init__(params, {"lr": tl.optim.optimizer.required})

    def step(self, closure: Any = None) -> None:
        with tl.no_grad():
            for group in self.param_groups:
                for p in group["params"]:
                    p.mul_(group["lr"])


class Quartering(Halving):
    def step(self, closure: Any = None) -> None:
        super().step()
        super().step()


def test_an_optimizer_with_a_step_of_its_own_has_hooks_once() -> None:
    p = parameter(1)
    optimizer = Quartering([{"params": p, "lr": 0.5}])
    calls: list[int] = []
    optimizer.register_step_post_hook(lambda *_: calls.append(1))
    optimizer.step()
    assert p.item() == 0.25
    assert calls == [1]
    with pytest.raises(ArgumentError, match="required optimization parameter lr"):
        Halving([p])


def test_neither_update_nor_step() -> None:
    with pytest.raises(NotImplementedError, match="defines neither"):
        tl.optim.Optimizer([parameter(1)], {}).step()


def test_names_of_parameters_are_kept() -> None:
    optimizer = tl.optim.SGD([("weight", parameter(2)), ("bias", parameter(1))])
    assert optimizer.state_dict()["param_groups"][0]["param_names"] == ["weight", "bias"]


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "Adagrad"])
def test_fused_and_foreach_exclude_each_other(name: str) -> None:
    optimizer = getattr(tl.optim, name)
    for options in ({"fused": True}, {"foreach": True}, {"fused": True, "foreach": False}):
        optimizer([parameter(1)], lr=0.1, **options)
    with pytest.raises(ArgumentError, match="`fused` and `foreach` cannot be `True` together"):
        optimizer([parameter(1)], lr=0.1, fused=True, foreach=True)


def test_duplicates_warn_within_a_group_and_are_refused_across() -> None:
    p = parameter(1)
    with pytest.warns(UserWarning, match="duplicate parameters"):
        tl.optim.SGD([p, p])
    with pytest.raises(ArgumentError, match="more than one parameter group"):
        tl.optim.SGD([{"params": [p]}, {"params": [p]}])


@pytest.mark.parametrize(
    ("params", "error", "words"),
    [
        ([], ArgumentError, "empty parameter list"),
        (tl.ones(1), ArgumentTypeError, "iterable of Tensors or dicts"),
        (None, ArgumentTypeError, "got NoneType"),
        ([{"lr": 0.1}], ArgumentError, "no 'params'"),
        ([np.ones(2)], ArgumentTypeError, "parameter 0 is ndarray"),
    ],
)
def test_bad_parameters(params: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        tl.optim.SGD(params)


def test_outputs_of_ops_are_refused_unless_they_retain_their_gradient() -> None:
    y = parameter(1) * 2
    with pytest.raises(ArgumentError, match=r"parameter 0 is the output of <MulBackward0>"):
        tl.optim.SGD([y])
    y.retain_grad()
    tl.optim.SGD([y])


def test_options_of_the_wrong_kind() -> None:
    p = parameter(1)
    for bad in ("0.1", None):
        with pytest.raises(ArgumentTypeError, match="lr must be a number"):
            tl.optim.SGD([p], lr=bad)
    with pytest.raises(ArgumentError, match="betas must be two numbers"):
        tl.optim.Adam([p], betas=(0.9,))  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="differentiable=True"):
        tl.optim.Adam([p], differentiable=True)


def test_loading_reports_all_mismatches_and_changes_nothing() -> None:
    other = tl.optim.Adam([parameter(3), parameter(2, 2), parameter(4)])
    other.step()
    mine = tl.optim.Adam([parameter(3), parameter(5), parameter(6)], lr=0.5)
    mine.step()
    before = copy.deepcopy(mine.state_dict())
    with pytest.raises(CheckpointError) as caught:
        mine.load_state_dict(other.state_dict())
    assert "parameter 1 (5,): exp_avg has shape (2, 2)" in str(caught.value)
    assert "parameter 2 (6,): exp_avg_sq has shape (4,)" in str(caught.value)
    after = mine.state_dict()
    assert after["param_groups"] == before["param_groups"]
    assert (after["state"][1]["exp_avg"] == before["state"][1]["exp_avg"]).all()


def test_loading_another_number_of_parameters() -> None:
    state = tl.optim.SGD([parameter(1), parameter(1)]).state_dict()
    with pytest.raises(CheckpointError, match="group 0: 2 parameters in the state dict, 1 in the optimizer"):
        tl.optim.SGD([parameter(1)]).load_state_dict(state)


def test_loading_copies() -> None:
    a, b = (tl.optim.Adam([parameter(2)]) for _ in range(2))
    a.step()
    b.load_state_dict(a.state_dict())
    average = a.state_dict()["state"][0]["exp_avg"].clone()
    b.step()
    assert (a.state_dict()["state"][0]["exp_avg"] == average).all()


def test_loading_an_older_state_keeps_the_defaults_it_lacks() -> None:
    optimizer = tl.optim.AdamW([parameter(2)])
    state = {"state": {0: {"step": 3, "exp_avg": tl.zeros(2), "exp_avg_sq": tl.zeros(2)}}}
    optimizer.load_state_dict(state | {"param_groups": [{"params": [0], "lr": 0.5, "decoupled_weight_decay": False}]})
    (group,) = optimizer.param_groups
    assert (group["lr"], group["amsgrad"], group["decoupled_weight_decay"]) == (0.5, False, True)
    optimizer.step()
    assert optimizer.state_dict()["state"][0]["step"].item() == 4.0


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda o: pickle.loads(pickle.dumps(o))])
def test_copies_and_pickles_are_independent(duplicate: Any) -> None:
    optimizer = tl.optim.Adam([parameter(2)], lr=0.1)
    optimizer.step()
    other = duplicate(optimizer)
    (p,), (q,) = optimizer.param_groups[0]["params"], other.param_groups[0]["params"]
    assert q is not p
    p.grad, q.grad = tl.ones(2), tl.ones(2)
    optimizer.step()
    assert q.tolist() != p.tolist()
    other.step()
    assert q.tolist() == p.tolist()


def test_lbfgs_wants_a_closure_one_group_and_many_digits() -> None:
    p = parameter(2)
    optimizer = tl.optim.LBFGS([p])
    with pytest.raises(ArgumentTypeError, match="needs a closure"):
        optimizer.step()
    with pytest.raises(ArgumentError, match="parameter groups"):
        optimizer.add_param_group({"params": [parameter(1)]})
    with pytest.raises(ArgumentError, match="only 'strong_wolfe'"):
        tl.optim.LBFGS([p], line_search_fn="wolfe")
    with pytest.raises(DtypeError, match=r"parameter 0 is tallow\.bfloat16"):
        tl.optim.LBFGS([tl.ones(2).bfloat16()])


def _with_change(change: Any) -> Any:
    def apply(state: dict[str, Any]) -> None:
        change(state["param_groups"][0], state["state"][0])

    return apply


PHASE = ("end_step", "start_lr", "end_lr", "start_momentum", "end_momentum")
NONSENSE: dict[str, tuple[Any, str]] = {
    "lr of letters": (lambda group, entry: group.update(lr="0.1"), "group 0: lr is '0.1'; expected a number"),
    "lr of NaN": (lambda group, entry: group.update(lr=float("nan")), "group 0: lr is nan"),
    "lr beyond floats": (lambda group, entry: group.update(lr=10**400), "group 0: lr is 1000"),
    "lr that is a flag": (lambda group, entry: group.update(lr=True), "group 0: lr is True"),
    "lr of two": (lambda group, entry: group.update(lr=tl.ones(2)), r"group 0: lr has shape \(2,\)"),
    "one beta": (lambda group, entry: group.update(betas=[0.9]), r"betas is \[0.9\]; expected 2 values"),
    "beta of one": (lambda group, entry: group.update(betas=[0.9, 1.0]), "betas is .*; expected two numbers from 0"),
    "negative eps": (lambda group, entry: group.update(eps=-1.0), "eps is -1.0; expected at least 0"),
    "flag of a number": (lambda group, entry: group.update(amsgrad=2), "amsgrad is 2; expected True or False"),
    "count below 0": (lambda group, entry: entry.update(step=-1.0), "parameter 0 .* step is -1.0"),
    "count of NaN": (lambda group, entry: entry.update(step=tl.tensor(float("nan"))), "step is not a number"),
    "no moment": (lambda group, entry: entry.pop("exp_avg"), "missing exp_avg"),
    "no maximum": (lambda group, entry: group.update(amsgrad=True), "missing max_exp_avg_sq"),
    "no tensor": (lambda group, entry: entry.update(other=3), "other is int, not a Tensor"),
    "numbers twice": (lambda group, entry: group.update(params=[0, 0]), "the index 0 for two parameters"),
}


@pytest.mark.parametrize("case", NONSENSE)
def test_an_invalid_state_is_refused_and_changes_nothing(case: str) -> None:
    change, message = NONSENSE[case]
    params = [tl.ones(2, requires_grad=True), tl.ones(3, requires_grad=True)]
    optimizer = tl.optim.Adam(params)
    for param in params:
        param.sum().backward()
    optimizer.step()
    before = copy.deepcopy(optimizer.state_dict())
    state = copy.deepcopy(before)
    _with_change(change)(state)
    with pytest.raises(CheckpointError, match=message):
        optimizer.load_state_dict(state)
    assert repr(optimizer.state_dict()) == repr(before)
    optimizer.step()


def test_scheduler_entries_missing_in_the_file_stay() -> None:
    param = tl.ones(2, requires_grad=True)
    optimizer = tl.optim.SGD([param], lr=0.1, momentum=0.9)
    state = copy.deepcopy(optimizer.state_dict())
    scheduler = tl.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.5, total_steps=9)
    optimizer.load_state_dict(state)
    param.sum().backward()
    optimizer.step()
    scheduler.step()
    assert optimizer.param_groups[0]["max_lr"] == 0.5


SCHEDULES: dict[str, tuple[Any, dict[str, Any], str]] = {
    "words for a number": (lambda o: lr_scheduler.StepLR(o, 3), {"gamma": "x"}, "gamma is 'x'; expected a number"),
    "division by zero": (lambda o: lr_scheduler.StepLR(o, 3), {"step_size": 0}, "the next step fails: ZeroDivision"),
    "rates of no group": (lambda o: lr_scheduler.LambdaLR(o, lambda e: 1.0), {"base_lrs": []}, "base_lrs is"),
    "another word": (
        lambda o: lr_scheduler.CyclicLR(o, 0.1, 0.2),
        {"mode": "square"},
        "mode is 'square'",
    ),
    "phases of nothing": (
        lambda o: lr_scheduler.OneCycleLR(o, 0.1, 9),
        {"_schedule_phases": [{}, {}]},
        "_schedule_phases is {}; expected a dict of end_step",
    ),
    "phase without a rate": (
        lambda o: lr_scheduler.OneCycleLR(o, 0.1, 9),
        {"_schedule_phases": [dict.fromkeys(PHASE, "x") | {"end_step": 5.0}] * 2},
        "the next step fails: KeyError",
    ),
    "counts of no epochs": (lambda o: lr_scheduler.MultiStepLR(o, [2]), {"milestones": {1: "x"}}, "milestones is"),
    "NaN": (lambda o: lr_scheduler.ReduceLROnPlateau(o), {"best": float("nan")}, "best is nan"),
    "states of no schedules": (
        lambda o: lr_scheduler.ChainedScheduler([lr_scheduler.StepLR(o, 3)]),
        {"_schedulers": [{"gamma": None}]},
        "gamma is None",
    ),
}


@pytest.mark.parametrize("mode", ["min", "max"])
def test_a_plateau_takes_the_state_from_before_its_first_step(mode: str) -> None:
    worst = {"min": math.inf, "max": -math.inf}[mode]  # infinite in PyTorch's state, too
    scheduler = lr_scheduler.ReduceLROnPlateau(tl.optim.SGD([tl.ones(2, requires_grad=True)], lr=0.1), mode)
    state = scheduler.state_dict()
    scheduler.step(1.0)
    scheduler.load_state_dict(state)
    assert (scheduler.best, scheduler.mode_worse, scheduler.last_epoch) == (worst, worst, 0)


@pytest.mark.parametrize("case", SCHEDULES)
def test_a_scheduler_refuses_an_invalid_state(case: str) -> None:
    make, changes, message = SCHEDULES[case]
    param = tl.ones(2, requires_grad=True)
    optimizer = tl.optim.SGD([param], lr=0.1, momentum=0.9)
    scheduler = make(optimizer)
    param.sum().backward()
    optimizer.step()
    before = repr((scheduler.state_dict(), optimizer.state_dict()))
    with pytest.raises(CheckpointError, match=message):
        scheduler.load_state_dict(scheduler.state_dict() | changes)
    assert repr((scheduler.state_dict(), optimizer.state_dict())) == before


def test_loading_a_schedule_keeps_the_rates_of_an_optimizer_that_wraps_another() -> None:
    """The trial step must not reach the groups of the wrapped one through their property."""

    class Wrapper(tl.optim.Optimizer):
        def __init__(self, inner: tl.optim.Optimizer) -> None:
            self.optimizer = inner

        param_groups = property(
            lambda self: self.optimizer.param_groups,
            lambda self, groups: setattr(self.optimizer, "param_groups", groups),
        )
        defaults = property(lambda self: self.optimizer.defaults)

    inner = tl.optim.SGD([tl.ones(1, requires_grad=True)], lr=0.5)
    scheduler = lr_scheduler.ExponentialLR(Wrapper(inner), 0.5)
    scheduler.load_state_dict(scheduler.state_dict())
    assert inner.param_groups[0]["lr"] == 0.5


def test_a_schedule_at_its_end_can_be_loaded() -> None:
    """The next step raises an error of its own, and the state is a valid one."""
    optimizer = tl.optim.SGD([tl.ones(1, requires_grad=True)], lr=0.1)
    scheduler = lr_scheduler.OneCycleLR(optimizer, 0.1, 2, cycle_momentum=False)
    optimizer._opt_called = True
    for _ in range(2):
        scheduler.step()
    scheduler.load_state_dict(scheduler.state_dict())
    assert scheduler.last_epoch == 2
