"""Files of exported programs: what comes back is the program, and hostile files are refused."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import tallow as tl
from tallow import export
from tallow.errors import ArgumentTypeError, CheckpointError, UnsupportedError
from tallow.export import Dim, ExportedProgram
from tallow.io import safetensors

nn, F = tl.nn, tl.nn.functional
KEY = "tallow.export"


class Pair(NamedTuple):
    first: tl.Tensor
    second: Any


class Model(nn.Module):
    """Has everything that a file holds: tied and frozen parameters, written buffers, constants, sizes, containers."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(7, 4)
        self.norm = nn.BatchNorm1d(4)
        self.head = nn.Linear(4, 7, bias=False)
        self.head.weight = self.embed.weight
        self.scale = nn.Parameter(tl.ones(4), requires_grad=False)
        self.table = tl.arange(20.0).reshape(5, 4)
        self.register_buffer("calls", tl.zeros((), dtype=tl.int64), persistent=False)

    def forward(self, ids: tl.Tensor, options: dict[str, Any], flag: bool = False) -> Any:
        self.calls += 1
        n = ids.shape[0]
        x = self.norm(self.embed(ids)) * self.scale + self.table[:1]
        x = x.clone()
        x[:, 1:3] = float("-inf")
        x = F.dropout(x.masked_fill(x.isinf(), 0.5), 0.25, self.training).to(tl.float32)
        logits = self.head(x) + tl.arange(n, dtype=tl.float64, device=ids.device)[:, None].float() * options["by"]
        return Pair(logits, [n + 1, None, {"sum": logits.sum((0, 1))}])


@pytest.fixture
def program() -> ExportedProgram:
    tl.manual_seed(0)
    ids, options = tl.tensor([1, 2, 3]), {"by": tl.tensor(2.0)}
    return export.export(Model(), (ids, options), {"flag": True}, dynamic_shapes={"ids": {0: Dim("n", max=9)}})


def saved(program: ExportedProgram) -> bytes:
    file = io.BytesIO()
    export.save(program, file)
    return file.getvalue()


@pytest.mark.cpu("files are loaded to the CPU")
def test_a_program_comes_back(program: ExportedProgram, tmp_path: Path) -> None:
    path = tmp_path / "model.pt2"
    export.save(program, path, extra_files={"note": "hello", "bytes": b"x"})
    texts = {"note": "", "other": "kept"}
    loaded = export.load(path, extra_files=texts)
    assert texts == {"note": "hello", "other": "kept"}
    assert str(loaded.graph) == str(program.graph)
    assert loaded.graph_module.code == program.graph_module.code
    assert loaded.graph_signature == program.graph_signature
    assert loaded.range_constraints == program.range_constraints
    assert loaded.state_dict.keys() == program.state_dict.keys()
    for name, tensor in program.state_dict.items():
        assert type(loaded.state_dict[name]) is type(tensor)
        assert loaded.state_dict[name].requires_grad == tensor.requires_grad
    module, expected = loaded.module(), program.module()
    assert module.training
    assert module.embed.weight is module.head.weight
    ids, by = tl.tensor([6, 5, 4, 3, 2]), {"by": tl.tensor(3.0)}
    tl.manual_seed(1)
    want = expected(ids, by, flag=True)
    tl.manual_seed(1)
    got = module(ids, by, flag=True)
    assert tl.equal(got.first, want.first)
    assert got.second[:2] == [6, None]
    assert (type(got).__name__, type(got)._fields) == ("Pair", ("first", "second"))
    assert module.calls == expected.calls == 1
    got.first.sum().backward()
    assert module.embed.weight.grad is not None


def test_a_loaded_program_can_be_saved_again(program: ExportedProgram) -> None:
    once = saved(program)
    assert saved(export.load(io.BytesIO(once))) == once


def test_what_a_file_cannot_hold(program: ExportedProgram) -> None:
    @tl.op
    def cube(x):  # type: ignore[no-untyped-def]
        return x**3, lambda g: (3 * x * x * g,)

    class Custom(nn.Module):
        def forward(self, x: tl.Tensor) -> tl.Tensor:
            return cube(x)

    try:
        own = export.export(Custom(), (tl.ones(2),))
        assert tl.equal(own.module()(tl.full((2,), 2.0)), tl.full((2,), 8.0))
        with pytest.raises(UnsupportedError, match="which is not one of tallow's ops"):
            saved(own)
    finally:
        del tl.ops.OPS["cube"]
    with pytest.raises(ArgumentTypeError, match="expected an ExportedProgram"):
        export.save(nn.Linear(2, 2), io.BytesIO())  # type: ignore[arg-type]


def test_other_files() -> None:
    with pytest.raises(UnsupportedError, match="an archive of PyTorch"):
        export.load(io.BytesIO(b"PK\x03\x04" + bytes(100)))
    plain = b"".join(bytes(part) for part in safetensors.encode({"x": tl.ones(2)}))
    with pytest.raises(CheckpointError, match="has tensors, but no graph"):
        export.load(io.BytesIO(plain))
    with pytest.raises(CheckpointError):
        export.load(io.BytesIO(b"no file"))


# ------------------------------------------------------------------------------------------------------ hostile files

Change = Callable[[dict[str, Any]], object]


def changed(program: ExportedProgram, change: Change) -> bytes:
    """Return the file of a program with another description."""
    with safetensors.safe_open(saved(program)) as file:
        metadata, tensors = file.metadata(), {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        found = json.loads(metadata[KEY])
        change(found)
        return b"".join(bytes(part) for part in safetensors.encode(tensors, {KEY: json.dumps(found)}))


def deep(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = {"tuple": [value]}
    return value


HOSTILE: dict[str, Change] = {
    "a function that is not an op": lambda f: f["nodes"][0].__setitem__(1, "os.system"),
    "a function of tallow that is not an op": lambda f: f["nodes"][0].__setitem__(1, "tallow.load"),
    "a function that sets the state": lambda f: f["nodes"][0].__setitem__(1, "tallow.set_default_device"),
    "a function by a list": lambda f: f["nodes"][0].__setitem__(1, ["tallow.add"]),
    "code as the name of a node": lambda f: f["nodes"][0].__setitem__(0, "x = __import__('os')\n    y"),
    "code as the name of an input": lambda f: f["inputs"][0].__setitem__(1, "a, b=print()"),
    "code as an argument": lambda f: f["arguments"][0].__setitem__(0, "x=print()"),
    "code as a keyword": lambda f: f["nodes"][0][3].__setitem__("a=1, b", 2),
    "a keyword of Python": lambda f: f["nodes"][0].__setitem__(0, "class"),
    "code as a named tuple": lambda f: f["result"].__setitem__(0, "Pair(print())"),
    "a field of a named tuple": lambda f: f["result"][2].__setitem__(0, "__class__ "),
    "code as a dim": lambda f: f["ranges"].__setitem__("n=1", [1, 2]),
    "a node that is missing": lambda f: f["nodes"][0].__setitem__(2, [{"node": "missing"}]),
    "a node of later": lambda f: f["nodes"][0].__setitem__(2, [{"node": f["nodes"][-1][0]}]),
    "a name twice": lambda f: f["nodes"][1].__setitem__(0, f["nodes"][0][0]),
    "an unknown kind of value": lambda f: f["nodes"][0].__setitem__(2, [{"eval": "1"}]),
    "two kinds of value": lambda f: f["nodes"][0].__setitem__(2, [{"tuple": [], "node": "x"}]),
    "deep values": lambda f: f["nodes"][0].__setitem__(2, [deep(200)]),
    "a dtype that is missing": lambda f: f["nodes"][0].__setitem__(2, [{"dtype": "object"}]),
    "a tensor that is missing": lambda f: f["inputs"][0].__setitem__(2, "missing"),
    "a tensor without a path": lambda f: f["inputs"][0].__setitem__(2, "embed..weight"),
    "an argument without a node": lambda f: f["inputs"].pop(),
    "an argument too many": lambda f: f["arguments"].append(["z", 9]),
    "a leaf twice": lambda f: f["arguments"][0].__setitem__(1, 1),
    "a huge container": lambda f: f["result"].__setitem__(1, [0] * 2000),
    "a result too many": lambda f: f["outputs"].append(["USER_OUTPUT", None, "Tensor"]),
    "an output that is no node": lambda f: f["values"].__setitem__(0, 3),
    "a buffer that is missing": lambda f: f["outputs"][0].__setitem__(1, "missing"),
    "an unknown kind of input": lambda f: f["inputs"][0].__setitem__(0, "CODE"),
    "a negative size": lambda f: f["checks"][0].__setitem__(2, [-1]),
    "a check too few": lambda f: f["checks"].pop(),
    "a state that is missing": lambda f: f["state"].append("missing"),
    "tied to nothing": lambda f: f["tied"].__setitem__("head.weight", "missing"),
    "no nodes": lambda f: f.pop("nodes"),
    "numbers for lists": lambda f: f.__setitem__("inputs", 5),
    "training by a text": lambda f: f.__setitem__("training", "yes"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_is_refused(name: str, program: ExportedProgram) -> None:
    with pytest.raises(CheckpointError):
        export.load(io.BytesIO(changed(program, HOSTILE[name])))


def test_another_version_is_refused(program: ExportedProgram) -> None:
    with pytest.raises(UnsupportedError, match="has version 99 of the format; this reads 1"):
        export.load(io.BytesIO(changed(program, lambda f: f.__setitem__("version", 99))))


def test_a_truncated_file_is_refused(program: ExportedProgram) -> None:
    data = saved(program)
    for length in (0, 4, 100, len(data) // 2, len(data) - 1):
        with pytest.raises(CheckpointError):
            export.load(io.BytesIO(data[:length]))


def test_names_of_parameters_are_no_code() -> None:
    class Odd(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.ModuleDict({'a") + print("b': nn.Linear(2, 2), "class": nn.Linear(2, 2)})

        def forward(self, x: tl.Tensor) -> tl.Tensor:
            for layer in self.layers.values():
                x = layer(x)
            return x

    model = Odd()
    x = tl.ones(1, 2)
    module = export.load(io.BytesIO(saved(export.export(model, (x,))))).module().to(x.device)
    assert tl.equal(module(tl.ones(1, 2)), model(tl.ones(1, 2)))
    assert module.state_dict().keys() == model.state_dict().keys()


@pytest.mark.cpu("files are loaded to the CPU")
def test_buffers_without_state_and_tied_buffers_can_be_written() -> None:
    class Counts(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("calls", tl.zeros(2), persistent=False)
            self.register_buffer("kept", tl.zeros(2))
            self.inner = nn.Module()
            self.inner.register_buffer("same", self.kept)

        def forward(self, x: tl.Tensor) -> tl.Tensor:
            self.calls += 1
            self.kept += 2
            return x * self.calls + self.inner.same

    model = Counts()
    loaded = export.load(io.BytesIO(saved(export.export(model, (tl.ones(2),)))))
    module = loaded.module()
    assert loaded.state_dict["kept"] is loaded.state_dict["inner.same"]
    for _ in range(2):
        assert tl.equal(module(tl.ones(2)), model(tl.ones(2)))
    assert tl.equal(loaded.constants["calls"], tl.full((2,), 2.0))
