"""The model card: what the model is, how it was trained, how well it does, and how to make it again."""

from __future__ import annotations

import platform
from pathlib import Path

import numpy as np

import tallow
from tallow.io.atomic import atomic_write

from .phrases import HELD_OUT_SHARE, WORDS
from .training import Training
from .voices import ACCENTS, HELD_OUT, VARIANTS

CARD = """\
# spoken

A speech model of {parameters:,} parameters that writes down English digits, numbers to 999, colours, directions, days,
months, and short commands made of them, and when they are said, to a tenth of a second. tallow trained it, with its
own autograd and its own AdamW, in {minutes:.0f} minutes on {device}.

```python
from tallow.models import spoken
from tallow.models.whisper import transcribe

print(transcribe(spoken.load(), "phrase.wav").text)
```

`tallow transcribe phrase.wav` does so in the terminal, and the page whisper in a browser tab.

| file | what it holds |
| --- | --- |
| `model.safetensors` | the weights in float16, {weight_bytes:,} bytes; `load` widens them to float32 |
| `config.json` | the sizes, as Hugging Face's `WhisperForConditionalGeneration` has them |
| `vocab.json` | all bytes, and the words, spelt as in GPT-2's vocabulary; Whisper's special tokens follow them |

## What it can and cannot do

It knows {words} words, and whatever it hears, it writes some of these:

> {vocabulary}

All that it has heard was said by eSpeak NG's synthetic voices. They are alike, so people, microphones and rooms of
other kinds are understood less well, or not at all; other words, other languages and music become words that were not
said. For all of these take a real Whisper: `--model openai/whisper-tiny` and larger ones. It hears {window:g} seconds
at once; longer sounds are heard piece by piece, so a phrase of more than that is cut in two, and one that begins in the
last instant of a piece may lose its first word. What was said before tells nothing of what follows: pass
`condition_on_previous_text=False` for long sounds, as `tallow transcribe` does.

## Sizes

The architecture is Whisper's, made small: {encoder_layers} layers of width {width} that hear, with {heads} heads and
feed-forward width {encoder_inner}; {decoder_layers} layers that write, with feed-forward width {decoder_inner};
80 mel bins, {positions} positions of sound, {context} of text.

## Training

{clips:,} phrases of a grammar, {accents} accents, {variants} variants of the voices, at many speeds and pitches. Each
row has up to four phrases with silence around them, at another speed, mostly with noise, sometimes with echoes, and
through some microphone; some rows are silent, some end or begin within a phrase, some come after other text. Half of
the texts have times. A head on the encoder, which is dropped afterwards, tells which word is being said at each
position; its loss counts too, with weight {spoken_weight}, so that what the decoder looks for is soon there to be
found. The heads of the encoder begin by looking at fixed distances.

{steps} steps of {batch_size} rows, as long as the longest sound in them, but in the last {full_share:.0%} of the steps
as long as the window; AdamW with learning rate {learning_rate} after {warmup_steps} steps of warm-up, down to
{final_learning_rate} along a cosine; weight decay {weight_decay} for the matrices of layers; gradients clipped at norm
{clip_norm}; float32; seed {seed}.

The losses are nats per token of the text, and nats per position of the sound; the word error rate is that of
{validation_clips} held-out phrases while training, without times.

{curve}

## Held-out phrases and voices

{held_out} phrases, of the one in {held_out_share} that was never trained on, by {held_out_voices} voices that were
not, either: {held_out_names}; greedy, with the weights as they are in the file.
Noisy ones have echoes, and noise that is fainter by 10 to 25 dB. Most errors are words that sound alike, as fifteen
for fifty, among words that have nothing to do with each other; of long rows of digits one may be left out.

{scores}

## When it guesses

The mean log-probability of a text's tokens (`avg_logprob` of a segment) tells phrases that the model knows from speech
that it cannot know. `spoken.LOGPROB_THRESHOLD` is -0.3; the page calls what is below it a guess. OpenAI's -1.0 would
find no guess: a model that knows few words is soon sure of one. Percentiles of 150 of the held-out phrases, clean and
noisy, and of 92 ordinary English, German, French and Spanish sentences by eSpeak NG:

| | 5% | 25% | median | 75% | 95% | below -0.3 |
| --- | --- | --- | --- | --- | --- | --- |
| phrases | -0.23 | -0.16 | -0.12 | -0.10 | -0.07 | 3% |
| phrases, noisy | -0.39 | -0.19 | -0.15 | -0.12 | -0.08 | 10% |
| sentences | -0.82 | -0.67 | -0.53 | -0.42 | -0.33 | 97% |

Of the phrases below it, 16 of 19 have errors.

## Make it again

```
apt-get install espeak-ng
pip install -e '.[train]'
scripts/train_spoken.py               # Ctrl-C at any moment; --resume goes on
scripts/train_spoken.py --evaluate    # the table above
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
        "words": len(WORDS),
        "vocabulary": ", ".join(WORDS),
        "window": settings.positions / 50,
        "accents": len(ACCENTS),
        "variants": len(VARIANTS),
        "held_out_share": HELD_OUT_SHARE,
        "held_out_voices": len(HELD_OUT),
        "held_out_names": ", ".join(HELD_OUT),
        "curve": _curve(training.curve),
        "scores": scores,
        "version": tallow.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
    }
    with atomic_write(path) as file:
        file.write(CARD.format_map(values).encode())


def _curve(rows: list[list[float]]) -> str:
    lines = [f"| {step:.0f} | {text:.3f} | {words:.3f} | {rate:.1%} |" for step, text, words, rate in rows]
    head = ("| step | loss of the text | loss of the sound | word error rate |", "| --- | --- | --- | --- |")
    return "\n".join((*head, *lines))
