"""Speech to text: the Python behind app.js. web/bridge.py says what is asked of `Demo`.

The page decodes files and the microphone to samples, which are kept here as 16-bit integers: an hour of them takes
115 MB. Segments are decided one window after the other; the page asks for one at a time, and while it waits is told how
far the model is.
"""

from __future__ import annotations

import contextlib
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from progress import Progress, pixels

import tallow as tl
from tallow import kernels
from tallow.audio.mel import FRAMES_PER_SECOND, HOP
from tallow.errors import AudioError, CheckpointError, TallowError
from tallow.io.model_folder import load_folder, load_weights
from tallow.io.source import Opened
from tallow.models import spoken
from tallow.models.config import CONFIG
from tallow.models.whisper import Segment, Transcription, Whisper, WhisperConfig, checkpoint
from tallow.models.whisper.model import GENERATION
from tallow.models.whisper.writers import WRITERS
from tallow.text.languages import LANGUAGES
from tallow.text.whisper import VOCABULARIES, WhisperTokenizer

WEIGHTS = (".safetensors", ".pt", ".bin")
SINGLE = WEIGHTS[1:]  # which may hold a whole model
# The largest vocabularies in use take some 4 MB: room for any, yet no file chosen by mistake is read to its end.
MAX_TEXT_BYTES = 64 << 20
HEADER_AT = 8  # in a safetensors file, after the header's length
SCALE = np.float32(1 / 32768)
UNLIKELY = -1.0  # the mean log-probability below which OpenAI takes a text for wrong
DIRECTORY = "the files of a model lie on its page of the Hub, under Files and versions"

Emit = Callable[[dict[str, Any]], None]


class NothingLoaded(TallowError, RuntimeError):
    """A text was asked for before there was a model, or a sound."""


class Demo:
    """A model, a sound, and the transcription of it that goes on."""

    def __init__(self) -> None:
        self._model: Whisper | None = None
        self._progress: Progress | None = None
        self._samples: list[npt.NDArray[np.int16]] = []
        self._run: Transcription | None = None
        self._segments: Iterator[Segment] = iter(())
        self._threshold = UNLIKELY

    # ---------------------------------------------------------------------------------------------------------- models

    def wanted(self, *, config: str | None = None) -> dict[str, list[str]]:
        """The names of the files of a model, and of its folders with weights, given what its `config.json` says; None
        without one.

        Raises:  CheckpointError for a model that is no Whisper, before its weights are read
        """
        if config is None:
            raise CheckpointError("there is no config.json", mend=f"choose a model's whole folder; {DIRECTORY}")
        with _temporary_folder():
            Path(CONFIG).write_text(config, encoding="utf-8")
            WhisperConfig.from_json(CONFIG)
        return {"required": [CONFIG], "optional": [*VOCABULARIES, GENERATION], "weights": [""]}

    def check(self, name: str, head: bytes, size: int | None) -> int | None:
        if name.endswith(".safetensors"):
            if head[HEADER_AT : HEADER_AT + 1] != b"{":
                raise CheckpointError(f"{name} is no safetensors file", mend=DIRECTORY)
        elif name.endswith(SINGLE):
            if head.lstrip()[:1] in (b"<", b"{"):
                raise CheckpointError(f"{name} is a text, not a model", mend=DIRECTORY)
        elif size is not None and size > MAX_TEXT_BYTES:
            raise CheckpointError(f"{name}: {size} bytes are too many for it", mend=DIRECTORY)
        elif name.endswith(".json") and head.lstrip()[:1] != b"{":
            raise CheckpointError(f"{name} is not JSON", mend=DIRECTORY)
        return None

    def load(self, files: dict[str, npt.NDArray[np.uint8]]) -> dict[str, Any]:
        """Take the model of these files, or without any the one that comes with tallow. Weights stay where they are."""
        if files:
            with _temporary_folder():
                for name, data in files.items():
                    Path(name).write_bytes(b"" if name.endswith(WEIGHTS) else data)
                model = _assemble(files)
        else:
            model = spoken.load()
        self._model, self._progress = model, Progress(model, self._frames_left)
        self._end()
        config, tokenizer, kernel = model.config, model.tokenizer, kernels.info()
        return {
            "parameters": sum(parameter.numel() for parameter in model.parameters()),
            "layers": [config.encoder_layers, config.decoder_layers],
            "width": config.d_model,
            "window_s": 2 * config.max_source_positions / 100,
            "languages": {code: LANGUAGES[code].title() for code in tokenizer.languages}
            if tokenizer.is_multilingual
            else {},
            "kernels": kernel.library if kernel.kernels else str(kernel),
        }

    # ---------------------------------------------------------------------------------------------------------- sounds

    def clear(self) -> None:
        """Forget the sound."""
        self._samples.clear()
        self._end()

    def add(self, *, samples: memoryview) -> None:
        """The next part of the sound: 16-bit integers, 16 kHz, one channel."""
        self._samples.append(np.asarray(samples, np.int16))

    # ------------------------------------------------------------------------------------------------------------ text

    def begin(self, *, language: str, task: str, timestamps: str, emit: Emit) -> dict[str, Any]:
        """Look over the sound, and find out which language is spoken where `language` is ""."""
        if self._model is None or self._progress is None:
            raise NothingLoaded("there is no model yet", mend="choose one first")
        self._end()
        own = self._model.folder == spoken.FOLDER
        self._threshold = spoken.LOGPROB_THRESHOLD if own else UNLIKELY
        total = sum(map(len, self._samples))
        if not total:
            raise AudioError("there is no sound yet", mend="record some, choose a file or take a sample")
        started = time.perf_counter()
        with self._progress.to(self._placed(emit), anew=True):
            self._run = Transcription(
                self._model,
                _Blocks(self._samples, lambda done: emit({"stage": "look", "share": done / total})),
                language=language or None,
                task=task,
                without_timestamps=timestamps == "none",
                word_timestamps=timestamps == "words",
                condition_on_previous_text=not own,  # its phrases are alone
            )
        self._segments = iter(self._run)
        self._seconds = time.perf_counter() - started
        return {"language": LANGUAGES[self._run.language].title(), "duration_s": self._run.duration_s}

    def advance(self, *, emit: Emit) -> dict[str, Any]:
        """Go on to the next segment; what has been counted so far, and the segment, or None at the end."""
        run, progress = self._running()
        started = time.perf_counter()
        with progress.to(self._placed(emit)):
            segment = next(self._segments, None)
        self._seconds += time.perf_counter() - started
        stats = {"position_s": run.position_s, "duration_s": run.duration_s, "seconds": self._seconds}
        return {"segment": segment and self._plain(segment), "stats": stats | progress.counted}

    def keep(self, *, count: int) -> None:
        """End the transcription, and keep its first `count` segments: the page has stopped, and shows those."""
        self._segments = iter(())
        if self._run is not None:
            del self._run.segments[count:]

    def spectrogram(self, *, start_s: float) -> dict[str, Any]:
        """What the model hears from there on, as pixels, up to the end of the sound."""
        run, _ = self._running()
        start = max(0, min(round(FRAMES_PER_SECOND * start_s), run.mel.frames - 1))
        frames = max(1, min(2 * run.model.config.max_source_positions, run.mel.frames - start))
        return {"start_s": start / FRAMES_PER_SECOND} | pixels(run.mel.window(start, frames))

    def write(self, *, kind: str) -> str:
        """What has been heard so far, as a file of this kind."""
        return WRITERS[kind](self._running()[0].transcript())

    def _placed(self, emit: Emit) -> Emit:
        """Tells how much has been heard, too."""
        return lambda message: emit(message | {"position_s": self._run.position_s if self._run else 0.0})

    def _frames_left(self) -> int:
        """How many frames the sound has from what is being heard on; what the model hears behind them is padding."""
        heard = round(FRAMES_PER_SECOND * self._run.position_s) if self._run else 0
        return max(1, sum(map(len, self._samples)) // HOP - heard)

    def _plain(self, segment: Segment) -> dict[str, Any]:
        words = [[word.word, word.start, word.end] for word in segment.words or ()]
        times = {"start": segment.start, "end": segment.end}
        logprob = segment.avg_logprob
        unsure = logprob < self._threshold
        return {"id": segment.id, "text": segment.text, "words": words, "logprob": logprob, "unsure": unsure} | times

    def _running(self) -> tuple[Transcription, Progress]:
        if self._run is None or self._progress is None:
            raise NothingLoaded("there is no text yet", mend="press Transcribe first")
        return self._run, self._progress

    def _end(self) -> None:
        self._run, self._segments = None, iter(())


class _Blocks:
    """Samples as the model reads them, part by part, as often as it asks."""

    def __init__(self, samples: list[npt.NDArray[np.int16]], report: Callable[[int], None]) -> None:
        self._samples = list(samples)
        self._report: Callable[[int], None] | None = report

    def __iter__(self) -> Iterator[npt.NDArray[np.float32]]:
        report, self._report = self._report, None  # the first time only
        done = 0
        for part in self._samples:
            yield part * SCALE
            done += len(part)
            if report:
                report(done)


def _assemble(files: dict[str, npt.NDArray[np.uint8]]) -> Whisper:
    """The model of a folder's files, or of one file that holds it; in the working folder those of weights are empty."""
    tokenizer, source = None, "the model's folder"
    if CONFIG in files:
        config = WhisperConfig.from_json(CONFIG)
        state = load_folder("", lambda name: load_weights(Opened(files[name], name)))
    else:
        (source,) = (name for name in files if name.endswith(SINGLE))
        entries, state, tokenizer = checkpoint.load(Opened(files[source], source))
        config = WhisperConfig.from_entries(entries, source)
    model = Whisper.assemble(config, state, tl.float32, source=source)
    model.tokenizer = tokenizer or _tokenizer(config)
    model.folder = Path()
    model.alignment_heads  # noqa: B018  is read now: the folder does not last
    return model


def _tokenizer(config: WhisperConfig) -> WhisperTokenizer:
    if not any(Path(name).is_file() for name in VOCABULARIES):
        raise CheckpointError(
            f"the model comes without a tokenizer: none of {', '.join(VOCABULARIES)} is there",
            mend="choose one together with the model",
        )
    return WhisperTokenizer.from_pretrained(Path(), config.vocab_size)


@contextlib.contextmanager
def _temporary_folder() -> Iterator[None]:
    """The working folder, for a while; so errors name files as the page does."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        yield
