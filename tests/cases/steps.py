"""Cells of recurrent layers, gradients of samplers, and sum_to_size."""

from typing import Any

import numpy as np

from cases import case, normal, uniform


def cell(gates: int) -> tuple[np.ndarray, ...]:
    """Return weights and biases for 3 input features and a hidden size of 2."""
    return normal(gates * 2, 3), normal(gates * 2, 2), normal(gates * 2), normal(gates * 2)


case("lstm_cell", lambda m, x, h, c, *w: m.lstm_cell(x, (h, c), *w), normal(4, 3), normal(4, 2), normal(4, 2), *cell(4))
case(
    "lstm_cell",
    lambda m, x, h, c, *w: m.lstm_cell(x, (h, c), *w[:2]),
    normal(1, 3),
    normal(1, 2),
    normal(1, 2),
    *cell(4),
)
case("gru_cell", lambda m, x, h, *w: m.gru_cell(x, h, *w), normal(4, 3), normal(4, 2), *cell(3))
case("gru_cell", lambda m, x, h, *w: m.gru_cell(x, h, *w[:2]), normal(4, 3), normal(4, 2), *cell(3))
case("rnn_tanh_cell", lambda m, x, h, *w: m.rnn_tanh_cell(x, h, *w), normal(4, 3), normal(4, 2), *cell(1))
case("rnn_relu_cell", lambda m, x, h, *w: m.rnn_relu_cell(x, h, *w), normal(4, 3), normal(4, 2), *cell(1))


def at(m: Any, x: Any) -> Any:
    """Return the values of five samples, one per point."""
    return m.tensor([0.0, 0.5, 2.0, 2.25, 4.0], dtype=x.dtype, device=x.device)


for edge_order in (1, 2):
    case("gradient", lambda m, x, e=edge_order: m.gradient(x, edge_order=e), normal(4, 5))
    case("gradient", lambda m, x, e=edge_order: m.gradient(x, spacing=0.5, dim=1, edge_order=e), normal(4, 5))
    case("gradient", lambda m, x, e=edge_order: m.gradient(x, spacing=(0.5, 2.0), edge_order=e), normal(4, 5))
    case("gradient", lambda m, x, e=edge_order: m.gradient(x, spacing=(at(m, x),), dim=-1, edge_order=e), normal(4, 5))
case("gradient", lambda m, x: m.gradient(x), normal(2))

for n in range(4):
    case("polygamma", lambda m, x, n=n: (m.polygamma(n, x), x.polygamma(n)), uniform(5, low=0.2, high=20.0), rtol=1e-4)
case("polygamma", lambda m, x: m.special.polygamma(2, x), np.array([-0.5, -2.3, 0.1, 50.0]), rtol=1e-4)
case("polygamma", lambda m, x: (x * 1).polygamma_(1), uniform(3, low=1.0, high=3.0))

case("sum_to_size", lambda m, x: (x.sum_to_size(3, 1), x.sum_to_size((1, 4)), x.sum_to_size(2, 3, 4)), normal(2, 3, 4))
case("sum_to_size", lambda m, x: x.sum_to_size(()), normal(2, 3))
case("fill_diagonal_", lambda m, x: ((x * 1).fill_diagonal_(2.5), (x.T * 1).fill_diagonal_(1)), normal(3, 5))
case("fill_diagonal_", lambda m, x: (x * 1).fill_diagonal_(2.5, wrap=True), normal(8, 3))
case("fill_diagonal_", lambda m, x: (x * 1).fill_diagonal_(0.5), normal(3, 3, 3))
