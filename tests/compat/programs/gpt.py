"""A small GPT that learns to spell: configuration, model, optimizer, training, checkpoint and sampling in one file."""

import argparse
import contextlib
import dataclasses
import inspect
import math
import os
import pickle

import numpy as np
import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel

STORY = "a fox ran over the hill, a dog ran after the fox, and the cat sat on the mat and saw it all. " * 40


@dataclasses.dataclass
class Config:
    vocab: int
    context: int = 32
    layers: int = 2
    heads: int = 4
    width: int = 32
    drop: float = 0.1
    fused_attention: bool = True


class Norm(nn.Module):
    def __init__(self, width, with_bias=True):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.bias = nn.Parameter(torch.zeros(width)) if with_bias else None

    def forward(self, x):
        return F.layer_norm(x, self.weight.shape, self.weight, self.bias, 1e-5)


class CausalSelfAttention(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        assert cfg.width % cfg.heads == 0
        self.heads = cfg.heads
        self.p = cfg.drop
        self.to_qkv = nn.Linear(cfg.width, 3 * cfg.width)
        self.to_out = nn.Linear(cfg.width, cfg.width)
        self.drop_scores, self.drop_out = nn.Dropout(cfg.drop), nn.Dropout(cfg.drop)
        self.fused = cfg.fused_attention and hasattr(F, "scaled_dot_product_attention")
        if not self.fused:
            lower = torch.tril(torch.ones(cfg.context, cfg.context)).view(1, 1, cfg.context, cfg.context)
            self.register_buffer("bias", lower)

    def forward(self, x):
        batch, time, width = x.size()
        parts = self.to_qkv(x).split(width, dim=2)
        q, k, v = [part.view(batch, time, self.heads, width // self.heads).transpose(1, 2) for part in parts]
        if self.fused:
            mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=None, dropout_p=0, is_causal=True)
        else:
            scores = (q @ k.transpose(-2, -1)) / math.sqrt(k.size(-1))
            scores = scores.masked_fill(self.bias[:, :, :time, :time] == 0, float("-inf"))
            mixed = self.drop_scores(F.softmax(scores, dim=-1)) @ v
        return self.drop_out(self.to_out(mixed.transpose(1, 2).contiguous().view(batch, time, width)))


class Layer(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.norms = nn.ModuleList([Norm(cfg.width), Norm(cfg.width, with_bias=False)])
        self.attention = CausalSelfAttention(cfg)
        self.feed = nn.Sequential(
            nn.Linear(cfg.width, 4 * cfg.width),
            nn.GELU(approximate="tanh"),
            nn.Linear(4 * cfg.width, cfg.width),
            nn.Dropout(cfg.drop),
        )

    def forward(self, x):
        x = x + self.attention(self.norms[0](x))
        return x + self.feed(self.norms[1](x))


class GPT(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.cfg = cfg
        self.body = nn.ModuleDict(
            {
                "tokens": nn.Embedding(cfg.vocab, cfg.width),
                "places": nn.Embedding(cfg.context, cfg.width),
                "drop": nn.Dropout(cfg.drop),
                "layers": nn.ModuleList(Layer(cfg) for _ in range(cfg.layers)),
                "norm": Norm(cfg.width),
            }
        )
        self.head = nn.Linear(cfg.width, cfg.vocab, bias=False)
        self.body.tokens.weight = self.head.weight
        self.apply(self._init_weights)
        for name, weight in self.named_parameters():
            if name.endswith("to_out.weight"):
                nn.init.normal_(weight, mean=0.0, std=0.02 / math.sqrt(2 * cfg.layers))

    def _init_weights(self, module):
        if isinstance(module, (nn.Linear, nn.Embedding)):
            nn.init.normal_(module.weight, mean=0.0, std=0.02)
        if isinstance(module, nn.Linear) and module.bias is not None:
            nn.init.zeros_(module.bias)

    def forward(self, ids, targets=None):
        time = ids.size(1)
        assert time <= self.cfg.context
        where = torch.arange(time, dtype=torch.long, device=ids.device)
        x = self.body.drop(self.body.tokens(ids) + self.body.places(where))
        for layer in self.body.layers:
            x = layer(x)
        x = self.body.norm(x)
        if targets is None:
            return self.head(x[:, [-1], :]), None
        logits = self.head(x)
        return logits, F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1), ignore_index=-1)

    def shorten(self, context):
        """Drop the last positions, as after loading a longer model."""
        self.cfg.context = context
        self.body.places.weight = nn.Parameter(self.body.places.weight[:context])
        for layer in self.body.layers:
            if hasattr(layer.attention, "bias"):
                layer.attention.bias = layer.attention.bias[:, :, :context, :context]

    def configure_optimizers(self, decay, lr, device_type):
        learned = {name: p for name, p in self.named_parameters() if p.requires_grad}
        matrices = [p for p in learned.values() if p.dim() >= 2]
        vectors = [p for p in learned.values() if p.dim() < 2]
        groups = [{"params": matrices, "weight_decay": decay}, {"params": vectors, "weight_decay": 0.0}]
        fused = "fused" in inspect.signature(torch.optim.AdamW).parameters and device_type == "cuda"
        print(f"{len(matrices)} matrices, {len(vectors)} vectors, {sum(p.numel() for p in self.parameters()):,} in all")
        return torch.optim.AdamW(groups, lr=lr, betas=(0.9, 0.95), **({"fused": True} if fused else {}))

    @torch.no_grad()
    def generate(self, ids, length, temperature=1.0, top_k=None):
        for _ in range(length):
            logits, _ = self(ids[:, -self.cfg.context :])
            logits = logits[:, -1, :] / temperature
            if top_k is not None:
                best, _ = torch.topk(logits, min(top_k, logits.size(-1)))
                logits[logits < best[:, [-1]]] = -float("Inf")
            ids = torch.cat((ids, torch.multinomial(F.softmax(logits, dim=-1), num_samples=1)), dim=1)
        return ids


class Text:
    """Batches of windows of a text, from pinned memory where available."""

    def __init__(self, text, device):
        letters = sorted(set(text))
        self.meta = pickle.loads(pickle.dumps({"size": len(letters), "id": {c: i for i, c in enumerate(letters)}}))
        self.letters = letters
        ids = np.array([self.meta["id"][c] for c in text], dtype=np.uint16)
        split = int(0.9 * len(ids))
        self.parts = {"train": ids[:split], "val": ids[split:]}
        self.device = device

    def batch(self, part, context=32, size=8):
        ids = self.parts[part]
        starts = torch.randint(len(ids) - context, (size,))
        x = torch.stack([torch.from_numpy(ids[i : i + context].astype(np.int64)) for i in starts])
        y = torch.stack([torch.from_numpy(ids[i + 1 : i + 1 + context].astype(np.int64)) for i in starts])
        if "cuda" in self.device:
            return tuple(t.pin_memory().to(self.device, non_blocking=True) for t in (x, y))
        return x.to(self.device), y.to(self.device)


def learning_rate(step, warm=4, end=20, top=1e-3, bottom=1e-4):
    if step < warm:
        return top * (step + 1) / (warm + 1)
    share = min(1.0, (step - warm) / (end - warm))
    return bottom + (top - bottom) * 0.5 * (1.0 + math.cos(math.pi * share))


@torch.no_grad()
def estimate_loss(model, text, context_manager):
    model.eval()
    means = {}
    for part in ("train", "val"):
        losses = torch.zeros(3)
        for k in range(len(losses)):
            x, y = text.batch(part)
            with context_manager:
                losses[k] = model(x, y)[1].item()
        means[part] = losses.mean()
    model.train()
    return means


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--init", required=True, help="first weights; written where the file does not exist")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--plain-attention", action="store_true")
    parser.add_argument("--compile", action="store_true")
    args = parser.parse_args()

    several = "RANK" in os.environ and dist.is_available()
    if several:
        dist.init_process_group(backend="nccl")
    device = f"cuda:{os.environ.get('LOCAL_RANK', 0)}" if torch.cuda.is_available() else "cpu"
    kind = "cuda" if "cuda" in device else "cpu"
    can_bf16 = torch.cuda.is_available() and torch.cuda.is_bf16_supported()
    precision = {True: torch.bfloat16, False: torch.float32}[can_bf16]
    torch.manual_seed(1337)
    torch.backends.cuda.matmul.allow_tf32 = True
    torch.backends.cudnn.allow_tf32 = True
    torch.set_float32_matmul_precision("high")
    lowered = contextlib.nullcontext() if kind == "cpu" else torch.amp.autocast(device_type=kind, dtype=precision)

    text = Text(STORY, device)
    model = GPT(Config(vocab=text.meta["size"], fused_attention=not args.plain_attention))
    if os.path.exists(args.init):
        model.load_state_dict(torch.load(args.init, map_location=device))
    else:
        torch.save(model.state_dict(), args.init)
    model.to(device)
    scaler = torch.amp.GradScaler(enabled=(precision == torch.float16))
    optimizer = model.configure_optimizers(0.1, 1e-3, kind)
    if args.compile:
        model = torch.compile(model)
    if several:
        model = DistributedDataParallel(model, device_ids=[int(os.environ["LOCAL_RANK"])])
    plain = model.module if several else model

    accumulate = 2
    x, y = text.batch("train")
    for step in range(args.steps):
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(step)
        if step % 10 == 0:
            means = estimate_loss(model, text, lowered)
            print(f"step {step}: train {means['train']:.6f}, val {means['val']:.6f}")
        for _ in range(accumulate):
            with lowered:
                _, loss = model(x, y)
                loss = loss / accumulate
            x, y = text.batch("train")
            scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad(set_to_none=True)
        print(f"step {step}: loss {loss.item() * accumulate:.6f}, norm {norm:.4f}")

    path = os.path.join(os.path.dirname(args.init), "checkpoint.pt")
    saved = {"model": plain.state_dict(), "optimizer": optimizer.state_dict()}
    torch.save({**saved, "config": dataclasses.asdict(plain.cfg), "step": args.steps}, path)
    saved = torch.load(path, map_location=device)
    weights = {name.removeprefix("_orig_mod."): weight for name, weight in saved["model"].items()}
    again = GPT(Config(**saved["config"]))
    print(again.load_state_dict(weights))
    again.configure_optimizers(0.1, 1e-3, kind).load_state_dict(saved["optimizer"])
    again.shorten(16)
    again.eval()
    again.to(device)
    prompt = torch.tensor([text.meta["id"][c] for c in "a fox "], dtype=torch.long, device=device)[None, ...]
    story = again.generate(prompt, 24, temperature=0.8, top_k=3)[0].tolist()
    print("".join(text.letters[i] for i in story))
    if several:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
