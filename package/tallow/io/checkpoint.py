"""Training checkpoints: all that a training run is, in one safetensors file, so that it goes on as if it never stopped.

    tensors         "model.<name in its state_dict>", "optimizer.state.0.exp_avg", "scheduler...", "generators...",
                    "progress..."
    __metadata__    {"format": "tallow.checkpoint", "version": "1", "state": the rest, as `tallow.io.nested` writes it}

Any object takes part that has `state_dict` and `load_state_dict`. One that also has `check_state_dict` is asked before
anything is changed.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

from tallow.errors import ArgumentTypeError, CheckpointError
from tallow.io import nested
from tallow.io.safetensors import safe_open, save
from tallow.io.source import Path, Source
from tallow.random import Generator, default_generator
from tallow.tensor import Tensor

FORMAT = "tallow.checkpoint"
VERSION = 1
DEFAULT = ""  # the name of the default generator among the generators
UNNAMED = "generator"  # the name of one that is passed alone

Generators: TypeAlias = Generator | Mapping[str, Generator] | None


def save_checkpoint(
    path: Path,
    *,
    model: Any = None,
    optimizer: Any = None,
    scheduler: Any = None,
    generator: Generators = None,
    **progress: Any,
) -> None:
    """Write the states of all that takes part in training, and those of the random numbers, to one file.

    The file is replaced in one step at the end: a crash leaves the old one. Its tensors can be read by anything that
    reads safetensors.

    Args:
        generator: a Generator, or several by name. The default one, `tl.manual_seed`'s, is always saved.
        progress: whatever else is to come back: tensors, numbers, strings, None, and lists, tuples and dicts of these.

    Raises:  ArgumentTypeError that names the place of a value that a checkpoint does not hold; OSError

    Example:
        >>> import tempfile, tallow as tl
        >>> model = tl.nn.Linear(2, 1)
        >>> optimizer = tl.optim.AdamW(model.parameters())
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     tl.save_checkpoint(f"{folder}/run.safetensors", model=model, optimizer=optimizer, step=5)
        ...     tl.load_checkpoint(f"{folder}/run.safetensors", model=model, optimizer=optimizer)
        {'step': 5}
    """
    parts = {"model": model, "optimizer": optimizer, "scheduler": scheduler}
    state: dict[str, Any] = {name: part.state_dict() for name, part in parts.items() if part is not None}
    state["optimizer_class"] = None if optimizer is None else type(optimizer).__name__
    state["generators"] = {name: each.get_state() for name, each in _named(generator).items()}
    state["progress"] = progress
    text, tensors = nested.pack(state)
    save(tensors, path, {"format": FORMAT, "version": str(VERSION), "state": text})


def load_checkpoint(
    path: Source, *, model: Any = None, optimizer: Any = None, scheduler: Any = None, generator: Generators = None
) -> dict[str, Any]:
    """Give everything the state that `save_checkpoint` wrote, the default generator included; everything or nothing.

    A part of the file that is not asked for stays where it is. The model keeps its devices.

    Args:    as save_checkpoint; the same kinds of objects, in any state

    Returns: the progress

    Raises:  CheckpointError with all that does not fit: names that are missing or unexpected in the model, shapes and
        dtypes, class, groups and parameters of the optimizer, parts that the file does not have; or when the file is
        truncated or malformed
    """
    name, state = _read(path)
    generators = _named(generator)
    parts = {"optimizer": optimizer, "scheduler": scheduler}
    problems = [f"model       {line}" for line in _model_problems(model, state.get("model"))]
    problems += [f"optimizer   {line}" for line in _class_problems(optimizer, state.get("optimizer_class"))]
    problems += [f"{part:<12}{line}" for part in parts for line in _part_problems(parts[part], state.get(part))]
    problems += [f"generator   {line}" for line in _generator_problems(generators, state["generators"])]
    if problems:
        raise CheckpointError(
            f"{name} does not fit\n" + textwrap.indent("\n".join(problems), "  "),
            mend="make everything as it was when the checkpoint was saved",
        )
    for part, target in (parts | {"model": model}).items():  # the model last: nothing is left that could go wrong there
        if target is not None:
            target.load_state_dict(state[part])
    for key, each in generators.items():
        each.set_state(state["generators"][key])
    return state["progress"]


def _read(path: Source) -> tuple[str, dict[str, Any]]:
    """What to call the file, and what `save_checkpoint` packed into it."""
    with safe_open(path) as file:
        metadata = file.metadata()
        if metadata.get("format") != FORMAT:
            raise CheckpointError(
                f"{file.name} is a safetensors file, but no training checkpoint", mend="read its tensors with tl.load"
            )
        if metadata.get("version") != str(VERSION):
            raise CheckpointError(
                f"{file.name} has version {metadata.get('version')!r:.80} of the format; {VERSION} is read",
                mend="a newer tallow may have written it",
            )

        def tensor(name: str) -> Tensor:
            """A view of the file where the object that takes it copies; the file can then be replaced at any time."""
            found = file.get_tensor(name)
            return found if name.startswith(("model.", "optimizer.")) else found.clone()

        state = nested.unpack(metadata.get("state", "").encode(), f"{file.name}: the state", tensor)
    if not all(isinstance(state.get(part), dict) for part in ("generators", "progress")):
        raise CheckpointError(f"{file.name}: the state lacks generators or progress", mend="the file is damaged")
    return file.name, state


def _named(generator: Generators) -> dict[str, Generator]:
    passed = {} if generator is None else {UNNAMED: generator} if isinstance(generator, Generator) else dict(generator)
    for name, each in passed.items():
        if not isinstance(each, Generator):
            raise ArgumentTypeError(f"generator {name!r} is {type(each).__name__}, not a Generator")
    return {DEFAULT: default_generator, **passed}


def _model_problems(model: Any, saved: Any) -> Iterator[str]:
    if model is None:
        return
    if not isinstance(saved, dict):
        yield "the file has none" if saved is None else "its state is not a dict"
        return
    own = model.state_dict()
    yield from (f"missing      {name}" for name in own if name not in saved)
    yield from (f"unexpected   {name}" for name in saved if name not in own)
    for name in own:
        if name in saved and isinstance(own[name], Tensor):  # extra state may be anything
            yield from _tensor_problems(name, own[name], saved[name])


def _tensor_problems(name: str, own: Tensor, saved: Any) -> Iterator[str]:
    if not isinstance(saved, Tensor):
        yield f"wrong type   {name}: {type(saved).__name__}, not a Tensor"
        return
    if own.device.type == "meta":
        yield f"no memory    {name}: the model is on device 'meta'"
    if own.shape != saved.shape:
        yield f"wrong shape  {name}: file {tuple(saved.shape)}, model {tuple(own.shape)}"
    if own.dtype != saved.dtype:
        yield f"wrong dtype  {name}: file {saved.dtype}, model {own.dtype}"


def _class_problems(optimizer: Any, saved: Any) -> Iterator[str]:
    """Whether it is another optimizer's state, which many would take, with its learning rate, and misread."""
    own = type(optimizer).__name__
    if optimizer is not None and saved is not None and saved != own:
        yield f"the file has the state of {saved!s:.80}, this is {own}"


def _part_problems(target: Any, saved: Any) -> Iterator[str]:
    if target is None:
        return
    if not isinstance(saved, dict):
        yield "the file has none" if saved is None else "its state is not a dict"
        return
    check: Callable[[dict[str, Any]], None] | None = getattr(target, "check_state_dict", None)
    try:
        if check is not None:
            check(saved)
    except CheckpointError as error:
        yield str(error).replace("\n", "\n  ")


def _generator_problems(generators: Mapping[str, Generator], saved: Mapping[str, Any]) -> Iterator[str]:
    for name in generators:
        state = saved.get(name)
        if state is None:
            yield f"the file has none named {name!r}; it has {', '.join(map(repr, filter(None, saved))) or 'none'}"
        elif not _is_generator_state(state):
            yield f"{name!r}: this is not the state of a Generator"


def _is_generator_state(state: Any) -> bool:
    try:
        Generator().set_state(state)
    except (AttributeError, ValueError, OverflowError):
        return False
    return True
