"""What all models share: making one of a checkpoint's own tensors, without weights in between."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self

from tallow import devices, dtypes
from tallow.autograd.modes import no_grad
from tallow.errors import ArgumentError
from tallow.hub import local_folder
from tallow.io.model_folder import load_folder
from tallow.models.config import CONFIG, Config
from tallow.nn import init
from tallow.nn.embedding import Embedding
from tallow.nn.linear import Linear
from tallow.nn.module import Module
from tallow.tensor import Tensor

LEGACY = {"LayerNorm.gamma": "LayerNorm.weight", "LayerNorm.beta": "LayerNorm.bias"}  # of TensorFlow's checkpoints


def check_length(length: int, limit: int) -> None:
    """Raises:  ArgumentError for a text of more tokens than the model has positions"""
    if length > limit:
        raise ArgumentError(f"a text of {length} tokens; the model has {limit} positions", mend="shorten the text")


class SpanLogits(NamedTuple):
    """Where an answer starts and ends.

    Shapes:  each (B, T)
    """

    start: Tensor
    end: Tensor


class PretrainedModel(Module):
    """The base of models that load folders of Hugging Face's.

    A subclass is made from a config, a device and a dtype; on device "meta" its parameters have no memory.

    Attributes:
        config_class: what reads `config.json`.
        base_model_prefix: the name under which models with a head keep the model without one. A checkpoint of either
            loads into the other, as far as what is needed is there.
        folder: where `from_pretrained` has loaded the model from, a folder or a GGUF file; None for one made otherwise.
    """

    config_class: ClassVar[type[Config]]
    base_model_prefix: ClassVar[str]
    config: Any
    folder: Path | None = None

    def __init__(self, config: Any) -> None:
        super().__init__()
        self.config = config

    @classmethod
    def from_pretrained(
        cls,
        name: str | Path,
        dtype: Any = None,
        device: Any = None,
        *,
        revision: str | None = None,
        token: str | None = None,
    ) -> Self:
        """Load a folder of Hugging Face's, or a repository of its Hub: `config.json`, and weights, whole or in shards.

        Args:
            name: a folder, or `owner/repository`.
            dtype: as in the file if None.
            revision, token: of the Hub's repository, as `tallow.hub.local_folder` takes them.

        Raises:  CheckpointError with everything that is missing, unexpected or of the wrong shape; HubError
        """
        folder = local_folder(name, revision=revision, token=token)
        config = cls.config_class.from_json(folder / CONFIG)
        model = cls.assemble(config, cls.read_folder(folder), dtype, device, str(folder))
        model.folder = folder
        return model

    @staticmethod
    def read_folder(folder: Path) -> Mapping[str, Any]:
        """The tensors of a folder, for `assemble`."""
        return load_folder(folder)

    @classmethod
    def assemble(
        cls,
        config: Any,
        state: Mapping[str, Tensor],
        dtype: Any = None,
        device: Any = None,
        source: str = "state dict",
        **parts: bool,
    ) -> Self:
        """A model made of the state's own arrays; they are converted and moved only where they have to be.

        Args:
            source: where the state comes from, for error messages.
            parts: of the model that may be left out, as its class takes them.

        Raises:  CheckpointError
        """
        config.check_layers(len(state), source)
        model = cls(config, device="meta", **parts)  # type: ignore[call-arg]  # a subclass's
        own = model.state_dict(keep_vars=True)
        model.load_state_dict(model._adapt(state, own), assign=True, source=source)
        return model.to(devices.chosen(device), dtype=None if dtype is None else dtypes.as_dtype(dtype)).eval()

    def _adapt(self, state: Mapping[str, Tensor], own: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The tensors under this model's names, without those it has no use for."""
        prefix = self.base_model_prefix + "."
        nested = any(name.startswith(prefix) for name in own)
        adapted = {}
        for name, tensor in state.items():
            for old, new in LEGACY.items():
                name = name.replace(old, new)
            if nested and name not in own and prefix + name in own:
                name = prefix + name  # the checkpoint is of the base model
            elif not nested:
                name = name.removeprefix(prefix)
            if name in own or not self.is_superfluous(name):
                adapted[name] = tensor
        return adapted

    def reset_parameters(self) -> None:
        """Draw all matrices from N(0, initializer_range²), as transformers does; biases and paddings are zero. A base
        model within draws its own."""
        if next(self.parameters()).device.type == "meta":
            return
        base = getattr(self, self.base_model_prefix, None)
        drawn = {*base.modules()} if isinstance(base, PretrainedModel) else set()
        for module in self.modules():
            if module in drawn:
                continue
            if isinstance(module, Linear | Embedding):
                init.normal_(module.weight, 0.0, self.config.initializer_range)
            if isinstance(module, Linear) and module.bias is not None:
                init.zeros_(module.bias)
            if isinstance(module, Embedding) and module.padding_idx is not None:
                with no_grad():
                    module.weight[module.padding_idx] = 0.0

    def is_superfluous(self, name: str) -> bool:
        """Whether a checkpoint may hold a tensor of this name though the model does not: it says the same as another
        tensor or the config, or belongs to another head."""
        return False
