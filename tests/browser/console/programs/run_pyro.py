"""The loss and gradients of a variational guide."""

import pyro
import pyro.distributions as dist
import torch
from prelude import image, show

y = image(20) + 2


def model():
    mean = pyro.sample("mean", dist.Normal(torch.tensor(0.0), torch.tensor(5.0)))
    with pyro.plate("data", len(y)):
        pyro.sample("y", dist.Normal(mean, 1.0), obs=y)


def guide():
    at = pyro.param("at", torch.tensor(1.5))
    pyro.sample("mean", dist.Delta(at))


svi = pyro.infer.SVI(model, guide, pyro.optim.Adam({"lr": 0.1}), pyro.infer.Trace_ELBO())
show(*(torch.tensor(svi.step()) for _ in range(3)), pyro.param("at"))
