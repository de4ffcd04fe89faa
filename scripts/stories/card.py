"""The model card: what the model is, how it was trained, how well it does, and how to make it again."""

from __future__ import annotations

import platform
from pathlib import Path

import numpy as np

import tallow
from tallow.io.atomic import atomic_write

from .plots import PLOTS
from .training import Training

CARD = """\
# stories

A language model of {parameters:,} parameters that tells small stories. tallow trained it, with its own autograd and its
own AdamW, in {minutes:.0f} minutes on {device}.

```python
from tallow.models import stories

model, tokenizer = stories.load()
```

`tallow generate` tells one in the terminal, and the page llama2c in a browser tab.

| file | what it holds |
| --- | --- |
| `model.safetensors` | the weights in float16, {weight_bytes:,} bytes; `load` widens them to float32 |
| `config.json` | the sizes, as Hugging Face's `LlamaForCausalLM` has them |
| `tokenizer.bin` | {vocab_size} pieces of byte-pair encoding, in llama2.c's format |

## What it can and cannot do

It continues a text in the register of a picture book: somebody has a problem, tries, is helped, and learns from it.
It learnt from nothing but stories that the grammar in `scripts/stories` tells, so it knows that grammar's {plots}
plots, thirty names and about a thousand words. It knows nothing of the world, and a prompt with other words leads it
astray. No text by anybody else was used.

## Sizes

{layers} layers of width {hidden_size}, {heads} heads, feed-forward width {intermediate_size}, a context of {context}
tokens, and the embedding as the head.

## Training

{told:,} different stories, of which {held_out:,} were held out and {learnt:,} learnt from. {steps} steps of
{batch_size} rows of {context} tokens; AdamW with learning rate {learning_rate} after {warmup_steps} steps of warm-up,
down to {final_learning_rate} along a cosine; weight decay {weight_decay} for all matrices but the embedding;
gradients clipped at norm {clip_norm}; float32; seed {seed}. The losses are nats per token; the validation loss is taken
of {validation_rows} rows of held-out stories.

{curve}

## Held-out stories

All {held_out:,} of them, each on its own, with the weights as they are in the file. The trigram model learnt from the
same stories and is scored on the same tokens; interpolated Kneser-Ney smooths it, with discount 0.75.

{scores}

## Make it again

```
pip install -e '.[train]'
scripts/train_stories.py               # Ctrl-C at any moment; --resume goes on
scripts/train_stories.py --evaluate    # the table above
```

tallow {version}, NumPy {numpy}, Python {python}. Another machine rounds differently, so its weights differ a little.
"""


def write(path: Path, training: Training, scores: str) -> None:
    """Write the card of a finished run beside the files that `training.export` wrote."""
    settings = training.settings
    values = vars(settings) | {
        "parameters": sum(parameter.numel() for parameter in training.model.parameters()),
        "minutes": training.seconds / 60,
        "device": "a CPU" if training.device == "cpu" else training.device,
        "weight_bytes": (path.parent / "model.safetensors").stat().st_size,
        "plots": len(PLOTS),
        "told": settings.stories,
        "learnt": settings.stories - settings.held_out,
        "curve": _curve(training.curve),
        "scores": scores,
        "version": tallow.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
    }
    with atomic_write(path) as file:
        file.write(CARD.format_map(values).encode())


def _curve(rows: list[list[float]]) -> str:
    lines = [f"| {step:.0f} | {train:.3f} | {validation:.3f} |" for step, train, validation in rows]
    return "\n".join(("| step | training loss | validation loss |", "| --- | --- | --- |", *lines))
