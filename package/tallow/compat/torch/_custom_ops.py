"""torch._custom_ops: the former `torch.library`."""

from tallow.compat.torch.library import get_ctx, impl, impl_abstract

__all__ = ["get_ctx", "impl", "impl_abstract"]
