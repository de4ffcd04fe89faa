"""DPOTrainer: trains a language model on preferred answers (direct preference optimization)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from tallow.core.creation import tensor
from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError
from tallow.nn.module import Module
from tallow.tape.modes import no_grad
from tallow.transformers.trainer_callback import TrainerCallback
from tallow.trl.base import MethodConfig, MethodTrainer, referring, without_dropout
from tallow.trl.dpo_losses import DIVERGENCES, LOSSES, OF_SCORES, Pairs
from tallow.trl.preferences import PairScores, collate_pairs, encode_pair, pair_scores, reward_metrics
from tallow.trl.samples import Sample

REFERENCES = ("ref_chosen_logps", "ref_rejected_logps")


@dataclass(repr=False)
class DPOConfig(MethodConfig):
    """The arguments of a DPOTrainer.

    Attributes:
        disable_dropout: compute without dropout, as the reference does.
        max_length: of prompt and answer in tokens, whose end is cut off; None means no limit.
        precompute_ref_log_probs: compute what the reference says of all samples first, and then let it go.
        precompute_ref_batch_size: samples of a forward pass of that; None means as in training.
        loss_type: a name of `dpo_losses.LOSSES`, or several, which are added.
        loss_weights: of several losses; None means 1 each.
        ld_alpha: weight of the tokens of an answer that is longer than the other (arXiv:2409.06411); None means 1.
        f_divergence_type: "reverse_kl", "forward_kl", "js_divergence" or "alpha_divergence" (arXiv:2309.16240).
        f_alpha_divergence_coef: α of "alpha_divergence".
        label_smoothing: probability that a preference is wrong, for "robust", "aot" and "exo_pair".
        beta: how strongly the model is kept near the reference.
        use_weighting: weigh pairs by their probability under the model (WPO, arXiv:2406.11827).
        discopop_tau: temperature of "discopop".
        sync_ref_model: move the reference towards the model every `ref_model_sync_steps` steps, by
            `ref_model_mixup_alpha` (TR-DPO, arXiv:2404.09656).

    Raises:  as MethodConfig; ArgumentError for values that do not fit each other
    """

    learning_rate: float = 1e-6
    disable_dropout: bool = True
    max_length: int | None = 1024
    truncation_mode: str = "keep_start"
    precompute_ref_log_probs: bool = False
    precompute_ref_batch_size: int | None = None
    loss_type: list[str] | str = field(default_factory=lambda: ["sigmoid"])
    loss_weights: list[float] | None = None
    ld_alpha: float | None = None
    f_divergence_type: str = "reverse_kl"
    f_alpha_divergence_coef: float = 0.5
    label_smoothing: float = 0.0
    beta: float = 0.1
    use_weighting: bool = False
    discopop_tau: float = 0.05
    sync_ref_model: bool = False
    ref_model_mixup_alpha: float = 0.6
    ref_model_sync_steps: int = 512

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.loss_type, str):
            self.loss_type = [self.loss_type]
        if unknown := [name for name in self.loss_type if name not in LOSSES]:
            raise ArgumentError(f"loss_type={unknown[0]!r:.80}", hint=f"pass one of {', '.join(LOSSES)}")
        if self.loss_weights is not None and len(self.loss_weights) != len(self.loss_type):
            raise ArgumentError(f"loss_weights has {len(self.loss_weights)} weights for {len(self.loss_type)} losses")
        self.one_of("f_divergence_type", DIVERGENCES)
        self.one_of("truncation_mode", ("keep_start", "keep_end"))
        others = [name for name in self.loss_type if name not in OF_SCORES]
        if self.f_divergence_type != "reverse_kl" and others:
            raise ArgumentError(f"f_divergence_type={self.f_divergence_type!r} with loss_type={others[0]!r}")
        if "robust" in self.loss_type and not 0 <= self.label_smoothing < 0.5:
            raise ArgumentError(f"label_smoothing={self.label_smoothing} with 'robust'", hint="pass 0 to below 0.5")
        if "exo_pair" in self.loss_type and not 0 < self.label_smoothing < 1:
            raise ArgumentError(f"label_smoothing={self.label_smoothing} with 'exo_pair'", hint="pass 1e-3")
        if self.ld_alpha is not None and not 0 <= self.ld_alpha <= 1:
            raise ArgumentError(f"ld_alpha={self.ld_alpha}", hint="pass 0 to 1")
        if self.sync_ref_model and self.precompute_ref_log_probs:
            raise ArgumentError("sync_ref_model with precompute_ref_log_probs", hint="use one of them")


class DPOTrainer(MethodTrainer):
    """Trains a language model so that it prefers one answer to another, without going far from a reference.

    Samples: {"prompt": ..., "chosen": ..., "rejected": ...}, texts or messages; without a prompt it is the common
    beginning of the answers.

    Args:
        ref_model: the reference; None means the model as it is now, or with `peft_config` the model without an adapter.
        others: as MethodTrainer

    Source:  Rafailov et al. 2023, arXiv:2305.18290; trl 1.16, `DPOTrainer`
    """

    config_class: ClassVar[type[MethodConfig]] = DPOConfig
    args: DPOConfig

    def __init__(self, model: Any = None, ref_model: Any = None, args: Any = None, *rest: Any, **others: Any) -> None:
        if ref_model is not None and ref_model is model:
            raise ArgumentError("ref_model is the model itself", hint="pass None for a copy of it")
        super().__init__(model, args, *rest, **others)
        if self.args.disable_dropout:
            without_dropout(self.model)
        own = ref_model is None
        self.ref_model = self._reference_of_model() if own else ref_model.to(self.args.device).eval()
        if self.args.sync_ref_model:
            if self.ref_model is None:
                raise ArgumentError("sync_ref_model with an adapter", hint="train the whole model, or leave it out")
            self.add_callback(SyncReference(self.ref_model, self.args))
        if self.args.precompute_ref_log_probs:
            size = self.args.precompute_ref_batch_size or self.args.train_batch_size
            parts = self.eval_dataset.values() if isinstance(self.eval_dataset, dict) else [self.eval_dataset]
            for rows in (self.train_dataset, *parts):
                self._precompute(rows or [], size)
            self.ref_model = None

    def encode(self, sample: Sample) -> Sample | None:
        """Return the ids of the prompt and of both answers; None if the prompt alone is as long as a row."""
        made = encode_pair(self.encoder, sample)
        limit = self.args.max_length
        cut = limit is not None and self.args.truncation_mode == "keep_start" and len(made["prompt_ids"]) >= limit
        return None if cut else made

    def collate(self, samples: list[Sample]) -> dict[str, Tensor]:
        """Return a batch of chosen and then rejected answers, as `collate_pairs`."""
        args = self.args
        fill = self.encoder.tokenizer.pad_token_id
        batch = collate_pairs(samples, fill, args.max_length, args.truncation_mode == "keep_end", args.multiple)
        if REFERENCES[0] in samples[0]:
            batch |= {name: tensor([each[name] for each in samples]) for name in REFERENCES}
        return batch

    def _precompute(self, rows: list[Sample], size: int) -> None:
        """Note what the reference says of each sample in it."""
        for start in range(0, len(rows), size):
            part = rows[start : start + size]
            found = self._reference(self.model, self._prepare_inputs(self.collate(part)))
            for name, values in zip(REFERENCES, found.chunk(2), strict=True):
                for row, value in zip(part, values.tolist(), strict=True):
                    row[name] = value

    def _reference(self, model: Any, batch: dict[str, Tensor]) -> Tensor:
        """Return the log-probabilities (2 B,) that the reference gives to the answers."""
        if REFERENCES[0] in batch:
            return tensor([value for name in REFERENCES for value in batch[name].tolist()]).to(self.args.device)
        if self.ref_model is None and not self._has_new_adapter:
            raise ArgumentError(
                "precompute_ref_log_probs: the reference is gone, and has not seen these samples",
                hint="pass them as eval_dataset, or leave precompute_ref_log_probs out",
            )
        with no_grad(), referring(model, self.ref_model) as reference, self.compute_loss_context_manager():
            return self._sums(pair_scores(reference, batch))

    def _sums(self, scores: PairScores) -> Tensor:
        """Return the log-probability of each answer, with `ld_alpha` for what is longer than the other."""
        if self.args.ld_alpha is None:
            return scores.log_probs
        mask = scores.tokens.mask
        lengths = scores.lengths().chunk(2)
        shared = lengths[0].minimum(lengths[1]).repeat(2).unsqueeze(1)
        weight = mask.cumsum(dim=1).le(shared).float()
        return (scores.tokens.log_probs * (weight + (1 - weight) * self.args.ld_alpha)).sum(dim=1)

    def loss_of(self, model: Module, batch: dict[str, Tensor]) -> Tensor:
        """Return the loss of a batch of pairs."""
        args = self.args
        scores = pair_scores(model, batch)
        own, reference = self._sums(scores), self._reference(model, batch)
        chosen, rejected = own.chunk(2)
        chosen_reference, rejected_reference = reference.chunk(2)
        ratios = chosen - chosen_reference, rejected - rejected_reference
        score = DIVERGENCES[args.f_divergence_type]
        chosen_count = scores.lengths().chunk(2)[0].sum()
        # Lengths of answers count their first token even where no position predicts it.
        chosen_length, rejected_length = batch["completion_mask"].sum(dim=1).chunk(2)
        pairs = Pairs(
            chosen=chosen,
            rejected=rejected,
            chosen_reference=chosen_reference,
            rejected_reference=rejected_reference,
            chosen_score=score(ratios[0], args.f_alpha_divergence_coef),
            rejected_score=score(ratios[1], args.f_alpha_divergence_coef),
            chosen_length=chosen_length,
            rejected_length=rejected_length,
            chosen_mean=scores.tokens.log_probs.chunk(2)[0].sum() / chosen_count,
            beta=args.beta,
            smoothing=args.label_smoothing,
            tau=args.discopop_tau,
        )
        weights = args.loss_weights or [1.0] * len(args.loss_type)
        factor = self._pair_weights(scores) if args.use_weighting else 1.0
        losses = [(LOSSES[name](pairs) * factor).mean() for name in args.loss_type]
        loss: Tensor = sum((each * weight for each, weight in zip(losses, weights, strict=True)), start=tensor(0.0))
        self.note(scores.metrics())
        self.note(reward_metrics(*(args.beta * ratio.detach() for ratio in ratios)))
        self.note({"logps/chosen": chosen.mean().item(), "logps/rejected": rejected.mean().item()})
        self.note_tokens(batch["attention_mask"].sum().item())
        return loss

    def _pair_weights(self, scores: PairScores) -> Tensor:
        """Return the weights of pairs (B,) by eq. 2 of arXiv:2406.11827."""
        with no_grad():
            whole = scores.tokens.logits.log_softmax(dim=-1)
            aligned = (scores.tokens.log_probs - (2 * whole).logsumexp(dim=-1)) * scores.tokens.mask
            mean = aligned.sum(dim=1) / scores.lengths().clamp(min=1)
            chosen, rejected = mean.exp().chunk(2)
            return chosen * rejected


class SyncReference(TrainerCallback):
    """Moves the reference towards the model at intervals.  Source: TR-DPO, arXiv:2404.09656"""

    def __init__(self, reference: Module, args: DPOConfig) -> None:
        self.reference, self.every, self.share = reference, args.ref_model_sync_steps, args.ref_model_mixup_alpha

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Mix the weights after each interval."""
        if state.global_step % self.every:
            return
        with no_grad():
            for old, new in zip(self.reference.parameters(), kwargs["model"].parameters(), strict=True):
                if not new.requires_grad:
                    continue
                old.mul_(1 - self.share).add_(new.detach(), alpha=self.share)
