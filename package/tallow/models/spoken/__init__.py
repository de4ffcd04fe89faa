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

# A text is unlikely whose tokens' mean log-probability is below it. Of phrases that the model knows, said by voices of
# eSpeak NG that it was not trained on, 3% are below, most of them with errors; of ordinary English, German, French and
# Spanish sentences 97%. The -1.0 that OpenAI has for its models would find none of these: a model that knows a hundred
# words is soon sure of one. (150 phrases, 97 windows of sentences; README.md has the table.)
LOGPROB_THRESHOLD = -0.3


def load(dtype: Any = None, device: Any = None) -> Whisper:
    """The model, with its tokenizer.

    Args:  dtype: float32 if None; the file holds float16, which is slower to compute with

    What was said before tells it nothing, so long sounds are best heard with `condition_on_previous_text=False`.

    Example:
        model = spoken.load()
        print(transcribe(model, "phrase.wav").text)  # turn left ninety degrees
    """
    return Whisper.from_pretrained(FOLDER, dtype=dtypes.float32 if dtype is None else dtype, device=device)
