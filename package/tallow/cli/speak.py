"""`tallow speak`: speak a text into a WAV file.

Speaks the TEXT, or that of stdin, sentence by sentence with a VITS, such as the voices of MMS:

  tallow speak "Hello there." --model facebook/mms-tts-eng --save hello.wav
  tallow speak --model facebook/mms-tts-deu --save rede.wav < rede.txt
"""

from __future__ import annotations

import argparse
import sys
import time

from tallow.audio.wav import write_wav
from tallow.cli.device import add_device_option
from tallow.cli.language_model import number
from tallow.cli.progress import Progress
from tallow.cli.terminal import report
from tallow.errors import ArgumentError
from tallow.random import manual_seed
from tallow.transformers.speaking import Speaker

MOST_CHARACTERS = 1_000_000  # of a text
positive = number(float, "above 0", lambda n: 0 < n < float("inf"))
noise = number(float, "0 or more", lambda n: 0 <= n < float("inf"))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `tallow speak`."""
    parser.add_argument("text", nargs="?", metavar="TEXT", help="what to say (default: read from stdin)")
    parser.add_argument(
        "-m",
        "--model",
        required=True,
        metavar="DIR",
        help="a VITS: its folder, or owner/repository on the Hugging Face Hub",
    )
    parser.add_argument("--save", required=True, metavar="FILE", help="the WAV file to write")
    parser.add_argument("--voice", type=int, metavar="N", help="the number of the voice, of a model with several")
    parser.add_argument("--speed", type=positive, default=1.0, metavar="X", help="how fast (default: %(default)s)")
    parser.add_argument(
        "--noise", type=noise, metavar="X", help="factor of how much sounds and durations vary; 0 for not at all"
    )
    parser.add_argument("--seed", type=int, metavar="N", help="random seed (default: random)")
    add_device_option(parser)


def run(arguments: argparse.Namespace) -> int:
    """Speak the text.

    Returns:  0
    Raises:  TallowError, OSError for invalid input
    """
    text = sys.stdin.read(MOST_CHARACTERS + 1) if arguments.text is None else arguments.text
    if len(text) > MOST_CHARACTERS:
        raise ArgumentError(f"a text of more than {MOST_CHARACTERS} characters", hint="speak it in parts")
    if arguments.seed is not None:
        manual_seed(arguments.seed)
    speaker = Speaker.from_pretrained(arguments.model, device=arguments.device)
    if arguments.noise is not None:
        speaker.model.noise_scale *= arguments.noise
        speaker.model.noise_scale_duration *= arguments.noise
    started = time.perf_counter()
    sentences = speaker.sentences(text)
    parts = []
    with Progress(len(sentences), "speaking", "sentences") as progress:
        for part in speaker.speak(sentences, arguments.voice, arguments.speed):
            parts.append(part)
            progress.advance(1)
    sound = speaker.joined(parts)
    write_wav(arguments.save, sound, speaker.sampling_rate)
    seconds = len(sound) / speaker.sampling_rate
    report(f"{arguments.save}: {seconds:.2f} s of sound in {time.perf_counter() - started:.2f} s")
    return 0
