"""GRPOTrainer: lets a language model write answers, and trains it towards those with greater rewards."""

from __future__ import annotations

from contextlib import nullcontext
from time import perf_counter
from typing import Any, ClassVar

import numpy as np

from tallow.core.creation import tensor
from tallow.core.tensor import Tensor
from tallow.data import DataLoader
from tallow.errors import ArgumentError
from tallow.functions.sampling import randperm
from tallow.nn.module import Module
from tallow.tape.modes import no_grad
from tallow.trl.answers import Answers, RepeatedPrompts, joined
from tallow.trl.base import MethodConfig, MethodTrainer, referring, without_dropout
from tallow.trl.dpo import SyncReference
from tallow.trl.grpo_config import GRPOConfig
from tallow.trl.grpo_losses import MEANS, TOKEN_LOSSES, Sizes, Step
from tallow.trl.log_probs import IGNORED, TokenScores, token_scores
from tallow.trl.rewards import (
    advantages_of,
    as_answers,
    deviation,
    name_of,
    reward_functions,
    rewards_of,
    total_of,
)
from tallow.trl.rows import left_padded
from tallow.trl.samples import Sample, is_conversational

SAMPLING = ("temperature", "top_p", "top_k", "min_p", "repetition_penalty", "cache_implementation")


class GRPOTrainer(MethodTrainer):
    """Trains a language model by rewards of its own answers.

    Samples: {"prompt": ...}, a text or messages; the reward functions get their other columns.

    Args:
        reward_funcs: functions (prompts=, completions=, completion_ids=, **columns) that return a number for each
            answer, or None where they do not apply; or classifiers with one label, or their names. One or several.
        reward_processing_classes: tokenizers of classifiers; None means those of their folders.
        others: as MethodTrainer

    Source:  Shao et al. 2024, arXiv:2402.03300; trl 1.16, `GRPOTrainer`

    Example:
        def short(completions, **columns):
            return [-len(each) for each in completions]

        GRPOTrainer("Qwen/Qwen3-0.6B", short, GRPOConfig("out"), train_dataset=[{"prompt": "What is love?"}]).train()
    """

    config_class: ClassVar[type[MethodConfig]] = GRPOConfig
    args: GRPOConfig

    def __init__(
        self,
        model: Any = None,
        reward_funcs: Any = None,
        args: Any = None,
        train_dataset: Any = None,
        eval_dataset: Any = None,
        processing_class: Any = None,
        reward_processing_classes: Any = None,
        **others: Any,
    ) -> None:
        if reward_funcs is None:
            raise ArgumentError("GRPOTrainer needs reward_funcs")
        super().__init__(
            model,
            args,
            train_dataset=train_dataset,
            eval_dataset=eval_dataset,
            processing_class=processing_class,
            **others,
        )
        args = self.args
        self.reward_funcs = reward_functions(reward_funcs, reward_processing_classes, args.device)
        weights = [1.0] * len(self.reward_funcs) if args.reward_weights is None else args.reward_weights
        if len(weights) != len(self.reward_funcs):
            raise ArgumentError(f"reward_weights has {len(weights)} weights for {len(self.reward_funcs)} functions")
        self.reward_weights = np.asarray(weights, np.float64)
        if args.disable_dropout:
            without_dropout(self.model)
        self.ref_model = self._reference_of_model() if args.beta else None
        if args.sync_ref_model:
            if self.ref_model is None:
                raise ArgumentError("sync_ref_model without a reference", hint="pass beta above 0 and no adapter")
            self.add_callback(SyncReference(self.ref_model, args))
        self.loss_is_scaled_for_ga = True
        self._batches: list[dict[str, Any]] = []
        self._step, self._seconds = 0, 0.0
        self._shown: tuple[Any, Any] | None = None

    # --------------------------------------------------------------------------------------------------------- batches

    def encode(self, sample: Sample) -> Sample | None:
        """Return a sample as it is.  Raises: ArgumentError without a prompt"""
        if "prompt" not in sample:
            raise ArgumentError(f"a sample has no 'prompt', only {', '.join(sample)}")
        return sample

    def collate(self, samples: list[Sample]) -> Any:
        """Return the samples: their prompts are answered first."""
        return samples

    def get_train_dataloader(self) -> DataLoader[Any]:
        """Return the loader of prompts of which the answers are written at once."""
        size = self.args.generation_batch_size
        assert size is not None
        if self.train_dataset is None or len(self.train_dataset) * self.args.num_generations < size:
            raise ArgumentError(
                f"train_dataset has {len(self.train_dataset or ())} prompts; {size} answers are written at once",
                hint="pass more prompts, or smaller batches",
            )
        return self._loader(self.train_dataset, size, self._train_sampler())

    def _train_sampler(self) -> Any:
        args = self.args
        assert args.generation_batch_size is not None
        assert args.steps_per_generation is not None
        return RepeatedPrompts(
            len(self.train_dataset),
            args.num_generations,
            args.generation_batch_size // args.num_generations,
            args.num_iterations * args.steps_per_generation,
            args.seed if args.shuffle_dataset else None,
        )

    def _eval_sampler(self, dataset: Any) -> Any:
        self.args.check_eval_size()
        return RepeatedPrompts(len(dataset), self.args.eval_group, seed=self.args.seed)

    def _group(self) -> int:
        """Return the number of answers to a prompt, while training or evaluating."""
        return self.args.num_generations if self.model.training else self.args.eval_group

    def training_step(self, model: Module, inputs: Any, num_items_in_batch: Any = None) -> Tensor:
        """Compute the gradients of a batch of answers, which are written first if there are none left."""
        started = perf_counter()
        loss = super().training_step(model, inputs, num_items_in_batch)
        self._step += 1
        self._seconds += perf_counter() - started
        if self._step % self.current_gradient_accumulation_steps == 0:
            self.note({"step_time": self._seconds})
            self._seconds = 0.0
        return loss

    def _prepare_inputs(self, inputs: Any) -> Any:
        """Return a batch of scored answers for prompts."""
        if not self.model.training:
            return self._written(inputs)
        steps = self.args.steps_per_generation
        assert steps is not None
        if self._step % (steps * self.args.num_iterations) == 0 or not self._batches:
            written = self._written(inputs)
            order = randperm(len(inputs)).to(self.args.device)
            parts = [each.tolist() for each in order.chunk(steps)]
            self._batches = [
                {name: each[part] if isinstance(each, Tensor) else each for name, each in written.items()}
                for part in parts
            ]
        return self._batches[self._step % steps]

    # --------------------------------------------------------------------------------------------------------- answers

    def _written(self, samples: list[Sample]) -> dict[str, Any]:
        """Return answers to prompts, with what the loss needs to know of them."""
        args = self.args
        answers = self._answer(samples)
        advantages = self._advantages(samples, answers)
        mask = answers.mask
        if args.mask_truncated_completions:
            mask = mask * tensor(~answers.is_cut).to(mask.device, mask.dtype).unsqueeze(1)
        batch = {
            "input_ids": joined(answers.prompt_ids, answers.ids),
            "attention_mask": joined(answers.prompt_mask, answers.mask),
            "mask": mask.float(),
            "advantages": tensor(advantages.astype(np.float32)).to(args.device).unsqueeze(1),
            "tokens": float(mask.sum().item()),
        }
        steps = args.steps_per_generation
        assert steps is not None
        with no_grad(), self.compute_loss_context_manager():
            if args.gradient_accumulation_steps % (steps * args.num_iterations):
                batch["old"] = self._scores(self.model, batch).log_probs
            if args.beta:
                batch["reference"] = self._reference(batch)
        return batch

    def _answer(self, samples: list[Sample]) -> Answers:
        args, tokenizer = self.args, self.encoder.tokenizer
        pad, end = tokenizer.pad_token_id, tokenizer.eos_token_id
        ids, mask = (each.to(args.device) for each in left_padded([self._prompt_ids(each) for each in samples], pad))
        options: dict[str, Any] = {
            "max_new_tokens": args.max_completion_length,
            "do_sample": True,
            **{name: getattr(args, name) for name in SAMPLING},
            "pad_token_id": pad,
            "bos_token_id": tokenizer.bos_token_id,
            "eos_token_id": end,
            **(args.generation_kwargs or {}),
        }
        was_training = self.model.training
        self.model.eval()
        with no_grad():
            written = self.model.generate(input_ids=ids, attention_mask=mask, **options)
        self.model.train(was_training)
        rows = written[:, ids.shape[1] :].tolist()
        return Answers.of(ids, mask, rows, pad, end, args.multiple)

    def _prompt_ids(self, sample: Sample) -> list[int]:
        if is_conversational(sample):
            variables = self.args.chat_template_kwargs or {}
            return list(
                self.encoder.chat(sample["prompt"], sample, add_generation_prompt=True, **variables)["input_ids"]
            )
        return self.encoder.text(sample["prompt"])

    def _advantages(self, samples: list[Sample], answers: Answers) -> Any:
        """Return the advantages (B,) of answers, and note the metrics of lengths and rewards."""
        prompts, rows = [each["prompt"] for each in samples], answers.rows()
        texts = self.encoder.tokenizer.batch_decode(rows, skip_special_tokens=True)
        completions = as_answers(prompts, texts)
        names = dict.fromkeys(name for each in samples for name in each if name != "prompt")
        arguments: dict[str, Any] = {name: [each.get(name) for each in samples] for name in names}
        arguments |= {"prompts": prompts, "completions": completions, "completion_ids": rows}
        arguments |= {"trainer_state": self.state, "log_metric": lambda name, value: self.note({name: float(value)})}
        arguments["log_extra"] = lambda column, values: None  # columns of a table that is not made
        rewards = rewards_of(self.reward_funcs, arguments, len(samples))
        scale = str(self.args.scale_rewards)
        advantages, spread = advantages_of(rewards, self.reward_weights, self._group(), scale)
        self._note_lengths(rows, answers)
        for column, function in enumerate(self.reward_funcs):
            name = f"rewards/{name_of(function)}"
            given = rewards[:, column]
            self.note({f"{name}/mean": float(np.nanmean(given)), f"{name}/std": float(deviation(given))})
        total = total_of(rewards, self.reward_weights)
        self.note({"reward": float(np.nanmean(total)), "reward_std": float(deviation(total))})
        self.note({"frac_reward_zero_std": float(np.isclose(spread, 0).mean())})
        self._shown = prompts[0], completions[0]
        return advantages

    def _note_lengths(self, rows: list[list[int]], answers: Answers) -> None:
        lengths = np.asarray([len(row) for row in rows], np.float64)
        ended = lengths[~answers.is_cut] if (~answers.is_cut).any() else np.zeros(1)
        self.note_tokens(answers.prompt_mask.sum().item() + lengths.sum())
        self.note({"completions/clipped_ratio": float(answers.is_cut.mean())})
        for name, values in (("length", lengths), ("terminated_length", ended)):
            found = {"mean": values.mean(), "min": values.min(), "max": values.max()}
            self.note({f"completions/{kind}_{name}": float(value) for kind, value in found.items()})

    def log(self, logs: dict[str, Any], start_time: float | None = None) -> None:
        """Log the means of the metrics, and with `log_completions` print a prompt and an answer."""
        super().log(logs, start_time)
        if self.args.log_completions and self._shown is not None:
            prompt, completion = self._shown
            print(f"step {self.state.global_step}\nprompt: {prompt}\nanswer: {completion}")

    # ------------------------------------------------------------------------------------------------------------ loss

    def _scores(self, model: Any, batch: dict[str, Any]) -> TokenScores:
        """Return what a model says of the tokens of answers, at the temperature they were drawn with."""
        ids, mask = batch["input_ids"], batch["mask"]
        kept = mask.shape[1]
        logits = model(
            input_ids=ids, attention_mask=batch["attention_mask"], logits_to_keep=kept + 1, use_cache=False
        ).logits
        labels = ids[:, -kept - 1 :].masked_fill(
            joined(mask[:, :1] * 0, batch["attention_mask"][:, -kept:]).eq(0), IGNORED
        )
        return token_scores(logits / self.args.temperature, labels)

    def _reference(self, batch: dict[str, Any]) -> Tensor:
        with referring(self.model, self.ref_model) as reference:
            return self._scores(reference, batch).log_probs

    def loss_of(self, model: Module, batch: dict[str, Any]) -> Tensor:
        """Return the loss of a batch of answers."""
        args = self.args
        mask, advantages = batch["mask"], batch["advantages"]
        scores = self._scores(model, batch)
        log_probs = scores.log_probs
        log_ratio = log_probs - batch.get("old", log_probs.detach())
        if args.importance_sampling_level == "sequence":
            log_ratio = ((log_ratio * mask).sum(-1) / mask.sum(-1).clamp(min=1)).unsqueeze(-1)
        high = args.epsilon if args.epsilon_high is None else args.epsilon_high
        with nullcontext() if args.entropy_coef else no_grad():
            entropy = scores.entropy()
        step = Step(
            log_probs,
            log_ratio.exp(),
            advantages,
            args.epsilon,
            high,
            args.delta,
            (args.sapo_temperature_pos, args.sapo_temperature_neg),
        )
        loss = TOKEN_LOSSES[args.loss_type](step)
        counted = mask
        if args.top_entropy_quantile < 1:
            counted = self._uncertain(entropy, mask)
            loss = loss * counted
        if args.beta:
            apart = batch["reference"] - log_probs
            divergence = apart.exp() - apart - 1
            divergence = divergence * step.ratio if args.use_bias_correction_kl else divergence
            loss = loss + args.beta * divergence
            self.note({"kl": _mean(divergence, mask)})
        accumulated = self.current_gradient_accumulation_steps if self.model.training else 1
        share = accumulated / (args.steps_per_generation or 1) if self.model.training else 1
        sizes = Sizes(accumulated, args.max_completion_length or 1, batch["tokens"] * share)
        total = MEANS[args.loss_type](loss, mask, sizes)
        if args.entropy_coef:
            self.note({"policy_loss": (total * accumulated).item(), "entropy_coef": args.entropy_coef})
            bonus = (entropy * counted).sum() / counted.sum().clamp(min=1)
            total = total - args.entropy_coef * bonus / accumulated
        self.note({"entropy": _mean(entropy, mask)})
        self._note_ratios(step, mask)
        return total

    def _uncertain(self, entropy: Tensor, mask: Tensor) -> Tensor:
        """Return the mask of the tokens whose entropy is among the greatest."""
        values = entropy[mask.bool()]
        if not len(values):
            return mask
        return mask * entropy.ge(values.quantile(1 - self.args.top_entropy_quantile)).float()

    def _note_ratios(self, step: Step, mask: Tensor) -> None:
        ratio, better = step.ratio.detach(), step.advantages.gt(0).float()
        if step.most is not None:
            ratio = ratio.clamp(max=step.most)
        if self.args.loss_type == "cispo":
            self.note({"cispo_clip_ratio": _mean(ratio.gt(step.high).float() * better, mask)})
        elif self.args.loss_type != "sapo":
            low = ratio.lt(1 - step.low).float() * step.advantages.lt(0).float()
            high = ratio.gt(1 + step.high).float() * better
            self.note({"clip_ratio/low_mean": _mean(low, mask), "clip_ratio/high_mean": _mean(high, mask)})
            self.note({"clip_ratio/region_mean": _mean(low + high, mask)})
            self.note({"clip_ratio/low_min": _means(low, mask).min().item()})
            self.note({"clip_ratio/high_max": _means(high, mask).max().item()})


def _mean(values: Tensor, mask: Tensor) -> float:
    """Return the mean of values (B, T) over a mask, or of values (B, 1)."""
    if values.shape[1] == 1:
        return float(values.mean().item())
    return float(((values * mask).sum() / mask.sum().clamp(min=1)).item())


def _means(values: Tensor, mask: Tensor) -> Tensor:
    """Return the mean of each row."""
    return values.squeeze(1) if values.shape[1] == 1 else (values * mask).sum(-1) / mask.sum(-1).clamp(min=1)
