"""`tallow demo`: serve the web pages on this computer."""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tallow.cli.terminal import report, unusable_address
from tallow.errors import ArgumentError
from tallow.site.build import (
    CDN,
    DOMPURIFY_VERSION,
    MARKED_VERSION,
    PYODIDE_VERSION,
    TOKENIZERS_VERSION,
    build_site,
)
from tallow.site.cache import cache_folder
from tallow.site.offers import Offers, offers_of
from tallow.site.static_server import SiteServer


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `tallow demo`."""
    parser.add_argument(
        "--port", type=_port, default=8000, help="port to listen on; 0 chooses a free one (default: %(default)s)"
    )
    parser.add_argument(
        "--host",
        default="127.0.0.1",
        help="address to listen on; 0.0.0.0 also serves other computers (default: %(default)s)",
    )
    parser.add_argument(
        "--pyodide",
        metavar="cdn|DIR",
        help="where pages load Pyodide from: its CDN, or a copy made by scripts/fetch_pyodide.py "
        "(default: the copy in tallow's cache if it exists, else the CDN)",
    )
    parser.add_argument(
        "--model-dir",
        type=Path,
        metavar="DIR",
        help="offer the llama2.c models and tokenizers in DIR, and the sentence-transformers folders in it "
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
    with _signals_as_interrupts():
        _serve(arguments)
    return 0


@contextmanager
def _signals_as_interrupts() -> Iterator[None]:
    """Raise KeyboardInterrupt on SIGTERM and SIGHUP within the block, so that the site's folder is removed."""
    handlers = {}
    for name in ("SIGTERM", "SIGHUP"):
        signum = getattr(signal, name, None)  # Windows has no SIGHUP
        if signum is not None and signal.getsignal(signum) is signal.SIG_DFL:  # nohup ignores SIGHUP
            handlers[signum] = signal.signal(signum, signal.default_int_handler)
    try:
        yield
    finally:
        for signum, handler in handlers.items():
            signal.signal(signum, handler)


def _serve(arguments: argparse.Namespace) -> None:
    pyodide = _pyodide_source(arguments.pyodide)
    offers = offers_of(arguments.model_dir) if arguments.model_dir else Offers()
    with tempfile.TemporaryDirectory(prefix="tallow-demo-") as scratch:
        site = Path(scratch, "site")
        try:  # before the site is built, which takes a minute
            server = SiteServer(site, host=arguments.host, port=arguments.port, models=offers.files)
        except (OSError, UnicodeError) as error:  # UnicodeError for names that DNS cannot encode
            raise unusable_address(arguments.host, arguments.port, error) from error
        with server:
            report("building the pages, which takes half a minute or more")
            compiled = build_site(
                site,
                wheel=None,
                pyodide=pyodide,
                tokenizers=None
                if arguments.pyodide == "cdn"
                else _cached(f"huggingface-tokenizers-{TOKENIZERS_VERSION}"),
                markdown=None
                if arguments.pyodide == "cdn"
                else _cached(f"markdown-{MARKED_VERSION}-{DOMPURIFY_VERSION}"),
                models=offers.models,
                encoders=offers.encoders,
            )
            server.refresh()
            print(f"loading Pyodide from {pyodide or CDN}", file=sys.stderr)
            if pyodide and not compiled:
                print(
                    "pages would start in two thirds of the time with Node.js 20 or later on the PATH", file=sys.stderr
                )
            if arguments.model_dir:
                names = ", ".join(offer["name"] for offer in (*offers.models, *offers.encoders))
                print(f"models in {arguments.model_dir}: {names or 'none with a matching tokenizer'}", file=sys.stderr)
                if offers.outside:
                    print(
                        f"not served, because they are links out of the folder: {', '.join(offers.outside)}",
                        file=sys.stderr,
                    )
            try:
                print(server.url, flush=True)
                server.serve_forever()
            except KeyboardInterrupt:
                print("stopped", file=sys.stderr)


def _pyodide_source(choice: str | None) -> Path | None:
    """Return the folder of a local copy of Pyodide, or None for the CDN."""
    if choice == "cdn":
        return None
    if choice is not None:
        if not (Path(choice) / "pyodide.mjs").is_file():
            raise ArgumentError(
                f"--pyodide {choice}: Pyodide not found", hint="make a copy with scripts/fetch_pyodide.py"
            )
        return Path(choice)
    return _cached(f"pyodide-{PYODIDE_VERSION}")


def _cached(name: str) -> Path | None:
    """Return the copy that a script such as scripts/fetch_pyodide.py made in tallow's cache, if it exists."""
    copy = cache_folder() / name
    return copy if copy.is_dir() else None
