"""A residual network with both kinds of block, on coloured noise: initialization, momentum, warm-up, a meter."""

import argparse
import os
from functools import partial
from typing import List, Optional, Sequence, Tuple, Type, Union

import numpy as np
import torch
import torch.nn as nn
from torch import Tensor
from torch.optim.lr_scheduler import CosineAnnealingLR, LinearLR, SequentialLR

conv1x1 = partial(nn.Conv2d, kernel_size=1, bias=False)
conv3x3 = partial(nn.Conv2d, kernel_size=3, padding=1, bias=False)


class BasicBlock(nn.Module):
    expansion: int = 1

    def __init__(self, before: int, planes: int, stride: int = 1, downsample: Optional[nn.Module] = None) -> None:
        super().__init__()
        self.conv1, self.bn1 = conv3x3(before, planes, stride=stride), nn.BatchNorm2d(planes)
        self.conv2, self.bn2 = conv3x3(planes, planes), nn.BatchNorm2d(planes)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = downsample

    @property
    def last_norm(self) -> nn.BatchNorm2d:
        return self.bn2

    def residual(self, x: Tensor) -> Tensor:
        return self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))

    def forward(self, x: Tensor) -> Tensor:
        shortcut = x if self.downsample is None else self.downsample(x)
        y = self.residual(x)
        y += shortcut
        return self.relu(y)


class Bottleneck(BasicBlock):
    expansion: int = 4

    def __init__(self, before: int, planes: int, stride: int = 1, downsample: Optional[nn.Module] = None) -> None:
        super().__init__(planes, planes, stride, downsample)
        self.conv1, self.bn1 = conv1x1(before, planes), nn.BatchNorm2d(planes)
        self.conv2, self.bn2 = conv3x3(planes, planes, stride=stride, groups=2), nn.BatchNorm2d(planes)
        self.conv3, self.bn3 = conv1x1(planes, 4 * planes), nn.BatchNorm2d(4 * planes)

    @property
    def last_norm(self) -> nn.BatchNorm2d:
        return self.bn3

    def residual(self, x: Tensor) -> Tensor:
        return self.bn3(self.conv3(self.relu(super().residual(x))))


class ResNet(nn.Module):
    def __init__(
        self, block: Type[Union[BasicBlock, Bottleneck]], depths: Sequence[int], classes: int = 10, width: int = 8
    ) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, width, kernel_size=7, stride=2, padding=3, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(kernel_size=3, stride=2, padding=1),
        )
        self.planes = width
        stages: List[nn.Module] = []
        for i, depth in enumerate(depths):
            stages.append(self._stage(block, width * 2**i, depth, stride=1 if i == 0 else 2))
        self.stages = nn.Sequential(*stages)
        self.pool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(self.planes, classes)
        self._initialise()

    def _stage(self, block: Type[BasicBlock], planes: int, depth: int, stride: int) -> nn.Sequential:
        after, downsample = planes * block.expansion, None
        if stride != 1 or self.planes != after:
            downsample = nn.Sequential(conv1x1(self.planes, after, stride=stride), nn.BatchNorm2d(after))
        blocks = [block(self.planes, planes, stride, downsample)]
        self.planes = after
        return nn.Sequential(*blocks, *(block(after, planes) for _ in range(depth - 1)))

    def _initialise(self) -> None:
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
            elif isinstance(module, (nn.modules.batchnorm._BatchNorm, nn.GroupNorm)):
                nn.init.constant_(module.weight, 1)
                nn.init.constant_(module.bias, 0)
        for module in self.modules():  # each residual branch starts as zero
            if isinstance(module, BasicBlock):
                nn.init.zeros_(module.last_norm.weight)

    def forward(self, x: Tensor) -> Tensor:
        x = self.pool(self.stages(self.stem(x)))
        return self.fc(torch.flatten(x, 1))


class Mean:
    def __init__(self) -> None:
        self.total, self.count = 0.0, 0

    def add(self, value: float, n: int = 1) -> None:
        self.total, self.count = self.total + value * n, self.count + n

    def __str__(self) -> str:
        return f"{self.total / max(self.count, 1):.5f}"


@torch.no_grad()
def accuracy(scores: Tensor, target: Tensor, ks: Tuple[int, ...]) -> List[Tensor]:
    """Return the percentage of targets among the top k predictions, for each k."""
    best = scores.topk(max(ks), 1, True, True)[1].t()
    hit = best.eq(target.view(1, -1).expand_as(best))
    return [hit[:k].reshape(-1).float().sum(0, keepdim=True).mul_(100.0 / target.size(0)) for k in ks]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--init", required=True, help="first weights; written where the file does not exist")
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--block", choices=["basic", "bottleneck"], default="basic")
    args = parser.parse_args()
    device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
    torch.backends.cudnn.benchmark = True

    rng = np.random.RandomState(0)
    labels = torch.from_numpy(rng.randint(0, 10, 24)).to(device)
    noise = torch.as_tensor(rng.randn(24, 3, 32, 32), dtype=torch.float32, device=device)
    images = noise + labels[:, None, None, None] * torch.linspace(-1, 1, 32, device=device)

    model = ResNet(BasicBlock, [1, 2]) if args.block == "basic" else ResNet(Bottleneck, [1, 1])
    model = model.to(device, memory_format=torch.channels_last)
    if os.path.exists(args.init):
        model.load_state_dict(torch.load(args.init, weights_only=True))
    else:
        torch.save(model.state_dict(), args.init)
    print(sum(p.numel() for p in model.parameters() if p.requires_grad), len(model.state_dict()))

    criterion = nn.CrossEntropyLoss(label_smoothing=0.1).to(device)
    optimizer = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9, weight_decay=1e-4, nesterov=True)
    phases = [LinearLR(optimizer, start_factor=0.1, total_iters=2), CosineAnnealingLR(optimizer, T_max=args.steps)]
    scheduler = SequentialLR(optimizer, phases, milestones=[2])
    losses, top1 = Mean(), Mean()
    for step in range(args.steps):
        model.train()
        chosen = torch.arange(12, device=device) + 12 * (step % 2)
        scores = model(images.index_select(0, chosen).contiguous(memory_format=torch.channels_last))
        loss = criterion(scores, labels[chosen])
        first, five = accuracy(scores, labels[chosen], (1, 5))
        losses.add(loss.item(), len(chosen))
        top1.add(first[0].item(), len(chosen))
        for p in model.parameters():
            p.grad = None
        loss.backward()
        optimizer.step()
        scheduler.step()
        print(f"step {step} loss {loss.item():.6f} top5 {five.item():.1f} lr {optimizer.param_groups[0]['lr']:.5f}")
    print(losses, top1)

    seen = {}
    handle = model.stages[-1].register_forward_hook(lambda module, inputs, output: seen.update(maps=output.detach()))
    model.eval()
    with torch.inference_mode():
        model(images[:4])
    handle.remove()
    print(tuple(seen["maps"].shape), f"{seen['maps'].mean().item():.5f}")
    model.fc = nn.Identity()
    for p in model.stages[0].parameters():
        p.requires_grad = False
    print(model(images[:2]).shape[1], sum(p.requires_grad for p in model.parameters()))


if __name__ == "__main__":
    main()
