"""torch._tensor_str: the parts of a printed tensor, which subclasses of tensors put together in their own way."""

from __future__ import annotations

from collections.abc import Sequence

from tallow.core import printing
from tallow.core.tensor import Tensor

printoptions = printing.printoptions
PRINT_OPTS = printing._options


def _tensor_str(self: Tensor, indent: int) -> str:
    """Return the elements as they are printed from a column on."""
    return printing._elements(self._host(), indent) if self.numel() else "[]"


def _add_suffixes(tensor_str: str, suffixes: Sequence[str], indent: int, force_newline: bool) -> str:
    """Return the elements with what follows them, each on its own line if it does not fit, and a parenthesis."""
    return printing._with_suffixes(tensor_str, suffixes, indent)
