"""The Python behind app.js: speech to text. web/worker/bridge.py documents the methods of `Demo`.

The page decodes files and the microphone to samples, which are stored here as 16-bit integers: an hour takes 115 MB.
The model transcribes one window after the other. The page requests one segment at a time, and gets events with the
progress meanwhile.
"""

from __future__ import annotations

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
from tallow.io.model_folder import LoadFolder, memory_folder, refuse_mistaken
from tallow.io.source import Opened
from tallow.models import spoken
from tallow.models.config import CONFIG
from tallow.models.whisper import Segment, Transcription, Whisper, WhisperConfig
from tallow.models.whisper.model import GENERATION
from tallow.models.whisper.writers import WRITERS
from tallow.text.languages import LANGUAGES
from tallow.text.whisper import VOCABULARIES, WhisperTokenizer

WEIGHTS = (".safetensors", ".pt", ".bin")
SINGLE = WEIGHTS[1:]  # formats that may contain a complete model
# The largest vocabularies in use have about 4 MB. A file larger than this was chosen by mistake and is not read.
MAX_TEXT_BYTES = 64 << 20
HEADER_AT = 8  # in a safetensors file, after the header's length
SCALE = np.float32(1 / 32768)
RATE = FRAMES_PER_SECOND * HOP
# The most tokens of a live text: for timestamps, and for each second of speech. Quick English has about 5 a second.
LIVE_TOKENS, LIVE_TOKENS_PER_S = 8, 12
# OpenAI's whisper treats a text as wrong if its mean log-probability is lower, or its compression ratio higher.
LIMITS = {"logprob": -1.0, "ratio": 2.4, "silence": 0.6}
DIRECTORY = "a model's files are on its Hub page, under Files and versions"

Emit = Callable[[dict[str, Any]], None]


class NothingLoaded(TallowError, RuntimeError):
    """A transcription was requested before a model or a sound was loaded."""


class Demo:
    """A model, a sound, and its transcription."""

    def __init__(self) -> None:
        self._model: Whisper | None = None
        self._progress: Progress | None = None
        self._samples: list[npt.NDArray[np.int16]] = []
        self._run: Transcription | None = None
        self._segments: Iterator[Segment] = iter(())
        self._limits = LIMITS
        self._live_frames: int | None = None  # of the samples that `live` hears, during that call

    # ---------------------------------------------------------------------------------------------------------- models

    def list_files(self, *, config: str | None = None) -> dict[str, list[str]]:
        """Return the names of a model's files, and of its folders with weights.

        Args:
            config: the text of its `config.json`, None if missing.

        Raises:
            CheckpointError: the model is not a Whisper model; raised before its weights are read.
        """
        if config is None:
            raise CheckpointError("config.json not found", hint=f"choose a model's whole folder; {DIRECTORY}")
        with memory_folder({CONFIG: config.encode()}):
            WhisperConfig.from_json(CONFIG)
        return {"required": [CONFIG], "optional": [*VOCABULARIES, GENERATION], "weights": [""]}

    def check(self, name: str, head: bytes, size: int | None) -> int | None:
        refuse_mistaken(name, head, "a file of a Whisper model")
        if name.endswith(".safetensors"):
            if head[HEADER_AT : HEADER_AT + 1] != b"{":
                raise CheckpointError(f"{name} is not a safetensors file", hint=DIRECTORY)
        elif name.endswith(SINGLE):
            if head.lstrip()[:1] in (b"<", b"{"):
                raise CheckpointError(f"{name} is a text file, not a model", hint=DIRECTORY)
        elif size is not None and size > MAX_TEXT_BYTES:
            raise CheckpointError(f"{name} is too large: {size} bytes", hint=DIRECTORY)
        elif name.endswith(".json") and head.lstrip()[:1] != b"{":
            raise CheckpointError(f"{name} is not JSON", hint=DIRECTORY)
        return None

    def load(self, files: dict[str, npt.NDArray[np.uint8]]) -> dict[str, Any]:
        """Load a model from its files, or the packaged model if there are none. Tensors view the weights in place."""
        if files:
            with memory_folder(files) as weights:
                model = _assemble(files, weights)
        else:
            model = spoken.load()
        self._model, self._progress = model, Progress(model, self._frames_left)
        self._end()
        config, tokenizer, kernel = model.config, model.tokenizer, kernels.info()
        return {
            "parameters": model.num_parameters(),
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
        """Delete the samples and the transcription."""
        self._samples.clear()
        self._end()

    def add(self, *, samples: memoryview) -> None:
        """Append a part of the sound: 16-bit integers, 16 kHz, one channel."""
        self._samples.append(np.asarray(samples, np.int16))

    # ------------------------------------------------------------------------------------------------------------ text

    def begin(self, *, language: str, task: str, timestamps: str, emit: Emit) -> dict[str, Any]:
        """Start a transcription: compute the spectrogram, and detect the language if `language` is ""."""
        if self._model is None or self._progress is None:
            raise NothingLoaded("there is no model yet", hint="choose one first")
        self._end()
        is_packaged = self._model.folder == spoken.FOLDER
        self._limits = LIMITS | ({"logprob": spoken.LOGPROB_THRESHOLD} if is_packaged else {})
        total = sum(map(len, self._samples))
        if not total:
            raise AudioError("there is no sound yet", hint="record some, choose a file or use a sample")
        started = time.perf_counter()
        self._progress.reset()
        with self._progress.reporting_to(self._with_position(emit)):
            self._run = Transcription(
                self._model,
                _Blocks(self._samples, lambda done: emit({"stage": "spectrogram", "share": done / total})),
                language=language or None,
                task=task,
                without_timestamps=timestamps == "none",
                word_timestamps=timestamps == "words",
                condition_on_previous_text=not is_packaged,  # the packaged model was trained on single phrases
            )
        self._segments = iter(self._run)
        self._seconds = time.perf_counter() - started
        return {
            "language": LANGUAGES[self._run.language].title(),
            "duration_s": self._run.duration_s,
            "limits": self._limits,
        }

    def live(self, *, samples: memoryview, language: str, task: str) -> dict[str, Any]:
        """Return the text of a part of a recording, at most one window. The sound and its transcription do not change.

        Args:
            samples: as in `add`.
            language: its code; detected if it is "".
        """
        if self._model is None:
            raise NothingLoaded("there is no model yet", hint="choose one first")
        part = np.asarray(samples, np.int16) * SCALE
        most = self._model.config.max_target_positions // 2
        self._live_frames = len(part) // HOP
        try:
            run = Transcription(
                self._model,
                part,
                language=language or None,
                task=task,
                temperature=0.0,  # once: the next part comes in two seconds
                condition_on_previous_text=False,
                # A model that repeats itself would delay the next part.
                sample_len=min(LIVE_TOKENS + round(LIVE_TOKENS_PER_S * len(part) / RATE), most),
            )
            segments = [{"end": segment.end, "text": segment.text} for segment in run]
        finally:
            self._live_frames = None
        return {"language": run.language, "segments": segments}

    def advance(self, *, emit: Emit) -> dict[str, Any]:
        """Return the next segment, None at the end, with the counts so far."""
        run, progress = self._running()
        started = time.perf_counter()
        with progress.reporting_to(self._with_position(emit)):
            segment = next(self._segments, None)
        self._seconds += time.perf_counter() - started
        stats = {"position_s": run.position_s, "duration_s": run.duration_s, "seconds": self._seconds}
        return {"segment": segment and self._segment_fields(segment), "stats": stats | progress.counts}

    def keep(self, *, count: int) -> None:
        """End the transcription with its first `count` segments, which are those that the stopped page shows."""
        self._segments = iter(())
        if self._run is not None:
            del self._run.segments[count:]

    def spectrogram(self, *, start_s: float) -> dict[str, Any]:
        """Return the spectrogram of the model's window that starts at `start_s`, cut at the end of the sound."""
        run, _ = self._running()
        start = max(0, min(round(FRAMES_PER_SECOND * start_s), run.mel.frames - 1))
        frames = max(1, min(2 * run.model.config.max_source_positions, run.mel.frames - start))
        return {"start_s": start / FRAMES_PER_SECOND} | pixels(run.mel.window(start, frames))

    def write(self, *, kind: str) -> str:
        """Return the text so far as a file of this kind, see WRITERS."""
        return WRITERS[kind](self._running()[0].transcript())

    def _with_position(self, emit: Emit) -> Emit:
        """Add the current position to each event."""
        return lambda message: emit(message | {"position_s": self._run.position_s if self._run else 0.0})

    def _frames_left(self) -> int:
        """Return the number of frames from the current position to the end of the sound; the model pads after them."""
        if self._live_frames is not None:
            return max(1, self._live_frames)
        done = round(FRAMES_PER_SECOND * self._run.position_s) if self._run else 0
        return max(1, sum(map(len, self._samples)) // HOP - done)

    def _segment_fields(self, segment: Segment) -> dict[str, Any]:
        words = [[word.word, word.start, word.end] for word in segment.words or ()]
        times = {"start": segment.start, "end": segment.end}
        measures = {
            "logprob": segment.avg_logprob,
            "ratio": segment.compression_ratio,
            "silence": segment.no_speech_prob,
        }
        return (
            {"id": segment.id, "text": segment.text, "words": words}
            | times
            | measures
            | {"doubts": self._doubts(measures)}
        )

    def _doubts(self, measures: dict[str, float]) -> list[str]:
        """Return why a text may be wrong, see doubts.js."""
        limits = self._limits
        found = {
            "unlikely": measures["logprob"] < limits["logprob"],
            "repetitive": measures["ratio"] > limits["ratio"],
            "silent": measures["silence"] > limits["silence"],
        }
        return [name for name, holds in found.items() if holds]

    def _running(self) -> tuple[Transcription, Progress]:
        if self._run is None or self._progress is None:
            raise NothingLoaded("there is no text yet", hint="press Transcribe first")
        return self._run, self._progress

    def _end(self) -> None:
        self._run, self._segments = None, iter(())


class _Blocks:
    """The samples as float32, part by part; can be iterated repeatedly."""

    def __init__(self, samples: list[npt.NDArray[np.int16]], report: Callable[[int], None]) -> None:
        self._samples = list(samples)
        self._report: Callable[[int], None] | None = report

    def __iter__(self) -> Iterator[npt.NDArray[np.float32]]:
        report, self._report = self._report, None  # only the first iteration reports
        done = 0
        for part in self._samples:
            yield part * SCALE
            done += len(part)
            if report:
                report(done)


def _assemble(files: dict[str, npt.NDArray[np.uint8]], weights: LoadFolder) -> Whisper:
    """Build a model from a folder's files or a single file. In the working folder, files of weights are empty."""
    if CONFIG in files:
        model = Whisper.assemble(WhisperConfig.from_json(CONFIG), weights(""), tl.float32, source="the model's folder")
    else:
        (source,) = (name for name in files if name.endswith(SINGLE))
        model = Whisper.from_single_file(Opened(files[source], source)).float()
    if "tokenizer" not in vars(model):
        model.tokenizer = _tokenizer(model.config)
    model.folder = Path()
    model.alignment_heads  # noqa: B018  read now, because the folder is temporary
    return model


def _tokenizer(config: WhisperConfig) -> WhisperTokenizer:
    if not any(Path(name).is_file() for name in VOCABULARIES):
        raise CheckpointError(
            f"the model has no tokenizer: none of {', '.join(VOCABULARIES)} was found",
            hint="choose one together with the model",
        )
    return WhisperTokenizer.from_pretrained(Path(), config.vocab_size)
