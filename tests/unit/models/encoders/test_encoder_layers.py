"""The packed path of encoders for inference: same results as the layers, and not used where layers do more."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tallow as tl
from tallow import nn
from tallow.core.tensor import Tensor
from tallow.models.encoders import encoder_layers
from tallow.models.encoders.bert import BertConfig, BertModel
from tallow.models.encoders.distilbert import DistilBertConfig, DistilBertModel

SIZES = {"vocab_size": 50, "hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 40}
ATOL = 5e-6  # different order of summation of normalized values
IDS = np.random.default_rng(0).integers(1, 50, (4, 9))
MASK = np.array([[1] * 9, [1] * 5 + [0] * 4, [0] * 3 + [1] * 6, [1, 0, 1, 1, 0, 1, 0, 0, 1]])


def bert(**options: Any) -> BertModel:
    tl.manual_seed(0)
    return BertModel(BertConfig(**SIZES | {"initializer_range": 0.3} | options), add_pooling_layer=False).eval()


def distilbert() -> DistilBertModel:
    tl.manual_seed(0)
    sizes = {"dim": 24, "n_layers": 2, "n_heads": 4, "hidden_dim": 40}
    return DistilBertModel(DistilBertConfig(vocab_size=50, **sizes)).eval()


MODELS: dict[str, Callable[[], nn.Module]] = {
    "bert": bert,
    "tanh": lambda: bert(hidden_act="gelu_new"),
    "relu": lambda: bert(hidden_act="relu"),
    "distilbert": distilbert,
}


@pytest.fixture
def packed_rows(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Record each use of the packed path, with its number of rows."""
    rows: list[int] = []
    original_run = encoder_layers.kernels.run

    def run(name: str, *args: Any) -> Any:
        if name == "encoder_blocks":
            rows.append(len(args[0]))
        return original_run(name, *args)

    monkeypatch.setattr(encoder_layers.kernels, "run", run)
    return rows


def hidden(model: nn.Module, *args: Any, **options: Any) -> Tensor:
    outputs = model(tl.tensor(IDS), *args, **options)
    return outputs if isinstance(outputs, Tensor) else outputs.last_hidden_state


def short(model: nn.Module, *args: Any, **options: Any) -> np.ndarray[Any, Any]:
    with tl.no_grad():
        return hidden(model, *args, **options).float().numpy()


@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
@pytest.mark.parametrize("mask", [None, MASK, MASK.astype(bool)], ids=["all", "mask", "bool"])
@pytest.mark.cpu("its kernel of whole layers")
def test_results_are_the_same(make: Callable[[], nn.Module], mask: Any, packed_rows: list[int]) -> None:
    model, masks = make(), () if mask is None else (tl.tensor(mask),)
    expected = hidden(model, *masks).detach().numpy()  # gradients are recorded, so layers run one by one
    assert packed_rows == []
    np.testing.assert_allclose(short(model, *masks), expected, atol=ATOL)
    assert packed_rows == [IDS.size]


@pytest.mark.parametrize("make", [bert, distilbert])
@pytest.mark.cpu("its kernel of whole layers")
def test_padding_can_be_skipped(make: Callable[[], nn.Module], packed_rows: list[int]) -> None:
    model, mask, text = make(), tl.tensor(MASK), MASK.astype(bool)
    got = short(model, mask, skip_padding=True)
    assert packed_rows == [text.sum()]
    np.testing.assert_allclose(got[text], short(model, mask)[text], atol=ATOL)
    assert (got[~text] == 0).all()


def test_changes_of_weights_and_settings_are_seen() -> None:
    model = bert()
    layer = model.encoder.layer[1]
    seen = [short(model)]

    def check() -> None:
        seen.append(short(model))
        np.testing.assert_allclose(seen[-1], hidden(model).detach().numpy(), atol=ATOL)
        assert abs(seen[-1] - seen[-2]).max() > 1e-3

    with tl.no_grad():
        layer.output.LayerNorm.bias += 0.5
    check()
    layer.attention.self.query = nn.Linear(24, 24)
    check()
    layer.attention.self.num_heads = 2
    check()
    layer.intermediate.activation = nn.functional.relu
    check()
    model.load_state_dict({name: value * 0.5 for name, value in model.state_dict().items()}, assign=True)
    check()
    twin = copy.deepcopy(model)
    with tl.no_grad():
        twin.encoder.layer[1].output.LayerNorm.bias += 1
    np.testing.assert_array_equal(short(model), seen[-1])
    assert abs(short(twin) - seen[-1]).max() > 1e-3


def _hook(model: BertModel) -> None:
    model.encoder.layer[0].attention.register_forward_hook(lambda module, args, result: result * 2)


def _prune(model: BertModel) -> None:
    attention = model.encoder.layer[0].attention
    attention.self.num_heads = 2
    for name in ("query", "key", "value"):
        setattr(attention.self, name, nn.Linear(24, 12))
    attention.output.dense = nn.Linear(12, 24)


def _replace(model: BertModel) -> None:
    model.encoder.layer[1].output.dense = nn.Sequential(nn.Linear(40, 24), nn.Tanh())


def _without_scale(model: BertModel) -> None:
    model.encoder.layer[1].output.LayerNorm = nn.LayerNorm(24, elementwise_affine=False)


def _other_eps(model: BertModel) -> None:
    model.encoder.layer[1].output.LayerNorm.eps = 0.1


def _other_activation(model: BertModel) -> None:
    model.encoder.layer[1].intermediate.activation = nn.functional.mish


CHANGES = [_hook, _prune, _replace, _without_scale, _other_eps, _other_activation]


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.cpu("its kernel of whole layers")
def test_layers_that_compute_something_else_are_called(
    change: Callable[[BertModel], None], packed_rows: list[int]
) -> None:
    model = bert()
    short(model)
    change(model)
    np.testing.assert_allclose(
        short(model, tl.tensor(MASK)), hidden(model, tl.tensor(MASK)).detach().numpy(), atol=ATOL
    )
    assert len(packed_rows) == 1


def test_training_autocast_and_other_dtypes_use_the_layers(packed_rows: list[int]) -> None:
    short(bert().train())
    short(bert().double())
    short(bert().bfloat16())
    with tl.autocast("cpu", dtype=tl.bfloat16):
        short(bert())
    assert packed_rows == []
