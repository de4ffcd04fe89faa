import numpy as np

from cases import away_from, booleans, case, integers, normal

halves = np.array([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 2.6, -0.2, np.inf, -np.inf, np.nan])
steps = away_from((-2.0, -1.5, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 2.0), 2, 3, margin=0.02) * 1.0

for name in ("ceil", "floor", "trunc", "round", "sign", "sgn"):
    case(name, lambda m, a, name=name: (getattr(m, name)(a), getattr(a, name)()), steps)
    case(name, lambda m, a, name=name: getattr(a * 1, name + "_")(), steps)
    case(name, lambda m, a, name=name: getattr(m, name)(a), halves, grad=False)
    case(name, lambda m, a, name=name: getattr(m, name)(a), integers(2, 3, low=-5), grad=False)
case("trunc", lambda m, a: (m.fix(a), a.fix(), (a * 1).fix_()), steps)
case("sign", lambda m, a: (m.sign(a), m.sgn(a)), booleans(3), grad=False)
case("sign", lambda m, a: m.sign(a), integers(3).astype(np.uint8), grad=False)
case("frac", lambda m, a: (m.frac(a), a.frac(), (a * 1).frac_()), steps)
case("round", lambda m, a: (m.round(a, decimals=2), a.round(decimals=1), a.round(decimals=-1)), steps * 13.7)
case("round", lambda m, a: (a * 1).round_(decimals=2), steps * 13.7)
case("signbit", lambda m, a: (m.signbit(a), a.signbit()), np.array([-1.0, -0.0, 0.0, 2.0]), grad=False)
case("signbit", lambda m, a: m.signbit(a), integers(4, low=-2), grad=False)
case("copysign", lambda m, a, b: (m.copysign(a, b), a.copysign(-1.0), a.copysign(b)), steps, steps[0])
case("copysign", lambda m, a, b: (a * 1).copysign_(b), steps, steps[0])
case("copysign", lambda m, a: (m.copysign(a, -2), m.copysign(a, a)), integers(4, low=-3), grad=False)
case("copysign", lambda m, a, b: m.copysign(a, b), np.array([0.0, 2.0]), np.array([-1.0, -0.0]), grad=False)
case("heaviside", lambda m, a, v: (m.heaviside(a, v), a.heaviside(v)), np.zeros(11), halves, grad=False)
case("heaviside", lambda m, a, v: (m.heaviside(a, v), (a * 1).heaviside_(v)), halves, normal(), grad=False)
case("heaviside", lambda m, a, v: m.heaviside(a, v), integers(4, low=-2), integers(4), grad=False)
for name in ("isfinite", "isinf", "isnan", "isposinf", "isneginf"):
    case(name, lambda m, a, name=name: (getattr(m, name)(a), getattr(a, name)()), halves, grad=False)
    case(name, lambda m, a, name=name: getattr(m, name)(a), integers(3), grad=False)
    case(name, lambda m, a, name=name: getattr(m, name)(a), booleans(3), grad=False)
case(
    "nan_to_num",
    lambda m, a: (m.nan_to_num(a), a.nan_to_num(1.5), a.nan_to_num(posinf=9, neginf=-9)),
    halves,
    grad=False,
)
case("nan_to_num", lambda m, a: (m.nan_to_num(a, 1.0, 2.0, 3.0), (a * 1).nan_to_num_(nan=7)), halves, grad=False)
case("nan_to_num", lambda m, a: m.nan_to_num(a), steps)
case("nan_to_num", lambda m, a: m.nan_to_num(a), integers(3), grad=False)
# The gradient passes through the rounding, so that it equals differences only where it is 0.
for _values, _grad in ((np.array([-5.02, 5.3]), True), (np.array([-0.31, -0.27, 0.049, 0.33, 1.18, 1.31]), False)):
    case("fake_quantize", lambda m, a: m.fake_quantize_per_tensor_affine(a, 0.1, 3, 0, 15), _values, grad=_grad)
