"""A transcriber built like large speech models: layers for half precision, a cache filled by hooks."""

import argparse
import os
from dataclasses import asdict, dataclass
from typing import Dict, List, Optional, Tuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn


@dataclass
class Sizes:
    mels: int = 8
    frames: int = 10
    width: int = 16
    heads: int = 2
    layers: int = 2
    vocab: int = 13
    text: int = 12


class LayerNorm(nn.LayerNorm):
    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x.float()).type(x.dtype)


class Linear(nn.Linear):
    def forward(self, x: Tensor) -> Tensor:
        bias = None if self.bias is None else self.bias.to(x.dtype)
        return F.linear(x, self.weight.to(x.dtype), bias)


class Conv1d(nn.Conv1d):
    def _conv_forward(self, x: Tensor, weight: Tensor, bias: Optional[Tensor]) -> Tensor:
        return super()._conv_forward(x, weight.to(x.dtype), None if bias is None else bias.to(x.dtype))


def waves(length: int, width: int, longest: float = 10_000.0) -> Tensor:
    step = np.log(longest) / (width // 2 - 1)
    angles = torch.arange(length)[:, np.newaxis] * torch.exp(-step * torch.arange(width // 2))[np.newaxis, :]
    return torch.cat([angles.sin(), angles.cos()], dim=1)


class Attention(nn.Module):
    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads = heads
        self.query, self.value, self.out = (Linear(width, width) for _ in range(3))
        self.key = Linear(width, width, bias=False)

    def forward(self, x: Tensor, source: Optional[Tensor] = None, mask: Optional[Tensor] = None, cache=None):
        crosses = source is not None
        if crosses and cache is not None and self.key in cache:
            key, value = cache[self.key], cache[self.value]  # the source does not change
        else:
            key, value = (layer(source if crosses else x) for layer in (self.key, self.value))
        return self.out(self._attend(self.query(x), key, value, mask))

    def _attend(self, q: Tensor, k: Tensor, v: Tensor, mask: Optional[Tensor]) -> Tensor:
        time, width = q.shape[1:]
        scale = (width // self.heads) ** -0.25
        q, k, v = (t.view(*t.shape[:2], self.heads, -1).permute(0, 2, 1, 3) for t in (q, k, v))
        scores = (q * scale) @ (k * scale).transpose(-1, -2)
        if mask is not None:
            scores = scores + mask[:time, :time]
        weights = F.softmax(scores.float(), dim=-1).to(q.dtype)
        return (weights @ v).permute(0, 2, 1, 3).flatten(start_dim=2)


class Layer(nn.Module):
    def __init__(self, width: int, heads: int, crosses: bool = False):
        super().__init__()
        self.own, self.own_norm = Attention(width, heads), LayerNorm(width)
        self.cross = Attention(width, heads) if crosses else None
        self.cross_norm = LayerNorm(width) if crosses else None
        self.mlp = nn.Sequential(Linear(width, 4 * width), nn.GELU(), Linear(4 * width, width))
        self.mlp_norm = LayerNorm(width)

    def forward(self, x: Tensor, source: Optional[Tensor] = None, mask: Optional[Tensor] = None, cache=None) -> Tensor:
        x = x + self.own(self.own_norm(x), mask=mask, cache=cache)
        if self.cross:
            x = x + self.cross(self.cross_norm(x), source, cache=cache)
        return x + self.mlp(self.mlp_norm(x))


class Listener(nn.Module):
    def __init__(self, sizes: Sizes):
        super().__init__()
        self.conv1 = Conv1d(sizes.mels, sizes.width, kernel_size=3, padding=1)
        self.conv2 = Conv1d(sizes.width, sizes.width, kernel_size=3, stride=2, padding=1)
        self.register_buffer("places", waves(sizes.frames, sizes.width))
        self.layers = nn.ModuleList([Layer(sizes.width, sizes.heads) for _ in range(sizes.layers)])
        self.norm = LayerNorm(sizes.width)

    def forward(self, mel: Tensor) -> Tensor:
        x = F.gelu(self.conv2(F.gelu(self.conv1(mel)))).permute(0, 2, 1)
        assert x.shape[1:] == self.places.shape, "the audio has another length"
        x = (x + self.places).to(x.dtype)
        for layer in self.layers:
            x = layer(x)
        return self.norm(x)


class Writer(nn.Module):
    def __init__(self, sizes: Sizes):
        super().__init__()
        self.tokens = nn.Embedding(sizes.vocab, sizes.width)
        self.places = nn.Parameter(torch.empty(sizes.text, sizes.width))
        nn.init.normal_(self.places, std=0.1)
        self.layers = nn.ModuleList([Layer(sizes.width, sizes.heads, crosses=True) for _ in range(sizes.layers)])
        self.norm = LayerNorm(sizes.width)
        self.register_buffer("mask", torch.empty(sizes.text, sizes.text).fill_(-np.inf).triu_(1), persistent=False)

    def forward(self, ids: Tensor, sound: Tensor, cache: Optional[dict] = None) -> Tensor:
        position = next(iter(cache.values())).shape[1] if cache else 0
        x = (self.tokens(ids) + self.places[position : position + ids.shape[-1]]).to(sound.dtype)
        for layer in self.layers:
            x = layer(x, sound, mask=self.mask, cache=cache)
        x = self.norm(x)
        return (x @ torch.transpose(self.tokens.weight.to(x.dtype), 0, 1)).float()


class Transcriber(nn.Module):
    def __init__(self, sizes: Sizes):
        super().__init__()
        self.sizes = sizes
        self.listener, self.writer = Listener(sizes), Writer(sizes)
        upper = torch.zeros(sizes.layers, sizes.heads, dtype=torch.bool)
        upper[sizes.layers // 2 :] = True
        self.register_buffer("upper_heads", upper, persistent=False)

    @property
    def device(self):
        return next(self.parameters()).device

    def forward(self, mel: Tensor, ids: Tensor) -> Dict[str, Tensor]:
        return {"logits": self.writer(ids, self.listener(mel))}

    def keep_keys_and_values(self) -> Tuple[Dict[nn.Module, Tensor], List]:
        cache: Dict[nn.Module, Tensor] = {}
        handles = []

        def keep(module, inputs, output):
            known = cache.get(module)
            grows = known is not None and output.shape[1] <= self.sizes.text
            cache[module] = torch.cat([known, output], dim=1).detach() if grows else output
            return cache[module]

        def watch(module: nn.Module):
            if isinstance(module, Attention):
                handles.extend(layer.register_forward_hook(keep) for layer in (module.key, module.value))

        self.writer.apply(watch)
        return cache, handles

    @torch.no_grad()
    def transcribe(self, mel: Tensor, length: int):
        sound = self.listener(mel)
        cache, handles = self.keep_keys_and_values()
        ids = torch.tensor([[0]] * mel.shape[0]).to(self.device)
        score = torch.zeros(mel.shape[0], device=self.device)
        for _ in range(length):
            logits = self.writer(ids[:, -1:], sound, cache=cache)[:, -1]
            logits[:, 0] = -np.inf
            logprobs = F.log_softmax(logits, dim=-1)
            best = logits.argmax(dim=-1)
            score += logprobs[torch.arange(len(best)), best]
            ids = torch.cat([ids, best[:, None]], dim=-1)
        for handle in handles:
            handle.remove()
        return ids, score


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--init", required=True, help="first weights; written where the file does not exist")
    parser.add_argument("--steps", type=int, default=5)
    args = parser.parse_args()
    if os.path.exists(args.init):
        with open(args.init, "rb") as file:
            saved = torch.load(file, map_location="cpu")
        model = Transcriber(Sizes(**saved["sizes"]))
        model.load_state_dict(saved["weights"])
    else:
        model = Transcriber(Sizes())
        torch.save({"sizes": asdict(model.sizes), "weights": model.state_dict()}, args.init)
    rng = np.random.RandomState(0)
    mel = torch.as_tensor(rng.randn(3, model.sizes.mels, 2 * model.sizes.frames).astype(np.float32)).to(model.device)
    ids = torch.as_tensor(rng.randint(0, model.sizes.vocab, (3, 8)))
    optimizer = torch.optim.NAdam([p for p in model.parameters() if p.requires_grad], lr=3e-3)
    for step in range(args.steps):
        logits = model(mel, ids[:, :-1])["logits"]
        loss = F.cross_entropy(logits.transpose(1, 2), ids[:, 1:])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"step {step} loss {loss.item():.6f}")
    model.eval()
    ids, score = model.transcribe(mel, 6)
    print(ids.tolist(), [f"{value:.4f}" for value in score.tolist()])
    print(model.upper_heads.nonzero().tolist(), model.listener(mel.half()).dtype)


if __name__ == "__main__":
    main()
