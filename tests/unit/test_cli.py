"""The command `tallow`, run as a user runs it."""

from __future__ import annotations

import importlib.metadata
import io
import json
import os
import re
import signal
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tallow as tl
from tallow.cli import main, terminal
from tallow.errors import ArgumentError

pytestmark = pytest.mark.native

COMMAND = [sys.executable, "-m", "tallow"]


def tallow(*arguments: Any, **options: Any) -> subprocess.CompletedProcess[str]:
    command = [*COMMAND, *map(str, arguments)]
    options = {"stdin": subprocess.DEVNULL, "encoding": "utf-8", "timeout": 60} | options
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


@pytest.fixture
def stories(data_dir: Path) -> list[Any]:
    return ["generate", "--model", data_dir / "stories260K.bin", "--tokenizer", data_dir / "tok512.bin"]


def test_greedy_text_is_run_cs(stories: list[Any], data_dir: Path) -> None:
    cases = json.loads((data_dir / "llama2c_reference.json").read_text(encoding="utf-8"))["cases"]
    for case in cases:
        done = tallow(*stories, "--prompt", case["prompt"], "--temperature", 0, "--steps", case["steps"])
        assert done.returncode == 0, done.stderr
        assert done.stdout == case["text"]
        assert re.search(r"^loaded .*stories260K.bin in \d", done.stderr, re.MULTILINE)
        assert re.search(r"^\d+ tokens, \d+ tokens/s$", done.stderr, re.MULTILINE)


def test_seed_on_stderr_repeats_the_text(stories: list[Any]) -> None:
    first = tallow(*stories, "--steps", 40)
    seed = re.search(r"^seed (\d+)$", first.stderr, re.MULTILINE)
    assert seed
    assert tallow(*stories, "--steps", 40, "--seed", seed[1]).stdout == first.stdout
    assert tallow(*stories, "--steps", 40, "--seed", int(seed[1]) + 1).stdout != first.stdout


def test_steps_count_the_prompt(stories: list[Any]) -> None:
    """As in run.c: --steps 4 feeds four positions, so four tokens follow BOS; those of the prompt come first."""
    assert tallow(*stories, "--prompt", "Once upon a time", "--steps", 2, "--temperature", 0).stdout == "Once upon\n"
    assert (
        tallow(*stories, "--prompt", "Once upon a time", "--steps", 5, "--temperature", 0).stdout
        == "Once upon a time,\n"
    )


def test_more_steps_than_the_context_are_cut(stories: list[Any]) -> None:
    done = tallow(*stories, "--steps", 10**12, "--temperature", 0, "--prompt", "The dog was very")
    assert done.returncode == 0
    assert "more than the model's context; stopping at 512" in done.stderr


def test_without_a_model_it_tells_a_story() -> None:
    done = tallow("generate", "--seed", 1)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(("Once upon a time", "There was once")) or " was a " in done.stdout
    assert re.search(r"^loaded stories in \d", done.stderr, re.MULTILINE)


def test_text_and_prompt_say_the_same() -> None:
    told = tallow("generate", "Once upon a time there was a shy", "--temperature", 0)
    assert told.stdout.startswith("Once upon a time there was a shy ")
    assert tallow("generate", "--prompt", "Once upon a time there was a shy", "--temperature", 0).stdout == told.stdout
    assert tallow("generate", "Once", "--prompt", "Once").returncode == 2


def test_a_model_needs_its_tokenizer(stories: list[Any]) -> None:
    assert_refused(tallow(*stories[:3]), "--model without --tokenizer")
    assert_refused(tallow("generate", *stories[3:]), "--tokenizer without --model")


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_runs(stories: list[Any], dtype: str) -> None:
    done = tallow(*stories, "--steps", 8, "--temperature", 0, "--dtype", dtype)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Once upon a time")


def assert_refused(done: subprocess.CompletedProcess[str], *says: str) -> None:
    """Exit status 2, nothing on stdout, one line of error without a traceback."""
    assert done.returncode == 2, done.stderr
    assert done.stdout.strip() == ""
    assert "Traceback" not in done.stderr
    errors = [line for line in done.stderr.splitlines() if "error:" in line]
    assert len(errors) == 1
    for text in says:
        assert text in errors[0]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--steps", 0], "'0'; expected 1 or more"),
        (["--steps", -5], "expected 1 or more"),
        (["--steps", "many"], "'many'; expected 1 or more"),
        (["--temperature", -1], "expected 0 or more"),
        (["--temperature", "nan"], "expected 0 or more"),
        (["--temperature", "inf"], "expected 0 or more"),
        (["--top-p", 0], "above 0 and at most 1"),
        (["--top-p", 2], "above 0 and at most 1"),
        (["--top-k", -1], "expected 0 or more"),
        (["--repetition-penalty", 0], "expected above 0"),
        (["--seed", "x"], "invalid int value"),
        (["--dtype", "float8"], "invalid choice"),
        (["--device", "gpu"], "no device of type 'gpu'; use one of"),
        (["--device", "meta"], "'meta' computes nothing; expected cpu, cuda"),
        (["--model", "no-such-file.bin"], "no-such-file.bin: No such file or directory"),
        (["--tokenizer", "no-such-file.bin"], "no-such-file.bin: No such file or directory"),
        (["--prompt", "word " * 600], "tokens, the model's context holds 512; shorten the prompt"),
        (["--prompt", "\udcff"], "no character"),
    ],
)
def test_options_that_make_no_sense_are_refused(stories: list[Any], options: list[Any], says: str) -> None:
    if options[0] in stories:
        at = stories.index(options[0])
        stories = stories[:at] + stories[at + 2 :]
    assert_refused(tallow(*stories, *options), says)


def test_damaged_files_are_refused(stories: list[Any], data_dir: Path, tmp_path: Path) -> None:
    whole = (data_dir / "stories260K.bin").read_bytes()
    broken = tmp_path / "broken.bin"
    command = ["generate", "--model", broken, "--tokenizer", data_dir / "tok512.bin"]
    for content, says in [
        (b"", "0 bytes are too few"),
        (whole[:1000], "truncated: 1000 bytes"),
        (whole + b"\0", "oversized"),
        (struct.pack("<7i", *[2**30] * 3, 1, 1, 2**30, 2**30), "truncated: 28 bytes"),
    ]:
        broken.write_bytes(content)
        assert_refused(tallow(*command), str(broken), says)
    assert_refused(
        tallow(*stories[:-1], data_dir / "llama2c_tokenizer_32000.bin"), "has 32000 pieces, but the model has"
    )
    assert_refused(tallow(*stories[:-1], data_dir / "stories260K.bin"), "tokenizer")
    assert_refused(tallow("generate", "--model", tmp_path, "--tokenizer", data_dir / "tok512.bin"), "config.json")


def test_nan_weights_are_refused(data_dir: Path, tmp_path: Path) -> None:
    weights = bytearray((data_dir / "stories260K.bin").read_bytes())
    np.frombuffer(weights, np.float32)[7 + 512 * 64] = np.nan  # the first layer's first norm weight
    broken = tmp_path / "nan.bin"
    broken.write_bytes(weights)
    done = tallow("generate", "--model", broken, "--tokenizer", data_dir / "tok512.bin")
    assert_refused(done, "the logits hold NaN", "check the weights")


def buffered() -> dict[str, str]:
    """The environment of a user, in whose Python stdout has a buffer."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}


def start(*arguments: Any) -> subprocess.Popen[bytes]:
    command = [*COMMAND, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=buffered())


@pytest.fixture(scope="module")
def slow_model(tmp_path_factory: pytest.TempPathFactory, data_dir: Path) -> list[Any]:
    """Random weights, and so many tokens to make that no test waits for the last."""
    sizes = np.array([256, 1024, 6, 8, 8, 512, 100_000], dtype=np.int32)
    dim, hidden, layers, heads, _, vocab, context = sizes.tolist()
    count = vocab * dim + layers * (2 * dim + 4 * dim * dim + 3 * dim * hidden) + dim + context * dim // heads
    path = tmp_path_factory.mktemp("slow") / "slow.bin"
    with path.open("wb") as file:
        file.write(sizes.tobytes())
        np.random.default_rng(0).standard_normal(count, dtype=np.float32).tofile(file)
    return ["generate", "--model", path, "--tokenizer", data_dir / "tok512.bin", "--steps", 100_000, "--prompt", "Once"]


def test_text_comes_as_it_is_made(slow_model: list[Any]) -> None:
    with start(*slow_model) as process:
        assert process.stdout is not None
        assert process.stdout.read(4) == b"Once"
        assert len(process.stdout.read1()) < 1000  # a buffer would have held back some thousands
        process.kill()


def test_ctrl_c_keeps_the_text(slow_model: list[Any]) -> None:
    with start(*slow_model) as process:
        assert process.stdout is not None
        assert process.stdout.read(4) == b"Once"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert out.endswith(b"\n")
    assert b"Traceback" not in err
    assert re.search(rb"^\d+ tokens", err, re.MULTILINE)


def test_reader_of_stdout_may_leave(slow_model: list[Any]) -> None:
    with start(*slow_model) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.read(4) == b"Once"
        process.stdout.close()
        err = process.stderr.read()
    assert process.returncode == 141
    assert b"Traceback" not in err
    assert b"Exception" not in err


def in_shell(redirection: str, *arguments: Any) -> subprocess.CompletedProcess[str]:
    script = f'exec "$@" {redirection}'
    command = ["sh", "-c", script, "sh", *COMMAND, *map(str, arguments)]
    return subprocess.run(
        command, capture_output=True, text=True, encoding="utf-8", timeout=60, check=False, env=buffered()
    )


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full, which Linux has")
def test_a_full_disk_is_one_line_of_error(stories: list[Any]) -> None:
    for command in (["info"], [*stories, "--steps", 8]):
        assert_refused(in_shell(">/dev/full", *command), "No space left on device")


@pytest.mark.skipif(os.name == "nt", reason="needs a POSIX shell")
def test_a_closed_stdout_is_one_line_of_error(stories: list[Any]) -> None:
    for command in (["info"], [*stories, "--steps", 8]):
        assert_refused(in_shell(">&-", *command), "stdout: Bad file descriptor")


@pytest.mark.skipif(os.name == "nt", reason="needs a POSIX shell")
def test_a_closed_stderr_leaves_stdout_to_the_text(stories: list[Any]) -> None:
    done = in_shell("2>&-", *stories, "--steps", 5, "--temperature", 0)
    assert done.returncode == 0
    assert done.stdout == "Once upon a time,\n"
    assert in_shell("2>&-", "generate", "--steps", "none").stdout == ""


def test_terminal_without_unicode_gets_replacements(stories: list[Any]) -> None:
    environment = os.environ | {"PYTHONIOENCODING": "ascii"}
    done = tallow(*stories, "--prompt", "é", "--steps", 4, "--temperature", 0, env=environment)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("?")


def test_control_characters_do_not_reach_the_terminal(stories: list[Any]) -> None:
    done = tallow(*stories, "--prompt", "a\x1b[2J\x07b\tc", "--steps", 12, "--temperature", 0)
    assert done.returncode == 0
    assert done.stdout.startswith("a[2Jb\tc")


def test_help_and_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert tallow("--version").stdout == f"tallow {tl.__version__}\n"
    overview = tallow("--help").stdout
    for command in ("generate", "info", "demo"):
        assert re.search(rf"^ +{command} +\w", overview, re.MULTILINE)
        with pytest.raises(SystemExit) as ended:
            main([command, "--help"])
        assert ended.value.code == 0
        assert f"usage: tallow {command}" in capsys.readouterr().out
    assert tallow().returncode == 2
    assert tallow("train").returncode == 2


def test_info_names_versions_kernels_and_devices() -> None:
    done = tallow("info")
    assert done.returncode == 0, done.stderr
    rows = dict(line.split(maxsplit=1) for line in done.stdout.splitlines())
    assert rows["tallow"] == tl.__version__
    assert rows["numpy"] == np.__version__
    assert {"python", "platform", "kernels", "cpu", "cuda"} <= rows.keys()


def refused(capsys: pytest.CaptureFixture[str], *arguments: Any) -> list[str]:
    """The lines on stderr of a command that argparse or the command itself refuses."""
    try:
        status = main([str(argument) for argument in arguments])
    except SystemExit as end:
        status = int(end.code or 0)
    assert status == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    return printed.err.splitlines()


@pytest.mark.parametrize(
    ("arguments", "message", "command"),
    [
        (["generate", "--steps", 0], "argument --steps: '0'; expected 1 or more", "tallow generate"),
        (["generate", "--bogus"], "unrecognized arguments: --bogus", "tallow generate"),
        (["generate", "a", "b"], "unrecognized arguments: b", "tallow generate"),
        (
            ["embed", "--model", "x", "--batch-size", 0],
            "argument --batch-size: '0'; expected 1 or more",
            "tallow embed",
        ),
        (
            ["fill-mask", "--model", "x", "--top-k", -1],
            "argument --top-k: '-1'; expected 1 or more",
            "tallow fill-mask",
        ),
        (["transcribe"], "the following arguments are required: FILE", "tallow transcribe"),
        ([], "the following arguments are required: command", "tallow"),
        (["--bogus"], "the following arguments are required: command", "tallow"),
    ],
)
def test_a_wrong_value_is_one_line_and_how_to_get_help(
    arguments: list[Any], message: str, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert refused(capsys, *arguments) == [f"{command}: error: {message}", f"  hint: {command} --help"]


def stdin_of(content: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content), "utf-8"))


def test_generate_continues_what_is_piped_in(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["generate", "--temperature", "0", "--steps", "20"]
    assert main([*options, "Once upon a time"]) == 0
    told = capsys.readouterr().out
    for piped in (b"Once upon a time", b"Once upon a time\n", b"Once upon a time\r\n\n"):
        stdin_of(piped, monkeypatch)
        assert main(options) == 0
        assert capsys.readouterr().out == told
    stdin_of(b"not read", monkeypatch)
    assert main([*options, "Once upon a time"]) == 0
    assert capsys.readouterr().out == told
    stdin_of(b"Gr\xfc\xdfe", monkeypatch)
    (line,) = refused(capsys, *options)
    assert line.startswith("tallow generate: error: stdin is not UTF-8: byte 0xfc; convert it, for example: iconv")


def test_what_is_piped_in_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    stdin_of(b"word " * 1000, monkeypatch)
    monkeypatch.setattr(terminal, "MAX_PROMPT_CHARACTERS", 4000)
    with pytest.raises(ArgumentError, match="more than 4000 characters"):
        terminal.prompt_from_stdin()


def test_a_terminal_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    stdin_of(b"", monkeypatch)
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    monkeypatch.setattr("sys.stdin.read", lambda _size: pytest.fail("it was read"))
    assert terminal.prompt_from_stdin() == ""


@pytest.mark.skipif(os.name == "nt", reason="needs a POSIX shell")
def test_a_closed_stdin_is_an_empty_one(stories: list[Any]) -> None:
    done = in_shell("<&-", *stories, "--steps", 5, "--temperature", 0)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "Once upon a time,\n"


@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "utf-8"])
def test_json_comes_back_from_any_encoding(encoding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    written = io.BytesIO()
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(written, encoding))
    terminal.print_json({"text": "Grüße 中 😀"})
    sys.stdout.flush()
    assert json.loads(written.getvalue().decode(encoding)) == {"text": "Grüße 中 😀"}


def run_with_module(name: str, content: str, folder: Path, *arguments: Any) -> subprocess.CompletedProcess[str]:
    """The command as its script starts it, where a package `name` comes before the installed one."""
    (folder / "first" / name).mkdir(parents=True)
    (folder / "first" / name / "__init__.py").write_text(content)
    script = "import sys; from tallow_command import main; sys.exit(main())"
    command = [sys.executable, "-c", script, *map(str, arguments)]
    environment = os.environ | {"PYTHONPATH": str(folder / "first")}
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env=environment)


INTERRUPTING = "import signal\ntry:\n    signal.raise_signal(signal.SIGINT)\nexcept KeyboardInterrupt:\n    raise {}\n"


@pytest.mark.parametrize("error", ["", "ImportError"])
def test_ctrl_c_while_numpy_is_imported_is_one_line(error: str, tmp_path: Path) -> None:
    """Also where a module turns KeyboardInterrupt into an error of its own."""
    done = run_with_module("numpy", INTERRUPTING.format(error), tmp_path, "info")
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "tallow: interrupted\n")


def test_ctrl_c_in_a_later_import_is_one_line(tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text("a text")
    content = INTERRUPTING.format("")
    done = run_with_module("tokenizers", content, tmp_path, "train", text, "--out", tmp_path / "out", "--vocab", 300)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "tallow train: interrupted\n")


def test_the_script_starts_what_catches_ctrl_c() -> None:
    (script,) = importlib.metadata.entry_points(group="console_scripts", name="tallow")
    assert script.value == "tallow_command:main"
