"""`tallow demo`: serve the web pages from this computer."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tallow.cli.serve import MODELS, SiteServer
from tallow.cli.site import CDN, PYODIDE_VERSION, TOKENIZERS_VERSION, build_site, pack_wheel
from tallow.errors import ArgumentError, CheckpointError, TokenizerError
from tallow.io import llama2c
from tallow.models.sentence_folder import encoder_files
from tallow.text.llama2c import Llama2cTokenizer


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--port", type=_port, default=8000, help="0 takes any free one (default: %(default)s)")
    parser.add_argument("--host", default="127.0.0.1", help="0.0.0.0 serves other computers too (default: %(default)s)")
    parser.add_argument(
        "--pyodide",
        metavar="cdn|DIR",
        help="where the pages load Python from: its CDN, or a copy made by scripts/fetch_pyodide.py "
        "(default: the copy in tallow's cache if there is one, else the CDN)",
    )
    parser.add_argument(
        "--model-dir",
        type=Path,
        metavar="DIR",
        help="offer the llama2.c models and tokenizers in DIR, and the folders in it with models of sentences "
        "(default: none)",
    )


def _port(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text) < 1 << 16):
        raise argparse.ArgumentTypeError(f"{text!r}; expected 0 to 65535")
    return int(text)


def run(arguments: argparse.Namespace) -> int:
    """Serve until Ctrl-C, SIGTERM, or the terminal closes. The address is printed on stdout, everything else on stderr.

    Raises:  ArgumentError for a folder or a port that cannot be used; SiteError
    """
    for name in ("SIGTERM", "SIGHUP"):  # either way the site's folder is to be removed
        signum = getattr(signal, name, None)  # Windows has no SIGHUP
        if signum is not None and signal.getsignal(signum) is signal.SIG_DFL:  # nohup has it ignored
            signal.signal(signum, signal.default_int_handler)
    pyodide = _pyodide_source(arguments.pyodide)
    models = dict(_model_files(arguments.model_dir)) if arguments.model_dir else {}
    encoders = dict(_encoder_folders(arguments.model_dir)) if arguments.model_dir else {}
    with tempfile.TemporaryDirectory(prefix="tallow-demo-") as scratch_name:
        scratch = Path(scratch_name)
        presets = list(_presets(models))
        build_site(
            scratch / "site",
            wheel=pack_wheel(scratch),
            pyodide=pyodide,
            tokenizers=None if arguments.pyodide == "cdn" else _cached(f"huggingface-tokenizers-{TOKENIZERS_VERSION}"),
            models=presets,
            encoders=[_encoder_preset(name, files) for name, files in encoders.items()],
        )
        served = models | {f"{name}/{file}": path for name, files in encoders.items() for file, path in files.items()}
        try:
            server = SiteServer(scratch / "site", host=arguments.host, port=arguments.port, models=served)
        except OSError as error:
            raise ArgumentError(f"{arguments.host}:{arguments.port}: {error.strerror}", mend="try --port 0") from error
        print(f"Python comes from {pyodide or CDN}", file=sys.stderr)
        if arguments.model_dir:
            names = ", ".join([*(preset["name"] for preset in presets), *encoders])
            print(f"models in {arguments.model_dir}: {names or 'none with a tokenizer that fits'}", file=sys.stderr)
        with server:
            try:
                print(server.url, flush=True)
                server.serve_forever()
            except KeyboardInterrupt:
                print("stopped", file=sys.stderr)
    return 0


def _pyodide_source(choice: str | None) -> Path | None:
    """The folder of a local copy, or None for the CDN."""
    if choice == "cdn":
        return None
    if choice is not None:
        if not (Path(choice) / "pyodide.mjs").is_file():
            raise ArgumentError(f"--pyodide {choice}: no Pyodide there", mend="make a copy: scripts/fetch_pyodide.py")
        return Path(choice)
    return _cached(f"pyodide-{PYODIDE_VERSION}")


def _cached(name: str) -> Path | None:
    """The copy that scripts/fetch_pyodide.py or fetch_tokenizers.py has put into tallow's cache, if there is one."""
    caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    copy = Path(os.environ.get("TALLOW_CACHE") or caches / "tallow") / name
    return copy if copy.is_dir() else None


def _model_files(folder: Path) -> Iterator[tuple[str, Path]]:
    if not folder.is_dir():
        raise ArgumentError(f"--model-dir {folder}: no such folder")
    for path in sorted(folder.glob("*.bin")):
        yield path.name, path


def _encoder_folders(folder: Path) -> Iterator[tuple[str, dict[str, Path]]]:
    """The files of each model of sentences in `folder`, by their names in it."""
    for place in sorted(path for path in folder.iterdir() if path.is_dir()):
        files = {name: place / name for name in encoder_files(place)}
        if files:
            yield place.name, files


def _encoder_preset(name: str, files: dict[str, Path]) -> dict[str, Any]:
    addresses = {file: _address(f"{name}/{file}", path) for file, path in files.items()}
    return {"name": name, "bytes": sum(path.stat().st_size for path in files.values()), "files": addresses}


def _presets(files: dict[str, Path]) -> Iterator[dict[str, Any]]:
    """Each checkpoint with the first tokenizer of its vocabulary; which file is what, their bytes tell."""
    for name, path in files.items():
        try:
            header = llama2c.load(path).header
        except CheckpointError:
            continue  # a tokenizer, or no file of llama2.c's
        for tokenizer_name, tokenizer_path in files.items():
            try:
                Llama2cTokenizer.load(tokenizer_path, vocab_size=header.vocab_size)
            except TokenizerError:
                continue
            yield {
                "name": path.stem,
                "bytes": header.file_bytes,
                "model": _address(name, path),
                "tokenizer": _address(tokenizer_name, tokenizer_path),
            }
            break


def _address(name: str, path: Path) -> str:
    """Relative to the site. It changes with the file, so the browser's copy never outlives what it is a copy of."""
    return f"{MODELS.lstrip('/')}{quote(name)}?v={path.stat().st_mtime_ns:x}"
