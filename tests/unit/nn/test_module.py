"""nn.Module: assigned parts are visible through every accessor; loading is all or nothing."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import tallow as tl
from tallow.errors import (
    ArgumentError,
    ArgumentTypeError,
    CheckpointError,
    DeviceError,
    GraphError,
    InvalidKeyError,
    MissingNameError,
    ShapeError,
)
from tallow.nn import (
    Buffer,
    Dropout,
    Embedding,
    LayerNorm,
    Linear,
    Module,
    ModuleDict,
    ModuleList,
    Parameter,
    RMSNorm,
    Sequential,
    init,
)


class Block(Module):
    """A module with one of everything."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = Linear(3, 2)
        self.scale = Parameter(tl.ones(2))
        self.register_buffer("steps", tl.zeros(1, dtype=tl.int64))
        self.register_buffer("scratch", tl.zeros(1), persistent=False)
        self.absent = None
        self.register_parameter("no_bias", None)

    def forward(self, x: tl.Tensor) -> tl.Tensor:
        return self.linear(x) * self.scale


def nested() -> Sequential:
    return Sequential(Block(), ModuleList([Linear(2, 2, bias=False)]))


NAMES = ["0.scale", "0.linear.weight", "0.linear.bias", "1.0.weight"]


def test_names() -> None:
    model = nested()
    assert [name for name, _ in model.named_parameters()] == NAMES
    assert [name for name, _ in model.named_buffers()] == ["0.steps", "0.scratch"]
    assert [name for name, _ in model.named_modules()] == ["", "0", "0.linear", "1", "1.0"]
    assert [name for name, _ in model.named_children()] == ["0", "1"]
    assert set(model.state_dict()) == {*NAMES, "0.steps"}
    assert model.get_parameter("0.linear.weight") is model[0].linear.weight
    assert model.get_buffer("0.steps") is model[0].steps
    assert model.get_submodule("1.0") is model[1][0]
    assert model.get_submodule("") is model


def test_missing_names_raise() -> None:
    model = nested()
    for ask in (
        lambda: model.get_parameter("0.linear.wait"),
        lambda: model.get_submodule("0.conv"),
        lambda: model.conv,
    ):
        with pytest.raises(MissingNameError, match=r"wait|conv"):
            ask()
    assert not hasattr(model, "conv")


def test_shared_parts_are_counted_once() -> None:
    layer = Linear(2, 2)
    model = Sequential(layer, layer)
    assert len(list(model.parameters())) == 2
    assert len(list(model.modules())) == 2
    assert set(model.state_dict()) == {"0.weight", "0.bias", "1.weight", "1.bias"}


def test_assignment_registers_and_replaces() -> None:
    block = Block()
    block.scale = Parameter(tl.zeros(2))
    assert block._parameters["scale"] is block.scale
    with pytest.raises(ArgumentTypeError, match="expected a Parameter or None"):
        block.scale = tl.zeros(2)
    with pytest.raises(ArgumentTypeError, match="expected a Module or None"):
        block.linear = 3
    with pytest.raises(ArgumentTypeError, match="expected a Tensor"):
        block.steps = 3
    block.scale = None
    assert "scale" not in dict(block.named_parameters())
    block.absent = Parameter(tl.ones(1))
    assert "absent" in dict(block.named_parameters())
    block.absent = Linear(1, 1)
    assert "absent" not in block._parameters
    del block.absent
    assert not hasattr(block, "absent")
    block.mean = Buffer(tl.zeros(2), persistent=False)
    assert "mean" in dict(block.named_buffers())
    assert "mean" not in block.state_dict()


def test_init_must_come_first() -> None:
    class Forgetful(Module):
        def __init__(self) -> None:
            self.plain = 3
            self.weight = Parameter(tl.ones(1))

    with pytest.raises(ArgumentError, match=r"Forgetful.weight was assigned before Module.__init__"):
        Forgetful()


@pytest.mark.parametrize("register", ["register_buffer", "register_module", "add_module", "register_parameter"])
@pytest.mark.parametrize("name", ["", "a.b", "forward", "training"])
def test_invalid_names(register: str, name: str) -> None:
    """The error is a KeyError, as PyTorch's, but with its message in plain text."""
    with pytest.raises(InvalidKeyError, match=r"^(?!['\"])") as error_info:
        getattr(Block(), register)(name, None)
    assert isinstance(error_info.value, KeyError)
    with pytest.raises(TypeError, match="must be a string, not 3"):
        getattr(Block(), register)(3, None)


def test_a_name_has_one_kind() -> None:
    model = tl.nn.Linear(2, 2)
    model.register_buffer("shift", tl.zeros(1))
    model.register_buffer("shift", tl.ones(1))  # of its own kind, a name may be used again
    model.register_parameter("weight", Parameter(tl.ones(2, 2)))
    with pytest.raises(InvalidKeyError, match="Linear already has an attribute 'weight'"):
        model.register_buffer("weight", tl.zeros(2, 2))
    with pytest.raises(InvalidKeyError, match="already has an attribute 'shift'"):
        model.register_parameter("shift", None)
    with pytest.raises(InvalidKeyError, match="already has an attribute 'bias'"):
        model.add_module("bias", tl.nn.ReLU())
    model.bias = tl.nn.Buffer(tl.zeros(2))  # an assignment replaces, as in PyTorch
    assert list(model.state_dict()) == ["weight", "shift", "bias"]


def test_state_dict_shares_memory_and_loads_back() -> None:
    model, other = nested(), nested()
    other.load_state_dict(model.state_dict())
    x = tl.tensor([[1.0, -2.0, 0.5]])
    assert model[0](x).tolist() == other[0](x).tolist()
    model.state_dict()["0.scale"].array[...] = 7
    assert model[0].scale.tolist() == [7, 7]
    assert other[0].scale.tolist() == [1, 1]


def test_loading_reports_everything_at_once_and_changes_nothing() -> None:
    model = nested()
    before = {name: t.tolist() for name, t in model.state_dict().items()}
    state = {name: t.clone() + 1 for name, t in model.state_dict().items()}
    del state["0.scale"]
    state["1.0.weight"] = tl.zeros(3, 2)
    state["2.bias"] = tl.zeros(1)
    with pytest.raises(CheckpointError) as caught:
        model.load_state_dict(state, source="model.safetensors")
    assert str(caught.value).splitlines()[:4] == [
        "model.safetensors does not fit Sequential(): Missing key(s) in state_dict, Unexpected key(s) in state_dict",
        "  missing      0.scale",
        "  unexpected   2.bias",
        "  wrong shape  1.0.weight: file (3, 2), model (2, 2) (size mismatch for 1.0.weight)",
    ]
    assert isinstance(caught.value, RuntimeError)  # PyTorch's value
    assert {name: t.tolist() for name, t in model.state_dict().items()} == before


def test_loading_without_strict_returns_what_did_not_fit() -> None:
    model = nested()
    state = model.state_dict()
    state["extra"] = state.pop("0.scale")
    assert model.load_state_dict(state, strict=False) == (["0.scale"], ["extra"])
    with pytest.raises(CheckpointError, match="wrong shape"):
        model.load_state_dict({"0.scale": tl.zeros(3)}, strict=False)
    with pytest.raises(ArgumentTypeError, match="is list, not a Tensor"):
        model.load_state_dict({"0.scale": [1, 1]}, strict=False)  # type: ignore[dict-item]


def test_loading_converts_to_the_models_dtype_unless_it_assigns() -> None:
    layer = Linear(2, 2)
    state = {"weight": tl.ones(2, 2, dtype=tl.float64), "bias": tl.ones(2, dtype=tl.float64)}
    layer.load_state_dict(state)
    assert layer.weight.dtype is tl.float32
    layer.load_state_dict(state, assign=True)
    assert layer.weight.array is state["weight"].array
    assert isinstance(layer.weight, Parameter)
    assert layer.weight.requires_grad


def test_loading_into_a_recorded_graph_is_noticed() -> None:
    layer = Linear(2, 2)
    y = layer(tl.ones(1, 2, requires_grad=True))
    layer.load_state_dict(Linear(2, 2).state_dict())
    with pytest.raises(GraphError, match="inplace"):
        y.sum().backward()


def test_meta_module_has_shapes_and_no_memory() -> None:
    layer = Linear(20_000, 20_000, device="meta")  # 1.6 GB
    assert layer.weight.shape == (20_000, 20_000)
    assert layer.weight.device == tl.device("meta")
    x = tl.zeros(1, 20_000)
    with pytest.raises(DeviceError):
        layer(x)
    assert (layer.weight + 1).is_meta
    with pytest.raises(DeviceError, match="no data"):
        (layer.weight.sum() + 1).item()
    with pytest.raises(DeviceError, match="assign=True"):
        Linear(2, 2, device="meta").load_state_dict(Linear(2, 2).state_dict())
    with pytest.raises(DeviceError, match="no data"):
        layer.to("cpu")
    with pytest.raises(ShapeError, match="exceeds what this platform can address"):
        Linear(2**40, 2**40, device="meta")


def test_to_keeps_the_objects_and_converts_floats_only() -> None:
    block = Block()
    scale, steps = block.scale, block.steps
    scale.grad = tl.ones(2)
    assert block.to(tl.float64) is block
    assert block.scale is scale
    assert scale.dtype is tl.float64
    assert scale.grad is not None
    assert scale.grad.dtype is tl.float64
    assert steps.dtype is tl.int64
    assert block.half().scale.dtype is tl.float16
    assert block.to("cpu", dtype=tl.float32).scale.dtype is tl.float32
    assert block.to(tl.zeros(1, dtype=tl.float64)).scale.dtype is tl.float64
    with pytest.raises(ArgumentTypeError, match="not a floating-point dtype"):
        block.to(tl.int64)


def test_train_and_eval_reach_all() -> None:
    model = Sequential(Dropout(0.5), Sequential(Dropout(0.5)))
    assert all(not m.training for m in model.eval().modules())
    x = tl.ones(100)
    assert model(x).tolist() == x.tolist()
    model.train()
    dropped = model(x).numpy()
    assert set(np.unique(dropped)) <= {0.0, 4.0}
    assert 0 < (dropped == 0).sum() < 100


def test_gradients_reach_parameters_and_are_cleared() -> None:
    block = Block()
    block(tl.ones(1, 3)).sum().backward()
    assert all(p.grad is not None for p in block.parameters())
    block.zero_grad(set_to_none=False)
    assert block.scale.grad is not None
    assert block.scale.grad.tolist() == [0, 0]
    block.zero_grad()
    assert block.scale.grad is None
    assert not any(p.requires_grad for p in block.requires_grad_(False).parameters())


def test_hooks_see_and_replace() -> None:
    layer = Sequential()
    seen: list[Any] = []
    first = layer.register_forward_pre_hook(lambda module, args: (args[0] + 1,))
    second = layer.register_forward_hook(lambda module, args, result: seen.append((args, result)))
    third = layer.register_forward_hook(lambda module, args, result: result * 10)
    assert layer.has_hooks()
    assert layer(1) == 20
    assert seen == [((2,), 2)]
    for handle in (first, second, third):
        handle.remove()
    assert layer(1) == 1
    assert not layer.has_hooks()


def test_hooks_with_keyword_arguments_and_in_front() -> None:
    class Scaled(Module):
        def forward(self, x: int, *, by: int) -> int:
            return x * by

    layer = Scaled()
    seen: list[Any] = []
    layer.register_forward_pre_hook(lambda module, args: (args[0] + 1,))
    layer.register_forward_pre_hook(lambda module, args, kwargs: ((args[0] * 2,), {"by": 10}), with_kwargs=True)
    layer.register_forward_pre_hook(lambda module, args: (args[0] + 100,), prepend=True)
    layer.register_forward_hook(lambda module, args, kwargs, result: seen.append((args, kwargs)), with_kwargs=True)
    layer.register_forward_hook(lambda module, args, result: result + 1, prepend=True)
    assert layer(1, by=3) == 2041  # ((1 + 100) + 1) · 2 · 10 + 1
    assert seen == [((204,), {"by": 10})]


def test_apply_goes_children_first() -> None:
    model = nested()
    order: list[Module] = []
    model.apply(order.append)
    assert order == [model[0].linear, model[0], model[1][0], model[1], model]


def test_copies_and_pickles_are_independent() -> None:
    model = nested()
    for duplicate in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert [name for name, _ in duplicate.named_parameters()] == NAMES
        assert duplicate[0].scale.tolist() == [1, 1]
        duplicate[0].scale.array[...] = 5
        assert model[0].scale.tolist() == [1, 1]


def test_repr_equals_that_of_pytorch() -> None:
    assert repr(Sequential(Linear(3, 2), Dropout())) == (
        "Sequential(\n  (0): Linear(in_features=3, out_features=2, bias=True)\n  (1): Dropout(p=0.5, inplace=False)\n)"
    )
    assert repr(ModuleList([Linear(1, 1), Linear(1, 1), Linear(2, 1)])) == (
        "ModuleList(\n"
        "  (0-1): 2 x Linear(in_features=1, out_features=1, bias=True)\n"
        "  (2): Linear(in_features=2, out_features=1, bias=True)\n"
        ")"
    )


def test_module_list_is_a_list() -> None:
    a, b, c, d = (Linear(1, 1) for _ in range(4))
    layers = ModuleList([a, b])
    layers.append(c).insert(0, d)
    assert list(layers) == [d, a, b, c]
    assert layers[-1] is c
    assert list(layers[1:3]) == [a, b]
    layers[0] = b
    assert list(layers) == [b, a, b, c]
    del layers[1:3]
    assert list(layers) == [b, c]
    assert [name for name, _ in layers.named_children()] == ["0", "1"]
    assert list(layers + ModuleList([a])) == [b, c, a]
    assert c in layers
    assert a not in layers
    with pytest.raises(IndexError):
        layers[2]


def test_sequential_takes_a_dict_of_names_and_slices() -> None:
    model = Sequential({"first": Linear(2, 2), "second": Linear(2, 1)})
    assert model.first is model[0]
    assert type(model[:1]) is Sequential
    assert model(tl.ones(1, 2)).shape == (1, 1)


def test_module_dict_is_a_dict() -> None:
    layers = ModuleDict({"a": Linear(1, 1)})
    layers["b"] = Linear(1, 1)
    assert list(layers) == list(layers.keys()) == ["a", "b"]
    assert "b" in layers
    assert layers.pop("a") is not layers["b"]
    assert [name for name, _ in layers.named_parameters()] == ["b.weight", "b.bias"]
    layers.clear()
    assert len(layers) == 0


def test_layers_start_as_pytorchs_do() -> None:
    """Bounds and moments of torch.nn's defaults; 10,000 samples determine a standard deviation to 3 %."""
    tl.manual_seed(0)
    linear = Linear(100, 100)
    assert 0.099 < np.abs(linear.weight.detach().numpy()).max() <= 0.1
    assert np.abs(linear.bias.detach().numpy()).max() <= 0.1
    embedding = Embedding(100, 100, padding_idx=-1)
    assert abs(embedding.weight.detach().numpy()[:-1].std() - 1) < 0.03
    assert not embedding.weight.detach().numpy()[99].any()
    for norm in (LayerNorm(3), RMSNorm(3)):
        assert norm.weight.tolist() == [1, 1, 1]
    assert LayerNorm(3).bias.tolist() == [0, 0, 0]
    assert LayerNorm((2, 3), bias=False).bias is None
    assert RMSNorm(3, elementwise_affine=False).weight is None


def test_layers_refuse_invalid_sizes() -> None:
    with pytest.raises(ArgumentError, match=r"p=1.5"):
        Dropout(1.5)
    with pytest.raises(ArgumentError, match="padding_idx=3"):
        Embedding(3, 2, padding_idx=3)
    with pytest.raises(NotImplementedError, match="Module has no forward"):
        Module()()
    with pytest.raises(ArgumentTypeError):
        Parameter([1.0])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("fill", "std"),
    [
        (lambda t: init.uniform_(t, -1, 1), 3**-0.5),
        (lambda t: init.normal_(t, 0, 2), 2),
        (lambda t: init.trunc_normal_(t), 0.8796),  # of a standard normal truncated at two
        (lambda t: init.xavier_uniform_(t), (2 / 300) ** 0.5),
        (lambda t: init.xavier_normal_(t, gain=3), 3 * (2 / 300) ** 0.5),
        (lambda t: init.kaiming_uniform_(t, a=5**0.5), (1 / 3 / 100) ** 0.5),
        (lambda t: init.kaiming_normal_(t, mode="fan_out", nonlinearity="relu"), (2 / 200) ** 0.5),
    ],
)
def test_init_has_the_spread_of_its_formula(fill: Any, std: float) -> None:
    """20,000 samples determine a standard deviation to 2 %."""
    tl.manual_seed(0)
    values = fill(tl.empty(200, 100)).numpy()
    assert abs(values.mean()) < 0.03 * std
    assert abs(values.std() / std - 1) < 0.02


def test_init_fills_and_refuses() -> None:
    assert init.eye_(tl.empty(2, 2)).tolist() == [[1, 0], [0, 1]]
    assert init.constant_(tl.empty(2), 3).tolist() == [3, 3]
    assert init.calculate_gain("leaky_relu", 1) == pytest.approx(1)
    with pytest.raises(RuntimeError, match="at least 2 dims"):
        init.xavier_normal_(tl.empty(3))
    with pytest.raises(ValueError, match="unknown nonlinearity"):
        init.calculate_gain("step")


def test_forward_t_is_in_the_mode_of_the_call_and_leaves_every_part_in_its_own() -> None:
    model = Sequential(Linear(2, 2), Dropout(0.5), Sequential(Dropout(0.9)))
    model[2].eval()
    x = tl.ones(50, 2)
    tl.manual_seed(0)
    assert (model.forward_t(x, train=True) == 0).any()
    assert (model.forward_t(x, train=False) == model[0](x)).all()
    with pytest.raises(ShapeError):
        model.forward_t(tl.ones(3), train=False)
    assert [module.training for module in model.modules()] == [True, True, True, False, False]


@pytest.mark.parametrize(("model", "saved"), [("", "module."), ("", "_orig_mod.module."), ("0.", "")])
def test_names_that_differ_by_a_prefix_are_said_to(model: str, saved: str) -> None:
    module: Any = tl.nn.Linear(2, 2)
    for _ in filter(None, model.split(".")):
        module = tl.nn.Sequential(module)
    state = {f"{saved}{name}": tl.ones(2, 2) if name == "weight" else tl.ones(2) for name in ("weight", "bias")}
    with pytest.raises(CheckpointError) as caught:
        module.load_state_dict(state)
    hint = str(caught.value).partition("hint: ")[2]
    comprehension = hint[hint.index("{") :]
    module.load_state_dict(eval(comprehension, {"state": state}))
    assert repr(model or saved) in hint
