"""The command `tallow`, run as a user runs it."""

from __future__ import annotations

import importlib.metadata
import io
import json
import os
import re
import shutil
import signal
import socket
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


def test_greedy_text_equals_that_of_run_c(stories: list[Any], data_dir: Path) -> None:
    cases = json.loads((data_dir / "llama2c_reference.json").read_text(encoding="utf-8"))["cases"]
    for case in cases:
        process = tallow(*stories, "--prompt", case["prompt"], "--temperature", 0, "--steps", case["steps"])
        assert process.returncode == 0, process.stderr
        assert process.stdout == case["text"]
        assert re.search(r"^loaded .*stories260K.bin in \d", process.stderr, re.MULTILINE)
        assert re.search(r"^\d+ tokens, \d+ tokens/s$", process.stderr, re.MULTILINE)


def test_text_with_a_small_cache(stories: list[Any]) -> None:
    options = ("--steps", 40, "--temperature", 0)
    expected = tallow(*stories, *options).stdout
    for dtype in ("float16", "int8"):
        assert tallow(*stories, *options, "--cache-dtype", dtype).stdout == expected
    assert "invalid choice: 'int4'" in tallow(*stories, "--cache-dtype", "int4").stderr


def test_seed_on_stderr_repeats_the_text(stories: list[Any]) -> None:
    first = tallow(*stories, "--steps", 40)
    seed = re.search(r"^seed (\d+)$", first.stderr, re.MULTILINE)
    assert seed
    assert tallow(*stories, "--steps", 40, "--seed", seed[1]).stdout == first.stdout
    assert tallow(*stories, "--steps", 40, "--seed", int(seed[1]) + 1).stdout != first.stdout


def test_steps_count_the_prompt(stories: list[Any]) -> None:
    """As in run.c: --steps 4 feeds four positions, so four tokens follow BOS, the prompt's tokens first."""
    assert tallow(*stories, "--prompt", "Once upon a time", "--steps", 2, "--temperature", 0).stdout == "Once upon\n"
    assert (
        tallow(*stories, "--prompt", "Once upon a time", "--steps", 5, "--temperature", 0).stdout
        == "Once upon a time,\n"
    )


def test_more_steps_than_the_context_are_cut(stories: list[Any]) -> None:
    done = tallow(*stories, "--steps", 10**12, "--temperature", 0, "--prompt", "The dog was very")
    assert done.returncode == 0
    assert "exceeds the model's context; stopping at 512" in done.stderr


def test_default_model_tells_a_story() -> None:
    process = tallow("generate", "--seed", 1)
    assert process.returncode == 0, process.stderr
    assert process.stdout.startswith(("Once upon a time", "There was once")) or " was a " in process.stdout
    assert re.search(r"^loaded stories in \d", process.stderr, re.MULTILINE)


def test_text_and_prompt_say_the_same() -> None:
    story = tallow("generate", "Once upon a time there was a shy", "--temperature", 0)
    assert story.stdout.startswith("Once upon a time there was a shy ")
    assert tallow("generate", "--prompt", "Once upon a time there was a shy", "--temperature", 0).stdout == story.stdout
    assert tallow("generate", "Once", "--prompt", "Once").returncode == 2


def test_a_model_needs_its_tokenizer(stories: list[Any]) -> None:
    assert_one_error(tallow(*stories[:3]), "is a file without a tokenizer")
    assert_one_error(tallow("generate", *stories[3:]), "--tokenizer without --model")


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_runs(stories: list[Any], dtype: str) -> None:
    process = tallow(*stories, "--steps", 8, "--temperature", 0, "--dtype", dtype)
    assert process.returncode == 0, process.stderr
    assert process.stdout.startswith("Once upon a time")


def assert_one_error(process: subprocess.CompletedProcess[str], *messages: str) -> None:
    """Check for exit status 2, empty stdout and one line of error without a traceback."""
    assert process.returncode == 2, process.stderr
    assert process.stdout.strip() == ""
    assert "Traceback" not in process.stderr
    errors = [line for line in process.stderr.splitlines() if "error:" in line]
    assert len(errors) == 1
    for text in messages:
        assert text in errors[0]


@pytest.mark.parametrize(
    ("options", "messages"),
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
        (["--device", "meta"], "'meta' cannot compute; expected cpu, cuda"),
        (["--model", "no-such-file.bin"], "no-such-file.bin: No such file or directory"),
        (["--tokenizer", "no-such-file.bin"], "no-such-file.bin: No such file or directory"),
        (["--prompt", "word " * 600], "tokens, the model's context holds 512; shorten the prompt"),
        (["--prompt", "\udcff"], "not a character"),
    ],
)
def test_invalid_options_are_refused(stories: list[Any], options: list[Any], messages: str) -> None:
    if options[0] in stories:
        at = stories.index(options[0])
        stories = stories[:at] + stories[at + 2 :]
    assert_one_error(tallow(*stories, *options), messages)


def test_damaged_files_are_refused(stories: list[Any], data_dir: Path, tmp_path: Path) -> None:
    file_bytes = (data_dir / "stories260K.bin").read_bytes()
    broken = tmp_path / "broken.bin"
    command = ["generate", "--model", broken, "--tokenizer", data_dir / "tok512.bin"]
    for content, messages in [
        (b"", "0 bytes are too few"),
        (file_bytes[:1000], "truncated: 1000 bytes"),
        (file_bytes + b"\0", "oversized"),
        (struct.pack("<7i", *[2**30] * 3, 1, 1, 2**30, 2**30), "truncated: 28 bytes"),
    ]:
        broken.write_bytes(content)
        assert_one_error(tallow(*command), str(broken), messages)
    assert_one_error(
        tallow(*stories[:-1], data_dir / "llama2c_tokenizer_32000.bin"), "has 32000 tokens, but the model has"
    )
    assert_one_error(tallow(*stories[:-1], data_dir / "stories260K.bin"), "tokenizer")
    assert_one_error(tallow("generate", "--model", tmp_path, "--tokenizer", data_dir / "tok512.bin"), "config.json")


def test_nan_weights_are_refused(data_dir: Path, tmp_path: Path) -> None:
    weights = bytearray((data_dir / "stories260K.bin").read_bytes())
    np.frombuffer(weights, np.float32)[7 + 512 * 64] = np.nan  # weight of the first layer's first norm
    broken = tmp_path / "nan.bin"
    broken.write_bytes(weights)
    process = tallow("generate", "--model", broken, "--tokenizer", data_dir / "tok512.bin")
    assert_one_error(process, "the logits hold NaN", "check the weights")


def buffered_env() -> dict[str, str]:
    """Return a user's environment, where Python buffers stdout."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}


def start(*arguments: Any) -> subprocess.Popen[bytes]:
    command = [*COMMAND, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=buffered_env())


@pytest.fixture(scope="module")
def slow_model(tmp_path_factory: pytest.TempPathFactory, data_dir: Path) -> list[Any]:
    """Random weights, and more tokens to generate than any test waits for."""
    sizes = np.array([256, 1024, 6, 8, 8, 512, 100_000], dtype=np.int32)
    dim, hidden, layers, heads, _, vocab, context = sizes.tolist()
    count = vocab * dim + layers * (2 * dim + 4 * dim * dim + 3 * dim * hidden) + dim + context * dim // heads
    path = tmp_path_factory.mktemp("slow") / "slow.bin"
    with path.open("wb") as file:
        file.write(sizes.tobytes())
        np.random.default_rng(0).standard_normal(count, dtype=np.float32).tofile(file)
    return ["generate", "--model", path, "--tokenizer", data_dir / "tok512.bin", "--steps", 100_000, "--prompt", "Once"]


def test_text_is_streamed(slow_model: list[Any]) -> None:
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


def test_closed_pipe_on_stdout(slow_model: list[Any]) -> None:
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
        command, capture_output=True, text=True, encoding="utf-8", timeout=60, check=False, env=buffered_env()
    )


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full, which Linux has")
def test_a_full_disk_is_one_line_of_error(stories: list[Any]) -> None:
    for command in (["info"], ["--help"], ["train", "--help"], ["--version"], [*stories, "--steps", 8]):
        assert_one_error(in_shell(">/dev/full", *command), "No space left on device")


@pytest.mark.skipif(os.name == "nt", reason="needs a POSIX shell")
def test_a_closed_stdout_is_one_line_of_error(stories: list[Any]) -> None:
    for command in (["info"], ["--help"], [*stories, "--steps", 8]):
        assert_one_error(in_shell(">&-", *command), "stdout: Bad file descriptor")


@pytest.mark.skipif(os.name == "nt", reason="needs a POSIX shell")
def test_text_is_written_with_stderr_closed(stories: list[Any]) -> None:
    process = in_shell("2>&-", *stories, "--steps", 5, "--temperature", 0)
    assert process.returncode == 0
    assert process.stdout == "Once upon a time,\n"
    assert in_shell("2>&-", "generate", "--steps", "none").stdout == ""


def test_terminal_without_unicode_gets_replacements(stories: list[Any]) -> None:
    environment = os.environ | {"PYTHONIOENCODING": "ascii"}
    process = tallow(*stories, "--prompt", "é", "--steps", 4, "--temperature", 0, env=environment)
    assert process.returncode == 0, process.stderr
    assert process.stdout.startswith("?")


def test_help_and_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert tallow("--version").stdout == f"tallow {tl.__version__}\n"
    overview = tallow("--help").stdout
    for command in ("generate", "info", "demo"):
        assert re.search(rf"^ +{command} +\w", overview, re.MULTILINE)
        with pytest.raises(SystemExit) as exit_info:
            main([command, "--help"])
        assert exit_info.value.code == 0
        assert f"usage: tallow {command}" in capsys.readouterr().out
    assert tallow().stdout == overview
    assert tallow("train").returncode == 2


def test_info_names_versions_kernels_and_devices() -> None:
    process = tallow("info")
    assert process.returncode == 0, process.stderr
    rows = dict(line.split(maxsplit=1) for line in process.stdout.splitlines())
    assert rows["tallow"] == tl.__version__
    assert rows["numpy"] == np.__version__
    assert {"python", "platform", "kernels", "cpu", "cuda"} <= rows.keys()


def test_info_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["numpy"] == np.__version__
    assert found["kernels"]["library"] == tl.kernels.info().library


def test_help_of_a_command_is_that_of_its_option(capsys: pytest.CaptureFixture[str]) -> None:
    texts = []
    for arguments in (["help", "chat"], ["chat", "--help"]):
        with pytest.raises(SystemExit) as end:
            main(arguments)
        assert end.value.code == 0
        texts.append(capsys.readouterr().out)
    assert texts[0] == texts[1]
    assert texts[0].startswith("usage: tallow chat")


def test_bash_completes_commands_and_options(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("shtab")
    if shutil.which("bash") is None:
        pytest.skip("needs Bash")
    assert main(["completion", "bash"]) == 0
    script = tmp_path / "tallow"
    script.write_text(capsys.readouterr().out, encoding="utf-8")
    for words, expected in ((["tran"], ["transcribe"]), (["generate", "--temp"], ["--temperature"])):
        line = f"COMP_WORDS=(tallow {' '.join(words)}); COMP_CWORD={len(words)}; _shtab_tallow tallow {words[-1]}"
        program = f"source {script}; {line}; printf '%s\\n' \"${{COMPREPLY[@]}}\""
        found = subprocess.run(["bash", "-c", program], capture_output=True, text=True, check=True).stdout.split()
        assert found == expected


def test_embed_without_a_text_says_so(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))
    (line,) = error_lines(capsys, "embed")
    assert "there is no text; pass TEXT" in line


def error_lines(capsys: pytest.CaptureFixture[str], *arguments: Any) -> list[str]:
    """Return the lines on stderr of a command that argparse or the command itself rejects."""
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
        (["generate", "--steps", 0], "argument -n/--steps: '0'; expected 1 or more", "tallow generate"),
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
        (["--bogus"], "there is no option '--bogus'", "tallow"),
        (["--verison"], "there is no option '--verison'; did you mean --version?", "tallow"),
        (["chta"], "there is no command 'chta'; did you mean chat?", "tallow"),
        (["chat", "--modle=x"], "unrecognized arguments: --modle=x; did you mean --model?", "tallow chat"),
    ],
)
def test_a_wrong_value_is_one_line_and_how_to_get_help(
    arguments: list[Any], message: str, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert error_lines(capsys, *arguments) == [f"{command}: error: {message}", f"  hint: {command} --help"]


def test_no_arguments_print_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit:
        main([])
    assert exit.value.code == 0
    assert "continue a text with a language model" in capsys.readouterr().out


def test_serve_and_demo_name_a_port_that_is_in_use(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = listener.getsockname()[1]
        for command in ("serve", "demo"):
            (line,) = error_lines(capsys, command, "--port", port)
            assert line.startswith(
                f"tallow {command}: error: cannot listen on 127.0.0.1:{port}: Address already in use"
            )
            assert line.endswith("; choose another --port; 0 means any free one")


def stdin_of(content: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content), "utf-8"))


def test_generate_continues_what_is_piped_in(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["generate", "--temperature", "0", "--steps", "20"]
    assert main([*options, "Once upon a time"]) == 0
    story = capsys.readouterr().out
    for piped in (b"Once upon a time", b"Once upon a time\n", b"Once upon a time\r\n\n"):
        stdin_of(piped, monkeypatch)
        assert main(options) == 0
        assert capsys.readouterr().out == story
    stdin_of(b"not read", monkeypatch)
    assert main([*options, "Once upon a time"]) == 0
    assert capsys.readouterr().out == story
    stdin_of(b"Gr\xfc\xdfe", monkeypatch)
    (line,) = error_lines(capsys, *options)
    assert line.startswith("tallow generate: error: stdin is not UTF-8: byte 0xfc; convert it, for example: iconv")


def test_piped_input_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    stdin_of(b"word " * 1000, monkeypatch)
    monkeypatch.setattr(terminal, "MAX_PROMPT_CHARACTERS", 4000)
    with pytest.raises(ArgumentError, match="more than 4000 characters"):
        terminal.prompt_from_stdin()


def test_terminal_input_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    stdin_of(b"", monkeypatch)
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    monkeypatch.setattr("sys.stdin.read", lambda _size: pytest.fail("it was read"))
    assert terminal.prompt_from_stdin() == ""


@pytest.mark.skipif(os.name == "nt", reason="needs a POSIX shell")
def test_closed_stdin_counts_as_empty(stories: list[Any]) -> None:
    process = in_shell("<&-", *stories, "--steps", 5, "--temperature", 0)
    assert process.returncode == 0, process.stderr
    assert process.stdout == "Once upon a time,\n"


@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "utf-8"])
def test_json_comes_back_from_any_encoding(encoding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    buffer = io.BytesIO()
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(buffer, encoding))
    terminal.print_json({"text": "Grüße 中 😀"})
    sys.stdout.flush()
    assert json.loads(buffer.getvalue().decode(encoding)) == {"text": "Grüße 中 😀"}


def run_with_module(name: str, content: str, folder: Path, *arguments: Any) -> subprocess.CompletedProcess[str]:
    """Run the command as its script does, with a package `name` found before the installed one."""
    (folder / "first" / name).mkdir(parents=True)
    (folder / "first" / name / "__init__.py").write_text(content)
    script = "import sys; from tallow_command import main; sys.exit(main())"
    command = [sys.executable, "-c", script, *map(str, arguments)]
    environment = os.environ | {"PYTHONPATH": str(folder / "first")}
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env=environment)


INTERRUPTING = "import signal\ntry:\n    signal.raise_signal(signal.SIGINT)\nexcept KeyboardInterrupt:\n    raise {}\n"


@pytest.mark.parametrize("error", ["", "ImportError"])
def test_ctrl_c_while_numpy_is_imported_is_one_line(error: str, tmp_path: Path) -> None:
    """Also if a module turns KeyboardInterrupt into an error of its own."""
    process = run_with_module("numpy", INTERRUPTING.format(error), tmp_path, "info")
    assert (process.returncode, process.stdout, process.stderr) == (130, "", "tallow: interrupted\n")


def test_ctrl_c_in_a_later_import_is_one_line(tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text("a text")
    content = INTERRUPTING.format("")
    process = run_with_module("tokenizers", content, tmp_path, "train", text, "--out", tmp_path / "out", "--vocab", 300)
    assert (process.returncode, process.stdout, process.stderr) == (130, "", "tallow train: interrupted\n")


def test_the_script_starts_the_ctrl_c_handler() -> None:
    (script,) = importlib.metadata.entry_points(group="console_scripts", name="tallow")
    assert script.value == "tallow_command:main"
