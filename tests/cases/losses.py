"""Loss functions."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from cases import away_from, booleans, case, functional, integers, normal, uniform

x, y = normal(6, 5), integers(6, high=5)
y_ignoring = np.where(y == 3, -100, y)

CE = "cross_entropy_of_classes"
case(CE, functional("cross_entropy"), x, y)
case(CE, functional("cross_entropy", reduction="sum"), x, y)
case(CE, functional("cross_entropy", reduction="none"), x, y_ignoring)
case(CE, functional("cross_entropy", ignore_index=2), x, y)
case(CE, functional("cross_entropy"), x, y_ignoring)
case(CE, lambda m, x, y: m.nn.functional.cross_entropy(x[0], y[0]), x, y)
case(CE, lambda m, x, y, w: m.nn.functional.cross_entropy(x, y, w.to(x.dtype)), x, y_ignoring, integers(5))
case(CE, functional("cross_entropy", label_smoothing=0.1), x, y_ignoring)
case(
    CE,
    lambda m, x, y, w: m.nn.functional.cross_entropy(x, y, w.to(x.dtype), label_smoothing=0.3),
    x,
    y_ignoring,
    integers(5),
)
case(
    CE,
    lambda m, x, y, w: m.nn.functional.cross_entropy(x, y, w.to(x.dtype), label_smoothing=0.3, reduction="none"),
    normal(2, 5, 3, 2),
    integers(2, 3, 2, high=5),
    integers(5),
)
case(CE, functional("cross_entropy"), normal(2, 5, 3), integers(2, 3, high=5))
case(CE, lambda m, x, y: m.nn.functional.cross_entropy(100 * x, y), x, y)

PROBABILITIES = uniform(6, 5) / 3
case("cross_entropy", functional("cross_entropy"), x, PROBABILITIES)
case("cross_entropy", functional("cross_entropy", label_smoothing=0.2, reduction="sum"), x, PROBABILITIES)
case("cross_entropy", functional("cross_entropy", reduction="none"), normal(2, 5, 3), uniform(2, 5, 3))
case("cross_entropy", functional("cross_entropy"), normal(5), uniform(5))
case(
    "cross_entropy",
    lambda m, x, t, w: m.nn.functional.cross_entropy(x, t, w.to(x.dtype)),
    x,
    PROBABILITIES,
    integers(5),
)

NLL = "nll_loss_of_classes"
case(NLL, functional("nll_loss"), x, y_ignoring)
case(NLL, functional("nll_loss", reduction="none", ignore_index=1), x, y)
case(NLL, lambda m, x, y, w: m.nn.functional.nll_loss(x, y, w.to(x.dtype)), x, y_ignoring, integers(5) + 1)
case(NLL, functional("nll_loss", reduction="sum"), normal(2, 5, 3, 2), integers(2, 3, 2, high=5))
case(NLL, lambda m, x, y: m.nn.functional.nll_loss(x[0], y[0]), x, y)
case(NLL, functional("nll_loss", reduction="sum"), normal(0, 5), integers(0))


def broadcasting(name: str, **options: Any) -> Any:
    """Ignore PyTorch's warning about inputs and targets of different sizes."""

    def call(m: Any, *inputs: Any) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            return functional(name, **options)(m, *inputs)

    return call


def weighted(name: str, **options: Any) -> Any:
    """Return a call with a weight, for which PyTorch computes no gradient."""
    return lambda m, x, t, w: functional(name, weight=w.to(x.dtype), **options)(m, x, t)


a, b = normal(4, 3), away_from((0.0,), 4, 3, margin=0.2)
for op, name in (("squared_error", "mse_loss"), ("absolute_error", "l1_loss")):
    case(op, functional(name), a, a + b)
    case(op, functional(name, reduction="sum"), a, a + b)
    case(op, functional(name, reduction="none"), a, a + b)
    case(op, broadcasting(name), a, normal(3))
    case(op, lambda m, x, t, w, name=name: getattr(m.nn.functional, name)(x, t, weight=w), a, a + b, uniform(4, 3))
SMOOTH = "huber_error"
case(SMOOTH, functional("smooth_l1_loss"), a, a + 2 * b)
case(SMOOTH, functional("smooth_l1_loss", beta=0.5, reduction="none"), a, a + b)
case("absolute_error", functional("smooth_l1_loss", beta=0.0, reduction="sum"), a, a + b)
case(SMOOTH, functional("huber_loss"), a, a + 2 * b)
case(SMOOTH, functional("huber_loss", delta=0.3, reduction="sum"), a, a + b)
case(SMOOTH, lambda m, x, t, w: m.nn.functional.huber_loss(x, t, weight=w), a, a + b, uniform(4, 3))
case(SMOOTH, broadcasting("smooth_l1_loss"), a, normal(4, 1))

p, t = uniform(4, 3, low=0.05, high=0.95), uniform(4, 3)
case("binary_cross_entropy", functional("binary_cross_entropy"), p, t)
case("binary_cross_entropy", functional("binary_cross_entropy", reduction="none"), p, t)
case("binary_cross_entropy", weighted("binary_cross_entropy", reduction="sum"), p, t, integers(3))
case("binary_cross_entropy", functional("binary_cross_entropy"), booleans(3, 4) * 1.0, booleans(3, 4) * 1.0, grad=False)
LOGITS = "binary_cross_entropy_with_logits"
case(LOGITS, functional(LOGITS), 3 * a, t)
case(LOGITS, functional(LOGITS, reduction="none"), 30 * a, t)
case(LOGITS, weighted(LOGITS, reduction="sum"), a, t, integers(4, 1))
case(LOGITS, lambda m, x, t: m.nn.functional.binary_cross_entropy_with_logits(x, t.double()), a, t)
case(
    LOGITS,
    lambda m, x, t, w: m.nn.functional.binary_cross_entropy_with_logits(x, t, pos_weight=w.to(x.dtype)),
    5 * a,
    t,
    integers(3),
)
case("kl_divergence", functional("kl_div", reduction="batchmean"), a, t)
case("kl_divergence", functional("kl_div", reduction="sum", log_target=True), a, t)
case("kl_divergence", functional("kl_div", reduction="none"), a, t)
case("kl_divergence", functional("kl_div", reduction="none"), a, booleans(4, 3) * 1.0, grad=False)
case("kl_divergence", broadcasting("kl_div"), a, t)

case("poisson_nll_loss", functional("poisson_nll_loss"), a, 5 * t)
case("poisson_nll_loss", functional("poisson_nll_loss", log_input=False, reduction="sum"), p, 5 * t)
case("poisson_nll_loss", functional("poisson_nll_loss", full=True, reduction="none"), a, 5 * t + 0.01)
case("gaussian_nll_loss", functional("gaussian_nll_loss"), a, normal(4, 3), p)
case(
    "gaussian_nll_loss",
    functional("gaussian_nll_loss", full=True, reduction="sum"),
    a,
    normal(4, 3),
    uniform(4, 1, low=0.1),
)
case("gaussian_nll_loss", functional("gaussian_nll_loss", reduction="none"), a, normal(4, 3), uniform(4, low=0.1))
case("gaussian_nll_loss", functional("gaussian_nll_loss", var=0.5), a, normal(4, 3))

signs = np.where(booleans(4), 1, -1)
case("hinge_embedding_loss", functional("hinge_embedding_loss"), a, np.where(booleans(4, 3), 1, -1))
case(
    "hinge_embedding_loss",
    functional("hinge_embedding_loss", margin=0.2, reduction="none"),
    a,
    integers(4, 3, low=-1, high=2),
)
case("margin_ranking_loss", functional("margin_ranking_loss"), a[:, 0], a[:, 1], signs)
case("margin_ranking_loss", functional("margin_ranking_loss", margin=0.5, reduction="none"), a[:, 0], a[:, 1], signs)
case("soft_margin_loss", functional("soft_margin_loss"), a, np.where(booleans(4, 3), 1, -1))
case("soft_margin_loss", functional("soft_margin_loss", reduction="none"), 3 * a, np.where(booleans(4, 3), 1, -1))
case("multi_margin", functional("multi_margin_loss"), x, y)
case("multi_margin", functional("multi_margin_loss", p=2, margin=0.7, reduction="sum"), x, y)
case(
    "multi_margin",
    lambda m, x, y, w: m.nn.functional.multi_margin_loss(x, y, weight=w.to(x.dtype), reduction="none"),
    x,
    y,
    integers(5),
)
case("multi_margin", lambda m, x, y: m.nn.functional.multi_margin_loss(x[0], y[0]), x, y)
labels = np.array([[0, 2, -1, 1], [-1, 0, 0, 0], [3, 1, 2, 0]])
case("multilabel_margin", functional("multilabel_margin_loss"), normal(3, 4), labels)
case("multilabel_margin", functional("multilabel_margin_loss", reduction="none"), normal(3, 4), labels)
case("multilabel_margin", functional("multilabel_margin_loss", reduction="sum"), normal(4), labels[0])
SOFT = "multilabel_soft_margin_loss"
case(SOFT, functional(SOFT), a, booleans(4, 3) * 1.0)
case(SOFT, functional(SOFT, reduction="none"), a, t, uniform(3))
COSINE = "cosine_embedding_loss"
case(COSINE, functional(COSINE), a, normal(4, 3), signs)
case(COSINE, functional(COSINE, margin=0.1, reduction="none"), a, normal(4, 3), signs)
case(COSINE, lambda m, a, b, s: m.nn.functional.cosine_embedding_loss(a[0], b[0], s[0]), a, normal(4, 3), signs)
TRIPLET = "triplet_margin_loss"
case(TRIPLET, functional(TRIPLET), a, normal(4, 3), normal(4, 3))
case(TRIPLET, functional(TRIPLET, margin=3.0, p=1, swap=True, reduction="none"), a, normal(4, 3), normal(4, 3))
case(TRIPLET, functional(TRIPLET, reduction="sum"), normal(3), normal(3), normal(3))
case(
    TRIPLET,
    lambda m, a, b, c: m.nn.functional.triplet_margin_with_distance_loss(
        a, b, c, distance_function=lambda x, y: (x - y).abs().sum(-1), margin=2.0
    ),
    a,
    normal(4, 3),
    normal(4, 3),
)


def ctc(**options: Any) -> Any:
    return lambda m, x, *rest: m.nn.functional.ctc_loss(x.log_softmax(-1), *rest, **options)


targets, lengths = integers(3, 4, low=1, high=6), np.array([4, 2, 3])
targets[0] = [2, 2, 3, 3]  # repeated labels need a blank in between
times = np.array([9, 7, 8])
case("ctc", ctc(), normal(9, 3, 6), targets, times, lengths)
case("ctc", ctc(reduction="none", blank=5), normal(9, 3, 6), targets % 5, times, lengths)
case(
    "ctc",
    ctc(reduction="sum"),
    normal(9, 3, 6),
    np.concatenate([targets[0], targets[1, :2], targets[2, :3]]),
    times,
    lengths,
)
case("ctc", ctc(reduction="sum"), normal(9, 6), targets[0], np.array(9), np.array(4))
case("ctc", ctc(reduction="none"), normal(5, 2, 6), targets[:2], np.array([5, 5]), np.array([0, 1]))
case("ctc", ctc(reduction="none", zero_infinity=True), normal(5, 3, 6), targets, np.array([3, 5, 4]), lengths)
case(  # labels equal to the blank, and of a float dtype
    "ctc",
    lambda m, x, t: m.nn.functional.ctc_loss(x.log_softmax(2), t.bfloat16(), (9, 7), (4, 2)),
    normal(9, 2, 6),
    np.array([[1, 0, 2, 2], [0, 3, 3, 0]]),
)
case(
    "ctc", lambda m, x, t: m.nn.functional.ctc_loss(x.log_softmax(2), t, (9, 9, 9), (4, 4, 4)), normal(9, 3, 6), targets
)
case("ctc", ctc(reduction="none"), normal(4, 2, 6), targets[:2], np.array([3, 4]), lengths[:2], grad=False)
