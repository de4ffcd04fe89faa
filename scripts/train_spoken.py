#!/usr/bin/env python3
"""Train the small speech model that comes with tallow, with tallow, on phrases said by eSpeak NG.

    scripts/train_spoken.py                  train from the start; about an hour on one core
    scripts/train_spoken.py --resume         go on after Ctrl-C, from the last checkpoint, to the same weights
    scripts/train_spoken.py --evaluate       only score the model in --out on held-out phrases and voices
    scripts/train_spoken.py --phrases 10     only print phrases of the grammar

The model, its vocabulary and a model card go to --out, by default the folder in the package. Needs eSpeak NG (apt-get
install espeak-ng) and the extra: pip install 'tallow[train]'.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "package"), str(ROOT / "native_gpu"), str(ROOT / "scripts")]

from recipe import progress_bar  # noqa: E402
from spoken import card, evaluation, phrases  # noqa: E402
from spoken.corpus import Clips, Corpus, Utterance, clips  # noqa: E402
from spoken.settings import Settings  # noqa: E402
from spoken.training import Training, export  # noqa: E402

import tallow as tl  # noqa: E402 the paths above come first
from tallow.errors import TallowError  # noqa: E402
from tallow.models.whisper import Whisper  # noqa: E402

PACKAGED = ROOT / "package" / "tallow" / "models" / "spoken"
INTERRUPTED = 130


def main() -> int:
    arguments = _parser().parse_args()
    settings = replace(Settings(), steps=arguments.steps, clips=arguments.clips, seed=arguments.seed)
    try:
        if arguments.phrases:
            rng = random.Random(arguments.seed)
            for _ in range(arguments.phrases):
                print(*phrases.phrase(rng, held_out=False, longest=settings.longest_phrase))
        elif arguments.evaluate:
            held_out = clips(settings, arguments.speech, _progress, held_out=True)
            print(_scores(arguments.out, held_out, arguments.device))
        else:
            _train(arguments, settings)
    except KeyboardInterrupt:
        return INTERRUPTED
    except (TallowError, OSError) as error:
        print(f"train_spoken: error: {error}", file=sys.stderr)
        return 2
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    defaults = Settings()
    cache = Path(os.environ.get("TALLOW_CACHE") or Path.home() / ".cache" / "tallow")
    task = parser.add_mutually_exclusive_group()
    task.add_argument("--resume", action="store_true", help="go on from --checkpoint")
    task.add_argument("--evaluate", action="store_true", help="print the error rates of the model in --out")
    task.add_argument("--phrases", type=int, metavar="N", help="print N phrases of the grammar")
    parser.add_argument("--out", type=Path, default=PACKAGED, help="the model's folder (default: %(default)s)")
    parser.add_argument(
        "--checkpoint",
        type=Path,
        default=cache / "train_spoken.safetensors",
        help="where the run is kept while it lasts (default: %(default)s)",
    )
    parser.add_argument(
        "--speech",
        type=Path,
        default=cache / "spoken",
        metavar="DIR",
        help="where what is said is kept; 40000 phrases are 1.5 GB (default: %(default)s)",
    )
    parser.add_argument("--device", default="cpu", help="cpu, cuda, cuda:1, ... (default: %(default)s)")
    parser.add_argument("--steps", type=int, default=defaults.steps, help="default: %(default)s")
    parser.add_argument(
        "--clips", type=int, default=defaults.clips, help="phrases to learn from (default: %(default)s)"
    )
    parser.add_argument("--seed", type=int, default=defaults.seed, help="default: %(default)s")
    return parser


def _progress(utterances: list[Utterance]) -> Iterable[Utterance]:
    return progress_bar()(utterances, desc="saying phrases", unit="phrase", dynamic_ncols=True)


def _train(arguments: argparse.Namespace, settings: Settings) -> None:
    corpus = Corpus.make(settings, arguments.speech, _progress)
    arguments.checkpoint.parent.mkdir(parents=True, exist_ok=True)
    training = Training(settings, corpus, arguments.checkpoint, arguments.device)
    if arguments.resume:
        training.resume()
    parameters = sum(parameter.numel() for parameter in training.model.parameters())
    print(f"{parameters} parameters, {len(corpus.training)} phrases to learn from", file=sys.stderr)
    reported = len(training.curve)
    with progress_bar()(total=settings.steps, initial=training.step, unit="step", dynamic_ncols=True) as bar:
        try:
            for text, spoken in training.run():
                bar.update()
                bar.set_postfix(text=f"{text:.3f}", spoken=f"{spoken:.3f}", refresh=False)
                for step, text_loss, spoken_loss, rate in training.curve[reported:]:
                    bar.write(
                        f"step {step}: losses {text_loss:.3f} of the text, {spoken_loss:.3f} of the sound; "
                        f"held-out word error rate {rate:.1%}"
                    )
                reported = len(training.curve)
        except KeyboardInterrupt:
            bar.write(f"stopped; {arguments.checkpoint} holds the last checkpoint: go on with --resume")
            raise
    export(training.model, arguments.out)
    scores = _scores(arguments.out, corpus.held_out, arguments.device)
    card.write(arguments.out / "README.md", training, scores)
    print(scores)


def _scores(folder: Path, held_out: Clips, device: str) -> str:
    """The table of error rates of the model as it was exported."""
    model = Whisper.from_pretrained(folder, dtype=tl.float32, device=device)
    return evaluation.table(evaluation.scores(model, held_out))


if __name__ == "__main__":
    sys.exit(main())
