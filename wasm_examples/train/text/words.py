"""The Python behind the text tab: a language model learns a text. app.py imports it when the tab is opened first."""

from __future__ import annotations

import io
import itertools
import json
import tempfile
import time
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from recipes import character_llama, story_llama, training_of
from words_script import write_script

from tallow.data.stories import SEPARATOR
from tallow.errors import ArgumentError, CheckpointError, NumericError, TallowError
from tallow.generation import Sampler, generate
from tallow.io import safetensors
from tallow.io.source import Opened
from tallow.models.decoders.llama import Llama
from tallow.peft import PeftModel
from tallow.text.stream_decoder import ByteDecoder, TextDecoder
from tallow.text.text_tokenizer import TextTokenizer
from tallow.training import LanguageModelTraining
from tallow.training.texts import tokens_of
from tallow.training.vocabulary import Vocabulary, character_vocabulary, characters_of

NEW, LORA = "new", "lora"
MAX_CHARACTERS = 2_000_000
WIDTHS = (32, 64, 96, 128, 192, 256)
CONTEXTS = (32, 64, 128, 256)
MAX_LAYERS, MAX_BATCH, MAX_RANK = 6, 64, 64
# More distinct characters than in the largest scripts make a model too large for a tab.
MAX_VOCABULARY = 8000
ENDLESS = 1_000_000  # steps: the user stops
KEY = "tallow.train"  # in the metadata of a file of weights


class NotANumber(TallowError, ArithmeticError):
    """The loss is not finite."""


@dataclass(frozen=True)
class TextSettings:
    """The form of the tab. A change of any field starts a new model."""

    task: str
    text: str
    width: int
    layers: int
    context: int
    rank: int
    lr: float
    batch_size: int
    seed: int

    def __post_init__(self) -> None:
        if not self.texts():
            raise ArgumentError("there is no text", hint="paste one, or choose a file")
        if len(self.text) > MAX_CHARACTERS:
            raise ArgumentError(f"the text has {len(self.text)} characters", hint=f"use {MAX_CHARACTERS} at most")
        for name, value, most in (
            ("Layers", self.layers, MAX_LAYERS),
            ("Batch size", self.batch_size, MAX_BATCH),
            ("Rank", self.rank, MAX_RANK),
        ):
            if not 1 <= value <= most:
                raise ArgumentError(f"{name} cannot be {value}", hint=f"write a number from 1 to {most}")
        if self.width not in WIDTHS or self.context not in CONTEXTS or self.task not in (NEW, LORA):
            raise ArgumentError(f"width {self.width}, context {self.context}, task {self.task}", hint="choose others")

    def texts(self) -> list[str]:
        """Return the texts that <|endoftext|> separates, as `tallow train` reads a file."""
        return [text for text in self.text.split(SEPARATOR) if text.strip()]


class CharacterTokenizer(TextTokenizer):
    """The tokenizer of a character model: ids are the places of characters, and the next one separates texts."""

    def __init__(self, characters: list[str], vocabulary: Vocabulary) -> None:
        self._characters = [each.encode() for each in characters]
        self._encode = vocabulary.encode
        self.bos_token_id = self.eos_token_id = len(characters)

    def encode_prompt(self, text: str, *, add_special_tokens: bool = True) -> list[int]:
        ids = list(map(int, self._encode(text)))
        return [len(self._characters), *ids] if add_special_tokens or not ids else ids

    def token_bytes(self) -> list[bytes | None]:
        return [*self._characters, None]

    def stream_decoder(self, *, previous: Sequence[int] = (), skip_special_tokens: bool = True) -> TextDecoder:
        return ByteDecoder(lambda _, token: self._characters[token], hidden={len(self._characters)})


@dataclass
class Learner:
    """A model with its tokenizer, and its vocabulary for training.

    Attributes:
        adapter: the model with its adapter, if it has one.
        characters: those of a character model; None for the story model.
    """

    model: Llama
    vocabulary: Vocabulary
    adapter: PeftModel | None = None
    characters: list[str] | None = None

    def unknown(self, text: str) -> str:
        """Return the characters of a prompt that the model does not have."""
        return "" if self.characters is None else "".join(dict.fromkeys(c for c in text if c not in self.characters))


class Words:
    """One model in training."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp())
        self._settings: TextSettings | None = None
        self._learner: Learner
        self._training: LanguageModelTraining
        self._steps: Iterator[tuple[float, ...]]
        self._imported: Learner | None = None  # from a file; the next `configure` trains it

    def configure(self, **form: Any) -> dict[str, Any]:
        """Apply the settings: start a new model if one has changed."""
        settings = TextSettings(**form)
        if settings == self._settings and self._imported is None:
            return self._description(new=False)
        return self._begin(settings)

    def reset(self, **form: Any) -> dict[str, Any]:
        """Start a new model with the settings."""
        self._imported = None
        return self._begin(TextSettings(**form))

    def _begin(self, settings: TextSettings) -> dict[str, Any]:
        learner = self._imported or _new_learner(settings)
        context = min(settings.context, learner.model.context_length)
        tokens = tokens_of(settings.texts(), learner.vocabulary)
        training = training_of(
            learner.model,
            tokens,
            context,
            settings.batch_size,
            settings.lr,
            settings.seed,
            ENDLESS,
            self._folder / "checkpoint",
        )
        self._learner, self._training, self._settings = learner, training, settings
        self._steps = training.run()
        self._imported = None
        return self._description(new=True, tokens=len(tokens))

    def _description(self, new: bool, tokens: int = 0) -> dict[str, Any]:
        assert self._settings is not None
        model = self._learner.model
        trained = sum(each.numel() for each in model.parameters() if each.requires_grad)
        description = {"new": new, "steps": self._training.step, "parameters": model.num_parameters()}
        description |= {"trained": trained, "tokens": tokens, "vocabulary": model.vocab_size}
        if new:
            description["validation"] = self._validate()
        return description | {"code": write_script(self._settings, max(self._training.step, 200))}

    # ------------------------------------------------------------------------------------------------------- training

    def advance(self, seconds: float) -> dict[str, Any]:
        """Train for this long, at least one step."""
        started = time.perf_counter()
        losses: list[float] = []
        training, before = self._training, len(self._training.curve)
        while not losses or time.perf_counter() - started < seconds:
            try:
                (loss,) = next(self._steps)
            except NumericError as error:
                self._settings = None  # the next `configure` starts anew
                raise NotANumber(
                    f"the loss is no longer a number, in step {training.step + 1}",
                    hint="lower the learning rate, then press Start over",
                ) from error
            losses.append(loss)
            if len(training.curve) > before:
                break
        duration = time.perf_counter() - started
        validation = training.curve[-1][2:] if len(training.curve) > before else []
        return {
            "losses": np.array(losses, np.float32),
            "steps": training.step,
            "seconds": duration,
            "tokens": training.tokens_per_step * len(losses),
            "validation": validation[0] if validation else -1,
        }

    def _validate(self) -> float:
        loss = self._training.validate()
        return -1 if loss is None else loss

    def sample(self, prompt: str, length: int, temperature: float, seed: int) -> dict[str, Any]:
        """Return a text that the model continues a prompt with, at most `length` tokens."""
        if self._settings is None and not hasattr(self, "_learner"):
            raise ArgumentError("there is no model yet", hint="press Train first")
        learner, model = self._learner, self._learner.model
        ids = model.tokenizer.encode_prompt(prompt)
        if len(ids) > model.context_length:
            raise ArgumentError(
                f"the prompt has {len(ids) - 1} tokens; the model reads {model.context_length - 1} at most",
                hint="shorten the prompt",
            )
        model.eval()
        try:
            tokens = generate(
                model,
                ids,
                max_tokens=length,
                sample=Sampler(temperature=temperature, top_p=0.95, seed=seed),
                stop_ids=model.stop_ids,
            )
            text = "".join(model.tokenizer.decode_stream(tokens, previous=ids))
        finally:
            model.train()
        return {"text": text, "unknown": learner.unknown(prompt)}

    # ---------------------------------------------------------------------------------------------------------- files

    def script(self) -> str:
        """Return the script that trains the model as far as it is trained now."""
        assert self._settings is not None
        return write_script(self._settings, self._training.step)

    def export(self) -> dict[str, Any]:
        """Return a file: the weights of a character model, or the folder of an adapter as a zip archive."""
        if not hasattr(self, "_learner"):
            raise ArgumentError("there is no model yet", hint="press Train first")
        learner = self._learner
        if learner.adapter is not None:
            folder = self._folder / "adapter"
            learner.adapter.save_pretrained(folder)
            archive = io.BytesIO()
            with zipfile.ZipFile(archive, "w") as opened:
                for path in sorted(folder.iterdir()):
                    opened.write(path, path.name)
            return {"name": "adapter.zip", "bytes": archive.getvalue()}
        config = learner.model.config
        sizes = {
            "width": config.hidden_size,
            "layers": config.num_hidden_layers,
            "context": config.max_position_embeddings,
            "characters": "".join(learner.characters or []),
        }
        parts = safetensors.encode(learner.model.state_dict(), {"format": "pt", KEY: json.dumps(sizes)})
        return {"name": "characters.safetensors", "bytes": b"".join(parts)}

    def load(self, file: npt.NDArray[np.uint8]) -> dict[str, Any]:
        """Read the weights of a character model, which the next `configure` trains."""
        with safetensors.safe_open(Opened(file, "the file")) as opened:
            sizes = _sizes(opened.metadata().get(KEY))
            tensors = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118 - not a dict
        if bad := [name for name, tensor in tensors.items() if not tensor.isfinite().all()]:
            raise CheckpointError(f"weights: {bad[0]} has NaN or infinity", hint="save weights before they diverge")
        characters = list(sizes.pop("characters"))
        learner = _character_learner(characters, **sizes, seed=0)
        learner.model.load_state_dict(tensors)
        self._imported = learner
        return sizes


def _new_learner(settings: TextSettings) -> Learner:
    if settings.task == LORA:
        adapter, vocabulary = story_llama(settings.rank, settings.seed)
        return Learner(adapter.get_base_model(), vocabulary, adapter=adapter)
    characters = characters_of(settings.texts())
    if len(characters) > MAX_VOCABULARY:
        raise ArgumentError(
            f"the text has {len(characters)} different characters", hint=f"use a text with {MAX_VOCABULARY} at most"
        )
    return _character_learner(characters, settings.width, settings.layers, settings.context, settings.seed)


def _character_learner(characters: list[str], width: int, layers: int, context: int, seed: int) -> Learner:
    vocabulary = character_vocabulary(characters)
    model = character_llama(vocabulary, width, layers, context, seed)
    model.tokenizer = CharacterTokenizer(characters, vocabulary)
    return Learner(model, vocabulary, characters=characters)


def _sizes(text: str | None) -> dict[str, Any]:
    """Parse and check the sizes in the metadata of a file, which can be anybody's."""
    hint = "choose a file that this tab saved"
    try:
        sizes = json.loads(text or "null")
    except (ValueError, RecursionError) as error:
        raise CheckpointError("the sizes of the model in the file are damaged", hint=hint) from error
    if not isinstance(sizes, dict) or set(sizes) != {"width", "layers", "context", "characters"}:
        raise CheckpointError("the file has the weights of another model", hint=hint)
    characters = sizes["characters"]
    is_valid = (
        isinstance(characters, str)
        and 1 <= len(characters) <= MAX_VOCABULARY
        and all(a < b for a, b in itertools.pairwise(characters))
        and all(type(sizes[name]) is int for name in ("width", "layers", "context"))
        and sizes["width"] in WIDTHS
        and sizes["context"] in CONTEXTS
        and 1 <= sizes["layers"] <= MAX_LAYERS
    )
    if not is_valid:
        raise CheckpointError("the sizes of the model in the file cannot be used", hint=hint)
    return sizes
