"""The command `tallow`, run as a user runs it."""

from __future__ import annotations

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

pytestmark = pytest.mark.native

COMMAND = [sys.executable, "-m", "tallow"]


def tallow(*arguments: Any, **options: Any) -> subprocess.CompletedProcess[str]:
    command = [*COMMAND, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, encoding="utf-8", timeout=60, check=False, **options)


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


def test_help_and_version() -> None:
    assert tallow("--version").stdout == f"tallow {tl.__version__}\n"
    overview = tallow("--help").stdout
    for command in ("generate", "info", "demo"):
        assert re.search(rf"^ +{command} +\w", overview, re.MULTILINE)
        assert f"usage: tallow {command}" in tallow(command, "--help").stdout
    assert tallow().returncode == 2
    assert tallow("train").returncode == 2


def test_info_names_versions_kernels_and_devices() -> None:
    done = tallow("info")
    assert done.returncode == 0, done.stderr
    rows = dict(line.split(maxsplit=1) for line in done.stdout.splitlines())
    assert rows["tallow"] == tl.__version__
    assert rows["numpy"] == np.__version__
    assert {"python", "platform", "kernels", "cpu", "cuda"} <= rows.keys()
