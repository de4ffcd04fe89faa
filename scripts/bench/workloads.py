"""Small models and one training step of each, written against PyTorch's API.

Every function takes the library, `torch` or `tallow`, and returns a step: a function without arguments that trains once
and returns the loss. The data is random and equal for both. Optimizers are fused, PyTorch's fastest setting; tallow
always fuses them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Step = Callable[[], Any]


def _data(torch: Any, *shape: int, classes: int = 0) -> Any:
    rng = np.random.default_rng(len(shape))
    if classes:
        return torch.from_numpy(rng.integers(0, classes, shape))
    return torch.from_numpy(rng.standard_normal(shape, dtype=np.float32))


def _step(model: Any, optimizer: Any, loss_of: Callable[[], Any]) -> Step:
    def step() -> Any:
        optimizer.zero_grad()
        loss = loss_of()
        loss.backward()
        optimizer.step()
        return loss

    return step


def mlp(torch: Any) -> Step:
    """784-512-256-10, batch 64, Adam"""
    nn = torch.nn
    model = nn.Sequential(
        nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 256), nn.ReLU(), nn.Linear(256, 10)
    )  # fmt: skip
    optimizer = torch.optim.Adam(model.parameters(), fused=True)
    x, y = _data(torch, 64, 784), _data(torch, 64, classes=10)
    return _step(model, optimizer, lambda: nn.functional.cross_entropy(model(x), y))


def tiny(torch: Any, compile: Callable[[Step], Step] = lambda loss_of: loss_of) -> Step:
    """3-16-1 on 5 samples, SGD: only overhead"""
    nn = torch.nn
    model = nn.Sequential(nn.Linear(3, 16), nn.ReLU(), nn.Linear(16, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, fused=True)
    x, y = _data(torch, 5, 3), _data(torch, 5, 1)
    return _step(model, optimizer, compile(lambda: nn.functional.mse_loss(model(x), y)))


def cnn(torch: Any) -> Step:
    """LeNet-5 with ReLU and max pooling, 28x28, batch 64, SGD with momentum"""
    nn = torch.nn
    model = nn.Sequential(
        nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10),
    )  # fmt: skip
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, fused=True)
    x, y = _data(torch, 64, 1, 28, 28), _data(torch, 64, classes=10)
    return _step(model, optimizer, lambda: nn.functional.cross_entropy(model(x), y))


def transformer_block(torch: Any, D: int, H: int) -> Any:
    """Return a block of a transformer of width D with H heads, as GPT-2's.  Shapes: (B, T, D) -> the same"""
    nn, F = torch.nn, torch.nn.functional

    class Block(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(D), nn.LayerNorm(D)
            self.qkv, self.out = nn.Linear(D, 3 * D), nn.Linear(D, D)
            self.up, self.down = nn.Linear(D, 4 * D), nn.Linear(4 * D, D)

        def forward(self, x: Any) -> Any:
            q, k, v = (
                part.view(*x.shape[:2], H, D // H).transpose(1, 2) for part in self.qkv(self.norm1(x)).split(D, dim=2)
            )
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(y.transpose(1, 2).reshape(x.shape))
            return x + self.down(F.gelu(self.up(self.norm2(x))))

    return Block()


def transformer(torch: Any) -> Step:
    """characters: dim 64, 5 layers, 8 heads, 256 positions, batch 16, AdamW"""
    nn = torch.nn
    F = nn.functional
    B, T, D, H, V = 16, 256, 64, 8, 65

    class Characters(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.tokens, self.positions = nn.Embedding(V, D), nn.Embedding(T, D)
            self.blocks = nn.Sequential(*(transformer_block(torch, D, H) for _ in range(5)))
            self.norm, self.head = nn.LayerNorm(D), nn.Linear(D, V)

        def forward(self, tokens: Any) -> Any:
            x = self.tokens(tokens) + self.positions(torch.arange(T))
            return self.head(self.norm(self.blocks(x)))

    model = Characters()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    x, y = _data(torch, B, T, classes=V), _data(torch, B * T, classes=V)
    return _step(model, optimizer, lambda: F.cross_entropy(model(x).view(B * T, V), y))


def lstm(torch: Any) -> Step:
    """LSTM 64-128, 50 positions, batch 32, Adam"""
    nn = torch.nn
    model, head = nn.LSTM(64, 128, batch_first=True), nn.Linear(128, 10)
    optimizer = torch.optim.Adam([*model.parameters(), *head.parameters()], fused=True)
    x, y = _data(torch, 32, 50, 64), _data(torch, 32, classes=10)
    return _step(model, optimizer, lambda: nn.functional.cross_entropy(head(model(x)[0][:, -1]), y))


def resnet(torch: Any) -> Step:
    """ResNet-18 for CIFAR-10, 32x32, batch 32, SGD with momentum"""
    nn = torch.nn

    class Block(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self, before: int, width: int, stride: int) -> None:
            super().__init__()
            self.conv1 = nn.Conv2d(before, width, 3, stride, padding=1, bias=False)
            self.conv2 = nn.Conv2d(width, width, 3, padding=1, bias=False)
            self.bn1, self.bn2 = nn.BatchNorm2d(width), nn.BatchNorm2d(width)
            self.shortcut = nn.Sequential()
            if stride != 1 or before != width:
                self.shortcut = nn.Sequential(nn.Conv2d(before, width, 1, stride, bias=False), nn.BatchNorm2d(width))

        def forward(self, x: Any) -> Any:
            y = self.bn2(self.conv2(self.bn1(self.conv1(x)).relu()))
            return (y + self.shortcut(x)).relu()

    shapes = [
        (64, 64, 1),
        (64, 64, 1),
        (64, 128, 2),
        (128, 128, 1),
        (128, 256, 2),
        (256, 256, 1),
        (256, 512, 2),
        (512, 512, 1),
    ]
    model = nn.Sequential(
        nn.Conv2d(3, 64, 3, padding=1, bias=False), nn.BatchNorm2d(64), nn.ReLU(),
        *(Block(*shape) for shape in shapes), nn.AvgPool2d(4), nn.Flatten(), nn.Linear(512, 10),
    )  # fmt: skip
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=5e-4, fused=True)
    x, y = _data(torch, 32, 3, 32, 32), _data(torch, 32, classes=10)
    return _step(model, optimizer, lambda: nn.functional.cross_entropy(model(x), y))


WORKLOADS: dict[str, Callable[[Any], Step]] = {
    "mlp": mlp, "tiny": tiny, "cnn": cnn, "transformer": transformer, "lstm": lstm, "resnet": resnet,
}  # fmt: skip
