"""A vision transformer from nn.TransformerEncoder, a seq2seq nn.Transformer, averaged weights, label smoothing."""

import argparse
import copy
import math
import os

import numpy as np
import torch
from torch import nn


class PatchEmbedding(nn.Module):
    def __init__(self, image=16, patch=4, channels=3, dim=24):
        super().__init__()
        self.proj = nn.Conv2d(channels, dim, kernel_size=patch, stride=patch)
        self.cls_token = nn.Parameter(torch.zeros(1, 1, dim))
        self.pos_embed = nn.Parameter(torch.empty(1, (image // patch) ** 2 + 1, dim))
        nn.init.trunc_normal_(self.pos_embed, std=0.02)

    def forward(self, x):
        x = self.proj(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.cls_token.expand(x.shape[0], -1, -1), x], dim=1)
        return x + self.pos_embed


class ViT(nn.Module):
    def __init__(self, dim=24, depth=2, heads=4, classes=5):
        super().__init__()
        self.embed = PatchEmbedding(dim=dim)
        layer = nn.TransformerEncoderLayer(
            d_model=dim,
            nhead=heads,
            dim_feedforward=2 * dim,
            dropout=0.0,
            activation="gelu",
            batch_first=True,
            norm_first=True,
        )
        self.encoder = nn.TransformerEncoder(
            layer, num_layers=depth, norm=nn.LayerNorm(dim), enable_nested_tensor=False
        )
        self.head = nn.Linear(dim, classes)

    def forward(self, x):
        return self.head(self.encoder(self.embed(x))[:, 0])


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len=50):
        super().__init__()
        pe = torch.zeros(max_len, d_model)
        position = torch.arange(0, max_len, dtype=torch.float).unsqueeze(1)
        div_term = torch.exp(torch.arange(0, d_model, 2).float() * (-math.log(10000.0) / d_model))
        pe[:, 0::2] = torch.sin(position * div_term)
        pe[:, 1::2] = torch.cos(position * div_term)
        self.register_buffer("pe", pe.unsqueeze(0).transpose(0, 1), persistent=False)

    def forward(self, x):
        return x + self.pe[: x.size(0), :]


class Seq2Seq(nn.Module):
    def __init__(self, vocab=11, dim=16):
        super().__init__()
        self.tok = nn.Embedding(vocab, dim)
        self.pos = PositionalEncoding(dim)
        self.transformer = nn.Transformer(dim, 2, 1, 1, 32, dropout=0.0)
        self.generator = nn.Linear(dim, vocab)

    def forward(self, src, tgt):
        tgt_mask = nn.Transformer.generate_square_subsequent_mask(tgt.size(0))
        padding = (src == 0).transpose(0, 1)
        out = self.transformer(
            self.pos(self.tok(src) * 4.0),
            self.pos(self.tok(tgt) * 4.0),
            tgt_mask=tgt_mask,
            src_key_padding_mask=padding.float().masked_fill(padding, float("-inf")),
        )
        return self.generator(out)


class EMA:
    def __init__(self, model, decay=0.9):
        self.module, self.decay = copy.deepcopy(model).eval(), decay
        for p in self.module.parameters():
            p.requires_grad_(False)

    @torch.no_grad()
    def update(self, model):
        for ours, theirs in zip(self.module.state_dict().values(), model.state_dict().values()):
            ours.copy_(self.decay * ours + (1.0 - self.decay) * theirs)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--init", required=True)
    parser.add_argument("--steps", type=int, default=5)
    args = parser.parse_args()
    rng = np.random.RandomState(0)
    vit, seq = ViT(), Seq2Seq()
    both = nn.ModuleDict({"vit": vit, "seq": seq})
    if os.path.exists(args.init):
        both.load_state_dict(torch.load(args.init))
    else:
        torch.save(both.state_dict(), args.init)

    images = torch.as_tensor(rng.randn(10, 3, 16, 16)).float()
    labels = torch.as_tensor(rng.randint(0, 5, 10)).long()
    ema = EMA(vit)
    no_decay = {n for n, p in vit.named_parameters() if p.ndim < 2 or "pos_embed" in n}
    optimizer = torch.optim.AdamW(
        [
            {"params": [p for n, p in vit.named_parameters() if n not in no_decay]},
            {"params": [p for n, p in vit.named_parameters() if n in no_decay], "weight_decay": 0.0},
        ],
        lr=2e-3,
        weight_decay=0.05,
    )
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=2e-3, total_steps=args.steps)
    for step in range(args.steps):
        loss = nn.functional.cross_entropy(vit(images), labels, label_smoothing=0.1)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        ema.update(vit)
        print(f"vit {step} loss {loss.item():.6f} {scheduler.get_last_lr()[0]:.6f}")
    vit.eval()
    with torch.no_grad():
        print((vit(images).softmax(-1) - ema.module(images).softmax(-1)).abs().sum().gt(0).item())

    src = torch.as_tensor(rng.randint(1, 11, (7, 4)))
    src[5:, 1] = 0
    tgt = torch.flip(src, dims=[0])
    optimizer = torch.optim.Adam(seq.parameters(), lr=1e-3, betas=(0.9, 0.98), eps=1e-9)
    lr_scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min((step + 1) ** -0.5, (step + 1) / 3))
    for step in range(args.steps):
        logits = seq(src, tgt[:-1])
        loss = nn.functional.cross_entropy(logits.reshape(-1, 11), tgt[1:].reshape(-1), ignore_index=0)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        lr_scheduler.step()
        print(f"seq2seq {step} loss {loss.item():.6f}")
    print(nn.Transformer.generate_square_subsequent_mask(3))


if __name__ == "__main__":
    main()
