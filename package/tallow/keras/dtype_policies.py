"""Dtype policies: in what dtype layers keep their weights, and in what they compute."""

from __future__ import annotations

from typing import Any

from tallow import dtypes
from tallow.errors import ArgumentError, ArgumentTypeError
from tallow.keras.settings import floatx

MIXED = {"mixed_float16": "float16", "mixed_bfloat16": "bfloat16"}  # by name, what is computed in


class DTypePolicy:
    """A dtype for weights and one to compute in, by name.

    Args:
        name: a dtype for both; or mixed_float16 or mixed_bfloat16, which keep weights in float32 and compute in 16
            bits; by default the policy that is set for all.

    Raises:  ArgumentError for an unknown name
    """

    name: str

    def __init__(self, name: str | None = None) -> None:
        if name is None:
            name = dtype_policy().name
        if not isinstance(name, str):
            raise ArgumentTypeError(f"DTypePolicy: {name!r:.100} is no string", mend="use 'mixed_float16' or a dtype")
        self.name = name
        self.compute, self.variable = named(MIXED.get(name, name)), named("float32" if name in MIXED else name)

    @property
    def compute_dtype(self) -> str:
        return self.compute.name

    @property
    def variable_dtype(self) -> str:
        return self.variable.name

    def get_config(self) -> dict[str, Any]:
        return {"name": self.name}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Any:
        return cls(**config)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DTypePolicy) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return f'<DTypePolicy "{self.name}">'


FloatDTypePolicy = DTypePolicy

_set: list[DTypePolicy] = []  # the policy for all, if one was set


def named(name: str) -> dtypes.dtype:
    """The dtype of a name.

    Raises:  ArgumentError for a name that no dtype has
    """
    found = next((dtype for dtype in dtypes.ALL if dtype.name == name), None)
    if found is None:
        raise ArgumentError(
            f"{name!r:.100} names no dtype and no policy",
            mend=f"use a dtype such as 'float32', or {' or '.join(MIXED)}",
        )
    return found


def standardize_dtype(dtype: Any) -> str:
    """The name of a dtype: of a name, of tallow's or NumPy's dtype, or, for None, of `keras.config.floatx()`.

    Raises:  ArgumentError for what names no dtype
    """
    if dtype is None:
        return floatx()
    if isinstance(dtype, str):
        return named({"int": "int64", "float": "float32"}.get(dtype, dtype)).name
    return dtypes.as_dtype(dtype).name


def dtype_policy() -> DTypePolicy:
    """The policy of layers that are given no dtype: `keras.config.floatx()` unless one is set."""
    return _set[0] if _set else DTypePolicy(floatx())


def set_dtype_policy(policy: Any) -> None:
    """Set the policy of all layers that are made from now on and are given no dtype: a name or a DTypePolicy."""
    _set[:] = [get(policy)]


def get(identifier: Any) -> DTypePolicy:
    """The policy of a name, a dtype, a saved configuration; the policy itself; or, for None, the one for all.

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
    """What `deserialize` makes the same policy of."""
    return {
        "module": "keras",
        "class_name": "DTypePolicy",
        "config": dtype_policy.get_config(),
        "registered_name": None,
    }


def deserialize(config: dict[str, Any], custom_objects: dict[str, Any] | None = None) -> DTypePolicy:
    """The policy that `serialize` wrote down.

    Raises:  ArgumentError for a policy that there is not, such as one of quantized layers
    """
    name = config.get("class_name")
    if name not in ("DTypePolicy", "FloatDTypePolicy"):
        raise ArgumentError(f"the dtype policy {name!r:.100} is not known", mend="save the model without quantization")
    return DTypePolicy.from_config(config["config"])


__all__ = ["DTypePolicy", "FloatDTypePolicy", "deserialize", "get", "serialize"]
