"""Dtype policies: the dtype of a layer's weights, and the dtype of its computation."""

from __future__ import annotations

from typing import Any

from tallow import dtypes
from tallow.errors import ArgumentError, ArgumentTypeError
from tallow.keras.dtype_names import named
from tallow.keras.settings import floatx
from tallow.lazy_names import names_of

MIXED = {"mixed_float16": "float16", "mixed_bfloat16": "bfloat16"}  # name: compute dtype


class DTypePolicy:
    """The dtype of weights and the dtype of the computation, by name.

    Args:
        name: a dtype for both; or mixed_float16 or mixed_bfloat16, which keep weights in float32 and compute in 16
            bits; by default the global policy.

    Raises:  ArgumentError for an unknown name
    """

    name: str

    def __init__(self, name: str | None = None) -> None:
        if name is None:
            name = dtype_policy().name
        if not isinstance(name, str):
            raise ArgumentTypeError(
                f"DTypePolicy: {name!r:.100} is not a string", hint="use 'mixed_float16' or a dtype"
            )
        self.name = name
        self.compute, self.variable = (
            find_dtype(MIXED.get(name, name)),
            find_dtype("float32" if name in MIXED else name),
        )

    @property
    def compute_dtype(self) -> str:
        """The name of the compute dtype."""
        return self.compute.name

    @property
    def variable_dtype(self) -> str:
        """The name of the weights' dtype."""
        return self.variable.name

    def get_config(self) -> dict[str, Any]:
        """Return the constructor arguments."""
        return {"name": self.name}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Any:
        """Create a policy from its configuration."""
        return cls(**config)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DTypePolicy) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return f'<DTypePolicy "{self.name}">'


FloatDTypePolicy = DTypePolicy

_global_policy: list[DTypePolicy] = []  # the global policy, if it is set


def find_dtype(name: str) -> dtypes.dtype:
    """Return the dtype with a name.

    Raises:  ArgumentError for an unknown name
    """
    dtype = named(name)
    if dtype is None:
        raise ArgumentError(
            f"{name!r:.100} is not the name of a dtype or policy",
            hint=f"use a dtype such as 'float32', or {' or '.join(MIXED)}",
        )
    return dtype


def standardize_dtype(dtype: Any) -> str:
    """Return the name of a dtype, given as a name, a tallow or NumPy dtype, or None for `keras.config.floatx()`.

    Raises:  ArgumentError for an unknown dtype
    """
    if dtype is None:
        return floatx()
    if isinstance(dtype, str):
        return find_dtype({"int": "int64", "float": "float32"}.get(dtype, dtype)).name
    return dtypes.as_dtype(dtype).name


def dtype_policy() -> DTypePolicy:
    """Return the policy of layers without a dtype: the global policy, or `keras.config.floatx()`."""
    return _global_policy[0] if _global_policy else DTypePolicy(floatx())


def set_dtype_policy(policy: Any) -> None:
    """Set the policy, a name or a DTypePolicy, of all layers created from now on without a dtype."""
    _global_policy[:] = [get(policy)]


def get(identifier: Any) -> DTypePolicy:
    """Return the policy for a name, a dtype, a saved configuration or a policy; None is the global policy.

    Raises:  ArgumentError for an unknown name
    """
    if identifier is None:
        return dtype_policy()
    if isinstance(identifier, DTypePolicy):
        return identifier
    if isinstance(identifier, dict):
        return deserialize(identifier)
    return DTypePolicy(identifier if isinstance(identifier, str) else dtypes.as_dtype(identifier).name)


def serialize(dtype_policy: DTypePolicy) -> dict[str, Any]:
    """Return a configuration for `deserialize`."""
    return {
        "module": "keras",
        "class_name": "DTypePolicy",
        "config": dtype_policy.get_config(),
        "registered_name": None,
    }


def deserialize(config: dict[str, Any], custom_objects: dict[str, Any] | None = None) -> DTypePolicy:
    """Return the policy that `serialize` described.

    Raises:  ArgumentError for an unknown policy, such as that of quantized layers
    """
    name = config.get("class_name")
    if name not in ("DTypePolicy", "FloatDTypePolicy"):
        raise ArgumentError(f"unknown dtype policy {name!r:.100}", hint="save the model without quantization")
    return DTypePolicy.from_config(config["config"])


__all__ = ["DTypePolicy", "FloatDTypePolicy", "deserialize", "get", "serialize"]

__getattr__, __dir__ = names_of(__name__)
