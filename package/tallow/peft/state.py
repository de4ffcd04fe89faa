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
from tallow.models.decoders.llama_formats import PROJECTIONS, reordered
from tallow.models.ties import are_equal
from tallow.nn.embedding import Embedding
from tallow.nn.linear import Linear
from tallow.nn.module import Module
from tallow.nn.state import load_state
from tallow.peft.layers import LORA_LAYERS, LoraEmbedding, LoraLayer, ModulesToSaveWrapper
from tallow.peft.lora_model import LoraModel

PREFIX = "base_model.model."
QUANTISATION = 0.3  # the most that quantised weights differ from those that they were, as norms
# Parts of files with bias="all" that repeat the bias of a module that the adapter replaces, or are unused.
REPEATED = (".original_module.", ".modules_to_save.")


def get_peft_model_state_dict(
    model: Module, adapter_name: str = "default", save_embedding_layers: bool | str = "auto"
) -> dict[str, Tensor]:
    """Return the tensors of an adapter, named as in peft's files. They share memory with the model where possible.

    Args:
        model: a PeftModel, or the LoraModel in it.
        save_embedding_layers: also return the weights of the model's embeddings and head. "auto" means those that have
            an adapter, and those that an adapter's file has replaced.

    Raises:  ArgumentError for a name that does not exist, and for another string
    """
    if save_embedding_layers not in (True, False, "auto"):
        raise ArgumentError(f"save_embedding_layers={save_embedding_layers!r}", hint='pass True, False or "auto"')
    lora = _lora_model(model)
    tensors = _tensors(lora, adapter_name)
    for path, layer in _vocabulary_layers(lora).items():
        is_changed = path in lora.replaced_weights or (isinstance(layer, LoraLayer) and adapter_name in layer.adapters)
        if save_embedding_layers is True or (save_embedding_layers and is_changed):
            tensors[_weight_name(path, layer)] = _base(layer).weight
    return {PREFIX + name: _in_order(name, tensor.detach(), model, to_model=False) for name, tensor in tensors.items()}


def set_peft_model_state_dict(
    model: Module, state_dict: Mapping[str, Tensor], adapter_name: str = "default", *, source: str = "state dict"
) -> None:
    """Load the values of an adapter from tensors with the names of peft's files.

    Args:
        model: as `get_peft_model_state_dict`
        source: name of the origin of the values, for error messages.

    Weights of embeddings and of the head that are beside an adapter replace those of the model, as in peft.

    Raises:  ArgumentError for a name that does not exist; CheckpointError with every tensor that is missing, unexpected
             or of another shape, and nothing is changed
    """
    lora = _lora_model(model)
    own = _tensors(lora, adapter_name)
    named = _own_names(state_dict, own, source)
    head = getattr(lora.model, "head_name", None)
    if f"{head}.weight" in named and getattr(lora.model, "head_table", None) is not None:
        lora.model.untie_head()
    replaced = _new_weights(lora, named, source)
    own |= {name: _base(lora.model.get_submodule(path)).weight for name, path in replaced.items()}
    places = {path: layer.device for path, layer in lora.adaptables() if isinstance(layer, LoraLayer)}
    state = {}
    for name, value in named.items():
        if name in own and isinstance(value, Tensor) and value.shape == own[name].shape:
            layer = name.partition(".lora_")[0]
            device = places[layer] if layer in places else own[name].device  # the adapter may be on "meta"
            value = _in_order(name, value, model, to_model=True).to(device, own[name].dtype).clone()
        state[name] = value
    load_state(own, state, source=source, target=f"the adapter {adapter_name!r}", assign=True)
    lora.replaced_weights.update(replaced.values())


def _lora_model(model: Module) -> LoraModel:
    inner = model if isinstance(model, LoraModel) else model._modules.get("base_model")
    if not isinstance(inner, LoraModel):
        raise ArgumentError(f"a {type(model).__name__} has no adapters", hint="make a PeftModel: get_peft_model(...)")
    return inner


def _tensors(model: LoraModel, adapter: str) -> dict[str, Tensor]:
    if adapter not in model.peft_config:
        raise ArgumentError(f"there is no adapter {adapter!r}")
    return model.tensors(adapter) | model.biases(model.peft_config[adapter])


def _vocabulary_layers(lora: LoraModel) -> dict[str, Any]:
    """Return the layers of the model whose weights peft may write beside an adapter, by path: embeddings, the head."""
    inside = tuple(f"{path}." for path, _ in lora.adaptables())
    head = getattr(lora.model, "head_name", None)
    return {
        path: module
        for path, module in lora.model.named_modules()
        if not path.startswith(inside)
        and (path == head or LORA_LAYERS.get(type(_base(module))) is LoraEmbedding)
        and not isinstance(module, ModulesToSaveWrapper)
    }


def _base(layer: Any) -> Any:
    return layer.base_layer if isinstance(layer, LoraLayer) else layer


def _weight_name(path: str, layer: Module) -> str:
    return f"{path}.base_layer.weight" if isinstance(layer, LoraLayer) else f"{path}.weight"


def _new_weights(lora: LoraModel, named: dict[str, Tensor], source: str) -> dict[str, str]:
    """Return the paths of the layers that get other weights from a file, by the names of the weights; remove weights
    that the model has already from `named`.

    Raises:  CheckpointError for other weights than those that the model has quantised
    """
    paths = {}
    for path, layer in _vocabulary_layers(lora).items():
        name, own = _weight_name(path, layer), _base(layer).weight
        value = named.get(name)
        if not isinstance(value, Tensor) or value.shape != own.shape:  # which `load_state` refuses
            if name in named:
                paths[name] = path
        elif isinstance(_base(layer), Linear | Embedding):
            if are_equal(value, own):
                del named[name]
            else:
                paths[name] = path
        else:
            change = (value.to(own.device, own.dtype) - own).norm() / own.norm()
            if not change.item() < QUANTISATION:
                raise CheckpointError(
                    f"{source}: {name} is not what the model has quantised", hint="load the model without quantisation"
                )
            del named[name]
    return paths


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
    order, in_files = (getattr(config, name, False) for name in ("rope_interleaved", "files_interleave"))
    if order == in_files or not projection.endswith(PROJECTIONS) or part.startswith("A"):
        return tensor
    return wrap(reordered(tensor.array, config.head_width, to_interleaved=order if to_model else in_files))
