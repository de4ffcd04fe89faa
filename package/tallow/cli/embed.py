"""`tallow embed`: make vectors of texts, similar ones for what means the same.

Texts are arguments, or the lines of standard input. Vectors go to stdout as JSON, an object a line with "text" and
"vector", or with --output to a NumPy file, (texts, width).
"""

from __future__ import annotations

import argparse

import numpy as np

from tallow.cli.device import add_device_option
from tallow.cli.language_model import number
from tallow.cli.progress import Progress
from tallow.cli.terminal import lines_of_stdin, print_json, report
from tallow.errors import ArgumentError
from tallow.io.atomic import atomic_write
from tallow.models.sentence import SentenceEncoder


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("texts", nargs="*", metavar="TEXT", help="what to embed (default: the lines of standard input)")
    parser.add_argument(
        "--model",
        required=True,
        metavar="DIR",
        help="a folder of sentence-transformers, or owner/repository of the Hub",
    )
    parser.add_argument("--output", metavar="FILE.npy", help="write the vectors here, in place of JSON to stdout")
    parser.add_argument("--normalize", action="store_true", help="to length 1, also where the model does not")
    parser.add_argument(
        "--batch-size",
        type=number(int, "1 or more", lambda n: n >= 1),
        default=32,
        metavar="N",
        help="texts at once (default: %(default)s)",
    )
    add_device_option(parser)


def run(arguments: argparse.Namespace) -> int:
    """Raises: TallowError, OSError"""
    if arguments.output and not arguments.output.endswith(".npy"):
        raise ArgumentError(f"--output {arguments.output}", mend="name a file that ends in .npy")
    encoder = SentenceEncoder.from_pretrained(arguments.model, device=arguments.device)
    texts = arguments.texts or list(lines_of_stdin())
    with Progress(len(texts), "embedding", "texts") as progress:
        vectors = encoder.encode(
            texts,
            batch_size=arguments.batch_size,
            normalize=arguments.normalize,
            progress=lambda done, total: progress.advance_to(done),
        )
    if arguments.output:
        with atomic_write(arguments.output) as file:
            np.save(file, vectors)
        report(f"{arguments.output}: {' x '.join(map(str, vectors.shape))}")
        return 0
    for text, vector in zip(texts, vectors, strict=True):
        # As many digits as float32 has; the numbers read back are the same.
        print_json({"text": text, "vector": [float(str(x)) for x in vector]})
    return 0
