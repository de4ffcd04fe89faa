"""A character-level GPT in one file, small enough to train while you watch.

    python examples/char_gpt.py                      memorises two sonnets
    python examples/char_gpt.py book.txt --steps 2000

Letters in the names of tensors: B batch, T positions, D width, H heads, K head width, V vocabulary (characters).
Source: Vaswani et al. 2017, arXiv:1706.03762; Radford et al. 2019, GPT-2
"""

import argparse
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import tallow as tl
import tallow.nn.functional as F
from tallow import nn

# William Shakespeare, sonnets 18 and 116.
SONNETS = """\
Shall I compare thee to a summer's day?
Thou art more lovely and more temperate:
Rough winds do shake the darling buds of May,
And summer's lease hath all too short a date:
Sometime too hot the eye of heaven shines,
And often is his gold complexion dimm'd;
And every fair from fair sometime declines,
By chance, or nature's changing course, untrimm'd;
But thy eternal summer shall not fade,
Nor lose possession of that fair thou ow'st;
Nor shall Death brag thou wander'st in his shade,
When in eternal lines to time thou grow'st:
So long as men can breathe, or eyes can see,
So long lives this, and this gives life to thee.

Let me not to the marriage of true minds
Admit impediments. Love is not love
Which alters when it alteration finds,
Or bends with the remover to remove:
O no! it is an ever-fixed mark
That looks on tempests and is never shaken;
It is the star to every wandering bark,
Whose worth's unknown, although his height be taken.
Love's not Time's fool, though rosy lips and cheeks
Within his bending sickle's compass come:
Love alters not with his brief hours and weeks,
But bears it out even to the edge of doom.
If this be error and upon me proved,
I never writ, nor no man ever loved.
"""


@dataclass(frozen=True)
class Config:
    """The sizes of a GPT."""

    characters: int
    context: int = 64
    width: int = 64
    heads: int = 4
    layers: int = 2


class Attention(nn.Module):
    """Causal self-attention with several heads."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.heads = config.heads
        self.query_key_value = nn.Linear(config.width, 3 * config.width)
        self.output = nn.Linear(config.width, config.width)

    def forward(self, x_BTD: tl.Tensor) -> tl.Tensor:
        B, T, D = x_BTD.shape
        heads_BTHK = (part.view(B, T, self.heads, -1) for part in self.query_key_value(x_BTD).chunk(3, dim=-1))
        query, key, value = (part.transpose(1, 2) for part in heads_BTHK)
        mixed_BHTK = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        return self.output(mixed_BHTK.transpose(1, 2).reshape(B, T, D))


class Block(nn.Module):
    """Attention between positions, then an MLP at each position, both with residual connections."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(config.width)
        self.attention = Attention(config)
        self.norm2 = nn.LayerNorm(config.width)
        self.mlp = nn.Sequential(
            nn.Linear(config.width, 4 * config.width), nn.GELU(), nn.Linear(4 * config.width, config.width)
        )

    def forward(self, x_BTD: tl.Tensor) -> tl.Tensor:
        x_BTD = x_BTD + self.attention(self.norm1(x_BTD))
        return x_BTD + self.mlp(self.norm2(x_BTD))


class GPT(nn.Module):
    """A GPT: scores of the next character at each position.  Shapes: characters (B, T) -> scores (B, T, V)"""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.config = config
        self.characters = nn.Embedding(config.characters, config.width)
        self.positions = nn.Embedding(config.context, config.width)
        self.blocks = nn.Sequential(*(Block(config) for _ in range(config.layers)))
        self.norm = nn.LayerNorm(config.width)
        self.head = nn.Linear(config.width, config.characters, bias=False)

    def forward(self, text_BT: tl.Tensor) -> tl.Tensor:
        positions_T = tl.arange(text_BT.shape[1])
        x_BTD = self.characters(text_BT) + self.positions(positions_T)
        return self.head(self.norm(self.blocks(x_BTD)))


class Alphabet:
    """A mapping between the characters of a text and their ids, in sorted order."""

    def __init__(self, text: str) -> None:
        self.characters = sorted(set(text))
        self.numbers = {character: i for i, character in enumerate(self.characters)}

    def encode(self, text: str) -> list[int]:
        return [self.numbers[character] for character in text]

    def decode(self, numbers: Iterable[int]) -> str:
        return "".join(self.characters[i] for i in numbers)


def batches(text: tl.Tensor, steps: int, size: int, length: int) -> Iterator[tuple[tl.Tensor, tl.Tensor]]:
    """Yield random pieces (size, length) of the text, and the same pieces shifted by one character."""
    for _ in range(steps):
        starts = tl.randint(len(text) - length, (size,)).tolist()
        yield (
            tl.stack([text[start : start + length] for start in starts]),
            tl.stack([text[start + 1 : start + length + 1] for start in starts]),
        )


def train(model: GPT, data: Iterable[tuple[tl.Tensor, tl.Tensor]], lr: float = 3e-3) -> list[float]:
    """Take one step of AdamW per batch; return the losses in nats per character."""
    optimizer = tl.optim.AdamW(model.parameters(), lr=lr)
    losses = []
    for step, (text_BT, next_BT) in enumerate(data):
        scores_BTV = model(text_BT)
        loss = F.cross_entropy(scores_BTV.flatten(0, 1), next_BT.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        if step % 20 == 0:
            print(f"step {step:4}  loss {losses[-1]:.3f}")
    return losses


@tl.no_grad()
def write(model: GPT, alphabet: Alphabet, start: str, length: int, temperature: float = 0.7) -> str:
    """Continue `start`: sample each next character from its probabilities."""
    text = alphabet.encode(start)
    for _ in range(length):
        scores_V = model(tl.tensor([text[-model.config.context :]]))[0, -1]
        text.append(int(tl.multinomial(F.softmax(scores_V / temperature, dim=-1), 1).item()))
    return alphabet.decode(text)


def main(text: str = SONNETS, steps: int = 500) -> tuple[list[float], str]:
    """Train on a text; return the losses and a sample of the trained model."""
    tl.manual_seed(1)
    alphabet = Alphabet(text)
    numbers = tl.tensor(alphabet.encode(text))
    model = GPT(Config(len(alphabet.characters)))
    context = min(model.config.context, len(text) - 1)
    parameters = sum(p.numel() for p in model.parameters())
    print(f"{len(text)} characters, {len(alphabet.characters)} distinct; {parameters} parameters")
    losses = train(model, batches(numbers, steps, size=16, length=context))
    sample = write(model, alphabet, start=text[:10], length=200)
    print(sample)
    return losses, sample


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Train a small character-level GPT on a text.")
    parser.add_argument("file", nargs="?", type=Path, help="a UTF-8 text file (default: two sonnets)")
    parser.add_argument("--steps", type=int, default=500)
    options = parser.parse_args()
    main(options.file.read_text(encoding="utf-8") if options.file else SONNETS, options.steps)
