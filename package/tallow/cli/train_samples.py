"""Train a model on samples, with the trainers of `tallow.trl`, for `tallow train --sft` and `--dpo`.

Checkpoints are folders of transformers' Trainer in the output folder; `--resume` continues from the last one.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from tallow.cli.samples import LONGEST, Method, read_samples
from tallow.errors import ArgumentError
from tallow.peft.config import LoraConfig
from tallow.training.progress import Stop, interruption
from tallow.transformers.auto import AutoModelForCausalLM
from tallow.transformers.auto_tokenizer import AutoTokenizer
from tallow.transformers.trainer_callback import TrainerCallback, TrainerControl
from tallow.transformers.trainer_utils import get_last_checkpoint
from tallow.trl.dpo import DPOConfig, DPOTrainer
from tallow.trl.sft import SFTConfig, SFTTrainer

LAST_RATE = 0.1  # the last learning rate, as a part of the largest
METHODS: dict[str, tuple[Any, Any]] = {"sft": (SFTTrainer, SFTConfig), "dpo": (DPOTrainer, DPOConfig)}


def train(
    method: Method, path: Path, arguments: argparse.Namespace, adapter: LoraConfig | None, rate: float, warmup: int
) -> Stop:
    """Train a model on samples, and write it or its adapter to --out.

    Args:
        path: the model: a folder, or with an adapter a GGUF file.
        rate, warmup: the peak learning rate, and the steps over which it rises.

    Returns:  the signal that ended the run, if one did; the checkpoint of its last step is saved then
    Raises:   TallowError, OSError for invalid input
    """
    trainer_class, config_class = METHODS[method.name]
    samples = read_samples(method.file)
    evaluation = None if arguments.eval is None else read_samples(arguments.eval)
    config = config_class(
        str(arguments.out),
        max_steps=arguments.steps,
        per_device_train_batch_size=arguments.batch_size // arguments.accumulate,
        gradient_accumulation_steps=arguments.accumulate,
        learning_rate=rate,
        lr_scheduler_type="cosine_with_min_lr",
        lr_scheduler_kwargs={"min_lr_rate": LAST_RATE},
        warmup_steps=warmup,
        weight_decay=arguments.weight_decay,
        max_grad_norm=0.0 if arguments.clip == float("inf") else arguments.clip,
        bf16=arguments.dtype == "bfloat16",
        seed=arguments.seed,
        max_length=arguments.context or LONGEST,
        logging_steps=arguments.log_every,
        save_steps=arguments.save_every,
        save_total_limit=2,
        eval_strategy="no" if evaluation is None else "steps",
        eval_steps=arguments.eval_every,
        use_cpu=arguments.device == "cpu",
        **({"packing": True} if arguments.packing else {}),
    )
    checkpoint = get_last_checkpoint(arguments.out) if arguments.resume else None
    if arguments.resume and checkpoint is None:
        raise ArgumentError(f"{arguments.out} has no checkpoint to resume", hint="omit --resume")
    with interruption() as stop:
        trainer = trainer_class(
            model=AutoModelForCausalLM.from_pretrained(path),
            args=config,
            train_dataset=samples,
            eval_dataset=evaluation,
            processing_class=_tokenizer(path),
            peft_config=adapter,
            callbacks=[SavesAtSignal(stop)],
        )
        trainer.train(resume_from_checkpoint=checkpoint)
        trainer.save_model()
        trainer.processing_class.save_pretrained(arguments.out)
    return stop


def _tokenizer(path: Path) -> Any:
    if path.is_file():
        return AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name)
    return AutoTokenizer.from_pretrained(path)


class SavesAtSignal(TrainerCallback):
    """Saves a checkpoint and ends the run after the step in which a signal came."""

    def __init__(self, stop: Stop) -> None:
        self.stop = stop

    def on_step_end(self, args: Any, state: Any, control: TrainerControl, **kwargs: Any) -> None:
        """Ask for both."""
        if self.stop():
            control.should_save = control.should_training_stop = True
