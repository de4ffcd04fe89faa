"""Run the application on uvicorn."""

from __future__ import annotations

import asyncio
import gc
import logging
import ssl
import sys
import textwrap
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import uvicorn
from starlette.applications import Starlette

from tallow.errors import ArgumentError, escaped, escaped_line
from tallow.serving.http.body import Held
from tallow.serving.http.connections import ENDING_S, MOST_UNSENT, Connection
from tallow.serving.http.limits import Deadlines
from tallow.serving.http.listener import Listener

NEVER_S = 1 << 30
# How long a thread keeps Python's lock while another waits, such as the engine's, whose kernels give it away several
# times for each token. With Python's 5 ms, a busy thread made the mean gap of the stories model 8 ms instead of 3.
SWITCH_S = 0.0005
LOGGERS = tuple(map(logging.getLogger, ("tallow.serving", "uvicorn.error", "asyncio")))


class EntryFormatter(logging.Formatter):
    """Formats an entry of the log as one line, whatever a client has sent; a traceback follows it, indented."""

    def formatMessage(self, record: logging.LogRecord) -> str:
        """Return an entry as one line."""
        return escaped_line(super().formatMessage(record))

    def formatException(self, ei: Any) -> str:
        return textwrap.indent(escaped(super().formatException(ei)), "    ")


def serve(
    app: Starlette,
    listener: Listener,
    *,
    deadlines: Deadlines,
    drain_timeout_s: int,
    on_end: Callable[[], None],
    log_level: str = "info",
    certificate: str | None = None,
    key: str | None = None,
) -> None:
    """Answer requests until SIGTERM or Ctrl-C; then finish those in progress, for at most `drain_timeout_s`.

    Args:
        listener: the socket, which listens already.
        deadlines: for clients.
        on_end: called before the signal that ended the server ends the process, too.
        certificate, key: files in PEM, for HTTPS.

    Raises:  KeyboardInterrupt after Ctrl-C; ArgumentError if the certificate and the key are not a pair in PEM
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(EntryFormatter("%(asctime)s %(levelname)s %(message)s"))
    for logger in LOGGERS:
        logger.addHandler(handler)
    LOGGERS[0].setLevel(log_level.upper())
    switch_s = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_S)
    # The garbage collector stops all threads while it looks at what there is: not at modules and models from now on.
    gc.collect()
    gc.freeze()
    try:
        server = Server(app, deadlines, drain_timeout_s, on_end, ssl_certfile=certificate, ssl_keyfile=key)
        server.run(sockets=[listener])
    except ssl.SSLError as error:
        raise ArgumentError(f"{certificate} and {key} are not a certificate and its private key in PEM") from error
    finally:
        gc.unfreeze()
        sys.setswitchinterval(switch_s)
        for logger in LOGGERS:
            logger.removeHandler(handler)


class Server(uvicorn.Server):
    """uvicorn's server with deadlines for clients.

    Args:    on_end: called when it has ended
    Raises:  ssl.SSLError if the certificate and the key are not a pair in PEM
    """

    def __init__(
        self,
        app: Starlette,
        deadlines: Deadlines,
        drain_timeout_s: int,
        on_end: Callable[[], None] = lambda: None,
        **options: Any,
    ) -> None:
        protocol: Any = partial(Connection, deadlines=deadlines, held=Held(MOST_UNSENT))
        config = uvicorn.Config(
            app,
            http=protocol,
            loop="asyncio",  # `Listener` counts on it
            ws="none",
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_keep_alive=NEVER_S,  # `Connection` sees to it
            timeout_graceful_shutdown=drain_timeout_s,
            **options,
        )
        config.load()
        super().__init__(config)
        self._head_s = min(deadlines.head_s, NEVER_S)
        self._on_end = on_end

    async def startup(self, sockets: Sequence[Any] | None = None) -> None:
        """Accept connections, with one line in the log for what fails."""
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(_log_failure)
        if self.config.ssl is not None:  # uvicorn does not pass on how long a handshake may take; asyncio's is a minute
            limits = {"ssl_handshake_timeout": self._head_s, "ssl_shutdown_timeout": ENDING_S}
            loop.create_server = partial(loop.create_server, **limits)  # type: ignore[method-assign]
        await super().startup(sockets=list(sockets or ()))

    async def shutdown(self, sockets: Sequence[Any] | None = None) -> None:
        """Finish what is in progress."""
        await super().shutdown(sockets=list(sockets or ()))
        self._on_end()


def _log_failure(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log one line for a connection that could not be accepted, which is tried again each second."""
    if isinstance(error := context.get("exception"), OSError):
        LOGGERS[0].error("%s: %s", context.get("message"), error)
    else:
        loop.default_exception_handler(context)
