"""Control characters of files, models and prompts reach no terminal: they are escaped."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import unicodedata
from pathlib import Path
from typing import Any

import pytest

import tallow as tl
from tallow.cli import main
from tallow.cli.progress import Progress
from tallow.cli.terminal import EscapedStream, escaped_streams
from tallow.errors import ArgumentError, TallowWarning, escaped, escaped_line, warn

pytestmark = pytest.mark.native

TITLE = "\x1b]0;owned\x07"  # sets a terminal's title
C1 = "\x9b2J"  # clears the screen
OVERRIDE = "\u202egnp.exe"
HOSTILE = f"{TITLE}{C1}{OVERRIDE}\rready"


def commands(text: str) -> set[str]:
    """Return the characters of a text that a terminal obeys, but for the ends of lines that it writes itself."""
    controls = {c for c in text.replace("\r\n", "\n") if unicodedata.category(c) in ("Cc", "Zl", "Zp")}
    # The characters of https://www.unicode.org/reports/tr9/ that embed, override or isolate, and their ends.
    bidi = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}
    return (controls - set("\n\t")) | {c for c in text if unicodedata.bidirectional(c) in bidi}


def in_terminal(*arguments: Any) -> tuple[int, str]:
    """Run a command with stdout and stderr on one terminal; return its exit status and what the terminal received."""
    pty = pytest.importorskip("pty", reason="needs pseudo-terminals")
    end, inner = pty.openpty()
    command = [sys.executable, "-m", "tallow", *map(str, arguments)]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=inner, stderr=inner)
    os.close(inner)
    seen = b""
    try:
        while piece := os.read(end, 4096):
            seen += piece
    except OSError:  # Linux: the other end is closed
        pass
    os.close(end)
    return process.wait(60), seen.decode()


def test_every_control_character_and_override_is_escaped() -> None:
    text = "".join(map(chr, (*range(0xD800), *range(0xE000, 0x30000))))
    assert not commands(escaped(text))
    assert set(text) - set(escaped(text)) == commands(text)
    assert escaped_line("a\n\tb\r\x1b\x9b\u2028") == "a\\n\\tb\\r\\u001b\\u009b\\u2028"
    kept = "Grüße 中 👩\u200d👧 \u05d0\u200f می\u200cخواهم\n\t"  # letters, emoji and scripts need joiners and marks
    assert escaped(kept) == kept


def test_errors_and_warnings_of_the_library() -> None:
    assert str(ArgumentError(f"a {TITLE}\nb", hint=C1)) == "a \\u001b]0;owned\\u0007\nb\n  hint: \\u009b2J"
    with pytest.warns(TallowWarning) as seen:
        warn(HOSTILE, TallowWarning)
    assert not commands(str(seen[0].message))


@pytest.mark.parametrize(
    "config",
    [{"architectures": [HOSTILE]}, {"architectures": [], "model_type": HOSTILE}, {HOSTILE: 1}],
    ids=["architectures", "model_type", "entry"],
)
@pytest.mark.parametrize("command", ["generate", "inspect"])
def test_a_hostile_config_in_a_terminal(config: dict[str, Any], command: str, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(config))
    arguments = ["--model", tmp_path, "Once"] if command == "generate" else [tmp_path]
    status, seen = in_terminal(command, *arguments)
    assert status == 2
    assert "error: " in seen
    assert not commands(seen)


def test_hostile_names_in_a_terminal(tmp_path: Path) -> None:
    path = tmp_path / f"{TITLE}.safetensors"
    tl.io.safetensors.save({f"w{HOSTILE}": tl.ones(2)}, path, {f"note{C1}": HOSTILE})
    for arguments in ([path], [path, "--json"], [tmp_path / f"{C1}.pth"]):
        _, seen = in_terminal("inspect", *arguments)
        assert "\\u009b2J" in seen
        assert not commands(seen)
    _, seen = in_terminal("inspect", path, f"--{TITLE}")
    assert "unrecognized arguments: --\\u001b]0;owned" in seen
    assert not commands(seen)


def test_a_text_is_escaped_in_a_terminal_and_whole_in_a_pipe() -> None:
    prompt = f"a{TITLE}{C1}\x0b{OVERRIDE}\tb\nc"
    command = ["generate", "--prompt", prompt, "--steps", "60", "--temperature", "0"]
    status, seen = in_terminal(*command)
    assert status == 0
    assert "a\\u001b]0;owned\\u0007\\u009b2J\\u000b\\u202egnp.exe\tb\r\nc" in seen
    assert not commands(seen)
    process = subprocess.run([sys.executable, "-m", "tallow", *command], capture_output=True, check=True)
    assert process.stdout.startswith(prompt.encode())


class TerminalOfText(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_bars_look_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    def drawn(stream: Any) -> str:
        monkeypatch.setattr("sys.stderr", stream)
        with Progress(2, "talk", "files") as outer, Progress(2, "second", "files") as inner:
            for _ in range(2):
                inner.advance(1)
                outer.advance(1)
        return stream.getvalue()

    for has_tqdm in (True, False):
        if not has_tqdm:
            monkeypatch.setattr("tallow.cli.progress.find_spec", lambda name: None)
        plain, escaping = TerminalOfText(), EscapedStream(TerminalOfText(), has_bars=True)
        frames = drawn(plain)
        assert frames.count("\r") > 3
        assert drawn(escaping) == frames


def test_streams_are_those_of_the_caller_again(monkeypatch: pytest.MonkeyPatch) -> None:
    out, err = TerminalOfText(), io.StringIO()
    monkeypatch.setattr("sys.stdout", out)
    monkeypatch.setattr("sys.stderr", err)
    with escaped_streams():
        print("\r" + C1)
        print(C1, file=sys.stderr)
    assert (sys.stdout, sys.stderr) == (out, err)
    assert (out.getvalue(), err.getvalue()) == ("\\r\\u009b2J\n", "\\u009b2J\n")
    assert main(["inspect", HOSTILE]) == 2
    assert (sys.stdout, sys.stderr) == (out, err)
    assert not commands(err.getvalue())
