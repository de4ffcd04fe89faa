"""The model card: description, training, results, and how to reproduce them."""

from __future__ import annotations

from pathlib import Path

import model_card

from .glyphs import PREFIX, SETS, UNSEEN
from .kinds import KINDS
from .training import Training

CARD = """\
# scenes

A detector with {parameters:,} parameters that finds {kinds} kinds of things, drawn as emoji, in pictures: boxes, masks
and scores. It was trained with tallow in {minutes:.0f} minutes on {device}.

```python
from pathlib import Path

import numpy as np
from PIL import Image

from tallow.models.vision.scene_finder import SceneFinder
from tallow.models.vision.scenes import SceneDetector

folder = Path("wasm_examples/find/model")
finder = SceneFinder(SceneDetector.from_files(folder / "config.json", folder / "model.safetensors"))
(found,) = finder.find([np.asarray(Image.open("scene.png").convert("RGB"))], threshold=0.4)
print([finder.labels[label] for label in found.labels])
```

The page `wasm_examples/find` does the same in a browser tab, also live with a camera.

| file | contents |
| --- | --- |
| `model.safetensors` | the weights in int8 and the scale of each output channel, {weight_bytes:,} bytes |
| `config.json` | the sizes and the labels |

## What it can and cannot do

It knows {kinds} things:

> {labels}

It knows them as emoji, on a screen or on paper, at {smallest:.0f} to {largest:.0f} pixels of a picture that the
finder makes 256 pixels long. It has never seen a photograph of a real dog: for those, use a real detector.

## Training

Scenes of {side} by {side} pixels: {things_to_learn[0]} to {things_to_learn[1]} emoji of random size, turn, overlap and
brightness, and up to {most_others} that are nothing to find, over plain grounds, gradients, noise, stripes and shapes;
then other light, blur and noise. Half of the emoji are Noto Color Emoji's, the others of {sets}
(npm packages `{prefix}*`). Each scene is learned from twice, the second time mirrored.

{steps} steps of {batch_size} scenes. Muon with learning rate {filter_learning_rate} and weight decay
{filter_weight_decay} for filters of several channels, AdamW with {learning_rate} and {weight_decay} for the rest, after
{warmup_steps} steps of warm-up, down to {share_at_end:.1%} along a cosine; gradients clipped at norm {clip_norm};
float32; seed {seed}. Batch norms follow the convolutions in training, and are folded into them for the file.

{curve}

## Test

mAP50 of COCO's evaluation, in scenes of {things[0]} to {things[1]} things that training never sees, with the weights in
the file. No emoji of {unseen} is in the training set.

{scores}

## Reproduce it

```
apt-get install fonts-noto-color-emoji
pip install -e '.[train,image]' resvg-py
scripts/train_scenes.py               # Ctrl-C at any time; --resume continues
scripts/train_scenes.py --evaluate    # the table above
```

tallow {version}, NumPy {numpy}, Python {python}. Other machines round differently, so the weights differ slightly.
"""


def write(path: Path, training: Training, scores: str) -> None:
    """Write the card of a finished run next to the files of `training.export`."""
    settings = training.settings
    values = {
        "share_at_end": settings.final_learning_rate / settings.learning_rate,
        "labels": ", ".join(list(KINDS)[: settings.kinds]),
        "sets": ", ".join(each.name for each in SETS),
        "prefix": PREFIX,
        "unseen": UNSEEN.name,
        "curve": _curve(training.curve),
        "scores": scores,
    }
    model_card.write(path, CARD, training, values)


def _curve(rows: list[list[float]]) -> str:
    lines = [
        f"| {step:.0f} | {kinds:.3f} | {boxes:.3f} | {masks:.3f} | {precision:.3f} |"
        for step, kinds, boxes, masks, precision in rows
    ]
    head = ("| step | loss of kinds | of boxes | of masks | mAP50, 64 scenes |", "| --- | --- | --- | --- | --- |")
    return "\n".join((*head, *lines))
