"""The experts that a router has chosen for a token: the feed-forward part of a decoder layer with experts.

    y = Σ weight · Wdown · (silu(Wgate · x) ⊙ (Wup · x))

Fused, it takes one call from Python to C instead of about thirty ops for eight experts.

Letters: C chosen experts, D width, F hidden features of an expert.

    blocks = [ExpertBlock(gate, up, down), ...]                            # once, of all experts
    y = kernels.run("experts", x, [blocks[i] for i in chosen], weights)    # for every token
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tallow.devices import array_module
from tallow.dtypes import Array
from tallow.errors import ShapeError
from tallow.kernels.blocks.affine import Matrix, check_dtypes, product
from tallow.kernels.table import ARRAY, kernel, run


@dataclass(slots=True, eq=False)
class ExpertBlock:
    """The weights of one expert, checked when it is made so that a call need not check them.

    Shapes:  gate, up (F, D);  down (D, F)
    Dtypes:  quantized, or else all float32, all float16 or all bfloat16 (uint16)
    Raises:  ShapeError, DtypeError: a matrix does not fit the others
    """

    gate: Matrix
    up: Matrix
    down: Matrix
    packed: object = field(init=False, default=None, repr=False)  # a compiled kernel's own form of the block

    def __post_init__(self) -> None:
        if not self.gate.shape == self.up.shape == self.down.shape[::-1] or len(self.gate.shape) != 2:
            raise ShapeError(
                f"ExpertBlock: gate {self.gate.shape}, up {self.up.shape} and down {self.down.shape}; expected (F, D), "
                "(F, D) and (D, F)"
            )
        check_dtypes("ExpertBlock", zip(("gate", "up", "down"), self.matrices, strict=True))

    @property
    def matrices(self) -> tuple[Matrix, Matrix, Matrix]:
        """The three matrices, in the order of the arguments."""
        return self.gate, self.up, self.down


def check_call(x: Array, blocks: Sequence[ExpertBlock], weights: Array) -> None:
    """Raise ShapeError unless the experts take `x`, and each has a weight."""
    shapes = {block.gate.shape for block in blocks}
    if len(shapes) != 1 or x.shape != shapes.pop()[1:] or weights.shape != (len(blocks),):
        raise ShapeError(f"experts: x {x.shape}, {len(blocks)} experts and weights {weights.shape} do not fit")


@kernel("experts", ARRAY)
def experts(x: Array, blocks: Sequence[ExpertBlock], weights: Array) -> Array:
    """Return the weighted sum of the experts' outputs for one token.

    Shapes:  x (D,), weights (C,) -> (D,)
    Dtypes:  float32; half-precision weights are widened
    Raises:  ShapeError
    """
    check_call(x, blocks, weights)
    total = array_module(x).zeros_like(x)
    for block, weight in zip(blocks, weights, strict=True):
        total += weight * product(run("silu_mul", product(x, block.gate), product(x, block.up)), block.down)
    return total
