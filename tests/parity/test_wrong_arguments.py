"""Calls with one argument of the wrong type are refused where PyTorch refuses them.

The calls are those that the cases of the ops make of PyTorch's functions, which a TorchFunctionMode records. In each of
them one argument is replaced: a flag, an integer, a number, a word, a tensor or a list of integers by what it is not.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from operator import attrgetter
from typing import Any

import pytest
import torch
from cases import Case, load_all
from torch.overrides import TorchFunctionMode, resolve_name

import tallow as tl

BY_OP: dict[str, list[Case]] = defaultdict(list)
for _case in load_all():
    BY_OP[_case.op].append(_case)

# Functions that take more than PyTorch's, with the reason.
WIDER = {
    "device": "an index is a device of the accelerator",
    "logsumexp": "None means all dims, as in other reductions",
    "prod": "None means all dims, as in other reductions",
    "squeeze": "None means all dims, as in other functions",
    "take_along_dim": "None means all elements, as in NumPy",
}
Call = tuple[str, tuple[Any, ...], dict[str, Any]]


class Calls(TorchFunctionMode):
    """Records the calls of PyTorch's functions, by their public names."""

    def __init__(self) -> None:
        super().__init__()
        self.made: dict[Any, Call] = {}

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name, kwargs = resolve_name(func) or "", kwargs or {}
        kinds = (name, tuple(map(type, args)), tuple(kwargs))
        self.made.setdefault(kinds, (name.removeprefix("torch."), args, kwargs))
        return func(*args, **kwargs)


def wrong(value: Any) -> list[Any]:
    """Return values of other types than this one."""
    if isinstance(value, bool):
        return [None, "a", 1.5, 2]
    if isinstance(value, int):
        return [None, "a", 1.5, [value, value]]
    if isinstance(value, float):
        return ["a", [value]]
    if isinstance(value, str):
        return [1, "zzz"]
    if isinstance(value, torch.Tensor):
        return [None, "a", [value]]
    if isinstance(value, tuple | list) and value and all(type(n) is int for n in value):
        whole = tuple(value)
        return [(*whole[:-1], last) for last in (1.5, "a", None, whole)] + [1.5, "a"]
    return []


def changed(call: Call) -> Iterator[Call]:
    """Yield a call with one argument replaced, left out, too many or spread."""
    name, args, kwargs = call
    for i, value in enumerate(args):
        if i or not name.startswith("Tensor."):  # what has the method is a tensor
            yield from ((name, (*args[:i], new, *args[i + 1 :]), kwargs) for new in wrong(value))
    for key, value in kwargs.items():
        yield from ((name, args, kwargs | {key: new}) for new in wrong(value))
    yield name, args, kwargs | {"nonsense": 1}
    if args and isinstance(args[-1], tuple | list) and all(type(n) is int for n in args[-1]):
        yield name, (*args[:-1], *args[-1]), kwargs
        yield name, (*args, 1), kwargs


def converted(m: Any, value: Any) -> Any:
    """Return an argument of a call for a library, with tensors that no other call writes to."""
    if isinstance(value, torch.Tensor):
        copy = value.detach().clone()
        return copy if m is torch else tl.tensor(copy.resolve_conj().numpy())
    if type(value) in (tuple, list):
        return type(value)(converted(m, x) for x in value)
    if isinstance(value, dict):
        return {key: converted(m, x) for key, x in value.items()}
    if isinstance(value, torch.dtype) and m is tl:
        return getattr(tl, str(value).removeprefix("torch."))
    return value


def error_of(m: Any, call: Call) -> Exception | None:
    name, args, kwargs = call
    try:
        attrgetter(name)(m)(*converted(m, args), **converted(m, kwargs))
    except Exception as error:
        return error
    return None


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("op", sorted(BY_OP))
def test_arguments_of_the_wrong_type_are_refused_as_in_pytorch(op: str) -> None:
    calls = Calls()
    for case in BY_OP[op]:
        with calls, torch.random.fork_rng():
            case.call(torch, *[torch.tensor(a) for a in case.inputs])
    accepted = []
    for call in calls.made.values():
        name = call[0].rpartition(".")[2].rstrip("_")
        is_wider = any(name.startswith(other) for other in WIDER)
        if is_wider or name.startswith("__") or error_of(torch, call) or error_of(tl, call):
            continue
        accepted += [c for c in changed(call) if error_of(torch, c) and error_of(tl, c) is None]
    assert not accepted


@pytest.mark.parametrize("name", ["max", "min", "median", "nanmedian"])
def test_extremes_refuse_arguments_that_would_have_no_effect(name: str) -> None:
    for lib in (torch, tl):
        x, function = lib.ones(2), getattr(lib, name)
        calls: list[dict[str, Any]] = [{"keepdim": True}]
        if name in ("max", "min"):
            calls += [{"dim": 0, "other": x}, {"other": x, "keepdim": True}]
            assert function(x, other=x).shape == (2,)
        assert function(x, 0, keepdim=True)[0].shape == (1,)
        for keywords in calls:
            with pytest.raises(TypeError):
                function(x, **keywords)
