"""The parts that trl's trainers share: arguments, the model and its adapter, samples, means of metrics."""

from __future__ import annotations

from abc import abstractmethod
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, ClassVar

from tallow.core.tensor import Tensor
from tallow.data import DataLoader
from tallow.errors import ArgumentError, UnsupportedError
from tallow.nn.dropout import Dropout
from tallow.nn.module import Module
from tallow.peft.config import LoraConfig
from tallow.peft.peft_model import get_peft_model
from tallow.tape.modes import no_grad
from tallow.transformers.auto import AutoModelForCausalLM
from tallow.transformers.auto_tokenizer import AutoTokenizer
from tallow.transformers.trainer import Trainer
from tallow.transformers.trainer_utils import has_length, set_seed
from tallow.transformers.training_args import ABSENT, NEUTRAL, TrainingArguments
from tallow.transformers.without_effect import Neutral
from tallow.trl.samples import Encoder, Sample, samples_of


@dataclass(repr=False)
class MethodConfig(TrainingArguments):
    """TrainingArguments with trl's defaults. `bf16` is on by default on a GPU only: elsewhere it is slower.

    Attributes:
        model_init_kwargs: arguments of `from_pretrained`, for a trainer that gets the name of a model.
        pad_to_multiple_of: pad rows to a multiple of it; "auto" means no padding but to the longest row.
        pad_token: the token to pad with; None means the tokenizer's, or its end token.

    Raises:  as TrainingArguments
    """

    neutral: ClassVar[Neutral] = {
        **NEUTRAL,
        **dict.fromkeys(("dataset_num_proc", "activation_offloading", "trust_remote_code"), (None, False)),
    }
    absent: ClassVar[Mapping[str, str]] = {
        **ABSENT,
        "router_aux_loss_coef": "leave it out; the loss of routers is not added",
        "label_smoothing_factor": "leave it out; the loss is the method's own",
    }

    logging_steps: float = 10
    activation_checkpointing: bool = True
    bf16: bool | None = None  # type: ignore[assignment]  # a bool after the start
    model_init_kwargs: dict[str, Any] | None = None
    router_aux_loss_coef: float | None = None
    pad_to_multiple_of: int | str | None = "auto"
    pad_token: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.bf16 is None:
            self.bf16 = self.device.type == "cuda"
        if self.pad_to_multiple_of == "auto":
            self.pad_to_multiple_of = None

    @property
    def multiple(self) -> int | None:
        """The number that lengths of rows are padded to a multiple of."""
        return None if self.pad_to_multiple_of is None else int(self.pad_to_multiple_of)

    def one_of(self, name: str, choices: Any) -> None:
        """Raise ArgumentError if an argument is none of the choices."""
        if getattr(self, name) not in choices:
            raise ArgumentError(f"{name}={getattr(self, name)!r:.80}", hint=f"pass one of {', '.join(choices)}")


class Encoded(list[Any]):
    """Samples that are encoded."""


# Arguments of Trainer that the loss and the metrics of a method have no place for.
OF_OTHER_LOSSES = ("compute_loss_func", "compute_metrics", "preprocess_logits_for_metrics")


class MethodTrainer(Trainer):
    """The base of trainers that compute their own loss from the results of a model.

    Args:
        model: a model, or the name or folder of one.
        args: of the trainer's `config_class`.
        train_dataset, eval_dataset: samples; eval_dataset may be a dictionary of them.
        processing_class: the tokenizer; None means that of the model's folder.
        peft_config: trains an adapter in place of the model's weights.
        others: as Trainer

    Raises:  ArgumentError; UnsupportedError for a loss or metrics of the caller's
    """

    config_class: ClassVar[type[MethodConfig]]
    auto_class: ClassVar[Any] = AutoModelForCausalLM

    def __init__(
        self,
        model: Any = None,
        args: Any = None,
        data_collator: Callable[[list[Any]], Any] | None = None,
        train_dataset: Any = None,
        eval_dataset: Any = None,
        processing_class: Any = None,
        peft_config: LoraConfig | None = None,
        **others: Any,
    ) -> None:
        if model is None:
            raise ArgumentError(f"{type(self).__name__} needs a model")
        for name in OF_OTHER_LOSSES:
            if others.get(name) is not None:
                raise UnsupportedError(
                    f"{type(self).__name__}: {name}", hint="leave it out; the loss and the metrics are the method's own"
                )
        folder = model if isinstance(model, str | Path) else getattr(model.config, "_name_or_path", "")
        args = self._arguments(args, folder)
        set_seed(args.seed)
        if isinstance(model, str | Path):
            model = self.auto_class.from_pretrained(model, **self._model_options(args))
        elif args.model_init_kwargs:
            raise ArgumentError("model_init_kwargs with a model", hint="leave it out, or pass the model's name")
        self._has_new_adapter = peft_config is not None
        if peft_config is not None:
            model = get_peft_model(model, peft_config)
        tokenizer = AutoTokenizer.from_pretrained(folder) if processing_class is None else processing_class
        self._set_tokens(tokenizer, args)
        self.encoder = Encoder(tokenizer)
        self._metrics: dict[str, defaultdict[str, list[float]]] = {
            "train": defaultdict(list),
            "eval": defaultdict(list),
        }
        self._tokens_seen = 0
        args.remove_unused_columns = False  # encoded samples have the columns that the loss reads, and no others
        self.args = args
        super().__init__(
            model,
            args,
            self.collate if data_collator is None else data_collator,
            self._prepared(train_dataset, "train"),
            self._prepared_parts(eval_dataset),
            tokenizer,
            **others,
        )
        self.label_names = []
        self.loss_is_scaled_for_ga = False

    def _arguments(self, args: Any, folder: Any) -> MethodConfig:
        kind = self.config_class
        if args is None:
            return kind(f"{Path(folder).name or 'model'}-{kind.__name__.removesuffix('Config')}")
        if isinstance(args, kind):
            return args
        if isinstance(args, TrainingArguments):
            known = {each.name: getattr(args, each.name) for each in fields(args)}
            return kind(**known)
        raise ArgumentError(f"args is a {type(args).__name__}", hint=f"pass a {kind.__name__}")

    def _set_tokens(self, tokenizer: Any, args: Any) -> None:
        """Give a tokenizer the end token and the padding that the arguments say."""
        for name in ("eos_token", "pad_token"):
            token = getattr(args, name, None)
            if token is None:
                continue
            if token not in tokenizer.get_vocab():
                raise ArgumentError(f"{name}={token!r:.80} is no token of the tokenizer")
            setattr(tokenizer, name, token)
        if tokenizer.pad_token is None:
            tokenizer.pad_token = tokenizer.eos_token

    def _model_options(self, args: Any) -> dict[str, Any]:
        return dict(args.model_init_kwargs or {})

    # --------------------------------------------------------------------------------------------------------- samples

    @abstractmethod
    def encode(self, sample: Sample) -> Sample | None:
        """Return the ids of a sample, by name; None leaves the sample out."""

    @abstractmethod
    def collate(self, samples: list[Sample]) -> dict[str, Tensor]:
        """Return a batch of encoded samples."""

    def _prepared(self, dataset: Any, kind: str) -> Any:
        """Return encoded samples.  Args: kind: "train" or "eval" """
        if dataset is None:
            return None
        if not has_length(dataset):
            raise UnsupportedError(f"{kind}_dataset has no length", hint="pass a list of samples")
        found = [made for each in samples_of(dataset) if (made := self.encode(each)) is not None]
        if not found:
            raise ArgumentError(
                f"{kind}_dataset has no samples to learn from, of {len(dataset)}", hint="raise max_length"
            )
        return Encoded(found)

    def _prepared_parts(self, dataset: Any) -> Any:
        if isinstance(dataset, dict):
            return {name: self._prepared(part, "eval") for name, part in dataset.items()}
        return self._prepared(dataset, "eval")

    def get_eval_dataloader(self, eval_dataset: Any = None) -> DataLoader[Any]:
        """Return the loader of batches, as Trainer. Samples that are not encoded yet are encoded."""
        if not isinstance(eval_dataset, str | Encoded | None):
            eval_dataset = self._prepared(eval_dataset, "eval")
        return super().get_eval_dataloader(eval_dataset)

    def _reference_of_model(self) -> Any:
        """Return a frozen copy of the model; None for one with a new adapter, which is its reference without it."""
        if self._has_new_adapter:
            return None
        # Weights that are not trained are shared: those of a model with an adapter.
        copied = deepcopy(self.model, {id(each): each for each in self.model.parameters() if not each.requires_grad})
        copied.requires_grad_(False)
        return copied.eval()

    # ------------------------------------------------------------------------------------------------------------ loss

    def compute_loss(
        self, model: Module, inputs: dict[str, Any], return_outputs: bool = False, num_items_in_batch: Any = None
    ) -> Any:
        """Return the loss of a batch, and note the metrics."""
        loss = self.loss_of(model, inputs)
        return (loss, {}) if return_outputs else loss

    @abstractmethod
    def loss_of(self, model: Module, batch: dict[str, Tensor]) -> Tensor:
        """Return the loss of a batch."""

    def prediction_step(
        self, model: Any, inputs: Any, prediction_loss_only: bool, ignore_keys: list[str] | None = None
    ) -> tuple[Tensor | None, Any, Any]:
        """Return the loss of a batch. Results and labels are None: the metrics are the method's own."""
        with no_grad(), self.compute_loss_context_manager():
            loss = self.compute_loss(model, self._prepare_inputs(inputs))
        return loss.detach(), None, None

    def note(self, values: Mapping[str, float]) -> None:
        """Add values to the metrics, whose means are logged."""
        kept = self._metrics["train" if self.model.training else "eval"]
        for name, value in values.items():
            kept[name].append(value)

    def note_tokens(self, count: float) -> None:
        """Count the tokens of a batch while training."""
        kind = "train" if self.model.training else "eval"
        if kind == "train":
            self._tokens_seen += int(count)
        self._metrics[kind]["num_tokens"] = [self._tokens_seen]

    def log(self, logs: dict[str, Any], start_time: float | None = None) -> None:
        """Add the means of the metrics to values, and log them as Trainer."""
        kind = "train" if self.model.training else "eval"
        prefix = "eval_" if kind == "eval" else ""
        logs.update({prefix + name: sum(each) / len(each) for name, each in self._metrics[kind].items() if each})
        self._metrics[kind].clear()
        super().log(logs, start_time)


@contextmanager
def referring(model: Any, reference: Any) -> Iterator[Any]:
    """Return a context whose value is the reference; where that is None, the model without its adapter."""
    if reference is not None:
        yield reference
        return
    with model.disable_adapter():
        yield model


def without_dropout(model: Module) -> None:
    """Set the dropout of a model to 0, so that two models that are compared see the same."""
    for each in model.modules():
        for name, value in vars(each).items():
            if isinstance(value, float) and (name == "p" if isinstance(each, Dropout) else "drop" in name):
                setattr(each, name, 0.0)
