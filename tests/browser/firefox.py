"""Drive Firefox by Marionette, the protocol that geckodriver speaks to it: JSON over a socket, without a package.

Playwright drives the Firefox of its own builds, and by WebDriver BiDi newer ones than Debian's.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.browser.conftest import START_MS

WAIT_S = START_MS / 1000
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"  # the key of an element's id, in the WebDriver standard
PREFERENCES = {
    "marionette.port": 0,  # any that is free
    "app.update.disabledForTesting": True,
    "browser.shell.checkDefaultBrowser": False,
    "datareporting.policy.dataSubmissionEnabled": False,
    "network.connectivity-service.enabled": False,
}


class MarionetteError(Exception):
    """A command of Marionette failed."""


class Firefox:
    """One window."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=2 * WAIT_S)
        self._replies = self._socket.makefile("rb")
        self._receive()  # a greeting
        self._last_id = 0
        self._do(
            "WebDriver:NewSession",
            capabilities={"alwaysMatch": {"timeouts": {"pageLoad": START_MS, "script": START_MS}}},
        )

    def close(self) -> None:
        self._do("Marionette:Quit", flags=["eForceQuit"])
        self._replies.close()
        self._socket.close()

    def open(self, url: str) -> None:
        self._do("WebDriver:Navigate", url=url)

    def reload(self) -> None:
        """Reload the page, as a user does: the command of Marionette leaves out the service worker."""
        self.evaluate("(window.isOld = true, location.reload())")
        self.until("!window.isOld && document.readyState === 'complete'")

    def evaluate(self, expression: str) -> Any:
        """Return the value of a JavaScript expression on the page."""
        return self._do("WebDriver:ExecuteScript", script=f"return ({expression})", args=[])["value"]

    def click(self, name: str) -> None:
        """Click an element with this test id, when it can be clicked."""
        self.until(f"!document.querySelector('{_selector(name)}').disabled")
        self._do("WebDriver:ElementClick", id=self._find(name))

    def fill(self, name: str, text: str) -> None:
        element = self._find(name)
        self._do("WebDriver:ElementClear", id=element)
        self._do("WebDriver:ElementSendKeys", id=element, text=text)

    def text(self, name: str) -> str:
        return str(self.evaluate(f"document.querySelector('{_selector(name)}')?.textContent ?? ''"))

    def click_when(self, name: str, expression: str) -> None:
        """Let the page itself click as soon as a change makes a condition true, whatever the machine's speed."""
        self.evaluate(f"""new MutationObserver((_, observer) => {{
          if (!({expression})) return;
          observer.disconnect();
          document.querySelector('{_selector(name)}').click();
        }}).observe(document.body, {{ subtree: true, childList: true, characterData: true }})""")

    def says(self, name: str, words: str) -> None:
        """Wait until the text of an element contains words, and the page reports no error."""
        self.until(f"document.querySelector('{_selector(name)}')?.textContent.includes({json.dumps(words)})")
        assert not self.evaluate("document.querySelector('#error')?.checkVisibility()"), self.text("error")

    def until(self, expression: str) -> None:
        """Wait for a condition."""
        end = time.monotonic() + WAIT_S
        while not self._holds(expression):
            assert time.monotonic() < end, (
                f"{expression}; the page says {self.text('status')!r}, {self.text('error')!r}"
            )
            time.sleep(0.05)

    def _holds(self, expression: str) -> bool:
        try:
            return bool(self.evaluate(expression))
        except MarionetteError:  # a page that reloads does not answer
            return False

    def _find(self, name: str) -> str:
        found = self._do("WebDriver:FindElement", using="css selector", value=_selector(name))
        return str(found["value"][ELEMENT])

    def _do(self, command: str, **arguments: Any) -> dict[str, Any]:
        self._last_id += 1
        message = json.dumps([0, self._last_id, command, arguments]).encode()
        self._socket.sendall(b"%d:%b" % (len(message), message))
        _, _, error, result = self._receive()
        if error:
            raise MarionetteError(f"{command}: {error['error']}: {error['message']}")
        return result or {}

    def _receive(self) -> Any:
        length = b""
        while (byte := self._replies.read(1)) != b":":
            if not byte:
                raise MarionetteError("Firefox has ended")
            length += byte
        return json.loads(self._replies.read(int(length)))


def _selector(name: str) -> str:
    return f"[data-testid={name}]"


@contextmanager
def running(program: str, profile: Path) -> Iterator[Firefox]:
    """Start Firefox without a window and with a new profile."""
    lines = [f"user_pref({json.dumps(name)}, {json.dumps(value)});\n" for name, value in PREFERENCES.items()]
    (profile / "user.js").write_text("".join(lines), encoding="utf-8")
    command = [program, "--headless", "--marionette", "--no-remote", "--profile", str(profile)]
    process = subprocess.Popen(
        command, env=os.environ | {"HOME": str(profile)}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        port = profile / "MarionetteActivePort"
        end = time.monotonic() + WAIT_S
        while not (port.is_file() and port.read_text()):
            assert process.poll() is None, "Firefox did not start"
            assert time.monotonic() < end, "Firefox does not answer"
            time.sleep(0.05)
        firefox = Firefox(int(port.read_text()))
        yield firefox
        firefox.close()
    finally:
        process.terminate()
        process.wait()
