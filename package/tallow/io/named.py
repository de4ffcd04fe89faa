"""Tensors by name, which a file of weights has to hold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tallow.errors import CheckpointError
from tallow.io.gguf import GGUF
from tallow.tensor import Tensor

SHOWN = 200  # characters of the names in an error message


def named_tensors(loaded: Any, source: str, key: str | None = None) -> Mapping[str, Tensor]:
    """What was loaded, or its entry `key`, if that is tensors by name.

    Args:  source: where it was loaded from, for error messages

    Raises:  CheckpointError
    """
    if key is not None:
        if not isinstance(loaded, Mapping) or key not in loaded:
            raise CheckpointError(f"{source} has no entry {key!r}; it holds {_describe(loaded)}")
        return named_tensors(loaded[key], f"{source}, {key!r}")
    # A GGUF file makes each tensor anew when it is asked for.
    if isinstance(loaded, GGUF) or (
        isinstance(loaded, Mapping)
        and all(isinstance(name, str) and isinstance(value, Tensor) for name, value in loaded.items())
    ):
        return loaded
    mend = "choose an entry by its key" if isinstance(loaded, Mapping) else None
    raise CheckpointError(f"{source} does not hold tensors by name, but {_describe(loaded)}", mend)


def _describe(loaded: Any) -> str:
    return ", ".join(map(str, loaded))[:SHOWN] if isinstance(loaded, Mapping) else type(loaded).__name__
