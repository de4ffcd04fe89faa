"""Run a program under PyTorch or tallow with the same weights and draws: `alike.py {torch,tallow} LINES PROGRAM ...`.

The weights of a model are filled at its first call, unless it was loaded. Draws that advance a generator come from
NumPy; those of the initial weights depend on the shape and the arguments only, since the libraries draw them in
another order. Clocks that the program reads go forward by a second. The program ends after LINES lines, if above 0.
"""

from __future__ import annotations

import contextlib
import importlib
import random
import runpy
import sys
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent))
from harness import draw_from_numpy
from packages import without_extension

RNG = np.random.RandomState(1)


def fill_at_first_call(torch: Any) -> None:
    """Let each module set its parameters to values by name and shape when it is called for the first time."""
    module = torch.nn.Module
    call, load_state_dict, load = module.__call__, module.load_state_dict, torch.load
    called: dict[int, Any] = {}  # the modules and parameters by id, which they keep while they are here
    filled: dict[int, Any] = {}

    def keep(model: Any) -> Any:
        if isinstance(model, module):
            filled.update({id(p): p for p in model.parameters()})
        return model

    def first(self: Any, *args: Any, **kwargs: Any) -> Any:
        if id(self) not in called:
            called[id(self)] = self
            for name, p in self.named_parameters():
                if id(p) not in filled and p.is_floating_point():
                    rng = np.random.RandomState(zlib.crc32(f"{name} {tuple(p.shape)}".encode()))
                    values = rng.standard_normal(tuple(p.shape))
                    fan = p.numel() / p.shape[0]
                    values = values / np.sqrt(fan) if p.ndim > 1 else 0.1 * values + ("weight" in name)
                    p.data.copy_(torch.from_numpy(np.asarray(values, "float32")))
                filled[id(p)] = p
        return call(self, *args, **kwargs)

    def loaded(self: Any, *args: Any, **kwargs: Any) -> Any:
        keep(self)
        return load_state_dict(self, *args, **kwargs)

    module.__call__, module.load_state_dict = first, loaded
    torch.load = lambda *args, **kwargs: keep(load(*args, **kwargs))


def draw_in_place(torch: Any) -> None:
    """Let tensors draw values that depend on their shape and the arguments."""

    def method(name: str, draw: Any) -> Any:
        def drawn(self: Any, *args: Any, generator: Any = None, **kwargs: Any) -> Any:
            key = f"{name} {tuple(self.shape)} {args} {sorted(kwargs.items())}"
            values = draw(np.random.RandomState(zlib.crc32(key.encode())), tuple(self.shape), *args, **kwargs)
            with torch.no_grad():
                return self.copy_(torch.as_tensor(np.asarray(values)))

        return drawn

    draws = {
        "uniform_": lambda rng, shape, a=0.0, b=1.0: rng.uniform(a, b, shape),
        "normal_": lambda rng, shape, mean=0.0, std=1.0: rng.normal(mean, std, shape),
        "random_": lambda rng, shape, *limits: rng.randint(*(limits or (2**31,)), size=shape),
    }
    for name, draw in draws.items():
        setattr(torch.Tensor, name, method(name, draw))


def draw_more_from_numpy(torch: Any) -> None:
    """Replace the functions that draw values which harness.py leaves."""
    data = importlib.import_module("torch.utils.data")

    def rand(*size: Any, **options: Any) -> Any:
        shape = size[0] if size and isinstance(size[0], tuple | list) else size
        return torch.from_numpy(np.asarray(RNG.rand(*shape), "float32"))

    torch.rand, torch.rand_like = rand, lambda x, **options: rand(*x.shape)
    torch.randperm = lambda n, **options: torch.from_numpy(RNG.permutation(n))
    torch.bernoulli = lambda p, **options: (rand(*p.shape) < p).to(p.dtype)
    data.RandomSampler.__iter__ = lambda self: iter(RNG.permutation(len(self.data_source)).tolist())


class FirstLines:
    """A stream that ends the program after some lines."""

    def __init__(self, stream: Any, lines: int) -> None:
        self.stream, self.left = stream, lines

    def write(self, text: str) -> int:
        self.stream.write(text)
        self.left -= text.count("\n")
        if self.left <= 0:
            raise SystemExit
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


def tick_for(folder: str) -> None:
    """Let files of a folder read a clock that goes forward by a second each time."""
    seconds = iter(range(1, 10**9))
    for name in ("time", "perf_counter"):
        real = getattr(time, name)

        def clock(real: Any = real) -> float:
            caller = sys._getframe(1).f_code.co_filename
            return float(next(seconds)) if caller.startswith(folder) else real()

        setattr(time, name, clock)


def download(url: str, **options: Any) -> Any:
    """Stand in for requests.get: open a file of this name in the current folder."""

    @contextlib.contextmanager
    def answer() -> Iterator[Any]:
        with Path(url.rpartition("/")[2]).open("rb") as stream:
            yield SimpleNamespace(raw=stream)

    return answer()


if __name__ == "__main__":
    library, lines, program, *rest = sys.argv[1:]
    if library == "tallow":
        importlib.import_module("tallow.compat").install_torch()
    torch = importlib.import_module("torch")
    if library == "torch":
        without_extension(torch)
    draw_from_numpy(torch, 1)
    draw_more_from_numpy(torch)
    draw_in_place(torch)
    fill_at_first_call(torch)
    importlib.import_module("requests").get = download
    tick_for(str(Path.cwd()))
    random.seed(0)
    np.random.seed(0)
    sys.argv = [program, *rest]
    path = Path(program).resolve()
    sys.path[0] = str(path.parent)
    if int(lines):
        sys.stdout = FirstLines(sys.stdout, int(lines))
    runpy.run_path(str(path), run_name="__main__")
