"""The model card: description, training, results, and how to reproduce them."""

from __future__ import annotations

from pathlib import Path

import model_card

from tallow.text.tokenizer import FILE

from .corpus import Corpus
from .training import Training

CARD = """\
# glosses

A sentence encoder with {parameters:,} parameters that knows the words of a dictionary. It was trained with tallow in
{minutes:.0f} minutes on {device}.

```python
from tallow.models import glosses

encoder = glosses.load()
vectors = encoder.encode(["A kitten naps.", "a young cat that is asleep"], normalize=True)
```

`tallow embed` uses it without `--model`, and so does the page bert in a browser tab.

| file | contents |
| --- | --- |
| `model.safetensors` | {width} numbers for each token, in int8, {weight_bytes:,} bytes; `load` widens them to float32 |
| `tokenizer.json` | {vocab_size:,} pieces of WordPiece, in lower case, {tokenizer_bytes:,} bytes |
| `modules.json` | the modules, as sentence-transformers writes them: `StaticEmbedding`, `Normalize` |
| `LICENSE-WORDNET` | the licence of the training data |

## What it can and cannot do

The vector of a text is the mean of the vectors of its tokens; a token that says more has a longer vector. So the model
knows which words are alike, but neither word order nor negation: "dog bites man" and "man bites dog" are the same text.
It knows English words as WordNet explains them. It has read no conversations, no news and no web pages; names, slang
and other languages are pieces of words to it. Models such as all-MiniLM-L6-v2 have read
such texts.

## Training

The texts are those of WordNet 3.0: {texts:,} words, glosses, examples, and halves of the long ones. A pair is two texts
with related meanings:

| pairs | number | share of a batch |
| --- | --- | --- |
{pairs}

{steps} steps of {batch_size} pairs, at most {longest} tokens a text. The loss is the cross-entropy of finding one text
of a pair by the other among those of the batch, both ways, from cosines divided by {temperature}. AdamW with learning
rate {learning_rate} after {warmup_steps} steps of warm-up, down to {final_learning_rate} along a cosine; weight decay
{weight_decay}; {dropout:.0%} of the tokens left out; gradients clipped at norm {clip_norm}; float32; seed {seed}. The
validation loss is that of {batch_size} examples and glosses of the test set.

{curve}

## Test set

{held_out:,} synsets that have an example and a gloss of four words or more. Their pairs are
not trained on; their words occur in other synsets. The model, with the weights in the file, ranks all texts of a task
by their cosine to a query. The table shows the share of queries whose answer is first, and among the first ten. TF-IDF
weighs words by their rarity in the training texts. Two examples share the word itself, which is all that TF-IDF needs;
other texts of one meaning share few words.

{scores}

## Reproduce it

```
apt-get install wordnet-base
pip install -e '.[train]'
scripts/train_glosses.py               # Ctrl-C at any time; --resume continues
scripts/train_glosses.py --evaluate    # the table above
```

tallow {version}, NumPy {numpy}, Python {python}. Other machines round differently, so the weights differ slightly.

## Licence

WordNet 3.0 Copyright 2006 by Princeton University. All rights reserved. `LICENSE-WORDNET` permits use, copies, changes
and distribution for any purpose without fee, if it comes with all copies.
"""


def write(path: Path, training: Training, corpus: Corpus, scores: str) -> None:
    """Write the card of a finished run next to the files of `training.export`."""
    settings = training.settings
    kinds = corpus.pairs.kinds
    values = {
        "tokenizer_bytes": (path.parent / FILE).stat().st_size,
        "texts": len(corpus.pairs.texts),
        "pairs": "\n".join(f"| {PAIRS[kind]} | {len(kinds[kind]):,} | {settings.shares[kind]:.0%} |" for kind in kinds),
        "held_out": len(corpus.held_out),
        "curve": _curve(training.curve),
        "scores": scores,
    }
    model_card.write(path, CARD, training, values)


PAIRS = {
    "names": "a word or all words of a synset, and their gloss",
    "examples": "an example, and the words, the gloss or another example of its synset",
    "broader": "words or gloss, and those of a broader synset",
    "related": "two words of a synset; words or glosses of related synsets",
    "halves": "the halves of a gloss or an example of eight words or more",
}


def _curve(rows: list[list[float]]) -> str:
    lines = [f"| {step:.0f} | {train:.3f} | {validation:.3f} |" for step, train, validation in rows]
    return "\n".join(("| step | training loss | validation loss |", "| --- | --- | --- |", *lines))
