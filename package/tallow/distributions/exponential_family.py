"""ExponentialFamily: distributions whose entropy and divergences follow from one function."""

from __future__ import annotations

from tallow.autograd import enable_grad, grad
from tallow.core.tensor import Tensor
from tallow.distributions.distribution import Distribution, sum_rightmost


class ExponentialFamily(Distribution):
    """ln p(x) = <t(x), η> - F(η) + k(x),  η the natural parameters and F the log normalizer

    A subclass defines `_natural_params`, a tuple of tensors, `_log_normalizer`, a function of them, and
    `_mean_carrier_measure`, the mean of k(x). The mean of t(x) is the gradient of F.

    Source:  Nielsen & Nock 2010, Entropies and cross-entropies of exponential families, ICIP
    """

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        raise NotImplementedError(f"{type(self).__name__} has no natural parameters")

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} has no log normalizer")

    @property
    def _mean_carrier_measure(self) -> Tensor | float:
        raise NotImplementedError(f"{type(self).__name__} has no mean carrier measure")

    def _expected(self) -> tuple[list[Tensor], Tensor, list[Tensor]]:
        """Return η, F(η), and the mean of t(x), with gradients where the parameters have them."""
        given = self._natural_params
        has_gradients = any(eta.requires_grad for eta in given)
        with enable_grad():
            # New nodes, so that each derivative leaves the other parameters fixed.
            natural = [eta.view_as(eta) if eta.requires_grad else eta.detach().requires_grad_() for eta in given]
            log_normalizer = self._log_normalizer(*natural)
            slopes = grad(log_normalizer.sum(), natural, create_graph=has_gradients)
        means = [slope for slope in slopes if slope is not None]
        if has_gradients:
            return natural, log_normalizer, means
        return [eta.detach() for eta in natural], log_normalizer.detach(), means

    def entropy(self) -> Tensor:
        carrier = self._mean_carrier_measure
        natural, entropy, means = self._expected()
        for eta, mean in zip(natural, means, strict=True):
            entropy = entropy - sum_rightmost(eta * mean, eta.ndim - len(self._batch_shape))
        return entropy - carrier


def bregman_divergence(p: ExponentialFamily, q: ExponentialFamily) -> Tensor:
    """Return KL(p ‖ q) = F(η_q) - F(η_p) - <η_q - η_p, ∇F(η_p)> of two members of one family."""
    natural_p, log_normalizer, means = p._expected()
    natural_q = q._natural_params
    value = q._log_normalizer(*natural_q) - log_normalizer
    for eta_p, eta_q, mean in zip(natural_p, natural_q, means, strict=True):
        term = (eta_q - eta_p) * mean
        value = value - sum_rightmost(term, term.ndim - value.ndim)
    return value
