"""The built-in speech model: a Whisper of a million parameters that knows a hundred words.

It was trained with tallow, by `scripts/train_spoken.py`. README.md in this folder describes its data, training and
quality.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tallow import dtypes
from tallow.models.whisper import Whisper

FOLDER = Path(__file__).parent
KNOWS = "English digits, numbers to 999, colours, directions, days, months, and short commands made of them"

# A text counts as unlikely if the mean log-probability of its tokens is below this. Among phrases that the model knows,
# spoken by eSpeak NG voices that it was not trained on, 3% are below, most of them with errors; among ordinary English,
# German, French and Spanish sentences, 97%. OpenAI's -1.0 would reject none of these: a model that knows a hundred
# words is quickly certain of one. (150 phrases, 97 windows of sentences; README.md has the table.)
LOGPROB_THRESHOLD = -0.3


def load(dtype: Any = None, device: Any = None, *, quant: str | None = None) -> Whisper:
    """Return the model, with its tokenizer.

    Previous text does not help it, so transcribe long sounds with `condition_on_previous_text=False`.

    Args:
        dtype: None means float32; the file holds float16, which is slower to compute with.
        quant: as in `Whisper.from_pretrained`.

    Example:
        model = spoken.load()
        print(transcribe(model, "phrase.wav").text)  # turn left ninety degrees
    """
    return Whisper.from_pretrained(FOLDER, dtype=dtypes.float32 if dtype is None else dtype, device=device, quant=quant)
