"""The model card: description, training, results, and how to reproduce them."""

from __future__ import annotations

from pathlib import Path

import model_card

from .plots import PLOTS
from .training import Training

CARD = """\
# stories

A language model with {parameters:,} parameters that tells small stories. It was trained with tallow in
{minutes:.0f} minutes on {device}.

```python
from tallow.models import stories

model, tokenizer = stories.load()
```

`tallow generate` tells a story in the terminal, and the page llama2c in a browser tab.

| file | contents |
| --- | --- |
| `model.safetensors` | the weights in float16, {weight_bytes:,} bytes; `load` widens them to float32 |
| `config.json` | the sizes, in the format of Hugging Face's `LlamaForCausalLM` |
| `tokenizer.bin` | {vocab_size} pieces of byte-pair encoding, in llama2.c's format |

## What it can and cannot do

It continues a text in the style of a picture book: a character has a problem, tries to solve it, gets help, and learns
something. The training data are stories from the grammar in `scripts/stories` only, so the model knows {plots} plots,
thirty names and about a thousand words. It has no knowledge of the world, and a prompt with other words gives nonsense.
No text by other authors was used.

## Sizes

{layers} layers of width {hidden_size}, {heads} heads, feed-forward width {intermediate_size}, a context of {context}
tokens, and the embedding as the head.

## Training

{told:,} distinct stories: {learnt:,} for training and {held_out:,} in the test set. {steps} steps of
{batch_size} rows of {context} tokens; AdamW with learning rate {learning_rate} after {warmup_steps} steps of warm-up,
down to {final_learning_rate} along a cosine; weight decay {weight_decay} for all matrices except the embedding;
gradients clipped at norm {clip_norm}; float32; seed {seed}. The losses are in nats per token; the validation loss is
that of {validation_rows} rows of the test set.

{curve}

## Test set

All {held_out:,} stories, scored separately, with the weights in the file. The trigram model was trained on the same
stories and is scored on the same tokens; it uses interpolated Kneser-Ney smoothing with discount 0.75.

{scores}

## Reproduce it

```
pip install -e '.[train]'
scripts/train_stories.py               # Ctrl-C at any time; --resume continues
scripts/train_stories.py --evaluate    # the table above
```

tallow {version}, NumPy {numpy}, Python {python}. Other machines round differently, so the weights differ slightly.
"""


def write(path: Path, training: Training, scores: str) -> None:
    """Write the card of a finished run next to the files of `training.export`."""
    settings = training.settings
    values = {
        "plots": len(PLOTS),
        "told": settings.stories,
        "learnt": settings.stories - settings.held_out,
        "curve": _curve(training.curve),
        "scores": scores,
    }
    model_card.write(path, CARD, training, values)


def _curve(rows: list[list[float]]) -> str:
    lines = [f"| {step:.0f} | {train:.3f} | {validation:.3f} |" for step, train, validation in rows]
    return "\n".join(("| step | training loss | validation loss |", "| --- | --- | --- |", *lines))
