"""torch.fx.experimental.proxy_tensor: tracing of ops below autograd, which tallow does not do."""

from __future__ import annotations

from tallow.compat.absent import absent

make_fx = absent("torch.fx.experimental.proxy_tensor.make_fx", "use torch.fx.symbolic_trace")


def get_proxy_mode() -> None:
    """Return None: nothing is traced so."""
