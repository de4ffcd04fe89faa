"""candle's API: variables by name from a VarMap or a file, layers and their initial values, func, seq, GradStore."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tallow as tl
from tallow import nn
from tallow.errors import ArgumentError, CheckpointError, MissingNameError, ShapeError
from tallow.io import safetensors
from tallow.nn import Init, VarBuilder, VarMap

# For each layer: how to create it, its type, and its variables with their shapes, from candle_nn's sources.
LAYERS: dict[str, tuple[Callable[[VarBuilder], nn.Module], type[nn.Module], dict[str, tuple[int, ...]]]] = {
    "linear": (lambda vb: nn.linear(3, 2, vb), nn.Linear, {"weight": (2, 3), "bias": (2,)}),
    "linear_b": (lambda vb: nn.linear_b(3, 2, False, vb), nn.Linear, {"weight": (2, 3)}),
    "linear_no_bias": (lambda vb: nn.linear_no_bias(3, 2, vb), nn.Linear, {"weight": (2, 3)}),
    "embedding": (lambda vb: nn.embedding(5, 2, vb), nn.Embedding, {"weight": (5, 2)}),
    "layer_norm": (lambda vb: nn.layer_norm(3, 1e-5, vb), nn.LayerNorm, {"weight": (3,), "bias": (3,)}),
    "layer_norm_no_bias": (lambda vb: nn.layer_norm_no_bias(3, 1e-5, vb), nn.LayerNorm, {"weight": (3,)}),
    "rms_norm": (lambda vb: nn.rms_norm(3, 1e-5, vb), nn.RMSNorm, {"weight": (3,)}),
    "group_norm": (lambda vb: nn.group_norm(2, 4, 1e-5, vb), nn.GroupNorm, {"weight": (4,), "bias": (4,)}),
    "batch_norm": (
        lambda vb: nn.batch_norm(3, 1e-5, vb),
        nn.BatchNorm2d,
        {"running_mean": (3,), "running_var": (3,), "weight": (3,), "bias": (3,)},
    ),
    "batch_norm plain": (
        lambda vb: nn.batch_norm(3, 1e-5, vb, affine=False, dims=1),
        nn.BatchNorm1d,
        {"running_mean": (3,), "running_var": (3,)},
    ),
    "conv1d": (lambda vb: nn.conv1d(4, 6, 3, vb, groups=2), nn.Conv1d, {"weight": (6, 2, 3), "bias": (6,)}),
    "conv1d_no_bias": (lambda vb: nn.conv1d_no_bias(4, 6, 3, vb), nn.Conv1d, {"weight": (6, 4, 3)}),
    "conv2d": (lambda vb: nn.conv2d(4, 6, 3, vb, stride=2), nn.Conv2d, {"weight": (6, 4, 3, 3), "bias": (6,)}),
    "conv2d_no_bias": (lambda vb: nn.conv2d_no_bias(4, 6, 3, vb), nn.Conv2d, {"weight": (6, 4, 3, 3)}),
    "conv_transpose1d": (
        lambda vb: nn.conv_transpose1d(4, 6, 3, vb),
        nn.ConvTranspose1d,
        {"weight": (4, 6, 3), "bias": (6,)},
    ),
    "conv_transpose2d": (
        lambda vb: nn.conv_transpose2d(4, 6, 3, vb),
        nn.ConvTranspose2d,
        {"weight": (4, 6, 3, 3), "bias": (6,)},
    ),
    "prelu": (lambda vb: nn.prelu(None, vb), nn.PReLU, {"weight": (1,)}),
    "prelu channels": (lambda vb: nn.prelu(4, vb), nn.PReLU, {"weight": (4,)}),
    "lstm": (
        lambda vb: nn.lstm(3, 2, vb),
        nn.LSTM,
        {"weight_ih_l0": (8, 3), "weight_hh_l0": (8, 2), "bias_ih_l0": (8,), "bias_hh_l0": (8,)},
    ),
    "gru": (lambda vb: nn.gru(3, 2, vb, bias=False), nn.GRU, {"weight_ih_l0": (6, 3), "weight_hh_l0": (6, 2)}),
}
INPUTS = {"embedding": tl.tensor([0, 4]), "lstm": tl.ones(2, 5, 3), "gru": tl.ones(2, 5, 3)}
INPUTS |= {name: tl.ones(2, 4, 7) for name in ("group_norm", "conv1d", "conv1d_no_bias", "conv_transpose1d", "prelu")}
INPUTS |= {name: tl.ones(2, 4, 7, 7) for name in ("conv2d", "conv2d_no_bias", "conv_transpose2d", "prelu channels")}
INPUTS |= {"batch_norm": tl.ones(2, 3, 4, 4)}


def varmap_and_builder() -> tuple[VarMap, VarBuilder]:
    varmap = VarMap()
    return varmap, VarBuilder.from_varmap(varmap)


def own_variables(layer: nn.Module) -> dict[str, tl.Tensor]:
    state = layer.state_dict(keep_vars=True)
    return {name: tensor for name, tensor in state.items() if name != "num_batches_tracked"}


@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_is_the_module_of_nn_on_the_variables_of_the_map(name: str) -> None:
    make, kind, shapes = LAYERS[name]
    varmap, vb = varmap_and_builder()
    layer = make(vb.pp("a").pp(0))
    assert type(layer) is kind
    assert {path: tuple(var.shape) for path, var in varmap.data().items()} == {f"a.0.{k}": v for k, v in shapes.items()}
    assert all(var is varmap.data()[f"a.0.{own}"] for own, var in own_variables(layer).items())
    result = layer(INPUTS.get(name, tl.ones(2, 3)))
    result = result[0] if isinstance(result, tuple) else result
    trained = [var for var in varmap.all_vars() if var.requires_grad]
    assert [isinstance(var, nn.Parameter) for var in varmap.all_vars()] == [v.requires_grad for v in varmap.all_vars()]
    if trained:
        store = result.sum().backward()
        assert all(store.get(var) is not None for var in trained)


@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_takes_the_tensors_of_a_state_dict_as_they_are(name: str) -> None:
    make, _, shapes = LAYERS[name]
    tensors = {f"a.{key}": tl.randn(shape).abs() for key, shape in shapes.items()}
    layer = make(VarBuilder.from_tensors(tensors).pp("a"))
    for key, own in own_variables(layer).items():
        assert own.array is tensors[f"a.{key}"].array
        assert not own.requires_grad
    layer(INPUTS.get(name, tl.ones(2, 3)))


def test_a_layer_of_candles_documentation() -> None:
    vb = VarBuilder.from_tensors({"weight": tl.tensor([[1.0, 2], [3, 4], [5, 6]])})
    assert nn.linear_no_bias(2, 3, vb)(tl.tensor([[10.0, 100.0]])).tolist() == [[210, 430, 650]]


@pytest.mark.parametrize(
    ("make", "name", "std", "bound"),
    [
        (lambda vb: nn.linear(200, 300, vb), "weight", (2 / 200) ** 0.5, None),
        (lambda vb: nn.linear(4, 5000, vb), "bias", 0.5 / 3**0.5, 0.5),
        (lambda vb: nn.embedding(300, 100, vb), "weight", 1.0, None),
        (lambda vb: nn.conv1d(50, 60, 7, vb), "weight", (2 / 350) ** 0.5, None),
        (lambda vb: nn.conv2d(50, 60, 3, vb), "weight", (2 / 450) ** 0.5, None),
        (lambda vb: nn.conv2d(4, 5000, 3, vb), "bias", 0.5 / 3**0.5, 0.5),
        (lambda vb: nn.conv_transpose1d(50, 16, 4, vb), "weight", 0.125 / 3**0.5, 0.125),
        (lambda vb: nn.conv_transpose2d(50, 16, 2, vb), "weight", 0.125 / 3**0.5, 0.125),
        (lambda vb: nn.lstm(50, 80, vb), "weight_ih_l0", (2 / 50) ** 0.5, (6 / 50) ** 0.5),
        (lambda vb: nn.lstm(50, 80, vb), "bias_ih_l0", 0.0, 0.0),
        (lambda vb: nn.prelu(3, vb), "weight", 0.0, 0.25),
        (lambda vb: nn.batch_norm(3, 1e-5, vb), "running_var", 0.0, 1.0),
        (lambda vb: nn.layer_norm(3, 1e-5, vb), "bias", 0.0, 0.0),
    ],
)
def test_initial_values_are_candles(make: Any, name: str, std: float, bound: float | None) -> None:
    tl.manual_seed(0)
    varmap, vb = varmap_and_builder()
    make(vb)
    values = varmap.data()[name].detach().numpy()
    assert values.std() == pytest.approx(std, rel=0.03, abs=1e-7)
    if bound is not None:
        assert abs(values).max() <= bound
        assert abs(values).max() == pytest.approx(bound, rel=0.01)


@pytest.mark.parametrize(
    ("init", "std", "mean"),
    [
        (Init.Const(0.5), 0.0, 0.5),
        (Init.Randn(2.0, 0.1), 0.1, 2.0),
        (Init.Uniform(-1.0, 3.0), 4 / 12**0.5, 1.0),
        (Init.Kaiming(), (2 / 600) ** 0.5, 0.0),
        (Init.Kaiming("uniform", "fan_out", "tanh"), 5 / 3 / 400**0.5, 0.0),
        (Init.Kaiming("normal", "fan_in", "selu"), 0.75 / 600**0.5, 0.0),
        (Init.Kaiming(non_linearity=3.0), 3 / 600**0.5, 0.0),
        (Init.ZERO, 0.0, 0.0),
        (Init.ONE, 0.0, 1.0),
    ],
    ids=repr,
)
def test_init_has_the_documented_mean_and_spread(init: Any, std: float, mean: float) -> None:
    tl.manual_seed(0)
    values = VarMap().get((200, 300, 2), "x", init).detach().numpy()
    assert values.std() == pytest.approx(std, rel=0.02, abs=1e-7)
    assert values.mean() == pytest.approx(mean, abs=0.02)


def test_kaiming_takes_vectors_and_numbers_and_refuses_other_words() -> None:
    assert Init.Kaiming("uniform").fill_(tl.zeros(1000)).abs().max().item() <= 6**0.5
    assert Init.Kaiming("uniform", "fan_out").fill_(tl.zeros(())).abs().item() <= 6**0.5
    with pytest.raises(ArgumentError, match="dist='gauss'"):
        Init.Kaiming("gauss")
    with pytest.raises(ArgumentError, match="fan='in'"):
        Init.Kaiming("normal", "in")


# ------------------------------------------------------------------------------------------------------------- VarMap


def test_a_variable_is_created_once_and_has_one_shape() -> None:
    varmap, vb = varmap_and_builder()
    first, again = vb.get((2, 3), "w"), vb.get_with_hints((2, 3), "w", Init.ONE)
    assert again is first
    assert again.tolist() == [[0, 0, 0], [0, 0, 0]]
    with pytest.raises(ShapeError, match=r"'w' has shape \(2, 3\), but \(3, 2\) is requested"):
        vb.get((3, 2), "w")
    assert [id(var) for var in varmap.all_vars()] == [id(first)]


def test_two_layers_with_one_prefix_share_weights() -> None:
    _, vb = varmap_and_builder()
    assert nn.linear(3, 3, vb.pp("a")).weight is nn.linear(3, 3, vb.pp("a")).weight


def test_a_map_is_saved_and_loaded(tmp_path: Path) -> None:
    def model(vb: VarBuilder) -> nn.Module:
        return nn.seq().add(nn.linear(3, 4, vb.pp("fc1"))).add_fn(tl.relu).add(nn.linear(4, 2, vb.pp("fc2")))

    varmap, vb = varmap_and_builder()
    one, x = model(vb), tl.randn(5, 3)
    varmap.save(tmp_path / "m.safetensors")
    assert set(tl.load(tmp_path / "m.safetensors")) == {"fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias"}
    other_map, other_vb = varmap_and_builder()
    other = model(other_vb)
    assert (other(x) != one(x)).any()
    assert other_map.load(tmp_path / "m.safetensors") == ([], [])
    assert (other(x) == one(x)).all()
    fixed = model(VarBuilder.from_safetensors(tmp_path / "m.safetensors"))
    assert (fixed(x) == one(x)).all()
    assert not fixed(x).requires_grad
    fixed.requires_grad_()
    assert fixed(x).requires_grad


def test_loading_reports_all_mismatches_and_changes_nothing(tmp_path: Path) -> None:
    varmap, vb = varmap_and_builder()
    for name in ("a", "b", "c"):
        vb.get(2, name)
    safetensors.save({"a": tl.ones(2), "b": tl.ones(3), "d": tl.ones(1)}, tmp_path / "m")
    with pytest.raises(CheckpointError) as caught:
        varmap.load(tmp_path / "m")
    for line in ("missing      c", "unexpected   d", "wrong shape  b: file (3,), model (2,)"):
        assert line in str(caught.value)
    with pytest.raises(CheckpointError, match="wrong shape  b"):
        varmap.load(tmp_path / "m", strict=False)
    assert all(var.tolist() == [0, 0] for var in varmap.all_vars())
    safetensors.save({"a": tl.ones(2), "d": tl.ones(1)}, tmp_path / "m")
    assert varmap.load(tmp_path / "m", strict=False) == (["b", "c"], ["d"])
    assert varmap.data()["a"].tolist() == [1, 1]


def test_values_are_set_by_name_all_or_none() -> None:
    varmap, vb = varmap_and_builder()
    a, b = vb.get(2, "a"), vb.get(1, "b")
    varmap.set_one("a", tl.tensor([1, 2]))
    varmap.set([("b", tl.tensor([3.0], dtype=tl.float64))])
    assert (a.tolist(), b.tolist(), b.dtype) == ([1, 2], [3], tl.float32)
    with pytest.raises(MissingNameError, match="no 'x', 'y'"):
        varmap.set({"a": tl.zeros(2), "x": tl.zeros(2), "y": tl.zeros(2)})
    with pytest.raises(CheckpointError, match="wrong shape  b"):
        varmap.set({"a": tl.zeros(2), "b": tl.zeros(2)})
    assert a.tolist() == [1, 2]


# --------------------------------------------------------------------------------------------------------- VarBuilder


def test_prefixes_lead_to_names() -> None:
    vb = VarBuilder.from_tensors({"a.1.w": tl.ones(1)}, dtype=tl.float64, device="cpu")
    deep = vb.pp("a").push_prefix(1)
    assert (vb.prefix(), deep.prefix(), deep.root().prefix()) == ("", "a.1", "")
    assert deep.set_prefix("x.y").prefix() == "x.y"
    assert deep.contains_tensor("w")
    assert "w" in deep
    assert not vb.contains("w")
    assert repr(deep) == "VarBuilder(prefix='a.1', dtype=tallow.float64, device=cpu)"
    assert (deep.dtype, str(deep.device)) == (tl.float64, "cpu")
    assert deep.to_dtype(tl.float32).prefix() == "a.1"


def test_dtype_and_device_are_those_of_the_builder() -> None:
    tensors = {"w": tl.ones(2, dtype=tl.bfloat16)}
    assert VarBuilder.from_tensors(tensors).get(2, "w").dtype is tl.bfloat16
    vb = VarBuilder.from_tensors(tensors, dtype=tl.float32)
    assert vb.get(2, "w").dtype is tl.float32
    assert vb.to_dtype(tl.float16).get(2, "w").dtype is tl.float16
    assert str(VarBuilder.from_tensors(tensors, device="meta").get(2, "w").device) == "meta"
    new = VarBuilder.from_varmap(VarMap(), dtype=tl.float64)
    assert nn.linear(2, 2, new).weight.dtype is tl.float64


def test_zeros_has_everything() -> None:
    vb = VarBuilder.zeros(dtype=tl.float16)
    assert vb.pp("x").contains_tensor("y")
    assert vb.get((2, 1), "w").tolist() == [[0], [0]]
    assert nn.linear(2, 2, vb).weight.dtype is tl.float16


def test_errors_list_existing_names() -> None:
    vb = VarBuilder.from_tensors({"enc.0.w": tl.ones(2), "enc.1.w": tl.ones(2), "n": 3})  # type: ignore[dict-item]
    with pytest.raises(CheckpointError, match=r"no tensor 'enc\.0\.bias'; below 'enc\.0' it has enc\.0\.w"):
        vb.pp("enc").pp(0).get(2, "bias")
    with pytest.raises(CheckpointError, match=r"below 'enc' it has enc\.0\.w, enc\.1\.w"):
        vb.get(2, "enc.7.w")
    with pytest.raises(CheckpointError, match=r"in all it has enc\.0\.w, enc\.1\.w, n"):
        vb.get(2, "w")
    with pytest.raises(CheckpointError, match=r"'enc\.0\.w' has shape \(2,\), but \(3,\) is requested"):
        vb.get(3, "enc.0.w")
    with pytest.raises(CheckpointError, match="'n' is int"):
        vb.get(1, "n")
    with pytest.raises(CheckpointError, match="it is empty"):
        VarBuilder.from_tensors({}).get(1, "n")


def test_shards_are_read_by_name_by_index_and_by_folder(tmp_path: Path) -> None:
    shards = {"one.safetensors": {"a.weight": tl.ones(2, 2)}, "two.safetensors": {"a.bias": tl.zeros(2)}}
    for shard, tensors in shards.items():
        safetensors.save(tensors, tmp_path / shard)
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {n: shard for shard, tensors in shards.items() for n in tensors}}))
    for paths in ([tmp_path / shard for shard in shards], index, [str(index)], tmp_path):
        layer = nn.linear(2, 2, VarBuilder.from_mmaped_safetensors(paths).pp("a"))
        assert layer(tl.tensor([1.0, 2.0])).tolist() == [3, 3]
    with pytest.raises(CheckpointError, match=r"also in another of these files: a\.weight"):
        VarBuilder.from_safetensors([tmp_path / "one.safetensors", index])


@pytest.mark.native
@pytest.mark.cpu("memory is the file's")
def test_a_file_is_mapped_not_read(tmp_path: Path) -> None:
    path = tmp_path / "m.safetensors"
    safetensors.save({"weight": tl.ones(2, 2)}, path)
    layer = nn.linear_no_bias(2, 2, VarBuilder.from_safetensors(path))
    base = layer.weight.array
    while isinstance(base, np.ndarray) and base.base is not None:
        base = base.base
    assert type(base).__name__ == "mmap"


def test_other_formats_come_through_load(tmp_path: Path) -> None:
    tensors = {"a.weight": tl.ones(1, 2), "a.bias": tl.zeros(1)}
    tl.save(tensors, tmp_path / "m.npz")
    tl.save({"model": tensors, "epoch": 3}, tmp_path / "m.pth")
    sources = [
        VarBuilder.from_npz(tmp_path / "m.npz"),
        VarBuilder.from_pth(tmp_path / "m.pth", key="model"),
        VarBuilder.from_file(tmp_path / "m.pth", key="model"),
    ]
    for vb in sources:
        assert nn.linear(2, 1, vb.pp("a"))(tl.tensor([1.0, 2.0])).tolist() == [3]
    with pytest.raises(CheckpointError, match=r"has no entry .optimizer.; it contains model, epoch"):
        VarBuilder.from_pth(tmp_path / "m.pth", key="optimizer")
    tl.save(tl.ones(2), tmp_path / "x.npy")
    with pytest.raises(CheckpointError, match="does not contain tensors by name, but Tensor"):
        VarBuilder.from_file(tmp_path / "x.npy")


# ------------------------------------------------------------------------------------------------- chains and training


def test_seq_func_and_func_t() -> None:
    chain = nn.seq().add(nn.Linear(2, 2)).add_fn(tl.relu).add(nn.func(lambda x: x + 1))
    x = tl.randn(3, 2)
    results = chain.forward_all(x)
    assert [(a == b).all().item() for a, b in zip(results, [chain[0](x), chain[0](x).relu(), chain(x)], strict=True)]
    assert (results[-1] == chain(x)).all()
    assert repr(nn.func(tl.relu)) == "Func(relu)"
    assert len(chain) == 3
    assert len(nn.seq()) == 0
    noisy = nn.seq().add(nn.func_t(lambda x, train: -x if train else x))
    one = tl.ones(1)
    assert [noisy.forward_t(one, train=True).item(), noisy.forward_t(one, train=False).item()] == [-1, 1]
    assert noisy.eval()(one).item() == 1


def test_dropout_by_forward_t() -> None:
    dropout, x = nn.Dropout(0.5), tl.ones(1000)
    assert set(dropout.forward_t(x, train=True).tolist()) == {0.0, 2.0}
    assert (dropout.forward_t(x, train=False) == x).all()
    assert dropout.training


def test_backward_returns_the_gradients_by_variable() -> None:
    varmap, vb = varmap_and_builder()
    w, unused = vb.get_with_hints(2, "w", Init.ONE), vb.get(1, "unused")
    store = (w * w).sum().backward()
    assert store.get(w).tolist() == [2, 2]
    assert store.get(unused) is None
    optimizer = tl.optim.SGD(varmap.all_vars(), lr=0.25)
    optimizer.backward_step((w * w).sum())
    assert w.tolist() == [0.5, 0.5]


def test_running_statistics_are_the_maps() -> None:
    varmap, vb = varmap_and_builder()
    layer = nn.batch_norm(1, 1e-5, vb.pp("bn"), momentum=0.5, dims=1)
    layer(tl.tensor([[1.0], [3.0]]))
    assert varmap.data()["bn.running_mean"].tolist() == [1]
    assert varmap.data()["bn.running_var"].tolist() == [1.5]
