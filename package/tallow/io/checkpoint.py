"""Training checkpoints: the full state of a training run in one safetensors file, for an exact resume.

    tensors         "model.<name in its state_dict>", "optimizer.state.0.exp_avg", "scheduler...", "generators...",
                    "progress..."
    __metadata__    {"format": "tallow.checkpoint", "version": "1", "state": the rest, as `tallow.io.nested` writes it}

Any object that has `state_dict` and `load_state_dict` can be saved. If it also has `check_state_dict`, that is called
before anything is changed.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

from tallow.core.tensor import Tensor
from tallow.errors import ArgumentTypeError, CheckpointError
from tallow.io import nested
from tallow.io.safetensors import safe_open, save
from tallow.io.source import Path, Source
from tallow.random import Generator, default_generator

FORMAT = "tallow.checkpoint"
VERSION = 1
DEFAULT = ""  # name of the default generator
UNNAMED = "generator"  # name of a generator passed without a name

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
    """Save the state of a training run, including random number generators, to one file.

    The file is replaced atomically: a crash leaves the old one. Any safetensors reader can read its tensors.

    Args:
        generator: a Generator, or a dict of them. The default one, which `tl.manual_seed` seeds, is always saved.
        progress: other values to save: tensors, numbers, strings, None, and lists, tuples and dicts of them.

    Raises:  ArgumentTypeError that names the path to a value of an unsupported type; OSError

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
    """Load a checkpoint of `save_checkpoint` into all objects and the default generator, or into none of them.

    Parts of the file without a matching argument are ignored. The model's tensors stay on their devices.

    Args:    as for save_checkpoint; objects of the same kinds, in any state

    Returns: the keyword arguments given to save_checkpoint as `progress`

    Raises:  CheckpointError that lists all mismatches: missing or unexpected names in the model, shapes and dtypes, the
        optimizer's class, groups and parameters, parts missing from the file; or if the file is truncated or malformed
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
            hint="build the objects as they were when the checkpoint was saved",
        )
    for part, target in (parts | {"model": model}).items():  # the model last: everything in it was checked above
        if target is not None:
            target.load_state_dict(state[part])
    for key, each in generators.items():
        each.set_state(state["generators"][key])
    return state["progress"]


def _read(path: Source) -> tuple[str, dict[str, Any]]:
    """Return the file's name and the state that `save_checkpoint` packed into it."""
    with safe_open(path) as file:
        metadata = file.metadata()
        if metadata.get("format") != FORMAT:
            raise CheckpointError(
                f"{file.name} is a safetensors file, but not a training checkpoint",
                hint="read its tensors with tl.load",
            )
        if metadata.get("version") != str(VERSION):
            raise CheckpointError(
                f"{file.name} has version {metadata.get('version')!r:.80} of the format; expected {VERSION}",
                hint="a newer tallow may have written it",
            )

        def tensor(name: str) -> Tensor:
            """Return a view if the object copies it on load, else a copy, so that the file can be replaced any time."""
            result = file.get_tensor(name)
            return result if name.startswith(("model.", "optimizer.")) else result.clone()

        state = nested.unpack(metadata.get("state", "").encode(), f"{file.name}: the state", tensor)
    if not all(isinstance(state.get(part), dict) for part in ("generators", "progress")):
        raise CheckpointError(f"{file.name}: the state lacks generators or progress", hint="the file is damaged")
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
        yield "missing from the file" if saved is None else "its state is not a dict"
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
    """Report the state of another optimizer class, which many optimizers would accept and misinterpret."""
    own = type(optimizer).__name__
    if optimizer is not None and saved is not None and saved != own:
        yield f"the file has the state of {saved!s:.80}, but the optimizer is {own}"


def _part_problems(target: Any, saved: Any) -> Iterator[str]:
    if target is None:
        return
    if not isinstance(saved, dict):
        yield "missing from the file" if saved is None else "its state is not a dict"
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
            yield f"{name!r} is missing from the file, which has {', '.join(map(repr, filter(None, saved))) or 'none'}"
        elif not _is_generator_state(state):
            yield f"{name!r}: not the state of a Generator"


def _is_generator_state(state: Any) -> bool:
    try:
        Generator().set_state(state)
    except (AttributeError, ValueError, OverflowError):
        return False
    return True
