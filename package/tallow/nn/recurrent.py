"""Recurrent layers and cells: RNN, LSTM and GRU.

Letters: T steps, N sequences, I input features, H hidden features, P features of the state: H, or `proj_size`.
"""

from __future__ import annotations

from typing import Any

from tallow.core.creation import zeros
from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError, ArgumentTypeError, ShapeError, warn
from tallow.nn import init
from tallow.nn.module import Module
from tallow.nn.parameter import Parameter, empty_parameter
from tallow.nn.recurrent_layers import States, Weights, run_direction, run_layers
from tallow.nn.utils.rnn import PackedSequence

GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}


def _initialize(module: Module, hidden_size: int) -> None:
    bound = hidden_size**-0.5 if hidden_size else 0.0
    for parameter in module.parameters():
        init.uniform_(parameter, -bound, bound)


# ------------------------------------------------------------------------------------------------------------- layers


class RNNBase(Module):
    """Base of RNN, LSTM and GRU: layers, directions and states."""

    def __init__(
        self,
        mode: str,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        _check_sizes(mode, input_size, hidden_size, num_layers, proj_size)
        if isinstance(dropout, bool) or not isinstance(dropout, int | float) or not 0 <= dropout <= 1:
            raise ArgumentError(f"{mode}: dropout={dropout!r}", hint="pass a probability between 0 and 1")
        if dropout > 0 and num_layers == 1:
            warn(f"{mode}: dropout={dropout} has no effect: it acts between layers, and num_layers=1")
        self.mode = mode
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = float(dropout)
        self.bidirectional = bidirectional
        self.proj_size = proj_size
        rows, state_size = GATES[mode] * hidden_size, proj_size or hidden_size
        for layer in range(num_layers):
            width = input_size if layer == 0 else state_size * self._directions
            shapes: dict[str, tuple[int, ...]] = {"weight_ih": (rows, width), "weight_hh": (rows, state_size)}
            shapes |= {"bias_ih": (rows,), "bias_hh": (rows,)} if bias else {}
            shapes |= {"weight_hr": (proj_size, hidden_size)} if proj_size else {}
            for direction in range(self._directions):
                for kind, shape in shapes.items():
                    name = _parameter_name(kind, layer, direction)
                    self.register_parameter(name, empty_parameter(*shape, device=device, dtype=dtype))
        self.reset_parameters()

    @property
    def _directions(self) -> int:
        return 2 if self.bidirectional else 1

    @property
    def all_weights(self) -> list[list[Parameter]]:
        """The parameters of each layer and direction."""
        per_direction = [self._weights(layer, d) for layer in range(self.num_layers) for d in range(self._directions)]
        return [[weight for weight in weights if isinstance(weight, Parameter)] for weights in per_direction]

    def reset_parameters(self) -> None:
        """Draw all parameters from U(-1/√H, 1/√H), as PyTorch does."""
        _initialize(self, self.hidden_size)

    def flatten_parameters(self) -> None:
        """Do nothing: PyTorch arranges the weights for cuDNN here."""

    def forward(self, input: Any, hx: Any = None) -> Any:
        """Return the outputs of the last layer, packed if the input is, and the last states of all layers."""
        if isinstance(input, PackedSequence):
            x, batch_sizes = input.data, tuple(input.batch_sizes.tolist())
            states = self._states(x, hx, batch_sizes[0], input.sorted_indices)
            y, last = self._layers(x, states, batch_sizes)
            output = PackedSequence(y, input.batch_sizes, input.sorted_indices, input.unsorted_indices)
            return output, self._result(_reorder(last, input.unsorted_indices))
        if input.ndim not in (2, 3):
            raise ArgumentError(f"{type(self).__name__}: expected 2D or 3D input, got {tuple(input.shape)}")
        is_batch = input.ndim == 3
        if not is_batch:
            input = input[:, None]
            hx = None if hx is None else self._batched(hx)
        elif self.batch_first:
            input = input.transpose(0, 1)
        steps, batch = input.shape[:2]
        states = self._states(input, hx, batch, None)
        y, last = self._layers(input.reshape(steps * batch, input.shape[-1]), states, (batch,) * steps)
        y = y.reshape(steps, batch, y.shape[-1])
        if not is_batch:
            return y[:, 0], self._result(tuple(state[:, 0] for state in last))
        return y.transpose(0, 1) if self.batch_first else y, self._result(last)

    def _batched(self, hx: Any) -> Any:
        """Add a batch dimension to the states."""
        states = hx if isinstance(hx, tuple | list) else (hx,)
        for state in states:
            if state.ndim != 2:
                raise ShapeError(
                    f"{type(self).__name__}: for unbatched 2D input the states must be 2D, got {tuple(state.shape)}"
                )
        return self._result(tuple(state[:, None] for state in states))

    def _result(self, states: States) -> Any:
        return states if self.mode == "LSTM" else states[0]

    def _states(self, x: Tensor, hx: Any, batch: int, order: Tensor | None) -> States:
        """Return the checked initial states of all layers; zeros if `hx` is None."""
        name = type(self).__name__
        if x.shape[-1] != self.input_size:
            raise ShapeError(f"{name}: input.size(-1) must be equal to input_size: {tuple(x.shape)}, {self.input_size}")
        weight = self.weight_ih_l0
        if x.dtype != weight.dtype:
            raise ArgumentError(
                f"{name}: input is {x.dtype}, the weights are {weight.dtype}",
                hint=f"input.to({weight.dtype}), or model.to({x.dtype})",
            )
        sizes = [self.proj_size or self.hidden_size] + ([self.hidden_size] if self.mode == "LSTM" else [])
        shapes = [(self.num_layers * self._directions, batch, size) for size in sizes]
        if hx is None:
            return tuple(zeros(shape, dtype=x.dtype, device=x.device) for shape in shapes)
        states = tuple(hx) if self.mode == "LSTM" else (hx,)
        for state, shape in zip(states, shapes, strict=True):
            if tuple(state.shape) != shape:
                raise ShapeError(f"{name}: expected hidden size {shape}, got {tuple(state.shape)}")
        return _reorder(states, order)

    def _layers(self, x: Tensor, states: States, batch_sizes: tuple[int, ...]) -> tuple[Tensor, States]:
        layers = [[self._weights(layer, d) for d in range(self._directions)] for layer in range(self.num_layers)]
        return run_layers(self.mode, x, states, layers, batch_sizes, self.dropout if self.training else 0.0)

    def _weights(self, layer: int, direction: int) -> Weights:
        # getattr, not `_parameters`: weight_norm and other parametrizations replace a parameter by a plain tensor.
        kinds = ("weight_ih", "weight_hh", "bias_ih", "bias_hh", *(("weight_hr",) if self.proj_size else ()))
        weights: list[Any] = [getattr(self, _parameter_name(kind, layer, direction), None) for kind in kinds]
        return Weights(*weights)

    def extra_repr(self) -> str:
        parts = [
            f"{self.input_size}, {self.hidden_size}",
            f"proj_size={self.proj_size}" if self.proj_size else "",
            f"num_layers={self.num_layers}" if self.num_layers != 1 else "",
            f"bias={self.bias}" if not self.bias else "",
            f"batch_first={self.batch_first}" if self.batch_first else "",
            f"dropout={self.dropout}" if self.dropout else "",
            f"bidirectional={self.bidirectional}" if self.bidirectional else "",
        ]
        return ", ".join(filter(None, parts))


def _parameter_name(kind: str, layer: int, direction: int) -> str:
    return f"{kind}_l{layer}{'_reverse' if direction else ''}"


def _reorder(states: States, order: Tensor | None) -> States:
    return states if order is None else tuple(state.index_select(1, order) for state in states)


def _check_sizes(mode: str, input_size: int, hidden_size: int, num_layers: int, proj_size: int) -> None:
    if mode not in GATES:
        raise ArgumentError(f"unrecognized RNN mode {mode!r}", hint=f"use one of {', '.join(GATES)}")
    if not isinstance(input_size, int) or not isinstance(hidden_size, int):
        raise ArgumentTypeError(f"{mode}: input_size={input_size!r} and hidden_size={hidden_size!r} must be ints")
    if min(input_size, hidden_size, num_layers) < 1:
        raise ArgumentError(
            f"{mode}: input_size={input_size}, hidden_size={hidden_size} and num_layers={num_layers} must be positive"
        )
    if not 0 <= proj_size < hidden_size:
        raise ArgumentError(f"{mode}: proj_size={proj_size} must be 0 or less than hidden_size={hidden_size}")


class RNN(RNNBase):
    """h_t = tanh(W_ih x_t + b_ih + W_hh h_{t-1} + b_hh), or relu instead of tanh, in stacked layers.

    Args:    as torch.nn.RNN
    Shapes:  input (T, N, I), (N, T, I) with batch_first, (T, I), or a PackedSequence; hx (layers · directions, N, H)
             -> the same with directions · H features, and the last states as hx
    Source:  Elman 1990, "Finding Structure in Time"
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: str = "tanh",
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if nonlinearity not in ("tanh", "relu"):
            raise ArgumentError(f"RNN: nonlinearity={nonlinearity!r}", hint="use 'tanh' or 'relu'")
        super().__init__(
            f"RNN_{nonlinearity.upper()}", input_size, hidden_size, num_layers, bias, batch_first, dropout,
            bidirectional, 0, device, dtype,
        )  # fmt: skip
        self.nonlinearity = nonlinearity


class LSTM(RNNBase):
    """a = W_ih x + b_ih + W_hh h + b_hh;  i, f, o = σ(a),  g = tanh(a);  c' = f c + i g,  h' = o tanh(c').

    Args:    as torch.nn.LSTM; proj_size: number of features that W_hr projects h_t to
    Shapes:  input as RNN; hx is (h, c): (layers · directions, N, P) and (layers · directions, N, H)
             -> the same with directions · P features, and the last states as hx
    Source:  Hochreiter & Schmidhuber 1997; projections: Sak et al. 2014, arXiv:1402.1128
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(
            "LSTM", input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, proj_size,
            device, dtype,
        )  # fmt: skip


class GRU(RNNBase):
    """r, z = σ(W_ih x + b_ih + W_hh h + b_hh),  n = tanh(W_in x + b_in + r (W_hn h + b_hn)),  h' = (1 - z) n + z h.

    Args:    as torch.nn.GRU
    Shapes:  as RNN
    Source:  Cho et al. 2014, arXiv:1406.1078
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(
            "GRU", input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, 0, device, dtype
        )


# -------------------------------------------------------------------------------------------------------------- cells


class RNNCellBase(Module):
    """Base of the cells: the parameters, and one step computed by the layers' code."""

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool, num_chunks: int, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        rows = num_chunks * hidden_size
        self.weight_ih = empty_parameter(rows, input_size, device=device, dtype=dtype)
        self.weight_hh = empty_parameter(rows, hidden_size, device=device, dtype=dtype)
        self.bias_ih = empty_parameter(rows, device=device, dtype=dtype) if bias else None
        self.bias_hh = empty_parameter(rows, device=device, dtype=dtype) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw all parameters from U(-1/√H, 1/√H), as PyTorch does."""
        _initialize(self, self.hidden_size)

    def _step(self, mode: str, input: Tensor, states: States | None) -> States:
        name = type(self).__name__
        for tensor in (input, *(states or ())):
            if tensor.ndim not in (1, 2):
                raise ArgumentError(f"{name}: expected 1D or 2D input and states, got {tuple(tensor.shape)}")
        x = input if input.ndim == 2 else input[None]
        if x.shape[1] != self.input_size:
            raise ShapeError(
                f"{name}: input.size(-1) must be equal to input_size: {tuple(input.shape)}, {self.input_size}"
            )
        if states is None:
            initial = zeros(len(x), self.hidden_size, dtype=x.dtype, device=x.device)
            states = (initial, initial) if mode == "LSTM" else (initial,)
        elif input.ndim == 1:
            states = tuple(state[None] for state in states)
        weights = Weights(self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
        _, *last = run_direction(mode, x, states, weights, (len(x),), reverse=False)
        return tuple(last) if input.ndim == 2 else tuple(state[0] for state in last)

    def extra_repr(self) -> str:
        return f"{self.input_size}, {self.hidden_size}" + ("" if self.bias else f", bias={self.bias}")


class RNNCell(RNNCellBase):
    """One step of RNN.  Shapes: input (N, I) or (I), hx (N, H) or (H) -> hx"""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if nonlinearity not in ("tanh", "relu"):
            raise ArgumentError(f"RNNCell: nonlinearity={nonlinearity!r}", hint="use 'tanh' or 'relu'")
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        return self._step(f"RNN_{self.nonlinearity.upper()}", input, None if hx is None else (hx,))[0]

    def extra_repr(self) -> str:
        return super().extra_repr() + ("" if self.nonlinearity == "tanh" else f", nonlinearity={self.nonlinearity}")


class LSTMCell(RNNCellBase):
    """One step of LSTM.  Shapes: input (N, I) or (I), hx two of (N, H) or (H) -> hx"""

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 4, device, dtype)

    def forward(self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, Tensor]:
        h, c = self._step("LSTM", input, hx)
        return h, c


class GRUCell(RNNCellBase):
    """One step of GRU.  Shapes: input (N, I) or (I), hx (N, H) or (H) -> hx"""

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 3, device, dtype)

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        return self._step("GRU", input, None if hx is None else (hx,))[0]
