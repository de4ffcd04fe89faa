"""tallow.nn.utils compared with torch.nn.utils: clipping, vectors of parameters, weight normalization."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest
from cases import normal

import tallow as tl

torch = pytest.importorskip("torch", reason="PyTorch, the reference of these tests, is not installed")

RTOL = 1e-10
GRADIENTS = [3 * normal(2, 3), normal(4), normal()]


def parameters(lib: Any, gradients: list[Any] = GRADIENTS) -> list[Any]:
    tensors = []
    for gradient in (*gradients, None):
        tensors.append(lib.nn.Parameter(lib.zeros(() if gradient is None else gradient.shape, dtype=lib.float64)))
        tensors[-1].grad = None if gradient is None else lib.from_numpy(np.array(gradient))
    return tensors


@pytest.mark.parametrize("max_norm", [1.0, 100.0])
@pytest.mark.parametrize("norm_type", [2.0, 1, float("inf"), 3.0])
def test_clip_grad_norm(norm_type: float, max_norm: float) -> None:
    def clip(lib: Any) -> list[Any]:
        tensors = parameters(lib)
        total = lib.nn.utils.clip_grad_norm_(iter(tensors), max_norm, norm_type)
        return [total.numpy(), *(p.grad.numpy() for p in tensors if p.grad is not None)]

    for mine, theirs in zip(clip(tl), clip(torch), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=RTOL)


def test_clip_grad_value() -> None:
    def clip(lib: Any) -> list[Any]:
        tensors = parameters(lib)
        lib.nn.utils.clip_grad_value_(tensors, 0.5)
        lib.nn.utils.clip_grad_value_(tensors[0], 0.1)
        return [p.grad.numpy() for p in tensors if p.grad is not None]

    for mine, theirs in zip(clip(tl), clip(torch), strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_norm_that_is_not_finite() -> None:
    for lib in (tl, torch):
        tensors = parameters(lib, [np.array([np.inf])])
        with pytest.raises(RuntimeError, match="norm"):
            lib.nn.utils.clip_grad_norm_(tensors, 1.0, error_if_nonfinite=True)
        assert lib.nn.utils.clip_grad_norm_(tensors, 1.0).item() == np.inf


def test_parameters_as_a_vector_and_back() -> None:
    def through(lib: Any) -> list[Any]:
        tensors = parameters(lib)
        vector = lib.nn.utils.parameters_to_vector(tensors)
        values = lib.arange(float(len(vector)), dtype=lib.float64)
        lib.nn.utils.vector_to_parameters(values, tensors)
        return [vector.detach().numpy(), *(p.detach().numpy() for p in tensors)]

    for mine, theirs in zip(through(tl), through(torch), strict=True):
        np.testing.assert_array_equal(mine, theirs)


@pytest.mark.filterwarnings("ignore:`torch.nn.utils.weight_norm` is deprecated")
@pytest.mark.parametrize("dim", [0, 1, -1, None])
@pytest.mark.parametrize(
    ("name", "args", "x"), [("Linear", (4, 3), normal(2, 4)), ("Conv1d", (4, 3, 2), normal(2, 4, 5))]
)
def test_weight_norm(name: str, args: tuple[int, ...], x: Any, dim: int | None) -> None:
    torch.manual_seed(0)
    plain = getattr(torch.nn, name)(*args).double()
    weights = {key: t.numpy().copy() for key, t in plain.state_dict().items()}
    mine = getattr(tl.nn, name)(*args).double()
    mine.load_state_dict({key: tl.from_numpy(w) for key, w in weights.items()})

    def through(lib: Any, layer: Any) -> Any:
        lib.nn.utils.weight_norm(layer, "weight", dim)
        y = layer(lib.from_numpy(x.copy()))
        (y * y).sum().backward()
        grads = {key: p.grad.numpy() for key, p in layer.named_parameters()}
        state = {key: t.numpy().copy() for key, t in layer.state_dict().items()}
        lib.nn.utils.remove_weight_norm(layer)
        return y.detach().numpy(), grads, state, {k: t.numpy() for k, t in layer.state_dict().items()}

    (y, *mine_dicts), (y_torch, *their_dicts) = through(tl, mine), through(torch, plain)
    np.testing.assert_allclose(y, y_torch, rtol=1e-9)
    for own, theirs in zip(mine_dicts, their_dicts, strict=True):
        assert set(own) == set(theirs)
        for key in theirs:
            assert own[key].shape == theirs[key].shape
            np.testing.assert_allclose(own[key], theirs[key], rtol=1e-8, atol=1e-12, err_msg=key)


def network(lib: Any) -> Any:
    """Return layers whose weights are those of a fixed seed, all of different absolute value."""
    layers = lib.nn.Sequential(lib.nn.Linear(4, 3), lib.nn.Conv1d(2, 3, 2), lib.nn.Linear(3, 2)).double()
    random = np.random.RandomState(0)
    for _, p in sorted(layers.named_parameters()):
        p.data.copy_(lib.from_numpy(random.standard_normal(tuple(p.shape))))
    return layers


def prune_linear(lib: Any, prune: Any, layers: Any) -> Any:
    return prune.l1_unstructured(layers[0], "weight", 0.5)


def prune_twice(lib: Any, prune: Any, layers: Any) -> Any:
    prune.l1_unstructured(layers[0], "weight", 4)
    return prune.l1_unstructured(layers[0], "weight", 0.25)


def prune_channels(lib: Any, prune: Any, layers: Any) -> Any:
    prune.ln_structured(layers[1], "weight", 0.5, n="fro", dim=1)
    return prune.ln_structured(layers[0], "weight", 1, n=1, dim=0)


def prune_by_scores(lib: Any, prune: Any, layers: Any) -> Any:
    scores = lib.from_numpy(np.arange(12.0).reshape(3, 4))
    return prune.l1_unstructured(layers[0], "weight", 5, importance_scores=scores)


def prune_by_a_mask(lib: Any, prune: Any, layers: Any) -> Any:
    prune.identity(layers[0], "bias")
    return prune.custom_from_mask(layers[0], "weight", lib.from_numpy(np.eye(3, 4)))


def prune_globally(lib: Any, prune: Any, layers: Any) -> Any:
    prune.l1_unstructured(layers[0], "weight", 3)
    parts = [(layers[0], "weight"), (layers[1], "weight"), (layers[2], "bias")]
    return prune.global_unstructured(parts, prune.L1Unstructured, amount=0.4)


def prune_by_classes(lib: Any, prune: Any, layers: Any) -> Any:
    class Negative(prune.BasePruningMethod):  # type: ignore[misc]
        PRUNING_TYPE = "global"

        def compute_mask(self, t: Any, default_mask: Any) -> Any:
            return default_mask * (t > -0.5)

    Negative.apply(layers[0], "weight")
    prune.LnStructured.apply(layers[0], "weight", 1, n=2, dim=0)
    prune.LnStructured.apply(layers[1], "weight", 1, n=1, dim=0)
    prune.LnStructured.apply(layers[1], "weight", 0.5, n=1, dim=1)
    prune.L1Unstructured.apply(layers[1], "weight", 2)
    methods = [type(method).__name__ for method in next(iter(layers[1]._forward_pre_hooks.values()))]
    assert methods == ["LnStructured", "LnStructured", "L1Unstructured"]


@pytest.mark.parametrize(
    "program",
    [prune_linear, prune_twice, prune_channels, prune_by_scores, prune_by_a_mask, prune_globally, prune_by_classes],
)
def test_pruning(program: Any) -> None:
    layers, copied, theirs = network(tl), network(tl), network(torch)
    for lib, modules in ((tl, layers), (tl, copied), (torch, theirs)):
        program(lib, importlib.import_module(f"{lib.__name__}.nn.utils.prune"), modules)
    assert list(layers.state_dict()) == list(theirs.state_dict())
    for mine, expected in zip(layers.state_dict().values(), theirs.state_dict().values(), strict=True):
        np.testing.assert_array_equal(mine, expected)
    for i, value in ((0, normal(2, 4)), (1, normal(1, 2, 5)), (2, normal(2, 3))):
        expected = theirs[i](torch.from_numpy(value)).detach()
        np.testing.assert_allclose(layers[i](tl.from_numpy(value)).detach(), expected, rtol=RTOL)
    for i in range(3):
        for name in [name for name in layers[i]._parameters if name.endswith("_orig")]:
            tl.nn.utils.prune.remove(copied[i], name.removesuffix("_orig"))
            torch.nn.utils.prune.remove(theirs[i], name.removesuffix("_orig"))
    assert tl.nn.utils.prune.is_pruned(layers)
    assert not tl.nn.utils.prune.is_pruned(copied)
    for name, value in theirs.state_dict().items():
        np.testing.assert_array_equal(copied.state_dict()[name], value)


def test_random_pruning_drops_the_amount() -> None:
    prune, layers = tl.nn.utils.prune, network(tl)
    prune.random_unstructured(layers[0], "weight", 5)
    assert int((layers[0].weight_mask == 0).sum()) == 5
    prune.random_structured(layers[1], "weight", 1, dim=1)
    assert sorted(layers[1].weight_mask.mean((0, 2)).tolist()) == [0.0, 1.0]
    prune.global_unstructured([(layers[2], "weight"), (layers[2], "bias")], prune.RandomUnstructured, amount=0.5)
    assert int((layers[2].weight_mask == 0).sum() + (layers[2].bias_mask == 0).sum()) == 4


@pytest.mark.parametrize("amount", [-1, 1.5, 13, True])
def test_amounts_that_cannot_be_pruned(amount: Any) -> None:
    with pytest.raises(ValueError, match="amount"):
        tl.nn.utils.prune.l1_unstructured(network(tl)[0], "weight", amount)


def test_a_refused_pruning_changes_nothing() -> None:
    prune, layer = tl.nn.utils.prune, network(tl)[0]
    prune.l1_unstructured(layer, "weight", 2)
    for dim, name, error in ((5, "weight", IndexError), (0, "bias", ValueError)):
        with pytest.raises(error):
            prune.ln_structured(layer, name, 1, 2, dim)
    with pytest.raises(ValueError, match="more than"):
        prune.l1_unstructured(layer, "weight", 99)
    assert prune.is_pruned(layer)
    assert "bias" in dict(layer.named_parameters())


def test_names_that_cannot_be_pruned() -> None:
    with pytest.raises(ValueError, match="not pruned"):
        tl.nn.utils.prune.remove(network(tl)[0], "weight")
    with pytest.raises(ValueError, match="no parameter"):
        tl.nn.utils.prune.custom_from_mask(network(tl)[0], "weights", tl.ones(3, 4))


def test_fused_batch_normalization() -> None:
    for lib in (tl, torch):
        fusion = lib.nn.utils
        layers, bn = network(lib).eval(), lib.nn.BatchNorm1d(3).double().eval()
        for value in (bn.weight, bn.bias, bn.running_mean, bn.running_var):
            value.data.copy_(lib.from_numpy(np.array([0.5, 1.5, 2.0])))
        x, y = lib.from_numpy(normal(2, 2, 5)), lib.from_numpy(normal(2, 4))
        fused = fusion.fuse_conv_bn_eval(layers[1], bn)(x), fusion.fuse_linear_bn_eval(layers[0], bn)(y)
        for mine, expected in zip(fused, (bn(layers[1](x)), bn(layers[0](y))), strict=True):
            np.testing.assert_allclose(mine.detach(), expected.detach(), rtol=1e-9)
        statistics = bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias
        folded = lib.nn.utils.fusion.fuse_linear_bn_weights(layers[0].weight, None, *statistics)
        expected = lib.nn.functional.batch_norm(y @ layers[0].weight.T, *statistics[:2], bn.weight, bn.bias)
        np.testing.assert_allclose((y @ folded[0].T + folded[1]).detach(), expected.detach(), rtol=1e-9)
        with pytest.raises((ValueError, AssertionError)):
            fusion.fuse_conv_bn_eval(layers[1], bn.train())
