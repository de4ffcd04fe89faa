"""A variational autoencoder of smooth pictures, with a convolutional decoder and a weighted divergence."""

import argparse
import os

import numpy as np
import torch
import torch.utils.data
from torch import nn, optim
from torch.nn import functional as F


class Autoencoder(nn.Module):
    def __init__(self, latent=4):
        super().__init__()
        self.latent = latent
        self.encoder = nn.Sequential(nn.Flatten(), nn.Linear(64, 32), nn.SiLU())
        self.heads = nn.ModuleDict({"mean": nn.Linear(32, latent), "logvar": nn.Linear(32, latent)})
        self.decoder = nn.Sequential(
            nn.Linear(latent, 64),
            nn.Unflatten(1, (16, 2, 2)),
            nn.ConvTranspose2d(16, 8, 4, stride=2, padding=1, bias=False),
            nn.BatchNorm2d(8),
            nn.LeakyReLU(0.2, inplace=True),
            nn.Upsample(scale_factor=2, mode="nearest"),
            nn.Conv2d(8, 1, 3, padding=1),
            nn.Sigmoid(),
        )

    def forward(self, x):
        hidden = self.encoder(x)
        mean, logvar = (self.heads[name](hidden) for name in ("mean", "logvar"))
        std = torch.exp(0.5 * logvar)
        return self.decoder(mean + torch.randn_like(std) * std), mean, logvar

    @torch.no_grad()
    def sample(self, n):
        return self.decoder(torch.randn(n, self.latent))


def elbo(x, decoded, mean, logvar, beta=1.0):
    fit = F.binary_cross_entropy(decoded, x, reduction="sum")
    divergence = 0.5 * torch.sum(mean.pow(2) + logvar.exp() - 1 - logvar)
    return fit + beta * divergence, divergence


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--init", required=True, help="first weights; written where the file does not exist")
    parser.add_argument("--steps", type=int, default=4)
    args = parser.parse_args()
    rows = np.random.RandomState(0).rand(96, 1, 8, 8).astype("float32").cumsum(2)
    pictures = torch.utils.data.TensorDataset(torch.as_tensor(rows / rows.max()))
    loader = torch.utils.data.DataLoader(pictures, batch_size=32, drop_last=True, num_workers=0, pin_memory=False)
    model = Autoencoder()
    if os.path.exists(args.init):
        model.load_state_dict(torch.load(args.init))
    else:
        torch.save(model.state_dict(), args.init)
    optimizer = optim.Adam(model.parameters(), lr=1e-3, weight_decay=1e-5)
    for epoch in range(args.steps):
        model.train()
        total = torch.zeros(2)
        for (x,) in loader:
            loss, divergence = elbo(x, *model(x), beta=min(1.0, (epoch + 1) / 3))
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_value_(model.parameters(), 5.0)
            optimizer.step()
            total += torch.stack([loss.detach(), divergence.detach()])
        print(f"epoch {epoch} loss {total[0] / len(pictures):.5f} divergence {total[1] / len(pictures):.5f}")
        model.eval()
        print([f"{value:.4f}" for value in model.sample(5).mean((1, 2, 3)).tolist()])


if __name__ == "__main__":
    main()
