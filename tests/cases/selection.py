import numpy as np

from cases import away_from, booleans, case, distinct, integers, normal

kinks = away_from((-0.5, 0.0, 0.3, 0.5), 3, 4, margin=0.02)
mask = np.array([[True, False, True], [False, False, True]])

case("where", lambda m, c, a, b: (m.where(c, a, b), a.where(c, b)), mask, normal(2, 3), normal(3))
case("where", lambda m, c, a: (m.where(c, a, 0.5), m.where(c, 2, a), a.where(c, 1)), mask, normal(2, 1))
case("where", lambda m, c: (m.where(c, 1.0, 0.0), m.where(c, 1, 0), m.where(c, 1.5, 2)), mask, grad=False)
case("where", lambda m, c, a, b: m.where(c, a, b), mask, integers(3), normal(2, 3))
case("where", lambda m, c, a: m.where(c, a, 0.5), mask, integers(3), grad=False)
case("where", lambda m, c: m.where(c), mask, grad=False)
case("where", lambda m, a: m.where(a), integers(3, 3, high=2), grad=False)
case("masked_fill", lambda m, a, c: (m.masked_fill(a, c, 2.5), a.masked_fill(c, -3)), normal(2, 3), mask)
case("masked_fill", lambda m, a, c: (a.masked_fill(c, -m.inf), a.masked_fill(c, m.nan)), normal(2, 3), mask, grad=False)
case("masked_fill", lambda m, a, c, v: a.masked_fill(c, v), normal(2, 3), mask, normal())
case("masked_fill", lambda m, a, c: (a * 1).masked_fill_(c, 2), normal(2, 3), mask[1])
case("masked_fill", lambda m, a, c, v: (a * 1).masked_fill_(c, v), normal(2, 3), mask[1], normal())
case("masked_fill", lambda m, a, c: a.masked_fill(c, 2), normal(3), mask)
case("masked_fill", lambda m, a, c: (a.masked_fill(c, 7), a.masked_fill(c, 1.5)), integers(3), mask, grad=False)
case("masked_fill", lambda m, a, c: a.masked_fill(c, True), booleans(3), mask, grad=False)
case("masked_select", lambda m, a, c: (m.masked_select(a, c), a.masked_select(c)), normal(2, 3), mask)
case("masked_select", lambda m, a, c: a.masked_select(c), normal(3), mask)
case("masked_select", lambda m, a, c: a.masked_select(c), normal(4, 2, 1), mask)
case("masked_select", lambda m, a, c: a.masked_select(c & False), integers(3), mask, grad=False)
case(
    "masked_scatter",
    lambda m, a, c, s: (m.masked_scatter(a, c, s), a.masked_scatter(c, s)),
    normal(2, 3),
    mask,
    normal(2, 4),
)
case("masked_scatter", lambda m, a, c, s: (a * 1).masked_scatter_(c, s), normal(2, 3), mask[0], normal(5))
case("masked_scatter", lambda m, a, c, s: m.masked_scatter(a, c, s), normal(3), mask, normal(5))
case("clamp", lambda m, a: (m.clamp(a, -0.5, 0.5), a.clamp(min=0.0), a.clamp(max=0.3)), kinks)
case("clamp", lambda m, a: (m.clip(a, -0.5, 0.5), a.clip(0.0), (a * 1).clip_(max=0.3)), kinks)
case("clamp", lambda m, a, lo, hi: m.clamp(a, lo, hi), distinct(3, 4), distinct(4) + 0.1, distinct(3, 1) + 0.2)
case("clamp", lambda m, a, lo: (a.clamp(lo), a.clamp(max=lo)), distinct(3, 4), distinct(4) + 0.1)
case("clamp", lambda m, a: (a * 1).clamp_(-1.6, 1.6), distinct(3, 4))
case("clamp", lambda m, a: (a.clamp(2, 5), a.clamp(2.5, 5), a.clamp(max=True)), integers(4), grad=False)
case("clamp", lambda m, a: (a.clamp(-1, 1), a.clamp(1, -1)), np.array([1.0, 2.0, np.inf, -np.inf, np.nan]), grad=False)
case(
    "clamp_min",
    lambda m, a, b: (m.clamp_min(a, 0.05), a.clamp_min(b), (a * 1).clamp_min_(0.05)),
    distinct(3, 4),
    distinct(4) + 0.1,
)
case(
    "clamp_max",
    lambda m, a, b: (m.clamp_max(a, 0.05), a.clamp_max(b), (a * 1).clamp_max_(0.05)),
    distinct(3, 4),
    distinct(4) + 0.1,
)
