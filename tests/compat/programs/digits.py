"""A convolutional network that reads digits from small noisy pictures: options, loaders, epochs, a scheduler."""

from __future__ import print_function

import argparse
import os

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch.optim.lr_scheduler import StepLR
from torch.utils.data import DataLoader, Dataset, Subset, TensorDataset

DOTS = ["111101101101111", "010110010010111", "111001111100111", "111001111001111", "101101111001001"]


class Pictures(Dataset):
    """Pictures of 12 x 12 pixels, each with a digit of 3 x 5 dots at a random position."""

    def __init__(self, length, transform=None):
        rng = np.random.RandomState(0)
        glyphs = torch.tensor([[int(dot) for dot in dots] for dots in DOTS], dtype=torch.uint8).view(-1, 5, 3)
        self.targets = torch.as_tensor(rng.randint(0, len(DOTS), length))
        self.data = torch.as_tensor((rng.rand(length, 12, 12) * 100).astype(np.uint8))
        self.transform = transform
        for picture, digit in zip(self.data, self.targets):
            row, column = rng.randint(0, 7), rng.randint(0, 9)
            picture[row : row + 5, column : column + 3] += glyphs[digit] * 150

    def __len__(self):
        return len(self.targets)

    def __getitem__(self, index):
        picture, digit = self.data[index], int(self.targets[index])
        return (picture if self.transform is None else self.transform(picture)), digit


class Reader(nn.Module):
    def __init__(self):
        super(Reader, self).__init__()
        self.edges = nn.Conv2d(1, 8, 3, 1)
        self.strokes = nn.Conv2d(8, 16, 3, 1)
        self.drop_maps = nn.Dropout2d(0.25)
        self.hidden = nn.Linear(16 * 4 * 4, 32)
        self.drop_units = nn.Dropout(0.5)
        self.scores = nn.Linear(32, 10)

    def forward(self, x):
        x = F.relu(self.strokes(F.relu(self.edges(x))))
        x = torch.flatten(self.drop_maps(F.max_pool2d(x, 2)), 1)
        x = self.drop_units(F.relu(self.hidden(x)))
        return F.log_softmax(self.scores(x), dim=1)


def learn(model, loader, optimizer, device, epoch, every):
    model.train()
    for number, (pictures, digits) in enumerate(loader):
        pictures, digits = pictures.to(device), digits.to(device)
        optimizer.zero_grad()
        loss = F.nll_loss(model(pictures), digits)
        loss.backward()
        optimizer.step()
        if number % every == 0:
            seen, total = number * len(pictures), len(loader.dataset)
            print(
                "epoch {} {:4d}/{} ({:.0f}%)\tloss {:.6f}".format(epoch, seen, total, 100.0 * seen / total, loss.item())
            )


def evaluate(model, loader, device):
    model.eval()
    loss, right = 0, 0
    with torch.no_grad():
        for pictures, digits in loader:
            pictures, digits = pictures.to(device), digits.to(device)
            output = model(pictures)
            loss += F.nll_loss(output, digits, reduction="sum").item()
            guess = output.argmax(dim=1, keepdim=True)
            right += guess.eq(digits.view_as(guess)).sum().item()
    print(f"held out: loss {loss / len(loader.dataset):.5f}, right {right}/{len(loader.dataset)}")


def main():
    parser = argparse.ArgumentParser(description="reading digits")
    parser.add_argument("--init", required=True, help="first weights; written where the file does not exist")
    parser.add_argument("--steps", type=int, default=2, metavar="N", help="epochs")
    parser.add_argument("--batch-size", type=int, default=32, metavar="N")
    parser.add_argument("--lr", type=float, default=1.0)
    parser.add_argument("--no-cuda", action="store_true", default=False)
    args = parser.parse_args()

    torch.manual_seed(1)
    if not args.no_cuda and torch.cuda.is_available():
        device, options = torch.device("cuda"), {"num_workers": 1, "pin_memory": True}
    elif torch.backends.mps.is_available():
        device, options = torch.device("mps"), {}
    else:
        device, options = torch.device("cpu"), {}

    pictures = Pictures(600, transform=lambda p: (p.float().div(255).unsqueeze(0) - 0.2) / 0.3)
    loader = DataLoader(Subset(pictures, range(400)), batch_size=args.batch_size, **options)
    held_out = [pictures[i] for i in range(400, 600)]
    tensors = torch.stack([picture for picture, _ in held_out]), torch.tensor([digit for _, digit in held_out])
    held_out_loader = DataLoader(TensorDataset(*tensors), batch_size=100)

    model = Reader().to(device)
    if os.path.isfile(args.init):
        model.load_state_dict(torch.load(args.init))
    else:
        torch.save(model.state_dict(), args.init)
    print(model)
    optimizer = optim.Adadelta(model.parameters(), lr=args.lr)
    scheduler = StepLR(optimizer, step_size=1, gamma=0.7)
    for epoch in range(1, args.steps + 1):
        learn(model, loader, optimizer, device, epoch, every=4)
        evaluate(model, held_out_loader, device)
        scheduler.step()
    print(scheduler.get_last_lr())
    torch.save(model.state_dict(), os.path.join(os.path.dirname(args.init), "reader.pt"))


if __name__ == "__main__":
    main()
