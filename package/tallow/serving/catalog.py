"""The models that a server offers, by name."""

from __future__ import annotations

from dataclasses import dataclass, field

from tallow.models import glosses, spoken, stories
from tallow.serving.embedding import EmbeddingWorker
from tallow.serving.engine import TextEngine
from tallow.serving.speech import SpeechWorker
from tallow.serving.text_model import TextModel

STORIES, GLOSSES, SPOKEN = "stories", "glosses", "spoken"  # the names of the built-in models


@dataclass
class Catalog:
    """The engines of a server. The first of each kind answers requests that name no model."""

    texts: dict[str, TextEngine] = field(default_factory=dict)
    encoders: dict[str, EmbeddingWorker] = field(default_factory=dict)
    listeners: dict[str, SpeechWorker] = field(default_factory=dict)

    @property
    def engines(self) -> list[TextEngine | EmbeddingWorker | SpeechWorker]:
        """All engines."""
        return [*self.texts.values(), *self.encoders.values(), *self.listeners.values()]

    @property
    def names(self) -> list[str]:
        """The names of all models."""
        return [*self.texts, *self.encoders, *self.listeners]

    def start(self) -> None:
        """Start the threads."""
        for engine in self.engines:
            engine.start()

    def stop(self) -> None:
        """Stop the threads; requests in progress fail."""
        for engine in self.engines:
            engine.stop()


def built_in_texts() -> TextModel:
    """Return the built-in story teller."""
    model, words = stories.load()
    return TextModel(STORIES, model, words, template="plain")


def built_in_encoder(queue: int = 128) -> EmbeddingWorker:
    """Return the built-in sentence encoder.  Raises: MissingPackageError without the package `tokenizers`"""
    return EmbeddingWorker(GLOSSES, glosses.load(), queue=queue)


def built_in_speech(queue: int = 32) -> SpeechWorker:
    """Return the built-in speech model, which knows a hundred words."""
    # It knows commands, which do not depend on each other.
    return SpeechWorker(SPOKEN, spoken.load(), queue=queue, context=False)
