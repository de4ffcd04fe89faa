#!/usr/bin/env python3
"""Generate the samples of the page wasm_examples/whisper with espeak-ng and sox, as listed in samples/samples.json.

The licence of espeak-ng does not cover its output, which may be used freely. The built-in model was not trained on
these voices.

scripts/make_speech_samples.py
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[1] / "wasm_examples" / "whisper" / "samples"
SPEED = "150"  # words per minute
PAUSE_S = 0.6  # before, between and after the phrases
RATE_HZ = 22050  # espeak-ng's


def main() -> None:
    for sample in json.loads((FOLDER / "samples.json").read_text(encoding="utf-8")):
        pause = bytes(2 * round(PAUSE_S * RATE_HZ))
        spoken = [_say(phrase, sample["voice"]) for phrase in sample["phrases"]]
        raw = ["sox", "-D", "-t", "raw", "-r", str(RATE_HZ), "-e", "signed", "-b", "16", "-c", "1", "-", "-b", "16"]
        command = [*raw, FOLDER / sample["file"], "rate", "16000"]
        subprocess.run(command, input=pause + pause.join(spoken) + pause, check=True)


def _say(phrase: str, voice: str) -> bytes:
    """Return the samples of a phrase, without the header of the WAV file."""
    command = ["espeak-ng", "-v", voice, "-s", SPEED, "--stdout", phrase]
    return subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout[44:]


if __name__ == "__main__":
    main()
