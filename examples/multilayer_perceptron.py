"""A multilayer perceptron as a Module: 50 inputs, two hidden layers, 3 classes, 2213 parameters.

Run it: python examples/multilayer_perceptron.py
"""

import tallow as tl
from tallow import nn


class MultilayerPerceptron(nn.Module):
    """A perceptron with two hidden layers; returns scores (logits).  Shapes: x (N, inputs) -> (N, outputs)"""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(inputs, 30),
            nn.ReLU(),
            nn.Linear(30, 20),
            nn.ReLU(),
            nn.Linear(20, outputs),
        )

    def forward(self, x: tl.Tensor) -> tl.Tensor:
        return self.layers(x)


def number_of_parameters(model: nn.Module) -> int:
    return sum(p.numel() for p in model.parameters() if p.requires_grad)


def main() -> tuple[int, tl.Tensor]:
    """Return the number of parameters, and the probabilities (1, 3) of a random example."""
    tl.manual_seed(123)
    model = MultilayerPerceptron(50, 3)
    print(model)
    count = number_of_parameters(model)
    print(f"{count} parameters: (50·30 + 30) + (30·20 + 20) + (20·3 + 3)")

    example = tl.rand(1, 50)
    scores = model(example)
    print("in training, scores with their graph:", scores)

    # no_grad records no graph, which saves time and memory when only the result matters.
    with tl.no_grad():
        probabilities = tl.softmax(model(example), dim=1)
    print("in inference, probabilities:", probabilities)
    return count, probabilities


if __name__ == "__main__":
    main()
