#!/usr/bin/env python3
"""Train the small language model that comes with tallow, with tallow, on stories told by a grammar.

    scripts/train_stories.py                  train from the start; about half an hour on one core
    scripts/train_stories.py --resume         go on after Ctrl-C, from the last checkpoint, to the same weights
    scripts/train_stories.py --evaluate       only score the model in --out on held-out stories
    scripts/train_stories.py --tell 3         only print stories of the grammar

The model, its vocabulary and a model card go to --out, by default the folder in the package. Needs the extra: pip
install 'tallow[train]'.
"""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import replace
from itertools import islice
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "package"), str(ROOT / "native_gpu"), str(ROOT / "scripts")]

from recipe import progress_bar  # noqa: E402
from stories import card, evaluation, grammar  # noqa: E402
from stories.corpus import Corpus  # noqa: E402
from stories.plots import PLOTS  # noqa: E402
from stories.settings import Settings  # noqa: E402
from stories.training import Training, export  # noqa: E402

import tallow as tl  # noqa: E402 the paths above come first
from tallow.errors import TallowError  # noqa: E402
from tallow.models.llama import Llama  # noqa: E402

PACKAGED = ROOT / "package" / "tallow" / "models" / "stories"
INTERRUPTED = 130


def main() -> int:
    arguments = _parser().parse_args()
    settings = replace(Settings(), steps=arguments.steps, seed=arguments.seed)
    try:
        if arguments.tell:
            print("\n\n".join(islice(grammar.stories(PLOTS, arguments.tell, arguments.seed), arguments.tell)))
        elif arguments.evaluate:
            print(_scores(arguments.out, Corpus.make(settings), arguments.device))
        else:
            _train(arguments, settings)
    except KeyboardInterrupt:
        return INTERRUPTED
    except (TallowError, OSError) as error:
        print(f"train_stories: error: {error}", file=sys.stderr)
        return 2
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    defaults = Settings()
    cache = Path(os.environ.get("TALLOW_CACHE") or Path.home() / ".cache" / "tallow")
    task = parser.add_mutually_exclusive_group()
    task.add_argument("--resume", action="store_true", help="go on from --checkpoint")
    task.add_argument("--evaluate", action="store_true", help="print the perplexities of the model in --out")
    task.add_argument("--tell", type=int, metavar="N", help="print N stories of the grammar")
    parser.add_argument("--out", type=Path, default=PACKAGED, help="the model's folder (default: %(default)s)")
    parser.add_argument(
        "--checkpoint",
        type=Path,
        default=cache / "train_stories.safetensors",
        help="where the run is kept while it lasts (default: %(default)s)",
    )
    parser.add_argument("--device", default="cpu", help="cpu, cuda, cuda:1, ... (default: %(default)s)")
    parser.add_argument("--steps", type=int, default=defaults.steps, help="default: %(default)s")
    parser.add_argument("--seed", type=int, default=defaults.seed, help="default: %(default)s")
    return parser


def _train(arguments: argparse.Namespace, settings: Settings) -> None:
    tqdm = progress_bar()
    print(f"telling {settings.stories} stories", file=sys.stderr)
    corpus = Corpus.make(settings)
    arguments.checkpoint.parent.mkdir(parents=True, exist_ok=True)
    training = Training(settings, corpus, arguments.checkpoint, arguments.device)
    if arguments.resume:
        training.resume()
    parameters = sum(parameter.numel() for parameter in training.model.parameters())
    print(f"{parameters} parameters, {len(corpus.training)} stories to learn from", file=sys.stderr)
    reported = len(training.curve)
    with tqdm(total=settings.steps, initial=training.step, unit="step", dynamic_ncols=True) as bar:
        try:
            for loss in training.run():
                bar.update()
                bar.set_postfix(loss=f"{loss:.3f}", refresh=False)
                for step, train_loss, validation_loss in training.curve[reported:]:
                    bar.write(f"step {step}: training loss {train_loss:.4f}, validation loss {validation_loss:.4f}")
                reported = len(training.curve)
        except KeyboardInterrupt:
            bar.write(f"stopped; {arguments.checkpoint} holds the last checkpoint: go on with --resume")
            raise
    export(training.model, corpus, arguments.out)
    scores = _scores(arguments.out, corpus, arguments.device)
    card.write(arguments.out / "README.md", training, scores)
    print(scores)


def _scores(folder: Path, corpus: Corpus, device: str) -> str:
    """The table of perplexities of the model as it was exported."""
    model = Llama.from_pretrained(folder, dtype=tl.float32, device=device)
    return evaluation.table(
        evaluation.model_score(model, corpus, corpus.held_out), evaluation.trigram_score(corpus, corpus.held_out)
    )


if __name__ == "__main__":
    sys.exit(main())
