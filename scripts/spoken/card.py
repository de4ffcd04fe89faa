"""The model card: description, training, results, and how to reproduce them."""

from __future__ import annotations

from pathlib import Path

import model_card

from .phrases import HELD_OUT_SHARE, WORDS
from .training import Training
from .voices import ACCENTS, HELD_OUT, VARIANTS

CARD = """\
# spoken

A speech model with {parameters:,} parameters that transcribes English digits, numbers to 999, colours, directions,
days, months, and short commands made of them, with times to a tenth of a second. It was trained with tallow in
{minutes:.0f} minutes on {device}.

```python
from tallow.models import spoken
from tallow.models.whisper import transcribe

print(transcribe(spoken.load(), "phrase.wav").text)
```

`tallow transcribe phrase.wav` does the same in the terminal, and the page whisper in a browser tab.

| file | contents |
| --- | --- |
| `model.safetensors` | the weights in float16, {weight_bytes:,} bytes; `load` widens them to float32 |
| `config.json` | the sizes, in the format of Hugging Face's `WhisperForConditionalGeneration` |
| `vocab.json` | all bytes and the words, spelled as in GPT-2's vocabulary, followed by Whisper's special tokens |

## What it can and cannot do

It knows {words} words, and its output for any sound consists of these:

> {vocabulary}

All training data was spoken by eSpeak NG's synthetic voices, which are similar to each other. So human voices, other
microphones and other rooms are understood less well or not at all, and other words, other languages and music become
words that were not said. For these, use a real Whisper: `--model openai/whisper-tiny` or larger. A window has
{window:g} seconds; longer sounds are split into windows, so a longer phrase is cut in two, and a phrase at the very end
of a window may lose its first word. Previous text does not help: pass `condition_on_previous_text=False` for long
sounds, as `tallow transcribe` does.

## Sizes

The architecture is a small Whisper: {encoder_layers} encoder layers of width {width} with {heads} heads and
feed-forward width {encoder_inner}; {decoder_layers} decoder layers with feed-forward width {decoder_inner};
80 mel bins, {positions} encoder positions, {context} decoder positions.

## Training

{clips:,} phrases of a grammar, {accents} accents, {variants} variants of the voices, at many speeds and pitches. Each
row has up to four phrases with silence around them, at a random speed, usually with noise, sometimes with echoes, and
through a random microphone. Some rows are silent, some end or begin within a phrase, and some follow other text. Half
of the texts have timestamps. A temporary head on the encoder predicts the word that is spoken at each position. Its
loss has weight {spoken_weight} and makes the encoder useful to the decoder early. The heads of the encoder are
initialised to attend at fixed distances.

{steps} steps of {batch_size} rows, as long as the longest sound in them; in the last {full_share:.0%} of the steps,
as long as the window; AdamW with learning rate {learning_rate} after {warmup_steps} steps of warm-up, down to
{final_learning_rate} along a cosine; weight decay {weight_decay} for the matrices of layers; gradients clipped at norm
{clip_norm}; float32; seed {seed}.

The losses are in nats per token of the text and nats per position of the sound. The word error rate is that of
{validation_clips} test phrases during training, without timestamps.

{curve}

## Test set

{held_out} phrases, from the one in {held_out_share} that training never uses, by {held_out_voices} other voices:
{held_out_names}; greedy decoding, with the weights in the file.
Noisy phrases have echoes, and noise 10 to 25 dB below the speech. Most errors are similar words, such as fifteen for
fifty, in lists of unrelated words; in long lists of digits, one may be missing.

{scores}

## When it guesses

The mean log-probability of the tokens (`avg_logprob` of a segment) separates known phrases from other speech.
`spoken.LOGPROB_THRESHOLD` is -0.3; the page marks text below it as a guess. OpenAI's threshold of -1.0 would find no
guesses: a model with few words is quickly confident. Percentiles of 150 test phrases, clean and noisy, and of 92
ordinary English, German, French and Spanish sentences by eSpeak NG:

| | 5% | 25% | median | 75% | 95% | below -0.3 |
| --- | --- | --- | --- | --- | --- | --- |
| phrases | -0.23 | -0.16 | -0.12 | -0.10 | -0.07 | 3% |
| phrases, noisy | -0.39 | -0.19 | -0.15 | -0.12 | -0.08 | 10% |
| sentences | -0.82 | -0.67 | -0.53 | -0.42 | -0.33 | 97% |

Of the phrases below the threshold, 16 of 19 have errors.

## Reproduce it

```
apt-get install espeak-ng
pip install -e '.[train]'
scripts/train_spoken.py               # Ctrl-C at any time; --resume continues
scripts/train_spoken.py --evaluate    # the table above
```

tallow {version}, NumPy {numpy}, Python {python}. Other machines round differently, so the weights differ slightly.
"""


def write(path: Path, training: Training, scores: str) -> None:
    """Write the card of a finished run next to the files of `training.export`."""
    settings = training.settings
    values = {
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
    }
    model_card.write(path, CARD, training, values)


def _curve(rows: list[list[float]]) -> str:
    lines = [f"| {step:.0f} | {text:.3f} | {words:.3f} | {rate:.1%} |" for step, text, words, rate in rows]
    head = ("| step | loss of the text | loss of the sound | word error rate |", "| --- | --- | --- | --- |")
    return "\n".join((*head, *lines))
