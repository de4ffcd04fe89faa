"""Adapters in the layers of a model under transformers' names, by `tallow.peft`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tallow.errors import ArgumentError, CheckpointError, MissingNameError
from tallow.models.config import ADAPTER_CONFIG, CONFIG, read_entries
from tallow.transformers.downloads import find_folder

if TYPE_CHECKING:
    from tallow.peft.peft_model import PeftModel

BASE_NAME = "base_model_name_or_path"
DEFAULT = "default"
_HELD = "_adapters"  # in the model's attributes: the PeftModel around it, which is no module of it


class AdapterMixin:
    """Adds, loads, chooses and removes adapters of a model in place.

    Example:
        model.add_adapter(LoraConfig(r=8), adapter_name="stories")
        model.save_pretrained("stories")  # the adapter alone
    """

    @property
    def peft_config(self) -> Any:
        """The configs of the adapters by name.  Raises: MissingNameError for a model without adapters"""
        if _HELD not in vars(self):
            raise MissingNameError(f"{type(self).__name__} has no adapters", hint="call add_adapter or load_adapter")
        return _held(self).peft_config

    def add_adapter(self, adapter_config: Any, adapter_name: str | None = None) -> None:
        """Add a new adapter, make it the active one, and freeze the model's own weights.

        Args:    adapter_config: a `LoraConfig`
        Raises:  as `tallow.peft.get_peft_model`
        """
        from tallow.peft.peft_model import PeftModel

        name, model = adapter_name or DEFAULT, self
        if _HELD not in vars(self):
            vars(self)[_HELD] = PeftModel(model, adapter_config, name)  # type: ignore[arg-type]
            return
        _held(self).add_adapter(name, adapter_config)
        _held(self).set_adapter(name)

    def load_adapter(
        self,
        peft_model_id: str | Path | None = None,
        adapter_name: str | None = None,
        peft_config: Any = None,
        adapter_state_dict: Mapping[str, Any] | None = None,
        is_trainable: bool = False,
        **kwargs: Any,
    ) -> None:
        """Add an adapter from a folder or a repository of the Hub, and make it the active one.

        Args:
            peft_config, adapter_state_dict: the config and the weights of the adapter, in place of a folder.
            is_trainable: False freezes the adapter.
            kwargs: `revision`, `token`, `subfolder` and others that say where files are.

        Raises:  ArgumentError for neither a folder nor weights; and as `tallow.peft.PeftModel.load_adapter`
        """
        from tallow.peft.peft_model import PeftModel
        from tallow.peft.state import set_peft_model_state_dict

        name, model = adapter_name or DEFAULT, self
        if peft_model_id is not None:
            folder, others = find_folder(peft_model_id, kwargs)
            _refuse(others)
            if _HELD not in vars(self):
                vars(self)[_HELD] = PeftModel.from_pretrained(model, folder, name, is_trainable)  # type: ignore[arg-type]
                return
            _held(self).load_adapter(folder, name, is_trainable)
            _held(self).set_adapter(name)
            return
        _refuse(kwargs)
        if peft_config is None or adapter_state_dict is None:
            raise ArgumentError(
                "load_adapter: no folder, and not both a config and weights",
                hint="pass peft_model_id, or peft_config and adapter_state_dict",
            )
        self.add_adapter(peft_config, name)
        set_peft_model_state_dict(_held(self), adapter_state_dict, name)

    def set_adapter(self, adapter_name: str | Sequence[str]) -> None:
        """Make one adapter active, or several, whose changes are added.  Raises: as `LoraModel.set_adapter`"""
        _held(self).set_adapter(adapter_name)

    def active_adapters(self) -> list[str]:
        """Return the names of the active adapters.  Raises: ArgumentError for a model without adapters"""
        return _held(self).active_adapters

    def disable_adapters(self) -> None:
        """Let the model compute without adapters.  Raises: as `LoraModel.set_disabled`"""
        _held(self).base_model.set_disabled(True)

    def enable_adapters(self) -> None:
        """Let the model compute with its active adapters again."""
        _held(self).base_model.set_disabled(False)

    def delete_adapter(self, adapter_names: str | Sequence[str]) -> None:
        """Remove adapters.  Raises: as `LoraModel.delete_adapter`"""
        for name in [adapter_names] if isinstance(adapter_names, str) else adapter_names:
            _held(self).delete_adapter(name)
        if not _held(self).peft_config:
            del vars(self)[_HELD]

    def get_adapter_state_dict(self, adapter_name: str | None = None) -> dict[str, Any]:
        """Return the weights of an adapter by the names of the model's modules; None means the active one.

        Raises:  ArgumentError for a name that does not exist
        """
        from tallow.peft.state import PREFIX, get_peft_model_state_dict

        state = get_peft_model_state_dict(_held(self), adapter_name or self.active_adapters()[0])
        return {name.removeprefix(PREFIX): value for name, value in state.items()}


def adapters_of(model: Any) -> PeftModel | None:
    """Return the PeftModel of a model's adapters: itself, or around it; None if it has none."""
    if isinstance(model, AdapterMixin):
        return vars(model).get(_HELD)
    return model if hasattr(model, "load_adapter") else None


def _held(model: Any) -> PeftModel:
    held = adapters_of(model)
    if held is None:
        raise ArgumentError(f"{type(model).__name__} has no adapters", hint="call add_adapter or load_adapter")
    return held


def _refuse(unknown: Mapping[str, Any]) -> None:
    given = [name for name, value in unknown.items() if value not in (None, False, "auto")]
    if given:
        raise ArgumentError(f"load_adapter has no arguments {', '.join(given)}", hint="see its arguments")


def base_of(folder: Path) -> str | None:
    """Return the name of the model that a folder's adapter changes; None for a folder without an adapter.

    Raises:  CheckpointError for an adapter that names none
    """
    path = folder / ADAPTER_CONFIG
    if not path.is_file() or (folder / CONFIG).is_file():
        return None
    name = read_entries(path).get(BASE_NAME)
    if not isinstance(name, str):
        raise CheckpointError(f"{path} has no {BASE_NAME}", hint="load that model, then model.load_adapter(folder)")
    return name
