"""Layers on their own: initialization, refused arguments, and behaviour besides forward."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import tallow as tl
from tallow import nn
from tallow.errors import ArgumentError, ArgumentTypeError, DimensionError, ShapeError, TallowError
from tallow.nn import init

SPREAD = 0.05  # three standard deviations of a standard deviation estimated from at least 2,000 samples


def moments(parameter: tl.Tensor) -> tuple[float, float, float]:
    """Return mean, standard deviation, and the largest magnitude."""
    values = parameter.detach().numpy()
    return float(values.mean()), float(values.std()), float(np.abs(values).max())


# ----------------------------------------------------------------------------------------- initial distributions

UNIFORM = {  # the bound 1/√k of PyTorch's documentation, for each layer
    "Linear": (lambda: nn.Linear(64, 80), 64),
    "Bilinear": (lambda: nn.Bilinear(16, 9, 30), 16),
    "Conv1d": (lambda: nn.Conv1d(32, 64, 3), 32 * 3),
    "Conv2d": (lambda: nn.Conv2d(16, 64, (3, 2), groups=4), 4 * 6),
    "ConvTranspose2d": (lambda: nn.ConvTranspose2d(16, 32, 3), 32 * 9),
    "LSTM": (lambda: nn.LSTM(20, 25), 25),
    "GRUCell": (lambda: nn.GRUCell(20, 36), 36),
}


@pytest.mark.parametrize("name", UNIFORM)
def test_uniform_layers(name: str) -> None:
    make, k = UNIFORM[name]
    tl.manual_seed(0)
    module = make()
    bound = k**-0.5
    for parameter_name, parameter in module.named_parameters():
        mean, std, largest = moments(parameter)
        assert largest <= bound, parameter_name
        if parameter.numel() > 2000:
            assert abs(mean) < SPREAD * bound
            assert std == pytest.approx(bound / 3**0.5, rel=SPREAD)
            assert largest > 0.98 * bound


def test_normal_tables() -> None:
    tl.manual_seed(0)
    for table in (nn.Embedding(100, 30, padding_idx=3), nn.EmbeddingBag(100, 30, padding_idx=-97)):
        mean, std, _ = moments(table.weight)
        assert abs(mean) < SPREAD
        assert std == pytest.approx(1, rel=SPREAD)
        assert not table.weight[3].detach().numpy().any()


def test_attention_starts_at_xavier() -> None:
    tl.manual_seed(0)
    layer = nn.MultiheadAttention(32, 4, add_bias_kv=True)
    _, std, largest = moments(layer.in_proj_weight)
    bound = (6 / (32 + 96)) ** 0.5
    assert largest <= bound
    assert std == pytest.approx(bound / 3**0.5, rel=SPREAD)
    assert not layer.in_proj_bias.detach().numpy().any()
    assert not layer.out_proj.bias.detach().numpy().any()
    assert moments(layer.bias_k)[1] > 0


def test_norms_start_as_the_identity() -> None:
    for norm in (nn.BatchNorm2d(4), nn.GroupNorm(2, 4), nn.InstanceNorm1d(4, affine=True), nn.LayerNorm(4)):
        assert (norm.weight.detach().numpy() == 1).all()
        assert (norm.bias.detach().numpy() == 0).all()
    batch = nn.BatchNorm1d(3)
    assert batch.num_batches_tracked.dtype == tl.int64
    assert (batch.running_var.numpy() == 1).all()


@pytest.mark.parametrize("shape", [(6, 4), (4, 6), (4, 2, 3), (5, 5)])
def test_orthogonal(shape: tuple[int, ...]) -> None:
    tl.manual_seed(0)
    w = init.orthogonal_(tl.empty(shape, dtype=tl.float64), gain=2.0).numpy().reshape(shape[0], -1)
    product = w @ w.T if w.shape[0] <= w.shape[1] else w.T @ w
    np.testing.assert_allclose(product, 4 * np.eye(len(product)), atol=1e-12)


@pytest.mark.parametrize(("shape", "groups"), [((4, 4, 3), 1), ((4, 2, 3, 3), 2), ((6, 4, 1, 3, 3), 1)])
def test_dirac_passes_channels_on(shape: tuple[int, ...], groups: int) -> None:
    weight = init.dirac_(tl.empty(shape), groups)
    dims = len(shape) - 2
    x = tl.randn(2, shape[1] * groups, *[5] * dims)
    y = getattr(nn.functional, f"conv{dims}d")(x, weight, padding="same", groups=groups).numpy()
    channels = min(shape[0] // groups, shape[1])
    for group in range(groups):
        rows = slice(group * shape[0] // groups, group * shape[0] // groups + channels)
        np.testing.assert_array_equal(y[:, rows], x.numpy()[:, group * shape[1] : group * shape[1] + channels])


def test_sparse_has_zeros_in_each_column() -> None:
    tl.manual_seed(0)
    w = init.sparse_(tl.empty(40, 50), sparsity=0.3, std=0.5).numpy()
    assert ((w == 0).sum(axis=0) == 12).all()
    assert w[w != 0].std() == pytest.approx(0.5, rel=SPREAD)


def test_init_refuses_and_leaves_meta_alone() -> None:
    for fill, shape in (
        (init.eye_, (3,)),
        (init.dirac_, (3, 3)),
        (init.orthogonal_, (3,)),
        (init.xavier_normal_, (3,)),
    ):
        with pytest.raises(ArgumentError):
            fill(tl.empty(shape))
    with pytest.raises(ArgumentError):
        init.sparse_(tl.empty(3), 0.1)
    layer = nn.Conv2d(2000, 1000, 9, device="meta")  # 648 MB, if it had memory
    assert layer.weight.shape == (1000, 2000, 9, 9)


# -------------------------------------------------------------------------------------------------------------- errors

REFUSED: list[tuple[str, Any]] = [
    ("groups", lambda: nn.Conv2d(4, 6, 3, groups=4)),
    ("padding", lambda: nn.Conv1d(4, 4, 3, padding="half")),
    ("strided", lambda: nn.Conv1d(4, 4, 3, stride=2, padding="same")),
    ("padding_mode", lambda: nn.Conv1d(4, 4, 3, padding_mode="mirror")),
    ("padding_mode", lambda: nn.ConvTranspose1d(4, 4, 3, padding_mode="circular")),
    ("output size", lambda: nn.ConvTranspose1d(1, 1, 3, 2)(tl.ones(1, 1, 4), output_size=[20])),
    ("output_size", lambda: nn.ConvTranspose1d(1, 1, 3, 2)(tl.ones(1, 1, 4), output_size=[9, 9])),
    ("3D", lambda: nn.CircularPad1d(1)(tl.ones(4))),
    ("4D", lambda: nn.BatchNorm2d(3)(tl.ones(2, 3))),
    ("channels", lambda: nn.InstanceNorm1d(3, affine=True)(tl.ones(2, 4, 5))),
    ("more than 1 value", lambda: nn.BatchNorm1d(3)(tl.ones(1, 3))),
    ("groups", lambda: nn.GroupNorm(3, 4)),
    ("probability", lambda: nn.Dropout2d(1.5)),
    ("max_val", lambda: nn.Hardtanh(1.0, -1.0)),
    ("Softmax2d", lambda: nn.Softmax2d()(tl.ones(3))),
    ("delta", lambda: nn.HuberLoss(delta="1")),
    ("p must", lambda: nn.MultiMarginLoss(3)),
    ("weight", lambda: nn.MultiMarginLoss(weight=tl.ones(2, 2))),
    ("margin", lambda: nn.TripletMarginLoss(0.0)),
    ("margin", lambda: nn.TripletMarginWithDistanceLoss(margin=-1.0)),
    ("ints", lambda: nn.Unflatten(1, ("a", 2))),
    ("in1_features", lambda: nn.Bilinear(0, 3, 2)),
    ("padding_idx", lambda: nn.EmbeddingBag(3, 2, padding_idx=3)),
    ("weight", lambda: nn.Embedding(3, 2, _weight=tl.ones(2, 2))),
    ("from_pretrained", lambda: nn.Embedding.from_pretrained(tl.ones(2))),
    ("mode", lambda: nn.RNNBase("SRU", 3, 4)),
    ("positive", lambda: nn.LSTM(3, 0)),
    ("ints", lambda: nn.GRU(3.0, 4)),
    ("proj_size", lambda: nn.LSTM(3, 4, proj_size=4)),
    ("dropout", lambda: nn.LSTM(3, 4, 2, dropout=2.0)),
    ("nonlinearity", lambda: nn.RNN(3, 4, nonlinearity="sin")),
    ("nonlinearity", lambda: nn.RNNCell(3, 4, nonlinearity="sin")),
    ("2D or 3D", lambda: nn.RNN(3, 4)(tl.ones(3))),
    ("input_size", lambda: nn.RNN(3, 4)(tl.ones(2, 2, 5))),
    ("hidden size", lambda: nn.GRU(3, 4)(tl.ones(2, 2, 3), tl.ones(1, 1, 4))),
    ("2D", lambda: nn.GRU(3, 4)(tl.ones(2, 3), tl.ones(1, 1, 4))),
    ("float64", lambda: nn.GRU(3, 4)(tl.ones(2, 2, 3, dtype=tl.float64))),
    ("one step", lambda: nn.LSTM(3, 4)(tl.ones(0, 2, 3))),
    ("input_size", lambda: nn.LSTMCell(3, 4)(tl.ones(2, 2))),
    ("1D or 2D", lambda: nn.GRUCell(3, 4)(tl.ones(2, 2, 3))),
    ("heads", lambda: nn.MultiheadAttention(6, 4)),
    ("activation", lambda: nn.TransformerEncoderLayer(4, 2, activation="swish")),
    ("batch sizes", lambda: nn.Transformer(4, 2, 1, 1, 8)(tl.ones(3, 2, 4), tl.ones(3, 1, 4))),
    ("d_model", lambda: nn.Transformer(4, 2, 1, 1, 8)(tl.ones(3, 2, 5), tl.ones(3, 2, 4))),
    ("lengths", lambda: nn.utils.rnn.pack_padded_sequence(tl.ones(4, 2, 3), [4])),
    ("from 1 to 4", lambda: nn.utils.rnn.pack_padded_sequence(tl.ones(4, 2, 3), [5, 2])),
    ("from 1 to 4", lambda: nn.utils.rnn.pack_padded_sequence(tl.ones(4, 2, 3), [4, 0])),
    ("descending", lambda: nn.utils.rnn.pack_padded_sequence(tl.ones(4, 2, 3), [2, 4])),
    ("total_length", lambda: nn.utils.rnn.pad_packed_sequence(nn.utils.rnn.pack_sequence([tl.ones(3)]), False, 0.0, 2)),
    ("no sequences", lambda: nn.utils.rnn.pad_sequence([])),
    ("padding_side", lambda: nn.utils.rnn.pad_sequence([tl.ones(2)], padding_side="up")),
    ("no parameter", lambda: nn.utils.weight_norm(nn.ReLU())),
    ("already", lambda: nn.utils.weight_norm(nn.utils.weight_norm(nn.Linear(2, 2)))),
    ("not found", lambda: nn.utils.remove_weight_norm(nn.Linear(2, 2))),
    ("vector of 5 elements", lambda: nn.utils.vector_to_parameters(tl.ones(4), [tl.ones(2), tl.ones(3)])),
    ("Tensor", lambda: nn.utils.vector_to_parameters([1.0], [tl.ones(1)])),
]


@pytest.mark.parametrize(("message", "call"), REFUSED, ids=[f"{m}-{i}" for i, (m, _) in enumerate(REFUSED)])
def test_refused(message: str, call: Any) -> None:
    with pytest.raises(TallowError, match=message):
        call()


def test_warnings() -> None:
    with pytest.warns(UserWarning, match="between layers"):
        nn.LSTM(3, 4, dropout=0.5)
    with pytest.warns(UserWarning, match="not used"):
        nn.InstanceNorm1d(3)(tl.ones(2, 4, 5))


# --------------------------------------------------------------------------------------------------- training, state


@pytest.mark.parametrize("name", ["Dropout", "Dropout1d", "Dropout2d", "Dropout3d"])
def test_dropout_drops_in_training_only(name: str) -> None:
    tl.manual_seed(0)
    layer = getattr(nn, name)(0.25)
    dims = int(name[-2]) if name[-1] == "d" else 1
    x = tl.ones(40, 50, *[3] * dims)
    y = layer(x).numpy()
    assert set(np.unique(y)) == {np.float32(0), np.float32(1 / 0.75)}
    assert (y == 0).mean() == pytest.approx(0.25, abs=0.04)
    channels = y.reshape(40, 50, -1)
    assert (channels == channels[..., :1]).all() == (name != "Dropout")
    assert (layer.eval()(x).numpy() == 1).all()


def test_alpha_dropout_keeps_mean_and_variance() -> None:
    tl.manual_seed(0)
    y = nn.AlphaDropout(0.3)(tl.randn(20000)).numpy()
    assert y.mean() == pytest.approx(0, abs=SPREAD)
    assert y.std() == pytest.approx(1, rel=SPREAD)


def test_rnn_dropout_acts_between_layers_in_training() -> None:
    tl.manual_seed(0)
    layer = nn.LSTM(3, 8, 2, dropout=0.5)
    x = tl.randn(5, 2, 3)
    assert not np.array_equal(layer(x)[0].detach().numpy(), layer(x)[0].detach().numpy())
    layer.eval()
    np.testing.assert_array_equal(layer(x)[0].detach().numpy(), layer(x)[0].detach().numpy())


def test_batch_norm_without_momentum_keeps_the_mean_of_all_batches() -> None:
    layer = nn.BatchNorm1d(2, momentum=None)
    batches = np.random.default_rng(0).standard_normal((3, 10, 2)).astype(np.float32)
    for batch in batches:
        layer(tl.tensor(batch))
    np.testing.assert_allclose(layer.running_mean.numpy(), batches.mean(axis=(0, 1)), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(layer.running_var.numpy(), batches.var(axis=1, ddof=1).mean(axis=0), rtol=1e-5)
    assert layer.num_batches_tracked.item() == 3
    layer.reset_running_stats()
    assert layer.num_batches_tracked.item() == 0


@pytest.mark.parametrize("name", ["RNN", "LSTM", "GRU"])
def test_a_layer_equals_its_cell_in_a_loop(name: str) -> None:
    layer, cell = getattr(nn, name)(3, 4), getattr(nn, f"{name}Cell")(3, 4)
    cell.load_state_dict({key.removesuffix("_l0"): value for key, value in layer.state_dict().items()})
    x = tl.randn(6, 2, 3)
    outputs, _ = layer(x)
    state = None
    for t in range(6):
        state = cell(x[t], state)
        h = state[0] if name == "LSTM" else state
        np.testing.assert_allclose(outputs[t].detach().numpy(), h.detach().numpy(), rtol=1e-5, atol=1e-6)


def test_layers_survive_copies_and_pickles() -> None:
    model = nn.Sequential(nn.Conv1d(2, 4, 3), nn.BatchNorm1d(4), nn.GELU(), nn.LSTM(5, 3, bidirectional=True)).eval()
    x = tl.randn(2, 2, 7)
    expected = model(x)[0].detach().numpy()
    for same in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(same(x)[0].detach().numpy(), expected)


@pytest.mark.parametrize("dtype", [tl.float16, tl.bfloat16])
def test_layers_work_in_half_precision(dtype: Any) -> None:
    for layer, x in (
        (nn.Conv2d(2, 3, 3), tl.randn(1, 2, 5, 5)),
        (nn.BatchNorm2d(2), tl.randn(2, 2, 5, 5)),
        (nn.LSTM(4, 3, 2, bidirectional=True), tl.randn(3, 2, 4)),
        (nn.GRU(4, 3), tl.randn(3, 2, 4)),
        (nn.TransformerEncoderLayer(4, 2, 8, 0.0), tl.randn(3, 2, 4)),
    ):
        expected = layer(x)
        y = layer.to(dtype)(x.to(dtype))
        expected, y = (r[0] if isinstance(r, tuple) else r for r in (expected, y))
        assert y.dtype == dtype
        np.testing.assert_allclose(y.float().detach().numpy(), expected.detach().numpy(), atol=0.1)


def test_flatten_parameters_and_all_weights() -> None:
    layer = nn.LSTM(3, 4, 2, bidirectional=True, proj_size=2)
    layer.flatten_parameters()
    assert [len(weights) for weights in layer.all_weights] == [5] * 4
    assert layer.all_weights[1][0] is layer.weight_ih_l0_reverse


def test_packed_sequence_converts() -> None:
    packed = nn.utils.rnn.pack_sequence([tl.ones(1, 2), tl.ones(3, 2)], enforce_sorted=False)
    double = packed.to(tl.float64)
    assert double.data.dtype == tl.float64
    assert double.is_cuda == double.data.is_cuda
    assert double.cpu().sorted_indices.tolist() == [1, 0]


def test_causal_mask_is_detected() -> None:
    """Compare results with and without the hint, for a causal mask and another mask."""
    tl.manual_seed(0)
    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 8, 0.0), 2)
    x = tl.randn(5, 2, 4)
    causal = nn.Transformer.generate_square_subsequent_mask(5)
    other = causal.clone()
    other[0, 1] = 0.0
    results = encoder(x, causal).detach().numpy()
    np.testing.assert_allclose(results, encoder(x, causal, is_causal=False).detach().numpy(), atol=1e-6)
    assert not np.allclose(results, encoder(x, other).detach().numpy(), atol=1e-3)


# ------------------------------------------------------------------------------------------ containers of parameters


def test_parameter_list() -> None:
    a, b, c = (nn.Parameter(tl.full((2,), float(i))) for i in range(3))
    values = nn.ParameterList([a, b])
    values += [c]
    values.append(tl.ones(1))
    values.append("text")
    assert len(values) == 5
    assert values[-2].requires_grad
    assert [p is q for p, q in zip(values[:3], (a, b, c), strict=True)] == [True] * 3
    assert isinstance(values[1:3], nn.ParameterList)
    assert list(values.state_dict()) == ["0", "1", "2", "3"]
    values[0] = tl.zeros(3)
    assert values[0].shape == (3,)
    with pytest.raises(DimensionError, match="out of range"):
        values[5]
    with pytest.raises(ArgumentTypeError):
        values.extend(tl.ones(2))
    with pytest.raises(ArgumentError, match="called"):
        values(1)
    assert "0" not in dir(values)


def test_parameter_dict() -> None:
    a = nn.Parameter(tl.ones(2))
    values = nn.ParameterDict({"b": a, "a": tl.zeros(3), "n": 5})
    assert list(values) == ["a", "b", "n"]
    assert values["b"] is a
    assert [name for name, _ in values.named_parameters()] == ["a", "b"]
    assert values.get("x", 3) == 3
    assert values.setdefault("n") == 5
    assert values.popitem() == ("n", 5)
    assert values.pop("a").shape == (3,)
    assert list(values | nn.ParameterDict([("z", tl.ones(1))])) == ["b", "z"]
    values |= {"c": tl.ones(1)}
    assert list(reversed(values)) == ["c", "b"]
    assert list(values.copy().keys()) == ["b", "c"]
    assert [v.shape for v in values.values()] == [(2,), (1,)]
    assert list(values.fromkeys(["k"], 1).items()) == [("k", 1)]
    values.clear()
    assert len(values) == 0
    assert "b" not in values
    for wrong, error in ((3, ArgumentTypeError), ([3], ArgumentTypeError), ([(1, 2, 3)], ArgumentError)):
        with pytest.raises(error):
            values.update(wrong)
    with pytest.raises(ArgumentTypeError, match="strings"):
        values[3] = tl.ones(1)
    with pytest.raises(ArgumentError, match="called"):
        values(1)


def test_uninitialized_parameter_raises_until_it_has_a_shape() -> None:
    module = nn.Module()
    module.weight = nn.UninitializedParameter(dtype=tl.float64)
    assert repr(module.weight) == "<UninitializedParameter>"
    for use in (lambda: module.weight.shape, lambda: module.weight + 1, lambda: module.state_dict()):
        with pytest.raises(ArgumentError, match="materialize"):
            use()
    weight = module.weight
    weight.materialize((2, 3))
    init.ones_(weight)
    assert module.weight is weight
    assert type(weight) is nn.Parameter
    assert weight.dtype == tl.float64
    weight.sum().backward()
    assert weight.grad.shape == (2, 3)


def test_table_from_given_vectors_is_frozen_unless_told() -> None:
    vectors = tl.randn(5, 3)
    table = nn.Embedding.from_pretrained(vectors, padding_idx=1)
    assert not table.weight.requires_grad
    assert table.weight.array is vectors.array
    assert nn.EmbeddingBag.from_pretrained(vectors, freeze=False).weight.requires_grad


def test_vector_to_parameters_changes_nothing_when_it_does_not_fit() -> None:
    layer = nn.Linear(2, 2)
    before = layer.weight.detach().numpy().copy()
    with pytest.raises(ShapeError):
        nn.utils.vector_to_parameters(tl.ones(5), layer.parameters())
    np.testing.assert_array_equal(layer.weight.detach().numpy(), before)


def test_weight_norm_follows_its_parts() -> None:
    layer = nn.utils.weight_norm(nn.LSTM(3, 4), "weight_hh_l0")
    x = tl.randn(5, 2, 3)
    layer(x)[0].sum().backward()
    assert layer.weight_hh_l0_v.grad is not None
    assert layer.weight_hh_l0_g.shape == (16, 1)
    before = layer(x)[0].detach().numpy()
    with tl.no_grad():
        layer.weight_hh_l0_g.mul_(2.0)
    assert not np.allclose(layer(x)[0].detach().numpy(), before)


def test_sparse_gradients_are_refused_where_pytorch_refuses_them() -> None:
    table, index = tl.ones(3, 2, requires_grad=True), tl.tensor([[0, 1]])
    for match, call in {
        "scale_grad_by_freq": lambda: tl.nn.functional.embedding(index, table, scale_grad_by_freq=True, sparse=True),
        "mode 'max'": lambda: tl.nn.functional.embedding_bag(index, table, mode="max", sparse=True),
        "gradients are dense": lambda: tl.gather(table, 0, index, sparse_grad=True),
    }.items():
        with pytest.raises(NotImplementedError, match=match):
            call()
    rows = tl.nn.functional.embedding(index, table.detach(), scale_grad_by_freq=True, sparse=True)
    assert rows.shape == (1, 2, 2)  # without a gradient nothing is in the way
    assert not tl.nn.Embedding(3, 2).sparse
