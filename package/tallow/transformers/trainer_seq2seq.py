"""Seq2SeqTrainer: a Trainer whose predictions are generated texts."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from tallow import transformers
from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError
from tallow.tape.modes import no_grad
from tallow.transformers.trainer import Trainer
from tallow.transformers.trainer_utils import PredictionOutput


class Seq2SeqTrainer(Trainer):
    """As Trainer; with `predict_with_generate`, evaluation and prediction call `generate`.

    Args:  as Trainer, with Seq2SeqTrainingArguments
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._generation: dict[str, Any] = {}
        config = getattr(self.args, "generation_config", None)
        if config is not None:
            self.model.generation_config = self.load_generation_config(config)

    @staticmethod
    def load_generation_config(gen_config_arg: Any) -> Any:
        """Return a GenerationConfig: a copy of one, or that of a folder or model."""
        kind = transformers.GenerationConfig
        return deepcopy(gen_config_arg) if isinstance(gen_config_arg, kind) else kind.from_pretrained(gen_config_arg)

    def evaluate(
        self,
        eval_dataset: Any = None,
        ignore_keys: list[str] | None = None,
        metric_key_prefix: str = "eval",
        **gen_kwargs: Any,
    ) -> dict[str, float]:
        """As `Trainer.evaluate`.  Args: gen_kwargs: of `generate`, in place of the arguments' and the model's"""
        self._generation = self._options(gen_kwargs)
        return super().evaluate(eval_dataset, ignore_keys, metric_key_prefix)

    def predict(
        self,
        test_dataset: Any,
        ignore_keys: list[str] | None = None,
        metric_key_prefix: str = "test",
        **gen_kwargs: Any,
    ) -> PredictionOutput:
        """As `Trainer.predict`.  Args: gen_kwargs: of `generate`, in place of the arguments' and the model's"""
        self._generation = self._options(gen_kwargs)
        return super().predict(test_dataset, ignore_keys, metric_key_prefix)

    def _options(self, given: dict[str, Any]) -> dict[str, Any]:
        options = {name: value for name, value in given.items() if value is not None}
        length = getattr(self.args, "generation_max_length", None)
        if length is not None and not options.keys() & {"max_length", "max_new_tokens"}:
            options["max_length"] = length
        beams = getattr(self.args, "generation_num_beams", None)
        return options if beams is None else {"num_beams": beams} | options

    def prediction_step(
        self,
        model: Any,
        inputs: Any,
        prediction_loss_only: bool,
        ignore_keys: list[str] | None = None,
        **gen_kwargs: Any,
    ) -> tuple[Tensor | None, Any, Any]:
        """Return the loss, the generated tokens and the labels of a batch, each None if there is none."""
        if not getattr(self.args, "predict_with_generate", False) or prediction_loss_only:
            return super().prediction_step(model, inputs, prediction_loss_only, ignore_keys)
        inputs = self._prepare_inputs(inputs)
        options = gen_kwargs or self._generation
        labels, decoder = inputs.get("labels"), inputs.get("decoder_input_ids")
        given = dict(inputs)
        if labels is not None and decoder is not None and labels.shape == decoder.shape:
            given = {name: each for name, each in inputs.items() if not name.startswith("decoder_")}
        given.pop("labels", None)
        tokens = model.generate(**given, **options)
        length = self._length(model, options)
        loss = None
        if labels is not None:
            with no_grad(), self.compute_loss_context_manager():
                outputs = model(**inputs)
                smoother = self.label_smoother
                loss = outputs[0] if smoother is None else smoother(outputs, labels)
            loss = loss.detach().mean()
        if self.args.prediction_loss_only:
            return loss, None, None
        return loss, self._pad_tensors_to_max_len(tokens, length), self._pad_tensors_to_max_len(labels, length)

    def _weight(self, size: int) -> int:
        """Return the same for every batch, also for a last one with fewer samples, as transformers does here."""
        return self.args.eval_batch_size

    @staticmethod
    def _length(model: Any, options: dict[str, Any]) -> int:
        """Return the length that generated tokens and labels are padded to."""
        config = getattr(model, "generation_config", None)
        if (limit := getattr(config, "max_length", None)) is not None:
            return int(limit)
        limit = options.get("max_new_tokens", getattr(config, "max_new_tokens", None))
        return 20 if limit is None else max(int(limit) + 1, 20)

    def _pad_tensors_to_max_len(self, tensor: Any, max_length: int) -> Any:
        if tensor is None or tensor.shape[-1] >= max_length:
            return tensor
        for owner in (self.processing_class, self.model.config):
            pad = getattr(owner, "pad_token_id", None)
            pad = getattr(owner, "eos_token_id", None) if pad is None else pad
            if pad is not None:
                padded = tensor.new_full((tensor.shape[0], max_length), pad)
                padded[:, : tensor.shape[-1]] = tensor
                return padded
        raise ArgumentError("there is no token to pad with", hint="set model.config.pad_token_id")
