"""`tallow transcribe`: write down what is said in sound files.

Without --model a small one that comes with tallow is used; it knows about a hundred words.

The text goes to stdout, segment by segment, or with --output-dir to files named as the sounds are; progress and speed
go to stderr. WAV files of 16 kHz are read as they are; others need the extra `audio`. The file - is stdin. A file that
cannot be read is reported, and the others are transcribed; the exit status is 1 then.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from typing import Any

from tallow.audio.sound import Sound
from tallow.cli.language_model import DTYPES, add_loading_options, number
from tallow.cli.progress import Progress
from tallow.cli.terminal import one_line, printable, report, write_json
from tallow.errors import ArgumentError, AudioError, MissingPackageError
from tallow.io.atomic import atomic_write
from tallow.models import spoken
from tallow.models.whisper import Transcription, Whisper
from tallow.models.whisper.writers import WRITERS
from tallow.text.whisper import TASKS, WhisperTokenizer

STDIN = "-"
FAILED = 1
FALLBACKS = (0.2, 0.4, 0.6, 0.8, 1.0)  # the temperatures after --temperature 0

is_positive = number(int, "1 or more", lambda n: n >= 1)
is_threshold = number(float, "a number", lambda n: n == n)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", nargs="+", metavar="FILE", help="a sound file, or - for stdin")
    model = parser.add_argument_group("model")
    model.add_argument(
        "--model",
        help="the folder of a Whisper, owner/repository of the Hub, OpenAI's .pt or whisper.cpp's .bin "
        f"(default: the one that comes with tallow; it knows {spoken.KNOWS})",
    )
    model.add_argument(
        "--tokenizer", metavar="FILE", help="tokenizer.json or .tiktoken (default: that beside the model)"
    )
    add_loading_options(model)
    output = parser.add_argument_group("output")
    output.add_argument("--format", choices=WRITERS, default="txt", help="(default: %(default)s)")
    output.add_argument("--output-dir", metavar="DIR", help="write a file for each sound there (default: to stdout)")
    output.add_argument(
        "--word-timestamps", action="store_true", help="tell when each word was said; see --format json"
    )
    text = parser.add_argument_group("text")
    text.add_argument("--language", help="a code or an English name (default: found out)")
    text.add_argument("--task", choices=TASKS, default="transcribe", help="translate is to English")
    text.add_argument(
        "--initial-prompt", metavar="TEXT", help="what could come before, such as names that will be said"
    )
    text.add_argument("--carry-initial-prompt", action="store_true", help="it is context all along")
    text.add_argument("--no-context", action="store_true", help="what was said before is no context of what follows")
    text.add_argument(
        "--batch-size",
        metavar="N",
        type=is_positive,
        default=1,
        help="hear so many times thirty seconds at once, each without what was said before (default: %(default)s)",
    )
    text.add_argument("--without-timestamps", action="store_true", help="text only")
    text.add_argument(
        "--clip", metavar="S", type=float, nargs="+", default=[0.0], help="only these parts: start end start end ..."
    )
    _add_search_options(parser)


def _add_search_options(parser: argparse.ArgumentParser) -> None:
    search = parser.add_argument_group("search")
    search.add_argument(
        "--temperature",
        metavar="T",
        type=number(float, "0 or more", lambda t: 0 <= t < float("inf")),
        default=0.0,
        help="0 takes the likeliest text, and bolder ones only where it is bad (default: %(default)s)",
    )
    search.add_argument("--beam-size", metavar="N", type=is_positive, help="go on with so many texts at once")
    search.add_argument("--patience", metavar="P", type=float, help="end with so many times the beams' texts")
    search.add_argument("--length-penalty", metavar="A", type=float, help="0 to 1 (default: compare by mean)")
    search.add_argument("--best-of", metavar="N", type=is_positive, help="of so many texts that are drawn")
    search.add_argument("--seed", metavar="N", type=int, help="of what is drawn (default: a random one)")
    for name, default, meaning in (
        ("--compression-ratio-threshold", 2.4, "a text above repeats itself"),
        ("--logprob-threshold", -1.0, "a text below is unlikely"),
        ("--no-speech-threshold", 0.6, "an unlikely text above is none"),
    ):
        search.add_argument(
            name, metavar="X", type=is_threshold, default=default, help=f"{meaning} (default: %(default)s)"
        )
    search.add_argument(
        "--hallucination-silence-threshold",
        metavar="S",
        type=is_threshold,
        help="leave out unlikely words in silences of so many seconds; with --word-timestamps",
    )


def run(arguments: argparse.Namespace) -> int:
    """Transcribe each file.

    Returns:  1 if a file could not be read, else 0
    Raises:  TallowError, OSError for what else cannot be used; KeyboardInterrupt
    """
    paths = _output_paths(arguments)
    started = time.perf_counter()
    model = _load(arguments)
    report(f"loaded {arguments.model or 'spoken'} in {time.perf_counter() - started:.2f} s")
    if arguments.model is None:
        report(f"it knows {spoken.KNOWS}; for all speech, --model openai/whisper-tiny")
    failed = []
    for name, path in zip(arguments.files, paths, strict=True):
        try:
            # Reads all of the file.
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
    """Transcribe a file, and print the text or write it to `path`."""
    started = time.perf_counter()
    with Progress(transcription.duration_s, name, "s") as progress:
        for segment in transcription:
            if path is None and form == "txt" and (text := segment.text.strip()):
                progress.print(printable(text))
            progress.advance_to(transcription.position_s)
    seconds = time.perf_counter() - started
    if path is not None or form != "txt":
        _put(WRITERS[form](transcription.transcript()), path, form)
    speed = transcription.position_s / seconds if seconds else 0.0
    report(f"{name}: {transcription.position_s:.1f} s of sound in {seconds:.1f} s, {speed:.1f} times real time")
    if path is not None:
        report(f"wrote {path}")


def _put(text: str, path: str | None, form: str) -> None:
    """A whole transcript, to a file or stdout."""
    if path is not None:
        with atomic_write(path) as file:
            file.write(text.encode())
        return
    if form == "json":
        write_json(text)
    else:
        sys.stdout.write(text)
    sys.stdout.flush()  # what is reported next comes after it


def _load(arguments: argparse.Namespace) -> Whisper:
    dtype = DTYPES.get(arguments.dtype)
    if arguments.model is None:
        if arguments.tokenizer is not None:
            raise ArgumentError(
                "--tokenizer without --model", mend="pass both, or neither for the model of tallow's own"
            )
        return spoken.load(dtype, arguments.device)
    model = Whisper.from_pretrained(arguments.model, dtype, arguments.device)
    if arguments.tokenizer is not None:
        model.tokenizer = WhisperTokenizer.load(arguments.tokenizer, model.config.vocab_size)
    return model


def _output_paths(arguments: argparse.Namespace) -> list[str | None]:
    """Where each transcript goes; None for stdout.  Raises: ArgumentError where two would be one file"""
    folder = arguments.output_dir
    if folder is None:
        return [None] * len(arguments.files)
    names = [os.path.splitext(os.path.basename(name))[0] if name != STDIN else "stdin" for name in arguments.files]
    if len(set(names)) < len(names):
        raise ArgumentError(f"two files of one name for --output-dir {folder}", mend="transcribe them one by one")
    os.makedirs(folder, exist_ok=True)
    return [os.path.join(folder, f"{name}.{arguments.format}") for name in names]


def _sound(name: str) -> Sound:
    if name != STDIN:
        return Sound(name)
    return Sound(sys.stdin.buffer.read(), name="stdin")


def _options(arguments: argparse.Namespace) -> dict[str, Any]:
    """For `Transcription`."""
    temperature = arguments.temperature
    names = (
        *("task", "language", "initial_prompt", "carry_initial_prompt", "word_timestamps", "without_timestamps"),
        *("beam_size", "patience", "length_penalty", "best_of", "seed", "compression_ratio_threshold"),
        *("logprob_threshold", "no_speech_threshold", "hallucination_silence_threshold", "batch_size"),
    )
    return {name: getattr(arguments, name) for name in names} | {
        "temperature": (temperature, *(t for t in FALLBACKS if t > temperature)),
        # What the model that comes with tallow knows are commands, which tell nothing of each other.
        "condition_on_previous_text": arguments.model is not None and not arguments.no_context,
        "clip_timestamps": arguments.clip,
    }
