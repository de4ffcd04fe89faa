#!/usr/bin/env python3
"""Train the small language model that comes with tallow, with tallow, on stories told by a grammar.

    scripts/train_stories.py                  train from the start; about half an hour on one core
    scripts/train_stories.py --resume         go on after Ctrl-C, from the last checkpoint, to the same weights
    scripts/train_stories.py --evaluate       only score the model in --out on held-out stories
    scripts/train_stories.py --tell 3         only print stories of the grammar

The model, its vocabulary and a model card go to --out, by default the folder in the package. In the checkout:
pip install '.[train]'.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "package"), str(ROOT / "native_gpu"), str(ROOT / "scripts")]

import recipe  # noqa: E402 the paths above come first
from stories import card, evaluation, grammar  # noqa: E402
from stories.corpus import Corpus  # noqa: E402
from stories.plots import PLOTS  # noqa: E402
from stories.settings import Settings  # noqa: E402
from stories.training import Training, export  # noqa: E402

import tallow as tl  # noqa: E402
from tallow.models.llama import Llama  # noqa: E402


def main() -> int:
    parser, task = recipe.parser(__doc__, "stories", Settings(), "perplexities")
    task.add_argument("--tell", type=int, metavar="N", help="print N stories of the grammar")
    return recipe.status(partial(_run, parser.parse_args()), "train_stories")


def _run(arguments: argparse.Namespace) -> None:
    settings = replace(Settings(), steps=arguments.steps, seed=arguments.seed)
    if arguments.tell:
        print("\n\n".join(islice(grammar.stories(PLOTS, arguments.tell, arguments.seed), arguments.tell)))
    elif arguments.evaluate:
        print(_scores(arguments.out, Corpus.make(settings), arguments.device))
    else:
        _train(arguments, settings)


def _train(arguments: argparse.Namespace, settings: Settings) -> None:
    print(f"telling {settings.stories} stories", file=sys.stderr)
    corpus = Corpus.make(settings)
    training = Training(settings, corpus, arguments.checkpoint, arguments.device)
    recipe.train(training, arguments.resume, f"{len(corpus.training)} stories", ("loss",), _describe)
    export(training.model, corpus, arguments.out)
    scores = _scores(arguments.out, corpus, arguments.device)
    card.write(arguments.out / "README.md", training, scores)
    print(scores)


def _describe(row: list[float]) -> str:
    step, training_loss, validation_loss = row
    return f"step {step:.0f}: training loss {training_loss:.4f}, validation loss {validation_loss:.4f}"


def _scores(folder: Path, corpus: Corpus, device: str) -> str:
    """The table of perplexities of the model as it was exported."""
    model = Llama.from_pretrained(folder, dtype=tl.float32, device=device)
    return evaluation.table(
        evaluation.model_score(model, corpus, corpus.held_out), evaluation.trigram_score(corpus, corpus.held_out)
    )


if __name__ == "__main__":
    sys.exit(main())
