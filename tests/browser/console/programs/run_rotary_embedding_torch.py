"""`RotaryEmbedding`."""

from prelude import image, show
from rotary_embedding_torch import RotaryEmbedding

show(RotaryEmbedding(8).rotate_queries_or_keys(image(1, 2, 3, 8))[0, :, 1:, 2])
