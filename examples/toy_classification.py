"""A classifier of points: Dataset, DataLoader, the training loop, accuracy, saving and loading.

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
    """Points and their classes; the DataLoader collates them into batches."""

    def __init__(self, x: tl.Tensor, y: tl.Tensor) -> None:
        self.x, self.y = x, y

    def __getitem__(self, index: int) -> tuple[tl.Tensor, tl.Tensor]:
        return self.x[index], self.y[index]

    def __len__(self) -> int:
        return self.y.shape[0]


def train(model: MultilayerPerceptron, loader: DataLoader, epochs: int = 3) -> list[float]:
    """Train with gradient descent; return the loss of each batch."""
    optimizer = tl.optim.SGD(model.parameters(), lr=0.5)
    losses = []
    for epoch in range(epochs):
        model.train()
        for batch, (features, labels) in enumerate(loader):
            loss = F.cross_entropy(model(features), labels)
            optimizer.zero_grad()  # gradients accumulate until they are cleared
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
            print(f"epoch {epoch + 1}/{epochs}  batch {batch + 1}/{len(loader)}  loss {losses[-1]:.2f}")
    return losses


def accuracy(model: MultilayerPerceptron, loader: DataLoader) -> float:
    """Return the fraction of points whose class has the highest score."""
    model.eval()
    correct = total = 0
    for features, labels in loader:
        with tl.no_grad():
            predicted = tl.argmax(model(features), dim=1)
        correct += (predicted == labels).sum().item()
        total += len(labels)
    return correct / total


def main() -> tuple[list[float], float, float]:
    """Train, test, save and load; return the losses and the accuracy on both sets."""
    tl.manual_seed(123)
    train_set, test_set = Points(X_TRAIN, Y_TRAIN), Points(X_TEST, Y_TEST)
    # Batches of two points. drop_last omits the fifth point, which would be a noisy batch of one.
    loader = DataLoader(train_set, batch_size=2, shuffle=True, drop_last=True)

    model = MultilayerPerceptron(2, 2)
    losses = train(model, loader)
    in_training, in_test = (accuracy(model, DataLoader(points, batch_size=2)) for points in (train_set, test_set))
    print(f"accuracy {in_training:.0%} on the training set, {in_test:.0%} on the test set")

    # Save the state dict as safetensors, which many programs read, and load it into an equal model.
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.safetensors"
        tl.save(model.state_dict(), path)
        loaded = MultilayerPerceptron(2, 2)
        loaded.load_state_dict(tl.load(path))
    print(f"accuracy {accuracy(loaded, DataLoader(test_set, batch_size=2)):.0%} after loading")
    return losses, in_training, in_test


if __name__ == "__main__":
    main()
