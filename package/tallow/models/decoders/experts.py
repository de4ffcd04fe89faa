"""Mixtures of experts: feed-forward parts of which each token uses a few, chosen by a router.

Letters: B batch, T positions, N = B · T tokens, D width, E experts, C experts chosen for a token.

Source:  Shazeer et al. 2017, arXiv:1701.06538; Jiang et al. 2024, arXiv:2401.04088
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from operator import is_
from typing import Any, ClassVar

import numpy as np

from tallow import devices, dtypes, kernels
from tallow.core.apply import apply
from tallow.core.tensor import Tensor, wrap
from tallow.dtypes import Array
from tallow.errors import ArgumentError, CheckpointError
from tallow.fused.eligibility import Kind, Pattern, why_not
from tallow.fused.weights import matrix
from tallow.kernels.blocks.affine import memory
from tallow.kernels.blocks.expert_block import ExpertBlock
from tallow.models.config import tupled
from tallow.models.decoders.llama import MLP_NAMES, Llama, LlamaAttention, LlamaConfig, LlamaDecoderLayer, LlamaMLP
from tallow.models.decoders.qwen import Qwen3Attention
from tallow.nn import functional as F
from tallow.nn.block_layers import BlockLinear
from tallow.nn.cache import KVCache
from tallow.nn.container import ModuleList
from tallow.nn.hooks import STRUCTURE
from tallow.nn.linear import Linear
from tallow.nn.module import Module
from tallow.ops.joining import cat, stack
from tallow.tape.modes import is_grad_enabled, mode, no_grad

FEW_TOKENS = 4  # more share experts, so that one product for each expert is faster
FUSED = (".experts.gate_up_proj", ".experts.down_proj")


@dataclass(frozen=True, kw_only=True)
class ExpertsConfig(LlamaConfig):
    """The sizes of a Llama with experts, as LlamaConfig.

    Attributes:
        expert_names: of the three matrices of an expert in checkpoints.
        mlp_name: of the feed-forward part of a layer in checkpoints.
        num_experts: E.
        num_experts_per_tok: C.
        norm_topk_prob: whether the weights of a token's experts add up to 1.
    """

    num_experts: int
    num_experts_per_tok: int
    norm_topk_prob: bool = False

    expert_names: ClassVar[Sequence[str]] = MLP_NAMES
    mlp_name: ClassVar[str] = "mlp"
    # Both are about the loss of the router, which training by tallow does not add.
    computed: ClassVar[Mapping[str, tuple[Any, ...]]] = {**LlamaConfig.computed, "output_router_logits": (False,)}
    neutral: ClassVar[frozenset[str]] = frozenset({"router_aux_loss_coef"})

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require(
            "num_experts_per_tok", f"at most num_experts, {self.num_experts}", lambda value: value <= self.num_experts
        )

    @classmethod
    def prepare(cls, entries: dict[str, Any]) -> None:
        super().prepare(entries)
        if "num_local_experts" in entries:
            entries["num_experts"] = entries.pop("num_local_experts")

    def check_layers(self, tensors: int, source: str) -> None:
        super().check_layers(tensors, source)
        if self.num_experts * sum(map(self.has_experts, range(self.num_hidden_layers))) > tensors:
            raise CheckpointError(
                f"{source} does not fit: the config says num_experts={self.num_experts}, and there are only {tensors} "
                "tensors",
                hint="use the config and the weights of the same model",
            )

    def separated(self, state: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return a state dict with matrices for each expert, where transformers 5 has written those of all fused.

        Shapes:  gate_up_proj (E, 2F, D), down_proj (E, D, F) -> gate and up (F, D), down (D, F) of each expert
        """
        if not any(name.endswith(FUSED) for name in state):
            return state
        parts: dict[str, Any] = {}
        gate, up, down = self.expert_names
        for name, tensor in state.items():
            name = name.replace(".mlp.", f".{self.mlp_name}.")
            path, _, kind = name.rpartition(".")
            if not name.endswith(FUSED) or tensor.ndim != 3:
                parts[name] = tensor
                continue
            for i, of_expert in enumerate(tensor.unbind(0)):
                both = zip((gate, up), of_expert.chunk(2), strict=False)
                named = {down: of_expert} if kind == "down_proj" else dict(both)
                parts |= {f"{path}.{i}.{part}.weight": rows for part, rows in named.items()}
        return parts

    def joined(self, state: Mapping[str, Any]) -> dict[str, Any]:
        """Return a state dict with one tensor for all experts of a layer, as `separated` takes it."""
        gate, up, down = self.expert_names
        rest = dict(state)
        for layer in range(self.num_hidden_layers):
            first = f"layers.{layer}.{self.mlp_name}.experts.0.{gate}.weight"
            for name in [name for name in rest if name.endswith(first)]:
                path = name.removesuffix(f".0.{gate}.weight")
                outer = path.replace(f".{self.mlp_name}.", ".mlp.")
                parts = [
                    [rest.pop(f"{path}.{i}.{part}.weight") for i in range(self.num_experts)]
                    for part in (gate, up, down)
                ]
                both = [apply(cat, list(pair)) for pair in zip(*parts[:2], strict=True)]
                rest[f"{outer}.gate_up_proj"] = apply(stack, both)
                rest[f"{outer}.down_proj"] = apply(stack, parts[2])
        return {name.replace(f".{self.mlp_name}.", ".mlp."): value for name, value in rest.items()}

    @property
    def expert_width(self) -> int:
        """The number of hidden features of an expert."""
        return self.intermediate_size

    def has_experts(self, layer: int) -> bool:
        """Return whether the feed-forward part of a layer has experts."""
        return True


@dataclass(frozen=True, kw_only=True)
class SparseStepConfig(ExpertsConfig):
    """The sizes of a Llama with experts in every few layers, as ExpertsConfig.

    Attributes:
        moe_intermediate_size: the number of hidden features of an expert.
        decoder_sparse_step: every layer of that many has experts.
        mlp_only_layers: other layers without experts.
    """

    moe_intermediate_size: int
    decoder_sparse_step: int = 1
    mlp_only_layers: tuple[int, ...] = ()

    @classmethod
    def prepare(cls, entries: dict[str, Any]) -> None:
        super().prepare(entries)
        tupled(entries, "mlp_only_layers")

    @property
    def expert_width(self) -> int:
        return self.moe_intermediate_size

    def has_experts(self, layer: int) -> bool:
        return layer not in self.mlp_only_layers and (layer + 1) % self.decoder_sparse_step == 0


class Gate(Linear):
    """A linear layer without bias that stays in floats when a model is quantised: it decides about whole experts."""

    def __init__(self, in_features: int, out_features: int, device: Any, dtype: Any) -> None:
        super().__init__(in_features, out_features, False, device, dtype)


class Router(Gate):
    """Chooses experts for tokens (N, D): their weights (N, C) and numbers (N, C), those of the largest weights."""

    def __init__(self, config: ExpertsConfig, device: Any, dtype: Any) -> None:
        super().__init__(config.hidden_size, config.num_experts, device, dtype)
        self.count = config.num_experts_per_tok
        self.normalized = config.norm_topk_prob

    def forward(self, x_ND: Tensor, bias_E: Tensor | None = None) -> tuple[Tensor, Tensor]:  # type: ignore[override]
        weights_NC, chosen_NC = self.choose(self.scores(x_ND), bias_E)
        return weights_NC.to(x_ND.dtype), chosen_NC

    def scores(self, x_ND: Tensor) -> Tensor:
        """Return the scores of all experts (N, E) in float32, rounded to the dtype of the tokens before."""
        return super().forward(x_ND).float()

    def choose(self, scores_NE: Tensor, bias_E: Tensor | None) -> tuple[Tensor, Tensor]:
        """Return the weights and the numbers of the chosen experts, both (N, C).

        Args:    bias_E: what a model adds to the weights to choose by
        """
        if bias_E is not None:
            raise ArgumentError("a router by softmax takes no bias", hint="leave expert_bias of the experts None")
        weights_NC, chosen_NC = F.softmax(scores_NE, -1).topk(self.count)
        if self.normalized:
            weights_NC = weights_NC / weights_NC.sum(-1, keepdim=True)
        return weights_NC, chosen_NC

    def choose_few(self, scores_E: Array, bias_E: Tensor | None) -> tuple[Array, Array]:
        """Return what `choose` returns for one token, (C,) and (C,), on a CPU and without autograd."""
        if bias_E is not None or type(self).choose is not Router.choose:
            weights_NC, chosen_NC = self.choose(wrap(scores_E[None]), bias_E)
            return weights_NC.array[0], chosen_NC.array[0]
        chosen_C = np.argsort(-scores_E, kind="stable")[: self.count]
        powers_E = np.exp(scores_E - scores_E[chosen_C[0]])
        weights_C = powers_E[chosen_C]
        return weights_C / (weights_C if self.normalized else powers_E).sum(), chosen_C


class _Kept:
    """Results derived from the modules of a SparseMLP. They are not part of a copy of it."""

    def __init__(self) -> None:
        self.changes = -1  # of the structure of modules, when `is_plain` was found
        self.is_plain = False
        self.blocks: dict[int, tuple[ExpertBlock, list[Array]]] = {}  # by expert, with the arrays of its matrices

    def __reduce__(self) -> tuple[type[_Kept], tuple[()]]:
        return _Kept, ()


class SparseMLP(Module):
    """The weighted sum of the outputs of the experts that the router chooses for each token."""

    router_class: ClassVar[type[Router]] = Router
    router_name: ClassVar[str] = "gate"
    expert_class: ClassVar[type[LlamaMLP]] = LlamaMLP
    expert_bias: Tensor | None  # see `Router.choose`

    def __init__(self, config: ExpertsConfig, device: Any, dtype: Any) -> None:
        super().__init__()
        self.add_module(self.router_name, self.router_class(config, device, dtype))
        self.register_buffer("expert_bias", None)
        self._kept = _Kept()
        width, names, count = config.expert_width, config.expert_names, config.num_experts
        self.experts = ModuleList(self.expert_class(config, device, dtype, width, names) for _ in range(count))

    @property
    def chooser(self) -> Any:
        """The router."""
        return getattr(self, self.router_name)

    def forward(self, x_BTD: Tensor) -> Tensor:
        x_ND = x_BTD.flatten(0, -2)
        if mode.tracer is not None and mode.tracer.is_functional:
            return self._of_all(x_ND).reshape(x_BTD.shape)
        if len(x_ND) <= FEW_TOKENS and not is_grad_enabled() and x_ND.device.type == "cpu" and self._is_plain():
            few = np.stack([self._mixed(x_D) for x_D in dtypes.widen(x_ND.array)])
            return wrap(dtypes.cast(few, x_ND.dtype)).reshape(x_BTD.shape)
        weights_NC, chosen_NC = self.chooser(x_ND, self.expert_bias)
        chosen = devices.to_host(chosen_NC.detach().array)
        # The places in `chosen`, ordered by expert.
        order = np.argsort(chosen, axis=None, kind="stable")
        outputs, end = [], 0
        for expert, count in enumerate(np.bincount(chosen.reshape(-1)).tolist()):
            start, end = end, end + count
            if count:
                tokens = order[start:end] // chosen.shape[1]
                outputs.append(self.experts[expert](x_ND if count == len(x_ND) else x_ND[_moved(tokens, x_ND)]))
        places_NC = np.argsort(order).reshape(chosen.shape)
        mixed_NCD = apply(cat, outputs)[_moved(places_NC, x_ND)] * weights_NC.unsqueeze(-1)
        return mixed_NCD.sum(1).reshape(x_BTD.shape)

    def _of_all(self, x_ND: Tensor) -> Tensor:
        """Return the sum over all experts, in which those that are not chosen weigh nothing: a graph cannot choose."""
        weights_NC, chosen_NC = self.chooser(x_ND, self.expert_bias)
        weights_NE = weights_NC.new_zeros(x_ND.shape[0], len(self.experts)).scatter(1, chosen_NC, weights_NC)
        parts = [expert(x_ND) * weights_NE[:, i : i + 1] for i, expert in enumerate(self.experts)]
        total = parts[0]
        for part in parts[1:]:
            total = total + part
        return total

    # ------------------------------------------------------------------------------------------------- a few tokens

    def _is_plain(self) -> bool:
        """Return whether the kernel computes what the modules do."""
        kept = self._kept
        if kept.changes != STRUCTURE.changes:
            kept.is_plain = why_not({self.router_name: self.chooser, "experts": self.experts}, self._pattern) is None
            kept.changes = STRUCTURE.changes
        return kept.is_plain

    def _mixed(self, x_D: Array) -> Array:
        """Return the output for one token in float32, computed by one kernel for all its experts."""
        scores_E = kernels.run("linear", x_D, self.chooser.weight.array, None)
        weights_C, chosen_C = self.chooser.choose_few(scores_E, self.expert_bias)
        return kernels.run("experts", x_D, [self._block(i) for i in chosen_C.tolist()], weights_C)

    @property
    def _pattern(self) -> Pattern:
        """The requirements on the modules that "experts" replaces."""
        return Pattern({**PLAIN, self.router_class: Kind()})

    def _block(self, i: int) -> ExpertBlock:
        """Return the weights of an expert, a new block if an array of them has been replaced."""
        expert = self.experts[i]
        matrices = [matrix(getattr(expert, name)) for name in expert.names]
        arrays = [memory(each) for each in matrices]
        kept = self._kept.blocks.get(i)
        if kept is None or not all(map(is_, kept[1], arrays)):
            kept = self._kept.blocks[i] = ExpertBlock(*matrices), arrays
        return kept[0]


# The modules of the experts that "experts" replaces.
PLAIN = {
    ModuleList: Kind(),
    LlamaMLP: Kind(allowed={"activation": (F.silu,)}),
    Linear: Kind(allowed={"bias": (None,)}),
    BlockLinear: Kind(allowed={"bias": (None,)}),
}


def _moved(index: Any, like: Tensor) -> Tensor:
    return wrap(devices.move(index, like.device))


class SparseDecoderLayer(LlamaDecoderLayer):
    """A Llama layer whose feed-forward part has experts, if the config says so."""

    sparse_class: ClassVar[type[SparseMLP]] = SparseMLP

    def new_mlp(self, config: Any, layer: int, device: Any, dtype: Any) -> Module:
        if config.has_experts(layer):
            return self.sparse_class(config, device, dtype)
        return super().new_mlp(config, layer, device, dtype)


class SparseLlama(Llama):
    """The base of language models with experts in some layers. Their fused blocks call the module of the experts."""

    fused_pattern = Pattern(
        {
            **Llama.fused_pattern.kinds,
            SparseDecoderLayer: Kind(methods=("forward",)),
            Qwen3Attention: Llama.fused_pattern.kinds[LlamaAttention],
            SparseMLP: Kind(methods=("__call__",), is_called=True),
        }
    )

    def fused_limit(self, cache: KVCache) -> str | None:
        if cache.device.type != "cpu":
            return f"no fused block computes experts on {cache.device}"
        return super().fused_limit(cache)

    def fused_mlp(self, layer: Any) -> dict[str, Any]:
        mlp = getattr(layer, layer.mlp_name)
        if not isinstance(mlp, SparseMLP):
            return super().fused_mlp(layer)
        return {"gate": None, "up": None, "down": None, "mlp": partial(_rows, mlp)}


def _rows(mlp: SparseMLP, rows_MD: Array) -> Array:
    """Return the output of a module for rows in float32."""
    with no_grad():
        return dtypes.widen(mlp(wrap(dtypes.cast(rows_MD, mlp.chooser.weight.dtype))).array)
