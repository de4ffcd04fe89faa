"""torch._dynamo._trace_wrapped_higher_order_op: a context for functions under vmap."""

from __future__ import annotations

__all__ = ["TransformGetItemToIndex"]


class TransformGetItemToIndex:
    """A block in which tensors may index tensors under vmap. They always may."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc_info: object) -> None:
        pass
