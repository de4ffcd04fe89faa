"""From five points to a trained classifier: Dataset, DataLoader, the training loop, accuracy, saving and loading.

Run it: python examples/toy_classification.py
"""

import tempfile
from pathlib import Path

import tallow as tl
import tallow.nn.functional as F
from multilayer_perceptron import MultilayerPerceptron
from tallow.utils.data import DataLoader, Dataset

X_TRAIN = tl.tensor([[-1.2, 3.1], [-0.9, 2.9], [-0.5, 2.6], [2.3, -1.1], [2.7, -1.5]])
Y_TRAIN = tl.tensor([0, 0, 0, 1, 1])
X_TEST = tl.tensor([[-0.8, 2.8], [2.6, -1.6]])
Y_TEST = tl.tensor([0, 1])


class Points(Dataset):
    """Points and their classes, one at a time; the DataLoader makes batches of them."""

    def __init__(self, x: tl.Tensor, y: tl.Tensor) -> None:
        self.x, self.y = x, y

    def __getitem__(self, index: int) -> tuple[tl.Tensor, tl.Tensor]:
        return self.x[index], self.y[index]

    def __len__(self) -> int:
        return self.y.shape[0]


def train(model: MultilayerPerceptron, loader: DataLoader, epochs: int = 3) -> list[float]:
    """Plain gradient descent; the loss of every batch."""
    optimizer = tl.optim.SGD(model.parameters(), lr=0.5)
    losses = []
    for epoch in range(epochs):
        model.train()
        for batch, (features, labels) in enumerate(loader):
            loss = F.cross_entropy(model(features), labels)
            optimizer.zero_grad()  # gradients add up until they are cleared
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
            print(f"epoch {epoch + 1}/{epochs}  batch {batch + 1}/{len(loader)}  loss {losses[-1]:.2f}")
    return losses


def accuracy(model: MultilayerPerceptron, loader: DataLoader) -> float:
    """The share of the points whose class has the highest score."""
    model.eval()
    correct = total = 0
    for features, labels in loader:
        with tl.no_grad():
            predicted = tl.argmax(model(features), dim=1)
        correct += (predicted == labels).sum().item()
        total += len(labels)
    return correct / total


def main() -> tuple[list[float], float, float]:
    """The losses, and the accuracy on both sets."""
    tl.manual_seed(123)
    train_set, test_set = Points(X_TRAIN, Y_TRAIN), Points(X_TEST, Y_TEST)
    # Two points a batch. The fifth would be a batch alone, and its gradient a jolt: leave it out of each epoch.
    loader = DataLoader(train_set, batch_size=2, shuffle=True, drop_last=True)

    model = MultilayerPerceptron(2, 2)
    losses = train(model, loader)
    in_training, in_test = (accuracy(model, DataLoader(points, batch_size=2)) for points in (train_set, test_set))
    print(f"accuracy {in_training:.0%} in training, {in_test:.0%} in the test")

    # The state dict goes to a file that any program reads, and comes back into a model of the same form.
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.safetensors"
        tl.save(model.state_dict(), path)
        loaded = MultilayerPerceptron(2, 2)
        loaded.load_state_dict(tl.load(path))
    print(f"accuracy {accuracy(loaded, DataLoader(test_set, batch_size=2)):.0%} after loading")
    return losses, in_training, in_test


if __name__ == "__main__":
    main()
