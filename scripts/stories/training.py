"""The training loop. It can be stopped at any time and resumes from its last checkpoint to the same weights."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

import tallow as tl
from tallow import training
from tallow.models.decoders.llama import Llama
from tallow.models.decoders.llama_formats import save_hugging_face
from tallow.nn import Embedding, Linear, RMSNorm
from tallow.nn import functional as F

from . import tokenizer
from .corpus import Corpus, Ids, Rows
from .settings import Settings


class Training(training.Training):
    """A training run. A row of `curve` holds the step, the training loss since the last row, the validation loss."""

    settings: Settings

    def __init__(self, settings: Settings, corpus: Corpus, checkpoint: Path, device: str = "cpu") -> None:
        self.device = device
        self._rows = Rows(corpus.encode(corpus.training), settings.context + 1)
        self._validation = Rows(corpus.encode(corpus.held_out), settings.context + 1)
        self._order = tl.Generator().manual_seed(settings.seed)
        tl.manual_seed(settings.seed)
        self.model = Llama(settings.llama_config(), device=device)
        super().__init__(settings, self.model, _optimizer(self.model, settings), checkpoint, self._order)

    def learn(self) -> tuple[float]:
        chosen = tl.randint(len(self._rows), (self.settings.batch_size,), generator=self._order).numpy()
        loss = self._loss(self._rows[chosen])
        loss.backward()
        return (loss.item(),)

    def validate(self) -> float:
        """Return the loss on a fixed set of rows of the test stories."""
        settings = self.settings
        indices = np.arange(min(settings.validation_rows, len(self._validation)))
        batches = np.array_split(indices, math.ceil(len(indices) / settings.batch_size))
        with tl.no_grad():
            losses = [self._loss(self._validation[batch]).item() * len(batch) for batch in batches]
        return sum(losses) / len(indices)

    def _loss(self, rows_BT: Ids) -> tl.Tensor:
        """Return the mean cross-entropy of each token given the preceding ones in its row."""
        tokens_BT = tl.from_numpy(rows_BT).to(self.device)
        logits_BTV = self.model(tokens_BT[:, :-1])
        return F.cross_entropy(logits_BTV.flatten(0, 1), tokens_BT[:, 1:].flatten())


def _optimizer(model: Llama, settings: Settings) -> tl.optim.AdamW:
    """Return AdamW with weight decay for the matrices of linear layers.

    The embedding has none: names occur in the same contexts, so decay would make their vectors alike, and a model with
    similar names does not learn to repeat one.
    """
    decayed = [module.weight for module in model.modules() if isinstance(module, Linear)]
    others = [module.weight for module in model.modules() if isinstance(module, Embedding | RMSNorm)]
    groups = [
        {"params": decayed, "weight_decay": settings.weight_decay},
        {"params": others, "weight_decay": 0.0},
    ]
    return tl.optim.AdamW(groups, lr=settings.learning_rate, betas=settings.betas)


def export(model: Llama, corpus: Corpus, folder: Path) -> None:
    """Write the model as a Hugging Face folder, in float16, and the vocabulary as llama2.c's file."""
    save_hugging_face(model, folder, tl.float16)
    tokenizer.save_llama2c(corpus.tokenizer, folder / "tokenizer.bin")
