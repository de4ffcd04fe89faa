"""Layers with adapters next to them, and modules that adapters replace as a whole.

Letters: R rank.
"""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, cast

from tallow import devices, dtypes
from tallow.core.tensor import Tensor
from tallow.errors import MissingNameError, NumericError, UnsupportedError
from tallow.nn import functional as F
from tallow.nn import init
from tallow.nn.block_layers import BlockConv1D, BlockEmbedding, BlockLinear
from tallow.nn.container import ModuleDict
from tallow.nn.dropout import Dropout
from tallow.nn.embedding import Embedding
from tallow.nn.linear import Identity, Linear
from tallow.nn.module import Module
from tallow.nn.parameter import Parameter, empty_parameter
from tallow.nn.parameter_containers import ParameterDict
from tallow.nn.transposed_linear import Conv1D
from tallow.peft.config import LoraConfig
from tallow.tape.modes import no_grad

HALVES = (dtypes.float16, dtypes.bfloat16)


class Adaptable(Module):
    """The base of modules that hold adapters by name.

    Attributes:
        active_adapters: names of the adapters that `forward` uses.
        disable_adapters: True if `forward` uses none.
    """

    def __init__(self) -> None:
        super().__init__()
        self.active_adapters: tuple[str, ...] = ()
        self.disable_adapters = False

    @property
    @abstractmethod
    def adapters(self) -> Sequence[str]:
        """The names of the adapters here."""

    @property
    def used_adapters(self) -> list[str]:
        """The names of the adapters here that `forward` uses."""
        return [] if self.disable_adapters else [name for name in self.active_adapters if name in self.adapters]

    @abstractmethod
    def adapter(self, name: str) -> dict[str, Tensor]:
        """Return the tensors of an adapter here by their names in its file, below the path of this module."""

    @abstractmethod
    def delete_adapter(self, name: str) -> None:
        """Remove an adapter, if it is here."""

    @abstractmethod
    def unloaded(self) -> Module:
        """Return the module without adapters."""

    @abstractmethod
    def merged(self, names: Sequence[str], check: bool) -> Module:
        """Return a module that computes what this one does with the adapters `names`.

        Args:    check: raise NumericError if a weight is not finite after it, before this module changes
        """


class LoraLayer(Adaptable):
    """A linear layer with adapters: y = layer(x) + Σ scale · B(A(dropout(x))) over the active ones.

    With a magnitude (DoRA), the rows of the adapted weight W + scale · B A have the lengths of the magnitude.

    Adapters of a layer in 16 bits are float32; others have its dtype. The result has the dtype of the layer's.

    Attributes:
        has_rows: the layer takes magnitudes.

    Shapes:  A (R, in_features), B (out_features, R), magnitude (out_features,);  x (..., in_features) -> (...,
             out_features)
    """

    has_rows: ClassVar[bool] = False

    def __init__(self, base_layer: Module, in_features: int, out_features: int) -> None:
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        self.base_layer = base_layer
        self.lora_dropout = ModuleDict()
        self.lora_A = ModuleDict()
        self.lora_B = ModuleDict()
        self.lora_magnitude_vector = ParameterDict()
        self.scaling: dict[str, float] = {}
        self.train(base_layer.training)

    @property
    def adapters(self) -> Sequence[str]:
        return list(self.scaling)

    def add_adapter(self, name: str, r: int, alpha: float, config: LoraConfig, device: Any = None) -> None:
        """Add an adapter with the initial values of the config.

        Args:    device: None means that of the layer; on "meta" the adapter has no values yet
        Raises:  UnsupportedError for a magnitude of another layer than a Linear
        """
        if config.use_dora and not self.has_rows:
            raise UnsupportedError(f"use_dora with a {type(self.base_layer).__name__}", hint="adapt linear layers only")
        self._add_parts(name, r, config, self.device if device is None else device)
        self.scaling = self.scaling | {name: config.scale(r, alpha)}
        if config.use_dora:
            _, length = self._adapted(name)
            self.lora_magnitude_vector[name] = Parameter(length.to(self.lora_B[name].weight.device))
        self.train(self.training)

    def _add_parts(self, name: str, r: int, config: LoraConfig, device: Any) -> None:
        first = Linear(self.in_features, r, False, device, self.adapter_dtype)
        second = Linear(r, self.out_features, False, device, self.adapter_dtype)
        if config.init_lora_weights == "gaussian":
            init.normal_(first.weight, std=1 / r)
        if config.init_lora_weights is not False:
            init.zeros_(second.weight)  # A has the initial values of Linear
        self.lora_dropout[name] = Dropout(config.lora_dropout) if config.lora_dropout else Identity()
        self.lora_A[name], self.lora_B[name] = first, second

    @property
    def device(self) -> devices.device:
        """The device of the layer."""
        return next(iter((*self.base_layer.parameters(), *self.base_layer.buffers()))).device

    @property
    def adapter_dtype(self) -> dtypes.dtype:
        """The dtype of new adapters."""
        dtype: dtypes.dtype = self.base_layer.weight.dtype
        return dtypes.float32 if dtype in HALVES else dtype

    def adapter(self, name: str) -> dict[str, Tensor]:
        if name not in self.scaling:
            return {}
        tensors = {"lora_A.weight": self.lora_A[name].weight, "lora_B.weight": self.lora_B[name].weight}
        if name in self.lora_magnitude_vector:
            tensors["lora_magnitude_vector"] = self.lora_magnitude_vector[name]
        return tensors

    def forward(self, input: Tensor) -> Tensor:
        result: Tensor = self.base_layer(input)
        dtype = result.dtype
        for name in self.used_adapters:
            first, second = self.lora_A[name], self.lora_B[name]
            x = self.lora_dropout[name](input.to(first.weight.dtype))
            added = second(first(x)) * self.scaling[name]
            if name in self.lora_magnitude_vector:
                factor = self.lora_magnitude_vector[name] / self._adapted(name)[1]  # no gradient of the length
                added = (factor - 1) * F.linear(x, self.base_layer.weight.to(x.dtype)) + factor * added
            result = result + added
        return result.to(dtype)

    def _product(self, name: str) -> Tensor:
        """Return scale · B A (out_features, in_features)."""
        return self.lora_B[name].weight @ self.lora_A[name].weight * self.scaling[name]

    def _adapted(self, name: str) -> tuple[Tensor, Tensor]:
        """Return W + scale · B A (out_features, in_features), and the lengths of its rows (out_features,)."""
        with no_grad():
            product = self._product(name)
            weight = self.base_layer.weight.to(product.device, product.dtype) + product
            return weight, weight.norm(dim=1)

    def delta_weight(self, name: str) -> Tensor:
        """Return what an adapter adds to the weight (out_features, in_features): scale · B A, without a magnitude."""
        with no_grad():
            if name not in self.lora_magnitude_vector:
                return self._product(name)
            weight, length = self._adapted(name)
            scaled = weight * (self.lora_magnitude_vector[name] / length).unsqueeze(1)
            return scaled - self.base_layer.weight.to(scaled.dtype)

    @property
    def parts(self) -> tuple[Any, ...]:
        """The dicts of the adapters' modules or parameters."""
        return self.lora_dropout, self.lora_A, self.lora_B

    def delete_adapter(self, name: str) -> None:
        if name in self.scaling:
            for parts in (*self.parts, self.lora_magnitude_vector):
                if name in parts:
                    del parts[name]
            self.scaling = {other: scale for other, scale in self.scaling.items() if other != name}

    def unloaded(self) -> Module:
        return self.base_layer

    def _merged_weight(self, weight: Tensor, deltas: Sequence[Tensor], check: bool) -> Tensor:
        """Return a weight with what adapters add, in its dtype; sums are float32 at least."""
        with no_grad():
            total = weight.float() if weight.dtype in HALVES else weight
            for delta in deltas:
                total = total + delta
            if check:
                _check_finite(total)
            return total.to(weight.dtype)


class LoraLinear(LoraLayer):
    """A Linear with adapters.  Args: as LoraLayer"""

    base_layer: Linear
    has_rows = True

    def __init__(self, base_layer: Linear) -> None:
        super().__init__(base_layer, base_layer.in_features, base_layer.out_features)

    def merged(self, names: Sequence[str], check: bool) -> Module:
        deltas = [self.delta_weight(name) for name in names if name in self.adapters]
        if deltas:
            self.base_layer.weight = _frozen(self._merged_weight(self.base_layer.weight, deltas, check))
        return self.base_layer


class LoraConv1D(LoraLayer):
    """GPT-2's Conv1D, which stores its weight transposed, with adapters.  Args: as LoraLayer"""

    base_layer: Conv1D

    def __init__(self, base_layer: Conv1D) -> None:
        super().__init__(base_layer, *base_layer.weight.shape)

    def merged(self, names: Sequence[str], check: bool) -> Module:
        deltas = [self.delta_weight(name).T for name in names if name in self.adapters]
        if deltas:
            self.base_layer.weight = _frozen(self._merged_weight(self.base_layer.weight, deltas, check).contiguous())
        return self.base_layer


class LoraQuantizedLinear(LoraLayer):
    """A linear layer with quantised weights, which stay so, with adapters. `merged` returns a Linear in float32.

    Args:    as LoraLayer
    """

    base_layer: BlockLinear

    def __init__(self, base_layer: BlockLinear) -> None:
        super().__init__(base_layer, base_layer.in_features, base_layer.out_features)

    @property
    def adapter_dtype(self) -> dtypes.dtype:
        return dtypes.float32

    def merged(self, names: Sequence[str], check: bool) -> Module:
        deltas = [self.delta_weight(name) for name in names if name in self.adapters]
        if not deltas:
            return self.base_layer
        linear = Linear(self.in_features, self.out_features, bias=False, device="meta")
        linear.weight = _frozen(self._merged_weight(self.base_layer.weight, deltas, check))
        linear.bias = self.base_layer.bias
        return linear.train(self.training)


class LoraBlockConv1D(LoraQuantizedLinear):
    """A Conv1D with a quantised weight, which stays so, with adapters. `merged` returns a Conv1D in float32.

    Args:    as LoraLayer
    """

    def merged(self, names: Sequence[str], check: bool) -> Module:
        deltas = [self.delta_weight(name).T for name in names if name in self.adapters]
        if not deltas:
            return self.base_layer
        layer = Conv1D(self.out_features, self.in_features, "meta", None)
        layer.weight = _frozen(self._merged_weight(self.base_layer.weight, deltas, check).contiguous())
        layer.bias = cast(Parameter, self.base_layer.bias)
        return layer.train(self.training)


class LoraEmbedding(LoraLayer):
    """An embedding with adapters: y = layer(i) + Σ scale · B(A[:, i]) over the active ones, without dropout.

    Args:    as LoraLayer
    Shapes:  A (R, num_embeddings), B (embedding_dim, R);  i (*) of integers -> (*, embedding_dim)
    """

    base_layer: Embedding | BlockEmbedding

    def __init__(self, base_layer: Embedding | BlockEmbedding) -> None:
        super().__init__(base_layer, base_layer.num_embeddings, base_layer.embedding_dim)
        self.num_embeddings, self.embedding_dim = self.in_features, self.out_features
        self.lora_embedding_A = ParameterDict()
        self.lora_embedding_B = ParameterDict()

    @property
    def adapter_dtype(self) -> dtypes.dtype:
        return super().adapter_dtype if isinstance(self.base_layer, Embedding) else dtypes.float32

    def _add_parts(self, name: str, r: int, config: LoraConfig, device: Any) -> None:
        first = empty_parameter(r, self.in_features, device=device, dtype=self.adapter_dtype)
        second = empty_parameter(self.out_features, r, device=device, dtype=self.adapter_dtype)
        init.normal_(second)
        if config.init_lora_weights is False:
            init.normal_(first)
        else:
            init.zeros_(first)
        self.lora_embedding_A[name], self.lora_embedding_B[name] = first, second

    @property
    def weight(self) -> Tensor:
        """Raises UnsupportedError: the model reads the table itself, which adapters do not change."""
        raise UnsupportedError("an adapter of an embedding whose table the model reads", hint="adapt other layers")

    @property
    def parts(self) -> tuple[Any, ...]:
        return self.lora_embedding_A, self.lora_embedding_B

    def adapter(self, name: str) -> dict[str, Tensor]:
        if name not in self.scaling:
            return {}
        return {"lora_embedding_A": self.lora_embedding_A[name], "lora_embedding_B": self.lora_embedding_B[name]}

    def forward(self, input: Tensor) -> Tensor:
        result: Tensor = self.base_layer(input)
        dtype, padding = result.dtype, getattr(self.base_layer, "padding_idx", None)
        for name in self.used_adapters:
            first = F.embedding(input, self.lora_embedding_A[name].T, padding)
            result = result + F.linear(first, self.lora_embedding_B[name]) * self.scaling[name]
        return result.to(dtype)

    def delta_weight(self, name: str) -> Tensor:
        """Return scale · (B A)ᵀ, which an adapter adds to the table (num_embeddings, embedding_dim)."""
        with no_grad():
            return (self.lora_embedding_B[name] @ self.lora_embedding_A[name]).T * self.scaling[name]

    def merged(self, names: Sequence[str], check: bool) -> Module:
        deltas = [self.delta_weight(name) for name in names if name in self.adapters]
        if not deltas:
            return self.base_layer
        weight = _frozen(self._merged_weight(self.base_layer.weight, deltas, check).contiguous())
        if not isinstance(self.base_layer, Embedding):
            table = Embedding(self.in_features, self.out_features, device="meta")
            table.weight = weight
            return table.train(self.training)
        self.base_layer.weight = weight
        return self.base_layer


LORA_LAYERS: dict[type[Module], type[LoraLayer]] = {
    Linear: LoraLinear,
    Conv1D: LoraConv1D,
    BlockLinear: LoraQuantizedLinear,
    BlockConv1D: LoraBlockConv1D,
    Embedding: LoraEmbedding,
    BlockEmbedding: LoraEmbedding,
}


def _check_finite(weight: Tensor) -> None:
    if not weight.isfinite().all().item():
        raise NumericError("merging gives weights that are not finite", hint="check the adapter's values")


def _frozen(tensor: Tensor) -> Parameter:
    return Parameter(tensor, requires_grad=False)


class ModulesToSaveWrapper(Adaptable):
    """A module with a trained copy for each adapter, of which the active one replaces it.

    Attributes of the module, such as its weight, are those of the one that `forward` uses.
    """

    def __init__(self, original_module: Module) -> None:
        super().__init__()
        self.original_module = original_module
        self.modules_to_save = ModuleDict()
        self.train(original_module.training)

    @property
    def adapters(self) -> Sequence[str]:
        return list(self.modules_to_save)

    def add_adapter(self, name: str) -> None:
        """Add a copy of the original module."""
        self.modules_to_save[name] = copy.deepcopy(self.original_module).requires_grad_()

    @property
    def current(self) -> Module:
        """The module that `forward` uses."""
        used = self.used_adapters
        return self.modules_to_save[used[0]] if used else self.original_module

    def adapter(self, name: str) -> dict[str, Tensor]:
        return dict(self.modules_to_save[name].state_dict(keep_vars=True)) if name in self.modules_to_save else {}

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.current(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except MissingNameError:
            if name.startswith("__") or "original_module" not in self.__dict__.get("_modules", {}):
                raise  # also while it is copied or unpickled
            return getattr(self.current, name)

    def delete_adapter(self, name: str) -> None:
        if name in self.modules_to_save:
            del self.modules_to_save[name]

    def unloaded(self) -> Module:
        return self.original_module

    def merged(self, names: Sequence[str], check: bool) -> Module:
        used = [name for name in names if name in self.modules_to_save]
        if not used:
            return self.original_module
        module: Module = self.modules_to_save[used[0]]
        if check:
            for parameter in module.parameters():
                _check_finite(parameter)
        return module
