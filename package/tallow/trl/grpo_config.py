"""The arguments of a GRPOTrainer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from tallow.errors import ArgumentError
from tallow.trl.base import MethodConfig
from tallow.trl.grpo_losses import MEANS

SCALES = ("group", "batch", "none")


@dataclass(repr=False)
class GRPOConfig(MethodConfig):
    """The arguments of a GRPOTrainer.

    Attributes:
        num_generations: answers to each prompt; a batch of generation holds a multiple of them.
        num_generations_eval: in evaluation; None means the same.
        max_completion_length: of an answer, in tokens.
        steps_per_generation: batches for which answers are written at once; None means those of an optimizer step.
        generation_batch_size: answers that are written at once, in place of `steps_per_generation`.
        temperature, top_p, top_k, min_p, repetition_penalty: of sampling; top_k=0 means all tokens.
        generation_kwargs: further arguments of `generate`.
        chat_template_kwargs: variables of the chat template.
        beta: weight of the divergence from the reference; 0 means that there is none.
        num_iterations: how often each answer is learned from.
        epsilon, epsilon_high: how far ratios may be below and above 1; None means the same.
        delta: the greatest ratio; None means no limit.
        importance_sampling_level: "token", or "sequence" for one ratio of each answer (arXiv:2507.18071).
        reward_weights: of several reward functions; None means 1 each.
        scale_rewards: divide advantages by the deviation of the "group" (True) or "batch", or not: "none" (False).
        loss_type: a name of `grpo_losses.MEANS`.
        mask_truncated_completions: learn nothing from answers without an end.
        use_bias_correction_kl: weigh the divergence by ratios (arXiv:2512.02556).
        sapo_temperature_pos, sapo_temperature_neg: of the loss "sapo".
        top_entropy_quantile: learn only from this share of tokens, those of greatest entropy (arXiv:2506.01939).
        entropy_coef: weight of the entropy, which is added.
        shuffle_dataset: take prompts in random order.
        sync_ref_model, ref_model_mixup_alpha, ref_model_sync_steps: as in DPOConfig.
        log_completions: print a prompt and an answer with each log.

    Raises:  as MethodConfig; ArgumentError for sizes that do not fit each other
    """

    absent: ClassVar[Mapping[str, str]] = {
        **MethodConfig.absent,
        "use_vllm": "leave it out; answers are written by the model itself",
        "use_transformers_continuous_batching": "leave it out",
        "use_adaptive_entropy": "pass entropy_coef",
        "off_policy_mask_threshold": "leave it out",
        "cast_lm_head_to_fp32": "load the model in float32",
        "log_completions_hub_repo": "pass log_completions=True",
    }

    learning_rate: float = 1e-6
    disable_dropout: bool = False
    remove_unused_columns: bool = False
    num_generations: int = 8
    num_generations_eval: int | None = None
    max_completion_length: int | None = 512
    shuffle_dataset: bool = True
    generation_batch_size: int | None = None
    steps_per_generation: int | None = None
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    min_p: float | None = None
    repetition_penalty: float = 1.0
    cache_implementation: str | None = None
    generation_kwargs: dict[str, Any] | None = None
    chat_template_kwargs: dict[str, Any] | None = None
    beta: float = 0.0
    num_iterations: int = 1
    epsilon: float = 0.2
    epsilon_high: float | None = None
    delta: float | None = None
    importance_sampling_level: str = "token"
    reward_weights: list[float] | None = None
    scale_rewards: str | bool = "group"
    loss_type: str = "dapo"
    mask_truncated_completions: bool = False
    use_bias_correction_kl: bool = True
    sapo_temperature_pos: float = 1.0
    sapo_temperature_neg: float = 1.05
    top_entropy_quantile: float = 1.0
    entropy_coef: float = 0.0
    sync_ref_model: bool = False
    ref_model_mixup_alpha: float = 0.6
    ref_model_sync_steps: int = 512
    log_completions: bool = False
    use_vllm: bool = False
    use_transformers_continuous_batching: bool = False
    use_adaptive_entropy: bool = False
    off_policy_mask_threshold: float | None = None
    cast_lm_head_to_fp32: bool = False
    log_completions_hub_repo: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.scale_rewards, bool):
            self.scale_rewards = "group" if self.scale_rewards else "none"
        self.one_of("scale_rewards", SCALES)
        self.one_of("loss_type", MEANS)
        self.one_of("importance_sampling_level", ("token", "sequence"))
        self._set_sizes()
        if self.num_generations < 2:
            raise ArgumentError(f"num_generations={self.num_generations}", hint="pass 2 or more: answers are compared")

    def _set_sizes(self) -> None:
        if self.generation_batch_size is not None and self.steps_per_generation is not None:
            raise ArgumentError("generation_batch_size with steps_per_generation", hint="pass one of them")
        if self.generation_batch_size is None:
            self.steps_per_generation = self.steps_per_generation or self.gradient_accumulation_steps
            self.generation_batch_size = self.train_batch_size * self.steps_per_generation
        self.steps_per_generation, rest = divmod(self.generation_batch_size, self.train_batch_size)
        if rest or not self.steps_per_generation:
            raise ArgumentError(
                f"generation_batch_size={self.generation_batch_size}",
                hint=f"pass a multiple of per_device_train_batch_size={self.train_batch_size}",
            )
        if self.generation_batch_size % self.num_generations:
            raise ArgumentError(
                f"{self.generation_batch_size} answers are written at once, which is no multiple of "
                f"num_generations={self.num_generations}",
                hint="change num_generations, per_device_train_batch_size or gradient_accumulation_steps",
            )
        if self.eval_strategy != "no":
            self.check_eval_size()

    @property
    def eval_group(self) -> int:
        """The number of answers to a prompt in evaluation."""
        return self.num_generations_eval or self.num_generations

    def check_eval_size(self) -> None:
        """Raise ArgumentError if a batch of evaluation does not hold all answers of its prompts."""
        if self.eval_batch_size % self.eval_group:
            raise ArgumentError(
                f"per_device_eval_batch_size={self.eval_batch_size}", hint=f"pass a multiple of {self.eval_group}"
            )
