"""The training loop. It can be stopped at any moment, and goes on from its last checkpoint to the same weights."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from recipe import learning_rate_factor, save_folder

import tallow as tl
from tallow.errors import ArgumentError
from tallow.models.llama import Llama, LlamaConfig
from tallow.nn import Embedding, Linear, RMSNorm
from tallow.nn import functional as F
from tallow.nn.utils import clip_grad_norm_

from . import tokenizer
from .corpus import Corpus, Ids, Rows
from .settings import Settings


class Training:
    """A run: its model, its optimizer, where its data come from, and how far it is.

    Attributes:
        step: how many steps were taken.
        curve: (step, training loss since the row before, validation loss) at intervals.
        seconds: time spent in steps and validation, over all sessions.
    """

    def __init__(self, settings: Settings, corpus: Corpus, checkpoint: Path, device: str = "cpu") -> None:
        self.settings, self.device = settings, device
        self._checkpoint = checkpoint
        self._rows = Rows(corpus.encode(corpus.training), settings.context + 1)
        self._validation = Rows(corpus.encode(corpus.held_out), settings.context + 1)
        self._order = tl.Generator().manual_seed(settings.seed)
        tl.manual_seed(settings.seed)
        self.model = Llama(settings.llama_config(), device=device)
        self._optimizer = _optimizer(self.model, settings)
        self._scheduler = tl.optim.lr_scheduler.LambdaLR(
            self._optimizer, lambda step: learning_rate_factor(step, settings)
        )
        self.step = 0
        self.seconds = 0.0
        self.curve: list[list[float]] = []
        self._loss_sum = 0.0

    def resume(self) -> None:
        """Go on where the checkpoint was written.

        Raises:  ArgumentError when it is of other settings; CheckpointError, OSError when it cannot be read
        """
        progress = tl.load_checkpoint(self._checkpoint, **self._state())
        if progress["settings"] != _plain(self.settings):
            raise ArgumentError(
                f"{self._checkpoint} was written with other settings", mend="give the same options, or start over"
            )
        self.step, self.seconds = progress["step"], progress["seconds"]
        self.curve, self._loss_sum = progress["curve"], progress["loss_sum"]

    def save(self) -> None:
        tl.save_checkpoint(
            self._checkpoint,
            **self._state(),
            settings=_plain(self.settings),
            step=self.step,
            seconds=self.seconds,
            curve=self.curve,
            loss_sum=self._loss_sum,
        )

    def run(self) -> Iterator[float]:
        """Take the remaining steps, and yield the loss of each."""
        settings = self.settings
        while self.step < settings.steps:
            started = time.perf_counter()
            loss = self._take_step()
            self.step += 1
            self._loss_sum += loss
            if self.step % settings.validate_every == 0 or self.step == settings.steps:
                since = self.step - (self.curve[-1][0] if self.curve else 0)
                self.curve.append([self.step, self._loss_sum / since, self.validation_loss()])
                self._loss_sum = 0.0
            self.seconds += time.perf_counter() - started
            if self.step % settings.checkpoint_every == 0 or self.step == settings.steps:
                self.save()
            yield loss

    def validation_loss(self) -> float:
        """The loss on rows of held-out stories, always the same ones."""
        settings = self.settings
        indices = np.arange(min(settings.validation_rows, len(self._validation)))
        batches = np.array_split(indices, math.ceil(len(indices) / settings.batch_size))
        with tl.no_grad():
            losses = [self._loss(self._validation[batch]).item() * len(batch) for batch in batches]
        return sum(losses) / len(indices)

    def _take_step(self) -> float:
        chosen = tl.randint(len(self._rows), (self.settings.batch_size,), generator=self._order).numpy()
        self._optimizer.zero_grad()
        loss = self._loss(self._rows[chosen])
        loss.backward()
        clip_grad_norm_(self.model.parameters(), self.settings.clip_norm)
        self._optimizer.step()
        self._scheduler.step()
        return loss.item()

    def _loss(self, rows_BT: Ids) -> tl.Tensor:
        """Mean cross-entropy of each token given those before it in its row."""
        tokens_BT = tl.from_numpy(rows_BT).to(self.device)
        logits_BTV = self.model(tokens_BT[:, :-1])
        return F.cross_entropy(logits_BTV.flatten(0, 1), tokens_BT[:, 1:].flatten())

    def _state(self) -> dict[str, Any]:
        return {
            "model": self.model,
            "optimizer": self._optimizer,
            "scheduler": self._scheduler,
            "generator": self._order,
        }


def _optimizer(model: Llama, settings: Settings) -> tl.optim.AdamW:
    """AdamW that decays the matrices of linear layers.

    Not the embedding: decay would make names alike, which come in the same places and differ by chance alone, and a
    model whose names are alike does not learn to repeat one.
    """
    decayed = [module.weight for module in model.modules() if isinstance(module, Linear)]
    others = [module.weight for module in model.modules() if isinstance(module, Embedding | RMSNorm)]
    groups = [
        {"params": decayed, "weight_decay": settings.weight_decay},
        {"params": others, "weight_decay": 0.0},
    ]
    return tl.optim.AdamW(groups, lr=settings.learning_rate, betas=settings.betas)


def _plain(settings: Settings) -> dict[str, Any]:
    return asdict(settings)


def export(model: Llama, corpus: Corpus, folder: Path) -> None:
    """Write the model as a folder of Hugging Face's, in float16, and the vocabulary as llama2.c's file."""
    save_folder(model, _config_json(model.config), folder)
    tokenizer.save_llama2c(corpus.tokenizer, folder / "tokenizer.bin")


def _config_json(config: LlamaConfig) -> dict[str, Any]:
    """What `LlamaConfig.from_json` and transformers read."""
    entries = {name: value for name, value in asdict(config).items() if value is not None}
    del entries["rope_interleaved"]  # the pairs are those of Hugging Face
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_act": "silu",
        "dtype": "float16",
        **entries,
        "eos_token_id": list(config.eos_token_id),
    }
