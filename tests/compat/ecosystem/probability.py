"""Cases of packages for distributions, flows, Gaussian processes and differential equations."""

from __future__ import annotations

from typing import Any
from unittest import mock

import numpy as np
from comparison import case, filled, normal, trained


@case
def gpytorch(torch: Any, rng: np.random.RandomState) -> list[Any]:
    """Exact regression: the marginal likelihood, five steps of Adam, and predictions."""
    import gpytorch

    x = torch.linspace(0, 1, 20)
    y = torch.sin(x * 6) + 0.1 * normal(torch, rng, 20)

    class Model(gpytorch.models.ExactGP):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__(x, y, gpytorch.likelihoods.GaussianLikelihood())
            self.mean_module = gpytorch.means.ConstantMean()
            self.covar_module = gpytorch.kernels.ScaleKernel(gpytorch.kernels.MaternKernel(nu=2.5))

        def forward(self, x: Any) -> Any:
            return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))

    model = Model()
    objective = gpytorch.mlls.ExactMarginalLogLikelihood(model.likelihood, model)
    optimizer, found = torch.optim.Adam(model.parameters(), lr=0.1), []
    for _ in range(5):
        optimizer.zero_grad()
        loss = -objective(model(x), y)
        loss.backward()
        found += [loss.detach(), *(p.grad.clone() for p in model.parameters())]
        optimizer.step()
    model.eval()
    predicted = model.likelihood(model(torch.linspace(0.05, 1.2, 7)))
    return [*found, predicted.mean, predicted.variance]


@case
def linear_operator(torch: Any, rng: np.random.RandomState) -> list[Any]:
    """Solve, determinant and root of a low-rank matrix plus a diagonal, with gradients."""
    from linear_operator.operators import DiagLinearOperator, RootLinearOperator

    root, diagonal = normal(torch, rng, 6, 3).requires_grad_(), (torch.rand(6) * 0 + 1.5).requires_grad_()
    matrix, right = RootLinearOperator(root) + DiagLinearOperator(diagonal), normal(torch, rng, 6, 2)
    found = [matrix.solve(right), matrix.logdet(), matrix.to_dense()]
    sum(value.sum() for value in found).backward()
    return [*found, root.grad, diagonal.grad]


@case
def pyro(torch: Any, rng: np.random.RandomState) -> list[Any]:
    """Stochastic variational inference: ten steps with a guide of AutoNormal."""
    import pyro
    import pyro.distributions as dist
    from pyro.infer import SVI, Trace_ELBO
    from pyro.infer.autoguide import AutoNormal

    pyro.clear_param_store()
    x = normal(torch, rng, 12, 3)
    y = x @ torch.tensor([1.0, -2.0, 0.5])

    def model(x: Any, y: Any) -> None:
        weight = pyro.sample("weight", dist.Normal(torch.zeros(3), torch.ones(3)).to_event(1))
        scale = pyro.sample("scale", dist.LogNormal(0.0, 1.0))
        with pyro.plate("data", 12):
            pyro.sample("y", dist.Normal(x @ weight, scale), obs=y)

    def rsample(self: Any, sample_shape: Any = ()) -> Any:
        return self.loc + normal(torch, rng, *self._extended_shape(sample_shape)) * self.scale

    svi = SVI(model, AutoNormal(model), pyro.optim.Adam({"lr": 0.05}), Trace_ELBO())
    # The libraries draw different numbers.
    with mock.patch.multiple(torch.distributions.Normal, rsample=rsample, sample=torch.no_grad()(rsample)):
        losses = [svi.step(x, y) for _ in range(10)]
    return [*losses, *(value for _, value in sorted(pyro.get_param_store().items()))]


@case
def botorch(torch: Any, rng: np.random.RandomState) -> list[Any]:
    """A Gaussian process, its posterior, and the expected improvement with its gradient."""
    from botorch.acquisition import LogExpectedImprovement, UpperConfidenceBound
    from botorch.models import SingleTaskGP

    x = torch.from_numpy(rng.rand(10, 2))
    y = (x - 0.4).square().sum(-1, keepdim=True)
    model = SingleTaskGP(x, y).eval()
    at = torch.from_numpy(rng.rand(4, 1, 2)).requires_grad_()
    posterior = model.posterior(at)
    values = [LogExpectedImprovement(model, best_f=0.1)(at), UpperConfidenceBound(model, beta=0.2)(at)]
    sum(value.sum() for value in values).backward()
    return [posterior.mean, posterior.variance, *values, at.grad]


@case
def zuko(torch: Any, rng: np.random.RandomState) -> list[Any]:
    """A masked autoregressive flow, and a neural spline flow."""
    import zuko

    found: list[Any] = []
    for kind in (zuko.flows.MAF, zuko.flows.NSF):
        flow = filled(torch, kind(features=3, context=2, transforms=2, hidden_features=[16]), rng)
        for buffer in flow.buffers():  # the scale of the base distribution is positive
            if buffer.is_floating_point():
                buffer.abs_()
        x, context = normal(torch, rng, 5, 3), normal(torch, rng, 5, 2)
        found += trained(torch, flow, lambda f=flow, x=x, c=context: -f(c).log_prob(x).mean())  # type: ignore[misc]
        with torch.no_grad():
            found.append(flow(context).transform.inv(x))
    return found


@case
def nflows(torch: Any, rng: np.random.RandomState) -> list[Any]:
    """A masked autoregressive flow with rational-quadratic splines."""
    from nflows.distributions import StandardNormal
    from nflows.flows import Flow
    from nflows.transforms import CompositeTransform, ReversePermutation
    from nflows.transforms.autoregressive import MaskedPiecewiseRationalQuadraticAutoregressiveTransform as Spline

    layers = [Spline(features=3, hidden_features=8, tails="linear", tail_bound=3), ReversePermutation(features=3)]
    flow = filled(torch, Flow(CompositeTransform(layers), StandardNormal([3])), rng)
    x = normal(torch, rng, 6, 3)
    return trained(torch, flow, lambda: -flow.log_prob(x).mean())


@case
def normflows(torch: Any, rng: np.random.RandomState) -> list[Any]:
    """Real NVP."""
    import normflows as nf

    layers: list[Any] = []
    for _ in range(2):
        layers += [nf.flows.AffineCouplingBlock(nf.nets.MLP([1, 8, 2])), nf.flows.Permute(2, mode="swap")]
    model = filled(torch, nf.NormalizingFlow(nf.distributions.DiagGaussian(2), layers), rng)
    x = normal(torch, rng, 6, 2)
    return trained(torch, model, lambda: model.forward_kld(x))


@case
def torchdiffeq(torch: Any, rng: np.random.RandomState) -> list[Any]:
    """A neural differential equation, by the adjoint method and directly."""
    from torchdiffeq import odeint, odeint_adjoint

    class Field(torch.nn.Module):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.layers = torch.nn.Sequential(torch.nn.Linear(2, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2))

        def forward(self, t: Any, y: Any) -> Any:
            return self.layers(y) * torch.cos(t)

    found: list[Any] = []
    for solve, method in ((odeint, "dopri5"), (odeint_adjoint, "dopri5"), (odeint, "rk4")):
        field, y0, t = filled(torch, Field(), rng), normal(torch, rng, 3, 2), torch.linspace(0, 1, 4)
        found += trained(torch, field, lambda s=solve, f=field, y=y0, t=t, m=method: s(f, y, t, method=m))  # type: ignore[misc]
    return found


@case
def torchsde(torch: Any, rng: np.random.RandomState) -> list[Any]:
    """A stochastic differential equation along given noise."""
    import torchsde

    class Equation(torch.nn.Module):  # type: ignore[misc,name-defined]
        noise_type, sde_type = "diagonal", "ito"

        def __init__(self) -> None:
            super().__init__()
            self.drift = torch.nn.Linear(2, 2)

        def f(self, t: Any, y: Any) -> Any:
            return self.drift(y)

        def g(self, t: Any, y: Any) -> Any:
            return 0.3 * y

    equation, y0, times = filled(torch, Equation(), rng), normal(torch, rng, 3, 2), torch.linspace(0, 1, 5)
    noise = normal(torch, rng, 3, 2)

    def path(ta: Any, tb: Any = None, **options: Any) -> Any:
        return noise * (torch.as_tensor(tb) - torch.as_tensor(ta))

    path.shape, path.dtype, path.device = (3, 2), torch.float32, torch.device("cpu")  # type: ignore[attr-defined]
    path.levy_area_approximation = "none"  # type: ignore[attr-defined]
    return trained(torch, equation, lambda: torchsde.sdeint(equation, y0, times, bm=path, method="euler", dt=0.1))


@case
def torchcde(torch: Any, rng: np.random.RandomState) -> list[Any]:
    """A controlled differential equation along a cubic spline."""
    import torchcde

    class Field(torch.nn.Module):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(4, 12)

        def forward(self, t: Any, z: Any) -> Any:
            return self.layer(z).tanh().view(*z.shape[:-1], 4, 3)

    field, x, z0 = filled(torch, Field(), rng), normal(torch, rng, 2, 6, 3), normal(torch, rng, 2, 4)
    path = torchcde.CubicSpline(torchcde.hermite_cubic_coefficients_with_backward_differences(x))
    options = {"method": "rk4", "options": {"step_size": 0.5}, "adjoint": False}
    return trained(torch, field, lambda: torchcde.cdeint(X=path, z0=z0, func=field, t=path.interval, **options))
