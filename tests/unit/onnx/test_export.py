"""Export to ONNX files: names, sizes that vary, weights in a second file, opsets, and what is refused."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tallow as tl
from tallow import nn
from tallow.errors import ArgumentError, ArgumentTypeError, NumericError, UnsupportedError
from tallow.export import Dim
from tallow.export import export as export_program
from tallow.onnx.exporters import program as programs
from tallow.onnx.protobuf import DataType, read_model


class Function(nn.Module):
    """A module of one function."""

    def __init__(self, function: Any) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)


def mlp() -> nn.Sequential:
    tl.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 2))


def written(model: Any, *args: Any, **options: Any) -> bytes:
    file = io.BytesIO()
    tl.onnx.export(model, args, file, **options)
    return file.getvalue()


def operators(file: bytes) -> list[str]:
    graph = read_model(file).graph
    assert graph is not None
    return [node.op_type for node in graph.node]


def shapes(values: Any) -> list[tuple[str, list[Any]]]:
    return [(v.name, [d.dim_param or d.dim_value for d in v.type.tensor_type.shape.dim]) for v in values]


def test_a_module_becomes_operators_with_its_parameters_by_name() -> None:
    file = written(mlp(), tl.randn(4, 3), input_names=["x"], output_names=["y"])
    graph = read_model(file).graph
    assert graph is not None
    assert operators(file) == ["Gemm", "Relu", "Gemm"]
    assert [t.name for t in graph.initializer] == ["0.weight", "0.bias", "2.weight", "2.bias"]
    assert shapes(graph.input) == [("x", [4, 3])]
    assert shapes(graph.output) == [("y", [4, 2])]
    kind: Any = graph.input[0].type
    assert kind.tensor_type.elem_type == DataType.FLOAT


def test_a_loaded_file_computes_the_same() -> None:
    model, x = mlp(), tl.randn(4, 3)
    tl.testing.assert_close(tl.onnx.load(written(model, x))(x), model(x))


@pytest.mark.parametrize(
    "sizes",
    [
        {"dynamic_shapes": ({0: "batch"},)},
        {"dynamic_shapes": {"input": {0: Dim("batch")}}},
        {"dynamic_axes": {"x": {0: "batch"}, "y": {0: "batch"}}},
    ],
)
def test_sizes_vary_by_name_from_an_example_of_one(sizes: dict[str, Any]) -> None:
    model = mlp()
    file = written(model, tl.randn(1, 3), input_names=["x"], output_names=["y"], **sizes)
    graph = read_model(file).graph
    assert graph is not None
    assert shapes([*graph.input, *graph.output]) == [("x", ["batch", 3]), ("y", ["batch", 2])]
    x = tl.randn(5, 3)
    tl.testing.assert_close(tl.onnx.load(file)(x), model(x))


@pytest.mark.parametrize(("name", "size"), [("x", "x_dynamic_axes_1"), ("0.x", "_0_x_dynamic_axes_1")])
def test_a_list_of_dims_gets_names(name: str, size: str) -> None:
    file = written(mlp(), tl.randn(4, 3), input_names=[name], dynamic_axes={name: [-2]})
    graph = read_model(file).graph
    assert graph is not None
    assert shapes(graph.input) == [(name, [size, 3])]


def test_arithmetic_with_sizes_is_part_of_the_graph() -> None:
    def windows(x: tl.Tensor) -> tl.Tensor:
        n = x.shape[0]
        return x[: n - n % 2].reshape(n // 2, 2, -1).sum(1) + tl.arange(n // 2, dtype=x.dtype).unsqueeze(1)

    model = Function(windows)
    loaded = tl.onnx.load(written(model, tl.randn(6, 4), dynamic_shapes={"args": ({0: "n"},)}))
    for n in (4, 7):
        x = tl.randn(n, 4)
        tl.testing.assert_close(loaded(x), model(x))


def test_likeness_of_vectors_takes_any_number_of_them() -> None:
    model = Function(lambda x, y: nn.functional.cosine_similarity(x, y, dim=-1))
    sizes = {"args": ({0: "n"}, {0: "n"})}
    loaded = tl.onnx.load(written(model, tl.randn(2, 4), tl.randn(2, 4), dynamic_shapes=sizes))
    x, y = tl.randn(5, 4), tl.randn(5, 4)
    tl.testing.assert_close(loaded(x, y), model(x, y))


def test_large_weights_lie_in_a_second_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model, x, path = nn.Linear(64, 32), tl.randn(2, 64), tmp_path / "net.onnx"
    tl.onnx.export(model, (x,), path)
    assert (tmp_path / "net.onnx.data").stat().st_size == 64 * 32 * 4
    assert path.stat().st_size < 64 * 32 * 4
    tl.testing.assert_close(tl.onnx.load(path)(x), model(x))
    tl.onnx.export(model, (x,), tmp_path / "one.onnx", external_data=False)
    assert not (tmp_path / "one.onnx.data").exists()
    monkeypatch.setattr(programs, "LARGEST", 1000)
    tl.onnx.export(model, (x,), tmp_path / "large.onnx", external_data=False)
    assert (tmp_path / "large.onnx.data").exists()
    with pytest.raises(UnsupportedError, match="at most 2 GiB"):
        written(model, x)


def test_a_model_is_written_over_the_files_that_it_is_read_from(tmp_path: Path) -> None:
    path, x = tmp_path / "net.onnx", tl.randn(2, 64)
    tl.onnx.export(nn.Linear(64, 32), (x,), path)
    loaded = tl.onnx.load(path)
    expected = loaded(x)
    for _ in range(2):
        tl.onnx.export(loaded, (x,), path)
        tl.testing.assert_close(loaded(x), expected)
        tl.testing.assert_close(tl.onnx.load(path)(x), expected)


def test_weights_may_be_left_out_or_be_inputs() -> None:
    x = tl.randn(2, 3)
    without = read_model(written(nn.Linear(3, 2), x, export_params=False, keep_initializers_as_inputs=True)).graph
    assert without is not None
    assert not without.initializer
    assert [v.name for v in without.input] == ["input_1", "weight", "bias"]


def test_the_mode_is_evaluation_and_is_put_back() -> None:
    model = nn.Sequential(nn.BatchNorm1d(3), nn.Dropout())
    assert operators(written(model, tl.randn(4, 3))) == ["BatchNormalization"]
    assert model.training
    assert model[0].num_batches_tracked == 0


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(5, 4)
        self.head = nn.Linear(4, 5, bias=False)
        self.head.weight = self.table.weight

    def forward(self, ids: tl.Tensor) -> tl.Tensor:
        return self.head(self.table(ids))


def weights(file: bytes) -> dict[str, list[int]]:
    graph = read_model(file).graph
    assert graph is not None
    return {t.name: list(t.dims) for t in graph.initializer if not t.name.startswith("constant")}


@pytest.mark.parametrize("ids", [tl.tensor([1, 2]), tl.tensor([[1, 2]])], ids=["rows", "batch"])
def test_tied_weights_are_one_tensor(ids: tl.Tensor) -> None:
    file = written(Tied(), ids)
    assert weights(file) == {"table.weight": [5, 4]}
    assert ("Transpose" in operators(file)) == (ids.ndim == 2)


def test_weights_of_products_are_stored_as_these_read_them() -> None:
    model, x = mlp(), tl.randn(2, 4, 3)
    file = written(model, x)
    assert operators(file) == ["MatMul", "Add", "Relu", "MatMul", "Add"]
    assert weights(file) == {"0.weight": [3, 8], "0.bias": [8], "2.weight": [8, 2], "2.bias": [2]}
    loaded = tl.onnx.load(file)
    tl.testing.assert_close(loaded(x), model(x))
    shapes = [tuple(p.shape) for p in loaded.parameters() if p.ndim == 2]
    assert sorted(shapes) == [(2, 8), (8, 3)]


def test_a_weight_that_is_an_output_too_stays_as_it_is() -> None:
    layer = nn.Linear(3, 2, bias=False)
    layer.forward = lambda x: (nn.functional.linear(x, layer.weight), layer.weight.T)  # type: ignore[method-assign]
    x = tl.randn(2, 4, 3)
    file = written(layer, x)
    assert weights(file) == {"weight": [2, 3]}
    y, turned = tl.onnx.load(file)(x)
    tl.testing.assert_close(y, x @ layer.weight.T)
    tl.testing.assert_close(turned, layer.weight.T)


@pytest.mark.parametrize("kind", [nn.RNN, nn.LSTM, nn.GRU])
def test_recurrent_layers_keep_the_names_of_their_weights(kind: type[nn.Module]) -> None:
    names = weights(written(kind(3, 4), tl.randn(5, 2, 3)))
    assert {*names} == {"weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0"}
    assert len(names["weight_ih_l0"]) == 3


def test_a_recurrent_layer_that_runs_twice_has_its_weights_once() -> None:
    layer = nn.GRU(3, 4)
    model = Function(lambda x: layer(layer(x)[0][..., :3])[0])
    model.layer = layer
    x = tl.randn(5, 2, 3)
    file = written(model, x)
    names = ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")
    assert sorted(weights(file)) == sorted(f"layer.{name}" for name in names)
    tl.testing.assert_close(tl.onnx.load(file)(x), model(x))


def test_the_one_matrix_of_attention_is_stored_in_parts() -> None:
    layer, x = nn.MultiheadAttention(8, 2, batch_first=True), tl.randn(2, 3, 8)
    model = Function(lambda x: layer(x, 2 * x, 3 * x, need_weights=False)[0])
    model.layer = layer
    file = written(model, x)
    assert "Split" not in operators(file)
    assert [weights(file)[f"layer.in_proj_weight_{part}"] for part in range(3)] == [[8, 8]] * 3
    tl.testing.assert_close(tl.onnx.load(file)(x), model(x))


def test_parts_of_a_weight_that_are_outputs_stay_results() -> None:
    model = Function(lambda x: (x, *tl.split(model.table, 2)))
    model.table = nn.Parameter(tl.randn(4, 3))
    file = written(model, tl.ones(1))
    assert weights(file) == {"table": [4, 3]}
    tl.testing.assert_close(tl.onnx.load(file)(tl.ones(1))[2], model.table[2:])


def test_names_may_be_those_of_other_values() -> None:
    model = Function(lambda a, b: tl.tanh(a - b).exp())
    names = [v.name for v in read_model(written(model, tl.ones(2), tl.zeros(2))).graph.input]  # type: ignore[union-attr]
    file = written(model, tl.ones(2), tl.zeros(2), input_names=names[::-1], output_names=["tanh"])
    graph = read_model(file).graph
    assert graph is not None
    assert [v.name for v in graph.input] == names[::-1]
    assert [v.name for v in graph.output] == ["tanh"]
    result = tl.onnx.load(file)(**{names[1]: tl.ones(2), names[0]: tl.zeros(2)})
    tl.testing.assert_close(result, tl.tanh(tl.ones(2)).exp())


@pytest.mark.parametrize(
    "options", [{"input_names": ["x", "x"]}, {"output_names": ["args_0"]}, {"input_names": ["args_1"]}]
)
def test_two_inputs_or_outputs_have_no_name_in_common(options: dict[str, Any]) -> None:
    with pytest.raises(ArgumentError, match="one name"):
        written(Function(lambda a, b: a + b), tl.ones(2), tl.ones(2), **options)


def test_an_input_that_is_an_output_is_copied() -> None:
    file = written(Function(lambda x: (x, x + 1, x)), tl.ones(2), output_names=["a", "b", "c"])
    assert sorted(operators(file)) == ["Add", "Identity", "Identity"]
    a, b, c = tl.onnx.load(file)(tl.ones(2))
    assert (a.tolist(), b.tolist(), c.tolist()) == ([1, 1], [2, 2], [1, 1])


@pytest.mark.parametrize("opset", [18, 20, 21, 23, 24, 26])
def test_newer_opsets_have_operators_of_their_own(opset: int) -> None:
    model, x = nn.Sequential(nn.GroupNorm(2, 4), nn.GELU(), nn.RMSNorm(4), nn.SiLU()), tl.randn(2, 4, 4)
    file = written(model, x, opset_version=opset)
    names = set(operators(file))
    assert ("Gelu" in names) == (opset >= 20)
    assert ("GroupNormalization" in names) == (opset >= 21)
    assert ("RMSNormalization" in names) == (opset >= 23)
    assert ("Swish" in names) == (opset >= 24)
    tl.testing.assert_close(tl.onnx.load(file)(x), model(x), rtol=1e-5, atol=1e-5)


def test_a_program_is_exported_too() -> None:
    model, x = mlp(), tl.randn(4, 3)
    program = tl.onnx.export(export_program(model, (x,)))
    assert program is not None
    file = io.BytesIO()
    program.save(file)
    tl.testing.assert_close(tl.onnx.load(file.getvalue())(x), model(x))


@pytest.mark.parametrize("options", [{"dynamic_shapes": ({0: "n"},)}, {"dynamic_axes": {"x": [0]}}, {"training": 2}])
def test_a_program_has_sizes_and_a_mode(options: dict[str, Any]) -> None:
    with pytest.raises(ArgumentError, match="a program has the sizes and the mode"):
        tl.onnx.export(export_program(mlp(), (tl.randn(4, 3),)), input_names=["x"], **options)


def test_a_loaded_model_is_exported_again() -> None:
    model, x = mlp(), tl.randn(4, 3)
    again = tl.onnx.load(written(tl.onnx.load(written(model, x)), x, output_names=["y"]))
    assert again.output_names == ("y",)
    tl.testing.assert_close(again(x), model(x))


def test_verify_loads_the_file() -> None:
    assert written(mlp(), tl.randn(4, 3), verify=True)


def test_verify_takes_equal_infinities_and_finds_what_differs() -> None:
    x = tl.tensor([-1.0, 2.0, 3.0])
    masked = tl.onnx.export(Function(lambda x: (x.masked_fill(x > 2, -float("inf")), x.sqrt())), (x,), verify=True)
    assert masked is not None
    program = tl.onnx.export(nn.Linear(3, 2), (tl.zeros(4, 3),))
    assert program is not None
    assert program.model_proto.graph is not None
    bias = program.model_proto.graph.initializer[-1]
    bias.raw_data = (np.frombuffer(bias.raw_data, np.float32) + 1).tobytes()
    with pytest.raises(NumericError, match="output 0 of the file differs by 1"):
        program.verify()


def test_everything_without_a_form_is_named_at_once() -> None:
    def forward(x: tl.Tensor) -> Any:
        return tl.erfinv(x) + tl.erfinv(x + 0.1) + tl.lgamma(x)

    with pytest.raises(UnsupportedError, match=r"2 x erfinv \(.*\n.*1 x lgamma \("):
        written(Function(forward), tl.rand(3))


def test_the_modules_that_cannot_be_exported_are_named() -> None:
    model = nn.Sequential(nn.Linear(3, 3), nn.Sequential(Function(tl.erfinv), nn.Tanh()), Function(tl.erfinv))
    with pytest.raises(UnsupportedError, match=r"2 x erfinv \(1\.0, .*, 2\)"):
        written(model, tl.rand(2, 3))
    assert not any(module._forward_hooks for module in model.modules())


def test_an_argument_without_a_form_is_named() -> None:
    with pytest.raises(UnsupportedError, match=r"scatter_reduce: include_self=False"):
        written(
            Function(lambda x: x.scatter_reduce(0, tl.tensor([0, 0]), x[:2], "amax", include_self=False)), tl.rand(3)
        )


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"opset_version": 9}, UnsupportedError, "18 to 26"),
        ({"report": True}, UnsupportedError, "report"),
        ({"custom_opsets": {"mine": 1}}, UnsupportedError, "custom_opsets"),
        ({"input_names": ["a", "b"]}, ArgumentError, "2 input_names for 1"),
        ({"output_names": ["a", "b"]}, ArgumentError, "2 output_names for 1"),
        ({"dynamic_axes": {"z": {0: "n"}}}, ArgumentError, "called 'z'"),
        ({"input_names": ["x"], "dynamic_axes": {"x": {7: "n"}}}, ArgumentError, "'x' has no dim 7; it has 2"),
        ({"output_names": ["y"], "dynamic_axes": {"y": [-3]}}, ArgumentError, "'y' has no dim -3; it has 2"),
        ({"opset_version": "18"}, UnsupportedError, "not '18'"),
        ({"dynamo": False, "dynamic_shapes": ({0: "n"},)}, ArgumentError, "dynamic_axes"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(options: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        written(mlp(), tl.randn(2, 3), **options)


def test_what_is_no_module_and_no_tuple_is_refused() -> None:
    with pytest.raises(ArgumentTypeError, match="expected a Module"):
        tl.onnx.export(lambda x: x, (tl.ones(2),))
    with pytest.raises(ArgumentTypeError, match="args must be a tuple"):
        tl.onnx.export(mlp(), [tl.ones(2, 3)])


def test_buffers_that_change_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="running_mean"):
        written(nn.BatchNorm1d(3), tl.randn(4, 3), training=2)


def test_the_older_call_returns_nothing() -> None:
    assert tl.onnx.export(mlp(), (tl.randn(2, 3),), io.BytesIO(), dynamo=False) is None


def test_unused_optimizations_warn() -> None:
    with pytest.warns(UserWarning, match="do_constant_folding"):
        written(mlp(), tl.randn(2, 3), do_constant_folding=False)


def test_own_exporters_come_first() -> None:
    def doubled(g: Any, input: Any) -> Any:
        return g.op("Add", input, input)

    file = written(Function(tl.erfinv), tl.rand(3), custom_translation_table={tl.erfinv: doubled})
    assert operators(file) == ["Add"]
