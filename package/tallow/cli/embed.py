"""`tallow embed`: compute embeddings of texts.

Embeds the TEXT arguments, or the lines of standard input. Texts with similar meaning get similar vectors. Prints JSON,
one object per line with "text" and "vector", or with --output writes a NumPy file of shape (texts, width).
"""

from __future__ import annotations

import argparse

import numpy as np

from tallow.cli.device import add_device_option
from tallow.cli.language_model import positive_int
from tallow.cli.progress import Progress
from tallow.cli.quant import add_quant_option
from tallow.cli.terminal import lines_of_stdin, print_json, report
from tallow.errors import ArgumentError
from tallow.io.atomic import atomic_write
from tallow.models.built_in import glosses
from tallow.models.encoders.sentence import SentenceEncoder


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `tallow embed`."""
    parser.add_argument(
        "texts", nargs="*", metavar="TEXT", help="texts to embed (default: the lines of standard input)"
    )
    parser.add_argument(
        "-m",
        "--model",
        metavar="MODEL",
        help="a sentence-transformers folder, a GGUF file, or owner/repository or owner/repository:file.gguf on the "
        f"Hugging Face Hub (default: the built-in model, which knows {glosses.KNOWS})",
    )
    parser.add_argument("--output", metavar="FILE.npy", help="write the vectors to this file instead of JSON to stdout")
    parser.add_argument(
        "--normalize", action="store_true", help="scale vectors to length 1, even if the model does not"
    )
    parser.add_argument(
        "--batch-size",
        type=positive_int,
        default=32,
        metavar="N",
        help="number of texts per batch (default: %(default)s)",
    )
    add_quant_option(parser)
    add_device_option(parser)


def run(arguments: argparse.Namespace) -> int:
    """Embed the texts.

    Raises:  TallowError, OSError
    """
    if arguments.output and not arguments.output.endswith(".npy"):
        raise ArgumentError(f"--output {arguments.output} is not a .npy file", hint="choose a name that ends in .npy")
    texts = arguments.texts or list(lines_of_stdin())
    if not texts:
        raise ArgumentError("there is no text", hint="pass TEXT, or one text a line on standard input")
    model = arguments.model or glosses.FOLDER
    encoder = SentenceEncoder.from_pretrained(model, device=arguments.device, quant=arguments.quant)
    if not arguments.model:
        report(f"the built-in model knows {glosses.KNOWS}; for more use --model sentence-transformers/all-MiniLM-L6-v2")
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
        # str gives the digits that float32 needs, so readers get the same values.
        print_json({"text": text, "vector": [float(str(x)) for x in vector]})
    return 0
