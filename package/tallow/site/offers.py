"""The models of a folder that `tallow demo` offers to its pages, and the files that it serves for them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tallow.errors import ArgumentError, CheckpointError, TokenizerError
from tallow.io import llama2c
from tallow.models.encoders.sentence_folder import encoder_files
from tallow.site.static_server import MODELS
from tallow.text.llama2c import Llama2cTokenizer


@dataclass
class Offers:
    """Offered models, in the form that `site.build_site` takes, and the files to serve for them."""

    models: list[dict[str, Any]] = field(default_factory=list)
    encoders: list[dict[str, Any]] = field(default_factory=list)
    files: dict[str, Path] = field(default_factory=dict)  # by name below MODELS
    outside: list[str] = field(default_factory=list)  # names of links that lead out of the folder

    def serve(self, name: str, path: Path) -> str:
        """Serve a file and return its URL relative to the site. It changes with the file, so caches stay valid."""
        self.files[name] = path
        return f"{MODELS.lstrip('/')}{quote(os.fsencode(name))}?v={path.stat().st_mtime_ns:x}"


def offers_of(folder: Path) -> Offers:
    """Return the llama2c models of `folder` that have a matching tokenizer, and the sentence encoders in subfolders.

    Links may lead to files within the folder; links to other places are not served.

    Raises:  ArgumentError if the folder does not exist
    """
    if not folder.is_dir():
        raise ArgumentError(f"--model-dir {folder}: folder not found")
    root = folder.resolve()
    offers = Offers()
    files = {}
    for path in sorted(folder.glob("*.bin")):
        if not (target := path.resolve()).is_relative_to(root):
            offers.outside.append(path.name)
        elif target.is_file():  # reading a pipe would block
            files[path.name] = target
    _offer_models(offers, files)
    for subfolder in sorted(path for path in folder.iterdir() if path.is_dir()):
        _offer_encoder(offers, subfolder, root)
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
    """Yield the name and header of each file that is a llama2.c checkpoint."""
    for name, path in files.items():
        try:
            yield name, llama2c.load(path).header
        except CheckpointError:
            continue  # a tokenizer, or not a llama2.c file


def _fits(path: Path, vocab_size: int) -> bool:
    """Return whether the file is a tokenizer with `vocab_size` tokens."""
    try:
        Llama2cTokenizer.load(path, vocab_size=vocab_size)
    except TokenizerError:
        return False
    return True


def _offer_encoder(offers: Offers, encoder: Path, root: Path) -> None:
    paths = {name: encoder / name for name in encoder_files(encoder)}
    if not all(path.resolve().is_relative_to(root) for path in paths.values()):
        offers.outside.append(encoder.name)
    elif paths:
        addresses = {name: offers.serve(f"{encoder.name}/{name}", path.resolve()) for name, path in paths.items()}
        size = sum(path.stat().st_size for path in paths.values())
        offers.encoders.append({"name": encoder.name, "bytes": size, "files": addresses})
