"""A user's program passes mypy --strict: exports are declared and return types are right."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import build_stubs
import pytest
from cases import load_all
from support.paths import ROOT

import tallow
from tallow.ops.table import OPS, Op

PROGRAM = """
from typing import assert_type

import tallow as tl
import tallow.nn.functional as F
from tallow.data import DataLoader, TensorDataset
from tallow.models import AutoModel
from tallow.models.pretrained import PretrainedModel
from tallow.transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedModel

x: tl.Tensor = tl.ones(2)
y: tl.Tensor = tl.zeros(2, 3, dtype=tl.float32, requires_grad=True)
z: tl.Tensor = x + y * 2 - 1
z += 1
z[0] = 1.0
a: tl.Tensor = tl.softmax(z[0, 1:], dim=-1).view(-1)
b: tl.Tensor = tl.nn.functional.relu(F.softmax(z, dim=-1))
shape: list[int] = list(z.shape)
number: float = z.sum().item()
with tl.no_grad():
    c: tl.Tensor = tl.cat([x, y])
layer = tl.nn.Linear(2, 3)
optimizer = tl.optim.SGD(layer.parameters(), lr=0.1)
F.cross_entropy(layer(x), tl.tensor(0)).backward()
optimizer.step()
kind: tl.dtype = x.dtype
generator: tl.Generator = tl.manual_seed(0)


@tl.no_grad()
def twice(q: tl.Tensor) -> tl.Tensor:
    return 2 * q


@tl.no_grad
def negative(q: tl.Tensor) -> tl.Tensor:
    return -q


d: tl.Tensor = negative(twice(x))
parts: tuple[tl.Tensor, ...] = x.expand(2, 2).chunk(2)
best: tl.Tensor = y.topk(1, dim=-1).indices
flat: tl.Tensor = y.permute(1, 0).contiguous().view(-1).clamp_(min=0)
inverse: tl.Tensor = tl.linalg.inv(tl.eye(2))
model: tl.nn.Module = tl.nn.Sequential(layer)

# What an editor shows: a name of type Any would satisfy every annotation, but not these.
assert_type(x.T, tl.Tensor)
assert_type(x @ x.mT, tl.Tensor)
assert_type(x.max(), tl.Tensor)
assert_type(x.max(dim=0).indices, tl.Tensor)
assert_type(tl.min(x, y), tl.Tensor)
assert_type(tl.where(x > 0, x, 0.0), tl.Tensor)
assert_type(tl.where(x > 0), tuple[tl.Tensor, ...])
assert_type(x.nonzero(), tl.Tensor)
assert_type(x.topk(1).values, tl.Tensor)
assert_type(F.cross_entropy(x, y), tl.Tensor)
assert_type(F.embedding(x, y), tl.Tensor)
assert_type(F.max_pool2d(x, 2), tl.Tensor)
assert_type(F.max_pool2d(x, 2, return_indices=True), tuple[tl.Tensor, tl.Tensor])
loader = DataLoader(TensorDataset(x, y))
assert_type(loader, DataLoader[tuple[tl.Tensor, ...]])
assert_type(DataLoader([1, 2]), DataLoader[int])
assert_type(AutoModel.from_pretrained("model"), PretrainedModel)
assert_type(AutoModelForCausalLM.from_pretrained("model"), PreTrainedModel)
assert_type(AutoTokenizer.from_pretrained("model").model_max_length, int)
"""
WRONG = {
    "x.softmax(dims=1)": 'Unexpected keyword argument "dims"',
    "tl.relu()": "Missing positional argument",
    "x.transpose('a', 1)": "incompatible type",
    "tl.nn.functional.relu(x, in_place=True)": 'Unexpected keyword argument "in_place"',
}


def errors_in(program: str, folder: Path) -> list[str]:
    (folder / "program.py").write_text(program)
    command = [sys.executable, "-m", "mypy", str(folder / "program.py")]
    process = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert process.returncode in (0, 1), process.stdout + process.stderr
    return [line for line in process.stdout.splitlines() if ": error: " in line]


def test_a_users_program_is_well_typed(tmp_path: Path) -> None:
    assert errors_in(PROGRAM, tmp_path) == []


def test_a_users_mistakes_are_found(tmp_path: Path) -> None:
    errors = errors_in("\n".join(["import tallow as tl", "x = tl.ones(2)", *WRONG]), tmp_path)
    assert len(errors) == len(WRONG)
    assert all(expected in error for expected, error in zip(WRONG.values(), errors, strict=True))


def test_the_stubs_are_those_of_the_library() -> None:
    command = [sys.executable, "scripts/build_stubs.py", "--check"]  # in a process of its own: tests register ops
    process = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert process.returncode == 0, f"{process.stdout}{process.stderr}run `python scripts/build_stubs.py`"


def test_ops_return_what_the_stubs_say(monkeypatch: pytest.MonkeyPatch) -> None:
    returned_types: dict[str, set[type]] = {}

    def recording(op: Op) -> Callable[..., Any]:
        function = op.call

        def call(*args: Any, **kwargs: Any) -> Any:
            value = function(*args, **kwargs)
            returned_types.setdefault(op.name, set()).add(type(value))
            return value

        return call

    places = (tallow, tallow.Tensor, tallow.nn.functional, tallow.linalg, tallow.special)
    for place in places:
        for name in dir(place):
            getattr(place, name, None)  # names that are looked up at first use would keep a change
    for op in OPS.values():
        for place in places:
            for name in (op.name, op.name.removeprefix("linalg_"), *op.aliases):
                if op.call is not None and vars(place).get(name) is op.call:
                    monkeypatch.setattr(place, name, recording(op))
    for case in load_all():
        case.call(tallow, *map(tallow.tensor, case.inputs))
    several = {name for name, kinds in returned_types.items() if tuple in kinds and OPS[name].places}
    assert several == build_stubs.RETURNS.keys()


@pytest.mark.parametrize("name", ["softmax", "Tensor", "nn", "optim", "float32", "no_grad", "randn"])
def test_public_names_are_listed(name: str) -> None:
    assert name in tallow.__all__
    assert name in dir(tallow)


def test_dir_lists_nothing_but_public_names() -> None:
    assert not {"importlib", "annotations", "Any", "PUBLIC", "ops"} & set(dir(tallow))
    assert all(hasattr(tallow, name) for name in tallow.__all__)
