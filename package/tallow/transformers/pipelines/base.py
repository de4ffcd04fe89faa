"""The base of pipelines: they prepare inputs, run the model in batches and read its outputs, as in transformers."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sized
from itertools import chain, islice
from os import PathLike
from types import GeneratorType
from typing import Any, ClassVar, NamedTuple

import tallow as tl
from tallow import accelerator
from tallow.data import Dataset
from tallow.errors import ArgumentError, TallowWarning, warn
from tallow.transformers.pipelines.batches import Padding, Row, joined, row_of


class Chat(NamedTuple):
    """A conversation as one input: a list of messages would be several."""

    messages: list[dict[str, Any]]


class Settings(NamedTuple):
    """The arguments of `preprocess`, `_forward` and `postprocess`."""

    before: dict[str, Any]
    during: dict[str, Any]
    after: dict[str, Any]

    def updated(self, other: Settings) -> Settings:
        """Return these arguments with those of a call, which replace them. A generation config replaces all of them."""
        before, during, after = ({**mine, **its} for mine, its in zip(self, other, strict=True))
        return Settings(before, other.during if "generation_config" in other.during else during, after)


class Pipeline:
    """The base of pipelines. A subclass has `preprocess`, `_forward` and `postprocess`; their keyword arguments are
    arguments of the pipeline and of its calls.

    Args:
        model: computes outputs; it is moved to `device`.
        tokenizer, feature_extractor, image_processor, processor: prepare inputs, and read outputs.
        task: the name of the task, in errors.
        device: None or a number means a GPU if there is one; -1 means the CPU.
        dtype, torch_dtype: the model has one already.
        batch_size: how many inputs the model gets at once; 1 by default.
        num_workers: has no effect: inputs are prepared one after another.
        arguments: of the steps, for all calls.

    Raises:  ArgumentError for an argument that no step has, and for a batch_size below 1
    """

    parts: ClassVar[tuple[str, ...]] = ("tokenizer",)
    model: Any
    tokenizer: Any
    feature_extractor: Any
    image_processor: Any
    processor: Any

    def __init__(
        self,
        model: Any,
        tokenizer: Any = None,
        feature_extractor: Any = None,
        image_processor: Any = None,
        processor: Any = None,
        task: str = "",
        device: Any = None,
        dtype: Any = None,
        torch_dtype: Any = None,
        batch_size: int | None = None,
        num_workers: int | None = None,
        **arguments: Any,
    ) -> None:
        self.task = task
        self.model = model.eval()
        self.processor = processor
        self.tokenizer = tokenizer or getattr(processor, "tokenizer", None)
        self.feature_extractor = feature_extractor or getattr(processor, "feature_extractor", None)
        self.image_processor = image_processor or getattr(processor, "image_processor", None)
        if device is not None or accelerator.is_available():
            model.to(chosen_device(device))
        self._batch_size = 1 if batch_size is None else counted("batch_size", batch_size, 1)
        check_workers(num_workers)
        self._settings = Settings(*self._sanitize_parameters(**arguments))

    @property
    def device(self) -> Any:
        """The device of the model."""
        return next(self.model.parameters()).device

    @property
    def dtype(self) -> Any:
        """The dtype of the model's parameters."""
        return next(self.model.parameters()).dtype

    torch_dtype = dtype
    framework = "pt"

    def __repr__(self) -> str:
        return f"{type(self).__name__}: {self.task} with {type(self.model).__name__} on {self.device}"

    def save_pretrained(self, save_directory: str | PathLike[str], **options: Any) -> None:
        """Save the model and what prepares its inputs as a folder.  Raises: as the parts' `save_pretrained`"""
        for part in (self.model, self.tokenizer, self.feature_extractor, self.image_processor):
            if part is not None:
                part.save_pretrained(save_directory, **options)

    # ------------------------------------------------------------------------------------------------------- the steps

    def preprocess(self, inputs: Any) -> Any:
        """Return the model's input for one input: tensors whose first dimension is 1, and notes of any kind."""
        raise NotImplementedError(f"{type(self).__name__} has no preprocess")

    def _forward(self, model_inputs: Any) -> Any:
        """Return the model's outputs for a batch; the notes of its inputs are added to them."""
        return self.run(model_inputs)

    def postprocess(self, model_outputs: Any) -> Any:
        """Return the result for the outputs of one input."""
        raise NotImplementedError(f"{type(self).__name__} has no postprocess")

    def run(self, inputs: Mapping[str, Any]) -> Any:
        """Return what the model returns for the tensors among inputs."""
        return self.model(**{name: value for name, value in inputs.items() if isinstance(value, tl.Tensor)})

    def _sanitize_parameters(self, **arguments: Any) -> Any:
        """Return the arguments of each of the three steps: those that it names, or takes as `**`.

        Raises:  ArgumentError for an argument that no step has
        """
        steps = (self.preprocess, self._forward, self.postprocess)
        own: tuple[dict[str, Any], ...] = ({}, {}, {})
        for name, value in arguments.items():
            takers = [i for i, step in enumerate(steps) if name in keywords_of(step)]
            takers = takers or [i for i, step in enumerate(steps) if takes_any(step)]
            if not takers:
                known = sorted(set().union(*map(keywords_of, steps)))
                raise ArgumentError(
                    f"{type(self).__name__} got an unexpected argument {name!r}",
                    hint=f"its arguments: {', '.join(known) or 'none'}",
                )
            for i in takers:
                own[i][name] = value
        return own

    # --------------------------------------------------------------------------------------------------------- calling

    def __call__(
        self, inputs: Any, *, num_workers: int | None = None, batch_size: int | None = None, **arguments: Any
    ) -> Any:
        """Return the result for one input; a list of them for a list; an iterator for a generator or a dataset.

        Args:
            inputs: as the task takes them; a list of messages is one input, a chat.
            num_workers: as in the constructor.
            batch_size: for this call.
            arguments: of the steps, for this call.

        Raises:  ArgumentError for an argument that no step has
        """
        settings = self._settings.updated(Settings(*self._sanitize_parameters(**arguments)))
        size = self._batch_size if batch_size is None else counted("batch_size", batch_size, 1)
        check_workers(num_workers)
        inputs = with_chats(inputs)
        if isinstance(inputs, list):
            return list(self._results(inputs, size, settings))
        if isinstance(inputs, GeneratorType | Dataset) or type(inputs).__module__.partition(".")[0] == "datasets":
            return self._results(items_of(inputs), size, settings)
        return next(self._results([inputs], 1 if not isinstance(self, ChunkPipeline) else size, settings))

    def transform(self, X: Any) -> Any:
        """Return the results, as scikit-learn names it."""
        return self(X)

    predict = transform

    def _results(self, inputs: Iterable[Any], size: int, settings: Settings) -> Iterator[Any]:
        pieces = ((i, piece) for i, each in enumerate(inputs) for piece in self._pieces(each, settings))
        yield from self._read(self._computed(pieces, size, settings), settings)

    def _pieces(self, each: Any, settings: Settings) -> Iterator[Any]:
        yield self.preprocess(each, **settings.before)

    def _computed(self, pieces: Iterator[tuple[int, Any]], size: int, settings: Settings) -> Iterator[tuple[int, Any]]:
        """Yield the outputs of pieces, which are computed in batches, with the number of their input."""
        while batch := list(islice(pieces, size)):
            rows = [row for _, row in batch]
            for (i, _), outputs in zip(batch, self.forward(rows, **settings.during), strict=True):
                yield i, outputs

    def _read(self, outputs: Iterator[tuple[int, Any]], settings: Settings) -> Iterator[Any]:
        for _, each in outputs:
            yield self.postprocess(each, **settings.after)

    def forward(self, rows: list[Row], **arguments: Any) -> list[Any]:
        """Return the outputs of each row, which the model computes as one batch, with the notes of the row."""
        count = len(rows)
        rows = [dict(row) for row in rows]
        inputs = (
            rows[0]
            if count == 1
            else joined(rows, Padding(self.tokenizer, self.feature_extractor or self.image_processor))
        )
        notes = [{name: value for name, value in row.items() if not isinstance(value, tl.Tensor)} for row in rows]
        with tl.no_grad():
            outputs = self._forward(on_device(inputs, self.device), **arguments)
        apart = [outputs] if count == 1 else [row_of(outputs, i, count) for i in range(count)]
        return [with_notes(on_device(each, "cpu"), note) for each, note in zip(apart, notes, strict=True)]


class ChunkPipeline(Pipeline):
    """A pipeline whose inputs are several inputs of the model each: `preprocess` is a generator of them, and
    `postprocess` gets a list of outputs.
    """

    def _pieces(self, each: Any, settings: Settings) -> Iterator[Any]:
        yield from self.preprocess(each, **settings.before)

    def _read(self, outputs: Iterator[tuple[int, Any]], settings: Settings) -> Iterator[Any]:
        together: list[Any] = []
        current = None
        for i, each in outputs:
            if together and i != current:
                yield self.postprocess(together, **settings.after)
                together = []
            current = i
            together.append(each)
        if together:
            yield self.postprocess(together, **settings.after)


def counted(name: str, value: Any, least: int) -> int:
    """Return an argument that is an integer from `least` up.  Raises: ArgumentError"""
    if not hasattr(value, "__index__") or value < least:
        raise ArgumentError(f"{name}={value!r:.80}", hint=f"pass an integer from {least} up")
    return int(value)


def check_workers(count: Any) -> None:
    """Warn of a number of processes, which has no effect.  Raises: ArgumentError for what is no number"""
    if count is not None and counted("num_workers", count, 0):
        warn(f"num_workers={count}: no effect: inputs are prepared one after another", TallowWarning)


def chosen_device(device: Any) -> Any:
    """Return the device of an argument: -1 is the CPU, other numbers are GPUs, None is the first GPU.

    Warns:  TallowWarning for the number of a GPU where there is none
    """
    if not isinstance(device, int | None) or device == -1:
        return "cpu" if device == -1 else device
    kind = accelerator.current_accelerator()
    if kind is None:
        warn(f"device={device}: there is no GPU; the pipeline runs on the CPU", TallowWarning)
        return "cpu"
    return f"{kind.type}:{device or 0}"


def keywords_of(step: Callable[..., Any]) -> set[str]:
    """Return the names of a step's arguments after the first."""
    parameters = list(inspect.signature(step).parameters.values())[1:]
    return {each.name for each in parameters if each.kind is not each.VAR_KEYWORD}


def takes_any(step: Callable[..., Any]) -> bool:
    """Return whether a step takes arguments of any name."""
    return any(each.kind is each.VAR_KEYWORD for each in inspect.signature(step).parameters.values())


def on_device(value: Any, device: Any) -> Any:
    """Return tensors on a device, also those in outputs, dicts, lists and tuples."""
    if isinstance(value, tl.Tensor):
        return value.to(device)
    if type(value) is dict or hasattr(value, "to_tuple"):
        return type(value)({name: on_device(each, device) for name, each in value.items()})
    if type(value) in (list, tuple):
        return type(value)(on_device(each, device) for each in value)
    return value


def with_notes(outputs: Any, notes: dict[str, Any]) -> Any:
    """Return outputs with the notes of their inputs, which do not replace any."""
    if isinstance(outputs, Mapping):
        names: Any = outputs
        for name, value in notes.items():
            if name not in names:
                names[name] = value
    return outputs


def is_message(value: Any) -> bool:
    """Return whether a value is a message of a chat."""
    return isinstance(value, Mapping) and "role" in value and "content" in value


def with_chats(inputs: Any) -> Any:
    """Return inputs where each list of messages is a Chat. The first item says whether there are any."""
    if isinstance(inputs, GeneratorType):
        first = next(inputs, None)
        if first is None:
            return []
        if is_message(first):
            return Chat([first, *inputs])
        whole = chain([first], inputs)
        return (Chat(list(each)) if _is_chat(each) else each for each in whole)
    if isinstance(inputs, list | tuple) and len(inputs) and not isinstance(inputs, Chat):
        if is_message(inputs[0]):
            return Chat(list(inputs))
        if all(map(_is_chat, inputs)):
            return [Chat(list(each)) for each in inputs]
    return inputs


def _is_chat(value: Any) -> bool:
    return isinstance(value, list | tuple) and bool(value) and is_message(value[0])


def items_of(inputs: Any) -> Iterable[Any]:
    """Return the items of a generator or a dataset, which may have only `__getitem__`."""
    if isinstance(inputs, Sized):
        return (inputs[i] for i in range(len(inputs)))  # type: ignore[index]
    return inputs
