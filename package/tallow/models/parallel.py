"""Tensor parallelism for Llama: each process holds a part of every matrix, of the cache and of the vocabulary.

    dist.init_process_group()
    model = TensorParallelLlama.from_pretrained(folder)  # each process reads its part of the files
    for token in generate(model, prompt, max_tokens=100): ...  # the same tokens in every process

Letters: B batch, T positions, D width, V vocabulary.

Source:  Shoeybi et al. 2019, arXiv:1909.08053, section 3
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tallow.core.creation import empty
from tallow.core.tensor import Tensor
from tallow.distributed.groups import member
from tallow.errors import ArgumentError
from tallow.io.stored import StoredTensor, stored_folder
from tallow.models.causal_lm import CacheShape
from tallow.models.decoders.llama import Llama, LlamaConfig
from tallow.nn import functional as F
from tallow.nn.parallel.linear import ColumnParallelLinear, RowParallelLinear, VocabParallelEmbedding
from tallow.nn.parallel.regions import Share, copy_to_group, gather_from_group
from tallow.nn.state import misfit, wrong_shape

COLUMNS = ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "mlp.gate_proj", "mlp.up_proj")
ROWS = ("self_attn.o_proj", "mlp.down_proj")
DIVIDED = ("num_attention_heads", "num_key_value_heads", "intermediate_size")


class TensorParallelLlama(Llama):
    """A Llama divided among processes by heads, feed-forward features and rows of the vocabulary.

    All processes call it with the same tokens, and get the same logits. `from_pretrained` reads this process's part of
    the files; `assemble` takes a state dict of the whole model. The constructor allocates no memory, whatever the
    device.

    Raises:  ArgumentError before init_process_group, or when heads or features do not divide among the processes
    """

    def __init__(self, config: LlamaConfig, device: Any = "meta", dtype: Any = None) -> None:
        super().__init__(config, "meta", dtype)  # a process may not have the memory for the whole model
        self.group = group = member(None)
        for name in DIVIDED:
            if getattr(config, name) % group.size():
                raise ArgumentError(
                    f"TensorParallelLlama: {name}={getattr(config, name)} in {group.size()} processes",
                    hint="use a number of processes that divides it",
                )
        self.vocabulary = Share(config.vocab_size, group)
        for layer in self.model.layers:
            for name in (*COLUMNS, *ROWS):
                kind = ColumnParallelLinear if name in COLUMNS else RowParallelLinear
                whole = layer.get_submodule(name)
                sizes = whole.in_features, whole.out_features, whole.bias is not None
                layer.set_submodule(name, kind(*sizes, group=group, device="meta", dtype=dtype))
            layer.self_attn.num_heads //= group.size()
            layer.self_attn.num_kv_heads //= group.size()
        width = config.hidden_size
        self.model.embed_tokens = VocabParallelEmbedding(config.vocab_size, width, group, "meta", dtype)
        if self.lm_head is not None:
            self.lm_head = ColumnParallelLinear(
                width, config.vocab_size, False, group=group, device="meta", dtype=dtype
            )

    @staticmethod
    def read_folder(folder: Path) -> Mapping[str, StoredTensor]:
        return stored_folder(folder)

    def logits(self, hidden_BTD: Tensor) -> Tensor:
        part_BTV = F.linear(copy_to_group(hidden_BTD, self.group), self.head_weight)
        return gather_from_group(part_BTV, self.vocabulary, self.group)

    @property
    def cache_shape(self) -> CacheShape:
        layers, kv_heads, head_dim = super().cache_shape
        return CacheShape(layers, kv_heads // self.group.size(), head_dim)

    def adapt(self, state: Mapping[str, Any]) -> dict[str, Any]:
        """Return this process's parts of the tensors."""
        own = self.state_dict(keep_vars=True)
        wholes = {name: self._whole_shape(name, parameter) for name, parameter in own.items()}
        problems = [
            wrong_shape(name, state[name], empty(shape, device="meta"))
            for name, shape in wholes.items()
            if name in state and tuple(state[name].shape) != shape
        ]
        if problems:
            raise misfit("the checkpoint", f"TensorParallelLlama({self.extra_repr()})", None, problems)
        return {name: self._part(name, tensor) if name in own else tensor for name, tensor in state.items()}

    def _division(self, name: str) -> tuple[int, Share] | None:
        """Return the axis along which a parameter is divided and this process's share; None if it is not divided."""
        owner, _, parameter = name.rpartition(".")
        layer: Any = self.get_submodule(owner)
        dim = getattr(layer, "sharded", {}).get(parameter)
        return None if dim is None else (dim, layer.share)

    def _whole_shape(self, name: str, parameter: Tensor) -> tuple[int, ...]:
        shape, division = list(parameter.shape), self._division(name)
        if division is not None:
            shape[division[0]] = division[1].total
        return tuple(shape)

    def _part(self, name: str, whole: Tensor | StoredTensor) -> Tensor:
        division = self._division(name)
        if division is None:
            return whole.read() if isinstance(whole, StoredTensor) else whole
        dim, share = division
        if isinstance(whole, StoredTensor):
            return whole.read(dim, share.start, share.stop)
        return whole.narrow(dim, share.start, share.size).clone()
