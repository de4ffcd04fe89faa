"""Exact regression: the marginal likelihood with gradients, and a prediction."""

import gpytorch
import torch
from prelude import image, show

x = torch.linspace(0, 1, 12)
y = torch.sin(6 * x) + 0.1 * image(12)


class Model(gpytorch.models.ExactGP):
    """A Gaussian process."""

    def __init__(self, likelihood):
        super().__init__(x, y, likelihood)
        self.mean = gpytorch.means.ConstantMean()
        self.covariance = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel())

    def forward(self, at):
        return gpytorch.distributions.MultivariateNormal(self.mean(at), self.covariance(at))


likelihood = gpytorch.likelihoods.GaussianLikelihood()
model = Model(likelihood).train()
loss = -gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)(model(x), y)
loss.backward()
model.eval()
likelihood.eval()
show(loss, *(p.grad for p in model.parameters()), likelihood(model(torch.tensor([0.25]))).mean)
