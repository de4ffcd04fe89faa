"""A model whose layers have adapters: add, choose, merge and remove them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError, MissingNameError, UnsupportedError
from tallow.nn.block_layers import BlockConv1D, BlockLayer
from tallow.nn.container import ModuleDict
from tallow.nn.module import Module
from tallow.nn.parameter import Parameter
from tallow.nn.transposed_linear import Conv1D
from tallow.peft.config import LoraConfig
from tallow.peft.layers import LORA_LAYERS, Adaptable, LoraEmbedding, LoraLayer, ModulesToSaveWrapper
from tallow.peft.targets import is_saved, is_target, value_for, with_targets

NAME = re.compile(r"[\w-]+")


class LoraModel(Module):
    """A model with adapters. Its layers are replaced in place; other attributes are the model's.

    Args:    model: the model, whose parameters are frozen

    Attributes:
        peft_config: the configs of the adapters by name.
        active_adapters: the names of the adapters that are added to the model's layers.
        replaced_weights: the paths of the layers whose weights an adapter's file has replaced.
    """

    def __init__(self, model: Module) -> None:
        super().__init__()
        self.model = model
        self.peft_config: dict[str, LoraConfig] = {}
        self.active_adapters: list[str] = []
        self.replaced_weights: set[str] = set()
        self.train(model.training)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Call the model."""
        return self.model(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except MissingNameError:
            if name.startswith("__") or name == "model":
                raise  # also while it is copied or unpickled
            return getattr(self.model, name)

    def adaptables(self) -> Iterator[tuple[str, Adaptable]]:
        """Iterate over (path, module) of the modules that hold adapters."""
        for path, module in self.model.named_modules():
            if isinstance(module, Adaptable):
                yield path, module

    # ------------------------------------------------------------------------------------------------ adding adapters

    def add_adapter(self, name: str, config: LoraConfig, device: Any = None) -> None:
        """Add an adapter, which is frozen until it is active.

        Args:    device: as in `LoraLayer.add_adapter`
        Raises:  ArgumentError for a name that is taken, targets that are not in the model, or a target of a class that
                 has no adapter; UnsupportedError for trained biases with several adapters
        """
        # A key of a ModuleDict, and a folder's name.
        if name in self.peft_config or not NAME.fullmatch(name) or hasattr(ModuleDict, name):
            raise ArgumentError(f"add_adapter: the name {name!r}", hint="use a new name of letters, digits, - and _")
        configs = [*self.peft_config.values(), config]
        if len(configs) > 1 and any(each.bias != "none" for each in configs):
            raise UnsupportedError(
                "several adapters with trained biases, which the model has once", hint='use bias="none"'
            )
        self._untie_head(config)
        modules = self._unadapted()
        linear = [path for path, module in modules.items() if _is_adaptable(module) and not _is_table(module)]
        config = with_targets(self.model, config, linear)
        targets = self._targets(config, modules)
        saved = self._saved(config, modules)
        for path, module in saved.items():
            wrapper = module if isinstance(module, ModulesToSaveWrapper) else ModulesToSaveWrapper(module)
            wrapper.add_adapter(name)
            self.model.set_submodule(path, wrapper)
        for path, module in targets.items():
            layer = module if isinstance(module, LoraLayer) else LORA_LAYERS[type(module)](module)  # type: ignore[call-arg]
            r = value_for(path, config.rank_pattern, config.r)
            alpha = value_for(path, config.alpha_pattern, config.lora_alpha)
            layer.add_adapter(name, r, alpha, config, device)
            self.model.set_submodule(path, layer)
        bases = [self.model.get_submodule(path).base_layer for path in targets]
        is_transposed = any(isinstance(base, Conv1D | BlockConv1D) for base in bases)
        self.peft_config[name] = replace(config, fan_in_fan_out=is_transposed)
        for tensor in self.tensors(name).values():
            tensor.requires_grad_(False)

    def _untie_head(self, config: LoraConfig) -> None:
        """Give the head of a model that ties it a matrix of its own, if an adapter changes the head or the embedding.

        In peft too, such an adapter changes one of the two.
        """
        table = getattr(self.model, "head_table", None)
        if table is not None:
            paths = [self.model.head_name, *(path for path, module in self.model.named_modules() if module is table)]
            if any(is_target(path, config) or is_saved(path, config) for path in paths):
                self.model.untie_head()

    def _unadapted(self) -> dict[str, Module]:
        """Return the modules of the model by path, without those inside a module that holds adapters."""
        inside = tuple(f"{path}." for path, _ in self.adaptables())
        return {path: module for path, module in self.model.named_modules() if not path.startswith(inside)}

    def _targets(self, config: LoraConfig, modules: Mapping[str, Module]) -> dict[str, Module]:
        """Return the layers to adapt by path."""
        targets = {path: module for path, module in modules.items() if is_target(path, config)}
        if not targets:
            raise ArgumentError(
                f"target_modules={config.target_modules!r:.200}: {type(self.model).__name__} has no such modules",
                hint="name linear layers or embeddings, as in model.named_modules()",
            )
        for path, module in targets.items():
            if not _is_adaptable(module):
                kinds = ", ".join(kind.__name__ for kind in LORA_LAYERS)
                raise ArgumentError(
                    f"target_modules: {path} is a {type(module).__name__}", hint=f"adapters are for {kinds}"
                )
            if _is_table(module):
                self._check_untied("target_modules", path)
        return targets

    def _saved(self, config: LoraConfig, modules: Mapping[str, Module]) -> dict[str, Module]:
        """Return the modules to train as a whole by path."""
        matching = {path: module for path, module in modules.items() if is_saved(path, config)}
        inner_ones = {path for path in matching if any(path.startswith(f"{other}.") for other in matching)}
        saved = {path: module for path, module in matching.items() if path not in inner_ones}
        if config.modules_to_save and not saved:
            raise ArgumentError(
                f"modules_to_save={config.modules_to_save!r:.200}: {type(self.model).__name__} has no such modules",
                hint="name modules, as in model.named_modules()",
            )
        for path, module in saved.items():
            inner = [*(module.original_module if isinstance(module, ModulesToSaveWrapper) else module).modules()]
            for name, each in module.named_modules(prefix=path):
                if _is_table(each):
                    self._check_untied("modules_to_save", name)
            if any(isinstance(each, BlockLayer | Adaptable) for each in inner) or not any(
                each._parameters for each in inner
            ):
                raise ArgumentError(
                    f"modules_to_save: {path} is a {type(module).__name__} that cannot be trained as a whole",
                    hint="name a module with float weights and without adapters",
                )
        return saved

    def _check_untied(self, entry: str, path: str) -> None:
        """Raise UnsupportedError for the path of an embedding whose weight other parts of the model read."""
        shared = getattr(self.model, "tied_weights", {})
        if others := [name for name, other in shared.items() if other == f"{path}.weight"]:
            raise UnsupportedError(
                f"{entry}: {path}, which shares its weight with {', '.join(others)}", hint="adapt other layers"
            )

    # ------------------------------------------------------------------------------------------------ choosing adapters

    def set_adapter(self, names: str | Sequence[str]) -> None:
        """Make adapters active, and no others. Those with `inference_mode` stay frozen, the others are trained.

        Raises:  ArgumentError for a name that does not exist, or several adapters with a copy of the same module
        """
        names = [names] if isinstance(names, str) else list(names)
        for name in names:
            if name not in self.peft_config:
                raise ArgumentError(
                    f"there is no adapter {name!r}", hint=f"choose from {', '.join(self.peft_config) or 'none'}"
                )
        for path, module in self.adaptables():
            if isinstance(module, ModulesToSaveWrapper) and len({*names} & {*module.adapters}) > 1:
                raise ArgumentError(f"several active adapters replace {path}", hint="choose one of them")
        self.active_adapters = names
        for _, module in self.adaptables():
            module.active_adapters = tuple(names)
        self._mark_trainable()

    def _mark_trainable(self) -> None:
        """Let only active adapters that are not frozen require gradients."""
        self.model.requires_grad_(False)
        for name in self.active_adapters:
            if not self.peft_config[name].inference_mode:
                for tensor in (*self.tensors(name).values(), *self.biases(self.peft_config[name]).values()):
                    if isinstance(tensor, Parameter):
                        tensor.requires_grad_()

    def tensors(self, name: str) -> dict[str, Tensor]:
        """Return the tensors of an adapter, without biases of the model, by their names in its file."""
        return {
            f"{path}.{inner}": tensor
            for path, module in self.adaptables()
            for inner, tensor in module.adapter(name).items()
        }

    def biases(self, config: LoraConfig) -> dict[str, Tensor]:
        """Return the biases of the model that an adapter trains, by their names in its file."""
        if config.bias == "none":
            return {}
        replaced = tuple(f"{path}." for path, each in self.adaptables() if isinstance(each, ModulesToSaveWrapper))
        names = [name for name, _ in self.model.named_parameters() if name.rpartition(".")[2] == "bias"]
        own = [name for name in names if not name.startswith(replaced)]
        if config.bias == "lora_only":
            adapted = {f"{path}.base_layer.bias" for path, each in self.adaptables() if isinstance(each, LoraLayer)}
            own = [name for name in own if name in adapted]
        return {name: self.model.get_parameter(name) for name in own}

    def set_disabled(self, disabled: bool) -> None:
        """Let the model compute without adapters, or with the active ones again.

        Raises:  UnsupportedError if an adapter has changed biases of the model
        """
        self.check_restorable("without adapters")
        for _, module in self.adaptables():
            module.disable_adapters = disabled

    def check_restorable(self, what: str) -> None:
        """Raise UnsupportedError if an adapter has changed biases of the model, which are not kept."""
        for name, config in self.peft_config.items():
            if config.bias != "none":
                raise UnsupportedError(
                    f"the model {what}: the adapter {name!r} has changed its biases", hint="load the model again"
                )

    # ---------------------------------------------------------------------------------------------- removing adapters

    def delete_adapter(self, name: str) -> None:
        """Remove an adapter. If it was the only active one, the first of the others becomes active.

        Raises:  ArgumentError for a name that does not exist; UnsupportedError as `unload`
        """
        if name not in self.peft_config:
            raise ArgumentError(f"there is no adapter {name!r}")
        self.check_restorable(f"without {name!r}")
        self.remove(name)
        remaining = [other for other in self.active_adapters if other != name]
        self.set_adapter(remaining or list(self.peft_config)[:1])

    def remove(self, name: str) -> None:
        """Remove the parts of an adapter. Modules without any adapter left become what they were before."""
        for path, module in list(self.adaptables()):
            module.delete_adapter(name)
            if not module.adapters:
                self.model.set_submodule(path, module.unloaded())
        del self.peft_config[name]

    def merge_and_unload(self, *, safe_merge: bool = False, adapter_names: Sequence[str] | None = None) -> Module:
        """Add adapters to the weights, and return the model with its own layers, frozen.

        Quantised layers that an adapter changes become Linear layers in float32, because rounding the sum again would
        change it. Weights in 16 bits are rounded once.

        Args:
            safe_merge: raise NumericError if a weight is not finite after merging, before its layer changes.
            adapter_names: the adapters to add; None means the active ones.

        Raises:  ArgumentError for a name that does not exist
        """
        names = list(self.active_adapters if adapter_names is None else adapter_names)
        if unknown := [name for name in names if name not in self.peft_config]:
            raise ArgumentError(f"there is no adapter {unknown[0]!r}")
        return self._replaced(lambda module: module.merged(names, safe_merge))

    def unload(self) -> Module:
        """Remove all adapters, and return the model with its own layers, frozen.

        Raises:  UnsupportedError if an adapter has changed biases of the model
        """
        self.check_restorable("without adapters")
        return self._replaced(lambda module: module.unloaded())

    def _replaced(self, replacement: Callable[[Adaptable], Module]) -> Module:
        for path, module in list(self.adaptables()):
            self.model.set_submodule(path, replacement(module))
        self.peft_config.clear()
        self.active_adapters = []
        return self.model.requires_grad_(False)


def _is_adaptable(module: Module) -> bool:
    return type(module) in LORA_LAYERS or isinstance(module, LoraLayer)


def _is_table(module: Module) -> bool:
    return isinstance(module, LoraEmbedding) or LORA_LAYERS.get(type(module)) is LoraEmbedding
