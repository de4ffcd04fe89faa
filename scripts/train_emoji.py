#!/usr/bin/env python3
"""Train the built-in encoder of pictures and words, with tallow, on emoji and their names in twelve languages.

    apt-get install fonts-noto-color-emoji
    pip install -e '.[train,image]' resvg-py
    scripts/train_emoji.py                    train from the start; a few minutes on two cores
    scripts/train_emoji.py --resume           continue after Ctrl-C from the last checkpoint, to the same weights
    scripts/train_emoji.py --evaluate         only evaluate the model in --out on names that are held out

The model, an index of the vectors that the emoji have learned, the licence of the names and a model card are written to
--out, by default the folder in the package. Names and the emoji of other designers come from npm packages.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "package"), str(ROOT / "native_gpu"), str(ROOT / "scripts")]

import numpy as np  # noqa: E402 the paths above come first
import recipe  # noqa: E402
from emoji_words import card, evaluation, names  # noqa: E402
from emoji_words.pictures import plain  # noqa: E402
from emoji_words.settings import Settings  # noqa: E402
from emoji_words.training import Glyphs, Training, export, index_of  # noqa: E402
from scenes import glyphs as drawing  # noqa: E402

from tallow.io.atomic import atomic_write  # noqa: E402
from tallow.models.built_in import emoji as built_in  # noqa: E402
from tallow.models.vision.picture_words import PictureWords  # noqa: E402

LICENCE = "LICENSE-UNICODE"


def main() -> int:
    parser, _ = recipe.parser(__doc__, "emoji", Settings(), "recall")
    parser.add_argument(
        "--cache",
        type=Path,
        default=recipe.CACHE / "emoji",
        metavar="DIR",
        help="folder of the names and of the sets of emoji (default: %(default)s)",
    )
    return recipe.status(partial(_run, parser.parse_args()), "train_emoji")


def _run(arguments: argparse.Namespace) -> None:
    settings = replace(Settings(), steps=arguments.steps, seed=arguments.seed)
    folder = names.fetch(arguments.cache)
    chosen, glyphs = _glyphs(names.candidates(folder), arguments.cache)
    texts = names.read(folder, chosen, settings.held_out, settings.seed)
    if not arguments.evaluate:
        training = Training(settings, texts, glyphs, arguments.checkpoint, arguments.device)
        count = sum(map(len, texts.texts))
        what = f"{count} texts and pictures of {len(chosen)} emoji"
        recipe.train(training, arguments.resume, what, ("texts", "pictures"), _describe)
        export(training, chosen, arguments.out)
        with atomic_write(arguments.out / LICENCE) as file:
            file.write((folder / names.LICENCE).read_bytes())
    scores = _scores(arguments.out, texts, glyphs, arguments.cache)
    if not arguments.evaluate:
        card.write(arguments.out / "README.md", training, texts, scores)
    print(scores)


def _glyphs(candidates: Sequence[str], cache: Path) -> tuple[list[str], Glyphs]:
    """Return the emoji that the font and all sets of training have, and their pictures."""
    sets = [drawing.of_set(candidates, each, cache) for each in drawing.SETS]
    drawn = [i for i in range(len(candidates)) if all(pictures[i] is not None for pictures in sets)]
    chosen = [candidates[i] for i in drawn]
    of_font = drawing.of_font(chosen)
    others = [[pictures[i] for pictures in sets] for i in drawn]
    return chosen, [[first, *filter(None, rest)] for first, rest in zip(of_font, others, strict=True)]


def _scores(folder: Path, texts: names.Names, glyphs: Glyphs, cache: Path) -> str:
    """Return the table of recall of the exported model."""
    encoder = PictureWords.from_files(folder / "config.json", folder / "model.safetensors")
    index = built_in.read_index(folder / built_in.INDEX).vectors
    ranks = evaluation.ranks(encoder, texts.held_out, index)
    lines = ["| names | number | first | among the first 5 |", "| --- | --- | --- | --- |"]
    for key, language in names.LANGUAGES.items():
        lines.append(_row(language, ranks[[name.language == key for name in texts.held_out]]))
    lines.append(_row("all languages", ranks))
    index = index_of(encoder, glyphs)
    lines.append(
        _row("all languages, by pictures of Noto Color Emoji", evaluation.ranks(encoder, texts.held_out, index))
    )
    unseen = drawing.of_set(texts.emoji, drawing.UNSEEN, cache)
    for i, picture in enumerate(unseen):
        if picture is not None:
            index[i] = encoder.encode([plain(picture, encoder.config.side)])[0]
    of_unseen = [name for name in texts.held_out if unseen[name.emoji] is not None]
    ranks = evaluation.ranks(encoder, of_unseen, index)
    lines.append(_row(f"all languages, by pictures of {drawing.UNSEEN.name}", ranks))
    return "\n".join(lines)


def _row(name: str, ranks: np.ndarray) -> str:
    return f"| {name} | {len(ranks)} | {(ranks < 1).mean():.3f} | {(ranks < 5).mean():.3f} |"


def _describe(row: list[float]) -> str:
    step, texts, pictures, recall = row
    return f"step {step:.0f}: losses {texts:.3f} texts, {pictures:.3f} pictures; recall at 5 {recall:.3f}"


if __name__ == "__main__":
    sys.exit(main())
