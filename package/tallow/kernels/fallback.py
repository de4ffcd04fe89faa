"""Return whether a model may run its modules where a fused block could have computed them.

As the state of `tallow.kernels.table`, this belongs to the process, not to a thread.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tallow.errors import KernelUnavailable

_forbidden = False


@contextmanager
def require_fused() -> Iterator[None]:
    """Inside the block, raise KernelUnavailable, with the reason, where a model runs modules instead of fused blocks.

    This is about decoding one token at a time with a language model or Whisper, and about the layers of BERT and
    similar encoders; prompts and everything else run as always. `require` chooses which kernel computes a block.

    Example:
        >>> with require_fused():
        ...     pass
    """
    global _forbidden
    before, _forbidden = _forbidden, True
    try:
        yield
    finally:
        _forbidden = before


def check_fallback(model: str, reason: str) -> None:
    """Raise KernelUnavailable inside `require_fused`; do nothing elsewhere.

    Args:
        model: the name of what runs its modules.
        reason: why it cannot run fused.
    """
    if _forbidden:
        raise KernelUnavailable(
            f"{model} does not run fused: {reason}",
            hint="change that, or leave kernels.require_fused(); model.explain() shows every layer",
        )
