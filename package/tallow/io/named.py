"""Check that a loaded file contains tensors by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tallow.core.tensor import Tensor
from tallow.errors import CheckpointError
from tallow.io.gguf import GGUF

SHOWN = 200  # maximum characters of names in an error message


def named_tensors(loaded: Any, source: str, key: str | None = None) -> Mapping[str, Tensor]:
    """Return `loaded`, or its entry `key`, if it is a mapping from names to tensors.

    Args:  source: description of its source, for error messages

    Raises:  CheckpointError
    """
    if key is not None:
        if not isinstance(loaded, Mapping) or key not in loaded:
            raise CheckpointError(f"{source} has no entry {key!r}; it contains {_describe(loaded)}")
        return named_tensors(loaded[key], f"{source}, {key!r}")
    # Do not look at values of a GGUF file: it creates each tensor on access.
    if isinstance(loaded, GGUF) or (
        isinstance(loaded, Mapping)
        and all(isinstance(name, str) and isinstance(value, Tensor) for name, value in loaded.items())
    ):
        return loaded
    hint = "choose one of its entries with the argument `key`" if isinstance(loaded, Mapping) else None
    raise CheckpointError(f"{source} does not contain tensors by name, but {_describe(loaded)}", hint)


def _describe(loaded: Any) -> str:
    return ", ".join(map(str, loaded))[:SHOWN] if isinstance(loaded, Mapping) else type(loaded).__name__
