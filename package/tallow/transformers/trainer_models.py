"""Rules of a model that a Trainer needs: the names of its labels, the scale of its loss; noise on embeddings."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, Self

from tallow.core.tensor import Tensor
from tallow.nn.module import Module
from tallow.peft.peft_model import PeftModel


class LossRules(NamedTuple):
    """The labels of a model, and the scale of its loss.

    Attributes:
        arguments: the names of the arguments of its forward.
        label_names: those that are labels.
        accepts_loss_kwargs: its forward takes `num_items_in_batch`, the number of labels that the loss is divided by.
        is_causal: the label of a position is that of the next one.
        counts_next: labels are counted without the first of each row, which no position predicts. As in transformers,
            GPT-2's are counted with it.
        main_input: the name of the tokens, or of what is in their place.
    """

    arguments: list[str]
    label_names: list[str]
    accepts_loss_kwargs: bool
    is_causal: bool
    counts_next: bool
    main_input: str

    @classmethod
    def of(cls, model: Module, label_names: list[str] | None = None) -> Self:
        """Return the rules of a model; of the model with adapters, those of the model within.

        Args:  label_names: None means the arguments with "label" in their names
        """
        inner = model.get_base_model() if isinstance(model, PeftModel) else model
        parameters = inspect.signature(inner.forward).parameters
        arguments, kind = list(parameters), type(inner).__name__
        marks = ("start_positions", "end_positions") if "QuestionAnswering" in kind else ()
        labels = [name for name in arguments if "label" in name or name in marks]
        rest = any(each.kind == inspect.Parameter.VAR_KEYWORD for each in parameters.values())
        paired = getattr(getattr(inner, "config", None), "is_encoder_decoder", False)
        return cls(
            arguments,
            labels if label_names is None else label_names,
            bool(getattr(inner, "accepts_loss_kwargs", rest or "num_items_in_batch" in arguments)),
            kind.endswith(("ForCausalLM", "LMHeadModel")) and not paired,
            kind.endswith("ForCausalLM") and not paired,
            getattr(inner, "main_input_name", "input_ids"),
        )

    def flops_a_token(self, model: Module) -> float:
        """Return the operations of a training step for each token: 6 for each weight outside of embeddings."""
        embeddings = {id(each) for each in _embeddings(model)}
        return 6.0 * sum(each.numel() for each in model.parameters() if id(each) not in embeddings)


def _embeddings(model: Module) -> Iterator[Any]:
    for module in model.modules():
        if type(module).__name__.endswith("Embedding") and isinstance(getattr(module, "weight", None), Tensor):
            yield module.weight


@contextmanager
def embedding_noise(model: Any, alpha: float | None) -> Iterator[None]:
    """Return a context in which embeddings of tokens have uniform noise while training; None means no noise.

    Source:  Jain et al. 2023, arXiv:2310.05914
    """
    if alpha is None:
        yield
        return

    def add(module: Module, inputs: Any, output: Tensor) -> Tensor:
        if not module.training:
            return output
        size = alpha / (output.shape[1] * output.shape[2]) ** 0.5
        return output + output.new_empty(output.shape).uniform_(-size, size)

    handle = model.get_input_embeddings().register_forward_hook(add)
    try:
        yield
    finally:
        handle.remove()
