"""A user's program passes mypy --strict: the package exports what it names, and says what it returns."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from support.places import ROOT

import tallow

PROGRAM = """
import tallow as tl
import tallow.nn.functional as F

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
"""


def test_a_users_program_is_well_typed(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    done = subprocess.run(
        [sys.executable, "-m", "mypy", str(tmp_path / "program.py")], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("name", ["softmax", "Tensor", "nn", "optim", "float32", "no_grad", "randn"])
def test_public_names_are_listed(name: str) -> None:
    assert name in tallow.__all__
    assert name in dir(tallow)


def test_dir_lists_nothing_but_public_names() -> None:
    assert not {"importlib", "annotations", "Any", "OFFERED", "ops"} & set(dir(tallow))
    assert all(hasattr(tallow, name) for name in tallow.__all__)
