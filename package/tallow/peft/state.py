"""The tensors of an adapter by their names in peft's files.

A GGUF file of Llama and a llama2.c checkpoint order the rows of the query and key projections in another way than
Hugging Face folders do. Names and order here are always those of Hugging Face folders, so that an adapter fits every
file of its model.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tallow.core.tensor import Tensor, wrap
from tallow.errors import ArgumentError, CheckpointError
from tallow.models.llama_formats import PROJECTIONS, reordered
from tallow.nn.module import Module
from tallow.nn.state import load_state
from tallow.peft.layers import LoraLayer
from tallow.peft.lora_model import LoraModel

PREFIX = "base_model.model."
# Parts of files with bias="all" that repeat the bias of a module that the adapter replaces, or are unused.
REPEATED = (".original_module.", ".modules_to_save.")


def get_peft_model_state_dict(model: Module, adapter_name: str = "default") -> dict[str, Tensor]:
    """Return the tensors of an adapter, named as in peft's files. They share memory with the model where possible.

    Args:    model: a PeftModel, or the LoraModel in it
    Raises:  ArgumentError for a name that does not exist
    """
    tensors = _tensors(_lora_model(model), adapter_name)
    return {PREFIX + name: _in_order(name, tensor.detach(), model, to_model=False) for name, tensor in tensors.items()}


def set_peft_model_state_dict(
    model: Module, state_dict: Mapping[str, Tensor], adapter_name: str = "default", *, source: str = "state dict"
) -> None:
    """Load the values of an adapter from tensors with the names of peft's files.

    Args:
        model: as `get_peft_model_state_dict`
        source: name of the origin of the values, for error messages.

    Raises:  ArgumentError for a name that does not exist; CheckpointError with every tensor that is missing, unexpected
             or of another shape, and nothing is changed
    """
    lora = _lora_model(model)
    own = _tensors(lora, adapter_name)
    named = _own_names(state_dict, own, source)
    places = {path: layer.device for path, layer in lora.adaptables() if isinstance(layer, LoraLayer)}
    state = {}
    for name, value in named.items():
        if name in own and isinstance(value, Tensor) and value.shape == own[name].shape:
            layer = name.partition(".lora_")[0]
            device = places[layer] if layer in places else own[name].device  # the adapter may be on "meta"
            value = _in_order(name, value, model, to_model=True).to(device, own[name].dtype).clone()
        state[name] = value
    load_state(own, state, source=source, target=f"the adapter {adapter_name!r}", assign=True)


def _lora_model(model: Module) -> LoraModel:
    inner = model if isinstance(model, LoraModel) else model._modules.get("base_model")
    if not isinstance(inner, LoraModel):
        raise ArgumentError(f"a {type(model).__name__} has no adapters", hint="make a PeftModel: get_peft_model(...)")
    return inner


def _tensors(model: LoraModel, adapter: str) -> dict[str, Tensor]:
    if adapter not in model.peft_config:
        raise ArgumentError(f"there is no adapter {adapter!r}")
    return model.tensors(adapter) | model.biases(model.peft_config[adapter])


def _own_names(state: Mapping[str, Tensor], own: Mapping[str, Tensor], source: str) -> dict[str, Tensor]:
    """Return the entries of a file by the names of the model.

    Older versions of peft name the biases of adapted layers as the model without adapters does.
    """
    named = {}
    for key, value in state.items():
        if not key.startswith(PREFIX):
            raise CheckpointError(
                f"{source}: {key!r:.200} does not start with {PREFIX}", hint="pass an adapter of peft"
            )
        name = key.removeprefix(PREFIX)
        if name not in own and any(part in f".{name}" for part in REPEATED):
            continue
        wrapped = f"{name.removesuffix('bias')}base_layer.bias"
        named[wrapped if name.endswith("bias") and wrapped in own else name] = value
    return named


def _in_order(name: str, tensor: Tensor, model: Module, *, to_model: bool) -> Tensor:
    """Return a tensor of an adapter with its rows in the order of the model, or of Hugging Face folders."""
    config: Any = getattr(model, "config", None)
    path, _, part = name.partition(".lora_")
    projection = path.removesuffix(".weight").removesuffix(".bias").removesuffix(".base_layer")
    if not getattr(config, "rope_interleaved", False) or not projection.endswith(PROJECTIONS) or part.startswith("A"):
        return tensor
    return wrap(reordered(tensor.array, config.head_width, to_interleaved=to_model))
