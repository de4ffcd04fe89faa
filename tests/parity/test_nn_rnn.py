"""Sequences of different lengths compared with torch.nn.utils.rnn, alone and through recurrent layers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from cases import normal

import tallow as tl

torch = pytest.importorskip("torch", reason="PyTorch, the reference of these tests, is not installed")

RTOL, ATOL = 1e-7, 1e-9  # float64, after long sums
PADDED = normal(3, 6, 4)  # (N, T, I)
LENGTHS = {"sorted": [6, 4, 1], "equal": [5, 5, 5], "unsorted": [1, 6, 4]}


def assert_same(mine: Any, theirs: Any) -> None:
    if theirs is None:
        assert mine is None
    elif isinstance(theirs, tuple | list):
        assert len(mine) == len(theirs)
        for m, t in zip(mine, theirs, strict=True):
            assert_same(m, t)
    else:
        m, t = mine.detach().numpy(), theirs.detach().numpy()
        assert (m.shape, m.dtype) == (t.shape, t.dtype)
        np.testing.assert_allclose(m, t, rtol=RTOL, atol=ATOL)


@pytest.mark.parametrize("batch_first", [True, False])
@pytest.mark.parametrize("order", LENGTHS)
def test_packing_and_padding(order: str, batch_first: bool) -> None:
    def through(lib: Any) -> Any:
        x = lib.from_numpy(PADDED if batch_first else PADDED.swapaxes(0, 1).copy())
        packed = lib.nn.utils.rnn.pack_padded_sequence(x, LENGTHS[order], batch_first, order != "unsorted")
        padded = lib.nn.utils.rnn.pad_packed_sequence(packed, batch_first, -1.0, 8)
        return tuple(packed), padded

    assert_same(through(tl), through(torch))


@pytest.mark.parametrize("order", LENGTHS)
def test_lists_of_sequences(order: str) -> None:
    def through(lib: Any) -> Any:
        rows = [lib.from_numpy(x[:n].copy()) for x, n in zip(PADDED, LENGTHS[order], strict=True)]
        packed = lib.nn.utils.rnn.pack_sequence(rows, enforce_sorted=order != "unsorted")
        left = lib.nn.utils.rnn.pad_sequence(rows, True, 0.5, "left")
        lengths = lib.tensor(LENGTHS[order])
        unpadded = lib.nn.utils.rnn.unpad_sequence(lib.nn.utils.rnn.pad_sequence(rows), lengths)
        return tuple(packed), left, unpadded, lib.nn.utils.rnn.unpack_sequence(packed)

    assert_same(through(tl), through(torch))


LAYERS = [
    ("RNN", {"num_layers": 2, "nonlinearity": "relu"}),
    ("RNN", {"bidirectional": True}),
    ("LSTM", {"num_layers": 2, "bidirectional": True, "batch_first": True}),
    ("LSTM", {"proj_size": 3, "bidirectional": True}),
    ("GRU", {"num_layers": 2, "bidirectional": True}),
    ("GRU", {"bias": False}),
]


@pytest.mark.parametrize("with_states", [False, True], ids=["zeros", "states"])
@pytest.mark.parametrize("order", LENGTHS)
@pytest.mark.parametrize(("name", "options"), LAYERS, ids=[f"{n}-{o}" for n, o in LAYERS])
def test_layers_on_packed_sequences(name: str, options: dict[str, Any], order: str, with_states: bool) -> None:
    torch.manual_seed(0)
    theirs = getattr(torch.nn, name)(4, 5, **options).double()
    mine = getattr(tl.nn, name)(4, 5, **options).double()
    mine.load_state_dict({key: tl.from_numpy(t.numpy()) for key, t in theirs.state_dict().items()})
    count = options.get("num_layers", 1) * (2 if options.get("bidirectional") else 1)
    initial = [normal(count, 3, options.get("proj_size", 5)), normal(count, 3, 5)]
    weightings = [normal(3, 6, 20), normal(8, 3, 5)]

    def through(lib: Any, layer: Any) -> Any:
        x = lib.from_numpy(PADDED.copy()).requires_grad_()
        states = [lib.from_numpy(s.copy()).requires_grad_() for s in initial]
        hx = (tuple(states) if name == "LSTM" else states[0]) if with_states else None
        packed = lib.nn.utils.rnn.pack_padded_sequence(x, LENGTHS[order], True, order != "unsorted")
        output, last = layer(packed, hx)
        padded, lengths = lib.nn.utils.rnn.pad_packed_sequence(output, True)
        last = last if isinstance(last, tuple) else (last,)
        loss = (padded * lib.from_numpy(weightings[0][:, : padded.shape[1], : padded.shape[2]].copy())).sum()
        for state in last:
            loss = loss + (state * lib.from_numpy(weightings[1][: len(state), :, : state.shape[2]].copy())).sum()
        loss.backward()
        used = states if name == "LSTM" else states[:1]
        grads = [x.grad, *(s.grad for s in used if with_states), *(p.grad for p in layer.parameters())]
        return padded, lengths, *last, *grads

    assert_same(through(tl, mine), through(torch, theirs))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ["RNN", "LSTM", "GRU"])
def test_a_batch_of_no_sequences(name: str, dtype: str) -> None:
    def through(lib: Any) -> Any:
        layer = getattr(lib.nn, name)(3, 4, 2, bidirectional=True, dtype=getattr(lib, dtype))
        x = lib.zeros(5, 0, 3, dtype=layer.weight_hh_l0.dtype, requires_grad=True)
        output, last = layer(x)
        cell = getattr(lib.nn, f"{name}Cell")(3, 4, dtype=x.dtype)(x[0])
        output.sum().backward()
        last, cell = (state if isinstance(state, tuple) else (state,) for state in (last, cell))
        return output, *last, *cell, x.grad, *(p.grad for p in layer.parameters())

    assert_same(through(tl), through(torch))
