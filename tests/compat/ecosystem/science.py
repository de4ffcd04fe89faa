"""Cases of packages for graphs, symmetries and operators."""

from __future__ import annotations

from typing import Any

import numpy as np
from comparison import case, filled, normal, trained


@case
def torch_geometric(torch: Any, rng: np.random.RandomState) -> list[Any]:
    """Six layers of message passing on one graph."""
    from torch_geometric import nn

    edges = torch.from_numpy(rng.randint(0, 8, (2, 20)))
    x, found = normal(torch, rng, 8, 5), []  # type: ignore[var-annotated]
    layers = [nn.GCNConv(5, 4), nn.GATConv(5, 4, heads=2), nn.SAGEConv(5, 4), nn.GraphConv(5, 4)]
    layers += [nn.GINConv(torch.nn.Linear(5, 4)), nn.TransformerConv(5, 4)]
    for layer in layers:
        filled(torch, layer, rng)
        found += trained(torch, layer, lambda layer=layer: layer(x, edges))  # type: ignore[misc]
    return found


@case
def e3nn(torch: Any, rng: np.random.RandomState) -> list[Any]:
    """Spherical harmonics, a tensor product and a linear layer of irreducible representations."""
    from e3nn import o3

    x = normal(torch, rng, 4, 3)
    product = filled(torch, o3.FullyConnectedTensorProduct("2x0e + 1o", "0e + 1o", "1x0e + 2x1o"), rng)
    y = normal(torch, rng, 4, 5)
    harmonics = o3.spherical_harmonics([0, 1, 2], x, normalize=True)
    return [harmonics, *trained(torch, product, lambda: product(y, harmonics[:, :4]))]


@case
def neuralop(torch: Any, rng: np.random.RandomState) -> list[Any]:
    """A Fourier neural operator in two dimensions."""
    from neuralop.models import FNO

    model = FNO(n_modes=(4, 4), hidden_channels=8, in_channels=1, out_channels=1, n_layers=2)
    with torch.no_grad():
        for _, p in sorted(model.named_parameters()):
            values = rng.standard_normal((*p.shape, 2)).astype("float32") * 0.1
            p.copy_(
                torch.view_as_complex(torch.from_numpy(values)) if p.is_complex() else torch.from_numpy(values[..., 0])
            )
    x = normal(torch, rng, 2, 1, 12, 12)
    return trained(torch, model, lambda: model(x))


@case
def xitorch(torch: Any, rng: np.random.RandomState) -> list[Any]:
    """The root of a function, and the lowest eigenvalues of a matrix, with gradients."""
    import xitorch
    from xitorch.linalg import symeig
    from xitorch.optimize import rootfinder

    a = torch.from_numpy(rng.rand(3, 3)).requires_grad_()
    root = rootfinder(
        lambda y, a: torch.tanh(a @ y + 0.1) + y / 2.0, torch.zeros(3, 1, dtype=torch.float64), params=(a,)
    )
    values, _ = symeig(xitorch.LinearOperator.m(a @ a.T, is_hermitian=True), neig=2)
    (root.sum() + values.sum()).backward()
    return [root, values, a.grad]


@case
def tensorly(torch: Any, rng: np.random.RandomState) -> list[Any]:
    """The CP and Tucker decompositions of a tensor."""
    import tensorly
    from tensorly.decomposition import parafac, tucker

    tensorly.set_backend("pytorch")
    x = torch.from_numpy(rng.rand(4, 5, 6))
    cp, core = parafac(x, rank=2, init="svd", n_iter_max=20), tucker(x, rank=[2, 2, 2], n_iter_max=20)
    return [tensorly.cp_to_tensor(cp), tensorly.tucker_to_tensor(core)]


@case
def tensordict(torch: Any, rng: np.random.RandomState) -> list[Any]:
    """Trees of tensors: stacked, indexed, split and mapped, a module that reads keys, and files on disk."""
    import tempfile

    from tensordict import TensorDict, lazy_stack
    from tensordict.nn import TensorDictModule, TensorDictSequential

    def tree() -> Any:
        return TensorDict({"a": normal(torch, rng, 4, 3), "b": {"c": normal(torch, rng, 4, 2, 5)}}, batch_size=[4])

    first, second = tree(), tree()
    both = torch.stack([first, second], 1)
    parts = [both, both[1:3, 0], both.reshape(8), torch.cat([first, second]), lazy_stack([first, second]).contiguous()]
    parts += [(first + second).apply(lambda x: x.sin()), first.split(2)[1], both.gather(1, torch.zeros(4, 1).long())]
    layer = filled(torch, torch.nn.Linear(3, 3), rng)
    modules = [TensorDictModule(layer, ["a"], ["h"]), TensorDictModule(torch.tanh, ["h"], [("b", "d")])]
    found = TensorDictSequential(*modules)(first.clone())
    found["b", "d"].square().sum().backward()
    parts.append(found.detach())
    with tempfile.TemporaryDirectory() as folder:
        first.memmap(folder)
        parts.append(TensorDict.load_memmap(folder))
    return [leaf for part in parts for _, leaf in sorted(part.flatten_keys().items())] + [layer.weight.grad]


@case
def tensordict__functional(torch: Any, rng: np.random.RandomState) -> list[Any]:
    """Weights as a TensorDict: swapped into a module, and an ensemble of three by vmap over them, with gradients."""
    from tensordict import TensorDict, from_module

    x = normal(torch, rng, 4, 3)
    layers = [filled(torch, torch.nn.Linear(3, 2), rng) for _ in range(3)]
    weights = TensorDict.from_modules(*layers, as_module=False, lazy_stack=False)
    module = layers[0]

    def call(weights: Any, x: Any) -> Any:
        with weights.to_module(module):
            return module(x)

    outputs = torch.vmap(call, (0, None))(weights, x)
    outputs.square().mean().backward()
    doubled = from_module(layers[1]).data * 2
    mapped = torch.vmap(lambda row: row.apply(lambda leaf: leaf.cumsum(0)))(TensorDict({"a": x}, batch_size=[4]))
    gradients = [leaf.grad for _, leaf in sorted(weights.items())]
    return [outputs, *gradients, call(doubled, x), mapped["a"]]
