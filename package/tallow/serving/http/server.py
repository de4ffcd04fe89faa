"""Run the application on uvicorn."""

from __future__ import annotations

import logging
import socket
import ssl
import sys

import uvicorn
from starlette.applications import Starlette

from tallow.errors import ArgumentError

KEEP_ALIVE_S = 30
MAX_HEADER_BYTES = 64 << 10


def serve(
    app: Starlette,
    listener: socket.socket,
    *,
    drain_timeout_s: int,
    log_level: str = "info",
    certificate: str | None = None,
    key: str | None = None,
) -> None:
    """Answer requests until SIGTERM or Ctrl-C; then finish those in progress, for at most `drain_timeout_s`.

    Args:
        listener: the socket, which listens already.
        certificate, key: files in PEM, for HTTPS.

    Raises:  KeyboardInterrupt after Ctrl-C; ArgumentError if the certificate and the key are not a pair in PEM
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    logger = logging.getLogger("tallow.serving")
    logger.addHandler(handler)
    logger.setLevel(log_level.upper())
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        server_header=False,
        h11_max_incomplete_event_size=MAX_HEADER_BYTES,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=drain_timeout_s,
        ssl_certfile=certificate,
        ssl_keyfile=key,
    )
    try:
        config.load()
        uvicorn.Server(config).run(sockets=[listener])
    except ssl.SSLError as error:
        raise ArgumentError(f"{certificate} and {key} are not a certificate and its private key in PEM") from error
    finally:
        logger.removeHandler(handler)


def listen_at(path: str) -> socket.socket:
    """Return a Unix socket that listens.  Raises: OSError"""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(path)
    listener.listen(512)
    return listener


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens; port 0 chooses a free one.  Raises: OSError, such as for a port in use"""
    family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(512)
    except OSError:
        listener.close()
        raise
    return listener
