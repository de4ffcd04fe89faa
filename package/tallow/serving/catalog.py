"""The models that a server offers, by name."""

from __future__ import annotations

from dataclasses import dataclass, field
from threading import Semaphore

import numpy as np

from tallow.audio.mel import MelWindows
from tallow.audio.sound import SAMPLE_RATE_HZ
from tallow.models.built_in import glosses, spoken, stories
from tallow.serving.encoding import Embedder, Labeller, Rows, Weigher, embedder
from tallow.serving.engine import TextEngine
from tallow.serving.requests import TextRequest, Update
from tallow.serving.speaking import SpeakingWorker, Utterance
from tallow.serving.speech import SpeechRequest, SpeechWorker
from tallow.serving.tensors import TensorWorker
from tallow.serving.text_model import TextModel
from tallow.text.tokenizer import Tokenizer

STORIES, GLOSSES, SPOKEN = "stories", "glosses", "spoken"  # the names of the built-in models


@dataclass
class Catalog:
    """The engines of a server. The first of each kind answers requests that name no model."""

    texts: dict[str, TextEngine] = field(default_factory=dict)
    encoders: dict[str, Embedder] = field(default_factory=dict)
    labellers: dict[str, Labeller] = field(default_factory=dict)
    weighers: dict[str, Weigher] = field(default_factory=dict)
    listeners: dict[str, SpeechWorker] = field(default_factory=dict)
    speakers: dict[str, SpeakingWorker] = field(default_factory=dict)
    runners: dict[str, TensorWorker] = field(default_factory=dict)

    @property
    def engines(
        self,
    ) -> list[TextEngine | Embedder | Labeller | Weigher | SpeechWorker | SpeakingWorker | TensorWorker]:
        """All engines."""
        others = (self.row_workers, self.listeners, self.speakers, self.runners)
        return [*self.texts.values(), *(engine for kind in others for engine in kind.values())]

    @property
    def row_workers(self) -> dict[str, Embedder | Labeller | Weigher]:
        """The engines that compute arrays of texts."""
        return {**self.encoders, **self.labellers, **self.weighers}

    @property
    def tokenizers(self) -> dict[str, Tokenizer]:
        """The tokenizers of the package `tokenizers`: first those of the encoders."""
        words = {name: worker.encoder.tokenizer for name, worker in self.row_workers.items()}
        texts = {name: engine.served.words for name, engine in self.texts.items()}
        return words | {name: each for name, each in texts.items() if isinstance(each, Tokenizer)}

    @property
    def names(self) -> list[str]:
        """The names of all models."""
        return [*self.texts, *self.row_workers, *self.listeners, *self.speakers, *self.runners]

    @property
    def step_s(self) -> float:
        """The time for which an engine has computed one step, the longest of all."""
        return max((engine.line.step_s for engine in self.engines), default=0.0)

    def start(self) -> None:
        """Start the threads."""
        for engine in self.engines:
            engine.start()

    def warm_up(self) -> None:
        """Answer one short request with each model, so that the first client does not wait for what is done once:
        threads, buffers, and pages of the files.

        Raises:  as the engines
        """
        for engine in self.texts.values():
            for count in (1, 2, 4, 8):  # a GPU has a graph for each
                if count <= engine.slots:
                    _first_texts(engine, count)
        for worker in self.row_workers.values():
            worker.submit(Rows(worker.encoder.tokenize(["a"]))).result()
        for listener in self.listeners.values():
            silence = MelWindows([np.zeros(SAMPLE_RATE_HZ, np.float32)], listener.model.config.num_mel_bins)
            listener.submit(SpeechRequest(silence)).result()
        for speaker in self.speakers.values():
            speaker.submit(Utterance("a")).result()
        for runner in self.runners.values():
            runner.warm_up()

    def stop(self) -> None:
        """Stop the threads; requests in progress fail."""
        for engine in self.engines:
            engine.stop()


def _first_texts(engine: TextEngine, count: int) -> None:
    ended = Semaphore(0)

    def deliver(update: Update) -> None:
        if update.is_last:
            ended.release()

    engine.submit_all([(TextRequest(engine.served.encode("a"), 2), deliver)] * count)
    for _ in range(count):
        ended.acquire()


def built_in_texts() -> TextModel:
    """Return the built-in story teller."""
    model, words = stories.load()
    return TextModel(STORIES, model, words, template="named")


def built_in_encoder(queue: int = 128) -> Embedder:
    """Return the built-in sentence encoder.  Raises: MissingPackageError without the package `tokenizers`"""
    return embedder(GLOSSES, glosses.load(), queue)


def built_in_speech(queue: int = 32) -> SpeechWorker:
    """Return the built-in speech model, which knows a hundred words."""
    # It knows commands, which do not depend on each other.
    return SpeechWorker(SPOKEN, spoken.load(), queue=queue, context=False)
