"""A convolutional network that recognises digits, from files in MNIST's format.

Run it: python examples/mnist_cnn.py           draws a small data set first, in that format
        python examples/mnist_cnn.py ~/data    trains on ~/data/MNIST/raw/train-images-idx3-ubyte and the other files
"""

import argparse
import tempfile
from pathlib import Path

import numpy as np

import tallow as tl
import tallow.nn.functional as F
from tallow import nn
from tallow.data import MNIST
from tallow.utils.data import DataLoader

# Each digit as seven rows of five dots.
SHAPES = {
    0: "01110 10001 10011 10101 11001 10001 01110",
    1: "00100 01100 00100 00100 00100 00100 01110",
    2: "01110 10001 00001 00010 00100 01000 11111",
    3: "11111 00010 00100 00010 00001 10001 01110",
    4: "00010 00110 01010 10010 11111 00010 00010",
    5: "11111 10000 11110 00001 00001 10001 01110",
    6: "00110 01000 10000 11110 10001 10001 01110",
    7: "11111 00001 00010 00100 01000 01000 01000",
    8: "01110 10001 10001 01110 10001 10001 01110",
    9: "01110 10001 10001 01111 00001 00010 01100",
}


def draw(count: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Draw digits with random position, brightness and noise: uint8 images (count, 28, 28) and labels (count)."""
    shapes = np.array([[[int(dot) for dot in line] for line in SHAPES[digit].split()] for digit in range(10)])
    large = shapes.repeat(3, axis=1).repeat(3, axis=2)  # (10, 21, 15)
    labels = rng.integers(0, 10, count).astype(np.uint8)
    images = rng.integers(0, 40, (count, 28, 28))
    for image, label in zip(images, labels, strict=True):
        top, left = rng.integers(0, 8), rng.integers(0, 14)
        image[top : top + 21, left : left + 15] += large[label] * rng.integers(120, 215)
    return images.astype(np.uint8), labels


def write_idx(path: Path, array: np.ndarray) -> None:
    """Write MNIST's format: 0, 0, 8 for uint8, the number of dimensions, their sizes (big-endian), the values."""
    header = bytes([0, 0, 8, array.ndim]) + b"".join(length.to_bytes(4, "big") for length in array.shape)
    path.write_bytes(header + array.tobytes())


def draw_data_set(root: Path, train: int = 3000, test: int = 500) -> None:
    """Draw a small data set and write it under MNIST's file names."""
    folder = root / "MNIST" / "raw"
    folder.mkdir(parents=True)
    rng = np.random.default_rng(0)
    for name, count in (("train", train), ("t10k", test)):
        images, labels = draw(count, rng)
        write_idx(folder / f"{name}-images-idx3-ubyte", images)
        write_idx(folder / f"{name}-labels-idx1-ubyte", labels)


class CNN(nn.Module):
    """A small convolutional network: scores of the ten digits.  Shapes: x (N, 1, 28, 28) -> (N, 10)"""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 8, kernel_size=3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),  # (N, 8, 14, 14)
            nn.Conv2d(8, 16, kernel_size=3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),  # (N, 16, 7, 7)
        )
        self.classify = nn.Linear(16 * 7 * 7, 10)

    def forward(self, x: tl.Tensor) -> tl.Tensor:
        return self.classify(self.features(x).flatten(1))


def train(model: CNN, loader: DataLoader, epochs: int) -> list[float]:
    """Train; return the mean loss of each epoch."""
    optimizer = tl.optim.Adam(model.parameters(), lr=2e-3)
    means = []
    for epoch in range(epochs):
        model.train()
        total = 0.0
        for images, labels in loader:
            loss = F.cross_entropy(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        means.append(total / len(loader))
        print(f"epoch {epoch + 1}/{epochs}  loss {means[-1]:.3f}")
    return means


@tl.no_grad()
def accuracy(model: CNN, loader: DataLoader) -> float:
    model.eval()
    correct = [(model(images).argmax(dim=1) == labels).float().mean() * len(labels) for images, labels in loader]
    return sum(c.item() for c in correct) / len(loader.dataset)


def main(root: Path | None = None, epochs: int = 3) -> tuple[list[float], float]:
    """Train and test; return the mean loss of each epoch and the accuracy on the test set."""
    tl.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        if root is None:
            root = Path(folder)
            draw_data_set(root)
        train_set, test_set = MNIST(root, train=True), MNIST(root, train=False)
        model = CNN()
        losses = train(model, DataLoader(train_set, batch_size=32, shuffle=True), epochs)
        result = accuracy(model, DataLoader(test_set, batch_size=100))
    print(f"{result:.1%} accuracy on the test set")
    return losses, result


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Train a small convolutional network to recognise digits.")
    parser.add_argument("root", nargs="?", type=Path, help="folder that contains MNIST/raw (default: draw digits)")
    parser.add_argument("--epochs", type=int, default=3)
    options = parser.parse_args()
    main(options.root, options.epochs)
