"""Gradients by hand and by autograd: logistic regression with one input, as a graph.

    x1 ──×── u ──+── z ── sigmoid ── a ── cross entropy with y ── loss
    w1 ──┘  b ───┘

Run it: python examples/computation_graph.py
"""

import tallow as tl
import tallow.nn.functional as F


def main() -> tuple[float, float, float]:
    """Return the loss and its derivatives with respect to w1 and b."""
    y = tl.tensor([1.0])  # the true label
    x1 = tl.tensor([1.1])
    w1 = tl.tensor([2.2], requires_grad=True)
    b = tl.tensor([0.0], requires_grad=True)

    z = x1 * w1 + b
    a = tl.sigmoid(z)
    loss = F.binary_cross_entropy(a, y)
    print(f"prediction {a.item():.4f}  loss {loss.item():.4f}")

    # One derivative at a time. Keep the graph, because the code below uses it again.
    (by_w1,) = tl.autograd.grad(loss, w1, retain_graph=True)
    (by_b,) = tl.autograd.grad(loss, b, retain_graph=True)

    # All at once: backward() stores them in .grad.
    loss.backward()
    print(f"∂loss/∂w1 {by_w1.item():.4f}  w1.grad {w1.grad.item():.4f}")
    print(f"∂loss/∂b  {by_b.item():.4f}  b.grad  {b.grad.item():.4f}")

    # By hand: ∂loss/∂z = a - y, ∂z/∂w1 = x1, ∂z/∂b = 1.
    by_z = (a - y).item()
    print(f"by hand   {by_z * x1.item():.4f}         {by_z:.4f}")
    return loss.item(), w1.grad.item(), b.grad.item()


if __name__ == "__main__":
    main()
