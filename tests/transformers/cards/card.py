"""Programs as model cards have them, each with the folder that it reads."""

from __future__ import annotations

import contextlib
import io
import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.transformers.folders import WHISPER, Folders
from tests.transformers.tokenizer_folders import write_whisper

Program = Callable[[Any, Any, str], Any]
CARDS: dict[str, Card] = {}
RNG = np.random.default_rng(0)
SOUND = RNG.uniform(-0.3, 0.3, 16000).astype(np.float32)  # one second
LEVELS = RNG.integers(0, 256, (37, 53, 3)).astype(np.uint8)


@dataclass(frozen=True)
class Card:
    """A program of `(tf, torch, folder)`, which returns and prints the same for both libraries.

    Args:
        model: the class of the folder's model, with entries of its config that differ from the small sizes.
        processor: the class of an image processor that lies in the folder too, with its settings.
        prints: whether what it prints is compared. What a Trainer prints has times.
    """

    program: Program
    model: str
    config: dict[str, Any]
    processor: tuple[str, dict[str, Any]] | None
    prints: bool

    def folder(self, folders: Folders, base: Path) -> str:
        """Return the path of the folder, made below `base` where it has more than a model and a tokenizer."""
        if self.model.startswith("Whisper"):
            return write_speech(base)
        made = folders(self.model, **self.config)
        if self.processor is None:
            return made
        name, settings = self.processor
        folder = shutil.copytree(made, base / self.model)
        getattr(pytest.importorskip("transformers"), name)(**settings).save_pretrained(folder)
        return str(folder)

    def __call__(self, tf: Any, torch: Any, folder: str) -> Any:
        """Return what the program returns and prints."""
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            result = self.program(tf, torch, folder)
        return [result, printed.getvalue() if self.prints else None]


def card(
    model: str, processor: tuple[str, dict[str, Any]] | None = None, prints: bool = True, **config: Any
) -> Callable[[Program], Program]:
    """Enter a program under its name; the arguments are those of `Card`."""

    def enter(program: Program) -> Program:
        name = program.__name__
        if name in CARDS:
            raise ValueError(f"two cards are named {name}")
        CARDS[name] = Card(program, model, config, processor, prints)
        return program

    return enter


def write_speech(base: Path) -> str:
    """Write a small Whisper with its tokenizer and feature extractor, for sounds of one second."""
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    folder = write_whisper(base)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    torch.manual_seed(0)
    id_of = tokenizer.convert_tokens_to_ids
    ends = {"eos_token_id": tokenizer.eos_token_id, "pad_token_id": tokenizer.eos_token_id}
    ends |= {"bos_token_id": tokenizer.eos_token_id, "decoder_start_token_id": id_of("<|startoftranscript|>")}
    config = transformers.WhisperConfig(**(WHISPER | ends | {"vocab_size": len(tokenizer)}))
    model = transformers.WhisperForConditionalGeneration(config).eval()
    first = id_of("<|0.00|>")  # a second has 50 times; without the others and the marks, random weights write words
    marks = [id for id in range(tokenizer.eos_token_id + 1, len(tokenizer)) if not first <= id <= first + 50]
    model.generation_config = transformers.GenerationConfig(
        **ends,
        suppress_tokens=marks,
        lang_to_id={f"<|{name}|>": id_of(f"<|{name}|>") for name in ("en", "de", "fr")},
        task_to_id={name: id_of(f"<|{name}|>") for name in ("transcribe", "translate")},
        no_timestamps_token_id=id_of("<|notimestamps|>"),
        is_multilingual=True,
        max_initial_timestamp_index=10,
        max_length=16,
    )
    model.save_pretrained(folder)
    transformers.WhisperFeatureExtractor(chunk_length=1).save_pretrained(folder)
    extractor = json.loads((Path(folder) / "preprocessor_config.json").read_text(encoding="utf-8"))
    entries = json.dumps(extractor | {"processor_class": "WhisperProcessor"})
    (Path(folder) / "preprocessor_config.json").write_text(entries, encoding="utf-8")
    return folder
