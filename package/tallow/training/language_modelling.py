"""Training language models on texts, in one process or in several that share out each batch.

Letters: B rows, T tokens of a row, V vocabulary.
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
from tallow.autograd.modes import no_grad
from tallow.errors import ArgumentError, DistributedError
from tallow.models.causal_lm import CausalLM
from tallow.nn import functional as F
from tallow.nn.embedding import Embedding
from tallow.nn.module import Module
from tallow.nn.parallel.distributed import DistributedDataParallel
from tallow.optim.adam import AdamW
from tallow.random import manual_seed
from tallow.tensor import Tensor, wrap
from tallow.training.processes import Processes
from tallow.training.run import Settings, Training, differences
from tallow.training.texts import Rows


@dataclass(frozen=True, kw_only=True)
class LanguageModelSettings(Settings):
    """What a run depends on.

    Attributes:
        batch_size: rows that a step learns from, in all processes together.
        context: tokens of a row.
        dtype: that matrices are multiplied in: "float32", "bfloat16" or "float16". The weights stay float32.
        model: the entries of the model's config.
        texts: `Rows.digest` of what is learnt from.
    """

    context: int
    dtype: str = "float32"
    model: Mapping[str, Any]
    texts: str


class LanguageModelTraining(Training):
    """Learns to tell the next token of each in a row, by AdamW.

    The weights are the same, but for rounding, for any number of processes and of parts: each step's rows are those
    that one process would take. Dropout, where a model has it, is drawn anew in each.

    Args:
        model: as rank 0 has it; the others' weights become the same.
        held_out: what `validate` takes the loss of; None for nothing.
        parts: how many parts a process's share of a batch is computed in, one after the other, to save memory.

    Attributes:
        tokens_per_step: of all processes together.

    Raises:  ArgumentError when the batch does not divide into as many parts as there are; DistributedError when this
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
        pieces = processes.size * parts
        if settings.batch_size % pieces:
            raise ArgumentError(
                f"a batch of {settings.batch_size} rows for {processes.size} processes, in {parts} parts each",
                mend=f"take a multiple of {pieces}",
            )
        if others := differences(settings, processes.tell(asdict(settings))):
            raise DistributedError(
                "\n".join([f"rank {processes.rank} has other settings than rank 0", *others]),
                mend="give all processes the same options and folders",
            )
        device_type = model.head_weight.device.type
        is_plain = settings.dtype == dtypes.float32.name
        scaler = GradScaler(device_type, enabled=settings.dtype == dtypes.float16.name)
        super().__init__(settings, model.train(), _optimizer(model, settings), checkpoint, scaler=scaler)
        self.model = model
        self.tokens_per_step = settings.batch_size * settings.context
        self._rows, self._held_out, self._parts, self._processes = rows, held_out, parts, processes
        self._precision = autocast(device_type, getattr(dtypes, settings.dtype), enabled=not is_plain)
        self._shared: Module = model if processes.size == 1 else DistributedDataParallel(model)

    def learn(self) -> tuple[float]:
        settings, processes = self.settings, self._processes
        # Of this step and process: a run that is resumed draws what one without a break draws.
        manual_seed(int(np.random.SeedSequence((settings.seed, self.step, processes.rank)).generate_state(1)[0]))
        first = self.step * settings.batch_size
        mine = np.arange(first + processes.rank, first + settings.batch_size, processes.size)
        total = 0.0
        for part in range(self._parts):
            with self._without_averaging() if part < self._parts - 1 else nullcontext():
                loss = self._loss(self._shared, self._rows.at(mine[part :: self._parts])) / self._parts
                self._scaler.scale(loss).backward()
            total += loss.item()
        return (total,)

    def validate(self) -> float | None:
        """Nats per token of what is held out."""
        if self._held_out is None:
            return None
        self.model.eval()
        mine = np.arange(self._processes.rank, len(self._held_out), self._processes.size)
        most = self.settings.batch_size // (self._processes.size * self._parts)
        batches = [mine[start : start + most] for start in range(0, len(mine), most)]
        with no_grad():
            total = sum(self._loss(self.model, self._held_out[batch]).item() * len(batch) for batch in batches)
        self.model.train()
        return self._processes.sum([total])[0] / len(self._held_out)

    def agree(self, values: list[float]) -> list[float]:
        return self._processes.mean(values)

    def save(self) -> None:
        if self._processes.rank == 0:
            super().save()

    def _without_averaging(self) -> AbstractContextManager[None]:
        return self._shared.no_sync() if isinstance(self._shared, DistributedDataParallel) else nullcontext()

    def _loss(self, model: Module, rows_BT: npt.NDArray[np.int64]) -> Tensor:
        """Mean cross-entropy of each token given those before it in its row."""
        tokens_BT = wrap(rows_BT).to(self.model.head_weight.device)
        with self._precision:
            logits_BTV = model(tokens_BT[:, :-1])
            return F.cross_entropy(logits_BTV.flatten(0, 1), tokens_BT[:, 1:].flatten())


def _optimizer(model: CausalLM, settings: Settings) -> AdamW:
    """AdamW that decays matrices, but no embedding: a rare token's would fade while it is not seen."""
    embedded = {id(each.weight) for each in model.modules() if isinstance(each, Embedding)}
    trained = [each for each in model.parameters() if each.requires_grad]
    decayed = [each for each in trained if each.ndim > 1 and id(each) not in embedded]
    known = {id(each) for each in decayed}
    groups = [
        {"params": decayed, "weight_decay": settings.weight_decay},
        {"params": [each for each in trained if id(each) not in known], "weight_decay": 0.0},
    ]
    return AdamW(groups, lr=settings.learning_rate, betas=settings.betas)
