"""`tallow transcribe`: transcribe speech in audio files.

Without --model, uses a small built-in model that knows about a hundred words.

The text goes to stdout, segment by segment, or with --output-dir to files named after the audio files; progress and
speed go to stderr. WAV files at 16 kHz work without extras; other files need the extra `audio`. The file - is stdin. If
a file cannot be read, the command reports the error, continues with the other files, and exits with status 1.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

from tallow.audio.limits import read_pipe
from tallow.audio.sound import Sound
from tallow.cli.language_model import DTYPES, add_loading_options, number, positive_int
from tallow.cli.progress import Progress
from tallow.cli.terminal import one_line, report, write_json
from tallow.errors import ArgumentError, AudioError, MissingPackageError
from tallow.io.atomic import atomic_write, made_folder
from tallow.models.built_in import spoken
from tallow.models.whisper import Transcription, Whisper
from tallow.models.whisper.transcribe import temperatures_from
from tallow.models.whisper.writers import WRITERS
from tallow.text.whisper import TASKS, WhisperTokenizer

STDIN = "-"
FAILED = 1

threshold = number(float, "a number", lambda n: n == n)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `tallow transcribe`."""
    parser.add_argument("files", nargs="+", metavar="FILE", help="an audio file, or - for stdin")
    model = parser.add_argument_group("model")
    model.add_argument(
        "-m",
        "--model",
        help="a Whisper model: its folder, owner/repository on the Hugging Face Hub, OpenAI's .pt or whisper.cpp's "
        ".bin "
        f"(default: the built-in model, which knows {spoken.KNOWS})",
    )
    model.add_argument(
        "--tokenizer", metavar="FILE", help="tokenizer.json or .tiktoken (default: the file in the model's folder)"
    )
    add_loading_options(model)
    output = parser.add_argument_group("output")
    output.add_argument("--format", choices=WRITERS, default="txt", help="output format (default: %(default)s)")
    output.add_argument(
        "--output-dir", metavar="DIR", help="write one file per audio file to this folder (default: print to stdout)"
    )
    output.add_argument(
        "--word-timestamps", action="store_true", help="compute the time of each word; shown by --format json"
    )
    text = parser.add_argument_group("text")
    text.add_argument("--language", help="language code or English name (default: detected)")
    text.add_argument(
        "--task", choices=TASKS, default="transcribe", help="translate means to English (default: %(default)s)"
    )
    text.add_argument(
        "--initial-prompt", metavar="TEXT", help="text that could precede the audio, such as names to expect"
    )
    text.add_argument("--carry-initial-prompt", action="store_true", help="use the initial prompt for every window")
    text.add_argument("--no-context", action="store_true", help="do not use previous text as context")
    text.add_argument(
        "--batch-size",
        metavar="N",
        type=positive_int,
        default=1,
        help="number of 30-second windows per batch; above 1, without previous text as context (default: %(default)s)",
    )
    text.add_argument("--without-timestamps", action="store_true", help="do not predict timestamps")
    text.add_argument(
        "--clip",
        metavar="S",
        type=float,
        nargs="+",
        default=[0.0],
        help="transcribe only these parts, in seconds: start end start end ...",
    )
    _add_search_options(parser)


def _add_search_options(parser: argparse.ArgumentParser) -> None:
    search = parser.add_argument_group("decoding")
    search.add_argument(
        "--temperature",
        metavar="T",
        type=number(float, "0 or more", lambda t: 0 <= t < float("inf")),
        default=0.0,
        help="sampling temperature; 0 is greedy, with fallback to higher values if the text fails a threshold "
        "(default: %(default)s)",
    )
    search.add_argument("--beam-size", metavar="N", type=positive_int, help="number of beams")
    search.add_argument(
        "--patience", metavar="P", type=float, help="stop beam search after P times --beam-size finished texts"
    )
    search.add_argument(
        "--length-penalty",
        metavar="A",
        type=float,
        help="length penalty of beam search, 0 to 1 (default: compare by mean log probability)",
    )
    search.add_argument(
        "--best-of", metavar="N", type=positive_int, help="number of samples to choose from at temperatures above 0"
    )
    search.add_argument("--seed", metavar="N", type=int, help="random seed (default: random)")
    for name, default, meaning in (
        ("--compression-ratio-threshold", 2.4, "above it, a text repeats itself and is decoded again"),
        ("--logprob-threshold", -1.0, "below it, a text is improbable and is decoded again"),
        ("--no-speech-threshold", 0.6, "above it, an improbable text counts as silence"),
    ):
        search.add_argument(
            name, metavar="X", type=threshold, default=default, help=f"{meaning} (default: %(default)s)"
        )
    search.add_argument(
        "--hallucination-silence-threshold",
        metavar="S",
        type=threshold,
        help="drop improbable words in silences longer than S seconds; needs --word-timestamps",
    )


def run(arguments: argparse.Namespace) -> int:
    """Transcribe each file.

    Returns:  1 if a file could not be read, else 0
    Raises:  TallowError, OSError for other invalid input; KeyboardInterrupt
    """
    paths, folder = _output_paths(arguments), arguments.output_dir
    with nullcontext() if folder is None else made_folder(folder):
        return _transcribe(arguments, paths)


def _transcribe(arguments: argparse.Namespace, paths: Sequence[str | None]) -> int:
    started = time.perf_counter()
    model = _load(arguments)
    report(f"loaded {arguments.model or 'spoken'} in {time.perf_counter() - started:.2f} s")
    if arguments.model is None:
        report(f"the built-in model knows {spoken.KNOWS}; for general speech use --model openai/whisper-tiny")
    failed = []
    for name, path in zip(arguments.files, paths, strict=True):
        try:
            # Reads the whole file.
            transcription = Transcription(model, _sound(name), **_options(arguments))
        except (AudioError, MissingPackageError, OSError) as error:
            failed.append(name)
            report(f"tallow transcribe: error: {one_line(error)}")
            continue
        report(f"{name}: {transcription.duration_s:.1f} s, {transcription.language}")
        _write(transcription, name, path, arguments.format)
    if failed and len(arguments.files) > 1:
        report(f"{len(failed)} of {len(arguments.files)} files were not transcribed: {', '.join(failed)}")
    return FAILED if failed else 0


def _write(transcription: Transcription, name: str, path: str | None, form: str) -> None:
    """Transcribe a file, then print the text or write it to `path`."""
    started = time.perf_counter()
    with Progress(transcription.duration_s, name, "s") as progress:
        for segment in transcription:
            if path is None and form == "txt" and (text := segment.text.strip()):
                progress.print(text)
            progress.advance_to(transcription.position_s)
    seconds = time.perf_counter() - started
    if path is not None or form != "txt":
        _put(WRITERS[form](transcription.transcript()), path, form)
    speed = transcription.position_s / seconds if seconds else 0.0
    report(f"{name}: {transcription.position_s:.1f} s of sound in {seconds:.1f} s, {speed:.1f} times real time")
    if path is not None:
        report(f"wrote {path}")


def _put(text: str, path: str | None, form: str) -> None:
    """Write a whole transcript to a file or stdout."""
    if path is not None:
        with atomic_write(path) as file:
            file.write(text.encode())
        return
    if form == "json":
        write_json(text)
    else:
        sys.stdout.write(text)
    sys.stdout.flush()  # the next message on stderr comes after it


def _load(arguments: argparse.Namespace) -> Whisper:
    dtype = DTYPES.get(arguments.dtype)
    if arguments.model is None:
        if arguments.tokenizer is not None:
            raise ArgumentError("--tokenizer without --model", hint="pass both, or neither to use the built-in model")
        return spoken.load(dtype, arguments.device, quant=arguments.quant)
    model = Whisper.from_pretrained(arguments.model, dtype, arguments.device, quant=arguments.quant)
    if arguments.tokenizer is not None:
        model.tokenizer = WhisperTokenizer.load(arguments.tokenizer, model.config.vocab_size)
    return model


def _output_paths(arguments: argparse.Namespace) -> list[str | None]:
    """Return the path of each transcript; None for stdout.  Raises: ArgumentError if two paths are equal"""
    folder = arguments.output_dir
    if folder is None:
        return [None] * len(arguments.files)
    names = [os.path.splitext(os.path.basename(name))[0] if name != STDIN else "stdin" for name in arguments.files]
    if len(set(names)) < len(names):
        raise ArgumentError(
            f"two files have the same name in --output-dir {folder}", hint="transcribe them one at a time"
        )
    return [os.path.join(folder, f"{name}.{arguments.format}") for name in names]


def _sound(name: str) -> Sound:
    if name != STDIN:
        return Sound(name)
    return Sound(read_pipe(sys.stdin.buffer, "stdin"), name="stdin")


def _options(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the options for `Transcription`."""
    names = (
        *("task", "language", "initial_prompt", "carry_initial_prompt", "word_timestamps", "without_timestamps"),
        *("beam_size", "patience", "length_penalty", "best_of", "seed", "compression_ratio_threshold"),
        *("logprob_threshold", "no_speech_threshold", "hallucination_silence_threshold", "batch_size"),
    )
    return {name: getattr(arguments, name) for name in names} | {
        "temperature": temperatures_from(arguments.temperature),
        # The built-in model knows commands, which do not depend on each other.
        "condition_on_previous_text": arguments.model is not None and not arguments.no_context,
        "clip_timestamps": arguments.clip,
    }
