"""The models in a folder that `tallow demo` offers to its pages, and the files of them that it serves."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tallow.cli.serve import MODELS
from tallow.errors import ArgumentError, CheckpointError, TokenizerError
from tallow.io import llama2c
from tallow.models.sentence_folder import encoder_files
from tallow.text.llama2c import Llama2cTokenizer


@dataclass
class Offers:
    """What is offered; an offer is as in `site.build_site`, and all that it needs is in `files`."""

    models: list[dict[str, Any]] = field(default_factory=list)
    encoders: list[dict[str, Any]] = field(default_factory=list)
    files: dict[str, Path] = field(default_factory=dict)  # by their names below MODELS
    outside: list[str] = field(default_factory=list)  # names in the folder that are links out of it

    def serve(self, name: str, path: Path) -> str:
        """Serve a file. Its address, relative to the site, changes with it, so a browser's copy never outlives it."""
        self.files[name] = path
        return f"{MODELS.lstrip('/')}{quote(os.fsencode(name))}?v={path.stat().st_mtime_ns:x}"


def offers_of(folder: Path) -> Offers:
    """llama2c models with a tokenizer that fits them, and models of sentences in folders of their own.

    Links may lead to files in the folder; what lies elsewhere was not put there to be served.

    Raises:  ArgumentError where there is no such folder
    """
    if not folder.is_dir():
        raise ArgumentError(f"--model-dir {folder}: no such folder")
    root = folder.resolve()
    offers = Offers()
    files = {}
    for path in sorted(folder.glob("*.bin")):
        if not (place := path.resolve()).is_relative_to(root):
            offers.outside.append(path.name)
        elif place.is_file():  # a pipe would be waited for
            files[path.name] = place
    _offer_models(offers, files)
    for place in sorted(path for path in folder.iterdir() if path.is_dir()):
        _offer_encoder(offers, place, root)
    return offers


def _offer_models(offers: Offers, files: dict[str, Path]) -> None:
    headers = dict(_headers(files))
    others = {name: path for name, path in files.items() if name not in headers}
    for name, header in headers.items():
        tokenizer = next((other for other, path in others.items() if _fits(path, header.vocab_size)), None)
        if tokenizer is not None:
            offers.models.append(
                {
                    "name": Path(name).stem,
                    "bytes": header.file_bytes,
                    "model": offers.serve(name, files[name]),
                    "tokenizer": offers.serve(tokenizer, files[tokenizer]),
                }
            )


def _headers(files: dict[str, Path]) -> Iterator[tuple[str, llama2c.Header]]:
    """Of the checkpoints among the files; which are some, their bytes tell."""
    for name, path in files.items():
        try:
            yield name, llama2c.load(path).header
        except CheckpointError:
            continue  # a tokenizer, or no file of llama2.c's


def _fits(path: Path, vocab_size: int) -> bool:
    """Whether the file is a tokenizer of so many pieces."""
    try:
        Llama2cTokenizer.load(path, vocab_size=vocab_size)
    except TokenizerError:
        return False
    return True


def _offer_encoder(offers: Offers, place: Path, root: Path) -> None:
    paths = {name: place / name for name in encoder_files(place)}
    if not all(path.resolve().is_relative_to(root) for path in paths.values()):
        offers.outside.append(place.name)
    elif paths:
        addresses = {name: offers.serve(f"{place.name}/{name}", path.resolve()) for name, path in paths.items()}
        size = sum(path.stat().st_size for path in paths.values())
        offers.encoders.append({"name": place.name, "bytes": size, "files": addresses})
