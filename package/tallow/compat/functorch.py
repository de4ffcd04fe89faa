"""functorch: the former name of `torch.func`, which PyTorch installs too."""

from __future__ import annotations

from tallow.compat.absent import absent
from tallow.func import grad as grad
from tallow.func import grad_and_value as grad_and_value
from tallow.func import hessian as hessian
from tallow.func import jacfwd as jacfwd
from tallow.func import jacrev as jacrev
from tallow.func import jvp as jvp
from tallow.func import vjp as vjp
from tallow.func import vmap as vmap

_NAMES = ("FunctionalModule", "FunctionalModuleWithBuffers", "make_functional", "make_functional_with_buffers")
globals().update({name: absent(f"functorch.{name}", "use torch.func.functional_call") for name in _NAMES})
