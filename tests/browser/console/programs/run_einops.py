"""`rearrange`, `reduce`, `einsum`."""

import einops
from prelude import image, show

x = image(2, 3, 8, 8)
show(
    einops.rearrange(x, "b c (h p) w -> b (c p) h w", p=2)[:, 1],
    einops.reduce(x, "b c h w -> b c", "max"),
    einops.einsum(x, x, "b c h w, b d h w -> c d"),
)
