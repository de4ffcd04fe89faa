import numpy as np

from cases import away_from, case, functional, integers, normal, uniform

smooth = normal(3, 4) * 3
CONSTANT = 1e-7  # PyTorch stores a constant of this op in float32, for float64 tensors too
ends = np.array([-200.0, -30.0, 0.0, 30.0, 200.0, np.inf, np.nan])


def family(name: str, x: np.ndarray, *, inplace: bool = False, ends: np.ndarray = ends, **options: float) -> None:
    """Register cases of an nn.functional activation: options by name and by position, in place, 0-d, large values."""
    case(name, functional(name), x)
    if options:
        case(name, functional(name, **options), x)
        case(name, lambda m, a: getattr(m.nn.functional, name)(a, *options.values()), x)
    if inplace:
        case(name, lambda m, a: getattr(m.nn.functional, name)(a * 1, inplace=True, **options), x)
        case(name, lambda m, a: getattr(m.nn.functional, name)(a * 1, *options.values(), True), x)
    case(name, functional(name), np.asarray(0.3))
    case(name, functional(name), normal(2, 0))
    case(name, functional(name), ends, grad=False)


kinks = away_from((-3.0, -1.0, -0.5, -0.3, 0.0, 0.3, 0.5, 1.0, 1.2, 3.0, 6.0), 4, 5, margin=0.02) * 1.0

family("relu", kinks, inplace=True)
family("relu6", away_from((0.0, 6.0), 3, 4), inplace=True)
family("leaky_relu", kinks, inplace=True, negative_slope=0.2)
family("elu", kinks, inplace=True, alpha=0.5)
family("celu", kinks, inplace=True, alpha=0.5)
family("selu", kinks, inplace=True)
family("hardtanh", kinks, inplace=True, min_val=-0.3, max_val=1.2)
case("hardsigmoid", functional("hardsigmoid"), kinks, rtol64=CONSTANT)
case("hardsigmoid", lambda m, a: m.nn.functional.hardsigmoid(a * 1, True), kinks, rtol64=CONSTANT)
case("hardsigmoid", functional("hardsigmoid"), ends, grad=False)
family("hardswish", kinks, inplace=True)
family("silu", smooth, inplace=True)
family("mish", smooth, inplace=True)
family("softplus", smooth, beta=2.0, threshold=3.0)
family("softsign", smooth)
family("tanhshrink", smooth)
family("softshrink", kinks, lambd=0.3)
family("hardshrink", kinks, lambd=0.3)
family("logsigmoid", smooth)
family("gelu", smooth, ends=ends[:5])  # PyTorch's vectorized code returns NaN for gelu(inf)
family("sigmoid", smooth)
family("tanh", smooth)
case("gelu", functional("gelu", approximate="tanh"), smooth)
case("gelu", functional("gelu", approximate="tanh"), ends, grad=False)
case("threshold", lambda m, a: (m.threshold(a, 0.3, -2), m.nn.functional.threshold(a, 0.3, -2.0)), kinks)
case("threshold", lambda m, a: m.nn.functional.threshold(a * 1, 0.3, -2.0, True), kinks)
case("relu", lambda m, a: (m.relu(a), a.relu(), (a * 1).relu_(), m.nn.functional.relu_(a * 1)), kinks)
case("leaky_relu", lambda m, a: (m.nn.functional.leaky_relu_(a * 1, 0.2), m.nn.functional.elu_(a * 1)), kinks)
case("hardtanh", lambda m, a: m.nn.functional.hardtanh_(a * 1, -0.3, 0.5), kinks)
case(
    "celu", lambda m, a: (m.celu(a, 0.5), m.selu(a), m.nn.functional.celu_(a * 1), m.nn.functional.selu_(a * 1)), kinks
)
case("hardshrink", lambda m, a: (m.hardshrink(a), a.hardshrink(0.3)), kinks)
case(
    "relu",
    lambda m, a: (m.relu(a), m.nn.functional.relu6(a), m.nn.functional.hardtanh(a)),
    integers(4, low=-8),
    grad=False,
)
case("softsign", lambda m, a: (m.nn.functional.softsign(a), m.nn.functional.tanhshrink(a)), integers(4), grad=False)
case("threshold", lambda m, a: m.nn.functional.threshold(a, 3, 1), integers(5), grad=False)

case("prelu", lambda m, a, w: (m.prelu(a, w), a.prelu(w), m.nn.functional.prelu(a, w)), kinks, uniform(1))
case("prelu", lambda m, a, w: m.prelu(a, w), normal(2, 3, 4), uniform(3))
case("prelu", lambda m, a, w: m.prelu(a, w), normal(2, 3, 4), uniform(1))
case("prelu", lambda m, a, w: m.prelu(a, w), normal(4), uniform())
case("prelu", lambda m, a, w: m.prelu(a, w), normal(), uniform(1))
case("rrelu", lambda m, a: m.rrelu(a), kinks, rtol64=CONSTANT)
case("rrelu", lambda m, a: (m.rrelu(a, 0.25, 0.5), m.nn.functional.rrelu_(a * 1, 0.25, 0.5)), kinks)
case("rrelu", lambda m, a: m.nn.functional.rrelu(a * 1, 0.25, 0.5, inplace=True), kinks)
case("glu", functional("glu"), normal(3, 4))
case("glu", functional("glu", dim=0), normal(4, 3, 2))
case("glu", functional("glu", dim=-2), normal(1, 6, 2))

rows = normal(3, 4, 2)
case("softmax", lambda m, a: (m.softmax(a, 1), a.softmax(-1), m.nn.functional.softmax(a, dim=0)), rows)
case("softmax", lambda m, a: (m.softmax(a, -1, m.float64), a.softmax(dim=1, dtype=m.float64)), rows)
case("softmax", lambda m, a: m.softmax(a, 0), normal())
case("softmax", lambda m, a: (m.softmax(a, 0), m.softmax(a, 1)), normal(2, 0))
case("softmax", lambda m, a: m.softmax(a, -1), np.array([[1e4, 1e4 - 1, 0.0], [-np.inf, 0.0, 1.0]]), grad=False)
case("softmax", lambda m, a: m.softmax(a, -1, dtype=m.float32), integers(2, 3), grad=False)
case("softmax", lambda m, a: m.special.softmax(a, 0), rows)
case("log_softmax", lambda m, a: (m.log_softmax(a, 1), a.log_softmax(-1), m.nn.functional.log_softmax(a, 0)), rows)
case("log_softmax", lambda m, a: (m.log_softmax(a, -1, m.float64), m.special.log_softmax(a, dim=0)), rows)
case("log_softmax", lambda m, a: m.log_softmax(a, 0), normal())
case("log_softmax", lambda m, a: (m.log_softmax(a, 0), m.log_softmax(a, 1)), normal(2, 0))
case("log_softmax", lambda m, a: m.log_softmax(a, -1), np.array([[1e4, 1e4 - 1, 0.0], [-np.inf, 0.0, 1.0]]), grad=False)
case("softmin", lambda m, a: (m.nn.functional.softmin(a, 1), m.nn.functional.softmin(a, -1, dtype=m.float64)), rows)
