#!/usr/bin/env python3
"""Train the built-in sentence encoder, with tallow, on WordNet's synonyms, glosses and examples.

    apt-get install wordnet-base
    scripts/train_glosses.py                  train from the start; a few minutes on one core
    scripts/train_glosses.py --resume         continue after Ctrl-C from the last checkpoint, to the same weights
    scripts/train_glosses.py --evaluate       only evaluate the model in --out on the test set

The model, its tokenizer, WordNet's licence and a model card are written to --out, by default the folder in the package.
Needs the extra train: pip install -e '.[train]'.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "package"), str(ROOT / "native_gpu"), str(ROOT / "scripts")]

import recipe  # noqa: E402 the paths above come first
from glosses import card, evaluation, wordnet  # noqa: E402
from glosses.corpus import Corpus  # noqa: E402
from glosses.settings import Settings  # noqa: E402
from glosses.training import Training, export  # noqa: E402

from tallow.models.encoders.sentence import SentenceEncoder  # noqa: E402


def main() -> int:
    parser, _ = recipe.parser(__doc__, "glosses", Settings(), "scores")
    parser.add_argument(
        "--wordnet", type=Path, default=wordnet.FOLDER, help="folder of WordNet's files (default: %(default)s)"
    )
    return recipe.status(partial(_run, parser.parse_args()), "train_glosses")


def _run(arguments: argparse.Namespace) -> None:
    settings = replace(Settings(), steps=arguments.steps, seed=arguments.seed)
    print(f"reading {arguments.wordnet}", file=sys.stderr)
    corpus = Corpus.make(settings, arguments.wordnet)
    if not arguments.evaluate:
        training = Training(settings, corpus, arguments.checkpoint, arguments.device)
        pairs = sum(map(len, corpus.pairs.kinds.values()))
        recipe.train(training, arguments.resume, f"{pairs} pairs of texts", ("loss",), _describe)
        export(training.model, corpus, arguments.out)
        wordnet.save_licence(arguments.wordnet, arguments.out / "LICENSE-WORDNET")
    encoder = SentenceEncoder.from_pretrained(arguments.out, device=arguments.device)
    scores = evaluation.table(corpus, partial(encoder.encode, batch_size=256, normalize=True))
    if not arguments.evaluate:
        card.write(arguments.out / "README.md", training, corpus, scores)
    print(scores)


def _describe(row: list[float]) -> str:
    step, training_loss, validation_loss = row
    return f"step {step:.0f}: training loss {training_loss:.4f}, validation loss {validation_loss:.4f}"


if __name__ == "__main__":
    sys.exit(main())
