#!/usr/bin/env python3
"""Train the built-in speech model, with tallow, on phrases spoken by eSpeak NG.

    scripts/train_spoken.py                  train from the start; about an hour on one core
    scripts/train_spoken.py --resume         continue after Ctrl-C from the last checkpoint, to the same weights
    scripts/train_spoken.py --evaluate       only evaluate the model in --out on the test phrases and voices
    scripts/train_spoken.py --phrases 10     only print phrases of the grammar

The model, its vocabulary and a model card are written to --out, by default the folder in the package. Needs eSpeak NG
(apt-get install espeak-ng) and the extra train: pip install -e '.[train]'.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "package"), str(ROOT / "native_gpu"), str(ROOT / "scripts")]

import recipe  # noqa: E402 the paths above come first
from spoken import card, evaluation, phrases  # noqa: E402
from spoken.corpus import Clips, Corpus, Utterance, clips  # noqa: E402
from spoken.settings import Settings  # noqa: E402
from spoken.training import Training, export  # noqa: E402

import tallow as tl  # noqa: E402
from tallow.models.whisper import Whisper  # noqa: E402
from tallow.training.progress import progress_bar  # noqa: E402


def main() -> int:
    defaults = Settings()
    parser, task = recipe.parser(__doc__, "spoken", defaults, "error rates")
    task.add_argument("--phrases", type=int, metavar="N", help="print N phrases of the grammar")
    parser.add_argument(
        "--speech",
        type=Path,
        default=recipe.CACHE / "spoken",
        metavar="DIR",
        help="folder of the spoken phrases; 40000 need 1.5 GB (default: %(default)s)",
    )
    parser.add_argument(
        "--clips", type=int, default=defaults.clips, help="number of training phrases (default: %(default)s)"
    )
    return recipe.status(partial(_run, parser.parse_args()), "train_spoken")


def _run(arguments: argparse.Namespace) -> None:
    settings = replace(Settings(), steps=arguments.steps, clips=arguments.clips, seed=arguments.seed)
    if arguments.phrases:
        rng = random.Random(arguments.seed)
        for _ in range(arguments.phrases):
            print(*phrases.phrase(rng, held_out=False, longest=settings.longest_phrase))
    elif arguments.evaluate:
        held_out = clips(settings, arguments.speech, _progress, held_out=True)
        print(_scores(arguments.out, held_out, arguments.device))
    else:
        _train(arguments, settings)


def _progress(utterances: list[Utterance]) -> Iterable[Utterance]:
    return progress_bar()(utterances, desc="speaking phrases", unit="phrase", dynamic_ncols=True)


def _train(arguments: argparse.Namespace, settings: Settings) -> None:
    corpus = Corpus.make(settings, arguments.speech, _progress)
    training = Training(settings, corpus, arguments.checkpoint, arguments.device)
    recipe.train(training, arguments.resume, f"{len(corpus.training)} phrases", ("text", "spoken"), _describe)
    export(training.model, arguments.out)
    scores = _scores(arguments.out, corpus.held_out, arguments.device)
    card.write(arguments.out / "README.md", training, scores)
    print(scores)


def _describe(row: list[float]) -> str:
    step, *losses, rate = row
    text, spoken = (f"{loss:.3f} of the {what}" for loss, what in zip(losses, ("text", "sound"), strict=True))
    return f"step {step:.0f}: losses {text}, {spoken}; word error rate of the test set {rate:.1%}"


def _scores(folder: Path, held_out: Clips, device: str) -> str:
    """Return the table of error rates of the exported model."""
    model = Whisper.from_pretrained(folder, dtype=tl.float32, device=device)
    return evaluation.table(evaluation.scores(model, held_out))


if __name__ == "__main__":
    sys.exit(main())
