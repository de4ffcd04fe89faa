#!/usr/bin/env python3
"""Train the detector of the page "Find things in a picture", with tallow, on scenes composed of emoji.

    apt-get install fonts-noto-color-emoji
    pip install -e '.[train,image]' resvg-py
    scripts/train_scenes.py                   train from the start; less than an hour on two cores
    scripts/train_scenes.py --resume          continue after Ctrl-C from the last checkpoint, to the same weights
    scripts/train_scenes.py --evaluate        only evaluate the model in --out on unseen scenes
    scripts/train_scenes.py --show scenes.png draw some scenes of the training set

The model and its card are written to --out, by default the folder of the page. The emoji of other designers come from
npm packages.
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
from scenes import card, evaluation  # noqa: E402
from scenes.batches import TEST, TRAIN, load_glyphs, scene  # noqa: E402
from scenes.composing import Glyphs  # noqa: E402
from scenes.settings import Settings  # noqa: E402
from scenes.sheet import sheet  # noqa: E402
from scenes.training import Training, export  # noqa: E402

from tallow.models.vision.scenes import SceneDetector  # noqa: E402

FOLDER = ROOT / "wasm_examples" / "find" / "model"
TEST_SCENES = 400


def main() -> int:
    defaults = Settings()
    parser, task = recipe.parser(__doc__, "scenes", defaults, "mAP50")
    parser.set_defaults(out=FOLDER)
    task.add_argument("--show", type=Path, metavar="FILE", help="draw some scenes of the training set, and stop")
    parser.add_argument("--kinds", type=int, default=defaults.kinds, help="number of kinds (default: %(default)s)")
    parser.add_argument(
        "--emoji",
        type=Path,
        default=recipe.CACHE / "emoji",
        metavar="DIR",
        help="folder of the sets of emoji (default: %(default)s)",
    )
    return recipe.status(partial(_run, parser.parse_args()), "train_scenes")


def _run(arguments: argparse.Namespace) -> None:
    settings = replace(Settings(), steps=arguments.steps, seed=arguments.seed, kinds=arguments.kinds)
    glyphs = load_glyphs(settings.kinds, arguments.emoji)
    unseen = load_glyphs(settings.kinds, arguments.emoji, unseen=True)
    if arguments.show:
        sheet([scene(glyphs, settings, TRAIN, 0, i) for i in range(24)]).save(arguments.show)
        return
    if not arguments.evaluate:
        training = Training(settings, glyphs, arguments.checkpoint, arguments.device)
        scenes = settings.steps * settings.batch_size
        recipe.train(training, arguments.resume, f"{scenes} scenes", ("kinds", "boxes", "masks"), _describe)
        export(training, arguments.out)
    sets = {"the sets of training": glyphs, "a set that training never uses": unseen}
    scores = _scores(arguments.out, settings, sets)
    if not arguments.evaluate:
        card.write(arguments.out / "README.md", training, scores)
    print(scores)


def _describe(row: list[float]) -> str:
    step, kinds, boxes, masks, precision = row
    return f"step {step:.0f}: losses {kinds:.3f} kinds, {boxes:.3f} boxes, {masks:.3f} masks; mAP50 {precision:.3f}"


def _scores(folder: Path, settings: Settings, sets: dict[str, Glyphs]) -> str:
    """Return the table of scores of the exported model, on scenes that training never sees."""
    model = SceneDetector.from_files(folder / "config.json", folder / "model.safetensors")
    lines = [f"| emoji, {TEST_SCENES} scenes | mAP50 of boxes | mAP50 of masks |", "| --- | --- | --- |"]
    for name, glyphs in sets.items():
        scores = evaluation.evaluate(model, [scene(glyphs, settings, TEST, i) for i in range(TEST_SCENES)])
        lines.append(f"| {name} | {scores.boxes:.3f} | {scores.masks:.3f} |")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
