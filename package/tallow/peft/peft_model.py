"""A model with adapters, as in peft: make one, load adapters into it, save them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

from tallow import dtypes
from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError, CheckpointError, MissingNameError
from tallow.hub import local_folder
from tallow.io import safetensors
from tallow.io.model_folder import load_weights
from tallow.io.whole_folder import atomic_folder
from tallow.nn.module import Module
from tallow.nn.quantization import count_weights
from tallow.peft.config import LoraConfig
from tallow.peft.layers import Adaptable
from tallow.peft.lora_model import LoraModel
from tallow.peft.state import get_peft_model_state_dict, set_peft_model_state_dict

ADAPTER_WEIGHTS = ("adapter_model.safetensors", "adapter_model.bin")  # the first that exists
DEFAULT = "default"


class PeftModel(Module):
    """A model with adapters; `get_peft_model` and `from_pretrained` make one.

    The layers of the model are replaced in place, and its weights are frozen. Methods and attributes of the model, such
    as `generate_text`, work on this class too.

    Args:    as peft.PeftModel

    Attributes:
        base_model: the LoraModel, whose `model` is the model.
        peft_config: the configs of the adapters by name.

    Raises:  ArgumentError for a model that has adapters already; and as `LoraModel.add_adapter`

    Example:
        >>> import tallow as tl
        >>> from tallow.peft import LoraConfig, get_peft_model
        >>> network = tl.nn.Sequential(tl.nn.Linear(8, 16), tl.nn.ReLU(), tl.nn.Linear(16, 2))
        >>> model = get_peft_model(network, LoraConfig(r=2, target_modules=["0"]))
        >>> model.print_trainable_parameters()
        trainable params: 48 || all params: 226 || trainable%: 21.2389
    """

    base_model: LoraModel

    def __init__(self, model: Module, peft_config: LoraConfig, adapter_name: str = DEFAULT) -> None:
        super().__init__()
        self.base_model = _adaptable(model)
        self.base_model.add_adapter(adapter_name, peft_config)
        self.base_model.set_adapter(adapter_name)
        self.train(model.training)

    @classmethod
    def from_pretrained(
        cls,
        model: Module,
        model_id: str | Path,
        adapter_name: str = DEFAULT,
        is_trainable: bool = False,
        *,
        revision: str | None = None,
        token: str | None = None,
        strict: bool = False,
    ) -> Self:
        """Add an adapter from a local folder or a Hub repository to a model.

        Args:
            model_id: a folder with `adapter_config.json` and `adapter_model.safetensors` or `.bin`, or
                `owner/repository`.
            is_trainable: False freezes the adapter.
            revision, token: of the Hub repository, as in `tallow.hub.local_folder`.
            strict: as in `LoraConfig.from_pretrained`.

        Raises:  CheckpointError for a file that is malformed or does not fit the model, or a config with entries that
                 tallow does not support; HubError; ArgumentError as PeftModel
        """
        peft_model = cls.__new__(cls)
        Module.__init__(peft_model)
        peft_model.base_model = _adaptable(model)
        peft_model.load_adapter(model_id, adapter_name, is_trainable, revision=revision, token=token, strict=strict)
        peft_model.set_adapter(adapter_name)
        return peft_model.train(model.training)

    def load_adapter(
        self,
        model_id: str | Path,
        adapter_name: str,
        is_trainable: bool = False,
        *,
        revision: str | None = None,
        token: str | None = None,
        strict: bool = False,
    ) -> None:
        """Add another adapter from a folder or a Hub repository, which is not active yet.

        Args, raises:  as `from_pretrained`
        """
        folder = local_folder(model_id, revision=revision, token=token)
        config = replace(LoraConfig.from_pretrained(folder, strict=strict), inference_mode=not is_trainable)
        state, source = _read_weights(folder)
        # On "meta", so that the ranks in a config allocate no memory before the weights are compared with them.
        self.base_model.add_adapter(adapter_name, config, device="meta")
        try:
            set_peft_model_state_dict(self.base_model, state, adapter_name, source=source)
        except CheckpointError:
            self.base_model.remove(adapter_name)
            raise

    def save_pretrained(
        self,
        save_directory: str | Path,
        selected_adapters: Sequence[str] | None = None,
        save_embedding_layers: bool | str = "auto",
    ) -> None:
        """Write adapters: "default" to the folder, others to folders of their names in it.

        The folder is replaced as a whole; other files in it stay.

        Args:
            selected_adapters: None means all.
            save_embedding_layers: as in `get_peft_model_state_dict`.

        Raises:  ArgumentError for a name that does not exist; OSError
        """
        with atomic_folder(save_directory) as stage:
            for name in self.peft_config if selected_adapters is None else selected_adapters:
                self.write_adapter(name, stage / name if name != DEFAULT else stage, save_embedding_layers)

    def write_adapter(self, name: str, folder: Path, save_embedding_layers: bool | str = "auto") -> None:
        """Write one adapter to a folder, whatever its name.  Args, raises: as `save_pretrained`"""
        state = get_peft_model_state_dict(self.base_model, name, save_embedding_layers)
        folder.mkdir(parents=True, exist_ok=True)
        values = {key: tensor.cpu().contiguous() for key, tensor in state.items()}
        safetensors.save(values, folder / ADAPTER_WEIGHTS[0], {"format": "pt"})
        config = self.peft_config[name]
        source = config.base_model_name_or_path or getattr(self, "folder", None)
        base = None if source is None else os.fspath(source)
        replace(config, base_model_name_or_path=base, inference_mode=True).save_pretrained(folder)

    # -------------------------------------------------------------------------------------------------------- adapters

    @property
    def peft_config(self) -> dict[str, LoraConfig]:
        """The configs of the adapters by name."""
        return self.base_model.peft_config

    @property
    def active_adapters(self) -> list[str]:
        """The names of the active adapters."""
        return self.base_model.active_adapters

    @property
    def active_adapter(self) -> str:
        """The name of the active adapter.  Raises: ArgumentError if there is none, or several"""
        if len(self.active_adapters) != 1:
            raise ArgumentError(f"active adapters: {self.active_adapters}", hint="use active_adapters")
        return self.active_adapters[0]

    def add_adapter(self, adapter_name: str, peft_config: LoraConfig) -> None:
        """Add a new adapter, which is not active yet.  Raises: as `LoraModel.add_adapter`"""
        self.base_model.add_adapter(adapter_name, peft_config)

    def set_adapter(self, adapter_name: str | Sequence[str]) -> None:
        """Make one adapter active, or several, whose changes are added.  Raises: as `LoraModel.set_adapter`"""
        self.base_model.set_adapter(adapter_name)

    def delete_adapter(self, adapter_name: str) -> None:
        """Remove an adapter.  Raises: as `LoraModel.delete_adapter`"""
        self.base_model.delete_adapter(adapter_name)

    @contextmanager
    def disable_adapter(self) -> Iterator[None]:
        """Return a context in which the model computes without adapters.

        Raises:  UnsupportedError if an adapter has changed biases of the model
        """
        self.base_model.set_disabled(True)
        try:
            yield
        finally:
            self.base_model.set_disabled(False)

    def get_base_model(self) -> Module:
        """Return the model, with adapters in its layers."""
        return self.base_model.model

    def merge_and_unload(self, *, safe_merge: bool = False, adapter_names: Sequence[str] | None = None) -> Module:
        """Return the model with adapters added to its weights; as `LoraModel.merge_and_unload`."""
        return self.base_model.merge_and_unload(safe_merge=safe_merge, adapter_names=adapter_names)

    def unload(self) -> Module:
        """Return the model without adapters; as `LoraModel.unload`."""
        return self.base_model.unload()

    # ----------------------------------------------------------------------------------------------------------- model

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Call the model."""
        return self.base_model(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except MissingNameError:
            if name.startswith("__") or name == "base_model":
                raise  # also while it is copied or unpickled
            return getattr(self.base_model, name)

    def get_nb_trainable_parameters(self) -> tuple[int, int]:
        """Return the numbers of trained and of all parameters. Quantised weights count as parameters."""
        return sum(each.numel() for each in self.parameters() if each.requires_grad), count_weights(self)

    def print_trainable_parameters(self) -> None:
        """Print the numbers of trained and of all parameters."""
        trained, total = self.get_nb_trainable_parameters()
        print(f"trainable params: {trained:,d} || all params: {total:,d} || trainable%: {100 * trained / total:.4f}")


def get_peft_model(model: Module, peft_config: LoraConfig, adapter_name: str = DEFAULT) -> PeftModel:
    """Return a model with a new adapter, which is active and trained; the model's own weights are frozen.

    The layers of `model` are replaced in place.

    Raises:  ArgumentError, UnsupportedError as PeftModel
    """
    return PeftModel(model, peft_config, adapter_name)


def prepare_model_for_kbit_training(
    model: Module,
    use_gradient_checkpointing: bool = True,
    gradient_checkpointing_kwargs: dict[str, Any] | None = None,
) -> Module:
    """Freeze the weights of a quantised model, whose products stay quantised, before `get_peft_model`.

    Weights in 16 bits become float32, as in peft.

    Args:
        use_gradient_checkpointing: store the inputs of layers only, where the model can.
        gradient_checkpointing_kwargs: as `gradient_checkpointing_enable` of the model.
    """
    for parameter in model.parameters():
        parameter.requires_grad_(False)
        if parameter.dtype in (dtypes.float16, dtypes.bfloat16):
            parameter.data = parameter.data.float()
    if use_gradient_checkpointing and hasattr(model, "gradient_checkpointing_enable"):
        model.enable_input_require_grads()
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs)
    return model


def _adaptable(model: Module) -> LoraModel:
    if any(isinstance(module, LoraModel | Adaptable) for module in model.modules()):
        raise ArgumentError(
            f"the {type(model).__name__} has adapters already",
            hint="use add_adapter or load_adapter of its PeftModel, or remove them with unload()",
        )
    return LoraModel(model)


def _read_weights(folder: Path) -> tuple[dict[str, Tensor], str]:
    """Return the tensors of an adapter's folder, and the path of the file."""
    for name in ADAPTER_WEIGHTS:
        if (folder / name).exists():
            return load_weights(folder / name), str(folder / name)
    raise CheckpointError(f"{folder} has neither {' nor '.join(ADAPTER_WEIGHTS)}", hint="pass the folder of an adapter")
