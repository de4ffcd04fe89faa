"""The Python behind index.js: models by number, and runs that work with them step by step.

web/worker/bridge.py documents the methods of `Demo` that the worker calls; index.js calls the others.
"""

from __future__ import annotations

import contextlib
import io
import itertools
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from bridge import describe
from pyodide.code import eval_code_async

import tallow as tl
from tallow.errors import ArgumentError, AudioError, CheckpointError
from tallow.generation import Sampler, generate
from tallow.io import gguf
from tallow.io.model_folder import memory_folder
from tallow.io.source import Opened
from tallow.models import SentenceEncoder
from tallow.models.built_in import spoken, stories
from tallow.models.causal_lm import CausalLM
from tallow.models.config import CONFIG
from tallow.models.encoders.sentence_folder import files_of
from tallow.models.whisper import Transcription, Whisper, WhisperConfig
from tallow.models.whisper.model import GENERATION
from tallow.text.whisper import VOCABULARIES, WhisperTokenizer

# The kinds of models, in the names of their files: "text/model.gguf", "vectors/config.json".
TEXT, SPEECH, VECTORS = "text", "speech", "vectors"
TYPED = ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8")
FILENAME = "<python>"  # of code from the page, in tracebacks
Files = dict[str, npt.NDArray[np.uint8]]


class Run(Protocol):
    """Work in steps, between which the page can stop it."""

    def steps(self) -> Iterator[str]:
        """Do the work; yield the new text of each step."""

    def result(self) -> Any:
        """Return the result of all steps."""


class Demo:
    """Models and runs, by number."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self._models: dict[int, Any] = {}
        self._runs: dict[int, Run] = {}
        self._globals: dict[str, Any] = {"__name__": "__main__"}

    # ---------------------------------------------------------------------------------------------------------- models

    def file_names(self, *, kind: str, config: str | None = None, modules: str | None = None) -> dict[str, Any]:
        """Return the names of a model's files, and of its folders with weights.

        Args:
            config, modules: the text of its `config.json` and `modules.json`, None if missing.
        """
        if config is None and modules is None:
            raise CheckpointError("config.json not found", hint="write the name of a model on the Hub, or its folder")
        if kind == SPEECH:
            return {"required": [CONFIG], "optional": [*VOCABULARIES, GENERATION], "weights": [""]}
        return files_of(None if modules is None else modules.encode())._asdict()

    def check(self, name: str, head: bytes, size: int | None) -> int | None:
        if name.startswith(f"{TEXT}/") and not head.startswith(gguf.MAGIC):
            raise CheckpointError(
                f"the file is not a GGUF file: it starts with {head[:4]!r}", hint="pass the address of a .gguf file"
            )
        return None

    def load(self, files: Files) -> dict[str, Any]:
        """Load a model from its files. Tensors view the weights in place."""
        (kind,) = {name.partition("/")[0] for name in files}
        return self._keep(LOADERS[kind]({name.partition("/")[2]: data for name, data in files.items()}))

    def load_packaged(self, *, kind: str) -> dict[str, Any]:
        """Load a model of the package."""
        return self._keep(stories.load()[0] if kind == TEXT else spoken.load())

    def drop(self, *, model: int) -> None:
        """Free a model."""
        self._models.pop(model, None)

    def _keep(self, model: Any) -> dict[str, Any]:
        number = next(self._numbers)
        self._models[number] = model
        return {"model": number, "parameters": _module(model).num_parameters()}

    # ------------------------------------------------------------------------------------------------------------ runs

    def begin(self, *, kind: str, model: int, **options: Any) -> int:
        """Start a run of a model; return its number."""
        if model not in self._models:
            raise ArgumentError("the model was closed", hint="load it again")
        number = next(self._numbers)
        self._runs[number] = RUNS[kind](self._models[model], **options)
        return number

    def generate(self, *, run: int) -> Generator[tuple[str, dict[str, float]]]:
        for text in self._runs[run].steps():
            yield text, {}

    def result(self, *, run: int) -> Any:
        return self._runs[run].result()

    def end(self, *, run: int) -> None:
        """Free a run."""
        self._runs.pop(run, None)

    # ------------------------------------------------------------------------------------------------------- pipelines

    async def open_pipeline(
        self,
        *,
        task: str,
        model: str | None = None,
        dtype: str | None = None,
        revision: str | None = None,
        emit: Callable[[Any], None] | None = None,
    ) -> int:
        """Return the number of a new pipeline. `emit` receives the progress of downloads."""
        import pipelines  # late: few pages need it

        if "image" in task:
            await pipelines.load_pillow()
        number = next(self._numbers)
        self._models[number] = pipelines.opened(task, model, dtype, revision, emit)
        return number

    def run_pipeline(
        self,
        *,
        number: int,
        options: dict[str, Any],
        streams: dict[str, bool] | None = None,
        emit: Callable[[Any], None] | None = None,
    ) -> Any:
        """Return the results of a pipeline. `emit` receives generated text."""
        import pipelines

        if number not in self._models:
            raise ArgumentError("the pipeline was disposed of", hint="make another")
        return plain(pipelines.computed(self._models[number], options, streams, emit))

    # ------------------------------------------------------------------------------------------------------------ code

    async def python(
        self, *, code: str, variables: dict[str, Any], emit: Callable[[str], None] | None = None
    ) -> dict[str, Any]:
        """Run code; return the value of its last expression, or what it raised. `emit` receives what it prints."""
        self._globals.update(variables)
        try:
            with contextlib.redirect_stdout(Output(emit)) if emit else contextlib.nullcontext():
                return {"value": plain(await eval_code_async(code, self._globals, filename=FILENAME))}
        except BaseException as error:  # the page gets everything that code raises, SystemExit included
            return {"fault": describe(error, unexpected=None)}


class Output(io.TextIOBase):
    """A stream that passes text on."""

    def __init__(self, emit: Callable[[str], None]) -> None:
        self._emit = emit

    def write(self, text: str) -> int:
        self._emit(text)
        return len(text)


def plain(value: Any) -> Any:
    """Convert a value to what JavaScript can have: tensors to arrays, and objects of other classes to their repr."""
    if value is None or isinstance(value, bool | int | float | str | bytes):
        return value
    if isinstance(value, tl.Tensor):
        value = value.detach().cpu().numpy()
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        # JavaScript has typed arrays of integers and of floats of 32 and 64 bits.
        is_typed = value.ndim and value.dtype.isnative and value.dtype.kind + str(value.itemsize) in TYPED
        return np.ascontiguousarray(value) if is_typed else value.tolist()
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in value]
    return repr(value)


def _language_model(files: Files) -> CausalLM:
    """Return the model of a GGUF file, with its tokenizer. Quantised matrices are views of the file."""
    from tallow.models.gguf import models as gguf_models  # not at the top: Python starts without it

    ((name, data),) = files.items()
    return gguf_models.language_model(gguf.load(Opened(data, name)))


def _encoder(files: Files) -> SentenceEncoder:
    with memory_folder(files) as weights:
        return SentenceEncoder.assemble(Path(), weights, dtype=tl.float32)


def _whisper(files: Files) -> Whisper:
    with memory_folder(files) as weights:
        config = WhisperConfig.from_json(CONFIG)
        model = Whisper.assemble(config, weights(""), tl.float32, source="the model's folder")
        model.tokenizer = WhisperTokenizer.from_pretrained(Path(), config.vocab_size)
        return model


def _module(model: Any) -> Any:
    return model.model if isinstance(model, SentenceEncoder) else model


class Text:
    """A text that continues a prompt."""

    def __init__(self, model: CausalLM, *, prompt: str, max_tokens: int = 256, **sampling: Any) -> None:
        ids = model.tokenizer.encode_prompt(prompt)
        sample = Sampler(**{"temperature": 0.8, "top_p": 0.95} | sampling)
        tokens = generate(model, ids, max_tokens=max_tokens, sample=sample, stop_ids=model.stop_ids)
        self._pieces = model.tokenizer.decode_stream(tokens, previous=ids)

    def steps(self) -> Iterator[str]:
        return self._pieces

    def result(self) -> None:
        return None


class Transcript:
    """The text of a sound."""

    def __init__(self, model: Whisper, *, samples: memoryview, **options: Any) -> None:
        if not len(samples):
            raise AudioError("the sound is empty", hint="pass a sound of at least a tenth of a second")
        is_packaged = model.folder == spoken.FOLDER  # it was trained on single phrases
        sound = np.asarray(samples, np.int16) * np.float32(1 / 32768)
        self._run = Transcription(model, sound, condition_on_previous_text=not is_packaged, **options)

    def steps(self) -> Iterator[str]:
        for segment in self._run:
            yield segment.text

    def result(self) -> dict[str, Any]:
        transcript = self._run.transcript()
        segments = [{"start": each.start, "end": each.end, "text": each.text.strip()} for each in transcript.segments]
        return {"text": transcript.text.strip(), "language": transcript.language, "segments": segments}


class Vectors:
    """The vectors of texts, of length 1."""

    def __init__(self, model: SentenceEncoder, *, texts: list[str]) -> None:
        self._model, self._texts = model, texts
        self._vectors: list[npt.NDArray[np.float32]] = []

    def steps(self) -> Iterator[str]:
        for text in self._texts:
            self._vectors.append(self._model.encode(text, normalize=True))
            yield ""

    def result(self) -> list[npt.NDArray[np.float32]]:
        return self._vectors


LOADERS: dict[str, Callable[[Files], Any]] = {TEXT: _language_model, SPEECH: _whisper, VECTORS: _encoder}
RUNS: dict[str, Callable[..., Run]] = {TEXT: Text, SPEECH: Transcript, VECTORS: Vectors}
