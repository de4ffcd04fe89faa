"""The speech model that comes with tallow: a Whisper of a million parameters that knows a hundred words.

tallow trained it: `scripts/train_spoken.py`. README.md beside this file says on what, how, and how well it does.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tallow import dtypes
from tallow.models.whisper import Whisper

FOLDER = Path(__file__).parent
KNOWS = "English digits, numbers to 999, colours, directions, days, months, and short commands made of them"


def load(dtype: Any = None, device: Any = None) -> Whisper:
    """The model, with its tokenizer.

    Args:  dtype: float32 if None; the file holds float16, which is slower to compute with

    What was said before tells it nothing, so long sounds are best heard with `condition_on_previous_text=False`.

    Example:
        model = spoken.load()
        print(transcribe(model, "phrase.wav").text)  # turn left ninety degrees
    """
    return Whisper.from_pretrained(FOLDER, dtype=dtypes.float32 if dtype is None else dtype, device=device)
