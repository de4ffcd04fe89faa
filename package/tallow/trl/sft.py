"""SFTTrainer: trains a language model on texts, or on the answers to prompts (supervised fine-tuning)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, ClassVar

import numpy as np

from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError
from tallow.nn.module import Module
from tallow.tape.modes import no_grad
from tallow.trl.base import Encoded, MethodConfig, MethodTrainer
from tallow.trl.log_probs import IGNORED, token_scores
from tallow.trl.packing import STRATEGIES, pack_dataset
from tallow.trl.rows import padded, right_padded
from tallow.trl.samples import Sample, is_conversational

LOSSES = ("nll", "dft")


@dataclass(repr=False)
class SFTConfig(MethodConfig):
    """The arguments of an SFTTrainer.

    Attributes:
        dataset_text_field: the name of the text of samples that are texts.
        eos_token: the token that ends texts and answers; None means the tokenizer's.
        max_length: of a sample in tokens, whose end is cut off; None means no limit.
        shuffle_dataset: shuffle the samples once, before they are packed.
        packing: put several samples into a row of at most `max_length` tokens; none sees another.
        packing_strategy: "bfd", "bfd_split" or "wrapped", as in `pack_dataset`.
        padding_free: write the samples of a batch one after another, as one row.
        eval_packing: as `packing`, for evaluation; None means the same.
        completion_only_loss: learn answers alone; None means so if samples have a prompt and a completion.
        assistant_only_loss: learn the answers in conversations alone, which the chat template marks by
            {% generation %}.
        loss_type: "nll", or "dft": each token's loss times its probability (arXiv:2508.05629).

    Raises:  as MethodConfig
    """

    learning_rate: float = 2e-5
    dataset_text_field: str = "text"
    dataset_kwargs: dict[str, Any] | None = None
    eos_token: str | None = None
    max_length: int | None = 1024
    truncation_mode: str = "keep_start"
    shuffle_dataset: bool = False
    packing: bool = False
    packing_strategy: str = "bfd"
    padding_free: bool = False
    eval_packing: bool | None = None
    completion_only_loss: bool | None = None
    assistant_only_loss: bool = False
    loss_type: str = "nll"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.loss_type == "chunked_nll":
            self.loss_type = "nll"
        self.one_of("loss_type", LOSSES)
        self.one_of("packing_strategy", STRATEGIES)
        self.one_of("truncation_mode", ("keep_start", "keep_end"))
        if unknown := set(self.dataset_kwargs or ()) - {"skip_prepare_dataset"}:
            raise ArgumentError(
                f"dataset_kwargs has {', '.join(sorted(unknown))}", hint="it takes skip_prepare_dataset"
            )
        if (self.packing or self.eval_packing) and self.max_length is None:
            raise ArgumentError("packing needs max_length, the length of a row")


class SFTTrainer(MethodTrainer):
    """Trains a language model on texts, on prompts with completions, or on conversations.

    Samples: {"text": ...}, {"prompt": ..., "completion": ...}, {"messages": [...]}, or ids: {"input_ids": ...} with
    "labels", where -100 does not count. Prompts and completions are texts or messages. Texts and completions that do
    not end with the end token get it.

    Args:
        formatting_func: function from a sample to its text.
        others: as MethodTrainer

    Source:  trl 1.16, `SFTTrainer`

    Example:
        samples = [{"prompt": "The capital of Peru: ", "completion": "Lima"}]
        SFTTrainer("out/model", SFTConfig("out", max_steps=10), train_dataset=samples).train()
    """

    config_class: ClassVar[type[MethodConfig]] = SFTConfig
    args: SFTConfig

    def __init__(
        self,
        model: Any = None,
        args: Any = None,
        *positional: Any,
        formatting_func: Callable[[Sample], str] | None = None,
        **others: Any,
    ) -> None:
        self._format = formatting_func
        super().__init__(model, args, *positional, **others)
        self.loss_is_scaled_for_ga = None  # the loss is divided by the labels of all batches of a step
        if self.args.eos_token is not None:
            self._end_texts_with(self.encoder.tokenizer.eos_token_id)

    def _end_texts_with(self, token: int) -> None:
        """Let the model end the texts that it writes with a token, besides those that did so before."""
        given = self.model.generation_config.eos_token_id
        ends = [given] if isinstance(given, int) else list(given or ())
        self.model.config.eos_token_id = token
        if token not in ends:
            self.model.generation_config.eos_token_id = [token, *ends]

    def _prepared(self, dataset: Any, kind: str) -> Any:
        args = self.args
        if dataset is None or (args.dataset_kwargs or {}).get("skip_prepare_dataset"):
            return dataset
        packs = args.eval_packing if kind == "eval" and args.eval_packing is not None else args.packing
        self._length = None if packs else args.max_length  # of the samples that are encoded now
        rows = super()._prepared(dataset, kind)
        if args.shuffle_dataset:
            rows = Encoded(rows[i] for i in np.random.default_rng(args.seed).permutation(len(rows)))
        if not packs:
            return rows
        assert args.max_length is not None
        return Encoded(pack_dataset(rows, args.max_length, args.packing_strategy))

    def encode(self, sample: Sample) -> Sample | None:
        """Return the ids and labels of a sample; None if no label counts."""
        made = self._encoded(sample)
        if self._length is not None:
            kept = slice(-self._length, None) if self.args.truncation_mode == "keep_end" else slice(self._length)
            made = {name: values[kept] for name, values in made.items()}
        # Nothing predicts the first token.
        return made if any(label != IGNORED for label in made["labels"][1:]) else None

    def _encoded(self, sample: Sample) -> Sample:
        if "input_ids" in sample:
            ids = list(sample["input_ids"])
            masks = [sample[name] for name in self._masks() if name in sample]
            labels = sample.get("labels", [i if all(bits) else IGNORED for i, *bits in zip(ids, *masks, strict=True)])
            if len(labels) != len(ids):
                raise ArgumentError(f"a sample has {len(ids)} input_ids and {len(labels)} labels", hint="one for each")
            return {"input_ids": ids, "labels": list(labels)}
        if self._format is not None:
            sample = {self.args.dataset_text_field: self._format(sample)}
        if "prompt" in sample:
            return self._of_completion(sample)
        if self.args.completion_only_loss:
            raise ArgumentError(
                f"completion_only_loss needs samples with a prompt and a completion; one has {', '.join(sample)}",
                hint="for conversations pass assistant_only_loss=True",
            )
        if is_conversational(sample):
            found = self.encoder.chat(
                sample["messages"], sample, return_assistant_tokens_mask=self.args.assistant_only_loss
            )
            ids = list(found["input_ids"])
            return {"input_ids": ids, "labels": self._answers(ids, found)}
        name = self.args.dataset_text_field
        if name not in sample:
            raise ArgumentError(
                f"a sample has {', '.join(sample) or 'no parts'}",
                hint=f"it needs {name}, messages, prompt and completion, or input_ids",
            )
        ids = self.encoder.text(self.encoder.with_end(sample[name]))
        return {"input_ids": ids, "labels": list(ids)}

    def _masks(self) -> list[str]:
        return ["assistant_masks", *(["completion_mask"] if self.args.completion_only_loss is not False else [])]

    def _answers(self, ids: list[int], found: Any) -> list[int]:
        """Return the labels of a conversation, of answers alone where they are asked for."""
        if not self.args.assistant_only_loss:
            return list(ids)
        marks = found["assistant_masks"]
        if not any(marks):
            raise ArgumentError(
                "assistant_only_loss: the chat template marks no answer in a conversation",
                hint="use a template with {% generation %}, or samples with prompt and completion",
            )
        return [i if mark else IGNORED for i, mark in zip(ids, marks, strict=True)]

    def _of_completion(self, sample: Sample) -> Sample:
        (found,) = self.encoder.answers(sample, ["completion"])
        ids = found.prompt + found.completion
        labels = list(ids)
        if self.args.assistant_only_loss and is_conversational(sample):
            whole = self.encoder.chat(
                sample["prompt"] + sample["completion"], sample, return_assistant_tokens_mask=True
            )
            labels = self._answers(ids, whole)
        if self.args.completion_only_loss is not False:
            labels[: len(found.prompt)] = [IGNORED] * len(found.prompt)
        return {"input_ids": ids, "labels": labels}

    def collate(self, samples: list[Sample]) -> dict[str, Tensor]:
        """Return `input_ids` and `labels` (B, T), with `attention_mask`; packed samples as one row with positions."""
        rows = [list(each["input_ids"]) for each in samples]
        labels = [list(each["labels"] if "labels" in each else each["input_ids"]) for each in samples]
        multiple = self.args.multiple
        fill = self.encoder.tokenizer.pad_token_id
        lengths = [each.get("seq_lengths", [len(each["input_ids"])]) for each in samples]
        if not self.args.padding_free and all(len(each) == 1 for each in lengths):
            padded_ids, mask = right_padded(rows, fill, multiple)
            return {"input_ids": padded_ids, "labels": padded(labels, IGNORED, multiple), "attention_mask": mask}
        sizes = [size for each in lengths for size in each]
        joined = [label for row in labels for label in row]
        for start in accumulate(sizes[:-1], initial=0):
            joined[start] = IGNORED  # the end of the sample before does not predict it
        ids = [token for row in rows for token in row]
        places = [place for size in sizes for place in range(size)]
        return {
            "input_ids": padded([ids], fill, multiple),
            "labels": padded([joined], IGNORED, multiple),
            "position_ids": padded([places], 0, multiple),
        }

    def compute_loss(
        self, model: Module, inputs: dict[str, Any], return_outputs: bool = False, num_items_in_batch: Any = None
    ) -> Any:
        """Return the part of a batch in the mean loss over the labels of a step, and note the metrics."""
        loss = self.loss_of(model, inputs)
        if num_items_in_batch is not None:
            labels = inputs["labels"][:, 1:].ne(IGNORED).sum()
            loss = loss * (labels.clamp(min=1) / num_items_in_batch.clamp(min=1))
        return (loss, {}) if return_outputs else loss

    def loss_of(self, model: Module, batch: dict[str, Tensor]) -> Tensor:
        """Return the mean loss of the labels that count."""
        labels = batch["labels"]
        inputs = {name: value for name, value in batch.items() if name != "labels"}
        scores = token_scores(model(**inputs, use_cache=False).logits, labels)
        losses = -scores.log_probs
        if self.args.loss_type == "dft":
            losses = losses * scores.log_probs.exp().detach()
        with no_grad():
            self.note({"entropy": scores.mean(scores.entropy()), "mean_token_accuracy": scores.mean(scores.is_top1())})
        mask = batch.get("attention_mask")
        self.note_tokens(batch["input_ids"].numel() if mask is None else mask.sum().item())
        return losses.sum() / scores.mask.sum().clamp(min=1)
