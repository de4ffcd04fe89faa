"""Linear regression with candle's API: find y = 3·x1 + x2 - 2 from points on it.

A VarMap holds the variables, a VarBuilder passes them to the layers, and `backward_step` is a complete training step.

Run it: python examples/linear_regression.py
"""

import tallow as tl
from tallow import nn
from tallow.nn import functional as F

POINTS, BATCH, EPOCHS = 1000, 50, 10


def points() -> tuple[tl.Tensor, tl.Tensor]:
    """Return random x (POINTS, 2), and y (POINTS, 1)."""
    x = tl.randn(POINTS, 2)
    return x, x @ tl.tensor([[3.0], [1.0]]) - 2


def main() -> tuple[list[float], tl.Tensor, tl.Tensor]:
    """Train; return the loss after each epoch, the weights (1, 2) and the bias (1)."""
    tl.manual_seed(0)
    x, y = points()

    # The layer requests "line.weight" and "line.bias"; the map lacks them, so it creates them with random values.
    varmap = nn.VarMap()
    vb = nn.VarBuilder.from_varmap(varmap)
    model = nn.linear(2, 1, vb.pp("line"))

    optimizer = tl.optim.SGD(varmap.all_vars(), lr=0.02)
    losses = []
    for epoch in range(1, EPOCHS + 1):
        for start in range(0, POINTS, BATCH):
            batch = slice(start, start + BATCH)
            optimizer.backward_step(F.mse_loss(model(x[batch]), y[batch]))
        with tl.no_grad():
            losses.append(F.mse_loss(model(x), y).item())
        print(f"epoch {epoch:2}  loss {losses[-1]:.2e}")

    weight, bias = (var.detach() for var in varmap.all_vars())
    (w1, w2), b = weight[0].tolist(), bias.item()
    print(f"y = {w1:.3f}·x1 {w2:+.3f}·x2 {b:+.3f}")
    return losses, weight, bias


if __name__ == "__main__":
    main()
