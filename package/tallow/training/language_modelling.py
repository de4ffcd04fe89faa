"""Train language models on texts, in one process, or in several that split each batch.

Letters: B rows, T tokens per row, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tallow import dtypes
from tallow.amp.autocast_mode import autocast
from tallow.amp.grad_scaler import GradScaler
from tallow.core.tensor import Tensor, wrap
from tallow.errors import ArgumentError, DistributedError
from tallow.models.causal_lm import CausalLM
from tallow.nn import functional as F
from tallow.nn.embedding import Embedding
from tallow.nn.module import Module
from tallow.nn.parallel.distributed import DistributedDataParallel
from tallow.nn.parameter_containers import ParameterList
from tallow.optim.adam import AdamW
from tallow.random import manual_seed
from tallow.tape.modes import no_grad
from tallow.training.processes import Processes
from tallow.training.run import Settings, Training, differences
from tallow.training.texts import Rows


@dataclass(frozen=True, kw_only=True)
class LanguageModelSettings(Settings):
    """The settings that determine a run.

    Attributes:
        batch_size: rows per step, over all processes.
        context: tokens per row.
        dtype: dtype of matrix products: "float32", "bfloat16" or "float16". The weights stay float32.
        model: entries of the model's config.
        adapter: entries of the config of the adapter that is trained, if the model has one.
        texts: `Rows.digest` of the training texts.
    """

    context: int
    dtype: str = "float32"
    model: Mapping[str, Any]
    adapter: Mapping[str, Any] | None = None
    texts: str


class LanguageModelTraining(Training):
    """Training of next-token prediction with AdamW.

    Up to rounding, the weights do not depend on the number of processes and of parts: each step uses the rows that one
    process would use. Dropout, if the model has it, is drawn separately in each part.

    Args:
        model: the model; other ranks get the weights of rank 0. Frozen parameters, those that require no gradient, are
            neither trained nor saved in the checkpoint.
        held_out: validation rows; None for no validation.
        parts: number of sequential parts of a process's share of a batch, to save memory.

    Attributes:
        tokens_per_step: tokens per step, over all processes.

    Raises:  ArgumentError if the batch size is not a multiple of processes times parts; DistributedError if this
             process has other settings than rank 0
    """

    model: CausalLM

    def __init__(
        self,
        settings: LanguageModelSettings,
        model: CausalLM,
        rows: Rows,
        checkpoint: Path,
        processes: Processes,
        held_out: Rows | None = None,
        parts: int = 1,
    ) -> None:
        divisor = processes.size * parts
        if settings.batch_size % divisor:
            raise ArgumentError(
                f"a batch of {settings.batch_size} rows for {processes.size} processes, in {parts} parts each",
                hint=f"use a multiple of {divisor}",
            )
        if others := differences(settings, processes.broadcast(asdict(settings))):
            raise DistributedError(
                "\n".join([f"rank {processes.rank} has other settings than rank 0", *others]),
                hint="pass the same options and folders to all processes",
            )
        self._device = next(model.parameters()).device
        is_plain = settings.dtype == dtypes.float32.name
        scaler = GradScaler(self._device.type, enabled=settings.dtype == dtypes.float16.name)
        super().__init__(settings, _trained(model.train()), _optimizer(model, settings), checkpoint, scaler=scaler)
        self.model = model
        self.tokens_per_step = settings.batch_size * settings.context
        self._rows, self._validation_rows, self._parts, self._processes = rows, held_out, parts, processes
        self._precision = autocast(self._device.type, getattr(dtypes, settings.dtype), enabled=not is_plain)
        self._shared: Module = model if processes.size == 1 else DistributedDataParallel(model, broadcast_buffers=False)

    def learn(self) -> tuple[float]:
        settings, processes = self.settings, self._processes
        # Seed by step and process: a resumed run draws the same numbers as an uninterrupted one.
        manual_seed(int(np.random.SeedSequence((settings.seed, self.step, processes.rank)).generate_state(1)[0]))
        first = self.step * settings.batch_size
        positions = np.arange(first + processes.rank, first + settings.batch_size, processes.size)
        total = 0.0
        for part in range(self._parts):
            with self._without_averaging() if part < self._parts - 1 else nullcontext():
                loss = self._loss(self._shared, self._rows.at(positions[part :: self._parts])) / self._parts
                self._scaler.scale(loss).backward()
            total += loss.item()
        return (total,)

    def validate(self) -> float | None:
        """Return the mean validation loss in nats per token."""
        if self._validation_rows is None:
            return None
        self.model.eval()
        rows = np.arange(self._processes.rank, len(self._validation_rows), self._processes.size)
        batch_size = self.settings.batch_size // (self._processes.size * self._parts)
        batches = [rows[start : start + batch_size] for start in range(0, len(rows), batch_size)]
        with no_grad():
            total = sum(self._loss(self.model, self._validation_rows[batch]).item() * len(batch) for batch in batches)
        self.model.train()
        return self._processes.sum([total])[0] / len(self._validation_rows)

    def agree(self, values: list[float]) -> list[float]:
        return self._processes.mean(values)

    def save(self) -> None:
        if self._processes.rank == 0:
            super().save()

    def _without_averaging(self) -> AbstractContextManager[None]:
        return self._shared.no_sync() if isinstance(self._shared, DistributedDataParallel) else nullcontext()

    def _loss(self, model: Module, rows_BT: npt.NDArray[np.int64]) -> Tensor:
        """Return the mean cross-entropy of each token, given the tokens before it in its row."""
        tokens_BT = wrap(rows_BT).to(self._device)
        with self._precision:
            logits_BTV = model(tokens_BT[:, :-1])
            return F.cross_entropy(logits_BTV.flatten(0, 1), tokens_BT[:, 1:].flatten())


def _trained(model: CausalLM) -> Module:
    """Return a module with the trained parameters: the model, or without those that are frozen."""
    trained = [each for each in model.parameters() if each.requires_grad]
    return model if len(trained) == len(list(model.parameters())) else ParameterList(trained)


def _optimizer(model: CausalLM, settings: Settings) -> AdamW:
    """Return AdamW with weight decay for matrices, except embeddings: those of rare tokens would decay unused."""
    embeddings = {id(each.weight) for each in model.modules() if isinstance(each, Embedding)}
    trainable = [each for each in model.parameters() if each.requires_grad]
    decayed = [each for each in trainable if each.ndim > 1 and id(each) not in embeddings]
    decayed_ids = {id(each) for each in decayed}
    groups = [
        {"params": decayed, "weight_decay": settings.weight_decay},
        {"params": [each for each in trainable if id(each) not in decayed_ids], "weight_decay": 0.0},
    ]
    return AdamW(groups, lr=settings.learning_rate, betas=settings.betas)
