"""The model card: description, training, results, and how to reproduce them."""

from __future__ import annotations

from pathlib import Path

import model_card
from scenes.glyphs import PREFIX, SETS, UNSEEN

from .names import LANGUAGES, PACKAGE, Names
from .training import INDEX, Training, without_norms

CARD = """\
# emoji

An encoder of pictures and words with {stored:,} parameters: the vector of a picture is near those of the words that
name it. It knows {emoji} emoji, and words of {count} languages. It was trained with tallow in {minutes:.0f} minutes on
{device}.

```python
from tallow.models import emoji

encoder, index = emoji.load(), emoji.read_index()
scores = index.vectors @ encoder.encode_texts("a red fruit")
print([index.emoji[i] for i in (-scores).argsort()[:5]])
```

The page `wasm_examples/search` does the same in a browser tab, also with pictures of yours.

| file | contents |
| --- | --- |
| `model.safetensors` | the weights in int8, with a scale for each row and each channel, {weight_bytes:,} bytes |
| `index.safetensors` | the vector that each emoji has learned, in int8, {index_bytes:,} bytes |
| `config.json` | the sizes |
| `LICENSE-UNICODE` | the licence of the names and keywords |

## What it can and cannot do

The vector of a text is the sum of vectors of its words and of groups of their letters, so a word that it has never seen
is near those that it resembles. It knows neither word order nor negation. A picture is made {side} pixels long. It has
never seen a photograph: it finds a photograph of an apple only as far as it looks like a drawn one. For photographs,
use a CLIP.

Languages: {languages}.

## Training

{count_of_texts:,} names and keywords of Unicode's CLDR {version_of_names} (npm package `{package}`). Pictures of
Noto Color Emoji and of {sets} (npm packages `{prefix}*`), moved, turned, stretched and lit, on grounds of one colour.

Each emoji has a vector that is learned too. {steps} steps of {batch_size} pictures and {texts} texts: a softmax over
all emoji, of cosines times {sharpness}, finds the emoji of a picture, and that of a text; one minus the cosine of a
picture and its emoji, times {pull}, is added to the loss. {joined:.0%} of the texts are
two of one emoji; {dropout:.0%} of the groups of letters are left out. Muon with learning rate {filter_learning_rate}
for filters, AdamW with {learning_rate} for the rest, after {warmup_steps} steps of warm-up, along a cosine; gradients
clipped at norm {clip_norm}; float32; seed {seed}. Batch norms follow the convolutions in training, and are folded into
them for the file.

{curve}

## Test

A tenth of the names, each of an emoji in a language, is held out: training sees that emoji, its keywords and its names
in other languages, but never that name, or any text of the emoji with the same words. A search for the name ranks
all {emoji} emoji by the cosines of the vectors that they have learned, which the page searches; in the last rows, by
those of their pictures alone. No emoji of {unseen} is in the training set.

{scores}

## Reproduce it

```
apt-get install fonts-noto-color-emoji
pip install -e '.[train,image]' resvg-py
scripts/train_emoji.py               # Ctrl-C at any time; --resume continues
scripts/train_emoji.py --evaluate    # the table above
```

tallow {version}, NumPy {numpy}, Python {python}. Other machines round differently, so the weights differ slightly.

## Licence

Names and keywords: Copyright © 2004-2026 Unicode, Inc.; `LICENSE-UNICODE` permits use, copies, changes and distribution
if it comes with all copies. The pictures are not part of the files; they are those of Noto Color Emoji (OFL 1.1),
Twemoji (CC-BY 4.0) and Fluent Emoji (MIT).
"""


def write(path: Path, training: Training, names: Names, scores: str) -> None:
    """Write the card of a finished run next to the files of `training.export`."""
    encoder = without_norms(training.model)
    values = {
        "stored": sum(it.numel() for it in encoder.parameters()),
        "emoji": f"{len(names.emoji):,}",
        "count": len(LANGUAGES),
        "languages": ", ".join(LANGUAGES.values()),
        "index_bytes": (path.parent / INDEX).stat().st_size,
        "side": encoder.config.side,
        "count_of_texts": sum(map(len, names.texts)),
        "version_of_names": PACKAGE.version,
        "package": PACKAGE.name,
        "sets": ", ".join(each.name for each in SETS),
        "prefix": PREFIX,
        "unseen": UNSEEN.name,
        "curve": _curve(training.curve),
        "scores": scores,
    }
    model_card.write(path, CARD, training, values)


def _curve(rows: list[list[float]]) -> str:
    lines = [f"| {step:.0f} | {texts:.3f} | {pictures:.3f} | {recall:.3f} |" for step, texts, pictures, recall in rows]
    head = "| step | loss of texts | of pictures | recall at 5, by pictures of Noto Color Emoji |"
    return "\n".join((head, "| --- | --- | --- | --- |", *lines))
